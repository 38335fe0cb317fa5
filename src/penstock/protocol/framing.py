"""Frames: four bytes of size, then a header and a body."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeVar

from penstock.errors import DecodeError, EncodeError
from penstock.protocol.api import response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import Data
from penstock.protocol.header import decode_response_header, encode_request_header
from penstock.protocol.message import Message

M = TypeVar("M", bound=Message)

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""What a broker accepts by default: Kafka's `socket.request.max.bytes`."""

_SIZE = struct.Struct(">i")
_SIZE_AND_ID = struct.Struct(">ii")


class FrameReader:
    """Cut a byte stream into frames.

    Promises the same frames for any chunking of the same bytes, and never to hold more than one
    frame of the largest size allowed plus one chunk. Does not know what a frame contains.
    """

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._frame_bytes_max = frame_bytes_max

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Take in what arrived; return the frames that are complete now, without their size.

        Raises:
            DecodeError: a size is negative or above the limit. The stream cannot go on.
        """
        buffer = self._buffer
        buffer += data
        while len(buffer) >= 4:
            (size,) = _SIZE.unpack_from(buffer)
            if not 0 <= size <= self._frame_bytes_max:
                raise DecodeError(f"frame of {size} bytes, limit {self._frame_bytes_max}")
            end = 4 + size
            if len(buffer) < end:
                return
            frame = bytes(memoryview(buffer)[4:end])
            del buffer[:end]
            yield frame

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._buffer)


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Any]:
    """A request with size and header, as chunks to be sent one after the other.

    Raises:
        EncodeError: a value does not fit its type, or the version cannot carry it.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(type(message), version)
    if message.API_KEY is None:
        raise EncodeError(f"{message.NAME} is no request")
    try:
        header = encode_request_header(message.API_KEY, version, correlation_id, client_id)
    except (struct.error, UnicodeEncodeError) as error:
        raise EncodeError(f"request header: {error}") from error
    parts: list[Any] = [b"", header]
    codec.write(message, parts)
    parts[0] = _SIZE.pack(sum(map(len, parts)))
    return codec.join(message, parts)


def encode_response(message: Message, version: int, correlation_id: int) -> list[Any]:
    """A response with size and header, as chunks to be sent one after the other.

    Raises:
        EncodeError: a value does not fit its type, or the version cannot carry it.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(type(message), version)
    if message.API_KEY is None:
        raise EncodeError(f"{message.NAME} is no response")
    parts: list[Any] = [b"\0" * response_header_version(message.API_KEY, version)]
    codec.write(message, parts)
    parts.insert(0, _SIZE_AND_ID.pack(4 + sum(map(len, parts)), correlation_id))
    return codec.join(message, parts)


def decode_response(frame: Data, response_class: type[M], version: int) -> tuple[int, M]:
    """Read a response that arrived as `frame`; return its correlation id and the message.

    Raises:
        DecodeError: the bytes are no such response.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(response_class, version)
    header_version = response_header_version(response_class.API_KEY or 0, version)
    correlation_id, position = decode_response_header(frame, header_version)
    return correlation_id, codec.decode(frame, position)[0]
