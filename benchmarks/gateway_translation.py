"""Measure the translation of old clients' requests without sockets, in records per second and core.

For Produce, message sets are converted to batches; for Fetch, batches to messages. The cluster's responses
are prepared in advance. Each figure is compared with the conversion record by record in Python, which is used
where no compiled library is available.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import Contestant, arguments, measure, report
from penstock.gateway.translation import translate
from penstock.protocol.api import ApiKey
from penstock.protocol.message import Message
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.releases import api_versions
from penstock.records import message_loops
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.legacy import encode_message_set

UPSTREAM = {**api_versions("4.3"), ApiKey.PRODUCE: (3, 13)}
VALUE_BYTES = 100
SET_RECORDS = 5_000
"""Records of one message set: half a megabyte."""

BATCH_RECORDS = 150
"""The number of records in one batch of 16 KiB, the default `batch.size` of producers."""

NOW_MS = 1_700_000_000_000


def values(count: int) -> list[bytes]:
    """Return values of 100 bytes, of which one half is random and the other half compresses well."""
    dice = random.Random(1)
    return [dice.randbytes(VALUE_BYTES // 2) + bytes(VALUE_BYTES // 2) for _ in range(count)]


def translated(request: Message, version: int, answer: Message) -> Any:
    """Translate a request; supply `answer` as the response to the one request sent to the cluster."""
    assert request.API_KEY is not None
    steps = translate(request.API_KEY, version, request, UPSTREAM)
    next(steps)
    try:
        steps.send(answer)
    except StopIteration as done:
        return done.value
    raise AssertionError("a second call")


def produce(version: int, codec: CompressionCodec, turns: int) -> Callable[[], object]:
    rows = [(None, value, NOW_MS) for value in values(SET_RECORDS)]
    records = encode_message_set(rows, min(version, 1), codec=codec)
    data = PartitionProduceData(index=0, records=memoryview(records))
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    found = TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=0)])

    def run() -> None:
        for _ in range(turns):
            response = translated(request, version, ProduceResponse(responses=[found]))
            assert response.responses[0].partition_responses[0].error_code == 0

    return run


def fetch(version: int, codec: CompressionCodec, turns: int) -> Callable[[], object]:
    all_values = values(SET_RECORDS)
    batches = []
    for first in range(0, SET_RECORDS, BATCH_RECORDS):
        rows = [(None, value, (), NOW_MS) for value in all_values[first : first + BATCH_RECORDS]]
        batches.append(encode_batch(rows, base_offset=first, codec=codec))
    asked = FetchPartition(partition=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=[asked])])
    found = PartitionData(
        partition_index=0,
        high_watermark=SET_RECORDS,
        last_stable_offset=SET_RECORDS,
        records=memoryview(b"".join(batches)),
    )
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[found])])

    def run() -> None:
        for _ in range(turns):
            response = translated(request, version, answer)
            assert len(response.responses[0].partitions[0].records) > 10_000

    return run


def record_by_record(run: Callable[[], object]) -> None:
    """Run a function with the compiled loops disabled."""
    kept = message_loops._raise_messages, message_loops._lower_records
    message_loops._raise_messages = message_loops._lower_records = None
    try:
        run()
    finally:
        message_loops._raise_messages, message_loops._lower_records = kept


def main() -> None:
    options = arguments("translation for old clients", rounds=5)
    turns = 4 if options.quick else 40
    for name, make, versions in (("Produce", produce, (0, 2)), ("Fetch", fetch, (0, 2))):
        for version in versions:
            for codec in (CompressionCodec.NONE, CompressionCodec.SNAPPY, CompressionCodec.GZIP):
                records = SET_RECORDS * turns
                run = make(version, codec, turns)
                contestants = [
                    Contestant("compiled loops", run, records, records * VALUE_BYTES),
                    Contestant(
                        "record by record", partial(record_by_record, run), records, records * VALUE_BYTES
                    ),
                ]
                measure(contestants, options.rounds)
                report(f"{name} {version}, {VALUE_BYTES} B, {codec.name.lower()}", contestants)


if __name__ == "__main__":
    main()
