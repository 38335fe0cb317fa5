"""Consumer groups (KIP-848) at a broker: joins their coordinator to the store, the settings and the topics.

Does the I/O that the coordinator asks for: it stores the changes of a plan, and only then has them made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.config.resource_types import GROUP_RESOURCE
from penstock.broker.groups.classic.coordinator import Coordinator
from penstock.broker.groups.classic.records import group_record
from penstock.broker.groups.consumer.coordinator import ConsumerCoordinator, Plan
from penstock.broker.groups.consumer.keys import ConsumerRecords
from penstock.broker.groups.consumer.settings import ASSIGNOR_NAMES, ConsumerGroupSettings
from penstock.broker.groups.records import KeyAndValue
from penstock.broker.groups.store import GroupStore
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.groups.consumer.group import Answer, ConsumerGroup, Heartbeat, Matcher
    from penstock.broker.groups.consumer.state import Change
    from penstock.broker.groups.consumer.topics import TopicView
    from penstock.broker.groups.timers import Timers
    from penstock.broker.requests.kept_state import KeptState
    from penstock.clock import Clock
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")


class Settings(Protocol):
    """The settings of the broker."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""

    def text(self, name: str) -> str | None:
        """Return the text of a setting, None where it has none."""


class Metadata(Protocol):
    """What consumer groups need of the broker's metadata."""

    @property
    def topics(self) -> Mapping[str, TopicView]: ...
    @property
    def metadata_end_offset(self) -> int: ...
    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]: ...


class Host(Protocol):
    """What consumer groups need of the broker."""

    @property
    def config(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def cluster(self) -> Metadata: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def kept(self) -> KeptState: ...


class View:
    """The topics of the cluster, as the coordinator sees them."""

    def __init__(self, cluster: Metadata) -> None:
        self._cluster = cluster

    @property
    def topics(self) -> Mapping[str, TopicView]:
        """The topics by name."""
        return self._cluster.topics

    @property
    def version(self) -> int:
        """A number that grows with every change of metadata."""
        return self._cluster.metadata_end_offset


class ConsumerKind:
    """Consumer groups, as a `GroupKind` of the store."""

    key_types = ConsumerRecords.key_types
    read = staticmethod(ConsumerRecords().read)

    def __init__(self, coordinator: ConsumerCoordinator, host: Host) -> None:
        self._coordinator = coordinator
        self._host = host

    def restore(self, stored: Mapping[Any, Change | None], with_offsets: Collection[str]) -> None:
        """Take over the groups of one partition that was read."""
        try:
            self._coordinator.restore(stored, self._host.clock.monotonic())
        except Exception:
            # A barrier: what stored groups say comes from a disk. Their members join again.
            self._host.failures.caught("groups", "restoring consumer groups")


class ConsumerGroupService:
    """The consumer groups of one broker. `classic` has the groups of the classic protocol.

    A group is one of the two. A member that joins by the other protocol replaces an empty group.
    """

    def __init__(self, host: Host, classic: Coordinator, timers: Timers) -> None:
        self._host = host
        self._classic = classic
        names = (host.config.text("group.consumer.assignors") or "").split(",")
        self._assignors = tuple(ASSIGNOR_NAMES[name.strip()] for name in names if name.strip()) or (
            ConsumerGroupSettings().assignors
        )
        self.coordinator = ConsumerCoordinator(
            self.settings_of, View(host.cluster), timers, compile_subscription
        )
        self.kind = ConsumerKind(self.coordinator, host)
        host.kept.add("consumer groups", lambda: self.coordinator.size_bytes)

    @property
    def groups(self) -> dict[str, ConsumerGroup]:
        """The groups that have been read, by id."""
        return self.coordinator.groups

    def settings_of(self, group_id: str) -> ConsumerGroupSettings:
        """Return the settings of a group: what is set for it, within the bounds of the broker, or the
        broker's.
        """
        config = self._host.config
        own = self._host.cluster.resource_configs.get((GROUP_RESOURCE, group_id), {})

        def value(name: str) -> int:
            text = own.get(f"consumer.{name}")
            if text is None:
                return config.integer(f"group.consumer.{name}")
            least = config.integer(f"group.consumer.min.{name}")
            return min(max(int(text), least), config.integer(f"group.consumer.max.{name}"))

        return ConsumerGroupSettings(
            value("session.timeout.ms"),
            value("heartbeat.interval.ms"),
            value("assignment.interval.ms"),
            config.integer("group.consumer.max.size"),
            self._assignors,
            config.integer("group.consumer.regex.refresh.interval.ms"),
        )

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        store: GroupStore,
        group_id: str,
        beat: Heartbeat,
        sees: Callable[[str], bool],
        now: float,
    ) -> Answer:
        """ConsumerGroupHeartbeat: store what it leads to, and return the answer.

        `sees` returns whether the client may see a topic.

        Raises:
            KafkaError: the error to answer with.
        """
        classic = self._classic.groups.get(group_id)
        has_members = classic is not None and not classic.can_be_deleted
        plan = self.coordinator.heartbeat(
            group_id, beat, self._host.clock.now_ms(), makes_group=not has_members
        )
        growth = plan.draft.state.size_bytes - plan.group.stored.size_bytes if plan.changes else 0
        if growth > 0 and not self._host.kept.has_room_for(growth, stays=True):
            raise error_for(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the broker has no memory for members of {group_id}"
            )
        self._store(store, plan, [] if classic is None else [group_record(group_id, None)])
        if classic is not None:
            self._classic.delete(group_id)
        self.coordinator.accept(plan, now, sees)
        assert plan.answer is not None
        return plan.answer

    def work_off(self, store: GroupStore, now: float) -> None:
        """Do what the timers lead to that have fired."""
        due = self.coordinator.take_due()
        for timer, make_plan in due:
            try:
                plan = make_plan(now, self._host.clock.now_ms())
                if plan is not None:
                    self._store(store, plan)
                    self.coordinator.accept(plan, now)
            except Exception as error:
                # A barrier: one group must not stop the timers of the others.
                if not isinstance(error, KafkaError):
                    self._host.failures.caught("group timer", "a timer of a consumer group")
                self.coordinator.fire_again(timer, now)

    def _store(self, store: GroupStore, plan: Plan, first: list[KeyAndValue] | None = None) -> None:
        """Store the changes of a plan.

        Raises:
            KafkaError: NOT_COORDINATOR (16), or UNKNOWN_SERVER_ERROR (-1) where they exceed what a batch of
                `__consumer_offsets` may have.
        """
        if not plan.changes:
            return
        from penstock.broker.groups.consumer.records import records_of

        group_id = plan.group.id
        records = [*(first or ()), *records_of(group_id, plan.changes)]
        try:
            store.append(group_id, records, self._host.clock.now_ms())
        except StorageError as error:
            logger.error("consumer group %s could not be stored: %s", group_id, error)
            raise error_for(ErrorCode.NOT_COORDINATOR, str(error)) from None
        except KafkaError as error:
            if error.code != ErrorCode.MESSAGE_TOO_LARGE:
                raise
            logger.error("consumer group %s could not be stored: %s", group_id, error)
            raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None

    # --- groups ------------------------------------------------------------------------------------------

    def tombstones(self, group: ConsumerGroup) -> list[KeyAndValue]:
        """Return the records that end a group, without its offsets."""
        from penstock.broker.groups.consumer.records import records_of

        return records_of(group.id, self.coordinator.removal(group))

    def make_way(self, store: GroupStore, group_id: str) -> bool:
        """Turn an empty consumer group into one that classic members may join; return False for one that
        has members.

        Raises:
            KafkaError, StorageError: the tombstones could not be written.
        """
        group = self.groups.get(group_id)
        if group is None:
            return True
        if not group.can_be_deleted:
            return False
        store.append(group_id, self.tombstones(group), self._host.clock.now_ms())
        self.coordinator.forget(group_id)
        self._classic.create(group_id)
        return True

    def unload(self, is_led_elsewhere: Callable[[str], bool]) -> None:
        """Let go of groups that another node coordinates from now on."""
        for group_id in list(self.groups):
            if is_led_elsewhere(group_id):
                self.coordinator.forget(group_id)


def compile_subscription(regex: str) -> Matcher:
    """Return a function that returns whether all of a name matches a regular expression of RE2's syntax.

    Raises:
        ValueError: it is none, or takes too long; the function may raise it, too.
    """
    from penstock.broker.requests.patterns import compile_pattern  # few groups subscribe by patterns

    return compile_pattern(regex)
