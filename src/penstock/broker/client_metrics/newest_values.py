"""The newest values of metrics that clients have pushed, for tests and the page ``/client-metrics``.

Values stay after the client has disconnected, so that the values of its last push can be read. Memory is
bounded: the oldest clients and series are dropped, and all values count against
`penstock.kept.state.bytes.max`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.broker.requests.kept_state import KeptState
from penstock.telemetry.points import Labels, MetricKind, Point

CLIENTS_MAX = 1000
"""The maximum number of clients whose values are stored. For a further one, the oldest are dropped."""

SERIES_MAX = 2000
"""The maximum number of series of one client that are stored. A series is one metric with one set of
labels.
"""

_CLIENT_BYTES = 1500
_SERIES_BYTES = 500
"""The estimated memory of a series in bytes, without its name and labels. `_CLIENT_BYTES` is the
estimate for a client.
"""


class Pusher(NamedTuple):
    """A client that has pushed metrics. `client_instance_id` is the id as base64 text, as Kafka prints it."""

    client_instance_id: str
    client_id: str
    software_name: str
    software_version: str
    address: str


class ClientMetric(NamedTuple):
    """The newest value of one metric of one client.

    `kind` is ``gauge`` or ``sum``. The `value` of a sum is the total since the client's start, even if the
    client pushes differences. `labels` belong to the metric, `attributes` to the client, such as its
    ``group_id``. `time_ms` is the time when the broker received it. `is_last` is True if the client has
    pushed the value while it closed.
    """

    client_instance_id: str
    client_id: str
    software_name: str
    software_version: str
    address: str
    name: str
    labels: dict[str, str]
    kind: str
    value: float
    time_ms: int
    attributes: dict[str, str]
    is_last: bool


class _Series:
    __slots__ = ("is_sum", "time_ms", "value")

    def __init__(self) -> None:
        self.is_sum = False
        self.value = 0.0
        self.time_ms = 0


class _Client:
    __slots__ = ("attributes", "is_last", "pusher", "series", "size_bytes")

    def __init__(self, pusher: Pusher) -> None:
        self.pusher = pusher
        self.attributes: dict[str, str] = {}
        self.series: dict[tuple[str, Labels], _Series] = {}
        self.is_last = False
        self.size_bytes = _CLIENT_BYTES + 2 * sum(map(len, pusher))


class NewestValues:
    """The newest values of the metrics of all clients, within a memory budget."""

    def __init__(self, kept: KeptState) -> None:
        self._kept = kept
        self._clients: dict[bytes, _Client] = {}
        self.size_bytes = 0
        kept.add("client metrics", lambda: self.size_bytes, self._drop_oldest)

    def take(
        self,
        client_instance_id: bytes,
        pusher: Pusher,
        attributes: Mapping[str, str],
        points: Iterable[Point],
        now_ms: int,
        *,
        is_last: bool,
    ) -> None:
        """Store the metrics that a client has pushed."""
        client = self._clients.pop(client_instance_id, None)
        if client is None:
            client = _Client(pusher)
            self.size_bytes += client.size_bytes
            while len(self._clients) >= CLIENTS_MAX:
                self._drop_oldest()
        client.pusher, client.is_last = pusher, is_last
        self._clients[client_instance_id] = client
        before = client.size_bytes
        client.size_bytes += _texts_bytes(attributes.items()) - _texts_bytes(client.attributes.items())
        client.attributes = dict(attributes)
        for point in points:
            _take_point(client, point, now_ms)
        self.size_bytes += client.size_bytes - before
        self._kept.has_room_for(0)  # drops the oldest if there is too much

    def rows(self) -> list[ClientMetric]:
        """Return all values: clients in the order of their last push, and each one's metrics by name."""
        return [
            ClientMetric(
                *client.pusher,
                name,
                dict(labels),
                "sum" if series.is_sum else "gauge",
                series.value,
                series.time_ms,
                dict(client.attributes),
                client.is_last,
            )
            for client in self._clients.values()
            for (name, labels), series in sorted(client.series.items(), key=lambda item: item[0])
        ]

    def _drop_oldest(self) -> bool:
        for client_instance_id, client in self._clients.items():
            del self._clients[client_instance_id]
            self.size_bytes -= client.size_bytes
            return True
        return False


def _take_point(client: _Client, point: Point, now_ms: int) -> None:
    key = (point.name, point.labels)
    series = client.series.pop(key, None)
    if series is None:
        series = _Series()
        client.size_bytes += _series_bytes(key)
        if len(client.series) >= SERIES_MAX:
            oldest = next(iter(client.series))
            del client.series[oldest]
            client.size_bytes -= _series_bytes(oldest)
    client.series[key] = series
    series.is_sum = point.kind is not MetricKind.GAUGE
    series.value = series.value + point.value if point.kind is MetricKind.DELTA else point.value
    series.time_ms = now_ms


def _series_bytes(key: tuple[str, Labels]) -> int:
    name, labels = key
    return _SERIES_BYTES + len(name) + _texts_bytes(labels)


def _texts_bytes(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(2 * (len(name) + len(value)) + 100 for name, value in pairs)
