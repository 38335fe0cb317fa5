"""The asyncio shell of the broker: the listening socket, its connections, the timers, the process.

One event loop does everything. Nothing here decides what an answer says; it decides who gets a turn,
who gets memory, and who is disconnected.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from penstock.broker.config.values import BrokerConfig
from penstock.broker.interceptors import Stage
from penstock.broker.network.connection import Connection
from penstock.broker.network.frame_buffers import FrameBuffers
from penstock.broker.network.kept_answers import KeptAnswers
from penstock.broker.network.listeners import advertised_at, listening_at
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import LogStore, open_store
from penstock.clock import Clock, SystemClock
from penstock.common.accepting import Acceptor, raise_descriptor_limit
from penstock.common.exposure import warn_if_exposed
from penstock.common.logs import PrintableFormatter, logger_named
from penstock.common.serving_thread import run_to_the_end
from penstock.errors import NetworkError, StorageError
from penstock.printable import printable

if TYPE_CHECKING:
    from penstock.broker.requests.purgatory import Parked, Wait
    from penstock.broker.requests.routes import Interceptor

logger = logger_named("penstock.broker")

SCRATCH_BYTES = 64 << 10
"""The buffer every connection reads into first: small requests are answered from it."""

BACKLOG_MIN = 512
"""Connections that may wait for their turn. Whoever finds no room there tries again a second later."""

WAITING_FACTOR = 16
"""How many times its size a request weighs while it waits: decoded, each number is an object."""

WAITING_BYTES_SMALL = 4 << 10
"""Requests up to this size may always wait. That there are not too many is up to `max.connections`."""

HOUSEKEEPING_S = 1.0
"""How often logs are asked what is due, and connections whether they are alive."""

DUE_ROUNDS_MAX = 100
"""How often what has become due by what was due runs before the loop has a turn."""

DUE_AGAIN_S = 0.1
"""When it is looked again what is due after looking has failed."""

SHUTDOWN_GRACE_S = 2.0
"""How long an orderly end waits for answers that are being sent."""

_SOCKET_BUFFERS = (
    ("socket.send.buffer.bytes", socket.SO_SNDBUF),
    ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
)


class Server:
    """Serves one node on one address.

    Raises:
        ConfigError: `advertised.listeners` is malformed.
    """

    def __init__(
        self, node: Node, loop: asyncio.AbstractEventLoop, connect: Callable[[Server], Connection]
    ) -> None:
        config = node.config
        self.node = node
        self.dies = False
        """Set where the end is to be that of a killed process: nothing is flushed, nothing is marked."""
        self._connect = connect
        self.loop = loop
        self.monotonic = node.clock.monotonic
        self.now_ms = node.clock.now_ms
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.buffers = FrameBuffers(config.integer("queued.max.request.bytes"))
        self.answers = KeptAnswers(node.kept)
        self._waiting_bytes = 0
        self._waiting_bytes_max = config.integer("queued.max.request.bytes") // WAITING_FACTOR
        self.frame_bytes_max = config.integer("socket.request.max.bytes")
        self.connections: dict[Connection, None] = {}
        self._by_peer: dict[str, int] = {}
        self._idle_s = config.integer("connections.max.idle.ms") / 1000
        self._checkpoint_s = config.integer("log.flush.offset.checkpoint.interval.ms") / 1000
        self._checkpoint_at = self.monotonic() + self._checkpoint_s
        self.is_stopping = False
        self.accepted = 0
        """Connections so far, refused ones included."""
        self.refused = 0
        """Connections refused for a limit."""
        self._acceptor: Acceptor | None = None
        self._runs_due = False
        node.parking.earlier = self._set_deadline_timer
        node.call_soon = self._call_soon
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._housekeeping_timer: asyncio.TimerHandle | None = None
        self._checkpoint: asyncio.Task[None] | None = None
        self._failures: set[str] = set()
        self.address = ("", 0)
        self.advertised = advertised_at(config)
        """Host and port that clients are told; None where they are told the address they have reached."""
        self.metrics_port: int | None = None
        """Where /metrics is served, if it is."""
        self.address07: tuple[str, int] | None = None
        """Where Kafka 0.7 is spoken, if it is."""

    # --- beginning and end -------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> None:
        """Listen. Port 0 takes any free one; `address` says which.

        Raises:
            NetworkError: the address cannot be listened on.
        """
        listener = self._bind(host, port)
        self.address = listener.getsockname()[:2]
        warn_if_exposed(listener, "read, write and delete all topics", logger)
        address = f"PLAINTEXT://{self.bootstrap}"
        config = self.node.config
        shown = {
            "node.id": str(self.node.node_id),
            "listeners": address,
            "advertised.listeners": address,
        }
        config.started_with = {name: shown[name] for name in shown if name not in config.settings}
        self.loop.set_exception_handler(self._loop_caught)
        self._acceptor = Acceptor(self.loop, lambda: self._connect(self), self.node.failures)
        backlog = max(self.node.config.integer("socket.listen.backlog.size"), BACKLOG_MIN)
        self._acceptor.start(listener, backlog)
        self._housekeeping_timer = self.loop.call_later(HOUSEKEEPING_S, self._keep_house)

    def _bind(self, host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Connections inherit this; a peer whose machine is gone is noticed some day.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, option in _SOCKET_BUFFERS:
                size = self.node.config.integer(name)
                if size > 0:
                    listener.setsockopt(socket.SOL_SOCKET, option, size)
            listener.bind((host, port))
        except OSError as error:
            listener.close()
            raise _bind_error(host, port, error) from error
        return listener

    async def stop(self) -> None:
        """Stop listening, hang up on everybody. The node stays as it is."""
        self.is_stopping = True
        if self._acceptor is not None:
            await self._acceptor.stop()
        for timer in (self._deadline_timer, self._housekeeping_timer):
            if timer is not None:
                timer.cancel()
        if self._checkpoint is not None:
            await self._checkpoint
        logger.info("stopping with %d connections open", len(self.connections))
        answering = []
        for connection in list(self.connections):
            if connection.owes_answer and not self.dies:
                answering.append(connection)
            else:
                connection.close("the broker stops")
        # Answers on their way arrive; whoever does not read them loses them.
        deadline = self.loop.time() + SHUTDOWN_GRACE_S
        while any(each.owes_answer for each in answering) and self.loop.time() < deadline:
            await asyncio.sleep(0.005)
        for connection in answering:
            connection.close("the broker stops")
        while self.connections:
            await asyncio.sleep(0)
        self.loop.set_exception_handler(None)

    @property
    def bootstrap(self) -> str:
        """What a client needs to know: ``host:port``."""
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    # --- connections -------------------------------------------------------------------------------------

    def next_number(self) -> int:
        """The number of a new connection; the first is 1."""
        self.accepted += 1
        return self.accepted

    def admit(self, connection: Connection) -> bool:
        """Take a new connection in, unless there are too many."""
        peer = connection.peer
        count = self._by_peer.get(peer, 0)
        self.connections[connection] = None
        self._by_peer[peer] = count + 1
        if self.is_stopping:
            return False
        config = self.node.config  # clients may change both while the broker runs
        if len(self.connections) > config.integer("max.connections") or count >= config.integer(
            "max.connections.per.ip"
        ):
            self.refused += 1
            self.node.limited_log.write(
                logging.WARNING,
                "refused connections",
                "refusing a connection from %s: too many are open",
                peer,
            )
            return False
        return True

    def forget(self, connection: Connection) -> None:
        """A connection is gone."""
        if self.connections.pop(connection, True) is None:
            count = self._by_peer[connection.peer] - 1
            if count:
                self._by_peer[connection.peer] = count
            else:
                del self._by_peer[connection.peer]

    def make_room(self, size: int, asking: Connection) -> bool:
        """See to it that `size` bytes can be lent; whoever has sent nothing for longest goes first.

        Return False where that was the connection asking.
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
        """Let a request of so many bytes wait; False if those that wait already take too much memory."""
        waiting = self._waiting_bytes + size
        if size > WAITING_BYTES_SMALL and 0 <= self._waiting_bytes_max < waiting:
            return False
        self._waiting_bytes = waiting
        return True

    def let_go(self, size: int) -> None:
        """A request that `hold` has let wait does so no longer."""
        self._waiting_bytes -= size

    # --- waiting -----------------------------------------------------------------------------------------

    def park(self, wait: Wait, resume: Callable[[], None]) -> Parked:
        """Park a request. Its deadline is kept by `_set_deadline_timer`."""
        return self.node.parking.park(wait, resume)

    def _call_soon(self, action: Callable[[], None]) -> None:
        """Run something in this thread, and what becomes due by it. Harmless from any thread."""

        def run() -> None:
            with self.node.failures.barrier("callback", "what a thread has finished"):
                action()
            self.run_due()

        self.loop.call_soon_threadsafe(run)

    def run_due(self) -> None:
        """Run what has become due, and what becomes due by that. Each ends alone if it raises; this does not.

        Asked for by what runs here, it does nothing: the call that is at work finds what is due. Otherwise
        a chain of requests that wait for each other would be a chain of calls within calls.
        """
        if self._runs_due:
            return
        self._runs_due = True
        parking, caught = self.node.parking, self.node.failures.caught
        try:
            for _ in range(DUE_ROUNDS_MAX):
                due = parking.take_due(self.monotonic())
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
        older = self._deadline_timer
        deadline = self.node.parking.next_deadline()
        if deadline is None:
            self._deadline_timer = None
        else:
            self._deadline_timer = self.loop.call_at(self._loop_time(deadline), self._deadline_passed)
        if older is not None:
            older.cancel()

    def clock_moved(self) -> None:
        """The node's clock has been moved: whatever is due by it happens now."""
        self._keep_house()
        self._deadline_passed()

    def _deadline_passed(self) -> None:
        try:
            self.run_due()
        finally:
            self._set_deadline_timer()

    def _loop_time(self, deadline: float) -> float:
        """A deadline of the node's clock on the clock of the loop."""
        return self.loop.time() + deadline - self.monotonic()

    # --- housekeeping ------------------------------------------------------------------------------------

    def _keep_house(self) -> None:
        if self._housekeeping_timer is not None:
            self._housekeeping_timer.cancel()
        barrier = self.node.failures.barrier
        try:
            with barrier("housekeeping", "connections that are idle"):
                self._close_idle()
            with barrier("housekeeping", "logs and groups"):
                self._report(self.node.maintain(self.now_ms()))
            with barrier("housekeeping", "the checkpoint"):
                self._begin_checkpoint()
            with barrier("housekeeping", "the timer of requests that wait"):
                # An exception (of memory, say) may have kept it from being set.
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
        """Force closed segments to disk, without holding up requests, and note how far logs are safe."""
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
        """What no other barrier has stopped comes here from the event loop, which goes on."""
        error = context.get("exception") or RuntimeError(context.get("message"))
        self.node.failures.caught("event loop", str(context.get("message")), error)

    def _report(self, failures: list[StorageError]) -> None:
        """Say what went wrong, once for as long as it stays the same."""
        messages = {str(failure) for failure in failures}
        for message in sorted(messages - self._failures):
            logger.error("%s", message)
        self._failures = messages


def _active_at(connection: Connection) -> float:
    return connection.active_at


def _bind_error(host: str, port: int, error: OSError) -> NetworkError:
    where = f"{host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return NetworkError(
            f"port {port} on {host} is in use; stop what listens there, or choose another port"
        )
    if error.errno == errno.EACCES:
        return NetworkError(
            f"cannot listen on {where}: ports below 1024 need privileges; choose another port"
        )
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return NetworkError(f"cannot listen on {where}: this machine has no such address")
    return NetworkError(f"cannot listen on {where}: {error.strerror or error}")


def run_broker(
    *,
    data_dir: str | None = None,
    host: str | None = None,
    port: int | None = None,
    config: Mapping[str, str] | None = None,
    as_version: str | None = None,
    config_file: str | None = None,
    announce: Callable[[str], object] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code 0.

    `config_file` is a ``server.properties``; `config` and the other arguments go before it.
    Host and port default to those of `listeners`. When clients can connect, one line is announced (by
    default printed): ``penstock broker 1 listening on 127.0.0.1:9092, data in DIR``.

    Raises:
        ConfigError: a setting is unknown or its value does not fit.
        NetworkError: the address cannot be listened on.
        StorageError: the data directory cannot be used, or another broker uses it.

    The process's soft limit of open files is raised towards the hard one.
    """
    log_to_stderr()
    texts: dict[str, str] = {}
    if config_file is not None:
        from penstock.broker.config.server_properties import read_properties

        reading = read_properties(config_file)
        texts |= reading.settings
        for remark in reading.remarks:
            logger.warning("%s", remark)
    texts |= config or {}
    if data_dir is not None:
        texts["log.dirs"] = data_dir
    settings = BrokerConfig(texts, as_version)
    raise_descriptor_limit()
    listed_host, listed_port = listening_at(settings)
    host = listed_host if host is None else host
    port = listed_port if port is None else port
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        run_to_the_end(runner, serve(settings, host, port, announce or _print_line))
    return 0


async def serve(config: BrokerConfig, host: str, port: int, announce: Callable[[str], object]) -> None:
    """Serve on the running loop until SIGTERM or SIGINT, then shut down in order.

    Raises:
        NetworkError, StorageError: as `run_broker`.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    clock = SystemClock()
    store = open_store(config, clock)
    async with serving(config, store, clock, host, port) as server:
        # What exists by now stays: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        node_id, place = server.node.node_id, store.describe()
        profile = f", as Kafka {config.profile.name}" if config.profile is not None else ""
        if not store.was_clean:
            logger.warning("the last run did not end in order: logs were checked")
        if server.metrics_port is not None:
            logger.info(
                "metrics at http://%s:%d/metrics", config.text("penstock.metrics.host"), server.metrics_port
            )
        if server.address07 is not None:
            logger.info("Kafka 0.7 at %s:%d", *server.address07)
        announce(f"penstock broker {node_id} listening on {server.bootstrap}, data in {place}{profile}")
        await stopping.wait()
    logger.info("stopped in order")


@asynccontextmanager
async def serving(
    config: BrokerConfig,
    store: LogStore,
    clock: Clock,
    host: str,
    port: int,
    *,
    interceptors: Sequence[Interceptor] = (),
    connect: Callable[[Server], Connection] | None = None,
) -> AsyncIterator[Server]:
    """Serve `store` on the running loop for as long as the block lasts, then close it.

    `interceptors` stand around every handler, the first outermost. `connect` makes the object of each
    connection, `Connection` by default: the seam for what happens to bytes rather than to requests.
    """
    server: Server | None = None
    loop = asyncio.get_running_loop()
    try:
        async with AsyncExitStack() as stack:
            node = Node(config, store, clock, interceptors)
            server = Server(node, loop, connect or Connection)
            metrics_port = config["penstock.metrics.port"]
            if isinstance(metrics_port, int):
                from penstock.broker.network.metrics import Metrics, serving_metrics

                metrics = Metrics()
                node.interceptors.set(Stage.METRICS, metrics.intercept)
                server.metrics_port = await stack.enter_async_context(serving_metrics(server, metrics))
            await server.start(host, port)
            inspection = server.node.inspect()
            if config.data_dir is not None:
                inspection.start()
            try:
                port07 = config["penstock.0.7.port"]
                if isinstance(port07, int):
                    from penstock.broker.network.kafka07 import serving07

                    host07 = config.text("penstock.0.7.host") or host
                    listening = serving07(config, store, clock, host07, port07, server.node.failures)
                    server.address07 = await stack.enter_async_context(listening)
                yield server
            finally:
                inspection.stop()
                await server.stop()
    finally:
        if server is not None and server.dies:
            store.abandon()
        else:
            if server is not None:
                for failure in server.node.note_producers():
                    logger.warning("what is known of producers is not written down: %s", failure)
            store.close()


def log_to_stderr() -> None:
    """Have what happens told on standard error, a line for each event: time (UTC), level, what happened.

    Whoever has set up logging already has it their way.
    """
    root = logging.getLogger("penstock")
    if root.handlers or logging.getLogger().handlers:
        return
    formatter = PrintableFormatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root.addHandler(handler)
    # Of each write to a peer that has gone it says so; that the peer has gone is told once, by us.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    root.setLevel(logging.INFO)


def _print_line(line: str) -> None:
    print(printable(line), flush=True)
