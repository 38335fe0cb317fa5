"""Tests of the statements in "A Guide To The Kafka Protocol", each checked with requests over sockets.

Each test runs on one broker and on three, which behave as Kafka 0.8 or as a later release. Where released
brokers differ from the guide, the test follows them; docs/reference/seeds.md lists the differences.
"""

from __future__ import annotations

import gzip
import itertools
import time
from collections.abc import Callable, Iterator

import pytest

from documents.guide import (
    Described,
    Place,
    commit,
    committed,
    fetch,
    fetch_body,
    metadata,
    offsets,
    produce,
    produce_body,
)
from documents.raw import (
    FETCH,
    METADATA,
    PRODUCE,
    Raw,
    array,
    i32,
    i64,
    message,
    message_set,
    messages_in,
    request,
)
from for_each import for_each
from penstock import Broker, Cluster

REQUEST_LIMIT, MESSAGE_LIMIT = 300_000, 100_000
CONFIG = {
    "socket.request.max.bytes": str(REQUEST_LIMIT),
    "message.max.bytes": str(MESSAGE_LIMIT),
    "num.partitions": "2",
}
PROFILES = ("0.8.2", "3.9")


class World:
    """Brokers that behave as one release, and a function that creates topics of two partitions."""

    def __init__(self, server: Broker | Cluster, profile: str, replicas: int) -> None:
        self.servers = server.bootstrap_servers
        self.is_old = profile == PROFILES[0]
        self.replicas = replicas
        self._numbers = itertools.count()

    @property
    def is_cluster(self) -> bool:
        return self.replicas > 1

    def addresses(self) -> list[tuple[str, int]]:
        pairs = (one.rsplit(":", 1) for one in self.servers.split(","))
        return [(host, int(port)) for host, port in pairs]

    def any(self) -> Raw:
        return Raw(self.addresses()[0])

    def topic(self) -> str:
        name = f"t{next(self._numbers)}"
        with self.any() as raw:
            assert metadata(raw, name).errors == {name: 5 if self.is_old else 3}
        return name

    def settled(self, topic: str) -> Described:
        """Wait until all replicas of a topic are in sync, and return its Metadata."""
        deadline = time.monotonic() + 30
        while True:
            with self.any() as raw:
                found = metadata(raw, topic)
            both = [found.partitions.get((topic, number)) for number in (0, 1)]
            if all(one is not None and one.leader >= 0 and len(one.isr) == self.replicas for one in both):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    def leader(self, place: Place) -> Raw:
        found = self.settled(place[0])
        return Raw(found.brokers[found.partitions[place].leader])

    def follower(self, place: Place) -> Raw:
        found = self.settled(place[0])
        partition = found.partitions[place]
        return Raw(found.brokers[next(node for node in partition.replicas if node != partition.leader)])


@pytest.fixture(scope="module", params=[f"{count} as {one}" for count in (1, 3) for one in PROFILES])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    count, _, profile = request.param.split()
    if count == "1":
        with Broker(as_version=profile, config=CONFIG) as broker:
            yield World(broker, profile, 1)
    else:
        with Cluster(3, as_version=profile, config={**CONFIG, "default.replication.factor": "3"}) as cluster:
            yield World(cluster, profile, 3)


def order_of_answers(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        slow = request(FETCH, fetch_body({place: 0}, wait_ms=300, least=1), 0)
        raw.socket.sendall(slow + b"".join(request(METADATA, array([]), n) for n in range(1, 30)))
        found = [raw.answer() for _ in range(30)]
    assert [one and one[0] for one in found] == list(range(30))


def limit_of_requests(world: World) -> None:
    with world.any() as raw, world.any() as other:
        raw.socket.sendall(i32(REQUEST_LIMIT + 1))
        assert raw.answer() is None
        metadata(other)


def unknown_versions(world: World) -> None:
    with world.any() as raw, world.any() as other:
        raw.send(PRODUCE, produce_body({}), version=99)
        assert raw.answer() is None
        metadata(other)


def correlation_ids(world: World) -> None:
    with world.any() as raw:
        for number in (0, -1, 2**31 - 1, -(2**31)):
            raw.ask(METADATA, array([]), number)


def client_ids(world: World) -> None:
    with world.any() as raw:
        for name in (None, "", "größe", b"\xff\xfe\x00", "x" * 32_767):
            raw.ask(METADATA, array([]), client=name)


def topics_asked_for(world: World) -> None:
    first, second = world.topic(), world.topic()
    world.settled(first), world.settled(second)
    with world.any() as raw:
        assert set(metadata(raw, first).errors) == {first}
        assert {first, second} <= set(metadata(raw).errors)


def every_broker_describes(world: World) -> None:
    topic = world.topic()
    world.settled(topic)
    for address in world.addresses():
        deadline = time.monotonic() + 20
        while True:
            with Raw(address) as raw:
                found = metadata(raw, topic)
            if found == world.settled(topic):
                break
            assert time.monotonic() < deadline
    assert sorted(found.brokers.values()) == sorted(world.addresses())
    for number in (0, 1):
        error, leader, replicas, isr = found.partitions[topic, number]
        assert (error, set(isr) <= set(replicas), leader in replicas) == (0, True, True)


def partitions_are_the_clients_choice(world: World) -> None:
    topic = world.topic()
    for number in (0, 1):
        with world.leader((topic, number)) as raw:
            produce(raw, {(topic, number): message_set(message(b"%d" % number, b"same key"))})
    for number in (0, 1):
        with world.leader((topic, number)) as raw:
            rows, _ = messages_in(fetch(raw, {(topic, number): 0})[topic, number][2])
        assert [row[3] for row in rows] == [b"%d" % number]


def only_the_leader_serves(world: World) -> None:
    if not world.is_cluster:
        return
    place = world.topic(), 0
    with world.follower(place) as raw:
        assert produce(raw, {place: message_set(message(b"x"))})[place][0] == 6
        assert fetch(raw, {place: 0})[place][0] == 6
        assert offsets(raw, place, -1)[0] == 6


def debugging_replicas(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        produce(raw, {place: message_set(message(b"x"))})
    with world.follower(place) if world.is_cluster else world.leader(place) as raw:
        # A follower learns a moment later that all replicas have a record.
        deadline, found = time.monotonic() + 20, b""
        while not found:
            error, _, found = fetch(raw, {place: 0}, replica=-2)[place]
            assert error == 0
            assert time.monotonic() < deadline
    assert [row[3] for row in messages_in(found)[0]] == [b"x"]


def several_at_once(world: World) -> None:
    topics = [world.topic() for _ in range(6)]
    described = {topic: world.settled(topic).partitions[topic, 0].leader for topic in topics}
    leader = described[topics[0]]
    places = [(topic, 0) for topic in topics if described[topic] == leader]
    with world.leader(places[0]) as raw:
        wrote = produce(raw, {place: message_set(message(place[0].encode())) for place in places})
        assert wrote == dict.fromkeys(places, (0, 0))
        found = fetch(raw, dict.fromkeys(places, 0))
    assert {place: messages_in(one[2])[0][0][3] for place, one in found.items()} == {
        place: place[0].encode() for place in places
    }


def one_error_is_of_one_partition(world: World) -> None:
    topic = world.topic()
    good, missing, unknown = (topic, 0), (topic, 99), ("nowhere-at-all", 0)
    with world.leader(good) as raw:
        wrote = produce(raw, {one: message_set(message(b"x")) for one in (good, missing)})
        assert wrote == {good: (0, 0), missing: (3, -1)}
        found = fetch(raw, dict.fromkeys((good, missing, unknown), 0))
        assert {place: one[0] for place, one in found.items()} == {good: 0, missing: 3, unknown: 3}
        assert offsets(raw, missing, -1)[0] == 3


def offsets_of_producers(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        two = message_set(message(b"a"), message(b"b"), offsets=[12_345, -7])
        assert produce(raw, {place: two})[place] == (0, 0)
        assert produce(raw, {place: two})[place] == (0, 2)
        rows, rest = messages_in(fetch(raw, {place: 0})[place][2])
    assert ([row[0] for row in rows], rest) == ([0, 1, 2, 3], b"")


def nulls(world: World) -> None:
    place = world.topic(), 0
    pairs = [(None, b"v"), (b"k", None), (None, None), (b"", b""), (b"\xff\0", b"\0" * 9)]
    with world.leader(place) as raw:
        produce(raw, {place: message_set(*(message(value, key) for key, value in pairs))})
        rows, _ = messages_in(fetch(raw, {place: 0})[place][2])
    assert [row[2:] for row in rows] == pairs


def checksums(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        assert produce(raw, {place: message_set(message(b"x", crc=1))})[place] == (2, -1)
        negative = i64(0) + i32(-5) + message(b"x")
        assert produce(raw, {place: negative})[place][0] == 2
        assert fetch(raw, {place: 0})[place] == (0, 0, b"")


def too_large(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        assert produce(raw, {place: message_set(message(bytes(MESSAGE_LIMIT)))})[place] == (10, -1)
        assert produce(raw, {place: message_set(message(bytes(MESSAGE_LIMIT - 200)))})[place] == (0, 0)


def inside(world: World, codec: int, squeezed: bytes, unsqueeze: Callable[[bytes], bytes] | None) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        assert produce(raw, {place: message_set(message(squeezed, attributes=codec))})[place] == (0, 0)
        assert produce(raw, {place: message_set(message(b"next"))})[place] == (0, 2)
        rows, _ = messages_in(fetch(raw, {place: 0})[place][2])
    offset, attributes, _, value = rows[0]
    assert attributes & 7 == codec
    assert (offset, rows[1][0]) == (1, 2)
    if unsqueeze is not None and value is not None:
        inner, rest = messages_in(unsqueeze(value))
        assert [(row[0], row[3]) for row in inner] == [(0, b"one"), (1, b"two")]
        assert rest == b""


def gzip_sets(world: World) -> None:
    inside(world, 1, gzip.compress(message_set(message(b"one"), message(b"two"))), gzip.decompress)


def snappy_sets(world: World) -> None:
    plain = message_set(message(b"one"), message(b"two"))
    assert len(plain) <= 60
    inside(world, 2, bytes([len(plain), (len(plain) - 1) << 2]) + plain, None)


def sets_in_sets(world: World) -> None:
    place = world.topic(), 0
    inner = message_set(message(gzip.compress(message_set(message(b"x"))), attributes=1))
    outer = message_set(message(gzip.compress(inner), attributes=1))
    with world.leader(place) as raw:
        error = produce(raw, {place: outer})[place][0]
    assert (error == 0) == world.is_old


def no_acks(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        raw.send(PRODUCE, produce_body({place: message_set(message(b"x"))}, acks=0), 1)
        raw.send(METADATA, array([]), 2)
        found = raw.answer()
        assert found is not None
        assert found[0] == 2
        deadline = time.monotonic() + 20
        while offsets(raw, place, -1, 1) != (0, [1]):
            assert time.monotonic() < deadline


def acks_of_any_number(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        for acks in (1, -1):
            assert produce(raw, {place: message_set(message(b"x"))}, acks)[place][0] == 0
        for acks in (2, 3):
            begun = time.monotonic()
            error, _ = produce(raw, {place: message_set(message(b"x"))}, acks)[place]
            assert error == (0 if world.is_old else 21)
            assert time.monotonic() - begun < 8
        if world.is_cluster:
            assert fetch(raw, {place: 0})[place][1] == (4 if world.is_old else 2)


def long_polls(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw, world.leader(place) as writer:
        begun = time.monotonic()
        assert fetch(raw, {place: 0}, wait_ms=10_000, least=0)[place] == (0, 0, b"")
        assert time.monotonic() - begun < 5
        begun = time.monotonic()
        fetch(raw, {place: 0}, wait_ms=300, least=1)
        assert time.monotonic() - begun >= 0.29
        raw.send(FETCH, fetch_body({place: 0}, wait_ms=15_000, least=1), 5)
        produce(writer, {place: message_set(message(b"x"))})
        begun = time.monotonic()
        assert raw.answer() is not None
        assert time.monotonic() - begun < 8
        begun = time.monotonic()
        assert fetch(raw, {place: 0}, wait_ms=300, least=60_000)[place][2] != b""
        assert time.monotonic() - begun >= 0.29


def partial_messages(world: World) -> None:
    place = world.topic(), 0
    one = message_set(message(bytes(1_000)))
    with world.leader(place) as raw:
        produce(raw, {place: message_set(*[message(bytes(1_000))] * 3)})
        for most in (len(one) // 2, len(one) - 1, len(one), 2 * len(one) - 1, 10_000):
            found = fetch(raw, {place: 0}, most=most)[place][2]
            assert 0 < len(found) <= most
            assert len(messages_in(found)[0]) == min(3, most // len(one))


def high_watermarks(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        produce(raw, {place: message_set(*[message(b"x")] * 5)})
        assert fetch(raw, {place: 3})[place][1] == 5


def out_of_range(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        produce(raw, {place: message_set(message(b"x"))})
        assert [fetch(raw, {place: at})[place][0] for at in (-5, 0, 1, 2, 10**9)] == [1, 0, 0, 1, 1]


def ranges_of_offsets(world: World) -> None:
    place = world.topic(), 0
    with world.leader(place) as raw:
        produce(raw, {place: message_set(*[message(b"x")] * 4)})
        assert offsets(raw, place, -1, 10) == (0, [4, 0])
        assert offsets(raw, place, -1, 1) == (0, [4])
        assert offsets(raw, place, -2, 10) == (0, [0])


def offsets_of_groups(world: World) -> None:
    place = world.topic(), 0
    world.settled(place[0])
    if not world.is_old:
        return
    with world.any() as raw:
        offset, note, error = committed(raw, "g", place)
        assert (offset, note, error) == (-1, b"", 3)
        assert commit(raw, "g", place, 42, "größe") == 0
        assert committed(raw, "g", place) == (42, "größe".encode(), 0)
        assert commit(raw, "g", place, 43, "x" * 4_097) == 12
        assert committed(raw, "g", place)[0] == 42
    for address in world.addresses():
        with Raw(address) as other:
            assert committed(other, "g", place)[0] == 42


CHECKS: dict[str, Callable[[World], None]] = {
    "Network: answers come in the order of requests": order_of_answers,
    "Network: a request above the limit ends the connection": limit_of_requests,
    "Partitioning: the client chooses the partition": partitions_are_the_clients_choice,
    "Partitioning: the wrong broker is error 6": only_the_leader_serves,
    "Partitioning: every broker describes all": every_broker_describes,
    "Batching: many topics in one request": several_at_once,
    "Versioning: unsupported versions are rejected": unknown_versions,
    "Requests: correlation ids come back": correlation_ids,
    "Requests: any client id": client_ids,
    "Message sets: any offset from a producer": offsets_of_producers,
    "Message format: keys and values may be null": nulls,
    "Message format: the checksum is compared": checksums,
    "Compression: GZIP": gzip_sets,
    "Compression: Snappy": snappy_sets,
    "Compression: recursively": sets_in_sets,
    "Metadata: some topics, or all": topics_asked_for,
    "Produce: without acknowledgement there is no answer": no_acks,
    "Produce: any number of acknowledgements": acks_of_any_number,
    "Produce: errors are of partitions": one_error_is_of_one_partition,
    "Fetch: long poll, MaxWaitTime, MinBytes": long_polls,
    "Fetch: a partial message at the end, MaxBytes": partial_messages,
    "Fetch: ReplicaId -2": debugging_replicas,
    "Fetch: HighwaterMarkOffset": high_watermarks,
    "Offset: latest, earliest, how many": ranges_of_offsets,
    "Offset Commit/Fetch, and error 12": offsets_of_groups,
    "Error 1": out_of_range,
    "Error 10": too_large,
}


@for_each(CHECKS)
def test_what_the_guide_says(statement: str, world: World) -> None:
    CHECKS[statement](world)
