"""Messages to bytes and back, beside other codecs for Python, in one run.

Every figure is the best of several rounds, in microseconds. Codecs that are not installed are left
out. kio reads with compiled (Rust) code; the others are Python.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.protocol.classes import message_class
from penstock.protocol.codec import codec_for
from penstock.protocol.definition import definitions_directory, parse_definition
from penstock.protocol.framing import encode_request, encode_response
from penstock.protocol.header import decode_request_header
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
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

METADATA_VERSION = 12
ROUNDS = 7


def best(work: Callable[[], Any]) -> float:
    """Microseconds of one call, the best of a few rounds of about 20 ms."""
    begun = time.perf_counter()
    work()
    once = max(time.perf_counter() - begun, 1e-7)
    calls = max(1, int(0.02 / once))
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        rounds.append((time.perf_counter() - begun) / calls)
    return min(rounds) * 1e6


def metadata(topics: int, partitions: int) -> MetadataResponse:
    def partition(index: int) -> MetadataResponsePartition:
        return MetadataResponsePartition(
            partition_index=index,
            leader_id=1 + index % 2,
            leader_epoch=0,
            replica_nodes=[1, 2],
            isr_nodes=[1, 2],
        )

    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1 + number, host="broker", port=9092) for number in range(2)],
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{number}",
                topic_id=number.to_bytes(16, "big"),
                partitions=[partition(index) for index in range(partitions)],
            )
            for number in range(topics)
        ],
    )


def penstock_pair(data: bytes) -> tuple[Callable[[], Any], Callable[[], Any]]:
    codec = codec_for(MetadataResponse, METADATA_VERSION)
    message = codec.decode(data)[0]
    return lambda: codec.encode(message), lambda: codec.decode(data)


def kafka_python_pair(data: bytes) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from kafka.protocol.metadata import MetadataResponse as Response

    topic_class = Response.MetadataResponseTopic
    partition_class = topic_class.MetadataResponsePartition
    broker_class = Response.MetadataResponseBroker
    read = Response.decode(data, version=METADATA_VERSION)
    names = ("error_code", "partition_index", "leader_id", "leader_epoch")
    lists = ("replica_nodes", "isr_nodes", "offline_replicas")

    def topic(source: Any) -> Any:
        partitions = [
            partition_class(
                **{name: getattr(each, name) for name in names},
                **{name: list(getattr(each, name)) for name in lists},
            )
            for each in source.partitions
        ]
        fields = ("error_code", "name", "topic_id", "is_internal", "authorized_operations")
        return topic_class(partitions=partitions, **{name: getattr(source, name) for name in fields})

    made = Response(
        version=METADATA_VERSION,
        throttle_time_ms=0,
        brokers=[
            broker_class(node_id=each.node_id, host=each.host, port=each.port, rack=None)
            for each in read.brokers
        ],
        cluster_id=None,
        controller_id=read.controller_id,
        topics=[topic(each) for each in read.topics],
    )
    assert made.encode(version=METADATA_VERSION) == data
    return (
        lambda: made.encode(version=METADATA_VERSION),
        lambda: Response.decode(data, version=METADATA_VERSION),
    )


def kio_pair(data: bytes) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from kio.schema.metadata.v12.response import MetadataResponse as Response
    from kio.serial import entity_reader, entity_writer

    read, write = entity_reader(Response), entity_writer(Response)
    made = read(data, 0)[0]

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, made)
        return buffer.getvalue()

    assert encode() == data
    return encode, lambda: read(data, 0)


PEERS = {"penstock": penstock_pair, "kafka-python": kafka_python_pair, "kio (reads in Rust)": kio_pair}


def compare_metadata() -> None:
    for topics, partitions in ((1, 100), (1000, 10)):
        data = codec_for(MetadataResponse, METADATA_VERSION).encode(metadata(topics, partitions))
        print(
            f"\nMetadataResponse v{METADATA_VERSION}, {topics} × {partitions} partitions, {len(data)} bytes"
        )
        ours: tuple[float, float] | None = None
        for name, make in PEERS.items():
            with contextlib.suppress(ImportError):
                encode, decode = make(data)
                figures = best(encode), best(decode)
                ours = ours or figures
                ratios = f"{figures[0] / ours[0]:6.1f}× {figures[1] / ours[1]:6.1f}×"
                print(f"  {name:20} write {figures[0]:9.1f}  read {figures[1]:9.1f}   {ratios}")


def hot_path() -> None:
    print("\nOne record, one partition")
    records = bytes(120)
    for version in (3, 9, 12):
        request = ProduceRequest(
            acks=-1,
            topic_data=[
                TopicProduceData(
                    name="flights", partition_data=[PartitionProduceData(index=3, records=records)]
                )
            ],
        )
        frame = memoryview(b"".join(encode_request(request, version, 1, "client"))[4:])
        codec = codec_for(ProduceRequest, version)
        _, position = decode_request_header(frame)
        partition = PartitionProduceResponse(index=3, base_offset=7)
        response = ProduceResponse(
            responses=[TopicProduceResponse(name="flights", partition_responses=[partition])]
        )
        header = best(lambda frame=frame: decode_request_header(frame))
        body = best(lambda codec=codec, frame=frame, position=position: codec.decode(frame, position))
        answer = best(lambda response=response, version=version: encode_response(response, version, 1))
        times = f"header {header:5.2f}  request {body:5.2f}  framed response {answer:5.2f}"
        print(f"  Produce v{version:<2} {times}")
    for version in (11, 12):
        asked = FetchRequest(topics=[FetchTopic(topic="flights", partitions=[FetchPartition(partition=3)])])
        data = codec_for(FetchRequest, version).encode(asked)
        partitions = [PartitionData(records=records)]
        found = FetchResponse(responses=[FetchableTopicResponse(topic="flights", partitions=partitions)])
        read = codec_for(FetchRequest, version)
        body = best(lambda read=read, data=data: read.decode(data))
        answer = best(lambda found=found, version=version: encode_response(found, version, 1))
        print(f"  Fetch   v{version:<2}               request {body:5.2f}  framed response {answer:5.2f}")


def packed_metadata(encoding: str) -> type:
    """MetadataResponse with one version more, in which every number of a partition is packed."""
    source = json.loads(Path(definitions_directory(), "MetadataResponse.json").read_text())
    source["validVersions"] = "0-14"
    topics = next(field for field in source["fields"] if field["name"] == "Topics")
    partitions = next(field for field in topics["fields"] if field["name"] == "Partitions")
    for field in partitions["fields"]:
        bits = field["type"].removeprefix("[]").removeprefix("int")
        field["encoding"] = {"0-13": f"fixed{bits}", "14+": f"{encoding}{bits}"}
    return message_class(parse_definition(source, "packed MetadataResponse"))


def packed_integers() -> None:
    print("\nMetadataResponse, 1 × 100 partitions: numbers of partitions packed (KIP-625)")
    plain = metadata(1, 100)
    for encoding in ("unsigned", "signed"):
        cls = packed_metadata(encoding)
        data = plain.encode(13)
        message = cls.decode(data, 13)  # type: ignore[attr-defined]
        figures = []
        for version in (13, 14):
            codec = codec_for(cls, version)
            written = codec.encode(message)
            figures.append(
                (
                    len(written),
                    best(lambda codec=codec, message=message: codec.encode(message)),
                    best(lambda codec=codec, written=written: codec.decode(written)),
                )
            )
        for title, (size, write, read) in zip(("fixed", encoding), figures, strict=True):
            print(f"  {title:10} {size:6} bytes  write {write:7.1f}  read {read:7.1f}")


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}; microseconds, best of {ROUNDS} rounds")
    compare_metadata()
    hot_path()
    packed_integers()
