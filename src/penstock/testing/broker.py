"""`KafkaBroker`: the broker, with faults on demand and a clock that can be put forward."""

from __future__ import annotations

import asyncio
import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

from penstock.broker.broker import Broker
from penstock.broker.interceptors import Stage
from penstock.broker.metadata.planning import Planner
from penstock.clock import MovableClock, movable, stoppable
from penstock.common.hints import with_hints
from penstock.errors import ConfigError, NetworkError
from penstock.testing.answers import answering_faults
from penstock.testing.connection import FaultyConnection
from penstock.testing.faults import Faults

if TYPE_CHECKING:
    import os

    from penstock.broker.client_metrics.newest_values import ClientMetric
    from penstock.broker.client_metrics.service import ClientMetrics
    from penstock.broker.config.keyword_settings import BrokerSettings
    from penstock.broker.interceptors import InterceptorChain
    from penstock.broker.network.connection import Connection
    from penstock.broker.network.server import Server
    from penstock.broker.node import Node
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.requests.routes import Interceptor
    from penstock.broker.security.throwaway import Security
    from penstock.clock import Clock

T = TypeVar("T")


TEST_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    # Without sessions every Fetch names its partitions, so that a fault finds those it concerns.
    "max.incremental.fetch.session.cache.slots": "0",
}
"""What differs from the defaults of Kafka unless it is set: groups form at once, fetches are complete."""


class ConnectionInfo(NamedTuple):
    """One open connection: its number (what `connection=` of a fault means), and who is at its other end."""

    number: int
    client_id: str | None
    address: str


@with_hints("KafkaBroker")
class KafkaBroker(Broker):
    """A `penstock.Broker` for tests: the same arguments, and everything that can happen to a broker.

    `faults` are applied to requests. `pause`, `kill` and `restart` happen to the broker as a
    whole; data and port are kept. `advance` moves its clock, which is the machine's until then.
    """

    clock: MovableClock
    """The clock, for ``broker.clock.advance(hours=1)``; or the one that the broker was made with."""

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        as_version: str | None = None,
        listen_07: int | None = None,
        interceptors: Sequence[Interceptor] = (),
        security: Security | str | None = None,
        registry: bool | int = False,
        **settings: Unpack[BrokerSettings],
    ) -> None:
        merged = {**TEST_SETTINGS, **(config or {})}
        moved = clock or MovableClock()
        super().__init__(
            data_dir,
            host,
            port,
            config=merged,
            clock=moved,
            as_version=as_version,
            listen_07=listen_07,
            interceptors=interceptors,
            security=security,
            registry=registry,
            **settings,
        )
        self.faults = Faults()
        if clock is None and isinstance(moved, MovableClock):
            moved.when_moved = self._clock_was_moved
        self._numbers = itertools.count(1)
        self._pause: threading.Event | None = None
        self.chosen_cluster_id: str | None = None
        """The id that the cluster gets when the broker starts, in the place of one made up."""
        self._observers: tuple[Interceptor, ...] = ()

    def _open_store(self) -> LogStore:
        store = super()._open_store()
        if self.chosen_cluster_id is not None:
            store.cluster_id = self.chosen_cluster_id
        return store

    def _connect(self) -> Callable[[Server], Connection]:
        return lambda server: FaultyConnection(server, self.faults, self._numbers)

    def _intercept(self, chain: InterceptorChain) -> None:
        chain.set(Stage.FAULTS, answering_faults(self.faults))
        chain.set(Stage.EFFECTS, *self._observers)

    def observe(self, interceptor: Interceptor) -> Callable[[], None]:
        """Put an interceptor next to the handlers: it gets what the broker does, not what faults answer.

        Returns a function that takes it away.
        """

        def place() -> None:
            if self.is_running:
                self._call(lambda server: server.node.interceptors.set(Stage.EFFECTS, *self._observers))

        def remove() -> None:
            self._observers = tuple(each for each in self._observers if each is not interceptor)
            place()

        self._observers += (interceptor,)
        place()
        return remove

    # --- what happens to it ------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop in mid-stride, as under SIGSTOP: connections stay, new ones wait, nothing is answered."""
        if self._pause is not None:
            return
        self._pause = go_on = threading.Event()
        paused = threading.Event()

        def stand_still() -> None:
            paused.set()
            go_on.wait()

        self._running_loop().call_soon_threadsafe(stand_still)
        paused.wait()

    def resume(self) -> None:
        """Go on after `pause`. Harmless otherwise."""
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.set()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still for the length of a block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self) -> None:
        """Stop the broker; what is on disk stays. It may be started again."""
        self.resume()
        super().close()

    stop = close

    def kill(self) -> None:
        """End as under kill -9: connections drop, nothing is flushed, no clean shutdown is noted.

        What had been written is there after `start`: with a directory by way of recovery, as after a crash.
        """
        if self.is_running:
            self.resume()
            self._call(lambda server: setattr(server, "dies", True))
            super().close()

    def restart(self, *, kill: bool = False) -> None:
        """Stop (or kill) and start again, with the same port and the same data."""
        if kill:
            self.kill()
        else:
            self.close()
        self.start()

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Put the broker's clock forward; what is due by then happens before this returns.

        Sessions expire, retention deletes, long polls end. Connections do not count as idle for that time.
        ``broker.clock.advance(hours=1)`` does the same, unless the broker was made with a clock.
        """
        step_ms = ms + round(seconds * 1000)
        movable(self.clock).advance(step_ms)
        if getattr(self.clock, "when_moved", None) is None:  # a clock that is not the broker's own
            self._clock_was_moved(step_ms)

    def _clock_was_moved(self, step_ms: int) -> None:
        """Have what is due now happen, in the broker's thread, which may be the caller's."""

        def look(server: Server) -> None:
            for connection in server.connections:
                connection.active_at += step_ms / 1000
            server.clock_moved()

        loop = self._thread.loop
        if loop is None:
            return
        try:
            is_here = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here and self.server is not None:
            look(self.server)
        else:
            self._call(look)

    def stop_clock(self) -> None:
        """Let the broker's time stand still, until `start_clock` or `advance`. Harmless when it does.

        Sessions, retention and timeouts of transactions wait; requests are served.

        Raises:
            ConfigError: the broker was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).stop()

    def start_clock(self) -> None:
        """Let time go on from where it stood. Harmless when it goes.

        Raises:
            ConfigError: the broker was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).start()

    # --- what happens to share groups --------------------------------------------------------------------

    def expire_locks(self, group: str, topic: str | None = None, partition: int | None = None) -> int:
        """End the locks of a share group, as if their time were over; return how many records are free for
        that. A `topic` and a `partition` narrow it down.
        """
        return self._call(lambda server: server.node.sharing.end_locks(group, topic, partition))

    def end_share_sessions(self, group: str, member_id: str | None = None) -> int:
        """End the share sessions of a group, or of a member, as the broker does when it has too many.

        Returns how many. What they had locked is free, and their next request gets
        SHARE_SESSION_NOT_FOUND (122).
        """
        return self._call(lambda server: server.node.sharing.end_sessions(group, member_id))

    # --- what happens to logins --------------------------------------------------------------------------

    def expire_sessions(self, user: str | None = None) -> int:
        """End the sessions of a user, or of all, as if their tokens had expired; return how many.

        Their next request that does not begin a new authentication closes its connection.
        """

        def expire(server: Server) -> int:
            from penstock.broker.security.gate import SaslGate

            count = 0
            for connection in server.connections:
                gate = connection.session.resource(SaslGate)
                if gate is not None and user in (None, connection.session.principal.name):
                    gate.authenticator.end_session(server.monotonic())
                    count += 1
            return count

        return self._call(expire)

    def revoke_user(self, user: str) -> None:
        """Take all passwords from a user, and end the sessions that there are.

        Later logins are refused as those with a wrong password are.
        """

        def revoke(server: Server) -> None:
            cluster = server.node.cluster
            names = [key for key in cluster.security.credentials if key[0] == user]
            records = [
                RemoveUserScramCredentialRecord(name=name, mechanism=mechanism) for name, mechanism in names
            ]
            cluster.alter(records, server.node.clock.now_ms())
            for security in server.securities.values():
                if security.users is not None:
                    security.users.passwords.pop(user, None)

        from penstock.protocol.messages.remove_user_scram_credential_record import (
            RemoveUserScramCredentialRecord,
        )

        self._call(revoke)
        self.expire_sessions(user)

    def rotate_certificate(self, *, expired: bool = False, hosts: Sequence[str] | None = None) -> None:
        """Give the broker another certificate, for new connections.

        `expired` makes one whose time has passed; `hosts` one for these names only.

        Raises:
            ConfigError: the broker was not made with `security`, or has no TLS.
        """
        if self.security is None or not self.security.has_tls:
            raise ConfigError("a broker without TLS has no certificate; make it with security='SASL_SSL'")
        self.security.rotate_certificate(expired=expired, hosts=hosts)
        if self.is_running:
            self._call(lambda server: server.renew_certificates())

    # --- what it has -------------------------------------------------------------------------------------

    def create_topic(self, name: str | None = None, partitions: int = 1, **settings: object) -> str:
        """Create a topic and return its name; unnamed, it gets a name of its own. Settings as in `Broker`.

        Raises:
            KafkaError: it exists, or its name or a setting will not do.
        """
        topic = name if name is not None else f"topic-{uuid.uuid4().hex[:12]}"
        texts = {key.replace("_", "."): str(value) for key, value in settings.items()}

        def create(server: Server) -> None:
            cluster = server.node.cluster
            plan = Planner(cluster).new_topic(topic, partitions, configs=texts)
            cluster.create_topics([plan], server.node.clock.now_ms())

        self._call(create)
        return topic

    def subscribe_to_client_metrics(
        self, metrics: Sequence[str] = ("*",), *, interval_ms: int = 100, match: str = "", name: str = "test"
    ) -> None:
        """Ask clients to push metrics (KIP-714). The broker needs `penstock.client.metrics`.

        `metrics` are beginnings of names, ``*`` for all. `interval_ms`, 100 to 3,600,000, is how often; a
        client that has asked before learns of it after its interval, which is five minutes without a
        subscription. `match` chooses clients, such as ``client_id=loader-.*``. `name` is that of the
        subscription; another one of this name is replaced.

        Raises:
            ConfigError: `penstock.client.metrics` is off.
            KafkaError: INVALID_CONFIG (40) or INVALID_REQUEST (42): a value does not fit.
        """
        from penstock.broker.config.resource_keys import check_kept
        from penstock.broker.config.resource_types import METRICS_RESOURCE
        from penstock.protocol.messages.config_record import ConfigRecord

        texts = {"metrics": ",".join(metrics), "interval.ms": str(interval_ms), "match": match}

        def subscribe(server: Server) -> None:
            node = server.node
            _taken(node)
            check_kept(node.config, METRICS_RESOURCE, texts)
            node.cluster.alter(
                [
                    ConfigRecord(
                        resource_type=METRICS_RESOURCE, resource_name=name, name=key, value=text or None
                    )
                    for key, text in texts.items()
                ],
                node.clock.now_ms(),
            )

        self._call(subscribe)

    def client_metrics(self, name: str = "", client_id: str | None = None) -> list[ClientMetric]:
        """The newest value of every metric that clients have pushed; who has pushed last comes last.

        `name` is the beginning of names of metrics; `client_id` that of one client. What clients have pushed
        stays after they have closed.

        Raises:
            ConfigError: `penstock.client.metrics` is off.
        """
        return [
            row
            for row in self._call(lambda server: _taken(server.node).values.rows())
            if row.name.startswith(name) and client_id in (None, row.client_id)
        ]

    @property
    def connections(self) -> list[ConnectionInfo]:
        """The connections that are open now, oldest first."""

        def look(server: Server) -> list[ConnectionInfo]:
            found = [each for each in server.connections if isinstance(each, FaultyConnection)]
            return [ConnectionInfo(each.number, each.client_id, each.peer) for each in found]

        return self._call(look)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = self._thread.loop
        if loop is None:
            raise NetworkError("the broker is not running; start it first")
        return loop

    def _call(self, function: Callable[[Server], T]) -> T:
        """Have the broker's thread call `function`, and return what it returns."""
        done: Future[T] = Future()

        def run() -> None:
            server = self.server
            try:
                if server is None:
                    raise NetworkError("the broker is not running; start it first")
                done.set_result(function(server))
            except BaseException as error:
                done.set_exception(error)

        self._running_loop().call_soon_threadsafe(run)
        return done.result()


def _taken(node: Node) -> ClientMetrics:
    if node.client_metrics is None:
        raise ConfigError("no metrics of clients are taken: give the broker penstock_client_metrics=True")
    return node.client_metrics
