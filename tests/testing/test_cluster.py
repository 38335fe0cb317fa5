"""Tests that `KafkaCluster` accepts `KafkaBroker`'s arguments: security, release, faults, a stopped clock."""

from __future__ import annotations

import pytest

from penstock import Admin, Consumer, Producer, TopicPartition
from penstock.broker.network.listeners import listeners_of
from penstock.broker.security.throwaway import Security
from penstock.clock import SystemClock
from penstock.errors import AuthenticationError, ConfigError, KafkaError
from penstock.testing import KafkaBroker, KafkaCluster


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_every_broker_asks_for_the_password(protocol: str) -> None:
    with KafkaCluster(2, security=Security(protocol, users=["ann", "bob"])) as cluster:
        topic = cluster.create_topic(partitions=2, replicas=2)
        settings = cluster.client_settings("bob")
        assert settings["bootstrap.servers"] == cluster.bootstrap_servers
        with Producer(config={**settings, "acks": "all"}) as producer:
            for partition in range(2):
                assert producer.send(topic, b"v", partition=partition).result(timeout=20).offset == 0
        for node in cluster.node_ids:
            wrong = {**settings, "bootstrap.servers": cluster.address(node), "sasl.password": "wrong"}
            with pytest.raises(AuthenticationError), Producer(config=wrong) as producer:
                producer.send(topic, b"v").result(timeout=20)


def test_access_control_entries_hold_on_every_broker() -> None:
    security = Security("SASL_PLAINTEXT", users=["ann", "bob"], acls=["allow bob read topic:t"])
    with KafkaCluster(2, security=security) as cluster:
        cluster.create_topic("t", replicas=[[2, 1]])
        with Producer(config=cluster.client_settings("bob")) as producer, pytest.raises(KafkaError) as caught:
            producer.send("t", b"v").result(timeout=20)
        assert caught.value.code == 29


@pytest.mark.parametrize("release", ["0.10.2", "2.8"])
def test_a_cluster_behaves_as_an_older_release(release: str) -> None:
    with KafkaCluster(2, as_version=release) as cluster:
        topic = cluster.create_topic(replicas=2)
        settings = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(config={**settings, "acks": "all"}) as producer:
            assert producer.send(topic, b"v").result(timeout=20).offset == 0
        cluster.move_leader(topic)
        with Consumer(config={**settings, "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([(topic, 0)])
            assert [record.value for record in consumer.poll(10_000)] == [b"v"]


def test_a_fault_concerns_all_brokers() -> None:
    with KafkaCluster(2) as cluster:
        topic = cluster.create_topic(partitions=2, replicas=[[1, 2], [2, 1]])
        with (
            cluster.faults.fail("Produce", "NOT_ENOUGH_REPLICAS", topic=topic, times=2) as fault,
            Producer(cluster.bootstrap_servers, {"acks": "all"}) as producer,
        ):
            for partition in range(2):
                assert producer.send(topic, b"v", partition=partition).result(timeout=20).offset == 0
        assert fault.count == 2


def test_what_a_cluster_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="security is 7"):
        KafkaCluster(security=7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="blue"):
        KafkaCluster(as_version="blue")


def test_each_broker_takes_as_many_ports_as_it_has_listeners() -> None:
    settings = {
        "listeners": "A://127.0.0.1:9092,B://:9093,CONTROLLER://:0",
        "advertised.listeners": "A://a.example:19092,B://b.example:19093",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
    }
    cluster = KafkaCluster(3, config=settings)
    found = [listeners_of(node.config) for node in cluster._nodes.values()]
    assert [[each.port for each in listeners] for listeners in found] == [
        [9092, 9093],
        [9094, 9095],
        [9096, 9097],
    ]
    told = [each.advertised for each in found[2]]
    assert told == [("a.example", 19096), ("b.example", 19097)]


def test_the_clock_of_a_cluster_stands_still_and_goes_on() -> None:
    with KafkaCluster(2) as cluster:
        topic = cluster.create_topic(replicas=[[1, 2]])
        cluster.stop_clock()
        before = cluster.clock.now_ms(), cluster.clock.monotonic()
        cluster.kill(1)
        assert (cluster.clock.now_ms(), cluster.clock.monotonic()) == before
        cluster.advance(ms=900)
        assert cluster.partition(topic).leader == 1
        cluster.advance(ms=200)
        assert cluster.partition(topic).leader == 2
        assert cluster.clock.now_ms() == before[0] + 1100
        cluster.start_clock()
        cluster.start(1)
        assert cluster.clock.monotonic() >= before[1] + 1.1


def test_a_transaction_times_out_when_the_clock_says_so() -> None:
    with KafkaBroker() as broker:
        topic = broker.create_topic()
        settings = {"transactional.id": "x", "transaction.timeout.ms": "5000"}
        with Producer(broker.bootstrap_servers, settings) as producer:
            broker.stop_clock()
            producer.begin_transaction()
            producer.send(topic, b"v").result(timeout=20)
            broker.advance(seconds=4)
            assert stable(broker, topic) == 0
            broker.advance(seconds=20)
            assert stable(broker, topic) == 2, "the marker is there"
            broker.start_clock()


def stable(broker: KafkaBroker, topic: str) -> int:
    """Return the last stable offset of the topic's partition."""
    offset: int = broker._call(
        lambda server: server.node.cluster.topics[topic].partitions[0].last_stable_offset
    )
    return offset


def test_a_clock_that_cannot_be_stopped_is_refused() -> None:
    with pytest.raises(ConfigError, match="SystemClock cannot be stopped"):
        KafkaBroker(clock=SystemClock()).stop_clock()
    with pytest.raises(ConfigError, match="SystemClock cannot be put forward"):
        KafkaBroker(clock=SystemClock()).advance(1)


def test_transactions_go_on_while_the_clock_stands_still() -> None:
    with KafkaCluster(3) as cluster:
        topic = cluster.create_topic(partitions=3)
        settings = {"bootstrap_servers": cluster.bootstrap_servers, "transactional_id": "t"}
        with Producer(**settings) as producer:
            for turn in range(3):
                if turn == 1:
                    cluster.stop_clock()
                with producer.transaction():
                    for partition in range(3):
                        producer.send(topic, value=b"%d" % turn, partition=partition)
        cluster.start_clock()
        states = [cluster.replicas(topic, partition) for partition in range(3)]
    assert [max(each.log_end_offset for each in state) for state in states] == [6, 6, 6]


def test_a_group_finds_its_coordinator_though_a_broker_has_stopped_that_is_to_have_a_replica() -> None:
    with KafkaCluster(2, config={"offsets.topic.replication.factor": "2"}) as cluster:
        topic = cluster.create_topic(replicas=[[1]])
        cluster.stop(2)
        with Consumer(cluster.bootstrap_servers, group_id="g") as consumer:
            consumer.commit({TopicPartition(topic, 0): 0})
        with Admin(cluster.bootstrap_servers) as admin:
            (offsets,) = admin.describe_topics(["__consumer_offsets"])
        assert {(each.leader, *sorted(each.replicas)) for each in offsets.partitions} == {(1, 1, 2)}
