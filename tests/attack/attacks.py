"""Attacks by hostile or broken peers: each is a function that runs against the broker of a `Target`.

An attack repeats until its time is over. It uses its own connections, topics and groups. It does not check
the broker's responses, and the broker may close its connections.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from broker.bench_node import batch_of, produce_request
from broker.extreme_requests import at_random, filled
from broker.groups.requests import (
    commit_request,
    fetch_groups_request,
    join_request,
    leave_request,
    subscription,
)
from broker.handlers.test_every_version import CASES, REQUESTS
from broker.handlers.test_repetition import arrays_in
from broker.wire_client import WireClient
from penstock.errors import EncodeError
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.records.compression.codecs import CompressionCodec, compress
from penstock.records.format.batch_header import HEADER_BYTES, pack_header, refresh_crc
from penstock.records.legacy import encode_message

CODECS = (CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4, CompressionCodec.ZSTD)
NO_CLIENT = b"\xff\xff"


class Target:
    """The broker that an attack sends its requests to, and the time at which the attack ends."""

    def __init__(self, port: int, rng: random.Random, seconds: float) -> None:
        self.port = port
        self.rng = rng
        self._until = time.monotonic() + seconds

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self._until

    def ask(self, request: Message, version: int, client_id: str = "wire") -> Any:
        """Send a request over a new connection; return the response, or None if none arrives."""
        with (
            contextlib.suppress(OSError),
            WireClient(self.port, timeout_s=20, client_id=client_id) as client,
        ):
            return client.ask(request, version)
        return None

    def send(self, request: Message, version: int) -> None:
        """Send a request, and close the connection without reading the response."""
        with contextlib.suppress(OSError), WireClient(self.port, timeout_s=5) as client:
            client.send(request, version)

    def send_bytes(self, data: bytes, patience_s: float = 1) -> None:
        """Send bytes over a new connection, and read up to 64 bytes of whatever the broker answers."""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), timeout=patience_s) as peer,
        ):
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            peer.recv(64)

    @contextlib.contextmanager
    def crowd(self, size: int) -> Iterator[list[WireClient]]:
        """Yield the clients of `size` connections that are open at the same time."""
        with contextlib.ExitStack() as stack:
            clients = []
            for _ in range(size):
                if not self.goes_on:
                    break
                with contextlib.suppress(OSError):
                    clients.append(stack.enter_context(WireClient(self.port, timeout_s=5)))
            yield clients

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        """Create a topic unless it exists, and return its name."""
        texts = [CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=texts)
        self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 4)
        return name

    def produce(self, records: bytes, topic: str, version: int = 7) -> Any:
        return self.ask(produce_request(records, topic=topic), version)

    def look_up(self, topic: str, at_ms: int) -> None:
        """Send a ListOffsets request for a timestamp, for which the broker must read records."""
        partition = ListOffsetsPartition(partition_index=0, timestamp=at_ms)
        self.ask(
            ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]),
            5,
        )

    def fetch(self, topic: str, version: int) -> Any:
        return self.ask(fetch_request(topic), version)


def fetch_request(topic: str, partitions: int = 1, max_bytes: int = 1 << 26) -> FetchRequest:
    asked = [FetchPartition(partition=n, partition_max_bytes=max_bytes) for n in range(partitions)]
    return FetchRequest(session_epoch=-1, topics=[FetchTopic(topic=topic, partitions=asked)])


def batch_with(
    body: bytes,
    count: int,
    codec: int = 0,
    *,
    base_ms: int | None = None,
    max_ms: int | None = None,
    **fields: int,
) -> bytes:
    """Return a record batch with a correct CRC around any `body` and any header fields."""
    now_ms = int(time.time() * 1000)
    batch = bytearray(HEADER_BYTES + len(body))
    batch[HEADER_BYTES:] = body
    header = {
        "base_offset": 0,
        "partition_leader_epoch": -1,
        "attributes": codec,
        "record_count": count,
        "base_timestamp": now_ms if base_ms is None else base_ms,
        "max_timestamp": now_ms if max_ms is None else max_ms,
        "producer_id": -1,
        "producer_epoch": -1,
        "base_sequence": -1,
        "last_offset_delta": count - 1,
        **fields,
    }
    pack_header(batch, **header)
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)


def gzip_bomb(size: int) -> bytes:
    """Return gzip data that decompresses to `size` zero bytes, and is about a thousandth as large."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


def zstd_bomb(size: int) -> bytes:
    """Return a zstd frame that decompresses to `size` bytes: each block repeats one byte 128 Ki times."""
    blocks = max(1, size >> 17)
    head = b"\x28\xb5\x2f\xfd" + bytes([0b00000000, 0b01010000])
    block = lambda last: (last | 1 << 1 | (1 << 17) << 3).to_bytes(3, "little") + b"\0"  # noqa: E731
    return head + block(0) * (blocks - 1) + block(1)


# --- records ------------------------------------------------------------------------------------------------


def garbage_in_batches(target: Target) -> None:
    """Produce batches with random bytes, wrong record counts, wrong codecs or extreme timestamps."""
    rng = target.rng
    topics = [target.topic("garbage"), target.topic("garbage-compacted", cleanup_policy="compact")]
    edge = 2**63 - 1
    while target.goes_on:
        topic = rng.choice(topics)
        kind = rng.randrange(6)
        good = batch_of(*[b"v"] * rng.randint(1, 5))
        if kind == 0:
            data = batch_with(rng.randbytes(rng.randint(0, 300)), rng.randint(1, 50))
        elif kind == 1:
            data = batch_with(rng.randbytes(9), 2**31 - 1)
        elif kind == 2:
            data = batch_with(rng.randbytes(100), 3, rng.choice(CODECS))
        elif kind == 3:
            data = batch_with(
                bytes(good[HEADER_BYTES:]), rng.randint(1, 9), base_ms=edge, max_ms=rng.choice((0, edge))
            )
        elif kind == 4:
            damaged = bytearray(good)
            damaged[rng.randrange(HEADER_BYTES, len(damaged))] ^= 1 << rng.randrange(8)
            refresh_crc(damaged, 0, len(damaged))
            data = bytes(damaged)
        else:
            data = batch_with(
                bytes(good[HEADER_BYTES:]),
                rng.choice((0, -1, 2**31 - 1, 1)),
                base_sequence=rng.choice((-1, 0, 2**31 - 1)),
                producer_id=rng.choice((-1, 0, edge)),
                last_offset_delta=rng.choice((-1, 0, 2**31 - 1)),
            )
        target.produce(data, topic)
        target.look_up(topic, rng.choice((0, 1, int(time.time() * 1000), edge)))
        target.fetch(topic, rng.choice((0, 2, 3, 11)))


def bombs(target: Target) -> None:
    """Produce small batches that decompress to many MB, and make the broker decompress them.

    The broker decompresses them to look up timestamps, to convert or recompress records, and to compact a
    log.
    """
    rng = target.rng
    plain, compacted = target.topic("bombs"), target.topic("bombs-compacted", cleanup_policy="compact")
    recompressed = target.topic("bombs-recompressed", compression_type="gzip")
    sizes = (64 << 20, 256 << 20, 700 << 20)
    zeros = {size: (zstd_bomb(size), CompressionCodec.ZSTD) for size in sizes}
    gzipped = gzip_bomb(64 << 20), CompressionCodec.GZIP
    many_small = compress(CompressionCodec.GZIP, b"\x0c\0\0\0\x01\x01\0" * 3_000_000)
    while target.goes_on:
        topic = rng.choice((plain, compacted, recompressed))
        data, codec = rng.choice((*zeros.values(), gzipped, (many_small, CompressionCodec.GZIP)))
        count = 3_000_000 if data is many_small else 1
        target.produce(batch_with(data, count, codec), topic, 7)
        wrapped = encode_message(1, 0, None, gzipped[0], 0, CompressionCodec.GZIP)
        twice = encode_message(0, 0, None, compress(CompressionCodec.GZIP, wrapped), 0, CompressionCodec.GZIP)
        target.produce(rng.choice((wrapped, twice)), topic, 2)
        target.look_up(topic, rng.choice((1, int(time.time() * 1000))))
        target.fetch(topic, rng.choice((0, 2, 3)))


def deep_wrappers(target: Target) -> None:
    """Produce and fetch messages that are compressed within each other, 30 levels deep."""
    topic = target.topic("wrappers")
    data = encode_message(0, 0, None, b"x" * 100, 0)
    for _ in range(30):
        data = encode_message(0, 0, None, compress(CompressionCodec.GZIP, data * 2), 0, CompressionCodec.GZIP)
    while target.goes_on:
        for version in (0, 1, 2):
            target.produce(data, topic, version)
            target.fetch(topic, version)


# --- requests -----------------------------------------------------------------------------------------------


def repetition(target: Target) -> None:
    """Send requests that name one topic, group or other resource thousands of times."""
    rng, times = target.rng, 11_000
    topic = target.topic("repeated", 3)
    target.ask(commit_request({(topic, n): 1 for n in range(3)}, group="repeated", metadata="m" * 4000), 5)
    partition = ListOffsetsPartition(partition_index=0, timestamp=1, max_num_offsets=1000)
    newer = ListOffsetsPartition(partition_index=0, timestamp=1)
    requests: list[tuple[Message, int]] = [
        (DescribeGroupsRequest(groups=["good-group"] * times), 4),
        (DescribeGroupsRequest(groups=[f"group-{n}" for n in range(400_000)]), 4),
        (fetch_groups_request(*["repeated"] * times), 8),
        (fetch_groups_request("repeated", topics={topic: [0] * times}), 8),
        (
            DescribeConfigsRequest(
                resources=[DescribeConfigsResource(resource_type=4, resource_name="1")] * times,
                include_documentation=True,
                include_synonyms=True,
            ),
            4,
        ),
        (ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition] * times)]), 0),
        (ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[newer])] * times), 5),
        (fetch_request(topic, 1), 4),
        (
            FetchRequest(
                session_epoch=-1,
                topics=[FetchTopic(topic=topic, partitions=[FetchPartition(partition_max_bytes=9)] * times)],
            ),
            4,
        ),
        (
            ElectLeadersRequest(
                topic_partitions=[TopicPartitions(topic=topic, partitions=list(range(10**6)))]
            ),
            1,
        ),
        (
            ElectLeadersRequest(
                topic_partitions=[TopicPartitions(topic=topic, partitions=list(range(11_900)))]
            ),
            1,
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=2,
                        resource_name=topic,
                        configs=[AlterableConfig(name=f"retention.mz{n}", value="1")],
                    )
                    for n in range(4000)
                ]
            ),
            0,
        ),
        (
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(
                        name=f"unmade-{n}",
                        num_partitions=1,
                        replication_factor=1,
                        configs=[
                            CreatableTopicConfig(name="retention." + "mz" * rng.randint(1, 400), value="1")
                        ],
                    )
                    for n in range(4000)
                ]
            ),
            5,
        ),
        (FetchRequest(session_epoch=-1, topics=[FetchTopic(topic="t", partitions=[])] * 500_000), 4),
    ]
    while target.goes_on:
        target.ask(*rng.choice(requests))


def control_characters(target: Target) -> None:
    """Send names with control characters that could move a terminal's cursor or forge log lines."""
    rng = target.rng
    texts = ("\x1b[2J\x1b[31m", "x\n2026-01-01 ERROR forged", "\r\x00\x07\u202e", "\x9b31m", "{}%s%n" * 50)
    while target.goes_on:
        name = "".join(rng.choice(texts) for _ in range(rng.randint(1, 200)))[:30_000]
        target.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 4, name[:1000])
        target.ask(join_request(group=name, instance=name), 5, name[:1000])
        target.ask(commit_request({(name, 0): 1}, group=name, metadata=name), 5)
        target.ask(ApiVersionsRequest(client_software_name=name, client_software_version=name), 3)
        target.topic(name, retention_ms=name)


class _Parts:
    """A stand-in for parts of a broker's node, with the names and ids that request builders read."""

    id = subscription_id = bytes(range(16))

    def topic(self, name: str) -> _Parts:
        return self

    def describe(self) -> str:
        return "/elsewhere"

    def begin(self, *given: object) -> None: ...

    def close(self, *given: object) -> None: ...

    def subscribe(self, *told: object) -> Any:
        return 0, self.id, type("Instance", (), {"subscription_id": 1})

    @property
    def sessions(self) -> _Parts:
        return self


NODE: Any = type("Node", (), dict.fromkeys(("cluster", "store", "client_metrics", "sharing"), _Parts()))
"""The argument that functions that build requests get instead of a broker's node.

The attacked broker is another process, so an attack has no access to its node.
"""


def extremes(target: Target) -> None:
    """Send requests of every API and version with extreme or random numbers, strings and arrays."""
    rng = target.rng

    harmful = {ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_CONFIGS}
    cases = [case for case in CASES if case[0] not in harmful]
    while target.goes_on:
        key, version = rng.choice(cases)
        request = filled(REQUESTS[key](NODE, version), version)
        if rng.random() < 0.5:
            at_random(request, version, rng)
        paths = list(arrays_in(request))
        if paths and rng.random() < 0.4:
            holder: Any = request
            *steps, name = rng.choice(paths)
            for step in steps:
                holder = holder[step] if isinstance(step, int) else getattr(holder, step)
            setattr(holder, name, getattr(holder, name) * rng.choice((2, 100, 5000)))
        with contextlib.suppress(EncodeError, struct.error, UnicodeError):
            frame = bytearray(b"".join(map(bytes, encode_request(request, version, 1, "extreme"))))
            if rng.random() < 0.3:
                for _ in range(rng.randint(1, 5)):
                    frame[rng.randrange(12, len(frame))] = rng.randrange(256)
            target.send_bytes(bytes(frame), 0.2)


def many_tags(target: Target) -> None:
    """Send requests with up to eight million tagged fields."""
    while target.goes_on:
        count = target.rng.choice((8 << 20, 1 << 20, 100_000))
        number = bytearray()
        left = count
        while left > 127:
            number.append(left & 0x7F | 0x80)
            left >>= 7
        number.append(left)
        body = struct.pack(">hhi", 18, 3, 1) + NO_CLIENT + bytes(number) + bytes(2 * count)
        target.send_bytes(struct.pack(">i", len(body)) + body)


def new_topics(target: Target) -> None:
    """Send Metadata requests that each name 11,999 topics that do not exist."""
    for round_ in range(3):
        names = [MetadataRequestTopic(name=f"fresh-{round_}-{n}") for n in range(11_999)]
        target.ask(MetadataRequest(topics=names), 4)
        if not target.goes_on:
            break


# --- groups -------------------------------------------------------------------------------------------------


def votes(target: Target) -> None:
    """Join groups with 2,000 protocol names or with repeated ones, and close the connection."""
    rng = target.rng
    while target.goes_on:
        group = f"votes-{rng.randrange(5)}"
        names = rng.choice((("range", "range"), ("a", "b", "a"), tuple(f"p{n}" for n in range(2000))))
        request = join_request(
            group=group, protocols=("range",), session_timeout_ms=6000, rebalance_timeout_ms=100
        )
        one = request.protocols[0]
        request.protocols = [type(one)(name=name, metadata=subscription("t")) for name in names]
        with contextlib.suppress(OSError), WireClient(target.port, timeout_s=1) as client:
            client.send(request, rng.choice((0, 2, 3)))
            if rng.random() < 0.5:
                client.receive()


def members_and_ids(target: Target) -> None:
    """Request member ids without using them, join with large metadata, commit long offset metadata."""
    rng = target.rng
    topic = target.topic("members", 50)
    large = {"range": subscription(topic) + bytes(900_000)}
    while target.goes_on:
        kind, group = rng.randrange(4), f"members-{rng.randrange(10**9)}"
        if kind == 0:
            with (
                contextlib.suppress(OSError),
                WireClient(target.port, timeout_s=5, client_id="i" * 30_000) as client,
            ):
                for _ in range(50):
                    client.ask(join_request(group=group, session_timeout_ms=1_800_000), 4)
        elif kind == 1:
            target.send(join_request(group=group, protocols=large, session_timeout_ms=1_800_000), 2)
        elif kind == 2:
            offsets = {(topic, n): 1 for n in range(50)}
            target.ask(commit_request(offsets, group=group, metadata="n" * 4000), 5)
        else:
            target.ask(leave_request(*["nobody"] * 1000, group=group), 3)


# --- what is kept -------------------------------------------------------------------------------------------


def sessions(target: Target) -> None:
    """Open the largest possible fetch sessions over five connections at a time, and close them again."""
    topic = target.topic("sessions", 3)
    request = fetch_request(topic, 11_900, 100)
    request.session_epoch = request.min_bytes = request.max_wait_ms = 0
    while target.goes_on:
        with target.crowd(5) as clients:
            for client in clients:
                with contextlib.suppress(OSError):
                    client.ask(request, 11)


def unread_answers(target: Target) -> None:
    """Request large responses and converted records without ever reading them."""
    topic = target.topic("unread")
    value = os.urandom(500_000)
    for _ in range(60):
        target.produce(bytes(batch_of(value)), topic)
    describe = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=4, resource_name="1")],
        include_documentation=True,
        include_synonyms=True,
    )
    while target.goes_on:
        with target.crowd(20) as clients:
            for client in clients:
                for _ in range(3):
                    with contextlib.suppress(OSError):
                        client.send(fetch_request(topic), target.rng.choice((0, 2, 3)))
                        client.send(describe, 4)
            time.sleep(0.2)


def producers(target: Target) -> None:
    """Request thousands of producer ids, and produce one batch with each."""
    topic = target.topic("producers")
    while target.goes_on:
        with contextlib.suppress(OSError), WireClient(target.port, timeout_s=5) as client:
            for _ in range(500):
                given = client.ask(InitProducerIdRequest(transactional_id=None), 1).producer_id
                batch = batch_of(b"x", producer_id=given, producer_epoch=0, base_sequence=0)
                client.ask(produce_request(batch, topic=topic), 7)


def connections(target: Target) -> None:
    """Open more connections than the broker has file descriptors, and send incomplete frames."""
    while target.goes_on:
        with target.crowd(1500) as clients:
            for client in clients[::10]:
                client.socket.settimeout(0.01)
                with contextlib.suppress(OSError):
                    client.socket.sendall(struct.pack(">i", 50 << 20) + bytes(100_000))
                if not target.goes_on:
                    break
            time.sleep(0.3)


def nonsense(target: Target) -> None:
    """Send bytes that are no request over many connections; the broker closes each connection."""
    rng = target.rng
    while target.goes_on:
        size = rng.choice((-1, 0, 1, 8, 100, 2**31 - 1))
        target.send_bytes(struct.pack(">i", size) + rng.randbytes(rng.randint(0, 200)), 0.2)


def starved_partitions(target: Target) -> None:
    """Send Fetch 0 to 2 with a limit of 500 bytes for each of three partitions.

    Raise AssertionError if a response has not exactly 500 bytes for each partition.
    """
    topic = target.topic("shares", 3)
    for index in range(3):
        target.ask(produce_request(batch_of(b"v" * 2000), topic=topic, partition=index), 7)
    while target.goes_on:
        for version in (0, 1, 2):
            answer = target.ask(fetch_request(topic, 3, 500), version)
            if answer is not None:
                sizes = [len(p.records or b"") for each in answer.responses for p in each.partitions]
                assert sizes == [500] * 3, f"Fetch v{version}: {sizes} bytes of 500 for each of 3 partitions"
        time.sleep(0.05)


class Attack(NamedTuple):
    """A function that attacks a broker, and the factor by which it runs longer than other attacks."""

    run: Callable[[Target], None]
    times: float = 1


ATTACKS = (
    Attack(garbage_in_batches),
    Attack(control_characters),
    Attack(votes),
    Attack(bombs, 2),
    Attack(deep_wrappers),
    Attack(repetition, 2),
    Attack(sessions),
    Attack(members_and_ids, 2),
    Attack(unread_answers, 2),
    Attack(producers),
    Attack(new_topics),
    Attack(connections),
    Attack(nonsense),
    Attack(many_tags),
    Attack(starved_partitions, 0.5),
    Attack(extremes, 3),
)
