"""Tests of every API in every offered version: requests and responses can be encoded and decoded.

The encoder fails for a field that the version does not have, so that handlers that ignore versions are found.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from broker.bench_node import EVERY_API, ask_bytes, batch_of, make_node, make_topic, produce, produce_request
from broker.groups.requests import GROUP_CODES, GROUP_REQUESTS
from broker.sharing.requests import SHARE_CODES, SHARE_REQUESTS
from broker.transactions.requests import TRANSACTION_CODES, TRANSACTION_REQUESTS
from for_each import for_each
from penstock.broker.client_metrics.service import Origin
from penstock.broker.handlers import COMMON, OFFERED, ROUTES
from penstock.broker.node import Node
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.alter_configs_request import AlterConfigsRequest
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from penstock.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest
from penstock.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from penstock.protocol.messages.describe_cluster_request import DescribeClusterRequest
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from penstock.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from penstock.protocol.messages.describe_producers_request import DescribeProducersRequest
from penstock.protocol.messages.describe_producers_request import TopicRequest as ProducersOf
from penstock.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from penstock.protocol.messages.describe_quorum_request import PartitionData as QuorumPartition
from penstock.protocol.messages.describe_quorum_request import TopicData as QuorumTopic
from penstock.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from penstock.protocol.messages.unregister_controller_request import UnregisterControllerRequest
from penstock.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest


def topic_named(node: Node) -> Any:
    return node.cluster.topic("t")


def api_versions(node: Node, version: int) -> Message:
    return ApiVersionsRequest(client_software_name="bench", client_software_version="1.0")


def metadata(node: Node, version: int) -> Message:
    topics = [MetadataRequestTopic(name=name) for name in ("t", "new", "bad/name")]
    if version >= 12:
        topics.append(MetadataRequestTopic(name=None, topic_id=topic_named(node).id))
        topics.append(MetadataRequestTopic(name=None, topic_id=b"\1" * 16))
    return MetadataRequest(
        topics=topics,
        include_topic_authorized_operations=version >= 8,
        include_cluster_authorized_operations=8 <= version <= 10,
    )


def produce_both(node: Node, version: int) -> Message:
    request = produce_request(batch_of(b"a"), topic="t", topic_id=topic_named(node).id)
    request.topic_data[0].partition_data.append(
        produce_request(b"", partition=9).topic_data[0].partition_data[0]
    )
    return request


def fetch(node: Node, version: int) -> Message:
    partitions = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in (0, 9)]
    return FetchRequest(
        isolation_level=1 if version >= 4 else 0,
        topics=[FetchTopic(topic="t", topic_id=topic_named(node).id, partitions=partitions)],
    )


def list_offsets(node: Node, version: int) -> Message:
    partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1, max_num_offsets=1) for n in (0, 9)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


def create_topics(node: Node, version: int) -> Message:
    configs = [CreatableTopicConfig(name="retention.ms", value="5")]
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name="fresh", num_partitions=2, replication_factor=1, configs=configs),
            CreatableTopic(name="t", num_partitions=1, replication_factor=1),
        ]
    )


def delete_topics(node: Node, version: int) -> Message:
    if version < 6:
        return DeleteTopicsRequest(topic_names=["t", "missing"])
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=topic_named(node).id), DeleteTopicState(name="missing")]
    )


def init_producer_id(node: Node, version: int) -> Message:
    return InitProducerIdRequest(transactional_id=None)


def describe_configs(node: Node, version: int) -> Message:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None),
            DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=["node.id"]),
            DescribeConfigsResource(resource_type=99, resource_name="x"),
        ],
        include_synonyms=version >= 1,
        include_documentation=version >= 3,
    )


def describe_cluster(node: Node, version: int) -> Message:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def find_coordinator(node: Node, version: int) -> Message:
    if version < 4:
        return FindCoordinatorRequest(key="g")
    return FindCoordinatorRequest(coordinator_keys=["g", "h"])


def resource_changes(message: type[Message], **config: Any) -> Callable[[Node, int], Message]:
    """Return a function that makes a request to set `retention.ms` of an existing and a missing topic."""

    def make(node: Node, version: int) -> Message:
        module = importlib.import_module(message.__module__)
        setting = module.AlterableConfig(name="retention.ms", value="5", **config)
        resources = [
            module.AlterConfigsResource(resource_type=2, resource_name=name, configs=[setting])
            for name in ("t", "missing")
        ]
        return message(resources=resources)  # type: ignore[call-arg]

    return make


def create_partitions(node: Node, version: int) -> Message:
    topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("t", "missing")]
    return CreatePartitionsRequest(topics=topics)


def delete_records(node: Node, version: int) -> Message:
    partitions = [DeleteRecordsPartition(partition_index=n, offset=-1) for n in (0, 9)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=partitions)])


def offset_for_leader_epoch(node: Node, version: int) -> Message:
    partitions = [OffsetForLeaderPartition(partition=n, leader_epoch=0) for n in (0, 9)]
    return OffsetForLeaderEpochRequest(
        replica_id=-1 if version >= 3 else -2, topics=[OffsetForLeaderTopic(topic="t", partitions=partitions)]
    )


def describe_producers(node: Node, version: int) -> Message:
    return DescribeProducersRequest(topics=[ProducersOf(name="t", partition_indexes=[0, 9])])


def describe_quorum(node: Node, version: int) -> Message:
    partitions = [QuorumPartition(partition_index=0)]
    return DescribeQuorumRequest(topics=[QuorumTopic(topic_name="__cluster_metadata", partitions=partitions)])


def describe_topic_partitions(node: Node, version: int) -> Message:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in ("t", "missing")])


def elect_leaders(node: Node, version: int) -> Message:
    return ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 9])])


def alter_partition_reassignments(node: Node, version: int) -> Message:
    partitions = [ReassignablePartition(partition_index=0, replicas=wanted) for wanted in ([1], [2], None)]
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=partitions)])


def update_features(node: Node, version: int) -> Message:
    return UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="metadata.version", max_version_level=25)]
    )


def alter_replica_log_dirs(node: Node, version: int) -> Message:
    places = {node.store.describe(): [9, 8], "/elsewhere": [0]}
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name="t", partitions=partitions)])
            for path, partitions in places.items()
        ]
    )


def push_telemetry(node: Node, version: int) -> Message:
    assert node.client_metrics is not None
    origin = Origin("", None, None, "127.0.0.1", 0)
    _, client_instance_id, instance = node.client_metrics.subscribe(bytes(16), origin, 0.0)
    return PushTelemetryRequest(
        client_instance_id=client_instance_id, subscription_id=instance.subscription_id, metrics=b""
    )


REQUESTS: dict[ApiKey, Callable[[Node, int], Message]] = {
    ApiKey.PRODUCE: produce_both,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.METADATA: metadata,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.DESCRIBE_CONFIGS: describe_configs,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.ALTER_CONFIGS: resource_changes(AlterConfigsRequest),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.DESCRIBE_LOG_DIRS: lambda node, version: DescribeLogDirsRequest(topics=None),
    ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    ApiKey.DESCRIBE_QUORUM: describe_quorum,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
    ApiKey.ELECT_LEADERS: elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: resource_changes(IncrementalAlterConfigsRequest, config_operation=0),
    ApiKey.LIST_CONFIG_RESOURCES: lambda node, version: ListConfigResourcesRequest(),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: lambda node, version: GetTelemetrySubscriptionsRequest(),
    ApiKey.PUSH_TELEMETRY: push_telemetry,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda node, version: ListPartitionReassignmentsRequest(topics=None),
    ApiKey.LIST_TRANSACTIONS: lambda node, version: ListTransactionsRequest(state_filters=["Empty", "?"]),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
    ApiKey.UPDATE_FEATURES: update_features,
    ApiKey.UNREGISTER_BROKER: lambda node, version: UnregisterBrokerRequest(broker_id=99),
    ApiKey.UNREGISTER_CONTROLLER: lambda node, version: UnregisterControllerRequest(controller_id=99),
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
    ApiKey.DESCRIBE_TRANSACTIONS: lambda node, version: DescribeTransactionsRequest(
        transactional_ids=["", "x"]
    ),
    ApiKey.SASL_HANDSHAKE: lambda node, version: SaslHandshakeRequest(mechanism="PLAIN"),
    ApiKey.SASL_AUTHENTICATE: lambda node, version: SaslAuthenticateRequest(auth_bytes=b"x"),
    ApiKey.DESCRIBE_ACLS: lambda node, version: DescribeAclsRequest(resource_name_filter=None),
    ApiKey.CREATE_ACLS: lambda node, version: CreateAclsRequest(creations=[AclCreation()]),
    ApiKey.DELETE_ACLS: lambda node, version: DeleteAclsRequest(filters=[DeleteAclsFilter()]),
    ApiKey.CREATE_DELEGATION_TOKEN: lambda node, version: CreateDelegationTokenRequest(),
    ApiKey.RENEW_DELEGATION_TOKEN: lambda node, version: RenewDelegationTokenRequest(),
    ApiKey.EXPIRE_DELEGATION_TOKEN: lambda node, version: ExpireDelegationTokenRequest(),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: lambda node, version: DescribeDelegationTokenRequest(owners=None),
    ApiKey.ALTER_CLIENT_QUOTAS: lambda node, version: AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="client-id", entity_name=None)],
                ops=[OpData(key="producer_byte_rate", value=1e6)],
            )
        ]
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: lambda node, version: DescribeClientQuotasRequest(),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: lambda node, version: AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="a", mechanism=1)]
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: lambda node, version: DescribeUserScramCredentialsRequest(
        users=[UserName(name=name) for name in "aab"]
    ),
    **GROUP_REQUESTS,
    **SHARE_REQUESTS,
    **TRANSACTION_REQUESTS,
}

CASES = [
    (route.key, version)
    for route in ROUTES.values()
    for version in range(route.min_version, route.max_version + 1)
]


def test_every_api_that_is_offered_is_tried_here() -> None:
    assert REQUESTS.keys() == ROUTES.keys()


def test_no_api_is_offered_in_versions_that_do_not_exist() -> None:
    for route in ROUTES.values():
        low, high = API_TABLE[route.key].versions
        assert low <= route.min_version <= route.max_version <= high


@for_each(CASES)
def test_asked_and_answered(key: ApiKey, version: int) -> None:
    node = make_node(**EVERY_API)
    make_topic(node)
    produce(node, batch_of(b"before"))
    if key == ApiKey.OFFSET_FETCH:  # which has no coordinator before one was asked for
        ask_bytes(node, FindCoordinatorRequest(key="g"), 0)
    request = REQUESTS[key](node, version)
    response = ask_bytes(node, request, version)
    if key == ApiKey.METADATA:
        codes = [topic.error_code for topic in response.topics]
        assert codes == ([0, 0, 17] if version < 12 else [0, 100])  # with ids, names are not looked at
    elif key == ApiKey.PRODUCE:
        codes = [partition.error_code for partition in response.responses[0].partition_responses]
        assert codes == [0, 3]
    elif key == ApiKey.FETCH:
        codes = [partition.error_code for partition in response.responses[0].partitions]
        assert codes == [0, 3]
    elif key == ApiKey.LIST_OFFSETS:
        codes = [partition.error_code for partition in response.topics[0].partitions]
        assert codes == [0, 3]
    elif key == ApiKey.CREATE_TOPICS:
        assert [topic.error_code for topic in response.topics] == [0, 36]
    elif key == ApiKey.DELETE_TOPICS:
        assert [topic.error_code for topic in response.responses] == [0, 3]
    elif key == ApiKey.DESCRIBE_CONFIGS:
        assert [result.error_code for result in response.results] == [0, 0, 42]
    elif key == ApiKey.FIND_COORDINATOR:
        assert {response.error_code, *(entry.error_code for entry in response.coordinators)} == {0}
    elif key in GROUP_CODES:
        assert codes_in(response) == GROUP_CODES[key](version) | {0}
    else:
        assert codes_in(response) == EXPECTED_CODES.get(key, set()) | {0}


EXPECTED_CODES: dict[ApiKey, set[int]] = {
    ApiKey.ALTER_CONFIGS: {3},
    ApiKey.ALTER_REPLICA_LOG_DIRS: {3, 57},
    ApiKey.DESCRIBE_TRANSACTIONS: {16, 42},
    **TRANSACTION_CODES,
    **SHARE_CODES,
    ApiKey.SASL_HANDSHAKE: {34},
    ApiKey.SASL_AUTHENTICATE: {34},
    ApiKey.DESCRIBE_ACLS: {54},
    ApiKey.CREATE_ACLS: {54},
    ApiKey.DELETE_ACLS: {54},
    ApiKey.CREATE_DELEGATION_TOKEN: {64},
    ApiKey.RENEW_DELEGATION_TOKEN: {64},
    ApiKey.EXPIRE_DELEGATION_TOKEN: {64},
    ApiKey.DESCRIBE_DELEGATION_TOKEN: {64},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {91, 92},
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: {91},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {39, 85},
    ApiKey.CREATE_PARTITIONS: {3},
    ApiKey.DELETE_RECORDS: {3},
    ApiKey.DESCRIBE_PRODUCERS: {3},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {3},
    ApiKey.ELECT_LEADERS: {3, 84},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {3},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {3},
    ApiKey.UNREGISTER_BROKER: {102},
    ApiKey.UNREGISTER_CONTROLLER: {35},
}
"""A dict from API to the error codes, besides 0, that this module's requests may get."""


def codes_in(part: Any) -> set[int]:
    """Return every error code in a response, at any depth, and always 0."""
    found = {0}
    for name in type(part).__slots__:
        value = getattr(part, name)
        if name == "error_code":
            found.add(value)
        elif isinstance(value, list):
            found.update(*(codes_in(item) for item in value if hasattr(type(item), "__slots__")))
    return found


def test_handlers_have_the_names_of_their_apis() -> None:
    for key, offer in OFFERED.items():
        handle = ROUTES[key].handle
        assert handle.__name__ == key.name.lower()
        assert handle.__module__ == f"penstock.broker.handlers.{offer.module or key.name.lower()}"


def test_handlers_are_imported_when_they_are_asked_for_and_the_usual_ones_soon_after_a_start() -> None:
    script = """
import sys
from penstock import Broker
from penstock.broker.process import _settle

def print_handlers():
    print(*(name.rpartition(".")[2] for name in sys.modules if name.startswith("penstock.broker.handlers.")))

with Broker():
    print_handlers()
    _settle()
    print_handlers()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    started, settled = done.stdout.split("\n")[:2]
    assert not started
    assert set(settled.split()) == {key.name.lower() for key in COMMON} | {"produce_answers"}
