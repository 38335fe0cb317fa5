"""The fetched records of a consumer, which it returns as records or as Arrow batches.

A position is the offset of the next record that the consumer will return: positions move when records are
returned, not when they are fetched. This module does no I/O: it takes parts from the fetcher's buffer, and
decodes them in the thread of the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from penstock.client.arguments import size
from penstock.client.cluster.metadata import NO_TOPIC_ID, is_recreated, recreated
from penstock.client.counters import PartitionCounters
from penstock.client.fetch.readings import ColumnReading, RowReading
from penstock.common.hints import with_hints
from penstock.common.logs import logger_named
from penstock.errors import (
    DecodeError,
    DeserializationError,
    KafkaError,
    PenstockError,
    TopicRecreatedError,
)
from penstock.model import EARLIEST, LATEST, K, Record, TopicPartition, V
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.cluster.metadata import ClusterMetadata
    from penstock.client.config import ConsumerConfig
    from penstock.client.fetch.cursors import FetchedPart
    from penstock.client.fetch.fetcher import Fetcher
    from penstock.client.serializers import Deserializers

log = logger_named("penstock.client")


NO_POSITION = -4
"""A position that stands for none: with ``auto.offset.reset=none``, the application must set one."""

COMMITTED = -5
"""A position that stands for the group's committed offset, which is not looked up yet."""

BY_AGE = -6
"""A position that stands for the first record that is not older than the duration in
``auto.offset.reset``."""


@with_hints("records", leave=("__init__",))
class Records(list[Record[K, V]], Generic[K, V]):
    """The list of records that `poll` returns.

    If the application uses it like a record or a mapping, the error message mentions `poll`.
    """

    __slots__ = ()


class FetchedRecords(Generic[K, V]):
    """The positions of a consumer, and the fetched records from these positions on.

    The consumer puts assigned partitions into `positions`, and sets `fetcher` once it has begun to fetch.
    """

    def __init__(self, config: ConsumerConfig, cluster: ClusterMetadata) -> None:
        self._config = config
        self._cluster = cluster
        self.needs_attention = False
        """True if the group has changes to process before the consumer returns more records."""
        self.fetcher: Fetcher | None = None
        self.positions: dict[TopicPartition, int] = {}
        """The next offset to return of each partition, or a marker such as `COMMITTED` before its look-up."""
        self.topic_ids: dict[TopicPartition, bytes] = {}
        """The topic id of each position. A position set by a seek has no topic id until fetching begins."""
        self.is_out_of_range = False
        """True if a position was outside its log. The topic may then be a new one that the metadata do not
        have yet."""
        self.position_lock = threading.Lock()
        """A lock for reading and changing positions, since another thread may call `seek`."""
        self._before: dict[TopicPartition, int] = {}
        """For each partition in the last poll's result, the position before that poll."""
        self._reading: RowReading | ColumnReading | None = None
        self._is_iterating = False
        self._polls = 0
        self._deserialize = deserializers_of(config)
        self.counted: dict[TopicPartition, PartitionCounters] = {}
        """A dict from assigned partition to the counters of records that were returned."""
        self.counted_in_all = PartitionCounters()

    @property
    def reset_marker(self) -> int:
        """The negative number, such as `EARLIEST`, for the position that ``auto.offset.reset`` chooses."""
        reset = self._config.auto_offset_reset
        if self._config.reset_age_ms is not None:
            return BY_AGE
        return {"earliest": EARLIEST, "latest": LATEST}.get(reset, NO_POSITION)

    def assign(self, partitions: Iterable[TopicPartition], start: int) -> None:
        """Read exactly these partitions: new ones from `start` on, earlier ones from their positions."""
        positions = {tp: self.positions.get(tp, start) for tp in partitions}
        self.forget(self.positions.keys() - positions.keys())
        self.positions = positions
        self.counted = {tp: counted for tp, counted in self.counted.items() if tp in positions}

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions, and drop their positions."""
        gone = set(partitions)
        self.forget(gone)
        for tp in gone:
            self.positions.pop(tp, None)
            self._before.pop(tp, None)
            self.counted.pop(tp, None)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Set a position to an offset, or to a marker such as `EARLIEST`. Any thread may call this."""
        with self.position_lock:
            self.forget([tp])
            self.positions[tp] = offset
        self.topic_ids.pop(tp, None)
        self._before.pop(tp, None)

    def at(self, marker: int) -> list[TopicPartition]:
        """Return the partitions whose position is a marker such as `EARLIEST`, to be looked up."""
        return [tp for tp, position in self.positions.items() if position == marker]

    def found(self, marker: int, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the marker, such as `EARLIEST`, with the offsets found for it, except after a seek."""
        with self.position_lock:
            for tp, offset in offsets.items():
                if self.positions.get(tp) == marker:
                    self.positions[tp] = offset

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the fetched records of some partitions, and stop fetching those partitions."""
        gone = set(partitions)
        if self.fetcher is not None:
            self.fetcher.stop(gone)
        if self._reading is not None and self._reading.part.tp in gone:
            self._reading = None

    def consumed(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each partition whose position is known.

        Partitions of topics that were deleted and created again are left out: their old positions must not be
        committed.
        """
        topic_id, none = self._cluster.topic_id, NO_TOPIC_ID
        return {
            tp: position
            for tp, position in self.positions.items()
            if position >= 0 and not is_recreated(self.topic_ids.get(tp, none), topic_id(tp.topic))
        }

    def progress(self) -> object:
        """Return a value that changes with each call that returns records to the application.

        The group compares it with an earlier value to detect that the application takes records.
        """
        reading = self._reading
        return self._polls, id(reading), reading.position if isinstance(reading, RowReading) else 0

    def finished(self) -> dict[TopicPartition, int]:
        """Return the positions up to which records are processed: those before the records returned last."""
        finished = self.consumed()
        finished.update({tp: at for tp, at in self._before.items() if tp in finished and at >= 0})
        reading = self._reading
        if self._is_iterating and isinstance(reading, RowReading) and reading.index:
            finished[reading.part.tp] = reading.rows[reading.index - 1].offset
        return finished

    def come_back(self) -> None:
        """Record that the application calls again. It has then processed all records returned before."""
        self._polls += 1
        self._is_iterating = False
        if self._before:
            self._before.clear()

    def poll_now(self, limit: int) -> list[Record[K, V]]:
        """Return up to `limit` records that have been fetched already. Raises as `Consumer.poll`.

        Any thread may call this method.
        """
        records: Records[Any, Any] = Records()
        self.come_back()
        while len(records) < limit:
            try:
                reading = self._row_reading()
            except PenstockError:
                if not records:
                    raise
                break  # what is behind these records is fetched again, and raises in the next poll
            if reading is None:
                break
            tp = reading.part.tp
            self._before.setdefault(tp, self.positions[tp])
            found: list[Any] = reading.take(limit - len(records))
            is_cut = False
            if self._deserialize is not None:
                try:
                    found, is_cut = self._deserialized(reading, found, is_first=not records)
                except DeserializationError:
                    raise
                except BaseException:  # Ctrl-C: all records of this poll come again
                    self.give_back()
                    raise
            records += found
            self.positions[tp] = reading.position
            if is_cut:
                break
        return records

    def _deserialized(
        self, reading: RowReading, taken: list[Record], *, is_first: bool
    ) -> tuple[list[Record[K, V]], bool]:
        """Return the records, deserialized, up to the first that fails, and True if a record has failed.

        The next poll begins with the record that failed. But if the first record of a poll fails, the
        deserializer's error is raised, and the next poll begins after that record.
        """
        assert self._deserialize is not None
        index = reading.index - len(taken)
        made: list[Record[K, V]] = []
        try:
            for record in taken:
                made.append(self._deserialize(record))  # noqa: PERF401  what comes before an error is kept
        except DeserializationError:
            reading.index = index + len(made)
            if made or not is_first:
                return made, True
            reading.index += 1
            self.positions[reading.part.tp] = reading.position
            raise
        return made, False

    def _row_reading(self) -> RowReading | None:
        """Return a reader of decoded records, of the current or the next fetched part, or None."""
        reading = self._reading
        while not isinstance(reading, RowReading) or reading.is_done:
            if isinstance(reading, RowReading):
                tp = reading.part.tp
                try:
                    has_more = reading.load()
                except DecodeError:
                    self.forget([tp])
                    raise
                if self._reading is not reading:  # a seek has come between
                    reading = self._reading
                    continue
                self.positions[tp] = reading.position
                if has_more:
                    self._count(tp, len(reading.rows), 0)
                    break
            part = self._part_to_read(RowReading)
            if part is None:
                return None
            tp = part.tp
            try:
                reading = RowReading(
                    part,
                    self.positions[tp],
                    check_crcs=self._config.check_crcs,
                    unpack=self._config.unpack_limits,
                )
            except DecodeError:
                self.forget([tp])
                raise
            self._reading = reading
            self.positions[tp] = reading.position
            self._count(tp, len(reading.rows), 0)
        return reading

    def _count(self, tp: TopicPartition, records: int, size: int) -> None:
        counted = self.counted.get(tp)
        if counted is None:
            counted = self.counted[tp] = PartitionCounters()
        counted.add(records, size)
        self.counted_in_all.add(records, size)

    def give_back(self) -> None:
        """Set positions back before the records that were returned last, which are then returned again."""
        for tp, position in self._before.items():
            self.forget([tp])
            self.positions[tp] = position
        self._before.clear()

    @property
    def fetched_bytes(self) -> int:
        """The size in bytes of fetched records that `poll` has not returned."""
        held = self._reading.part.size if self._reading is not None else 0
        return held + (self.fetcher.buffer.size_bytes if self.fetcher is not None else 0)

    def poll_arrow_now(self, columns: Sequence[str], batch_bytes: int) -> pa.RecordBatch | None:
        """Return fetched records as an Arrow batch, or None. Raises as `Consumer.poll_arrow`.

        Any thread may call this method.
        """
        size(batch_bytes, "batch_bytes")
        self.come_back()
        while True:
            reading = self._reading
            if not isinstance(reading, ColumnReading) or reading.columns != columns:
                part = self._part_to_read(ColumnReading)
                if part is None:
                    return None
                reading = self._reading = ColumnReading(
                    part,
                    self.positions[part.tp],
                    columns,
                    batch_bytes,
                    check_crcs=self._config.check_crcs,
                    unpack=self._config.unpack_limits,
                )
            tp = reading.part.tp
            self._before.setdefault(tp, self.positions[tp])
            try:
                batch = reading.take()
            except DecodeError:
                self.forget([tp])
                raise
            if self._reading is reading:
                self.positions[tp] = reading.position
            if batch is not None:
                self._count(tp, batch.num_rows, 0)
                return batch
            self._reading = None

    def part_now(self) -> FetchedPart | None:
        """Return the fetched record batches of one partition as bytes, or None if nothing has been fetched.

        Any thread may call this method. The first batch may begin before the consumer's position, which is
        the `start` of the result. Raises KafkaError as `poll`.
        """
        self.come_back()
        part = self._part_to_read(bytes)
        if part is None:
            return None
        start = self._before[part.tp] = self.positions[part.tp]
        self.positions[part.tp] = part.next_offset
        return part._replace(start=start)

    def _part_to_read(self, kind: type) -> FetchedPart | None:
        """Return the fetched records to read next, or None.

        `kind` is the class of the reader that will read them. If a reader of another class has begun with
        some fetched records, the records that it has not read are returned again.
        """
        reading, self._reading = self._reading, None
        if reading is not None and not isinstance(reading, kind):
            if self.positions.get(reading.part.tp, reading.part.next_offset) < reading.part.next_offset:
                return reading.part
        elif isinstance(reading, ColumnReading):
            return reading.part
        while self.fetcher is not None and (part := self.fetcher.take()) is not None:
            if part.cursor.is_dropped:
                continue
            if part.error is not None:
                self._handle(part.tp, part.error)
                continue
            self._count(part.tp, 0, part.size)
            return part
        return None

    def _handle(self, tp: TopicPartition, error: PenstockError) -> None:
        """Apply ``auto.offset.reset`` when the position is outside the log; raise other errors."""
        self.forget([tp])
        if not isinstance(error, KafkaError) or error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise error
        self.is_out_of_range = True
        self._reset(tp, error)

    def _reset(self, tp: TopicPartition, error: KafkaError) -> None:
        """Replace an invalid position with the position that ``auto.offset.reset`` chooses.

        Raises KafkaError for ``auto.offset.reset=none``.
        """
        what = str(error)
        if not isinstance(error, TopicRecreatedError):
            what = f"offset {self.positions[tp]} of {tp} is outside the log"
        if self.reset_marker == NO_POSITION:
            raise type(error)(error.code, error.name, f"{what}: seek(), or set auto.offset.reset")
        if isinstance(error, TopicRecreatedError):
            log.warning("%s; auto.offset.reset=%s says where to go on", what, self._config.auto_offset_reset)
        self.positions[tp] = self.reset_marker
        self._before.pop(tp, None)

    def leave_former_topics(self, partitions: Iterable[TopicPartition]) -> None:
        """Apply ``auto.offset.reset`` to positions in topics that were deleted and created anew.

        A position without a known topic id counts as one in the current topic.
        """
        for tp in partitions:
            known_id, topic_id = self.topic_ids.get(tp, NO_TOPIC_ID), self._cluster.topic_id(tp.topic)
            position = self.positions.get(tp, NO_POSITION)
            if position < 0:
                continue
            if is_recreated(known_id, topic_id):
                why = f"offset {position} of partition {tp.partition} was of the old one"
                self._reset(tp, recreated(tp.topic, known_id, topic_id, why))
            elif known_id == NO_TOPIC_ID:
                self.topic_ids[tp] = topic_id

    @property
    def has_rows(self) -> bool:
        """True if decoded records remain that have not been returned."""
        return isinstance(self._reading, RowReading) and not self._reading.is_done

    def iterate_now(self) -> Iterator[Record[K, V]]:
        """Yield the records that have been fetched already, one by one.

        The iteration ends when the application seeks, or the group has changes to process.
        """
        self.come_back()
        self._is_iterating = True
        deserialize = self._deserialize
        while (reading := self._row_reading()) is not None:
            tp = reading.part.tp
            while self._reading is reading and reading.index < len(reading.rows):
                record: Any = reading.rows[reading.index]
                reading.index += 1
                self.positions[tp] = reading.position
                if deserialize is not None:
                    try:
                        record = deserialize(record)
                    except DeserializationError:
                        raise
                    except BaseException:  # Ctrl-C: this record comes again
                        reading.index -= 1
                        self.positions[tp] = reading.position
                        raise
                yield record
                if self.needs_attention:
                    return


def deserializers_of(config: ConsumerConfig) -> Deserializers[Any, Any] | None:
    """Return the deserializers of a consumer; None where keys and values stay bytes."""
    if config.key_deserializer is None and config.value_deserializer is None:
        return None
    from penstock.client.serializers import Deserializers

    return Deserializers(config.key_deserializer, config.value_deserializer)
