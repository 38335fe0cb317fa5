"""The transactional ids of a coordinator, and their changes that are being stored.

An id belongs to one partition of `__transaction_state`. A change takes effect when its record is in that log;
requests wait for that, and the registry then answers them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.broker.transactions.outbox import ApiOutcome, StoreRecord, Ticket, TransactionOutbox
from penstock.broker.transactions.records import TAGGED_VALUE_VERSION, transaction_record, value_version
from penstock.broker.transactions.transaction import (
    NO_EPOCH,
    NO_ID,
    Image,
    Instant,
    Transaction,
    image_of,
    stored_form,
)
from penstock.common.java_hash import partition_of
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.protocol.messages.transaction_log_value import TransactionLogValue

TRANSACTION_BYTES = 1200
"""The approximate memory of a transactional id in bytes, without its name and partitions."""
PARTITION_BYTES = 250
"""The approximate memory of a transaction's partition in bytes, without the topic's name."""

IMPLICIT_ADDS_SINCE = 2
"""The first level of `transaction.version` in which writing adds a partition to the transaction (KIP-890)."""

_STORE_ERRORS: dict[int, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""A dict from the error of an append to `__transaction_state` to the error for clients."""


class TransactionChange:
    """A change of one transaction that is being stored, with the response to send after that."""

    __slots__ = ("image", "is_fence", "last_epoch", "outcome", "ticket")

    def __init__(
        self,
        image: Image | None,
        last_epoch: int,
        ticket: Ticket | None,
        outcome: ApiOutcome,
        *,
        is_fence: bool = False,
    ) -> None:
        self.image = image
        """The stored part of the transaction after this change; None for a tombstone."""
        self.last_epoch = last_epoch
        self.ticket = ticket
        self.outcome = outcome
        self.is_fence = is_fence


class TransactionFollower(Protocol):
    """The interface of objects that react to changes of transactions, to send markers or to set timeouts."""

    def was_loaded(self, transaction: Transaction, now: Instant) -> None:
        """React to a transactional id that was read from the log."""

    def was_stored(self, transaction: Transaction, now: Instant) -> None:
        """React to a change of a transaction that has been stored."""

    def was_not_stored(self, transaction: Transaction, now: Instant) -> None:
        """React to a change of a transaction that could not be stored."""

    def was_forgotten(self, transaction: Transaction) -> None:
        """React to a transactional id that has been removed from memory."""


class TransactionRegistry:
    """The transactional ids in loaded partitions of `__transaction_state`. `followers` react to changes."""

    def __init__(self, partition_count: int, feature_level: int) -> None:
        self.followers: list[TransactionFollower] = []
        self.partition_count = partition_count
        """The number of partitions that `__transaction_state` has."""
        self.feature_level = feature_level
        """The level of `transaction.version`, which may change at any time."""
        self.outbox = TransactionOutbox()
        self.transactions: dict[str, Transaction] = {}
        self.size_bytes = 0
        """The approximate memory of all transactional ids in bytes."""
        self.loading: set[int] = set()
        """The partitions that are being read: requests for their ids get COORDINATOR_LOAD_IN_PROGRESS."""
        self._epochs: dict[int, int] = {}
        """A dict from each loaded partition to its coordinator epoch."""
        self._changes: dict[StoreRecord, tuple[Transaction, TransactionChange]] = {}

    # --- partitions of __transaction_state ---------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int:
        """Return the number of the `__transaction_state` partition for a transactional id."""
        return partition_of(transactional_id, self.partition_count)

    def is_loaded(self, index: int) -> bool:
        """Return True if the ids of a `__transaction_state` partition are loaded."""
        return index in self._epochs

    def epoch_of(self, index: int) -> int | None:
        """Return a `__transaction_state` partition's coordinator epoch, or None if it is not loaded."""
        return self._epochs.get(index)

    def epoch_for(self, transaction: Transaction) -> int:
        """Return the coordinator epoch of the partition that stores a transaction."""
        return self._epochs[self.partition_of(transaction.id)]

    def load(
        self, index: int, epoch: int, stored: Mapping[str, TransactionLogValue], now: Instant
    ) -> list[str]:
        """Load a partition with the last stored value of each id; `epoch` is the leader epoch of this node.

        Markers of transactions whose outcome is stored are sent again to all their partitions. Returns the
        ids whose stored values are invalid.
        """
        self.unload(index)
        self.loading.discard(index)
        self._epochs[index] = epoch
        unusable = []
        for transactional_id, value in stored.items():
            try:
                image = image_of(value)
            except ValueError:
                unusable.append(transactional_id)
                continue
            transaction = self.remember(Transaction(transactional_id, image))
            for follower in self.followers:
                follower.was_loaded(transaction, now)
        return unusable

    def unload(self, index: int) -> None:
        """Remove the ids of a partition. Requests in progress are answered NOT_COORDINATOR."""
        if self._epochs.pop(index, None) is None:
            return
        for transactional_id in [one for one in self.transactions if self.partition_of(one) == index]:
            self._forget(self.transactions[transactional_id])
        for store, (_, change) in list(self._changes.items()):
            if store.index == index:
                del self._changes[store]
                self.reply(change.ticket, ApiOutcome(ErrorCode.NOT_COORDINATOR))

    def find(self, transactional_id: str) -> tuple[Transaction | None, ErrorCode]:
        """Return an id's transaction and NONE; None and NONE if the id is unknown; or None and an error."""
        if not transactional_id:
            return None, ErrorCode.INVALID_REQUEST
        found = self.transactions.get(transactional_id)
        if found is not None:
            return found, ErrorCode.NONE
        index = self.partition_of(transactional_id)
        if index in self.loading:
            return None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if index not in self._epochs:
            return None, ErrorCode.NOT_COORDINATOR
        return None, ErrorCode.NONE

    def remember(self, transaction: Transaction) -> Transaction:
        """Add a transaction to the registry under its transactional id; return the transaction."""
        self.transactions[transaction.id] = transaction
        self._weigh(transaction)
        return transaction

    def _forget(self, transaction: Transaction) -> None:
        del self.transactions[transaction.id]
        self.size_bytes -= transaction.weight
        for follower in self.followers:
            follower.was_forgotten(transaction)

    def _weigh(self, transaction: Transaction) -> None:
        weight = TRANSACTION_BYTES + len(transaction.id)
        weight += sum(PARTITION_BYTES + len(topic) for topic, _ in transaction.image.partitions)
        self.size_bytes += weight - transaction.weight
        transaction.weight = weight

    # --- storing -----------------------------------------------------------------------------------------

    def store(self, transaction: Transaction, change: TransactionChange) -> None:
        """Put a change of a transaction into the outbox, to be stored.

        The change takes effect, and its request is answered, when `stored` is called.
        """
        image = change.image
        index = self.partition_of(transaction.id)
        if index not in self._epochs:
            # Assigning a producer id has applied metadata by which another node coordinates the id.
            if self.transactions.get(transaction.id) is transaction:
                self._forget(transaction)
            self.reply(change.ticket, ApiOutcome(ErrorCode.NOT_COORDINATOR))
            return
        version = value_version(self.feature_level)
        if image is not None and image.next_producer_id != NO_ID:
            version = TAGGED_VALUE_VERSION  # the producer has got it, and no other version has the field
        value = None if image is None else stored_form(image, version)
        record = transaction_record(transaction.id, value, version)
        store = StoreRecord(transaction.id, index, self._epochs[index], record)
        transaction.storing = store
        self._changes[store] = transaction, change
        self.outbox.stores.append(store)

    def stored(self, store: StoreRecord, now: Instant) -> None:
        """Apply the change of a record that is in the log, and answer the request that caused the change."""
        found = self._changes.pop(store, None)
        if found is None:
            return  # the partition has been dropped meanwhile
        transaction, change = found
        transaction.storing = None
        if change.image is None:
            self._forget(transaction)
            return
        transaction.image = change.image
        transaction.last_epoch = change.last_epoch
        transaction.has_raised_epoch = False
        self._weigh(transaction)
        self.reply(change.ticket, change.outcome)
        for follower in self.followers:
            follower.was_stored(transaction, now)

    def not_stored(self, store: StoreRecord, error: ErrorCode, now: Instant) -> None:
        """Drop the change of a record that could not be written, and answer the request with an error."""
        found = self._changes.pop(store, None)
        if found is None:
            return
        transaction, change = found
        transaction.storing = None
        if change.is_fence and self.feature_level < IMPLICIT_ADDS_SINCE:
            transaction.has_raised_epoch = True
        if transaction.image.epoch == NO_EPOCH:
            self._forget(transaction)  # the id was new, and its first record was not stored
        else:
            for follower in self.followers:
                follower.was_not_stored(transaction, now)
        self.reply(change.ticket, ApiOutcome(_STORE_ERRORS.get(error, error)))

    def reply(self, ticket: Ticket | None, outcome: ApiOutcome) -> None:
        """Put the response to the request `ticket` into the outbox; do nothing if `ticket` is None."""
        if ticket is not None:
            self.outbox.replies.append((ticket, outcome))
