"""What a relay is given, and what it is for others: its two sockets, the gateway, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from enum import IntFlag, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from penstock.errors import PenstockError
    from penstock.gateway.accounts.login import Login
    from penstock.gateway.calls import Call
    from penstock.gateway.counters import Counters
    from penstock.gateway.hooks.chain import Hooks
    from penstock.gateway.limits import Limits
    from penstock.gateway.nodes import Nodes
    from penstock.gateway.routes import Kind, Routes
    from penstock.gateway.versions import Translation


class Pause(IntFlag):
    """Why a socket is not read."""

    HELD = auto()
    """What has been read before waits to be looked at."""
    CLOGGED = auto()
    """The other side does not take what it is sent."""


class Side(Protocol):
    """One side's socket."""

    def send(self, data: Buffer) -> None:
        """Send bytes that are lent for the length of the call."""

    def pause(self, why: Pause) -> None:
        """Read nothing until `go_on` for the same cause."""

    def go_on(self, why: Pause) -> None:
        """Resume reading from the client, unless something else stops it."""

    def close(self) -> None:
        """End the connection, after what was sent has left."""

    def reset(self) -> None:
        """End the connection at once, so that the peer gets a reset."""


class Upstream(Side, Protocol):
    """The connection to a broker."""

    routes: Routes
    node_id: int | None
    """The broker at the other end; None where it is not known."""


class Attachable(Protocol):
    """A relay, as the gateway sees it."""

    home: int | None
    peer: str
    is_closed: bool
    login: Login | None

    def greeted(self, routes: Routes) -> None:
        """The versions of a broker have become known, for a client that has not logged in yet."""

    def attached(self, upstream: Upstream) -> None:
        """There is a connection to a broker."""

    def unreachable(self, error: PenstockError) -> None:
        """There is no broker."""

    def answer_call(self, answer: Any) -> None:
        """Take the answer to a call of another broker."""

    def worked(self, outcome: Call | Ended | Exception) -> None:
        """Take what came of a step beside the event loop."""

    def upstream_bytes(self, data: memoryview) -> None:
        """Take bytes of the broker, writable, and lent for the length of the call."""

    def upstream_clogged(self, is_clogged: bool) -> None:
        """The broker reads too slowly, or has caught up."""

    def upstream_lost(self, reason: str) -> None:
        """The broker has ended the connection."""

    def reauthenticate(self, steps: Generator[Call, Any, Any]) -> bool:
        """Send the requests that show credentials again; False while a request is under way."""

    def close(self, reason: str, level: int = ...) -> None:
        """End both connections."""


class Host(Protocol):
    """The gateway, as its relays see it."""

    nodes: Nodes
    limits: Limits
    counters: Counters
    translation: Translation
    hooks: Hooks

    @property
    def last_routes(self) -> Routes | None:
        """The routes to the broker that was connected last; None where none was."""

    @property
    def has_account(self) -> bool:
        """Whether the gateway itself logs in at brokers."""

    def new_login(self, answer_versions: Callable[[memoryview], bytes]) -> Login | None:
        """Return the login of a client that connects; None where the gateway maps no users."""

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call `work` after so many seconds."""

    def routes_of(self, ranges: Mapping[int, tuple[int, int]]) -> Routes:
        """Return the routes to brokers that have these versions."""

    def attach(self, relay: Attachable) -> None:
        """Connect a relay to a broker: `attached` or `unreachable` is called later."""

    def is_back(self, node_id: int) -> bool:
        """Return whether a broker that could not be reached can be by now."""

    def call_node(self, relay: Attachable, call: Call) -> None:
        """Ask another broker than the connected one: `answer_call` is called later, or `close`."""

    def in_thread(self, relay: Attachable, work: Callable[[], Call | Ended | Exception]) -> None:
        """Call `work` in a thread: `worked` is called later with what it returns."""

    def hold(self, size: int) -> bool:
        """Count bytes that are kept; False where there are too many."""

    def let_go(self, size: int) -> None:
        """Count bytes that are kept no longer."""

    def note_end(self, level: int, client: str, reason: str) -> None:
        """Log why a connection ends."""

    def caught(self, what: str) -> None:
        """Report the exception that is being handled."""


class Due(NamedTuple):
    """One response that is due."""

    kind: Kind
    correlation_id: int
    code: int
    chunks: list[Any] | None = None


class Ended(NamedTuple):
    """The end of a job: the response to the client, None for no response, or another end of `calls`."""

    answer: Any


def advanced(steps: Generator[Call, Any, Any], answer: Any) -> Call | Ended | Exception:
    """Send a generator the answer to its last call; return its next call, its result, or the error it
    raises.
    """
    try:
        return steps.send(answer)
    except StopIteration as end:
        return Ended(end.value)
    except Exception as error:
        return error


class Job(NamedTuple):
    """What asks brokers on behalf of a request, or of the gateway where `code` is -1."""

    steps: Generator[Any, Any, Any]
    code: int
    correlation_id: int
    request: Any = None
    """The request of the client, decoded."""
    frame: bytearray | None = None
    """The request with its size, where it may be passed on after all."""
    client_id: str | None = None
    blocks: bool = False
    """Whether each step may take long."""
