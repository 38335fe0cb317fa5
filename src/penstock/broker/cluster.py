"""`Cluster`: several Kafka brokers inside this process, with real replicas, on one thread and event loop.

    with Cluster(brokers=3) as cluster:
        producer = SomeKafkaClient(bootstrap_servers=cluster.bootstrap_servers)

Each broker has ports, logs, listeners and a rack of its own. One object in the process is the controller of
all brokers, and never fails. A cluster is for tests, and for seeing what broker failures do to a program.
Methods such as `kill` and `move_leader` (called levers) can be called from any thread but the cluster's own;
`penstock cluster` calls them from the command line. `KafkaCluster` is the same class with defaults for tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Self, TypeVar

from penstock.broker.cluster_node import ClusterNode, Shared
from penstock.broker.config.values import BrokerConfig, check_data_dir, log_unheeded, settings_texts
from penstock.broker.fault_injection import FaultInjection
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.held_requests import HeldBroker, holding, nothing
from penstock.broker.interceptors import Stage
from penstock.broker.lever_states import NodeState, PartitionState, Replica
from penstock.broker.network.listeners import listeners_of, settings_for_clients
from penstock.broker.partitions.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.replication.control.elections import ElectionKind
from penstock.broker.replication.transport.messages import CONTROLLER
from penstock.clock import Clock, MovableClock, movable, stoppable
from penstock.common.hints import with_hints
from penstock.common.java_hash import partition_of
from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError, NetworkError

if TYPE_CHECKING:
    import os

    from penstock.broker.faults.faults import Faults
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Interceptor
    from penstock.broker.security.throwaway import Security
    from penstock.broker.sharing.service import ShareService

T = TypeVar("T")

SharePlace = tuple[str, str, int]
"""A share partition: a share group, a topic, and the number of a partition."""

SETTLING_TURNS = 10
"""The number of event-loop turns after which a message has reached a broker and its response has come
back."""

BROKERS_MAX = 100
"""The maximum number of brokers of one cluster: each takes descriptors, timers, and connections to all
others."""


@with_hints("Cluster")
class Cluster(Served):
    """Several Kafka brokers, with ids that count up from `node.id`, which is 1 unless it is set.

    `data_dir` is a directory, created if it does not exist, that holds one directory in Kafka's layout for
    each broker; None keeps everything in memory. `ports` are the ports of the brokers' first listeners; 0, or
    no `ports`, takes free ports. `racks` are assigned to the brokers in turn; without them no broker has a
    rack. Settings, the same for all brokers, come as `config` under Kafka's dotted names, or as keyword
    arguments with underscores: ``Cluster(min_insync_replicas=2)``. Topics get as many replicas as there are
    brokers, three at most, unless `default.replication.factor` is set. `as_version` and `security` are as in
    `Broker`; traffic between brokers uses no sockets. `clock` may be a `ManualClock`: then time stands still
    until `advance`.

    Every method returns when its effect is complete, unless its docstring says otherwise. Methods name
    brokers by their ids.

    Raises:
        ConfigError: a keyword is no setting (the nearest one is suggested), or a value does not fit; the
            numbers of brokers, ports and racks do not match; or there is no such release.
    """

    _defaults: Mapping[str, str] = {}
    """The default settings of this class that differ from Kafka's."""

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        ports: Sequence[int] = (),
        *,
        racks: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
        clock: Clock | None = None,
        as_version: str | None = None,
        security: Security | str | None = None,
        **settings: object,
    ) -> None:
        if not isinstance(brokers, int) or isinstance(brokers, bool):
            raise ConfigError(f"brokers is {brokers!r}: a whole number is needed, such as 3")
        check_data_dir(data_dir)
        if not 1 <= brokers <= BROKERS_MAX:
            raise ConfigError(f"a cluster has 1 to {BROKERS_MAX} brokers, not {brokers}")
        if ports and len(ports) != brokers:
            raise ConfigError(f"{brokers} brokers need as many ports, not {len(ports)}")
        texts = settings_texts({**self._defaults, **(config or {})}, settings, "Cluster")
        texts.setdefault("default.replication.factor", str(min(brokers, 3)))
        self.security: Security | None = None
        """The certificates and users generated for tests, the same for all brokers; None without
        `security`."""
        if security is not None:
            from penstock.broker.security.throwaway import security_of

            self.security = security_of(security)
            texts = {**self.security.settings(host, 0), **texts}
        self.host = host
        self.clock: Clock = clock or MovableClock()
        self.data_dir = None if data_dir is None else str(data_dir)
        self.config = BrokerConfig(texts, as_version)
        """The settings that all brokers have in common."""
        self._shared = Shared(self.clock, self.data_dir, self.config, Random(), brokers)
        self._nodes: dict[int, ClusterNode] = {}
        listeners = len(listeners_of(self.config))
        for place in range(brokers):
            number = self.config.node_id + place
            rack = racks[place % len(racks)] if racks else None
            port = ports[place] if ports else 0
            own = {name: text for name, text in texts.items() if name != "broker.id"}
            for name in {"listeners", "advertised.listeners"} & own.keys():
                own[name] = _own_ports(own[name], place * listeners)
            if self.security is not None:
                own["listeners"] = (
                    f"{self.security.protocol}://{'[' + host + ']' if ':' in host else host}:{port}"
                )
            self._nodes[number] = ClusterNode(number, rack, host, port, own, self._shared, as_version)
        self._thread = ServingThread(self.serving)
        self._serving_on: asyncio.AbstractEventLoop | None = None
        self._held: set[int] = set()
        """The ids of the brokers that are cut off from clients: requests to them get no response."""
        self._paused: dict[int, Callable[[], None]] = {}
        self._injected = FaultInjection(self._servers, lambda: self._serving_on)

    # --- where it is -------------------------------------------------------------------------------------

    @property
    def node_ids(self) -> list[int]:
        """The ids of all brokers, also of those that do not run."""
        return list(self._nodes)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers for clients: ``host:port,host:port``."""
        return ",".join(each.bootstrap for each in self._nodes.values())

    def client_settings(self, user: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Return settings for a client of this cluster, by names that librdkafka and Penstock's clients use.

        `user` is a user of `security`, by default the first; `mechanism` is one of that user's SASL
        mechanisms.

        Raises:
            ConfigError: there is no such user.
        """
        return settings_for_clients(self.bootstrap_servers, self.security, user, mechanism)

    @property
    def ports(self) -> list[int]:
        """The port of each broker's first listener; before a broker's first start, the requested port."""
        return [each.port for each in self._nodes.values()]

    @property
    def cluster_id(self) -> str:
        """The cluster id that clients see; it exists from the first start on."""
        return self._shared.quorum.cluster_id

    def address(self, node: int) -> str:
        """Return the address of one broker: ``host:port``.

        Raises:
            ConfigError: there is no such broker.
        """
        return self._node(node).bootstrap

    def _node(self, node: int) -> ClusterNode:
        found = self._nodes.get(node)
        if found is None:
            raise ConfigError(f"there is no broker {node}; there are {', '.join(map(str, self._nodes))}")
        return found

    def __repr__(self) -> str:
        state = "running" if self.is_running else "stopped"
        return f"<Cluster of {len(self._nodes)} {state}, data in {self.data_dir or 'memory'}>"

    # --- starting and stopping ---------------------------------------------------------------------------

    def start(self, node: int | None = None) -> Self:
        """Start all brokers, or one that was stopped or killed, with its port and its data.

        Returns when clients can connect. A broker that runs already is left as it is.

        Raises:
            NetworkError: an address cannot be listened on.
            StorageError: a data directory cannot be used, or another broker uses it.
        """
        if node is not None:
            found = self._node(node)

            async def start() -> None:
                await self._start(found)
                await found.wait_until_alive()

            self._await(start())
            return self
        if not self.is_running:
            log_unheeded(self.config)
        self._thread.start("penstock-cluster")
        return self

    def close(self) -> None:
        """Stop all brokers, force their data to disk, release ports and directories.

        Does nothing if the brokers are stopped.

        Raises:
            StorageError: data could not be forced to disk.
        """
        self._thread.stop()

    # --- what stands in its way --------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """The faults of all brokers: errors, delays and cut connections that clients get on demand.

        Messages between brokers are not requests: faults do not apply to them.
        """
        return self._injected.faults

    def observe(self, interceptor: Interceptor) -> Callable[[], None]:
        """Add an interceptor directly around the handlers: requests that a fault answers do not reach it.

        Returns a function that removes the interceptor.
        """
        return self._injected.observe(interceptor)

    # --- brokers -----------------------------------------------------------------------------------------

    def stop(self, node: int) -> None:
        """Shut down a broker cleanly: its leaderships move to other brokers before its connections close.

        Raises:
            StorageError: data could not be forced to disk.
        """
        self.resume(node)
        self._await(self._node(node).stop())

    def kill(self, node: int, *, fence: bool = False) -> None:
        """End a broker as under kill -9.

        Other brokers take over its leaderships when its session expires, or at once with `fence`.
        """
        self.resume(node)
        self._await(self._node(node).kill())
        if fence:
            self.fence(node)

    def fence(self, node: int) -> None:
        """Let the controller fence a broker, as if its session had expired.

        A broker that runs registers again.
        """
        self._call(lambda: self._commit(self._shared.quorum.controller.fence(node)))

    def restart(self, node: int, *, kill: bool = False) -> None:
        """Stop (or kill) a broker and start it again, with its port and its data."""
        if kill:
            self.kill(node)
        else:
            self.stop(node)
        self.start(node)

    def pause(self, node: int) -> None:
        """Freeze a broker, as under SIGSTOP: connections stay open, and nothing is answered or sent."""
        found = self._node(node)

        def pause() -> None:
            server = found.server
            if server is None or node in self._paused:
                return
            self._paused[node] = server.run_due
            self._held.add(node)
            server.run_due = nothing  # type: ignore[method-assign]
            self._shared.transport.pause(node)

        self._call(pause)

    def resume(self, node: int) -> None:
        """Let a broker continue after `pause`. Does nothing if the broker is not paused."""
        found = self._node(node)

        def resume() -> None:
            run_due = self._paused.pop(node, None)
            if run_due is None or found.server is None:
                return
            found.server.run_due = run_due  # type: ignore[method-assign]
            self._shared.transport.resume(node)
            self._release(found)

        if self._serving_on is not None:
            self._call(resume)

    @contextmanager
    def paused(self, node: int) -> Iterator[None]:
        """Pause a broker for the length of a ``with`` block."""
        self.pause(node)
        try:
            yield
        finally:
            self.resume(node)

    # --- links -------------------------------------------------------------------------------------------

    def cut(self, one: int, *others: int) -> None:
        """Cut the links between a broker and `others`, by default all other brokers and the controller."""
        ends = others or (*(each for each in self.node_ids if each != one), CONTROLLER)
        self._check_ends(one, *ends)

        def cut() -> None:
            for other in ends:
                self._shared.transport.links.cut(one, other)

        self._call(cut)

    def cut_link(self, one: int, other: int) -> None:
        """Cut the link between two brokers: no message passes between them."""
        self._node(one)
        self._node(other)
        self.cut(one, other)

    def cut_off(self, node: int) -> None:
        """Cut all links of a broker, to the other brokers and to the controller."""
        self._node(node)
        self.cut(node)

    def cut_from_controller(self, node: int) -> None:
        """Cut the link between a broker and the controller, so that the controller fences the broker.

        The broker is not informed: it does not receive metadata from the controller while the link is cut.
        """
        self._node(node)
        self.cut(node, CONTROLLER)

    def cut_from_clients(self, node: int) -> None:
        """Cut a broker off from clients: it sends no responses. Other brokers still reach it."""
        found = self._node(node)
        self._call(lambda: self._held.add(found.id))

    def slow(self, one: int, other: int, ms: float) -> None:
        """Delay every message between two brokers by `ms` milliseconds."""
        self._node(one)
        self._node(other)
        self._call(lambda: self._shared.transport.links.slow(one, other, ms / 1000))

    def _check_ends(self, *ends: int) -> None:
        for each in ends:
            if each != CONTROLLER:
                self._node(each)

    def heal(self, node: int | None = None) -> None:
        """Undo all cuts (also from clients) and delays of one broker, or of all brokers."""

        def heal() -> None:
            self._shared.transport.links.heal(node)
            for each in self._nodes.values() if node is None else [self._node(node)]:
                if each.id not in self._paused:
                    self._release(each)
                if each.member is not None and each.is_running:
                    each.member.beat()

        self._call(heal)

    def _release(self, node: ClusterNode) -> None:
        self._held.discard(node.id)
        if node.server is not None:
            node.server.node.purgatory.notify(HeldBroker(node.id))
            node.server.run_due()

    def nodes(self) -> list[NodeState]:
        """Return the states of all brokers, also of those that do not run."""

        def look() -> list[NodeState]:
            known = self._shared.quorum.brokers.by_id
            found = []
            for node in self._nodes.values():
                state = "paused" if node.id in self._paused else "running" if node.is_running else "stopped"
                registered = known.get(node.id)
                is_frozen = node.member is not None and node.is_running and node.member.frozen
                is_cut = node.id in self._held and node.id not in self._paused
                is_fenced = registered is None or registered.fenced
                found.append(NodeState(node.id, node.bootstrap, state, is_fenced, is_frozen, is_cut))
            return found

        return self._call(look)

    # --- partitions --------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str | None = None,
        partitions: int = 1,
        *,
        replicas: int | Sequence[Sequence[int]] = -1,
        **settings: object,
    ) -> str:
        """Create a topic and return its name, a generated one if `name` is None.

        `replicas` is the replication factor, or the broker ids of each partition, the preferred leader first.
        A setting of the topic is a keyword argument with underscores for dots, such as ``retention_ms=1000``.

        Raises:
            KafkaError: the topic exists, or its name, replicas or a setting are invalid.
        """

        def create() -> str:
            nodes, links, paused = self._shared.nodes.items(), self._shared.transport.links, self._paused
            able = [node for each, node in nodes if each not in paused and links.passes(each, CONTROLLER)]
            if not able:
                raise NetworkError("no broker that runs reaches the controller; start one, or heal first")
            node = able[0]
            node.cluster.catch_up()
            return node.cluster.create_topic(
                name, partitions, settings, node.clock.now_ms(), replicas=replicas
            )

        topic = self._call(create)
        self._settle()
        return topic

    def partition(self, topic: str, partition: int = 0) -> PartitionState:
        """Return the state of a partition in the controller's metadata.

        Raises:
            KeyError, IndexError: there is no such partition.
        """

        def look() -> PartitionState:
            found = self._shared.quorum.image.topics[topic].partitions[partition]
            return PartitionState(
                found.leader, found.leader_epoch, found.replicas.assigned, found.replicas.in_sync
            )

        return self._call(look)

    def replicas(self, topic: str, partition: int = 0) -> list[Replica]:
        """Return the replicas of a partition on the brokers that run."""

        def look() -> list[Replica]:
            found = []
            for node in self._shared.nodes.values():
                known = node.cluster.topics[topic].partitions[partition]
                if node.node_id in known.replicas:
                    log = known.reader
                    found.append(
                        Replica(node.node_id, log.start_offset, known.high_watermark, log.end_offset)
                    )
            return found

        return self._call(look)

    def move_leader(self, topic: str, partition: int = 0, node: int | None = None) -> int:
        """Make another in-sync replica the leader of a partition; return the id of its broker.

        `node` chooses the broker; by default the next in-sync replica leads.

        Raises:
            KafkaError: ELIGIBLE_LEADERS_NOT_AVAILABLE (83), the replica of `node` is not in sync.
        """
        state = self.partition(topic, partition)
        target = node
        if target is None:
            others = [each for each in state.replicas if each in state.in_sync and each != state.leader]
            target = others[0] if others else state.leader
        chosen = target
        self._call(lambda: self._commit(self._shared.quorum.controller.lead(topic, partition, chosen)))
        self._settle()
        return chosen

    def elect(self, topic: str, partition: int = 0, *, unclean: bool = False) -> None:
        """Elect the preferred leader of a partition, or with `unclean` any replica, which can lose records.

        Raises:
            KafkaError: PREFERRED_LEADER_NOT_AVAILABLE (80), ELIGIBLE_LEADERS_NOT_AVAILABLE (83) or
                ELECTION_NOT_NEEDED (84).
        """
        kind = ElectionKind.UNCLEAN if unclean else ElectionKind.PREFERRED
        self._call(lambda: self._commit(self._shared.quorum.controller.elect(topic, partition, kind)))
        self._settle()

    def shrink_isr(self, topic: str, partition: int, node: int) -> None:
        """Remove a follower from the ISR, and stop its broker from fetching, so that it does not rejoin.

        Raises:
            KafkaError: INVALID_REQUEST (42), the broker leads the partition.
        """
        self.freeze_follower(node)
        self._call(lambda: self._commit(self._shared.quorum.controller.shrink(topic, partition, node)))
        self._settle()

    def freeze_follower(self, node: int) -> None:
        """Stop a broker from fetching as a follower: it stays alive, but its replicas fall behind.

        `thaw_follower` ends this.
        """
        self._freeze(node, True)

    def thaw_follower(self, node: int) -> None:
        """Let a frozen broker fetch from its leaders again."""
        self._freeze(node, False)

    def _freeze(self, node: int, frozen: bool) -> None:
        member = self._node(node).member
        if member is None:
            raise NetworkError(f"broker {node} is not running; start it first")
        self._call(lambda: member.freeze(frozen))

    # --- coordinators ------------------------------------------------------------------------------------

    def coordinator(
        self,
        *,
        group: str | None = None,
        transactional_id: str | None = None,
        share: SharePlace | None = None,
    ) -> int:
        """Return the coordinator of a group, a transactional id, or a share partition's state; -1 for none.

        `share` is the group, topic and partition of a share partition.

        Raises:
            KeyError: there has been no group, no transaction, or no share group that read a partition.
        """
        topic, partition = self._state_of(group, transactional_id, share)
        return self.partition(topic, partition).leader

    def move_coordinator(
        self,
        *,
        group: str | None = None,
        transactional_id: str | None = None,
        share: SharePlace | None = None,
        node: int | None = None,
    ) -> int:
        """Move the coordinator of a group, a transactional id or a share partition to another broker.

        `share` is the group, topic and partition of a share partition. Returns the id of the new broker.

        Raises:
            KafkaError: ELIGIBLE_LEADERS_NOT_AVAILABLE (83), the replica of `node` is not in sync.
            KeyError: there has been no group, no transaction, or no share group that read a partition.
        """
        return self.move_leader(*self._state_of(group, transactional_id, share), node=node)

    def _state_of(
        self, group: str | None, transactional_id: str | None, share: SharePlace | None
    ) -> tuple[str, int]:
        if share is not None:
            name, index = share[1:]
            topic_id = self._call(lambda: self._shared.quorum.image.topics[name].id)
            topic, key = SHARE_STATE_TOPIC, ShareKey(share[0], topic_id, index).text
        elif group is not None:
            topic, key = OFFSETS_TOPIC, group
        else:
            topic, key = TRANSACTIONS_TOPIC, transactional_id or ""
        count = self._call(lambda: len(self._shared.quorum.image.topics[topic].partitions))
        return topic, partition_of(key, count)

    # --- what happens to share groups --------------------------------------------------------------------

    def expire_locks(self, group: str, topic: str | None = None, partition: int | None = None) -> int:
        """Expire the acquisition locks of a share group at all brokers; return how many records were freed.

        A `topic` and a `partition` restrict this to their records.
        """
        return self._call(lambda: sum(each.end_locks(group, topic, partition) for each in self._sharing()))

    def end_share_sessions(self, group: str, member_id: str | None = None) -> int:
        """End the share sessions of a group or of one member at all brokers, as a full session cache does.

        Returns how many sessions ended. Their records can be acquired again, and the next request of each
        session gets SHARE_SESSION_NOT_FOUND (122).
        """
        return self._call(lambda: sum(each.end_sessions(group, member_id) for each in self._sharing()))

    def _sharing(self) -> list[ShareService]:
        return [node.sharing for node in self._shared.nodes.values()]

    # --- time --------------------------------------------------------------------------------------------

    def advance(self, seconds: float = 0, *, ms: int = 0) -> None:
        """Move the clock of all brokers forward; timers that are due by then fire.

        Running brokers are not fenced because of this: the controller counts the time as covered by
        heartbeats.
        """
        step_ms = ms + round(seconds * 1000)
        shared = self._shared

        async def move() -> None:
            movable(self.clock).advance(step_ms)
            for node in self._nodes.values():
                can_beat = shared.transport.links.passes(node.id, CONTROLLER) and node.id not in self._paused
                if node.server is not None and can_beat:
                    shared.quorum.controller.heard(node.id, self.clock.monotonic())
            for node in self._nodes.values():
                if node.server is not None and node.id not in self._paused:
                    for connection in node.server.connections:
                        connection.active_at += step_ms / 1000
                    node.server.clock_moved()
            shared.expire()
            for _ in range(SETTLING_TURNS):
                await asyncio.sleep(0)

        self._await(move())

    def stop_clock(self) -> None:
        """Stop the clock of all brokers, until `start_clock` or `advance`.

        Sessions, retention and timeouts of transactions wait; requests and transactions are served. Followers
        of topics that are created meanwhile fetch nothing until the clock runs: create topics before. Does
        nothing if the clock is stopped.

        Raises:
            ConfigError: the cluster was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).stop()

    def start_clock(self) -> None:
        """Let a stopped clock run again, from the time at which it stopped. Does nothing if the clock runs.

        Raises:
            ConfigError: the cluster was made with a clock that cannot be stopped.
        """
        stoppable(self.clock).start()

    # --- the thread --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run the cluster on the running event loop for the length of an ``async with`` block.

        Raises:
            NetworkError, StorageError: as `start`.
        """
        loop = asyncio.get_running_loop()
        self._shared.begin(loop)
        try:
            for node in self._nodes.values():
                await self._start(node)
            for node in self._nodes.values():
                await node.wait_until_alive()
            self._serving_on = loop
            yield
        finally:
            self._serving_on = None
            # All at once: no leader moves, so that the next start finds every replica in sync.
            for node in self._nodes.values():
                node.leave()
            failures = [failure for node in self._nodes.values() if (failure := await node.end())]
            self._shared.end()
            if failures:
                raise failures[0]

    async def _start(self, node: ClusterNode) -> None:
        await node.start(lambda server: self._prepare(node.id, server))
        if self.security is not None and node.server is not None:
            self.security.seed(node.server.node)

    def _prepare(self, node: int, server: Server) -> None:
        """Install the interceptors of a broker that starts."""
        server.node.interceptors.set(Stage.CUSTOM, lambda route: holding(route, node, self._held))
        self._injected.install(server)

    def _servers(self) -> list[Server]:
        return [node.server for node in self._nodes.values() if node.server is not None]

    def _commit(self, records: Sequence[Any]) -> None:
        self._shared.quorum.commit(records, self.clock.now_ms())

    def _settle(self) -> None:
        """Run some turns of the event loop, so that the controller's decisions reach the brokers."""

        async def turns() -> None:
            for _ in range(SETTLING_TURNS):
                await asyncio.sleep(0)

        self._await(turns())

    def _loop(self) -> asyncio.AbstractEventLoop:
        if self._serving_on is None:
            raise NetworkError("the cluster is not running; start it first")
        return self._serving_on

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the cluster's thread, and return what it returns."""
        try:
            loop = self._loop()
        except NetworkError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _call(self, function: Callable[[], T]) -> T:
        """Call a function in the cluster's thread, and return what it returns."""

        async def call() -> T:
            return function()

        return self._await(call())


CLUSTER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "max.incremental.fetch.session.cache.slots": "0",
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
}
"""The default settings of `KafkaCluster` that differ from Kafka's: broker failures are detected in a
second."""


@with_hints("KafkaCluster")
class KafkaCluster(Cluster):
    """A `Cluster` with defaults for tests: the same arguments, attributes and methods.

    Consumer groups form without a delay, every fetch request names all its partitions (no fetch sessions),
    and the sessions of brokers that died expire sooner.
    """

    _defaults = CLUSTER_SETTINGS


def _own_ports(listeners: str, steps: int) -> str:
    """Return `listeners` or `advertised.listeners` with every port of 1 or more raised by `steps`.

    All brokers have the same settings, and their ports follow one another: each broker takes as many as it
    has listeners. Port 0 remains: it means a free port, or the port that the broker listens on.
    """
    parts = []
    for part in listeners.split(","):
        name, colon, port = part.strip().rpartition(":")
        is_first = colon and port.isdecimal() and int(port) > 0
        parts.append(f"{name}:{int(port) + steps}" if is_first else part.strip())
    return ",".join(parts)
