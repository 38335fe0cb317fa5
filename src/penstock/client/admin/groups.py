"""Administration of groups for asyncio: list, describe and delete; read, set and remove their offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.client.assignors.member_metadata import PROTOCOL_TYPE, decode_assignment, group_by_topic
from penstock.client.cluster.client import MAIN
from penstock.client.cluster.metadata import BrokerNode
from penstock.client.cluster.retry import check_complete, left_out, only
from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.offsets import Committable, GroupOffsets, MemberIdentity, OffsetAndMetadata
from penstock.client.group.old_groups import peer_for_groups
from penstock.errors import (
    KafkaError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_describe_response import Member as DescribedConsumer
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.delete_groups_response import DeleteGroupsResponse
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.describe_groups_response import DescribedGroupMember
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.list_groups_response import ListGroupsResponse
from penstock.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_delete_response import OffsetDeleteResponse
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_describe_response import Member as DescribedSharer
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_describe_response import DescribedGroup as DescribedStreams

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.message import Message

T = TypeVar("T")

STATES_VERSION = 4
"""The first version of ListGroups that returns the states of groups and can filter by state (KIP-518)."""

TYPES_VERSION = 5
"""The first version of ListGroups that returns the types of groups and can filter by type (KIP-848)."""

DEAD = "Dead"
SHARE_PROTOCOL = "share"
"""The protocol type of share groups (KIP-932)."""

STREAMS_PROTOCOL = "streams"
"""The protocol type of streams groups (KIP-1071)."""

STICKY = "sticky"
"""The name of the assignor that all streams groups use."""


class GroupListing(NamedTuple):
    """A group as ListGroups reports it.

    `state` is empty before Kafka 2.6. `group_type` is ``classic``, ``consumer``, ``share`` or ``streams``, or
    empty before Kafka 3.8.
    """

    group_id: str
    protocol_type: str
    state: str = ""
    group_type: str = ""


class MemberDescription(NamedTuple):
    """A member of a group. `partitions` is empty if a classic group's members are not consumers."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group and its members. `assignor` is empty while the group has none."""

    group_id: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: BrokerNode
    members: tuple[MemberDescription, ...]


class GroupAdministration:
    """Describes and changes groups, through the connections of a client.

    Each call raises KafkaError if a broker refuses, and NetworkError or RequestTimeoutError if no broker
    answers in time.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def listings(self, states: Collection[str], group_type: str | None = None) -> list[GroupListing]:
        """Return all groups of the cluster, sorted by name, or those of the given states and type.

        If `group_type` is given, the result leaves out the groups of brokers before Kafka 3.8, which do not
        report types.
        """
        client = self._client
        await client.bootstrap()
        found: dict[str, GroupListing] = {}

        async def ask(node_id: int) -> None:
            peer = await peer_for_groups(client, node_id, MAIN)
            version = peer.versions.choose(ListGroupsRequest)
            if group_type is not None and version < TYPES_VERSION:
                return
            request = ListGroupsRequest(
                states_filter=list(states) if version >= STATES_VERSION else [],
                types_filter=[] if group_type is None else [group_type],
            )
            answer: ListGroupsResponse = await peer.connection.request(
                request, version, client.request_timeout_s
            )
            if answer.error_code:
                raise error_for(answer.error_code, "listing groups")
            for group in answer.groups:
                found[group.group_id] = GroupListing(
                    group.group_id, group.protocol_type, group.group_state, group.group_type
                )

        async def ask_all() -> None:
            await asyncio.gather(*map(ask, client.cluster.nodes))

        await client.retrying("listing groups", ask_all)
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> GroupDescription:
        """Return the description of a group of any type: try the Describe API of each type in turn."""
        try:
            return await self._describe_classic(group_id)
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            for describe in (self._describe_of_consumers, self._describe_share, self._describe_streams):
                try:
                    return await describe(group_id)
                except UnsupportedVersionError:
                    continue
                except KafkaError as other:
                    if other.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                        raise
            raise error from None

    async def _describe_share(self, group_id: str) -> GroupDescription:
        """Return the description of a share group (KIP-932).

        Several members may have the same partition.
        """

        def read(answer: Any, node: int) -> GroupDescription:
            group, coordinator = self._described(answer.groups, group_id, node, "ShareGroupDescribe")
            members = tuple(sorted(map(_sharer, group.members)))
            return GroupDescription(
                group_id, group.group_state, SHARE_PROTOCOL, group.assignor_name, coordinator, members
            )

        request = ShareGroupDescribeRequest(group_ids=[group_id])
        return await self.ask_coordinator(group_id, "describing a group", request, read)

    async def _describe_streams(self, group_id: str) -> GroupDescription:
        """Return the description of a streams group (KIP-1071).

        A member's partitions are those of active tasks.
        """

        def read(answer: Any, node: int) -> GroupDescription:
            group, coordinator = self._described(answer.groups, group_id, node, "StreamsGroupDescribe")
            members = tuple(sorted(_streaming(group)))
            return GroupDescription(
                group_id, group.group_state, STREAMS_PROTOCOL, STICKY, coordinator, members
            )

        request = StreamsGroupDescribeRequest(group_ids=[group_id])
        return await self.ask_coordinator(group_id, "describing a group", request, read)

    async def _describe_of_consumers(self, group_id: str) -> GroupDescription:
        def read(answer: Any, node: int) -> GroupDescription:
            group, coordinator = self._described(answer.groups, group_id, node, "ConsumerGroupDescribe")
            members = tuple(sorted(map(_consumer, group.members)))
            return GroupDescription(
                group_id, group.group_state, PROTOCOL_TYPE, group.assignor_name, coordinator, members
            )

        request = ConsumerGroupDescribeRequest(group_ids=[group_id])
        return await self.ask_coordinator(group_id, "describing a group", request, read)

    async def _describe_classic(self, group_id: str) -> GroupDescription:
        def read(answer: Any, node: int) -> GroupDescription:
            group, coordinator = self._described(answer.groups, group_id, node, "DescribeGroups")
            members = sorted(map(_member, group.members))
            if group.protocol_type not in ("", PROTOCOL_TYPE):
                members = [member._replace(partitions=()) for member in members]
            kind, assignor = group.protocol_type, group.protocol_data
            return GroupDescription(group_id, group.group_state, kind, assignor, coordinator, tuple(members))

        request = DescribeGroupsRequest(groups=[group_id])
        return await self.ask_coordinator(group_id, "describing a group", request, read)

    def described(
        self,
        groups: Sequence[Any],
        group_id: str,
        node: int,
        api: str,
        explain: Callable[[int, str], Exception],
    ) -> tuple[Any, BrokerNode]:
        """Check the response to a Describe request for one group; return the group and its coordinator.

        `api` is the name of the request: ShareGroupDescribe or StreamsGroupDescribe. `explain` makes the
        error to raise from the group's error code. Raises ProtocolViolationError if the response does not
        have the group.
        """
        broker = self._client.address_of(node)
        group = only(groups, broker, api)
        coordinator = self._client.cluster.nodes.get(node)
        if group.error_code:
            raise explain(group.error_code, group_id)
        if coordinator is None or group.group_id != group_id:
            raise left_out(broker, f"group {group_id!r}", api)
        return group, coordinator

    def _described(self, groups: Sequence[Any], group_id: str, node: int, api: str) -> tuple[Any, BrokerNode]:
        """Check the response to a Describe request for one group; return the group and its coordinator.

        `api` is the name of the request. Raises KafkaError if the group does not exist, or has another error
        code.
        """
        broker = self._client.address_of(node)
        group = only(groups, broker, api)
        coordinator = self._client.cluster.nodes.get(node)
        if coordinator is None or group.group_id != group_id:
            raise left_out(broker, f"group {group_id!r}", api)
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == DEAD:
            raise no_such_group(group_id)
        if group.error_code:
            raise error_for(group.error_code, f"group {group_id!r}")
        return group, coordinator

    async def delete(self, group_id: str) -> None:
        """Delete a group that has no members, with its committed offsets."""

        def read(answer: DeleteGroupsResponse, node: int) -> None:
            result = only(answer.results, self._client.address_of(node), "DeleteGroups")
            if result.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                raise no_such_group(result.group_id)
            if result.error_code:
                raise refused(result.error_code, result.group_id)

        request = DeleteGroupsRequest(groups_names=[group_id])
        await self.ask_coordinator(group_id, "deleting a group", request, read)

    async def offsets(
        self, group_id: str, asked: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of a group, by default of all partitions.

        Brokers before 0.10.2 cannot list a group's offsets: the client asks them for every partition of the
        cluster.
        """
        offsets = self._offsets(group_id)
        try:
            found = await offsets.fetch(asked)
        except UnsupportedVersionError:
            if asked is not None:
                raise
            client = self._client
            await client.retrying("listing topics", lambda: client.refresh(all_topics=True))
            every = [TopicPartition(t.name, n) for t in client.cluster.topics.values() for n in t.partitions]
            found = await offsets.fetch(every)
        return {tp: at for tp, at in sorted(found.items()) if at is not None}

    async def alter_offsets(self, group_id: str, offsets: Committable) -> None:
        """Set the committed offsets of a group without members. A group that does not exist is created."""
        try:
            await self._offsets(group_id).commit(offsets, lambda before: MemberIdentity())
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                raise refused(ErrorCode.NON_EMPTY_GROUP, group_id) from error
            raise

    async def delete_offsets(self, group_id: str, wanted: Sequence[TopicPartition]) -> None:
        """Delete a group's committed offsets for partitions of topics that no member subscribes to."""
        request = OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in numbers]
                )
                for topic, numbers in group_by_topic(wanted)
            ],
        )

        def read(answer: OffsetDeleteResponse, node: int) -> None:
            if answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                raise no_such_group(group_id)
            codes = [answer.error_code, *(p.error_code for t in answer.topics for p in t.partitions)]
            for code in filter(None, codes):
                raise error_for(code, f"removing offsets of group {group_id!r}")
            told = {(t.name, p.partition_index) for t in answer.topics for p in t.partitions}
            check_complete(wanted, told, self._client.address_of(node), "OffsetDelete")

        await self.ask_coordinator(group_id, "removing offsets", request, read)

    def _offsets(self, group_id: str) -> GroupOffsets:
        return GroupOffsets(self._client, CoordinatorFinder(self._client, group_id))

    async def ask_coordinator(
        self, group_id: str, what: str, request: Message, read: Callable[[Any, int], T]
    ) -> T:
        """Send a request to a group's coordinator, with retries; return what `read` returns for the response.

        `read` gets the response and the coordinator's node id. `what` describes the action in error messages.
        """
        coordinator = CoordinatorFinder(self._client, group_id)

        async def attempt() -> T:
            node = await coordinator.known()
            try:
                peer = await peer_for_groups(self._client, node, MAIN)
                return read(await peer.request(request, self._client.request_timeout_s), node)
            except (NetworkError, RequestTimeoutError, KafkaError):
                coordinator.forget(node)
                raise

        return await self._client.retrying(what, attempt)


def lags(
    committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """Return a group's lag in each partition, in offsets; None for a partition without a committed offset."""
    return {tp: max(0, end - committed[tp].offset) if tp in committed else None for tp, end in ends.items()}


def no_such_group(group_id: str) -> KafkaError:
    """Return the error for a group that the cluster does not have."""
    code = ErrorCode.GROUP_ID_NOT_FOUND
    return KafkaError(code, code.name, f"group {group_id!r} does not exist")


def refused(code: int, group_id: str) -> PenstockError:
    """Return the exception for an error code with which a broker refused a change of a group."""
    if code == ErrorCode.NON_EMPTY_GROUP:
        message = f"group {group_id!r} has members: stop them first"
        return KafkaError(code, ErrorCode.NON_EMPTY_GROUP.name, message)
    return error_for(code, f"group {group_id!r}")


def refused_to(kind: str, needs: str, code: int, group_id: str) -> PenstockError:
    """Return the exception for an error code from the coordinator of a share or streams group.

    `kind` is "share" or "streams". `needs` is the message if the cluster does not support these groups.
    """
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        missing = no_such_group(group_id)
        return KafkaError(missing.code, missing.name, f"{missing}, or is no {kind} group")
    if code == ErrorCode.UNSUPPORTED_VERSION:
        return UnsupportedVersionError(needs)
    return refused(code, group_id)


def _consumer(member: DescribedConsumer) -> MemberDescription:
    partitions = sorted(
        TopicPartition(topic.topic_name, number)
        for topic in member.assignment.topic_partitions
        for number in topic.partitions
    )
    return MemberDescription(
        member.member_id, member.instance_id, member.client_id, member.client_host, tuple(partitions)
    )


def _sharer(member: DescribedSharer) -> MemberDescription:
    partitions = sorted(
        TopicPartition(topic.topic_name, number)
        for topic in member.assignment.topic_partitions
        for number in topic.partitions
    )
    return MemberDescription(member.member_id, None, member.client_id, member.client_host, tuple(partitions))


def _streaming(group: DescribedStreams) -> list[MemberDescription]:
    topology = group.topology
    inputs = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in (topology.subtopologies or () if topology is not None else ())
    }
    return [
        MemberDescription(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                sorted(
                    TopicPartition(topic, number)
                    for tasks in member.assignment.active_tasks
                    for number in tasks.partitions
                    for topic in inputs.get(tasks.subtopology_id, ())
                )
            ),
        )
        for member in group.members
    ]


def _member(member: DescribedGroupMember) -> MemberDescription:
    try:
        partitions = tuple(sorted(decode_assignment(bytes(member.member_assignment))))
    except PenstockError:
        partitions = ()
    return MemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        partitions,
    )
