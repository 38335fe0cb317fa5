"""Tests of the size limit on a Produce request: names and numbers count, the records do not."""

from __future__ import annotations

from broker.bench_node import batch_of
from broker.wire_client import WireClient, is_well
from for_each import for_each
from penstock import Broker
from penstock.broker.requests.request_limits import is_mostly_records
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import write_uvarint
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

VERSIONS = range(14)


def body(version: int, topics: int, partitions: int, record_bytes: int) -> memoryview:
    data = [PartitionProduceData(index=n, records=b"r" * record_bytes) for n in range(partitions)]
    named = [TopicProduceData(name=f"topic {n}", partition_data=data) for n in range(topics)]
    return memoryview(codec_for(ProduceRequest, version).encode(ProduceRequest(topic_data=named)))


@for_each(VERSIONS)
def test_what_is_beside_the_records_is_counted_to_the_byte(version: int) -> None:
    frame = body(version, 3, 5, 1000)
    beside = len(frame) - 15 * 1000
    assert is_mostly_records(frame, 0, version, beside)
    assert not is_mostly_records(frame, 0, version, beside - 1)


@for_each(
    [(version, topics, partitions) for topics, partitions in [(2000, 0), (1, 2000)] for version in VERSIONS]
)
def test_empty_topics_and_partitions_are_too_much(version: int, topics: int, partitions: int) -> None:
    assert not is_mostly_records(body(version, topics, partitions, 0), 0, version, 1000)


@for_each(VERSIONS)
def test_what_is_cut_is_left_to_the_decoder(version: int) -> None:
    frame = body(version, 2, 2, 50)
    for end in range(len(frame)):
        is_mostly_records(frame[:end], 0, version, 10_000)


def test_a_broker_hangs_up_on_it_and_takes_as_large_a_batch() -> None:
    config = {"message.max.bytes": "20000000"}
    with Broker(config=config) as broker, WireClient(broker.port) as bad, WireClient(broker.port) as good:
        count = 1_500_000
        # An empty request ends with its number of topics and its tags; so does an empty topic of no name.
        frame = bad.bytes_of(ProduceRequest(), 9)[4:-2] + write_uvarint(count + 1) + b"\1\1\0" * count + b"\0"
        bad.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        assert bad.is_closed_by_peer()
        data = PartitionProduceData(index=0, records=memoryview(batch_of(b"v" * 10_000_000)))
        answer = good.ask(
            ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])]), 9
        )
        assert answer.responses[0].partition_responses[0].error_code == 3
        assert is_well(broker.port)
