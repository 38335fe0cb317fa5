"""Tests of the Kafka page about JoinGroup 0 and 1: requests over sockets check what it says of groups."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from documents.raw import (
    COMMIT,
    COORDINATOR,
    HEARTBEAT,
    JOIN,
    METADATA,
    SYNC,
    Raw,
    array,
    data,
    i32,
    i64,
    string,
)
from for_each import for_each
from penstock import Broker, Cluster

SESSION_MS, SHORT_MS = 20_000, 300
CONFIG = {
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
}
Protocols = dict[str, bytes]
RANGE: Protocols = {"range": b"\x00\xffmetadata"}
UNKNOWN_MEMBER, ILLEGAL_GENERATION, INCONSISTENT, REBALANCING = 25, 22, 23, 27


class Joined(NamedTuple):
    """A decoded JoinGroup response; versions 0 and 1 have the same fields."""

    error: int
    generation: int
    protocol: str
    leader: str
    member: str
    members: dict[str, bytes | None]


class Member:
    """A consumer group member with its own connection to the group's coordinator."""

    def __init__(self, address: tuple[str, int], group: str) -> None:
        self.raw = Raw(address)
        self.group = group
        self.joined = Joined(0, -1, "", "", "", {})

    def send_join(
        self,
        protocols: Protocols = RANGE,
        kind: str = "consumer",
        session_ms: int = SESSION_MS,
        version: int = 0,
    ) -> None:
        pairs = array(string(name) + data(what) for name, what in protocols.items())
        rebalance = i32(SESSION_MS) if version else b""
        head = string(self.group) + i32(session_ms) + rebalance + string(self.joined.member) + string(kind)
        self.raw.send(JOIN, head + pairs, version=version)

    def receive_join(self) -> Joined:
        found = self.raw.answer()
        assert found is not None
        answer = found[1]
        error, generation = answer.i16(), answer.i32()
        protocol, leader, member = answer.name(), answer.name(), answer.name()
        members = {}
        for _ in range(answer.i32()):
            name = answer.name()
            members[name] = answer.data()
        answer.end()
        self.joined = Joined(error, generation, protocol, leader, member, members)
        return self.joined

    def join(
        self,
        protocols: Protocols = RANGE,
        kind: str = "consumer",
        session_ms: int = SESSION_MS,
        version: int = 0,
    ) -> Joined:
        self.send_join(protocols, kind, session_ms, version)
        return self.receive_join()

    def sync(self, generation: int | None = None) -> int:
        """Send SyncGroup with empty assignments; return the error code."""
        number = self.joined.generation if generation is None else generation
        shares = array(string(name) + data(b"") for name in self.joined.members)
        answer = self.raw.ask(SYNC, string(self.group) + i32(number) + string(self.joined.member) + shares)
        return answer.i16()

    def heartbeat(self, generation: int | None = None) -> int:
        number = self.joined.generation if generation is None else generation
        body = string(self.group) + i32(number) + string(self.joined.member)
        return self.raw.ask(HEARTBEAT, body).i16()

    def commit(self, topic: str, generation: int) -> int:
        """Commit an offset with OffsetCommit 2; return the error code."""
        head = string(self.group) + i32(generation) + string(self.joined.member) + i64(-1)
        wanted = string(topic) + array([i32(0) + i64(1) + string("")])
        answer = self.raw.ask(COMMIT, head + array([wanted]), version=2)
        assert (answer.i32(), answer.name(), answer.i32(), answer.i32()) == (1, topic, 1, 0)
        return answer.i16()


class World:
    """The brokers of a test, and functions that create topics and groups without members."""

    def __init__(self, servers: str, has_version_1: bool) -> None:
        self.servers = servers
        self.has_version_1 = has_version_1
        self._numbers = itertools.count()
        self._members: list[Member] = []

    def topic(self) -> str:
        """Create a topic if necessary, wait until it has a leader, and return its name."""
        host, port = self.servers.split(",")[0].rsplit(":", 1)
        with Raw((host, int(port))) as raw:
            while raw.ask(METADATA, array([string("t")])).body[-60:].count(string("t") + i32(1)) != 1:
                time.sleep(0.02)
        return "t"

    def close(self) -> None:
        """Close the connections of all members."""
        for member in self._members:
            member.raw.socket.close()
        self._members.clear()

    def group(self, count: int = 1) -> list[Member]:
        """Return `count` members of a new group that have not joined yet."""
        name = f"g{next(self._numbers)}"
        host, port = self.servers.split(",")[0].rsplit(":", 1)
        deadline = time.monotonic() + 30
        with Raw((host, int(port))) as raw:
            while True:
                answer = raw.ask(COORDINATOR, string(name))
                if not answer.i16():
                    break
                assert time.monotonic() < deadline
                time.sleep(0.02)
        answer.i32()
        address = answer.name(), answer.i32()
        answer.end()
        members = [Member(address, name) for _ in range(count)]
        self._members += members
        while members[0].heartbeat(0) in (14, 15, 16):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return members


@pytest.fixture(scope="module", params=[f"{n} as {one}" for n in (1, 3) for one in ("0.9", "0.10.1", "3.9")])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    count, _, profile = request.param.split()
    server: Broker | Cluster = (
        Broker(as_version=profile, config=CONFIG)
        if count == "1"
        else Cluster(3, as_version=profile, config=CONFIG)
    )
    with server:
        yield World(server.bootstrap_servers, profile != "0.9")


def versions(world: World) -> list[int]:
    return [0, 1] if world.has_version_1 else [0]


def first_joins(world: World) -> None:
    for version in versions(world):
        (one,) = world.group()
        joined = one.join(version=version)
        assert joined.error == 0
        assert joined.member != ""
        assert (joined.leader, joined.members) == (joined.member, {joined.member: RANGE["range"]})
        assert one.sync() == 0
        again = one.join(version=version)
        assert (again.error, again.member) == (0, joined.member)


def everyone_joins_again(world: World) -> None:
    for version in versions(world):
        one, two = together(world, version)
        assert one.joined.generation == two.joined.generation
        leader, other = (one, two) if one.joined.leader == one.joined.member else (two, one)
        assert set(leader.joined.members) == {one.joined.member, two.joined.member}
        assert other.joined.members == {}


def together(world: World, version: int = 0) -> tuple[Member, Member]:
    """Return two members in the same generation: the second has joined the first one's group."""
    one, two = world.group(2)
    one.join(version=version)
    assert one.sync() == one.heartbeat() == 0
    two.send_join(version=version)
    deadline = time.monotonic() + 20
    while one.heartbeat() != REBALANCING:
        assert time.monotonic() < deadline
    assert one.join(version=version).error == two.receive_join().error == 0
    return one, two


def generations(world: World) -> None:
    (one,) = world.group()
    first = one.join().generation
    for number in range(1, 4):
        assert one.sync() == 0
        assert one.join().generation == first + number
    assert one.sync() == 0
    assert one.heartbeat() == 0
    assert one.heartbeat(first) == one.sync(first) == one.commit(world.topic(), first) == ILLEGAL_GENERATION


def sessions(world: World) -> None:
    """Check that the coordinator removes a silent member, and that a later member is alone.

    The later member has another protocol type, which is refused while the silent one remains.
    """
    for version in versions(world):
        one, two = world.group(2)
        one.join(session_ms=SHORT_MS, version=version)
        one.sync()
        deadline = time.monotonic() + 20
        # Members of another kind are refused for as long as it is there.
        while (joined := two.join(kind="connect", version=version)).error == INCONSISTENT:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert (joined.error, set(joined.members)) == (0, {joined.member})
        assert one.heartbeat() == UNKNOWN_MEMBER


def late_for_a_rebalance(world: World) -> None:
    """Check that JoinGroup 0 uses the session timeout as rebalance timeout.

    A member that does not rejoin within it is removed.
    """
    one, two = world.group(2)
    one.join(session_ms=SHORT_MS)
    one.sync()
    joined = two.join()
    assert (joined.error, set(joined.members)) == (0, {joined.member})


def kinds(world: World) -> None:
    one, two = world.group(2)
    one.join()
    one.sync()
    assert two.join(kind="connect").error == INCONSISTENT


def no_protocol_of_all(world: World) -> None:
    one, two = world.group(2)
    one.join()
    one.sync()
    assert two.join({"other": b""}).error == INCONSISTENT


def upgrades(world: World) -> None:
    """Check that two members can change from one protocol to another, one after the other."""
    one, two = world.group(2)
    old, both = {"old": b"1"}, {"new": b"2", "old": b"1"}
    assert one.join(old).protocol == "old"
    one.sync()
    two.send_join(both)
    deadline = time.monotonic() + 20
    while one.heartbeat() != REBALANCING:
        assert time.monotonic() < deadline
    assert one.join(old).protocol == two.receive_join().protocol == "old"
    for leader in sorted((one, two), key=lambda each: not each.joined.members):
        assert leader.sync() == 0
    one.send_join(both)
    while two.heartbeat() != REBALANCING:
        assert time.monotonic() < deadline
    two.send_join(both)
    assert one.receive_join().protocol == two.receive_join().protocol == "new"


CHECKS: dict[str, Callable[[World], None]] = {
    "an empty member id at first, the same one later; both versions": first_joins,
    "a new member has all join again; members go to the leader": everyone_joins_again,
    "a session without a heartbeat ends": sessions,
    "before a rebalance has a time of its own, it is the session": late_for_a_rebalance,
    "one protocol type in a group": kinds,
    "one protocol that all members have, or error 23": no_protocol_of_all,
    "a rolling upgrade: the first that all list": upgrades,
    "a generation more with each join; old ones are error 22": generations,
}


@for_each(CHECKS)
def test_what_the_page_says_of_joining(statement: str, world: World) -> None:
    try:
        CHECKS[statement](world)
    finally:
        world.close()
