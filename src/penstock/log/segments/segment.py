"""A segment on disk: one `.log` file with its two indexes, appended to and read.

Appends write only to the log file; reads return regions of it. The position of an offset
is found in three steps, the cheapest first: cached positions of the last reads and the last append,
the index in memory, and a walk over the few headers between two index entries.

Missing data is an error: the batches of a sealed segment must fill its file, and their offsets must end just
before the next segment. Otherwise a read raises `DamagedLogError` instead of returning less. Only compaction
leaves gaps between offsets.

The entries of an index file are checked against the log before they are used; a wrong index is rebuilt at
once.

Compaction writes a new segment beside the old ones that it replaces. Its files end in `.cleaned` while it is
written, in `.swap` once it is complete, and then have their usual names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
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
    Identity,
    OpenFile,
    create_file,
    remove_file,
    storage,
    storage_error,
    sync_directory,
)
from penstock.log.segments.index import (
    OFFSET_ENTRY_BYTES,
    SAVE_ENTRIES,
    TIME_ENTRY_BYTES,
    DamagedIndexError,
    OffsetIndex,
    TimeIndex,
    last_entry_in,
)
from penstock.log.segments.segment_file import SegmentFile
from penstock.log.segments.segment_files import (
    CURE,
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_SWAP,
    SUFFIX_TIME_INDEX,
    SUFFIXES_OF_OTHERS,
    FileSource,
    remove_segment_files,
    segment_path,
)
from penstock.log.walk import HEAD_BYTES, BatchEntry, fetch_file, unpack_head, walk, walk_checked
from penstock.records.format.batch_header import HEADER_BYTES, LENGTH_EXTRA_BYTES, read_header

logger = logger_named("penstock.log")

STARTS_REMEMBERED = 64
"""The maximum number of cached positions at which reads of a segment ended. Consumers usually continue
there.
"""

READ_AT_ONCE_BYTES = 4096
"""The maximum size for which a read returns bytes instead of a file region: copying so few bytes costs
less."""

_UNKNOWN = (-1, 0)


class FileSegment(Segment):
    """A segment on disk; if an earlier process wrote it, its indexes are loaded when needed."""

    __slots__ = (
        "_file",
        "_gap_is_fine",
        "_index_bytes",
        "_interval",
        "_latest",
        "_latest_offset",
        "_limit",
        "_limit_offset",
        "_offset_index",
        "_problem",
        "_replaced",
        "_sealed",
        "_start_of_reads",
        "_tail_offset",
        "_tail_position",
        "_time_index",
        "_unindexed",
        "_valid_bytes",
        "directory",
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
        """Create the object of a segment, whose files are opened when needed.

        `suffix` follows the usual names of its files. If `writable` is False, no file is written, not even a
        rebuilt index.
        """
        super().__init__(base_offset, now_ms)
        self.directory = directory
        self.suffix = suffix
        self._file = SegmentFile(
            segment_path(directory, base_offset, SUFFIX_LOG + suffix), is_writable=writable
        )
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._latest, self._latest_offset = -1, base_offset
        self._unindexed = 0
        self._valid_bytes = 0
        self._sealed = False
        self._limit = NEVER
        """The position up to which a sealed segment with a damaged end can be read; NEVER without damage."""
        self._limit_offset = base_offset
        self._problem = ""
        self._gap_is_fine = False
        self._start_of_reads: dict[int, tuple[int, int]] = {}
        self._tail_offset = self._tail_position = -1
        self._replaced: Sequence[FileSegment] = ()
        """The old segments that this compacted segment replaces, until their files are removed."""
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        self._interval = config.index_interval_bytes
        self._index_bytes = config.segment_index_bytes

    def allow_gap(self) -> None:
        """Accept missing offsets at the end of this segment, because it may have been compacted."""
        self._gap_is_fine = True

    @property
    def path(self) -> str:
        """The path of the `.log` file."""
        return self._file.path

    @property
    def file(self) -> OpenFile:
        """The open file. It closes with its last reference: keep one while using its descriptor."""
        return self._file.opened(keep=not self._sealed)

    @property
    def identity(self) -> Identity | None:
        """The device and inode of the open file, or else of the file at this path; None if neither exists."""
        return self._file.identity

    def release(self) -> None:
        """Drop the reference to the open file. It closes unless a reader uses it, and reopens when needed."""
        self._file.release()

    @classmethod
    def create(
        cls, directory: str, base_offset: int, config: LogConfig, now_ms: int, *, suffix: str = ""
    ) -> FileSegment:
        """Create an empty segment with all its files; on an error, no file is left.

        Raises:
            StorageError: a file cannot be created.
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
        """Return a sealed segment that is on disk. Only the size of its file is read.

        Raises:
            StorageError: the file cannot be opened, or is larger than the positions in an index.
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
        self._file.write(batch, size, position)
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

    def append_many(self, batches: Bytes, size: int, entries: Sequence[BatchEntry], now_ms: int) -> None:
        start, empty = self.size, self.size == 0
        self._file.write(batches, size, start)
        self._tail_offset, self._tail_position = self.end_offset, start
        for entry in entries:
            self._note(entry._replace(position=start + entry.position))
        if empty:
            self.first_timestamp = max(entry.max_timestamp for entry in entries)
        self.size = start + size
        self.last_append_ms = now_ms

    def seal(self, end_offset: int) -> None:
        self._sealed = True
        self.end_offset = end_offset
        self._complete_indexes()
        self.release()

    def close(self) -> None:
        """Write the last index entries, and release the file."""
        self._complete_indexes()
        self.release()

    def delete(self) -> None:
        for segment in self._replaced:
            segment.remove_files()
        self.remove_files()
        if self.suffix in ("", SUFFIX_SWAP):
            for suffix in SUFFIXES_OF_OTHERS:
                remove_file(segment_path(self.directory, self.base_offset, suffix))
        self.release()

    def remove_files(self) -> None:
        """Delete the log and index files of this segment, with the suffix that they have now."""
        remove_segment_files(self.directory, self.base_offset, self.suffix)

    def truncate_to(self, offset: int) -> None:
        position = self._position_of(offset)
        self._sealed, self._limit = False, NEVER
        if position < self.size:
            self._file.cut(position)
            self.size = position
        offsets, times = self._indexes()
        offsets.truncate(position)
        times.truncate(offset)
        self._start_of_reads.clear()
        self._tail_offset = -1
        self._use(offsets, times)

    def _note(self, entry: BatchEntry) -> None:
        """Update timestamps and indexes for a batch found in the file, as `append` does for a new batch."""
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
        """Add an entry to both indexes for the batch at `position`, which ends with `last_offset`."""
        offsets, times = self._indexes()
        offsets.append(last_offset, position)
        times.append(self._latest, self._latest_offset)
        self._unindexed = 0
        self.full = self._is_full(offsets, times)
        if len(offsets) - max(offsets.saved, 0) >= SAVE_ENTRIES:
            self._save_indexes()

    def _is_full(self, offsets: OffsetIndex, times: TimeIndex) -> bool:
        """Return True if an index has reached its size limit; one time entry is reserved for sealing."""
        return (
            len(offsets) >= self._index_bytes // OFFSET_ENTRY_BYTES
            or len(times) >= self._index_bytes // TIME_ENTRY_BYTES - 1
        )

    def _complete_indexes(self) -> None:
        if self._offset_index is not None and self._time_index is not None:
            self._time_index.append(self._latest, self._latest_offset)
            self._save_indexes()

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
        if at_least_one and max_bytes <= self._interval:
            batch = self._only_batch(start, max_bytes, up_to_offset)
            if batch is not None:
                pieces.append(batch)
                return len(batch), start + len(batch) == self.size != limit
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
            size = stop - start
            if size <= READ_AT_ONCE_BYTES:
                pieces.append(self._bytes(start, size))
            else:
                pieces.append(FileRegion(self._file.opened(keep=not self._sealed), start, size))
        # What is beyond the limit is left to the next read, which says what is wrong.
        return stop - start, stop == self.size != limit

    def entries(self, offset: int) -> Iterator[BatchEntry]:
        return self._walk(self._position_of(offset))

    def _only_batch(self, start: int, max_bytes: int, up_to_offset: int) -> bytes | None:
        """Return the batch at `start` with one read, if it is small and the only one within `max_bytes`.

        Returns None in all other cases, also for damage; the caller then reads in the general way.

        Raises:
            StorageError: the file cannot be read.
        """
        # A call of `min` or `max` would take ten comparisons' time.
        size = (self.size if self.size < self._limit else self._limit) - start
        if size < HEADER_BYTES:
            return None
        if size > READ_AT_ONCE_BYTES:
            size = READ_AT_ONCE_BYTES
        data = self._bytes(start, size)
        base_offset, length, _, magic, _, delta, _ = unpack_head(data)
        end, last_offset = length + LENGTH_EXTRA_BYTES, base_offset + delta
        if (
            magic != 2
            or not HEADER_BYTES <= end <= size
            or end < max_bytes
            or not self.base_offset <= base_offset <= last_offset < up_to_offset
            or last_offset >= self.end_offset
        ):
            return None
        if last_offset + 1 not in self._start_of_reads:
            self._remember(last_offset + 1, start + end, 0)
        return data[:end]

    def _bytes(self, position: int, size: int) -> bytes:
        """Return `size` bytes of the file from `position` on.

        Raises:
            StorageError: the bytes cannot be read, or the file is too short.
        """
        file = self._file.kept
        if file is None:
            file = self._file.opened(keep=not self._sealed)
        try:
            found = operating_system.pread(file.fileno(), size, position)
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        if len(found) < size:
            raise self._damaged(f"it ends at {position + len(found)}, before {position + size}")
        return found

    def _end_within(self, start: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> int:
        """Return the end position of the last batch that a read from `start` may return by its limits."""
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
        """Cache the position of `offset`, where a read began or ended, for the next read at this offset.

        `end` is the end position of the batch at `position`; 0 if unknown.
        """
        if len(self._start_of_reads) >= STARTS_REMEMBERED:
            self._start_of_reads.clear()
        self._start_of_reads[offset] = position, end

    # --- finding ----------------------------------------------------------------------------------

    def load(self, position: int, size: int) -> bytes:
        file = self.file
        try:
            return operating_system.pread(file.fileno(), size, position)
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
        """Return the end position of a read-only segment's last complete batch; do not check checksums.

        If a sealed segment does not end there, or lacks its last batches, `damage` has the error.
        """
        if self._offset_index is None:
            last = last_entry_in(self._empty_indexes()[0].path)
            if last is not None and self._begins_batch(last[1], self.base_offset + last[0]):
                next_offset = self._walk_tail(last[1], last[1], lambda entry: None)
                if next_offset is not None:
                    self._check_end(next_offset)
                return self._valid_bytes
            self._load_indexes()
        return self._valid_bytes

    @property
    def damage(self) -> tuple[int, DamagedLogError] | None:
        """The offset up to which a damaged sealed segment can be read, and the error; None if undamaged."""
        if self._limit == NEVER:
            return None
        return self._limit_offset, DamagedLogError(self._problem)

    def position_before(self, offset: int) -> int:
        """Return the position in the last index entry up to `offset`, without a search in the log file."""
        return self._indexed(lambda index: index.place_of(offset))

    def _position_of(self, offset: int) -> int:
        """Return the position of the first batch that ends at `offset` or later, else the segment's end."""
        return self._find(offset)[0]

    def _find(self, offset: int) -> tuple[int, int]:
        """Return the start and end position of the first batch that ends at `offset` or later.

        If there is no such batch, both are the end of the segment.

        Raises:
            StorageError: the segment is damaged before that batch.
        """
        start = self._indexed(lambda index: index.place_of(offset))
        if start >= self._limit:
            raise DamagedLogError(self._problem)
        next_offset = self.base_offset
        for entry in self._walk(start):
            if not next_offset <= entry.base_offset <= entry.last_offset < self.end_offset:
                raise self._out_of_order(entry, next_offset)
            next_offset = entry.last_offset + 1
            if entry.last_offset >= offset:
                return entry.position, entry.position + entry.size
        return self.size, self.size

    def _walk(self, position: int) -> Iterator[BatchEntry]:
        if position >= self.size:
            return
        try:
            stopped = yield from walk(fetch_file(self.file), position, self.size)
        except CorruptRecordError as error:
            raise self._damaged(str(error)) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise storage_error("read", self.path, error) from error
        if self._sealed and stopped != self.size:
            raise self._damaged(f"no whole batch at position {stopped} of {self.size}")

    def _out_of_order(self, entry: BatchEntry, next_offset: int) -> DamagedLogError:
        return self._damaged(
            f"offsets {entry.base_offset} to {entry.last_offset} at position {entry.position}, not within "
            f"{next_offset} to {self.end_offset - 1}"
        )

    def _damaged(self, reason: str) -> DamagedLogError:
        return DamagedLogError(f"{self.path} is damaged: {reason}; {CURE}")

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
        """Read the index files, or rebuild them if they are missing or contradict themselves."""
        offsets, times = self._empty_indexes()
        try:
            offsets = OffsetIndex.load(offsets.path, self.base_offset, self.size)
            times = TimeIndex.load(times.path, self.base_offset)
        except DamagedIndexError as error:
            return self._rebuild_indexes(str(error))
        return self._use(offsets, times)

    def _rebuild_indexes(self, reason: str) -> tuple[OffsetIndex, TimeIndex]:
        if self.size and self._file.is_writable:
            logger.warning("rebuilding the indexes of %s: %s", self.path, reason)
        fresh = self._use(*self._empty_indexes())
        if self._sealed:
            self._complete_indexes()
        return fresh

    def _use(self, offsets: OffsetIndex, times: TimeIndex) -> tuple[OffsetIndex, TimeIndex]:
        """Set the indexes of this segment, and add entries for the batches after their last entries.

        Reading those batch headers also finds the last offset and the greatest timestamp.
        """
        self._offset_index, self._time_index = offsets, times
        self._latest, self._latest_offset = times.last()
        self._unindexed = self._valid_bytes = 0
        self._limit = NEVER
        if not self._sealed:
            self.end_offset = self.base_offset
        if not self.size:
            self.first_timestamp, self.full = -1, False
            self._check_end(self.base_offset)
            return offsets, times
        indexed_to = self._indexed(lambda index: len(index) - 1)
        timed_to = self._indexed(lambda index: index.place_of(self._latest_offset)) if len(times) else 0
        if self._offset_index is not offsets:
            return self._indexes()  # the log has refuted an entry, and better indexes are there already
        next_offset = self._walk_tail(min(indexed_to, timed_to), indexed_to, self._note)
        if next_offset is not None:
            self._check_end(next_offset)
        # A damaged first batch is an error for its readers.
        with storage("read", self.path), suppress(CorruptRecordError):
            for entry in walk(fetch_file(self.file), 0, self.size, HEAD_BYTES):
                self.first_timestamp = entry.max_timestamp
                break
        self.full = self._is_full(offsets, times)
        return offsets, times

    def _walk_tail(self, start: int, indexed_to: int, note: Callable[[BatchEntry], object]) -> int | None:
        """Call `note` for each batch from `start` on; the last one in the index is at `indexed_to`.

        Returns:
            The offset after the last batch; None if a sealed segment is damaged there. Reads then end before
            the damage.
        """
        next_offset = self.base_offset
        self._valid_bytes = start
        try:
            for entry in self._walk(start):
                if self._sealed and not (
                    next_offset <= entry.base_offset <= entry.last_offset < self.end_offset
                ):
                    raise self._out_of_order(entry, next_offset)
                if entry.position <= indexed_to:
                    self._unindexed = -self._interval - 1 if entry.position < indexed_to else 0
                note(entry)
                self._valid_bytes = entry.position + entry.size
                next_offset = entry.last_offset + 1
        except DamagedLogError as error:
            if not self._sealed:
                raise
            if self._valid_bytes < indexed_to:
                return self._walk_tail(indexed_to, indexed_to, note)  # the damage is not in the tail
            self._limit, self._limit_offset, self._problem = self._valid_bytes, next_offset, str(error)
            return None
        return next_offset

    def _check_end(self, next_offset: int) -> None:
        """Record the damage if a sealed segment lacks the batches from `next_offset` to its end offset."""
        if not self._sealed or next_offset == self.end_offset:
            return
        if self._gap_is_fine or self._was_compacted():
            return
        missing = f"the batches with offsets {next_offset} to {self.end_offset - 1} are missing"
        self._limit, self._limit_offset = self.size, next_offset
        self._problem = str(self._damaged(missing))

    def _was_compacted(self) -> bool:
        """Return True if offsets are missing within the segment, which only compaction causes."""
        next_offset = self.base_offset
        for entry in self._walk(0):
            if entry.base_offset > next_offset and entry.magic == 2:
                return True
            next_offset = entry.last_offset + 1
            if entry.magic == 2:
                header = read_header(self.load(entry.position, HEADER_BYTES))
                if header.record_count <= header.last_offset_delta:
                    return True
        return False

    def _indexed(self, find: Callable[[OffsetIndex], int]) -> int:
        """Return the position in the index entry that `find` selects, once it is checked against the log."""
        index = self._indexes()[0]
        entry_index = find(index)
        if entry_index < 0:
            return 0
        position, last_offset = index.positions[entry_index], self.base_offset + index.offsets[entry_index]
        if entry_index >= index.unproven or self._begins_batch(position, last_offset):
            return position
        index = self._rebuild_indexes(f"no batch begins at position {position}")[0]
        entry_index = find(index)
        return index.positions[entry_index] if entry_index >= 0 else 0

    def _begins_batch(self, position: int, last_offset: int) -> bool:
        """Return True if a batch with a last offset up to `last_offset` begins at `position`."""
        try:
            # Old brokers index several batches appended together by the last offset of them all.
            entry = next(walk(fetch_file(self.file), position, self.size, HEAD_BYTES), None)
        except CorruptRecordError:
            return False
        return (
            entry is not None and self.base_offset <= entry.base_offset and entry.last_offset <= last_offset
        )

    def _save_indexes(self) -> None:
        """Write the missing index entries to the files; a failure is only logged, not raised."""
        if not self._file.is_writable:
            return
        try:
            for index in self._indexes():
                index.save()
        except StorageError as error:
            logger.warning("%s; it will be rebuilt", error)

    # --- compaction -------------------------------------------------------------------------------

    def source(self) -> FileSource:
        return FileSource(self.file, self.size)

    def complete(self, last: Segment) -> None:
        self._indexes()
        file = self.file  # sealing closes it
        super().complete(last)
        with storage("flush", self.path):
            os.fsync(file.fileno())
            # Retention by age goes by the time of the file where records have none.
            os.utime(file.fileno(), ns=(last.last_append_ms * 1_000_000,) * 2)

    def take_place_of(self, old: Sequence[Segment]) -> None:
        try:
            self._rename(SUFFIX_SWAP)
            sync_directory(self.directory)
        except BaseException:
            # A `.swap` left behind would replace, at the next start, what others have been added to.
            for suffix in {SUFFIX_SWAP, self.suffix}:
                remove_segment_files(self.directory, self.base_offset, suffix)
            raise
        # From here on this segment counts, also after an error: a start would put it in place, too.
        self._replaced = [segment for segment in old if isinstance(segment, FileSegment)]

    def settle(self) -> None:
        if self._replaced:
            for segment in self._replaced[1:]:
                segment.remove_files()
            self._rename("")
            self._replaced = ()

    def _rename(self, suffix: str) -> None:
        """Rename all files of the segment, so that the suffix after their usual names is another one.

        The log file is renamed last, so that its indexes already have their new names then.

        Raises:
            StorageError: a file cannot be renamed.
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
            # It may be gone: an earlier attempt came so far; or it can be rebuilt from the log.
            with storage("rename", path), suppress(FileNotFoundError):
                os.replace(path, target)
        with storage("rename", self.path):
            os.replace(self.path, log_path)
            self._file.path, self.suffix = log_path, suffix
            indexes[0].path, indexes[1].path = index_paths

    # --- after a crash ----------------------------------------------------------------------------

    def unseal(self) -> bool:
        """Open the segment for appends; return True if it ends with a complete batch.

        Checksums are not checked.

        Raises:
            StorageError: the batches after the last index entry are damaged.
        """
        self._sealed = False
        self._load_indexes()
        return self._valid_bytes == self.size

    def recover(self) -> tuple[int, str, list[tuple[int, int]]]:
        """Check every batch, truncate the file before the first bad one, and rebuild the indexes.

        Returns:
            (bytes cut off, the reason or "", the leader epochs found as (epoch, first offset)).

        Raises:
            StorageError: the file cannot be read or truncated.
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
            self._file.cut(valid)
            self.size = valid
        self._save_indexes()
        return size - valid, reason or ("the last batch is not whole" if valid < size else ""), epochs
