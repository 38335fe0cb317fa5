"""One request of each share group API that partition leaders serve, for tests that cover all APIs."""

from __future__ import annotations

from penstock.broker.node import Node
from penstock.broker.sharing.sessions import MemberKey, OwnedShareSessions
from penstock.protocol.api import ApiKey
from penstock.protocol.message import Message
from penstock.protocol.messages import share_acknowledge_request as acknowledging
from penstock.protocol.messages import share_fetch_request as fetching


def share_fetch(node: Node, version: int) -> Message:
    partitions = [fetching.FetchPartition(partition_index=index) for index in (0, 9)]
    topic_id = node.cluster.topic("t").id
    return fetching.ShareFetchRequest(
        group_id="g",
        member_id="m",
        max_records=10,
        topics=[fetching.FetchTopic(topic_id=topic_id, partitions=partitions)],
    )


def share_acknowledge(node: Node, version: int) -> Message:
    node.sharing.sessions.begin(MemberKey("g", "m"), OwnedShareSessions(node.sharing.close))
    batch = acknowledging.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
    partitions = [
        acknowledging.AcknowledgePartition(partition_index=index, acknowledgement_batches=[batch])
        for index in (0, 9)
    ]
    topic_id = node.cluster.topic("t").id
    return acknowledging.ShareAcknowledgeRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=1,
        topics=[acknowledging.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)],
    )


SHARE_REQUESTS = {ApiKey.SHARE_FETCH: share_fetch, ApiKey.SHARE_ACKNOWLEDGE: share_acknowledge}

SHARE_CODES = {ApiKey.SHARE_FETCH: {-1, 3}, ApiKey.SHARE_ACKNOWLEDGE: {3, 121}}
