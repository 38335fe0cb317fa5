"""The log of one topic and partition in Kafka 0.7: message sets in files named by their first byte offset.

- A position is a byte offset in an endless log; a segment file begins with the byte offset in its name.
- Readers see only flushed bytes, if ``log.flush.interval`` is set.
- One read returns bytes of one segment only.
- After an unclean stop, the last segment is truncated after its last complete message with a correct
checksum.

Rolling, flushing, retention and the answer to OFFSETS are those of release 0.7.2. The log does not parse
messages; `append` gets message sets that `message_set.judge` has accepted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from penstock.common import operating_system
from penstock.errors import DecodeError, StorageError
from penstock.log.contract import NEVER, FileRegion
from penstock.log.directory.files import (
    OpenFile,
    check_in_place,
    create_file,
    identity_of,
    make_directory,
    open_file,
    remove_file,
    storage,
    sync_directory,
)
from penstock.log.segmented import LOOK_EVERY_MS
from penstock.v07.files import segment_name, segment_start
from penstock.v07.message_set import sound_size
from penstock.v07.wire import EARLIEST_TIME, LATEST_TIME

HOUR_MS = 3_600_000


class OffsetOutOfRange(DecodeError):
    """The log does not have the requested byte offset: it is removed already, or not written yet."""


class ByteLogConfig(NamedTuple):
    """The settings of a log, in bytes, messages and milliseconds."""

    segment_bytes: int = 1 << 29
    """`log.file.size`: a segment that is larger gets no more appends."""
    roll_ms: int = 168 * HOUR_MS
    flush_messages: int = 0
    """`log.flush.interval`: number of messages after which the log is flushed, which makes them readable.
    The default of Kafka 0.7 is 500. With 0 messages are readable at once, and flushed every `flush_ms`."""
    flush_ms: int = 3_000
    retention_ms: int = 168 * HOUR_MS
    retention_bytes: int = -1


class _Segment:
    """One segment file: the offset of its first byte, its size, and the times of first and last append."""

    __slots__ = ("changed_ms", "file", "first_append_ms", "path", "size", "start")

    def __init__(self, directory: str, start: int, *, is_new: bool) -> None:
        self.path = os.path.join(directory, segment_name(start))
        if is_new:
            create_file(self.path)
        self.start = start
        self.file: OpenFile = open_file(self.path, writable=True)
        with storage("read", self.path):
            found = os.fstat(self.file.fileno())
        self.size = found.st_size
        self.changed_ms = found.st_mtime_ns // 1_000_000
        self.first_append_ms: int | None = self.changed_ms if self.size else None

    @property
    def stop(self) -> int:
        return self.start + self.size


def segment_starts(directory: str) -> list[int]:
    """Return the first byte offsets of the segments in a directory, in order."""
    with storage("list", directory):
        names = os.listdir(directory)
    return sorted(start for name in names if (start := segment_start(name)) is not None)


class ByteLog:
    """The log of one partition, open for appending. `directory` is created if necessary.

    Raises:
        StorageError: the directory cannot be used, or a segment is missing between two others.
    """

    def __init__(self, directory: str, config: ByteLogConfig, *, now_ms: int, is_clean: bool) -> None:
        self.directory = directory
        self._config = config
        make_directory(directory)
        self._identity = identity_of(directory)
        self._looked_ms = NEVER
        starts = segment_starts(directory)
        self._segments = [_Segment(directory, start, is_new=False) for start in starts]
        if not self._segments:
            self._segments = [_Segment(directory, 0, is_new=True)]
            sync_directory(directory)
        for earlier, later in zip(self._segments, self._segments[1:], strict=False):
            if earlier.stop != later.start:
                raise StorageError(
                    f"{directory}: {segment_name(earlier.start)} ends at {earlier.stop}, but the next one "
                    f"is {segment_name(later.start)}; a file is missing or damaged: put it back, or remove "
                    "all that come before the gap"
                )
        if not is_clean:
            self._recover()
        self._readable = self._forced = self._segments[-1].stop
        self._unflushed_messages = 0
        self._flushed_at_ms = now_ms

    def _recover(self) -> None:
        last = self._segments[-1]
        with storage("read", last.path):
            data = operating_system.pread(last.file.fileno(), last.size, 0)
            sound = sound_size(memoryview(data))
            if sound < last.size:
                os.ftruncate(last.file.fileno(), sound)
                last.size = sound

    # --- what is there -----------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The offset of the first byte of the log that retention has not removed."""
        return self._segments[0].start

    @property
    def end(self) -> int:
        """The end offset for readers, in bytes. Bytes after it are not flushed yet."""
        return self._readable

    @property
    def size_bytes(self) -> int:
        return self._segments[-1].stop - self.start

    def read(self, offset: int, size_max: int) -> FileRegion | None:
        """Return up to `size_max` bytes from `offset` on, from one segment; None if `offset` is the end.

        Raises:
            OffsetOutOfRange: `offset` is before the first byte or after the readable end.
        """
        if not self.start <= offset <= self._readable:
            raise OffsetOutOfRange(f"offset {offset} of a log from {self.start} to {self._readable}")
        segment = next(one for one in reversed(self._segments) if one.start <= offset)
        size = min(size_max, min(segment.stop, self._readable) - offset)
        return FileRegion(segment.file, offset - segment.start, size) if size > 0 else None

    def offsets_before(self, time_ms: int, count_max: int, *, now_ms: int) -> list[int]:
        """Return the offsets for a Kafka 0.7 OFFSETS request: starts of segments, and the end of the log.

        Returns at most `count_max`, newest first: the newest segment that changed at or before `time_ms`, and
        the segments before it.
        """
        candidates = [(segment.start, segment.changed_ms) for segment in self._segments]
        if self._segments[-1].size:
            candidates.append((self._readable, now_ms))
        if time_ms == LATEST_TIME:
            newest = len(candidates) - 1
        elif time_ms == EARLIEST_TIME:
            newest = 0
        else:
            newest = max((i for i, (_, changed) in enumerate(candidates) if changed <= time_ms), default=-1)
        chosen = [offset for offset, _ in candidates[: newest + 1]]
        return chosen[::-1][:count_max]

    # --- writing -----------------------------------------------------------------------------------------

    def append(self, messages: memoryview, count: int, *, now_ms: int) -> None:
        """Append a message set of `count` messages; roll a new segment before, and flush after it, if due.

        Raises:
            StorageError: the disk is full or fails. The part of the set that was written is truncated.
        """
        if not 0 <= now_ms - self._looked_ms < LOOK_EVERY_MS:
            self.check_in_place()
            self._looked_ms = now_ms
        last = self._segments[-1]
        if last.size > self._config.segment_bytes or (
            last.first_append_ms is not None and now_ms - last.first_append_ms > self._config.roll_ms
        ):
            last = self._roll()
        if messages:
            with storage("write", last.path):
                self._write(last, messages)
            last.size += len(messages)
            last.changed_ms = now_ms
            if last.first_append_ms is None:
                last.first_append_ms = now_ms
        self._unflushed_messages += count
        if not self._config.flush_messages:
            self._readable = last.stop
        elif self._unflushed_messages >= self._config.flush_messages:
            self.flush(now_ms=now_ms)

    def check_in_place(self) -> None:
        """Check that the directory and the last segment file are still the opened ones.

        Raises:
            StorageError: one of them was removed, moved or replaced.
        """
        check_in_place(self.directory, self._identity)
        last = self._segments[-1]
        check_in_place(last.path, identity_of(last.file.fileno()))

    def _write(self, segment: _Segment, messages: memoryview) -> None:
        number, done = segment.file.fileno(), 0
        try:
            while done < len(messages):
                done += operating_system.pwrite(number, messages[done:], segment.size + done)
        except OSError:
            with suppress(OSError):  # the next append begins at the same position
                os.ftruncate(number, segment.size)
            raise

    def _roll(self) -> _Segment:
        self.flush(now_ms=self._flushed_at_ms)
        stop = self._segments[-1].stop
        try:
            segment = _Segment(self.directory, stop, is_new=True)
            sync_directory(self.directory)
        except BaseException:
            # Should the last segment grow on, a start would find that this one does not begin where it ends.
            with suppress(StorageError):
                remove_file(os.path.join(self.directory, segment_name(stop)))
            raise
        self._segments.append(segment)
        return segment

    def flush(self, *, now_ms: int) -> None:
        """Flush appended bytes to disk, which makes them readable."""
        last = self._segments[-1]
        if self._forced < last.stop:
            with storage("flush", last.path):
                operating_system.fdatasync(last.file.fileno())
        self._readable = self._forced = last.stop
        self._unflushed_messages = 0
        self._flushed_at_ms = now_ms

    def maintain(self, *, now_ms: int) -> None:
        """Flush if `flush_ms` have passed since the last flush, and remove expired segments."""
        # After the clock was put back, ages are unknown: what waits is flushed now.
        if not 0 <= now_ms - self._flushed_at_ms < self._config.flush_ms:
            self.flush(now_ms=now_ms)
        self._remove_where(
            lambda segment: segment.size > 0 and now_ms - segment.changed_ms > self._config.retention_ms
        )
        if self._config.retention_bytes >= 0:
            excess = self.size_bytes - self._config.retention_bytes
            while excess > 0 and len(self._segments) > 1:
                excess -= self._segments[0].size
                if excess >= 0:
                    self._remove_first()

    def _remove_where(self, is_old: Callable[[_Segment], bool]) -> None:
        """Remove the oldest segments for which `is_old` is True.

        If all segments are removed, an empty segment that begins at the end of the log replaces them.
        """
        while is_old(self._segments[0]):
            if len(self._segments) == 1:
                self._roll()
            self._remove_first()

    def _remove_first(self) -> None:
        # One whose file stays is tried again: with later ones gone, a start would find a gap behind it.
        remove_file(self._segments[0].path)
        del self._segments[0]

    def close(self, *, now_ms: int) -> None:
        """Flush and close the files."""
        self.flush(now_ms=now_ms)
        for segment in self._segments:
            segment.file.close()
