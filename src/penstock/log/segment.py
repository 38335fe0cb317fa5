"""A segment on disk: one `.log` file with its two indexes.

Appends go straight to the file and touch no other; reads answer with regions of it. Where an offset
is, is found in three steps, each cheaper than the next: what the last reads and the last append left
behind, the index in memory, and a walk over the few headers between two index entries. What an index
file says is checked against the log before it is believed; one that is wrong is rebuilt on the spot.

The file is opened on first use and closed when nobody holds it any more, readers included. Only the
segment that grows holds its own: however many segments are read, no more are open than are in use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from logging import getLogger
from weakref import ref

from penstock.errors import CorruptRecordError, StorageError
from penstock.log.contract import RELATIVE_OFFSET_MAX, Bytes, FileRegion, LogConfig
from penstock.log.files import (
    OpenFile,
    create_file,
    open_file,
    remove_file,
    storage,
    storage_error,
    sync_directory,
)
from penstock.log.index import (
    OFFSET_ENTRY_BYTES,
    SAVE_ENTRIES,
    TIME_ENTRY_BYTES,
    DamagedIndexError,
    OffsetIndex,
    TimeIndex,
    last_entry_in,
)
from penstock.log.segmented import Segment
from penstock.log.walk import HEAD_BYTES, Entry, fetch_file, walk, walk_checked, walk_whole

logger = getLogger("penstock.log")

SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX = ".log", ".index", ".timeindex"
SUFFIX_DELETED, SUFFIX_CLEANED, SUFFIX_SWAP = ".deleted", ".cleaned", ".swap"
"""What Kafka puts behind these while segments are deleted, written by compaction, put in place."""

SUFFIXES_OF_OTHERS = (".txnindex", ".snapshot")
"""Files that Kafka keeps beside a segment and that go with it. Nothing here reads them."""

PLACES_REMEMBERED = 64
"""Ends of reads that a segment remembers: each is where some consumer will go on."""


def segment_path(directory: str, base_offset: int, suffix: str = SUFFIX_LOG) -> str:
    """Return the path of one of a segment's files: 20 digits of its base offset, and a suffix."""
    return f"{directory}/{base_offset:020d}{suffix}"


class FileSegment(Segment):
    """A segment in a file. One that was not written in this process loads its indexes when needed."""

    __slots__ = (
        "_fd",
        "_file",
        "_index_bytes",
        "_interval",
        "_latest",
        "_latest_offset",
        "_lent",
        "_offset_index",
        "_places",
        "_replaced",
        "_sealed",
        "_tail_offset",
        "_tail_position",
        "_time_index",
        "_unindexed",
        "_valid_bytes",
        "_writable",
        "directory",
        "path",
        "suffix",
    )

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
        """Describe a segment whose file is opened when needed.

        `suffix` is what its files' names have behind the usual ones. One that is not `writable` is
        only looked at: not even an index that had to be rebuilt is written.
        """
        super().__init__(base_offset, now_ms)
        self.directory = directory
        self.suffix = suffix
        self.path = segment_path(directory, base_offset, SUFFIX_LOG + suffix)
        self._writable = writable
        self._file: OpenFile | None = None
        self._lent: ref[OpenFile] | None = None
        self._fd = -1
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._latest, self._latest_offset = -1, base_offset
        self._unindexed = 0
        self._valid_bytes = 0
        self._sealed = False
        self._replaced: list[FileSegment] = []
        """Segments that this one replaces, as long as their files may still be there."""
        self._places: dict[int, int] = {}
        self._tail_offset = self._tail_position = -1
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        self._interval = config.index_interval_bytes
        self._index_bytes = config.segment_index_bytes

    @classmethod
    def create(
        cls, directory: str, base_offset: int, config: LogConfig, now_ms: int, *, suffix: str = ""
    ) -> FileSegment:
        """Make an empty segment.

        Raises:
            StorageError: the file cannot be made.
        """
        segment = cls(directory, base_offset, config, now_ms, suffix=suffix)
        create_file(segment.path)
        indexes = segment._empty_indexes()
        for index in indexes:
            create_file(index.path)  # Kafka's tools expect all three from the beginning
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
            StorageError: it cannot be had, or is larger than an index can tell positions in.
        """
        segment = cls(directory, base_offset, config, 0, suffix=suffix, writable=writable)
        with storage("open", segment.path):
            status = os.stat(segment.path)
        if status.st_size > RELATIVE_OFFSET_MAX:
            raise StorageError(f"{segment.path} has {status.st_size} bytes, more than a segment can have")
        segment.size, segment.end_offset, segment._sealed = status.st_size, end_offset, True
        segment.created_ms = segment.last_append_ms = status.st_mtime_ns // 1_000_000
        return segment

    @property
    def file(self) -> OpenFile:
        """The open file. It stays open as long as somebody keeps it: hold it while using its number."""
        file = self._file
        if file is None:
            file = self._lent() if self._lent is not None else None
            if file is None:
                file = open_file(self.path, writable=self._writable)
            if self._sealed:
                self._lent = ref(file)
            else:
                self._file, self._fd = file, file.fileno()
        return file

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
            written = os.pwrite(fd, data, position)
            while written < size:
                written += os.pwrite(fd, memoryview(data)[written:], position + written)
        except OSError as error:
            try:
                os.ftruncate(fd, position)
            except OSError as second:
                # Harmless now, since the next append begins at the same position; recovery cuts it.
                logger.warning("%s keeps a torn batch at its end: %s", self.path, second)
            raise storage_error("append to", self.path, error) from error

    def _note(self, entry: Entry) -> None:
        """Take account of a batch that is in the file, as `append` does of its own."""
        if entry.position == 0:
            self.first_timestamp = entry.max_timestamp
        if entry.max_timestamp > self._latest:
            self._latest, self._latest_offset = entry.max_timestamp, entry.last_offset
        if self._unindexed > self._interval:
            self._index(entry.last_offset, entry.position)
        self._unindexed += entry.size
        if not self._sealed:
            self.end_offset = entry.last_offset + 1

    def _index(self, last_offset: int, position: int) -> None:
        """Add an entry to both indexes: the batch at `position` ends with `last_offset`."""
        offsets, times = self._indexes()
        offsets.append(last_offset, position)
        times.append(self._latest, self._latest_offset)
        self._unindexed = 0
        self.full = self._is_full(offsets, times)
        if len(offsets) - max(offsets.saved, 0) >= SAVE_ENTRIES:
            self._save_indexes()

    def _is_full(self, offsets: OffsetIndex, times: TimeIndex) -> bool:
        """Say whether an index has reached its limit; of times, one entry is kept for closing the segment."""
        return (
            len(offsets) >= self._index_bytes // OFFSET_ENTRY_BYTES
            or len(times) >= self._index_bytes // TIME_ENTRY_BYTES - 1
        )

    def seal(self, end_offset: int) -> None:
        self._sealed = True
        self.end_offset = end_offset
        self._complete_indexes()
        self.release()

    def _complete_indexes(self) -> None:
        if self._offset_index is not None and self._time_index is not None:
            self._time_index.append(self._latest, self._latest_offset)
            self._save_indexes()

    def close(self) -> None:
        """Complete the index files, and let go of the file."""
        self._complete_indexes()
        self.release()

    def release(self) -> None:
        """Let go of the file until it is needed again. Others who have it keep it."""
        if self._file is not None:
            self._lent = ref(self._file)
        self._file = None
        self._fd = -1

    def delete(self) -> None:
        for segment in self._replaced:
            segment.remove_files()
        self.remove_files()
        if self.suffix in ("", SUFFIX_SWAP):
            for suffix in SUFFIXES_OF_OTHERS:
                remove_file(segment_path(self.directory, self.base_offset, suffix))
        self.release()

    def remove_files(self) -> None:
        """Delete log and indexes, and nothing else that goes by the segment's offset."""
        self._remove_files_named(self.suffix)

    def _remove_files_named(self, suffix: str) -> None:
        for kind in (SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX):
            remove_file(segment_path(self.directory, self.base_offset, kind + suffix))

    # --- compaction -------------------------------------------------------------------------------

    def source(self) -> FileSource:
        return FileSource(self.file, self.size)

    def complete(self, last: Segment) -> None:
        self._indexes()
        file = self.file  # sealing lets go of it
        super().complete(last)
        with storage("flush", self.path):
            os.fsync(file.fileno())
            # Retention by age goes by the time of the file where records tell none.
            os.utime(file.fileno(), ns=(last.last_append_ms * 1_000_000,) * 2)

    def take_place_of(self, old: Sequence[Segment]) -> None:
        try:
            self._rename(SUFFIX_SWAP)
            sync_directory(self.directory)
        except BaseException:
            # A `.swap` left behind would replace, at the next start, what others have been added to.
            self._remove_files_named(SUFFIX_SWAP)
            self._remove_files_named(self.suffix)
            raise
        # From here on this segment counts, whatever happens: a start would put it in place, too.
        self._replaced = [segment for segment in old if isinstance(segment, FileSegment)]

    def settle(self) -> None:
        if self._replaced:
            for segment in self._replaced[1:]:
                segment.remove_files()
            self._rename("")
            self._replaced = []

    def _rename(self, suffix: str) -> None:
        """Give all files of the segment another suffix behind their usual names, the log last.

        So the log has its new name only when its indexes have theirs.

        Raises:
            StorageError: one cannot be renamed.
        """
        # Everything that takes memory comes first: nothing may come between a name and our knowing it.
        index_paths = [
            segment_path(self.directory, self.base_offset, kind + suffix)
            for kind in (SUFFIX_INDEX, SUFFIX_TIME_INDEX)
        ]
        log_path = segment_path(self.directory, self.base_offset, SUFFIX_LOG + suffix)
        indexes = self._indexes()
        for kind, target in zip((SUFFIX_INDEX, SUFFIX_TIME_INDEX), index_paths, strict=True):
            path = segment_path(self.directory, self.base_offset, kind + self.suffix)
            # It may be gone: an earlier attempt came so far; or else the log tells all that was in it.
            with storage("rename", path), suppress(FileNotFoundError):
                os.replace(path, target)
        with storage("rename", self.path):
            os.replace(self.path, log_path)
            self.path, self.suffix = log_path, suffix
            indexes[0].path, indexes[1].path = index_paths

    def truncate_to(self, offset: int) -> None:
        self._sealed = False
        position = self._position_of(offset)
        if position < self.size:
            file = self.file
            with storage("cut", self.path):
                os.ftruncate(file.fileno(), position)
            self.size = position
        offsets, times = self._indexes()
        offsets.truncate(position)
        times.truncate(offset)
        self._places.clear()
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
        start = self._tail_position if offset == self._tail_offset else self._places.get(offset, -1)
        if start < 0:
            start = self._position_of(offset)
            self._remember(offset, start)
        if self.size - start <= max_bytes and up_to_offset >= self.end_offset:
            stop = self.size
            self._remember(self.end_offset, stop)
        else:
            stop = self._end_within(start, max_bytes, up_to_offset, at_least_one)
        if stop > start:
            pieces.append(FileRegion(self.file, start, stop - start))
        return stop - start, stop == self.size

    def entries(self, offset: int) -> Iterator[Entry]:
        return self._walk(self._position_of(offset))

    def load(self, position: int, size: int) -> bytes:
        file = self.file
        try:
            return os.pread(file.fileno(), size, position)
        except OSError as error:
            raise storage_error("read", self.path, error) from error

    def earlier_until(self, timestamp_ms: int) -> int:
        return self._indexes()[1].lookup(timestamp_ms)

    @property
    def max_timestamp(self) -> int:
        if self._time_index is None:
            self._load_indexes()
        return self._latest

    def whole_bytes(self) -> int:
        """Return where the last whole batch ends in a file that is only read, checksums aside."""
        if self._offset_index is None:
            last = last_entry_in(self._empty_indexes()[0].path)
            if last is not None and self._begins_batch(last[1], self.base_offset + last[0]):
                return max(entry.position + entry.size for entry in self._walk(last[1]))
            self._load_indexes()
        return self._valid_bytes

    def position_before(self, offset: int) -> int:
        """Return where some batch begins that is not past `offset`, without a walk: the nearest indexed."""
        return self._indexed(lambda index: index.place_of(offset))

    def _position_of(self, offset: int) -> int:
        """Return where the first batch that reaches `offset` begins; the end if none does."""
        start = self._indexed(lambda index: index.place_of(offset))
        for entry in self._walk(start):
            if entry.last_offset >= offset:
                return entry.position
        return self.size

    def _end_within(self, start: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> int:
        """Return where the last batch ends that is within the limits, reading from `start`."""
        limit = start + max_bytes
        known = self._indexed(lambda index: min(index.place_at(limit), index.place_of(up_to_offset)))
        if known > start:
            start, at_least_one = known, False
        stop = start
        for entry in self._walk(start):
            end = entry.position + entry.size
            if entry.last_offset >= up_to_offset:
                break
            if end > limit and not (at_least_one and entry.position == start):
                break
            stop, next_offset = end, entry.last_offset + 1
        if stop > start:
            self._remember(next_offset, stop)
        return stop

    def _remember(self, offset: int, position: int) -> None:
        """Note where a read begins, or the batch after it: this reader or another will ask for it."""
        if len(self._places) >= PLACES_REMEMBERED:
            self._places.clear()
        self._places[offset] = position

    def _walk(self, position: int) -> Iterator[Entry]:
        if position >= self.size:
            return
        try:
            yield from walk(fetch_file(self.file), position, self.size)
        except CorruptRecordError as error:
            raise StorageError(f"{self.path} is damaged: {error}") from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise storage_error("read", self.path, error) from error

    # --- the indexes ------------------------------------------------------------------------------

    def _indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        if self._offset_index is None or self._time_index is None:
            return self._load_indexes()
        return self._offset_index, self._time_index

    def _empty_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        paths = [
            segment_path(self.directory, self.base_offset, suffix + self.suffix)
            for suffix in (SUFFIX_INDEX, SUFFIX_TIME_INDEX)
        ]
        return OffsetIndex(paths[0], self.base_offset), TimeIndex(paths[1], self.base_offset)

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Read the index files, or rebuild them when they are missing or contradict themselves."""
        offsets, times = self._empty_indexes()
        try:
            offsets = OffsetIndex.load(offsets.path, self.base_offset, self.size)
            times = TimeIndex.load(times.path, self.base_offset)
        except DamagedIndexError as error:
            return self._rebuild_indexes(str(error))
        return self._use(offsets, times)

    def _rebuild_indexes(self, reason: str) -> tuple[OffsetIndex, TimeIndex]:
        if self.size and self._writable:
            logger.warning("rebuilding the indexes of %s: %s", self.path, reason)
        fresh = self._use(*self._empty_indexes())
        if self._sealed:
            self._complete_indexes()
        return fresh

    def _use(self, offsets: OffsetIndex, times: TimeIndex) -> tuple[OffsetIndex, TimeIndex]:
        """Take indexes as far as they go, and walk from there to the end of the log.

        The walk completes a short index, and finds the last offset and the greatest timestamp.
        """
        self._offset_index, self._time_index = offsets, times
        self._latest, self._latest_offset = times.last()
        self._unindexed = self._valid_bytes = 0
        if not self._sealed:
            self.end_offset = self.base_offset
        if not self.size:
            self.first_timestamp, self.full = -1, False
            return offsets, times
        indexed_to = self._indexed(lambda index: len(index) - 1)
        timed_to = self._indexed(lambda index: index.place_of(self._latest_offset)) if len(times) else 0
        if self._offset_index is not offsets:
            return self._indexes()  # the log has refuted an entry, and better indexes are there already
        for entry in self._walk(min(indexed_to, timed_to)):
            if entry.position <= indexed_to:
                self._unindexed = -self._interval - 1 if entry.position < indexed_to else 0
            self._note(entry)
            self._valid_bytes = entry.position + entry.size
        for entry in self._walk(0):
            self.first_timestamp = entry.max_timestamp
            break
        self.full = self._is_full(offsets, times)
        return offsets, times

    def _indexed(self, find: Callable[[OffsetIndex], int]) -> int:
        """Return the position in the index entry that `find` picks, once the log has confirmed it."""
        index = self._indexes()[0]
        place = find(index)
        if place < 0:
            return 0
        position, last_offset = index.positions[place], self.base_offset + index.offsets[place]
        if place >= index.unproven or self._begins_batch(position, last_offset):
            return position
        index = self._rebuild_indexes(f"no batch begins at position {position}")[0]
        place = find(index)
        return index.positions[place] if place >= 0 else 0

    def _begins_batch(self, position: int, last_offset: int) -> bool:
        """Say whether a batch that ends with `last_offset`, or before it, begins at `position`."""
        try:
            # Old brokers index several batches appended together by the last offset of them all.
            entry = next(walk(fetch_file(self.file), position, self.size, HEAD_BYTES), None)
        except CorruptRecordError:
            return False
        return (
            entry is not None and self.base_offset <= entry.base_offset and entry.last_offset <= last_offset
        )

    def _save_indexes(self) -> None:
        """Write what the index files lack. Without them the log is as good, only slower to open."""
        if not self._writable:
            return
        try:
            for index in self._indexes():
                index.save()
        except StorageError as error:
            logger.warning("%s; it will be rebuilt", error)

    # --- after a crash ----------------------------------------------------------------------------

    def unseal(self) -> bool:
        """Make the segment ready for appending; say whether it ends with a whole batch.

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


class FileSource:
    """The batches of a sealed segment, read from its file, which this keeps open."""

    def __init__(self, file: OpenFile, size: int) -> None:
        self._file = file
        self._size = size

    def entries(self) -> Iterator[Entry]:
        path = str(self._file.name)
        try:
            yield from walk_whole(fetch_file(self._file), 0, self._size)
        except CorruptRecordError as error:
            raise StorageError(f"{path} is damaged: {error}") from error
        except StorageError:
            raise
        except OSError as error:
            raise storage_error("read", path, error) from error

    def load(self, position: int, size: int) -> bytes:
        with storage("read", str(self._file.name)):
            return os.pread(self._file.fileno(), size, position)
