"""Tests that send requests of the first protocol documents to a cluster that has dropped their versions.

The bytes are encoded and decoded by hand (`documents.raw`), by the grammar of "A Guide To The Kafka Protocol"
and of the page on JoinGroup.
"""

from __future__ import annotations

import gzip
import itertools

import pytest

from broker.wire_client import WireClient
from documents.guide import commit, committed, fetch, metadata, offsets, produce, produce_body
from documents.raw import (
    JOIN,
    PRODUCE,
    Reader,
    array,
    data,
    i8,
    i16,
    i32,
    i64,
    message,
    message_set,
    messages_in,
    string,
)
from gateway.old_client import OldClient, await_leaders
from penstock.protocol.api import ApiKey
from penstock.protocol.releases import api_versions

NAMES = itertools.count()

SOME_DAY = {**api_versions("4.3"), ApiKey.METADATA: (1, 13), ApiKey.PRODUCE: (3, 13)}


class Bytes:
    """A stand-in for `Raw` that passes request bodies to the gateway's translation instead of a socket."""

    def __init__(self, old: OldClient) -> None:
        self.old = old

    def ask(self, api: int, body: bytes, version: int = 0) -> Reader:
        answer = self.old.ask_bytes(api, version, body)
        assert answer is not None
        return Reader(answer)


@pytest.fixture
def raw(new: WireClient) -> Bytes:
    return Bytes(OldClient(new, SOME_DAY))


@pytest.fixture
def topic(new: WireClient) -> str:
    name = f"seed{next(NAMES)}"
    await_leaders(new, name)
    return name


def test_produce_and_fetch(raw: Bytes, topic: str) -> None:
    place = (topic, 0)
    sent = message_set(message(b"one"), message(None, b"key"), message(b"", b""), offsets=[7, 7, 7])
    assert produce(raw, {place: sent}) == {place: (0, 0)}
    assert produce(raw, {place: sent}) == {place: (0, 3)}
    error, watermark, found = fetch(raw, {place: 0})[place]
    assert (error, watermark) == (0, 6)
    expected = message_set(*[message(b"one"), message(None, b"key"), message(b"", b"")] * 2)
    assert found == expected, "every byte of magic 0 is as it was sent, but for the offsets"
    # "the server is allowed to return a partial message at the end of the message set"
    for most in range(len(expected) + 1):
        part = fetch(raw, {place: 0}, most=most)[place][2]
        assert expected[:most].startswith(part)
        assert len(part) >= min(most, len(message_set(message(b"one"))))
    assert fetch(raw, {place: 4})[place][2] == message_set(
        message(None, b"key"), message(b"", b""), offsets=[4, 5]
    )
    assert fetch(raw, {place: 6})[place] == (0, 6, b"")
    assert fetch(raw, {place: 9})[place][0] == 1


def test_a_compressed_message_set(raw: Bytes, topic: str) -> None:
    """A message with a codec in its attributes has a compressed message set as value."""
    place = (topic, 0)
    inner = message_set(message(b"a", b"k"), message(b"b"), message(None))
    sent = message_set(message(gzip.compress(inner), attributes=1))
    assert produce(raw, {place: sent}) == {place: (0, 0)}
    (row,), rest = messages_in(fetch(raw, {place: 0})[place][2])
    offset, attributes, key, value = row
    assert (offset, attributes, key, rest) == (2, 1, None, b"")
    assert value is not None
    assert gzip.decompress(value) == inner


def test_messages_of_magic_1(raw: Bytes, topic: str) -> None:
    """Fetch 2 returns timestamps in the layout of KIP-32: CRC, magic, attributes, timestamp, key, value."""
    import zlib

    def dated(value: bytes, time: int) -> bytes:
        rest = i8(1) + i8(0) + i64(time) + data(b"k") + data(value)
        return zlib.crc32(rest).to_bytes(4, "big") + rest

    sent = message_set(dated(b"x", 1234567890123), dated(b"y", -1))
    body = produce_body({(topic, 0): sent})
    answer = raw.ask(PRODUCE, body, 2)
    head = (answer.i32(), answer.name(), answer.i32(), answer.i32(), answer.i16(), answer.i64(), answer.i64())
    assert head == (1, topic, 1, 0, 0, 0, -1)
    assert answer.i32() == 0  # throttle time
    answer.end()
    asked = i32(-1) + i32(0) + i32(0) + array([string(topic) + array([i32(0) + i64(0) + i32(1 << 20)])])
    answer = raw.ask(ApiKey.FETCH, asked, 2)
    assert (answer.i32(), answer.i32(), answer.name(), answer.i32()) == (0, 1, topic, 1)
    assert (answer.i32(), answer.i16(), answer.i64(), answer.data()) == (0, 0, 2, sent)
    answer.end()


def test_what_is_wrong(raw: Bytes, topic: str) -> None:
    bad = message_set(message(b"x", crc=1))
    assert produce(raw, {(topic, 0): bad, ("missing", 0): message_set(message(b"x"))}) == {
        (topic, 0): (2, -1),
        ("missing", 0): (3, -1),
    }
    assert raw.old.ask_bytes(PRODUCE, 0, produce_body({(topic, 0): message_set(message(b"x"))}, 0)) is None
    assert len(messages_in(fetch(raw, {(topic, 0): 0})[topic, 0][2])[0]) == 1


def test_offsets(raw: Bytes, topic: str) -> None:
    assert offsets(raw, (topic, 0), -1) == (0, [0])
    produce(raw, {(topic, 0): message_set(message(b"x"), message(b"y"))})
    assert offsets(raw, (topic, 0), -1, 1) == (0, [2])
    assert offsets(raw, (topic, 0), -1) == (0, [2, 0])
    assert offsets(raw, (topic, 0), -2) == (0, [0])
    assert offsets(raw, ("missing", 0), -2) == (3, [])


def test_committed_offsets(raw: Bytes, topic: str) -> None:
    place = (topic, 0)
    assert committed(raw, "seed", place) == (-1, b"", 3)
    assert commit(raw, "seed", place, 42, "a note") == 0
    assert committed(raw, "seed", place) == (42, b"a note", 0)
    assert commit(raw, "seed", (topic, 99), 42, None) == 3


def test_metadata(raw: Bytes, topic: str) -> None:
    found = metadata(raw)
    assert found.errors[topic] == 0
    assert found.partitions[topic, 0].leader in found.brokers
    named = metadata(raw, topic)
    assert named.errors == {topic: 0}
    assert named.brokers == found.brokers


@pytest.mark.parametrize("version", [0, 1])
def test_join_group(new: WireClient, version: int) -> None:
    """JoinGroup 0 and 1 work with a cluster of 4.0, which accepts only versions 2 to 9.

    The requests follow the page on JoinGroup.
    """
    raw = Bytes(OldClient(new, api_versions("4.0")))
    group = f"seed-{version}"
    body = string(group) + i32(6000)
    if version:
        body += i32(30_000)
    body += string("") + string("consumer") + array([string("range") + data(i16(0) + array([string("t")]))])
    answer = raw.ask(JOIN, body, version)
    error, generation, protocol = answer.i16(), answer.i32(), answer.name()
    leader, member = answer.name(), answer.name()
    assert (error, generation, protocol) == (0, 1, "range")
    assert leader == member
    assert answer.array(lambda: (answer.name(), answer.data())) == [(member, i16(0) + array([string("t")]))]
    answer.end()
