"""The client's end of a connection, without I/O: encode requests, and decode answers from received bytes.

How to drive a `ClientConnection`, over any transport:

    chunks = connection.request(message, version, token)    # write them, in this order
    ...
    count = sock.recv_into(connection.get_buffer())         # or a TLS layer decrypts into it
    connection.received(count)
    while (answer := connection.next_answer()) is not None:
        token, response = answer

`token` is an object by which the driver finds the receiver of the answer, for example a future. Bytes are
received straight into the lent buffer, so a TLS layer needs no buffer of plaintext:
`connection.received(sslobject.read(len(buffer), buffer))`, repeated until `ssl.SSLWantReadError`, with a new
buffer from `get_buffer` and calls of `next_answer` after each read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sized
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.errors import DecodeError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import (
    FRAME_BYTES_MAX,
    ConnectionStateError,
    FrameReader,
    decode_response,
    encode_request,
    new_buffer,
)

if TYPE_CHECKING:
    from penstock.protocol.message import Message

Token = TypeVar("Token")

ANSWER_BYTES_MIN = 4
"""The minimum size of an answer in bytes: every answer begins with a correlation id."""

CORRELATION_ID_MASK = 0x7FFFFFFF
"""The mask for correlation ids, which are counted from 1 and start again at 0 after 2^31 - 1."""

_API_VERSIONS = int(ApiKey.API_VERSIONS)
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
"""The encoded error code UNSUPPORTED_VERSION. A response to ApiVersions that begins with this code has
version 0.
"""


class UnexpectedFrameError(DecodeError):
    """A broker sent a frame while no request was in flight."""


class CorrelationError(DecodeError):
    """A broker's answer has the correlation id of another request than the oldest one in flight."""


class ClientConnection(Generic[Token]):
    """Numbers requests, and matches each answer to its request. Any number may be in flight.

    Brokers answer in request order. An answer to another request than the oldest one, a frame while no
    request is in flight, a size above the limit and a body that cannot be decoded are errors that end the
    connection: every later call raises.

    Args:
        client_id: the client id in the headers of requests.
        frame_bytes_max: the maximum size of an answer in bytes; a larger answer is refused before memory is
            allocated.
        take: a function that returns a writable view for an answer that does not fit into 16 KiB, of exactly
            its size.
    """

    __slots__ = (
        "_client_id",
        "_correlation_id",
        "_failure",
        "_frames",
        "_in_flight",
        "_take",
        "_take_expected",
    )

    def __init__(
        self,
        client_id: str | None = None,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        take: Callable[[int], memoryview] = new_buffer,
    ) -> None:
        self._client_id = client_id
        self._correlation_id = 0
        self._in_flight: deque[tuple[int, type[Message], int, Token]] = deque()
        self._failure: DecodeError | None = None
        self._take = take
        # Of the requests in flight alone: a reader that had this object would keep it from being freed.
        self._take_expected = partial(_take_expected, self._in_flight, take)
        self._frames = FrameReader(
            frame_bytes_max, size_min=ANSWER_BYTES_MIN, take=self._take_expected, grows=False
        )

    def get_buffer(self) -> memoryview:
        """Return the buffer for the next bytes. It has room if `next_answer` has returned None before."""
        return self._frames.get_buffer()

    def received(self, count: int) -> None:
        """Process `count` bytes that were written to the beginning of the buffer from `get_buffer`.

        Raises:
            ConnectionStateError: the buffer is smaller than `count`.
        """
        self._frames.received(count)

    def next_frame(self) -> memoryview | None:
        """Return the next raw frame, or None if more bytes must arrive first.

        For use after `expect_raw_frames`.

        Raises:
            FrameSizeError: the size of a frame is outside the limits.
            UnexpectedFrameError: a long frame arrives that does not answer a request.
        """
        return self._frames.next_frame()

    def expect_raw_frames(self, is_raw: bool) -> None:
        """Switch to raw frames, which `next_frame` returns; switch back if `is_raw` is False.

        Raw frames are SASL tokens without a correlation id. Brokers before 1.0 send them between
        SaslHandshake version 0 and the end of authentication.
        """
        self._frames.size_min = 0 if is_raw else ANSWER_BYTES_MIN
        self._frames.take = self._take if is_raw else self._take_expected

    def request(self, message: Message, version: int, token: Token) -> list[Any]:
        """Return the bytes of a request that gets an answer, as chunks to be written one after the other.

        Raises:
            EncodeError: the message cannot be encoded in this version.
            UnsupportedVersionError: there is no such version.
            ConnectionStateError: the connection has failed.
        """
        if self._failure is not None:
            raise self._no_request()
        self._correlation_id = correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MASK
        chunks = encode_request(message, version, correlation_id, self._client_id)
        response_class = API_TABLE[message.API_KEY].response  # type: ignore[index]
        self._in_flight.append((correlation_id, response_class, version, token))
        return chunks

    def request_without_answer(self, message: Message, version: int) -> list[Any]:
        """Return the chunks of a request that brokers do not answer: Produce with acks=0.

        Raises:
            EncodeError, UnsupportedVersionError, ConnectionStateError: as for `request`.
        """
        if self._failure is not None:
            raise self._no_request()
        self._correlation_id = correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MASK
        return encode_request(message, version, correlation_id, self._client_id)

    def next_answer(self) -> tuple[Token, Message] | None:
        """Return (token, answer) for the oldest request in flight, or None if more bytes must arrive.

        Raises:
            FrameSizeError: an answer announces fewer than 4 bytes, or more than the limit.
            UnexpectedFrameError: no request is in flight.
            CorrelationError: the answer belongs to another request than the oldest one.
            DecodeError: the answer cannot be decoded.
        """
        if self._failure is not None:
            raise self._failure
        try:
            frame = self._frames.next_frame()
            if frame is None:
                return None
            if not self._in_flight:
                raise UnexpectedFrameError(f"{len(frame)} bytes arrived while no request was in flight")
            correlation_id, response_class, version, token = self._in_flight[0]
            answered = int.from_bytes(frame[:4], "big", signed=True)
            if answered != correlation_id:
                raise CorrelationError(f"request {answered} was answered where {correlation_id} was due")
            if response_class.API_KEY == _API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION:
                version = 0
            response = decode_response(frame, response_class, version)[1]
        except DecodeError as error:
            self._failure = error
            raise
        self._in_flight.popleft()
        return token, response

    @property
    def requests_in_flight(self) -> int:
        """The number of requests that have no answer yet."""
        return len(self._in_flight)

    @property
    def requests_sent(self) -> int:
        """The number of requests that were encoded, answered or not."""
        return self._correlation_id

    @property
    def is_receiving(self) -> bool:
        """True if an answer has arrived in part."""
        return self._frames.pending_bytes > 0

    @property
    def is_receiving_long_answer(self) -> bool:
        """True if an answer that does not fit into 16 KiB has arrived in part."""
        return self._frames.is_receiving_long_frame

    def tokens(self) -> Iterator[Token]:
        """Return the tokens of the requests in flight, oldest first."""
        return (token for _, _, _, token in self._in_flight)

    def oldest(self) -> tuple[int, str] | None:
        """Return (correlation id, API name) of the oldest request in flight, or None. Thread-safe."""
        try:
            correlation_id, response_class, _, _ = self._in_flight[0]
        except IndexError:
            return None
        return correlation_id, response_class.NAME.removesuffix("Response")

    def abandon(self) -> list[Token]:
        """Drop all requests in flight, and return their tokens, oldest first."""
        tokens = list(self.tokens())
        self._in_flight.clear()
        return tokens

    def _no_request(self) -> ConnectionStateError:
        return ConnectionStateError(f"no request on a connection that has failed: {self._failure}")


def _take_expected(in_flight: Sized, take: Callable[[int], memoryview], size: int) -> memoryview:
    """Return a view into which a long answer is received.

    Raises UnexpectedFrameError if no request is in flight.
    """
    if not in_flight:
        raise UnexpectedFrameError(f"{size} bytes were announced while no request was in flight")
    return take(size)
