"""`SegmentedLog`: a log as a list of segments; the code that logs in memory and logs on disk share.

`SegmentedLog` begins a new segment when the last one is full or old, finds the segments that retention may
delete, and finds the segment of an offset or a time. A `Segment` stores the bytes. So logs in memory and on
disk behave in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from struct import Struct
from zlib import crc32

from penstock.common.logs import logger_named
from penstock.log.contract import (
    NEVER,
    RELATIVE_OFFSET_MAX,
    Bytes,
    DamagedLogError,
    FileRegion,
    LogConfig,
    PendingFlush,
    Segment,
    Slice,
)
from penstock.log.epochs import LeaderEpochs
from penstock.log.times import latest_record, record_since
from penstock.log.walk import BatchEntry, walk_buffer
from penstock.model import EARLIEST, LATEST
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.format.batch_header import (
    HEADER_BYTES,
    LENGTH_EXTRA_BYTES,
    LENGTH_POSITION,
    BatchHeader,
    read_header,
)

logger = logger_named("penstock.log")

LOOK_EVERY_MS = 1000
"""The interval in ms after which an append checks again that the log's files were not moved or removed."""

_LENGTH_AND_EPOCH = Struct(">ii")

_new = object.__new__


class _InstantFlush:
    """The result of `pending_flush` for a log in memory, which needs no flush: `sync` does nothing."""

    __slots__ = ("up_to_offset",)

    def __init__(self, up_to_offset: int) -> None:
        self.up_to_offset = up_to_offset

    def sync(self) -> None:
        """Do nothing."""


class SegmentedLog(ABC):
    """A `Log` that consists of segments. Subclasses create the segments and flush them."""

    flush_is_instant = True
    """True if a flush takes no time (in memory), so that `leave_flushing` has no effect."""

    def __init__(
        self, config: LogConfig, segments: Sequence[Segment], epochs: LeaderEpochs, *, jitter_seed: int = 0
    ) -> None:
        """Create the log with `segments` in offset order, at least one; the last of them takes appends.

        `jitter_seed` differs between logs, so that with `segment.jitter.ms`, they begin new segments at
        different times.
        """
        self._jitter_seed = jitter_seed
        self._segments = list(segments)
        self._bases = [segment.base_offset for segment in segments]
        self._active = self._segments[-1]
        self._doomed: list[Segment] = []
        """The segments that were removed from the log, but whose files could not be deleted yet."""
        self.start_offset = self._bases[0]
        self.end_offset = self._active.end_offset
        self.recovery_point = self.start_offset
        self.leader_epochs = epochs
        self._epoch = epochs.latest
        self._unflushed_since_ms = -1
        self._looked_ms = NEVER
        """The time in ms when an append last called `check_in_place`; NEVER makes the next append call it."""
        self.cleaned_to = 0
        """The offset up to which the log is compacted."""
        self.is_closed = False
        self.flushes_itself = True
        """True if an append also makes any flush that is due; if False, the caller has to flush."""
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        self.config = config
        self._segment_bytes = min(config.segment_bytes, RELATIVE_OFFSET_MAX)
        self._segment_ms = config.segment_ms - self._jitter_ms()
        self._flushes = config.flush_messages < NEVER or config.flush_ms < NEVER

    @abstractmethod
    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        """Create an empty segment."""

    def _jitter_ms(self) -> int:
        """Return the milliseconds to subtract from `segment.ms`, so that logs roll at different times."""
        most = min(self.config.segment_jitter_ms, self.config.segment_ms)
        return crc32(b"%d %d" % (self._jitter_seed, self._active.base_offset)) % most if most > 0 else 0

    @abstractmethod
    def flush(self) -> None: ...

    def leave_flushing(self) -> None:
        self.flushes_itself = self.flush_is_instant

    def pending_flush(self, *, sealed_only: bool = False) -> PendingFlush:
        return _InstantFlush(self._active.base_offset if sealed_only else self.end_offset)

    def flushed(self, done: PendingFlush) -> None:
        self.recovery_point = max(self.recovery_point, min(done.up_to_offset, self.end_offset))

    def close(self) -> None:
        self.is_closed = True

    @property
    def segments(self) -> Sequence[Segment]:
        """All segments in offset order. The last one takes appends, the others are sealed."""
        return self._segments

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    # --- growing ----------------------------------------------------------------------------------

    def append(
        self, batches: Bytes, *, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        if not self.end_offset <= first_offset <= last_offset:
            raise ValueError(
                f"offsets {first_offset} to {last_offset} cannot follow a log that ends at {self.end_offset}"
            )
        if not 0 <= now_ms - self._looked_ms < LOOK_EVERY_MS:
            self.check_in_place()
            self._looked_ms = now_ms
        size = len(batches)
        segment = self._active
        if (
            segment.size + size > self._segment_bytes
            or segment.full
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or self._segment_ms
            < (
                max_timestamp - segment.first_timestamp
                if segment.first_timestamp >= 0
                else now_ms - segment.created_ms
            )
        ):
            segment = self._make_room(segment, first_offset, last_offset, now_ms)
        length, epoch = _LENGTH_AND_EPOCH.unpack_from(batches, LENGTH_POSITION)
        if length + LENGTH_EXTRA_BYTES == size and epoch == self._epoch:
            segment.append(batches, size, last_offset, max_timestamp, now_ms)
        else:
            self._append_walked(segment, batches, now_ms)
        self.end_offset = last_offset + 1
        if self._flushes:
            self._flush_after_append(now_ms)

    @abstractmethod
    def check_in_place(self) -> None:
        """Check that the files being written are still at their paths, where the next start looks.

        Raises:
            StorageError: a file or directory was removed, moved or replaced.
        """

    def look_again(self) -> None:
        """Make the next append call `check_in_place`, even if the last check was recent."""
        self._looked_ms = NEVER

    def _append_walked(self, segment: Segment, batches: Bytes, now_ms: int) -> None:
        """Append batches entry by entry: several, one of a new leader epoch, or messages of magic 0 or 1."""
        entries = list(walk_buffer(batches))
        if sum(entry.size for entry in entries) != len(batches):
            raise ValueError(f"{len(batches)} bytes that are not a number of whole batches")
        for entry in entries:
            self.leader_epochs.assign(entry.leader_epoch, entry.base_offset)
        self._epoch = self.leader_epochs.latest
        if len(entries) == 1:
            only = entries[0]
            segment.append(batches, only.size, only.last_offset, only.max_timestamp, now_ms)
        else:
            segment.append_many(batches, len(batches), entries, now_ms)

    def _make_room(self, segment: Segment, first_offset: int, last_offset: int, now_ms: int) -> Segment:
        """Return the segment for the next batch: `segment` if empty and large enough, else a new segment."""
        if segment.size == 0 and last_offset - segment.base_offset <= RELATIVE_OFFSET_MAX:
            return segment
        # A segment begins where the last one ends, also behind the gaps that a compacted leader has: recovery
        # takes gaps between segments for lost batches.
        is_near = last_offset - self.end_offset <= RELATIVE_OFFSET_MAX
        return self._roll(self.end_offset if is_near else first_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        old = self._active
        fresh = self._new_segment(base_offset, now_ms)
        old.seal(base_offset)
        self._segments.append(fresh)
        self._bases.append(base_offset)
        self._active = fresh
        self.end_offset = (
            base_offset  # also if what follows raises: no record can come before the new segment
        )
        if old.size == 0:
            self._remove(len(self._segments) - 2, len(self._segments) - 1)
        if self.config.segment_jitter_ms:
            self._segment_ms = self.config.segment_ms - self._jitter_ms()
        return fresh

    @property
    def flush_is_due(self) -> bool:
        return not self.flushes_itself and self.end_offset - self.recovery_point >= self.config.flush_messages

    def _flush_after_append(self, now_ms: int) -> None:
        if not self.flushes_itself:
            if self._unflushed_since_ms < 0:
                self._unflushed_since_ms = now_ms
            return
        if self.end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        elif self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        else:
            self.flush_if_due(now_ms)

    def flush_if_due(self, now_ms: int) -> bool:
        if self.end_offset <= self.recovery_point or self.config.flush_ms == NEVER:
            return False
        if self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        # After the clock was put back, ages are unknown: what waits is flushed now.
        if 0 <= now_ms - self._unflushed_since_ms < self.config.flush_ms:
            return False
        if self.flushes_itself:
            self.flush()
        return True

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, up_to_offset: int | None = None, at_least_one: bool = True
    ) -> Slice:
        end = self.end_offset
        if not self.start_offset <= offset <= end:
            raise ValueError(f"offset {offset} is not between {self.start_offset} and {end}")
        if up_to_offset is not None and up_to_offset < end:
            end = up_to_offset
        pieces: list[Bytes | FileRegion] = []
        if offset >= end:
            return Slice(pieces, 0)
        segment = self._active
        if offset >= segment.base_offset:
            # The fields are set one by one: a call of the class takes longer.
            found = _new(Slice)
            found.pieces = pieces
            found.size = segment.read(pieces, offset, max_bytes, end, at_least_one)[0]
            return found
        size = 0
        for segment in self._segments[self._index_of(offset) :]:
            try:
                more, exhausted = segment.read(
                    pieces, max(offset, segment.base_offset), max_bytes - size, end, at_least_one and not size
                )
            except DamagedLogError:
                if not size:
                    raise
                break  # the next read, which begins there, raises the error
            size += more
            if not exhausted or size >= max_bytes:
                break
        return Slice(pieces, size)

    def _index_of(self, offset: int) -> int:
        """Return the index of the segment that contains an offset."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def entries(self, start_offset: int | None = None) -> Iterator[BatchEntry]:
        for _, entry in self._entries(start_offset):
            yield entry

    def iter_batch_headers(self, start_offset: int | None = None) -> Iterator[BatchHeader]:
        offset = self.start_offset if start_offset is None else start_offset
        for segment in self._segments[self._index_of(offset) :]:
            try:
                for entry in segment.entries(offset):
                    if entry.magic == 2:
                        yield read_header(segment.load(entry.position, HEADER_BYTES))
            except DamagedLogError as error:
                logger.error("%s; its producers are known only as far as it can be read", error)

    def _entries(self, start_offset: int | None) -> Iterator[tuple[Segment, BatchEntry]]:
        offset = self.start_offset if start_offset is None else start_offset
        for segment in self._segments[self._index_of(offset) :]:
            for entry in segment.entries(offset):
                yield segment, entry

    # --- time -------------------------------------------------------------------------------------

    def batch_since(self, timestamp_ms: int, start_offset: int) -> tuple[BatchEntry, Bytes] | None:
        start_offset = max(start_offset, self.start_offset)
        for segment in self._segments[self._index_of(start_offset) :]:
            entry = segment.batch_since(timestamp_ms, start_offset)
            if entry is not None:
                return entry, segment.load(entry.position, entry.size)
        return None

    def offset_for_timestamp(
        self, timestamp_ms: int, budget: UnpackBudget | None = None
    ) -> tuple[int, int] | None:
        start_offset = self.start_offset
        while (found := self.batch_since(timestamp_ms, start_offset)) is not None:
            entry, batch = found
            record = record_since(entry, batch, timestamp_ms, start_offset, budget or UnpackBudget())
            if record is not None:
                return record
            start_offset = entry.last_offset + 1
        return None

    @property
    def max_timestamp(self) -> int:
        return max(segment.max_timestamp for segment in self._segments)

    def offset_of_max_timestamp(self, budget: UnpackBudget | None = None) -> tuple[int, int] | None:
        latest = self.max_timestamp
        if latest < 0:
            return None
        found = self.offset_for_timestamp(latest, budget)
        if found is not None:
            return found
        # The latest record lies below the start, in a batch or segment kept for what follows it.
        best: tuple[int, int] | None = None
        for segment, entry in self._entries(None):
            if entry.max_timestamp > (best[1] if best else -1):
                batch = segment.load(entry.position, entry.size)
                latest_there = latest_record(entry, batch, self.start_offset, budget or UnpackBudget())
                if latest_there is not None and latest_there[1] > (best[1] if best else -1):
                    best = latest_there
        return best

    def segment_offsets(self, before_ms: int, now_ms: int) -> list[int]:
        stamped = [(max(s.base_offset, self.start_offset), s.last_append_ms) for s in self._segments]
        if self._active.size:
            stamped.append((self.end_offset, now_ms))
        if before_ms == EARLIEST:
            return [stamped[0][0]]
        while stamped and before_ms != LATEST and stamped[-1][1] > before_ms:
            stamped.pop()
        return [offset for offset, _ in reversed(stamped)]

    # --- shrinking --------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> None:
        if offset > self.end_offset:
            raise ValueError(f"offset {offset} is past the end, {self.end_offset}")
        self._remove_doomed()
        if offset <= self.start_offset:
            return
        if offset == self.end_offset and self._active.size:
            self._roll(offset, self._active.last_append_ms)
        # Noted before they go: segments that are missing without a note were not removed by us.
        self.leader_epochs.truncate_start(offset)
        self.start_offset = offset
        self.recovery_point = max(self.recovery_point, offset)
        self._remove(0, self._index_of(offset))

    def begin_at(self, offset: int) -> None:
        if offset < self.end_offset:
            raise ValueError(f"offset {offset} is before the end, {self.end_offset}")
        self.check_in_place()
        self.delete_before(self.end_offset)
        self.leader_epochs.truncate_end(0)
        self._epoch = self.leader_epochs.latest
        if offset > self.end_offset:
            self._restart_at(offset)

    def retention_offset(self, now_ms: int, up_to_offset: int | None = None) -> int:
        config = self.config
        excess = self.size_bytes - config.retention_bytes if config.retention_bytes >= 0 else -1
        limit = self.end_offset if up_to_offset is None else up_to_offset
        offset = self.start_offset
        for segment in self._segments:
            too_old = 0 <= config.retention_ms < now_ms - segment.newest_ms
            too_much = excess >= segment.size
            if segment.size == 0 or segment.end_offset > limit or not (too_old or too_much):
                break
            excess -= segment.size
            offset = max(offset, segment.end_offset)
        return offset

    def truncate_to(self, offset: int) -> None:
        if offset >= self.end_offset:
            return
        if offset < self._bases[0]:
            self._restart_at(offset)
        else:
            while self._active.base_offset > offset:
                self._active.delete()
                del self._segments[-1], self._bases[-1]
                self._active = self._segments[-1]
                self.end_offset = self._active.end_offset
            self._active.truncate_to(offset)
        self.end_offset = self._active.end_offset
        self.start_offset = min(self.start_offset, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        self.cleaned_to = min(self.cleaned_to, self.end_offset)
        self.leader_epochs.truncate_end(self.end_offset)
        self._epoch = self.leader_epochs.latest

    def _restart_at(self, offset: int) -> None:
        """Remove all segments, and begin an empty segment at `offset`."""
        fresh = self._new_segment(offset, self._active.last_append_ms)
        self._segments.append(fresh)
        self._bases.append(offset)
        self._active = fresh
        self.start_offset = self.end_offset = self.recovery_point = offset
        self._remove(0, len(self._segments) - 1)

    # --- compaction -------------------------------------------------------------------------------

    @abstractmethod
    def new_compacted(self, first: Segment) -> Segment:
        """Create an empty segment for a compaction; it will replace `first` and maybe segments after it."""

    def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """Replace the sealed segments `old` by a compacted one; return False if some are gone from the log.

        Raises:
            StorageError: a file cannot be changed. Either the log is unchanged and the files of `new` are
                removed; or `new` is in use, and `settle` does the remaining work in the directory.
        """
        if old[0] not in self._segments or old[-1] is self._active:
            return False
        start = self._segments.index(old[0])
        end = start + len(old)
        if self._segments[start:end] != list(old):
            return False
        new.take_place_of(old)
        self._segments[start:end] = [new]
        self._bases[start:end] = [new.base_offset]
        new.settle()
        return True

    def settle(self) -> None:
        """Retry the file operations of earlier compactions that have failed.

        Raises:
            StorageError: an operation fails again.
        """
        self._remove_doomed()
        for segment in self._segments:
            segment.settle()

    def _remove(self, begin: int, end: int) -> None:
        """Remove the segments with indexes `begin` to `end - 1` from the log, and delete their files.

        Raises:
            StorageError: files cannot be removed. The segments are removed from the log nevertheless; the
            next change of the log tries again to delete their files.
        """
        self._doomed += self._segments[begin:end]
        del self._segments[begin:end], self._bases[begin:end]
        self._remove_doomed()

    def _remove_doomed(self) -> None:
        while self._doomed:
            self._doomed[0].delete()
            del self._doomed[0]
