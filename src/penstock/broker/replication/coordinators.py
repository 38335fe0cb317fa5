"""Coordinators of groups and transactions, which move with the partitions that their state is in.

A node coordinates what lives in the partitions of `__consumer_offsets` and `__transaction_state` that it
leads: it reads a partition when it begins to lead it, and lets go of it when another node does. Coordinators
reach partitions and coordinators on other nodes through `Peers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.broker.node import Node
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from penstock.broker.replication.partition import ReplicatedPartition
from penstock.broker.transactions.service import Joining, TransactionService
from penstock.common.java_hash import string_hash
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.replication.member import Member
    from penstock.broker.transactions.coordinator import Coordinator
    from penstock.broker.transactions.outbox import Markers
    from penstock.broker.transactions.transaction import TopicPartition


class Peers(Protocol):
    """The other nodes, as far as coordinators call them."""

    def reach(self, source: int, target: int) -> MemberNode | None:
        """Return another node, which is in this process; None where it cannot be reached now."""


class MemberNode(Node):
    """A node that is a member of a cluster."""

    member: Member
    peers: Peers

    @property
    def transactions(self) -> TransactionService:
        """The transaction coordinator. Nothing of it is read before it is needed."""
        if self._transactions is None:
            self._transactions = MemberTransactions(self)
        return self._transactions

    # --- as `Moves` of the member ------------------------------------------------------------------------

    def moved(self, partitions: Sequence[ReplicatedPartition]) -> None:
        """Partitions of the broker's own topics have changed their leader: let go, or take over."""
        with self.failures.barrier("replication", "coordinators that move"):
            for partition in partitions:
                if partition.topic == OFFSETS_TOPIC and self._groups is not None and not partition.leads:
                    self._groups.unload(partition.index)
            touched = [each for each in partitions if each.topic == TRANSACTIONS_TOPIC]
            if touched and (self._transactions is not None or any(each.leads for each in touched)):
                service = self.transactions
                assert isinstance(service, MemberTransactions)
                service.moved(touched)

    def deleted(self, topics: Sequence[Topic]) -> None:
        """Topics have been deleted, by a request to any node: what groups have committed of them goes."""
        with self.failures.barrier("replication", "topics that were deleted"):
            if self._groups is not None:
                self.forget_topics([topic.name for topic in topics], self.clock.now_ms())


class MemberTransactions(TransactionService):
    """The transactions that one member of a cluster coordinates."""

    _node: MemberNode

    def open(self) -> Coordinator:
        if not self._is_loaded and self.topic.exists:
            self._is_loaded = True
            self.coordinator.partition_count = self.topic.partition_count
            partitions = self._node.cluster.topics[TRANSACTIONS_TOPIC].partitions
            self.moved([each for each in partitions if isinstance(each, ReplicatedPartition)])
        return super().open()

    def moved(self, partitions: Sequence[ReplicatedPartition]) -> None:
        """Take over the partitions that this node leads, in their present epoch; let go of the others."""
        if not self._is_loaded:
            self.open()
            return
        for partition in partitions:
            coordinator = self.coordinator
            if not partition.leads:
                coordinator.unload(partition.index)
            elif coordinator.epoch_of(partition.index) != partition.leader_epoch:
                self._load(partition.index)
        self.settle()

    def _mark(self, markers: Markers) -> dict[TopicPartition, ErrorCode]:
        """Write markers, on all nodes; none before the outcome is replicated: they are asked for
        again.
        """
        partitions = self._node.cluster.topics[TRANSACTIONS_TOPIC].partitions
        state = partitions[self.coordinator.partition_of(markers.transactional_id)]
        if state in self._node.member.unreplicated:
            return {}
        return super()._mark(markers)

    def mark(
        self,
        tp: TopicPartition,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        is_commit: bool,
        version: int,
    ) -> ErrorCode:
        topic = self._node.cluster.topics.get(tp[0])
        if topic is None or tp[1] >= len(topic.partitions):
            return ErrorCode.NONE
        partition = topic.partitions[tp[1]]
        there = self._reach(partition.leader)
        if there is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        service = there.transactions
        try:
            target = there.cluster.topic(tp[0]).partition(tp[1])
        except KafkaError as error:
            return ErrorCode(error.code)
        return service.mark_partition(target, producer_id, epoch, coordinator_epoch, is_commit, version)

    def _reach(self, node_id: int) -> MemberNode | None:
        node = self._node
        return node if node_id == node.node_id else node.peers.reach(node.node_id, node_id)

    def joining(self, transactional_id: str, version: int) -> Joining:
        return MemberJoining(self, transactional_id, version)

    def coordinator_of(self, transactional_id: str) -> MemberTransactions | None:
        """The service that coordinates an id; None where it cannot be reached."""
        topic = self._node.cluster.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        number = string_hash(transactional_id)
        index = 0 if number == -(1 << 31) else abs(number) % len(topic.partitions)
        there = self._reach(topic.partitions[index].leader)
        service = None if there is None else there.transactions
        return service if isinstance(service, MemberTransactions) else None


class MemberJoining(Joining):
    """Has partitions take part in a transaction that another node may coordinate."""

    def join(self, topic: str, index: int, producer_id: int, epoch: int) -> None:
        service = self._service
        assert isinstance(service, MemberTransactions)
        found = service.coordinator_of(self._transactional_id)
        if found is None:
            raise error_for(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the coordinator of {self._transactional_id!r} is out of reach",
            )
        self._service = found
        try:
            super().join(topic, index, producer_id, epoch)
        finally:
            self._service = service
