"""Coordinators of groups and transactions, which move with the leaders of their internal partitions.

A node coordinates the groups and ids whose state is in the partitions of `__consumer_offsets` and
`__transaction_state` that it leads: it reads such a partition when it becomes the leader, and drops the state
when it stops leading. Coordinators reach partitions and coordinators on other nodes through `Peers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.partitions.internal_topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from penstock.broker.replication.commitment import Commitment, call_when_committed
from penstock.broker.replication.share_requests import SharedRequest
from penstock.broker.requests.purgatory import Wait
from penstock.common.java_hash import partition_of
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.node import Node
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.replication.entrants import Entrant
    from penstock.broker.replication.member import ClusterMember
    from penstock.broker.requests.purgatory import DelayedOperation
    from penstock.broker.transactions.outbox import Markers
    from penstock.broker.transactions.service import TransactionService
    from penstock.broker.transactions.transaction import TopicPartition


APPEND_PATIENCE_S = 30.0
"""The seconds within which the in-sync replicas must have a batch that one node appends at another."""

APPEND_LOOK_S = 0.5
"""The seconds between checks if a batch appended at another node is replicated. A notification may be
missing because the leader has stopped.
"""


class Peers(Protocol):
    """Gives coordinators access to the other nodes of the cluster."""

    def reach(self, source: int, target: int) -> Node | None:
        """Return the node with id `target`, or None if node `source` cannot reach that node now."""


class ClusterCoordinators:
    """Loads and drops the coordinators' state on one cluster node, and lets them call other nodes."""

    marker_retry_s = 0.001, 0.5
    """The seconds from writing a transaction marker to the first check of its replication, and the longest
    interval between later checks."""

    def __init__(self, node: Node, member: ClusterMember, peers: Peers) -> None:
        self.node = node
        self._member = member
        self._peers = peers
        self._unsure: dict[tuple[str, TopicPartition], tuple[Markers, Commitment]] = {}
        """A dict from (transactional id, partition) to a marker that is written but not committed yet."""
        self._watched: dict[tuple[str, TopicPartition], tuple[Partition, DelayedOperation]] = {}
        """A dict from (transactional id, partition) to the `Partition` at its leader whose next commit
        causes a check of the transaction's markers, and the purgatory entry that makes this check.
        """

    @property
    def not_ready(self) -> str | None:
        """The reason why this broker is not ready for clients; None if the metadata list it as alive."""
        return None if self._member.is_alive else "the controller does not count on this broker (fenced)"

    def call_when_committed(
        self, partition: Partition, other: Node, action: Callable[[], None]
    ) -> DelayedOperation:
        """Call `action` once, from the purgatory of node `other`, when high watermark or leader change."""
        return call_when_committed(self.node, partition, other, action)

    def _reach(self, node_id: int) -> ClusterCoordinators | None:
        if node_id == self.node.node_id:
            return self
        there = self._peers.reach(self.node.node_id, node_id)
        if there is None:
            return None
        assert isinstance(there.membership, ClusterCoordinators)
        return there.membership

    def send_share_state(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the share coordinators, which may be other nodes."""
        SharedRequest(self.node, self.reach, request, done).begin()

    def reach(self, node_id: int) -> Node | None:
        """Return the node with this id (also this node itself), or None if it cannot be reached now."""
        there = self._reach(node_id)
        return None if there is None else there.node

    def leader_of(self, topic: str, index: int) -> Node:
        """Return the node that leads a partition.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION (3), or LEADER_NOT_AVAILABLE (5), the leader cannot be
                reached now.
        """
        there = self.reach(self.node.cluster.topic(topic).partition(index).leader)
        if there is None:
            raise error_for(
                ErrorCode.LEADER_NOT_AVAILABLE, f"the leader of {topic}-{index} cannot be reached"
            )
        return there

    def append_at_leader(self, topic: str, index: int, batch: bytes, done: Callable[[int], None]) -> None:
        """Append a batch to a partition at its leader; `done` gets 0 once the in-sync replicas have it.

        Otherwise it gets NOT_LEADER_OR_FOLLOWER (6) or REQUEST_TIMED_OUT (7): the records may be lost.

        Raises:
            KafkaError, StorageError, UnpackLimitError: the records have not been appended.
        """
        leader, node = self.leader_of(topic, index), self.node
        commitment = Commitment(leader.append_here(topic, index, batch))
        deadline = node.clock.monotonic() + APPEND_PATIENCE_S
        watch: DelayedOperation | None = None

        def look() -> None:
            nonlocal watch
            if watch is not None:
                leader.purgatory.cancel(watch)
            now = node.clock.monotonic()
            if commitment.is_committed:
                done(ErrorCode.NONE)
            elif commitment.is_lost:
                done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif now >= deadline:
                done(ErrorCode.REQUEST_TIMED_OUT)
            else:
                wake = partial(node.purgatory.notify, look)
                watch = call_when_committed(leader, commitment.partition, node, wake)
                node.purgatory.park(Wait((look,), min(now + APPEND_LOOK_S, deadline)), look)

        look()

    # --- as `Moves` of the member ------------------------------------------------------------------------

    def moved(self, partitions: Sequence[Partition]) -> None:
        """Load or drop coordinator state in those internal partitions whose leader has changed."""
        node = self.node
        with node.failures.barrier("replication", "coordinators that move"):
            groups = node.groups_if_used
            for partition in partitions:
                if partition.topic == OFFSETS_TOPIC and groups is not None:
                    groups.follow(partition)
                if partition.topic == SHARE_STATE_TOPIC and node.share_states_if_used is not None:
                    node.share_states_if_used.loaded.follow(partition)
            touched = [each for each in partitions if each.topic == TRANSACTIONS_TOPIC]
            is_used = node.transactions_if_used is not None
            if touched and (is_used or any(each.leads for each in touched)):
                node.transactions.moved(touched)

    def deleted(self, topics: Sequence[Topic]) -> None:
        """Drop what the coordinators store about deleted topics, such as committed offsets."""
        node = self.node
        with node.failures.barrier("replication", "topics that were deleted"):
            names = [topic.name for topic in topics]
            if node.groups_if_used is not None:
                node.forget_topics(names, node.clock.now_ms())
            elif TRANSACTIONS_TOPIC in names and node.transactions_if_used is not None:
                node.transactions_if_used.forget_everything()
            if node.groups_if_used is None:
                node.forget_share_states(names)

    def quotas_changed(self) -> None:
        """Apply changed client quotas on this node."""
        self.node.quotas_changed()

    # --- as `Elsewhere` of transactions ------------------------------------------------------------------

    def let_go(self) -> None:
        """Drop the pending markers of transactional ids that this node no longer coordinates."""
        known = self.node.transactions.coordinator.registry.transactions
        self._unsure = {key: each for key, each in self._unsure.items() if key[0] in known}
        self._watched = {key: each for key, each in self._watched.items() if key[0] in known}

    def is_replicated(self, transactional_id: str) -> bool:
        """Return True if a transaction's outcome is replicated.

        If the outcome is not replicated, the transaction's markers are checked again when its partition of
        `__transaction_state` commits more records.
        """
        state = self._state_of(transactional_id)
        if state not in self._member.unreplicated:
            return True
        self._watch(self, state, transactional_id)
        return False

    def _state_of(self, transactional_id: str) -> Partition:
        partitions = self.node.cluster.topics[TRANSACTIONS_TOPIC].partitions
        return partitions[partition_of(transactional_id, len(partitions))]

    def _watch(self, there: ClusterCoordinators, partition: Partition, transactional_id: str) -> None:
        """Check the markers of a transaction again when `partition` commits more records.

        A timer causes the same check, in case the node `there` stops. This method makes the check independent
        of the clock, which tests may stop.
        """
        key = transactional_id, (partition.topic, partition.index)
        known, watch = self._watched.get(key, (None, None))
        if known is not partition or watch is None or not watch.is_waiting:
            watch = there.call_when_committed(
                partition, self.node, lambda: self.node.transactions.look_again(transactional_id)
            )
            self._watched[key] = partition, watch

    def mark(self, partition: Partition, markers: Markers) -> ErrorCode:
        """Write a transaction marker at a partition's leader; return NONE if the ISR has it, or an error."""
        there = self._reach(partition.leader)
        if there is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            target = there.node.cluster.topic(partition.topic).partition(partition.index)
        except KafkaError as error:
            return ErrorCode(error.code)
        key = markers.transactional_id, (partition.topic, partition.index)
        of, commitment = self._unsure.pop(key, (None, None))
        is_there = commitment is not None and commitment.partition is target and not commitment.is_lost
        if commitment is None or not is_there or not _is_of_one_end(of, markers):
            refusal = there.node.transactions.mark_here(target, markers)
            if refusal:
                return refusal
            commitment = Commitment(target)
        if commitment.is_committed:
            return ErrorCode.NONE
        self._unsure[key] = markers, commitment
        self._watch(there, target, markers.transactional_id)
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def coordinator_of(self, transactional_id: str) -> TransactionService | None:
        """Return the transaction coordinator of a transactional id, or None if it cannot be reached."""
        there = self.coordinators_of(transactional_id)
        return None if there is None else there.node.transactions

    def coordinators_of(self, transactional_id: str) -> ClusterCoordinators | None:
        """Return the `ClusterCoordinators` of a transactional id's coordinator node; None if unreachable."""
        is_known = TRANSACTIONS_TOPIC in self.node.cluster.topics
        return self._reach(self._state_of(transactional_id).leader) if is_known else None

    def commitment_of(self, transactional_id: str) -> Commitment:
        """Return a `Commitment` that shows when a transactional id's present state is replicated.

        Raises:
            StorageError: the log cannot be opened.
        """
        return Commitment(self._state_of(transactional_id))

    def entry(self, transactional_id: str, entrants: Sequence[Entrant]) -> PartitionsAddition:
        """Return an object that adds partitions to a transaction, before records are written to them."""
        return PartitionsAddition(self, transactional_id, entrants)


_COMES_LATER = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Errors of a node that is about to be the coordinator: it lacks the newest metadata, or is still loading
the state.
"""


class PartitionsAddition:
    """The addition of partitions to a transaction, whose coordinator may be on any node.

    No record may be written to a partition before the replicas of the coordinator's log have stored that the
    partition belongs to the transaction. Otherwise, after a failure, the next coordinator would end the
    transaction without a marker in this partition, where the transaction would stay open.
    """

    def __init__(self, here: ClusterCoordinators, transactional_id: str, entrants: Sequence[Entrant]) -> None:
        self._here = here
        self._transactional_id = transactional_id
        self._entrants = entrants
        self._asked: tuple[ClusterCoordinators, Commitment] | None = None
        self._is_watched = False

    @property
    def is_done(self) -> bool:
        """Return True if records may be written to the partitions.

        Also True if the coordinator refuses or cannot be reached at first: the write then returns the error.
        If a coordinator fails later, its successor is used.

        Raises:
            StorageError: the coordinator's log cannot be opened.
        """
        found = self._here.coordinators_of(self._transactional_id)
        if found is None:
            return self._asked is None
        if self._asked is None or self._asked[0] is not found or self._asked[1].is_lost:
            for partition, producer_id, epoch in self._entrants:
                error = found.node.transactions.add_partitions(
                    self._transactional_id, producer_id, epoch, [partition], is_implicit=True
                )
                if error:
                    return self._asked is None or error not in _COMES_LATER
            self._asked = found, found.commitment_of(self._transactional_id)
        return self._asked[1].is_committed

    def call_when_done(self, action: Callable[[], None]) -> None:
        """Call `action` once the addition may be replicated, or have failed.

        Callers need a timer too: `action` is not called for every change, such as a stopped coordinator.
        """
        if self._asked is None:
            return
        there, commitment = self._asked
        if not self._is_watched:
            self._is_watched = True

            def woken() -> None:
                self._is_watched = False
                action()

            there.call_when_committed(commitment.partition, self._here.node, woken)


def _is_of_one_end(one: Markers | None, other: Markers) -> bool:
    """Return True if two markers have the same coordinator, and end the same transaction the same way."""
    return one is not None and one._replace(partitions=other.partitions) == other
