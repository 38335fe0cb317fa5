"""Streams groups (KIP-1071) of a broker: connects their coordinator to store, settings and topics.

This module does the I/O for the coordinator: it stores the changes that a request or timer results in, and
then applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.broker.groups.planned import GroupHost, GroupSettingsOf, LateRecords, PlannedGroups
from penstock.broker.groups.records import StreamsGroupKey
from penstock.broker.groups.settings import OFFSETS_SINCE, StreamsGroupSettings
from penstock.broker.groups.streams.coordinator import STREAMS, StreamsGroupCoordinator, StreamsPlan
from penstock.broker.groups.streams.group import StreamsGroup

if TYPE_CHECKING:
    from penstock.broker.coordination.records import KeyAndValue
    from penstock.broker.coordination.timers import Timers
    from penstock.broker.groups.metadata_view import TopicsView
    from penstock.broker.groups.store import GroupStore
    from penstock.broker.groups.streams.group import StreamsAnswer, StreamsHeartbeat


class StreamsGroupService:
    """The streams groups of one broker. `is_other` returns True for the id of a group of another type."""

    def __init__(
        self, host: GroupHost, view: TopicsView, timers: Timers, is_other: Callable[[str], bool]
    ) -> None:
        self._host = host
        self._view = view
        self._is_other = is_other
        self.coordinator = StreamsGroupCoordinator(self.settings_of, view, timers)
        self._settings = GroupSettingsOf(host, STREAMS, self._make_settings)
        self.planned = PlannedGroups(host, self.coordinator, LateRecords(StreamsGroupKey, _records), STREAMS)

    @property
    def groups(self) -> dict[str, StreamsGroup]:
        """Return a dict from group id to streams group, with the groups that have been read from the log."""
        return self.coordinator.groups

    @property
    def view(self) -> TopicsView:
        """The topics of the cluster, in the form that the coordinator uses."""
        return self._view

    def settings_of(self, group_id: str) -> StreamsGroupSettings:
        """Return a group's settings: its own configs within the broker's limits, else the broker's."""
        return self._settings.of(group_id)

    def _make_settings(self, own: Mapping[str, str]) -> StreamsGroupSettings:
        config = self._host.config
        delay_ms = own.get("streams.initial.rebalance.delay.ms")
        standbys = own.get("streams.num.standby.replicas")
        interval_ms = own.get("streams.task.offset.interval.ms")
        tags = own.get("streams.rack.aware.assignment.tags")
        if tags is None:
            tags = config.text("group.streams.rack.aware.assignment.tags") or ""
        settings = StreamsGroupSettings(
            *self._settings.intervals(own),
            config.integer("group.streams.initial.rebalance.delay.ms") if delay_ms is None else int(delay_ms),
            min(
                config.integer("group.streams.num.standby.replicas") if standbys is None else int(standbys),
                config.integer("group.streams.max.standby.replicas"),
            ),
            config.integer("group.streams.max.size"),
            tuple(tag.strip() for tag in tags.split(",") if tag.strip()),
            config.integer("group.streams.task.offset.interval.ms")
            if interval_ms is None
            else max(int(interval_ms), config.integer("group.streams.min.task.offset.interval.ms")),
            int(
                own.get("streams.acceptable.recovery.lag")
                or config.integer("group.streams.acceptable.recovery.lag")
            ),
        )
        if not config.behaves_since(*OFFSETS_SINCE):
            return settings._replace(task_offset_interval_ms=0, ends_targets=False)
        return settings

    # --- requests ----------------------------------------------------------------------------------------

    def heartbeat(
        self,
        store: GroupStore,
        group_id: str,
        beat: StreamsHeartbeat,
        now: float,
        first: Sequence[KeyAndValue] = (),
    ) -> StreamsAnswer:
        """Handle StreamsGroupHeartbeat: store and apply its changes, and return the response.

        `first` are records to store before the changes: the tombstone of a classic group that is replaced.

        Raises:
            KafkaError: the error to respond with.
        """
        is_other = self._is_other(group_id)
        now_ms = self._host.clock.now_ms()
        plan = self.coordinator.heartbeat(group_id, beat, now, now_ms, makes_group=not is_other)
        self.planned.check_memory(plan)
        self._carry_out(store, plan, now, first)
        assert plan.answer is not None
        return plan.answer

    def work_off(self, store: GroupStore, now: float) -> None:
        """Store and apply the changes of the timers that have fired."""
        self.planned.work_off(store, now, lambda plan: self._carry_out(store, plan, now))

    def _carry_out(
        self, store: GroupStore, plan: StreamsPlan, now: float, first: Sequence[KeyAndValue] = ()
    ) -> None:
        """Store the changes of a plan, then apply them. `first` are records to store before them, if any.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), the changes could not be stored.
        """
        if plan.changes:
            self.planned.store(store, plan, first)
        self.coordinator.accept(plan, now)


def _records() -> Any:
    from penstock.broker.groups.streams import records

    return records
