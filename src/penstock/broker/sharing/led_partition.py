"""A share partition on the leader of its partition, with log, stored state and waiting requests.

The state is read from the share coordinator once. The state is valid as long as this node leads the partition
in that leader epoch, and the share coordinator does not fence the node. When the state becomes invalid,
waiting requests get an error, and the next request reads the state again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.broker.coordination.timers import Timer
from penstock.broker.requests.purgatory import Wait
from penstock.broker.sharing.dead_letters import DeadLetterHost, DeadLetterQueue
from penstock.broker.sharing.runs import RecordState
from penstock.broker.sharing.settings import EARLIEST, SharingSettings, duration_ms
from penstock.broker.sharing.share_partition import DeliveryChange, SharePartition, Stored, Write
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages import read_share_group_state_request as reading
from penstock.protocol.messages import write_share_group_state_request as writing
from penstock.records.compression.codecs import UnpackBudget

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.purgatory import DelayedOperation
    from penstock.broker.sharing.acknowledgements import Acknowledged
    from penstock.broker.sharing.dead_records import DeadRange
    from penstock.broker.sharing.persister import SharePersister
    from penstock.protocol.messages.read_share_group_state_response import ReadShareGroupStateResponse
    from penstock.protocol.messages.write_share_group_state_response import WriteShareGroupStateResponse

WAKES_ALL = 1 << 40
"""A size in bytes above any `min_bytes`: a purgatory notification with it wakes all waiting fetches."""

RETRY_S = 0.2
"""The delay, in seconds, before a request to an unavailable share coordinator is repeated."""

LED_BYTES, RUN_BYTES = 1200, 200
"""The approximate memory in bytes of a share partition, and of each run of offsets (consecutive offsets in
one state) in it.
"""

INLINE_BYTES, INLINE_RECORDS = 64 << 10, 2000
"""The maximum bytes and records that are decompressed to find the first record at or after a timestamp.

If a batch exceeds this, its first offset is used.
"""

_AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""The errors of a share coordinator that are temporary: the same request may succeed later."""

_FENCED = {
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""A dict from the share coordinator's errors that invalidate the state in memory to the errors for
clients.
"""


class SharePartitionKey(NamedTuple):
    """The key of a share partition: a group, a topic and a partition."""

    group_id: str
    topic_id: bytes
    partition: int


class LedPartitionHost(DeadLetterHost, Protocol):
    """The interface of the broker that `LedPartition` needs."""

    @property
    def share_persister(self) -> SharePersister | None: ...


class LedPartition:
    """One share partition on its leader: acquires and acknowledges records, and stores the changes.

    Requests that wait for it have the object as purgatory key. `settings` returns the group's settings,
    `set_timer` sets the timer for locks, and `ended` is called when the object becomes invalid.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        host: LedPartitionHost,
        settings: Callable[[], SharingSettings],
        set_timer: Callable[[Timer, float], None],
        ended: Callable[[LedPartition], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.share: SharePartition | None = None
        """The records in flight; None until the stored state has been read."""
        self.error_code = 0
        """The error code that made this object invalid; 0 as long as the object is valid."""
        self.members: set[str] = set()
        """The ids of the members whose share sessions contain this partition."""
        self.used_s = host.clock.monotonic()
        self._host = host
        self._settings = settings
        self._set_timer = set_timer
        self._ended = ended
        self._state_epoch = 0
        self._timer = Timer(self._fire, self._fire_later)
        self._retry: DelayedOperation | None = None
        self._is_storing = False
        self._is_reading = False
        self._letters: DeadLetterQueue | None = None

    def __repr__(self) -> str:
        return f"<LedPartition {self.key.group_id} {self.partition!r}>"

    @property
    def size_bytes(self) -> int:
        """Return the approximate memory of this share partition in bytes."""
        letters = 0 if self._letters is None else self._letters.size_bytes
        return LED_BYTES + letters + (RUN_BYTES * len(self.share.window.runs) if self.share else 0)

    @property
    def is_current(self) -> bool:
        """Return True if this node still leads the partition, in the epoch in which the state was read."""
        partition = self.partition
        return not self.error_code and partition.leads and partition.leader_epoch == self.leader_epoch

    @property
    def is_ready(self) -> bool:
        """Return True if the stored state has been read."""
        return self.share is not None and not self._is_reading

    @property
    def may_be_dropped(self) -> bool:
        """Return True if the object may leave memory: its state is stored, no lock or change is pending."""
        share = self.share
        return share is not None and share.written_start >= 0 and not share.is_held()

    def wake(self) -> None:
        """Re-evaluate the requests in the purgatory that wait for this share partition."""
        self._host.purgatory.notify(self, WAKES_ALL)

    def end(self, code: int) -> None:
        """Make this object invalid, and answer waiting requests with the error `code`."""
        if self.error_code:
            return
        self.error_code = code
        self._timer.end()
        if self._retry is not None:
            self._host.purgatory.cancel(self._retry)
        if self.share is not None:
            self.share.give_up(code)
        if self._letters is not None:
            self._letters.end()
        self._ended(self)
        self.wake()

    # --- reading the state -------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the stored state; afterwards `is_ready` is True, or `error_code` is set.

        If the state is read again, records in flight are kept, unless the state has been reset meanwhile: the
        offsets of a group without members can be set.
        """
        self._retry = None
        self._is_reading = True
        persister = self._host.share_persister
        if persister is None:
            self.end(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        request = reading.ReadShareGroupStateRequest(
            group_id=self.key.group_id,
            topics=[
                reading.ReadStateData(
                    topic_id=self.key.topic_id,
                    partitions=[
                        reading.PartitionData(partition=self.key.partition, leader_epoch=self.leader_epoch)
                    ],
                )
            ],
        )
        try:
            persister.read_state(request, self._was_read)
        except Exception:
            # A barrier: the coordinator may be another node's.
            self._host.failures.caught("share groups", f"reading the state of {self!r}")
            self.end(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _was_read(self, response: ReadShareGroupStateResponse) -> None:
        if self.error_code or not self._is_reading:
            return
        if not self.is_current:
            self.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        try:
            found = response.results[0].partitions[0]
            if found.error_code in _AGAIN:
                now = self._host.clock.monotonic()
                self._retry = self._host.purgatory.park(Wait((), now + RETRY_S), self.load)
                return
            if found.error_code:
                self.end(_FENCED.get(ErrorCode(found.error_code), ErrorCode.UNKNOWN_SERVER_ERROR))
                return
            self._is_reading = False
            if self.share is not None:
                # A group that was deleted and made anew may have the same state epoch, and begins earlier.
                is_same = found.start_offset >= self.share.written_start
                if is_same and found.state_epoch == self._state_epoch:
                    self.wake()
                    return
                self.share.give_up(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                if self._letters is not None:
                    self._letters.end()
                    self._letters = None
            self._state_epoch = found.state_epoch
            is_stored = found.start_offset >= 0
            start = found.start_offset if is_stored else self._first_offset()
            stored = [
                Stored(
                    each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count
                )
                for each in found.state_batches
            ]
            share = SharePartition(start, stored, is_stored=is_stored)
            share.archive_below(self.partition.log_start_offset)
            share.resume_dead(self._settings())
        except KafkaError as error:
            self.end(error.code)
            return
        except StorageError as error:
            self._host.limited_log.once(40, str(error))
            self.end(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        except Exception:
            # A barrier: what is stored comes from a disk.
            self._host.failures.caught("share groups", f"the state of {self!r}")
            self.end(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.share = share
        self._write_dead(share)
        self.wake()

    def _first_offset(self) -> int:
        """Return the start offset for a group that has none stored, following `share.auto.offset.reset`.

        Raises:
            KafkaError, StorageError: the log cannot be read.
        """
        settings, partition = self._settings(), self.partition
        end = partition.last_stable_offset if settings.committed_only else partition.high_watermark
        if settings.offset_reset == EARLIEST:
            return partition.log_start_offset
        duration = duration_ms(settings.offset_reset)
        if duration is None:
            return end
        since_ms = max(0, self._host.clock.now_ms() - duration)
        found = partition.reader.offset_for_timestamp(since_ms, UnpackBudget(INLINE_BYTES, INLINE_RECORDS))
        return end if found is None else min(found[0], end)

    # --- records -----------------------------------------------------------------------------------------

    def acknowledge(self, member: str, ranges: Sequence[Acknowledged], now: float) -> DeliveryChange | None:
        """Apply a member's acknowledgements; return the change that the response waits for, or None.

        Raises:
            KafkaError: the acknowledgement is refused, as in `SharePartition.acknowledge`.
        """
        if self.share is None:
            raise error_for(ErrorCode.INVALID_RECORD_STATE, "nothing is acquired in this partition")
        change = self.share.acknowledge(member, ranges, self._settings(), now)
        self.store()
        return change

    def release(self, member: str) -> None:
        """Release the records that a member has acquired, because its session has ended."""
        if self.share is not None and self.share.release(member, self._settings()):
            self.store()
            self.wake()

    def end_locks(self) -> int:
        """Release all acquired records, as if their locks had expired; return the number of records."""
        count = 0 if self.share is None else self.share.end_locks(self._settings())
        if count:
            self.store()
            self.wake()
        return count

    def acquired(self) -> None:
        """Store the offsets that an acquisition archived as gaps, and set the timer for the new locks."""
        self.store()

    def _fire(self, now: float) -> None:
        if not self.is_current:
            self.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif self.share is not None:
            if self.share.expire(self._settings(), now):
                self.wake()
            self.store()

    def _fire_later(self, now: float) -> None:
        self._host.failures.caught("share groups", f"locks in {self!r}")
        self._set_timer(self._timer, now + RETRY_S)

    # --- storing -----------------------------------------------------------------------------------------

    def store(self) -> None:
        """Store all changes, one write at a time, and set the timer for the next lock that expires."""
        share = self.share
        if share is None or self._is_storing:
            return
        self._is_storing = True
        try:
            while not self.error_code and (write := share.next_write()) is not None:
                self._write(write)
        finally:
            self._is_storing = False
        if not self.error_code:
            self._set_timer(self._timer, share.next_expiry)

    def _write(self, write: Write) -> None:
        request = writing.WriteShareGroupStateRequest(
            group_id=self.key.group_id,
            topics=[
                writing.WriteStateData(
                    topic_id=self.key.topic_id,
                    partitions=[
                        writing.PartitionData(
                            partition=self.key.partition,
                            state_epoch=self._state_epoch,
                            leader_epoch=self.leader_epoch,
                            start_offset=write.start_offset,
                            delivery_complete_count=write.done_count,
                            state_batches=[
                                writing.StateBatch(
                                    first_offset=each.first,
                                    last_offset=each.last,
                                    delivery_state=each.state,
                                    delivery_count=each.deliveries,
                                )
                                for each in write.states
                                if each.last >= write.start_offset
                            ],
                        )
                    ],
                )
            ],
        )
        persister = self._host.share_persister
        if persister is None:
            self._done(write, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        try:
            persister.write_state(request, partial(self._was_written, write))
        except Exception:
            # A barrier: the coordinator may be another node's.
            self._host.failures.caught("share groups", f"storing the state of {self!r}")
            self._done(write, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _was_written(self, write: Write, response: WriteShareGroupStateResponse) -> None:
        try:
            code = response.results[0].partitions[0].error_code
        except IndexError:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        self._done(write, code)

    def _done(self, write: Write, code: int) -> None:
        share = self.share
        if self.error_code or share is None or not share.is_writing(write):
            return
        if code in _FENCED:
            self.end(_FENCED[ErrorCode(code)])
            return
        share.written(write, ErrorCode.COORDINATOR_NOT_AVAILABLE if code in _AGAIN else code)
        self.wake()
        self._write_dead(share)
        self.store()

    # --- dead letters ------------------------------------------------------------------------------------

    def _write_dead(self, share: SharePartition) -> None:
        """Queue dead letters for the records of `share` that need one by now, before they are archived."""
        dead = share.take_dead()
        if not dead:
            return
        if self._letters is None:

            def archive(ranges: Sequence[DeadRange]) -> None:
                share.archive_dead(ranges)
                self.store()
                self.wake()

            self._letters = DeadLetterQueue(
                self.key.group_id, self.partition, self._host, self._settings, archive
            )
        self._letters.add(dead)
