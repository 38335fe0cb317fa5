"""The interfaces between the gateway, its relays (one for each client), and a relay's two sockets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import IntFlag, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.errors import PenstockError
    from penstock.gateway.accounts.login import Login
    from penstock.gateway.calls import NodeCall
    from penstock.gateway.counters import Counters
    from penstock.gateway.hooks.chain import Hooks
    from penstock.gateway.limits import Limits
    from penstock.gateway.nodes import Nodes
    from penstock.gateway.routes import BrokerRoutes, ResponseKind
    from penstock.gateway.versions import Translation


class Pause(IntFlag):
    """Reasons for which the gateway temporarily stops reading from a socket."""

    HELD = auto()
    """Earlier bytes from this socket have not been processed yet."""
    CLOGGED = auto()
    """The receiver of the bytes that are forwarded from this socket reads too slowly."""


class Side(Protocol):
    """The interface of a socket, to a client or to a broker, that a relay uses."""

    def send(self, data: Buffer) -> None:
        """Send bytes, which the caller may overwrite after the call."""

    def pause(self, why: Pause) -> None:
        """Stop reading from the socket for a reason, until `go_on` is called with that reason."""

    def go_on(self, why: Pause) -> None:
        """Remove one reason to pause, and resume reading if there is no other."""

    def close(self) -> None:
        """Close the connection after all bytes passed to `send` have been transmitted."""

    def reset(self) -> None:
        """Close the connection at once, so that the peer gets a TCP reset."""


class Tap(Protocol):
    """The interface of an object that gets all bytes of one client connection, to record them.

    A buffer is valid only during the call."""

    def received(self, data: memoryview) -> None:
        """Record bytes that the client has sent."""

    def sent(self, data: memoryview) -> None:
        """Record bytes that are sent to the client."""

    def ended(self) -> None:
        """Finish the record of the connection, which has ended."""


class Upstream(Side, Protocol):
    """The interface of a relay's socket to a broker."""

    routes: BrokerRoutes
    node_id: int | None
    """The id of the connected broker; None if the id is not known."""


class Attachable(Protocol):
    """The methods of a relay (the link between one client and a broker) that the gateway calls."""

    home: int | None
    peer: str
    is_closed: bool
    login: Login | None

    def greeted(self, routes: BrokerRoutes) -> None:
        """Set the APIs and versions of a broker, for a client that has not logged in yet."""

    def attached(self, upstream: Upstream) -> None:
        """Use `upstream` as the client's connection to a broker."""

    def unreachable(self, error: PenstockError) -> None:
        """Handle the failure to connect to any broker."""

    def answer_call(self, answer: Any) -> None:
        """Process the response to a request that was sent with `RelayHost.call_node`."""

    def worked(self, outcome: NodeCall | Ended | Exception) -> None:
        """Process the result of a step that `RelayHost.in_thread` has run in a thread."""

    def upstream_bytes(self, data: memoryview) -> None:
        """Process bytes from the broker, in a writable buffer that the caller overwrites after the call."""

    def upstream_clogged(self, is_clogged: bool) -> None:
        """Stop reading from the client while the broker reads too slowly; resume reading afterwards."""

    def upstream_lost(self, reason: str) -> None:
        """Handle the end of the connection to the broker."""

    def reauthenticate(self, steps: Generator[NodeCall, Any, Any]) -> bool:
        """Send the requests of a re-authentication; return False while a request is in flight."""

    def close(self, reason: str, level: int = ...) -> None:
        """Close the connections to the client and to the broker."""


class RelayHost(Protocol):
    """The methods of the gateway that its relays call; each relay links one client to a broker."""

    nodes: Nodes
    limits: Limits
    counters: Counters
    translation: Translation
    hooks: Hooks

    @property
    def last_routes(self) -> BrokerRoutes | None:
        """The `BrokerRoutes` of the broker that was connected last; None before the first."""

    @property
    def has_account(self) -> bool:
        """True if the gateway logs in at brokers with its own credentials, so that clients need none."""

    def new_login(self, answer_versions: Callable[[memoryview], bytes]) -> Login | None:
        """Return a `Login` for a new client, or None if the gateway has no users of its own."""

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call the function `work` on the event loop after a number of seconds."""

    def routes_of(self, ranges: Mapping[int, tuple[int, int]]) -> BrokerRoutes:
        """Return the `BrokerRoutes` for brokers with these API versions."""

    def attach(self, relay: Attachable) -> None:
        """Connect a client's relay to a broker. Later `relay.attached` or `relay.unreachable` is called."""

    def is_back(self, node_id: int) -> bool:
        """Return True if a broker that could not be reached may be reachable now."""

    def call_node(self, relay: Attachable, call: NodeCall) -> None:
        """Send a request to another broker; later `relay.answer_call` or `relay.close` is called."""

    def in_thread(self, relay: Attachable, work: Callable[[], NodeCall | Ended | Exception]) -> None:
        """Call `work` in a separate thread; call `relay.worked` later with the result."""

    def hold(self, size: int) -> bool:
        """Reserve `size` bytes of `Limits.held_bytes_max`; return False if the limit is exceeded."""

    def let_go(self, size: int) -> None:
        """Release `size` bytes that were reserved by `hold`."""

    def note_end(self, level: int, client: str, reason: str) -> None:
        """Log the reason why a client's connection ends, or a request is refused."""

    def caught(self, what: str) -> None:
        """Log the exception that is being handled, with its traceback; `what` says where it was raised."""


class Due(NamedTuple):
    """An entry in a client's queue of responses to be sent, in the order of the requests.

    `chunks` has the bytes of a response that the gateway itself made; it is None for a broker's response.
    """

    kind: ResponseKind
    correlation_id: int
    code: int
    chunks: list[Any] | None = None


class Ended(NamedTuple):
    """The end of handling a request, with its result: a response, None, or an outcome of `gateway.calls`."""

    answer: Any


def advanced(steps: Generator[NodeCall, Any, Any], answer: Any) -> NodeCall | Ended | Exception:
    """Pass the response of the last step to a request's generator; return its next step, or its end.

    An exception of the generator is returned, not raised.
    """
    try:
        return steps.send(answer)
    except StopIteration as end:
        return Ended(end.value)
    except Exception as error:
        return error


class RelayJob(NamedTuple):
    """The handling of one client request, or of the gateway's re-authentication if `code` is -1.

    `steps` is the generator that handles the request (see `gateway.calls`).
    """

    steps: Generator[Any, Any, Any]
    code: int
    correlation_id: int
    request: Any = None
    """The decoded request of the client."""
    frame: bytearray | None = None
    """The encoded request with its size field; None if it can no longer be forwarded unchanged."""
    client_id: str | None = None
    blocks: bool = False
    """True if a step may block, so that each step runs in a thread."""
