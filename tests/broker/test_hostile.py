"""Tests of clients that break the protocol's rules, beside a client that keeps them and must not notice."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient, is_well
from penstock import Broker
from penstock.clock import MovableClock
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def size_of(number: int) -> bytes:
    return struct.pack(">i", number)


@pytest.mark.parametrize(
    "data",
    [
        size_of(-1),
        size_of(0),
        size_of(100 * 1024 * 1024 + 1),
        size_of(2**31 - 1),
        size_of(1) + b"x",
        size_of(7) + b"\0\0\0\0\0\0\0",
        size_of(10) + b"\0\x03\0\x0c\0\0\0\1\x7f\xff",
        size_of(10) + b"\x7f\xff\0\0\0\0\0\1\xff\xff",
        size_of(10) + b"\0\x0b\0\0\0\0\0\1\xff\xff",
        size_of(10) + b"\0\0\0\x63\0\0\0\1\xff\xff",
        size_of(14) + b"\0\x03\0\0\0\0\0\1\xff\xff\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    ],
    ids=[
        "negative size",
        "no size",
        "above the limit",
        "largest size",
        "one byte",
        "header cut",
        "client id beyond the frame",
        "unknown api",
        "api not offered",
        "version not offered",
        "array beyond the frame",
        "http",
        "tls",
    ],
)
def test_nonsense_ends_the_connection_and_nothing_else(broker: Broker, data: bytes) -> None:
    with WireClient(broker.port) as client:
        client.socket.sendall(data)
        assert client.is_closed_by_peer()
    assert is_well(broker.port)


def test_requests_before_the_nonsense_are_answered(broker: Broker) -> None:
    with WireClient(broker.port) as client:
        client.socket.sendall(client.bytes_of(VERSIONS, 3) * 3 + size_of(-5))
        for _ in range(3):
            assert client.receive()[1].error_code == 0
        assert client.is_closed_by_peer()


def test_random_bytes_in_frames_of_every_api(broker: Broker) -> None:
    """Random bytes follow a valid request header.

    The broker answers or closes the connection, and serves other clients.
    """
    rng = random.Random(11)
    for _ in range(300):
        key, version = rng.choice([0, 1, 2, 3, 10, 18, 19, 20, 22, 32, 60]), rng.randrange(14)
        body = struct.pack(">hhih", key, version, 1, -1) + rng.randbytes(rng.randrange(60))
        with WireClient(broker.port, timeout_s=5) as client:
            client.socket.sendall(size_of(len(body)) + body)
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.recv(4)
    assert is_well(broker.port)


def test_damaged_copies_of_a_good_request(broker: Broker) -> None:
    rng = random.Random(12)
    with WireClient(broker.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        good = client.bytes_of(produce_request(batch_of(b"a", b"b")), 9)
    for _ in range(300):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        with WireClient(broker.port, timeout_s=5) as client:
            client.socket.sendall(data)
            client.socket.shutdown(socket.SHUT_WR)
            client.socket.recv(4)
    assert is_well(broker.port)


def test_a_size_alone_claims_no_memory(broker: Broker) -> None:
    """Many clients announce a frame of maximum size and send almost nothing of it.

    The broker allocates memory only as data arrive.
    """
    peers = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(50)]
    try:
        for peer in peers:
            peer.sendall(size_of(100 * 1024 * 1024) + b"\0" * 1000)
        assert is_well(broker.port)
        assert lent_bytes(broker) <= 50 * 64 * 1024
    finally:
        for peer in peers:
            peer.close()
    wait_until(lambda: lent_bytes(broker) == 0)


def lent_bytes(broker: Broker) -> int:
    assert broker.server is not None
    return broker.server.buffers.lent_bytes


def wait_until(condition: object, timeout_s: float = 5) -> None:
    deadline = time.monotonic() + timeout_s
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_senders_that_stall_lose_to_those_that_do_not() -> None:
    """When memory for incoming requests runs out, the client that was silent for longest is disconnected."""
    with Broker(config={"queued.max.request.bytes": "3000000"}) as broker:
        stalled = [WireClient(broker.port) for _ in range(3)]
        for client in stalled:
            client.socket.sendall(size_of(2_000_000) + bytes(900_000))
        time.sleep(0.1)
        with WireClient(broker.port) as good:
            good.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
            for _ in range(3):
                answer = good.ask(produce_request(batch_of(b"x" * 900_000)), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0
        assert lent_bytes(broker) <= 3_000_000
        closed = 0
        for client in stalled:
            client.socket.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                closed += client.is_closed_by_peer()
            client.socket.close()
        assert closed >= 1


def test_readers_that_do_not_read_hold_up_nobody_and_cost_little(broker: Broker) -> None:
    value = b"v" * 900_000
    with WireClient(broker.port) as good:
        good.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        for _ in range(8):
            good.ask(produce_request(batch_of(value)), 9)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 26)
        fetch = FetchRequest(min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])])
        lazy = [WireClient(broker.port) for _ in range(10)]
        for client in lazy:
            client.socket.sendall(b"".join(client.bytes_of(fetch, 12) for _ in range(20)))
        time.sleep(0.2)
        assert (
            good.ask(produce_request(batch_of(b"a")), 9).responses[0].partition_responses[0].error_code == 0
        )
        assert broker.server is not None
        for connection in broker.server.connections:
            assert connection.unsent_bytes <= 512 * 1024
        for client in lazy:
            client.socket.close()
    wait_until(lambda: broker.server is not None and len(broker.server.connections) == 0)


def test_answers_nobody_reads_stop_the_reading_of_requests(broker: Broker) -> None:
    """A client sends small requests and never reads: the broker stops reading its requests at some point."""
    with WireClient(broker.port) as client:
        stream = client.bytes_of(VERSIONS, 3) * 1000
        client.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            send_for_ever(client, stream)
        assert is_well(broker.port)


def send_for_ever(client: WireClient, data: bytes) -> None:
    while True:
        client.socket.sendall(data)


def test_a_flood_of_costly_requests_leaves_turns_for_others(broker: Broker) -> None:
    """A client sends thousands of tiny requests at once, each with a long answer.

    Another client is still answered soon.
    """
    assert broker.server is not None
    with WireClient(broker.port) as client:
        names = [MetadataRequestTopic(name=f"t{n}") for n in range(500)]
        client.ask(MetadataRequest(topics=names), 4)
        client.socket.sendall(client.bytes_of(MetadataRequest(topics=None), 4) * 2000)
        began_s = time.process_time()
        assert is_well(broker.port)
        assert time.process_time() - began_s < 2
        assert all(connection.unsent_bytes < 1 << 20 for connection in broker.server.connections)
    assert is_well(broker.port)


def test_requests_without_records_have_a_smaller_limit(broker: Broker) -> None:
    with WireClient(broker.port) as client:
        names = [MetadataRequestTopic(name="x" * 249)] * 20_000
        client.socket.sendall(client.bytes_of(MetadataRequest(topics=names), 4))
        assert client.is_closed_by_peer()
    assert is_well(broker.port)


def test_large_requests_that_wait_have_a_limit_in_common() -> None:
    """A waiting Fetch that lists a partition ten thousand times holds ten thousand objects.

    Beyond a common limit for all clients, the broker closes the connections of such requests.
    """
    with Broker(config={"queued.max.request.bytes": str(16 * 400_000)}) as broker:
        partition = FetchPartition(partition=0, partition_max_bytes=1)
        large = FetchRequest(
            min_bytes=1, max_wait_ms=60_000, topics=[FetchTopic(topic="t", partitions=[partition] * 10_000)]
        )
        small = FetchRequest(
            min_bytes=1, max_wait_ms=60_000, topics=[FetchTopic(topic="t", partitions=[partition])]
        )
        with contextlib.ExitStack() as stack:
            good, *others = [stack.enter_context(WireClient(broker.port)) for _ in range(6)]
            good.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
            for client in others:
                client.send(large, 4)
                assert is_well(broker.port)
            good.send(small, 4)
            assert [client.is_closed_by_peer() for client in others[2:]] == [True] * 3
            with WireClient(broker.port) as writer:
                writer.ask(produce_request(batch_of(b"a")), 9)
            assert good.receive()[1].responses[0].partitions[0].error_code == 0
            for client in others[:2]:
                assert client.receive()[1].responses[0].partitions[0].error_code == 0
                client.send(large, 4)
            assert is_well(broker.port)


def test_too_many_connections_wait_for_others_to_end() -> None:
    """As Apache Kafka does, the broker accepts them one by one as other connections end."""
    with Broker(max_connections=3) as broker, contextlib.ExitStack() as stack:
        kept = [stack.enter_context(WireClient(broker.port)) for _ in range(3)]
        for client in kept:
            assert client.ask(VERSIONS, 3).error_code == 0
        crowd = [stack.enter_context(WireClient(broker.port)) for _ in range(20)]
        for client in crowd:
            client.send(VERSIONS, 3)
        server = broker.server
        assert server is not None
        wait_until(lambda: server.waiting_connections)
        assert kept[0].ask(VERSIONS, 3).error_code == 0
        kept.pop().socket.close()
        for client in crowd:
            assert client.receive()[1].error_code == 0
            assert len(server.connections) <= 3
            client.socket.close()
        assert is_well(broker.port)


def test_too_many_connections_from_one_address_are_refused() -> None:
    config = {"max.connections.per.ip": "1"}
    with Broker(config=config) as broker, WireClient(broker.port) as first:
        assert first.ask(VERSIONS, 3).error_code == 0
        with WireClient(broker.port) as second:
            assert second.is_closed_by_peer()


def test_idle_connections_are_closed_but_not_those_that_wait() -> None:
    clock = MovableClock()
    with Broker(clock=clock) as broker, WireClient(broker.port) as waiting, WireClient(broker.port) as idle:
        assert idle.ask(VERSIONS, 3).error_code == 0  # the broker has it, by the clock as it is
        waiting.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        partition = FetchPartition(partition=0, partition_max_bytes=1)
        topic = FetchTopic(topic="t", partitions=[partition])
        waiting.send(FetchRequest(min_bytes=1, max_wait_ms=7_200_000, topics=[topic]), 12)
        assert broker.server is not None
        parked = broker.server.node.purgatory
        wait_until(lambda: len(parked) == 1)
        clock.advance(3_600_000)
        assert idle.is_closed_by_peer()
        with WireClient(broker.port) as good:
            good.ask(produce_request(batch_of(b"a")), 9)
        assert waiting.receive()[1].error_code == 0
