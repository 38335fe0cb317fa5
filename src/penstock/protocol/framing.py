"""Encode and decode whole requests and responses as frames: four bytes of size, header, body."""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from penstock.errors import EncodeError
from penstock.protocol.api import response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import Data
from penstock.protocol.header import decode_response_header, encode_request_header
from penstock.protocol.message import Message

M = TypeVar("M", bound=Message)

_SIZE = struct.Struct(">i")
pack_response_head = struct.Struct(">ii").pack
"""Pack the beginning of a response: the size of the rest, and a header of version 0 (the correlation id)."""
pack_tagged_response_head = struct.Struct(">iix").pack
"""Pack the beginning of a response: the size of the rest, and a header of version 1 without tagged fields."""


def encode_request(message: Message, version: int, correlation_id: int, client_id: str | None) -> list[Any]:
    """Return a request with size and header, as chunks to be sent one after the other.

    Raises:
        EncodeError: a value does not fit its type, or the version lacks a field that is set.
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


def response_head(body_bytes: int, correlation_id: int, has_tags: bool) -> bytes:
    """Return the size and the header of a response whose body has `body_bytes` bytes.

    With `has_tags`, the header has version 1 and an empty section of tagged fields, else version 0.
    """
    if has_tags:
        return pack_tagged_response_head(body_bytes + 5, correlation_id)
    return pack_response_head(body_bytes + 4, correlation_id)


def encode_response(message: Message, version: int, correlation_id: int) -> list[Any]:
    """Return a response with size and header, as chunks to be sent one after the other.

    Raises:
        EncodeError: a value does not fit its type, or the version lacks a field that is set.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(type(message), version)
    if message.API_KEY is None:
        raise EncodeError(f"{message.NAME} is no response")
    parts: list[Any] = []
    codec.write(message, parts)
    has_tags = response_header_version(message.API_KEY, version) > 0
    parts.insert(0, response_head(sum(map(len, parts)), correlation_id, has_tags))
    return codec.join(message, parts)


def decode_response(frame: Data, response_class: type[M], version: int) -> tuple[int, M]:
    """Decode a response that arrived as `frame`; return (correlation id, message).

    Raises:
        DecodeError: the bytes are not a response of this class and version.
        UnsupportedVersionError: there is no such version.
    """
    codec = codec_for(response_class, version)
    header_version = response_header_version(response_class.API_KEY or 0, version)
    correlation_id, position = decode_response_header(frame, header_version)
    return correlation_id, codec.decode(frame, position)[0]
