"""DescribeTopicPartitions (75), version 0: topics and their partitions, page by page (KIP-966).

A page has at most as many partitions as client and broker allow; the cursor in the response is the topic and
partition with which the next page begins. A request without topics means all topics.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.context import Context
from penstock.broker.handlers.metadata import TOPIC_OPERATIONS
from penstock.broker.metadata.replica_manager import Topic
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from penstock.protocol.messages.describe_topic_partitions_response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.partitions.partition import Partition


def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, context: Context[ServingNode]
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, beginning at the cursor."""
    topics = context.node.cluster.topics
    allowed = context.node.config.integer("max.request.partition.size.limit")
    limit = max(1, min(allowed, request.response_partition_limit))
    cursor = request.cursor or Cursor()
    asked = {topic.name for topic in request.topics}
    if request.cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        refused = dict.fromkeys(topic.name for topic in request.topics)
        failures = [_failure(name, ErrorCode.INVALID_REQUEST) for name in refused]
        return DescribeTopicPartitionsResponse(topics=failures)
    present = {each.id for each in context.node.view.living(context.session)}
    start, first = cursor.topic_name, max(cursor.partition_index, 0)
    names = asked or set(topics)
    response = DescribeTopicPartitionsResponse()
    for name in sorted(name for name in names if name >= start):
        begin = first if name == start else 0
        if limit <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=begin)
            break
        topic = topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        end = min(begin + limit, len(topic.partitions))
        response.topics.append(_describe(topic, begin, end, present, context))
        limit -= max(end - begin, 0)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    """Return the entry of a topic that does not exist. As in Apache Kafka, it lists all operations."""
    code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        check_topic_name(name)
    except KafkaError as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        name=name, error_code=code, topic_authorized_operations=TOPIC_OPERATIONS
    )


def _failure(name: str, code: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(name=name, error_code=code)


def _describe(
    topic: Topic, begin: int, end: int, present: Collection[int], context: Context[ServingNode]
) -> DescribeTopicPartitionsResponseTopic:
    images = context.node.cluster.image.topics[topic.name].partitions
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        topic_authorized_operations=TOPIC_OPERATIONS,
        partitions=[
            _describe_partition(topic.partitions[index], images[index], present)
            for index in range(begin, end)
        ],
    )


def _describe_partition(
    partition: Partition, image: PartitionImage, present: Collection[int]
) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.in_sync),
        eligible_leader_replicas=list(image.replicas.eligible),
        last_known_elr=list(image.replicas.last_known),
        offline_replicas=[each for each in partition.replicas if each not in present],
    )
