"""A gateway's relay without sockets: tests pass in bytes of a client or broker, and collect its output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.gateway.accounts.book import AccountBook
from penstock.gateway.accounts.login import Login
from penstock.gateway.calls import NodeCall
from penstock.gateway.contracts import Attachable, Ended, Pause
from penstock.gateway.counters import Counters
from penstock.gateway.hooks.chain import Hooks
from penstock.gateway.limits import Limits
from penstock.gateway.nodes import NodeAddress, Nodes
from penstock.gateway.relay import Relay
from penstock.gateway.routes import BrokerRoutes
from penstock.gateway.versions import NoTranslation, Translation
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_request_header, decode_response, encode_request, encode_response

ADVERTISED = "gateway.test"

KAFKA_4 = {
    0: (3, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    10: (0, 6),
    17: (0, 1),
    18: (0, 4),
    36: (0, 2),
    60: (0, 2),
}
"""A dict from API key to the version range of a Kafka 4 broker, for some APIs."""


class Wire:
    """A stand-in for a socket of the relay, which collects what the relay sends.

    It also records the reasons for which the relay has stopped reading.
    """

    def __init__(
        self, versions: Mapping[int, tuple[int, int]], translation: Translation, node_id: int | None
    ) -> None:
        self.sent = bytearray()
        self.paused = Pause(0)
        self.is_closed = self.is_reset = False
        self.routes = BrokerRoutes(versions, translation)
        self.node_id = node_id

    def send(self, data: Any) -> None:
        assert not self.is_closed
        self.sent += data

    def pause(self, why: Pause) -> None:
        self.paused |= why

    def go_on(self, why: Pause) -> None:
        self.paused &= ~why

    def close(self) -> None:
        self.is_closed = True

    def reset(self) -> None:
        self.is_closed = self.is_reset = True

    def taken(self) -> bytes:
        """Return the bytes that the relay has sent since the previous call."""
        sent = bytes(self.sent)
        self.sent.clear()
        return sent


class World:
    """A relay with a client and brokers that are stand-ins, and the gateway's state that it uses."""

    def __init__(
        self,
        *,
        home: int | None = None,
        versions: Mapping[int, tuple[int, int]] = KAFKA_4,
        translation: Translation | None = None,
        limits: Limits | None = None,
        has_account: bool = False,
        attaches: bool = True,
        hooks: Hooks | None = None,
        book: AccountBook | None = None,
    ) -> None:
        self.translation: Translation = translation or NoTranslation()
        self.versions = versions
        self.limits = limits or Limits()
        self.counters = Counters()
        self.hooks = hooks or Hooks()
        self.timers: list[Callable[[], None]] = []
        self.nodes = Nodes((), lambda node_id, port: 20_000 + node_id, lambda node_id: None)
        self.has_account = has_account
        self.last_routes: BrokerRoutes | None = None
        self.held = 0
        self.ends: list[str] = []
        self.failures: list[str] = []
        self.calls: list[NodeCall] = []
        self.works: list[Callable[[], NodeCall | Ended | Exception]] = []
        self.back: set[int] = set()
        self.attempts = 0
        self.now = 1000.0
        self.delayed: list[tuple[float, Callable[[], None]]] = []
        self._book = book
        self._attaches = attaches
        self._is_asked = False
        self.client = Wire(versions, self.translation, None)
        self.brokers: list[Wire] = []
        self.relay = Relay(self, self.client, home, "10.0.0.7:1234", ADVERTISED)

    @property
    def broker(self) -> Wire:
        """The relay's newest connection to a broker."""
        return self.brokers[-1]

    # what the relay asks for

    def attach(self, relay: Attachable) -> None:
        self.attempts += 1
        self._is_asked = True

    def connect(self, node_id: int | None = None) -> None:
        self._is_asked = False
        login = self.relay.login
        if login is not None and login.account is None:
            self.relay.greeted(BrokerRoutes(self.versions, self.translation))
            return
        self.brokers.append(Wire(self.versions, self.translation, node_id))
        self.last_routes = self.broker.routes
        self.relay.attached(self.broker)

    def new_login(self, answer_versions: Callable[[memoryview], bytes]) -> Login | None:
        if self._book is None:
            return None
        return Login(self._book, answer_versions, lambda: self.now, lambda: int(self.now * 1000))

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        self.delayed.append((seconds, work))
        self.timers.append(work)

    def routes_of(self, ranges: Mapping[int, tuple[int, int]]) -> BrokerRoutes:
        return BrokerRoutes(ranges, self.translation)

    def is_back(self, node_id: int) -> bool:
        return node_id in self.back

    def call_node(self, relay: Attachable, call: NodeCall) -> None:
        self.calls.append(call)

    def in_thread(self, relay: Attachable, work: Callable[[], NodeCall | Ended | Exception]) -> None:
        self.works.append(work)

    def work(self) -> None:
        """Run the task that the relay has given to a worker thread, and pass the result to the relay."""
        self.relay.worked(self.works.pop()())

    def hold(self, size: int) -> bool:
        self.held += size
        return self.held <= self.limits.held_bytes_max

    def let_go(self, size: int) -> None:
        self.held -= size

    def note_end(self, level: int, client: str, reason: str) -> None:
        self.ends.append(reason)

    def caught(self, what: str) -> None:
        self.failures.append(what)

    # the two peers

    def client_sends(self, *frames: bytes, split: int = 0) -> None:
        """Pass requests to the relay as a client's bytes, in pieces of `split` bytes or all at once."""
        data = b"".join(frames)
        for start in range(0, len(data), split or len(data)):
            self.relay.client_bytes(memoryview(data[start : start + (split or len(data))]))
            while self._is_asked and self._attaches:
                self.connect()

    def broker_sends(self, *frames: bytes, split: int = 0) -> None:
        """Pass responses to the relay as a broker's bytes."""
        data = b"".join(frames)
        for start in range(0, len(data), split or len(data)):
            self.relay.upstream_bytes(memoryview(bytearray(data[start : start + (split or len(data))])))

    def learn(self, *node_ids: int) -> None:
        for node_id in node_ids:
            assert self.nodes.learn(NodeAddress(node_id, f"kafka-{node_id}", 9092)) is not None


def request(message: Any, version: int, correlation_id: int = 1, client_id: str | None = "device") -> bytes:
    """Return the frame of a request."""
    return b"".join(encode_request(message, version, correlation_id, client_id))


def response(message: Any, version: int, correlation_id: int = 1) -> bytes:
    """Return the frame of a response."""
    return b"".join(encode_response(message, version, correlation_id))


def frames_of(data: bytes) -> list[bytes]:
    """Return the frames in some bytes, without their sizes; all frames must be complete."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        assert len(data) >= 4 + size, "a frame that is not whole"
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def answers_of(data: bytes, key: int, version: int) -> list[tuple[int, Any]]:
    """Return the correlation id and the message of each response in some bytes; all are of one API."""
    return [decode_response(frame, API_TABLE[key].response, version) for frame in frames_of(data)]


def asked_of(data: bytes) -> list[tuple[int, int, int]]:
    """Return the API key, version and correlation id of each request in some bytes."""
    headers = [decode_request_header(frame)[0] for frame in frames_of(data)]
    return [(header.api_key, header.api_version, header.correlation_id) for header in headers]
