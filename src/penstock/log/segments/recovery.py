"""Open the segments in a partition's directory, after a clean stop or a crash.

After a clean stop the files are used as they are; only the end of the last segment is checked. After a crash,
every batch from the recovery point on is checked. The log is truncated before the first batch that is
damaged, incomplete or missing, and later segments are removed, because readers must not skip a gap. The
removed parts are logged.

Kafka's temporary files are treated as Kafka treats them: `.deleted` and `.cleaned` are removed, `.swap` (the
result of a compaction whose replacement was interrupted) replaces the segments that it covers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.contract import NEVER, RELATIVE_OFFSET_MAX, LogConfig
from penstock.log.directory.files import open_file, remove_file, storage
from penstock.log.epochs import LeaderEpochs
from penstock.log.segments.segment import FileSegment
from penstock.log.segments.segment_files import (
    SUFFIX_CLEANED,
    SUFFIX_DELETED,
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_SWAP,
    SUFFIX_TIME_INDEX,
    segment_path,
)
from penstock.log.walk import fetch_file, walk_checked

logger = logger_named("penstock.log")


class Recovery(NamedTuple):
    """The report of a log's recovery: segments checked, bytes cut, segments removed, and the reason."""

    segments_checked: int = 0
    """The number of segments in which every batch was checked."""
    bytes_cut: int = 0
    """The number of bytes removed from the end of the damaged segment."""
    segments_dropped: int = 0
    """The number of segments removed because they came after the truncated segment."""
    reason: str = ""
    """The reason why the log was truncated; empty if it was not."""


def base_offset_of(name: str, suffix: str) -> int | None:
    """Return the base offset in the name of a segment's file, or None for any other name."""
    digits = name.removesuffix(suffix)
    if len(digits) != 20 or digits == name or not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits)


def segments_in(names: Iterable[str], suffix: str = SUFFIX_LOG) -> list[int]:
    """Return the base offsets, in order, of the segments among the file names `names`."""
    return sorted(base for name in names if (base := base_offset_of(name, suffix)) is not None)


def tidy(directory: str) -> list[int]:
    """Finish or undo an interrupted compaction or deletion; return the base offsets of the segments.

    Raises:
        StorageError: the directory cannot be read or changed.
    """
    with storage("read", directory):
        names = set(os.listdir(directory))
    cleaned = [name for name in names if name.endswith(SUFFIX_CLEANED)]
    swaps = {name for name in names if name.endswith(SUFFIX_SWAP)}
    # Results at or past one that was not complete belong to the same interrupted work: they go too.
    undone = min((int(name[:20]) for name in cleaned if name[:20].isdigit()), default=None)
    void = {name for name in swaps if undone is not None and name[:20].isdigit() and int(name[:20]) >= undone}
    for name in {*cleaned, *void, *(name for name in names if name.endswith(SUFFIX_DELETED))}:
        remove_file(f"{directory}/{name}")
    swaps -= void
    if swaps:
        _put_in_place(directory, swaps, names)
        with storage("read", directory):
            names = set(os.listdir(directory))
    bases = segments_in(names)
    for suffix in (SUFFIX_INDEX, SUFFIX_TIME_INDEX):
        for orphan in set(segments_in(names, suffix)).difference(bases):
            remove_file(segment_path(directory, orphan, suffix))
    return bases


def _put_in_place(directory: str, swaps: set[str], names: set[str]) -> None:
    """Put compacted `.swap` files in place: remove the segments that they replace, then rename the files.

    A `.swap` index without a `.swap` log is removed, and so is the index that it would have replaced, because
    it is unknown which of the two fits the log. Both can be rebuilt from the log.

    Raises:
        StorageError: a file cannot be changed; or a `.swap` is damaged, and may be the only copy of its
            batches.
    """
    logs = {name[:20] for name in swaps if name.endswith(SUFFIX_LOG + SUFFIX_SWAP)}
    for name in [name for name in swaps if name[:20] not in logs]:
        swaps.discard(name)
        remove_file(f"{directory}/{name}")
        remove_file(f"{directory}/{name.removesuffix(SUFFIX_SWAP)}")
    for start in segments_in(swaps, SUFFIX_LOG + SUFFIX_SWAP):
        end = _end_offset_of(segment_path(directory, start, SUFFIX_LOG + SUFFIX_SWAP), start)
        for base in segments_in(names):
            if start <= base < end:
                logger.warning("removing segment %d of %s: a compacted one replaces it", base, directory)
                for suffix in (SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX):
                    remove_file(segment_path(directory, base, suffix))
    for name in sorted(swaps):
        path = f"{directory}/{name}"
        with storage("rename", path):
            os.replace(path, path.removesuffix(SUFFIX_SWAP))


def _end_offset_of(path: str, base_offset: int) -> int:
    """Return the offset after the last batch in a `.log` file.

    Raises:
        StorageError: the file does not consist of complete batches with right checksums.
    """
    file = open_file(path, writable=False)
    end, position = base_offset, 0
    with storage("read", path):
        size = os.fstat(file.fileno()).st_size
        try:
            for entry in walk_checked(fetch_file(file), size, base_offset):
                end, position = entry.last_offset + 1, entry.position + entry.size
            if position != size:
                raise CorruptRecordError(f"no whole batch at position {position}")
        except CorruptRecordError as error:
            raise StorageError(
                f"{path} is damaged: {error}; it is what compaction left, and was to replace the "
                f"segments from offset {base_offset} on: restore it from a copy, or remove it where "
                "those are still there"
            ) from error
    return end


def open_segments(
    directory: str,
    config: LogConfig,
    epochs: LeaderEpochs,
    *,
    now_ms: int,
    clean_shutdown: bool,
    recovery_point: int,
    start_offset: int,
) -> tuple[list[FileSegment], Recovery]:
    """Open and recover the segments of a directory, the last one for appends; return them and a report.

    A directory without segments gets an empty segment that begins with `start_offset`. A log that ends before
    `start_offset` loses its segments and gets an empty one, too.

    Raises:
        StorageError: a file cannot be read or changed.
    """
    bases = tidy(directory)
    segments = [
        FileSegment.existing(directory, base, config, following)
        for base, following in zip(bases, [*bases[1:], -1], strict=False)
    ]
    found = Recovery()
    if segments:
        suspects = _suspects(segments, clean_shutdown, recovery_point)
        found = _recover(directory, segments, suspects, epochs, NEVER if config.compacted else recovery_point)
        if segments[-1].end_offset < start_offset:
            logger.warning(
                "the log in %s ends at %d, before its start %d: it begins anew",
                directory,
                segments[-1].end_offset,
                start_offset,
            )
            for segment in segments:
                segment.delete()
            segments = []
    if not segments:
        segments = [FileSegment.create(directory, start_offset, config, now_ms)]
    return segments, found


def _suspects(segments: list[FileSegment], clean_shutdown: bool, recovery_point: int) -> int:
    """Return the index of the first segment whose batches must be checked, or the number of segments."""
    if not clean_shutdown:
        return max((n for n, s in enumerate(segments) if s.base_offset <= recovery_point), default=0)
    try:
        sound = segments[-1].unseal()
    except StorageError as error:
        logger.warning("%s", error)
        sound = False
    return len(segments) - (0 if sound else 1)


def _recover(
    directory: str, segments: list[FileSegment], first: int, epochs: LeaderEpochs, whole_from: int
) -> Recovery:
    """Check the segments from index `first` on; remove all segments after damage or a gap.

    From the offset `whole_from` on, a gap between two segments means lost batches, unless it exceeds the
    range of a segment's offsets. After a machine failure, a segment may exist while an earlier one has lost
    its last batches, even at a batch boundary.
    """
    for number in range(first, len(segments)):
        segment = segments[number]
        cut, reason, met = segment.recover()
        for epoch, offset in met:
            if epoch > epochs.latest:
                epochs.assign(epoch, offset)
        behind = segments[number + 1 :]
        if (
            behind
            and not cut
            and whole_from <= segment.end_offset < behind[0].base_offset
            and behind[0].base_offset - segment.base_offset <= RELATIVE_OFFSET_MAX
        ):
            reason = f"the batches up to offset {behind[0].base_offset} are missing"
        if reason:
            del segments[number + 1 :]
            for dropped in behind:
                dropped.delete()
            logger.warning(
                "cut %d bytes off the log in %s, which ends at %d now, and removed %d later segments: %s",
                cut,
                directory,
                segment.end_offset,
                len(behind),
                reason,
            )
            return Recovery(number + 1 - first, cut, len(behind), reason)
        if number + 1 < len(segments):
            segment.seal(segments[number + 1].base_offset)
    return Recovery(len(segments) - first)
