"""A segment that compaction writes beside others, and that takes their place once it is whole.

Its files end in `.cleaned` while it is written, in `.swap` once it counts, and then have their usual names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from penstock.log.contract import LogConfig, Segment
from penstock.log.directory.files import storage, sync_directory
from penstock.log.segments.segment import FileSegment
from penstock.log.segments.segment_files import (
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_SWAP,
    SUFFIX_TIME_INDEX,
    remove_segment_files,
    segment_path,
)


class CompactedSegment(FileSegment):
    """What is left of some segments: `create`, fill it, then `complete`, `take_place_of`, `settle`."""

    __slots__ = ("_replaced",)

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
        super().__init__(directory, base_offset, config, now_ms, suffix=suffix, writable=writable)
        self._replaced: list[FileSegment] = []
        """Segments that this one replaces, as long as their files may still be there."""

    def complete(self, last: Segment) -> None:
        self._indexes()
        file = self.file  # sealing lets go of it
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
            # It may be gone: an earlier attempt came so far; or it can be rebuilt from the log.
            with storage("rename", path), suppress(FileNotFoundError):
                os.replace(path, target)
        with storage("rename", self.path):
            os.replace(self.path, log_path)
            self.path, self.suffix = log_path, suffix
            indexes[0].path, indexes[1].path = index_paths

    def delete(self) -> None:
        for segment in self._replaced:
            segment.remove_files()
        super().delete()
