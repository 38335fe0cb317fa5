"""Tests of a 0.7 broker with clients that send garbage, incomplete or large requests, or never read.

Meanwhile a correct client keeps working.
"""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.records.compression.codecs import CompressionCodec, UnpackBudget
from penstock.v07 import server
from penstock.v07.groups import fetching
from penstock.v07.message_set import Judged, encode_set, iter_messages, judge
from penstock.v07.server import Broker07
from penstock.v07.wire import FetchPart, OffsetsPart, ProducePart, RequestType, WireRequest, encode_request
from v07.raw_client import RawClient

PRODUCE, FETCH, MULTIFETCH, MULTIPRODUCE, OFFSETS = RequestType


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker07]:
    with Broker07(tmp_path) as running:
        yield running


def connected(broker: Broker07) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), 10)


def test_a_good_client_notices_nothing(broker: Broker07) -> None:
    dice = random.Random(7)
    sound = encode_request(WireRequest(PRODUCE, (ProducePart("t", 0, encode_set([b"x" * 50])),)))
    hostile: list[socket.socket] = []
    with RawClient(broker) as good:
        for number in range(300):
            peer = connected(broker)
            hostile.append(peer)
            kind = number % 5
            damaged = bytearray(sound)
            for _ in range(dice.randrange(1, 4)):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            peer.sendall(
                (
                    dice.randbytes(dice.randrange(1, 200)),  # garbage
                    sound[: dice.randrange(1, len(sound))],  # half of something, for ever
                    dice.choice([2**31 - 1, 2**31, 2**32 - 1, 0]).to_bytes(4, "big") + b"x" * 20,
                    bytes(damaged),
                    (2 + dice.randrange(9)).to_bytes(4, "big") + dice.randbytes(dice.randrange(2, 12)),
                )[kind]
            )
            if number % 3:
                hostile.pop().close()
            good.send(
                encode_request(WireRequest(PRODUCE, (ProducePart("good", 0, encode_set([b"%d" % number])),)))
            )
            assert good.ask(OFFSETS, OffsetsPart("good", 0, -1, 1)) is not None
        answer = good.ask(FETCH, FetchPart("good", 0, 0, 1 << 20))
    assert answer is not None
    assert [m.payload for m in iter_messages(memoryview(answer)[2:])] == [b"%d" % n for n in range(300)]
    for peer in hostile:
        peer.close()


def test_unfinished_requests_together_have_a_limit(broker: Broker07, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HELD_BYTES_MAX", 4 << 20)
    peers = [connected(broker) for _ in range(4)]
    try:
        ended = 0
        for peer in peers:
            peer.sendall((50 << 20).to_bytes(4, "big"))
        for peer in peers:
            try:
                peer.sendall(bytes(3 << 20))
                peer.settimeout(0.2)
                ended += peer.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                ended += 1
        assert ended
        with RawClient(broker) as good:
            assert good.ask(PRODUCE, ProducePart("t", 0, encode_set([b"x"]))) == b""
    finally:
        for peer in peers:
            peer.close()


def test_connections_have_a_limit(broker: Broker07, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)
    with RawClient(broker) as first, RawClient(broker) as second:
        assert first.alive() == second.alive() == b""
        with RawClient(broker) as third:
            assert third.alive() is None
        assert first.alive() == b""
    with RawClient(broker) as fourth:
        assert fourth.alive() in (b"", None)


def test_who_asks_for_thousands_of_parts_and_reads_nothing_costs_little(broker: Broker07) -> None:
    with RawClient(broker) as client:
        assert client.ask(PRODUCE, ProducePart("t", 0, encode_set([b"x" * 20_000]))) == b""
    parts = [FetchPart("t", 0, 0, 30_000)] * 20_000
    before = resident_bytes()
    slow = connected(broker)
    try:
        slow.sendall(encode_request(WireRequest(MULTIFETCH, parts)))
        with RawClient(broker) as client:
            for _ in range(20):
                assert client.ask(OFFSETS, OffsetsPart("t", 0, -1, 1)) is not None
        assert resident_bytes() - before < 100 << 20  # the answer has 400 MB
    finally:
        slow.close()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def test_what_takes_long_is_judged_in_a_thread(broker: Broker07, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, gate = threading.Event(), threading.Event()

    def held(data: memoryview, budget: UnpackBudget) -> Judged:
        if threading.current_thread().name.startswith("penstock-0.7-judge"):
            entered.set()
            assert gate.wait(60)
        return judge(data, budget)

    monkeypatch.setattr(server, "judge", held)
    many = [b"%d" % number for number in range(2 * server.INLINE_RECORDS)]
    wrapper = encode_set(many, codec=CompressionCodec.GZIP)
    with RawClient(broker) as slow, RawClient(broker) as good:
        slow.send(encode_request(WireRequest(PRODUCE, (ProducePart("t", 0, wrapper),))))
        assert entered.wait(60)
        good.send(encode_request(WireRequest(PRODUCE, (ProducePart("good", 0, encode_set([b"1"])),))))
        assert good.ask(OFFSETS, OffsetsPart("good", 0, -1, 1)) is not None
        gate.set()
        assert slow.ask(OFFSETS, OffsetsPart("t", 0, -1, 1)) is not None
        answer = slow.ask(FETCH, FetchPart("t", 0, 0, 1 << 20))
    assert answer is not None
    assert [m.payload for m in iter_messages(memoryview(answer)[2:])] == many


@pytest.mark.parametrize("setting", ["penstock.unpack.max.bytes", "penstock.unpack.max.records"])
def test_wrappers_around_too_much_end_their_connection(tmp_path: Path, setting: str) -> None:
    limits = {"penstock.unpack.max.bytes": 1_000_000, "penstock.unpack.max.records": 3_000}
    bombs = {
        "penstock.unpack.max.bytes": encode_set([bytes(500_000)] * 3, codec=CompressionCodec.GZIP),
        "penstock.unpack.max.records": encode_set([b""] * 3_001, codec=CompressionCodec.SNAPPY),
    }
    with Broker07(tmp_path, settings={setting: limits[setting]}) as limited, RawClient(limited) as peer:
        peer.send(encode_request(WireRequest(PRODUCE, (ProducePart("t", 0, bombs[setting]),))))
        assert peer.ask(OFFSETS, OffsetsPart("t", 0, -1, 1)) is None
        with RawClient(limited) as good:
            answer = good.ask(FETCH, FetchPart("t", 0, 0, 1 << 20))
    assert answer is not None
    assert len(answer) == 2  # nothing was stored


def test_a_fetch_is_unpacked_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "HELD_BYTES_MAX", 1_000)
    wrapper = encode_set([b"x" * 100] * 10, codec=CompressionCodec.GZIP)
    data = memoryview(wrapper * 5)
    messages, size = fetching._sound_messages(data, 700)
    assert (len(messages), size) == (10, len(wrapper))
    messages, size = fetching._sound_messages(data[size:], 700 + size)
    assert (messages[0].offset, messages[-1].next_offset) == (700 + len(wrapper), 700 + 2 * len(wrapper))
