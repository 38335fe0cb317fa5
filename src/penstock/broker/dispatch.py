"""From a request frame to the pieces of its answer: find the handler, decode, call, encode.

Handlers register with the versions they speak; what is registered is what ApiVersions answers, and
nothing repeats it. A handler is a plain function of a request and a `Context`. It returns the response;
or None, where the protocol has none (Produce with acks=0); or a `Wait`, and is called again later.

Knows frames, not sockets: a connection gives it bytes and gets pieces to send.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.waiting import Wait
from penstock.errors import DecodeError, PenstockError, UnsupportedVersionError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.framing import encode_response
from penstock.protocol.header import decode_request_header

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.protocol.codec import Codec

Piece = Any
"""Something to send that has a length: bytes, a memoryview, or a region of a file."""

Handler = Callable[[Any, "Context"], Any]


class CloseConnection(PenstockError):
    """The answer is to hang up: where the protocol has no response that could say what is wrong."""


class Context:
    """What a handler knows besides the request. A connection has one and brings it up to date.

    `now_ms` is wall-clock time, for records. `now` and `arrived` are seconds of the monotonic clock:
    those of this call, and those of the request's arrival, from which deadlines count.
    """

    __slots__ = ("arrived", "client_id", "local_address", "node", "now", "now_ms", "version")

    def __init__(self, node: Node, local_address: tuple[str, int]) -> None:
        self.node = node
        self.local_address = local_address
        self.client_id: str | None = None
        self.version = 0
        self.now_ms = 0
        self.now = self.arrived = 0.0


class Route(NamedTuple):
    """One row of the table: an API, the versions spoken, the function that answers."""

    key: ApiKey
    min_version: int
    max_version: int
    handle: Handler


ROUTES: dict[int, Route] = {}
"""Every API that has a handler."""


def handler(key: ApiKey, min_version: int, max_version: int) -> Callable[[Handler], Handler]:
    """Register the function below as the answer to `key` in versions `min_version` to `max_version`."""

    def register(function: Handler) -> Handler:
        ROUTES[key] = Route(key, min_version, max_version, function)
        return function

    return register


class _Dialect(NamedTuple):
    """A route at one version, with the codec of its requests at hand."""

    handle: Handler
    codec: Codec[Any]


_dialects: dict[tuple[int, int], _Dialect] = {}


def _dialect(key: int, version: int) -> _Dialect:
    """Find what answers a request, and prepare it on first use.

    Raises:
        UnsupportedVersionError: no handler for this API, or not in this version.
    """
    route = ROUTES.get(key)
    if route is None or not route.min_version <= version <= route.max_version:
        raise UnsupportedVersionError(f"API {key} in version {version} is not offered")
    dialect = _Dialect(route.handle, codec_for(API_TABLE[key].request, version))
    _dialects[key, version] = dialect
    return dialect


class Call:
    """One request on its way to an answer. `run` may be called again after it has returned a Wait."""

    __slots__ = ("_context", "_correlation_id", "_handle", "_request", "_version")

    def __init__(self, frame: memoryview, context: Context) -> None:
        """Read a request from its frame (without the size in front).

        Raises:
            CloseConnection: it cannot be understood, or is not offered here.
        """
        self._context = context
        try:
            header, position = decode_request_header(frame)
            key, version = header.api_key, header.api_version
            dialect = _dialects.get((key, version)) or _dialect(key, version)
            self._request = dialect.codec.decode(frame, position)[0]
        except UnsupportedVersionError as error:
            self._expect_api_versions(frame, error)
            return
        except DecodeError as error:
            raise CloseConnection(f"a request that cannot be read: {error}") from None
        self._handle = dialect.handle
        self._version = version
        self._correlation_id = header.correlation_id
        context.client_id = header.client_id

    def _expect_api_versions(self, frame: memoryview, error: UnsupportedVersionError) -> None:
        """ApiVersions is answered in any version, so that a client can find out which to use."""
        key, route = int.from_bytes(frame[:2], "big"), ROUTES.get(ApiKey.API_VERSIONS)
        if key != ApiKey.API_VERSIONS or route is None:
            raise CloseConnection(str(error)) from None
        # None stands for a request that could not be read. The answer is of version 0.
        self._request = None
        self._handle = route.handle
        self._version = 0
        self._correlation_id = int.from_bytes(frame[4:8], "big", signed=True)

    def run(self) -> list[Piece] | Wait | None:
        """Call the handler; return the pieces of the framed response, a Wait, or None for no answer.

        Raises:
            CloseConnection: the handler asks for it.
        """
        context = self._context
        context.version = self._version
        response = self._handle(self._request, context)
        if response is None or type(response) is Wait:
            return response
        return encode_response(response, self._version, self._correlation_id)
