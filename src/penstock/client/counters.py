"""What clients count while they work: a few additions for each request, none for each record.

Written on the client's event loop, read from any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.addresses import Address

BROKERS_COUNTED_MAX = 1_000
"""Addresses whose counters are kept. Clusters are smaller; metadata could name new ones for ever."""

FINE_BELOW_US = 16
"""Shorter times have a bucket for each microsecond."""


def bucket_of(microseconds: int) -> int:
    """Return the number of the bucket of a duration: there are four for each power of two."""
    if microseconds < FINE_BELOW_US:
        return max(microseconds, 0)
    bits = microseconds.bit_length()
    return (bits << 2) + ((microseconds >> (bits - 3)) & 3)


def bucket_limits(bucket: int) -> tuple[int, int]:
    """Return the shortest duration of a bucket, and that of the next one, in microseconds."""
    if bucket < FINE_BELOW_US:
        return bucket, bucket + 1
    bits, quarter = bucket >> 2, bucket & 3
    step = 1 << (bits - 3)
    return (4 + quarter) * step, (5 + quarter) * step


class Durations:
    """Durations of one kind: how many, their sum, and how they are distributed."""

    __slots__ = ("buckets", "count", "max_us", "min_us", "sum_us")

    def __init__(self) -> None:
        self.count = 0
        self.sum_us = 0
        self.min_us = 0
        self.max_us = 0
        self.buckets: dict[int, int] = {}
        """How many fell into each bucket; there are some 250 at most."""

    def add(self, seconds: float) -> None:
        """Count a duration."""
        microseconds = int(seconds * 1e6)
        if not self.count or microseconds < self.min_us:
            self.min_us = microseconds
        if microseconds > self.max_us:
            self.max_us = microseconds
        self.count += 1
        self.sum_us += microseconds
        bucket = bucket_of(microseconds)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1


class BrokerCounters:
    """What is counted for one broker, over all connections, and what the connection pool keeps of it."""

    __slots__ = (
        "connects",
        "disconnects",
        "failures",
        "failures_in_a_row",
        "is_ancient",
        "is_connected",
        "name",
        "not_before",
        "requests",
        "rx",
        "rx_bytes",
        "said_at",
        "said_connected",
        "throttle",
        "throttled_at",
        "timeouts",
        "tx",
        "tx_bytes",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_connected = False
        self.connects = 0
        self.disconnects = 0
        self.failures = 0
        """Attempts to connect that failed."""
        self.failures_in_a_row = 0
        """Attempts to connect that failed since the last one that did not."""
        self.not_before = float("-inf")
        """When to connect again at the earliest (time of the event loop)."""
        self.said_connected: bool | None = None
        """What the log said of the broker last: that it is connected, or that it is not; None for nothing."""
        self.said_at = 0.0
        """When the log said so (monotonic time)."""
        self.is_ancient: bool | None = None
        """Whether it is older than Kafka 0.10; None until it has answered."""
        self.timeouts = 0
        """Connections that ended because an answer was overdue."""
        self.tx = 0
        self.tx_bytes = 0
        self.rx = 0
        self.rx_bytes = 0
        self.requests: dict[type, Durations] = {}
        """From request to answer, by the class of the request: there are some ninety APIs."""
        self.throttle = Durations()
        self.throttled_at = float("-inf")
        """When the broker asked for a pause last (monotonic time)."""

    def durations_of(self, request: type) -> Durations:
        """Return the durations of one API."""
        found = self.requests.get(request)
        if found is None:
            found = self.requests[request] = Durations()
        return found


class ClientCounters:
    """What is counted for a client: its brokers by address."""

    __slots__ = ("brokers",)

    def __init__(self) -> None:
        self.brokers: dict[Address, BrokerCounters] = {}

    def of(self, address: Address) -> BrokerCounters:
        """Return the counters of a broker. At the limit, those of the oldest one without a connection go."""
        found = self.brokers.get(address)
        if found is None:
            if len(self.brokers) >= BROKERS_COUNTED_MAX:
                idle = (each for each, counters in self.brokers.items() if not counters.is_connected)
                self.brokers.pop(next(idle, next(iter(self.brokers))))
            found = self.brokers[address] = BrokerCounters(str(address))
        return found


class PartitionCounters:
    """What is counted for one partition: records and bytes written, or handed out."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0

    def add(self, records: int, size: int) -> None:
        """Count records, and how many bytes they take as batches."""
        self.records += records
        self.bytes += size
