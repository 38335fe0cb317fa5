"""The contract of every log, in memory or on disk: batches by offset.

A log is one partition's sequence of record batches. It takes batches as opaque bytes whose base
offsets have been assigned, gives them back whole, and never decodes a record unless a question about
timestamps cannot be answered otherwise. It is independent of topics and clients, does no waiting, and
reads no clock: every method that needs it takes `now_ms`.

`MemoryLog` and `DiskLog` keep this contract; the same test runs for both. A log belongs to one
thread. The regions of a `Slice` may be read anywhere, at any later time.
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
    from penstock.log.walk import Entry
    from penstock.records.compression.budget import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader


class DamagedLogError(StorageError):
    """What is in a file, or missing between two, contradicts itself: no attempt to read it can succeed.

    The message names the file and the position. Other failures of the disk are plain `StorageError`.
    """


NEVER = (1 << 63) - 1
"""Stands for a limit that is never reached, as in Kafka's configuration."""

RELATIVE_OFFSET_MAX = (1 << 31) - 1
"""How far from its segment's base an offset may be: the indexes keep the distance in 31 bits."""

Bytes = bytes | memoryview


class LogConfig(NamedTuple):
    """The settings of a topic that its logs obey, with Kafka's defaults (`segment.bytes` and so on)."""

    segment_bytes: int = 1 << 30
    """A segment that would grow past this is closed and a new one begun. At most 2^31 - 1."""
    segment_ms: int = 7 * 24 * 3600 * 1000
    """So is one whose first batch is older than this."""
    segment_jitter_ms: int = 0
    """Up to so much is taken off `segment_ms`, differently for each log and segment."""
    segment_index_bytes: int = 10 << 20
    """Size limit of each index file of a segment."""
    index_interval_bytes: int = 4096
    """Bytes of log between two entries of the offset index."""
    retention_ms: int = 7 * 24 * 3600 * 1000
    """Age at which a segment may be deleted; -1 never."""
    retention_bytes: int = -1
    """Size of the log above which its oldest segments may be deleted; -1 never."""
    flush_messages: int = NEVER
    """Records after which an append forces the log to disk; 1 is every append."""
    flush_ms: int = NEVER
    """Milliseconds after which unflushed data are forced to disk."""
    compacted: bool = False
    """Whether batches may be missing between segments without anything being wrong."""


class FileRegion:
    """Some bytes of a file, for `sendfile`.

    It keeps the file open by holding it: a segment may be deleted while a slow reader is served.
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
        """Return the bytes. Fewer come back only if the file was cut meanwhile.

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
        """Yield the bytes in blocks of `size`, for connections that cannot be given a file.

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
    """Whole batches, in offset order, as pieces to be sent one after the other."""

    __slots__ = ("pieces", "size")

    def __init__(self, pieces: list[Bytes | FileRegion], size: int) -> None:
        self.pieces = pieces
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Slice({self.size} bytes in {len(self.pieces)} pieces)"

    def to_bytes(self) -> bytes:
        """Return all pieces as one. Raises StorageError where a file cannot be read."""
        return b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in self.pieces)


class Segment(ABC):
    """A run of batches with a first offset of its own. Positions count from its first byte."""

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
        """The next segment's base; in the last one, the offset after the last batch."""
        self.size = 0
        self.created_ms = now_ms
        self.last_append_ms = now_ms
        self.first_timestamp = -1
        """Greatest timestamp of the first append: the segment's age counts from it."""
        self.full = False
        """An index has no room left."""

    @property
    @abstractmethod
    def max_timestamp(self) -> int:
        """Greatest timestamp of all records; -1 if they have none."""

    @abstractmethod
    def append(self, batch: Bytes, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Add one batch."""

    @abstractmethod
    def append_many(self, batches: Bytes, size: int, entries: Sequence[Entry], now_ms: int) -> None:
        """Add several batches at once."""

    @abstractmethod
    def read(
        self,
        pieces: list[Bytes | FileRegion],
        offset: int,
        max_bytes: int,
        up_to_offset: int,
        at_least_one: bool,
    ) -> tuple[int, bool]:
        """Add batches from `offset` on to `pieces`; return their size, and whether the end was reached."""

    @abstractmethod
    def entries(self, offset: int) -> Iterator[Entry]:
        """Walk over the batches from the one that contains `offset`."""

    @abstractmethod
    def load(self, position: int, size: int) -> Bytes:
        """Return bytes of the segment."""

    @abstractmethod
    def earlier_until(self, timestamp_ms: int) -> int:
        """Return an offset below which every record is known to be earlier than a time."""

    @abstractmethod
    def truncate_to(self, offset: int) -> None:
        """Remove the batches that reach `offset`."""

    @abstractmethod
    def seal(self, end_offset: int) -> None:
        """Nothing more will be appended: the next segment begins with `end_offset`."""

    @abstractmethod
    def delete(self) -> None:
        """Remove the segment from where it is kept. Slices that were read stay readable."""

    @abstractmethod
    def source(self) -> Source:
        """Return what compaction reads. The segment is sealed.

        Raises:
            StorageError: it cannot be opened.
        """

    @abstractmethod
    def take_place_of(self, old: Sequence[Segment]) -> None:
        """Be what counts from now on, in place of `old`, the first of which begins alike.

        Where they are kept may lag behind: `settle` sees to that.

        Raises:
            StorageError: the disk refuses. `old` count as before, and of this segment nothing is left.
        """

    @abstractmethod
    def settle(self) -> None:
        """Finish what `take_place_of` has begun: remove the old segments, take their place.

        Raises:
            StorageError: the disk refuses. The segment counts all the same; ask again later.
        """

    def complete(self, last: Segment) -> None:
        """A segment that compaction has written is whole: it takes the place of others up to `last`.

        Raises:
            StorageError: it cannot be made to last.
        """
        self.seal(last.end_offset)
        self.last_append_ms = last.last_append_ms

    @property
    def oldest_ms(self) -> int:
        """When the first record was made, or else the last one written."""
        # Of a segment from an earlier run the first timestamp is known once its indexes are.
        return (
            self.first_timestamp if self.max_timestamp >= 0 <= self.first_timestamp else self.last_append_ms
        )

    @property
    def newest_ms(self) -> int:
        """When the newest record was made, or else written: what retention by age looks at."""
        latest = self.max_timestamp
        return latest if latest >= 0 else self.last_append_ms

    def batch_since(self, timestamp_ms: int, start_offset: int) -> Entry | None:
        """Return the first batch from `start_offset` on whose header says that it reaches a time."""
        if self.max_timestamp < timestamp_ms:
            return None
        for entry in self.entries(max(start_offset, self.earlier_until(timestamp_ms))):
            if entry.max_timestamp >= timestamp_ms:
                return entry
        return None


class Source(Protocol):
    """The batches of a sealed segment: readable by any thread, and after the segment is deleted."""

    def entries(self) -> Iterator[Entry]:
        """Walk over all of them."""

    def load(self, position: int, size: int) -> bytes:
        """Return bytes of the segment."""


class PendingFlush(Protocol):
    """What has to reach the disk for a log to be safe up to an offset."""

    up_to_offset: int

    def sync(self) -> None:
        """Wait until all of it is on the disk. May run in any thread.

        Raises:
            StorageError: the device failed, and what was written before may be lost; or a file was removed.
        """


class Log(Protocol):
    """One partition's batches by offset.

    Failures of the disk are `StorageError`; what goes in stays in, and what could not be written has
    not happened. An offset out of range is the caller's mistake: `ValueError`.
    """

    start_offset: int
    """The first offset that may be read."""
    end_offset: int
    """The offset after the last one: what the next record gets."""
    recovery_point: int
    """The offset up to which the log is known to be on the disk for good."""
    leader_epochs: LeaderEpochs
    """The leader epochs found in the batches, each with its first offset."""
    config: LogConfig
    """The settings in force; `configure` changes them."""
    cleaned_to: int
    """The offset below which compaction has looked at every key."""
    is_closed: bool
    """Whether `close` was called."""
    flushes_itself: bool
    """Whether an append that makes a flush due does it; see `leave_flushing`."""

    @property
    def segments(self) -> Sequence[Segment]:
        """All segments in offset order. The last one grows, the others are sealed."""

    def append(
        self, batches: Bytes, *, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        """Add batches whose offsets run from `first_offset` (`end_offset` or later) to `last_offset`.

        `max_timestamp` is the greatest of the batches' own. Nothing of `batches` is kept by reference.
        """

    def read(
        self, offset: int, max_bytes: int, *, up_to_offset: int | None = None, at_least_one: bool = True
    ) -> Slice:
        """Return whole batches, beginning with the one that contains `offset` or the next there is.

        At most `max_bytes` of them, except that with `at_least_one` the first comes whole at any
        its size; none that reaches `up_to_offset`. Empty at the end of the log.
        """

    @property
    def max_timestamp(self) -> int:
        """The greatest time that any batch claims, below `start_offset` too; -1 where none has one."""

    def batch_since(self, timestamp_ms: int, start_offset: int) -> tuple[Entry, Bytes] | None:
        """Return the first batch from `start_offset` on whose header says that it reaches a time.

        `times.record_since` finds the record in it; there may be none, and a later batch have it.
        """

    def offset_for_timestamp(
        self, timestamp_ms: int, budget: UnpackBudget | None = None
    ) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record at or after the time; None without one.

        `budget`, by default a new one for each batch, is for what is unpacked on the way. A batch that
        cannot be read within it is answered for by its header.
        """

    def offset_of_max_timestamp(self, budget: UnpackBudget | None = None) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record with the greatest timestamp; None without one.

        `budget` as for `offset_for_timestamp`.
        """

    def segment_offsets(self, before_ms: int, now_ms: int) -> list[int]:
        """Return the offsets ListOffsets v0 answers with, newest first.

        These are the start of every segment last written at or before `before_ms`, and the end of
        the log, which counts as written now. -1 asks for all of them, -2 for the first alone.
        """

    def delete_before(self, offset: int) -> None:
        """Raise `start_offset`; drop the segments that lie below it altogether."""

    def retention_offset(self, now_ms: int, up_to_offset: int | None = None) -> int:
        """Return the offset that retention by age and size lets the log begin at.

        Always the start of a segment, or `end_offset`; never past `up_to_offset`, the high watermark.
        """

    def truncate_to(self, offset: int) -> None:
        """Remove every batch that reaches `offset`; `end_offset` becomes what is left."""

    def entries(self, start_offset: int | None = None) -> Iterator[Entry]:
        """Walk over the batches from the one that contains `start_offset`, seeing headers only."""

    def iter_batch_headers(self, start_offset: int | None = None) -> Iterator[BatchHeader]:
        """Yield the header of every batch of magic 2 from the one that contains `start_offset`.

        Producer state is rebuilt from these. Older messages have no producers and are passed over, and so
        is, with an error in the log, the rest of a segment that is damaged: who cannot write for that
        loses more than who may repeat a batch from there.
        """

    def configure(self, config: LogConfig) -> None:
        """Obey other settings from now on."""

    def flush(self) -> None:
        """Force everything to disk."""

    def flush_if_due(self, now_ms: int) -> bool:
        """Return whether `flush.ms` has passed since the oldest unflushed append.

        If so, the log is flushed, unless that was left to the caller.
        """

    def leave_flushing(self) -> None:
        """Let the caller flush from now on, where it takes time: appends only make `flush_is_due`."""

    @property
    def flush_is_due(self) -> bool:
        """Whether so many records are not flushed (`flush.messages`) that the caller has to see to it.

        Always False in a log that flushes itself.
        """

    def pending_flush(self, *, sealed_only: bool = False) -> PendingFlush:
        """Return what is not flushed; of the last segment too, unless `sealed_only`.

        Once its `sync` has returned, give it to `flushed`.

        Raises:
            StorageError: a file cannot be opened.
        """

    def flushed(self, done: PendingFlush) -> None:
        """Raise `recovery_point` to what has been flushed."""

    def new_compacted(self, first: Segment) -> Segment:
        """Make an empty segment that is to replace `first` and perhaps segments after it.

        Raises:
            StorageError: it cannot be made.
        """

    def replace(self, old: Sequence[Segment], new: Segment) -> bool:
        """Put a compacted segment in the place of sealed ones; return whether they were still there.

        Raises:
            StorageError: the disk refuses. Either nothing has changed and the files of `new` are removed;
                or `new` is in place, and what is left to be done in the directory is for `settle`.
        """

    def settle(self) -> None:
        """Finish in the directory what compaction has decided, where the disk refused the first time.

        Raises:
            StorageError: it still does.
        """

    def close(self) -> None:
        """Write what is cheap to have on the next start, and close the files. No flush."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches kept."""
