"""Metadata (3): brokers and topics, and automatic creation of topics.

In v0 an empty list means all topics; in v1 null means all, an empty list none. v1 adds controller, rack and
internal flag; v2 the cluster id; in v4 the client may forbid automatic creation; v7 adds leader epochs; v8
authorized operations; v10 topic ids in the response, v12 in the request, with null names. v11 drops the
operations on the cluster. v13 adds an error for the whole response.

All topics that one request creates are in one metadata write, and exist at once. A single broker describes
them in the same response. A broker of a cluster, and one that behaves like a release of Kafka, first answers
UNKNOWN_TOPIC_OR_PARTITION (3), or LEADER_NOT_AVAILABLE (5) like a release with ZooKeeper, and describes the
topics when the client asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.context import Context
from penstock.broker.metadata.planning import PlannedTopic, Planner
from penstock.broker.metadata.replica_manager import Topic
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import NOT_ASKED
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.since import METADATA_TOPIC_IDS_SINCE
from penstock.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode
    from penstock.broker.metadata.cluster_view import LocatedBroker
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.release_profiles import Profile

logger = logger_named("penstock.broker")


LISTENER_ERROR_SINCE = 6
FULL_LISTS_SINCE = 1
"""The first version in which the lists of replicas and ISR include brokers that are not alive."""

TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""A bit field of the operations on a topic: read, write, create, delete, alter, describe, describe
configs, alter configs.
"""

CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""A bit field of the operations on the cluster: create, alter, describe, cluster action, describe
configs, alter configs, idempotent write.
"""


def metadata(request: MetadataRequest, context: Context[ServingNode]) -> MetadataResponse:
    """Describe the topics named in the request; create unknown ones if client and broker allow that."""
    node = context.node
    living = node.view.living(context.session)
    describe = Describer(request, context, living)
    asked = request.topics
    if asked is None or (context.version == 0 and not asked):
        topics = [describe(topic) for topic in node.cluster.topics.values()]
    elif context.version < METADATA_TOPIC_IDS_SINCE and any(
        each.name is None or each.topic_id != ZERO_UUID for each in asked
    ):
        refused = [_failure(ErrorCode.INVALID_REQUEST, each.name or "", each.topic_id) for each in asked]
        return MetadataResponse(topics=refused)
    else:
        # A topic is described once. Where ids are given, names are not looked at.
        by_id = any(each.topic_id != ZERO_UUID for each in asked)
        wanted = {each.topic_id if by_id else each.name: each for each in asked}
        wanted.pop(ZERO_UUID, None)
        failures = _create_missing(wanted.values(), request, context)
        topics = [_find(each, failures, describe, context) for each in wanted.values()]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=each.host, port=each.port, rack=each.rack)
            for each in living
        ],
        cluster_id=node.cluster.cluster_id,
        controller_id=node.view.controller_id(living),
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _create_missing(
    wanted: Iterable[MetadataRequestTopic], request: MetadataRequest, context: Context[ServingNode]
) -> dict[str, KafkaError | StorageError]:
    """Create the missing topics in one metadata write; return a dict from each one's name to its error.

    Topics beyond the limit for one request have LEADER_NOT_AVAILABLE (5), like a topic that is being created,
    so that clients ask again. Other topics have UNKNOWN_TOPIC_OR_PARTITION (3) if automatic creation is off,
    and INVALID_TOPIC_EXCEPTION (17) for an invalid name.
    """
    node = context.node
    cluster = node.cluster
    allowed = request.allow_auto_topic_creation and node.config.boolean("auto.create.topics.enable")
    failures: dict[str, KafkaError | StorageError] = {}
    missing = [each.name for each in wanted if each.topic_id == ZERO_UUID and each.name not in cluster.topics]
    if not missing:
        return failures
    if allowed:
        cluster.catch_up()  # another broker may have made them
    planner = Planner(cluster, ErrorCode.LEADER_NOT_AVAILABLE, context.mutations)
    plans: list[PlannedTopic] = []
    excess: KafkaError | None = None
    for name in missing:
        if name is None or name in cluster.topics:
            continue
        if excess is not None:
            failures[name] = excess
            continue
        try:
            # Coordinators make their own topics, which have settings and partitions of their own.
            if not allowed or name in INTERNAL_TOPICS:
                check_topic_name(name)
                cluster.topic(name)
            plans.append(planner.new_topic(name))
            excess = planner.excess
        except KafkaError as error:
            failures[name] = _not_yet(error, node.profile)
    try:
        cluster.create_topics(plans, context.now_ms)
    except StorageError as error:
        logger.error("%s", error)
        failures.update((plan.name, error) for plan in plans)
    code = (node.profile or node.view).creating_code
    if code:
        being_made = error_for(code, "the topic is being made")
        failures.update((plan.name, being_made) for plan in plans if plan.name not in failures)
    return failures


def _not_yet(error: KafkaError, profile: Profile | None) -> KafkaError:
    """Return the error for a topic that could not be created.

    If there are too few brokers for the replicas, the error is UNKNOWN_TOPIC_OR_PARTITION (3). In releases of
    Kafka whose controllers place replicas, brokers answer before the controller does.
    """
    later = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if error.code == ErrorCode.INVALID_REPLICATION_FACTOR and (
        profile is None or profile.creating_code == later
    ):
        return error_for(later, error.detail)
    return error


def _find(
    asked: MetadataRequestTopic,
    failures: Mapping[str, KafkaError | StorageError],
    describe: Describer,
    context: Context[ServingNode],
) -> MetadataResponseTopic:
    name = asked.name
    cluster = context.node.cluster
    if asked.topic_id != ZERO_UUID or name is None:
        topic = cluster.topics_by_id.get(asked.topic_id)
        if topic is None:
            return _failure(ErrorCode.UNKNOWN_TOPIC_ID, name, asked.topic_id)
        return describe(topic)
    failure = failures.get(name)
    if failure is None:
        return describe(cluster.topics[name])
    code = failure.code if isinstance(failure, KafkaError) else ErrorCode.KAFKA_STORAGE_ERROR
    answer = _failure(code, name, asked.topic_id)
    answer.topic_authorized_operations = describe.operations
    return answer


class Describer:
    """Makes the topic entries of one Metadata response, with offline replicas and partition errors."""

    def __init__(
        self, request: MetadataRequest, context: Context[ServingNode], living: Iterable[LocatedBroker]
    ) -> None:
        self.operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
        self._version = context.version
        self._present = {each.id for each in living}
        self._is_alive = context.node.view.is_alive

    def __call__(self, topic: Topic) -> MetadataResponseTopic:
        """Describe a topic with all its partitions."""
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.is_internal,
            partitions=[self._describe(partition) for partition in topic.partitions],
            topic_authorized_operations=self.operations,
        )

    def _describe(self, partition: Partition) -> MetadataResponsePartition:
        present = self._present
        described = MetadataResponsePartition(
            partition_index=partition.index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.in_sync),
            offline_replicas=[each for each in partition.replicas if each not in present],
        )
        if partition.leader < 0:
            described.error_code = ErrorCode.LEADER_NOT_AVAILABLE
        elif partition.leader not in present and self._is_alive(partition.leader):
            is_new = self._version >= LISTENER_ERROR_SINCE
            described.error_code = ErrorCode.LISTENER_NOT_FOUND if is_new else ErrorCode.LEADER_NOT_AVAILABLE
            described.leader_id = -1
        if self._version < FULL_LISTS_SINCE and described.offline_replicas:
            described.error_code = described.error_code or ErrorCode.REPLICA_NOT_AVAILABLE
            described.replica_nodes = [each for each in partition.replicas if each in present]
            described.isr_nodes = [each for each in partition.in_sync if each in present]
        return described


def _failure(code: int, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id)
