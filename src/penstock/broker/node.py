"""`Node`: one broker without its sockets: configuration, cluster state, waiting requests, and the clock.

Everything a handler works on is an attribute of `Node`. A server passes the requests of its connections to a
`Node`; tests can do so without a server.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.handlers import CLIENT_METRICS_APIS, ROUTES
from penstock.broker.interceptors import InterceptorChain, Stage
from penstock.broker.metadata.cluster import ClusterState
from penstock.broker.metadata.cluster_view import ClusterView, LoneView
from penstock.broker.metadata.producer_ids import ProducerIds
from penstock.broker.partitions.fetch_sessions import FetchSessions
from penstock.broker.partitions.internal_topics import (
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.partitions.upkeep.inspection import Inspection
from penstock.broker.partitions.upkeep.retention import Retention
from penstock.broker.requests.kept_state import KeptState
from penstock.broker.requests.purgatory import Purgatory
from penstock.broker.requests.routes import Router
from penstock.broker.requests.unstable_versions import without_unstable
from penstock.common.failures import Failures, LimitedLog
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.protocol.since import PRODUCE_MAGIC_2_SINCE
from penstock.records.compression.codecs import UnpackBudget, UnpackLimits

if TYPE_CHECKING:
    from penstock.broker.client_metrics.service import ClientMetrics
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.groups.service import GroupService
    from penstock.broker.groups.share_state.service import ShareStateService
    from penstock.broker.metadata.metadata_upkeep import MetadataUpkeep
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.partitions.upkeep.cleaner import Compactor
    from penstock.broker.partitions.upkeep.flusher import Flusher
    from penstock.broker.requests.release_profiles import Profile
    from penstock.broker.requests.routes import Interceptor, Route
    from penstock.broker.requests.side_thread import SideThread
    from penstock.broker.requests.throttling import ClientThrottle
    from penstock.broker.security.authorizer import Authorizer
    from penstock.broker.sharing.persister import SharePersister
    from penstock.broker.sharing.service import ShareService
    from penstock.broker.transactions.service import Elsewhere, TransactionService
    from penstock.clock import Clock

    class ClusterMembership(Elsewhere, Protocol):
        """Connects a node with the other nodes of its cluster: its readiness, and access to other nodes."""

        @property
        def not_ready(self) -> str | None:
            """The reason why clients should not use this broker yet; None if they should."""

        def send_share_state(self, request: Any, done: Callable[[Any], None]) -> None:
            """Send a request to the share coordinators, which may be other nodes."""

        def leader_of(self, topic: str, index: int) -> Node:
            """Return the node that leads a partition."""

        def append_at_leader(self, topic: str, index: int, batch: bytes, done: Callable[[int], None]) -> None:
            """Append a batch to a partition at its leader; `done` is called once with the result."""


logger = logger_named("penstock.broker")


def _profile(release: str) -> Profile:
    # Imported here because few brokers behave as an older release, and starting must be fast.
    from penstock.broker.requests.release_profiles import Profile

    return Profile(release)


class Node:
    """The state of one broker: its settings, cluster, store, coordinators and waiting requests.

    Raises:
        StorageError: the metadata log cannot be read or written.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: LogStore,
        clock: Clock,
        interceptors: Sequence[Interceptor] = (),
        cluster: ClusterState | None = None,
    ) -> None:
        """Open the node.

        `cluster` is the state of the cluster that the node belongs to, by default a cluster of one node.
        """
        self.cluster = ClusterState(config, store, clock.now_ms()) if cluster is None else cluster
        self.config = config = self.cluster.config
        """The effective settings: those of the start, overridden by dynamic settings."""
        self.clock = clock
        self.store = store
        self.purgatory = Purgatory()
        self.failures = Failures(clock.monotonic)
        """Counts and logs the exceptions that `Failures.barrier` blocks catch."""
        self.limited_log = LimitedLog(clock.monotonic, logger)
        """A log with a limited rate, for messages that any client can cause."""
        self.profile = None if config.release is None else _profile(config.release.name)
        """The Kafka release that this broker behaves like; None if it offers all that it has."""
        known = ROUTES if config.boolean("unstable.api.versions.enable") else without_unstable(ROUTES)
        takes_client_metrics = config.boolean("penstock.client.metrics")
        if not takes_client_metrics:
            known = {key: route for key, route in known.items() if key not in CLIENT_METRICS_APIS}
        self.routes: Mapping[int, Route] = known if self.profile is None else self.profile.routes(known)
        """The APIs that this broker offers, as in its ApiVersions responses."""
        self.interceptors = InterceptorChain(lambda: self.router.reset())
        """The interceptors around every handler."""
        self.router = Router(self.routes, self.interceptors.ordered, self.profile)
        """The handlers and codecs with all interceptors applied, by API and version."""
        if interceptors:
            self.interceptors.set(Stage.CUSTOM, *interceptors)
        if self.profile is not None:
            self.interceptors.set(Stage.RELEASE_PROFILE, self.profile.intercept)
        self.kept = KeptState(config.integer("penstock.kept.state.bytes.max"))
        """The memory budget for state that clients make the broker keep, such as fetch sessions."""
        self.client_metrics: ClientMetrics | None = None
        """Takes the metrics that clients push; None if `penstock.client.metrics` is off."""
        if takes_client_metrics:
            self._begin_client_metrics()
        slots = config.integer("max.incremental.fetch.session.cache.slots")
        self.fetch_sessions = FetchSessions(slots, self.kept, lambda: int.from_bytes(os.urandom(4), "big"))
        self.producer_ids = ProducerIds(self.cluster, store.directories())
        self.throttle: ClientThrottle | None = None
        """Enforces client quotas; None as long as there are none."""
        self.quotas_changed()
        self.fetch_bytes_max = config.integer("fetch.max.bytes")
        self.response_bytes_max = config.integer("penstock.response.bytes.max")
        """The maximum size in bytes of a response without records."""
        self.request_entries_max = config.integer("penstock.request.entries.max")
        """The maximum number of elements in all arrays of a request together."""
        self._producers_max = config.integer("penstock.producers.max")
        self.membership: ClusterMembership | None = None
        """Connects this node with the other nodes of its cluster; None if it is the only node."""
        self.view: ClusterView = LoneView(self.cluster, config.text("broker.rack"), store.directory_id)
        """Describes the cluster's brokers, quorum and controller to clients."""
        interval_s = config.integer("log.retention.check.interval.ms") / 1000
        # Kafka waits half a minute after the start, so as not to add to its work.
        first = clock.monotonic() + min(30.0, interval_s)
        self.retention = Retention(self.cluster, self.failures, first, interval_s)
        self.authorizer: Authorizer | None = None
        """Decides what clients may do; None if they may do everything."""
        if "authorizer.class.name" in config.settings:
            self._begin_authorization()
        self._begin_tokens()
        self._groups: GroupService | None = None
        self._transactions: TransactionService | None = None
        self._sharing: ShareService | None = None
        self._share_states: ShareStateService | None = None
        self._compactor: Compactor | None = None
        self._metadata_upkeep: MetadataUpkeep | None = None
        self._snapshot_bytes = config.integer("metadata.log.max.record.bytes.between.snapshots")
        self.flusher: Flusher | None = None
        """Flushes logs in threads; None until a topic requires flushes."""
        self.unpack_limits = UnpackLimits(
            config.integer("penstock.unpack.max.bytes"), config.integer("penstock.unpack.max.records")
        )
        """The decompression limits of one request: bytes, and records to be checked."""
        self._side_thread: SideThread | None = None
        self.call_soon: Callable[[Callable[[], None]], object] | None = None
        """Runs a function in the broker's thread soon; any thread may call it. The server sets it; None
        without a server.
        """

    @property
    def not_ready(self) -> str | None:
        """The reason why clients should not use this broker yet; None if they should."""
        return None if self.membership is None else self.membership.not_ready

    def quotas_changed(self) -> None:
        """Begin or end the throttling of clients, after quotas have been read or changed."""
        if self.cluster.quotas and self.throttle is None:
            from penstock.broker.requests.quotas import Windows
            from penstock.broker.requests.throttling import ClientThrottle

            windows, of_mutations = (
                Windows(self.config.integer(f"{whose}.num"), self.config.integer(f"{whose}.size.seconds"))
                for whose in ("quota.window", "controller.quota.window")
            )
            self.throttle = ClientThrottle(
                self.cluster.quotas,
                self.clock.monotonic,
                windows,
                self.cluster.mutation_tokens,
                of_mutations,
            )
        elif not self.cluster.quotas:
            self.throttle = None
        if self.throttle is not None:
            self.throttle.quotas.changed()
            self.interceptors.set(Stage.QUOTAS, self.throttle.intercept)
        else:
            self.interceptors.set(Stage.QUOTAS)

    @property
    def node_id(self) -> int:
        return self.cluster.node_id

    @property
    def groups(self) -> GroupService:
        """The coordinator of groups of all types; imported, and groups read from the log, on first use."""
        if self._groups is None:
            from penstock.broker.groups.service import GroupService

            self._groups = GroupService(self)
        return self._groups

    @property
    def transactions(self) -> TransactionService:
        """The transaction coordinator; imported, and its transactions read from the log, on first use."""
        if self._transactions is None:
            from penstock.broker.transactions.service import TransactionService

            self._transactions = TransactionService(self, self.membership)
            self._transactions.open()
        return self._transactions

    @property
    def transactions_if_used(self) -> TransactionService | None:
        """The transaction coordinator, or None if it has not been used."""
        return self._transactions

    @property
    def sharing(self) -> ShareService:
        """The service for share groups on the partitions that this broker leads; imported on first use."""
        if self._sharing is None:
            from penstock.broker.sharing.service import ShareService

            self._sharing = ShareService(self)
        return self._sharing

    @cached_property
    def share_persister(self) -> SharePersister | None:
        """Reads and writes the state of share partitions at their share coordinators."""
        from penstock.broker.groups.share_state.persister import Persister

        return Persister(self.send_share_state)

    @property
    def share_states(self) -> ShareStateService:
        """The share coordinator; imported on first use."""
        if self._share_states is None:
            from penstock.broker.groups.share_state.service import ShareStateService

            self._share_states = ShareStateService(self)
        return self._share_states

    def send_share_state(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the share coordinator; `done` is called once with the response, now or later."""
        if self.membership is None:
            from penstock.broker.groups.share_state.persister import send_here

            send_here(self.share_states, self.clock.now_ms(), request, done)
        else:
            self.membership.send_share_state(request, done)

    @property
    def share_states_if_used(self) -> ShareStateService | None:
        """The share coordinator, or None if it has not been used."""
        return self._share_states

    def end_offset(self, topic: str, index: int) -> int:
        """Return the high watermark of a partition, asking its leader.

        Raises:
            KafkaError: there is no such partition, or its leader cannot be asked.
        """
        leader = self if self.membership is None else self.membership.leader_of(topic, index)
        return leader.cluster.topic(topic).partition(index).high_watermark

    def append_at_leader(self, topic: str, index: int, batch: bytes, done: Callable[[int], None]) -> None:
        """Append a batch to a partition at its leader, on this or another node, with acks=all.

        `done` is called once, now or later: with 0 once the in-sync replicas have the records, or with an
        error code.

        Raises:
            KafkaError, StorageError, UnpackLimitError: the records have not been appended, and `done` will
                not be called.
        """
        if self.membership is None:
            self.append_here(topic, index, batch)
            done(ErrorCode.NONE)
        else:
            self.membership.append_at_leader(topic, index, batch, done)

    def append_here(self, topic: str, index: int, batch: bytes) -> Partition:
        """Append a batch to a partition that this node leads, for a broker of the cluster.

        Raises:
            KafkaError, StorageError, UnpackLimitError: the records have not been appended.
        """
        partition = self.cluster.topic(topic).partition(index)
        budget = UnpackBudget(2 * len(batch) + (1 << 16), 1 << 16)
        records, version = memoryview(bytearray(batch)), PRODUCE_MAGIC_2_SINCE
        partition.append(records, version, self.clock.now_ms(), budget, acks=ALL_REPLICAS)
        self.purgatory.notify(partition, len(batch))
        return partition

    @property
    def groups_if_used(self) -> GroupService | None:
        """The coordinator of groups of all types, or None if it has not been used."""
        return self._groups

    def forget_topics(self, names: Sequence[str], now_ms: int) -> None:
        """Delete committed offsets, transactional ids and share states that deleted topics leave behind."""
        if OFFSETS_TOPIC in self.cluster.topics or self._groups is not None:
            try:
                self.groups.forget_topics(names, now_ms)
            except (KafkaError, StorageError) as error:
                logger.error("offsets in deleted topics stay: %s", error)
        if TRANSACTIONS_TOPIC in names and self._transactions is not None:
            self._transactions.forget_everything()
        self.forget_share_states(names)

    def forget_share_states(self, names: Sequence[str]) -> None:
        """Delete the states of share partitions that belong to deleted topics."""
        if self._share_states is not None:
            try:
                if SHARE_STATE_TOPIC in names:
                    self._share_states.forget_everything()
                else:
                    self._share_states.forget_topics()
            except (KafkaError, StorageError) as error:
                logger.error("states of share groups in deleted topics stay: %s", error)

    def _begin_authorization(self) -> None:
        from penstock.broker.config.security_settings import BrokerSecuritySettings
        from penstock.broker.security.authorizer import AUTHORIZERS, Authorizer, parse_super_users
        from penstock.broker.security.guards.table import Authorization

        settings = BrokerSecuritySettings(self.config)
        name = (settings.text("authorizer.class.name") or "").strip()
        if not name:
            return
        if name not in AUTHORIZERS:
            raise ConfigError(
                f"authorizer.class.name: there is no {name} here; name {', '.join(sorted(AUTHORIZERS))}"
            )
        self.authorizer = Authorizer(
            parse_super_users(settings.text("super.users") or ""),
            allow_if_no_acl=settings.boolean("allow.everyone.if.no.acl.found"),
        )
        self.cluster.security.inform(self.authorizer)
        self.interceptors.set(Stage.AUTHORIZATION, Authorization(self.authorizer))

    def _begin_tokens(self) -> None:
        """Compute the HMACs of all delegation tokens before requests are served; each takes microseconds."""
        if "delegation.token.secret.key" in self.config.settings:
            from penstock.broker.config.security_settings import BrokerSecuritySettings

            secret = BrokerSecuritySettings(self.config).secret("delegation.token.secret.key")
            if secret:
                self.cluster.security.keep_codes(secret)

    def _begin_client_metrics(self) -> None:
        from time import thread_time

        from penstock.broker.client_metrics.service import ClientMetrics
        from penstock.protocol.field_values import METRICS_RESOURCE

        cluster = self.cluster
        self.client_metrics = ClientMetrics(
            lambda: {
                name: texts
                for (kind, name), texts in cluster.resource_configs.items()
                if kind == METRICS_RESOURCE
            },
            lambda: cluster.metadata_end_offset,
            self.kept,
            self.config.integer("telemetry.max.bytes"),
            thread_time,
        )

    def maintain(self, now_ms: int) -> list[StorageError]:
        """Run the maintenance that is due, of logs, groups, transactions and metadata; return the errors.

        An error of one log or group does not stop the maintenance of others. The monotonic clock decides what
        is due. `now_ms`, the time of day, which may be set back, is only compared with the timestamps of
        records.
        """
        uptime_s = self.clock.monotonic()
        failures = self.retention.step(uptime_s, now_ms)
        with self.failures.barrier("housekeeping", "looking for files"):
            failures.extend(self.store.missing())
        compacted = []
        producers = 0
        for partition in list(self.cluster.opened):
            producers += partition.producer_count
            if partition.config.compacted:
                compacted.append(partition)
            try:
                if partition.maintain(now_ms, int(uptime_s * 1000)) and self.flusher is not None:
                    self.flusher.flush(partition)
            except StorageError as error:
                failures.append(error)
            except Exception:
                self.failures.caught("housekeeping", f"the log of {partition}")
        if producers > self._producers_max:
            self._forget_producers()
        with self.failures.barrier("housekeeping", "the metadata log"):
            failures.extend(self._keep_metadata(uptime_s, now_ms))
        if self._groups is not None:
            with self.failures.barrier("housekeeping", "groups"):
                failures.extend(self._groups.maintain(now_ms))
        if self._transactions is not None or TRANSACTIONS_TOPIC in self.cluster.topics:
            with self.failures.barrier("housekeeping", "transactions"):
                self.transactions.advance()
        if self._sharing is not None:
            with self.failures.barrier("housekeeping", "share groups"):
                self._sharing.maintain()
        if self._share_states is not None:
            with self.failures.barrier("housekeeping", "states of share groups"):
                failures.extend(self._share_states.maintain(now_ms))
        if self.client_metrics is not None:
            with self.failures.barrier("housekeeping", "metrics of clients"):
                self.client_metrics.expire(uptime_s)
        if self.flusher is not None:
            failures.extend(self.flusher.failures)
            self.flusher.failures.clear()
        if self._side_thread is not None:
            with self.failures.barrier("housekeeping", "memory"):
                self._side_thread.release_memory()
        if compacted:
            with self.failures.barrier("housekeeping", "compaction"):
                failures.extend(self.compactor.step(compacted, now_ms))
        return failures

    def _keep_metadata(self, uptime_s: float, now_ms: int) -> list[StorageError]:
        """Write a snapshot of the metadata log and delete old records, if that is due; return the errors."""
        log, directory = self.cluster.authority.log_on_disk, self.store.metadata_directory
        if log is None or directory is None:
            return []
        if self._metadata_upkeep is None:
            if log.snapshot_file is None and log.bytes_behind <= self._snapshot_bytes:
                return []
            from penstock.broker.metadata.metadata_upkeep import MetadataUpkeep  # few logs grow that long

            self._metadata_upkeep = MetadataUpkeep(log, directory, self.config, self.failures)
        try:
            self._metadata_upkeep.step(uptime_s, now_ms, in_thread=self.call_soon is not None)
        except StorageError as error:
            return [error]
        return []

    def end_upkeep(self) -> None:
        """End the threads that work in the data directory, before the directory is closed."""
        if self._metadata_upkeep is not None:
            self._metadata_upkeep.stop()

    def _forget_producers(self) -> None:
        """Drop the state of the idlest producers, so that the node keeps at most `penstock.producers.max`.

        A partition with more producers than an even share loses those that have not written for the longest
        time.
        """
        counts = sorted(partition.producer_count for partition in self.cluster.partitions())
        left, most = self._producers_max, 0
        for place, count in enumerate(counts):
            share = left // (len(counts) - place)
            if count > share:
                most = share
                break
            left -= count
        for partition in self.cluster.partitions():
            if partition.producer_count > most:
                partition.forget_idlest_producers(most)

    def inspect(self) -> Inspection:
        """Return a task, not started yet, that reports files that are missing in the data directory."""
        topics = self.cluster.topics
        return Inspection(
            self.store.problems(lambda place: place.topic in topics or place.topic == METADATA_TOPIC),
            self.failures,
        )

    def note_producers(self) -> list[StorageError]:
        """Write the snapshots of producer state, as the last step before closing; return the errors.

        After an error the next start reads the same states from the logs, which takes longer.
        """
        failures = []
        for partition in list(self.cluster.opened):
            try:
                partition.note_producers()
            except StorageError as error:
                failures.append(error)
        return failures

    def flusher_for(self, partition: Partition) -> Flusher | None:
        """Return the flusher for the log of a partition, or None if the log flushes itself.

        Raises:
            StorageError: the log cannot be opened.
        """
        if self.call_soon is None or self.config.data_dir is None:
            return None
        if self.flusher is None:
            from penstock.broker.partitions.upkeep.flusher import Flusher

            self.flusher = Flusher(self.purgatory, self.call_soon, self.failures)
        partition.leave_flushing()
        return self.flusher

    def side_thread(self) -> SideThread | None:
        """Return the thread for work that would hold up the event loop; None if the node has no server."""
        if self._side_thread is None and self.call_soon is not None:
            from penstock.broker.requests.side_thread import SideThread

            self._side_thread = SideThread(self.purgatory, self.call_soon)
        return self._side_thread

    @property
    def compactor(self) -> Compactor:
        """The compactor of logs; imported on first use."""
        if self._compactor is None:
            from penstock.broker.partitions.upkeep.cleaner import Compactor

            self._compactor = Compactor(self.config, self.store, self.clock, self.failures)
        return self._compactor
