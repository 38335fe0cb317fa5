"""Metrics of a broker in Prometheus's format, and the interceptor that counts requests.

Only a broker with `penstock.metrics.port` has the interceptor in its chain. Values of logs, groups and memory
are read when the page is requested.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sized
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from penstock.broker.network.health import Health, live
from penstock.broker.network.metrics_server import JSON, MetricsServer, Page
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.requests.routes import when_answered
from penstock.common.operating_system import cpu_seconds, resident_bytes
from penstock.common.prometheus import label_value
from penstock.errors import NetworkError
from penstock.protocol.api import API_TABLE

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.groups.service import GroupService
    from penstock.broker.network.frame_buffers import FrameBuffers
    from penstock.broker.node import Node
    from penstock.broker.requests.routes import Answer, Encoder, RequestDecoder, VersionedRoute
    from penstock.broker.security.listener_security import ListenerSecurity
    from penstock.protocol.message import Message

BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds of the buckets of the latency histogram; the last bucket has no bound."""


SIZE_BYTES = 4
"""The number of bytes of the length field before every request and response."""

HEADER_BYTES = SIZE_BYTES + 4
"""The number of bytes of length field and correlation id before a response. A header's empty tagged
fields are not counted.
"""


class ApiCounts:
    """Counters of the answered requests of one API."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.seconds = 0.0
        self.bytes_in = self.bytes_out = 0

    def add_latency(self, seconds: float) -> None:
        """Count a request that took `seconds`."""
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1
        self.seconds += seconds


CLIENT_IDS_MAX = 500
"""The maximum number of client ids with counters. A new id replaces the id that has sent no request for
longest."""

CLIENT_CHARACTERS_MAX = 100
"""The maximum characters of a client id in metrics; longer ids are truncated."""


class ClientCounts:
    """Counters of the requests with one client id, over all connections."""

    __slots__ = ("bytes_in", "bytes_out", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = self.bytes_in = self.bytes_out = 0
        self.seconds = 0.0


class ClientIdCounters:
    """Counters for each of the newest `CLIENT_IDS_MAX` client ids."""

    def __init__(self) -> None:
        self.counts: OrderedDict[str, ClientCounts] = OrderedDict()
        self.given_up = 0
        """The number of client ids whose counters were dropped in favour of a new id."""

    def of(self, client_id: str | None) -> ClientCounts:
        """Return the counters of a client id; clients without an id share those of the empty id."""
        name = (client_id or "")[:CLIENT_CHARACTERS_MAX]
        found = self.counts.get(name)
        if found is not None:
            self.counts.move_to_end(name)
            return found
        if len(self.counts) >= CLIENT_IDS_MAX:
            self.counts.popitem(last=False)
            self.given_up += 1
        found = self.counts[name] = ClientCounts()
        return found


class Metrics:
    """The counters of one broker, and the interceptor that counts requests, their bytes and latencies."""

    def __init__(self) -> None:
        self.apis: dict[int, ApiCounts] = {}
        self.clients = ClientIdCounters()
        self._client = ClientCounts()
        """The counters of the client whose request is in progress."""
        self._size = 0
        """The size of the request in progress, in bytes."""
        self.started_s = time.time()
        self._began_s = 0.0
        """The monotonic time in seconds at which decoding of the request in progress began. Its handler
        runs right after.
        """

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Return a route that also counts requests, and latency from decoding to the encoded response."""
        counts = self.apis.setdefault(route.key, ApiCounts())
        handle = route.handle

        def handle_and_count(request: Any, context: Context[Any]) -> Answer:
            began_s = self._began_s
            client = self._client = self.clients.of(context.session.client_id)
            client.requests += 1
            client.bytes_in += self._size

            def count_unanswered(response: Message | None) -> Message | None:
                if response is None:
                    seconds = time.perf_counter() - began_s
                    counts.add_latency(seconds)
                    client.seconds += seconds
                else:  # the response is encoded next, which counts it
                    self._began_s = began_s
                    self._client = client
                return response

            return when_answered(handle(request, context), count_unanswered)

        return route._replace(
            handle=handle_and_count,
            request=_CountingDecoder(route.request, self, counts),
            response=_CountingEncoder(route.response, self, counts),
        )

    def begin(self, size: int) -> None:
        """Record that the decoding of a request of `size` bytes begins now."""
        self._size = size
        self._began_s = time.perf_counter()

    def end(self, size: int, counts: ApiCounts) -> None:
        """Count the response to the current request, which has `size` bytes, and its latency."""
        seconds = time.perf_counter() - self._began_s
        counts.bytes_out += size
        counts.add_latency(seconds)
        self._client.bytes_out += size
        self._client.seconds += seconds


class _CountingDecoder:
    """A request decoder that reports the start of decoding and the request's size to the metrics."""

    __slots__ = ("_counts", "_decoder", "_metrics")

    def __init__(self, decoder: RequestDecoder, metrics: Metrics, counts: ApiCounts) -> None:
        self._decoder = decoder
        self._metrics = metrics
        self._counts = counts

    @property
    def layout(self) -> Any:
        return self._decoder.layout

    def decode(self, data: memoryview, position: int) -> tuple[Any, int]:
        size = len(data) + SIZE_BYTES
        self._counts.bytes_in += size
        self._metrics.begin(size)
        return self._decoder.decode(data, position)


class _CountingEncoder:
    """A response encoder that counts bytes, and the time since decoding of the request began."""

    __slots__ = ("_counts", "_encoder", "_metrics")

    def __init__(self, encoder: Encoder, metrics: Metrics, counts: ApiCounts) -> None:
        self._encoder = encoder
        self._metrics = metrics
        self._counts = counts

    def encode(self, message: Any) -> bytes:
        encoded = self._encoder.encode(message)
        self._metrics.end(len(encoded) + HEADER_BYTES, self._counts)
        return encoded

    def encode_chunks(self, message: Any) -> list[Any]:
        chunks = self._encoder.encode_chunks(message)
        self._metrics.end(sum(map(len, chunks)) + HEADER_BYTES, self._counts)
        return chunks


class MeteredServer(Protocol):
    """The attributes of a server that metrics and health read."""

    node: Node
    accepted: int
    refused: int
    buffers: FrameBuffers
    securities: dict[str, ListenerSecurity]
    is_stopping: bool
    storage_failures: set[str]

    @property
    def is_listening(self) -> bool: ...
    @property
    def connections(self) -> Sized: ...


class _Family(NamedTuple):
    """One metric family of Prometheus: name, type, description, and (labels, value) pairs."""

    name: str
    kind: str
    help: str
    values: Iterable[tuple[str, float]]


@asynccontextmanager
async def serving_metrics(server: MeteredServer, metrics: Metrics) -> AsyncIterator[int]:
    """Serve ``/metrics`` and ``/health`` for the length of a block; yield the port.

    ``/client-metrics`` is served as well if the broker takes metrics from clients.

    Raises:
        NetworkError: the address cannot be listened on.
    """
    config = server.node.config
    host, port = config.text("penstock.metrics.host") or "", config.integer("penstock.metrics.port")
    health = Health(server)
    pages = {
        "/metrics": Page(lambda: render(server, metrics)),
        "/health": Page(health.as_json, JSON, lambda: health.is_ready),
        "/health/live": Page(live, JSON),
    }
    taken = server.node.client_metrics
    if taken is not None:
        from penstock.broker.client_metrics.page import as_json

        pages["/client-metrics"] = Page(lambda: as_json(taken.values.rows()), JSON)
    responder = MetricsServer(pages, server.node.failures)
    try:
        await responder.start(host, port)
    except OSError as error:
        raise NetworkError(f"metrics cannot be served on {host}:{port}: {error.strerror or error}") from error
    try:
        yield responder.port
    finally:
        await responder.stop()


def render(server: MeteredServer, metrics: Metrics) -> str:
    """Return all metrics as text, in Prometheus's format 0.0.4."""
    lines = []
    for family in (
        *_requests(metrics),
        *_clients(metrics.clients),
        *_connections(server),
        *_logins(server.securities),
        *_logs(server),
        *_groups(server),
        *_failures(server),
        *_kept(server),
        *_process(metrics),
    ):
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
        lines += [f"{labels} {value:.15g}" for labels, value in family.values]
    return "\n".join([*lines, ""])


def _requests(metrics: Metrics) -> Iterator[_Family]:
    apis = [(_api_name(key), counts) for key, counts in sorted(metrics.apis.items())]
    histogram = []
    for name, counts in apis:
        total = 0
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), counts.buckets, strict=True):
            total += count
            histogram.append((f'penstock_request_seconds_bucket{{api="{name}",le="{bound}"}}', float(total)))
        histogram.append((f'penstock_request_seconds_sum{{api="{name}"}}', counts.seconds))
        histogram.append((f'penstock_request_seconds_count{{api="{name}"}}', float(total)))
    yield _Family(
        "penstock_request_seconds",
        "histogram",
        "Time from a request to its answer, waits included.",
        histogram,
    )
    for direction, text in (("in", "Bytes of requests."), ("out", "Bytes of answers.")):
        name = f"penstock_bytes_{direction}_total"
        values = [(f'{name}{{api="{api}"}}', float(getattr(c, f"bytes_{direction}"))) for api, c in apis]
        yield _Family(name, "counter", text, values)


def _clients(clients: ClientIdCounters) -> Iterator[_Family]:
    """Yield the metrics of each client id: requests, bytes, and seconds of latency."""
    counted = [(label_value(name), counts) for name, counts in sorted(clients.counts.items())]
    for what, text in (
        ("requests", "Requests with a client id."),
        ("bytes_in", "Bytes of requests with a client id."),
        ("bytes_out", "Bytes of answers to a client id."),
        ("seconds", "Time from requests with a client id to their answers, waits included."),
    ):
        name = f"penstock_client_{what}_total"
        values = [(f'{name}{{client_id="{label}"}}', float(getattr(c, what))) for label, c in counted]
        yield _Family(name, "counter", text, values)
    yield _single(
        "penstock_client_ids_given_up_total",
        "counter",
        "Client ids whose counters made room for others.",
        clients.given_up,
    )


def _api_name(key: int) -> str:
    return API_TABLE[key].name


def _single(name: str, kind: str, text: str, value: float) -> _Family:
    return _Family(name, kind, text, [(name, value)])


def _connections(server: MeteredServer) -> Iterator[_Family]:
    yield _single("penstock_connections", "gauge", "Open connections.", len(server.connections))
    yield _single("penstock_connections_accepted_total", "counter", "Connections so far.", server.accepted)
    yield _single(
        "penstock_connections_refused_total", "counter", "Connections refused for a limit.", server.refused
    )
    yield _single(
        "penstock_requests_waiting",
        "gauge",
        "Requests that wait, such as long polls.",
        len(server.node.purgatory),
    )
    yield _single(
        "penstock_request_memory_bytes",
        "gauge",
        "Memory of requests that are arriving.",
        server.buffers.lent_bytes,
    )


def _logins(securities: Mapping[str, ListenerSecurity]) -> Iterator[_Family]:
    """Yield the metrics of logins at listeners with SASL or TLS, by outcome."""
    name = "penstock_logins_total"
    values = [
        (
            f'{name}{{listener="{label_value(listener)}",outcome="{outcome.value}",again="{str(is_again).lower()}"}}',
            float(count),
        )
        for listener, security in sorted(securities.items())
        for (outcome, is_again), count in security.logins.counts.items()
    ]
    text = "Logins by SASL, or handshakes of TLS, by what came of them; again: on a connection that had one."
    yield _Family(name, "counter", text, values)


def _logs(server: MeteredServer) -> Iterator[_Family]:
    """Yield the metrics of topics, partitions and open logs. Logs that are closed stay closed."""
    cluster = server.node.cluster
    yield _single("penstock_topics", "gauge", "Topics.", len(cluster.topics))
    partitions = sum(len(topic.partitions) for topic in cluster.topics.values())
    yield _single("penstock_partitions", "gauge", "Partitions.", partitions)
    opened = list(cluster.opened)
    for name, text, attribute in (
        ("penstock_log_bytes", "Size of a partition's log.", "size_bytes"),
        ("penstock_log_start_offset", "First offset of a partition.", "start_offset"),
        ("penstock_log_end_offset", "Offset of the next record.", "end_offset"),
    ):
        values = [
            (f'{name}{{topic="{each.topic}",partition="{each.index}"}}', float(getattr(each.log, attribute)))
            for each in opened
        ]
        yield _Family(name, "gauge", text, values)


def _groups(server: MeteredServer) -> Iterator[_Family]:
    node = server.node
    # Groups that were stored before the start have a lag as well, though no client has asked for them yet.
    service = node.groups if OFFSETS_TOPIC in node.cluster.topics else node.groups_if_used
    if service is not None:
        yield from _lags(node, service)
        states: dict[str, int] = {}
        for group in service.coordinator.groups.values():
            state = str(group.state)
            states[state] = states.get(state, 0) + 1
        values = [(f'penstock_groups{{state="{state}"}}', float(n)) for state, n in sorted(states.items())]
        yield _Family("penstock_groups", "gauge", "Groups by state.", values)


def _lags(node: Node, service: GroupService) -> Iterator[_Family]:
    """Yield consumer lags under kafka_exporter's names and labels, which common dashboards expect."""
    from penstock.broker.groups.lag import Lags

    lags = Lags(node.cluster.topics, service)
    offsets, behind, sums = [], [], dict[tuple[str, str], float]()
    for row in lags.rows:
        of_topic = f'consumergroup="{label_value(row.group)}",topic="{label_value(row.topic)}"'
        labels = f'{{{of_topic},partition="{row.partition}"}}'
        offsets.append((f"kafka_consumergroup_current_offset{labels}", float(row.offset)))
        if row.lag is not None:
            behind.append((f"kafka_consumergroup_lag{labels}", float(row.lag)))
            key = row.group, row.topic
            sums[key] = sums.get(key, 0.0) + row.lag
    yield _Family(
        "kafka_consumergroup_current_offset", "gauge", "Offset that a group has committed.", offsets
    )
    yield _Family("kafka_consumergroup_lag", "gauge", "Records behind the committed offset.", behind)
    name = "kafka_consumergroup_lag_sum"
    values = [
        (f'{name}{{consumergroup="{label_value(group)}",topic="{label_value(topic)}"}}', lag)
        for (group, topic), lag in sums.items()
    ]
    yield _Family(name, "gauge", "Records behind the committed offsets of a topic.", values)
    name = "penstock_consumergroup_offsets_left_out"
    yield _single(name, "gauge", "Committed offsets beyond those shown here.", lags.left_out)


def _failures(server: MeteredServer) -> Iterator[_Family]:
    counts = sorted(server.node.failures.counts.items())
    values = [
        (f'penstock_broker_exceptions_total{{component="{component}"}}', float(n)) for component, n in counts
    ]
    text = "Exceptions that ended one request, timer or background task."
    yield _Family("penstock_broker_exceptions_total", "counter", text, values)


def _kept(server: MeteredServer) -> Iterator[_Family]:
    kept = server.node.kept
    name = "penstock_kept_state_bytes"
    sizes = [(f'{name}{{kind="{kind}"}}', float(size)) for kind, size in kept.sizes().items()]
    yield _Family(name, "gauge", "Memory of what is kept for clients, estimated.", sizes)
    yield _single(
        "penstock_kept_state_limit_bytes", "gauge", "The most that may be kept.", float(kept.limit_bytes)
    )
    name = "penstock_kept_state_given_up_total"
    given_up = [(f'{name}{{kind="{kind}"}}', float(n)) for kind, n in sorted(kept.given_up.items())]
    yield _Family(name, "counter", "What was given up to keep something else.", given_up)
    yield _single(
        "penstock_kept_state_refused_total", "counter", "State refused because of a limit.", kept.refused
    )


def _process(metrics: Metrics) -> Iterator[_Family]:
    yield _single("process_cpu_seconds_total", "counter", "CPU time, user and system.", cpu_seconds())
    yield _single("process_start_time_seconds", "gauge", "When counting began.", metrics.started_s)
    yield _single("process_resident_memory_bytes", "gauge", "Memory in use.", resident_bytes())
