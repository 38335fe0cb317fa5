"""A segment on disk that grows and is read: one `.log` file with its two indexes (`indexed_segment`).

Appends go straight to the file and touch no other; reads answer with regions of it. The position of an offset
is found in three steps, each cheaper than the next: what the last reads and the last append left
behind, the index in memory, and a walk over the few headers between two index entries.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from penstock.common import operating_system
from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.contract import (
    NEVER,
    RELATIVE_OFFSET_MAX,
    Bytes,
    DamagedLogError,
    FileRegion,
    LogConfig,
    Segment,
)
from penstock.log.directory.files import (
    create_file,
    remove_file,
    storage,
    storage_error,
)
from penstock.log.segments.indexed_segment import IndexedSegment
from penstock.log.segments.segment_files import (
    SUFFIX_SWAP,
    SUFFIXES_OF_OTHERS,
    FileSource,
    remove_segment_files,
    segment_path,
)
from penstock.log.walk import Entry, fetch_file, walk_checked

logger = logger_named("penstock.log")

STARTS_REMEMBERED = 64
"""Ends of reads that a segment keeps: at each of them some consumer will read on."""

_UNKNOWN = (-1, 0)


class FileSegment(IndexedSegment):
    """A segment in a file, to be appended to and read."""

    __slots__ = ("_start_of_reads", "_tail_offset", "_tail_position")

    def __init__(
        self,
        directory: str,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        *,
        suffix: str = "",
        writable: bool = True,
    ) -> None:
        """Describe a segment; arguments as in `IndexedSegment`."""
        self._start_of_reads: dict[int, tuple[int, int]] = {}
        self._tail_offset = self._tail_position = -1
        super().__init__(directory, base_offset, config, now_ms, suffix=suffix, writable=writable)

    @classmethod
    def create(
        cls, directory: str, base_offset: int, config: LogConfig, now_ms: int, *, suffix: str = ""
    ) -> FileSegment:
        """Make an empty segment: all its files, or none.

        Raises:
            StorageError: a file cannot be made.
        """
        segment = cls(directory, base_offset, config, now_ms, suffix=suffix)
        try:
            create_file(segment.path)
            indexes = segment._empty_indexes()
            for index in indexes:
                create_file(index.path)  # Kafka's tools expect all three from the beginning
        except BaseException:
            # An empty segment would cut the one that goes on growing before it, at the next start.
            with suppress(StorageError):
                segment.remove_files()
            raise
        segment._use(*indexes)
        return segment

    @classmethod
    def existing(
        cls,
        directory: str,
        base_offset: int,
        config: LogConfig,
        end_offset: int,
        *,
        suffix: str = "",
        writable: bool = True,
    ) -> FileSegment:
        """Take up a segment that is on disk, sealed. Only the size of its file is looked at.

        Raises:
            StorageError: it cannot be opened, or is larger than the positions in an index.
        """
        segment = cls(directory, base_offset, config, 0, suffix=suffix, writable=writable)
        with storage("open", segment.path):
            status = os.stat(segment.path)
        if status.st_size > RELATIVE_OFFSET_MAX:
            raise StorageError(f"{segment.path} has {status.st_size} bytes, more than a segment can have")
        segment.size, segment.end_offset, segment._sealed = status.st_size, end_offset, True
        segment.created_ms = segment.last_append_ms = status.st_mtime_ns // 1_000_000
        return segment

    # --- growing ----------------------------------------------------------------------------------

    def append(self, batch: Bytes, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        position = self.size
        self._write(batch, size, position)
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self._latest:
            self._latest = max_timestamp
            self._latest_offset = last_offset
        if self._unindexed > self._interval:
            self._index(last_offset, position)
        self._unindexed += size
        self._tail_offset = self.end_offset
        self._tail_position = position
        self.size = position + size
        self.end_offset = last_offset + 1
        self.last_append_ms = now_ms

    def append_many(self, batches: Bytes, size: int, entries: Sequence[Entry], now_ms: int) -> None:
        start, empty = self.size, self.size == 0
        self._write(batches, size, start)
        self._tail_offset, self._tail_position = self.end_offset, start
        for entry in entries:
            self._note(entry._replace(position=start + entry.position))
        if empty:
            self.first_timestamp = max(entry.max_timestamp for entry in entries)
        self.size = start + size
        self.last_append_ms = now_ms

    def _write(self, data: Bytes, size: int, position: int) -> None:
        """Write all of `data`, or nothing: what was written of it before a failure is cut off again."""
        fd = self._fd if self._fd >= 0 else self.file.fileno()
        try:
            written = operating_system.pwrite(fd, data, position)
            while written < size:
                written += operating_system.pwrite(fd, memoryview(data)[written:], position + written)
        except OSError as error:
            try:
                os.ftruncate(fd, position)
            except OSError as second:
                # Harmless now, since the next append begins at the same position; recovery cuts it.
                logger.warning("%s keeps a torn batch at its end: %s", self.path, second)
            raise storage_error("append to", self.path, error) from error

    def seal(self, end_offset: int) -> None:
        self._sealed = True
        self.end_offset = end_offset
        self._complete_indexes()
        self.release()

    def close(self) -> None:
        """Complete the index files, and let go of the file."""
        self._complete_indexes()
        self.release()

    def delete(self) -> None:
        self.remove_files()
        if self.suffix in ("", SUFFIX_SWAP):
            for suffix in SUFFIXES_OF_OTHERS:
                remove_file(segment_path(self.directory, self.base_offset, suffix))
        self.release()

    def remove_files(self) -> None:
        """Delete log and indexes, and nothing else that goes by the segment's offset."""
        remove_segment_files(self.directory, self.base_offset, self.suffix)

    # --- compaction -------------------------------------------------------------------------------

    def source(self) -> FileSource:
        return FileSource(self.file, self.size)

    def take_place_of(self, old: Sequence[Segment]) -> None:
        """Only a `CompactedSegment` does."""
        raise TypeError(f"{self.path} was not written by compaction")

    def settle(self) -> None:
        """It is where it belongs."""

    def truncate_to(self, offset: int) -> None:
        position = self._position_of(offset)
        self._sealed, self._limit = False, NEVER
        if position < self.size:
            file = self.file
            with storage("cut", self.path):
                os.ftruncate(file.fileno(), position)
            self.size = position
        offsets, times = self._indexes()
        offsets.truncate(position)
        times.truncate(offset)
        self._start_of_reads.clear()
        self._tail_offset = -1
        self._use(offsets, times)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self,
        pieces: list[Bytes | FileRegion],
        offset: int,
        max_bytes: int,
        up_to_offset: int,
        at_least_one: bool,
    ) -> tuple[int, bool]:
        if offset == self._tail_offset:
            start, first_end = self._tail_position, 0
        else:
            start, first_end = self._start_of_reads.get(offset, _UNKNOWN)
            if start < 0:
                start, first_end = self._find(offset)
                self._remember(offset, start, first_end)
        limit = self._limit
        if start >= limit:
            raise DamagedLogError(self._problem)
        if self.size - start <= max_bytes and up_to_offset >= self.end_offset:
            stop = self.size
            self._remember(self.end_offset, stop, 0)
        else:
            stop = self._end_within(start, max_bytes, up_to_offset, at_least_one)
        if stop > limit:
            stop = limit
        if stop > start:
            if first_end > stop:
                raise self._damaged(f"the batch at position {start} reaches past others, to {first_end}")
            pieces.append(FileRegion(self.file, start, stop - start))
        # What is beyond the limit is left to the next read, which says what is wrong.
        return stop - start, stop == self.size != limit

    def entries(self, offset: int) -> Iterator[Entry]:
        return self._walk(self._position_of(offset))

    def _end_within(self, start: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> int:
        """Return where the last batch ends that is within the limits, reading from `start`."""
        limit = start + max_bytes
        known = self._indexed(lambda index: min(index.place_at(limit), index.place_of(up_to_offset)))
        if known > start:
            start, at_least_one = known, False
        stop, end = start, 0
        try:
            for entry in self._walk(start):
                end = entry.position + entry.size
                if entry.last_offset >= up_to_offset:
                    break
                if end > limit and not (at_least_one and entry.position == start):
                    break
                stop, next_offset = end, entry.last_offset + 1
        except DamagedLogError:
            if stop == start:
                raise
            return stop  # the next read, which begins there, raises the error
        if stop > start:
            self._remember(next_offset, stop, end if end > stop else 0)
        return stop

    def _remember(self, offset: int, position: int, end: int) -> None:
        """Note where a read begins, or the batch after it: this reader or another will ask for it.

        `end` is where the batch there ends, 0 where that is not known.
        """
        if len(self._start_of_reads) >= STARTS_REMEMBERED:
            self._start_of_reads.clear()
        self._start_of_reads[offset] = position, end

    # --- after a crash ----------------------------------------------------------------------------

    def unseal(self) -> bool:
        """Make the segment ready for appending; return whether it ends with a whole batch.

        Checksums are not looked at.

        Raises:
            StorageError: somewhere behind the last index entry is what no log contains.
        """
        self._sealed = False
        self._load_indexes()
        return self._valid_bytes == self.size

    def recover(self) -> tuple[int, str, list[tuple[int, int]]]:
        """Check every batch, cut the file before the first that is not whole, rebuild the indexes.

        Returns:
            Bytes cut off; why (empty if none); the leader epochs met, as (epoch, first offset).

        Raises:
            StorageError: the file cannot be read or cut.
        """
        file, size = self.file, self.size
        self._sealed = False
        self._offset_index, self._time_index = self._empty_indexes()
        self._latest, self._latest_offset, self._unindexed = -1, self.base_offset, 0
        self.end_offset, self.first_timestamp, self.full = self.base_offset, -1, False
        epochs: list[tuple[int, int]] = []
        valid, reason = 0, ""
        try:
            with storage("read", self.path):
                for entry in walk_checked(fetch_file(file), size, self.base_offset):
                    if entry.last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                        raise CorruptRecordError(
                            f"offset {entry.last_offset} is too far from the segment's base"
                        )
                    self._note(entry)
                    valid = entry.position + entry.size
                    if entry.leader_epoch >= 0 and (not epochs or epochs[-1][0] < entry.leader_epoch):
                        epochs.append((entry.leader_epoch, entry.base_offset))
        except CorruptRecordError as error:
            reason = str(error)
        if valid < size:
            with storage("cut", self.path):
                os.ftruncate(file.fileno(), valid)
            self.size = valid
        self._save_indexes()
        return size - valid, reason or ("the last batch is not whole" if valid < size else ""), epochs
