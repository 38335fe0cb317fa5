"""Find the size and age of a log that is not open, from the names and sizes of its files.

A broker with many partitions opens only the logs in use. For closed logs, this module finds sizes and ages
with a directory listing and the last entry of one time index.
"""

from __future__ import annotations

import os
from struct import Struct

from penstock.errors import StorageError
from penstock.log.directory.files import storage
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.segment_files import SUFFIX_TIME_INDEX, segment_path

_TIME_ENTRY = Struct(">qi")


def size_of(directory: str) -> int:
    """Return the total bytes of the `.log` files in a partition's directory.

    Raises:
        StorageError: the directory cannot be read.
    """
    return sum(_sizes(directory).values())


def may_be_due(directory: str, retention_ms: int, retention_bytes: int, now_ms: int) -> bool:
    """Return True if retention may have a segment to delete, because of its age or the log's size.

    A limit of -1 means no limit. False is certain. True is not, because a time index may lag behind its log.

    Raises:
        StorageError: the directory cannot be read.
    """
    sizes = _sizes(directory)
    if not sizes:
        return False
    oldest = min(sizes)
    if not sizes[oldest]:
        return False
    if 0 <= retention_bytes <= sum(sizes.values()) - sizes[oldest]:
        return True
    return 0 <= retention_ms < now_ms - _newest_ms(directory, oldest)


def _sizes(directory: str) -> dict[int, int]:
    """Return the size of each segment by its base offset, without segments deleted meanwhile."""
    with storage("read", directory):
        bases = segments_in(os.listdir(directory))
        sizes = {}
        for base in bases:
            try:
                sizes[base] = os.stat(segment_path(directory, base)).st_size
            except FileNotFoundError:
                continue
    return sizes


def _newest_ms(directory: str, base: int) -> int:
    """Return the greatest timestamp in a segment's time index, or else its log's modification time."""
    try:
        with open(segment_path(directory, base, SUFFIX_TIME_INDEX), "rb") as file:
            data = file.read().rstrip(b"\0")
    except OSError:
        data = b""
    entries = -(-len(data) // _TIME_ENTRY.size)
    if entries:
        start = (entries - 1) * _TIME_ENTRY.size
        timestamp, _ = _TIME_ENTRY.unpack(data[start:].ljust(_TIME_ENTRY.size, b"\0"))
        if timestamp >= 0:
            return int(timestamp)
    path = segment_path(directory, base)
    try:
        return int(os.stat(path).st_mtime * 1000)
    except OSError as error:
        raise StorageError(f"{path} cannot be looked at: {error.strerror}") from error
