"""What a broker counts, as Prometheus reads it, and the connection that counts it.

Only a broker with `penstock.metrics.port` counts requests: its connections are `MeteredConnection`s.
What can be looked up when somebody asks (logs, groups, memory) is not counted at all.
"""

from __future__ import annotations

import os
import resource
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.network.connection import Connection
from penstock.broker.network.metrics_server import MetricsServer
from penstock.errors import NetworkError
from penstock.protocol.api import API_TABLE

if TYPE_CHECKING:
    from penstock.broker.network.server import Server
    from penstock.broker.requests.dispatch import Piece, Unanswered

BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the histogram of latencies, in seconds; the last bucket has none."""


class ApiCounts:
    """Requests of one API that have been answered."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.seconds = 0.0
        self.bytes_in = self.bytes_out = 0


class Metrics:
    """The counters of one broker."""

    def __init__(self) -> None:
        self.apis: dict[int, ApiCounts] = {}
        self.accepted = 0
        self.started_s = time.time()

    def counts_of(self, key: int) -> ApiCounts:
        counts = self.apis.get(key)
        if counts is None:
            # What is no API counts together, so that nobody can make the table grow.
            key = key if key in API_TABLE else -1
            counts = self.apis[key] = self.apis.get(key) or ApiCounts()
        return counts


class MeteredConnection(Connection):
    """A connection that counts requests, their bytes, and the time to their answers."""

    __slots__ = ("_began", "_counts", "_metrics")

    def __init__(self, server: Server, metrics: Metrics) -> None:
        super().__init__(server)
        metrics.accepted += 1
        self._metrics = metrics
        self._began = 0.0
        self._counts: ApiCounts | None = None

    def _handle(self, frame: memoryview) -> None:
        counts = self._metrics.counts_of(int.from_bytes(frame[:2], "big"))
        counts.bytes_in += len(frame) + 4
        self._counts = counts
        self._began = time.perf_counter()
        super()._handle(frame)

    def _deliver(self, outcome: list[Piece] | Unanswered | None) -> None:
        if outcome is None or type(outcome) is list:
            counts = self._counts
            assert counts is not None
            seconds = time.perf_counter() - self._began
            counts.buckets[bisect_left(BUCKETS_S, seconds)] += 1
            counts.seconds += seconds
            if outcome is not None:
                counts.bytes_out += sum(map(len, outcome))
        super()._deliver(outcome)


class _Family(NamedTuple):
    """One metric: what it is, and its values by labels."""

    name: str
    kind: str
    help: str
    values: Iterable[tuple[str, float]]


@asynccontextmanager
async def serving_metrics(server: Server, metrics: Metrics) -> AsyncIterator[int]:
    """Serve ``/metrics`` for the length of a block, which is told the port.

    Raises:
        NetworkError: the address cannot be listened on.
    """
    config = server.node.config
    host, port = config.text("penstock.metrics.host") or "", config.integer("penstock.metrics.port")
    responder = MetricsServer(lambda: render(server, metrics), server.node.failures)
    try:
        await responder.start(host, port)
    except OSError as error:
        raise NetworkError(f"metrics cannot be served on {host}:{port}: {error.strerror or error}") from error
    try:
        yield responder.port
    finally:
        await responder.stop()


def render(server: Server, metrics: Metrics) -> str:
    """Everything as text, in Prometheus's format 0.0.4."""
    lines = []
    for family in (
        *_requests(metrics),
        *_connections(server, metrics),
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


def _api_name(key: int) -> str:
    return API_TABLE[key].name if key in API_TABLE else "unknown"


def _single(name: str, kind: str, text: str, value: float) -> _Family:
    return _Family(name, kind, text, [(name, value)])


def _connections(server: Server, metrics: Metrics) -> Iterator[_Family]:
    yield _single("penstock_connections", "gauge", "Open connections.", len(server.connections))
    yield _single("penstock_connections_accepted_total", "counter", "Connections so far.", metrics.accepted)
    yield _single(
        "penstock_connections_refused_total", "counter", "Connections refused for a limit.", server.refused
    )
    yield _single(
        "penstock_requests_waiting",
        "gauge",
        "Requests that wait, such as long polls.",
        len(server.node.parking),
    )
    yield _single(
        "penstock_request_memory_bytes",
        "gauge",
        "Memory of requests that are arriving.",
        server.buffers.lent_bytes,
    )


def _logs(server: Server) -> Iterator[_Family]:
    """Logs that nobody has used since the start are not opened for this."""
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


def _groups(server: Server) -> Iterator[_Family]:
    service = server.node.groups_if_used
    if service is not None:
        states: dict[str, int] = {}
        for group in service.coordinator.groups.values():
            state = str(group.state)
            states[state] = states.get(state, 0) + 1
        values = [(f'penstock_groups{{state="{state}"}}', float(n)) for state, n in sorted(states.items())]
        yield _Family("penstock_groups", "gauge", "Groups by state.", values)


def _failures(server: Server) -> Iterator[_Family]:
    counts = sorted(server.node.failures.counts.items())
    values = [
        (f'penstock_broker_exceptions_total{{component="{component}"}}', float(n)) for component, n in counts
    ]
    text = "Exceptions that ended one request, timer or background task."
    yield _Family("penstock_broker_exceptions_total", "counter", text, values)


def _kept(server: Server) -> Iterator[_Family]:
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
        "penstock_kept_state_refused_total", "counter", "What was not kept for want of room.", kept.refused
    )


def _process(metrics: Metrics) -> Iterator[_Family]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime
    yield _single("process_cpu_seconds_total", "counter", "CPU time, user and system.", cpu_s)
    yield _single("process_start_time_seconds", "gauge", "When counting began.", metrics.started_s)
    yield _single("process_resident_memory_bytes", "gauge", "Memory in use.", resident_bytes())


def resident_bytes() -> float:
    """Memory in use; the most there ever was, where the system does not tell the present."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
