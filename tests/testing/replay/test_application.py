"""Tests of replaying a recorded application to a broker, with equal and with different responses."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from typing import Literal

import pytest

from free_ports import free_ports
from penstock import Admin, Consumer, Producer
from penstock.errors import ConfigError, NetworkError
from penstock.model import TopicPartition
from penstock.testing import KafkaBroker, KafkaCluster
from penstock.testing.replay import Difference, Recording
from testing.replay.shop import COUNT, capture, order, write_orders
from testing.replay.talks import tapped


def recording() -> Recording:
    return Recording.from_pcap(capture())


def read(servers: str, topic: str = "orders", *, committed: bool = False) -> list[bytes | None]:
    level: Literal["read_committed", "read_uncommitted"] = (
        "read_committed" if committed else "read_uncommitted"
    )
    with Consumer(servers, isolation_level=level) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        return [row.value for row in consumer.poll(timeout_ms=10_000)]


def rows(broker: KafkaBroker, topic: str = "orders", *, committed: bool = False) -> list[bytes | None]:
    return read(broker.bootstrap_servers, topic, committed=committed)


def test_a_new_broker_answers_as_the_recorded_one() -> None:
    with KafkaBroker() as broker:
        assert recording().play_to(broker.bootstrap_servers) == []
        assert rows(broker) == [order(number) for number in range(COUNT)]


def test_ids_are_those_of_the_target() -> None:
    with KafkaBroker() as broker:
        for _ in range(3):  # producer ids and topic ids that are used
            write_orders(broker.bootstrap_servers, 1, topic="older")
        assert recording().play_to(broker.bootstrap_servers) == []


def test_offsets_are_moved_by_what_the_target_has_more() -> None:
    partition = TopicPartition("orders", 0)
    with tapped() as (tap, servers):
        write_orders(f"127.0.0.1:{tap.target}", 5)  # not through the tap
        write_orders(servers)
        with Consumer(servers, config={"client.id": "desk"}) as consumer:
            consumer.assign([partition])
            consumer.seek(partition, 5)
            assert len(consumer.poll(timeout_ms=10_000)) == COUNT
        made = Recording.from_pcap(tap.capture())
    for count in (0, 7):
        with KafkaBroker() as broker:
            broker.create_topic("orders")
            write_orders(broker.bootstrap_servers, count)
            assert made.play_to(broker.bootstrap_servers) == []


def test_records_of_before_are_a_difference() -> None:
    with KafkaBroker() as broker:
        write_orders(broker.bootstrap_servers, 3)
        expected = Difference(-1, "Fetch", "records of orders-0", COUNT, COUNT + 3)
        assert recording().play_to(broker.bootstrap_servers) == [expected]
        assert str(expected) == "Fetch: records of orders-0 was 10, is 13"


def test_an_error_is_a_difference() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("orders")
        broker.faults.fail("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", times=1)
        (difference,) = recording().play_to(broker.bootstrap_servers)
        assert difference.request.startswith("OffsetCommit v")
        assert (difference.recorded, difference.answered) == (0, 30)
        assert difference.path == "topics[orders].partitions[0].error_code"
        assert str(difference).endswith(": topics[orders].partitions[0].error_code was 0, is 30")


def test_more_partitions_are_a_difference() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("orders", partitions=3)
        differences = recording().play_to(broker.bootstrap_servers, client_ids=["shop"])
    assert ("topics[orders].partitions, entries", 1, 3) in [each[2:] for each in differences]


def test_missing_records_are_a_difference() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("orders", cleanup_policy="delete")
        differences = recording().play_to(broker.bootstrap_servers, client_ids=["desk"])
    assert Difference(-1, "Fetch", "records of orders-0", COUNT, 0) in differences


def test_a_group_of_two_members_is_played() -> None:
    """Each member has its own connections, and its JoinGroup waits for the other member."""

    def poll_until_it_has(consumer: Consumer, count: int, stop: threading.Event) -> None:
        while len(consumer.assignment()) != count and not stop.is_set():
            consumer.poll(timeout_ms=50)
        while not stop.is_set():
            consumer.poll(timeout_ms=50)

    with tapped(**{"num.partitions": "2"}) as (tap, servers):
        write_orders(servers)
        stops = [threading.Event(), threading.Event()]
        config = {"heartbeat.interval.ms": "100"}
        with (
            Consumer(servers, group_id="desk", auto_offset_reset="earliest", config=config) as first,
            Consumer(servers, group_id="desk", auto_offset_reset="earliest", config=config) as second,
        ):
            for consumer in (first, second):
                consumer.subscribe(["orders"])
            while len(first.assignment()) != 2:
                first.poll(timeout_ms=50)
            threads = [
                threading.Thread(target=poll_until_it_has, args=(consumer, 1, stop))
                for consumer, stop in zip((first, second), stops, strict=True)
            ]
            for thread in threads:
                thread.start()
            while not len(first.assignment()) == len(second.assignment()) == 1:
                threading.Event().wait(0.02)
            for stop, thread in zip(stops, threads, strict=True):
                stop.set()
                thread.join()
        made = Recording.from_pcap(tap.capture())
    assert sum(each.api == "JoinGroup" for each in made.exchanges) >= 4
    with KafkaBroker(num_partitions=2) as broker:
        differences = made.play_to(broker.bootstrap_servers)
    # A heartbeat may overtake the JoinGroup of the other member, which makes it an error.
    assert [str(each) for each in differences if not each.request.startswith("Heartbeat")] == []


def test_a_cluster_is_played_to_by_leaders_and_coordinators() -> None:
    with KafkaCluster(3) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topic("orders", partitions=1, replication_factor=3)
        servers = cluster.bootstrap_servers.split(",")
        for server in servers:  # two of them lead nothing that is asked for, or more
            differences = recording().play_to(server, client_ids=["shop"])
            assert [str(each) for each in differences if "error_code" in each.path] == []
        written = read(cluster.bootstrap_servers)
        assert written == [order(number) for number in range(COUNT)] * 3
        (difference,) = recording().play_to(servers[0], client_ids=["desk"])
        assert difference == Difference(-1, "Fetch", "records of orders-0", COUNT, 3 * COUNT)


def test_a_transaction_is_played() -> None:
    with tapped() as (tap, servers):
        for commits in (True, False):
            with Producer(servers, transactional_id="pay") as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("pays", b"yes" if commits else b"no")
                producer.flush()
                if commits:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
        made = Recording.from_pcap(tap.capture())
    with KafkaBroker() as broker:
        assert made.play_to(broker.bootstrap_servers) == []
        assert rows(broker, "pays", committed=True) == [b"yes"]


def test_a_producer_from_before_the_capture_is_none() -> None:
    made = recording()
    made.exchanges = [each for each in made.exchanges if each.api not in ("InitProducerId", "Fetch")]
    with KafkaBroker() as broker:
        assert made.play_to(broker.bootstrap_servers, client_ids=["shop"]) == []
        assert len(rows(broker)) == COUNT


def test_pauses_are_kept_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("penstock.testing.replay.application.time.sleep", slept.append)
    made = recording()
    for each in made.exchanges[1:]:
        each.at_ms += 200_000
        each.answered_ms = None if each.answered_ms is None else each.answered_ms + 200_000
    with KafkaBroker() as broker:
        made.play_to(broker.bootstrap_servers)
        assert not slept
        made.play_to(broker.bootstrap_servers, with_pauses=True)
    assert 60 in slept  # a longer one is cut
    assert all(0 < each <= 60 for each in slept)


def test_a_broker_that_hangs_up_is_a_difference() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        differences = recording().play_to(f"127.0.0.1:{listener.getsockname()[1]}", timeout_s=10)
    answered = [each for each in recording().exchanges if each.answered_ms is not None]
    lost = [each for each in differences if each.path == "answer"]
    assert {each.number for each in lost} >= {recording().exchanges.index(each) for each in answered}


def test_a_broker_that_is_away_is_an_error() -> None:
    with pytest.raises(NetworkError, match="cannot be reached"):
        recording().play_to(f"127.0.0.1:{free_ports(1)[0]}")


def test_mistakes_are_refused() -> None:
    with pytest.raises(ConfigError, match="host:port"):
        recording().play_to("broker")
    with pytest.raises(ConfigError, match="no request of these clients"):
        recording().play_to("127.0.0.1:1", client_ids=["nobody"])
