"""The cluster as a whole, as requests ask about it: its brokers, its quorum, decisions of its controller.

Handlers of Metadata, DescribeCluster, FindCoordinator, ElectLeaders and the like ask a `ClusterView`. A
broker by itself is a cluster of one: `LoneView` names one broker, and decides by itself. In a cluster of
several `penstock.broker.replication.member_view` has the controller decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import Cluster
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.security.session import Session


class LocatedBroker(NamedTuple):
    """A broker of the cluster, and where clients of one listener reach it."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False
    """True for a fenced broker: it leads nothing, and Metadata leaves it out."""


class Observer(NamedTuple):
    """A node as a reader of the metadata log. Times are milliseconds of the time of day."""

    node: int
    end_offset: int
    """The offset up to which it has the records of the log."""
    heard_ms: int
    """When it has last asked for more."""
    caught_up_ms: int
    """When it has last had all."""


class QuorumState(NamedTuple):
    """Who keeps the metadata log: one voter, which leads, and the nodes that read it."""

    leader_id: int
    directory_id: bytes
    address: tuple[str, int] | None
    """Host and port of the leader, where clients can reach it."""
    observers: Sequence[Observer]


class ClusterView(Protocol):
    """The cluster as a whole, as one broker shows it to clients."""

    def registered(self, session: Session) -> list[LocatedBroker]:
        """Return the brokers that have the listener of a connection, fenced ones too, by their ids."""

    def living(self, session: Session) -> list[LocatedBroker]:
        """Return the brokers of the listener of a connection that take part."""

    def controller_id(self, living: Sequence[LocatedBroker]) -> int:
        """Return the broker that clients should send changes of metadata to; -1 where there is none."""

    def is_alive(self, broker: int) -> bool:
        """Return whether a broker takes part, on this listener or another."""

    def elect(self, topic: str, index: int, kind: int, now_ms: int) -> None:
        """Elect the leader of a partition: 0 the preferred replica, 1 any that lives.

        Raises:
            KafkaError: the election is not possible, or not needed (84).
            StorageError: what the controller decided could not be written.
        """

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool, now_ms: int
    ) -> None:
        """Move the replicas of a partition to the brokers of `target`; None gives a move up.

        Raises:
            KafkaError: the brokers are not there, or no replica is moving (85).
            StorageError: what the controller decided could not be written.
        """

    def moving(self, wanted: Sequence[tuple[str, int]] | None) -> list[tuple[str, PartitionImage]]:
        """Return the partitions whose replicas are moving, by topic; None asks for all of them."""

    def unregister(self, broker: int, now_ms: int) -> None:
        """Take a broker out of the metadata.

        Raises:
            KafkaError: there is no such broker (102), or it cannot be taken out.
            StorageError: what the controller decided could not be written.
        """

    def quorum(self, session: Session) -> QuorumState:
        """Return who keeps the metadata log."""


class LoneView:
    """The view of a broker by itself."""

    def __init__(self, cluster: Cluster, rack: str | None, directory_id: bytes) -> None:
        self._cluster = cluster
        self._rack = rack
        self._directory_id = directory_id

    def registered(self, session: Session) -> list[LocatedBroker]:
        """Return this broker, at the address that its listener advertises."""
        return [LocatedBroker(self._cluster.node_id, *session.advertised_address, self._rack)]

    living = registered

    def controller_id(self, living: Sequence[LocatedBroker]) -> int:
        """Return this broker."""
        return self._cluster.node_id

    def is_alive(self, broker: int) -> bool:
        """Return whether it is this broker."""
        return broker == self._cluster.node_id

    def elect(self, topic: str, index: int, kind: int, now_ms: int) -> None:
        """Raises KafkaError: the partition is led already (84), or not there (3)."""
        self._cluster.topic(topic).partition(index)
        raise error_for(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")

    def reassign(
        self, topic: str, index: int, target: Sequence[int] | None, *, same_size: bool, now_ms: int
    ) -> None:
        """Accept what is so already.

        Raises:
            KafkaError: there is no other broker (39), nothing moves (85), no such partition (3).
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
        """Return nothing: with one broker nothing moves."""
        return []

    def unregister(self, broker: int, now_ms: int) -> None:
        """Raises KafkaError: the broker is this one, which is alive (42), or not there (102)."""
        if broker == self._cluster.node_id:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"broker {broker} is the only one, and cannot be unregistered"
            )
        raise error_for(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker} is not currently registered")

    def quorum(self, session: Session) -> QuorumState:
        """Return a quorum of one."""
        return QuorumState(self._cluster.node_id, self._directory_id, session.advertised_address, ())
