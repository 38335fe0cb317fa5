"""Encode and decode whole requests and responses as frames: four bytes of size, header, body.

Headers are hand-written for speed: every request passes here. The compiled codecs of `RequestHeader` and
`ResponseHeader` give the same bytes, which a test checks.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

from penstock.errors import DecodeError, EncodeError, UnsupportedVersionError
from penstock.protocol.api import API_TABLE, request_header_version, response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.compiler.runtime import MALFORMED, Data, check_tags, read_uvarint
from penstock.protocol.message import Message

M = TypeVar("M", bound=Message)

_new = object.__new__

_START = struct.Struct(">hhi")
_START_AND_LENGTH = struct.Struct(">hhih")
_unpack_start_and_length = _START_AND_LENGTH.unpack_from
_START_AND_LENGTH_BYTES = _START_AND_LENGTH.size

_VERSIONS: dict[tuple[int, int], int] = {}
"""A cache of header versions by API key and version, filled when a request is decoded."""

_SIZE = struct.Struct(">i")
pack_response_head = struct.Struct(">ii").pack
"""Pack the beginning of a response: the size of the rest, and a header of version 0 (the correlation id)."""
pack_tagged_response_head = struct.Struct(">iix").pack
"""Pack the beginning of a response: the size of the rest, and a header of version 1 without tagged fields."""


class RequestHeader:
    """The header of a request: API key, version, correlation id and client id."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None = None
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        mine = (self.api_key, self.api_version, self.correlation_id, self.client_id)
        return mine == (other.api_key, other.api_version, other.correlation_id, other.client_id)

    __hash__ = None  # type: ignore[assignment]


class UnsupportedRequestError(UnsupportedVersionError):
    """A request has an unknown key or version. The attributes suffice to answer ApiVersions."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        api = API_TABLE.get(api_key)
        known = (
            f"{api.name} has versions {api.versions[0]} to {api.versions[1]}"
            if api
            else "there is no such API"
        )
        super().__init__(f"request with key {api_key}, version {api_version}: {known}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id

    def __reduce__(self) -> tuple[object, ...]:
        return (UnsupportedRequestError, (self.api_key, self.api_version, self.correlation_id))


def decode_request_header(frame: Data) -> tuple[RequestHeader, int]:
    """Decode the header of a request; return (header, position of the body).

    Raises:
        UnsupportedRequestError: the key or the version is unknown.
        DecodeError: the bytes are no request header.
    """
    size = len(frame)
    try:
        if size >= _START_AND_LENGTH_BYTES:
            key, version, correlation_id, length = _unpack_start_and_length(frame)
        else:
            key, version, correlation_id = _START.unpack_from(frame)
        header_version = _VERSIONS.get((key, version))
        if header_version is None:
            api = API_TABLE.get(key)
            if api is None or not api.versions[0] <= version <= api.versions[1]:
                raise UnsupportedRequestError(key, version, correlation_id)
            header_version = _VERSIONS[key, version] = request_header_version(key, version)
        if header_version == 0:
            return RequestHeader(key, version, correlation_id), 8
        if size < _START_AND_LENGTH_BYTES:
            raise DecodeError(f"{size} bytes are too few")
        position = 10
        client_id = None
        if length >= 0:
            position += length
            client_id = str(frame[10:position], "utf-8", MALFORMED)
        elif length != -1:
            raise DecodeError(f"client id of {length} bytes")
        if header_version == 2:
            position = position + 1 if frame[position] == 0 else _skip_tags(frame, position)
    except (struct.error, IndexError, DecodeError) as error:
        raise DecodeError(f"request header: {error}") from error
    if position > size:
        raise DecodeError(f"request header: {position} bytes expected, {size} found")
    # To call the class takes three times as long as this.
    header = _new(RequestHeader)
    header.api_key = key
    header.api_version = version
    header.correlation_id = correlation_id
    header.client_id = client_id
    return header, position


def _skip_tags(frame: Data, position: int) -> int:
    if frame[position] == 0:
        return position + 1
    count, position = read_uvarint(frame, position)
    check_tags(count, len(frame) - position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position


def encode_request_header(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the bytes of a request header, in the header version of the API and its version."""
    header_version = request_header_version(api_key, api_version)
    if header_version == 0:
        return _START.pack(api_key, api_version, correlation_id)
    tags = b"\0" if header_version == 2 else b""
    if client_id is None:
        return _START_AND_LENGTH.pack(api_key, api_version, correlation_id, -1) + tags
    name = client_id.encode()
    return _START_AND_LENGTH.pack(api_key, api_version, correlation_id, len(name)) + name + tags


def decode_response_header(frame: Data, header_version: int) -> tuple[int, int]:
    """Decode the header of a response; return (correlation id, position of the body).

    Raises:
        DecodeError: the bytes are no response header.
    """
    if len(frame) < 4 + header_version:
        raise DecodeError(f"response of {len(frame)} bytes is too short for its header")
    correlation_id = int.from_bytes(frame[:4], "big", signed=True)
    if header_version == 0:
        return correlation_id, 4
    try:
        position = _skip_tags(frame, 4)
    except (IndexError, DecodeError) as error:
        raise DecodeError(f"response header: {error}") from error
    if position > len(frame):
        raise DecodeError("response header: tagged fields run past the end")
    return correlation_id, position


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
