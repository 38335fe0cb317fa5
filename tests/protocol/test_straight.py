"""Straight code for messages that look like the one before: never another value than usual."""

from __future__ import annotations

import random

import pytest

from penstock.errors import DecodeError
from penstock.protocol.codec import Codec, codec_for
from penstock.protocol.messages import FetchResponse, ProduceRequest
from penstock.protocol.messages.fetch_response import FetchableTopicResponse, PartitionData
from penstock.protocol.messages.produce_request import PartitionProduceData, TopicProduceData
from penstock.protocol.straight import (
    MISSES_MAX,
    OUTLINES_MAX,
    TEXT_BYTES_MAX,
    WATCH_AFTER,
    WATCHED_MAX,
    Learner,
    Outline,
    TooVaried,
)
from protocol.catalogue import NAMES, versions
from protocol.samples import sample

WITH_RECORDS = [
    name for name in NAMES if any(codec_for(c, v).layout.holds_records for c, _, v in versions(name))
]


class Missed(Exception):
    pass


def straight(codec: Codec, message):
    """The straight code for the outline of a message; what does not fit is `Missed`."""

    def missed(data, position):
        raise Missed

    from penstock.protocol.compile import classes_of

    outline = Outline()
    outline.message(codec.layout, message)
    return outline.compile(outline.source(), "a test", classes_of(codec.message_class), missed)


def decoded(codec: Codec, data):
    try:
        return codec.decode(data)
    except DecodeError:
        return None


def produce(topic: str, records: bytes | None, partitions: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=number, records=records) for number in range(partitions)]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=data)])


@pytest.mark.parametrize("name", WITH_RECORDS)
def test_the_same_value_from_the_same_bytes_or_none(name):
    read = 0
    for message_class, definition, version in versions(name):
        codec = Codec(message_class, version)
        for seed in range(12):
            message = sample(message_class, definition, version, seed)
            data = codec.encode(message)
            found, size = codec.decode(data)
            try:
                function = straight(codec, found)
            except TooVaried:
                continue
            chance = random.Random(seed)
            for source in (data, bytearray(data), memoryview(data), data + b"more"):
                try:
                    assert function(source) == (found, size)
                except Missed:
                    # Tagged fields are left to the ordinary code.
                    assert codec.encode(message_class()) != data
                else:
                    read += 1
            for place in range(len(data)):
                broken = bytearray(data)
                broken[place] ^= chance.randrange(1, 256)
                for part in (broken, data[:place]):
                    try:
                        made = function(part)
                    except Missed:
                        continue
                    assert made == decoded(codec, part)
    assert read


def test_it_is_learnt_from_two_in_a_row_and_used():
    for version in (3, 8, 9, 12):
        codec = Codec(ProduceRequest, version)
        for number in range(WATCH_AFTER + 2):
            codec.decode(codec.encode(produce("flights", bytes(number))))
        assert not isinstance(codec.decode, Learner)
        for size in (0, 1, 126, 127, 128, 70_000):
            message = produce("flights", bytes(size))
            data = codec.encode(message)
            for source in (data, memoryview(data)):
                made, end = codec.decode(source)
                assert (made, end) == (message, len(data))
                assert isinstance(made.topic_data[0].partition_data[0].records, memoryview)
        for other in (produce("flight", b""), produce("flights", b"r", 3), produce("flights", None)):
            assert codec.decode(b"abc" + codec.encode(other), 3)[0] == other
        with pytest.raises(DecodeError, match=f"ProduceRequest v{version}: cut short"):
            codec.decode(codec.encode(produce("flights", b"records"))[:-9])


def test_fetched_records_are_views_and_structs_are_not_shared():
    codec = Codec(FetchResponse, 12)
    partition = PartitionData(partition_index=3, records=b"records")
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    data = bytearray(codec.encode(message))
    for _ in range(WATCH_AFTER + 3):
        made, _ = codec.decode(data)
    again, _ = codec.decode(data)
    one, two = (each.responses[0].partitions[0] for each in (made, again))
    one.aborted_transactions.append(None)
    one.current_leader.leader_id = 5
    assert (two.aborted_transactions, two.current_leader.leader_id) == ([], -1)
    two.records[:1] = b"R"
    assert b"Records" in data


def test_outlines_that_change_are_learnt_again_and_given_up_in_the_end():
    codec = Codec(ProduceRequest, 9)

    def send(topic: str, times: int) -> None:
        for _ in range(times):
            assert codec.decode(codec.encode(produce(topic, b"r")))[0] == produce(topic, b"r")

    ordinary = None
    for number in range(OUTLINES_MAX):
        send("t" * (1 + number), WATCH_AFTER + MISSES_MAX + 2)
        assert not isinstance(codec.decode, Learner)
        assert codec.decode is not ordinary
        ordinary = codec.decode
    send("another", MISSES_MAX + 1)
    given_up = codec.decode
    send("one more", 2 * MISSES_MAX)
    assert codec.decode is given_up


def test_what_is_never_twice_the_same_is_given_up():
    codec = Codec(ProduceRequest, 9)
    for number in range(WATCH_AFTER + WATCHED_MAX):
        codec.decode(codec.encode(produce("t" * (1 + number), b"r")))
    assert not isinstance(codec.decode, Learner)
    large = produce("t" * (TEXT_BYTES_MAX + 1), b"r")
    with pytest.raises(TooVaried):
        Outline().message(codec.layout, large)
    with pytest.raises(TooVaried):
        Outline().message(codec.layout, produce("t", b"r", 100))
