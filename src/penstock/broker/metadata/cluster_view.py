"""`ClusterView`: the brokers, quorum and controller of a cluster, as responses describe them.

Handlers of Metadata, DescribeCluster, FindCoordinator, ElectLeaders and similar APIs use a `ClusterView`. A
single broker is a cluster of one: its `LoneView` lists one broker, and handles elections and reassignments
itself. In a cluster of several brokers, the view in `penstock.broker.replication.member_view` passes
elections and reassignments to the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.session import Session


class LocatedBroker(NamedTuple):
    """A broker of the cluster, with the address at which clients of one listener reach the broker."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False
    """True for a fenced broker, which leads no partition and is not in Metadata responses."""


class MetadataObserver(NamedTuple):
    """A node that reads the metadata log but has no vote, and its progress. Times are ms since 1970."""

    node: int
    end_offset: int
    """The offset after the last metadata record that the node has read."""
    heard_ms: int
    """The time of the node's last fetch of metadata records."""
    caught_up_ms: int
    """The last time at which the node had all metadata records."""


class QuorumState(NamedTuple):
    """The quorum of the metadata log: one voter, which leads, and the nodes that read the log."""

    leader_id: int
    directory_id: bytes
    address: tuple[str, int] | None
    """The host and port at which clients can reach the leader."""
    observers: Sequence[MetadataObserver]


class ClusterView(Protocol):
    """The brokers, quorum and controller of a cluster, as one broker describes them to clients."""

    creating_code: ErrorCode
    """The error code in a Metadata response for a topic that the request itself has created.

    NONE means that the response describes the topic. In a cluster of several brokers it is
    UNKNOWN_TOPIC_OR_PARTITION, as in Apache Kafka, since the other brokers do not have the topic's metadata
    yet.
    """

    def registered(self, session: Session) -> list[LocatedBroker]:
        """Return registered brokers that have the connection's listener, sorted by id, fenced ones too."""

    def living(self, session: Session) -> list[LocatedBroker]:
        """Return the brokers that have the connection's listener and are not fenced."""

    def controller_id(self, living: Sequence[LocatedBroker]) -> int:
        """Return the id of the broker to which clients should send metadata changes, or -1 if unknown."""

    def is_alive(self, broker: int) -> bool:
        """Return True if a broker is registered and not fenced."""

    def elect(self, topic: str, index: int, kind: int, now_ms: int) -> None:
        """Elect a partition's leader: the preferred replica (kind 0), or any live replica, unclean (kind 1).

        Raises:
            KafkaError: the election is not possible, or not needed: ELECTION_NOT_NEEDED (84).
            StorageError: the controller's decision could not be written.
        """

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool, now_ms: int
    ) -> None:
        """Reassign the replicas of a partition to the brokers of `target`; None cancels a reassignment.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT (39), a broker is not registered;
                NO_REASSIGNMENT_IN_PROGRESS (85).
            StorageError: the controller's decision could not be written.
        """

    def moving(self, wanted: Sequence[tuple[str, int]] | None) -> list[tuple[str, PartitionImage]]:
        """Return (topic, partition) of the reassignments in progress: all, or those in `wanted` if given."""

    def unregister(self, broker: int, now_ms: int) -> None:
        """Remove a broker from the metadata.

        Raises:
            KafkaError: BROKER_ID_NOT_REGISTERED (102), or the broker cannot be removed.
            StorageError: the controller's decision could not be written.
        """

    def quorum(self, session: Session) -> QuorumState:
        """Return the quorum of the metadata log."""


class LoneView:
    """The `ClusterView` of a single broker, which is a cluster of one."""

    creating_code = ErrorCode.NONE

    def __init__(self, cluster: ClusterState, rack: str | None, directory_id: bytes) -> None:
        self._cluster = cluster
        self._rack = rack
        self._directory_id = directory_id

    def registered(self, session: Session) -> list[LocatedBroker]:
        """Return this broker, at the address that its listener advertises."""
        return [LocatedBroker(self._cluster.node_id, *session.advertised_address, self._rack)]

    living = registered

    def controller_id(self, living: Sequence[LocatedBroker]) -> int:
        """Return the id of this broker: a single broker is its own controller."""
        return self._cluster.node_id

    def is_alive(self, broker: int) -> bool:
        """Return True if `broker` is the id of this broker."""
        return broker == self._cluster.node_id

    def elect(self, topic: str, index: int, kind: int, now_ms: int) -> None:
        """Refuse to elect a leader, since the only replica is the leader already.

        Raises:
            KafkaError: ELECTION_NOT_NEEDED (84), or UNKNOWN_TOPIC_OR_PARTITION (3).
        """
        self._cluster.topic(topic).partition(index)
        raise error_for(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool, now_ms: int
    ) -> None:
        """Accept the assignment that a partition has already; refuse any other.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT (39), there is no other broker; UNKNOWN_TOPIC_OR_PARTITION
                (3); NO_REASSIGNMENT_IN_PROGRESS (85).
        """
        self._cluster.topic(topic).partition(index)
        here = self._cluster.node_id
        if target is None:
            raise error_for(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "no replica of this partition is moving")
        if list(target) != [here]:
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"replicas on brokers {list(target)}; there is only broker {here}",
            )

    def moving(self, wanted: Sequence[tuple[str, int]] | None) -> list[tuple[str, PartitionImage]]:
        """Return no partitions: a single broker cannot reassign any."""
        return []

    def unregister(self, broker: int, now_ms: int) -> None:
        """Refuse to remove a broker.

        Raises:
            KafkaError: INVALID_REQUEST (42), the broker is this one, which is alive; or
                BROKER_ID_NOT_REGISTERED (102).
        """
        if broker == self._cluster.node_id:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"broker {broker} is the only one, and cannot be unregistered"
            )
        raise error_for(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker} is not currently registered")

    def quorum(self, session: Session) -> QuorumState:
        """Return the quorum of the metadata log: this broker is the only voter."""
        return QuorumState(self._cluster.node_id, self._directory_id, session.advertised_address, ())
