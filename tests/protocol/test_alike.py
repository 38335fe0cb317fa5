"""Stretches of elements of the same shape are read by other code than the rest; the result is the same."""

from __future__ import annotations

import gc
import random
import sys

import pytest

from penstock.errors import DecodeError
from penstock.protocol.alike import SHAPES_MAX, STRETCH_MIN
from penstock.protocol.classes import message_class
from penstock.protocol.codec import Codec, codec_for
from penstock.protocol.definition import parse_definition
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol import oracle
from protocol.catalogue import message


def topic_of(shapes: list[tuple[int, int, int]], chance: random.Random) -> MetadataResponse:
    """A topic with a partition for each shape: the lengths of replicas, those in sync, those offline."""

    def nodes(count: int) -> list[int]:
        return [chance.randrange(-5, 2**31) for _ in range(count)]

    partitions = [
        MetadataResponsePartition(
            error_code=chance.choice((0, 0, 5, -1)),
            partition_index=index,
            leader_id=chance.randrange(-1, 200),
            leader_epoch=chance.randrange(-1, 2**31),
            replica_nodes=nodes(replicas),
            isr_nodes=nodes(in_sync),
            offline_replicas=nodes(offline),
        )
        for index, (replicas, in_sync, offline) in enumerate(shapes)
    ]
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])


def shape_lists() -> dict[str, list[tuple[int, int, int]]]:
    chance = random.Random(7)
    any_shape = [(chance.randrange(4), chance.randrange(4), chance.randrange(3)) for _ in range(200)]
    return {
        "all alike": [(2, 2, 0)] * 100,
        "none": [],
        "one": [(3, 3, 0)],
        "just enough": [(1, 1, 0)] * (STRETCH_MIN + 1),
        "alternating": [(2, 2, 0), (2, 1, 1)] * 60,
        "stretches": [(3, 3, 0)] * 20 + [(3, 2, 1)] + [(3, 3, 0)] * 30 + [(0, 0, 0)] * 12,
        "any": any_shape,
        "more shapes than are kept": [(i % 40, i // 40, 0) for i in range(SHAPES_MAX * 2) for _ in range(10)],
        "too long to be worth it": [(70, 70, 0)] * 12,
        "long counts": [(127, 128, 0)] * 12,
    }


@pytest.mark.parametrize("version", [0, 5, 7, 8, 9, 12])
@pytest.mark.parametrize("case", list(shape_lists()))
def test_metadata_comes_back(case, version):
    _, definition = message("MetadataResponse")
    codec = codec_for(MetadataResponse, version)
    written = topic_of(shape_lists()[case], random.Random(case))
    data = codec.encode(written)
    read, end = codec.decode(data)
    assert end == len(data)
    assert (read, end) == oracle.decode(definition, version, MetadataResponse, data)
    assert codec.decode(bytearray(b"x" + data + b"more"), 1) == (read, end + 1)


@pytest.mark.parametrize("version", [8, 9])
def test_unknown_tags_and_corruption_in_the_middle_of_a_stretch(version):
    _, definition = message("MetadataResponse")
    codec = codec_for(MetadataResponse, version)
    written = topic_of([(2, 2, 0)] * 40, random.Random(1))
    if version == 9:
        written.topics[0].partitions[20].unknown_tags = {3: b"abc"}
    data = codec.encode(written)
    assert codec.decode(data)[0] == oracle.decode(definition, version, MetadataResponse, data)[0]
    chance = random.Random(2)
    for place in range(0, len(data), 3):
        broken = bytearray(data)
        broken[place] ^= chance.randrange(1, 256)
        try:
            expected = oracle.decode(definition, version, MetadataResponse, broken)
        except oracle.Malformed:
            expected = None
        try:
            found = codec.decode(broken)
        except DecodeError:
            found = None
        assert found == expected
    for size in range(0, len(data), 17):
        with pytest.raises(DecodeError):
            codec.decode(data[:size])


@pytest.mark.parametrize("version", [4, 9, 11, 12, 17])
def test_elements_without_arrays(version):
    partitions = [FetchPartition(partition=number, fetch_offset=-number) for number in range(50)]
    request = FetchRequest(topics=[FetchTopic(partitions=partitions)])
    codec = codec_for(FetchRequest, version)
    data = codec.encode(request)
    assert codec.decode(data) == (request, len(data))
    if version >= 12:
        partitions[30].unknown_tags = {9: b""}
        assert codec.decode(codec.encode(request))[0] == request


@pytest.mark.parametrize(
    "kind", ["varint16", "varint32", "unsigned_varint32", "varint64", "unsigned_varint64"]
)
@pytest.mark.parametrize("mixed", [True, False])
def test_packed_integers(kind, mixed):
    items = {"name": "Items", "type": "[]Item", "versions": "0+", "fields": [
        {"name": "One", "type": kind, "versions": "0+"},
        {"name": "Fixed", "type": "int16", "versions": "0+"},
        {"name": "Many", "type": f"[]{kind}", "versions": "0+"},
        {"name": "Id", "type": "uuid", "versions": "0+"},
    ]}  # fmt: skip
    if not mixed:
        items["fields"] = items["fields"][::2]
    source = {
        "name": "Packed",
        "type": "data",
        "validVersions": "0-1",
        "flexibleVersions": "1+",
        "fields": [items],
    }
    cls = message_class(parse_definition(source, "packed"))
    item = vars(sys.modules[cls.__module__])["Item"]
    chance = random.Random(kind)
    numbers = (0, 1, 2, -1, 63, -64, 64, 127, 128, 9000, -9000)
    made = [
        item(
            one=chance.choice(numbers[:6] if number % 20 else numbers),
            many=[chance.choice(numbers[:8]) for _ in range(2 if number % 13 else 3)],
            **({"fixed": chance.choice(numbers), "id": chance.randbytes(16)} if mixed else {}),
        )
        for number in range(150)
    ]
    for version in (0, 1):
        data = cls(items=made).encode(version)
        assert data == oracle.encode(cls.DEFINITION, version, cls(items=made))
        for _ in range(3):  # a shape is compiled when it is met again
            assert cls.decode(data, version) == cls(items=made)
        for end in range(0, len(data), 23):
            with pytest.raises(DecodeError):
                cls.decode(data[:end], version)


@pytest.mark.parametrize("kind", ["varint32", "unsigned_varint32"])
@pytest.mark.parametrize("highest", [63, 127, 16383])
def test_long_stretches_of_small_numbers_with_and_without_negative_ones(kind, highest):
    item = {"name": "Items", "type": "[]Item", "versions": "0+", "fields": [
        {"name": "One", "type": kind, "versions": "0+"},
        {"name": "Many", "type": f"[]{kind}", "versions": "0+"},
    ]}  # fmt: skip
    source = {
        "name": "Packed",
        "type": "data",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [item],
    }
    cls = message_class(parse_definition(source, "packed"))
    item_class, chance = vars(sys.modules[cls.__module__])["Item"], random.Random(highest)
    for lowest in (0, -1, -64):
        made = [
            item_class(one=chance.randint(highest - 60, highest), many=[max(lowest, number - 70), 1])
            for number in range(140)
        ]
        data = cls(items=made).encode(0)
        for sent in (data, memoryview(data)):
            for _ in range(3):
                assert cls.decode(sent, 0) == cls(items=made)


@pytest.mark.parametrize("version", [2, 6, 8])
def test_texts(version):
    """Texts of one length, empty ones and nulls are part of a shape."""
    _, definition = message("OffsetCommitRequest")
    texts = ["", None, "a", "b", "ü", "same", "\U0001f985" * 3, "x" * 127, "y" * 600]
    chance = random.Random(version)
    partitions = []
    for text in chance.choices(texts, k=60):
        for _ in range(chance.choice((1, 2, 9))):
            offset = chance.randrange(-1, 2**63)
            partitions.append(OffsetCommitRequestPartition(committed_offset=offset, committed_metadata=text))
    written = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    codec = codec_for(OffsetCommitRequest, version)
    data = codec.encode(written)
    for _ in range(3):
        assert codec.decode(data) == (written, len(data))
    place = data.index("\U0001f985".encode())
    for change in (0x80, 0x41, 0xFF):  # no longer UTF-8, or other text
        broken = bytearray(data)
        broken[place + 1] = change
        try:
            expected = oracle.decode(definition, version, OffsetCommitRequest, broken)
        except oracle.Malformed:
            with pytest.raises(DecodeError):
                codec.decode(broken)
        else:
            assert codec.decode(broken) == expected


def test_short_stretches_in_a_long_array_cost_no_look_at_all_that_follows():
    """Shapes that alternate must not make the time grow with the square of the length."""
    texts = ["" if number // 6 % 2 else "a" for number in range(6000)]
    partitions = [OffsetCommitRequestPartition(committed_metadata=text) for text in texts]
    written = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    codec = Codec(OffsetCommitRequest, 3)
    data = codec.encode(written)
    assert codec.decode(data)[0] == written
    reader = codec.decode.__globals__["read_alike_OffsetCommitRequestPartition"]
    asked = []

    def watched(read):
        def watch(data, position, count):
            asked.append(count)
            return read(data, position, count)

        return watch

    reader._course = []
    reader._shapes = {shape: (watched(read), size) for shape, (read, size) in reader._shapes.items()}
    assert codec.decode(data)[0] == written
    assert asked
    assert sum(asked) < 20 * len(texts)


def test_arrays_of_any_length_follow_the_same_course():
    codec = Codec(OffsetCommitRequest, 3)
    for length in (50, 50, 200, 7, 200, 0, 1, 3000, 40):
        partitions = [OffsetCommitRequestPartition(partition_index=number) for number in range(length)]
        written = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
        assert codec.decode(codec.encode(written))[0] == written
    reader = codec.decode.__globals__["read_alike_OffsetCommitRequestPartition"]
    assert [length for _, _, length in reader._course] == [3000]


def test_large_messages_leave_the_garbage_collector_as_it_was():
    data = topic_of([(2, 2, 0)] * 4000, random.Random(3)).encode(9)
    codec = codec_for(MetadataResponse, 9)
    for before in (True, False):
        (gc.enable if before else gc.disable)()
        try:
            codec.decode(data)
            assert gc.isenabled() is before
            with pytest.raises(DecodeError):
                codec.decode(data[:-3])
            assert gc.isenabled() is before
        finally:
            gc.enable()


def test_the_course_of_an_array_is_learnt_and_learnt_again():
    source = {
        "name": "Numbers",
        "type": "data",
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": [
            {"name": "Lines", "type": "[]Line", "versions": "0+", "fields": [
                {"name": "Cells", "type": "[]Cell", "versions": "0+", "fields": [
                    {"name": "Near", "type": "varint32", "versions": "0+"},
                    {"name": "Far", "type": "unsigned_varint64", "versions": "0+"},
                ]},
            ]},
        ],
    }  # fmt: skip
    cls = message_class(parse_definition(source, "numbers"))
    module = sys.modules[cls.__module__]
    codec, chance = codec_for(cls, 0), random.Random(3)

    def line(numbers: list[int]):
        return module.Line(cells=[module.Cell(near=each, far=each % 200) for each in numbers])

    even = cls(lines=[line(list(range(100)))] * 3)
    for _ in range(4):
        assert codec.decode(codec.encode(even))[0] == even
    reader = codec.decode.__globals__["read_alike_Cell"]
    assert [length for _, _, length in reader._course] == [64, 36]
    for _ in range(100):
        starts = [chance.choice((-70, 0, 50, 60, 8180, 2**20)) for _ in range(chance.randrange(1, 6))]
        lines = [line(list(range(start, start + chance.randrange(90)))) for start in starts]
        message = cls(lines=[*lines, line([chance.randrange(200) for _ in range(30)])])
        assert codec.decode(codec.encode(message))[0] == message
