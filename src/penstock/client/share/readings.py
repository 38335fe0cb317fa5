"""Decodes acquired records for the application: as records with delivery counts, or as Arrow batches.

Only acquired offsets of a batch are returned. Acquired offsets without a record are acknowledged as gaps.
Records of a damaged batch are rejected, since no member can read them. Records of a batch that decompresses
to more than this consumer allows are released, since another member may allow more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.share.acknowledgements import GAP, AcknowledgeType
from penstock.client.share.holdings import AcquiredPart, gaps
from penstock.client.share.offset_map import RunMap, ValueRun
from penstock.errors import CorruptRecordError, DecodeError, UnpackLimitError
from penstock.model import COLUMN_NAMES, ShareRecord
from penstock.records.compression.codecs import UnpackLimits, naming_place
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.rows import iter_rows

if TYPE_CHECKING:
    import pyarrow as pa

DELIVERY_COUNT = "deliveryCount"
SHARE_COLUMN_NAMES = (*COLUMN_NAMES, DELIVERY_COUNT)
"""The columns of a share consumer: those of a topic, and the number of deliveries of each record."""


class Unread(NamedTuple):
    """Acquired offsets that the application does not get, and the type of their acknowledgement (`kind`)."""

    runs: Sequence[ValueRun]
    kind: int
    error: DecodeError | None = None


class LogBatch(NamedTuple):
    """One record batch: its bytes, its acquired offsets, and the acquired offsets in the gap before it."""

    records: memoryview
    acquired: list[ValueRun]
    before: list[ValueRun]


def log_batches(part: AcquiredPart) -> Iterator[LogBatch | Unread]:
    """Yield the record batches that have acquired offsets, then the acquired offsets that are in no batch.

    Batches in a format before Kafka 0.11 have no base offset; they are yielded as if they were one batch.
    """
    acquired = RunMap(part.acquired)
    view = part.records
    try:
        found = list(split_batches(view))
    except CorruptRecordError as error:
        yield Unread(list(acquired), AcknowledgeType.REJECT, error)
        return
    if any(magic < 2 for _, _, magic in found):
        yield LogBatch(view, acquired.take(), [])
        return
    for start, end, _ in found:
        header = read_header(view, start)
        first, last = header.base_offset, header.last_offset
        before = acquired.remove(0, first - 1) if first else []
        runs = acquired.remove(first, last)
        if runs or before:
            yield LogBatch(view[start:end], runs, before)
    if acquired:
        yield Unread(acquired.take(), GAP)


class AcquiredRows:
    """Decodes acquired records of one partition, and returns them to the application record by record."""

    def __init__(self, part: AcquiredPart, *, check_crcs: bool, unpack: UnpackLimits) -> None:
        self.part = part
        self.rows: list[ShareRecord[Any, Any]] = []
        self.unread: list[Unread] = []
        """Offsets to acknowledge although the application does not get their records. The caller acknowledges
        them, and empties the list.
        """
        self._check_crcs = check_crcs
        self._unpack = unpack
        self._batches = log_batches(part)

    def take(self, limit: int) -> list[ShareRecord[Any, Any]]:
        """Return at most `limit` more records, or an empty list at the end.

        Raises:
            CorruptRecordError: the next batch is damaged, or too large when decompressed. The next call
                continues after the batch.
        """
        while not self.rows:
            batch = next(self._batches, None)
            if batch is None:
                return []
            self._load(batch)
        taken, self.rows = self.rows[:limit], self.rows[limit:]
        return taken

    def rest(self) -> AcquiredPart:
        """Return the acquired records that were not taken, so that `AcquiredColumns` can return them."""
        runs = [ValueRun(row.offset, row.offset, row.delivery_count) for row in self.rows]
        for batch in self._batches:
            if isinstance(batch, Unread):
                self.unread.append(batch)
            else:
                runs += [*batch.before, *batch.acquired]
        return self.part._replace(acquired=list(RunMap(runs)))

    def _load(self, batch: LogBatch | Unread) -> None:
        if isinstance(batch, Unread):
            self.unread.append(batch)
            if batch.error is not None:
                raise batch.error
            return
        runs = batch.acquired
        if batch.before:
            self.unread.append(Unread(gaps(batch.before, RunMap()), GAP))
        if not runs:
            return
        rows: list[ShareRecord[Any, Any]] = []
        try:
            with naming_place(self.part.tp):
                pieces = iter_rows(
                    batch.records,
                    *self.part.tp,
                    start_offset=runs[0].first,
                    end_offset=runs[-1].last + 1,
                    verify=self._check_crcs,
                    limit_bytes=self._unpack.max_bytes,
                    limit_records=self._unpack.max_records,
                    record_class=ShareRecord,
                )
                found: Any = [row for piece, _ in pieces for row in piece]
        except DecodeError as error:
            self.unread.append(unreadable(runs, error))
            raise
        at = 0
        present = RunMap()
        for row in found:
            while at < len(runs) and runs[at].last < row.offset:
                at += 1
            if at == len(runs):
                break
            if row.offset >= runs[at].first:
                row.delivery_count = runs[at].value
                rows.append(row)
                present.put(row.offset, row.offset, 1)
        missing = gaps(runs, present)
        if missing:
            self.unread.append(Unread(missing, GAP))
        self.rows = rows


def unreadable(runs: Sequence[ValueRun], error: DecodeError) -> Unread:
    """Return unreadable offsets with their acknowledgement type: `error` decides on release or reject."""
    is_limit = isinstance(error, UnpackLimitError)
    return Unread(list(runs), AcknowledgeType.RELEASE if is_limit else AcknowledgeType.REJECT, error)


class AcquiredColumns:
    """Decodes acquired records of one partition, and returns them to the application as Arrow batches."""

    def __init__(
        self,
        part: AcquiredPart,
        columns: Sequence[str],
        batch_bytes: int,
        *,
        check_crcs: bool,
        unpack: UnpackLimits,
    ) -> None:
        self.part = part
        self.columns = columns
        self.unread: list[Unread] = []
        self._batch_bytes = batch_bytes
        self._check_crcs = check_crcs
        self._unpack = unpack
        self._batches = log_batches(part)
        self._failed: list[LogBatch] = []
        """Batches that could not be decoded together, and are now decoded one by one."""

    def take(self) -> tuple[pa.RecordBatch, list[ValueRun]] | None:
        """Return the next Arrow batch, and its offsets with their delivery counts; None at the end.

        Raises:
            CorruptRecordError: a batch is damaged, or too large when decompressed. The next call continues
                after the batch.
        """
        while True:
            batches = self._next_batches()
            if not batches:
                return None
            try:
                made = self._decode(batches)
            except DecodeError as error:
                if len(batches) > 1:
                    self._failed = batches
                    continue
                self.unread.append(unreadable(batches[0].acquired, error))
                raise
            if made is not None:
                return made

    def rest(self) -> AcquiredPart:
        """Return the acquired records that were not taken, so that `AcquiredRows` can return them."""
        runs: list[ValueRun] = []
        for batch in [*self._failed, *self._batches]:
            if isinstance(batch, Unread):
                self.unread.append(batch)
            else:
                runs += [*batch.before, *batch.acquired]
        return self.part._replace(acquired=list(RunMap(runs)))

    def _next_batches(self) -> list[LogBatch]:
        """Return the record batches for the next Arrow batch, of about `batch_bytes` bytes together."""
        if self._failed:
            return [self._failed.pop(0)]
        found: list[LogBatch] = []
        size = 0
        for batch in self._batches:
            if isinstance(batch, Unread):
                self.unread.append(batch)
                if batch.error is not None and not found:
                    raise batch.error
                continue
            if batch.before:
                self.unread.append(Unread(gaps(batch.before, RunMap()), GAP))
            if not batch.acquired:
                continue
            found.append(batch)
            size += batch.records.nbytes
            if size >= self._batch_bytes:
                break
        return found

    def _decode(self, batches: Sequence[LogBatch]) -> tuple[pa.RecordBatch, list[ValueRun]] | None:
        import numpy as np
        import pyarrow as pa

        from penstock.records.arrow import to_arrow
        from penstock.records.decode import decode_columns

        runs = [run for batch in batches for run in batch.acquired]
        names = [name for name in self.columns if name != DELIVERY_COUNT]
        with naming_place(self.part.tp):
            decoded = decode_columns(
                [batch.records for batch in batches],
                columns={*names, "offset"},
                start_offset=runs[0].first,
                end_offset=runs[-1].last + 1,
                verify_crcs=self._check_crcs,
                limit_bytes=self._unpack.max_bytes,
                limit_records=self._unpack.max_records,
            )
        offsets = decoded.offsets
        if offsets is None or not decoded.row_count:
            self.unread.append(Unread(gaps(runs, RunMap()), GAP))
            return None
        firsts = np.array([run.first for run in runs], dtype=np.int64)
        lasts = np.array([run.last for run in runs], dtype=np.int64)
        counts = np.array([run.value for run in runs], dtype=np.int32)
        at = np.searchsorted(firsts, offsets, side="right") - 1
        is_acquired = (at >= 0) & (offsets <= lasts[at])
        batch = to_arrow(decoded, *self.part.tp, names)
        if not is_acquired.all():
            batch = batch.filter(pa.array(is_acquired))
            offsets, at = offsets[is_acquired], at[is_acquired]
        present = RunMap(ValueRun(first, last, 1) for first, last in runs_of(offsets))
        missing = gaps(runs, present)
        if missing:
            self.unread.append(Unread(missing, GAP))
        if not batch.num_rows:
            return None
        columns = dict(zip(names, batch.columns, strict=True))
        columns[DELIVERY_COUNT] = pa.array(counts[at], type=pa.int32())
        held = [seen for run in runs for seen in _valued(present, run)]
        return pa.RecordBatch.from_pydict({name: columns[name] for name in self.columns}), held


def _valued(present: RunMap, run: ValueRun) -> list[ValueRun]:
    return [ValueRun(seen.first, seen.last, run.value) for seen in present.within(run.first, run.last)]


def runs_of(offsets: Any) -> list[tuple[int, int]]:
    """Return the contiguous ranges in an array of ascending offsets, as pairs of first and last offset."""
    import numpy as np

    if not len(offsets):
        return []
    breaks = np.flatnonzero(np.diff(offsets) != 1)
    firsts = offsets[np.concatenate(([0], breaks + 1))]
    lasts = offsets[np.concatenate((breaks, [len(offsets) - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
