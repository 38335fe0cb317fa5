"""Measure the least work that a client can do with a topic, compared with reading and writing Arrow.

One contestant fetches or produces Arrow tables. The other, the floor, sends prepared requests over one
connection, and receives the responses into reused memory without parsing them. Better code can save at
most the difference; the floor is the system's cost of copying the bytes.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterable
from functools import partial

import pyarrow as pa

from broker_process import running_broker
from client_arrow import (
    PARTITIONS,
    confluent_consumer,
    consume_confluent,
    consume_scan,
    produce_arrow,
    produce_confluent,
    table_of,
)
from harness import Contestant, arguments, measure, report
from penstock import Admin
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.arrow import from_arrow
from penstock.records.encode import encode_columns
from penstock.records.format.batch_header import read_header, split_batches

FETCH_BYTES = 4 << 20
IN_FLIGHT = 5
FETCH_VERSION, PRODUCE_VERSION = 12, 9
T = 1_700_000_000_000


class Line:
    """A connection that receives every response into the same block of memory."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._block = bytearray(2 * FETCH_BYTES)
        self._view = memoryview(self._block)

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def receive(self) -> memoryview:
        """Receive one frame; the next call overwrites its memory."""
        filled, size = 0, 4
        while filled < size:
            count = self._socket.recv_into(self._view[filled:size] if filled >= 4 else self._view[filled:4])
            if not count:
                raise ConnectionError("the broker has closed the connection")
            filled += count
            if filled == 4:
                size = 4 + int.from_bytes(self._view[:4], "big")
        return self._view[4:size]


def frame(request: Message, version: int) -> bytes:
    return b"".join(map(bytes, encode_request(request, version, 1, "bench")))


def fetches(line: Line, topic: str, rows: int) -> list[bytes]:
    """Return the Fetch requests that read a whole topic, found by sending them once."""
    made = []
    seen = 0
    for number in range(PARTITIONS):
        offset = 0
        while True:
            asked = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
            request = frame(
                FetchRequest(
                    min_bytes=1,
                    max_wait_ms=0,
                    max_bytes=FETCH_BYTES,
                    topics=[FetchTopic(topic=topic, partitions=[asked])],
                ),
                FETCH_VERSION,
            )
            line.send(request)
            _, answer = decode_response(bytes(line.receive()), FetchResponse, FETCH_VERSION)
            records = answer.responses[0].partitions[0].records or b""
            batches = [read_header(records, start) for start, _, _ in split_batches(records)]
            if not batches:
                break
            made.append(request)
            seen += sum(each.record_count for each in batches)
            offset = batches[-1].base_offset + batches[-1].last_offset_delta + 1
    assert seen == rows, (seen, rows)
    return made


def produces(table: pa.Table, topic: str) -> list[bytes]:
    """Return Produce requests with a batch of 1 MB each, for the partitions in turn."""
    columns = from_arrow(table.combine_chunks().to_batches()[0], timestamp_ms=T)
    numbers = itertools.cycle(range(PARTITIONS))
    return [
        frame(
            ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=topic, partition_data=[PartitionProduceData(index=next(numbers), records=batch)]
                    )
                ],
            ),
            PRODUCE_VERSION,
        )
        for batch in encode_columns(columns, batch_bytes_max=1_000_000)
    ]


def exchange(line: Line, requests: Iterable[bytes], in_flight: int) -> None:
    """Send requests and receive their responses, with up to `in_flight` requests pending."""
    open_requests = 0
    for request in requests:
        if open_requests == in_flight:
            line.receive()
            open_requests -= 1
        line.send(request)
        open_requests += 1
    for _ in range(open_requests):
        line.receive()


def main() -> None:
    options = arguments("client: what Arrow costs, and the socket alone", rounds=5)
    with running_broker() as bootstrap, Admin(bootstrap) as admin:
        reader, line = confluent_consumer(bootstrap), Line(bootstrap)
        for value_bytes in (100, 1_000):
            rows = 400_000_000 // (value_bytes + 30) // (4 if options.quick else 1)
            filled, target = f"filled-{value_bytes}", f"target-{value_bytes}"
            for name in (filled, target):
                admin.create_topic(name, PARTITIONS)

            def emptied(name: str) -> None:
                admin.delete_topics([name])
                admin.create_topic(name, PARTITIONS)

            table = table_of(rows, value_bytes)
            produce_arrow(bootstrap, filled, table, "none")
            asked = fetches(line, filled, rows)
            contestants = [
                Contestant(
                    "confluent-kafka consume(10000) → record_batch",
                    partial(consume_confluent, reader, filled, rows),
                ),
                Contestant("penstock scan_topic", partial(consume_scan, bootstrap, filled, rows)),
                Contestant("the socket alone", partial(exchange, line, asked, 1)),
            ]
            values = table["value"].to_pylist()
            sent = produces(table, target)
            producers = [
                Contestant(
                    "confluent-kafka produce()",
                    partial(produce_confluent, bootstrap, target, values, "none"),
                    prepare=partial(emptied, target),
                ),
                Contestant(
                    "penstock write_topic",
                    partial(produce_arrow, bootstrap, target, table, "none"),
                    prepare=partial(emptied, target),
                ),
                Contestant(
                    "the socket alone",
                    partial(exchange, line, sent, IN_FLIGHT),
                    prepare=partial(emptied, target),
                ),
            ]
            for title, each in (("consume", contestants), ("produce", producers)):
                for one in each:
                    one.units, one.bytes = rows, rows * value_bytes
                measure(each, options.rounds)
                report(f"{title}, {value_bytes} B", each)
            admin.delete_topics([filled, target])


if __name__ == "__main__":
    main()
