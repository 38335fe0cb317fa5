"""Replication quotas (KIP-73): limits for followers that are not in sync, so that clients keep bandwidth.

The leader side and the follower side each have a rate limit in bytes per second; topic settings list the
throttled replicas. Rates are measured like those of client quotas. The module does no I/O and reads no clock.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.requests.quotas import Usage

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.partitions.partition import Partition

LISTS_KEPT = 1000
"""The number of parsed lists of throttled replicas in the cache."""


class _Listed(NamedTuple):
    """The throttled partitions of one topic; all partitions if `is_all` is set."""

    is_all: bool
    partitions: frozenset[int]


@lru_cache(maxsize=LISTS_KEPT)
def _parsed(text: str, node_id: int) -> _Listed:
    """Parse a topic's list of throttled replicas, ``*`` or ``PARTITION:BROKER,...``, for one broker."""
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.split(":") for part in parts if ":" in part]
    return _Listed("*" in parts, frozenset(int(index) for index, broker in pairs if int(broker) == node_id))


class ReplicationThrottle:
    """The replication quota of one side, ``leader`` or ``follower``, on one broker."""

    def __init__(self, side: str, node_id: int, config: BrokerConfig) -> None:
        """Create a quota without traffic. It reads `config` at each check, so that changes apply at once."""
        self._rate = f"{side}.replication.throttled.rate"
        self._replicas = f"{side}.replication.throttled.replicas"
        self._node_id = node_id
        self._config = config
        self._usage = Usage()

    def _limit(self) -> float | None:
        config = self._config
        for texts in (config.dynamic, config.dynamic_defaults, config.settings):
            text = texts.get(self._rate)
            if text is not None:
                return float(text)
        return None

    def concerns(self, partition: Partition) -> bool:
        """Return True if this quota applies to a partition on this broker."""
        text = partition.config.text(self._replicas)
        if not text:
            return False
        listed = _parsed(text, self._node_id)
        return listed.is_all or partition.index in listed.partitions

    def holds_back(self, partition: Partition, replica: int, now_s: float) -> bool:
        """Return True if the quota withholds records from a replica now; False for an in-sync replica."""
        limit = self._limit()
        if limit is None or replica in partition.in_sync or not self.concerns(partition):
            return False
        return self._usage.rate(now_s)[0] > limit

    def took(self, partition: Partition, size: int, now_s: float) -> None:
        """Count replicated bytes of a partition against the quota, if the partition is throttled."""
        if size and self.concerns(partition):
            self._usage.add(size, now_s)
