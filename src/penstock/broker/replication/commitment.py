"""Whether the records appended to a partition are committed, that is on all in-sync replicas, or may be
lost.
"""

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
    """The records that a partition has when this object is made: to the end of its log, under its leader of
    then.
    """

    __slots__ = ("_losses", "_replica", "end_offset", "partition")

    def __init__(self, partition: Partition) -> None:
        """Raises StorageError: the log cannot be opened."""
        self.partition = partition
        self._replica = replica_of(partition)
        self.end_offset = partition.log.end_offset
        """The end of what has to be replicated."""
        self._losses = self._replica.losses

    @property
    def is_lost(self) -> bool:
        """Whether the leadership has ended meanwhile: records that were not committed may be lost."""
        return self._replica.losses != self._losses or not self.partition.leads

    @property
    def is_committed(self) -> bool:
        """Whether the high watermark has passed the records."""
        return self.partition.high_watermark >= self.end_offset


def call_when_committed(
    node: Node, partition: Partition, other: Node, action: Callable[[], None]
) -> DelayedOperation:
    """Let `other` call `action` when a partition on `node` commits more, or another node leads it."""

    def call_soon() -> None:
        other.purgatory.park(Wait((), other.clock.monotonic()), action)

    return node.purgatory.park(Wait(((partition, "committed"),), float("inf")), call_soon)
