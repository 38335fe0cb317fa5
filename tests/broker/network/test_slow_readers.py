"""Tests of clients that do not read their responses, and of other connections when these are closed."""

from __future__ import annotations

import contextlib
import logging
import socket
from pathlib import Path

import pytest

from broker.wire_client import WireClient
from penstock import Broker, Producer
from penstock.broker.network.large_answer import SENDFILE_BYTES_MAX
from penstock.clock import MovableClock
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")
RECORD_BYTES = 900_000
RECORDS = 8
"""The number of records, which together are larger than the buffers of both sockets."""


def read(sock: socket.socket, size: int) -> bytearray:
    """Read this number of bytes from a socket; fail if the peer closes the connection."""
    found = bytearray()
    while len(found) < size:
        more = sock.recv(min(size - len(found), 1 << 16))
        assert more, "hung up on"
        found += more
    return found


def small_socket() -> socket.socket:
    """Return a socket with a receive buffer of 4 KiB, so that a sender blocks soon."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return made


def fill(broker: Broker, records: int = RECORDS) -> None:
    """Write this number of records to the topic."""
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(records):
            producer.send("t", bytes(RECORD_BYTES))


def everything(records: int = RECORDS) -> FetchRequest:
    """Return a Fetch request that asks for all records of the topic in one response."""
    size = records * RECORD_BYTES
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    topic = FetchTopic(topic="t", partitions=[partition])
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=size, topics=[topic])


def test_the_number_of_a_slow_readers_socket_serves_the_next_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The operating system gives the descriptor number of a closed slow connection to a new one.

    The event loop had watched the old socket by this number while it sent a file to it.
    """
    clock = MovableClock()
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(data_dir=tmp_path, clock=clock))
        fill(broker)
        slow = stack.enter_context(WireClient(broker.port, over=small_socket()))
        idle = stack.enter_context(WireClient(broker.port))
        assert idle.ask(VERSIONS, 3).error_code == 0  # the broker has it, by the clock as it is
        # Made before, so that connections which the broker accepts get the numbers that it has closed.
        unconnected = [stack.enter_context(socket.socket()) for _ in range(4)]
        slow.send(everything(), 4)
        assert slow.socket.recv(1, socket.MSG_PEEK), "nothing of the answer has come"
        clock.advance(3_600_000)
        assert idle.is_closed_by_peer()
        for each in unconnected:
            other = stack.enter_context(WireClient(broker.port, over=each))
            assert other.ask(VERSIONS, 3).error_code == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_slow_reader_that_goes_away_in_the_middle_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker does not log an error when a connection ends in the middle of a response."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(data_dir=tmp_path))
        fill(broker)
        for _ in range(3):
            with WireClient(broker.port, over=small_socket()) as slow:
                slow.send(everything(), 4)
                assert slow.socket.recv(1, socket.MSG_PEEK), "nothing of the answer has come"
            other = stack.enter_context(WireClient(broker.port))
            assert other.ask(VERSIONS, 3).error_code == 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_reader_that_is_slow_is_not_idle(tmp_path: Path) -> None:
    """A response may take longer than `connections.max.idle.ms`, as long as the client reads."""
    clock, records = MovableClock(), 16
    settings = {"connections.max.idle.ms": "600000", "socket.send.buffer.bytes": "65536"}
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(data_dir=tmp_path, clock=clock, config=settings))
        fill(broker, records)
        slow = stack.enter_context(WireClient(broker.port, over=small_socket()))
        idle = stack.enter_context(WireClient(broker.port))
        assert idle.ask(VERSIONS, 3).error_code == 0  # the broker has it, by the clock as it is
        slow.send(everything(records), 4)
        left = int.from_bytes(read(slow.socket, 4), "big")
        for _ in range(2):
            # More than a step of sendfile and the buffers of both sockets: a step ends in this time.
            left -= len(read(slow.socket, SENDFILE_BYTES_MAX + (1 << 20)))
            clock.advance(400_000)
        assert idle.is_closed_by_peer()
        read(slow.socket, left)
