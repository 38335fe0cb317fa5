"""StreamsGroupHeartbeat (88): join a streams group, stay in it, get tasks, leave it (KIP-1071).

The broker creates the internal topics of the application, after the first member has sent the topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.config.topic_names import check_topic_name
from penstock.broker.context import Context
from penstock.broker.groups.settings import OFFSETS_SINCE
from penstock.broker.groups.streams.configuring import TASKS_MAX, Problem, Status
from penstock.broker.groups.streams.endpoints import EndpointPartitions
from penstock.broker.groups.streams.group import StreamsAnswer, StreamsHeartbeat
from penstock.broker.groups.streams.tasks import Task, Tasks, by_subtopology
from penstock.broker.groups.streams.topology import CopartitionGroup, InternalTopic, Subtopology, Topology
from penstock.broker.handlers.streams_groups import has_streams_groups
from penstock.broker.metadata.planning import Planner
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages import streams_group_heartbeat_request as asked
from penstock.protocol.messages import streams_group_heartbeat_response as answered
from penstock.protocol.since import STREAMS_HEARTBEAT_TAGS_SINCE
from penstock.security.acls import Operation

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode


def streams_group_heartbeat(
    request: asked.StreamsGroupHeartbeatRequest, context: Context[ServingNode]
) -> answered.StreamsGroupHeartbeatResponse:
    """Join a streams group, stay in it or leave it; the response has the tasks if they have changed."""
    if not has_streams_groups(context):
        return _refusal(ErrorCode.UNSUPPORTED_VERSION)
    context.begin_claims()
    try:
        _check_supported(request, context)
        beat = _beat(request, context)
        answer = context.node.groups.streams_heartbeat(request.group_id, beat, context.now)
    except KafkaError as error:
        return _refusal(error.code, error.detail)
    has_tags = context.version >= STREAMS_HEARTBEAT_TAGS_SINCE
    statuses = [each for each in answer.statuses if has_tags or each.status != Status.MISSING_CLIENT_TAGS]
    if answer.to_make:
        statuses = _with_outcome(statuses, _make_topics(answer.to_make, context))
    return _response(answer, statuses, context)


def _refusal(code: int, message: str | None = None) -> answered.StreamsGroupHeartbeatResponse:
    return answered.StreamsGroupHeartbeatResponse(error_code=code, error_message=message)


def _check_supported(request: asked.StreamsGroupHeartbeatRequest, context: Context[ServingNode]) -> None:
    """Check that a request uses only features of the Kafka release as which the broker behaves (or 4.4).

    Raises:
        KafkaError: INVALID_REQUEST (42).
    """
    problem = "" if context.node.config.behaves_since(*OFFSETS_SINCE) else _new_in_4_4(request)
    if request.topology is not None and any(
        each.source_topic_regex for each in request.topology.subtopologies
    ):
        problem = problem or "Regular expressions for source topics are not supported yet."
    given = [each is not None for each in (request.active_tasks, request.standby_tasks, request.warmup_tasks)]
    if any(given) and not all(given):
        problem = problem or "If one task-type is non-null, all must be non-null."
    if problem:
        raise error_for(ErrorCode.INVALID_REQUEST, problem)


def _new_in_4_4(request: asked.StreamsGroupHeartbeatRequest) -> str:
    """Return Kafka 4.3's error message for a request field that only 4.4 supports, or "" without one."""
    if request.instance_id is not None:
        return "Static membership is not yet supported."
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    return "WarmupTasks are not supported yet." if request.warmup_tasks else ""


def _beat(request: asked.StreamsGroupHeartbeatRequest, context: Context[ServingNode]) -> StreamsHeartbeat:
    topology = None
    if request.topology is not None:
        topology = Topology(
            request.topology.epoch, tuple(_subtopology(each) for each in request.topology.subtopologies)
        )
        _check_names(topology)
    owned = None
    if request.active_tasks is not None:
        owned = Tasks(
            _tasks(request.active_tasks),
            _tasks(request.standby_tasks or ()),
            _tasks(request.warmup_tasks or ()),
        )
    endpoint, tags = request.user_endpoint, request.client_tags
    return StreamsHeartbeat(
        request.member_id,
        request.member_epoch,
        topology,
        owned,
        request.process_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if endpoint is None else (endpoint.host, endpoint.port),
        None if tags is None else tuple(sorted({tag.key: tag.value for tag in tags}.items())),
        request.endpoint_information_epoch,
        request.shutdown_application,
        context.session.client_id or "",
        f"/{context.session.client_address}",
        request.instance_id,
        _offsets(request.task_offsets),
        _offsets(request.task_end_offsets),
    )


def _offsets(listed: Sequence[asked.TaskOffset] | None) -> dict[Task, int] | None:
    """Return a dict from task to its offset, from the list in the request.

    Raises:
        KafkaError: INVALID_REQUEST (42), a task is named twice, or the list has more tasks than a group may
        have.
    """
    if listed is None:
        return None
    if len(listed) > TASKS_MAX:
        raise error_for(ErrorCode.INVALID_REQUEST, f"There are offsets of more than {TASKS_MAX} tasks.")
    found: dict[Task, int] = {}
    for each in listed:
        if (each.subtopology_id, each.partition) in found:
            raise error_for(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} "
                f"and partition {each.partition}.",
            )
        found[each.subtopology_id, each.partition] = each.offset
    return found


def _check_names(topology: Topology) -> None:
    """Check the topic names in a topology.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY (130), a name is invalid, or is one of Kafka's own internal
        topics.
    """
    names = topology.named_topics()
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        raise error_for(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is prohibited.",
        )
    for name in names:
        try:
            check_topic_name(name)
        except KafkaError as error:
            raise error_for(ErrorCode.STREAMS_INVALID_TOPOLOGY, error.detail) from None


def _subtopology(each: asked.Subtopology) -> Subtopology:
    return Subtopology(
        each.subtopology_id,
        tuple(each.source_topics),
        tuple(each.source_topic_regex),
        tuple(_topic(topic) for topic in each.repartition_source_topics),
        tuple(each.repartition_sink_topics),
        tuple(_topic(topic) for topic in each.state_changelog_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in each.copartition_groups
        ),
    )


def _topic(topic: asked.TopicInfo) -> InternalTopic:
    configs = tuple((each.key, each.value) for each in topic.topic_configs)
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


def _tasks(listed: Sequence[asked.TaskIds]) -> frozenset[Task]:
    return frozenset((each.subtopology_id, index) for each in listed for index in each.partitions)


# --- internal topics -------------------------------------------------------------------------------------


def _make_topics(topics: Sequence[InternalTopic], context: Context[ServingNode]) -> str:
    """Create missing internal topics; return the reason of a failure, or "".

    If the client may not create one of them, none is created, as in Apache Kafka.
    """
    node = context.node
    unauthorized = _not_to_be_made(topics, context)
    if unauthorized:
        return f"Unauthorized to CREATE on topics {', '.join(unauthorized)}."
    node.cluster.catch_up()  # another broker may have made them
    planner = Planner(node.cluster, ErrorCode.POLICY_VIOLATION, context.mutations)
    plans, failures = [], []
    for topic in topics:
        if topic.name in node.cluster.topics:
            continue
        try:
            factor = topic.replication_factor or -1
            configs: dict[str, str | None] = dict(topic.configs)
            plans.append(planner.new_topic(topic.name, topic.partitions, factor, configs=configs))
        except KafkaError as error:
            failures.append(f"{topic.name} ({error.detail})")
    try:
        node.cluster.create_topics(plans, context.now_ms)
    except StorageError as error:
        failures += [f"{plan.name} ({error})" for plan in plans]
    return f"Creation failed: {', '.join(failures)}." if failures else ""


def _not_to_be_made(topics: Sequence[InternalTopic], context: Context[ServingNode]) -> list[str]:
    """Return the names of the internal topics that the client is not authorized to create."""
    authorizer, session = context.node.authorizer, context.session
    if authorizer is None:
        return []
    rights = authorizer.rights(session.principal, session.client_address)
    if rights.on_cluster(Operation.CREATE):
        return []
    return [topic.name for topic in topics if not rights.on_topic(Operation.CREATE, topic.name)]


def _with_outcome(statuses: list[Problem], outcome: str) -> list[Problem]:
    """Return the statuses, with `outcome` appended to the detail of MISSING_INTERNAL_TOPICS."""
    if not outcome:
        return statuses
    return [
        each._replace(detail=f"{each.detail}; {outcome}")
        if each.status is Status.MISSING_INTERNAL_TOPICS
        else each
        for each in statuses
    ]


# --- the answer ------------------------------------------------------------------------------------------


def _response(
    answer: StreamsAnswer, statuses: Sequence[Problem], context: Context[ServingNode]
) -> answered.StreamsGroupHeartbeatResponse:
    tasks, endpoints = answer.tasks, answer.endpoints
    for each in endpoints or ():
        context.claim(ENDPOINT_BYTES + 8 * sum(map(len, (*each.active.values(), *each.standby.values()))))
    return answered.StreamsGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        task_offset_interval_ms=answer.task_offset_interval_ms,
        acceptable_recovery_lag=answer.acceptable_recovery_lag,
        status=[answered.Status(status_code=each.status, status_detail=each.detail) for each in statuses],
        active_tasks=None if tasks is None else _task_ids(tasks.active),
        standby_tasks=None if tasks is None else _task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=None if endpoints is None else [_endpoint(each) for each in endpoints],
    )


ENDPOINT_BYTES = 500
"""The approximate size in bytes of an endpoint in a response, without its partitions."""


def _task_ids(tasks: frozenset[Task]) -> list[answered.TaskIds]:
    return [
        answered.TaskIds(subtopology_id=each, partitions=indexes)
        for each, indexes in by_subtopology(tasks).items()
    ]


def _endpoint(each: EndpointPartitions) -> answered.EndpointToPartitions:
    def partitions(topics: dict[str, list[int]]) -> list[answered.TopicPartition]:
        return [answered.TopicPartition(topic=name, partitions=indexes) for name, indexes in topics.items()]

    return answered.EndpointToPartitions(
        user_endpoint=answered.Endpoint(host=each.endpoint[0], port=each.endpoint[1]),
        active_partitions=partitions(dict(each.active)),
        standby_partitions=partitions(dict(each.standby)),
    )
