"""`KafkaCluster`: several brokers with replicas, and everything that can happen to a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.broker.interceptors import Stage
from penstock.broker.levers import LeveredCluster
from penstock.common.hints import with_hints
from penstock.testing.answers import answering_faults
from penstock.testing.connection import FaultyConnection
from penstock.testing.faults import Faults

if TYPE_CHECKING:
    import os

    from penstock.broker.cluster_node import ClusterNode
    from penstock.broker.interceptors import InterceptorChain
    from penstock.broker.network.connection import Connection
    from penstock.broker.network.server import Server
    from penstock.broker.requests.routes import Interceptor
    from penstock.broker.security.throwaway import Security
    from penstock.broker.sharing.service import ShareService
    from penstock.clock import Clock

CLUSTER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "max.incremental.fetch.session.cache.slots": "0",
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
}
"""What differs from the defaults of Kafka unless it is set: what takes Kafka ten seconds takes one."""


@with_hints("KafkaCluster")
class KafkaCluster(LeveredCluster):
    """A `penstock.Cluster` for tests: the same arguments, and everything that can happen to a cluster.

    Every call returns when what it does is done, but for what is said otherwise. Brokers are named by their
    ids.
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
        """`clock` may be a `ManualClock`: then time stands still until `advance`."""
        merged = {**CLUSTER_SETTINGS, **(config or {})}
        super().__init__(
            brokers,
            data_dir,
            host,
            ports,
            racks=racks,
            config=merged,
            clock=clock,
            as_version=as_version,
            security=security,
            **settings,
        )
        self.faults = Faults()
        """Applied to the requests of clients to any broker; those between brokers are not requests."""
        self._numbers = itertools.count(1)
        self._observers: tuple[Interceptor, ...] = ()

    def _connect(self, node: ClusterNode) -> Callable[[Server], Connection]:
        return lambda server: FaultyConnection(server, self.faults, self._numbers)

    def _intercept(self, node: ClusterNode, chain: InterceptorChain) -> None:
        super()._intercept(node, chain)
        chain.set(Stage.FAULTS, answering_faults(self.faults))
        chain.set(Stage.EFFECTS, *self._observers)

    def observe(self, interceptor: Interceptor) -> Callable[[], None]:
        """Put an interceptor next to the handlers: it gets what brokers do, not what faults answer.

        Returns a function that takes it away.
        """

        def put() -> None:
            for node in self._shared.nodes.values():
                node.interceptors.set(Stage.EFFECTS, *self._observers)

        def place() -> None:
            if self._serving_on is not None:
                self._call(put)

        def remove() -> None:
            self._observers = tuple(each for each in self._observers if each is not interceptor)
            place()

        self._observers += (interceptor,)
        place()
        return remove

    # --- what happens to share groups --------------------------------------------------------------------

    def expire_locks(self, group: str, topic: str | None = None, partition: int | None = None) -> int:
        """End the locks of a share group, as if their time were over, at all brokers; return how many records
        are free for that. A `topic` and a `partition` narrow it down.
        """
        return self._call(lambda: sum(each.end_locks(group, topic, partition) for each in self._sharing()))

    def end_share_sessions(self, group: str, member_id: str | None = None) -> int:
        """End the share sessions of a group, or of a member, at all brokers, as those do that have too many.

        Returns how many. What they had locked is free, and their next request gets
        SHARE_SESSION_NOT_FOUND (122).
        """
        return self._call(lambda: sum(each.end_sessions(group, member_id) for each in self._sharing()))

    def _sharing(self) -> list[ShareService]:
        return [node.sharing for node in self._shared.nodes.values()]
