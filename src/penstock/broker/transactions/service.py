"""Transactions on a broker: runs the coordinator, stores its state, and writes its markers.

`TransactionService` does the I/O for the coordinator: it stores records, writes markers to partitions, and
answers requests. All of that is done before a request returns, because appends to local logs complete at
once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.coordination.alarm import Alarm
from penstock.broker.coordination.loaded import LoadedPartitions
from penstock.broker.coordination.state_topic import Logs, StateTopic
from penstock.broker.metadata.image import TRANSACTION_FEATURE
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.partitions.producers.transactional_appends import append_marker
from penstock.broker.transactions.answers import answer_of_offsets, answer_of_produce
from penstock.broker.transactions.coordinator import TransactionCoordinator
from penstock.broker.transactions.outbox import ApiOutcome, Markers, StoreRecord
from penstock.broker.transactions.records import read_record
from penstock.broker.transactions.registry import PARTITION_BYTES, TRANSACTION_BYTES
from penstock.broker.transactions.settings import TransactionSettings
from penstock.broker.transactions.topic import LAYOUT
from penstock.broker.transactions.transaction import NO_CONNECTION, Instant, TopicPartition
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.since import PRODUCE_IMPLICIT_ADDS_SINCE, TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.coordination.losses import Losses
    from penstock.broker.groups.service import GroupService
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.broker.metadata.producer_ids import ProducerIds
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.requests.kept_state import KeptState
    from penstock.broker.requests.purgatory import Purgatory
    from penstock.broker.requests.release_profiles import Profile
    from penstock.broker.transactions.initialization import Initialization
    from penstock.clock import Clock
    from penstock.common.failures import Failures, LimitedLog
    from penstock.protocol.messages.transaction_log_value import TransactionLogValue

logger = logger_named("penstock.broker")

WAKES_ALL = 1 << 40
"""A size in bytes above any `min_bytes`: a purgatory notification with it wakes all waiting fetches.

Used for markers, which make all records of a transaction visible.
"""


class TransactionHost(Protocol):
    """The interface of a broker that `TransactionService` uses."""

    config: BrokerConfig
    cluster: ClusterState
    clock: Clock
    purgatory: Purgatory
    failures: Failures
    limited_log: LimitedLog
    kept: KeptState
    producer_ids: ProducerIds
    profile: Profile | None

    @property
    def store(self) -> Logs: ...
    @property
    def groups(self) -> GroupService: ...
    @property
    def groups_if_used(self) -> GroupService | None: ...


class Elsewhere(Protocol):
    """The interface to partitions and coordinators on the other nodes of a cluster."""

    marker_retry_s: tuple[float, float]
    """The first and the longest interval in seconds between checks for a written marker's replication."""

    def is_replicated(self, transactional_id: str) -> bool:
        """Return True if a transaction's outcome is replicated; if not, check its markers again later."""

    def mark(self, partition: Partition, markers: Markers) -> ErrorCode:
        """Write a transaction marker at a partition's leader; return NONE if the ISR has it, or an error."""

    def coordinator_of(self, transactional_id: str) -> TransactionService | None:
        """Return the transaction coordinator of a transactional id, or None if it cannot be reached."""

    def let_go(self) -> None:
        """Drop the pending markers of transactions that this node no longer coordinates."""


class PendingAnswer:
    """Receives the response that one request waits for; the coordinator uses it as the request's `Ticket`."""

    __slots__ = ("outcome",)

    def __init__(self) -> None:
        self.outcome: ApiOutcome | None = None


class TransactionService:
    """The transaction coordinator of one broker, with the I/O that it needs.

    State is read when `open` is called. `open` may write markers, so the node must already refer to this
    service.
    """

    def __init__(self, node: TransactionHost, elsewhere: Elsewhere | None = None) -> None:
        """Prepare the service. `elsewhere` gives access to the other nodes of a cluster, if there are any."""
        config = node.config
        self._node = node
        self._elsewhere = elsewhere
        self.topic = StateTopic(LAYOUT, node.cluster, node.store, node.purgatory.notify)
        self.loaded = LoadedPartitions(self.topic, self._read, "transactions", is_of_one_epoch=True)
        settings = TransactionSettings(
            config.integer("transaction.max.timeout.ms"),
            config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            config.integer("transactional.id.expiration.ms"),
            config.integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
            config.boolean("transaction.two.phase.commit.enable"),
        )
        self.coordinator = TransactionCoordinator(settings, self.topic.partition_count, self._new_id)
        if elsewhere is not None:
            marking = self.coordinator.marking
            marking.retry_first_s, marking.retry_max_s = elsewhere.marker_retry_s
        self._is_loaded = False
        self._alarm = Alarm(node.purgatory, self.advance)
        node.kept.add("transactions", lambda: self.coordinator.registry.size_bytes)

    # --- loading -----------------------------------------------------------------------------------------

    def open(self) -> TransactionCoordinator:
        """Read all stored state, set the present feature level, and return the coordinator."""
        coordinator = self.coordinator
        level, profile = self._node.cluster.features.get(TRANSACTION_FEATURE, 0), self._node.profile
        coordinator.registry.feature_level = (
            level if profile is None else min(level, profile.transaction_level)
        )
        if not self._is_loaded and self.topic.exists:
            self._is_loaded = True
            coordinator.registry.partition_count = self.topic.partition_count
            self.moved(self.topic.partitions)
        return coordinator

    def moved(self, partitions: Sequence[Partition]) -> None:
        """Load the state partitions that this node leads, with their present epoch; drop all others."""
        if not self._is_loaded:
            self.open()
            return
        for partition in partitions:
            if self.loaded.follow(partition):
                self.coordinator.registry.unload(partition.index)
            if partition.leads:
                with suppress(KafkaError):  # it is logged, and the next epoch may be read
                    self.loaded.open(partition.index)
        if self._elsewhere is not None:
            self._elsewhere.let_go()
        self.settle()

    def create_topic(self, now_ms: int) -> None:
        """Create `__transaction_state` if it does not exist.

        Raises:
            StorageError: the metadata log cannot be written.
        """
        self.topic.create(now_ms)
        self.open()

    def _read(self, index: int, losses: Losses) -> None:
        values: dict[str, TransactionLogValue] = {}
        for stored, _ in self.topic.replay(index, losses, read_record):
            values.pop(stored.transactional_id, None)
            if stored.value is not None:
                values[stored.transactional_id] = stored.value
        epoch = self.topic.partitions[index].leader_epoch
        for unusable in self.coordinator.load(index, epoch, values, self.now):
            losses.add(unusable)

    def forget_everything(self) -> None:
        """Drop all transactions, because `__transaction_state` was deleted."""
        for index in range(self.coordinator.registry.partition_count):
            self.coordinator.registry.unload(index)
        self.loaded.clear()
        self._is_loaded = False
        self.settle()

    @property
    def now(self) -> Instant:
        clock = self._node.clock
        return Instant(clock.now_ms(), clock.monotonic())

    def _new_id(self) -> int | None:
        ids = self._node.producer_ids
        try:
            return ids.new_id(self._node.clock.now_ms())
        except StorageError as error:
            logger.error("%s", error)
            return None

    # --- requests ----------------------------------------------------------------------------------------

    def initialize(self, request: Initialization) -> ApiOutcome:
        """Handle InitProducerId with a transactional id."""
        coordinator = self.open()
        known = request.transactional_id in coordinator.registry.transactions
        size = TRANSACTION_BYTES + len(request.transactional_id)
        if not known and not self._node.kept.has_room_for(size, stays=True):
            return ApiOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._ask(coordinator.initialize, request)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        *,
        is_implicit: bool = False,
        connection: int = NO_CONNECTION,
    ) -> ErrorCode:
        """Handle AddPartitionsToTxn, AddOffsetsToTxn, or the first write of a producer with KIP-890."""
        coordinator = self.open()
        listed = list(partitions)
        size = sum(PARTITION_BYTES + len(topic) for topic, _ in listed)
        transaction = coordinator.registry.transactions.get(transactional_id)
        grows = transaction is not None and not transaction.image.partitions.issuperset(listed)
        if grows and not self._node.kept.has_room_for(size, stays=True):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._ask(
            coordinator.add_partitions,
            transactional_id,
            producer_id,
            epoch,
            listed,
            is_implicit=is_implicit,
            connection=connection,
        ).error

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return NONE for each partition that is in the transaction, and an error for each other one."""
        return self.open().verify(transactional_id, producer_id, epoch, partitions)

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        is_commit: bool,
        *,
        raises_epoch: bool,
        connection: int = NO_CONNECTION,
    ) -> ApiOutcome:
        """Handle EndTxn. When the method returns, the markers are written, unless a partition refuses one."""
        return self._ask(
            self.open().end,
            transactional_id,
            producer_id,
            epoch,
            is_commit,
            raises_epoch=raises_epoch,
            connection=connection,
        )

    def _ask(self, method: Any, *what: Any, **more: Any) -> ApiOutcome:
        answer = PendingAnswer()
        try:
            self.coordinator.advance(self.now)
            method(*what, answer, self.now, **more)
        finally:
            self.settle()
        return answer.outcome or ApiOutcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def joining(self, transactional_id: str, version: int, *, of_offsets: bool = False) -> Joining:
        """Return an object that adds partitions to the transaction of a Produce request of `version`.

        If `of_offsets` is True, the request is a TxnOffsetCommit instead.
        """
        return Joining(self, transactional_id, version, of_offsets=of_offsets)

    def coordinator_of(self, transactional_id: str) -> TransactionService | None:
        """Return the transaction coordinator of a transactional id, or None if it cannot be reached."""
        return self if self._elsewhere is None else self._elsewhere.coordinator_of(transactional_id)

    # --- the coordinator's output ------------------------------------------------------------------------

    def settle(self) -> None:
        """Store changes, write markers, answer requests, and set the timer for the next deadline."""
        outbox = self.coordinator.registry.outbox
        try:
            while outbox:
                for store in outbox.take_stores():
                    self._store(store)
                for ticket, outcome in outbox.take_replies():
                    if isinstance(ticket, PendingAnswer):
                        ticket.outcome = outcome
                for markers in outbox.take_markers():
                    self.coordinator.marking.marked(markers, self._mark(markers), self.now)
        finally:
            self._alarm.set(self.coordinator.next_deadline())

    def _store(self, store: StoreRecord) -> None:
        now = self.now
        error = ErrorCode.NONE
        try:
            self.topic.append(store.index, [store.record], now.time_ms, "a transaction")
        except KafkaError as failure:
            error = ErrorCode(failure.code)
            logger.error("transaction %s could not be stored: %s", store.transactional_id, failure)
        except StorageError as failure:
            error = ErrorCode.KAFKA_STORAGE_ERROR
            logger.error("transaction %s could not be stored: %s", store.transactional_id, failure)
        except Exception:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            self._node.failures.caught("transactions", f"storing transaction {store.transactional_id!r}")
        if error:
            self.coordinator.registry.not_stored(store, error, now)
        else:
            self.coordinator.registry.stored(store, now)

    def _mark(self, markers: Markers) -> dict[TopicPartition, ErrorCode]:
        if self._elsewhere is not None and not self._elsewhere.is_replicated(markers.transactional_id):
            return {}
        return {each: self._mark_one(each, markers) for each in markers.partitions}

    def _mark_one(self, tp: TopicPartition, markers: Markers) -> ErrorCode:
        """Write one marker; return an error or NONE. For a deleted partition, return NONE."""
        topic = self._node.cluster.topics.get(tp[0])
        if topic is None or tp[1] >= len(topic.partitions):
            return ErrorCode.NONE
        mark = self.mark_here if self._elsewhere is None else self._elsewhere.mark
        return mark(topic.partitions[tp[1]], markers)

    def mark_here(self, partition: Partition, markers: Markers) -> ErrorCode:
        """Write a marker to a partition that this node leads; the coordinator may be on another node."""
        return self.mark_partition(
            partition,
            markers.producer_id,
            markers.epoch,
            markers.coordinator_epoch,
            markers.is_commit,
            markers.client_version,
        )

    def mark_partition(
        self,
        partition: Partition,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        is_commit: bool,
        version: int,
    ) -> ErrorCode:
        """Write a marker to a partition; wake waiting fetches, and apply or drop pending group offsets."""
        try:
            append_marker(
                partition,
                producer_id,
                epoch,
                coordinator_epoch,
                is_commit,
                version,
                self._node.clock.now_ms(),
            )
        except KafkaError as error:
            if error.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:  # the sender asks another broker
                # A client may send thousands of markers in one request.
                self._node.limited_log.write(
                    logging.WARNING,
                    "refused markers",
                    "the marker of producer %d in %s: %s",
                    producer_id,
                    partition,
                    error,
                )
            return ErrorCode(error.code)
        except StorageError as error:
            self._node.limited_log.write(
                logging.ERROR,
                "lost markers",
                "the marker of producer %d in %s: %s",
                producer_id,
                partition,
                error,
            )
            return ErrorCode.KAFKA_STORAGE_ERROR
        except Exception:
            self._node.failures.caught("transactions", f"the marker of producer {producer_id} in {partition}")
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._node.purgatory.notify(partition, WAKES_ALL)
        groups = self._node.groups_if_used
        if partition.topic == OFFSETS_TOPIC and groups is not None:
            groups.end_transaction(partition.index, producer_id, is_commit)
        return ErrorCode.NONE

    # --- time --------------------------------------------------------------------------------------------

    def look_again(self, transactional_id: str) -> None:
        """Check again if replicas have the markers of a transaction, and send missing markers."""
        try:
            self.coordinator.marking.retry(transactional_id, self.now)
        finally:
            self.settle()

    def advance(self) -> None:
        """Run the actions that are due: send markers again, abort timed-out transactions, expire ids."""
        self.open()
        try:
            self.coordinator.advance(self.now)
        finally:
            self.settle()


class Joining:
    """Adds partitions to the transaction that a Produce or TxnOffsetCommit request belongs to.

    `version` is the version of the request; `of_offsets` is True for a TxnOffsetCommit.
    """

    def __init__(
        self, service: TransactionService, transactional_id: str, version: int, *, of_offsets: bool = False
    ) -> None:
        self.is_implicit = version >= (
            TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE if of_offsets else PRODUCE_IMPLICIT_ADDS_SINCE
        )
        self.has_refused = False
        self._service = service
        self._transactional_id = transactional_id
        self._version = version
        self._of_offsets = of_offsets

    def join(self, topic: str, index: int, producer_id: int, epoch: int) -> None:
        """Add a partition to the request's transaction, or verify that it was added before.

        Raises:
            KafkaError: the coordinator refuses. The error code exists in the request's version.
        """
        tp, transactional_id = (topic, index), self._transactional_id
        service = self._service.coordinator_of(transactional_id)
        if service is None:
            raise error_for(
                ErrorCode.NOT_ENOUGH_REPLICAS, f"the coordinator of {transactional_id!r} cannot be reached"
            )
        if self.is_implicit:
            error = service.add_partitions(transactional_id, producer_id, epoch, [tp], is_implicit=True)
        else:
            error = service.verify(transactional_id, producer_id, epoch, [tp])[tp]
        if error:
            translate = answer_of_offsets if self._of_offsets else answer_of_produce
            raise error_for(
                translate(error, self._version),
                f"{topic}-{index} is not in the transaction of {transactional_id!r}: {error.name}",
            )
