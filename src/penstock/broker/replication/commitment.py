"""`Commitment`: whether all in-sync replicas have the records appended to a partition, or may lose them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.replication.local_replica import replica_of
from penstock.broker.requests.purgatory import Wait

if TYPE_CHECKING:
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.purgatory import DelayedOperation


class Commitment:
    """The records in a partition when this object is made, under its leader at that time."""

    __slots__ = ("_lost_at", "_replica", "end_offset", "partition")

    def __init__(self, partition: Partition) -> None:
        """Record the log end and the leadership of a partition.

        Raises:
            StorageError: the log cannot be opened.
        """
        self.partition = partition
        self._replica = replica_of(partition)
        self.end_offset = partition.log.end_offset
        """The end of what has to be replicated."""
        self._lost_at = self._replica.lost_at

    @property
    def is_lost(self) -> bool:
        """Whether the leadership has ended meanwhile, so that uncommitted records may be lost."""
        return self._replica.lost_at != self._lost_at or not self.partition.leads

    @property
    def is_committed(self) -> bool:
        """Whether the high watermark has passed the records."""
        return self.partition.high_watermark >= self.end_offset


def call_when_committed(
    node: Node, partition: Partition, other: Node, action: Callable[[], None]
) -> DelayedOperation:
    """Let `other` call `action` when a partition of `node` commits more, or loses its leadership."""

    def call_soon() -> None:
        other.purgatory.park(Wait((), other.clock.monotonic()), action)

    return node.purgatory.park(Wait(((partition, "committed"),), float("inf")), call_soon)
