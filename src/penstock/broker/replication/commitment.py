"""`Commitment`: detects when appended records are committed, or may be lost after a change of leadership."""

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
    """Checks if the records that a partition has when this object is created become committed or lost."""

    __slots__ = ("_lost_at", "_replica", "end_offset", "partition")

    def __init__(self, partition: Partition) -> None:
        """Record the log end and the leadership of a partition.

        Raises:
            StorageError: the log cannot be opened.
        """
        self.partition = partition
        self._replica = replica_of(partition)
        self.end_offset = partition.log.end_offset
        """The log end offset when this object was created: the records below it have to be replicated."""
        self._lost_at = self._replica.lost_at

    @property
    def is_lost(self) -> bool:
        """True if this node has lost the leadership meanwhile, so that uncommitted records may be lost."""
        return self._replica.lost_at != self._lost_at or not self.partition.leads

    @property
    def is_committed(self) -> bool:
        """True if the high watermark has reached `end_offset`."""
        return self.partition.high_watermark >= self.end_offset


def call_when_committed(
    node: Node, partition: Partition, other: Node, action: Callable[[], None]
) -> DelayedOperation:
    """Call `action` once, from the purgatory of node `other`, when high watermark or leader change."""

    def call_soon() -> None:
        other.purgatory.park(Wait((), other.clock.monotonic()), action)

    return node.purgatory.park(Wait(((partition, "committed"),), float("inf")), call_soon)
