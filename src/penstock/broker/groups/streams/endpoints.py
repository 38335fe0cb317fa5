"""The partitions that each instance of an application reads, for interactive queries (KIP-67)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.broker.groups.streams.state import StreamsState
from penstock.broker.groups.streams.tasks import Task


class EndpointPartitions(NamedTuple):
    """The host and port of a member, and the partitions that its active and standby tasks read, by topic."""

    endpoint: tuple[str, int]
    active: Mapping[str, list[int]]
    standby: Mapping[str, list[int]]


def endpoint_partitions(state: StreamsState, counts: Mapping[str, int]) -> tuple[EndpointPartitions, ...]:
    """Return the partitions of each member that has an endpoint; `counts` has the partition counts."""
    found = []
    for member_id, member in state.members.items():
        if member.endpoint is not None:
            assigned = state.current(member_id).assigned
            active = _partitions(assigned.active, state, counts)
            standby = _partitions(assigned.standby | assigned.warmup, state, counts)
            found.append(EndpointPartitions(member.endpoint, active, standby))
    return tuple(found)


def _partitions(
    tasks: Iterable[Task], state: StreamsState, counts: Mapping[str, int]
) -> dict[str, list[int]]:
    """Return the partitions that the tasks read, by topic. A topic may have fewer partitions than tasks."""
    topology = state.topology
    inputs = {} if topology is None else {each.id: tuple(each.inputs()) for each in topology.subtopologies}
    found: dict[str, list[int]] = {}
    for subtopology, index in sorted(tasks):
        for name in inputs.get(subtopology, ()):
            if index < counts.get(name, 0):
                found.setdefault(name, []).append(index)
    return found
