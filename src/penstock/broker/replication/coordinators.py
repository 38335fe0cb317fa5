"""Coordinators of groups and transactions, which move with the partitions that their state is in.

A node coordinates what lives in the partitions of `__consumer_offsets` and `__transaction_state` that it
leads: it reads a partition when it begins to lead it, and lets go of it when another node does. Coordinators
reach partitions and coordinators on other nodes through `Peers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.node import Node
from penstock.broker.partitions.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.replication.commitment import Commitment
from penstock.broker.replication.partition import ReplicatedPartition
from penstock.broker.replication.share_requests import SharedRequest
from penstock.broker.requests.purgatory import Wait
from penstock.broker.transactions.service import Joining, TransactionService
from penstock.common.java_hash import partition_of
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.replication.entrants import Entrant
    from penstock.broker.replication.member import Member
    from penstock.broker.requests.purgatory import DelayedOperation
    from penstock.broker.transactions.coordinator import Coordinator
    from penstock.broker.transactions.outbox import Markers
    from penstock.broker.transactions.transaction import TopicPartition


MARKER_RETRY_S = 0.001, 0.5
"""How long after a marker was written it is first looked whether its replicas have it; later on at most."""


class Peers(Protocol):
    """The other nodes, as far as coordinators call them."""

    def reach(self, source: int, target: int) -> MemberNode | None:
        """Return another node, which is in this process; None where it cannot be reached now."""


class MemberNode(Node):
    """A node that is a member of a cluster."""

    member: Member
    peers: Peers

    @property
    def transactions(self) -> MemberTransactions:
        """The transaction coordinator. Nothing of it is read before it is needed."""
        if self._transactions is None:
            self._transactions = MemberTransactions(self)
            self._transactions.open()
        assert isinstance(self._transactions, MemberTransactions)
        return self._transactions

    @property
    def not_ready(self) -> str | None:
        """Why clients should not come to this broker: it is not among the living of its cluster."""
        return None if self.member.is_alive else "the controller does not count on this broker (fenced)"

    def call_when_committed(
        self, partition: Partition, other: Node, action: Callable[[], None]
    ) -> DelayedOperation:
        """Have `other` call `action` when a partition has committed more here, or is led elsewhere."""

        def call_soon() -> None:
            other.purgatory.park(Wait((), other.clock.monotonic()), action)

        return self.purgatory.park(Wait(((partition, "committed"),), float("inf")), call_soon)

    def send_share_state(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the share coordinators, which may be other nodes."""
        SharedRequest(self, request, done).begin()

    def end_offset(self, topic: str, index: int) -> int:
        """Return the end of a partition, as its leader knows it."""
        leader = self.cluster.topic(topic).partition(index).leader
        there = self if leader == self.node_id else self.peers.reach(self.node_id, leader)
        if there is None:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"the leader of {topic}-{index} is out of reach")
        return Node.end_offset(there, topic, index)

    # --- as `Moves` of the member ------------------------------------------------------------------------

    def moved(self, partitions: Sequence[ReplicatedPartition]) -> None:
        """Partitions of the broker's own topics have changed their leader: let go, or take over."""
        with self.failures.barrier("replication", "coordinators that move"):
            for partition in partitions:
                if partition.topic == OFFSETS_TOPIC and self._groups is not None and not partition.leads:
                    self._groups.unload(partition.index)
                if partition.topic == SHARE_STATE_TOPIC and self._share_states is not None:
                    self._share_states.unload(partition.index)
            touched = [each for each in partitions if each.topic == TRANSACTIONS_TOPIC]
            if touched and (self._transactions is not None or any(each.leads for each in touched)):
                self.transactions.moved(touched)

    def deleted(self, topics: Sequence[Topic]) -> None:
        """Topics have been deleted, by a request to any node: what groups have committed of them goes."""
        with self.failures.barrier("replication", "topics that were deleted"):
            names = [topic.name for topic in topics]
            if self._groups is not None:
                self.forget_topics(names, self.clock.now_ms())
                return
            if TRANSACTIONS_TOPIC in names and self._transactions is not None:
                self._transactions.forget_everything()
            self.forget_share_states(names)


class MemberTransactions(TransactionService):
    """The transactions that one member of a cluster coordinates."""

    _node: MemberNode

    def __init__(self, node: MemberNode) -> None:
        self._unsure: dict[tuple[str, TopicPartition], tuple[Markers, Commitment]] = {}
        """Markers that have been written and that followers do not have yet, by transaction and partition."""
        self._watched: dict[tuple[str, TopicPartition], tuple[Partition, DelayedOperation]] = {}
        """What markers wait for to be committed, by transaction and partition."""
        super().__init__(node)
        self.coordinator.marking.retry_first_s, self.coordinator.marking.retry_max_s = MARKER_RETRY_S

    def open(self) -> Coordinator:
        if not self._is_loaded and self.topic.exists:
            self._is_loaded = True
            self.coordinator.registry.partition_count = self.topic.partition_count
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
                coordinator.registry.unload(partition.index)
            elif coordinator.registry.epoch_of(partition.index) != partition.leader_epoch:
                self._load(partition.index)
        known = self.coordinator.registry.transactions
        self._unsure = {key: each for key, each in self._unsure.items() if key[0] in known}
        self._watched = {key: each for key, each in self._watched.items() if key[0] in known}
        self.settle()

    def _mark(self, markers: Markers) -> dict[TopicPartition, ErrorCode]:
        """Write markers, on all nodes; none before the outcome is replicated: they are asked for
        again.
        """
        partitions = self._node.cluster.topics[TRANSACTIONS_TOPIC].partitions
        state = partitions[self.coordinator.registry.partition_of(markers.transactional_id)]
        if state in self._node.member.unreplicated:
            self._watch(self._node, state, markers.transactional_id)
            return {}
        return super()._mark(markers)

    def _watch(self, node: MemberNode, partition: Partition, transactional_id: str) -> None:
        """Have the markers of a transaction looked at again when a partition of a node has committed more.

        They are looked at again after some time as well; but a clock may stand still, and a node may end.
        """
        key = transactional_id, (partition.topic, partition.index)
        known, watch = self._watched.get(key, (None, None))
        if known is not partition or watch is None or not watch.is_waiting:
            watch = node.call_when_committed(
                partition, self._node, lambda: self._look_again(transactional_id)
            )
            self._watched[key] = partition, watch

    def _look_again(self, transactional_id: str) -> None:
        try:
            self.coordinator.marking.retry(transactional_id, self.now)
        finally:
            self.settle()

    def _mark_at(self, partition: Partition, markers: Markers) -> ErrorCode:
        """Write a marker at the partition's leader. NONE once its in-sync replicas have it."""
        there = self._reach(partition.leader)
        if there is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            target = there.cluster.topic(partition.topic).partition(partition.index)
        except KafkaError as error:
            return ErrorCode(error.code)
        assert isinstance(target, ReplicatedPartition)
        key = markers.transactional_id, (partition.topic, partition.index)
        of, commitment = self._unsure.pop(key, (None, None))
        is_there = commitment is not None and commitment.partition is target and not commitment.is_lost
        if commitment is None or not is_there or not _is_of_one_end(of, markers):
            refusal = there.transactions.mark_at_leader(target, markers)
            if refusal:
                return refusal
            commitment = Commitment(target)
        if commitment.is_committed:
            return ErrorCode.NONE
        self._unsure[key] = markers, commitment
        self._watch(there, target, markers.transactional_id)
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def mark_at_leader(self, partition: Partition, markers: Markers) -> ErrorCode:
        """Write a marker to a partition that this node leads, for the coordinator on any node."""
        return super()._mark_at(partition, markers)

    def _reach(self, node_id: int) -> MemberNode | None:
        node = self._node
        return node if node_id == node.node_id else node.peers.reach(node.node_id, node_id)

    def joining(self, transactional_id: str, version: int, *, of_offsets: bool = False) -> Joining:
        return MemberJoining(self, transactional_id, version, of_offsets=of_offsets)

    def coordinator_of(self, transactional_id: str) -> MemberTransactions | None:
        """The service that coordinates an id; None where it cannot be reached."""
        topic = self._node.cluster.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return None
        there = self._reach(topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader)
        return None if there is None else there.transactions

    def commitment_of(self, transactional_id: str) -> Commitment:
        """What is stored of a transactional id on this node by now.

        Raises:
            StorageError: the log cannot be opened.
        """
        partitions = self._node.cluster.topics[TRANSACTIONS_TOPIC].partitions
        state = partitions[self.coordinator.registry.partition_of(transactional_id)]
        assert isinstance(state, ReplicatedPartition)
        return Commitment(state)

    def call_when_committed(
        self, partition: Partition, other: MemberTransactions, action: Callable[[], None]
    ) -> None:
        """Have `other` call `action` when more of a partition has been committed on this node."""
        self._node.call_when_committed(partition, other._node, action)

    def entry(self, transactional_id: str, entrants: Sequence[Entrant]) -> Entry:
        """Have partitions take part in a transaction before they are written to."""
        return Entry(self, transactional_id, entrants)


_COMES_LATER = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Errors of a node that is about to coordinate, and has not learned of it yet, or not read what there is."""


class Entry:
    """Partitions that are to take part in a transaction, wherever its coordinator is.

    A partition must not be written to before the coordinator's replicas know that it takes part: the next
    coordinator would end the transaction without it, and it would stay open in that partition.
    """

    def __init__(
        self, service: MemberTransactions, transactional_id: str, entrants: Sequence[Entrant]
    ) -> None:
        self._service = service
        self._transactional_id = transactional_id
        self._entrants = entrants
        self._asked: tuple[MemberTransactions, Commitment] | None = None
        self._is_watched = False

    @property
    def is_done(self) -> bool:
        """Whether the partitions can be written to. True as well where the coordinator refuses, or cannot be
        reached at first: who writes gets the error when it asks. One that is lost later has a successor.

        Raises:
            StorageError: the coordinator's log cannot be opened.
        """
        found = self._service.coordinator_of(self._transactional_id)
        if found is None:
            return self._asked is None
        if self._asked is None or self._asked[0] is not found or self._asked[1].is_lost:
            for partition, producer_id, epoch in self._entrants:
                error = found.add_partitions(
                    self._transactional_id, producer_id, epoch, [partition], is_implicit=True
                )
                if error:
                    return self._asked is None or error not in _COMES_LATER
            self._asked = found, found.commitment_of(self._transactional_id)
        return self._asked[1].is_committed

    def call_when_done(self, action: Callable[[], None]) -> None:
        """Have `action` called when `is_done` may have changed. It may also change without."""
        if self._asked is None:
            return
        service, commitment = self._asked
        if not self._is_watched:
            self._is_watched = True

            def woken() -> None:
                self._is_watched = False
                action()

            service.call_when_committed(commitment.partition, self._service, woken)


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


def _is_of_one_end(one: Markers | None, other: Markers) -> bool:
    """Whether markers end the same transaction of the same coordinator, in the same way."""
    return one is not None and one._replace(partitions=other.partitions) == other
