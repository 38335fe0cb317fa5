"""Requests and responses of Kafka 0.7: five request types, one response header.

Source: the request and response layouts of "Writing a Driver for Kafka"; where it leaves something open, the
behaviour is that of release 0.7.2. Frames are an int32 length and that many bytes, big-endian throughout.
PRODUCE and MULTIPRODUCE are never answered; the others are, in order.

This module depends neither on the contents of a message set (`message_set`) nor on sockets.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from typing_extensions import Buffer

LATEST_TIME = -1
EARLIEST_TIME = -2
ANY_PARTITION = -1
"""The partition number in a PRODUCE request with which the broker picks a partition at random."""

COUNT_MAX = 0x7FFF
"""The maximum number of partitions in one MULTIFETCH or MULTIPRODUCE request."""

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_LONG_AND_INT = Struct(">qi")
_RESPONSE = Struct(">ih")


class RequestType(IntEnum):
    """The type of a request: the int16 that follows the request's length field."""

    PRODUCE = 0
    FETCH = 1
    MULTIFETCH = 2
    MULTIPRODUCE = 3
    OFFSETS = 4

    @property
    def is_answered(self) -> bool:
        return self not in (RequestType.PRODUCE, RequestType.MULTIPRODUCE)


class Error(IntEnum):
    """The error codes of a response. A broker sends the first four; drivers define the others."""

    UNKNOWN = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    WRONG_PARTITION = 3
    INVALID_MESSAGE = 2
    INVALID_FETCH_SIZE = 4

    @classmethod
    def of(cls, code: int) -> Error:
        """Return the error with this code, or `UNKNOWN` for a code that is not in the table."""
        try:
            return cls(code)
        except ValueError:
            return cls.UNKNOWN


class ProducePart(NamedTuple):
    """A message set for one partition."""

    topic: str
    partition: int
    messages: Buffer


class FetchPart(NamedTuple):
    """A fetch of up to `size_max` bytes of one partition from byte `offset` on."""

    topic: str
    partition: int
    offset: int
    size_max: int


class OffsetsPart(NamedTuple):
    """A request for up to `count_max` offsets from before `time_ms` (or `LATEST_TIME`, `EARLIEST_TIME`)."""

    topic: str
    partition: int
    time_ms: int
    count_max: int


Part = ProducePart | FetchPart | OffsetsPart


class WireRequest(NamedTuple):
    """One request: `parts` has exactly one entry, unless the type is MULTIFETCH or MULTIPRODUCE."""

    type: RequestType
    parts: Sequence[Part]


# --- requests ----------------------------------------------------------------------------------------------


def encode_request(request: WireRequest) -> bytes:
    """Return the whole frame of a request, including its length.

    Raises:
        EncodeError: a topic is too long, there are too many parts, or a number does not fit its field.
    """
    kind, parts = request
    if kind in (RequestType.MULTIFETCH, RequestType.MULTIPRODUCE):
        if len(parts) > COUNT_MAX:
            raise EncodeError(f"{len(parts)} parts in one request: {COUNT_MAX} is the most")
        head = _INT16.pack(kind) + _INT16.pack(len(parts))
    elif len(parts) == 1:
        head = _INT16.pack(kind)
    else:
        raise EncodeError(f"{kind.name} has one part, not {len(parts)}")
    body = b"".join([head, *(piece for part in parts for piece in _part_pieces(part))])
    return _INT32.pack(len(body)) + body


def _part_pieces(part: Part) -> Iterable[Buffer]:
    topic = part.topic.encode()
    if len(topic) > 0x7FFF:
        raise EncodeError(f"a topic name of {len(topic)} bytes: 32767 is the most")
    try:
        yield _INT16.pack(len(topic)) + topic + _INT32.pack(part.partition)
        if isinstance(part, ProducePart):
            messages = memoryview(part.messages)
            yield _INT32.pack(messages.nbytes)
            yield messages
        else:
            yield _LONG_AND_INT.pack(part[2], part[3])
    except struct.error as error:
        raise EncodeError(f"a number of {part!r} does not fit its field: {error}") from error


def decode_request(body: memoryview) -> WireRequest:
    """Decode a frame without its length field. Message sets are views of it; extra bytes are ignored.

    Raises:
        DecodeError: an unknown type, or a frame too short for its own fields.
    """
    reader = _Reader(body)
    code = reader.int16("REQUEST_TYPE")
    try:
        kind = RequestType(code)
    except ValueError:
        raise DecodeError(f"request type {code} is none of Kafka 0.7's: 0 to 4") from None
    count = 1
    if kind in (RequestType.MULTIFETCH, RequestType.MULTIPRODUCE):
        count = reader.int16("COUNT")
        if count < 0:
            raise DecodeError(f"a request with {count} parts")
    return WireRequest(kind, [reader.part(kind) for _ in range(count)])


class _Reader:
    """Reads the fields of a frame one after another."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def int16(self, what: str) -> int:
        return int(_INT16.unpack(self._take(2, what))[0])

    def int32(self, what: str) -> int:
        return int(_INT32.unpack(self._take(4, what))[0])

    def part(self, kind: RequestType) -> Part:
        size = self.int16("TOPIC_LENGTH")
        topic = str(self._take(size, "TOPIC"), "utf-8", "replace")
        partition = self.int32("PARTITION")
        if kind in (RequestType.PRODUCE, RequestType.MULTIPRODUCE):
            return ProducePart(topic, partition, self._take(self.int32("MESSAGES_LENGTH"), "MESSAGES"))
        first, second = _LONG_AND_INT.unpack(self._take(12, "the last two fields"))
        return (OffsetsPart if kind is RequestType.OFFSETS else FetchPart)(topic, partition, first, second)

    def _take(self, size: int, what: str) -> memoryview:
        start, stop = self._at, self._at + size
        if size < 0 or stop > len(self._data):
            raise DecodeError(f"{what} of {size} bytes at {start} of a request that has {len(self._data)}")
        self._at = stop
        return self._data[start:stop]


# --- responses ---------------------------------------------------------------------------------------------


def response_head(size: int, error: Error = Error.NONE) -> bytes:
    """Encode a response's length field and error code, which `size` more bytes will follow."""
    return _RESPONSE.pack(size + 2, error)


def encode_offsets(offsets: Sequence[int]) -> bytes:
    """Encode the response to an OFFSETS request; `offsets` are newest first."""
    return response_head(4 + 8 * len(offsets)) + Struct(f">i{len(offsets)}q").pack(len(offsets), *offsets)


def decode_response(frame: memoryview) -> tuple[Error, memoryview]:
    """Return the error code and the payload of a response frame without its length.

    Raises:
        DecodeError: the frame is too short for an error code.
    """
    if len(frame) < 2:
        raise DecodeError(f"a response of {len(frame)} bytes: an error code alone takes 2")
    return Error.of(_INT16.unpack_from(frame)[0]), frame[2:]


def decode_offsets(payload: memoryview) -> list[int]:
    """Return the offsets in a response to OFFSETS.

    Raises:
        DecodeError: the response has fewer offsets than its count field.
    """
    count = _INT32.unpack_from(payload)[0] if len(payload) >= 4 else -1
    if not 0 <= count <= (len(payload) - 4) // 8:
        raise DecodeError(f"{count} offsets announced in {len(payload)} bytes")
    return list(Struct(f">{count}q").unpack_from(payload, 4))


def decode_multifetch(payload: memoryview, count: int) -> list[tuple[Error, memoryview]]:
    """Return (error, message set) of each partition in a MULTIFETCH response, in the order of the request.

    `count` is the number of partitions in the request.

    Raises:
        DecodeError: the response has fewer partitions.
    """
    parts: list[tuple[Error, memoryview]] = []
    position = 0
    for _ in range(count):
        if len(payload) - position < 4:
            raise DecodeError(f"{len(parts)} parts in a response that should have {count}")
        (size,) = _INT32.unpack_from(payload, position)
        position += 4
        if not 2 <= size <= len(payload) - position:
            raise DecodeError(f"a part of {size} bytes, {len(payload) - position} are left")
        parts.append(decode_response(payload[position : position + size]))
        position += size
    return parts
