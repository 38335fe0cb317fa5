"""Administration of streams groups (KIP-1071) for asyncio: list and describe, with topologies and tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.admin.groups import GroupAdministration, GroupListing, refused_to
from penstock.client.cluster.metadata import BrokerNode
from penstock.errors import PenstockError
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.streams_group_describe_response import Member, Subtopology, TaskIds

STREAMS = "streams"
"""The group type of streams groups in ListGroups."""


class StreamsTask(NamedTuple):
    """A Kafka Streams task: one subtopology that processes one partition number of its source topics."""

    subtopology: str
    partition: int


class StreamsSubtopology(NamedTuple):
    """A subtopology of a streams application. The broker creates its repartition topics and changelogs."""

    id: str
    source_topics: tuple[str, ...]
    repartition_source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]


class StreamsMemberDescription(NamedTuple):
    """A member of a streams group.

    `process_id` identifies the application instance that the member runs in. `endpoint` is the ``host:port``
    for interactive queries, or None.
    """

    member_id: str
    client_id: str
    host: str
    epoch: int
    process_id: str
    endpoint: str | None
    active_tasks: tuple[StreamsTask, ...]
    standby_tasks: tuple[StreamsTask, ...]
    warmup_tasks: tuple[StreamsTask, ...]


class StreamsGroupDescription(NamedTuple):
    """A streams group, its topology and its members."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    coordinator: BrokerNode
    subtopologies: tuple[StreamsSubtopology, ...]
    members: tuple[StreamsMemberDescription, ...]


class StreamsGroupAdministration:
    """Describes streams groups, through the connections of a client.

    Each call raises KafkaError if a broker refuses, UnsupportedVersionError if the cluster has no streams
    groups, and NetworkError or RequestTimeoutError if no broker answers in time.
    """

    def __init__(self, client: AsyncClient, groups: GroupAdministration) -> None:
        self._client = client
        self._groups = groups

    async def listings(self, states: Collection[str]) -> list[GroupListing]:
        """Return all streams groups of the cluster, or those in the given states, sorted by name."""
        return await self._groups.listings(states, group_type=STREAMS)

    async def describe(self, group_id: str) -> StreamsGroupDescription:
        """Return the description of a streams group."""

        def read(answer: Any, node: int) -> StreamsGroupDescription:
            group, coordinator = self._groups.described(
                answer.groups, group_id, node, "StreamsGroupDescribe", _explained
            )
            topology = group.topology
            subtopologies = () if topology is None else topology.subtopologies or ()
            return StreamsGroupDescription(
                group_id,
                group.group_state,
                group.group_epoch,
                group.assignment_epoch,
                -1 if topology is None else topology.epoch,
                coordinator,
                tuple(sorted(map(_subtopology, subtopologies))),
                tuple(sorted(map(_member, group.members))),
            )

        request = StreamsGroupDescribeRequest(group_ids=[group_id])
        return await self._groups.ask_coordinator(group_id, "describing a streams group", request, read)


NEEDS_STREAMS_GROUPS = (
    "streams groups (KIP-1071) need Kafka 4.2 or newer, whose feature streams.version is 1, and whose "
    "group.coordinator.rebalance.protocols names them"
)


def _explained(code: int, group_id: str) -> PenstockError:
    return refused_to("streams", NEEDS_STREAMS_GROUPS, code, group_id)


def _subtopology(each: Subtopology) -> StreamsSubtopology:
    return StreamsSubtopology(
        each.subtopology_id,
        tuple(sorted(each.source_topics)),
        tuple(sorted(topic.name for topic in each.repartition_source_topics)),
        tuple(sorted(each.repartition_sink_topics)),
        tuple(sorted(topic.name for topic in each.state_changelog_topics)),
    )


def _member(member: Member) -> StreamsMemberDescription:
    endpoint, tasks = member.user_endpoint, member.assignment
    return StreamsMemberDescription(
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_epoch,
        member.process_id,
        None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        _tasks(tasks.active_tasks),
        _tasks(tasks.standby_tasks),
        _tasks(tasks.warmup_tasks),
    )


def _tasks(listed: Iterable[TaskIds]) -> tuple[StreamsTask, ...]:
    return tuple(
        sorted(StreamsTask(each.subtopology_id, index) for each in listed for index in each.partitions)
    )
