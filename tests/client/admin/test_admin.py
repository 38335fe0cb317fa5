from __future__ import annotations

import asyncio
from typing import Any

import pytest

from client.fake_broker import fake_broker
from penstock import Admin, Producer
from penstock.client import AsyncAdmin, NewTopic
from penstock.errors import KafkaError, NetworkError, UnsupportedVersionError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse


def test_topics_are_created_described_and_deleted(admin: Admin) -> None:
    admin.create_topics([NewTopic("made-1", 3, config={"retention.ms": "5000"}), "made-2"])
    assert {"made-1", "made-2"} <= set(admin.list_topics())
    first, second = admin.describe_topics(["made-1", "made-2"])
    assert (first.name, [p.partition for p in first.partitions], len(second.partitions)) == (
        "made-1",
        [0, 1, 2],
        1,
    )
    assert first.topic_id is not None
    assert len(first.topic_id) == 22
    settings = admin.describe_config("made-1")
    assert (settings["retention.ms"].value, settings["retention.ms"].is_default) == ("5000", False)
    assert settings["cleanup.policy"].is_default
    assert admin.list_offsets({TopicPartition("made-1", 2): LATEST}) == {TopicPartition("made-1", 2): (0, -1)}
    admin.delete_topics(["made-1", "made-2"])
    assert not {"made-1", "made-2"} & set(admin.list_topics())


def test_the_cluster_describes_itself(admin: Admin, servers: str) -> None:
    cluster = admin.describe_cluster()
    assert cluster.cluster_id
    (node,) = cluster.nodes
    assert str(node.address) == servers
    assert admin.describe_config(broker=node.node_id)
    with pytest.raises(ValueError, match="not both"):
        admin.describe_config()


def test_internal_topics_are_left_out(admin: Admin) -> None:
    assert not [name for name in admin.list_topics() if name.startswith("__")]
    assert set(admin.list_topics()) <= set(admin.list_topics(include_internal=True))


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda a: a.create_topic("taken"), 36, "TOPIC_ALREADY_EXISTS"),
        (lambda a: a.create_topic("a b"), 17, "INVALID_TOPIC"),
        (lambda a: a.create_topic("x", -7), 37, "INVALID_PARTITIONS"),
        (lambda a: a.create_topic("x", config={"retention.sm": "1"}), 40, "retention"),
        (lambda a: a.delete_topics(["takn"]), 3, "topic 'takn' does not exist; did you mean 'taken'"),
        (lambda a: a.describe_topics(["takn"]), 3, "topic 'takn' does not exist; did you mean 'taken'"),
        (lambda a: a.describe_config("takn"), 3, "topic 'takn' does not exist"),
    ],
)
def test_what_cannot_be_done_is_said(admin: Admin, call: Any, code: int, words: str) -> None:
    if "taken" not in admin.list_topics():
        admin.create_topic("taken")
    with pytest.raises(KafkaError, match=words) as caught:
        call(admin)
    assert caught.value.code == code


def test_topics_grow(admin: Admin) -> None:
    admin.create_topic("growing", 2)
    admin.create_partitions("growing", 5)
    (topic,) = admin.describe_topics(["growing"])
    assert [partition.partition for partition in topic.partitions] == [0, 1, 2, 3, 4]
    with pytest.raises(KafkaError, match=r"INVALID_PARTITIONS"):
        admin.create_partitions("growing", 5)
    with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC"):
        admin.create_partitions("not-there", 5)


def test_settings_are_changed(admin: Admin) -> None:
    admin.create_topic("tuned")

    def value(name: str) -> str | None:
        return admin.describe_config("tuned")[name].value

    default = value("retention.ms")
    admin.alter_config("tuned", set={"retention.ms": 5000, "preallocate": True})
    assert (value("retention.ms"), value("preallocate")) == ("5000", "true")
    admin.alter_config("tuned", append={"cleanup.policy": "compact"}, delete=["retention.ms"])
    assert (value("cleanup.policy"), value("retention.ms")) == ("delete,compact", default)
    admin.alter_config("tuned", subtract={"cleanup.policy": ["delete"]}, validate_only=True)
    assert value("cleanup.policy") == "delete,compact"
    with pytest.raises(KafkaError, match=r"did you mean retention.ms"):
        admin.alter_config("tuned", set={"retention.mss": 1, "segment.ms": 5})
    assert admin.describe_config("tuned")["segment.ms"].is_default
    (node,) = admin.describe_cluster().nodes
    with pytest.raises(KafkaError, match=r"dynamically"):
        admin.alter_config(broker=node.node_id, set={"num.partitions": 3})
    admin.alter_config(broker=node.node_id, set={"log.retention.ms": 9_000_000})
    assert value("retention.ms") == "9000000"
    admin.alter_config(broker=node.node_id, delete=["log.retention.ms"])
    admin.alter_config(all_brokers=True, set={"log.retention.ms": 8_000_000})
    assert value("retention.ms") == "8000000"
    admin.alter_config(all_brokers=True, delete=["log.retention.ms"])
    with pytest.raises(ValueError, match="takes the name of a topic, or broker=, all_brokers=True or"):
        admin.alter_config("tuned", broker=1, set={"a": 1})


def test_records_are_deleted_and_directories_described(admin: Admin, servers: str) -> None:
    admin.create_topic("trimmed", 2)
    with Producer(bootstrap_servers=servers) as producer:
        for n in range(10):
            producer.send("trimmed", b"x", partition=n % 2)
    first, second = (TopicPartition("trimmed", index) for index in (0, 1))
    assert admin.delete_records({first: 3, second: -1}) == {first: 3, second: 5}
    found = admin.list_offsets({first: EARLIEST, second: EARLIEST})
    assert {place: answer.offset for place, answer in found.items() if answer} == {first: 3, second: 5}
    with pytest.raises(KafkaError, match=r"OFFSET_OUT_OF_RANGE"):
        admin.delete_records({first: 6})
    (place,) = admin.describe_log_dirs()
    assert place.partitions[first] > 0
    assert place == admin.describe_log_dirs(place.broker)[0]


def test_a_closed_admin_says_so(servers: str) -> None:
    with Admin(servers) as admin:
        admin.list_topics()
    with pytest.raises(NetworkError, match="closed"):
        admin.list_topics()


def test_creation_goes_on_when_the_controller_moves_or_the_answer_is_lost() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:

            def create(b: Any, header: Any, request: Any) -> CreateTopicsResponse:
                error = 36 if "new" in b.topics else 0
                b.topics["new"] = 2
                return CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=error)])

            def created_and_gone(b: Any, header: Any, request: Any) -> object:
                from client.fake_broker import HANG_UP

                create(b, header, request)
                return HANG_UP

            moved = CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=41)])
            broker.script(ApiKey.CREATE_TOPICS, lambda *_: moved, created_and_gone, create)
            async with AsyncAdmin(broker.bootstrap_servers, retry_backoff_ms=5) as admin:
                await admin.create_topic("new", 2)
            (request, *_) = broker.asked(ApiKey.CREATE_TOPICS)
            assert request.topics[0].replication_factor == -1

    asyncio.run(play())


def test_old_brokers_get_numbers_they_understand() -> None:
    async def play() -> None:
        async with fake_broker(
            {"t": 1}, {ApiKey.CREATE_TOPICS: (0, 1), ApiKey.DELETE_TOPICS: (0, 1)}
        ) as broker:

            def create(b: Any, header: Any, request: Any) -> CreateTopicsResponse:
                b.topics["new"] = 1
                return CreateTopicsResponse(topics=[CreatableTopicResult(name="new")])

            def delete(b: Any, header: Any, request: Any) -> DeleteTopicsResponse:
                return DeleteTopicsResponse(responses=[DeletableTopicResult(name=request.topic_names[0])])

            broker.script(ApiKey.CREATE_TOPICS, create)
            broker.script(ApiKey.DELETE_TOPICS, delete)
            async with AsyncAdmin(broker.bootstrap_servers) as admin:
                await admin.create_topic("new", -1)
                await admin.delete_topics(["new"])
            (request,) = broker.asked(ApiKey.CREATE_TOPICS)
            assert (request.topics[0].num_partitions, request.topics[0].replication_factor) == (1, 1)

    asyncio.run(play())


def test_brokers_that_create_no_topics_are_too_old() -> None:
    async def play() -> None:
        async with (
            fake_broker({"t": 1}, without=[ApiKey.CREATE_TOPICS]) as broker,
            AsyncAdmin(broker.bootstrap_servers) as admin,
        ):
            with pytest.raises(UnsupportedVersionError, match="does not know CreateTopics"):
                await admin.create_topic("new")

    asyncio.run(play())
