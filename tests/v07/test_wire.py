"""Tests of Kafka 0.7 requests and responses, byte by byte: real examples, complete, cut off and padded."""

from __future__ import annotations

import pytest

from penstock.errors import DecodeError, EncodeError
from penstock.v07.message_set import encode_set
from penstock.v07.wire import (
    Error,
    FetchPart,
    OffsetsPart,
    ProducePart,
    RequestType,
    WireRequest,
    decode_multifetch,
    decode_offsets,
    decode_request,
    decode_response,
    encode_offsets,
    encode_request,
    response_head,
)

HELLO_WORLD = encode_set([b"hello", b"world!"])

REQUESTS = {
    "produce": (
        WireRequest(RequestType.PRODUCE, [ProducePart("test", 0, HELLO_WORLD)]),
        """00 00 00 2f 00 00 00 04 74 65 73 74 00 00 00 00 00 00 00 1f
        00 00 00 0b 01 00 36 10 a6 86 68 65 6c 6c 6f 00 00 00 0c 01 00 71 84 98 e8 77 6f 72 6c 64 21""",
    ),
    "produce, magic 0, any partition": (
        WireRequest(RequestType.PRODUCE, [ProducePart("test", -1, encode_set([b"old"], magic=0))]),
        "00 00 00 1c 00 00 00 04 74 65 73 74 ff ff ff ff 00 00 00 0c 00 00 00 08 00 3f 5d d4 e5 6f 6c 64",
    ),
    "produce, nothing": (
        WireRequest(RequestType.PRODUCE, [ProducePart("test", 0, b"")]),
        "00 00 00 10 00 00 00 04 74 65 73 74 00 00 00 00 00 00 00 00",
    ),
    "fetch": (
        WireRequest(RequestType.FETCH, [FetchPart("test", 0, 0, 300)]),
        "00 00 00 18 00 01 00 04 74 65 73 74 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 2c",
    ),
    "multifetch": (
        WireRequest(
            RequestType.MULTIFETCH,
            [FetchPart("ma", 0, 0, 100), FetchPart("mb", 1, 0, 100), FetchPart("mb", 7, 0, 100)],
        ),
        """00 00 00 40 00 02 00 03
        00 02 6d 61 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 64
        00 02 6d 62 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 64
        00 02 6d 62 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 64""",
    ),
    "multiproduce": (
        WireRequest(
            RequestType.MULTIPRODUCE,
            [ProducePart("ma", 0, encode_set([b"x"])), ProducePart("mb", 1, encode_set([b"yz"]))],
        ),
        """00 00 00 33 00 03 00 02
        00 02 6d 61 00 00 00 00 00 00 00 0b 00 00 00 07 01 00 8c dc 16 83 78
        00 02 6d 62 00 00 00 01 00 00 00 0c 00 00 00 08 01 00 0f f4 48 62 79 7a""",
    ),
    "multiproduce, no parts": (WireRequest(RequestType.MULTIPRODUCE, []), "00 00 00 04 00 03 00 00"),
    "offsets": (
        WireRequest(RequestType.OFFSETS, [OffsetsPart("test", 0, -1, 10)]),
        "00 00 00 18 00 04 00 04 74 65 73 74 00 00 00 00 ff ff ff ff ff ff ff ff 00 00 00 0a",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_written_and_read_byte_by_byte(name: str) -> None:
    request, text = REQUESTS[name]
    frame = bytes.fromhex(text)
    assert encode_request(request) == frame
    assert decode_request(memoryview(frame)[4:]) == request
    assert decode_request(memoryview(frame + b"more")[4:]) == request
    for size in range(len(frame) - 4):
        with pytest.raises(DecodeError):
            decode_request(memoryview(frame)[4 : 4 + size])


@pytest.mark.parametrize("code", [-1, 5, 18, 0x7FFF])
def test_other_requests_are_none_of_0_7(code: int) -> None:
    with pytest.raises(DecodeError, match=f"request type {code} "):
        decode_request(memoryview(code.to_bytes(2, "big", signed=True) + bytes(20)))


def test_what_does_not_fit_is_not_written() -> None:
    for request in (
        WireRequest(RequestType.FETCH, [FetchPart("t" * 40_000, 0, 0, 1)]),
        WireRequest(RequestType.FETCH, [FetchPart("t", 1 << 31, 0, 1)]),
        WireRequest(RequestType.FETCH, [FetchPart("t", 0, 1 << 63, 1)]),
        WireRequest(RequestType.FETCH, []),
        WireRequest(RequestType.MULTIFETCH, [FetchPart("t", 0, 0, 1)] * 40_000),
    ):
        with pytest.raises(EncodeError):
            encode_request(request)


def test_responses() -> None:
    fetched = bytes.fromhex("00 00 00 21 00 00") + HELLO_WORLD
    assert response_head(len(HELLO_WORLD)) + HELLO_WORLD == fetched
    assert decode_response(memoryview(fetched)[4:]) == (Error.NONE, HELLO_WORLD)
    assert response_head(0, Error.OFFSET_OUT_OF_RANGE) == bytes.fromhex("00 00 00 02 00 01")
    assert decode_response(memoryview(b"\x00\x63")) == (Error.UNKNOWN, b"")
    with pytest.raises(DecodeError):
        decode_response(memoryview(b"\x00"))

    offsets = bytes.fromhex("00 00 00 16 00 00 00 00 00 02 00 00 00 00 00 00 00 1f 00 00 00 00 00 00 00 00")
    assert encode_offsets([31, 0]) == offsets
    assert decode_offsets(memoryview(offsets)[6:]) == [31, 0]
    for size in range(20):
        with pytest.raises(DecodeError):
            decode_offsets(memoryview(offsets)[6 : 6 + size])


def test_a_response_to_multifetch_has_a_head_of_its_own_for_every_part() -> None:
    payload = memoryview(
        bytes.fromhex(
            """00 00 00 0d 00 00 00 00 00 07 01 00 8c dc 16 83 78
            00 00 00 0e 00 00 00 00 00 08 01 00 0f f4 48 62 79 7a
            00 00 00 02 00 03"""
        )
    )
    assert decode_multifetch(payload, 3) == [
        (Error.NONE, encode_set([b"x"])),
        (Error.NONE, encode_set([b"yz"])),
        (Error.WRONG_PARTITION, b""),
    ]
    assert decode_multifetch(memoryview(b""), 0) == []
    for size in range(len(payload)):
        with pytest.raises(DecodeError):
            decode_multifetch(payload[:size], 3)
