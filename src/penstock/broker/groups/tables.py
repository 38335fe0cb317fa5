"""Functions on groups of any type: memory, listing, restoring from records, messages about missing groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar


class _State(Protocol):
    @property
    def size_bytes(self) -> int: ...
    def apply(self, change: Any) -> None: ...


class ListedGroup(Protocol):
    """The interface of a group, of any type, that the function `listed` uses."""

    @property
    def state(self) -> str: ...


class PlannedGroup(ListedGroup, Protocol):
    """The interface of consumer, share and streams groups that the functions of this module use."""

    @property
    def id(self) -> str: ...
    @property
    def stored(self) -> Any:
        """Return the group's state according to its records in `__consumer_offsets`."""


G = TypeVar("G", bound=PlannedGroup)
L = TypeVar("L", bound=ListedGroup)


def size_of(groups: Mapping[str, PlannedGroup], group_bytes: int) -> int:
    """Return the approximate memory of groups in bytes: `group_bytes`, the id and the state of each group."""
    return sum(group_bytes + len(each.id) + int(each.stored.size_bytes) for each in groups.values())


def listed(
    groups: Mapping[str, L], own_type: str, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[L]:
    """Return the groups in the given states and of the given types, matched case-insensitively.

    An empty list matches all states or all types.
    """
    wanted_states = {state.lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    if wanted_types and own_type not in wanted_types:
        return []
    return [each for each in groups.values() if not wanted_states or each.state.lower() in wanted_states]


def restored(stored: Mapping[Any, Any], make: Callable[[str], G]) -> dict[str, G]:
    """Return a dict from group id to group for one partition, with the groups' stored changes applied.

    `stored` is a mapping from (key type, group id, member id or regular expression) to the last change, which
    is None for a tombstone.
    """
    groups: dict[str, G] = {}
    for (_, group_id, _), change in stored.items():
        if change is not None:
            if group_id not in groups:
                groups[group_id] = make(group_id)
            groups[group_id].stored.apply(change)
    return groups


def not_found(group_id: str) -> str:
    """Return the error message for a group that does not exist."""
    return f"Group {group_id} not found."


def not_of_type(group_id: str, group_type: str) -> str:
    """Return the error message for a group of another type than `group_type`, such as "share"."""
    return f"Group {group_id} is not a {group_type} group."
