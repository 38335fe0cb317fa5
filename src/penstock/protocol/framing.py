"""Frames, which begin with four bytes of size: encode and decode requests and responses, split a stream.

Headers are hand-written for speed: every request passes here. The compiled codecs of `RequestHeader` and
`ResponseHeader` give the same bytes, which a test checks.

How to drive a `FrameReader`, from any source of bytes:

    buffer = reader.get_buffer()        # as asyncio.BufferedProtocol.get_buffer
    count = sock.recv_into(buffer)      # or ssl.SSLObject.read(len(buffer), buffer), or a copy
    reader.received(count)
    while (frame := reader.next_frame()) is not None:
        ...

A TLS layer repeats the first three lines until it has no plaintext left (`ssl.SSLWantReadError`): call
`get_buffer` each time, since `next_frame` may have changed the buffer for the next bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from penstock.errors import DecodeError, EncodeError, PenstockError, UnsupportedVersionError
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
"""Pack the beginning of a response: the size of the bytes after it, and a header of version 0, which is the
correlation id.
"""
pack_tagged_response_head = struct.Struct(">iix").pack
"""Pack the beginning of a response: the size of the bytes after it, and a header of version 1 without
tagged fields.
"""

FRAME_BYTES_MAX = 100 * 1024 * 1024
"""The greatest frame in bytes that a broker accepts by default: Kafka's `socket.request.max.bytes`."""

SCRATCH_BYTES = 16 << 10
"""The size in bytes of a reader's scratch buffer. Longer frames get a buffer of their own."""

GROWTH_START_BYTES = 64 << 10
"""The first size in bytes of the buffer for a long frame, if the buffer grows as bytes arrive."""


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
    """A request has an unknown API key or version. The attributes suffice to answer ApiVersions."""

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
    """Return the size field and the header for a response whose body has `body_bytes` bytes.

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


class FrameSizeError(DecodeError):
    """A frame announces a size that is negative, too small for a header, or above the limit.

    No more frames can be read, because the start of the next frame is unknown. `size` is the announced size
    in bytes.
    """

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.args[0], self.size))

    @property
    def beginning(self) -> bytes:
        """The four bytes that were read as a size; they may reveal the peer's protocol."""
        return self.size.to_bytes(4, "big", signed=True)


class ConnectionStateError(PenstockError, RuntimeError):
    """A method was called in a state that does not allow it: a bug of the calling code, not of the peer."""


def check_size(size: int, size_min: int, size_max: int) -> None:
    """Check the size that a frame announces.

    Raises:
        FrameSizeError: the size is below `size_min` or above `size_max`.
    """
    if not size_min <= size <= size_max:
        raise FrameSizeError(f"frame of {size} bytes, {size_min} to {size_max} are allowed", size)


def new_buffer(size: int) -> memoryview:
    """Return a writable buffer of `size` zero bytes."""
    return memoryview(bytearray(size))


class FrameReader:
    """Splits a stream into frames, with a buffer of its own. The frames that it returns belong to the caller.

    `size_min` and `take` may be changed between two frames.

    The frames do not depend on how the bytes are divided into reads. A size is checked before memory is
    allocated for it.

    Args:
        size_max: the most bytes of a frame, without the four bytes of its size.
        size_min: the fewest bytes of a frame.
        take: returns a writable view of at least 1 byte for a long frame.
        grows: True if the buffer of a long frame starts small and doubles as bytes arrive. That costs
            copies, but a peer that announces much and sends little gets little memory.
    """

    __slots__ = (
        "_end",
        "_filled",
        "_frame",
        "_grows",
        "_position",
        "_scratch",
        "_size",
        "_size_max",
        "size_min",
        "take",
    )

    def __init__(
        self,
        size_max: int = FRAME_BYTES_MAX,
        *,
        size_min: int = 0,
        take: Callable[[int], memoryview] = new_buffer,
        grows: bool = True,
    ) -> None:
        self._size_max = size_max
        self.size_min = size_min
        self.take = take
        self._grows = grows
        self._scratch = new_buffer(SCRATCH_BYTES)
        self._position = self._end = 0
        """The start of the range of received bytes in the scratch buffer that are not split into frames
        yet; `_end` is its end.
        """
        self._frame: memoryview | None = None
        """The buffer of a long frame that is arriving."""
        self._size = self._filled = 0
        """The size in bytes of the long frame that is arriving; `_filled` counts the bytes of it that have
        arrived.
        """

    def get_buffer(self) -> memoryview:
        """Return a buffer to receive the next bytes into; it has room once `next_frame` has returned None."""
        frame = self._frame
        return self._scratch[self._end :] if frame is None else frame[self._filled :]

    def received(self, count: int) -> None:
        """Process `count` bytes that were written to the beginning of the buffer from `get_buffer`.

        Raises:
            ConnectionStateError: the buffer is smaller than `count`.
        """
        frame = self._frame
        if frame is None:
            self._end += count
            if not 0 <= count <= self._end <= SCRATCH_BYTES:
                self._refuse_count(count)
        else:
            self._filled += count
            if not 0 <= count <= self._filled <= len(frame):
                self._refuse_count(count)

    def next_frame(self) -> memoryview | None:
        """Return the next complete frame without its size field, or None if more bytes must arrive.

        Raises:
            FrameSizeError: the size of a frame is outside the limits. Every later call raises it again.
        """
        frame = self._frame
        if frame is not None:
            if self._filled < len(frame):
                return None
            if self._filled < self._size:
                self._grow(frame)
                return None
            self._frame = None
            return frame
        scratch, position, end = self._scratch, self._position, self._end
        if end - position >= 4:
            start = position + 4
            size = int.from_bytes(scratch[position:start], "big", signed=True)
            if not self.size_min <= size <= self._size_max:
                check_size(size, self.size_min, self._size_max)
            stop = start + size
            if stop <= end:
                if stop == end:
                    self._position = self._end = 0
                else:
                    self._position = stop
                return memoryview(bytes(scratch[start:stop]))
            if 4 + size > SCRATCH_BYTES:
                self._begin(size, scratch[start:end])
                return None
        if position:
            self._end = end = end - position
            self._position = 0
            if end:
                scratch[:end] = bytes(scratch[position : position + end])
        return None

    @property
    def pending_bytes(self) -> int:
        """The number of bytes of an incomplete frame that have arrived, including the bytes of its size."""
        return self._end - self._position if self._frame is None else 4 + self._filled

    @property
    def is_receiving_long_frame(self) -> bool:
        """True if a frame that has a buffer of its own has arrived in part."""
        return self._frame is not None

    def _begin(self, size: int, arrived: memoryview) -> None:
        count = len(arrived)
        first = min(size, max(GROWTH_START_BYTES, 2 * count)) if self._grows else size
        frame = self.take(first)
        frame[:count] = arrived
        self._frame, self._size, self._filled = frame, size, count
        self._position = self._end = 0

    def _grow(self, older: memoryview) -> None:
        frame = self.take(min(self._size, 2 * len(older)))
        frame[: self._filled] = older
        self._frame = frame

    def _refuse_count(self, count: int) -> NoReturn:
        raise ConnectionStateError(f"{count} bytes received, which the lent buffer cannot hold")
