"""The counters of a client. They are updated for each request, and not for each record.

The client's event loop writes the counters; any thread may read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.addresses import Address

BROKERS_COUNTED_MAX = 1_000
"""The maximum number of brokers whose counters are kept. Clusters are smaller, but metadata could have new
brokers again and again."""

FINE_BELOW_US = 16
"""The duration in microseconds below which the histogram has one bucket for each microsecond."""


def bucket_of(microseconds: int) -> int:
    """Return the number of a duration's bucket in a histogram with four buckets for each power of two."""
    if microseconds < FINE_BELOW_US:
        return max(microseconds, 0)
    bits = microseconds.bit_length()
    return (bits << 2) + ((microseconds >> (bits - 3)) & 3)


def bucket_limits(bucket: int) -> tuple[int, int]:
    """Return the lower limits of a bucket and of the next one, in microseconds."""
    if bucket < FINE_BELOW_US:
        return bucket, bucket + 1
    bits, quarter = bucket >> 2, bucket & 3
    step = 1 << (bits - 3)
    return (4 + quarter) * step, (5 + quarter) * step


class Durations:
    """Durations of one kind of event: their number, sum, minimum, maximum and distribution."""

    __slots__ = ("buckets", "count", "max_us", "min_us", "sum_us")

    def __init__(self) -> None:
        self.count = 0
        self.sum_us = 0
        self.min_us = 0
        self.max_us = 0
        self.buckets: dict[int, int] = {}
        """The number of durations in each bucket. There are at most some 250 buckets."""

    def add(self, seconds: float) -> None:
        """Count one duration, and add it to the sum and the distribution."""
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
    """The counters of one broker over all connections, and the state of attempts to connect to it."""

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
        """The number of failed attempts to connect."""
        self.failures_in_a_row = 0
        """The number of failed attempts to connect since the last success."""
        self.not_before = float("-inf")
        """The earliest time of the next attempt to connect, in seconds of the event loop's clock."""
        self.said_connected: bool | None = None
        """The state of the connection that was logged last: True for connected, False for lost, None for none
        yet."""
        self.said_at = 0.0
        """The time at which `said_connected` was last logged, in seconds of the monotonic clock."""
        self.is_ancient: bool | None = None
        """True if the broker is older than Kafka 0.10; None until it has answered."""
        self.timeouts = 0
        """The number of connections that ended because a response was overdue."""
        self.tx = 0
        self.tx_bytes = 0
        self.rx = 0
        self.rx_bytes = 0
        self.requests: dict[type, Durations] = {}
        """A dict from request class to round-trip times. It has at most some ninety entries, one for each
        API.
        """
        self.throttle = Durations()
        self.throttled_at = float("-inf")
        """The time at which the broker last throttled this client, in monotonic seconds; -inf before."""

    def durations_of(self, request: type) -> Durations:
        """Return the round-trip durations of one request class."""
        found = self.requests.get(request)
        if found is None:
            found = self.requests[request] = Durations()
        return found


class ClientCounters:
    """The counters of a client: a `BrokerCounters` for each broker, by address."""

    __slots__ = ("brokers",)

    def __init__(self) -> None:
        self.brokers: dict[Address, BrokerCounters] = {}

    def of(self, address: Address) -> BrokerCounters:
        """Return the counters of a broker.

        If `BROKERS_COUNTED_MAX` is reached, a new broker replaces the oldest one without a connection.
        """
        found = self.brokers.get(address)
        if found is None:
            if len(self.brokers) >= BROKERS_COUNTED_MAX:
                idle = (each for each, counters in self.brokers.items() if not counters.is_connected)
                self.brokers.pop(next(idle, next(iter(self.brokers))))
            found = self.brokers[address] = BrokerCounters(str(address))
        return found


class PartitionCounters:
    """The counters of one partition: records that were written or returned, and their size in bytes."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0

    def add(self, records: int, size: int) -> None:
        """Add `records` records to the counters, and the `size` in bytes that they have in batches."""
        self.records += records
        self.bytes += size
