"""Consumer groups (KIP-848) of a broker: connects their coordinator to store, settings and topics.

This module does the I/O for the coordinator: it stores the changes that a request or timer results in, and
then applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.broker.coordination.records import KeyAndValue
from penstock.broker.groups.classic.coordinator import ClassicCoordinator
from penstock.broker.groups.classic.records import group_record, snapshot
from penstock.broker.groups.consumer.coordinator import CONSUMER, ConsumerCoordinator, ConsumerPlan, Upgrade
from penstock.broker.groups.consumer.state import State, removal
from penstock.broker.groups.migration import downgrade, upgrade
from penstock.broker.groups.planned import (
    GroupHost,
    GroupSettingsOf,
    GroupTopicsView,
    LateRecords,
    PlannedGroups,
)
from penstock.broker.groups.records import ConsumerGroupKey
from penstock.broker.groups.settings import (
    ASSIGNOR_NAMES,
    ConsumerGroupSettings,
    MigrationPolicy,
)
from penstock.broker.groups.store import GroupStore
from penstock.common.logs import logger_named

if TYPE_CHECKING:
    from penstock.broker.coordination.timers import Timers
    from penstock.broker.groups.consumer.group import ConsumerGroup, Heartbeat, HeartbeatResult, Matcher
    from penstock.broker.groups.metadata_view import TopicView

logger = logger_named("penstock.broker")


class ConsumerGroupService:
    """The consumer groups of one broker. `classic` has the groups of the classic protocol.

    Each group has the consumer or the classic type. A consumer that joins a classic group converts it to a
    consumer group; a consumer group with only classic members left becomes a classic group, if
    `group.consumer.migration.policy` allows.
    """

    def __init__(self, host: GroupHost, classic: ClassicCoordinator, timers: Timers) -> None:
        self._host = host
        self._classic = classic
        self._settings = GroupSettingsOf(host, CONSUMER, self._make_settings)
        names = (host.config.text("group.consumer.assignors") or "").split(",")
        self._assignors = tuple(ASSIGNOR_NAMES[name.strip()] for name in names if name.strip()) or (
            ConsumerGroupSettings().assignors
        )
        policy = host.config.text("group.consumer.migration.policy") or ""
        self._migration = MigrationPolicy(policy.lower())
        self.coordinator = ConsumerCoordinator(
            self.settings_of, GroupTopicsView(host.cluster), timers, compile_subscription
        )
        self.planned = PlannedGroups(
            host, self.coordinator, LateRecords(ConsumerGroupKey, _records), CONSUMER
        )

    @property
    def groups(self) -> dict[str, ConsumerGroup]:
        """Return a dict from group id to consumer group, with the groups that have been read from the log."""
        return self.coordinator.groups

    def settings_of(self, group_id: str) -> ConsumerGroupSettings:
        """Return a group's settings: its own configs within the broker's limits, else the broker's."""
        return self._settings.of(group_id)

    def _make_settings(self, own: Mapping[str, str]) -> ConsumerGroupSettings:
        config = self._host.config
        return ConsumerGroupSettings(
            *self._settings.intervals(own),
            config.integer("group.consumer.max.size"),
            self._assignors,
            config.integer("group.consumer.regex.refresh.interval.ms"),
            self._migration,
            config.integer("group.max.size"),
            config.behaves_since(4, 4),
        )

    @property
    def topics(self) -> Mapping[str, TopicView]:
        """Return the topics of the cluster, by name."""
        return self._host.cluster.topics

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        store: GroupStore,
        group_id: str,
        beat: Heartbeat,
        sees: Callable[[str], bool],
        now: float,
    ) -> HeartbeatResult:
        """Handle ConsumerGroupHeartbeat: store and apply its changes, and return the response.

        `sees` returns True if the client may describe a topic.

        Raises:
            KafkaError: the error to respond with.
        """
        classic = self._classic.groups.get(group_id)
        has_members = classic is not None and not classic.can_be_deleted

        def turn() -> Upgrade:
            assert classic is not None
            changes = upgrade(classic, self.settings_of(group_id), self.topics)
            # Who takes the place of a static member changes nothing, and the others wait for a rebalance.
            return Upgrade(changes, assigns_anew=not classic.is_stable)

        plan = self.coordinator.heartbeat(
            group_id, beat, self._host.clock.now_ms(), turn if has_members else None
        )
        self.planned.check_memory(plan, 0 if classic is None else classic.roster.size_bytes)
        first = [] if classic is None else [group_record(group_id, None)]
        self._carry_out(store, plan, now, first, sees)
        if classic is not None:
            if has_members:
                logger.info("the classic group %s has become a consumer group", group_id)
                classic.give_way()
            else:
                classic.delete()
            self._classic.forget(group_id)
        assert plan.answer is not None
        return plan.answer

    def join_classic(self, store: GroupStore, group: ConsumerGroup, beat: Heartbeat, now: float) -> int:
        """Handle a classic member's JoinGroup: store and apply its changes, and return the member's epoch.

        Raises:
            KafkaError: the error to respond with.
        """
        plan = self.coordinator.join_classic(group, beat, self._host.clock.now_ms())
        self.planned.check_memory(plan, 0)
        self._carry_out(store, plan, now)
        if self.groups.get(group.id) is group:
            self.coordinator.awaits_sync(group, beat.member_id, now)
        assert plan.answer is not None
        return plan.answer.epoch

    def leave_classic(
        self, store: GroupStore, group: ConsumerGroup, member_ids: Collection[str], now: float
    ) -> None:
        """Handle LeaveGroup: store and apply the removal of the members.

        Raises:
            KafkaError: the error to respond with.
        """
        self._carry_out(store, self.coordinator.leave_classic(group, member_ids), now)

    def waits_for_join(self, group: ConsumerGroup) -> bool:
        """Return True if a classic member has to rejoin so that the target assignment is recomputed."""
        return self.coordinator.waits_for_join(group, self._host.clock.now_ms())

    def _carry_out(
        self,
        store: GroupStore,
        plan: ConsumerPlan,
        now: float,
        first: Sequence[KeyAndValue] = (),
        sees: Callable[[str], bool] | None = None,
    ) -> None:
        """Store the changes of a plan, then apply them. `first` are records to store before them, if any.

        Raises:
            KafkaError: the changes cannot be stored; nothing has changed.
        """
        if plan.turns_classic and self._downgrade(store, plan, now):
            return
        self.planned.store(store, plan, first)
        self.coordinator.accept(plan, now, sees)

    def _downgrade(self, store: GroupStore, plan: ConsumerPlan, now: float) -> bool:
        """Convert a group to a classic one; return False if its members do not make a valid classic group.

        If members have left, or some do not have their target assignments yet, the remaining members begin a
        rebalance.

        Raises:
            KafkaError: the change cannot be stored; nothing has changed.
        """
        group, state = plan.group, plan.draft.state
        is_joining = plan.touched is not None
        classic = self._classic.build(group.id)
        try:
            downgrade(classic, state, group.stored.epoch, self.topics)
            changes = [*plan.changes, *removal(state)] if is_joining else removal(group.stored)
            now_ms = self._host.clock.now_ms()
            records = self.planned.records.of(group.id, changes)
            records.append(group_record(group.id, snapshot(classic, now_ms)))
            store.store(group.id, records, now_ms)
        except ValueError as error:
            logger.error("consumer group %s cannot become a classic group: %s", group.id, error)
            classic.disband()
            return False
        except Exception:
            classic.disband()
            raise
        logger.info("consumer group %s has become a classic group", group.id)
        self.coordinator.forget(group.id)
        self._classic.adopt(classic)
        for member in classic.members.values():
            classic.renew(member, now)
        if not is_joining or state.state is not State.STABLE:
            classic.members_have_gone(now)
        return True

    def work_off(self, store: GroupStore, now: float) -> None:
        """Store and apply the changes of the timers that have fired."""
        self.planned.work_off(store, now, lambda plan: self._carry_out(store, plan, now))

    # --- groups ------------------------------------------------------------------------------------------

    def make_way(self, store: GroupStore, group_id: str) -> None:
        """Remove a consumer group without members, so that a classic group can have its group id.

        Raises:
            KafkaError, StorageError: the tombstones could not be written.
        """
        group = self.groups.get(group_id)
        if group is None or not group.can_be_deleted:
            return
        store.append(group_id, self.planned.tombstones(group), self._host.clock.now_ms())
        self.coordinator.forget(group_id)
        self._classic.create(group_id)


def _records() -> Any:
    from penstock.broker.groups.consumer import records

    return records


def compile_subscription(regex: str) -> Matcher:
    """Return a function that tests if a regular expression in RE2 syntax matches the whole of a topic name.

    Raises:
        ValueError: the expression is invalid, or compiling it takes too long. The returned function raises
        ValueError if matching takes too long.
    """
    from penstock.broker.requests.patterns import compile_pattern  # few groups subscribe by patterns

    return compile_pattern(regex)
