"""Encode and decode Kafka messages, compared with other codecs for Python in one run.

Every figure is the best of several rounds, in microseconds of CPU; the codecs run in turn. Codecs that are
not installed, or lack the message version, are left out. kio decodes with compiled (Rust) code; its encoder
and all other codecs are Python.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from harness import print_table
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import decode_request_header, encode_request, encode_response
from penstock.protocol.loaded_classes import message_class
from penstock.protocol.message import Message
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
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
from penstock.protocol.schema.loader import definitions_directory
from penstock.protocol.schema.parser import parse_definition

ROUNDS = 7


def best(work: Callable[[], Any]) -> float:
    """Return the CPU microseconds of one call: the best of a few rounds of about 20 ms."""
    return best_of([work])[0]


def best_of(works: list[Callable[[], Any]]) -> list[float]:
    """Return the CPU microseconds of one call of each function.

    Each figure is the best of a few rounds of about 20 ms, which the functions run in turn.
    """
    counts = []
    for work in works:
        warm_up(work)
        begun = time.process_time()
        work()
        work()
        counts.append(max(1, int(0.04 / max(time.process_time() - begun, 1e-6))))
    found = [1e9] * len(works)
    for _ in range(ROUNDS):
        for place, (work, calls) in enumerate(zip(works, counts, strict=True)):
            begun = time.process_time()
            for _ in range(calls):
                work()
            found[place] = min(found[place], (time.process_time() - begun) / calls * 1e6)
    return found


def warm_up(work: Callable[[], Any]) -> None:
    """Call a function 100 times, or for 0.1 s of CPU, so that no code is compiled during measurement."""
    until = time.process_time() + 0.1
    for _ in range(100):
        work()
        if time.process_time() > until:
            break


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


def offset_commit(partitions: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="group",
        generation_id_or_member_epoch=7,
        member_id="member-1",
        retention_time_ms=-1,
        topics=[
            OffsetCommitRequestTopic(
                name="flights",
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=1_000_000 + index, committed_metadata=""
                    )
                    for index in range(partitions)
                ],
            )
        ],
    )


def produce(records: bytes, topic: str = "flights") -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[partition])])


def fetched(records: bytes, topic: str = "flights") -> FetchResponse:
    partition = PartitionData(partition_index=3, high_watermark=9, records=records)
    return FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])


Pair = tuple[Callable[[], Any], Callable[[], Any]]


def penstock_pair(message: Message, version: int, data: bytes) -> Pair:
    codec = codec_for(type(message), version)
    read = codec.decode(data)[0]
    return lambda: codec.encode(read), lambda: codec.decode(data)


def kafka_python_pair(message: Message, version: int, data: bytes) -> Pair:
    name = message.NAME
    home = {"Produce": "producer", "Metadata": "metadata"}.get(
        re.sub("Request|Response", "", name), "consumer"
    )
    cls = getattr(importlib.import_module(f"kafka.protocol.{home}"), name)
    read = cls.decode(data, version=version)
    read._header = None  # what was read has none, and cannot be written without
    return lambda: read.encode(version=version), lambda: cls.decode(data, version=version)


def aiokafka_pair(message: Message, version: int, data: bytes) -> Pair:
    home = re.sub("Request|Response|Offset", "", message.NAME).lower()
    module = importlib.import_module(f"aiokafka.protocol.{home}")
    try:
        cls = getattr(module, f"{message.NAME}_v{version}")
    except AttributeError:
        raise ImportError("aiokafka does not go so far") from None
    schema = cls.SCHEMA
    read = schema.decode(io.BytesIO(data))
    return lambda: schema.encode(read), lambda: schema.decode(io.BytesIO(data))


def kio_pair(message: Message, version: int, data: bytes) -> Pair:
    from kio.serial import entity_reader, entity_writer

    api, end = re.findall("(.*)(Request|Response)", message.NAME)[0]
    home = re.sub("(?<=[a-z])(?=[A-Z])", "_", api).lower()
    cls = getattr(importlib.import_module(f"kio.schema.{home}.v{version}.{end.lower()}"), message.NAME)
    read, write = entity_reader(cls), entity_writer(cls)
    made = read(data, 0)[0]

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, made)
        return buffer.getvalue()

    return encode, lambda: read(data, 0)


PEERS = {
    "penstock": penstock_pair,
    "kafka-python": kafka_python_pair,
    "aiokafka": aiokafka_pair,
    "kio (reads in Rust)": kio_pair,
}


def compare(title: str, messages: Sequence[Message], versions: tuple[int, ...]) -> None:
    """Print the microseconds per message of each codec, and their ratio to Penstock's codec."""
    for version in versions:
        data = [message.encode(version) for message in messages]
        size = sum(map(len, data)) // len(data)
        pairs: dict[str, list[Pair]] = {}
        for name, make in PEERS.items():
            with contextlib.suppress(ImportError):
                made = [make(message, version, each) for message, each in zip(messages, data, strict=True)]
                assert [write() for write, _ in made] == data, name
                pairs[name] = made
        writes = best_of([in_turn([write for write, _ in made]) for made in pairs.values()])
        reads = best_of([in_turn([read for _, read in made]) for made in pairs.values()])
        rows = [
            (
                name,
                *(f"{each / len(data):,.1f}" for each in (write, read)),
                f"{write / writes[0]:.1f}",
                f"{read / reads[0]:.1f}",
            )
            for name, write, read in zip(pairs, writes, reads, strict=True)
        ]
        head = ("", "write µs", "read µs", "times ours, write", "times ours, read")
        print_table(f"{title}, v{version}, {size:,} bytes", head, rows)


def in_turn(works: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """Return a function that calls all of the given functions."""
    if len(works) == 1:
        return works[0]

    def do_all() -> None:
        for work in works:
            work()

    return do_all


def mixed_metadata(random: Random) -> MetadataResponse:
    """Return a response with 20 topics of 1 to 12 partitions, some of which lack an in-sync replica."""
    response = metadata(20, 12)
    for topic in response.topics:
        topic.name = "t" * random.randrange(3, 40)
        del topic.partitions[random.randrange(1, 13) :]
        for partition in topic.partitions:
            del partition.isr_nodes[random.choice((1, 2, 2, 2)) :]
    return response


TOPICS = ("orders", "payments", "users.events", "clicks-and-views", "a")


def compare_all() -> None:
    compare("MetadataResponse, 1 × 100 partitions × 2 replicas", [metadata(1, 100)], (5, 12))
    compare("MetadataResponse, 1,000 × 10", [metadata(1000, 10)], (5, 12))
    compare("OffsetCommitRequest, 1,000 partitions", [offset_commit(1000)], (3, 8))
    compare("ProduceRequest, one partition", [produce(bytes(120))], (8, 9))
    compare("FetchResponse, one partition", [fetched(bytes(120))], (11, 12))
    random = Random(7)
    compare("MetadataResponse, 40 different ones", [mixed_metadata(random) for _ in range(40)], (5, 12))
    sizes = [random.randrange(80, 1200) for _ in range(100)]
    requests = [produce(bytes(size), random.choice(TOPICS)) for size in sizes]
    compare("ProduceRequest, 100 different ones", requests, (8, 9))
    answers = [fetched(bytes(size), random.choice(TOPICS)) for size in sizes]
    compare("FetchResponse, 100 different ones", answers, (11, 12))


def hot_path() -> None:
    rows = []
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
        rows.append((f"Produce v{version}", *(f"{time:.2f}" for time in (header, body, answer))))
    for version in (11, 12):
        asked = FetchRequest(topics=[FetchTopic(topic="flights", partitions=[FetchPartition(partition=3)])])
        data = codec_for(FetchRequest, version).encode(asked)
        partitions = [PartitionData(records=records)]
        found = FetchResponse(responses=[FetchableTopicResponse(topic="flights", partitions=partitions)])
        read = codec_for(FetchRequest, version)
        body = best(lambda read=read, data=data: read.decode(data))
        answer = best(lambda found=found, version=version: encode_response(found, version, 1))
        rows.append((f"Fetch v{version}", "", f"{body:.2f}", f"{answer:.2f}"))
    print_table(
        "One record, one partition, µs", ("", "header read", "request read", "framed response written"), rows
    )


def packed_metadata(encoding: str) -> type:
    """Return a MetadataResponse class with an additional version, where a partition's integers are packed.

    `encoding` is the name of the packed encoding.
    """
    source = json.loads(Path(definitions_directory(), "MetadataResponse.json").read_text())
    source["validVersions"] = "0-14"
    topics = next(field for field in source["fields"] if field["name"] == "Topics")
    partitions = next(field for field in topics["fields"] if field["name"] == "Partitions")
    for field in partitions["fields"]:
        bits = field["type"].removeprefix("[]").removeprefix("int")
        field["encoding"] = {"0-13": f"fixed{bits}", "14+": f"{encoding}{bits}"}
    return message_class(parse_definition(source, "packed MetadataResponse"))


def packed_integers() -> None:
    rows = []
    plain = metadata(1, 100)
    for encoding in ("unsigned", "signed"):
        cls = packed_metadata(encoding)
        message = cls.decode(plain.encode(13), 13)  # type: ignore[attr-defined]
        codecs = [codec_for(cls, version) for version in (13, 14)]
        written = [codec.encode(message) for codec in codecs]
        writes = best_of([partial(codec.encode, message) for codec in codecs])
        reads = best_of([partial(codec.decode, data) for codec, data in zip(codecs, written, strict=True)])
        for title, data, write, read in zip(("fixed", encoding), written, writes, reads, strict=True):
            rows.append((title, f"{len(data):,}", f"{write:.1f}", f"{read:.1f}"))
    title = "MetadataResponse, 1 × 100 partitions: numbers of partitions packed (KIP-625)"
    print_table(title, ("", "bytes", "write µs", "read µs"), rows)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}; CPU microseconds, best of {ROUNDS} rounds")
    compare_all()
    hot_path()
    packed_integers()
