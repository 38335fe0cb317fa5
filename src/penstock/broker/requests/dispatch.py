"""From a request frame to its response: find the handler, decode the request, call it, encode the result.

A handler is a plain function of a request and a `Context`. It returns the response; or None, if the
protocol has none (Produce with acks=0); or a `Wait`, and is called again later. `penstock.broker.handlers`
has the table of handlers.

The module does not use sockets: a connection passes a frame, and gets the parts of the response to send.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.context import CloseConnection, Parts, response_too_large
from penstock.broker.requests.purgatory import Wait
from penstock.errors import DecodeError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import decode_request_header, pack_response_head, pack_tagged_response_head

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.release_profiles import Profile
    from penstock.broker.requests.routes import Answer, Piece, Router, VersionedRoute
    from penstock.protocol.framing import RequestHeader

_KEY_AND_VERSION = Struct(">hh")

PLAIN_REQUEST_BYTES_MAX = 4 << 20
"""The maximum bytes of a request other than Produce. Millions of small entries would become large objects."""

WEIGHED_REQUEST_BYTES = 64 << 10
"""The size in bytes above which the array elements of a request are counted before it is decoded."""

WEIGHED_PRODUCE_BYTES = 1 << 20
"""The size in bytes above which a Produce request is decoded only if it consists mostly of records."""

BESIDE_RECORDS_BYTES_MAX = 256 << 10
"""The maximum bytes of a large Produce request that are not records; the names of thousands of topics fit."""


class Dispatching(Parts, Protocol):
    """The attributes of a broker that the dispatch of requests uses."""

    router: Router
    profile: Profile | None
    request_entries_max: int


class Unanswered:
    """A request that waits for an event or a deadline, after which `run` calls its handler again."""

    __slots__ = ("_context", "_correlation_id", "_request", "_route", "frame_bytes", "wait")

    def __init__(
        self,
        wait: Wait,
        request: Any,
        route: VersionedRoute,
        correlation_id: int,
        context: Context[Dispatching],
    ) -> None:
        self.wait = wait
        self._request = request if wait.answer is None else None
        self._route = route
        self._correlation_id = correlation_id
        self._context = context
        self.frame_bytes = 0
        """The size in bytes of the request's frame if the request is kept in memory; otherwise 0."""

    def run(self) -> list[Piece] | Unanswered | None:
        """Call the handler again. Returns and raises the same as `answer`."""
        route, later, context = self._route, self.wait.answer, self._context
        context.version = route.version
        response = route.handle(self._request, context) if later is None else later()
        outcome = encode_outcome(response, self._request, route, self._correlation_id, context)
        if type(outcome) is Unanswered and outcome.wait.keeps_request:
            outcome.frame_bytes = self.frame_bytes
        return outcome


class LateRefusal(Unanswered):
    """A refused request whose connection is answered and closed after a delay, such as a failed login."""

    __slots__ = ("_end",)

    def __init__(self, end: CloseConnection, deadline: float) -> None:
        self.wait = Wait((), deadline)
        self.frame_bytes = 0
        self._end = end

    def run(self) -> list[Piece] | Unanswered | None:
        """Raise the CloseConnection of this refusal, which holds the answer."""
        raise self._end


def answer(frame: memoryview, context: Context[Dispatching]) -> list[Piece] | Unanswered | None:
    """Answer the request in `frame` (without its size field).

    Return the parts of the framed response; None if the protocol has no response; or an `Unanswered` if the
    request has to wait. The caller may reuse the memory of `frame` afterwards.

    Raises:
        CloseConnection: the request cannot be parsed, is not offered, or its handler raised it.
    """
    try:
        header, position = decode_request_header(frame)
        context.header = header
        context.session.client_id = header.client_id
        key = header.api_key, header.api_version
        router = context.node.router
        route = router.ready.get(key) or router.find(*key)
        if len(frame) > WEIGHED_REQUEST_BYTES:
            request = _read_large(frame, position, header, route, context.node)
        else:
            decode = route.request.decode
            request = decode(frame, position)[0]
    except UnsupportedVersionError as error:
        return _answer_unsupported(frame, context, error)
    except DecodeError as error:
        if len(frame) >= 4:
            try:
                context.node.router.find(*_KEY_AND_VERSION.unpack_from(frame))
            except UnsupportedVersionError as unsupported:
                return _answer_unsupported(frame, context, unsupported)
        raise CloseConnection(f"a request that cannot be read: {error}") from None
    context.version = route.version
    handle = route.handle
    outcome = encode_outcome(handle(request, context), request, route, header.correlation_id, context)
    if type(outcome) is Unanswered and outcome.wait.keeps_request:
        outcome.frame_bytes = len(frame)
    return outcome


def _read_large(
    frame: memoryview, position: int, header: RequestHeader, route: VersionedRoute, node: Dispatching
) -> Any:
    """Decode a large request; first count its array elements, since there may be very many.

    A Produce request of usual size is decoded without counting: most of its bytes are records.

    Raises:
        CloseConnection: the request has too many bytes that are not records, or too many elements.
        DecodeError: the request cannot be decoded.
    """
    from penstock.broker.requests.request_limits import (  # few requests are so large
        has_more_entries,
        is_mostly_records,
    )

    size, limit = len(frame), node.request_entries_max
    too_many = f"more than {limit} entries, which penstock.request.entries.max forbids; name fewer at a time"
    if header.api_key == ApiKey.PRODUCE:
        if size > WEIGHED_PRODUCE_BYTES and not is_mostly_records(
            frame, position, route.version, BESIDE_RECORDS_BYTES_MAX
        ):
            raise CloseConnection(f"a Produce of {size} bytes, most of them no records")
        request = route.request.decode(frame, position)[0]
        if sum(len(topic.partition_data) for topic in request.topic_data) > limit:
            raise CloseConnection(f"a Produce with {too_many}")
        return request
    if size > PLAIN_REQUEST_BYTES_MAX:
        raise CloseConnection(f"a request of {size} bytes to API {header.api_key}")
    if has_more_entries(route.request.layout, frame, position, limit):
        raise CloseConnection(f"a request to API {header.api_key} with {too_many}")
    return route.request.decode(frame, position)[0]


def _answer_unsupported(
    frame: memoryview, context: Context[Dispatching], error: UnsupportedVersionError
) -> list[Piece] | Unanswered | None:
    """Answer ApiVersions of an unknown version, so that the client can find out which versions it may use.

    Returns None if the release profile ignores unknown requests.

    Raises:
        CloseConnection: the request is for another API.
    """
    profile = context.node.profile
    if profile is not None and profile.overlooks_unknown:
        return None
    has_answer = profile is None or profile.has_api_versions
    if len(frame) < 8 or int.from_bytes(frame[:2], "big") != ApiKey.API_VERSIONS or not has_answer:
        raise CloseConnection(str(error)) from None
    correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    # None stands for a request that could not be read.
    return call(None, context.node.router.find(ApiKey.API_VERSIONS, 0), correlation_id, context)


def call(
    request: Any, route: VersionedRoute, correlation_id: int, context: Context[Dispatching]
) -> list[Piece] | Unanswered | None:
    """Answer a decoded request. Returns and raises the same as `answer`."""
    context.version = route.version
    return encode_outcome(route.handle(request, context), request, route, correlation_id, context)


def encode_outcome(
    response: Answer, request: Any, route: VersionedRoute, correlation_id: int, context: Context[Dispatching]
) -> list[Piece] | Unanswered | None:
    """Encode what a handler has returned; a `Wait` becomes an `Unanswered`."""
    if response is None:
        return None
    if type(response) is Wait:
        return Unanswered(response, request, route, correlation_id, context)
    pieces: list[Any]
    if route.in_pieces:
        pieces = route.response.encode_chunks(response)
        size = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
    else:
        encode = route.response.encode
        pieces = [encode(response)]
        size = len(pieces[0])
        if size > context.node.response_bytes_max:
            raise response_too_large(context.node.response_bytes_max)
    if route.has_tagged_header:
        head = pack_tagged_response_head(size + 5, correlation_id)
    else:
        head = pack_response_head(size + 4, correlation_id)
    pieces[0] = head + pieces[0]  # the first piece is never a region of a file
    return pieces
