"""Functions on groups of any type: memory, listing, restoring from records, messages about missing groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar


class _State(Protocol):
    @property
    def size_bytes(self) -> int: ...
    def apply(self, change: Any) -> None: ...


class ListedGroup(Protocol):
    """A group of any type, as `listed` uses it."""

    @property
    def state(self) -> str: ...


class PlannedGroup(ListedGroup, Protocol):
    """A consumer, share or streams group, as the functions of this module use it."""

    @property
    def id(self) -> str: ...
    @property
    def stored(self) -> Any:
        """Return the state according to the stored records."""


G = TypeVar("G", bound=PlannedGroup)
L = TypeVar("L", bound=ListedGroup)


def size_of(groups: Mapping[str, PlannedGroup], group_bytes: int) -> int:
    """Return the approximate memory of groups in bytes: `group_bytes`, name and state of each group."""
    return sum(group_bytes + len(each.id) + int(each.stored.size_bytes) for each in groups.values())


def listed(
    groups: Mapping[str, L], own_type: str, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[L]:
    """Return the groups in the given states and of the given types, ignoring case; no filter matches all."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    if wanted_types and own_type not in wanted_types:
        return []
    return [each for each in groups.values() if not wanted_states or each.state.lower() in wanted_states]


def restored(stored: Mapping[Any, Any], make: Callable[[str], G]) -> dict[str, G]:
    """Return the groups of one partition by id, with their stored changes applied.

    `stored` has changes by the key's type, group and member; None for a tombstone.
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
