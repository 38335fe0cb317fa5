"""Groups of a broker: connects the store, the timers and all types of groups to the broker.

`GroupService` does the I/O for the coordinator of classic groups: it stores groups, then sends responses, and
wakes the coordinator when its next timer is due.
"""

from __future__ import annotations

import uuid
from collections import ChainMap
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.coordination.alarm import Alarm
from penstock.broker.coordination.state_topic import Logs, StateTopic, StateTopics
from penstock.broker.coordination.timers import Timers
from penstock.broker.groups.classic.coordinator import GROUP_BYTES, ClassicCoordinator
from penstock.broker.groups.classic.group import ClassicGroup, refused_join
from penstock.broker.groups.classic.member import MEMBER_BYTES, PROTOCOL_BYTES, Caller, size_of_protocols
from penstock.broker.groups.classic.records import ClassicRecords, empty_record, group_record, snapshot
from penstock.broker.groups.classic_members import ClassicMembers
from penstock.broker.groups.consumer_service import ConsumerGroupService
from penstock.broker.groups.offsets import CommittedOffset, Offsets, PartitionKey
from penstock.broker.groups.planned import GroupHost as GroupHost
from penstock.broker.groups.planned import GroupHostMetadata as GroupMetadata
from penstock.broker.groups.planned import GroupTopicsView, PlannedGroups
from penstock.broker.groups.settings import ClassicGroupSettings
from penstock.broker.groups.share_service import ShareGroupService
from penstock.broker.groups.store import GroupKind, GroupStore
from penstock.broker.groups.streams.service import StreamsGroupService
from penstock.broker.groups.tables import not_of_type
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.requests.purgatory import Purgatory, Wait
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.groups.consumer.group import ConsumerGroup, Heartbeat, HeartbeatResult
    from penstock.broker.groups.share.group import ShareAnswer, ShareGroup, ShareHeartbeat
    from penstock.broker.groups.streams.group import StreamsAnswer, StreamsGroup, StreamsHeartbeat
    from penstock.broker.partitions.partition import Partition
    from penstock.protocol.messages.group_metadata_value import GroupMetadataValue
    from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
    from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
    from penstock.protocol.messages.leave_group_response import LeaveGroupResponse

logger = logger_named("penstock.broker")


class GroupServiceMetadata(StateTopics, GroupMetadata, Protocol):
    """The interface of the broker's metadata that groups and the topic `__consumer_offsets` use."""


class GroupServiceHost(GroupHost, Protocol):
    """The interface of the broker that groups and the topic `__consumer_offsets` use."""

    @property
    def cluster(self) -> GroupServiceMetadata: ...
    @property
    def store(self) -> Logs: ...
    @property
    def purgatory(self) -> Purgatory: ...


class PendingReply:
    """An object that receives the response to a waiting request; `response` is None until then."""

    __slots__ = ("response",)

    def __init__(self) -> None:
        self.response: Any = None


class ClassicKind:
    """The `GroupKind` with which the store restores classic groups from their records."""

    key_types = ClassicRecords.key_types
    read = staticmethod(ClassicRecords().read)

    def __init__(
        self,
        coordinator: ClassicCoordinator,
        others: Container[str],
        host: GroupServiceHost,
        restored: Callable[[], object],
    ) -> None:
        """Prepare to restore classic groups; `others` has the group ids of other types, to skip."""
        self._coordinator = coordinator
        self._others = others
        self._host = host
        self._restored = restored

    def restore(self, stored: Mapping[str, GroupMetadataValue | None], with_offsets: Collection[str]) -> None:
        """Add the classic groups whose records were read from one partition.

        A group that has offsets but no record of its own is empty. A group whose record is invalid
        keeps its offsets, and has no members.
        """
        coordinator = self._coordinator
        now = self._host.clock.monotonic()
        for group_id in with_offsets:
            has_record = stored.get(group_id) is not None or group_id in self._others
            if not has_record and group_id not in coordinator.groups:
                coordinator.create(group_id)
        for group_id, value in stored.items():
            if value is not None and group_id not in self._others:
                try:
                    coordinator.restore(group_id, value, now)
                except Exception:
                    # A barrier: what a stored group says comes from a disk. Its members join again.
                    self._host.failures.caught("groups", f"restoring group {group_id!r}")
                    coordinator.groups[group_id].disband()
                    coordinator.create(group_id)
        self._restored()


class GroupService:
    """The groups of one broker: their coordinators, store and timers."""

    def __init__(self, host: GroupServiceHost) -> None:
        config = host.config
        self._host = host
        self.metadata_bytes_max = config.integer("offset.metadata.max.bytes")
        settings = ClassicGroupSettings(
            config.integer("group.initial.rebalance.delay.ms"),
            config.integer("group.max.size"),
            config.integer("group.min.session.timeout.ms"),
            config.integer("group.max.session.timeout.ms"),
        )
        timers = Timers()
        self.coordinator = ClassicCoordinator(
            settings, _new_member_id, timers, host.failures.caught, self._classic_members
        )
        self.consumer = ConsumerGroupService(host, self.coordinator, timers)
        """The consumer groups (KIP-848)."""
        self.share = ShareGroupService(
            host,
            GroupTopicsView(host.cluster),
            timers,
            lambda group_id: group_id in self.coordinator.groups or self._is_modern(group_id, self.share),
        )
        """The share groups (KIP-932)."""
        self.streams = StreamsGroupService(
            host,
            GroupTopicsView(host.cluster),
            timers,
            lambda group_id: self._has_members(group_id) or self._is_modern(group_id, self.streams),
        )
        """The streams groups (KIP-1071)."""
        self._modern = (self.consumer, self.share, self.streams)
        others: Container[str] = ChainMap[str, Any](*(kind.groups for kind in self._modern))
        classic = ClassicKind(self.coordinator, others, host, self._set_alarm)
        kinds: list[GroupKind] = [*(each.planned.kind for each in self._modern), classic]
        self.store = GroupStore(host.cluster, host.store, kinds, self._wrote)
        outbox = self.coordinator.outbox
        given_away = outbox.given_away
        host.kept.add("member ids", lambda: ID_BYTES * len(given_away), self._take_back_oldest_id, loss=1)
        host.kept.add("groups", lambda: self.coordinator.size_bytes + outbox.tally.size_bytes)
        host.kept.add("offsets", lambda: self.offsets.size_bytes + self.store.pending.size_bytes)
        self._retention_ms = config.integer("offsets.retention.minutes") * 60_000
        self._check_interval_s = config.integer("offsets.retention.check.interval.ms") / 1000
        self._check_at_s = host.clock.monotonic() + self._check_interval_s
        self._alarm = Alarm(host.purgatory, self._wake)

    @property
    def offsets(self) -> Offsets:
        """Return the committed offsets of the groups that have been read from the log."""
        return self.store.offsets

    @property
    def topic(self) -> StateTopic:
        """The topic `__consumer_offsets`."""
        return self.store.topic

    # --- loading -----------------------------------------------------------------------------------------

    def open(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group, read from the store if needed, or None if there is none.

        Raises:
            KafkaError: NOT_COORDINATOR (16), the log cannot be read.
        """
        groups = self.coordinator.groups
        if group_id not in groups and not self._is_modern(group_id, None):
            self.store.load(group_id)
        return groups.get(group_id)

    def find(self, group_id: str) -> ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | None:
        """Return a group of any type, read from the store if needed, or None if there is none.

        Raises:
            KafkaError: NOT_COORDINATOR (16), the log cannot be read.
        """
        return (
            self.open(group_id)
            or self.consumer.groups.get(group_id)
            or self.share.groups.get(group_id)
            or self.streams.groups.get(group_id)
        )

    def _is_modern(self, group_id: str, but: object) -> bool:
        """Return True if a service other than `but` has a consumer, share or streams group with this id."""
        return any(group_id in kind.groups for kind in self._modern if kind is not but)

    def _classic_members(self, group_id: str) -> ClassicMembers | None:
        """Return a consumer group as a `JoinableGroup`; None if it does not exist or has no members."""
        group = self.consumer.groups.get(group_id)
        if group is None or group.can_be_deleted:
            return None
        return ClassicMembers(self.consumer, self.store, group, self.coordinator.outbox)

    def _has_members(self, group_id: str) -> bool:
        """Return True if `group_id` is a classic group that has members."""
        group = self.coordinator.groups.get(group_id)
        return group is not None and not group.can_be_deleted

    def open_all(self) -> None:
        """Read every group from the store. Unreadable partitions are logged and left out."""
        self.store.load_all()

    def create_topic(self, now_ms: int) -> None:
        """Create `__consumer_offsets` if it does not exist.

        Raises:
            KafkaError, StorageError: the topic cannot be created now.
        """
        self.topic.create(now_ms)

    def follow(self, partition: Partition) -> None:
        """Drop the groups in a partition if another node leads it now, or may have led it meanwhile."""
        if self.store.loaded.follow(partition):
            self.unload(partition.index)

    def unload(self, index: int) -> None:
        """Drop the groups in a partition of `__consumer_offsets`.

        Waiting requests are answered with NOT_COORDINATOR (16), so that their clients find the new
        coordinator.
        """
        coordinator = self.coordinator
        self.store.unload(index)

        def is_led_elsewhere(group_id: str) -> bool:
            return self.store.holds(index, group_id)

        for kind in self._modern:
            kind.planned.unload(is_led_elsewhere)
        for group_id, group in list(coordinator.groups.items()):
            if is_led_elsewhere(group_id):
                group.disband()
                coordinator.forget(group_id)
        _, replies = coordinator.outbox.take()
        for answer, response in replies:
            response.error_code = ErrorCode.NOT_COORDINATOR  # type: ignore[attr-defined]
            answer.response = response  # type: ignore[attr-defined]
            self._host.purgatory.notify(answer)

    # --- room --------------------------------------------------------------------------------------------

    def _has_room_for_member(self, request: Any, client_id: str) -> bool:
        """Return True if the memory for a JoinGroup's member fits into the budget.

        Memory that the member already uses is subtracted. A consumer group checks its own changes.
        """
        if request.group_id in self.consumer.groups:
            return True
        group = self.coordinator.groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        size = sum(PROTOCOL_BYTES + len(each.name) + len(each.metadata) for each in request.protocols)
        if member is not None:
            size -= size_of_protocols(member.protocols)
        else:
            size += MEMBER_BYTES + len(request.group_instance_id or "") + 2 * len(client_id)
        if group is None:
            size += GROUP_BYTES + len(request.group_id)
        return size <= 0 or self._host.kept.has_room_for(size, stays=True)

    def has_room_for_offsets(
        self, group_id: str, commits: Sequence[tuple[PartitionKey, CommittedOffset]]
    ) -> bool:
        """Return True if offsets fit into the memory budget. Offsets that replace others always fit."""
        growth = sum(self.offsets.growth(group_id, partition, committed) for partition, committed in commits)
        return growth <= 0 or self._host.kept.has_room_for(growth, stays=True)

    def _take_back_oldest_id(self) -> bool:
        """Withdraw the member id that was assigned first and not used yet, to free memory.

        A client that joins with this id later gets another one. Returns False if there was no unused id.
        """
        oldest = next(iter(self.coordinator.outbox.given_away.items()), None)
        if oldest is None:
            return False
        (_, member_id), group = oldest
        now = self._host.clock.monotonic()
        group.forget_id(member_id, now)
        self.settle(now)
        return True

    def _forget_unused(self) -> None:
        """Delete groups in which all assigned member ids were withdrawn before any member joined."""
        unused, self.coordinator.outbox.unused = self.coordinator.outbox.unused, []
        for group in unused:
            is_there = self.coordinator.groups.get(group.id) is group
            if is_there and not (group.members or group.pending or self.offsets.of_group(group.id)):
                self.coordinator.forget(group.id)

    # --- consumer groups (KIP-848) -----------------------------------------------------------------------

    def heartbeat(
        self, group_id: str, beat: Heartbeat, sees: Callable[[str], bool], now: float
    ) -> HeartbeatResult:
        """Handle ConsumerGroupHeartbeat; return the response.

        `sees` returns True if the client may describe a topic.

        Raises:
            KafkaError: the error to respond with.
        """
        self.open(group_id)
        self.settle(now)
        if self._is_modern(group_id, self.consumer):
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, not_of_type(group_id, "consumer"))
        try:
            return self.consumer.heartbeat(self.store, group_id, beat, sees, now)
        finally:
            self.settle(now)

    # --- share groups (KIP-932) --------------------------------------------------------------------------

    def share_heartbeat(self, group_id: str, beat: ShareHeartbeat, now: float) -> ShareAnswer:
        """Handle ShareGroupHeartbeat; return the response.

        Raises:
            KafkaError: the error to respond with.
        """
        self.open(group_id)
        self.settle(now)
        try:
            return self.share.heartbeat(self.store, group_id, beat, now)
        finally:
            self.settle(now)

    # --- streams groups (KIP-1071) -----------------------------------------------------------------------

    def streams_heartbeat(self, group_id: str, beat: StreamsHeartbeat, now: float) -> StreamsAnswer:
        """Handle StreamsGroupHeartbeat; return the response. A classic group without members is replaced.

        Raises:
            KafkaError: the error to respond with.
        """
        classic = self.open(group_id)
        self.settle(now)
        try:
            first = [] if classic is None else [group_record(group_id, None)]
            answer = self.streams.heartbeat(self.store, group_id, beat, now, first)
            if classic is not None:
                classic.delete()
                self.coordinator.forget(group_id)
            return answer
        finally:
            self.settle(now)

    # --- the classic protocol ----------------------------------------------------------------------------

    def join(self, request: Any, caller: Caller, now: float) -> Wait | Any:
        """Handle JoinGroup; return the response, or a `Wait` that yields it later.

        A group of another type that has no members is replaced by a classic one. Share groups, and streams
        groups with members, cannot be joined.

        Raises:
            KafkaError, StorageError: the group that is replaced could not be removed.
        """
        group_id = request.group_id
        self._make_way(group_id)
        if group_id in self.share.groups or group_id in self.streams.groups:
            return refused_join("", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not self._has_room_for_member(request, caller.client_id):
            # Clients look for their coordinator again after a while, and find room or not.
            return refused_join(request.member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._ask(self.coordinator.join, now, request, caller)

    def sync(self, request: Any, now: float) -> Wait | Any:
        """Handle SyncGroup; return the response, or a `Wait` that yields it later."""
        return self._ask(self.coordinator.sync, now, request)

    def keep_alive(self, request: HeartbeatRequest, now: float) -> ErrorCode:
        """Handle Heartbeat of the classic protocol; return NONE, or the error for the member."""
        with self._settling(request.group_id, now):
            return self.coordinator.heartbeat(request, now)

    def leave(
        self, request: LeaveGroupRequest, identities: list[MemberIdentity], now: float
    ) -> LeaveGroupResponse:
        """Handle LeaveGroup; return the response."""
        with self._settling(request.group_id, now):
            return self.coordinator.leave(request, identities, now)

    def _ask(self, method: Any, now: float, request: Any, *caller: Caller) -> Wait | Any:
        answer = PendingReply()
        with self._settling(request.group_id, now):
            method(request, *caller, answer, now)
        if answer.response is not None:
            return answer.response
        return Wait((answer,), _NEVER, answer=lambda: answer.response)

    @contextmanager
    def _settling(self, group_id: str, now: float) -> Iterator[None]:
        """Run a block that calls the coordinator: fire due timers before it, and empty the outbox after it.

        The outbox is emptied even if the block raises, since other requests may wait for their responses.
        """
        if group_id in self.consumer.groups:
            self.settle(now)  # a timer that has fired may remove members, and make it a classic group
        else:
            self.coordinator.advance(now)
        try:
            yield
        finally:
            self.settle(now)

    def settle(self, now: float) -> None:
        """Fire the timers that are due, store the groups in the outbox, then send the outbox's responses."""
        coordinator = self.coordinator
        try:
            coordinator.advance(now)
            for kind in self._modern:
                if kind.coordinator.timers.has_due:
                    kind.work_off(self.store, now)
            while True:
                saves, replies = coordinator.outbox.take()
                if not saves and not replies:
                    break
                failed = [group for group in dict.fromkeys(saves) if not self._store(group)]
                for answer, response in replies:
                    if failed:
                        fail_response(response)
                    answer.response = response  # type: ignore[attr-defined]
                    self._host.purgatory.notify(answer)
                for group in failed:
                    self._was_not_stored(group, now)
            if coordinator.outbox.unused:
                self._forget_unused()
        finally:
            self._set_alarm()

    def _was_not_stored(self, group: ClassicGroup, now: float) -> None:
        try:
            group.was_not_stored(now)
        except Exception:
            self._host.failures.caught("group", f"group {group.id!r}, which could not be stored")
            self.coordinator.recover(group, now)

    def _store(self, group: ClassicGroup) -> bool:
        """Store a group; return True on success.

        As in Apache Kafka, a new group is stored first as an empty group, without members.
        """
        now_ms = self._host.clock.now_ms()
        is_new = group.since_ms < 0
        try:
            records = [group_record(group.id, snapshot(group, now_ms))]
            if is_new:
                records.insert(0, empty_record(group.id, now_ms))
            self.store.append(group.id, records, now_ms)
        except (StorageError, KafkaError) as error:
            logger.error("group %s could not be stored: %s", group.id, error)
            return False
        except Exception:
            self._host.failures.caught("group", f"storing group {group.id!r}")
            return False
        return True

    # --- time --------------------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """Set the alarm that wakes the coordinator when its next timer is due."""
        self._alarm.set(self.coordinator.next_deadline())

    def _wake(self) -> None:
        self.settle(self._host.clock.monotonic())

    def maintain(self, now_ms: int) -> list[StorageError]:
        """Remove expired offsets and groups, every `offsets.retention.check.interval.ms`.

        Returns the exceptions of removals that failed.
        """
        self._set_alarm()  # in case that an exception has lost it
        uptime_s = self._host.clock.monotonic()
        if uptime_s < self._check_at_s:
            return []
        self._check_at_s = uptime_s + self._check_interval_s
        failures: list[StorageError] = []
        groups: list[ClassicGroup | ConsumerGroup | StreamsGroup] = list(self.coordinator.groups.values())
        groups += [*self.consumer.groups.values(), *self.streams.groups.values()]
        for group in groups:
            try:
                self._forget_expired(group, now_ms)
            except StorageError as error:
                failures.append(error)
            except Exception:
                self._host.failures.caught("group", f"expired offsets of group {group.id!r}")
        return failures

    def _forget_expired(self, group: ClassicGroup | ConsumerGroup | StreamsGroup, now_ms: int) -> None:
        expiration = group.offset_expiration()
        expired: list[PartitionKey] = []
        if expiration is not None:
            expired = self.offsets.expired(group.id, expiration, now_ms, self._retention_ms)
        pending = self.store.pending.of_group(group.id)
        if pending:
            self.remove(group.id, [each for each in expired if each not in pending], now_ms)
            return
        kept = len(self.offsets.of_group(group.id)) - len(expired)
        if kept == 0 and group.can_be_deleted:
            self.delete(group, now_ms)
        elif expired:
            self.remove(group.id, expired, now_ms)

    # --- offsets -----------------------------------------------------------------------------------------

    def commit(
        self, group_id: str, commits: Sequence[tuple[PartitionKey, CommittedOffset]], now_ms: int
    ) -> None:
        """Store offsets, then apply them. A group that does not exist is created.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10).
            StorageError: the offsets could not be written; nothing has changed.
        """
        self.store.commit(group_id, commits, now_ms)
        self._create_if_missing(group_id)

    def _create_if_missing(self, group_id: str) -> None:
        if group_id not in self.coordinator.groups and not self._is_modern(group_id, None):
            self.coordinator.create(group_id)

    def check_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        partitions: Iterable[PartitionKey],
        now: float | None,
        *,
        has_epochs: bool = True,
    ) -> ErrorCode:
        """Check an OffsetCommit or a TxnOffsetCommit; return NONE, or the error to respond with.

        `epoch` is the member's epoch or generation; `has_epochs` is False for API versions that have no
        errors for member epochs and missing groups. `now` is None for a TxnOffsetCommit: it does not renew
        the session of a member (KIP-447), and is allowed if it names no member.
        """
        if group_id in self.share.groups:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if now is None and epoch < 0 and not member_id and instance_id is None:
            return ErrorCode.NONE
        consumer, streams = self.consumer.groups.get(group_id), self.streams.groups.get(group_id)
        may_have_epoch = has_epochs or now is None
        try:
            if consumer is not None:
                topics = self._host.cluster.topics
                known = [(topics[name].id, index) for name, index in partitions if name in topics]
                consumer.check_commit(member_id, epoch, known, has_epochs=may_have_epoch)
            elif streams is not None:
                streams.check_commit(member_id, epoch, partitions, has_epochs=may_have_epoch)
            else:
                error = self.coordinator.check_commit(group_id, member_id, instance_id, epoch, now)
                is_missing = error == ErrorCode.GROUP_ID_NOT_FOUND
                return ErrorCode.ILLEGAL_GENERATION if is_missing and not has_epochs else error
        except KafkaError as refusal:
            is_stale = refusal.code == ErrorCode.STALE_MEMBER_EPOCH
            return ErrorCode.ILLEGAL_GENERATION if is_stale and not has_epochs else ErrorCode(refusal.code)
        return ErrorCode.NONE

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Check the member of an OffsetFetch, if the group has member epochs and the request names a member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113) or ILLEGAL_GENERATION (22).
        """
        group = self.consumer.groups.get(group_id) or self.streams.groups.get(group_id)
        if group is not None and not (member_id is None and epoch < 0):
            group.check_fetch(member_id or "", epoch)

    def commit_in_transaction(
        self,
        group_id: str,
        producer: tuple[int, int],
        commits: Sequence[tuple[PartitionKey, CommittedOffset]],
        now_ms: int,
        verification: Any,
    ) -> None:
        """Store offsets that take effect when the transaction of `producer` (id and epoch) is committed.

        A group that does not exist is created. `verification` is the result of `transactional_appends.join`
        for this append.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10), or the transaction has ended meanwhile.
            StorageError: the offsets could not be written; nothing has changed.
        """
        self.store.commit_in_transaction(group_id, producer, commits, now_ms, verification)
        self._create_if_missing(group_id)

    def end_transaction(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Apply or drop the pending offsets of a producer whose transaction was committed or aborted.

        `index` is the partition of `__consumer_offsets` to which the transaction marker was written.
        """
        self.store.end_transaction(index, producer_id, is_commit)

    def remove(self, group_id: str, partitions: Iterable[PartitionKey], now_ms: int) -> None:
        """Remove the committed offsets of the given partitions, if there are any.

        Raises:
            StorageError: the tombstones could not be written; nothing has changed.
        """
        self.store.remove(group_id, partitions, now_ms)

    def _make_way(self, group_id: str) -> None:
        """Replace a consumer or streams group without members by a classic one.

        A classic member is about to join the group.

        Raises:
            KafkaError, StorageError: the tombstones could not be written.
        """
        self.consumer.make_way(self.store, group_id)
        streams = self.streams.groups.get(group_id)
        if streams is not None and streams.can_be_deleted:
            self.store.append(group_id, self.streams.planned.tombstones(streams), self._host.clock.now_ms())
            self.streams.coordinator.forget(group_id)
            self.coordinator.create(group_id)

    def delete(self, group: ClassicGroup | ConsumerGroup | StreamsGroup, now_ms: int) -> ErrorCode:
        """Delete an empty group with its offsets; return NONE, or NON_EMPTY_GROUP.

        Raises:
            StorageError: the tombstones could not be written; the group still exists.
        """
        if not group.can_be_deleted:
            return ErrorCode.NON_EMPTY_GROUP
        for kind in (self.consumer, self.streams):
            found: Any = kind.groups.get(group.id)
            if found is group:
                planned: PlannedGroups[Any] = kind.planned
                self.store.delete_group(group.id, planned.tombstones(found), now_ms)
                kind.coordinator.forget(group.id)
                return ErrorCode.NONE
        self.store.delete_group(group.id, [group_record(group.id, None)], now_ms)
        return self.coordinator.delete(group.id)

    def forget_topics(self, topics: Sequence[str], now_ms: int) -> None:
        """Remove the offsets of deleted topics; drop all groups if `__consumer_offsets` was deleted.

        Raises:
            KafkaError, StorageError: the stored offsets cannot be removed.
        """
        if OFFSETS_TOPIC in topics:
            self.coordinator.forget_everything()
            for kind in self._modern:
                kind.planned.unload(lambda group_id: True)
            self.store.forget_everything()
        else:
            self.store.forget_topics(topics, now_ms)
            self.share.forget_topics(self.store)

    def _wrote(self, partition: Any, size: int) -> None:
        self._host.purgatory.notify(partition, size)


def fail_response(response: Any) -> None:
    """Set the error NOT_COORDINATOR in a successful response, because the group could not be stored."""
    if not response.error_code:
        response.error_code = ErrorCode.NOT_COORDINATOR
        if hasattr(response, "assignment"):
            response.assignment = b""


def _new_member_id(name: str) -> str:
    return f"{name[:ID_NAME_CHARACTERS_MAX]}-{uuid.uuid4()}"


ID_BYTES = 1500
"""The approximate memory of an assigned but unused member id in bytes, with its timer."""

ID_NAME_CHARACTERS_MAX = 100
"""The most characters of a client id or instance id that are put at the beginning of a new member id."""


_NEVER = float("inf")
