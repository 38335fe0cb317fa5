"""A log opened only for reading, while another process may write to it.

The segments that exist at the moment of opening are held open, so that they stay readable if retention
deletes them. The log ends with the last complete batch. Nothing is locked, repaired, renamed or written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from penstock.errors import StorageError
from penstock.log.contract import LogConfig, Segment
from penstock.log.directory.checkpoint import CLEANED, START_OFFSETS, read_offsets
from penstock.log.directory.files import OpenFile, storage
from penstock.log.epochs import LeaderEpochs
from penstock.log.segmented import SegmentedLog
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.segment import FileSegment
from penstock.log.segments.segment_files import SUFFIX_CLEANED, SUFFIX_LOG, SUFFIX_SWAP
from penstock.model import TopicPartition
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, read_marker
from penstock.records.format.batch_header import CONTROL_BIT, HEADER_BYTES, TRANSACTIONAL_BIT, read_header

OPEN_ATTEMPTS = 5
"""The maximum number of attempts to list and open the segments, since one may be removed before it is
opened."""


class Region(NamedTuple):
    """Consecutive batches in a file, from the byte `position` up to, not including, the byte `end`."""

    file: OpenFile
    position: int
    end: int
    end_offset: int
    """The offset after the last batch in a sealed segment; -1 in the last segment, where it is unknown."""


class ReadOnlyLog(SegmentedLog):
    """The reading methods of `Log`, for a partition's directory in any state."""

    def __init__(self, directory: str, partition: TopicPartition) -> None:
        """Open the segments of `directory`.

        Raises:
            StorageError: a file cannot be read.
        """
        self.directory = directory
        segments, self._held = _open_segments(directory)
        try:
            segments[-1].unseal()
        except StorageError as error:
            raise StorageError(f"{error}; a broker that opens it would cut it there") from error
        super().__init__(LogConfig(), segments, LeaderEpochs())
        data_directory = os.path.dirname(directory)
        cleaned_to = _noted_offset(data_directory, CLEANED, partition)
        for segment in segments:
            if segment.end_offset <= cleaned_to:
                segment.allow_gap()
        noted = _noted_offset(data_directory, START_OFFSETS, partition)
        self.start_offset = max(self.start_offset, min(noted, self.end_offset))

    def new_compacted(self, first: Segment) -> NoReturn:
        self._new_segment(first.base_offset, first.created_ms)

    def _new_segment(self, base_offset: int, now_ms: int) -> NoReturn:
        raise StorageError(f"the log in {self.directory} is open for reading only")

    def check_in_place(self) -> None:
        """Do nothing: the files stay open, and are never written."""

    def flush(self) -> None:
        """Do nothing, because nothing was written."""

    def close(self) -> None:
        """Do nothing; the files are closed when the last reference to this object is dropped."""

    def regions(self, start_offset: int, end_offset: int) -> Iterator[Region]:
        """Yield parts of segment files with the batches in a range of offsets, segment by segment.

        A region consists of whole batches, so it may contain records outside the range.

        Raises:
            DamagedLogError: a segment before the last does not end with a complete batch, or not at the
                offset where the next one begins.
        """
        for segment in self._segments[self._index_of(start_offset) :]:
            if segment.base_offset >= end_offset:
                return
            assert isinstance(segment, FileSegment)
            start = segment.position_before(start_offset) if start_offset > segment.base_offset else 0
            end = segment.whole_bytes()
            readable_to = -1 if segment is self._active else segment.end_offset
            damage = segment.damage
            if damage is not None:
                readable_to = damage[0]
            if start < end:
                yield Region(segment.file, start, end, readable_to)
            if damage is not None and readable_to < end_offset:
                raise damage[1]

    def committed(self, end_offset: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Read all batch headers to find the last stable offset and the aborted transactions.

        Returns:
            The last stable offset (the first offset of any open transaction, else `end_offset`), and
            (producer id, first offset, offset of the marker) of every aborted transaction.
        """
        open_since: dict[int, int] = {}
        aborted = []
        for segment, entry in self._entries(self._bases[0]):
            if entry.base_offset >= end_offset:
                break
            if not entry.attributes & TRANSACTIONAL_BIT:
                continue
            producer_id = read_header(segment.load(entry.position, HEADER_BYTES)).producer_id
            if not entry.attributes & CONTROL_BIT:
                open_since.setdefault(producer_id, entry.base_offset)
                continue
            kind, _ = read_marker(segment.load(entry.position, entry.size), 0, entry.size)
            if kind in (ABORT_MARKER, COMMIT_MARKER):
                first_offset = open_since.pop(producer_id, None)
                if kind == ABORT_MARKER and first_offset is not None:
                    aborted.append((producer_id, first_offset, entry.last_offset))
        return min([end_offset, *open_since.values()]), aborted


def _open_segments(directory: str) -> tuple[list[FileSegment], list[OpenFile]]:
    """Return the segments of a directory, and their open files.

    The caller must keep references to the files, since these close with their last reference.
    """
    for attempt in range(OPEN_ATTEMPTS):
        with storage("read", directory):
            names = os.listdir(directory)
        found = sorted(dict(_effective(directory, names)).items())
        ends = [*(base for base, _ in found[1:]), -1]
        try:
            segments = [
                FileSegment.existing(directory, base, LogConfig(), end, suffix=suffix, writable=False)
                for (base, suffix), end in zip(found, ends, strict=False)
            ]
            files = [segment.file for segment in segments]
            for segment, file in zip(segments, files, strict=True):
                # Compaction may have put another in its place since the size was looked at.
                segment.size = os.fstat(file.fileno()).st_size
        except StorageError as error:
            # Retention or compaction has just taken one away; the next list will not have it.
            if isinstance(error.__cause__, FileNotFoundError) and attempt + 1 < OPEN_ATTEMPTS:
                continue
            raise
        return segments or [FileSegment(directory, 0, LogConfig(), 0, writable=False)], files
    raise AssertionError("the last attempt returns or raises")


def _effective(directory: str, names: list[str]) -> Iterator[tuple[int, str]]:
    """Yield (base offset, file suffix) of the segments that make up the log.

    A compacted segment that still has the suffix `.swap` is yielded instead of the segments that it replaces,
    unless other segments of the same compaction are still being written (`.cleaned`).
    """
    covered: list[range] = []
    unfinished = min(segments_in(names, SUFFIX_LOG + SUFFIX_CLEANED), default=None)
    for base in segments_in(names, SUFFIX_LOG + SUFFIX_SWAP):
        if unfinished is None or base < unfinished:
            swap = FileSegment.existing(directory, base, LogConfig(), -1, suffix=SUFFIX_SWAP, writable=False)
            if not swap.unseal():
                raise StorageError(f"{swap.path} is damaged: it does not end with a whole batch")
            covered.append(range(base, swap.end_offset))
            yield base, SUFFIX_SWAP
    for base in segments_in(names):
        if not any(base in offsets for offsets in covered):
            yield base, ""


def _noted_offset(data_directory: str, checkpoint: str, partition: TopicPartition) -> int:
    try:
        return read_offsets(f"{data_directory}/{checkpoint}").get(partition, 0)
    except StorageError:
        return 0
