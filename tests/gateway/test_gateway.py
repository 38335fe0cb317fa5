"""Tests of clients that connect to brokers through a gateway."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from free_ports import free_ports
from gateway.pacing import paced
from gateway.relays import answers_of, request
from penstock.broker.security.throwaway import Security
from penstock.client import Admin, Consumer, Producer
from penstock.errors import ConfigError, KafkaError, NetworkError
from penstock.gateway import Gateway, Limits
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.testing import KafkaBroker, KafkaCluster

PATIENCE_S = 30.0


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "too late"
        time.sleep(0.01)


def produce(servers: str, topic: str, count: int, first: int = 0) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=number % 3)
        producer.flush()


def consume(servers: str, topic: str, count: int, **options: object) -> list[int]:
    found: list[int] = []
    end = time.monotonic() + PATIENCE_S
    options = {"group_id": f"readers of {topic}"} | options
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", **options) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} records"
            found += [int(record.value) for record in consumer.poll(100)]
    return sorted(found)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(3, num_partitions=3, default_replication_factor=3) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: KafkaCluster) -> Iterator[Gateway]:
    with Gateway(to=cluster.bootstrap_servers) as gateway:
        yield gateway


def test_our_client_finds_every_broker_at_the_gateway(gateway: Gateway) -> None:
    with Admin(bootstrap_servers=gateway.bootstrap_servers) as admin:
        nodes = admin.describe_cluster().nodes
    assert [(node.node_id, node.port) for node in sorted(nodes)] == [
        (each.node_id, each.port) for each in gateway.node_ports
    ]
    assert len({each.port for each in gateway.node_ports} | {gateway.port}) == 4


def test_our_client_produces_and_consumes_in_groups(gateway: Gateway) -> None:
    produce(gateway.bootstrap_servers, "ours", 3000)
    assert consume(gateway.bootstrap_servers, "ours", 3000, group_id="g") == list(range(3000))
    assert gateway.held_bytes == 0
    assert {("Produce", 13), ("Fetch", 18)} <= {(row.api, row.version) for row in gateway.clients()}


def test_transactions_pass(gateway: Gateway) -> None:
    with Producer(bootstrap_servers=gateway.bootstrap_servers, transactional_id="tx") as producer:
        for number in range(6):
            producer.begin_transaction()
            producer.send("tx", b"%d" % number, partition=0)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    options = {"isolation_level": "read_committed"}
    assert consume(gateway.bootstrap_servers, "tx", 3, **options) == [0, 2, 4]


def test_large_records_pass(gateway: Gateway) -> None:
    values = [bytes([number]) * 900_000 for number in range(20)]
    with Producer(bootstrap_servers=gateway.bootstrap_servers, max_request_size=2_000_000) as producer:
        for value in values:
            producer.send("large", value, partition=0)
        producer.flush()
    found: list[bytes] = []
    options = {"auto_offset_reset": "earliest", "group_id": "large"}
    with Consumer(bootstrap_servers=gateway.bootstrap_servers, **options) as consumer:
        consumer.subscribe(["large"])
        while len(found) < 20:
            found += [bytes(record.value) for record in consumer.poll(100)]
    assert found == values


def test_kafka_python_works_through_the_gateway(gateway: Gateway) -> None:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=gateway.bootstrap_servers)
    for number in range(300):
        producer.send("kp", b"%d" % number)
    producer.flush()
    producer.close()
    consumer = kafka.KafkaConsumer(
        "kp", bootstrap_servers=gateway.bootstrap_servers, auto_offset_reset="earliest", group_id="kp"
    )
    found: list[int] = []
    while len(found) < 300:
        for records in consumer.poll(1000).values():
            found += [int(record.value) for record in records]
    consumer.close()
    assert sorted(found) == list(range(300))


def test_librdkafka_works_through_the_gateway(gateway: Gateway) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    producer = confluent.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    for number in range(300):
        producer.produce("ck", b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent.Consumer(
        {"bootstrap.servers": gateway.bootstrap_servers, "group.id": "ck", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["ck"])
    found: list[int] = []
    while len(found) < 300:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(int(message.value()))
    consumer.close()
    assert sorted(found) == list(range(300))
    assert any(row.software.startswith("confluent-kafka") for row in gateway.clients())


@pytest.mark.parametrize("release", [(0, 8, 2), (0, 9), (0, 10, 0), (0, 10, 1), (0, 11)])
def test_clients_of_old_releases_work_in_front_of_a_cluster_of_today(release: tuple[int, ...]) -> None:
    kafka = pytest.importorskip("kafka")
    with (
        KafkaCluster(3, as_version="4.0", num_partitions=3, default_replication_factor=3) as cluster,
        Gateway(to=cluster.bootstrap_servers) as gateway,
    ):
        with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
            admin.create_topic("t", partitions=3)
        options = {"bootstrap_servers": gateway.bootstrap_servers, "api_version": release}
        producer = kafka.KafkaProducer(**options, acks="all")
        for number in range(300):
            producer.send("t", b"%d" % number, key=b"%d" % (number % 7))
        producer.flush()
        producer.close()
        consumer = kafka.KafkaConsumer("t", **options, group_id="g", auto_offset_reset="earliest")
        found: list[int] = []
        while len(found) < 300:
            for records in consumer.poll(1000).values():
                found += [int(record.value) for record in records]
        consumer.commit()
        consumer.close()
        assert sorted(found) == list(range(300))
        translated = {(row.api, row.version) for row in gateway.clients() if not row.is_spoken}
        assert release >= (0, 11) or any(api == "Produce" for api, _ in translated)
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="g") as consumer:
            committed = consumer.committed([("t", number) for number in range(3)])
        assert sum(offset.offset for offset in committed.values() if offset is not None) == 300


# --- brokers that go and come


def test_leaders_die_and_nothing_acknowledged_is_lost() -> None:
    with (
        KafkaCluster(3, num_partitions=3, default_replication_factor=3, min_insync_replicas=2) as cluster,
        Gateway(to=cluster.bootstrap_servers) as gateway,
    ):
        servers = gateway.bootstrap_servers
        produce(servers, "t", 30)
        acknowledged: list[int] = []
        stopping = threading.Event()

        def load() -> None:
            number = 100
            with Producer(bootstrap_servers=servers) as producer:
                while not stopping.is_set():
                    try:
                        producer.send("t", b"%d" % number, partition=number % 3)
                        producer.flush()
                    except KafkaError:
                        continue
                    acknowledged.append(number)
                    number += 1

        thread = threading.Thread(target=load)
        thread.start()
        try:
            for node in (1, 2, 3):
                before = len(acknowledged)
                until(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
                cluster.kill(node)
                before = len(acknowledged)
                until(lambda before=before: len(acknowledged) > before + 20)  # type: ignore[misc]
                cluster.restart(node)
                until(lambda: all(len(cluster.partition("t", number).in_sync) == 3 for number in range(3)))
        finally:
            stopping.set()
            thread.join()
        found = consume(servers, "t", 30 + len(acknowledged))
        assert found == [*range(30), *acknowledged]
        assert gateway.held_bytes == 0


def has_upstream(gateway: Gateway) -> bool:
    """Return True if any client of the gateway is connected to a broker.

    The gateway notices a moment later that a connection has ended.
    """
    server = gateway._server
    assert server is not None
    return any(client.relay is not None and client.relay.upstream is not None for client in server.clients)


def ask(sock: socket.socket, data: bytes) -> bytes:
    sock.sendall(data)
    size = int.from_bytes(received(sock, 4), "big")
    return size.to_bytes(4, "big") + received(sock, size)


def received(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the connection has ended"
        data += piece
    return bytes(data)


def test_a_broker_that_is_away_is_not_a_hang_up() -> None:
    part = PartitionProduceData(index=0, records=b"")
    asked = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[part])])
    with KafkaBroker() as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        broker.create_topic("t")
        with socket.create_connection(("127.0.0.1", gateway.node_ports[0].port), PATIENCE_S) as sock:
            answers_of(ask(sock, request(ApiVersionsRequest(), 0)), 18, 0)
            broker.close()
            until(lambda: not has_upstream(gateway))
            for _ in range(3):
                answer = answers_of(ask(sock, request(asked, 7)), 0, 7)[0][1]
                assert answer.responses[0].partition_responses[0].error_code == 6
            topics = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
            answer = answers_of(ask(sock, request(topics, 5)), 3, 5)[0][1]
            assert [(each.node_id, each.port) for each in answer.brokers] == [(1, gateway.node_ports[0].port)]
            assert answer.topics[0].error_code == 5
            assert gateway.node_ports[0].is_away
            broker.start()
            until(lambda: not gateway.node_ports[0].is_away)
            answer = answers_of(ask(sock, request(topics, 5)), 3, 5)[0][1]
            assert answer.topics[0].error_code == 0


def test_a_cluster_that_comes_later_is_found() -> None:
    [port] = free_ports(1)
    with Gateway(to=f"127.0.0.1:{port}") as gateway:
        assert gateway.node_ports == []
        with KafkaBroker(port=port, num_partitions=3):
            until(lambda: len(gateway.node_ports) == 1)
            produce(gateway.bootstrap_servers, "t", 1)


def test_a_broker_that_moves_keeps_its_port_at_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.gateway.brokers.FOLLOW_EVERY_S", 0.2)
    here, there = free_ports(2)
    with (
        KafkaBroker(port=here, num_partitions=3) as broker,
        Gateway(to=[f"127.0.0.1:{here}", f"127.0.0.1:{there}"]) as gateway,
    ):
        [before] = gateway.node_ports
        produce(gateway.bootstrap_servers, "t", 3)
        broker.close()
        with KafkaBroker(port=there, num_partitions=3):
            until(lambda: gateway.node_ports[0].broker.endswith(str(there)))
            assert gateway.node_ports[0].port == before.port
            produce(gateway.bootstrap_servers, "t", 3)


def test_ports_come_from_the_range_by_id() -> None:
    ports = free_ports(5)
    with (
        KafkaCluster(3, num_partitions=3) as cluster,
        Gateway(
            to=cluster.bootstrap_servers, port=ports[0], ports=ports[1:], advertised_host="localhost"
        ) as gateway,
    ):
        expected = {number: ports[1:][number % 4] for number in (1, 2, 3)}
        assert {each.node_id: each.port for each in gateway.node_ports} == expected
        assert gateway.bootstrap_servers == f"localhost:{ports[0]}"
        with Admin(bootstrap_servers=gateway.bootstrap_servers) as admin:
            assert {node.host for node in admin.describe_cluster().nodes} == {"localhost"}
        gateway.close()
        gateway.start()
        assert {each.node_id: each.port for each in gateway.node_ports} == expected
        produce(gateway.bootstrap_servers, "t", 3)


# --- security


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_the_gateway_logs_in_for_clients_without_security(protocol: str) -> None:
    with KafkaBroker(security=protocol, num_partitions=3) as broker:
        assert broker.security is not None
        settings = {**broker.security.client_settings()}
        with Gateway(to=broker.bootstrap_servers, config=settings) as gateway:
            produce(gateway.bootstrap_servers, "t", 300)
            assert consume(gateway.bootstrap_servers, "t", 300, group_id="g") == list(range(300))


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT"])
def test_logins_of_clients_pass_where_the_gateway_has_none(protocol: str) -> None:
    with KafkaBroker(security=protocol, num_partitions=3) as broker:
        assert broker.security is not None
        settings = dict(broker.security.client_settings())
        with Gateway(to=broker.bootstrap_servers) as gateway:
            with Producer(bootstrap_servers=gateway.bootstrap_servers, config=settings) as producer:
                producer.send("t", b"1")
                producer.flush()
            assert [row.api for row in gateway.clients() if row.api == "SaslAuthenticate"]


def test_sessions_are_renewed_between_requests() -> None:
    security = Security("SASL_PLAINTEXT")
    with (
        KafkaBroker(
            security=security, num_partitions=3, config={"connections.max.reauth.ms": "1500"}
        ) as broker,
        Gateway(to=broker.bootstrap_servers, config=dict(security.client_settings())) as gateway,
    ):
        sent = 0
        with Producer(bootstrap_servers=gateway.bootstrap_servers) as producer:
            for number in paced(4):
                producer.send("t", b"%d" % number, partition=0)
                producer.flush()
                sent = number + 1
        assert consume(gateway.bootstrap_servers, "t", sent) == list(range(sent))
        connected = [row.requests for row in gateway.clients() if row.api == "ApiVersions"]
        assert sum(connected) < 10, "connections have ended with their sessions"


# --- limits


def test_a_reader_that_does_not_read_holds_little_and_only_itself(tmp_path: Path) -> None:
    with (
        KafkaBroker(tmp_path / "data", num_partitions=3) as broker,
        Gateway(to=broker.bootstrap_servers) as gateway,
    ):
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(40):
                producer.send("t", bytes(900_000), partition=0)
            producer.flush()
        part = FetchPartition(partition=0, partition_max_bytes=50 << 20)
        asked = request(
            FetchRequest(max_bytes=50 << 20, topics=[FetchTopic(topic="t", partitions=[part])]), 11
        )
        with ExitStack() as stack:
            readers = []
            for _ in range(30):
                sock = stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S))
                if readers:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.sendall(asked * 3)
                readers.append(sock)
            until(lambda: gateway.held_bytes > 0)
            produce(gateway.bootstrap_servers, "u", 300)
            assert consume(gateway.bootstrap_servers, "u", 300) == list(range(300))
            assert gateway.held_bytes <= 30 * (256 << 10)
            size = int.from_bytes(received(readers[0], 4), "big")
            assert size > 36_000_000
            received(readers[0], size)
        until(lambda: gateway.held_bytes == 0)


def test_connections_beyond_the_limit_wait() -> None:
    with (
        KafkaBroker() as broker,
        Gateway(to=broker.bootstrap_servers, limits=Limits(connections_max=2)) as gateway,
    ):
        first, second, third = (
            socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) for _ in range(3)
        )
        for sock in (first, second):
            ask(sock, request(ApiVersionsRequest(), 0))
        third.sendall(request(ApiVersionsRequest(), 0))
        third.settimeout(0.2)
        with pytest.raises(TimeoutError):
            third.recv(1)
        first.close()
        third.settimeout(PATIENCE_S)
        assert received(third, 4)
        second.close()
        third.close()


def test_connections_that_do_nothing_end() -> None:
    with (
        KafkaBroker() as broker,
        Gateway(to=broker.bootstrap_servers, limits=Limits(idle_ms=300)) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock,
    ):
        sock.sendall(b"\0\0\0")
        assert sock.recv(1) == b""


def test_hostile_bytes_end_their_connection_only() -> None:
    import random

    dice = random.Random(3)
    with KafkaBroker(num_partitions=3) as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock:
                data = dice.choice(
                    [dice.randbytes(100), request(ApiVersionsRequest(), 3), b"GET / HTTP/1.0\r\n\r\n"]
                )
                sock.sendall(data[: dice.randrange(1, len(data))])
        produce(gateway.bootstrap_servers, "t", 30)
        assert consume(gateway.bootstrap_servers, "t", 30) == list(range(30))
        until(lambda: gateway.held_bytes == 0)


def test_what_does_not_fit_is_refused_at_once() -> None:
    for arguments in (
        {"to": ""},
        {"to": "nonsense:port"},
        {"to": "a:1", "port": 70000},
        {"to": "a:1", "ports": [0]},
        {"to": "a:1", "host": 5},
        {"to": "a:1", "advertised_host": ""},
        {"to": "a:1", "config": {"bootstrap.serverz": "x"}},
    ):
        with pytest.raises(ConfigError):
            Gateway(**arguments)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Limits(connections_max=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(NetworkError, match="take another port"),
            Gateway(to="a:1", port=taken.getsockname()[1]),
        ):
            pass


def test_a_wrong_password_of_the_gateway_takes_no_broker_for_away() -> None:
    security = Security("SASL_PLAINTEXT")
    settings = {**security.client_settings(), "penstock.login.patience.ms": 0}
    settings["sasl.password"] = "wrong"
    with (
        KafkaBroker(security=security) as broker,
        Gateway(to=broker.bootstrap_servers, config=settings) as gateway,
    ):
        with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as sock:
            topics = request(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 5)
            answer = answers_of(ask(sock, topics), 3, 5)[0][1]
            assert answer.topics[0].error_code == 5
        assert not any(each.is_away for each in gateway.node_ports)
