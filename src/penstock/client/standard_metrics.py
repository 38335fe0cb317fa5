"""Computes the metrics of KIP-714 from a statistics snapshot, as data points to be pushed.

Durations are in milliseconds. Averages, maxima and rates cover the time since the last push; sums are totals,
or their growth since the last push. Source: KIP-714, and the names of Java's client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from penstock.client.statistics import Statistics, Window
from penstock.telemetry.points import Labels, MetricKind, Point

PARTITIONS_MAX = 1000
"""The maximum number of partitions whose lag is pushed. More would make the push too large for the broker."""

_PREFIXES = {
    "producer": "org.apache.kafka.producer.",
    "consumer": "org.apache.kafka.consumer.",
    "admin": "org.apache.kafka.admin.client.",
}


def standard_metrics(
    now: Statistics,
    earlier: Statistics | None,
    node_ids: Mapping[str, int],
    requested: Collection[str],
    *,
    is_delta: bool,
) -> list[Point]:
    """Return the data points of the requested metrics.

    `earlier` is the snapshot of the last push, or None for the first. `node_ids` maps broker addresses to
    ids. `requested` are prefixes of metric names; ``*`` stands for all. If `is_delta`, sums are the growth
    since the last push.
    """
    recent = now if earlier is None else now.since(earlier)
    counted = recent if is_delta else now
    kind = MetricKind.DELTA if is_delta else MetricKind.TOTAL
    time_ns = now.time * 1_000_000_000
    start_ns = time_ns - counted.age * 1000
    prefix = _PREFIXES[now.type]
    points = []
    for name, value, labels, is_sum in (
        *_sums(counted),
        *_rates(recent),
        *_windows(recent, node_ids),
        *_places(now),
    ):
        full = prefix + name
        if any(each in ("*", "") or full.startswith(each) for each in requested):
            made = kind if is_sum else MetricKind.GAUGE
            points.append(Point(full, made, value, labels, time_ns, start_ns if is_sum else 0))
    return points


_Value = tuple[str, float, Labels, bool]
"""The last part of a metric's name, its value, its labels, and True if it is a sum."""


def _sums(stats: Statistics) -> Iterator[_Value]:
    connects = sum(broker.connects for broker in stats.brokers.values())
    yield "connection.creation.total", connects, (), True
    yield "request.total", stats.tx, (), True
    yield "response.total", stats.rx, (), True
    yield "outgoing.byte.total", stats.tx_bytes, (), True
    yield "incoming.byte.total", stats.rx_bytes, (), True
    if stats.type == "producer":
        yield "record.send.total", stats.txmsgs, (), True
        topics: dict[str, list[int]] = {}
        for tp, partition in stats.partitions.items():
            sums = topics.setdefault(tp.topic, [0, 0])
            sums[0] += partition.txmsgs
            sums[1] += partition.txbytes
        for topic, (records, size) in list(topics.items())[:PARTITIONS_MAX]:
            yield "topic.record.send.total", records, (("topic", topic),), True
            yield "topic.byte.total", size, (("topic", topic),), True
    elif stats.type == "consumer":
        yield "fetch.manager.records.consumed.total", stats.rxmsgs, (), True
        yield "fetch.manager.bytes.consumed.total", stats.rxmsg_bytes, (), True


def _rates(recent: Statistics) -> Iterator[_Value]:
    seconds = recent.age / 1e6
    connects = sum(broker.connects for broker in recent.brokers.values())
    yield "connection.creation.rate", connects / seconds if seconds > 0 else 0.0, (), False


def _windows(recent: Statistics, node_ids: Mapping[str, int]) -> Iterator[_Value]:
    throttle = fetch = Window()
    for address, broker in recent.brokers.items():
        node_id = node_ids.get(address)
        if node_id is not None and broker.rtt.cnt:
            labels = (("node_id", str(node_id)),)
            yield from _average("node.request.latency", broker.rtt, labels)
        throttle, fetch = _joined(throttle, broker.throttle), _joined(fetch, broker.fetch_latency)
    if recent.type == "producer":
        yield from _average("produce.throttle.time", throttle)
    elif recent.type == "consumer":
        yield from _average("fetch.manager.fetch.throttle.time", throttle)
        yield from _average("fetch.manager.fetch.latency", fetch)


def _places(now: Statistics) -> Iterator[_Value]:
    if now.cgrp is not None:
        yield "coordinator.assigned.partitions", now.cgrp.assignment_size, (), False
    if now.type == "consumer":
        for tp, partition in list(now.partitions.items())[:PARTITIONS_MAX]:
            if partition.consumer_lag >= 0:
                labels = (("partition", str(tp.partition)), ("topic", tp.topic))
                yield "fetch.manager.records.lag", partition.consumer_lag, labels, False


def _average(name: str, window: Window, labels: Labels = ()) -> Iterator[_Value]:
    yield f"{name}.avg", window.sum / window.cnt / 1000 if window.cnt else 0.0, labels, False
    yield f"{name}.max", window.max / 1000, labels, False


def _joined(one: Window, other: Window) -> Window:
    """Return the `Window` of two together: the sum of their counts, of their sums, and the maximum."""
    return Window(cnt=one.cnt + other.cnt, sum=one.sum + other.sum, max=max(one.max, other.max))
