"""Compact a log: keep the last record of every key, and remove the records before it.

A compaction has three steps, so that the thread that serves readers never waits. `plan` decides if compaction
is worth its cost. `Compaction.run`, in any thread, reads sealed segments through files of its own and writes
new ones beside them. `Compaction.finish` replaces the old segments by the new ones, if the old ones have not
changed meanwhile; readers may continue to read the old ones.

Only a new segment that is complete, flushed to disk and read back replaces an old one, and only when all new
segments of one compaction are complete: if `run` ends early because of any error, the log is unchanged. A
batch with a wrong checksum, or a segment that does not end with a whole batch, ends the compaction. A batch
with a valid checksum whose records cannot be parsed came in this form from a client. It is kept unchanged,
and its keys cause no removals.

Compaction never touches the last segment, records younger than `min.compaction.lag.ms`, or the segments from
the first open transaction on. Names and order of the temporary files are Kafka's: `.cleaned` while a segment
is written, `.swap` once it is complete and on the disk; after a crash `recovery.tidy` finishes or undoes the
replacement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import CorruptRecordError, StorageError
from penstock.log.compaction.batch_cleaning import WhenEmpty, clean, keys_of
from penstock.log.compaction.transactions import Aborted, BatchFate, TransactionsOfPass
from penstock.log.contract import NEVER, RELATIVE_OFFSET_MAX
from penstock.log.walk import has_valid_checksum
from penstock.records.format.batch_header import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, read_header
from penstock.records.format.key_scan import scan_keys
from penstock.records.kernels.key_scanner import Scanner, fast_scanner

if TYPE_CHECKING:
    from penstock.log.contract import Log, Segment, SegmentSource
    from penstock.log.walk import BatchEntry

logger = logger_named("penstock.log")

FAST_FROM_BYTES = 64 << 20
"""The minimum log size in bytes for the compiled compaction loop, which takes 1 s and 100 MB to load."""

KEYS_MAX = 5_000_000
"""The maximum number of different keys in one compaction. Further keys are left to the next compaction."""


class CompactionPolicy(NamedTuple):
    """The settings of a topic for compaction, with Kafka's defaults."""

    min_lag_ms: int = 0
    """`min.compaction.lag.ms`: the minimum age of records that are compacted, in ms."""
    max_lag_ms: int = NEVER
    """`max.compaction.lag.ms`: the age of an uncompacted record, in ms, above which its log is always
    compacted."""
    delete_retention_ms: int = 24 * 3600 * 1000
    """`delete.retention.ms`: the time in ms for which tombstones are kept, so that consumers can read
    them."""
    min_dirty_ratio: float = 0.5
    """`min.cleanable.dirty.ratio`: the fraction of uncompacted bytes above which a log is compacted."""


class Dirt(NamedTuple):
    """The uncompacted part of a log: its offsets [start, end), and its fraction of the log's bytes."""

    start_offset: int
    end_offset: int
    ratio: float
    is_overdue: bool


class Kept(NamedTuple):
    """The producer and transaction state of a log, because of which compaction must keep some batches.

    The last batch of each listed producer id is kept, if necessary without records.
    """

    last_offsets: Mapping[int, int] = MappingProxyType({})
    """A dict from producer id to the offset of its last batch. That batch has the producer's sequence
    numbers.
    """
    marker_epochs: Mapping[int, int] = MappingProxyType({})
    """A dict from producer id to its epoch, for producers whose last batch is a marker."""
    aborted: Sequence[Aborted] = ()
    """The aborted transactions of the log."""
    stable_offset: int = NEVER
    """The last stable offset; `NEVER` if no transaction can be open."""


NOTHING_KEPT = Kept()


def find_dirt(log: Log, policy: CompactionPolicy, now_ms: int, stable_offset: int = NEVER) -> Dirt | None:
    """Return the part of a log that is not compacted yet and may be compacted; None if there is none."""
    first = max(log.cleaned_to, log.start_offset)
    sealed = log.segments[:-1]
    dirty = []
    for segment in sealed:
        if segment.end_offset <= first:
            continue
        if segment.end_offset > stable_offset:
            break
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
    log: Log,
    policy: CompactionPolicy,
    now_ms: int,
    *,
    kept: Kept = NOTHING_KEPT,
    keys_max: int = KEYS_MAX,
) -> Compaction | None:
    """Return the compaction to run for a log, or None if compaction is not worth its cost.

    Raises:
        StorageError: a segment cannot be opened, or a file operation of an earlier compaction fails again.
    """
    log.settle()
    dirt = find_dirt(log, policy, now_ms, kept.stable_offset)
    if dirt is None or not (dirt.ratio > policy.min_dirty_ratio or dirt.is_overdue):
        return None
    return Compaction(log, dirt, policy, now_ms, kept, keys_max)


class Compaction:
    """One compaction of one log; the caller calls `run`, then `finish` or `abandon`."""

    def __init__(
        self,
        log: Log,
        dirt: Dirt,
        policy: CompactionPolicy,
        now_ms: int,
        kept: Kept,
        keys_max: int,
    ) -> None:
        self.log = log
        self._dirt = dirt
        self._policy = policy
        self._now_ms = now_ms
        self._kept = kept
        self._transactions = TransactionsOfPass(kept.aborted, 0)
        self._keys_max = keys_max
        segments = [segment for segment in log.segments[:-1] if segment.end_offset <= dirt.end_offset]
        self._sources = [(segment, segment.source()) for segment in segments]
        self._sizes = {segment.base_offset: segment.size for segment in segments}
        self._made: list[tuple[list[Segment], Segment]] = []
        self._latest: dict[bytes, int] = {}
        self._map_end = dirt.start_offset
        self._scan: Scanner = scan_keys
        self._unreadable: dict[int, str] = {}
        """A dict from base offset to the reason why a batch is kept uncompacted: its records cannot be
        parsed."""
        self.is_complete = False
        """True after `run` has finished: every new segment is complete and on the disk."""
        self.bytes_before = sum(segment.size for segment in segments)
        self.bytes_after = self.bytes_before

    # --- anywhere ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Read the old segments and write new ones, in any thread, while the log is in use.

        Stops early if the log is closed meanwhile. Afterwards `is_complete` is True if `finish` may use the
        new segments; otherwise they are removed.

        Raises:
            StorageError: a file cannot be written, or a segment is damaged.
        """
        try:
            if self.bytes_before >= FAST_FROM_BYTES:
                self._scan = fast_scanner()
            self._find_latest()
            for group in self._groups():
                self._rewrite(group)
            self._report_unreadable()
            self.is_complete = not self.log.is_closed
        except StorageError:
            if not self.log.is_closed:  # its directory may be gone
                raise
        finally:
            if not self.is_complete:
                self.abandon()

    def _report_unreadable(self) -> None:
        if self._unreadable:
            offset, reason = min(self._unreadable.items())
            logger.warning(
                "%r keeps %d batches uncompacted whose records make no sense, the first at offset %d: %s",
                self.log,
                len(self._unreadable),
                offset,
                reason,
            )

    def _find_latest(self) -> None:
        latest = self._latest
        transactions = TransactionsOfPass(self._kept.aborted, self._dirt.start_offset)
        for segment, source in self._sources:
            if segment.end_offset <= self._dirt.start_offset:
                continue
            for entry in self._entries(segment, source):
                if entry.last_offset < self._dirt.start_offset:
                    continue
                if len(latest) >= self._keys_max:
                    return
                batch = self._load(source, entry)
                if entry.attributes & TRANSACTIONAL_BIT:
                    producer_id = read_header(batch).producer_id
                    if transactions.abort_of(producer_id, entry.base_offset) is not None:
                        continue
                try:
                    keys = keys_of(batch, entry, self._scan)
                except CorruptRecordError as error:
                    self._unreadable[entry.base_offset] = str(error)
                else:
                    latest.update(keys)  # later entries overrule earlier ones
                self._map_end = entry.last_offset + 1
            self._map_end = segment.end_offset

    def _entries(self, segment: Segment, source: SegmentSource) -> Iterator[BatchEntry]:
        """Yield the batches of a segment; stop early if the log is closed meanwhile.

        Raises:
            StorageError: the segment does not consist of whole batches in order.
        """
        next_offset = segment.base_offset
        for entry in source.entries():
            if self.log.is_closed:
                return
            if not next_offset <= entry.base_offset <= entry.last_offset < segment.end_offset:
                raise StorageError(
                    f"{self.log!r} is damaged: the batch at position {entry.position} of segment "
                    f"{segment.base_offset} has offsets {entry.base_offset} to {entry.last_offset}"
                )
            next_offset = entry.last_offset + 1
            yield entry

    def _load(self, source: SegmentSource, entry: BatchEntry) -> bytes:
        """Read a batch of the log and check its checksum; return the batch's bytes.

        Raises:
            StorageError: the batch cannot be read, or fails its checksum.
        """
        batch = source.load(entry.position, entry.size)
        if len(batch) != entry.size or not has_valid_checksum(batch, 0, entry):
            raise StorageError(
                f"{self.log!r} is damaged: the batch with offsets {entry.base_offset} to "
                f"{entry.last_offset} fails its checksum"
            )
        return batch

    def _groups(self) -> Iterator[list[tuple[Segment, SegmentSource]]]:
        """Yield groups of consecutive segments; each group becomes one segment, to avoid tiny files."""
        group: list[tuple[Segment, SegmentSource]] = []
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

    def _rewrite(self, group: Sequence[tuple[Segment, SegmentSource]]) -> None:
        """Compact the segments `group` into one new segment, unless nothing would change."""
        segments = [segment for segment, _ in group]
        target = self.log.new_compacted(segments[0])
        self._made.append((segments, target))
        changed = len(segments) > 1
        batches = 0
        for segment, source in group:
            last_of_group = _last_offset(source) if segment is segments[-1] else -1
            for entry in self._entries(segment, source):
                batch = self._load(source, entry)
                left = self._clean(batch, entry, is_last=entry.last_offset == last_of_group)
                changed |= left is not batch
                if left is not None:
                    latest_ms = read_header(left).max_timestamp if entry.magic == 2 else entry.max_timestamp
                    target.append(left, len(left), entry.last_offset, latest_ms, segment.last_append_ms)
                    batches += 1
        if self.log.is_closed:
            return
        if changed:
            target.complete(segments[-1])
            self._verify(target, batches)
        else:
            self._made.pop()
            target.delete()

    def _verify(self, target: Segment, batches: int) -> None:
        """Read a new segment back from disk and check it.

        Raises:
            StorageError: the segment does not have `batches` whole batches in order.
        """
        source = target.source()
        found = 0
        for entry in self._entries(target, source):
            self._load(source, entry)
            found += 1
        if found != batches and not self.log.is_closed:
            raise StorageError(
                f"{self.log!r} cannot be compacted: {batches} batches were written, {found} can be read back"
            )

    def _clean(self, batch: bytes, entry: BatchEntry, *, is_last: bool) -> bytes | None:
        keep, fate = is_last, BatchFate.BY_KEY
        if entry.magic == 2:
            header = read_header(batch)
            if header.producer_id >= 0:
                keep = keep or self._is_needed(header)
            if entry.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
                fate = self._transactions.fate_of(batch, header)
        try:
            return clean(
                batch,
                entry,
                self._latest,
                up_to_offset=self._map_end,
                now_ms=self._now_ms,
                delete_retention_ms=self._policy.delete_retention_ms,
                when_empty=WhenEmpty.KEEP if keep else WhenEmpty.DROP,
                fate=fate,
                scan=self._scan,
            )
        except CorruptRecordError as error:
            self._unreadable[entry.base_offset] = str(error)
            return batch

    def _is_needed(self, header: BatchHeader) -> bool:
        """Return True if a batch holds the last sequence numbers or the epoch of a live producer id."""
        last_offset = self._kept.last_offsets.get(header.producer_id)
        if last_offset is not None:
            return last_offset == header.last_offset
        return header.is_control and self._kept.marker_epochs.get(header.producer_id) == header.producer_epoch

    @property
    def spent_markers(self) -> set[int]:
        """The offsets of abort markers whose transactions no longer have a batch in the log."""
        return self._transactions.spent

    # --- in the log's own thread --------------------------------------------------------------------

    def finish(self) -> bool:
        """Replace the old segments by the new ones; return True if all of them were replaced.

        Nothing is replaced if `run` did not complete.

        Raises:
            StorageError: a file cannot be renamed or removed. New segments that have already replaced old
            ones are valid and stay; the other new ones are removed.
        """
        log = self.log
        done = self.is_complete and not log.is_closed
        try:
            while self._made and self.is_complete and not log.is_closed:
                old, new = self._made[0]
                as_before = all(self._sizes[segment.base_offset] == segment.size for segment in old)
                if not (as_before and log.replace(old, new)):
                    new.delete()
                    done = False
                else:
                    self.bytes_after += new.size - sum(segment.size for segment in old)
                del self._made[0]
        except BaseException:
            # The first may be in place by now; if it is not, `replace` has removed it.
            del self._made[0]
            raise
        finally:
            self.abandon()
        if done:
            log.cleaned_to = max(log.cleaned_to, self._map_end)
        return done

    def abandon(self) -> None:
        """Remove the new segments that have not replaced old ones."""
        self.is_complete = False
        while self._made:
            _, new = self._made.pop()
            try:
                new.delete()
            except StorageError as error:
                logger.warning("%s; the next start removes it", error)


def _last_offset(source: SegmentSource) -> int:
    return max((entry.last_offset for entry in source.entries()), default=-1)


def compact(
    log: Log,
    policy: CompactionPolicy | None = None,
    *,
    now_ms: int,
    kept: Kept = NOTHING_KEPT,
) -> bool:
    """Compact a log in this thread if it is worth the cost; return True if old segments were replaced.

    Raises:
        StorageError: for the same reasons as in `Compaction.run` and `finish`.
    """
    work = plan(log, policy or CompactionPolicy(), now_ms, kept=kept)
    if work is None:
        return False
    work.run()
    return work.finish()
