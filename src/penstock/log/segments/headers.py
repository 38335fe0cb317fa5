"""Read the batch headers in a partition's directory, in any state, also while another process writes.

Producer state is rebuilt from them before the log itself is opened. The module only reads: nothing is locked,
repaired or held open. Damage is logged, and the other headers of the damaged segment are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from penstock.common import operating_system
from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.directory.files import open_file, storage
from penstock.log.segments.index import OffsetIndex, last_entry_in
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.segment_files import SUFFIX_INDEX, SUFFIX_LOG, SUFFIX_SWAP, segment_path
from penstock.log.walk import HEAD_BYTES, BatchEntry, fetch_file, walk
from penstock.records.format.batch_header import HEADER_BYTES, BatchHeader, read_header

logger = logger_named("penstock.log")


def headers_behind(directory: str, offset: int = 0) -> Iterator[tuple[str, BatchEntry, BatchHeader]]:
    """Yield (path, entry, header) of every batch of magic 2 whose last offset is `offset` or later.

    Raises:
        StorageError: the directory or a file cannot be read.
    """
    with storage("read", directory):
        names = os.listdir(directory)
    bases = segments_in(names)
    first = max((base for base in bases if base <= offset), default=-1)
    for suffix in ("", SUFFIX_SWAP):
        for base in segments_in(names, SUFFIX_LOG + suffix):
            if base >= first:
                yield from _headers_in(directory, base, suffix, offset)


def _headers_in(
    directory: str, base: int, suffix: str, offset: int
) -> Iterator[tuple[str, BatchEntry, BatchHeader]]:
    path = segment_path(directory, base, SUFFIX_LOG + suffix)
    try:
        file = open_file(path, writable=False)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return  # retention or compaction has just taken it away
        raise
    fetch = fetch_file(file)
    try:
        with storage("read", path):
            size = os.fstat(file.fileno()).st_size
            start = _place_of(segment_path(directory, base, SUFFIX_INDEX + suffix), base, offset, size)
            if start and not _begins_batch(file.fileno(), start, base, offset):
                start = 0
            for entry in walk(fetch, start, size):
                if entry.magic == 2 and entry.last_offset >= offset:
                    yield path, entry, read_header(fetch(entry.position, HEADER_BYTES))
    except CorruptRecordError as error:
        logger.warning("%s is damaged: %s; what follows in it is not looked at", path, error)


def _place_of(index_path: str, base: int, offset: int, size: int) -> int:
    """Return the position in the last index entry up to `offset`, or 0 if there is none.

    The position is a byte in the `.log` file.
    """
    if offset <= base:
        return 0
    last = last_entry_in(index_path)
    if last is not None and base + last[0] < offset and last[1] < size:
        return last[1]
    try:
        index = OffsetIndex.load(index_path, base, size)
    except StorageError:
        return 0
    entry_index = index.place_of(offset)
    return index.positions[entry_index] if entry_index >= 0 else 0


def _begins_batch(fd: int, position: int, base: int, offset: int) -> bool:
    """Return True if a batch with a base offset from `base` to `offset` begins at `position`."""
    head = operating_system.pread(fd, HEAD_BYTES, position)
    try:
        entry = next(walk(lambda at, size: head[at : at + size], 0, 1 << 62, HEAD_BYTES), None)
    except CorruptRecordError:
        return False
    return entry is not None and base <= entry.base_offset <= offset
