"""One partition of one share group: the records in flight, their locks, and the changes to be stored.

The module does no I/O and reads no clock: the caller passes offsets of batches, and times in seconds of a
monotonic clock. The caller reads the log, and stores the results of `next_write`, one write at a time, so
that writes are stored in the order of events.

Invariants: a record has at most one owner, until its lock ends. A record whose acknowledgement is stored is
not delivered again. A record leaves the window only acknowledged or archived. The start offset only grows.

Source: KIP-932; KIP-1206 for the limit of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from penstock.broker.coordination.timers import NEVER
from penstock.broker.sharing.acknowledgements import Acknowledged, AckType
from penstock.broker.sharing.dead_records import EXCEEDED, REJECTED, DeadRange
from penstock.broker.sharing.runs import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DONE,
    DeliveryRun,
    RecordState,
    RunWindow,
)
from penstock.broker.sharing.settings import SharingSettings
from penstock.protocol.error_codes import ErrorCode, error_for


class Stored(NamedTuple):
    """A range of offsets with its delivery state and count, as the share coordinator stores them."""

    first: int
    last: int
    state: RecordState
    deliveries: int


class FoundBatch(NamedTuple):
    """The offsets of a batch that was read from the log."""

    first: int
    last: int
    is_dropped: bool = False
    """True if the records are not delivered, because they were aborted and the group is `read_committed`."""


class Acquired(NamedTuple):
    """A range of records that a member has acquired, and their delivery count including this delivery."""

    first: int
    last: int
    deliveries: int


class DeliveryChange:
    """New states of records that are stored together. When `settled` is True, `error_code` has the result."""

    __slots__ = ("dead", "error_code", "is_applied", "settled", "states")

    def __init__(self, *, is_applied: bool) -> None:
        self.states: list[Stored] = []
        self.dead: list[DeadRange] = []
        """The records of this change that get dead letters."""
        self.is_applied = is_applied
        """True if the change has taken effect already, and is kept even if it cannot be stored.

        Otherwise the change takes effect when it has been stored.
        """
        self.settled = False
        self.error_code = 0


class Write(NamedTuple):
    """A write of a share partition's state: the changes, and the new start offset after these."""

    start_offset: int
    done_count: int
    """The number of acknowledged and archived offsets after `start_offset`."""
    states: list[Stored]
    changes: list[DeliveryChange]


class SharePartition:
    """The records that one share group has in flight in one partition.

    `stored` are the ranges that an earlier leader has stored. The stored state has no entry for records
    between these ranges: they were never delivered, or their locks ended with the earlier leader.
    """

    def __init__(self, start_offset: int, stored: Iterable[Stored] = (), *, is_stored: bool = True) -> None:
        self.window = RunWindow(start_offset)
        self._queue: list[DeliveryChange] = []
        self._writing: Write | None = None
        self._free_from = start_offset
        """A lower bound of the offsets that can be acquired; below it, none is free."""
        self._next_expiry = NEVER
        """A lower bound of the times at which locks expire, in seconds; before it, no lock expires."""
        self.written_start = start_offset if is_stored else -1
        """The start offset in the stored state; -1 if none is stored."""
        self._dead: list[DeadRange] = []
        """Records whose state `ARCHIVING` is stored, and which have not been taken by `take_dead` yet."""
        for each in sorted(stored):
            self._restore(each)
        self.window.move_start()

    def _restore(self, stored: Stored) -> None:
        window = self.window
        first = max(stored.first, window.end + 1)
        if first > stored.last:
            return
        if first > window.end + 1:
            window.put(DeliveryRun(window.end + 1, first - 1, AVAILABLE))
        state = AVAILABLE if stored.state is ACQUIRED else stored.state
        window.put(DeliveryRun(first, stored.last, state, stored.deliveries))

    # --- what there is -----------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """Return the first offset that is neither acknowledged nor archived."""
        return self.window.start

    @property
    def end_offset(self) -> int:
        """Return the last offset that was delivered so far, or the start offset - 1 if none was."""
        return self.window.end

    @property
    def next_offset(self) -> int:
        """Return the offset to read from: the first that can be acquired."""
        window = self.window
        offset = max(self._free_from, window.start)
        if window.runs and offset <= window.end:
            for run in window.overlapping(offset, window.end):
                if run.is_free:
                    self._free_from = max(offset, run.first)
                    return self._free_from
        self._free_from = window.end + 1
        return self._free_from

    def has_room(self, settings: SharingSettings) -> bool:
        """Return True if records may be acquired: released ones, or new ones if the window is not full."""
        return self.next_offset <= self.window.end or len(self.window) < settings.max_record_locks

    @property
    def next_expiry(self) -> float:
        """Return a time in seconds before which no lock expires, or `NEVER` without locks."""
        return self._next_expiry

    def is_held(self) -> bool:
        """Return True if a record is acquired or needs a dead letter, or a change is still to be stored."""
        return (
            self._writing is not None
            or bool(self._queue)
            or any(run.member or run.state is ARCHIVING for run in self.window)
        )

    def free_in(self, first: int, last: int) -> bool:
        """Return True if any offset of a range can be acquired: it was released, or never delivered."""
        if last > self.window.end:
            return True
        return any(run.is_free for run in self.window.overlapping(first, last))

    # --- acquiring ---------------------------------------------------------------------------------------

    def acquire(
        self,
        member: str,
        read_from: int,
        batches: Iterable[FoundBatch],
        settings: SharingSettings,
        now: float,
        *,
        most: int,
        batch_size: int = 0,
        is_exact: bool = False,
    ) -> list[Acquired]:
        """Acquire free records in `batches` for a member; return the acquired ranges.

        `batches` are all batches of the log from `read_from` on, up to some offset: offsets between the
        batches do not exist, and are archived. Whole batches are acquired until they have `most` records or
        more; with `is_exact` (KIP-1206) at most `most` records are acquired. A range ends with the batch in
        which it reaches `batch_size`. Records that were delivered often are acquired alone, in smaller ranges
        each time.
        """
        taking = _Taking(self, settings, most, max(1, batch_size), is_exact)
        expected = read_from
        for batch in batches:
            if taking.is_over:
                break
            if batch.last < expected:
                continue
            if batch.first > expected:
                taking.drop(expected, batch.first - 1)
            first = max(batch.first, expected)
            if batch.is_dropped:
                taking.drop(first, batch.last)
            else:
                taking.take(first, batch.last)
            expected = batch.last + 1
        deadline = now + settings.lock_duration_ms / 1000
        for first, last, count in taking.taken:
            run = DeliveryRun(first, last, ACQUIRED, count)
            run.member, run.deadline = member, deadline
            before = next(iter(self.window.overlapping(first, first)), None)
            if before is not None and before.deliveries and last <= before.last:
                run.size = max(before.size, len(run))  # of the range that it was part of, in the same batch
            self.window.put(run)
        if taking.taken:
            self._next_expiry = min(self._next_expiry, deadline)
        if taking.dropped:
            self._queue.append(taking.dropped)
        self.window.move_start()
        return [Acquired(*each) for each in taking.taken]

    # --- acknowledging -----------------------------------------------------------------------------------

    def acknowledge(
        self, member: str, ranges: Sequence[Acknowledged], settings: SharingSettings, now: float
    ) -> DeliveryChange | None:
        """Begin a member's acknowledgements of acquired records. All are accepted, or all are refused.

        Returns the change to be stored, which takes effect when it has been stored. Returns None if there is
        nothing to store: renewals take effect at once, and records below the start offset are already done.

        Raises:
            KafkaError: INVALID_REQUEST (42), a range is beyond the last acquired record. INVALID_RECORD_STATE
                (121), the member has not acquired a record, its state is being changed, or the group does not
                allow renewals.
        """
        change = DeliveryChange(is_applied=False)
        renewed: list[DeliveryRun] = []
        try:
            for first, last, type_ in ranges:
                if last < self.window.start:
                    continue
                if last > self.window.end:
                    raise error_for(
                        ErrorCode.INVALID_REQUEST, f"offset {last} has not been acquired by any member"
                    )
                if type_ is AckType.RENEW and not settings.renews:
                    raise error_for(ErrorCode.INVALID_RECORD_STATE, "this group takes no renewals of locks")
                for run in self.window.cut(first, last):
                    if run.state is not ACQUIRED or run.member != member or run.change is not None:
                        raise error_for(
                            ErrorCode.INVALID_RECORD_STATE,
                            f"offsets {run.first} to {run.last} are not acquired by member {member}",
                        )
                    run.change = change
                    run.next_state = _after(type_, run.deliveries, settings)
                    if type_ is AckType.RENEW:
                        renewed.append(run)
                    else:
                        _note(change, run, REJECTED if type_ is AckType.REJECT else EXCEEDED)
        except BaseException:
            self._let_go(change)
            raise
        for run in renewed:
            run.change, run.deadline = None, now + settings.lock_duration_ms / 1000
        if not change.states:
            return None
        self._queue.append(change)
        return change

    def _let_go(self, change: DeliveryChange) -> None:
        for run in self.window:
            if run.change is change:
                run.change = None

    # --- locks that end ----------------------------------------------------------------------------------

    def release(self, member: str, settings: SharingSettings) -> bool:
        """Release all records of a member, because its session has ended; return True if it had some."""
        return self._release([run for run in self.window if run.member == member], settings)

    def end_locks(self, settings: SharingSettings) -> int:
        """Release all acquired records, as if their locks had expired; return the number of records.

        Records with an unstored change are not released.
        """
        held = [run for run in self.window if run.member is not None and run.change is None]
        count = sum(len(run) for run in held)
        self._release(held, settings)
        return count

    def expire(self, settings: SharingSettings, now: float) -> bool:
        """Release the records whose locks have expired; return True if there were some."""
        if now < self._next_expiry:
            return False
        ended = [run for run in self.window if run.deadline <= now]
        freed = self._release(ended, settings)
        self._next_expiry = min((run.deadline for run in self.window if run.change is None), default=NEVER)
        return freed

    def _release(self, runs: Sequence[DeliveryRun], settings: SharingSettings) -> bool:
        change = DeliveryChange(is_applied=True)
        for run in runs:
            if run.change is None:
                run.state = run.next_state = _after(AckType.RELEASE, run.deliveries, settings)
                run.unlock()
                if run.state in DONE:
                    run.change = change  # the start moves over it once that is stored
                _note(change, run, EXCEEDED)
        if not change.states:
            return False
        self._queue.append(change)
        self._changed(change)
        return True

    def archive_dead(self, ranges: Iterable[DeadRange]) -> None:
        """Archive records whose dead letters have been written, or could not be written."""
        change = DeliveryChange(is_applied=True)
        for first, last, _, _ in ranges:
            for run in self.window.cut(first, last):
                if run.state is ARCHIVING:
                    run.state = run.next_state = ARCHIVED
                    run.change = change  # the start moves over it once that is stored
                    change.states.append(Stored(run.first, run.last, run.state, run.deliveries))
        if change.states:
            self._queue.append(change)

    def archive_below(self, offset: int) -> bool:
        """Archive all records below `offset`, the log start offset; return True if the window moved."""
        return self.window.move_start(offset)

    # --- storing -----------------------------------------------------------------------------------------

    def next_write(self) -> Write | None:
        """Return the next write, or None if there is nothing to store or another write is in progress."""
        if self._writing is not None or not self._queue:
            return None
        changes, self._queue = self._queue, []
        start, done_count = self._after(changes)
        states = [each for change in changes for each in change.states]
        self._writing = Write(start, done_count, states, changes)
        return self._writing

    def _after(self, changes: Sequence[DeliveryChange]) -> tuple[int, int]:
        """Return the start offset after `changes`, and the number of done records after that offset."""
        coming = set(map(id, changes))
        start, done_count = self.window.start, 0
        is_open = False
        for run in self.window:
            is_coming = run.change is not None and id(run.change) in coming
            if (run.next_state if is_coming else run.state) not in DONE:
                is_open = True
            elif is_open:
                done_count += len(run)
            else:
                start = run.last + 1
        return start, done_count

    def written(self, write: Write, error_code: int) -> bool:
        """Apply the result of a write; return True if records have become available.

        Without an error, the changes in the write take effect. With an error they do not: records stay
        acquired until their locks expire. Changes that took effect before the write are kept.
        """
        assert self._writing is write
        self._writing = None
        if not error_code:
            self.written_start = write.start_offset
        freed = False
        for change in write.changes:
            if change.is_applied:
                self._end_applied(change)
            elif error_code:
                self._let_go(change)
                ends = [run.deadline for run in self.window if run.member is not None]
                self._next_expiry = min(ends, default=NEVER)
            else:
                self._dead += change.dead
                for first, last, _, _ in change.states:
                    for run in self.window.cut(first, last):
                        if run.change is change:
                            run.state, run.change = run.next_state, None
                            run.unlock()
                freed = self._changed(change) or freed
            change.settled, change.error_code = True, error_code
        return freed

    def _end_applied(self, change: DeliveryChange) -> None:
        """Advance past records that have reached the delivery limit, when their state has been written.

        As in Apache Kafka, this happens even if the write failed: the next write contains the new start
        offset.
        """
        self._dead += change.dead
        for first, last, state, _ in change.states:
            if state in DONE:
                for run in self.window.cut(first, last):
                    if run.change is change:
                        run.change = None
                self.window.join_done(first, last)
        self.window.move_start()

    def take_dead(self) -> list[DeadRange]:
        """Return the records that need dead letters by now, each once."""
        dead, self._dead = self._dead, []
        return dead

    def resume_dead(self, settings: SharingSettings) -> None:
        """Let `take_dead` return the records for which an earlier leader was to write dead letters.

        The reason for a dead letter is not stored: it is `REJECTED` for records delivered less often than the
        limit, otherwise `EXCEEDED`.
        """
        self._dead += [
            DeadRange(run.first, run.last, run.deliveries, REJECTED if run.deliveries < limit else EXCEEDED)
            for limit in (settings.delivery_count_limit,)
            for run in self.window
            if run.state is ARCHIVING
        ]

    def is_writing(self, write: Write) -> bool:
        """Return True if `write` is the write in progress."""
        return self._writing is write

    def give_up(self, error_code: int) -> None:
        """Complete all unstored changes with `error_code`, because this object is no longer valid."""
        changes = [*(self._writing.changes if self._writing is not None else ()), *self._queue]
        self._writing, self._queue = None, []
        for change in changes:
            change.settled, change.error_code = True, error_code

    def _changed(self, change: DeliveryChange) -> bool:
        """Join runs and advance the start after changes; return True if records can be acquired again."""
        freed = False
        for first, last, state, _ in change.states:
            if state is AVAILABLE:
                freed = True
                self._free_from = min(self._free_from, first)
            else:
                self.window.join_done(first, last)
        self.window.move_start()
        return freed


class _Taking:
    """One pass of `SharePartition.acquire` over batches, which acquires or archives their records."""

    def __init__(
        self,
        partition: SharePartition,
        settings: SharingSettings,
        most: int,
        batch_size: int,
        is_exact: bool,
    ) -> None:
        self._window = partition.window
        self._settings = settings
        self._most = most
        self._batch_size = batch_size
        self._is_exact = is_exact
        self._count = 0
        self._end = self._window.end
        """The last offset of the window, including the records acquired in this pass."""
        self.taken: list[tuple[int, int, int]] = []
        self.dropped: DeliveryChange | None = None
        self.is_over = most <= 0

    @property
    def _left(self) -> int:
        return self._most - self._count

    @property
    def _room(self) -> int:
        return self._settings.max_record_locks - (self._end - self._window.start + 1)

    def drop(self, first: int, last: int) -> None:
        """Archive the free offsets of a range: their records do not exist, or were aborted."""
        window = self._window
        for run in list(window.overlapping(first, last)):
            if run.is_free:
                self._drop(max(first, run.first), min(last, run.last), run.deliveries)
        if last > self._end:
            if self._room <= 0:
                self.is_over = True
                return
            self._drop(max(first, self._end + 1), last, 0)
            self._end = last

    def _drop(self, first: int, last: int, count: int) -> None:
        self._flush()
        if self.dropped is None:
            self.dropped = DeliveryChange(is_applied=True)
        self._window.put(DeliveryRun(first, last, ARCHIVED, count))
        self._window.join_done(first, last)
        self.dropped.states.append(Stored(first, last, ARCHIVED, count))

    def _flush(self) -> None:
        """Extend the window up to the end of the acquired records, so that further runs can be appended."""
        if self._end > self._window.end:
            self._window.put(DeliveryRun(self._window.end + 1, self._end, AVAILABLE))

    def take(self, first: int, last: int) -> None:
        """Acquire those records of a batch that were released or never delivered."""
        for run in self._window.overlapping(first, last):
            if not run.is_free or run.first > self._window.end:
                continue
            if not self._take_free(run, max(first, run.first), min(last, run.last)):
                self.is_over = True
                return
        if last > self._end:
            self._take_new(max(first, self._end + 1), last)
        if self._left <= 0:
            self.is_over = True

    def _take_free(self, run: DeliveryRun, first: int, last: int) -> bool:
        """Acquire records that were delivered before; return True if more may be acquired."""
        limit = self._settings.delivery_count_limit
        threshold = max(2, -(-limit // 2))
        if run.deliveries >= threshold:
            # A record may be the cause that members fail: it is found by delivering ever less with it.
            if self.taken:
                return False
            size = max(1, run.size >> (run.deliveries - threshold + 1))
            if run.deliveries == limit - 1 and limit > 2:
                size = 1
            if self._is_exact:
                size = min(size, self._left)
            self._add(first, min(last, first + size - 1), run.deliveries + 1)
            return False
        if self._is_exact:
            if self._left <= 0:
                return False
            last = min(last, first + self._left - 1)
        self._add(first, last, run.deliveries + 1)
        return not self._is_exact or self._left > 0

    def _take_new(self, first: int, last: int) -> None:
        if self._left <= 0 or self._room <= 0:
            self.is_over = True
            return
        if self._is_exact:
            last = min(last, first + min(self._left, self._room) - 1)
        self._add(first, last, 1)
        self._end = last
        if self._room <= 0:
            self.is_over = True

    def _add(self, first: int, last: int, count: int) -> None:
        self._count += last - first + 1
        if self.taken:
            before = self.taken[-1]
            if before[1] + 1 == first and before[2] == count and before[1] - before[0] + 1 < self._batch_size:
                self.taken[-1] = before[0], last, count
                return
        self.taken.append((first, last, count))


def _note(change: DeliveryChange, run: DeliveryRun, reason: str) -> None:
    """Add the next state of a run to a change, and a dead letter with this `reason` if it needs one."""
    change.states.append(Stored(run.first, run.last, run.next_state, run.deliveries))
    if run.next_state is ARCHIVING:
        change.dead.append(DeadRange(run.first, run.last, run.deliveries, reason))


def _after(type_: AckType, count: int, settings: SharingSettings) -> RecordState:
    """Return the next state of a record after an acknowledgement; `count` is its number of deliveries."""
    if type_ is AckType.ACCEPT:
        return ACKNOWLEDGED
    if type_ is AckType.RELEASE and count < settings.delivery_count_limit:
        return AVAILABLE
    return ARCHIVING if settings.dead_letter_topic and type_ is not AckType.GAP else ARCHIVED
