"""The asyncio part of the broker: the listening sockets, their connections, and the timers.

Everything runs in one event loop. Handlers produce the responses. This module decides which connections get
memory and which are closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.broker.network.connection import ServedConnection
from penstock.broker.network.frame_buffers import FrameBuffers
from penstock.broker.network.kept_answers import KeptAnswers
from penstock.broker.network.listeners import PLAINTEXT, Listener, bind_error, listeners_of
from penstock.broker.node import Node
from penstock.broker.requests.connection_quotas import ConnectionQuotas, ListenerGate
from penstock.broker.security.login_limits import LoginLimits
from penstock.common.listening.accepting import Acceptor
from penstock.common.listening.exposure import warn_if_exposed
from penstock.common.logs import logger_named
from penstock.common.operating_system import REUSE_ADDRESS
from penstock.errors import NetworkError, StorageError

if TYPE_CHECKING:
    from penstock.broker.network.connection import FrameFaults
    from penstock.broker.network.host import Hosted
    from penstock.broker.requests.purgatory import DelayedOperation, Wait
    from penstock.broker.security.listener_security import ListenerSecurity

logger = logger_named("penstock.broker")

SCRATCH_BYTES = 64 << 10
"""The size of the shared buffer that every connection reads into first; small requests are handled in it."""

BACKLOG_MIN = 512
"""The minimum backlog of a listening socket. A client's TCP retries after a second if the backlog is full."""

WAITING_FACTOR = 16
"""The estimated memory of a waiting, decoded request, as a multiple of its encoded size: each number is
a Python object.
"""

WAITING_BYTES_SMALL = 4 << 10
"""Requests up to this encoded size in bytes may always wait in memory, because `max.connections` limits
their number.
"""

HOUSEKEEPING_S = 1.0
"""Seconds between two rounds of housekeeping: idle connections, logs, groups, the checkpoint."""

DUE_ROUNDS_MAX = 100
"""The maximum number of times that one event-loop turn runs all due requests, since running requests
can make others due.
"""

DUE_AGAIN_S = 0.1
"""The seconds after which the server runs due requests again, if an exception interrupted it."""

SHUTDOWN_GRACE_S = 2.0
"""The maximum seconds that a clean shutdown waits for responses that are being sent."""

_SOCKET_BUFFERS = (
    ("socket.send.buffer.bytes", socket.SO_SNDBUF),
    ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
)


class Server:
    """Serves one node (a broker without sockets) on its listeners.

    Raises:
        ConfigError: `advertised.listeners` is malformed.
    """

    def __init__(self, node: Node, loop: asyncio.AbstractEventLoop, numbers: Iterator[int]) -> None:
        """Prepare to serve `node`. `numbers` yields the connection numbers, and continues after a restart."""
        config = node.config
        self.node = node
        self.dies = False
        """True if the server must end like a killed process: without flushes and without a
        clean-shutdown file.
        """
        self._numbers = numbers
        self._faults_of: Callable[[ServedConnection], FrameFaults] | None = None
        self.login_limits = LoginLimits(
            config.integer("penstock.unauthenticated.connections.max"),
            config.integer("penstock.authentication.timeout.ms") / 1000,
        )
        """The limits of connections that have not authenticated themselves yet."""
        self.securities: dict[str, ListenerSecurity] = {}
        """The security of each listener that is not PLAINTEXT, by listener name."""
        self._tokens_at = 0.0
        self.tls_scratch = memoryview(b"")
        """The buffer that ciphertext is read into; empty without a listener with TLS."""
        self.loop = loop
        self.monotonic = node.clock.monotonic
        self.now_ms = node.clock.now_ms
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.buffers = FrameBuffers(config.integer("queued.max.request.bytes"))
        self.answers = KeptAnswers(node.kept)
        self._waiting_bytes = 0
        self._waiting_bytes_max = config.integer("queued.max.request.bytes") // WAITING_FACTOR
        self.frame_bytes_max = config.integer("socket.request.max.bytes")
        self.connections: dict[Hosted, None] = {}
        self._idle_s = config.integer("connections.max.idle.ms") / 1000
        self._checkpoint_s = config.integer("log.flush.offset.checkpoint.interval.ms") / 1000
        self._checkpoint_at = self.monotonic() + self._checkpoint_s
        self.is_stopping = False
        self._has_ended = False
        """True after the server has stopped: it then runs no timers and no waiting requests."""
        self.accepted = 0
        """The number of connections that the server has accepted since its start, including refused ones."""
        self.refused = 0
        """The number of connections refused because of a limit."""
        self._acceptors: list[Acceptor] = []
        self.addresses: dict[str, tuple[str, int]] = {}
        """The host and port that each listener is bound to, by listener name."""
        self.endpoints: dict[str, tuple[str, int]] = {}
        """The host and port of each listener for clients: those advertised, else those in `addresses`."""
        self._runs_due = False
        node.purgatory.earlier = self._set_deadline_timer
        node.call_soon = self._call_soon
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._housekeeping_timer: asyncio.TimerHandle | None = None
        self._checkpoint: asyncio.Task[None] | None = None
        self.storage_failures: set[str] = set()
        self.address = ("", 0)
        self.listeners = listeners_of(config)
        """The listeners for clients, in the order of the setting `listeners`."""
        self._quotas = ConnectionQuotas(config, [each.name for each in self.listeners], node.cluster)
        self.metrics_port: int | None = None
        """The port of /metrics; None if /metrics is not served."""
        self.address07: tuple[str, int] | None = None
        """Host and port of the listener for Kafka 0.7; None if there is none."""

    # --- beginning and end -------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> None:
        """Listen on all listeners. Port 0 means any free port; `address` then has the chosen port.

        `host` and `port` are those of the first listener; the setting `listeners` has those of the others.

        Raises:
            NetworkError: an address cannot be listened on.
            ConfigError: a listener's certificate or users are missing or malformed.
        """
        config = self.node.config
        first, *others = self.listeners
        listeners = [first._replace(host=host, port=port), *others]
        for each in listeners:
            if each.protocol != PLAINTEXT:
                self._secure(each)
        bound: list[tuple[Listener, socket.socket]] = []
        try:
            bound.extend((each, self._bind(each.host, each.port)) for each in listeners)
        except NetworkError:
            for _, opened in bound:
                opened.close()
            raise
        texts, told = [], []
        for place, (each, opened) in enumerate(bound):
            address = self.addresses[each.name] = opened.getsockname()[:2]
            placed = each.bound_to(address[1])
            bound[place] = placed, opened
            self.endpoints[each.name] = placed.advertised or address
            texts.append(f"{each.name}://{_host_port(address)}")
            told.append(f"{each.name}://{_host_port(self.endpoints[each.name])}")
            if not (each.has_sasl or self._asks_for_certificates(each)):
                warn_if_exposed(opened, "read, write and delete all topics", logger)
        self.address = self.addresses[first.name]
        shown = {
            "node.id": str(self.node.node_id),
            "listeners": ",".join(texts),
            "advertised.listeners": ",".join(told),
        }
        config.started_with = {name: shown[name] for name in shown if name not in config.settings}
        self.loop.set_exception_handler(self._loop_caught)
        backlog = max(self.node.config.integer("socket.listen.backlog.size"), BACKLOG_MIN)
        for each, opened in bound:
            gate = ListenerGate(self._quotas, each.name, self.monotonic)
            acceptor = Acceptor(self.loop, self._maker_for(each), self.node.failures, gate)
            self._acceptors.append(acceptor)
            acceptor.start(opened, backlog)
        self._housekeeping_timer = self.loop.call_later(HOUSEKEEPING_S, self._keep_house)

    def _secure(self, listener: Listener) -> None:
        from penstock.broker.security.listener_security import ListenerSecurity

        self.securities[listener.name] = ListenerSecurity(listener, self.node)
        if listener.has_tls and not self.tls_scratch:
            from penstock.broker.network.handshake_turns import HandshakeTurns

            self.tls_scratch = memoryview(bytearray(SCRATCH_BYTES))
            self.handshake_turns = HandshakeTurns(self.loop)

    def _asks_for_certificates(self, listener: Listener) -> bool:
        security = self.securities.get(listener.name)
        return security is not None and security.settings.text("ssl.client.auth") == "required"

    def _maker_for(self, listener: Listener) -> Callable[[], asyncio.BaseProtocol]:
        """Return a function that creates the asyncio protocol object of a new connection to a listener."""
        security = self.securities.get(listener.name)

        def make() -> ServedConnection:
            connection = ServedConnection(self)
            connection.listener, connection.security = listener, security
            return connection

        def make_encrypted() -> asyncio.BaseProtocol:
            from penstock.broker.network.tls_front import TlsFront

            assert security is not None
            return TlsFront(self, make(), security)

        return make_encrypted if listener.has_tls else make

    def _remove_expired_tokens(self) -> None:
        """Remove delegation tokens that have expired, every `delegation.token.expiry.check.interval.ms`."""
        from penstock.broker.security.tokens import records_of_expired

        now = self.monotonic()
        if now >= self._tokens_at:
            interval_ms = next(iter(self.securities.values())).settings.integer(
                "delegation.token.expiry.check.interval.ms"
            )
            self._tokens_at = now + interval_ms / 1000
            now_ms = self.now_ms()
            cluster = self.node.cluster
            if records_of_expired(cluster.security, now_ms):
                cluster.catch_up()  # another broker may have removed them
                cluster.alter(records_of_expired(cluster.security, now_ms), now_ms)

    def renew_certificates(self) -> None:
        """Reload the certificates of all listeners whose files have changed."""
        for security in self.securities.values():
            security.renew_certificates()

    def _bind(self, host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With 0 in place of TCP, asyncio would not set TCP_NODELAY, and an answer could wait 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if REUSE_ADDRESS is not None:
                listener.setsockopt(socket.SOL_SOCKET, REUSE_ADDRESS, 1)
            # Connections inherit this, so that a peer whose machine is gone is noticed at some time.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, option in _SOCKET_BUFFERS:
                size = self.node.config.integer(name)
                if size > 0:
                    listener.setsockopt(socket.SOL_SOCKET, option, size)
            listener.bind((host, port))
        except OSError as error:
            listener.close()
            raise bind_error(host, port, error) from error
        return listener

    async def stop(self) -> None:
        """Stop listening and close all connections. The node stays open."""
        self.is_stopping = True
        if self.dies:
            self._end_timers()
        for acceptor in self._acceptors:
            await acceptor.stop()
        if self._housekeeping_timer is not None:
            self._housekeeping_timer.cancel()
        if self._checkpoint is not None:
            await self._checkpoint
        logger.info("stopping with %d connections open", len(self.connections))
        answering: list[Hosted] = []
        for connection in list(self.connections):
            if connection.owes_answer and not self.dies:
                answering.append(connection)
            else:
                connection.close("the broker stops")
        # Responses that are being sent are completed if their clients read in time.
        deadline = self.loop.time() + SHUTDOWN_GRACE_S
        while any(each.owes_answer for each in answering) and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in answering:
            connection.close("the broker stops")
        while self.connections:
            await asyncio.sleep(0)
        self._end_timers()
        self.loop.set_exception_handler(None)

    def _end_timers(self) -> None:
        """Cancel all timers, because after a restart another server on the same loop uses the same files."""
        self._has_ended = True
        for timer in (self._deadline_timer, self._housekeeping_timer):
            if timer is not None:
                timer.cancel()

    @property
    def bootstrap(self) -> str:
        """The address for clients: ``host:port``."""
        return _host_port(self.address)

    @property
    def is_listening(self) -> bool:
        return bool(self._acceptors)

    @property
    def waiting_connections(self) -> int:
        """The number of connections, at most one per listener, that wait because of a connection limit."""
        return sum(acceptor.holds_connection for acceptor in self._acceptors)

    # --- connections -------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """Return the number of a new connection; the broker's first one has 1."""
        self.accepted += 1
        return next(self._numbers)

    def set_faults(self, faults_of: Callable[[ServedConnection], FrameFaults]) -> None:
        """Install fault injection in all open and new connections; `faults_of` makes the object for each."""
        self._faults_of = faults_of
        for connection in self.connections:
            self._give_faults(connection)

    def _give_faults(self, connection: Hosted) -> None:
        if (
            self._faults_of is not None
            and isinstance(connection, ServedConnection)
            and connection.faults is None
        ):
            connection.faults = self._faults_of(connection)

    def admit(self, connection: Hosted) -> bool:
        """Add a new connection; return False if its address has too many, or the server stops."""
        self.connections[connection] = None
        self._give_faults(connection)
        is_good = self._quotas.admit(connection.peer)
        if self.is_stopping:
            return False
        if not is_good:
            self.refused += 1
            self.node.limited_log.write(
                logging.WARNING,
                "refused connections",
                "refusing a connection from %s: too many are open",
                connection.peer,
            )
        return is_good

    def forget(self, connection: Hosted) -> None:
        """Remove a connection that has ended, and accept connections that a limit has delayed."""
        if self.connections.pop(connection, True) is None:
            self._quotas.forget(connection.peer)
            if connection.listener is not None:
                self._quotas.leave(connection.listener.name)
            self._look_for_room()

    def _heed_limits(self) -> None:
        """Apply changed connection limits: close the idlest excess connections, or accept waiting ones."""
        for connection in self._quotas.excess(sorted(self.connections, key=_active_at)):
            connection.close("there are more connections than max.connections")
        self._look_for_room()

    def _look_for_room(self) -> None:
        for acceptor in self._acceptors:
            acceptor.look_for_room()

    def make_room(self, size: int, asking: Hosted) -> bool:
        """Close connections, the longest inactive first, until memory for `size` more bytes is free.

        Return False if `asking` itself was closed.
        """
        while self.buffers.is_short_of(size):
            holders = [connection for connection in self.connections if connection.holds_buffer]
            slowest = min(holders, key=_active_at, default=asking)
            slowest.close("requests that are still arriving take too much memory")
            if slowest is asking:
                return False
            slowest.drop_frame()
        return True

    def hold(self, size: int) -> bool:
        """Reserve memory for a waiting request of `size` bytes; return False if the limit is exceeded."""
        waiting = self._waiting_bytes + size
        if size > WAITING_BYTES_SMALL and 0 <= self._waiting_bytes_max < waiting:
            return False
        self._waiting_bytes = waiting
        return True

    def let_go(self, size: int) -> None:
        """Release `size` bytes that `hold` has reserved for a request that waits no longer."""
        self._waiting_bytes -= size

    # --- waiting -----------------------------------------------------------------------------------------

    def park(self, wait: Wait, resume: Callable[[], None]) -> DelayedOperation:
        """Park a request in the purgatory. `_set_deadline_timer` sets the timer for its deadline."""
        return self.node.purgatory.park(wait, resume)

    def _call_soon(self, action: Callable[[], None]) -> None:
        """Run `action` in the loop's thread, then the requests that it made due. Any thread may call this."""

        def run() -> None:
            with self.node.failures.barrier("callback", "what a thread has finished"):
                action()
            self.run_due()

        self.loop.call_soon_threadsafe(run)

    def run_due(self) -> None:
        """Run the requests and timers that are due, and the ones that become due because of these.

        An exception ends the one request or timer that raised it. A call from inside a request or timer does
        nothing, because the outer call runs newly due ones in a loop.
        """
        if self._runs_due or self._has_ended:
            return
        self._runs_due = True
        purgatory, caught = self.node.purgatory, self.node.failures.caught
        try:
            for _ in range(DUE_ROUNDS_MAX):
                due = purgatory.take_due(self.monotonic())
                if not due:
                    return
                for resume in due:
                    try:
                        resume()
                    except Exception:
                        caught("waiter", "a request that waited, or an alarm")
            self.loop.call_soon(self._deadline_passed)
        except Exception:
            caught("timer", "what is due")
            self.loop.call_later(DUE_AGAIN_S, self._deadline_passed)
        finally:
            self._runs_due = False

    def _set_deadline_timer(self) -> None:
        if self._has_ended:
            return
        older = self._deadline_timer
        deadline = self.node.purgatory.next_deadline()
        if deadline is None:
            self._deadline_timer = None
        else:
            self._deadline_timer = self.loop.call_at(self._loop_time(deadline), self._deadline_passed)
        if older is not None:
            older.cancel()

    def clock_moved(self) -> None:
        """Run the requests and timers that are due now, because the node's clock has been moved."""
        if self._has_ended:
            return
        self._keep_house()
        self._deadline_passed()

    def _deadline_passed(self) -> None:
        try:
            self.run_due()
        finally:
            self._set_deadline_timer()

    def _loop_time(self, deadline: float) -> float:
        """Convert a deadline on the node's clock to the time of the event loop."""
        return self.loop.time() + deadline - self.monotonic()

    # --- housekeeping ------------------------------------------------------------------------------------

    def _keep_house(self) -> None:
        if self._housekeeping_timer is not None:
            self._housekeeping_timer.cancel()
        barrier = self.node.failures.barrier
        try:
            if self.securities:
                with barrier("housekeeping", "logins and certificates"):
                    self.login_limits.expire(self.monotonic())
                    self.renew_certificates()
                    self._remove_expired_tokens()
            with barrier("housekeeping", "connections that are idle"):
                self._heed_limits()
                self._close_idle()
            with barrier("housekeeping", "logs and groups"):
                self._report(self.node.maintain(self.now_ms()))
            with barrier("housekeeping", "the checkpoint"):
                self._begin_checkpoint()
            with barrier("housekeeping", "the timer of requests that wait"):
                # An exception (MemoryError, for example) may have prevented that the timer was set.
                self._set_deadline_timer()
        finally:
            self._housekeeping_timer = self.loop.call_later(HOUSEKEEPING_S, self._keep_house)

    def _close_idle(self) -> None:
        if self._idle_s <= 0:
            return
        now = self.monotonic()
        for connection in list(self.connections):
            if now - connection.active_at > self._idle_s and not connection.is_parked:
                connection.close(f"nothing has moved for {self._idle_s:.0f} s")

    def _begin_checkpoint(self) -> None:
        now = self.monotonic()
        if now >= self._checkpoint_at and self._checkpoint is None:
            self._checkpoint_at = now + self._checkpoint_s
            self._checkpoint = self.loop.create_task(self._write_checkpoint())

    async def _write_checkpoint(self) -> None:
        """Force closed segments to disk in other threads, then write the checkpoint of recovery points."""
        store = self.node.store
        try:
            flushes = store.begin_checkpoint()
            for flush in flushes:
                await self.loop.run_in_executor(None, flush.pending.sync)
            store.end_checkpoint(flushes)
        except StorageError as error:
            self._report([error])
        except Exception:
            self.node.failures.caught("checkpoint", "noting how far logs are safe")
        finally:
            self._checkpoint = None

    def _loop_caught(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an uncaught exception that has reached the event loop, which continues to run."""
        error = context.get("exception") or RuntimeError(context.get("message"))
        self.node.failures.caught("event loop", str(context.get("message")), error)

    def _report(self, failures: list[StorageError]) -> None:
        """Log storage failures, each persistent one only once, and record them for the health page."""
        messages = {str(failure) for failure in failures}
        for message in sorted(messages - self.storage_failures):
            logger.error("%s", message)
        self.storage_failures = messages


def _active_at(connection: Hosted) -> float:
    return connection.active_at


def _host_port(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
