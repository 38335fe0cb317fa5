"""`Cluster`: several Kafka brokers inside this process, with real replicas, on one thread with one event
loop.

    with Cluster(brokers=3) as cluster:
        producer = SomeKafkaClient(bootstrap_servers=cluster.bootstrap_servers)

Each broker has ports, logs, listeners and a rack of its own. One object in the process is the controller of
all, and never fails. It is for tests, and for seeing what a cluster does to a program; `penstock.testing`
adds what can happen to a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Self

from penstock.broker.cluster_node import ClusterNode, Shared
from penstock.broker.config.values import BrokerConfig, check_data_dir, log_unheeded, settings_texts
from penstock.clock import Clock, SystemClock
from penstock.common.hints import with_hints
from penstock.common.listening.serving_thread import Served, ServingThread
from penstock.errors import ConfigError

if TYPE_CHECKING:
    import os

    from penstock.broker.interceptors import InterceptorChain
    from penstock.broker.network.connection import Connection
    from penstock.broker.network.server import Server
    from penstock.broker.security.throwaway import Security

BROKERS_MAX = 100
"""Brokers of one cluster: each takes descriptors, timers and, with all others, connections between them."""


@with_hints("Cluster")
class Cluster(Served):
    """Several brokers, numbered from `node.id`, which is 1 unless it is set.

    `data_dir` is a directory, made if need be, with one in Kafka's layout for each broker; None keeps
    everything in memory. `ports` are those of the first listeners, 0 or none takes free ones. `racks` are
    given in turn; without them no broker has one. Settings, the same for all brokers, come as `config` under
    Kafka's dotted names, or as keyword arguments with underscores: ``Cluster(min_insync_replicas=2)``.
    Topics get as many replicas as there are brokers, three at most, unless `default.replication.factor` says
    otherwise. `as_version` and `security` are as in `Broker`; between brokers nothing crosses a socket.

    Raises:
        ConfigError: a keyword is no setting (the nearest one is suggested), or a value does not fit; the
            numbers of brokers, ports and racks do not; or there is no such release.
    """

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
        texts = settings_texts(config or {}, settings, "Cluster")
        texts.setdefault("default.replication.factor", str(min(brokers, 3)))
        self.security: Security | None = None
        """Throw-away certificates and users, the same for all brokers, where there are some."""
        if security is not None:
            from penstock.broker.security.throwaway import security_of

            self.security = security_of(security)
            texts = {**self.security.settings(host, 0), **texts}
        self.host = host
        self.clock: Clock = clock or SystemClock()
        self.data_dir = None if data_dir is None else str(data_dir)
        self.config = BrokerConfig(texts, as_version)
        """The settings that all brokers have in common."""
        self._shared = Shared(self.clock, self.data_dir, self.config, Random(), brokers)
        self._nodes: dict[int, ClusterNode] = {}
        for place in range(brokers):
            number = self.config.node_id + place
            rack = racks[place % len(racks)] if racks else None
            port = ports[place] if ports else 0
            own = {name: text for name, text in texts.items() if name != "broker.id"}
            if "advertised.listeners" in own:
                own["advertised.listeners"] = _own_ports(own["advertised.listeners"], place)
            if self.security is not None:
                own["listeners"] = (
                    f"{self.security.protocol}://{'[' + host + ']' if ':' in host else host}:{port}"
                )
            self._nodes[number] = ClusterNode(number, rack, host, port, own, self._shared, as_version)
        self._thread = ServingThread(self._serving)

    # --- where it is -------------------------------------------------------------------------------------

    @property
    def node_ids(self) -> list[int]:
        """The ids of the brokers, those that do not run included."""
        return list(self._nodes)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers for clients: ``host:port,host:port``."""
        return ",".join(each.bootstrap for each in self._nodes.values())

    def client_settings(self, user: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """Settings for a client of this cluster, by librdkafka's names, which Penstock's clients understand.

        `user` is one of those of `security`, by default the first; `mechanism` one of its mechanisms.

        Raises:
            ConfigError: there is no such user.
        """
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security is not None:
            found |= self.security.client_settings(user, mechanism)
        return found

    @property
    def ports(self) -> list[int]:
        """The ports of the first listeners; those asked for as long as brokers have not been started."""
        return [each.port for each in self._nodes.values()]

    @property
    def cluster_id(self) -> str:
        """The id that clients see; it is known from the first start on."""
        return self._shared.quorum.cluster_id

    def address(self, node: int) -> str:
        """The address of one broker: ``host:port``.

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

    def start(self) -> Self:
        """Start all brokers; return when clients can connect to each. Does nothing if it runs already.

        Raises:
            NetworkError: an address cannot be listened on.
            StorageError: a data directory cannot be used, or another broker uses it.
        """
        if not self.is_running:
            log_unheeded(self.config)
        self._thread.start("penstock-cluster")
        return self

    def close(self) -> None:
        """Stop all brokers, force their data to disk, let go of ports and directories. Harmless when stopped.

        Raises:
            StorageError: data could not be forced to disk.
        """
        self._thread.stop()

    # --- the thread --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        async with self.serving():
            yield

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve on the running loop for the length of a block.

        Raises:
            NetworkError, StorageError: as `start`.
        """
        self._shared.begin(asyncio.get_running_loop())
        try:
            for node in self._nodes.values():
                await self._start(node)
            for node in self._nodes.values():
                await node.wait_until_alive()
            yield
        finally:
            # All at once: no leader moves, so that the next start finds every replica in sync.
            for node in self._nodes.values():
                node.leave()
            failures = [failure for node in self._nodes.values() if (failure := await node.end())]
            self._shared.end()
            if failures:
                raise failures[0]

    async def _start(self, node: ClusterNode) -> None:
        await node.start(self._connect(node), lambda chain: self._intercept(node, chain))
        if self.security is not None and node.server is not None:
            self.security.seed(node.server.node)

    def _intercept(self, node: ClusterNode, chain: InterceptorChain) -> None:
        """Put more interceptors into the chain of a broker that has just been started."""

    def _connect(self, node: ClusterNode) -> Callable[[Server], Connection] | None:
        """What makes the object of each connection to a broker; None for the usual `Connection`."""
        return None


def _own_ports(advertised: str, place: int) -> str:
    """Return `advertised.listeners` for one of the brokers; the first has `place` 0.

    All brokers have the same settings. Their ports follow one another, as those that they listen on do; 0
    stands for the port that each listens on.
    """
    parts = []
    for part in advertised.split(","):
        name, colon, port = part.strip().rpartition(":")
        is_first = colon and port.isdecimal() and int(port) > 0
        parts.append(f"{name}:{int(port) + place}" if is_first else part.strip())
    return ",".join(parts)
