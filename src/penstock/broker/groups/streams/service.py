"""Streams groups (KIP-1071) at a broker: joins their coordinator to the store, the settings and the topics.

Does the I/O that the coordinator asks for: it stores the changes of a plan, and only then has them made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.config.resource_types import GROUP_RESOURCE, NumericSettings, group_setting
from penstock.broker.groups.store import CoordinatorKind
from penstock.broker.groups.storing import store_records, work_off_due
from penstock.broker.groups.streams.coordinator import StreamsGroupCoordinator, StreamsPlan
from penstock.broker.groups.streams.group import StreamsGroup
from penstock.broker.groups.streams.keys import StreamsRecords
from penstock.broker.groups.streams.settings import StreamsGroupSettings
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.groups.metadata_view import TopicsView
    from penstock.broker.groups.records import KeyAndValue
    from penstock.broker.groups.store import GroupStore
    from penstock.broker.groups.streams.group import StreamsAnswer, StreamsHeartbeat
    from penstock.broker.groups.timers import Timers
    from penstock.broker.requests.kept_state import KeptState
    from penstock.clock import Clock
    from penstock.common.failures import Failures


class Metadata(Protocol):
    """The metadata of the broker that streams groups need."""

    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]: ...


class Host(Protocol):
    """The parts of the broker that streams groups need."""

    @property
    def config(self) -> NumericSettings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def cluster(self) -> Metadata: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def kept(self) -> KeptState: ...


class StreamsGroupService:
    """The streams groups of one broker. `is_other` says that a group is of another type."""

    def __init__(self, host: Host, view: TopicsView, timers: Timers, is_other: Callable[[str], bool]) -> None:
        self._host = host
        self._view = view
        self._is_other = is_other
        self.coordinator = StreamsGroupCoordinator(self.settings_of, view, timers)
        self.kind = CoordinatorKind(StreamsRecords(), self.coordinator, host, "streams groups")
        host.kept.add("streams groups", lambda: self.coordinator.size_bytes)

    @property
    def groups(self) -> dict[str, StreamsGroup]:
        """The groups that have been read, by id."""
        return self.coordinator.groups

    @property
    def view(self) -> TopicsView:
        """The topics of the cluster."""
        return self._view

    def settings_of(self, group_id: str) -> StreamsGroupSettings:
        """Return the settings of a group: what is set for it, within the bounds of the broker, or the
        broker's.
        """
        config = self._host.config
        own = self._host.cluster.resource_configs.get((GROUP_RESOURCE, group_id), {})
        delay_ms = own.get("streams.initial.rebalance.delay.ms")
        standbys = own.get("streams.num.standby.replicas")
        return StreamsGroupSettings(
            group_setting(own, config, "streams", "session.timeout.ms"),
            group_setting(own, config, "streams", "heartbeat.interval.ms"),
            group_setting(own, config, "streams", "assignment.interval.ms"),
            config.integer("group.streams.initial.rebalance.delay.ms") if delay_ms is None else int(delay_ms),
            min(
                config.integer("group.streams.num.standby.replicas") if standbys is None else int(standbys),
                config.integer("group.streams.max.standby.replicas"),
            ),
            config.integer("group.streams.max.size"),
        )

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        store: GroupStore,
        group_id: str,
        beat: StreamsHeartbeat,
        now: float,
        first: Sequence[KeyAndValue] = (),
    ) -> StreamsAnswer:
        """StreamsGroupHeartbeat: store what it leads to, behind the records `first`, and return the answer.

        Raises:
            KafkaError: the error to answer with.
        """
        is_other = self._is_other(group_id)
        now_ms = self._host.clock.now_ms()
        plan = self.coordinator.heartbeat(group_id, beat, now, now_ms, makes_group=not is_other)
        growth = plan.draft.state.size_bytes - plan.group.stored.size_bytes if plan.changes else 0
        if growth > 0 and not self._host.kept.has_room_for(growth, stays=True):
            raise error_for(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the broker has no memory for members of {group_id}"
            )
        self._carry_out(store, plan, now, first)
        assert plan.answer is not None
        return plan.answer

    def work_off(self, store: GroupStore, now: float) -> None:
        """Do what the timers lead to that have fired."""
        host, timers = self._host, self.coordinator.timers
        work_off_due(
            timers.take(),
            lambda plan: self._carry_out(store, plan, now),
            timers.fire_again,
            host.clock,
            host.failures,
            now,
        )

    def _carry_out(
        self, store: GroupStore, plan: StreamsPlan, now: float, first: Sequence[KeyAndValue] = ()
    ) -> None:
        """Store the changes of a plan, behind the records `first`, then make them.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), they could not be stored.
        """
        if plan.changes:
            from penstock.broker.groups.streams.records import records_of

            records = [*first, *records_of(plan.group.id, plan.changes)]
            store_records(store, plan.group.id, records, self._host.clock.now_ms())
        self.coordinator.accept(plan, now)

    # --- groups ------------------------------------------------------------------------------------------

    def tombstones(self, group: StreamsGroup) -> list[KeyAndValue]:
        """Return the records that end a group, without its offsets."""
        from penstock.broker.groups.streams.records import records_of

        return records_of(group.id, self.coordinator.removal(group))

    def unload(self, is_led_elsewhere: Callable[[str], bool]) -> None:
        """Let go of groups that another node coordinates from now on."""
        for group_id in list(self.groups):
            if is_led_elsewhere(group_id):
                self.coordinator.forget(group_id)
