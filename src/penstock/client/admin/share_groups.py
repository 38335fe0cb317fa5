"""Administration of share groups (KIP-932) for asyncio: list, describe; read, set and remove offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.client.admin.groups import GroupAdministration, GroupListing, refused_to
from penstock.client.assignors.member_metadata import group_by_topic
from penstock.client.cluster.metadata import BrokerNode, no_such_topic
from penstock.client.cluster.retry import check_complete, only
from penstock.client.group.coordinator import NEEDS_SHARE_GROUPS
from penstock.errors import KafkaError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages import alter_share_group_offsets_request as altering
from penstock.protocol.messages import delete_share_group_offsets_request as deleting
from penstock.protocol.messages import describe_share_group_offsets_request as describing
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
    from penstock.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
    from penstock.protocol.messages.describe_share_group_offsets_response import (
        DescribeShareGroupOffsetsResponse,
    )
    from penstock.protocol.messages.share_group_describe_response import Member

SHARE = "share"
"""The group type of share groups in ListGroups."""


class ShareMemberDescription(NamedTuple):
    """A member of a share group. Several members may have the same partitions."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


class ShareGroupDescription(NamedTuple):
    """A share group and its members."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    coordinator: BrokerNode
    members: tuple[ShareMemberDescription, ...]


class ShareGroupOffset(NamedTuple):
    """The progress of a share group in a partition.

    `start_offset` is the offset of the first record that is neither accepted nor rejected, or None before any
    fetch. `lag` is the number of records that the group has not yet processed, or None if the broker does not
    report it.
    """

    start_offset: int | None
    lag: int | None


class ShareGroupAdministration:
    """Describes and changes share groups, through the connections of a client.

    Each call raises KafkaError if a broker refuses, UnsupportedVersionError if the cluster has no share
    groups, and NetworkError or RequestTimeoutError if no broker answers in time.
    """

    def __init__(self, client: AsyncClient, groups: GroupAdministration) -> None:
        self._client = client
        self._groups = groups

    async def listings(self, states: Collection[str]) -> list[GroupListing]:
        """Return all share groups of the cluster, or those in the given states, sorted by name."""
        return await self._groups.listings(states, group_type=SHARE)

    async def describe(self, group_id: str) -> ShareGroupDescription:
        """Return the description of a share group."""

        def read(answer: Any, node: int) -> ShareGroupDescription:
            group, coordinator = self._groups.described(
                answer.groups, group_id, node, "ShareGroupDescribe", _explained
            )
            return ShareGroupDescription(
                group_id,
                group.group_state,
                group.group_epoch,
                group.assignment_epoch,
                group.assignor_name,
                coordinator,
                tuple(sorted(map(_member, group.members))),
            )

        request = ShareGroupDescribeRequest(group_ids=[group_id])
        return await self._groups.ask_coordinator(group_id, "describing a share group", request, read)

    async def offsets(
        self, group_id: str, asked: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, ShareGroupOffset]:
        """Return a share group's start offset and lag in partitions: by default, in all that it has read."""
        topics = None
        if asked is not None:
            topics = [
                describing.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(numbers))
                for name, numbers in group_by_topic(asked)
            ]
        request = describing.DescribeShareGroupOffsetsRequest(
            groups=[describing.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)]
        )

        def read(
            answer: DescribeShareGroupOffsetsResponse, node: int
        ) -> dict[TopicPartition, ShareGroupOffset]:
            broker = self._client.address_of(node)
            group = only(answer.groups, broker, "DescribeShareGroupOffsets")
            if group.error_code:
                raise _explained(group.error_code, group_id)
            found: dict[TopicPartition, ShareGroupOffset] = {}
            for topic in group.topics:
                for each in topic.partitions:
                    tp = TopicPartition(topic.topic_name, each.partition_index)
                    if each.error_code:
                        raise error_for(each.error_code, f"offsets of group {group_id!r} in {tp}")
                    found[tp] = ShareGroupOffset(
                        each.start_offset if each.start_offset >= 0 else None,
                        each.lag if each.lag >= 0 else None,
                    )
            if asked is not None:
                check_complete(asked, found, broker, "DescribeShareGroupOffsets")
            return dict(sorted(found.items()))

        return await self._groups.ask_coordinator(group_id, "reading offsets of a share group", request, read)

    async def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the start offsets of a share group without members. A group that does not exist is created."""
        request = altering.AlterShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[
                altering.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[
                        altering.AlterShareGroupOffsetsRequestPartition(
                            partition_index=number, start_offset=offsets[TopicPartition(name, number)]
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in group_by_topic(offsets)
            ],
        )

        def read(answer: AlterShareGroupOffsetsResponse, node: int) -> None:
            if answer.error_code:
                raise _explained(answer.error_code, group_id)
            told: set[TopicPartition] = set()
            for topic in answer.responses:
                for each in topic.partitions:
                    tp = TopicPartition(topic.topic_name, each.partition_index)
                    if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise no_such_topic(tp.topic, self._client.cluster)
                    if each.error_code:
                        raise error_for(each.error_code, f"setting the offset of group {group_id!r} in {tp}")
                    told.add(tp)
            check_complete(offsets, told, self._client.address_of(node), "AlterShareGroupOffsets")

        await self._groups.ask_coordinator(group_id, "setting offsets of a share group", request, read)

    async def delete_offsets(self, group_id: str, topics: Sequence[str]) -> None:
        """Remove a share group's start offsets, locks and delivery counts for topics.

        The group must have no members.
        """
        request = deleting.DeleteShareGroupOffsetsRequest(
            group_id=group_id,
            topics=[deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics],
        )

        def read(answer: DeleteShareGroupOffsetsResponse, node: int) -> None:
            if answer.error_code:
                raise _explained(answer.error_code, group_id)
            for each in answer.responses:
                if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    what = f"share group {group_id!r} has no offsets in topic {each.topic_name!r}"
                    raise KafkaError(code, code.name, what)
                if each.error_code:
                    raise error_for(each.error_code, f"offsets of group {group_id!r} in {each.topic_name!r}")
            told = {each.topic_name for each in answer.responses}
            broker = self._client.address_of(node)
            check_complete(topics, told, broker, "DeleteShareGroupOffsets", "topic")

        await self._groups.ask_coordinator(group_id, "removing offsets of a share group", request, read)


def _explained(code: int, group_id: str) -> PenstockError:
    return refused_to("share", NEEDS_SHARE_GROUPS, code, group_id)


def _member(member: Member) -> ShareMemberDescription:
    partitions = sorted(
        TopicPartition(topic.topic_name, number)
        for topic in member.assignment.topic_partitions
        for number in topic.partitions
    )
    return ShareMemberDescription(
        member.member_id,
        member.client_id,
        member.client_host,
        member.member_epoch,
        tuple(sorted(member.subscribed_topic_names)),
        tuple(partitions),
    )
