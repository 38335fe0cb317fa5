"""Tests of the Kafka 0.7 broker over sockets, with all edge cases that were observed in release 0.7.2."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ConfigError, NetworkError, StorageError
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07 import server
from penstock.v07.message_set import encode_message, encode_set, iter_messages
from penstock.v07.server import Broker07
from penstock.v07.wire import FetchPart, OffsetsPart, ProducePart, RequestType, WireRequest, encode_request
from v07.raw_client import RawClient

PRODUCE, FETCH, MULTIFETCH, MULTIPRODUCE, OFFSETS = RequestType

SETTINGS = {"num.partitions": 2, "max.message.size": 1_000, "topic.partition.count.map": "wide:5"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker07]:
    with Broker07(tmp_path / "logs", settings=SETTINGS) as running:
        yield running


@pytest.fixture
def client(broker: Broker07) -> Iterator[RawClient]:
    with RawClient(broker) as connected:
        yield connected


def produce(client: RawClient, data: bytes, topic: str = "t", partition: int = 0) -> bytes | None:
    return client.ask(PRODUCE, ProducePart(topic, partition, data))


def end(broker: Broker07, topic: str = "t", partition: int = 0) -> int:
    with RawClient(broker) as client:
        answer = client.ask(OFFSETS, OffsetsPart(topic, partition, -1, 1))
    assert answer is not None
    return int.from_bytes(answer[6:14], "big")


def exists(broker: Broker07, topic: str) -> bool:
    return any(name.name.startswith(f"{topic}-") for name in Path(broker.data_dir).iterdir() if name.is_dir())


def test_what_is_produced_is_fetched_as_it_is(client: RawClient) -> None:
    data = encode_set([b"hello", b"world!"])
    assert produce(client, data, "test") == b""
    assert client.ask(FETCH, FetchPart("test", 0, 0, 300)) == b"\0\0" + data
    assert client.ask(FETCH, FetchPart("test", 0, 0, 20)) == b"\0\0" + data[:20]
    assert client.ask(FETCH, FetchPart("test", 0, 15, 300)) == b"\0\0" + data[15:]
    assert client.ask(FETCH, FetchPart("test", 0, 31, 300)) == b"\0\0"
    assert client.ask(FETCH, FetchPart("test", 0, 32, 300)) == b"\0\1"
    assert client.ask(OFFSETS, OffsetsPart("test", 0, -1, 10)) == bytes.fromhex(
        "0000 00000002 000000000000001f" + 16 * "0"
    )


FETCHES = {
    "unknown topic": (FetchPart("none", 0, 77, 10), "0000"),
    "valid partition without a log": (FetchPart("t", 1, 77, 10), "0000"),
    "partition beyond the count": (FetchPart("t", 2, 0, 10), "0003"),
    "partition -1": (FetchPart("t", -1, 0, 10), "0003"),
    "no topic": (FetchPart("", 0, 0, 10), "ffff"),
    "topic with a slash": (FetchPart("a/b", 0, 0, 10), "ffff"),
    "topic ..": (FetchPart("..", 0, 0, 10), "ffff"),
    "topic too long": (FetchPart("x" * 256, 0, 0, 10), "ffff"),
    "at the end": (FetchPart("t", 0, 11, 10), "0000"),
    "beyond the end": (FetchPart("t", 0, 12, 10), "0001"),
    "negative offset": (FetchPart("t", 0, -1, 10), "0001"),
    "inside a message": (FetchPart("t", 0, 9, 10), "00008378"),
    "max size 0": (FetchPart("t", 0, 0, 0), "0000"),
    "max size 2": (FetchPart("t", 0, 0, 2), "00000000"),
    "max size negative": (FetchPart("t", 0, 0, -5), "0004"),
}


@pytest.mark.parametrize("name", FETCHES)
def test_fetches(client: RawClient, name: str) -> None:
    produce(client, encode_set([b"x"]))
    part, answer = FETCHES[name]
    assert client.ask(FETCH, part) == bytes.fromhex(answer)
    assert client.alive() == b""


OFFSET_LISTS = {
    "unknown topic, latest": (OffsetsPart("none", 0, -1, 5), [0]),
    "unknown topic, earliest, no room": (OffsetsPart("none", 0, -2, 0), [0]),
    "unknown topic, a time": (OffsetsPart("none", 0, 1 << 60, 5), []),
    "latest": (OffsetsPart("t", 0, -1, 5), [11, 0]),
    "latest, one": (OffsetsPart("t", 0, -1, 1), [11]),
    "earliest": (OffsetsPart("t", 0, -2, 5), [0]),
    "the future": (OffsetsPart("t", 0, 1 << 60, 5), [11, 0]),
    "the distant past": (OffsetsPart("t", 0, 1, 5), []),
    "another negative time": (OffsetsPart("t", 0, -3, 5), []),
    "no room": (OffsetsPart("t", 0, -1, 0), []),
    "negative count": (OffsetsPart("t", 0, -1, -1), None),
    "no such partition": (OffsetsPart("t", 2, -1, 1), None),
    "no such topic name": (OffsetsPart("a/b", 0, -1, 1), None),
}


@pytest.mark.parametrize("name", OFFSET_LISTS)
def test_offsets(broker: Broker07, client: RawClient, name: str) -> None:
    produce(client, encode_set([b"x"]))
    part, offsets = OFFSET_LISTS[name]
    answer = client.ask(OFFSETS, part)
    if offsets is None:
        assert answer is None
        return
    body = b"".join(offset.to_bytes(8, "big") for offset in offsets)
    assert answer == b"\0\0" + len(offsets).to_bytes(4, "big") + body
    assert not exists(broker, "none")


GOOD = encode_set([b"good"])
BAD_CRC = bytes.fromhex("00000007 0100 8cdc1684 78")
PRODUCED = {
    "an empty set": (b"", 0, True),
    "a bad checksum among good ones": (GOOD + BAD_CRC, 0, False),
    "magic 2": (GOOD + bytes.fromhex("00000007 0200 8cdc1683 78"), 0, False),
    "codec 3": (GOOD + bytes.fromhex("00000007 0103 8cdc1683 78"), 0, False),
    "an unused attribute bit": (bytes.fromhex("00000007 0180 8cdc1683 78"), 11, True),
    "the largest payload": (encode_set([bytes(1_000)]), 1_010, True),
    "one byte more": (encode_set([b"ok", bytes(1_001)]), 0, True),
    "a complete and a cut one": (GOOD + GOOD[:9], len(GOOD), True),
    "a complete one and 3 stray bytes": (GOOD + b"\0\0\0", len(GOOD), True),
    "only a cut one": (GOOD[:9], 0, False),
    "a complete one and a negative length": (GOOD + b"\xff\xff\xff\xff", 0, False),
    "length 0": (bytes(4), 0, False),
    "length 3": (bytes.fromhex("00000003 010000"), 0, False),
    "fewer than 4 bytes": (b"\0\0", 0, True),
    "no payload": (encode_set([b""]), 10, True),
    "a wrapper with a bad checksum inside": (
        encode_message(gzip.compress(BAD_CRC), codec=CompressionCodec.GZIP),
        0,
        False,
    ),
    "a wrapper that is not gzip": (encode_message(b"nonsense", codec=CompressionCodec.GZIP), 0, False),
}


@pytest.mark.parametrize("name", PRODUCED)
def test_produced_sets(broker: Broker07, client: RawClient, name: str) -> None:
    data, stored, stays_open = PRODUCED[name]
    assert produce(client, data) == (b"" if stays_open else None)
    assert end(broker) == stored
    assert exists(broker, "t")


def test_wrappers_count_by_their_own_size(broker: Broker07, client: RawClient) -> None:
    cut_inside = encode_message(gzip.compress(GOOD + GOOD[:7], mtime=0), codec=CompressionCodec.GZIP)
    assert produce(client, cut_inside) == b""
    expands = encode_set([bytes(50_000)], codec=CompressionCodec.GZIP)
    assert produce(client, expands) == b""
    assert end(broker) == len(cut_inside) + len(expands)


@pytest.mark.parametrize(
    ("topic", "partition"), [("t", 2), ("t", -2), ("a/b", 0), ("", 0), ("x" * 256, 0), (".", 0)]
)
def test_where_nothing_can_be_produced_nothing_is_created(
    broker: Broker07, client: RawClient, topic: str, partition: int
) -> None:
    before = sorted(Path(broker.data_dir).iterdir())
    assert produce(client, GOOD, topic, partition) is None
    assert sorted(Path(broker.data_dir).iterdir()) == before


@pytest.mark.parametrize("topic", ["with-dash", "with space", "größe", "x" * 250])
def test_unusual_names_are_topics(broker: Broker07, client: RawClient, topic: str) -> None:
    assert produce(client, GOOD, topic, 1) == b""
    assert end(broker, topic, 1) == len(GOOD)


def test_partition_minus_one_is_any(broker: Broker07, client: RawClient) -> None:
    for _ in range(60):
        produce(client, GOOD, "wide", -1)
    ends = [end(broker, "wide", partition) // len(GOOD) for partition in range(5)]
    assert sum(ends) == 60
    assert all(ends)


def test_several_at_once(client: RawClient) -> None:
    x, yz = encode_set([b"x"]), encode_set([b"yz"])
    assert client.ask(MULTIPRODUCE, ProducePart("ma", 0, x), ProducePart("mb", 1, yz)) == b""
    parts = [FetchPart("ma", 0, 0, 100), FetchPart("mb", 1, 0, 100), FetchPart("mb", 7, 0, 100)]
    expected = b"\0\0" + b"\0\0\0\x0d\0\0" + x + b"\0\0\0\x0e\0\0" + yz + b"\0\0\0\x02\0\x03"
    assert client.ask(MULTIFETCH, *parts) == expected
    assert client.ask(MULTIFETCH) == b"\0\0"


def test_the_first_bad_part_ends_a_multiproduce(broker: Broker07, client: RawClient) -> None:
    too_large = encode_set([bytes(1_001)])
    parts = [ProducePart("a", 0, GOOD), ProducePart("b", 0, too_large), ProducePart("c", 0, GOOD)]
    assert client.ask(MULTIPRODUCE, *parts, ProducePart("d", 0, BAD_CRC), ProducePart("e", 0, GOOD)) is None
    assert [end(broker, topic) for topic in "abcde"] == [14, 0, 14, 0, 0]


def test_large_answers_go_out_whole(client: RawClient) -> None:
    data = encode_set([b"%07d" % number * 100 for number in range(1_000)])
    for start in range(0, len(data), 71_000):
        produce(client, data[start : start + 71_000], "big")
    answer = client.ask(FETCH, FetchPart("big", 0, 0, 1 << 20))
    assert answer is not None
    assert len(answer) > 600_000
    assert [m.payload for m in iter_messages(answer[2:])] == [m.payload for m in iter_messages(data)][:1000]
    both = client.ask(MULTIFETCH, FetchPart("big", 0, 0, 100_000), FetchPart("big", 0, 0, 10))
    assert (
        both
        == b"\0\0" + (100_002).to_bytes(4, "big") + b"\0\0" + data[:100_000] + b"\0\0\0\x0c\0\0" + data[:10]
    )


@pytest.mark.parametrize(
    "frame",
    [
        "00000000",
        "ffffffff",
        "7fffffff",
        "00000002 0005",
        "00000002 ffff",
        "00000001 00",
        "00000008 0001 0004 74657374",
    ],
)
def test_frames_that_make_no_sense_end_the_connection(
    broker: Broker07, client: RawClient, frame: str
) -> None:
    client.send(bytes.fromhex(frame))
    assert client.answer() is None
    with RawClient(broker) as other:
        assert other.alive() == b""


def test_random_bytes_harm_nobody_else(broker: Broker07) -> None:
    dice = random.Random(11)
    with RawClient(broker) as good:
        for _ in range(100):
            with RawClient(broker) as bad:
                body = bytes([0, dice.randrange(5)]) + dice.randbytes(dice.randrange(60))
                bad.send(len(body).to_bytes(4, "big") + body + dice.randbytes(3))
        assert produce(good, GOOD) == b""
    assert end(broker) == len(GOOD)


def test_requests_in_one_piece_are_answered_in_order(client: RawClient) -> None:
    produce(client, GOOD)
    fetch = bytes.fromhex("00000015 0001 0001 74 00000000 0000000000000000 000000") + b"\x04"
    client.send(fetch + bytes.fromhex("00000004 0002 0000") + fetch)
    assert [client.answer() for _ in range(3)] == [b"\0\0" + GOOD[:4], b"\0\0", b"\0\0" + GOOD[:4]]


def test_a_restart_keeps_everything(tmp_path: Path) -> None:
    broker = Broker07(tmp_path / "logs", settings=SETTINGS)
    for count in (1, 2, 3):
        with broker, RawClient(broker) as client:
            produce(client, GOOD)
            assert end(broker) == count * len(GOOD)
        assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "logs" / "t-0" / "00000000000000000000.kafka").read_bytes() == GOOD * 3


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no setting 'num.partition'; did you mean num\.partitions\?"):
        Broker07(tmp_path, settings={"num.partition": 3})
    with pytest.raises(ConfigError, match="brokerid is a whole number"):
        Broker07(tmp_path, settings={"brokerid": "one"})
    with pytest.raises(ConfigError, match=r"topic:number,topic:number; 'x' is not"):
        Broker07(tmp_path, settings={"topic.partition.count.map": "a:1,x"})
    with Broker07(tmp_path / "a") as broker, pytest.raises(NetworkError, match="cannot listen for Kafka"):
        Broker07(tmp_path / "b", port=broker.port).start()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        Broker07(tmp_path / "file").start()


def test_what_has_arrived_is_kept_when_the_broker_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka 0.7 has no acknowledgements, so a producer could not notice a loss."""
    monkeypatch.setattr(server, "DRAIN_S", 120.0)  # a busy machine needs longer for 3 MB than a second
    data = encode_set([b"x" * 900] * 1_000)
    for number in range(10):
        with Broker07(tmp_path / str(number)) as broker:
            for _ in range(3):
                with RawClient(broker) as client:
                    client.send(encode_request(WireRequest(PRODUCE, (ProducePart("t", 0, data),))))
        kept = sum(path.stat().st_size for path in (tmp_path / str(number) / "t-0").iterdir())
        assert kept == 3 * len(data)
