"""Finds missing files in a data directory when a broker starts, without reading the logs.

For each partition, the names and the ends of its segments are compared with the checkpoints. The check only
reads, and may run while a broker uses the directory. Damage inside a segment is found when the segment is
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from penstock.errors import StorageError
from penstock.log.contract import LogConfig
from penstock.log.directory.checkpoint import LEADER_EPOCHS, read_checkpoint
from penstock.log.directory.files import storage
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.segment import FileSegment
from penstock.log.segments.segment_files import SUFFIX_CLEANED, SUFFIX_SWAP


class Noted(NamedTuple):
    """The offsets of one partition that the checkpoint files of a data directory contain."""

    recovery_point: int = 0
    """The offset up to which the log was flushed to disk."""
    start_offset: int = 0
    cleaned_to: int = 0
    """The offset up to which the log was compacted: below it, offsets may be missing."""


def problems_of(directory: str, noted: Noted) -> list[str]:
    """Return a message for each missing file or batch in a partition's directory.

    A problem counts only if a second check finds it too, because the broker may have changed files meanwhile.
    """
    found = list(_problems(directory, noted))
    if not found:
        return []
    again = set(_problems(directory, noted))
    return [problem for problem in found if problem in again]


def _problems(directory: str, noted: Noted) -> Iterator[str]:
    try:
        with storage("read", directory):
            names = os.listdir(directory)
        if any(name.endswith((SUFFIX_CLEANED, SUFFIX_SWAP)) for name in names):
            return  # compaction is under way, or recovery will finish it
        bases = segments_in(names)
        if not bases:
            if noted.recovery_point > noted.start_offset:
                yield f"{directory} holds no segments, but had some up to offset {noted.recovery_point - 1}"
            return
        began = _first_of_epochs(directory)
        begins = max(began, noted.start_offset)
        if began >= 0 and bases[0] > begins:
            yield f"the segments with offsets {begins} to {bases[0] - 1} of {directory} are missing"
        for base, following in pairwise(bases):
            yield from _problem_behind(directory, base, following, noted.cleaned_to)
        yield from _problem_at_end(directory, bases[-1], noted.recovery_point)
    except StorageError as error:
        if not isinstance(error.__cause__, FileNotFoundError):  # retention or a deletion was faster
            yield str(error)


def _first_of_epochs(directory: str) -> int:
    """Return the first offset of the oldest leader epoch, or -1 if unknown.

    Deleting records raises this offset.
    """
    try:
        entries = read_checkpoint(f"{directory}/{LEADER_EPOCHS}", 2)
        return int(entries[0][1]) if entries else -1
    except (StorageError, ValueError):
        return -1


def _problem_behind(directory: str, base: int, following: int, cleaned_to: int) -> Iterator[str]:
    segment = FileSegment.existing(directory, base, LogConfig(), following, writable=False)
    if following <= cleaned_to:
        segment.allow_gap()
    segment.whole_bytes()
    if segment.damage is not None:
        yield str(segment.damage[1])


def _problem_at_end(directory: str, base: int, recovery_point: int) -> Iterator[str]:
    segment = FileSegment.existing(directory, base, LogConfig(), -1, writable=False)
    segment.unseal()
    if segment.end_offset < recovery_point:
        yield (
            f"the log in {directory} ends at offset {segment.end_offset}, but had been on the disk up to "
            f"{recovery_point}: its last segment is missing or cut"
        )
