"""Requests about the cluster as a whole: who is in it, who leads what, elections and reassignments.

Metadata, DescribeCluster, ListConfigResources, FindCoordinator, DescribeLogDirs: what the handlers of a
broker by itself answer is completed here. ElectLeaders, AlterPartitionReassignments and
ListPartitionReassignments are answered here, by the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.config.resource_types import BROKER_RESOURCE, LOGGER_RESOURCE
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.replication.control.elections import Kind
from penstock.broker.replication.control.quorum import CONTROLLER_ID
from penstock.broker.requests.repetition import merged
from penstock.common.java_hash import partition_of
from penstock.errors import KafkaError, StorageError
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.protocol.messages.describe_cluster_response import DescribeClusterBroker
from penstock.protocol.messages.describe_quorum_response import Node as QuorumNode
from penstock.protocol.messages.describe_quorum_response import ReplicaState
from penstock.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from penstock.protocol.messages.list_config_resources_response import ConfigResource
from penstock.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from penstock.protocol.messages.metadata_response import MetadataResponseBroker
from penstock.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

if TYPE_CHECKING:
    from random import Random

    from penstock.broker.context import Context
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.replication.brokers import BrokerState
    from penstock.broker.replication.control.quorum import Observer
    from penstock.broker.replication.member import Member
    from penstock.broker.requests.routes import Handler, VersionedRoute
    from penstock.protocol.message import Message

SEVERAL_KEYS_SINCE = 4
FULL_LISTS_SINCE = 1
LISTENER_ERROR_SINCE = 6
QUORUM_TIMES_SINCE, QUORUM_NODES_SINCE = 1, 2
GROUP_KEY = 0

_KINDS_OF_BROKERS = (BROKER_RESOURCE, LOGGER_RESOURCE)


class Deciding(Protocol):
    """The controller, as far as requests ask it to decide. What it raises is answered."""

    def elect(self, topic: str, index: int, kind: Kind) -> list[Message]:
        """Hold an election; return what is written."""

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool
    ) -> list[Message]:
        """Move replicas, or give a move up; return what is written."""

    def unregister(self, node: int) -> list[Message]:
        """Take a broker out of the metadata; return what is written."""

    def moving(self, wanted: Any) -> list[tuple[str, PartitionImage]]:
        """Return the partitions whose replicas are moving."""


class Keeping(Protocol):
    """The authority over the metadata, as far as requests ask about it."""

    directory_id: bytes

    @property
    def controller(self) -> Deciding:
        """What decides about elections and reassignments."""

    @property
    def epoch(self) -> int:
        """The epoch in which it leads the metadata log."""

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""

    def observers(self) -> list[Observer]:
        """The nodes that read the log."""


class Answers:
    """The interceptor of one node. `commit` has what the controller decides written."""

    def __init__(
        self,
        member: Member,
        quorum: Keeping,
        commit: Callable[[Sequence[Message], int], None],
        random: Random,
    ) -> None:
        self._member = member
        self._quorum = quorum
        self._controller = quorum.controller
        self._commit = commit
        self._random = random

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Put the answers of a cluster around a route, where its API has such."""
        wrap = _WRAPPED.get(route.key)
        return route if wrap is None else route._replace(handle=wrap(self, route.handle))

    def _living(self, context: Context[Any]) -> list[tuple[BrokerState, str, int]]:
        """The brokers that live on the listener that a request came in on, with host and port."""
        return [found for found in self._registered(context) if not found[0].fenced]

    def _registered(self, context: Context[Any]) -> list[tuple[BrokerState, str, int]]:
        """The brokers on the listener of a request, fenced ones included, with host and port."""
        listener, known = context.session.listener_name, self._member.brokers.by_id
        return [
            (known[key], *known[key].endpoints[listener])
            for key in sorted(known)
            if listener in known[key].endpoints
        ]

    # --- who is there ------------------------------------------------------------------------------------

    def metadata(self, inner: Handler) -> Handler:
        """Name all brokers; KRaft brokers name any of them as the controller."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            living = self._living(context)
            response.brokers = [
                MetadataResponseBroker(node_id=each.id, host=host, port=port, rack=each.rack)
                for each, host, port in living
            ]
            response.controller_id = self._random.choice(living)[0].id if living else -1
            present = {each.id for each, _, _ in living}
            for topic in response.topics:
                for partition in topic.partitions:
                    _complete(partition, present, context.version, self._member)
            return response

        return handle

    def describe_cluster(self, inner: Handler) -> Handler:
        """Name all brokers, those that are fenced only where they are asked for; any of them as the
        controller.
        """

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            if not response.error_code:
                living = self._living(context)
                response.brokers = [
                    DescribeClusterBroker(
                        broker_id=each.id, host=host, port=port, rack=each.rack, is_fenced=each.fenced
                    )
                    for each, host, port in (
                        self._registered(context) if request.include_fenced_brokers else living
                    )
                ]
                response.controller_id = self._random.choice(living)[0].id if living else -1
            return response

        return handle

    def list_config_resources(self, inner: Handler) -> Handler:
        """List all brokers that live, and their loggers, where the broker that is asked lists its own."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            found = response.config_resources
            kinds = [each.resource_type for each in found if each.resource_type in _KINDS_OF_BROKERS]
            response.config_resources = [
                each for each in found if each.resource_type not in _KINDS_OF_BROKERS
            ] + [
                ConfigResource(resource_name=str(broker.id), resource_type=kind)
                for kind in kinds
                for broker, _, _ in self._living(context)
            ]
            return response

        return handle

    def unregister_broker(self, inner: Handler) -> Handler:
        """Take a broker out of the metadata. One that is alive registers again with its next heartbeat."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response = UnregisterBrokerResponse(error_message=None)
            try:
                self._commit(self._controller.unregister(request.broker_id), context.now_ms)
            except KafkaError as error:
                response.error_code, response.error_message = error.code, error.detail
            except StorageError as error:
                response.error_code, response.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
            return response

        return handle

    def describe_quorum(self, inner: Handler) -> Handler:
        """Name the controller, which is the only voter, and the brokers, which read the log."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            quorum = self._quorum
            for partition in (each for topic in response.topics for each in topic.partitions):
                if partition.error_code:
                    continue
                [voter] = partition.current_voters
                partition.leader_id = voter.replica_id = CONTROLLER_ID
                if context.version >= QUORUM_NODES_SINCE:
                    voter.replica_directory_id = quorum.directory_id
                    response.nodes = [QuorumNode(node_id=CONTROLLER_ID)]
                partition.observers = [
                    _observer_state(each, context.version >= QUORUM_TIMES_SINCE)
                    for each in quorum.observers()
                ]
            return response

        return handle

    def describe_topic_partitions(self, inner: Handler) -> Handler:
        """Name the replicas that are not there, and those that may lead without being in sync."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            present = {each.id for each, _, _ in self._living(context)}
            images = self._member.cluster.image.topics_by_id
            for topic in response.topics:
                for partition in topic.partitions:
                    replicas = images[topic.topic_id].partitions[partition.partition_index].replicas
                    partition.eligible_leader_replicas = list(replicas.eligible)
                    partition.last_known_elr = list(replicas.last_known)
                    partition.offline_replicas = [
                        each for each in partition.replica_nodes if each not in present
                    ]
            return response

        return handle

    def find_coordinator(self, inner: Handler) -> Handler:
        """Name the leader of the partition that a group or a transactional id lives in."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            living = {each.id: (host, port) for each, host, port in self._living(context)}
            if context.version < SEVERAL_KEYS_SINCE:
                if not response.error_code:
                    self._name(response, request.key, request.key_type, living)
            else:
                for each in response.coordinators:
                    if not each.error_code:
                        self._name(each, each.key, request.key_type, living)
            return response

        return handle

    def _name(self, answer: Any, key: str, kind: int, living: dict[int, tuple[str, int]]) -> None:
        topic = self._member.cluster.topics.get(OFFSETS_TOPIC if kind == GROUP_KEY else TRANSACTIONS_TOPIC)
        leader = -1
        if topic is not None and topic.partitions:
            leader = topic.partitions[partition_of(key, len(topic.partitions))].leader
        if leader in living:
            answer.node_id, (answer.host, answer.port) = leader, living[leader]
        else:
            answer.node_id, answer.host, answer.port = -1, "", -1
            answer.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            answer.error_message = "The partition of the coordinator has no leader."

    def describe_log_dirs(self, inner: Handler) -> Handler:
        """Leave out the partitions that are not kept here."""

        def handle(request: Any, context: Context[Any]) -> Any:
            response: Any = inner(request, context)
            topics = self._member.cluster.topics
            for result in response.results:
                for topic in result.topics:
                    kept = topics[topic.name].partitions
                    topic.partitions = [
                        each
                        for each in topic.partitions
                        if self._member.node_id in kept[each.partition_index].replicas
                    ]
                result.topics = [each for each in result.topics if each.partitions]
            return response

        return handle

    # --- elections ---------------------------------------------------------------------------------------

    def elect_leaders(self, inner: Handler) -> Handler:
        """Hold the elections that are asked for."""

        def handle(request: Any, context: Context[Any]) -> Any:
            if request.election_type not in (Kind.PREFERRED, Kind.UNCLEAN):
                return inner(request, context)
            kind = Kind(request.election_type)
            if request.topic_partitions is None:
                wanted = [
                    (topic.name, list(range(len(topic.partitions))))
                    for topic in self._member.cluster.topics.values()
                ]
            else:
                asked = merged(request.topic_partitions, lambda topic: topic.topic, "partitions")
                wanted = [(topic.topic, topic.partitions) for topic in asked]
            results = []
            for topic, indexes in wanted:
                found = [self._elect(topic, index, kind, context.now_ms) for index in indexes]
                if request.topic_partitions is None:
                    found = [each for each in found if each.error_code != ErrorCode.ELECTION_NOT_NEEDED]
                results.append(ReplicaElectionResult(topic=topic, partition_result=found))
            return ElectLeadersResponse(replica_election_results=results)

        return handle

    def _elect(self, topic: str, index: int, kind: Kind, now_ms: int) -> PartitionResult:
        result = PartitionResult(partition_id=index, error_message=None)
        try:
            self._commit(self._controller.elect(topic, index, kind), now_ms)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        except StorageError as error:
            result.error_code, result.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
        return result

    # --- reassignments -----------------------------------------------------------------------------------

    def reassign(self, inner: Handler) -> Handler:
        """Begin, replace or give up moves of replicas."""

        def handle(request: Any, context: Context[Any]) -> Any:
            same_size = context.version >= 1 and not request.allow_replication_factor_change
            return AlterPartitionReassignmentsResponse(
                allow_replication_factor_change=request.allow_replication_factor_change,
                error_message=None,
                responses=[
                    ReassignableTopicResponse(
                        name=topic.name,
                        partitions=[
                            self._reassign(topic.name, each, same_size, context.now_ms)
                            for each in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )

        return handle

    def _reassign(
        self, topic: str, wanted: Any, same_size: bool, now_ms: int
    ) -> ReassignablePartitionResponse:
        result = ReassignablePartitionResponse(partition_index=wanted.partition_index, error_message=None)
        try:
            records = self._controller.reassign(
                topic, wanted.partition_index, wanted.replicas, same_size=same_size
            )
            self._commit(records, now_ms)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.detail
        except StorageError as error:
            result.error_code, result.error_message = ErrorCode.REQUEST_TIMED_OUT, str(error)
        return result

    def list_reassignments(self, inner: Handler) -> Handler:
        """List the partitions whose replicas are moving."""

        def handle(request: Any, context: Context[Any]) -> Any:
            wanted = None
            if request.topics is not None:
                wanted = [
                    (topic.name, index) for topic in request.topics for index in topic.partition_indexes
                ]
            topics: dict[str, OngoingTopicReassignment] = {}
            for name, partition in self._controller.moving(wanted):
                topic = topics.setdefault(name, OngoingTopicReassignment(name=name))
                assigned, _, adding, removing, *_ = partition.replicas
                topic.partitions.append(
                    OngoingPartitionReassignment(
                        partition_index=partition.index,
                        replicas=list(assigned),
                        adding_replicas=list(adding),
                        removing_replicas=list(removing),
                    )
                )
            return ListPartitionReassignmentsResponse(error_message=None, topics=list(topics.values()))

        return handle


def _complete(partition: Any, present: set[int], version: int, member: Member) -> None:
    """Complete a partition in Metadata: replicas that are not there, and what follows from it."""
    partition.offline_replicas = [each for each in partition.replica_nodes if each not in present]
    leader = partition.leader_id
    if leader < 0:
        partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
    elif leader not in present and member.brokers.is_alive(leader):
        is_new = version >= LISTENER_ERROR_SINCE
        partition.error_code = ErrorCode.LISTENER_NOT_FOUND if is_new else ErrorCode.LEADER_NOT_AVAILABLE
        partition.leader_id = -1
    if version < FULL_LISTS_SINCE:
        alive = [each for each in partition.replica_nodes if each in present]
        if not partition.error_code and len(alive) < len(partition.replica_nodes):
            partition.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
        partition.replica_nodes = alive
        partition.isr_nodes = [each for each in partition.isr_nodes if each in present]


def _observer_state(observer: Observer, has_times: bool) -> ReplicaState:
    state = ReplicaState(replica_id=observer.node, log_end_offset=observer.end_offset)
    if has_times:
        state.last_fetch_timestamp = observer.heard_ms
        state.last_caught_up_timestamp = observer.caught_up_ms
    return state


_WRAPPED: dict[int, Callable[[Answers, Handler], Handler]] = {
    ApiKey.METADATA: Answers.metadata,
    ApiKey.DESCRIBE_CLUSTER: Answers.describe_cluster,
    ApiKey.LIST_CONFIG_RESOURCES: Answers.list_config_resources,
    ApiKey.UNREGISTER_BROKER: Answers.unregister_broker,
    ApiKey.DESCRIBE_QUORUM: Answers.describe_quorum,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Answers.describe_topic_partitions,
    ApiKey.FIND_COORDINATOR: Answers.find_coordinator,
    ApiKey.DESCRIBE_LOG_DIRS: Answers.describe_log_dirs,
    ApiKey.ELECT_LEADERS: Answers.elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Answers.reassign,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Answers.list_reassignments,
}
