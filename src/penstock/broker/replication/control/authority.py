"""`RemoteAuthority`: connects a node with the controller and the metadata log.

A node's metadata may be behind the log, because records are in flight or the node is paused. So before a node
computes a metadata change, it applies all records that have been written (`catch_up`). The change is written
only if no other record has been written since (`commit`). So each change is based on all changes before it.
In Apache Kafka, brokers forward these requests to the active controller, which has the same effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.metadata.metadata_log import DIRECTORIES_SINCE
from penstock.broker.replication.transport.messages import CONTROLLER
from penstock.errors import StorageError

if TYPE_CHECKING:
    from penstock.broker.metadata.metadata_log import MetadataLog
    from penstock.broker.metadata.planning import Placing
    from penstock.broker.replication.control.quorum import Quorum
    from penstock.broker.replication.transport.messages import MetadataBatch
    from penstock.protocol.message import Message


class Passing(Protocol):
    """The interface of the links between nodes and the controller, which tests can cut."""

    def passes(self, source: int, target: int) -> bool:
        """Return True if a message from `source` reaches `target` now."""


class Taking(Protocol):
    """The interface of a node that applies metadata records."""

    node_id: int
    next_batch: int
    """The number of the first metadata batch that the node has not applied yet."""
    ended: bool

    def take(self, batches: Sequence[MetadataBatch]) -> None:
        """Apply batches of metadata, each once and in order."""


class RemoteAuthority:
    """Connects `member` with the controller of `quorum` over `links`, in a cluster of `size` brokers."""

    log_on_disk: MetadataLog | None = None
    """Always None: the controller has the metadata log, so this broker has none on disk."""

    def __init__(self, quorum: Quorum, links: Passing, member: Taking, size: int) -> None:
        self.placing: Placing = quorum.controller
        self.cluster_id = quorum.cluster_id
        self.mutation_tokens = quorum.mutation_tokens
        """The token buckets of the controller mutation quotas, shared by all brokers: the number of
        partitions that each client may still create or delete.
        """
        self._quorum = quorum
        self._links = links
        self._member = member
        self.size = size

    @property
    def is_reachable(self) -> bool:
        """True if messages pass between this node and the controller in both directions."""
        node, passes = self._member.node_id, self._links.passes
        return not self._member.ended and passes(node, CONTROLLER) and passes(CONTROLLER, node)

    @property
    def end_offset(self) -> int:
        """The offset after the last metadata record."""
        return self._quorum.end_offset

    @property
    def epoch(self) -> int:
        """The epoch in which the controller leads the metadata log."""
        return self._quorum.epoch

    def directories_of(self, name: str, index: int, replicas: Sequence[int]) -> list[bytes] | None:
        """Return an unassigned directory id for each replica: its broker chooses the directory.

        Returns None if the `metadata.version` has no directory ids.
        """
        if self._quorum.level < DIRECTORIES_SINCE:
            return None
        return [bytes(16)] * len(replicas)

    def catch_up(self) -> None:
        """Let the node apply all metadata records that have been written so far.

        A node that is cut off from the controller gets no records, and its own changes are not written.
        """
        if self.is_reachable:
            self._take()

    def commit(self, records: Sequence[Message], now_ms: int) -> None:
        """Write the node's new metadata records to the metadata log, and apply them to the node.

        Raises:
            StaleDecisionError: other metadata were written since the node caught up; the node has applied
                them now.
            StorageError: the records could not be written, or the controller cannot be reached.
        """
        member = self._member
        if not self.is_reachable:
            raise StorageError(f"broker {member.node_id} cannot reach the controller; try another one")
        try:
            self._quorum.commit(records, now_ms, beside=member.node_id, decided_at=member.next_batch)
        finally:
            self._take()

    def _take(self) -> None:
        self._member.take(self._quorum.since(self._member.next_batch))
