"""Tests of client connections to peers that answer late, in pieces, wrongly, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from client.fake_broker import FakeBroker, fake_broker
from penstock.client.addresses import Address
from penstock.client.cluster.connection import HERALD_BYTES, UNSENT_BYTES_MAX, Connection, connect
from penstock.client.config import ClientConfig
from penstock.common.reused_buffers import ReusedMemory
from penstock.errors import DecodeError, NetworkError, RequestTimeoutError
from penstock.protocol.api import ApiKey
from penstock.protocol.connection.client import ClientConnection, UnexpectedFrameError
from penstock.protocol.framing import SCRATCH_BYTES
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch

CONFIG = ClientConfig.parse({"bootstrap.servers": "x:1", "receive.message.max.bytes": 64 << 20}, {})


def played(scenario: Callable[[FakeBroker, Connection], Awaitable[None]]) -> None:
    """Run a test scenario with a fake broker and a connection to it."""

    async def play() -> None:
        async with fake_broker() as broker:
            connection = await connect(Address("127.0.0.1", broker.port), CONFIG, ReusedMemory())
            try:
                await scenario(broker, connection)
            finally:
                connection.close()
                await asyncio.sleep(0)

    asyncio.run(play())


def fetch(size: int = 1 << 30) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    return FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=[partition])])


def test_answers_come_in_the_order_of_the_requests() -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        first = connection.request(ApiVersionsRequest(), 0, 5)
        rest = [connection.request(MetadataRequest(topics=None), v, 5) for v in range(1, 12)]
        assert not connection.is_idle
        assert {a.api_key for a in (await first).api_keys} == set(broker.versions)
        assert [(await answer).topics[0].name for answer in rest] == ["t"] * 11
        assert connection.is_idle

    played(scenario)


@pytest.mark.parametrize("size", [10, SCRATCH_BYTES - 200, SCRATCH_BYTES, 100_000, 3 << 20])
def test_records_are_views_of_what_was_received(size: int) -> None:
    batch = encode_batch([(None, b"x" * size, (), 0)])

    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        broker.logs["t", 0].append(batch)
        answers = [connection.request(fetch(), 4, 5) for _ in range(3)]
        for future in answers:
            answer: FetchResponse = await future
            records = answer.responses[0].partitions[0].records
            assert isinstance(records, memoryview)
            assert records == batch

    played(scenario)


def test_any_chunking_gives_the_same_answers() -> None:
    batch = encode_batch([(None, b"x" * 40_000, (), 0)])

    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        broker.logs["t", 0].append(batch)
        whole: list[bytes] = []
        original = connection.buffer_updated
        view = connection.get_buffer

        # What arrives is passed on in pieces of seven bytes.
        scratch = bytearray(1 << 20)
        connection.get_buffer = lambda hint: memoryview(scratch)  # type: ignore[method-assign]

        def in_pieces(count: int) -> None:
            data = bytes(scratch[:count])
            while data:
                room = memoryview(view(-1))
                piece = data[: min(7, len(room))]
                room[: len(piece)] = piece
                data = data[len(piece) :]
                original(len(piece))

        connection.buffer_updated = in_pieces  # type: ignore[method-assign]
        futures = [
            connection.request(message, 4, 5) for message in (fetch(), MetadataRequest(topics=None), fetch())
        ]
        for future in futures:
            answer = await future
            if isinstance(answer, FetchResponse):
                whole.append(bytes(answer.responses[0].partitions[0].records or b""))
        assert whole == [batch, batch]

    played(scenario)


def test_a_buffer_serves_again_once_nobody_looks_at_it() -> None:
    buffers = ReusedMemory()
    first = buffers.take(100_000)
    second = buffers.take(100_000)
    assert first.obj is not second.obj
    part = first[10:20]
    kept = first.obj
    first.release()
    assert buffers.take(100_000).obj is not kept
    part.release()
    assert buffers.take(50_000).obj is kept


@pytest.mark.parametrize("is_handed_over", [False, True])
def test_bytes_that_wait_for_the_kernel_are_sent_in_order_and_not_copied(is_handed_over: bool) -> None:
    async def scenario() -> None:
        go_on, ended = asyncio.Event(), asyncio.Event()
        arrived = bytearray()

        async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go_on.wait()
            while part := await reader.read(1 << 20):
                arrived.extend(part)
            writer.transport.abort()
            ended.set()

        server = await asyncio.start_server(slow_reader, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await connect(Address("127.0.0.1", port), CONFIG, ReusedMemory())
        expected = b""
        wire = ClientConnection[None](CONFIG.client_id)
        for number in range(40):
            records = bytes([number]) * (500_000 if number % 2 else 10)
            data = PartitionProduceData(index=0, records=records)
            request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[data])])
            request.transactional_id = None
            connection.send_only(request, 7)
            expected += b"".join(wire.request_without_answer(request, 7))
        transport = connection._transport
        assert transport is not None
        assert connection.is_clogged
        assert connection.unsent_bytes > UNSENT_BYTES_MAX
        assert 0 < transport.get_write_buffer_size() <= HERALD_BYTES
        if is_handed_over:
            connection.hand_over()
        go_on.set()
        async with asyncio.timeout(20):
            while len(arrived) < len(expected):
                await asyncio.sleep(0.01)
        assert arrived == expected
        if not is_handed_over:
            assert not connection.unsent_bytes
            assert not connection.is_clogged
        transport.abort()
        await asyncio.wait_for(ended.wait(), 10)
        server.close()
        await asyncio.sleep(0)
        await server.wait_closed()

    asyncio.run(scenario())


def test_large_requests_arrive_whole() -> None:
    batch = encode_batch([(None, b"x" * (12 << 20), (), 0)])

    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        partition = PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequest(
            acks=-1, timeout_ms=5, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
        )
        request.transactional_id = None
        answers = [connection.request(request, 7, 10) for _ in range(3)]
        assert [(await a).responses[0].partition_responses[0].base_offset for a in answers] == [0, 1, 2]
        assert all(len(stored) == len(batch) for stored in broker.logs["t", 0].batches)

    played(scenario)


def test_a_dead_connection_tells_everyone_why() -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        broker.hang_up(ApiKey.METADATA)
        waiting = [connection.request(MetadataRequest(topics=None), 1, 5) for _ in range(3)]
        for future in waiting:
            with pytest.raises(NetworkError, match=r"ended the connection.* while 3 answers were due"):
                await future
        with pytest.raises(NetworkError, match="ended the connection"):
            connection.request(MetadataRequest(), 1, 5)
        with pytest.raises(NetworkError, match="ended the connection"):
            connection.send_only(MetadataRequest(), 1)
        assert "dead" in repr(connection)

    played(scenario)


def test_an_overdue_answer_ends_the_connection() -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        await connection.request(MetadataRequest(topics=None), 1, 60)
        broker.stay_silent(ApiKey.METADATA)
        slow = connection.request(MetadataRequest(topics=None), 1, 0.05)
        behind = connection.request(ApiVersionsRequest(), 0, 60)
        for future in (slow, behind):
            with pytest.raises((RequestTimeoutError, DecodeError)):
                await future

    played(scenario)


def test_a_forgotten_request_does_not_disturb_the_next() -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        forgotten = connection.request(MetadataRequest(topics=None), 1, 5)
        wanted = connection.request(ApiVersionsRequest(), 0, 5)
        forgotten.cancel()
        assert (await wanted).error_code == 0

    played(scenario)


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "speaks HTTP: bootstrap.servers takes the port of a Kafka broker",
        ),
        (b"\xff\xff\xff\xff", "frame of -1 bytes"),
        (b"\0\0\0\3abc", "frame of 3 bytes"),
        (b"\0\0\0\x08" + b"\0\0\x99\x99" + b"\0" * 4, "request 39321 was answered where"),
        (b"\0\0\0\x08" + b"\0\0\0\1" + b"\xff\xff\xff\xff", "MetadataResponse"),
    ],
)
def test_garbage_ends_the_connection_with_a_clear_word(garbage: bytes, words: str) -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        broker.send_garbage(ApiKey.METADATA, garbage)
        with pytest.raises(DecodeError, match=words):
            await connection.request(MetadataRequest(topics=None), 1, 5)
        assert connection.cause is not None

    played(scenario)


@pytest.mark.parametrize("frame", [b"\0\0\0\x08" + b"\0\0\0\1" + b"\0" * 4, b"\x03\0\0\0" + b"\0" * 50])
def test_a_frame_nobody_asked_for_ends_the_connection(frame: bytes) -> None:
    async def scenario(broker: FakeBroker, connection: Connection) -> None:
        broker.send_garbage(ApiKey.METADATA, frame)
        connection.send_only(MetadataRequest(topics=None), 1)
        for _ in range(100):
            await asyncio.sleep(0.01)
            if connection.cause is not None:
                break
        assert isinstance(connection.cause, UnexpectedFrameError)
        assert "while no request was in flight" in str(connection.cause)

    played(scenario)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (Address("127.0.0.1", 1), "connection refused"),
        (Address("no.such.host.invalid", 9092), "host name not known"),
    ],
)
def test_who_cannot_be_reached_is_named(address: Address, words: str) -> None:
    async def scenario() -> None:
        with pytest.raises(NetworkError, match=words) as caught:
            await connect(address, CONFIG, ReusedMemory())
        assert str(address) in str(caught.value)

    asyncio.run(scenario())


def test_names_and_socket_options_work() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            config = ClientConfig.parse(
                {"bootstrap.servers": "x:1", "send.buffer.bytes": 65536, "receive.buffer.bytes": 65536}, {}
            )
            connection = await connect(Address("localhost", broker.port), config, ReusedMemory())
            assert (await connection.request(ApiVersionsRequest(), 0, 5)).error_code == 0
            connection.close()
            await asyncio.sleep(0)

    asyncio.run(scenario())


def test_a_clogged_connection_says_when_it_flows_again() -> None:
    async def scenario() -> None:
        paused = asyncio.Event()
        go_on = asyncio.Event()
        ended = asyncio.Event()

        async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go_on.wait()
            with contextlib.suppress(ConnectionError):
                while await reader.read(1 << 20):
                    pass
            writer.transport.abort()
            ended.set()

        server = await asyncio.start_server(slow_reader, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await connect(Address("127.0.0.1", port), CONFIG, ReusedMemory())
        partition = PartitionProduceData(index=0, records=bytes(32 << 20))
        request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
        request.transactional_id = None
        connection.send_only(request, 7)
        assert connection.is_clogged
        connection.when_writable(paused.set)
        go_on.set()
        await asyncio.wait_for(paused.wait(), 10)
        assert not connection.is_clogged
        connection.close()
        server.close()
        await asyncio.wait_for(ended.wait(), 10)
        await asyncio.sleep(0)
        await server.wait_closed()

    asyncio.run(scenario())
