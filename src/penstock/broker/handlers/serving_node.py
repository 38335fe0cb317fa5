"""`ServingNode`: a protocol with the attributes of the broker that handlers use.

A handler's context has the broker as `node`. Handlers do not import the class `Node`, which would import the
coordinators and all other parts of the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata.producer_ids import SearchesProducerIds
from penstock.broker.requests.side_thread import UsesSideThread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.broker.client_metrics.service import ClientMetrics
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.groups.service import GroupService
    from penstock.broker.groups.share_state.service import ShareStateService
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.broker.metadata.cluster_view import ClusterView
    from penstock.broker.metadata.producer_ids import ProducerIds
    from penstock.broker.partitions.fetch_sessions import FetchSessions
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.upkeep.flusher import Flusher
    from penstock.broker.requests.purgatory import Purgatory
    from penstock.broker.requests.release_profiles import Profile
    from penstock.broker.requests.routes import Route
    from penstock.broker.security.authorizer import Authorizer
    from penstock.broker.sharing.service import ShareService
    from penstock.broker.transactions.service import TransactionService
    from penstock.clock import Clock
    from penstock.common.failures import LimitedLog


class ServingNode(UsesSideThread, SearchesProducerIds, Protocol):
    """The interface of the broker for handlers. `Node` documents the attributes."""

    authorizer: Authorizer | None
    client_metrics: ClientMetrics | None
    clock: Clock
    cluster: ClusterState
    config: BrokerConfig
    fetch_bytes_max: int
    fetch_sessions: FetchSessions
    limited_log: LimitedLog
    producer_ids: ProducerIds
    profile: Profile | None
    purgatory: Purgatory
    routes: Mapping[int, Route]
    store: LogStore
    view: ClusterView

    @property
    def node_id(self) -> int: ...
    @property
    def groups(self) -> GroupService: ...
    @property
    def share_states(self) -> ShareStateService: ...
    @property
    def sharing(self) -> ShareService: ...
    @property
    def transactions(self) -> TransactionService: ...

    def end_offset(self, topic: str, index: int) -> int: ...
    def flusher_for(self, partition: Partition) -> Flusher | None: ...
    def forget_topics(self, names: Sequence[str], now_ms: int) -> None: ...
    def quotas_changed(self) -> None: ...
