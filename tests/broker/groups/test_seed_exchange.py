"""Tests of JoinGroup v0 and v1, byte for byte, and of the errors in Kafka's protocol guide for groups.

The bytes are written according to the guide's grammar, without the package's codec.
"""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import context_of
from broker.groups.bench_group import Bench
from broker.groups.requests import commit_request, fetch_request
from penstock.broker.requests.dispatch import Unanswered, answer
from penstock.protocol.error_codes import ErrorCode

JOIN_GROUP = 11


def int16(number: int) -> bytes:
    return number.to_bytes(2, "big", signed=True)


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def string(text: str) -> bytes:
    return int16(len(text)) + text.encode()


def data(value: bytes) -> bytes:
    return int32(len(value)) + value


def array(*items: bytes) -> bytes:
    return int32(len(items)) + b"".join(items)


def join(
    version: int, member_id: str, session_ms: int, rebalance_ms: int, *protocols: tuple[str, bytes]
) -> bytes:
    """Return the bytes of a JoinGroup request.

    JoinGroupRequest => GroupId SessionTimeout [RebalanceTimeout] MemberId ProtocolType GroupProtocols.
    """
    return (
        int16(JOIN_GROUP)
        + int16(version)
        + int32(5)
        + string("client")
        + string("group")
        + int32(session_ms)
        + (int32(rebalance_ms) if version >= 1 else b"")
        + string(member_id)
        + string("consumer")
        + array(*(string(name) + data(metadata) for name, metadata in protocols))
    )


def joined(
    error: int, generation: int, protocol: str, leader: str, member: str, *members: tuple[str, bytes]
) -> bytes:
    """Return the bytes of a JoinGroup response.

    JoinGroupResponse => ErrorCode GenerationId GroupProtocol LeaderId MemberId Members.
    """
    body = (
        int32(5)
        + int16(error)
        + int32(generation)
        + string(protocol)
        + string(leader)
        + string(member)
        + array(*(string(name) + data(metadata) for name, metadata in members))
    )
    return int32(len(body)) + body


class Line:
    """A test broker that takes requests as bytes; it gives the member ids m1, m2, ... in this order."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.count = 0
        self.bench.node.groups.coordinator._new_id = self.new_id

    def new_id(self, name: str) -> str:
        self.count += 1
        return f"m{self.count}"

    def send(self, request: bytes) -> list[bytes]:
        """Send a request; return a list to which the response is appended as soon as there is one."""
        answers: list[bytes] = []
        outcome = answer(memoryview(bytearray(request)), context_of(self.bench.node, 0))

        def take(outcome: Any) -> None:
            if isinstance(outcome, Unanswered):
                waiting = outcome
                self.bench.node.purgatory.park(waiting.wait, lambda: take(waiting.run()))
            else:
                answers.append(b"".join(outcome))

        take(outcome)
        self.bench.run()
        return answers


@pytest.mark.parametrize("version", [0, 1])
def test_two_members_join_and_agree(version: int) -> None:
    line = Line()
    first = line.send(join(version, "", 10_000, 20_000, ("range", b"r1"), ("rr", b"x1")))
    assert first == [joined(0, 1, "range", "m1", "m1", ("m1", b"r1"))]
    second = line.send(join(version, "", 10_000, 20_000, ("rr", b"x2"), ("range", b"r2")))
    assert second == []
    third = line.send(join(version, "", 10_000, 20_000, ("rr", b"x3")))
    again = line.send(join(version, "m1", 10_000, 20_000, ("range", b"r1"), ("rr", b"x1")))
    assert again == [joined(0, 2, "rr", "m1", "m1", ("m1", b"x1"), ("m2", b"x2"), ("m3", b"x3"))]
    assert second == [joined(0, 2, "rr", "m1", "m2")]
    assert third == [joined(0, 2, "rr", "m1", "m3")]


@pytest.mark.parametrize("version", [0, 1])
def test_the_timeout_to_join_again_is_the_sessions_in_version_0_and_its_own_in_version_1(
    version: int,
) -> None:
    """A member that does not rejoin is removed after 10 s in version 0, and after 20 s in version 1.

    Heartbeats keep its session alive meanwhile.
    """
    line = Line()
    line.send(join(version, "", 10_000, 20_000, ("range", b"1")))
    second = line.send(join(version, "", 10_000, 20_000, ("range", b"2")))
    for _ in range(3):
        assert line.bench.heartbeat("m1", 1, group="group") == ErrorCode.REBALANCE_IN_PROGRESS
        line.bench.wait(3_300)
    assert second == []
    line.bench.heartbeat("m1", 1, group="group")
    line.bench.wait(200)
    assert (second != []) == (version == 0)
    line.bench.wait(9_000)
    line.bench.heartbeat("m1", 1, group="group")
    line.bench.wait(2_000)
    assert second == [joined(0, 2, "range", "m2", "m2", ("m2", b"2"))]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("member_id", "session_ms", "protocols", "code"),
    [
        ("nobody", 10_000, [("range", b"")], ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 5_000, [("range", b"")], ErrorCode.INVALID_SESSION_TIMEOUT),
        ("", 10_000, [], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_refusals(
    version: int, member_id: str, session_ms: int, protocols: list[tuple[str, bytes]], code: ErrorCode
) -> None:
    line = Line()
    answers = line.send(join(version, member_id, session_ms, 20_000, *protocols))
    assert answers == [joined(code, -1, "", "", member_id)]


def test_the_errors_the_pages_name_for_groups_are_reached() -> None:
    """Requests get ILLEGAL_GENERATION, OFFSET_METADATA_TOO_LARGE (12) and UNKNOWN_TOPIC_OR_PARTITION (3)."""
    bench = Bench()
    leader, _ = bench.pair()
    bench.join(leader)
    assert bench.heartbeat(leader, 1) == ErrorCode.ILLEGAL_GENERATION
    assert bench.sync(leader, 1).code == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(1, leader, 1) == ErrorCode.ILLEGAL_GENERATION
    for version in (0, 1):
        request = commit_request({("t", 0): 1, ("t", 7): 1}, metadata="x" * 4097, group="simple")
        response = bench.ask(request, version).response
        assert [topic.partitions[0].error_code for topic in response.topics] == [12, 3]
    missing = bench.ask(fetch_request({"t": [1]}, group="simple"), 0).response
    assert missing.topics[0].partitions[0].error_code == 3
