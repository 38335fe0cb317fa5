"""Tests of metadata changes that brokers decide concurrently or late: they take effect in sequence.

A paused broker keeps a request. After the pause it handles the request before it has read the metadata
written meanwhile, so that a request of `queued` is decided with outdated metadata.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

import pytest

from broker.wire_client import WireClient
from for_each import for_each
from penstock.broker import handlers
from penstock.broker.interceptors import Stage
from penstock.broker.metadata.image import ClusterImage
from penstock.broker.replication.control.forwarding import FORWARDED
from penstock.broker.replication.control.quorum import Quorum, StaleDecisionError
from penstock.clock import ManualClock
from penstock.errors import StorageError
from penstock.log.memory import MemoryLog
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.message import Message
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

NODES = (1, 2, 3)
TRIES = 50
APPEND, SUBTRACT = 2, 3


@pytest.fixture(scope="module")
def shared() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        yield cluster


def connect(cluster: KafkaCluster, node: int) -> WireClient:
    return WireClient(int(cluster.address(node).rpartition(":")[2]), timeout_s=30)


def ask(cluster: KafkaCluster, node: int, request: Any, version: int) -> Any:
    with connect(cluster, node) as client:
        return client.ask(request, version)


@contextmanager
def three(cluster: KafkaCluster) -> Iterator[Callable[[Any, int], list[Any]]]:
    """Yield a function that sends one request to all three brokers at the same time."""
    clients = [connect(cluster, node) for node in NODES]
    try:

        def together(request: Any, version: int) -> list[Any]:
            barrier = threading.Barrier(len(clients))

            def send(client: WireClient) -> None:
                barrier.wait()
                client.send(request, version)

            threads = [threading.Thread(target=send, args=(client,)) for client in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return [client.receive()[1] for client in clients]

        yield together
    finally:
        for client in clients:
            client.__exit__()


@contextmanager
def queued(cluster: KafkaCluster, request: Any, version: int) -> Iterator[list[Any]]:
    """Pause broker 2 with a request in its queue for the length of the block.

    Yields a list to which the response is added after the block.
    """
    answers: list[Any] = []
    with connect(cluster, 2) as client:
        with cluster.paused(2):
            client.send(request, version)
            yield answers
        answers.append(client.receive()[1])


def creation(name: str, **settings: str) -> CreateTopicsRequest:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=3, configs=configs)
    return CreateTopicsRequest(topics=[topic])


def metadata(name: str, *, creates: bool = True) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=creates)


def growth(name: str, count: int) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)])


def deletion(name: str | None = None, topic_id: bytes = bytes(16)) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=topic_id)])


def change(name: str, key: str, operation: int, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
    return IncrementalAlterConfigsRequest(resources=[resource])


def id_of(cluster: KafkaCluster, name: str, node: int = 1) -> bytes:
    found: bytes = ask(cluster, node, metadata(name, creates=False), 12).topics[0].topic_id
    return found


def produce(cluster: KafkaCluster, topic: str, values: int) -> int:
    """Produce a batch of `values` records with acks=all; return the offset of the first one."""
    leader = cluster.partition(topic).leader
    records = memoryview(bytearray(encode_batch([(None, b"%d" % each, (), 1000) for each in range(values)])))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
    answer = ask(cluster, leader, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]), 9)
    found = answer.responses[0].partition_responses[0]
    assert found.error_code == 0
    offset: int = found.base_offset
    return offset


# --- several brokers at once --------------------------------------------------------------------------------


def test_a_topic_that_all_brokers_are_asked_to_create_is_created_once(shared: KafkaCluster) -> None:
    with three(shared) as together:
        for number in range(TRIES):
            answers = together(creation(f"created-{number}"), 7)
            codes = sorted(answer.topics[0].error_code for answer in answers)
            assert codes == [0, E.TOPIC_ALREADY_EXISTS, E.TOPIC_ALREADY_EXISTS]


def test_a_topic_that_is_created_on_the_way_is_the_same_at_all_brokers(shared: KafkaCluster) -> None:
    with three(shared) as together:
        for number in range(TRIES):
            together(metadata(f"automatic-{number}"), 12)  # one or two of them, or all, create it
            answers = together(metadata(f"automatic-{number}"), 12)
            assert {answer.topics[0].error_code for answer in answers} == {0}
            assert len({answer.topics[0].topic_id for answer in answers}) == 1


def test_metadata_that_create_a_topic_say_first_that_it_is_unknown(shared: KafkaCluster) -> None:
    """The first Metadata request creates the topic and answers UNKNOWN_TOPIC_OR_PARTITION.

    Other brokers have not read its record yet. Apache Kafka's brokers do not wait for the controller either.
    """
    with connect(shared, 1) as client:
        first, then = (client.ask(metadata("created-later"), 12).topics[0] for _ in range(2))
        unwanted, *_ = client.ask(metadata("not-created", creates=False), 12).topics
    assert (first.error_code, first.partitions) == (E.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert (then.error_code, len(then.partitions)) == (0, 1)
    assert unwanted.error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_grows_once(shared: KafkaCluster) -> None:
    shared.create_topic("growing", replicas=3)
    with three(shared) as together:
        for count in range(2, TRIES + 2):
            codes = sorted(answer.results[0].error_code for answer in together(growth("growing", count), 3))
            assert codes == [0, E.INVALID_PARTITIONS, E.INVALID_PARTITIONS]


def test_a_topic_is_deleted_once(shared: KafkaCluster) -> None:
    with three(shared) as together:
        for number in range(TRIES):
            shared.create_topic(f"deleted-{number}", replicas=3)
            codes = sorted(
                answer.responses[0].error_code for answer in together(deletion(f"deleted-{number}"), 6)
            )
            assert codes == [0, E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION]


def test_producer_ids_are_given_out_once(shared: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.broker.metadata.cluster.PRODUCER_ID_BLOCK", 2)
    seen: list[int] = []
    with three(shared) as together:
        for _ in range(TRIES):
            seen += [each.producer_id for each in together(InitProducerIdRequest(transactional_id=None), 4)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("kind", [0, 1])
def test_the_topic_of_a_coordinator_is_made_once(kind: int) -> None:
    name = ("__consumer_offsets", "__transaction_state")[kind]
    for _ in range(3):
        with KafkaCluster(3) as cluster, three(cluster) as together:
            together(FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"]), 4)
            assert len({id_of(cluster, name, node) for node in NODES}) == 1
            made = cluster._shared.quorum._log.replay()
            assert [each.name for each in made if isinstance(each, TopicRecord)] == [name]


# --- a broker that is late ----------------------------------------------------------------------------------


@pytest.mark.parametrize("automatic", [False, True], ids=["CreateTopics", "Metadata"])
def test_a_late_broker_does_not_replace_a_topic_and_its_records(
    cluster: KafkaCluster, automatic: bool
) -> None:
    request, version = (metadata("t"), 12) if automatic else (creation("t"), 7)
    with queued(cluster, request, version) as late:
        cluster.create_topic("t", replicas=[[1, 3]], min_insync_replicas=2)
        made = id_of(cluster, "t")
        assert produce(cluster, "t", 1000) == 0
    answer = late[0].topics[0]
    assert answer.error_code == (0 if automatic else E.TOPIC_ALREADY_EXISTS)
    if automatic:
        assert answer.topic_id == made
    assert [id_of(cluster, "t", node) for node in NODES] == [made] * 3
    assert produce(cluster, "t", 1) == 1000
    fetch = FetchRequest(
        max_wait_ms=0,
        topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])],
    )
    found = ask(cluster, cluster.partition("t").leader, fetch, 12).responses[0].partitions[0]
    assert (found.error_code, found.high_watermark) == (0, 1001)


def test_groups_keep_their_offsets_when_a_late_broker_asks_for_their_coordinator(
    cluster: KafkaCluster,
) -> None:
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    cluster.create_topic("t", replicas=[[1, 3]])

    def coordinator() -> Any:
        return ask(cluster, 1, find, 4).coordinators[0]

    with queued(cluster, find, 4) as late:
        cluster.fence(2)
        found = coordinator()
        assert found.node_id in (1, 3)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        commit = OffsetCommitRequest(group_id="g", topics=topics)
        answer = ask(cluster, found.node_id, commit, 8)
        assert answer.topics[0].partitions[0].error_code == 0
    assert late[0].coordinators[0].node_id == found.node_id
    group = OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    )
    answer = ask(cluster, coordinator().node_id, OffsetFetchRequest(groups=[group]), 8)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 42


def test_a_late_broker_does_not_let_a_topic_grow_to_what_it_has(cluster: KafkaCluster) -> None:
    cluster.create_topic("t", replicas=3)
    with queued(cluster, growth("t", 3), 3) as late:
        assert ask(cluster, 1, growth("t", 3), 3).results[0].error_code == 0
    assert late[0].results[0].error_code == E.INVALID_PARTITIONS
    assert len(ask(cluster, 3, metadata("t"), 12).topics[0].partitions) == 3


def test_a_late_broker_deletes_by_id_what_had_the_id(cluster: KafkaCluster) -> None:
    cluster.create_topic("t", replicas=3)
    old = id_of(cluster, "t")
    with queued(cluster, deletion(topic_id=old), 6) as late:
        assert ask(cluster, 1, deletion("t"), 6).responses[0].error_code == 0
        cluster.create_topic("t", replicas=[[1, 3]])
        assert produce(cluster, "t", 10) == 0
    result = late[0].responses[0]
    assert (result.error_code, result.name) == (E.UNKNOWN_TOPIC_ID, None)
    assert produce(cluster, "t", 1) == 10


def test_a_late_broker_creates_what_has_been_deleted_meanwhile(cluster: KafkaCluster) -> None:
    cluster.create_topic("t", replicas=3)
    with queued(cluster, creation("t"), 7) as late:
        assert ask(cluster, 1, deletion("t"), 6).responses[0].error_code == 0
    assert late[0].topics[0].error_code == 0


def test_settings_are_added_to_what_is_set_by_then(cluster: KafkaCluster) -> None:
    cluster.create_topic("t", replicas=3, cleanup_policy="delete")
    subtraction = change("t", "cleanup.policy", SUBTRACT, "delete")
    with queued(cluster, subtraction, 1) as late:
        added = ask(cluster, 1, change("t", "cleanup.policy", APPEND, "compact"), 1)
        assert added.responses[0].error_code == 0
    assert late[0].responses[0].error_code == 0
    resource = DescribeConfigsResource(
        resource_type=2, resource_name="t", configuration_keys=["cleanup.policy"]
    )
    found = ask(cluster, 3, DescribeConfigsRequest(resources=[resource]), 4).results[0].configs[0]
    assert found.value == "compact"


def test_settings_that_do_not_go_together_are_refused_whatever_brokers_are_asked(
    cluster: KafkaCluster,
) -> None:
    cluster.create_topic("t", replicas=3)
    with queued(cluster, change("t", "max.compaction.lag.ms", 0, "10"), 1) as late:
        first = ask(cluster, 1, change("t", "min.compaction.lag.ms", 0, "100"), 1)
        assert first.responses[0].error_code == 0
    assert late[0].responses[0].error_code == E.INVALID_CONFIG
    lags = {"min_compaction_lag_ms": "100", "max_compaction_lag_ms": "10"}
    assert ask(cluster, 1, creation("u", **lags), 7).topics[0].error_code == E.INVALID_CONFIG


@pytest.mark.parametrize(
    ("request_", "version", "code_of"),
    [
        (change("t", "retention.ms", 0, "1"), 1, lambda answer: answer.responses[0].error_code),
        (growth("t", 9), 3, lambda answer: answer.results[0].error_code),
        (deletion("t"), 6, lambda answer: answer.responses[0].error_code),
        (
            ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0])]),
            2,
            lambda answer: answer.replica_election_results[0].partition_result[0].error_code,
        ),
        (
            AlterPartitionReassignmentsRequest(
                topics=[
                    ReassignableTopic(
                        name="t", partitions=[ReassignablePartition(partition_index=0, replicas=[1])]
                    )
                ]
            ),
            0,
            lambda answer: answer.responses[0].partitions[0].error_code,
        ),
    ],
    ids=["settings", "growth", "deletion", "election", "reassignment"],
)
def test_a_late_broker_changes_nothing_of_a_topic_that_is_gone(
    cluster: KafkaCluster, request_: Any, version: int, code_of: Callable[[Any], int]
) -> None:
    cluster.create_topic("t", replicas=3)
    with queued(cluster, request_, version) as late:
        assert ask(cluster, 1, deletion("t"), 6).responses[0].error_code == 0
    assert code_of(late[0]) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_late_broker_removes_a_user_once(cluster: KafkaCluster) -> None:
    user = ScramCredentialUpsertion(
        name="ann", mechanism=1, iterations=4096, salt=b"salt" * 4, salted_password=b"p" * 32
    )
    added = ask(cluster, 1, AlterUserScramCredentialsRequest(upsertions=[user]), 0)
    assert added.results[0].error_code == 0
    removal = AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="ann", mechanism=1)])
    with queued(cluster, removal, 0) as late:
        assert ask(cluster, 1, removal, 0).results[0].error_code == 0
    assert late[0].results[0].error_code == E.RESOURCE_NOT_FOUND


def test_quotas_of_a_late_broker_are_written_over_those_before(cluster: KafkaCluster) -> None:
    def quota(rate: float, *, remove: bool = False) -> AlterClientQuotasRequest:
        entity = [EntityData(entity_type="user", entity_name="ann")]
        ops = [OpData(key="producer_byte_rate", value=rate, remove=remove)]
        return AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)])

    with queued(cluster, quota(0.0, remove=True), 1) as late:
        assert ask(cluster, 1, quota(7.0), 1).entries[0].error_code == 0
    assert late[0].entries[0].error_code == 0
    assert not cluster._shared.quorum.image.quotas  # there was none that the late broker knew of


@pytest.mark.parametrize(
    ("request_", "version", "codes_of"),
    [
        (creation("t"), 7, lambda answer: [each.error_code for each in answer.topics]),
        (creation("new"), 7, lambda answer: [each.error_code for each in answer.topics]),
        (growth("t", 9), 3, lambda answer: [each.error_code for each in answer.results]),
        (deletion("t"), 6, lambda answer: [each.error_code for each in answer.responses]),
        (deletion("none"), 6, lambda answer: [each.error_code for each in answer.responses]),
        (
            change("t", "retention.ms", 0, "1"),
            1,
            lambda answer: [each.error_code for each in answer.responses],
        ),
    ],
)
def test_a_broker_that_is_cut_off_decides_nothing(
    cluster: KafkaCluster, request_: Any, version: int, codes_of: Callable[[Any], list[int]]
) -> None:
    cluster.create_topic("t", replicas=3)
    cluster.cut_from_controller(2)
    assert codes_of(ask(cluster, 2, request_, version)) == [E.REQUEST_TIMED_OUT]


def test_a_late_broker_heeds_rules_that_were_made_meanwhile() -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    denials = [
        AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=3,
            principal="User:ANONYMOUS",
            host="*",
            operation=5,  # create
            permission_type=2,  # deny
        )
        for kind, name in ((2, "t"), (4, "kafka-cluster"))
    ]
    with KafkaCluster(3, config=settings) as cluster, queued(cluster, creation("t"), 7) as late:
        assert ask(cluster, 1, CreateAclsRequest(creations=denials), 3).results[0].error_code == 0
    assert late[0].topics[0].error_code == E.TOPIC_AUTHORIZATION_FAILED


def test_a_broker_that_has_ended_decides_nothing(cluster: KafkaCluster) -> None:
    """A killed broker cannot change metadata through the controller any more.

    Its attempt raises StorageError.
    """
    ended = cluster._shared.nodes[2]
    cluster.kill(2)
    with pytest.raises(StorageError, match="cannot reach the controller"):
        ended.cluster.alter([ProducerIdsRecord(broker_id=2, next_producer_id=5000)], 1_000)
    assert cluster._shared.quorum.image.producer_ids_end < 5000


# --- the controller and the image ---------------------------------------------------------------------------


class Nowhere:
    """A transport that delivers no messages."""

    def send(self, source: int, target: int, message: Any, answered: Any) -> None: ...


def quorum() -> Quorum:
    return Quorum(MemoryLog(now_ms=0), "c", Nowhere(), ManualClock(1_000), 9.0, Random(1))


def topic(name: str, number: int) -> TopicRecord:
    return TopicRecord(name=name, topic_id=bytes(15) + bytes((number,)))


def partition(number: int, index: int) -> PartitionRecord:
    return PartitionRecord(topic_id=bytes(15) + bytes((number,)), partition_id=index, replicas=[1], isr=[1])


def test_a_decision_is_written_only_behind_what_it_was_made_of() -> None:
    control = quorum()
    seen = control._next_batch
    control.commit([topic("a", 1), partition(1, 0)], 1_000, decided_at=seen)
    end = control.end_offset
    setting = ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="1")
    with pytest.raises(StaleDecisionError, match="ask again"):
        control.commit([setting], 1_000, decided_at=seen)
    assert (control.end_offset, control.image.topics["a"].overrides) == (end, {})
    control.commit([setting], 1_000, decided_at=seen + 1)
    assert control.image.topics["a"].overrides == {"retention.ms": "1"}


UNFIT: dict[str, list[Message]] = {
    "another topic of the name": [topic("a", 9)],
    "a topic twice": [topic("b", 8), topic("b", 9)],
    "an id twice": [topic("b", 1)],
    "a partition that is there": [partition(1, 1)],
    "a partition after a gap": [partition(1, 3)],
    "a partition of no topic": [partition(9, 0)],
    "a change of no partition": [PartitionChangeRecord(topic_id=topic("a", 1).topic_id, partition_id=2)],
    "a change of no topic": [PartitionChangeRecord(topic_id=topic("a", 9).topic_id, partition_id=0)],
    "a removal of no topic": [RemoveTopicRecord(topic_id=topic("a", 9).topic_id)],
    "a removal twice": [RemoveTopicRecord(topic_id=topic("a", 1).topic_id)] * 2,
    "a setting of no topic": [
        ConfigRecord(resource_type=2, resource_name="b", name="retention.ms", value="1")
    ],
    "producer ids that are given out": [ProducerIdsRecord(broker_id=1, next_producer_id=1000)],
}


@for_each(UNFIT.values())
def test_records_that_do_not_fit_are_not_written(records: list[Message]) -> None:
    control = quorum()
    ids = ProducerIdsRecord(broker_id=1, next_producer_id=1000)
    control.commit([topic("a", 1), partition(1, 0), partition(1, 1), ids], 1_000)
    end = control.end_offset
    with pytest.raises(StorageError, match="decided against other metadata"):
        control.commit(records, 1_000)
    assert control.end_offset == end


def test_a_topic_may_be_made_again_behind_its_removal() -> None:
    control = quorum()
    control.commit([topic("a", 1), partition(1, 0)], 1_000)
    control.commit(
        [RemoveTopicRecord(topic_id=topic("a", 1).topic_id), topic("a", 2), partition(2, 0)], 1_000
    )
    assert control.image.topics["a"].id == topic("a", 2).topic_id


def test_an_image_does_not_replace_a_topic() -> None:
    image = ClusterImage()
    image.apply(topic("a", 1))
    with pytest.raises(StorageError, match="twice"):
        image.apply(topic("a", 2))
    assert image.topics["a"].id == topic("a", 1).topic_id


WRITES = (
    ".alter(",
    ".create_topics(",
    ".delete_topics(",
    ".add_partitions(placed",
    ".set_features(",
    "answer_each(",
)
"""Source text of the calls with which handlers change metadata."""


def test_each_handler_that_changes_metadata_does_so_with_all_of_them() -> None:
    """A handler that changes metadata must decide with the newest metadata.

    Either Apache Kafka's brokers forward its API to the controller, or its source calls `catch_up`.
    """
    found = set()
    for each in iter_modules(handlers.__path__):
        source = inspect.getsource(import_module(f"{handlers.__name__}.{each.name}"))
        keys = {key for key in ApiKey if f"def {key.name.lower()}(" in source}
        if any(write in source for write in WRITES):
            found.add(each.name)
            assert keys, f"{each.name} serves no API by its name"
            assert keys & FORWARDED or "catch_up()" in source, f"{each.name} decides by the image of a node"
    assert {"create_topics", "metadata", "acls", "scram_credentials", "delegation_tokens"} <= found


def test_rights_are_judged_with_all_metadata() -> None:
    assert Stage.AUTHENTICATION < Stage.FORWARDING < Stage.AUTHORIZATION
