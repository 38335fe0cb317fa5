"""From a request frame to the pieces of its answer: find the handler, decode, call, encode.

Handlers register with the versions they speak; what is registered is what ApiVersions answers, and
nothing repeats it. A handler is a plain function of a request and a `Context`. It returns the response;
or None, where the protocol has none (Produce with acks=0); or a `Wait`, and is called again later.

Knows frames, not sockets: a connection gives it bytes and gets pieces to send.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.requests.purgatory import Wait
from penstock.errors import DecodeError, PenstockError, UnsupportedVersionError
from penstock.protocol.api import API_TABLE, ApiKey, response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.header import decode_request_header

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.broker.partitions.flusher import Flush
    from penstock.protocol.codec import Codec
    from penstock.protocol.header import RequestHeader
    from penstock.protocol.messages.produce_response import PartitionProduceResponse
    from penstock.records.compression.budget import UnpackBudget

_KEY_AND_VERSION = Struct(">hh")
_HEAD = Struct(">ii")
_HEAD_TAGGED = Struct(">iiB")

PLAIN_REQUEST_BYTES_MAX = 4 << 20
"""The largest request that carries no records. Millions of small entries would become large objects."""

WEIGHED_REQUEST_BYTES = 64 << 10
"""Larger requests are looked through for how many entries they have, before these become objects."""

WEIGHED_PRODUCE_BYTES = 1 << 20
"""Of a larger Produce it is found out first how much of it are records."""

BESIDE_RECORDS_BYTES_MAX = 256 << 10
"""What a large Produce may have beside its records: the names of thousands of topics."""

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

    __slots__ = (
        "arrived",
        "client_id",
        "flushes",
        "inline",
        "local_address",
        "node",
        "now",
        "now_ms",
        "peer",
        "postponed",
        "room",
        "sessions",
        "throttle_ms",
        "version",
    )

    def __init__(self, node: Node, local_address: tuple[str, int]) -> None:
        self.node = node
        self.local_address = local_address
        self.client_id: str | None = None
        self.peer = ""
        """The address of whoever asks, without the port."""
        self.version = 0
        self.sessions: list[int] = []
        """Ids of fetch sessions that this connection has begun; they end with it."""
        self.room = 0
        """Bytes that the answer at work may still take, where its handler counts them."""
        self.throttle_ms = 0
        """For how long the connection is to rest once the answer is given: its client has used too much."""
        self.now_ms = 0
        self.now = self.arrived = 0.0
        self.flushes: list[tuple[Flush, PartitionProduceResponse]] = []
        """Of the Produce at work: what is to reach the disk before it is answered, and for whom."""
        self.inline: tuple[float, UnpackBudget] | None = None
        """What may be unpacked on the event loop, for requests that arrived at that time (see `aside`)."""
        self.postponed: list[Any] = []
        """Of the request at work: what takes too long for the event loop."""

    def begin_claims(self) -> None:
        """Count what the answer of this request takes from now on, with `claim`.

        Handlers whose answers tell much about little do so, so that an answer beyond the limit is never
        made. What is sent is measured in any case.
        """
        self.room = self.node.response_bytes_max

    def claim(self, size: int) -> None:
        """Note that the answer being made grows by about `size` bytes.

        Raises:
            CloseConnection: the answer exceeds `penstock.response.bytes.max`.
        """
        self.room -= size
        if self.room < 0:
            raise _too_large(self.node)


def _too_large(node: Node) -> CloseConnection:
    return CloseConnection(
        f"an answer of more than {node.response_bytes_max} bytes, which penstock.response.bytes.max forbids;"
        " ask for less at a time"
    )


class Route(NamedTuple):
    """One row of the table: an API, the versions spoken, the function that answers."""

    key: ApiKey
    min_version: int
    max_version: int
    handle: Handler
    in_pieces: bool


ROUTES: dict[int, Route] = {}
"""Every API that has a handler."""


def handler(
    key: ApiKey, min_version: int, max_version: int, *, in_pieces: bool = False
) -> Callable[[Handler], Handler]:
    """Register the function below as the answer to `key` in versions `min_version` to `max_version`.

    `in_pieces` says that responses may be large, or hold regions of files, and are not to be copied.
    """

    def register(function: Handler) -> Handler:
        ROUTES[key] = Route(key, min_version, max_version, function, in_pieces)
        return function

    return register


def handler_in(module: str, key: ApiKey, min_version: int, max_version: int) -> None:
    """Register the handler of `key` that `module` holds, without importing it before somebody asks.

    For APIs that most brokers are never asked for: a start does not pay for them. The module registers
    itself with `handler` and the same versions.
    """

    handle: Handler | None = None

    def load(request: Any, context: Context) -> Any:
        nonlocal handle
        if handle is None:
            importlib.import_module(module)
            handle = ROUTES[key].handle
        return handle(request, context)

    ROUTES[key] = Route(key, min_version, max_version, load, False)


class Dialect(NamedTuple):
    """A route at one version: who answers, how requests are read, which header answers have."""

    handle: Handler
    request: Codec[Any]
    response: Codec[Any]
    version: int
    tagged: bool
    in_pieces: bool


def dialect_for(node: Node, key: int, version: int) -> Dialect:
    """Find what answers a request to `node`, and prepare it on first use.

    Raises:
        UnsupportedVersionError: no handler for this API, or not in this version.
    """
    found = node.dialects.get((key, version))
    if found is not None:
        return found
    route = node.routes.get(key)
    asked = version
    if route is not None and node.profile is not None:
        version = node.profile.version_of(route, version)
    if route is None or not route.min_version <= version <= route.max_version:
        raise UnsupportedVersionError(f"API {key} in version {version} is not offered")
    api = API_TABLE[key]
    handle = route.handle if node.throttle is None else node.throttle.wrap(route.key, route.handle)
    dialect = node.dialects[key, asked] = Dialect(
        handle,
        codec_for(api.request, version),
        codec_for(api.response, version),
        version,
        response_header_version(key, version) > 0,
        route.in_pieces,
    )
    return dialect


class Unanswered:
    """A request that waits. `run` asks its handler again."""

    __slots__ = ("_context", "_correlation_id", "_dialect", "_request", "frame_bytes", "wait")

    def __init__(
        self, wait: Wait, request: Any, dialect: Dialect, correlation_id: int, context: Context
    ) -> None:
        self.wait = wait
        # Where something else gives the answer, what was asked need not be kept.
        self._request = request if wait.answer is None else None
        self._dialect = dialect
        self._correlation_id = correlation_id
        self._context = context
        self.frame_bytes = 0
        """Size of the frame that it came in, where the request is kept."""

    def run(self) -> list[Piece] | Unanswered | None:
        """What `answer` returns, and raises."""
        dialect, give = self._dialect, self.wait.answer
        if give is not None:
            dialect = dialect._replace(handle=lambda _request, _context: give())
        outcome = call(self._request, dialect, self._correlation_id, self._context)
        if type(outcome) is Unanswered and outcome.wait.answer is None:
            outcome.frame_bytes = self.frame_bytes
        return outcome


def answer(frame: memoryview, context: Context) -> list[Piece] | Unanswered | None:
    """Answer the request in `frame` (without the size in front).

    Return the pieces of the framed response; None where the protocol has no answer; or the request
    itself where it has to wait. `frame` is not needed any more afterwards.

    Raises:
        CloseConnection: the request cannot be understood, is not offered, or asks to be hung up on.
    """
    try:
        header, position = decode_request_header(frame)
        key = header.api_key, header.api_version
        dialect = context.node.dialects.get(key) or dialect_for(context.node, *key)
        if len(frame) > WEIGHED_REQUEST_BYTES:
            request = _read_large(frame, position, header, dialect, context.node)
        else:
            request = dialect.request.decode(frame, position)[0]
    except UnsupportedVersionError as error:
        return _answer_unsupported(frame, context, error)
    except DecodeError as error:
        if len(frame) >= 4:
            try:
                dialect_for(context.node, *_KEY_AND_VERSION.unpack_from(frame))
            except UnsupportedVersionError as unsupported:
                return _answer_unsupported(frame, context, unsupported)
        raise CloseConnection(f"a request that cannot be read: {error}") from None
    context.client_id = header.client_id
    outcome = call(request, dialect, header.correlation_id, context)
    if type(outcome) is Unanswered and outcome.wait.answer is None:
        outcome.frame_bytes = len(frame)
    return outcome


def _read_large(frame: memoryview, position: int, header: RequestHeader, dialect: Dialect, node: Node) -> Any:
    """Read a request that may have very many entries; they are counted before they become objects.

    The Produce of usual size is read first: most of it are records, and of the rest there is not much.

    Raises:
        CloseConnection: it has too much beside its records, or too many entries.
        DecodeError: it cannot be read.
    """
    from penstock.broker.requests.request_limits import (  # few requests are so large
        has_more_entries,
        is_mostly_records,
    )

    size, limit = len(frame), node.request_entries_max
    too_many = f"more than {limit} entries, which penstock.request.entries.max forbids; name fewer at a time"
    if header.api_key == ApiKey.PRODUCE:
        if size > WEIGHED_PRODUCE_BYTES and not is_mostly_records(
            frame, position, dialect.version, BESIDE_RECORDS_BYTES_MAX
        ):
            raise CloseConnection(f"a Produce of {size} bytes, most of them no records")
        request = dialect.request.decode(frame, position)[0]
        if sum(len(topic.partition_data) for topic in request.topic_data) > limit:
            raise CloseConnection(f"a Produce with {too_many}")
        return request
    if size > PLAIN_REQUEST_BYTES_MAX:
        raise CloseConnection(f"a request of {size} bytes to API {header.api_key}")
    if has_more_entries(dialect.request.layout, frame, position, limit):
        raise CloseConnection(f"a request to API {header.api_key} with {too_many}")
    return dialect.request.decode(frame, position)[0]


def _answer_unsupported(
    frame: memoryview, context: Context, error: UnsupportedVersionError
) -> list[Piece] | Unanswered | None:
    """ApiVersions is answered in any version, so that a client can find out which to use."""
    profile = context.node.profile
    if profile is not None and profile.overlooks_unknown:
        return None
    has_answer = profile is None or profile.has_api_versions
    if len(frame) < 8 or int.from_bytes(frame[:2], "big") != ApiKey.API_VERSIONS or not has_answer:
        raise CloseConnection(str(error)) from None
    correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    # None stands for a request that could not be read.
    return call(None, dialect_for(context.node, ApiKey.API_VERSIONS, 0), correlation_id, context)


def call(
    request: Any, dialect: Dialect, correlation_id: int, context: Context
) -> list[Piece] | Unanswered | None:
    """Have a request answered that has been read; return and raise what `answer` does."""
    context.version = dialect.version
    response = dialect.handle(request, context)
    if response is None:
        return None
    if type(response) is Wait:
        return Unanswered(response, request, dialect, correlation_id, context)
    if dialect.in_pieces:
        pieces = dialect.response.encode_chunks(response)
        size = sum(map(len, pieces))
    else:
        pieces = [dialect.response.encode(response)]
        size = len(pieces[0])
        if size > context.node.response_bytes_max:
            raise _too_large(context.node)
    if dialect.tagged:
        head = _HEAD_TAGGED.pack(size + 5, correlation_id, 0)
    else:
        head = _HEAD.pack(size + 4, correlation_id)
    # What begins a response is never a region of a file.
    pieces[0] = head + pieces[0]
    return pieces
