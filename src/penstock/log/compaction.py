"""Compaction of a log: for every key the last record stays, the ones before it go.

Three steps, so that the thread that serves readers is held up by none of them. `plan` looks at the log and
decides what is worth doing. `Compaction.run`, in any thread, reads sealed segments through files of its own
and writes new ones beside them. `Compaction.finish` puts those in place, if nothing else has happened to the
old ones meanwhile, which readers may go on reading.

The last segment is never touched, nor is what is younger than `min.compaction.lag.ms`. Names and order of
the temporary files are Kafka's: `.cleaned` while a segment is written, `.swap` once it is complete and on
the disk; whatever a crash leaves of that, `recovery.tidy` finishes or undoes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from logging import getLogger
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, StorageError
from penstock.log.cleaning import WhenEmpty, clean, keys_of
from penstock.log.contract import NEVER, RELATIVE_OFFSET_MAX
from penstock.records.batch import read_header
from penstock.records.key_scan import Scanner, fast_scanner, scan_keys

if TYPE_CHECKING:
    from penstock.log.segmented import Segment, SegmentedLog, Source
    from penstock.log.walk import Entry

logger = getLogger("penstock.log")

FAST_FROM_BYTES = 64 << 20
"""A log of this size is worth a compiled loop, which costs a second and 100 MB to load."""

KEYS_MAX = 5_000_000
"""Different keys that one compaction takes account of; with more, the next goes on where it stopped."""


class CompactionPolicy(NamedTuple):
    """The settings of a topic that compaction obeys, with Kafka's defaults."""

    min_lag_ms: int = 0
    """`min.compaction.lag.ms`: records stay untouched at least so long."""
    max_lag_ms: int = NEVER
    """`max.compaction.lag.ms`: and not longer than this, however few there are."""
    delete_retention_ms: int = 24 * 3600 * 1000
    """`delete.retention.ms`: how long tombstones can be read."""
    min_dirty_ratio: float = 0.5
    """`min.cleanable.dirty.ratio`: share of bytes not compacted yet that makes it worth the work."""


class Dirt(NamedTuple):
    """What of a log could be compacted: [start, end), as a share of all that would be read."""

    start_offset: int
    end_offset: int
    ratio: float
    is_overdue: bool


def find_dirt(log: SegmentedLog, policy: CompactionPolicy, now_ms: int) -> Dirt | None:
    """Return what of a log could be compacted; None if nothing."""
    first = max(log.cleaned_to, log.start_offset)
    sealed = log.segments[:-1]
    dirty = []
    for segment in sealed:
        if segment.end_offset <= first:
            continue
        if policy.min_lag_ms > 0 and segment.newest_ms > now_ms - policy.min_lag_ms:
            break
        dirty.append(segment)
    dirty_bytes = sum(segment.size for segment in dirty)
    if not dirty_bytes:
        return None
    end = dirty[-1].end_offset
    total_bytes = sum(segment.size for segment in sealed if segment.end_offset <= end)
    limit_ms = now_ms - max(policy.max_lag_ms, policy.min_lag_ms)
    overdue = limit_ms > 0 and min(segment.oldest_ms for segment in dirty) < limit_ms
    return Dirt(first, end, dirty_bytes / total_bytes, overdue)


def plan(
    log: SegmentedLog,
    policy: CompactionPolicy,
    now_ms: int,
    *,
    last_of_producers: Mapping[int, int] | None = None,
    keys_max: int = KEYS_MAX,
) -> Compaction | None:
    """Decide whether a log is worth compacting; return the work to be done, None if it is not.

    `last_of_producers` is the offset of the last batch of every producer id that is remembered.

    Raises:
        StorageError: a segment cannot be opened.
    """
    dirt = find_dirt(log, policy, now_ms)
    if dirt is None or not (dirt.ratio > policy.min_dirty_ratio or dirt.is_overdue):
        return None
    return Compaction(log, dirt, policy, now_ms, dict(last_of_producers or {}), keys_max)


class Compaction:
    """One compaction of one log, from plan to end."""

    def __init__(
        self,
        log: SegmentedLog,
        dirt: Dirt,
        policy: CompactionPolicy,
        now_ms: int,
        last_of_producers: Mapping[int, int],
        keys_max: int,
    ) -> None:
        self.log = log
        self._dirt = dirt
        self._policy = policy
        self._now_ms = now_ms
        self._last_of_producers = last_of_producers
        self._keys_max = keys_max
        segments = [segment for segment in log.segments[:-1] if segment.end_offset <= dirt.end_offset]
        self._sources = [(segment, segment.source()) for segment in segments]
        self._sizes = {segment.base_offset: segment.size for segment in segments}
        self._made: list[tuple[list[Segment], Segment]] = []
        self._latest: dict[bytes, int] = {}
        self._map_end = dirt.start_offset
        self._scan: Scanner = scan_keys
        self.bytes_before = sum(segment.size for segment in segments)
        self.bytes_after = self.bytes_before

    # --- anywhere ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Read what is old, write what is new. Touches nothing that the log's own thread uses.

        Stops half-way if the log is closed meanwhile; `finish` then does nothing.

        Raises:
            StorageError: the disk refuses, or a segment is damaged. What was written is removed.
        """
        if self.bytes_before >= FAST_FROM_BYTES:
            self._scan = fast_scanner()
        try:
            self._find_latest()
            for group in self._groups():
                self._rewrite(group)
        except (CorruptRecordError, StorageError) as error:
            self.abandon()
            if self.log.is_closed:
                return  # its directory may be gone
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{self.log!r} cannot be compacted: {error}") from error

    def _find_latest(self) -> None:
        latest = self._latest
        for segment, source in self._sources:
            if segment.end_offset <= self._dirt.start_offset:
                continue
            for entry in self._entries(source):
                if entry.last_offset < self._dirt.start_offset:
                    continue
                if len(latest) >= self._keys_max:
                    return
                # Later entries overrule earlier ones.
                latest.update(keys_of(source.load(entry.position, entry.size), entry, self._scan))
                self._map_end = entry.last_offset + 1
            self._map_end = segment.end_offset

    def _entries(self, source: Source) -> Iterator[Entry]:
        for entry in source.entries():
            if self.log.is_closed:
                return
            yield entry

    def _groups(self) -> Iterator[list[tuple[Segment, Source]]]:
        """Neighbouring segments that fit into one: what compaction leaves would be ever smaller files."""
        group: list[tuple[Segment, Source]] = []
        size = 0
        limit = min(self.log.config.segment_bytes, RELATIVE_OFFSET_MAX)
        for segment, source in self._sources:
            if segment.base_offset >= self._map_end:
                break
            span = segment.end_offset - 1 - group[0][0].base_offset if group else 0
            if group and (size + segment.size > limit or span > RELATIVE_OFFSET_MAX):
                yield group
                group, size = [], 0
            group.append((segment, source))
            size += segment.size
        if group:
            yield group

    def _rewrite(self, group: Sequence[tuple[Segment, Source]]) -> None:
        """Write one new segment for a group of old ones, if that changes anything."""
        segments = [segment for segment, _ in group]
        target = self.log.new_compacted(segments[0])
        self._made.append((segments, target))
        changed = len(segments) > 1
        for segment, source in group:
            last_of_group = _last_offset(source) if segment is segments[-1] else -1
            for entry in self._entries(source):
                batch = source.load(entry.position, entry.size)
                left = self._clean(batch, entry, is_last=entry.last_offset == last_of_group)
                changed |= left is not batch
                if left is not None:
                    latest_ms = read_header(left).max_timestamp if entry.magic == 2 else entry.max_timestamp
                    target.append(left, len(left), entry.last_offset, latest_ms, segment.last_append_ms)
        if self.log.is_closed:
            return
        if changed:
            target.complete(segments[-1])
        else:
            self._made.pop()
            target.delete()

    def _clean(self, batch: bytes, entry: Entry, *, is_last: bool) -> bytes | None:
        keep = is_last
        if not keep and self._last_of_producers and entry.magic == 2:
            producer_id = read_header(batch).producer_id
            keep = producer_id >= 0 and self._last_of_producers.get(producer_id) == entry.last_offset
        return clean(
            batch,
            entry,
            self._latest,
            up_to_offset=self._map_end,
            now_ms=self._now_ms,
            delete_retention_ms=self._policy.delete_retention_ms,
            when_empty=WhenEmpty.KEEP if keep else WhenEmpty.DROP,
            scan=self._scan,
        )

    # --- in the log's own thread --------------------------------------------------------------------

    def finish(self) -> bool:
        """Put the new segments in place; say whether all of them were.

        Raises:
            StorageError: the disk refuses. Whatever is in place by then is as good as what it replaced.
        """
        log = self.log
        if log.is_closed:
            self.abandon()
            return False
        made, self._made = self._made, []
        done = True
        for number, (old, new) in enumerate(made):
            try:
                as_before = all(self._sizes[segment.base_offset] == segment.size for segment in old)
                replaced = as_before and log.replace(old, new)
            except StorageError:
                self._made = made[number + 1 :]
                self.abandon()
                raise
            if not replaced:
                new.delete()
                done = False
                continue
            self.bytes_after += new.size - sum(segment.size for segment in old)
        if done:
            log.cleaned_to = max(log.cleaned_to, self._map_end)
        return done

    def abandon(self) -> None:
        """Remove what was written."""
        made, self._made = self._made, []
        for _, new in made:
            try:
                new.delete()
            except StorageError as error:
                logger.warning("%s; the next start removes it", error)


def _last_offset(source: Source) -> int:
    return max((entry.last_offset for entry in source.entries()), default=-1)


def compact(
    log: SegmentedLog,
    policy: CompactionPolicy | None = None,
    *,
    now_ms: int,
    last_of_producers: Mapping[int, int] | None = None,
) -> bool:
    """Compact a log here and now, if it is worth it; say whether it was.

    Raises:
        StorageError: as `Compaction.run` and `finish`.
    """
    work = plan(log, policy or CompactionPolicy(), now_ms, last_of_producers=last_of_producers)
    if work is None:
        return False
    work.run()
    return work.finish()
