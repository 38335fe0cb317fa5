"""Runs the brokers of a `Cluster` on one event loop: one `ClusterNode` per broker, and one `Shared`."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.config.values import BrokerConfig
from penstock.broker.interceptors import Stage
from penstock.broker.metadata.own_authority import first_features_of
from penstock.broker.metadata.stores import open_store
from penstock.broker.network.listeners import listeners_of, reachable
from penstock.broker.network.serving import serving
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import MemoryStore
from penstock.broker.replication.control.authority import RemoteAuthority
from penstock.broker.replication.control.forwarding import Forwarding
from penstock.broker.replication.control.quorum import Quorum
from penstock.broker.replication.coordinators import ClusterCoordinators
from penstock.broker.replication.fetcher import ReplicaFetchSettings
from penstock.broker.replication.gate import RACK_AWARE, ReplicationGate
from penstock.broker.replication.member import ClusterMember
from penstock.broker.replication.member_view import MemberView
from penstock.broker.replication.metadata_publisher import MetadataPublisher
from penstock.broker.replication.transport.local import LocalTransport
from penstock.broker.replication.transport.messages import CONTROLLER
from penstock.common.failures import Failures
from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.log.directory.checkpoint import read_offsets, write_offsets
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from random import Random

    from penstock.broker.network.server import Server
    from penstock.broker.partitions.log_store import LogStore
    from penstock.clock import Clock

logger = logger_named("penstock.broker")

HIGH_WATERMARKS = "replication-offset-checkpoint"

SAVE_S = 5.0
"""The interval in seconds for saving high watermarks (`replica.high.watermark.checkpoint.interval.ms`)."""

STOP_PATIENCE_S = 10.0
"""The maximum seconds that a stopping broker waits for other brokers to take over its leaderships."""

STOP_STEP_S = 0.02

ALIVE_PATIENCE_S = 30.0
"""The maximum seconds that a starting broker waits until the controller counts it as alive. A broker
that cannot reach the controller waits for all of this time.
"""

ALIVE_SOON_S = 0.5
"""The seconds for which a starting broker checks in every turn of the event loop if the controller
counts it as alive. Usually this takes milliseconds.
"""

ALIVE_STEP_S = 0.01
"""The seconds between two checks, once `ALIVE_SOON_S` is over, if the controller counts a starting
broker as alive.
"""


class Shared:
    """The objects that a cluster's brokers share: the controller with its log, the transport, the loop."""

    def __init__(
        self, clock: Clock, data_dir: str | None, config: BrokerConfig, random: Random, size: int
    ) -> None:
        self.clock = clock
        self.data_dir = data_dir
        self.config = config
        self.random = random
        self.size = size
        """The number of brokers in the cluster, running or not."""
        self.failures = Failures(clock.monotonic)
        self.loop: asyncio.AbstractEventLoop
        self.transport: LocalTransport
        self.quorum: Quorum
        self.numbers = itertools.count(1)
        """The counter for connection numbers, which all brokers share so that each number is unique."""
        self.nodes: dict[int, Node] = {}
        """The nodes of the running brokers, by id."""
        self._store: LogStore | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expiring_s = config.integer("broker.session.timeout.ms") / 1000 / 8
        self._expires_at = 0.0
        """The time of the next check for expired broker sessions, in seconds of the event loop's clock."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the controller.

        Raises:
            StorageError: the controller's directory cannot be used.
        """
        self.loop = loop
        self.transport = LocalTransport(loop, self.failures)
        if self._store is None or self.data_dir is not None:
            settings = (
                {} if self.data_dir is None else {"log.dirs": os.path.join(self.data_dir, "controller")}
            )
            self._store = open_store(BrokerConfig({**settings, "node.id": "0"}), self.clock)
        session_s = self.config.integer("broker.session.timeout.ms") / 1000
        rebalances = self.config.boolean("auto.leader.rebalance.enable")
        self.quorum = Quorum(
            self._store.metadata_log(),
            self._store.cluster_id,
            self.transport,
            self.clock,
            session_s,
            self.random,
            lambda: self.config.boolean("unclean.leader.election.enable"),
            self.config.integer("leader.imbalance.check.interval.seconds") if rebalances else None,
            lambda: self.config.integer("min.insync.replicas"),
            self.config.integer("unclean.leader.election.interval.ms") / 1000,
            first_features_of(self.config),
        )
        self.quorum.directory_id = self._store.directory_id
        self.transport.attach(CONTROLLER, self.quorum.receive, lambda: None)
        self._expires_at = loop.time()
        self._expire()

    def end(self) -> None:
        """Stop the controller.

        Raises:
            StorageError: the controller's log could not be forced to disk.
        """
        if self._timer is not None:
            self._timer.cancel()
        self.transport.detach(CONTROLLER)
        if self._store is not None:
            self._store.close()

    def login_secret(self) -> bytes:
        """Return the secret from which SCRAM salts for unknown users come; it is the same at all brokers."""
        assert self._store is not None
        return self._store.login_secret()

    def _expire(self) -> None:
        # While the loop was busy, or the process had no CPU, heartbeats could not arrive either.
        now = self.loop.time()
        self.quorum.excuse(now - self._expires_at)
        self._expires_at = now + self._expiring_s
        self._timer = self.loop.call_at(self._expires_at, self._expire)
        self.expire()

    def expire(self) -> None:
        """Fence the brokers whose sessions have expired because they sent no heartbeat in time."""
        with self.failures.barrier("controller", "brokers whose session has ended"):
            self.quorum.expire()

    def reach(self, source: int, target: int) -> Node | None:
        """Return the node `target`, or None if it does not run or its link to `source` is cut."""
        return self.nodes.get(target) if self.transport.links.passes(source, target) else None


class ClusterNode:
    """One broker of a cluster. Its id, port and data stay the same when it is stopped and started again."""

    def __init__(
        self,
        node_id: int,
        rack: str | None,
        host: str,
        port: int,
        texts: Mapping[str, str],
        shared: Shared,
        as_version: str | None = None,
    ) -> None:
        """Prepare a broker that does not run yet. `as_version` is the release of Kafka to behave as.

        Raises:
            ConfigError: a setting or the release is unknown, or a value does not fit.
        """
        self.id = node_id
        self.rack = rack
        self.host = host
        self.port = port
        self.server: Server | None = None
        """The running server; None while the broker is stopped."""
        self.member: ClusterMember | None = None
        self._shared = shared
        self._as_version = as_version
        self._texts = {**texts, "node.id": str(node_id)}
        if rack is not None:
            self._texts["broker.rack"] = rack
        if shared.data_dir is not None:
            self._texts["log.dirs"] = os.path.join(shared.data_dir, f"broker-{node_id}")
        self.config = BrokerConfig(self._texts, as_version)
        self._memory: MemoryStore | None = None
        self._saved: dict[tuple[str, int], int] = {}
        self._lives = 0
        self._was_killed = False
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Event
        self._saver: asyncio.TimerHandle | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients: ``host:port``."""
        return reachable(self.host, self.port)

    @property
    def is_running(self) -> bool:
        return self.server is not None

    # --- starting ----------------------------------------------------------------------------------------

    async def start(
        self,
        prepare: Callable[[Server], None],
    ) -> None:
        """Start the broker; return when clients can connect. Does nothing if the broker runs already.

        `prepare` is called with the server before the broker joins the cluster.

        Raises:
            NetworkError, StorageError, ConfigError: the broker cannot start.
        """
        if self._task is not None:
            return
        self._stopping = asyncio.Event()
        started: asyncio.Future[None] = self._shared.loop.create_future()
        self._task = self._shared.loop.create_task(self._live(started, prepare))
        try:
            await started
        except BaseException:
            self._task = None
            raise

    async def wait_until_alive(self) -> None:
        """Wait until the controller counts the broker as alive, `ALIVE_PATIENCE_S` at most."""
        now = self._shared.loop.time()
        soon, deadline = now + ALIVE_SOON_S, now + ALIVE_PATIENCE_S
        while self.member is not None and not self.member.is_alive and now < deadline:
            await asyncio.sleep(0 if now < soon else ALIVE_STEP_S)
            now = self._shared.loop.time()

    async def _live(
        self,
        started: asyncio.Future[None],
        prepare: Callable[[Server], None],
    ) -> None:
        shared = self._shared
        try:
            store = self._open_store()
            async with serving(
                self.config,
                store,
                shared.clock,
                self.host,
                self.port,
                numbers=shared.numbers,
                make_node=self._make_node,
            ) as server:
                prepare(server)
                self._keep_ports(server)
                self.server = server
                member = self.member
                assert member is not None
                shared.nodes[self.id] = server.node
                shared.transport.attach(self.id, member.receive, server.run_due)
                member.join(dict(server.endpoints))
                self._save_later()
                started.set_result(None)
                try:
                    await self._stopping.wait()
                finally:
                    self.server = None
                    self._forget(dies=server.dies)
        except BaseException as error:
            self._forget(dies=True)
            if started.done():
                raise
            started.set_exception(error)

    def _make_node(self, config: BrokerConfig, store: LogStore, clock: Clock, interceptors: Any) -> Node:
        shared, self._lives = self._shared, self._lives + 1
        member = ClusterMember(
            self.id,
            shared.transport,
            clock,
            lag_s=config.integer("replica.lag.time.max.ms") / 1000,
            heartbeat_s=config.integer("broker.heartbeat.interval.ms") / 1000,
            incarnation=self._lives,
            random=shared.random,
            rack=self.rack,
            saved=self._saved,
            fetching=ReplicaFetchSettings.of(config),
            was_clean=store.was_clean and not self._was_killed,
        )
        authority = RemoteAuthority(shared.quorum, shared.transport.links, member, shared.size)
        records, next_batch = shared.quorum.everything()
        publisher = MetadataPublisher(config, store, clock.now_ms(), member, authority, records)
        cluster = publisher.cluster
        cluster.login_secret = shared.login_secret
        node = Node(config, store, clock, interceptors, cluster)
        node.membership = member.moves = ClusterCoordinators(node, member, shared)
        member.begin(publisher, node, next_batch)
        gate = ReplicationGate(member, selects_by_rack=config.text("replica.selector.class") in RACK_AWARE)
        node.view = MemberView(member.brokers, shared.quorum, authority.commit, shared.random)
        node.interceptors.set(Stage.FORWARDING, Forwarding(authority).intercept)
        node.interceptors.set(Stage.REPLICATION, gate.intercept)
        self.member = member
        return node

    def _open_store(self) -> LogStore:
        if self._shared.data_dir is not None:
            store = open_store(self.config, self._shared.clock)
            self._saved = {
                (topic, index): offset for (topic, index), offset in read_offsets(self._watermarks).items()
            }
            return store
        if self._memory is None:
            self._memory = MemoryStore(self.id, self._shared.clock)
        return self._memory

    def _keep_ports(self, server: Server) -> None:
        """Store the ports on which the server listens, so that the next start uses them again."""
        self.port = server.address[1]
        if "listeners" in self._texts:
            listeners = [
                f"{each.name}://{each.host}:{server.addresses[each.name][1]}"
                for each in listeners_of(self.config)
            ]
            self._texts["listeners"] = ",".join(listeners)
            self.config = BrokerConfig(self._texts, self._as_version)

    # --- ending ------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Shut down cleanly: other brokers take over the leaderships, then the connections close.

        Raises:
            StorageError: data could not be forced to disk.
        """
        member = self.member
        if self.server is None or member is None:
            return
        member.wants_stop = True
        self._was_killed = False
        deadline = self._shared.loop.time() + STOP_PATIENCE_S
        while not member.may_stop and self._shared.loop.time() < deadline:
            member.beat()
            await asyncio.sleep(STOP_STEP_S)
        self.leave()
        failure = await self.end()
        self._shared.quorum.gone(self.id)
        if failure is not None:
            raise failure

    async def kill(self) -> None:
        """End the broker as under kill -9: the controller notices when the broker's session expires."""
        if self.server is not None:
            self.server.dies = self._was_killed = True
            self.leave()
            await self.end()

    def leave(self) -> None:
        """End the broker's membership in the cluster: no messages are sent or received from now on."""
        if self.member is not None:
            if self.server is not None and not self.server.dies:
                self._save()
            self.member.end()
        self._shared.transport.detach(self.id)
        self._shared.nodes.pop(self.id, None)

    async def end(self) -> BaseException | None:
        """Close the server and its store; return the error if closing has failed, or None."""
        task, self._task = self._task, None
        if task is None:
            return None
        self._stopping.set()
        try:
            await task
        except PenstockError as error:
            return error
        return None

    def _forget(self, *, dies: bool) -> None:
        if self._saver is not None:
            self._saver.cancel()
        self._shared.nodes.pop(self.id, None)

    # --- high watermarks ---------------------------------------------------------------------------------

    def _save_later(self) -> None:
        self._saver = self._shared.loop.call_later(SAVE_S, self._save_again)

    def _save_again(self) -> None:
        self._save_later()
        with self._shared.failures.barrier("replication", "noting high watermarks"):
            self._save()

    def _save(self) -> None:
        """Save the high watermarks of the partitions, in memory or in a file beside the logs."""
        if self.member is None or self.server is None:
            return
        before = dict(self._saved)
        self.member.save_high_watermarks()
        if self._shared.data_dir is not None and self._saved != before:
            write_offsets(self._watermarks, {TopicPartition(*key): each for key, each in self._saved.items()})

    @property
    def _watermarks(self) -> str:
        return os.path.join(str(self.config.data_dir), HIGH_WATERMARKS)
