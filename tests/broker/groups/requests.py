"""Functions that build requests of group members, and one request per group API that fits every version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.broker.node import Node
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.compiler.compile import classes_of
from penstock.protocol.message import Message
from penstock.protocol.messages import alter_share_group_offsets_request as alter_offsets
from penstock.protocol.messages import delete_share_group_offsets_request as delete_offsets
from penstock.protocol.messages import describe_share_group_offsets_request as describe_offsets
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.protocol.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from penstock.protocol.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 10_000
REBALANCE_MS = 30_000


def subscription(*topics: str) -> bytes:
    """Return a consumer's subscription to topics, encoded in version 0 of the consumer protocol."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return bytes(2) + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def join_request(
    member_id: str = "",
    group: str = "g",
    protocols: tuple[str, ...] | dict[str, bytes] = ("range",),
    instance: str | None = None,
    **fields: Any,
) -> JoinGroupRequest:
    if not isinstance(protocols, dict):
        protocols = {name: subscription("t") for name in protocols}
    settings = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": "consumer",
        **fields,
    }
    return JoinGroupRequest(
        group_id=group,
        member_id=member_id,
        group_instance_id=instance,
        protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols.items()],
        **settings,
    )


def sync_request(
    member_id: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    group: str = "g",
    **fields: Any,
) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        member_id=member_id,
        generation_id=generation,
        assignments=[
            SyncGroupRequestAssignment(member_id=one, assignment=data)
            for one, data in (assignments or {}).items()
        ],
        **fields,
    )


def heartbeat_request(member_id: str, generation: int, group: str = "g", **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, member_id=member_id, generation_id=generation, **fields)


def leave_request(*members: str | tuple[str, str], group: str = "g") -> LeaveGroupRequest:
    """Return a LeaveGroup request for version 3 and later.

    A member is given as its id, or as a pair of member id and group instance id.
    """
    identities = [(one, None) if isinstance(one, str) else one for one in members]
    return LeaveGroupRequest(
        group_id=group,
        members=[MemberIdentity(member_id=one, group_instance_id=instance) for one, instance in identities],
    )


def commit_request(
    offsets: dict[tuple[str, int], int],
    member_id: str = "",
    generation: int = -1,
    group: str = "g",
    metadata: str | None = "note",
    topic_id: bytes = bytes(16),
    **fields: Any,
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for (topic, index), offset in offsets.items()
        ],
        **fields,
    )


def fetch_request(topics: dict[str, list[int]] | None, group: str = "g") -> OffsetFetchRequest:
    """Return an OffsetFetch request for versions up to 7, which have one group."""
    asked = topics and [
        OffsetFetchRequestTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
    ]
    return OffsetFetchRequest(group_id=group, topics=asked)


def fetch_groups_request(*groups: str, topics: dict[str, list[int]] | None = None) -> OffsetFetchRequest:
    """Return an OffsetFetch request for versions 8 and 9, which have several groups."""
    asked = topics and [
        OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in topics.items()
    ]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=asked) for group in groups]
    )


def delete_offsets_request(offsets: list[tuple[str, int]], group: str = "g") -> OffsetDeleteRequest:
    topics = [
        OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=index)])
        for topic, index in offsets
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)


# --- one for each API, for `handlers/test_every_version.py` ----------------------------------------------


def _commit(node: Node, version: int) -> Message:
    return commit_request({("t", 0): 1, ("t", 9): 1}, topic_id=node.cluster.topic("t").id)


def _fetch(node: Node, version: int) -> Message:
    if version < 8:
        return fetch_request({"t": [0]})
    request = fetch_groups_request("g", "h", topics={"t": [0]})
    for group in request.groups:
        assert group.topics is not None
        group.topics[0].topic_id = node.cluster.topic("t").id
    return request


def _leave(node: Node, version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id="g", member_id="nobody")
    return leave_request("nobody")


def _of_states(node: Node, key: ApiKey) -> Message:
    """Return a request to the share coordinator about partition 0 of topic ``t`` in group ``g``."""
    request_class = API_TABLE[key].request
    structs = [each for each in classes_of(request_class).values() if isinstance(each, type)]
    topic, partition = (
        next(each for each in structs if field in getattr(each, "__slots__", ()))
        for field in ("topic_id", "partition")
    )
    named = topic(topic_id=node.cluster.topic("t").id, partitions=[partition(partition=0)])
    message: Message = request_class(group_id="g", topics=[named])
    return message


GROUP_REQUESTS: dict[ApiKey, Callable[[Node, int], Message]] = {
    ApiKey.JOIN_GROUP: lambda node, version: join_request(),
    ApiKey.SYNC_GROUP: lambda node, version: sync_request(
        "nobody", 1, protocol_type="consumer", protocol_name="range"
    ),
    ApiKey.HEARTBEAT: lambda node, version: heartbeat_request("nobody", 1),
    ApiKey.LEAVE_GROUP: _leave,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.OFFSET_FETCH: _fetch,
    ApiKey.OFFSET_DELETE: lambda node, version: delete_offsets_request([("t", 0)]),
    ApiKey.DESCRIBE_GROUPS: lambda node, version: DescribeGroupsRequest(
        groups=["g"], include_authorized_operations=version >= 3
    ),
    ApiKey.LIST_GROUPS: lambda node, version: ListGroupsRequest(),
    ApiKey.DELETE_GROUPS: lambda node, version: DeleteGroupsRequest(groups_names=["g"]),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda node, version: ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=["t"],
        subscribed_topic_regex="x.*" if version >= 1 else None,
        server_assignor="range",
        topic_partitions=[],
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda node, version: ConsumerGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=True
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda node, version: ShareGroupHeartbeatRequest(
        group_id="g", member_id="m", rack_id="r", subscribed_topic_names=["t"]
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda node, version: StreamsGroupHeartbeatRequest(
        group_id="s",
        member_id="m",
        process_id="p",
        rebalance_timeout_ms=1000,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        topology=Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])]),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda node, version: StreamsGroupDescribeRequest(
        group_ids=["s"], include_authorized_operations=True
    ),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: lambda node, version: (
        StreamsGroupTopologyDescriptionUpdateRequest(group_id="s", member_id="m")
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda node, version: ShareGroupDescribeRequest(
        group_ids=["g"], include_authorized_operations=True
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda node, version: (
        describe_offsets.DescribeShareGroupOffsetsRequest(
            groups=[
                describe_offsets.DescribeShareGroupOffsetsRequestGroup(
                    group_id="g",
                    topics=[
                        describe_offsets.DescribeShareGroupOffsetsRequestTopic(
                            topic_name="t", partitions=[0, 9]
                        )
                    ],
                )
            ]
        )
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda node, version: alter_offsets.AlterShareGroupOffsetsRequest(
        group_id="g",
        topics=[
            alter_offsets.AlterShareGroupOffsetsRequestTopic(
                topic_name="t",
                partitions=[alter_offsets.AlterShareGroupOffsetsRequestPartition(partition_index=9)],
            )
        ],
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda node, version: delete_offsets.DeleteShareGroupOffsetsRequest(
        group_id="g", topics=[delete_offsets.DeleteShareGroupOffsetsRequestTopic(topic_name="t")]
    ),
    **{
        key: lambda node, version, key=key: _of_states(node, key)  # type: ignore[misc]
        for key in (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        )
    },
}

GROUP_CODES: dict[ApiKey, Callable[[int], set[int]]] = {
    ApiKey.JOIN_GROUP: lambda version: {79} if version >= 4 else set(),
    ApiKey.SYNC_GROUP: lambda version: {25},
    ApiKey.HEARTBEAT: lambda version: {25},
    ApiKey.LEAVE_GROUP: lambda version: {25},
    ApiKey.OFFSET_COMMIT: lambda version: {3},
    ApiKey.OFFSET_FETCH: lambda version: {3} if version == 0 else set(),
    ApiKey.OFFSET_DELETE: lambda version: {69},
    ApiKey.DESCRIBE_GROUPS: lambda version: {69} if version >= 6 else set(),
    ApiKey.LIST_GROUPS: lambda version: set(),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: lambda version: set(),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda version: {69},
    ApiKey.DELETE_GROUPS: lambda version: {69},
    ApiKey.SHARE_GROUP_HEARTBEAT: lambda version: set(),
    ApiKey.SHARE_GROUP_DESCRIBE: lambda version: {69},
    ApiKey.STREAMS_GROUP_HEARTBEAT: lambda version: set(),
    ApiKey.STREAMS_GROUP_DESCRIBE: lambda version: {69},
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: lambda version: {35},
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: lambda version: set(),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: lambda version: {3},
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: lambda version: {69},
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: lambda version: {16},
    ApiKey.READ_SHARE_GROUP_STATE: lambda version: {16},
    ApiKey.WRITE_SHARE_GROUP_STATE: lambda version: {16},
    ApiKey.DELETE_SHARE_GROUP_STATE: lambda version: {16},
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: lambda version: {16},
}
"""The error codes that these requests get from a broker without groups.

A dict from API to a function, which returns the codes for a version.
"""
