"""Routes: the handler of each API, the versions offered, and the codecs of each version."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from penstock.broker.requests.purgatory import Wait
from penstock.errors import UnsupportedVersionError
from penstock.protocol.api import API_TABLE, ApiKey, response_header_version
from penstock.protocol.codec import codec_for

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.log.contract import FileRegion
    from penstock.protocol.message import Message

Piece: TypeAlias = "bytes | bytearray | memoryview | FileRegion"
"""A part of an encoded response: bytes in memory, or a region of a file to be sent with `sendfile`."""

Answer: TypeAlias = "Message | Wait | None"
"""The result of a handler: a response, a `Wait`, or None if the protocol has no response."""

Handler: TypeAlias = "Callable[[Any, Context[Any]], Answer]"
"""A function of a decoded request and its context. Each handler takes the request class of its API."""


class RequestDecoder(Protocol):
    """The part of a codec that decodes requests."""

    @property
    def decode(self) -> Callable[..., tuple[Any, int]]:
        """The function ``decode(data, position) -> (message, position after it)``; it raises DecodeError."""

    @property
    def layout(self) -> Any:
        """The wire types of a request's fields, in order, to count array elements before decoding."""


class Encoder(Protocol):
    """The part of a codec that encodes responses."""

    @property
    def encode(self) -> Callable[[Any], bytes]:
        """The function ``encode(message)``, which returns the bytes of the response."""

    def encode_chunks(self, message: Any) -> list[Any]:
        """Return the bytes of a response in pieces, so that large values are not copied."""


class LazyHandler(NamedTuple):
    """A handler whose module is imported on first use: most brokers use few handlers."""

    module: str
    name: str

    def load(self) -> Handler:
        """Import the module and return the handler."""
        handle: Handler = getattr(importlib.import_module(self.module), self.name)
        return handle


class Route(NamedTuple):
    """An API with the versions offered and its handler.

    `in_pieces` is True if responses may be large or contain regions of files, and must not be copied.
    """

    key: ApiKey
    min_version: int
    max_version: int
    handler: Handler | LazyHandler
    in_pieces: bool = False

    @property
    def handle(self) -> Handler:
        """The handler as a function; its module is imported if necessary."""
        return self.handler.load() if isinstance(self.handler, LazyHandler) else self.handler


class VersionedRoute:
    """The handler and codecs of one API version. An interceptor replaces it by another `VersionedRoute`."""

    # Every request reads the attributes; those of a NamedTuple take several times as long.
    __slots__ = ("handle", "has_tagged_header", "in_pieces", "key", "request", "response", "version")

    def __init__(
        self,
        key: int,
        version: int,
        handle: Handler,
        request: RequestDecoder,
        response: Encoder,
        has_tagged_header: bool,
        in_pieces: bool,
    ) -> None:
        self.key = key
        self.version = version
        self.handle = handle
        self.request = request
        self.response = response
        self.has_tagged_header = has_tagged_header
        self.in_pieces = in_pieces

    def _replace(self, **changes: Any) -> VersionedRoute:
        """Return a route with some attributes changed."""
        return VersionedRoute(**({name: getattr(self, name) for name in self.__slots__} | changes))


Interceptor: TypeAlias = "Callable[[VersionedRoute], VersionedRoute]"
"""A function from a `VersionedRoute` to one with another handler or codec, or to the same one if nothing
changes."""


class Reversioning(Protocol):
    """The interface of legacy behaviour that decodes a request in another version than its header has."""

    def version_of(self, route: Route, version: int) -> int: ...


class Router:
    """The routes that a broker offers; each version is compiled on first use.

    `chain` returns the present interceptors, the outermost first; call `reset` when they change.
    """

    def __init__(
        self,
        offered: Mapping[int, Route],
        chain: Callable[[], list[Interceptor]],
        reversioning: Reversioning | None = None,
    ) -> None:
        self.offered = offered
        """A dict from API key to the route of each API that ApiVersions lists."""
        self.ready: dict[tuple[int, int], VersionedRoute] = {}
        """The compiled routes, by API key and version in the header of a request."""
        self._chain = chain
        self._reversioning = reversioning

    def reset(self) -> None:
        """Drop the compiled routes, because interceptors have changed."""
        self.ready.clear()

    def find(self, key: int, version: int) -> VersionedRoute:
        """Return the route for a request with this API key and version in its header.

        Raises:
            UnsupportedVersionError: the API is not offered, or not in this version.
        """
        found = self.ready.get((key, version))
        if found is not None:
            return found
        route = self.offered.get(key)
        asked = version
        if route is not None and self._reversioning is not None:
            version = self._reversioning.version_of(route, version)
        if route is None or not route.min_version <= version <= route.max_version:
            raise UnsupportedVersionError(f"API {key} in version {version} is not offered")
        api = API_TABLE[key]
        made = VersionedRoute(
            key,
            version,
            route.handle,
            codec_for(api.request, version),
            codec_for(api.response, version),
            response_header_version(key, version) > 0,
            route.in_pieces,
        )
        interceptors = self._chain()
        if interceptors:
            made = intercepted(made, interceptors)
        self.ready[key, asked] = made
        return made


def intercepted(route: VersionedRoute, interceptors: list[Interceptor]) -> VersionedRoute:
    """Apply all interceptors to a route, the first one outermost; return the resulting route.

    Interceptors are called once for each request: when a waiting request is due, only the inner handler is
    called again.
    """
    made = plain = route._replace(handle=_asked_again_inside(route.handle))
    for interceptor in reversed(interceptors):
        made = interceptor(made)
    return route if made is plain else made


def _asked_again_inside(handle: Handler) -> Handler:
    """Wrap a handler to set `answer` in each `Wait`, so that interceptors are called only once."""

    def ask(request: Any, context: Context[Any]) -> Answer:
        outcome = handle(request, context)
        if type(outcome) is Wait and outcome.answer is None:
            outcome.answer = lambda: ask(request, context)
        return outcome

    return ask


def when_answered(outcome: Answer, then: Callable[[Message | None], Message | None]) -> Answer:
    """Call `then` with the response, now or after the request's wait; return its result, or a `Wait`.

    `outcome` is the return value of the inner handler. `then` is called once, with the response, or with None
    if the request has none (Produce with acks=0), unless the request ends with an exception.
    """
    if type(outcome) is Wait:
        later = outcome.answer
        if later is None:
            raise TypeError("this Wait has no answer: call the handler of the route that was given")
        outcome.answer = lambda: when_answered(later(), then)
        return outcome
    return then(outcome)
