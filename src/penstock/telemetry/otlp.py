"""OTLP: the message MetricsData of OpenTelemetry (opentelemetry.proto.metrics.v1), to and from points.

Clients push this message to brokers (KIP-714). `read_metrics` reads gauges and sums, which is all that the
metrics of KIP-714 and current clients have; it skips histograms, summaries, and fields that OpenTelemetry may
add.

    MetricsData    1 resource_metrics*
    ResourceMetrics  1 resource, 2 scope_metrics*
    Resource       1 attributes*
    ScopeMetrics   2 metrics*
    Metric         1 name, 5 gauge, 7 sum
    Gauge, Sum     1 data_points*, 2 aggregation_temporality (1 delta, 2 cumulative), 3 is_monotonic
    NumberDataPoint  2 start (ns), 3 time (ns), 4 as_double, 6 as_int, 7 attributes*
    KeyValue       1 key, 2 value
    AnyValue       1 text, 2 boolean, 3 integer, 4 double
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.common.protobuf import (
    FieldBudget,
    Fields,
    double_field,
    fixed64_field,
    length_field,
    varint_field,
)
from penstock.telemetry.points import Labels, MetricKind, Point

FIELDS_MAX = 50_000
"""The maximum number of Protobuf fields in one push: some 2,000 points with two labels each, read in 30 to 50
ms."""

_DELTA, _CUMULATIVE = 1, 2


class Pushed(NamedTuple):
    """The contents of one push: attributes of the client (``group_id``, ``client_rack``, ...), and points."""

    attributes: dict[str, str]
    points: list[Point]


def read_metrics(
    data: bytes, fields_max: int = FIELDS_MAX, between: Callable[[], None] | None = None
) -> Pushed:
    """Return the contents of a MetricsData message.

    The function `between` is called after each resource. It can pause the thread to let other threads run.

    Raises:
        ProtobufError: the bytes are not a MetricsData message.
        TooManyFieldsError: the message has more than `fields_max` fields.
    """
    found = Pushed({}, [])
    fields = Fields(data, FieldBudget(fields_max))
    while fields.advance():
        if fields.number == 1:
            _read_resource_metrics(fields.message(), found)
            if between is not None:
                between()
    return found


def _read_resource_metrics(fields: Fields, found: Pushed) -> None:
    while fields.advance():
        if fields.number == 1:
            resource = fields.message()
            while resource.advance():
                if resource.number == 1:
                    _read_attribute(resource.message(), found.attributes)
        elif fields.number == 2:
            scope = fields.message()
            while scope.advance():
                if scope.number == 2:
                    _read_metric(scope.message(), found.points)


def _read_metric(fields: Fields, points: list[Point]) -> None:
    name = ""
    values: Fields | None = None
    is_sum = False
    while fields.advance():
        if fields.number == 1:
            name = fields.text()
        elif fields.number in (5, 7):  # a oneof: the last one counts
            values, is_sum = fields.message(), fields.number == 7
    if values is None:
        return
    kind = MetricKind.TOTAL if is_sum else MetricKind.GAUGE
    first = len(points)
    while values.advance():
        if values.number == 1:
            point = _read_point(values.message(), name)
            if point is not None:
                points.append(point)
        elif values.number == 2 and is_sum:
            kind = MetricKind.DELTA if values.varint() == _DELTA else MetricKind.TOTAL
    if kind is not MetricKind.GAUGE:  # what says so may come behind the points
        points[first:] = [point._replace(kind=kind) for point in points[first:]]


def _read_point(fields: Fields, name: str) -> Point | None:
    """Return the point of a NumberDataPoint, or None if it has no value."""
    value: float | None = None
    time_ns = start_ns = 0
    labels: dict[str, str] = {}
    while fields.advance():
        if fields.number == 2:
            start_ns = fields.fixed()
        elif fields.number == 3:
            time_ns = fields.fixed()
        elif fields.number == 4:
            value = fields.double()
        elif fields.number == 6:
            value = fields.signed_fixed()
        elif fields.number == 7:
            _read_attribute(fields.message(), labels)
    if value is None:
        return None
    return Point(name, MetricKind.GAUGE, value, tuple(sorted(labels.items())), time_ns, start_ns)


def _read_attribute(fields: Fields, into: dict[str, str]) -> None:
    """Read a KeyValue, and add it to `into`. Values that are lists, maps or bytes are left out."""
    key = ""
    value: str | None = None
    while fields.advance():
        if fields.number == 1:
            key = fields.text()
        elif fields.number == 2:
            value = _read_value(fields.message())
    if value is not None:
        into[key] = value


def _read_value(fields: Fields) -> str | None:
    value: str | None = None
    while fields.advance():
        if fields.number == 1:
            value = fields.text()
        elif fields.number == 2:
            value = "true" if fields.varint() else "false"
        elif fields.number == 3:
            value = str(fields.signed())
        elif fields.number == 4:
            value = repr(fields.double())
        else:
            value = None
    return value


def write_metrics(points: Iterable[Point], attributes: Mapping[str, str]) -> bytes:
    """Return a MetricsData message: one resource with `attributes`, and one metric for each point."""
    resource = b"".join(_attribute(1, name, value) for name, value in attributes.items())
    metrics = b"".join(length_field(2, _metric(point)) for point in points)
    return length_field(1, length_field(1, resource) + length_field(2, metrics))


def _metric(point: Point) -> bytes:
    value = fixed64_field(6, point.value) if isinstance(point.value, int) else double_field(4, point.value)
    start = fixed64_field(2, point.start_ns) if point.start_ns else b""
    data = start + fixed64_field(3, point.time_ns) + value + _labels(point.labels)
    values = length_field(1, data)
    if point.kind is MetricKind.GAUGE:
        return length_field(1, point.name.encode()) + length_field(5, values)
    temporality = _DELTA if point.kind is MetricKind.DELTA else _CUMULATIVE
    values += varint_field(2, temporality) + varint_field(3, 1)
    return length_field(1, point.name.encode()) + length_field(7, values)


def _labels(labels: Labels) -> bytes:
    return b"".join(_attribute(7, name, value) for name, value in labels)


def _attribute(number: int, name: str, value: str) -> bytes:
    text = length_field(1, value.encode())
    return length_field(number, length_field(1, name.encode()) + length_field(2, text))
