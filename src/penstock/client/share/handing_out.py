"""Returns a share consumer's acquired records to the application, as records or as Arrow batches.

This module does no I/O; it runs in the application's thread, or on its event loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from penstock.client.share.acknowledgements import AcknowledgeType
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.client.share.readings import AcquiredColumns, AcquiredRows, runs_of
from penstock.errors import ConfigError, DeserializationError, PenstockError
from penstock.model import K, Record, ShareRecord, TopicPartition, V

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.config import ShareConsumerConfig
    from penstock.client.serializers import Deserializers
    from penstock.client.share.holdings import Holdings

PLACE_COLUMNS = ("topic", "partition", "offset")


class HandingOut(Generic[K, V]):
    """Returns acquired records to the application, and takes its acknowledgements.

    `deserialize` converts the key and value of a record from bytes; None leaves them as bytes.
    """

    def __init__(
        self, config: ShareConsumerConfig, holdings: Holdings, deserialize: Deserializers[K, V] | None
    ) -> None:
        self._config = config
        self._holdings = holdings
        self._deserialize = deserialize
        self._reading: AcquiredRows | AcquiredColumns | None = None
        self._again: list[tuple[TopicPartition, Any, RunMap]] = []
        self._error: PenstockError | None = None
        """An error of the last call, which has returned the records before the error. The next call raises
        it."""

    def forget(self) -> None:
        """Drop records that have not been returned: the brokers release them with the session."""
        self._reading = None
        self._again = []

    # -- rows

    def rows(self, limit: int) -> list[ShareRecord[K, V]]:
        """Return at most `limit` records. Raises as `AsyncShareConsumer.poll`."""
        self._raise_late_error()
        records: list[Any] = []
        while len(records) < limit:
            reading = self._row_reading()
            if reading is None:
                break
            try:
                found = reading.take(limit - len(records))
            except PenstockError as error:
                self._acknowledge_unread(reading)
                if records:
                    self._error = error
                    break
                raise
            self._acknowledge_unread(reading)
            if not found:
                self._reading = None
                continue
            try:
                made = self._deserialized(reading, found, is_first=not records)
            except DeserializationError as error:
                self._release(reading, error)
                raise
            self._holdings.hold(
                reading.part, (ValueRun(row.offset, row.offset, row.delivery_count) for row in made)
            )
            records += made
            if len(made) < len(found):
                break
        return records

    def _raise_late_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _present_reading(self) -> AcquiredRows | AcquiredColumns | None:
        """Return the current reader of acquired records; None without one, or if the locks have expired.

        The broker delivers records with expired locks again.
        """
        if self._reading is not None and self._holdings.is_late(self._reading.part):
            self._reading = None
        return self._reading

    def _row_reading(self) -> AcquiredRows | None:
        reading = self._present_reading()
        if isinstance(reading, AcquiredRows):
            return reading
        if reading is not None:
            self._give_back(reading)
        part = self._holdings.next_part()
        if part is None:
            return None
        made = AcquiredRows(part, check_crcs=self._config.check_crcs, unpack=self._config.unpack_limits)
        self._reading = made
        return made

    def _give_back(self, reading: AcquiredRows | AcquiredColumns) -> None:
        """Put a reader's remaining records back into the holdings, for a reader of another form.

        The forms are records, and Arrow batches with certain columns.
        """
        self._reading = None
        rest = reading.rest()
        self._acknowledge_unread(reading)
        if rest.acquired:
            self._holdings.put_back(rest)

    def _acknowledge_unread(self, reading: AcquiredRows | AcquiredColumns) -> None:
        unread, reading.unread = reading.unread, []
        for each in unread:
            self._holdings.decide_unseen(reading.part, each.runs, each.kind)

    def _deserialized(self, reading: AcquiredRows, found: list[Any], *, is_first: bool) -> list[Any]:
        """Return the records, deserialized, up to the first one that cannot be deserialized.

        The next poll begins with that record.

        Raises:
            DeserializationError: the first record of a poll cannot be deserialized.
        """
        if self._deserialize is None:
            return found
        made: list[Any] = []
        for at, record in enumerate(found):
            try:
                read: Any = self._deserialize(record)
            except DeserializationError:
                reading.rows = found[at:] + reading.rows
                if made or not is_first:
                    return made
                raise
            read.delivery_count = record.delivery_count
            made.append(read)
        return made

    def _release(self, reading: AcquiredRows, error: DeserializationError) -> None:
        row = reading.rows.pop(0)
        run = ValueRun(row.offset, row.offset, row.delivery_count)
        self._holdings.decide_unseen(reading.part, [run], AcknowledgeType.RELEASE)

    # -- columns

    def batch(self, columns: Sequence[str], batch_bytes: int) -> pa.RecordBatch | None:
        """Return the next Arrow batch, or None. Raises as `AsyncShareConsumer.poll`."""
        self._raise_late_error()
        while True:
            reading = self._present_reading()
            if not isinstance(reading, AcquiredColumns) or reading.columns != columns:
                if reading is not None:
                    self._give_back(reading)
                part = self._holdings.next_part()
                if part is None:
                    return None
                reading = self._reading = AcquiredColumns(
                    part,
                    columns,
                    batch_bytes,
                    check_crcs=self._config.check_crcs,
                    unpack=self._config.unpack_limits,
                )
            try:
                made = reading.take()
            finally:
                self._acknowledge_unread(reading)
            if made is None:
                self._reading = None
                continue
            batch, runs = made
            self._holdings.hold(reading.part, runs)
            return batch

    # -- decisions

    def acknowledge(self, what: Any, kind: AcknowledgeType) -> None:
        """Acknowledge a record, several records, or rows of Arrow.

        Raises ConfigError as `AsyncShareConsumer.acknowledge`.
        """
        if isinstance(what, Record):
            self._acknowledge_one(what, kind)
        elif hasattr(what, "schema") and hasattr(what, "column"):
            self._acknowledge_rows(what, kind)
        elif isinstance(what, Iterable) and not isinstance(what, (str, bytes)):
            for each in what:
                if not isinstance(each, Record):
                    raise ConfigError(f"acknowledge() takes records; {each!r} is none")
                self._acknowledge_one(each, kind)
        else:
            raise ConfigError(f"acknowledge() takes a record, records, or rows of Arrow, not {what!r}")

    def _acknowledge_one(self, record: Record[Any, Any], kind: AcknowledgeType) -> None:
        tp = TopicPartition(record.topic, record.partition)
        self._holdings.acknowledge(tp, record.offset, record.offset, kind)
        if kind is AcknowledgeType.RENEW:
            self._holdings.keep_renewed(tp, record)

    def _acknowledge_rows(self, rows: Any, kind: AcknowledgeType) -> None:
        names = rows.schema.names
        missing = [name for name in PLACE_COLUMNS if name not in names]
        if missing:
            raise ConfigError(
                f"acknowledge() needs the columns topic, partition and offset, and these rows have no "
                f"{missing[0]}: leave them in, or call acknowledge_offsets()"
            )
        if not rows.num_rows:
            return
        import pyarrow as pa
        import pyarrow.compute as pc

        batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        for batch in batches:
            if not batch.num_rows:
                continue
            places = (
                pa.Table.from_batches([batch]).select(["topic", "partition"]).group_by(["topic", "partition"])
            )
            for place in places.aggregate([]).to_pylist():
                tp = TopicPartition(place["topic"], place["partition"])
                is_there = pc.and_(
                    pc.equal(batch.column("topic"), tp.topic),
                    pc.equal(batch.column("partition"), tp.partition),
                )
                part = batch.filter(is_there)
                offsets = part.column("offset").to_numpy(zero_copy_only=False)
                for first, last in runs_of(sorted_offsets(offsets)):
                    self._holdings.acknowledge(tp, first, last, kind)
                if kind is AcknowledgeType.RENEW:
                    self._holdings.keep_renewed(tp, part)

    # -- what comes again

    def has_again(self) -> bool:
        """Take the renewed records from the holdings; return True if there are any to return again."""
        self._again = [each for each in self._holdings.hold_renewed() if each[2]]
        return bool(self._again)

    def rows_again(self) -> list[ShareRecord[K, V]]:
        """Return the records whose locks were renewed.

        Raises:
            ConfigError: the records had been returned as Arrow batches.
        """
        found: list[Any] = []
        for _, what, kept in self._again:
            if not isinstance(what, Record):
                raise ConfigError("rows of Arrow were renewed: they come again by poll_arrow()")
            if kept.covers(what.offset, what.offset):
                found.append(what)
        self._again = []
        return found

    def batch_again(self) -> pa.RecordBatch:
        """Return the records whose locks were renewed as one Arrow batch.

        Raises:
            ConfigError: the rows had been returned as records.
        """
        import pyarrow as pa

        parts: list[Any] = []
        for _, what, kept in self._again:
            if isinstance(what, Record):
                raise ConfigError("records were renewed: they come again by poll()")
            offsets = what.column("offset").to_pylist()
            parts.append(what.filter(pa.array([kept.covers(offset, offset) for offset in offsets])))
        self._again = []
        return pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def sorted_offsets(offsets: Any) -> Any:
    """Return an array of offsets in ascending order, without duplicates."""
    import numpy as np

    return np.unique(offsets)
