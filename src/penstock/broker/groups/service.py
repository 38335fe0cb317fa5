"""Groups at a broker: the coordinator, where its state is stored, and whoever waits for an answer.

The shell around what decides: it reads a partition of `__consumer_offsets` before the first group in it
is touched, stores what the coordinator asks to be stored, and only then lets answers go.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from penstock.broker.groups.coordinator import GROUP_BYTES, Coordinator
from penstock.broker.groups.effects import GroupSettings
from penstock.broker.groups.image import snapshot
from penstock.broker.groups.member import MEMBER_BYTES, PROTOCOL_BYTES, Caller, size_of_protocols
from penstock.broker.groups.offsets import Committed, Offsets, Place
from penstock.broker.groups.records import KeyAndValue, StoredGroup, group_record, offset_record
from penstock.broker.groups.topic import NAME, Losses, OffsetsTopic
from penstock.broker.requests.purgatory import Wait
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.groups.group import Group
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.purgatory import Parked
    from penstock.protocol.messages.group_metadata_value import GroupMetadataValue

logger = logger_named("penstock.broker")


class Answer:
    """What one request waits for. It is the ticket that the coordinator knows it by."""

    __slots__ = ("response",)

    def __init__(self) -> None:
        self.response: Any = None


class GroupService:
    """Everything about groups that one broker has."""

    def __init__(self, node: Node) -> None:
        config = node.config
        self.node = node
        self.offsets = Offsets()
        self.topic = OffsetsTopic(node.cluster, node.store, self._wrote)
        self.metadata_bytes_max = config.integer("offset.metadata.max.bytes")
        settings = GroupSettings(
            config.integer("group.initial.rebalance.delay.ms"),
            config.integer("group.max.size"),
            config.integer("group.min.session.timeout.ms"),
            config.integer("group.max.session.timeout.ms"),
        )
        self.coordinator = Coordinator(settings, _new_member_id, node.failures.caught)
        effects = self.coordinator.effects
        given_away = effects.given_away
        node.kept.add("member ids", lambda: ID_BYTES * len(given_away), self._take_back_oldest_id, loss=1)
        node.kept.add("groups", lambda: self.coordinator.size_bytes + effects.tally.size_bytes)
        node.kept.add("offsets", lambda: self.offsets.size_bytes)
        self._retention_ms = config.integer("offsets.retention.minutes") * 60_000
        self._check_interval_s = config.integer("offsets.retention.check.interval.ms") / 1000
        self._check_at_s = node.clock.monotonic() + self._check_interval_s
        self._loaded: set[int] = set()
        self._unreadable: dict[int, str] = {}
        """Partitions that cannot be read, and why, as it was said last."""
        self._alarm: Parked | None = None

    # --- loading -----------------------------------------------------------------------------------------

    def open(self, group_id: str) -> Group | None:
        """Have a group's state read from the log, if it has not been; return the group if there is one.

        Raises:
            KafkaError: NOT_COORDINATOR (16), the log cannot be read.
        """
        groups = self.coordinator.groups
        if group_id not in groups and self.topic.exists:
            index = self.topic.partition_of(group_id)
            if index not in self._loaded:
                self._load(index)
        return groups.get(group_id)

    def open_all(self) -> None:
        """Have everything read that any group has stored. A log that cannot be read is reported: its groups
        are missing, those of the others are there.
        """
        if self.topic.exists:
            for index in self.topic.used_partitions():
                if index not in self._loaded:
                    with suppress(KafkaError):
                        self._load(index)

    def create_topic(self, now_ms: int) -> None:
        """Make `__consumer_offsets` if there is none. There is nothing in it to be read, then.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        if not self.topic.exists:
            self._loaded.update(range(self.topic.create(now_ms)))

    def _load(self, index: int) -> None:
        try:
            self._load_partition(index)
        except StorageError as error:
            if self._unreadable.get(index) != str(error):
                logger.error("the groups in %s-%d cannot be read: %s", NAME, index, error)
            self._unreadable[index] = str(error)
            raise error_for(ErrorCode.NOT_COORDINATOR, str(error)) from None

    def _load_partition(self, index: int) -> None:
        """Replay a partition: the last word about each offset and each group is what holds."""
        groups: dict[str, GroupMetadataValue | None] = {}
        offsets: dict[tuple[str, Place], Committed | None] = {}
        losses = Losses()
        if self.topic.is_begun(index):
            for stored in self.topic.replay(index, losses):
                if isinstance(stored, StoredGroup):
                    groups[stored.group_id] = stored.value
                else:
                    offsets[stored.group_id, stored.place] = stored.committed
        if losses.count:
            logger.error(
                "%s-%d is damaged; passed over, so that older commits and members may count again: %s",
                NAME,
                index,
                losses,
            )
        now = self.node.clock.monotonic()
        for (group_id, place), committed in offsets.items():
            if committed is not None:
                self.offsets.put(group_id, place, committed)
                if groups.get(group_id) is None and group_id not in self.coordinator.groups:
                    self.coordinator.create(group_id)
        for group_id, value in groups.items():
            if value is not None:
                self._restore(group_id, value, now)
        self._loaded.add(index)
        self._unreadable.pop(index, None)
        self._set_alarm()

    def _restore(self, group_id: str, value: GroupMetadataValue, now: float) -> None:
        """Have a group as it was stored; one that makes no sense has its offsets, and no members."""
        try:
            self.coordinator.restore(group_id, value, now)
        except Exception:
            # A barrier: what a stored group says comes from a disk. Its members join again.
            self.node.failures.caught("groups", f"restoring group {group_id!r}")
            self.coordinator.groups[group_id].disband()
            self.coordinator.create(group_id)

    # --- room --------------------------------------------------------------------------------------------

    def has_room_for_member(self, request: Any, client_id: str) -> bool:
        """Whether what a JoinGroup asks to be kept fits into the budget; what is kept already does."""
        group = self.coordinator.groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        size = sum(PROTOCOL_BYTES + len(each.name) + len(each.metadata) for each in request.protocols)
        if member is not None:
            size -= size_of_protocols(member.protocols)
        else:
            size += MEMBER_BYTES + len(request.group_instance_id or "") + 2 * len(client_id)
        if group is None:
            size += GROUP_BYTES + len(request.group_id)
        return size <= 0 or self.node.kept.has_room_for(size, stays=True)

    def has_room_for_offsets(self, group_id: str, commits: Sequence[tuple[Place, Committed]]) -> bool:
        """Whether offsets fit into the budget. New ones of partitions that have some always do."""
        growth = sum(self.offsets.growth(group_id, place, committed) for place, committed in commits)
        return growth <= 0 or self.node.kept.has_room_for(growth, stays=True)

    def _take_back_oldest_id(self) -> bool:
        """Give up the id that was given away longest ago; its client then asks for another."""
        oldest = next(iter(self.coordinator.effects.given_away.items()), None)
        if oldest is None:
            return False
        (_, member_id), group = oldest
        now = self.node.clock.monotonic()
        group.forget_id(member_id, now)
        self.settle(now)
        return True

    def _forget_unused(self) -> None:
        """Delete groups that were asked for and never joined."""
        unused, self.coordinator.effects.unused = self.coordinator.effects.unused, []
        for group in unused:
            is_there = self.coordinator.groups.get(group.id) is group
            if is_there and not (group.members or group.pending or self.offsets.of_group(group.id)):
                self.coordinator.forget(group.id)

    # --- requests that may wait --------------------------------------------------------------------------

    def join(self, request: Any, caller: Caller, now: float) -> Wait | Any:
        """JoinGroup: the response, or what to wait for."""
        return self._ask(self.coordinator.join, now, request, caller)

    def sync(self, request: Any, now: float) -> Wait | Any:
        """SyncGroup: the response, or what to wait for."""
        return self._ask(self.coordinator.sync, now, request)

    def _ask(self, method: Any, now: float, *what: Any) -> Wait | Any:
        answer = Answer()
        with self.settling(now):
            method(*what, answer, now)
        if answer.response is not None:
            return answer.response
        return Wait((answer,), _NEVER, answer=lambda: answer.response)

    @contextmanager
    def settling(self, now: float) -> Iterator[None]:
        """A block in which a coordinator that is up to date is asked something.

        What comes of it happens even if the block raises: it may concern others who wait.
        """
        self.coordinator.advance(now)
        try:
            yield
        finally:
            self.settle(now)

    def settle(self, now: float) -> None:
        """Let what is due happen, store what has to be stored, and answer whoever can be answered."""
        coordinator = self.coordinator
        try:
            coordinator.advance(now)
            while True:
                saves, replies = coordinator.effects.take()
                if not saves and not replies:
                    break
                failed = [group for group in dict.fromkeys(saves) if not self._store(group)]
                for answer, response in replies:
                    if failed:
                        _spoil(response)
                    answer.response = response  # type: ignore[attr-defined]
                    self.node.parking.notify(answer)
                for group in failed:
                    self._was_not_stored(group, now)
            if coordinator.effects.unused:
                self._forget_unused()
        finally:
            self._set_alarm()

    def _was_not_stored(self, group: Group, now: float) -> None:
        try:
            group.was_not_stored(now)
        except Exception:
            self.node.failures.caught("group", f"group {group.id!r}, which could not be stored")
            self.coordinator.recover(group, now)

    def _store(self, group: Group) -> bool:
        now_ms = self.node.clock.now_ms()
        try:
            self._append(group.id, [group_record(group.id, snapshot(group, now_ms))], now_ms)
        except (StorageError, KafkaError) as error:
            logger.error("group %s could not be stored: %s", group.id, error)
            return False
        except Exception:
            self.node.failures.caught("group", f"storing group {group.id!r}")
            return False
        return True

    # --- time --------------------------------------------------------------------------------------------

    def _set_alarm(self) -> None:
        """See that the coordinator is woken when its next timer is due, or before."""
        deadline = self.coordinator.next_deadline()
        alarm = self._alarm
        if deadline is None or (alarm is not None and alarm.is_waiting and alarm.deadline <= deadline):
            return
        if alarm is not None:
            self.node.parking.cancel(alarm)
        self._alarm = self.node.parking.park(Wait((), deadline), self._wake)

    def _wake(self) -> None:
        self._alarm = None
        self.settle(self.node.clock.monotonic())

    def maintain(self, now_ms: int) -> list[StorageError]:
        """Forget offsets and groups that nobody needs any more, every now and then."""
        self._set_alarm()  # in case that an exception has lost it
        uptime_s = self.node.clock.monotonic()
        if uptime_s < self._check_at_s:
            return []
        self._check_at_s = uptime_s + self._check_interval_s
        failures: list[StorageError] = []
        for group in list(self.coordinator.groups.values()):
            try:
                self._forget_expired(group, now_ms)
            except StorageError as error:
                failures.append(error)
            except Exception:
                self.node.failures.caught("group", f"expired offsets of group {group.id!r}")
        return failures

    def _forget_expired(self, group: Group, now_ms: int) -> None:
        places = self.offsets.expired(group, now_ms, self._retention_ms)
        kept = len(self.offsets.of_group(group.id)) - len(places)
        if kept == 0 and group.can_be_deleted:
            self.delete(group, now_ms)
        elif places:
            self.remove(group.id, places, now_ms)

    # --- offsets -----------------------------------------------------------------------------------------

    def commit(self, group_id: str, commits: Sequence[tuple[Place, Committed]], now_ms: int) -> None:
        """Store offsets, then note them.

        Raises:
            KafkaError: MESSAGE_TOO_LARGE (10).
            StorageError: they could not be written; nothing has changed.
        """
        if commits:
            records = [offset_record(group_id, place, committed) for place, committed in commits]
            self._append(group_id, records, now_ms)
            for place, committed in commits:
                self.offsets.put(group_id, place, committed)

    def remove(self, group_id: str, places: Iterable[Place], now_ms: int) -> None:
        """Remove those of these offsets that there are.

        Raises:
            StorageError: the tombstones could not be written; nothing has changed.
        """
        there = self.offsets.of_group(group_id)
        doomed = [place for place in places if place in there]
        self._append_tombstones(group_id, [offset_record(group_id, place, None) for place in doomed], now_ms)
        for place in doomed:
            self.offsets.remove(group_id, place)

    def delete(self, group: Group, now_ms: int) -> ErrorCode:
        """Delete a group that is empty, with its offsets; return NONE, or why not.

        Raises:
            StorageError: the tombstones could not be written; the group is still there.
        """
        if not group.can_be_deleted:
            return ErrorCode.NON_EMPTY_GROUP
        places = list(self.offsets.of_group(group.id))
        tombstones = [offset_record(group.id, place, None) for place in places]
        self._append_tombstones(group.id, [*tombstones, group_record(group.id, None)], now_ms)
        for place in places:
            self.offsets.remove(group.id, place)
        return self.coordinator.delete(group.id)

    def _append_tombstones(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> None:
        for start in range(0, len(records), _TOMBSTONES_AT_ONCE):
            self._append(group_id, records[start : start + _TOMBSTONES_AT_ONCE], now_ms)

    def _append(self, group_id: str, records: Sequence[KeyAndValue], now_ms: int) -> None:
        self.create_topic(now_ms)
        self.topic.append(group_id, records, now_ms)

    def forget_topics(self, topics: Sequence[str], now_ms: int) -> None:
        """Topics have been deleted: offsets in them mean nothing any more.

        Raises:
            KafkaError, StorageError: what is stored cannot be changed.
        """
        if NAME in topics:
            self.coordinator.forget_everything()
            self.offsets = Offsets()
            self._loaded.clear()
            self._unreadable.clear()
        elif self.topic.exists:
            self.open_all()
            for group_id, places in list(self.offsets.of_topics(topics)):
                self.remove(group_id, places, now_ms)

    def _wrote(self, partition: Partition, size: int) -> None:
        self.node.parking.notify(partition, size)


def _spoil(response: Any) -> None:
    """Make an error of an answer, because what it says could not be stored."""
    if not response.error_code:
        response.error_code = ErrorCode.NOT_COORDINATOR
        if hasattr(response, "assignment"):
            response.assignment = b""


def _new_member_id(name: str) -> str:
    return f"{name[:ID_NAME_CHARACTERS_MAX]}-{uuid.uuid4()}"


ID_BYTES = 1500
"""About what a member id takes in memory that was given away, with its timer."""

ID_NAME_CHARACTERS_MAX = 100
"""How much of a client's name its member id begins with."""


_NEVER = float("inf")
_TOMBSTONES_AT_ONCE = 1000
