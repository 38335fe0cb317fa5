"""Snapshots of a client's counters, under the names of librdkafka's statistics.

Durations are in microseconds and sizes in bytes, unless a field says otherwise. Counters begin at 0 with the
client. `Statistics.since` returns the difference of two snapshots, for rates.

Source: STATISTICS.md of librdkafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

from penstock.client.counters import BrokerCounters, Durations, bucket_limits
from penstock.model import TopicPartition

S = TypeVar("S")


def _count() -> Any:
    """Return a dataclass field for a counter, which never decreases, so that rates can be computed."""
    return field(default=0, metadata={"grows": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The durations of one kind of event: their number `cnt`, and their sum in microseconds.

    Percentiles are computed from buckets, with an error of at most one eighth: there are four buckets for
    each power of two. Percentiles are 0 if nothing was counted.
    """

    cnt: int = _count()
    sum: int = _count()
    min: int = 0
    max: int = 0
    buckets: Mapping[int, int] = field(default_factory=dict, repr=False)
    """The number of durations in each bucket; `penstock.client.counters.bucket_of` defines the buckets."""

    @classmethod
    def of(cls, durations: Durations) -> Window:
        """Return the window of all durations counted so far."""
        return cls(
            cnt=durations.count,
            sum=durations.sum_us,
            min=durations.min_us,
            max=durations.max_us,
            buckets=durations.buckets.copy(),
        )

    @property
    def avg(self) -> int:
        """The mean duration in microseconds; 0 without any event."""
        return self.sum // self.cnt if self.cnt else 0

    def percentile(self, percent: float) -> int:
        """Return the duration in microseconds that `percent` per cent of the events do not exceed."""
        left = sum(self.buckets.values()) * percent / 100
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 0:
                low, high = bucket_limits(bucket)
                return max(self.min, min(self.max, (low + high) // 2))
        return self.max

    def since(self, earlier: Window) -> Window:
        """Return the window of the durations counted since the window `earlier` was made.

        Its minimum and maximum are the limits of the lowest and highest bucket with a new duration.
        """
        buckets = {
            bucket: count - earlier.buckets.get(bucket, 0)
            for bucket, count in self.buckets.items()
            if count > earlier.buckets.get(bucket, 0)
        }
        return Window(
            cnt=self.cnt - earlier.cnt,
            sum=self.sum - earlier.sum,
            min=bucket_limits(min(buckets))[0] if buckets else 0,
            max=bucket_limits(max(buckets))[1] - 1 if buckets else 0,
            buckets=buckets,
        )

    def as_dict(self) -> dict[str, int]:
        """Return the fields that librdkafka's JSON has for a window."""
        percentiles = {f"p{percent:g}".replace(".", "_"): self.percentile(percent) for percent in PERCENTILES}
        return {
            "min": self.min, "max": self.max, "avg": self.avg, "sum": self.sum, "cnt": self.cnt, **percentiles
        }  # fmt: skip


PERCENTILES = (50, 75, 90, 95, 99, 99.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatistics:
    """The requests, responses, errors and durations between a client and one broker."""

    name: str
    """The address of the broker, as host:port."""
    state: str
    """``UP`` if there is a connection, ``DOWN`` if there is none."""
    waitresp_cnt: int
    """The number of requests in flight now."""
    connects: int = _count()
    """The number of opened connections."""
    disconnects: int = _count()
    """The number of connections that were lost, and not closed by this client."""
    connect_failures: int = _count()
    """The number of failed attempts to connect."""
    tx: int = _count()
    """The number of requests sent."""
    txbytes: int = _count()
    """The size in bytes of all requests sent, without the overhead of TLS."""
    rx: int = _count()
    """The number of responses received."""
    rxbytes: int = _count()
    """The size in bytes of all responses received, without the overhead of TLS."""
    req_timeouts: int = _count()
    """The number of connections that were closed because a response was overdue."""
    rtt: Window
    """The round-trip times of requests, without Fetch, whose responses wait for records."""
    fetch_latency: Window
    """The round-trip times of Fetch, including the wait at the broker for ``fetch.min.bytes``."""
    throttle: Window
    """The throttle times by which quotas of the broker made this client wait."""
    req: Mapping[str, int] = field(default_factory=dict)
    """The number of responses by API: ``{"Produce": 7}``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """The records and bytes that a client has written to one partition, or read from it.

    Unknown offsets are -1.
    """

    txmsgs: int = _count()
    """The number of acknowledged records."""
    txbytes: int = _count()
    """The size in bytes of the acknowledged records, in batches before compression."""
    rxmsgs: int = _count()
    """The number of records that were decoded for the application."""
    rxbytes: int = _count()
    """The size in bytes of the batches in which the decoded records were fetched."""
    msgq_cnt: int = 0
    """The number of records that are not acknowledged yet."""
    msgq_bytes: int = 0
    """The size in bytes of the records that are not acknowledged yet."""
    app_offset: int = -1
    """The offset of the next record that the application gets."""
    next_offset: int = -1
    """The offset of the next record that is fetched."""
    committed_offset: int = -1
    """The committed offset of the group, as far as this client has committed or read it."""
    hi_offset: int = -1
    """The partition's high watermark in the last Fetch response."""
    ls_offset: int = -1
    """The partition's last stable offset in the last Fetch response: where the first open transaction
    begins."""
    lo_offset: int = -1
    """The partition's log start offset in the last Fetch response."""
    consumer_lag: int = -1
    """The number of offsets from `app_offset` to the end of the partition, as far as this consumer may
    read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """The state of a consumer in its group, and its rebalances."""

    group_id: str
    member_id: str
    """The member's id, or an empty string before it has joined."""
    state: str
    """``up`` for a member with an assignment; else the step of joining: ``joining``, ``syncing``, ..."""
    assignment_size: int
    """The number of partitions that this member has."""
    rebalance_cnt: int = _count()
    """The number of times that partitions were assigned, revoked or lost."""
    rebalance_age: int = 0
    """The time in milliseconds since partitions were last assigned, revoked or lost; 0 before the first
    time."""


class Sample(NamedTuple):
    """One number with a name and labels, as in the text format of Prometheus."""

    name: str
    labels: dict[str, str]
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A snapshot of a client: counters since its start, and the current size of its buffers and queues."""

    client_id: str
    type: str
    """The kind of client: ``producer``, ``consumer`` or ``admin``."""
    ts: int
    """The time of the snapshot, in microseconds of a monotonic clock."""
    time: int
    """The time of the snapshot, in seconds since 1970."""
    age: int = _count()
    """The time in microseconds since the client was made."""
    msg_cnt: int = 0
    """The number of a producer's records that are not acknowledged yet."""
    msg_size: int = 0
    """The size in bytes of a producer's records that are not acknowledged yet."""
    msg_size_max: int = 0
    """The limit of buffered bytes: a producer's ``buffer.memory``, or a consumer's limit of fetching
    ahead."""
    fetchq_size: int = 0
    """The size in bytes of the records that a consumer has fetched and not decoded yet."""
    tx: int = _count()
    """The number of requests to all brokers."""
    tx_bytes: int = _count()
    """The size in bytes of all requests to all brokers."""
    rx: int = _count()
    """The number of responses from all brokers."""
    rx_bytes: int = _count()
    """The size in bytes of all responses from all brokers."""
    txmsgs: int = _count()
    """The number of acknowledged records."""
    txmsg_bytes: int = _count()
    """The size in bytes of the acknowledged records, in batches before compression."""
    rxmsgs: int = _count()
    """The number of records that were decoded for the application."""
    rxmsg_bytes: int = _count()
    """The size in bytes of the batches in which the decoded records were fetched."""
    brokers: Mapping[str, BrokerStatistics] = field(default_factory=dict)
    """The brokers by address, at most 1,000 of them."""
    partitions: Mapping[TopicPartition, PartitionStatistics] = field(default_factory=dict)
    """The partitions that a producer has written to, or that are assigned to a consumer now."""
    cgrp: GroupStatistics | None = None
    """The consumer's group statistics, or None."""

    def since(self, earlier: Statistics) -> Statistics:
        """Return the difference to an earlier snapshot of this client: each counter's growth since then.

        ``later.since(earlier).txmsgs / (later.ts - earlier.ts) * 1e6`` is a rate per second.
        """
        return _difference(self, earlier)

    def as_dict(self) -> dict[str, Any]:
        """Return the snapshot as a dict with the structure of librdkafka's statistics JSON."""
        made = {each.name: getattr(self, each.name) for each in fields(self)}
        made["name"] = self.client_id
        made["brokers"] = {name: _plain(broker) for name, broker in self.brokers.items()}
        topics: dict[str, Any] = {}
        for tp, partition in made.pop("partitions").items():
            topic = topics.setdefault(tp.topic, {"topic": tp.topic, "partitions": {}})
            topic["partitions"][str(tp.partition)] = {"partition": tp.partition, **_plain(partition)}
        made["topics"] = topics
        if self.cgrp is None:
            del made["cgrp"]
        else:
            made["cgrp"] = _plain(self.cgrp)
        return made

    def samples(self) -> Iterator[Sample]:
        """Yield every number separately, named by its path in the JSON, such as ``brokers_rtt_p99``."""
        client = {"client_id": self.client_id}
        for name, value in self.as_dict().items():
            if isinstance(value, int):
                yield Sample(name, client, value)
        for broker, counted in self.brokers.items():
            yield from _samples("brokers", {**client, "broker": broker}, _plain(counted))
        for tp, each in self.partitions.items():
            labels = {**client, "topic": tp.topic, "partition": str(tp.partition)}
            yield from _samples("topics_partitions", labels, _plain(each))
        if self.cgrp is not None:
            yield from _samples("cgrp", {**client, "group": self.cgrp.group_id}, _plain(self.cgrp))


def _samples(prefix: str, labels: dict[str, str], values: Mapping[str, Any]) -> Iterator[Sample]:
    for name, value in values.items():
        if name == "req":
            for api, count in value.items():
                yield Sample(f"{prefix}_req", {**labels, "api": api}, count)
        elif isinstance(value, dict):
            yield from _samples(f"{prefix}_{name}", labels, value)
        elif isinstance(value, int):
            yield Sample(f"{prefix}_{name}", labels, value)


def _plain(counted: Any) -> dict[str, Any]:
    values = {each.name: getattr(counted, each.name) for each in fields(counted)}
    return {
        name: value.as_dict() if isinstance(value, Window) else dict(value) if name == "req" else value
        for name, value in values.items()
    }


def _difference(later: S, earlier: S) -> S:
    changed: dict[str, Any] = {}
    made: Any = later
    for each in fields(made):
        changed[each.name] = _field_difference(each, getattr(later, each.name), getattr(earlier, each.name))
    result: S = replace(made, **changed)
    return result


def _field_difference(each: Field[Any], later: Any, earlier: Any) -> Any:
    if each.metadata.get("grows"):
        return later - earlier
    if isinstance(later, Window):
        return later.since(earlier)
    if isinstance(later, Mapping):
        return {
            key: _entry_difference(value, earlier[key]) if key in earlier else value
            for key, value in later.items()
        }
    return _difference(later, earlier) if is_dataclass(later) and earlier is not None else later


def _entry_difference(later: Any, earlier: Any) -> Any:
    return later - earlier if isinstance(later, int) else _difference(later, earlier)


def broker_statistics(counters: BrokerCounters, waiting: int) -> BrokerStatistics:
    """Return a snapshot of one broker's counters; `waiting` is its number of requests in flight."""
    requests = list(counters.requests.items())
    named = {kind.__name__.removesuffix("Request"): durations for kind, durations in requests}
    rtt = Durations()
    for name, durations in named.items():
        if name != "Fetch" and durations.count:
            _join(rtt, durations)
    return BrokerStatistics(
        name=counters.name,
        state="UP" if counters.is_connected else "DOWN",
        waitresp_cnt=waiting,
        connects=counters.connects,
        disconnects=counters.disconnects,
        connect_failures=counters.failures,
        tx=counters.tx,
        txbytes=counters.tx_bytes,
        rx=counters.rx,
        rxbytes=counters.rx_bytes,
        req_timeouts=counters.timeouts,
        rtt=Window.of(rtt),
        fetch_latency=Window.of(named.get("Fetch", Durations())),
        throttle=Window.of(counters.throttle),
        req={name: durations.count for name, durations in named.items()},
    )


def _join(into: Durations, durations: Durations) -> None:
    into.min_us = min(into.min_us, durations.min_us) if into.count else durations.min_us
    into.max_us = max(into.max_us, durations.max_us)
    into.count += durations.count
    into.sum_us += durations.sum_us
    for bucket, count in durations.buckets.copy().items():
        into.buckets[bucket] = into.buckets.get(bucket, 0) + count
