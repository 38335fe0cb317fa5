"""The interface of every log, in memory or on disk: a sequence of record batches.

A log is one partition's sequence of record batches. It accepts batches as opaque bytes whose base offsets
have been assigned, returns whole batches, and decodes records only for a lookup by timestamp that the headers
cannot answer. It is independent of topics and clients, and reads no clock: every method that depends on the
time takes `now_ms`.

`MemoryLog` and `DiskLog` implement `Log`; the same test runs for both. A log belongs to one
thread. The regions of a `Slice` may be read in any thread, at any later time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.common import operating_system
from penstock.common.errno_advice import reason_of
from penstock.errors import StorageError

if TYPE_CHECKING:
    from io import FileIO

    from penstock.log.epochs import LeaderEpochs
    from penstock.log.walk import BatchEntry
    from penstock.records.compression.codecs import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader


class DamagedLogError(StorageError):
    """The contents of a log file are inconsistent, or a file is missing: no retry can succeed.

    The message names the file and the position. Other failures of the disk are plain `StorageError`.
    """


NEVER = (1 << 63) - 1
"""The value of a limit (such as a time or an offset) that is never reached: 2^63 - 1, as in Kafka's
configuration.
"""

RELATIVE_OFFSET_MAX = (1 << 31) - 1
"""The maximum distance of an offset from its segment's base offset: indexes store it in 31 bits."""

Bytes = bytes | memoryview


class LogConfig(NamedTuple):
    """The settings of a topic for its logs, with Kafka's defaults (`segment.bytes` and so on)."""

    segment_bytes: int = 1 << 30
    """The size in bytes above which a new segment is begun. At most 2^31 - 1."""
    segment_ms: int = 7 * 24 * 3600 * 1000
    """The age of a segment's first batch after which a new segment is begun, in ms."""
    segment_jitter_ms: int = 0
    """The maximum milliseconds to subtract from `segment_ms`: a different number for each log and segment,
    so that they do not all roll at once.
    """
    segment_index_bytes: int = 10 << 20
    """The maximum size in bytes of each index file of a segment."""
    index_interval_bytes: int = 4096
    """The number of log bytes between two entries of the offset index."""
    retention_ms: int = 7 * 24 * 3600 * 1000
    """The age in ms above which a segment may be deleted; -1 means never."""
    retention_bytes: int = -1
    """The log size in bytes above which the oldest segments may be deleted; -1 means never."""
    flush_messages: int = NEVER
    """The number of unflushed records at which an append flushes the log to disk; 1 flushes at every
    append.
    """
    flush_ms: int = NEVER
    """The time in ms after which unflushed data are flushed to disk."""
    compacted: bool = False
    """True if the topic is compacted; offsets that are missing between segments are then normal."""


class FileRegion:
    """A range of bytes of an open file, for `sendfile`.

    The object keeps the file open, so that its segment may be deleted while a slow reader is served.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: FileIO, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"FileRegion({self.file.name!r}, position={self.position}, size={self.size})"

    def read(self) -> bytes:
        """Return the bytes of the region; fewer only if the file was truncated meanwhile.

        Raises:
            StorageError: the file cannot be read.
        """
        try:
            return operating_system.pread(self.file.fileno(), self.size, self.position)
        except OSError as error:
            failure = StorageError(f"cannot read {self.file.name!r}: {reason_of(error)}")
            failure.errno = error.errno
            raise failure from error

    def blocks(self, size: int) -> Iterator[memoryview]:
        """Yield the bytes of the region in blocks of `size`, for connections that cannot use `sendfile`.

        Raises:
            OSError: the file cannot be read, or has become shorter.
        """
        end = self.position + self.size
        for position in range(self.position, end, size):
            wanted = min(size, end - position)
            block = operating_system.pread(self.file.fileno(), wanted, position)
            if len(block) < wanted:
                raise OSError(f"{self!r} has become shorter")
            yield memoryview(block)


class Slice:
    """The result of a read: whole batches in offset order, as memory and file regions to send in turn."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[Bytes | FileRegion], size: int) -> None:
        self.pieces = pieces
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Slice({self.size} bytes in {len(self.pieces)} pieces)"

    def to_bytes(self) -> bytes:
        """Return all parts of the slice joined. Raises StorageError if a file cannot be read."""
        return b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in self.pieces)


class Segment(ABC):
    """One segment of a log: consecutive batches from `base_offset` on. Positions are bytes from its start."""

    __slots__ = (
        "base_offset",
        "created_ms",
        "end_offset",
        "first_timestamp",
        "full",
        "last_append_ms",
        "size",
    )

    def __init__(self, base_offset: int, now_ms: int) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        """The next segment's base offset; in the last segment, the offset after the last batch."""
        self.size = 0
        self.created_ms = now_ms
        self.last_append_ms = now_ms
        self.first_timestamp = -1
        """The greatest timestamp of the first append, from which the segment's age counts; -1 if unknown."""
        self.full = False
        """True if an index of the segment has reached its size limit, so that a new segment is needed."""

    @property
    @abstractmethod
    def max_timestamp(self) -> int:
        """The greatest timestamp of all records in the segment, or -1 if none has a timestamp."""

    @abstractmethod
    def append(self, batch: Bytes, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Append one batch to the segment."""

    @abstractmethod
    def append_many(self, batches: Bytes, size: int, entries: Sequence[BatchEntry], now_ms: int) -> None:
        """Append several batches to the segment at once."""

    @abstractmethod
    def read(
        self,
        pieces: list[Bytes | FileRegion],
        offset: int,
        max_bytes: int,
        up_to_offset: int,
        at_least_one: bool,
    ) -> tuple[int, bool]:
        """Append batches from `offset` on to `pieces`; return (their bytes, True at the segment's end)."""

    @abstractmethod
    def entries(self, offset: int) -> Iterator[BatchEntry]:
        """Yield the headers of batches, beginning with the batch that contains `offset`."""

    @abstractmethod
    def load(self, position: int, size: int) -> Bytes:
        """Return `size` bytes of the segment, from the byte `position` on."""

    @abstractmethod
    def earlier_until(self, timestamp_ms: int) -> int:
        """Return an offset such that, by the time index, all earlier records are before `timestamp_ms`."""

    @abstractmethod
    def truncate_to(self, offset: int) -> None:
        """Remove the batches whose last offset is `offset` or later."""

    @abstractmethod
    def seal(self, end_offset: int) -> None:
        """Accept no more appends. `end_offset` is the base offset of the next segment."""

    @abstractmethod
    def delete(self) -> None:
        """Remove the segment's files or memory. Slices that were read stay readable."""

    @abstractmethod
    def source(self) -> SegmentSource:
        """Return a reader of the batches of this sealed segment, for compaction.

        Raises:
            StorageError: the file cannot be opened.
        """

    @abstractmethod
    def take_place_of(self, old: Sequence[Segment]) -> None:
        """Replace the segments `old` by this compacted segment, which has the first one's base offset.

        If a file of `old` cannot be removed at once, `settle` removes it later.

        Raises:
            StorageError: a file cannot be renamed. `old` stay in use, and the files of this segment are
                removed.
        """

    @abstractmethod
    def settle(self) -> None:
        """Finish a replacement that `take_place_of` began: remove old files, rename this segment's files.

        Raises:
            StorageError: a file cannot be changed. The segment is used nevertheless; call this method again
            later.
        """

    def complete(self, last: Segment) -> None:
        """Seal this compacted segment, which is to replace the old segments up to `last`.

        Raises:
            StorageError: the segment cannot be flushed to disk.
        """
        self.seal(last.end_offset)
        self.last_append_ms = last.last_append_ms

    @property
    def oldest_ms(self) -> int:
        """The time in ms from which the segment's age counts.

        It is the greatest timestamp of the first append, or else the time of the last append.
        """
        # Of a segment from an earlier run the first timestamp is known once its indexes are.
        return (
            self.first_timestamp if self.max_timestamp >= 0 <= self.first_timestamp else self.last_append_ms
        )

    @property
    def newest_ms(self) -> int:
        """The greatest record timestamp in ms, or else the time of the last append, as used by retention."""
        latest = self.max_timestamp
        return latest if latest >= 0 else self.last_append_ms

    def batch_since(self, timestamp_ms: int, start_offset: int) -> BatchEntry | None:
        """Return the first batch from `start_offset` on whose greatest timestamp is at least `timestamp_ms`.

        Returns None if the segment has no such batch.
        """
        if self.max_timestamp < timestamp_ms:
            return None
        for entry in self.entries(max(start_offset, self.earlier_until(timestamp_ms))):
            if entry.max_timestamp >= timestamp_ms:
                return entry
        return None


class SegmentSource(Protocol):
    """A reader of a sealed segment's batches. Any thread may use it, even after the segment is deleted."""

    def entries(self) -> Iterator[BatchEntry]:
        """Yield the headers of all batches of the segment."""

    def load(self, position: int, size: int) -> bytes:
        """Return `size` bytes of the segment, from the byte `position` on."""


class PendingFlush(Protocol):
    """The files that must be flushed so that all batches of a log below `up_to_offset` are on disk."""

    up_to_offset: int

    def sync(self) -> None:
        """Flush all the files to disk, and wait until this is done. Any thread may call this.

        Raises:
            StorageError: the device failed, and data written before may be lost; or a file was removed.
        """


class Log(Protocol):
    """The log of one partition, in memory or on disk: its record batches, addressed by offset.

    A failure of the disk raises `StorageError`; a batch that was appended stays, and a failed append changes
    nothing. An offset out of range is a mistake of the caller: `ValueError`.
    """

    start_offset: int
    """The first offset that may be read."""
    end_offset: int
    """The offset after the last record, which the next record gets."""
    recovery_point: int
    """The offset up to which the log has been flushed to disk: a power cut does not lose records below it."""
    leader_epochs: LeaderEpochs
    """The leader epochs of the log, each with the offset at which it began."""
    config: LogConfig
    """The current settings of the log; `configure` replaces them."""
    cleaned_to: int
    """The offset up to which the log is compacted."""
    is_closed: bool
    """True after a call of `close`."""
    flushes_itself: bool
    """True if an append also makes any flush that is due. False after `leave_flushing`, if flushes take
    time; then the caller makes them.
    """

    @property
    def segments(self) -> Sequence[Segment]:
        """All segments in offset order. The last one takes appends, the others are sealed."""

    def append(
        self, batches: Bytes, *, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        """Append batches with offsets from `first_offset` (at least `end_offset`) to `last_offset`.

        `max_timestamp` is the greatest timestamp of the batches. The log keeps no reference to `batches`.
        """

    def read(
        self, offset: int, max_bytes: int, *, up_to_offset: int | None = None, at_least_one: bool = True
    ) -> Slice:
        """Return whole batches, beginning with the batch that contains `offset`, or else the next batch.

        The batches have at most `max_bytes`. With `at_least_one`, the first batch is returned at any size.
        No batch that reaches `up_to_offset` is returned. The result is empty at the end of the log.
        """

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of all batch headers, also below `start_offset`; -1 if there is none."""

    def batch_since(self, timestamp_ms: int, start_offset: int) -> tuple[BatchEntry, Bytes] | None:
        """Return the first batch from `start_offset` on whose greatest timestamp is at least `timestamp_ms`.

        Returns None if there is no such batch. `times.record_since` finds the record in the batch. If all
        such records of the batch are before `start_offset`, a later batch may have one.
        """

    def offset_for_timestamp(
        self, timestamp_ms: int, budget: UnpackBudget | None = None
    ) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record not earlier than `timestamp_ms`, or None.

        `budget`, by default a new one for each batch, limits the bytes to decompress. For a batch that
        exceeds it or cannot be read, the result is the batch's first offset and greatest timestamp, from the
        header.
        """

    def offset_of_max_timestamp(self, budget: UnpackBudget | None = None) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record with the greatest timestamp; None if there is none.

        `budget` limits how many compressed bytes are unpacked to find it, as in `offset_for_timestamp`.
        """

    def segment_offsets(self, before_ms: int, now_ms: int) -> list[int]:
        """Return the offsets that ListOffsets v0 returns, newest first.

        The result has the base offset of every segment last written at or before `before_ms`, and the end
        offset of the log, which counts as written now. A `before_ms` of -1 returns all these offsets, -2 only
        the log start.
        """

    def delete_before(self, offset: int) -> None:
        """Raise `start_offset` to `offset`; delete the segments that contain only earlier offsets."""

    def begin_at(self, offset: int) -> None:
        """Remove all batches and leader epochs; the next record gets `offset` (at least `end_offset`).

        A follower calls this if its leader has deleted records that the follower has not fetched yet.
        """

    def retention_offset(self, now_ms: int, up_to_offset: int | None = None) -> int:
        """Return the offset before which records may be deleted by `retention.ms` and `retention.bytes`.

        The result is the start of a segment, or `end_offset`, and never past `up_to_offset`, the high
        watermark.
        """

    def truncate_to(self, offset: int) -> None:
        """Remove every batch whose last offset is `offset` or later, and lower `end_offset` accordingly."""

    def entries(self, start_offset: int | None = None) -> Iterator[BatchEntry]:
        """Yield the headers of batches, beginning with the batch that contains `start_offset`."""

    def iter_batch_headers(self, start_offset: int | None = None) -> Iterator[BatchHeader]:
        """Yield the header of every batch of magic 2, from the batch that contains `start_offset` on.

        Producer state is rebuilt from these headers. Older messages have no producers and are skipped. If a
        segment is damaged, its batches after the damage are skipped, and an error is logged: accepting a
        duplicate batch is a smaller loss than refusing all writes.
        """

    def configure(self, config: LogConfig) -> None:
        """Replace the log's settings; they apply from now on."""

    def flush(self) -> None:
        """Flush all appended batches to disk."""

    def flush_if_due(self, now_ms: int) -> bool:
        """Return True if `flush.ms` has passed since the oldest unflushed append.

        The log is then flushed first, unless `leave_flushing` has left flushes to the caller.
        """

    def leave_flushing(self) -> None:
        """Let appends only set `flush_is_due`, instead of flushing; no effect if flushes take no time."""

    @property
    def flush_is_due(self) -> bool:
        """True if `flush.messages` records are unflushed, so that the caller has to flush.

        Always False in a log that flushes itself.
        """

    def pending_flush(self, *, sealed_only: bool = False) -> PendingFlush:
        """Return the files to flush: of sealed segments and, unless `sealed_only`, of the last segment.

        The caller must call `sync` of the result, and then pass the result to `flushed`.

        Raises:
            StorageError: a file cannot be opened.
        """

    def flushed(self, done: PendingFlush) -> None:
        """Record that the flush `done` is completed: raise `recovery_point` to its offset."""

    def new_compacted(self, first: Segment) -> Segment:
        """Create an empty segment for a compaction; it will replace `first` and maybe segments after it.

        Raises:
            StorageError: the segment cannot be created.
        """

    def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """Replace the sealed segments `old` by a compacted one; return False if some are gone from the log.

        Raises:
            StorageError: a file cannot be changed. Either the log is unchanged and the files of `new` are
                removed; or `new` is in use, and `settle` does the remaining work in the directory.
        """

    def settle(self) -> None:
        """Retry the file operations of earlier compactions that have failed.

        Raises:
            StorageError: an operation fails again.
        """

    def close(self) -> None:
        """Write the indexes, so that the next start is fast, and close all files. Do not flush to disk."""

    @property
    def size_bytes(self) -> int:
        """The size in bytes of all batches in the log."""
