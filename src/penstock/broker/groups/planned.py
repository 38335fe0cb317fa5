"""The code that consumer, share and streams groups (KIP-848, KIP-932, KIP-1071) of a broker share.

The coordinators of these groups do no I/O. A request or a timer results in a plan: an object with the changes
to store and the response. `PlannedGroups` stores these changes, and the coordinator then applies them.
`PlannedGroups` also reads, unloads and removes groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from penstock.broker.config.group_settings import group_setting
from penstock.broker.coordination.storing import work_off_due
from penstock.broker.groups.store import CoordinatorKind
from penstock.broker.groups.tables import PlannedGroup
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import GROUP_RESOURCE

if TYPE_CHECKING:
    from penstock.broker.coordination.due_timers import DueTimers
    from penstock.broker.coordination.records import KeyAndValue
    from penstock.broker.groups.metadata_view import TopicView
    from penstock.broker.groups.store import GroupStore
    from penstock.broker.requests.kept_state import KeptState
    from penstock.clock import Clock
    from penstock.common.failures import Failures

G = TypeVar("G", bound=PlannedGroup)
S = TypeVar("S")


class GroupHostSettings(Protocol):
    """The interface through which groups read the broker's settings."""

    def integer(self, name: str) -> int:
        """Return the value of a numeric setting."""

    def text(self, name: str) -> str | None:
        """Return the text of a setting, or None if it is not set."""

    def behaves_since(self, *numbers: int) -> bool:
        """Return True if the broker behaves as this release of Kafka or a newer one."""


class GroupHostMetadata(Protocol):
    """The interface through which groups read the broker's copy of the cluster's metadata."""

    @property
    def topics(self) -> Mapping[str, TopicView]: ...
    @property
    def topics_by_id(self) -> Mapping[bytes, Any]: ...
    @property
    def metadata_end_offset(self) -> int: ...
    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]: ...


class GroupHost(Protocol):
    """The interface of the broker that its groups use: settings, clock, metadata and requests."""

    @property
    def config(self) -> GroupHostSettings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def cluster(self) -> GroupHostMetadata: ...
    @property
    def failures(self) -> Failures: ...
    @property
    def kept(self) -> KeptState: ...
    def send_share_state(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the share coordinator; `done` is called once with the response."""


class GroupTopicsView:
    """The topics of the cluster, in the form that coordinators use."""

    def __init__(self, cluster: GroupHostMetadata) -> None:
        self._cluster = cluster

    @property
    def topics(self) -> Mapping[str, TopicView]:
        """Return a dict from topic name to topic."""
        return self._cluster.topics

    @property
    def version(self) -> int:
        """Return a number that grows with every change of metadata."""
        return self._cluster.metadata_end_offset


class PlannedResult(Protocol):
    """The plan that a request or a timer results in: the group, its draft state, and the changes to store."""

    @property
    def group(self) -> Any: ...
    @property
    def draft(self) -> Any: ...
    @property
    def changes(self) -> Sequence[Any]:
        """Return the changes to be stored, in order."""


class PlanningCoordinator(Protocol[G]):
    """A coordinator of groups whose requests and timers result in plans (`PlannedResult`)."""

    @property
    def groups(self) -> dict[str, G]: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def timers(self) -> DueTimers: ...
    def restore(self, stored: Mapping[Any, Any], now: float) -> None: ...
    def forget(self, group_id: str) -> None: ...
    def removal(self, group: Any) -> Sequence[Any]: ...


class RecordsModule(Protocol):
    """The interface of the modules that convert the changes of one group type to records, and back."""

    def read_change(self, key_type: int, key: bytes, value: bytes | None) -> tuple[Any, Any]: ...
    def records_of(self, group_id: str, changes: Sequence[Any]) -> list[KeyAndValue]: ...


class LateRecords:
    """Converts the changes of one group type to records, and back.

    `load` imports the module that does the conversion, on first use, since few brokers need it.
    """

    def __init__(self, key_types: Iterable[int], load: Callable[[], Any]) -> None:
        self.key_types = frozenset(key_types)
        self._load = load

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        """Return the parsed key of a record (its type and fields), and the change that the record stores.

        The change is None for a tombstone. `key` is the bytes of the key after its type.

        Raises:
            DecodeError: the record is damaged, or its value has a newer version than is supported.
        """
        found: RecordsModule = self._load()
        return found.read_change(key_type, key, value)

    def of(self, group_id: str, changes: Sequence[Any]) -> list[KeyAndValue]:
        """Return the records that store changes of a group."""
        if not changes:
            return []
        found: RecordsModule = self._load()
        return found.records_of(group_id, changes)


class PlannedGroups(Generic[G]):
    """Stores the plans of one group type: the changes that requests and timers result in."""

    def __init__(
        self, host: GroupHost, coordinator: PlanningCoordinator[G], records: LateRecords, own_type: str
    ) -> None:
        self._host = host
        self._coordinator = coordinator
        self.records = records
        self.kind = CoordinatorKind(records, coordinator, host, f"{own_type} groups")
        host.kept.add(f"{own_type} groups", lambda: coordinator.size_bytes)

    def check_memory(self, plan: PlannedResult, freed_bytes: int = 0) -> None:
        """Check that the memory which a plan's changes add to a group fits into the budget for groups.

        `freed_bytes` is the memory of the classic group that the plan replaces, if any.

        Raises:
            KafkaError: COORDINATOR_NOT_AVAILABLE (15), the memory does not fit.
        """
        growth = plan.draft.state.size_bytes - plan.group.stored.size_bytes if plan.draft.changes else 0
        if growth > freed_bytes and not self._host.kept.has_room_for(growth - freed_bytes, stays=True):
            raise error_for(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"the broker has no memory for members of {plan.group.id}",
            )

    def store(self, store: GroupStore, plan: PlannedResult, first: Sequence[KeyAndValue] = ()) -> None:
        """Store the changes of a plan, in one batch after the records `first`, if any.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), the changes could not be stored.
        """
        group_id = plan.group.id
        store.store(group_id, [*first, *self.records.of(group_id, plan.changes)], self._host.clock.now_ms())

    def work_off(self, store: GroupStore, now: float, carry_out: Callable[[Any], object]) -> None:
        """Store and apply the plans of the timers that have fired; `carry_out` does this for one plan."""
        timers = self._coordinator.timers
        work_off_due(timers.take(), carry_out, timers.fire_again, self._host.clock, self._host.failures, now)

    def tombstones(self, group: G) -> list[KeyAndValue]:
        """Return the tombstones of a group's own records, without the tombstones of its committed offsets."""
        return self.records.of(group.id, self._coordinator.removal(group))

    def unload(self, is_led_elsewhere: Callable[[str], bool]) -> None:
        """Drop the groups that another node now coordinates."""
        for group_id in list(self._coordinator.groups):
            if is_led_elsewhere(group_id):
                self._coordinator.forget(group_id)


class GroupSettingsOf(Generic[S]):
    """The settings of groups of one type: each group's own configs, limited by the settings of the broker.

    `make` computes settings from a group's own configs, a mapping from names to texts. Nearly all groups have
    no configs of their own, so the settings without them are cached for each version of the metadata. Every
    heartbeat needs settings, and computing them would take as long as the rest of the heartbeat.
    """

    def __init__(self, host: GroupHost, own_type: str, make: Callable[[Mapping[str, str]], S]) -> None:
        self._host = host
        self._own_type = own_type
        self._make = make
        self._version = -1
        self._common: S | None = None

    def of(self, group_id: str) -> S:
        """Return a group's settings: the broker's settings, with the group's own configs applied."""
        cluster = self._host.cluster
        own = cluster.resource_configs.get((GROUP_RESOURCE, group_id))
        if own:
            return self._make(own)
        version = cluster.metadata_end_offset
        if self._common is None or version != self._version:
            self._common, self._version = self._make({}), version
        return self._common

    def intervals(self, own: Mapping[str, str]) -> tuple[int, int, int]:
        """Return a group's session timeout, heartbeat interval and assignment interval, in milliseconds."""
        config = self._host.config
        session_ms, heartbeat_ms, assignment_ms = (
            group_setting(own, config, self._own_type, name)
            for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
        )
        return session_ms, heartbeat_ms, assignment_ms
