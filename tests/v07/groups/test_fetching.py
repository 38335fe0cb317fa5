"""Tests that an error of one partition of a Kafka 0.7 broker leaves its other partitions unaffected."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import CorruptRecordError, KafkaError, PenstockError
from penstock.v07 import Broker07, Driver07
from penstock.v07.driver import BrokerAddress
from penstock.v07.groups import fetching as fetching_module
from penstock.v07.groups.coordination import BrokerPartition, parse_offset
from penstock.v07.groups.fetching import Fetcher07, FetchTarget
from penstock.v07.groups.streams import BrokerTopicPartition, ConsumedMessage, Stream
from penstock.v07.message_set import HEADER_BYTES, LENGTH_BYTES

FETCH_BYTES = 4096
INSIDE = LENGTH_BYTES + HEADER_BYTES[1]
"""A byte offset inside the first message, at its payload, where no message begins."""


def place(partition: int) -> BrokerTopicPartition:
    return "t", BrokerPartition(0, partition)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker07]:
    with Broker07(tmp_path, settings={"num.partitions": 3, "max.message.size": 10_000_000}) as running:
        yield running


@contextmanager
def fetching(
    broker: Broker07,
    offsets: dict[int, int | None],
    reset_to: str = "smallest",
    fetch_bytes: int = FETCH_BYTES,
) -> Iterator[Stream]:
    """Yield a stream that a fetcher fills from the given offsets of partitions."""
    stream = Stream("s-0", 100)

    def reset(driver: Driver07, at: BrokerTopicPartition, error: PenstockError | None) -> int:
        if error is not None and reset_to == "never":
            raise error
        return (driver.earliest if reset_to == "smallest" else driver.latest)(at[0], at[1].partition)

    generation = stream.own({})
    targets = [
        FetchTarget(place(partition), offset, stream, generation, is_proven=offset is None)
        for partition, offset in offsets.items()
    ]
    address = BrokerAddress(0, broker.host, broker.port)
    fetcher = Fetcher07(address, targets, fetch_bytes=fetch_bytes, backoff_s=0.01, timeout_s=10, reset=reset)
    fetcher.start()
    try:
        yield stream
    finally:
        stream.clear()
        fetcher.stop()


def read(stream: Stream, count: int) -> list[ConsumedMessage]:
    """Return `count` messages, sorted by partition and offset."""
    found = [stream.get(20) for _ in range(count)]
    assert None not in found
    return sorted(message for message in found if message is not None)


def read_until_error(stream: Stream, count: int) -> tuple[list[ConsumedMessage], list[PenstockError]]:
    """Read `count` messages and errors in total; return the sorted messages and the errors."""
    messages: list[ConsumedMessage] = []
    errors: list[PenstockError] = []
    while len(messages) + len(errors) < count:
        try:
            messages += read(stream, 1)
        except PenstockError as error:
            errors.append(error)
    return sorted(messages), errors


def send(broker: Broker07, partition: int, *payloads: bytes) -> None:
    with Driver07(broker.host, broker.port) as driver:
        driver.send("t", payloads, partition=partition)
        while driver.latest("t", partition) == 0:
            pass


LENGTHS = [
    0,
    1,
    3,
    5,
    6,
    100,
    FETCH_BYTES,
    100_000,
    1 << 20,
    1 << 28,
    (1 << 30) - 4,
    1 << 30,
    0x7FFFFFFF,
    -1,
    -(2**31),
]
PAYLOADS = {
    **{f"length {length}": struct.pack(">i", length) * 50 for length in LENGTHS},
    "length before much": struct.pack(">i", 1 << 20) + bytes(200_000),
    "text": b"the quick brown fox " * 20,
    "zeros": bytes(10_000),
}


@pytest.mark.parametrize("reset_to", ["smallest", "largest", "never"])
@pytest.mark.parametrize("name", PAYLOADS)
def test_an_offset_inside_a_message_stops_that_partition_alone(
    broker: Broker07, name: str, reset_to: str, caplog: pytest.LogCaptureFixture
) -> None:
    send(broker, 0, PAYLOADS[name], b"second")
    for partition in (1, 2):
        send(broker, partition, b"fine", b"as well")
    with fetching(broker, {0: INSIDE, 1: 0, 2: 0}, reset_to) as stream:
        others = [(partition, payload) for partition in (1, 2) for payload in (b"fine", b"as well")]
        own = [(0, PAYLOADS[name]), (0, b"second")] if reset_to == "smallest" else []
        if reset_to == "never":
            messages, (error,) = read_until_error(stream, 5)
            assert isinstance(error, CorruptRecordError)
            assert f"no message of t 0-0 can be read at byte {INSIDE}: " in str(error)
        else:
            messages = read(stream, 4 + len(own))
        assert sorted((each.partition, each.payload) for each in messages) == sorted([*own, *others])
        send(broker, 2, b"later")
        assert read(stream, 1)[0].payload == b"later"
        if reset_to == "largest":
            send(broker, 0, b"new")
            assert read(stream, 1)[0].payload == b"new"


def test_a_large_message_is_read_and_asked_for_by_its_own_partition_only(broker: Broker07) -> None:
    large = bytes(3_000_000)
    send(broker, 0, b"small", large, b"after")
    send(broker, 1, b"other")
    with fetching(broker, {0: 0, 1: 0}) as stream:
        found = {(each.partition, len(each.payload)) for each in read(stream, 4)}
    assert found == {(0, 5), (0, 3_000_000), (1, 5)}
    with fetching(broker, {0: 0}, fetch_bytes=1) as stream:
        assert [each.payload for each in read(stream, 3)] == [b"small", large, b"after"]


def test_a_damaged_log_fails_its_partition_with_the_byte(broker: Broker07, tmp_path: Path) -> None:
    send(broker, 0, b"whole", b"damaged")
    send(broker, 1, b"other")
    (segment,) = (tmp_path / "t-0").glob("*.kafka")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    with fetching(broker, {0: 0, 1: 0}, "never") as stream:
        messages, (error,) = read_until_error(stream, 3)
    assert [each.payload for each in messages] == [b"whole", b"other"]
    assert "t 0-0 can be read at byte 15: " in str(error)
    assert "fails its checksum" in str(error)


def test_errors_that_the_broker_answers_for_a_partition(broker: Broker07) -> None:
    send(broker, 0, b"fine")
    send(broker, 1, b"short")
    with fetching(broker, {7: 0, 0: 0, 1: 5000}, "never") as stream:
        messages, errors = read_until_error(stream, 3)
        assert [each.payload for each in messages] == [b"fine"]
        send(broker, 0, b"still")
        assert read(stream, 1)[0].payload == b"still"
    assert all(isinstance(error, KafkaError) for error in errors)
    assert "no such partition" in str(errors)
    assert "outside the log" in str(errors)


def test_an_offset_that_is_not_known_yet_is_asked_for(broker: Broker07) -> None:
    send(broker, 0, b"fine")
    with fetching(broker, {0: None}) as stream:
        assert read(stream, 1)[0].payload == b"fine"


def test_answers_have_a_limit_whatever_the_number_of_partitions(
    broker: Broker07, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching_module, "ANSWER_BYTES_MAX", 2 * FETCH_BYTES)
    with fetching(broker, {}) as stream:
        fetcher = Fetcher07(
            BrokerAddress(0, broker.host, broker.port),
            [FetchTarget(place(partition), 0, stream, 1) for partition in range(3)],
            fetch_bytes=FETCH_BYTES, backoff_s=0.01, timeout_s=10, reset=lambda *_: 0,
        )  # fmt: skip
        asked = [len(targets) for targets in fetcher._requests()]
    assert asked == [2, 1]


def test_an_unexpected_error_is_told_and_logged(
    broker: Broker07, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Fetcher07, "_take", broken)
    with fetching(broker, {0: 0}) as stream, pytest.raises(RuntimeError, match="a mistake"):
        stream.get(20)
    assert any(record.exc_info for record in caplog.records if record.levelno == logging.ERROR)


def test_stored_offsets_that_no_request_has_room_for() -> None:
    assert parse_offset(b" 9223372036854775807\n") == 2**63 - 1
    for wrong in (b"9223372036854775808", b"9" * 5000, "٣".encode(), b"1e3", b"0x1", b"-1", b""):
        with pytest.raises(PenstockError, match="not a whole number of 64 bits"):
            parse_offset(wrong)
