"""Tests of Kafka 0.7 message sets: real examples, partial or compressed messages, and garbage."""

from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import CorruptRecordError, EncodeError, UnpackLimitError
from penstock.records.compression.codecs import CompressionCodec
from penstock.v07.message_set import (
    FetchSizeTooSmall,
    complete_size,
    encode_message,
    encode_set,
    iter_messages,
    judge,
    sound_size,
)

VECTORS = [
    (b"hello", 1, "00 00 00 0b 01 00 36 10 a6 86 68 65 6c 6c 6f"),
    (b"zero", 0, "00 00 00 09 00 ab de f1 92 7a 65 72 6f"),
    (b"testing", 1, "00 00 00 0d 01 00 e8 f3 5a 06 74 65 73 74 69 6e 67"),
    (b"one", 1, "00 00 00 09 01 00 7a 6c 86 f1 6f 6e 65"),
    (b"two", 1, "00 00 00 09 01 00 11 ca 8a 66 74 77 6f"),
    (b"three", 1, "00 00 00 0b 01 00 46 c5 d8 f5 74 68 72 65 65"),
    (b"ale", 0, "00 00 00 08 00 42 c4 c9 79 61 6c 65"),
    (b"", 1, "00 00 00 06 01 00 00 00 00 00"),
    (b"a1", 1, "00 00 00 08 01 00 6c e1 48 23 61 31"),
]

GZIP_WRAPPER = bytes.fromhex(
    """00 00 00 2f 01 01 aa af af 81 1f 8b 08 00 00 00 00 00 00 ff 63 60 60 e0 60 64 c8 79 e8 a1 9c
    68 c8 00 66 7f 7d 21 39 33 d1 08 00 76 4f 2a 18 18 00 00 00"""
)
SNAPPY_WRAPPER = bytes.fromhex(
    """00 00 00 34 01 02 33 19 27 25 82 53 4e 41 50 50 59 00 00 00 00 01 00 00 00 01 00 00 00 1a
    18 5c 00 00 00 08 01 00 6c e1 48 23 61 31 00 00 00 08 01 00 f5 e8 19 99 61 32"""
)


def payloads(data: bytes) -> list[bytes]:
    return [message.payload for message in iter_messages(data)]


@pytest.mark.parametrize(("payload", "magic", "text"), VECTORS)
def test_the_examples_of_the_field(payload: bytes, magic: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert encode_message(payload, magic=magic) == data
    assert payloads(data) == [payload]
    assert [judge(memoryview(data)).size, sound_size(memoryview(data))] == [len(data)] * 2
    for size in range(4, len(data)):
        with pytest.raises(FetchSizeTooSmall) as caught:
            payloads(data[:size])
        assert caught.value.needed_bytes == len(data)
        assert payloads(data + data[:size]) == [payload]
        assert complete_size(memoryview(data + data[:size])) == len(data)


@pytest.mark.parametrize("wrapper", [GZIP_WRAPPER, SNAPPY_WRAPPER])
def test_wrappers_that_the_first_library_wrote(wrapper: bytes) -> None:
    assert payloads(wrapper) == [b"a1", b"a2"]
    assert judge(memoryview(wrapper)) == (len(wrapper), 1, len(wrapper) - 10)


def test_readers_resume_behind_the_outermost_message_only() -> None:
    data = (
        encode_set([b"x"])
        + encode_set([b"a1", b"a2", b"a3"], codec=CompressionCodec.GZIP)
        + encode_set([b"y"])
    )
    end = len(data) - 11
    assert [(m.payload, m.offset, m.next_offset) for m in iter_messages(data, 1000)] == [
        (b"x", 1000, 1011),
        (b"a1", 1011, 1011),
        (b"a2", 1011, 1011),
        (b"a3", 1011, 1000 + end),
        (b"y", 1000 + end, 1000 + end + 11),
    ]


def test_wrappers_nest_and_mix() -> None:
    inner = encode_set([b"2", b"3"], codec=CompressionCodec.SNAPPY)
    mixed = encode_set([b"1"], magic=0) + inner + encode_set([b"4"])
    outer = encode_message(gzip.compress(mixed), codec=CompressionCodec.GZIP)
    found = list(iter_messages(outer + encode_set([b"5"])))
    assert [message.payload for message in found] == [b"1", b"2", b"3", b"4", b"5"]
    assert [message.next_offset for message in found] == [0, 0, 0, len(outer), len(outer) + 11]


def test_gzip_of_several_members_and_bare_snappy() -> None:
    first, second = encode_set([b"a"]), encode_set([b"b"])
    members = gzip.compress(first) + gzip.compress(second)
    assert payloads(encode_message(members, codec=CompressionCodec.GZIP)) == [b"a", b"b"]
    import cramjam

    bare = bytes(cramjam.snappy.compress_raw(first + second))
    assert payloads(encode_message(bare, codec=CompressionCodec.SNAPPY)) == [b"a", b"b"]


def test_wrappers_around_too_much_end_in_an_error() -> None:
    data = b""
    for _ in range(20):
        data = encode_message(gzip.compress(data), codec=CompressionCodec.GZIP)
    with pytest.raises(CorruptRecordError, match="nested more than"):
        payloads(data)
    bomb = encode_message(gzip.compress(bytes(300 << 20), 1), codec=CompressionCodec.GZIP)
    with pytest.raises(UnpackLimitError, match="the wrapper at byte 0: more than 134217728 bytes"):
        payloads(bomb)


BROKEN = {
    "crc": "00 00 00 07 01 00 8c dc 16 84 78",
    "magic 2": "00 00 00 07 02 00 8c dc 16 83 78",
    "codec 3": "00 00 00 07 01 03 8c dc 16 83 78",
    "length 0": "00 00 00 00",
    "length 3": "00 00 00 03 01 00 00",
    "magic 1 in 5 bytes": "00 00 00 05 01 00 00 00 00",
    "negative length": "ff ff ff ff 01 00 8c dc 16 83 78",
    "not gzip": encode_message(b"x", codec=CompressionCodec.GZIP).hex(),
    "bad crc inside": encode_message(
        gzip.compress(bytes.fromhex("00000007 0100 8cdc1684 78")), codec=CompressionCodec.GZIP
    ).hex(),
    "the other snappy framing": encode_message(
        bytes.fromhex("ff060000734e61507059"), codec=CompressionCodec.SNAPPY
    ).hex(),
}


@for_each(BROKEN)
def test_what_is_broken_is_refused_whole(name: str) -> None:
    good, bad = encode_set([b"good"]), bytes.fromhex(BROKEN[name])
    with pytest.raises(CorruptRecordError):
        payloads(good + bad)
    with pytest.raises(CorruptRecordError):
        judge(memoryview(good + bad))
    if name not in ("not gzip", "bad crc inside", "the other snappy framing"):
        assert sound_size(memoryview(good + bad + good)) == len(good)


def test_what_a_broker_stores_of_a_cut_set() -> None:
    good = encode_set([b"good"])
    assert judge(memoryview(good + good[:9])).size == len(good)
    assert judge(memoryview(good + b"\0\0\0")).size == len(good)
    assert judge(memoryview(b"")) == (0, 0, 0)
    assert judge(memoryview(b"\0\0\0")) == (0, 0, 0)
    with pytest.raises(CorruptRecordError, match="first message is incomplete"):
        judge(memoryview(good[:9]))
    cut_inside = encode_message(gzip.compress(good + good[:9]), codec=CompressionCodec.GZIP)
    assert judge(memoryview(cut_inside)).message_count == 1
    assert payloads(cut_inside) == [b"good"]
    flagged = bytearray(good)
    flagged[5] = 0x80
    assert judge(memoryview(flagged)).message_count == 1


def test_nothing_is_wrapped_as_nothing() -> None:
    assert encode_set([], codec=CompressionCodec.GZIP) == b""
    empty = encode_message(gzip.compress(b""), codec=CompressionCodec.GZIP)
    assert payloads(empty) == []
    with pytest.raises(EncodeError, match="none, gzip and snappy"):
        encode_set([b"x"], codec=CompressionCodec.ZSTD)
    with pytest.raises(EncodeError, match="magic 0 cannot"):
        encode_message(b"x", magic=0, codec=CompressionCodec.GZIP)


@given(
    st.lists(
        st.tuples(st.lists(st.binary(max_size=50), max_size=5), st.sampled_from(["none", "gzip", "snappy"]))
    ),
    st.sampled_from([0, 1]),
)
def test_what_is_written_is_read(groups: list[tuple[list[bytes], str]], magic: int) -> None:
    data = b"".join(
        encode_set(group, codec=CompressionCodec.from_name(codec), magic=magic) for group, codec in groups
    )
    assert payloads(data) == [payload for group, _ in groups for payload in group]
    assert judge(memoryview(data)).size == sound_size(memoryview(data)) == len(data)


def test_one_wrong_byte_is_noticed_or_ends_the_set() -> None:
    dice = random.Random(7)
    data = encode_set([b"first", b"second"]) + GZIP_WRAPPER + SNAPPY_WRAPPER
    whole = payloads(data)
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << dice.randrange(8)
        try:
            found = payloads(bytes(damaged))
        except (CorruptRecordError, FetchSizeTooSmall):
            continue
        # A length that grew makes the rest a partial tail; unused attribute bits change nothing.
        assert found == whole[: len(found)]


@pytest.mark.parametrize("payload", [5, "text", [1], None, True])
def test_a_message_is_bytes(payload: object) -> None:
    for call in (lambda: encode_message(payload), lambda: encode_set([b"fine", payload])):  # type: ignore[arg-type]
        with pytest.raises(
            EncodeError, match=f"a message of Kafka 0.7 is bytes, not {type(payload).__name__}"
        ):
            call()
