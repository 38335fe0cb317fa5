"""The file of a segment with its two indexes: what is in it, and at which position.

What a read passes over has to be there: the walk over a sealed segment ends where the file does, with the
last offset before the next segment's first, or else that is a `DamagedLogError`, never a smaller answer. Only
compaction leaves gaps between offsets.

The contents of an index file are checked against the log before it is used; a wrong one is rebuilt on the
spot.

The file is opened on first use and closed when no reader holds it any more. Only the
segment that grows holds its own: however many segments are read, no more are open than are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from weakref import ref

from penstock.common import operating_system
from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.contract import NEVER, DamagedLogError, LogConfig, Segment
from penstock.log.directory.files import Identity, OpenFile, identity_of, open_file, storage, storage_error
from penstock.log.segments.index import (
    OFFSET_ENTRY_BYTES,
    SAVE_ENTRIES,
    TIME_ENTRY_BYTES,
    DamagedIndexError,
    OffsetIndex,
    TimeIndex,
    last_entry_in,
)
from penstock.log.segments.segment_files import (
    CURE,
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_TIME_INDEX,
    segment_path,
)
from penstock.log.walk import HEAD_BYTES, Entry, fetch_file, walk
from penstock.records.format.batch_header import HEADER_BYTES, read_header

logger = logger_named("penstock.log")


class IndexedSegment(Segment):
    """A segment's file and indexes. A segment written by an earlier process loads its indexes when needed."""

    __slots__ = (
        "_fd",
        "_file",
        "_gap_is_fine",
        "_index_bytes",
        "_interval",
        "_latest",
        "_latest_offset",
        "_lent",
        "_limit",
        "_limit_offset",
        "_offset_index",
        "_problem",
        "_sealed",
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
        self._limit = NEVER
        """Where what can be read ends in a sealed segment whose end is damaged or missing."""
        self._limit_offset = base_offset
        self._problem = ""
        self._gap_is_fine = False
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        self._interval = config.index_interval_bytes
        self._index_bytes = config.segment_index_bytes

    def allow_gap(self) -> None:
        """Compaction may have been here: the last offsets before the next segment may be gone."""
        self._gap_is_fine = True

    @property
    def file(self) -> OpenFile:
        """The open file. It stays open while a reference is held: hold it while using its number."""
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

    @property
    def identity(self) -> Identity | None:
        """Which file is open, or has the name where none is; None where there is none."""
        return identity_of(self.path) if self._fd < 0 else identity_of(self._fd)

    def release(self) -> None:
        """Let go of the file until it is needed again. Others who have it keep it."""
        if self._file is not None:
            self._lent = ref(self._file)
        self._file = None
        self._fd = -1

    # --- growing ----------------------------------------------------------------------------------

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
        """Return whether an index has reached its limit; of times, one entry is kept for closing."""
        return (
            len(offsets) >= self._index_bytes // OFFSET_ENTRY_BYTES
            or len(times) >= self._index_bytes // TIME_ENTRY_BYTES - 1
        )

    def _complete_indexes(self) -> None:
        if self._offset_index is not None and self._time_index is not None:
            self._time_index.append(self._latest, self._latest_offset)
            self._save_indexes()

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
        """Return where the last whole batch ends in a file that is only read, checksums aside.

        A sealed segment that does not end there, or not with the last batch it had, is reported by `damage`.
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
        """Up to which offset a sealed segment can be read, and what is wrong there; None if all is well."""
        if self._limit == NEVER:
            return None
        return self._limit_offset, DamagedLogError(self._problem)

    def position_before(self, offset: int) -> int:
        """Return where some batch begins that is not past `offset`, without a walk: the nearest indexed."""
        return self._indexed(lambda index: index.place_of(offset))

    def _position_of(self, offset: int) -> int:
        """Return where the first batch that reaches `offset` begins; the end if none does."""
        return self._find(offset)[0]

    def _find(self, offset: int) -> tuple[int, int]:
        """Return where the first batch that reaches `offset` begins and ends; the segment's end if none does.

        Raises:
            StorageError: the segment is damaged before it.
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

    def _walk(self, position: int) -> Iterator[Entry]:
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

    def _out_of_order(self, entry: Entry, next_offset: int) -> DamagedLogError:
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

    def _walk_tail(self, start: int, indexed_to: int, note: Callable[[Entry], object]) -> int | None:
        """Call `note` with the batches from `start` on. The last index entry points to `indexed_to`.

        Returns:
            The offset after the last; None in a sealed segment that does not end with a whole batch. What
            can be read of it then ends where the walk did.
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
        """Note what is wrong if the last batch of a sealed segment, before `next_offset`, is not its last."""
        if not self._sealed or next_offset == self.end_offset:
            return
        if self._gap_is_fine or self._was_compacted():
            return
        missing = f"the batches with offsets {next_offset} to {self.end_offset - 1} are missing"
        self._limit, self._limit_offset = self.size, next_offset
        self._problem = str(self._damaged(missing))

    def _was_compacted(self) -> bool:
        """Whether batches or records are missing inside the segment, too, which only compaction does."""
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
        """Return the position in the index entry that `find` picks, once the log has confirmed it."""
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
        """Return whether a batch that ends with `last_offset`, or before it, begins at `position`."""
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
