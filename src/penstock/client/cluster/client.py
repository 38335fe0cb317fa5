"""The connections and metadata of one client, for asyncio: finds brokers and leaders, negotiates versions.

Producers, consumers and admin clients use `AsyncClient`, which does not deal with records. A connection is
opened when it is first needed, one per broker and purpose, because responses come in order: a fetch that
waits at the broker would hold up all later responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.client.addresses import Address, what_to_look_at
from penstock.client.background_loop import outcome_of
from penstock.client.cluster.connection import Connection
from penstock.client.cluster.connection_pool import ConnectionPool, Peer
from penstock.client.cluster.metadata import (
    MOMENT_S,
    ClusterMetadata,
    TopicInfo,
    no_such_partition,
    no_such_topic,
)
from penstock.client.cluster.other_protocols import wants_sasl
from penstock.client.cluster.retry import (
    Backoff,
    RetryVerdict,
    Troubles,
    judge,
    left_out,
    register,
    timed_out,
)
from penstock.client.config import ClientConfig
from penstock.common.logs import logger_named
from penstock.errors import AuthenticationError, ConfigError, KafkaError, NetworkError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.since import METADATA_CREATION_SINCE

if TYPE_CHECKING:
    from penstock.client.cluster.metrics_push import MetricsPush
    from penstock.client.cluster.secured import SecuredOpener
    from penstock.client.counters import ClientCounters
    from penstock.client.statistics import Statistics
    from penstock.client.statistics_reports import StatisticsReports
    from penstock.protocol.message import Message

T = TypeVar("T")

ANY_NODE = -1
"""The node id that stands for any broker."""

CONTROLLER = -2
"""The node id that stands for the controller, or for any broker if the cluster names no controller."""

BOOTSTRAP_PATIENCE_S = 1.0
"""The time in seconds for which the first contact is retried. It is short, so that the error for a mistyped
address comes soon."""

DRAIN_STEP_S = 0.001

MAIN, FETCH = "main", "fetch"
"""Purposes of connections: `FETCH` for Fetch requests, `MAIN` for most others. They have separate
connections, because a fetch that waits at the broker would hold up other requests.
"""

log = logger_named("penstock.client")


class AsyncClient:
    """Sends requests to a cluster's brokers, with retries; holds the connections and the metadata."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.cluster = ClusterMetadata()
        self.backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.dice = random.Random().random
        self.old_groups: dict[Address, dict[int, tuple[int, int]]] = {}
        """A dict from the address of a broker without ApiVersions to the versions of its group APIs, which
        probes have found.
        """
        self._topics: set[str] = set()
        self._metadata_requests = MetadataRequests(self._ask_metadata)
        self._refreshed_at = float("-inf")
        self._told_by: object = "unknown"
        """The address of the broker that has sent the last metadata response, for error messages."""
        self.troubles = Troubles()
        self._pool = ConnectionPool(config, self.dice, self.troubles)
        self.made_at = time.monotonic()
        self.reports: StatisticsReports | None = None
        """The object that calls ``stats_cb`` at intervals, from the first contact with the cluster on; None
        without that option.
        """
        self._snapshot: Callable[[], Statistics] | None = None
        self.metrics_push: MetricsPush | None = None
        """The metrics push (KIP-714), or None before a connection to a broker that accepts metrics."""
        register(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.config.described}, {len(self.connections())} connections>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def request_timeout_s(self) -> float:
        return self.config.request_timeout_ms / 1000

    def begin_reports(self, snapshot: Callable[[], Statistics]) -> None:
        """Begin to push metrics, and to report `snapshot` every ``statistics.interval.ms`` if that is set."""
        self._snapshot = snapshot if self.config.enable_metrics_push else None
        if self.config.stats_cb is not None:
            from penstock.client.statistics_reports import StatisticsReports

            self.reports = StatisticsReports(
                snapshot, self.config.stats_cb, self.config.statistics_interval_ms
            )

    async def drained(self) -> None:
        """Wait until the kernel has taken all sent bytes.

        Closing a connection earlier would lose bytes.
        """
        while any(each.unsent_bytes for each in self.connections() if each.cause is None):
            await asyncio.sleep(DRAIN_STEP_S)

    async def close(self, timeout_s: float | None = None) -> None:
        """Close every connection, after a last push of metrics. Requests in flight raise NetworkError."""
        self.troubles.clear()
        self._snapshot = None
        if self.metrics_push is not None:
            await self.metrics_push.close(timeout_s)
        if self.reports is not None:
            self.reports.end()
        tasks = [*self._pool.end_opening(), *self._metadata_requests.tasks()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pool.close()
        # asyncio closes sockets in the next turn of its loop: let it, before the loop itself may end.
        await asyncio.sleep(0)

    # -- requests

    async def request(
        self,
        message: Message,
        node_id: int = ANY_NODE,
        *,
        timeout_s: float | None = None,
        at_most: int | None = None,
        purpose: str = MAIN,
    ) -> Any:
        """Send one request to one node, without retries, and return the response.

        Raises:
            NetworkError, RequestTimeoutError, DecodeError: as `Connection.request`.
            UnsupportedVersionError: the broker is too old or too new for the request.
        """
        peer = await self.peer(node_id, purpose)
        return await peer.request(message, timeout_s or self.request_timeout_s, at_most)

    async def retrying(
        self, what: str, attempt: Callable[[], Awaitable[T]], timeout_ms: float | None = None
    ) -> T:
        """Await `attempt()` until it succeeds, and return its result.

        `what` names the action in messages.

        Raises:
            RequestTimeoutError: no success within `timeout_ms` (default ``default.api.timeout.ms``).
            PenstockError: `attempt` raised an error that is not retriable.
        """
        timeout_ms = self.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        cause: PenstockError | None = None
        for tries in range(1 << 30):
            try:
                async with asyncio.timeout_at(deadline):
                    return await attempt()
            except PenstockError as error:
                cause = error
            except TimeoutError:
                break
            verdict = judge(cause)
            if verdict is RetryVerdict.FATAL or (isinstance(cause, NetworkError) and not self.is_reached):
                raise cause
            self.troubles.note(what, cause)
            delay = self.backoff.seconds(tries, self.dice)
            if loop.time() + delay > deadline:
                break
            await asyncio.sleep(delay)
            if verdict is RetryVerdict.REFRESH:
                try:
                    async with asyncio.timeout_at(deadline):
                        await self.refresh()
                except PenstockError as error:
                    cause = error
                except TimeoutError:
                    break
        if isinstance(cause, NetworkError):
            raise cause
        raise timed_out(what, timeout_ms, cause) from cause

    # -- connections

    @property
    def is_reached(self) -> bool:
        """True if a broker has answered a metadata request, even if the response lists no brokers.

        A new cluster of Kafka 0.8 may send such a response.
        """
        return self._refreshed_at > float("-inf")

    async def bootstrap(self) -> None:
        """Connect to the cluster if that was not done yet.

        Refused connections are retried for one second.

        Raises:
            NetworkError: no bootstrap server answers.
        """
        deadline = asyncio.get_running_loop().time() + BOOTSTRAP_PATIENCE_S
        for tries in range(1 << 30):
            if self.is_reached:
                if self.reports is not None:
                    self.reports.begin()
                return
            try:
                await self.refresh()
            except NetworkError:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(self.backoff.seconds(tries, self.dice))

    def connections(self) -> list[Connection]:
        """Return the open connections. Any thread may call this method."""
        return self._pool.connections()

    @property
    def counters(self) -> ClientCounters:
        """The counters of requests and connections, by broker."""
        return self._pool.counters

    def insist_on_versions(self) -> None:
        """Ask brokers that seemed to be older than 0.10 again for their API versions.

        An overloaded broker may have left ApiVersions unanswered. See `ConnectionPool.insist_on_versions`.
        """
        self._pool.insist_on_versions()

    def feature_level(self, name: str) -> int:
        """Return the finalized level of a cluster feature, as connected brokers report it, or 0."""
        return self._pool.feature_level(name)

    def addresses_opening(self) -> list[Address]:
        """Return the addresses to which connections are being opened. Any thread may call this method."""
        return self._pool.addresses_opening()

    async def connect(self, address: Address) -> Connection:
        """Return a new connection outside the pool, which the caller closes.

        Raises:
            NetworkError: the connection cannot be opened.
        """
        return await self._pool.connect(address)

    async def greet(self, address: Address) -> Peer:
        """Return a new connection outside the pool, with negotiated versions and logged in.

        The caller closes the connection.

        Raises:
            NetworkError: the connection cannot be opened.
            PenstockError: the broker refuses the login, or its response makes no sense.
        """
        return await self._pool.greet(address)

    @property
    def secured(self) -> SecuredOpener | None:
        """The object that opens connections with TLS or SASL; None if the client uses neither."""
        return self._pool.secured

    def live_peer(self, node_id: int, purpose: str = MAIN) -> Peer | None:
        """Return the open connection to a node for a purpose (`MAIN`, `FETCH`, ...), or None."""
        node = self.cluster.nodes.get(node_id)
        return self._pool.live(node.address, purpose) if node else None

    def address_of(self, node_id: int) -> object:
        """Return the address of a node for error messages, or ``node N`` if the metadata do not have it."""
        node = self.cluster.nodes.get(node_id)
        return node.address if node is not None else f"node {node_id}"

    def throttle_s(self, broker: object, throttle_time_ms: int) -> float:
        """Return the time in seconds that this client must wait because of a broker's quota.

        It is at most ``request.timeout.ms``: a longer throttle is logged and cut.
        """
        if throttle_time_ms > 0 and isinstance(broker, Address):
            self._pool.note_throttled(broker, throttle_time_ms)
        if throttle_time_ms <= self.config.request_timeout_ms:
            return max(throttle_time_ms, 0) / 1000
        log.warning(
            "broker %s asks for a pause of %g s; going on after request.timeout.ms = %g",
            broker,
            throttle_time_ms / 1000,
            self.config.request_timeout_ms,
        )
        return self.request_timeout_s

    async def peer(self, node_id: int = ANY_NODE, purpose: str = MAIN) -> Peer:
        """Return a live connection to a node, opened if necessary.

        Raises:
            NetworkError: the node cannot be reached.
        """
        if node_id == CONTROLLER:
            node_id = (
                self.cluster.controller_id if self.cluster.controller_id in self.cluster.nodes else ANY_NODE
            )
        if node_id == ANY_NODE:
            return await self._any_peer(purpose)
        node = self.cluster.nodes.get(node_id)
        if node is None:
            raise NetworkError(f"node {node_id} is not among the brokers of the cluster")
        return await self._pool.open(node.address, purpose)

    async def check_node(self, node_id: int) -> None:
        """Check that the cluster has a broker with this id.

        Raises:
            ConfigError: the cluster has no such broker.
            NetworkError: no broker answers.
        """
        await self.bootstrap()
        if node_id not in self.cluster.nodes:
            await self.refresh()
        if node_id not in self.cluster.nodes:
            some = ", ".join(map(str, sorted(self.cluster.nodes)[:10]))
            raise ConfigError(f"there is no broker {node_id} in the cluster; it has {some}")

    async def _any_peer(self, purpose: str) -> Peer:
        """Return an open connection to any broker.

        If none is open, open one: try the brokers in the metadata before the bootstrap servers.
        """
        known = [node.address for node in self.cluster.nodes.values()]
        live = [peer for address in known if (peer := self._pool.live(address, purpose))]
        idle = [peer for peer in live if peer.connection.is_idle]
        if live:
            return (idle or live)[0]
        candidates = sorted(known, key=lambda address: (self._pool.failures(address), self.dice()))
        candidates += [address for address in self.config.bootstrap_servers if address not in candidates]
        peer, failures = await self._pool.open_any(candidates, purpose)
        if peer is not None:
            return peer
        reasons = [str(error) for error in failures]
        refused = [error for error in failures if isinstance(error, AuthenticationError)]
        where = ", ".join(str(address) for address in self.config.bootstrap_servers)
        why = "; ".join(dict.fromkeys(_without(where, reason) for reason in reasons))
        if refused:
            raise refused[-1]
        ask = what_to_look_at(self.config.bootstrap_servers, failures)
        raise NetworkError(f"no broker answered at {where}: {why}; {ask}")

    # -- metadata

    async def refresh(self, topics: Iterable[str] = (), *, all_topics: bool = False) -> None:
        """Refresh the metadata of `topics` from any broker; if empty, of all topics that this client uses.

        `topics` count as used from now on. With `all_topics`, the metadata of every topic of the cluster are
        fetched.

        Raises:
            NetworkError: no broker answers.
        """
        names = set(topics)
        self._topics |= names
        await self._metadata_requests.get(None if all_topics else names or set(self._topics))

    async def _ask_metadata(self, asked: list[str] | None) -> None:
        peer = await self._any_peer(MAIN)
        version = peer.versions.choose(MetadataRequest)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in asked] if asked is not None else None,
            # Before version 4 brokers create as they are configured to; the field is not sent then.
            allow_auto_topic_creation=self.config.allow_auto_create_topics
            or version < METADATA_CREATION_SINCE,
        )
        if version == 0 and asked is None:
            request.topics = []
        try:
            answer = await peer.connection.request(request, version, self.request_timeout_s)
        except NetworkError as error:
            security = self.config.security
            if self.is_reached or (security is not None and security.uses_sasl):
                raise
            address = peer.connection.address
            raise await wants_sasl(address, self.connect, uses_tls=security is not None) or error from None
        if answer.error_code:
            raise error_for(answer.error_code, "metadata")
        if version == 0 and not asked:
            asked = None
        self.cluster.update(answer, asked)
        if asked is None or self._topics.issubset(asked) or not self.is_reached:
            self._refreshed_at = asyncio.get_running_loop().time()
        self._told_by = peer.connection.address
        if self._snapshot is not None and ApiKey.GET_TELEMETRY_SUBSCRIPTIONS in peer.versions.ranges:
            from penstock.client.cluster.metrics_push import MetricsPush  # few brokers take metrics

            self.metrics_push, self._snapshot = MetricsPush(self, self._snapshot), None

    @property
    def metadata_is_old(self) -> bool:
        """True if the last metadata response is older than ``metadata.max.age.ms``."""
        age = asyncio.get_running_loop().time() - self._refreshed_at
        return age * 1000 > self.config.metadata_max_age_ms

    async def topic(self, name: str) -> TopicInfo:
        """Return a topic's metadata. If the client does not have them yet, ask a broker.

        Raises:
            KafkaError: the topic does not exist, or this client may not see it.
            NetworkError: no broker answers.
        """
        return (await self.topics_of([name]))[name]

    async def topics_of(self, names: Collection[str]) -> dict[str, TopicInfo]:
        """Return the metadata of several topics by name. Raises as `topic`."""
        loop = asyncio.get_running_loop()
        deadline: float | None = None
        for tries in range(1 << 30):
            missing = [name for name in names if not self._is_usable(name)]
            if not missing:
                await self._freshen()
                break
            if tries:
                error = self._topic_error(missing[0])
                deadline = deadline or loop.time() + self._patience_s()
                # A broker of 0.8 that is not in ZooKeeper yet answers -1 for a topic to be created.
                is_unknown = isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_SERVER_ERROR
                passes = judge(error) is not RetryVerdict.FATAL or is_unknown
                if not passes or loop.time() >= deadline:
                    raise await self._with_hint(missing[0], error)
                await asyncio.sleep(self.backoff.seconds(tries - 1, self.dice))
            await self.refresh(names)
        return {name: self.cluster.topics[name] for name in names}

    async def topics_with(self, partitions: Collection[TopicPartition]) -> dict[str, TopicInfo]:
        """Return the metadata of the topics of `partitions`, and check that these partitions exist.

        Since a topic may have grown, the client refreshes the metadata for a short time if a partition is
        missing.

        Raises:
            ConfigError: a topic has no such partition.
            KafkaError, NetworkError: as `topic`.
        """
        names = {tp.topic for tp in partitions}
        loop = asyncio.get_running_loop()
        deadline: float | None = None
        for tries in range(1 << 30):
            topics = await self.topics_of(names)
            missing = next((p for p in partitions if p.partition not in topics[p.topic].partitions), None)
            if missing is None:
                break
            if deadline is None:
                deadline = loop.time() + MOMENT_S
            elif loop.time() >= deadline:
                raise no_such_partition(missing, len(topics[missing.topic].partitions))
            else:
                await asyncio.sleep(self.backoff.seconds(tries - 1, self.dice))
            await self.refresh(names)
        return topics

    async def _freshen(self) -> None:
        """Refresh metadata that are old. Without a response, the known metadata stay in use."""
        if self.metadata_is_old:
            with contextlib.suppress(PenstockError):
                await self.refresh()

    def _patience_s(self) -> float:
        """Return the time in seconds to wait for an unknown topic: longer if brokers may create it."""
        patience_s = self.config.topic_metadata_propagation_max_ms / 1000
        return patience_s if self.config.allow_auto_create_topics else min(patience_s, MOMENT_S)

    def _is_usable(self, name: str) -> bool:
        topic = self.cluster.topics.get(name)
        return topic is not None and bool(topic.partitions) and topic.error_code == 0

    def _topic_error(self, name: str) -> PenstockError:
        """Return the exception for a topic that the last metadata response lacks, or has with an error."""
        topic = self.cluster.topics.get(name)
        if topic is None:
            return left_out(self._told_by, f"topic {name!r}", "Metadata")
        return error_for(topic.error_code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")

    async def _with_hint(self, name: str, error: PenstockError) -> PenstockError:
        """Return the error for an unknown topic, with similar names as a hint.

        Remove the topic from those whose metadata the client refreshes.
        """
        self._topics.discard(name)
        if not isinstance(error, KafkaError) or error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return error
        try:
            await self.refresh(all_topics=True)
        except PenstockError:
            return error
        return no_such_topic(name, self.cluster, was_to_be_created=self.config.allow_auto_create_topics)

    async def leader(self, partition: TopicPartition) -> int:
        """Return the node id of a partition's leader.

        Raises:
            KafkaError: the topic or the partition does not exist, or the partition has no leader now.
        """
        leader = self.cluster.leader(partition)
        if leader is None:
            await self.topics_with([partition])
            leader = self.cluster.leader(partition)
        if leader is None:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition}")
        return leader


def _without(where: str, reason: str) -> str:
    """Return `reason` without the address `where` at its start, which the error message has already."""
    return reason.removeprefix(f"{where}: ")


class _Request:
    """A request for the metadata of the topics `names`, or of all topics if `names` is None."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.names: set[str] | None = set()

    def covers(self, wanted: set[str] | None) -> bool:
        return self.names is None or (wanted is not None and wanted <= self.names)

    def add(self, wanted: set[str] | None) -> None:
        if self.names is not None:
            self.names = None if wanted is None else self.names | wanted


class MetadataRequests:
    """Sends metadata requests, one at a time; topics that are needed meanwhile go into the next one together.

    `ask` sends one request, for sorted topic names, or for all topics if it gets None.
    """

    def __init__(self, ask: Callable[[list[str] | None], Awaitable[None]]) -> None:
        self._ask = ask
        self._sent: _Request | None = None
        self._next: _Request | None = None
        """The request to send after the one in flight. Until then, topic names are added to it."""

    async def get(self, wanted: set[str] | None) -> None:
        """Wait for the response to a request that covers the topics `wanted`, or all topics if None.

        Raises:
            NetworkError: the client was closed.
            PenstockError: what `ask` raises.
        """
        request = self._sent
        if request is None or not request.covers(wanted):
            request = self._next
            if request is None:
                request = self._next = _Request()
                request.task = asyncio.create_task(self._run(request, self._sent))
                request.task.add_done_callback(self._ended)
            request.add(wanted)
        await outcome_of(request.task)

    async def _run(self, request: _Request, before: _Request | None) -> None:
        if before is not None:
            await asyncio.wait([before.task])
        self._sent, self._next = request, None
        await self._ask(None if request.names is None else sorted(request.names))

    def _ended(self, task: asyncio.Task[None]) -> None:
        for request in (self._sent, self._next):
            if request is not None and request.task is task:
                if request is self._sent:
                    self._sent = None
                else:
                    self._next = None

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return the tasks of the requests that are under way or waiting."""
        return [each.task for each in (self._sent, self._next) if each is not None]
