"""What a log promises, whatever keeps it: batches by offset.

A log is one partition's sequence of record batches. It takes batches as opaque bytes whose base
offsets have been assigned, gives them back whole, and never decodes a record unless a question about
timestamps cannot be answered otherwise. It knows neither topics nor clients, does no waiting, and
asks nobody for the time: every method that needs it takes `now_ms`.

`MemoryLog` and `DiskLog` keep this contract; the same test runs for both. A log belongs to one
thread. The regions of a `Slice` may be read anywhere, at any later time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.errors import StorageError

if TYPE_CHECKING:
    from io import FileIO

    from penstock.log.epochs import LeaderEpochs
    from penstock.log.walk import Entry
    from penstock.records.batch import BatchHeader
    from penstock.records.compression.budget import UnpackBudget


class DamagedLogError(StorageError):
    """What is in a file, or missing between two, contradicts itself: no attempt to read it can succeed.

    The message names the file and the place. Other failures of the disk are plain `StorageError`.
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
        """Return the bytes. Fewer come back only if the file was cut meanwhile."""
        return os.pread(self.file.fileno(), self.size, self.position)


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
        """Return all pieces as one."""
        return b"".join(piece.read() if isinstance(piece, FileRegion) else piece for piece in self.pieces)


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

        At most `max_bytes` of them, except that with `at_least_one` the first comes whole whatever
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
        """Flush if `flush.ms` has passed since the oldest unflushed append; say whether it has."""

    def close(self) -> None:
        """Write what is cheap to have on the next start, and let go of the files. No flush."""

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches kept."""
