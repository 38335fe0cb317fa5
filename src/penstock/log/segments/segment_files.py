"""The file names of a segment, their removal, and a reader of a sealed segment for any thread."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.common import operating_system
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.contract import DamagedLogError
from penstock.log.directory.files import OpenFile, remove_file, storage, storage_error
from penstock.log.walk import BatchEntry, fetch_file, walk_whole

SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX = ".log", ".index", ".timeindex"
SUFFIX_DELETED, SUFFIX_CLEANED, SUFFIX_SWAP = ".deleted", ".cleaned", ".swap"
"""Kafka's suffixes of segment files that are to be deleted, that compaction is writing, and that are to
replace older ones."""

SUFFIXES_OF_OTHERS = (".txnindex", ".snapshot")
"""The suffixes of further files that Kafka keeps for a segment. They are removed with the segment, and
never read."""

CURE = (
    "what lies before and after can be read; to get past it, restore the file from a copy, or delete the "
    "records up to the next segment (DeleteRecords)"
)
"""Advice for the user, which ends error messages about a damaged segment."""


def segment_path(directory: str, base_offset: int, suffix: str = SUFFIX_LOG) -> str:
    """Return the path of a segment's file: the base offset in 20 digits, and a suffix."""
    return f"{directory}/{base_offset:020d}{suffix}"


def remove_segment_files(directory: str, base_offset: int, suffix: str = "") -> None:
    """Delete the log and index files of a segment, with `suffix` appended to their usual names.

    Raises:
        StorageError: a file cannot be deleted.
    """
    for kind in (SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX):
        remove_file(segment_path(directory, base_offset, kind + suffix))


class FileSource:
    """A reader of the batches of a sealed segment, which keeps the segment's file open."""

    def __init__(self, file: OpenFile, size: int) -> None:
        self._file = file
        self._size = size

    def entries(self) -> Iterator[BatchEntry]:
        path = str(self._file.name)
        try:
            yield from walk_whole(fetch_file(self._file), 0, self._size)
        except CorruptRecordError as error:
            raise DamagedLogError(f"{path} is damaged: {error}; {CURE}") from error
        except StorageError:
            raise
        except OSError as error:
            raise storage_error("read", path, error) from error

    def load(self, position: int, size: int) -> bytes:
        with storage("read", str(self._file.name)):
            return operating_system.pread(self._file.fileno(), size, position)
