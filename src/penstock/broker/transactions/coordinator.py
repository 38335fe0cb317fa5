"""The transaction coordinator of a broker, which turns requests into records, markers and responses.

This module does no I/O and has no clock. A change is first put into `outbox` to be stored; it takes effect
when `TransactionRegistry.stored` is called, and only then are its markers sent and its request answered.
While a change is being stored, and while markers are missing, requests for the id get
CONCURRENT_TRANSACTIONS.

Two rules keep a transaction complete: the outcome is stored before the first marker is written, and the end
of the transaction is stored after the last marker. A coordinator that loads an id whose outcome is stored
sends all its markers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.broker.requests.string_lengths import STRING_BYTES_MAX
from penstock.broker.transactions.ending import EndOutcome, judge_end, judge_old_end
from penstock.broker.transactions.initialization import (
    TWO_PHASE_TIMEOUT_MS,
    Initialization,
    Judgement,
    judge_initialization,
)
from penstock.broker.transactions.marking import Marking
from penstock.broker.transactions.outbox import ApiOutcome, Ticket
from penstock.broker.transactions.registry import IMPLICIT_ADDS_SINCE, TransactionChange, TransactionRegistry
from penstock.broker.transactions.states import (
    FINISHED,
    PREPARED,
    TransactionEvent,
    TransactionState,
    next_state,
)
from penstock.broker.transactions.transaction import (
    EPOCH_MAX,
    NEVER,
    NO_CONNECTION,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    Image,
    Instant,
    TopicPartition,
    Transaction,
)
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.broker.transactions.settings import TransactionSettings
    from penstock.protocol.messages.transaction_log_value import TransactionLogValue


class TransactionCoordinator:
    """The transactional ids whose partitions of `__transaction_state` this broker leads.

    `partition_count` is the number of partitions of that topic, `feature_level` the level of the feature
    `transaction.version`. `new_id` returns a new producer id, or None if none is available now.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        partition_count: int,
        new_id: Callable[[], int | None],
        feature_level: int = IMPLICIT_ADDS_SINCE,
    ) -> None:
        self.registry = TransactionRegistry(partition_count, feature_level)
        """The transactional ids that are loaded, and their changes that are being stored."""
        self.marking = Marking(self.registry)
        self.registry.followers += [self.marking, self]
        self.settings = settings
        self._new_id = new_id
        self._open: dict[str, Transaction] = {}
        """A dict from transactional id to its open transaction, for transactions with a timeout."""
        self._abort_at_s = NEVER
        self._expire_at_s = NEVER

    # --- InitProducerId ----------------------------------------------------------------------------------

    def initialize(self, request: Initialization, ticket: Ticket, now: Instant) -> None:
        """Handle InitProducerId with a transactional id: assign a producer id and epoch.

        The new epoch fences earlier producers of the transactional id.
        """
        refusal = self._refuse_initialization(request)
        if refusal:
            self.registry.reply(ticket, ApiOutcome(refusal))
            return
        timeout_ms = TWO_PHASE_TIMEOUT_MS if request.two_phase_commit else request.timeout_ms
        transaction, error = self.registry.find(request.transactional_id)
        if error:
            self.registry.reply(ticket, ApiOutcome(error))
        elif transaction is None:
            self._initialize_new(request.transactional_id, timeout_ms, ticket, now)
        elif transaction.storing is not None:
            self.registry.reply(ticket, ApiOutcome(ErrorCode.CONCURRENT_TRANSACTIONS))
        else:
            self._initialize_known(transaction, request, timeout_ms, ticket, now)

    def _refuse_initialization(self, request: Initialization) -> ErrorCode:
        settings = self.settings
        if (request.producer_id == NO_ID) != (request.epoch == NO_EPOCH):
            return ErrorCode.INVALID_REQUEST
        if not request.transactional_id or not _can_be_stored(request.transactional_id):
            return ErrorCode.INVALID_REQUEST
        if request.two_phase_commit and not settings.two_phase_commit:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if request.keeps_prepared:
            return ErrorCode.UNSUPPORTED_VERSION
        if not request.two_phase_commit and not 0 < request.timeout_ms <= settings.max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    def _initialize_new(self, transactional_id: str, timeout_ms: int, ticket: Ticket, now: Instant) -> None:
        producer_id = self._new_id()
        if producer_id is None:
            self.registry.reply(ticket, ApiOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        image = Image(
            state=TransactionState.EMPTY,
            producer_id=producer_id,
            epoch=NO_EPOCH,
            previous_producer_id=producer_id,
            next_producer_id=NO_ID,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            client_version=0,
            updated_ms=now.time_ms,
            started_ms=NO_TIME,
        )
        transaction = self.registry.remember(Transaction(transactional_id, image))
        self._set_expiry(now)
        self._store_producer(transaction, producer_id, 0, NO_EPOCH, timeout_ms, ticket, now)

    def _initialize_known(
        self, transaction: Transaction, request: Initialization, timeout_ms: int, ticket: Ticket, now: Instant
    ) -> None:
        image = transaction.image
        judgement = judge_initialization(transaction, request)
        if judgement is Judgement.FENCED:
            self.registry.reply(ticket, ApiOutcome(ErrorCode.PRODUCER_FENCED))
        elif judgement is Judgement.WAIT:
            self.registry.reply(ticket, ApiOutcome(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif judgement is Judgement.ABORT_FIRST:
            self._abort(transaction, now, ticket)
        elif judgement is Judgement.NEW_ID:
            producer_id = self._new_id()
            if producer_id is None:
                self.registry.reply(ticket, ApiOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
                return
            last_epoch = image.epoch if request.names_producer else NO_EPOCH
            self._store_producer(transaction, producer_id, 0, last_epoch, timeout_ms, ticket, now)
        elif judgement is Judgement.RAISE_EPOCH:
            last_epoch = image.epoch if request.names_producer else NO_EPOCH
            self._store_producer(
                transaction, image.producer_id, image.epoch + 1, last_epoch, timeout_ms, ticket, now
            )
        else:
            self._store_producer(
                transaction, image.producer_id, image.epoch, transaction.last_epoch, timeout_ms, ticket, now
            )

    def _store_producer(
        self,
        transaction: Transaction,
        producer_id: int,
        epoch: int,
        last_epoch: int,
        timeout_ms: int,
        ticket: Ticket,
        now: Instant,
    ) -> None:
        image = transaction.image._replace(
            state=next_state(transaction.state, TransactionEvent.INITIALIZE),
            producer_id=producer_id,
            epoch=epoch,
            previous_producer_id=transaction.image.producer_id,
            next_producer_id=NO_ID,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            updated_ms=now.time_ms,
            started_ms=NO_TIME,
        )
        outcome = ApiOutcome(producer_id=producer_id, epoch=epoch)
        self.registry.store(transaction, TransactionChange(image, last_epoch, ticket, outcome))

    # --- partitions of a transaction ---------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        ticket: Ticket,
        now: Instant,
        *,
        is_implicit: bool = False,
        connection: int = NO_CONNECTION,
    ) -> None:
        """Handle AddPartitionsToTxn and AddOffsetsToTxn: add partitions to the transaction of a producer.

        `is_implicit` is True if a partition's leader calls, because a producer with KIP-890 has written to
        the partition. `connection` is the number of the client's connection; a connection that was opened
        later has a higher number.
        """
        transaction, error = self._find_for(transactional_id, producer_id, epoch)
        if error or transaction is None:
            self.registry.reply(ticket, ApiOutcome(error))
            return
        if is_implicit and self.registry.feature_level < IMPLICIT_ADDS_SINCE:
            self.registry.reply(ticket, ApiOutcome(ErrorCode.UNSUPPORTED_VERSION))
            return
        image = transaction.image
        added = frozenset(partitions)
        is_open = image.state is TransactionState.ONGOING
        if not is_open:
            transaction.newest_connection = NO_CONNECTION
        transaction.newest_connection = max(transaction.newest_connection, connection)
        if is_open and added <= image.partitions:
            self.registry.reply(ticket, ApiOutcome())
            return
        changed = image._replace(
            state=next_state(image.state, TransactionEvent.ADD),
            previous_producer_id=image.producer_id,
            partitions=image.partitions | added if is_open else added,
            client_version=IMPLICIT_ADDS_SINCE if is_implicit else 0,
            updated_ms=now.time_ms,
            started_ms=image.started_ms if is_open else now.time_ms,
        )
        self.registry.store(
            transaction, TransactionChange(changed, transaction.last_epoch, ticket, ApiOutcome())
        )

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return NONE for each partition in the transaction, TRANSACTION_ABORTABLE for every other one.

        Other errors concern the whole transaction, and are returned for every partition.
        """
        transaction, error = self.registry.find(transactional_id)
        if not error:
            error = _refuse_producer(transaction, producer_id, epoch)
        if not error and transaction is not None and transaction.state in PREPARED:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error or transaction is None:
            return dict.fromkeys(partitions, error)
        there = transaction.image.partitions
        return {
            each: ErrorCode.NONE if each in there else ErrorCode.TRANSACTION_ABORTABLE for each in partitions
        }

    def _find_for(
        self, transactional_id: str, producer_id: int, epoch: int
    ) -> tuple[Transaction | None, ErrorCode]:
        """Return the transaction to which a producer may add partitions, and NONE; or None and the error."""
        transaction, error = self.registry.find(transactional_id)
        if error:
            return None, error
        if transaction is None:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.storing is not None:
            return None, ErrorCode.CONCURRENT_TRANSACTIONS
        error = _refuse_producer(transaction, producer_id, epoch)
        if not error and transaction.state in PREPARED:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        return (None, error) if error else (transaction, ErrorCode.NONE)

    # --- EndTxn ------------------------------------------------------------------------------------------

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        is_commit: bool,
        ticket: Ticket,
        now: Instant,
        *,
        raises_epoch: bool,
        connection: int = NO_CONNECTION,
    ) -> None:
        """Handle EndTxn. The request is answered when the outcome is stored, before markers are sent.

        `raises_epoch` means that the request follows KIP-890 (v5). An older request does not identify its
        transaction, so that a late one could end the next transaction (KAFKA-17754). If the request arrives
        over a `connection` that is older than the connection over which partitions were added, it is late,
        and the coordinator ignores it.
        """
        transaction, error = self.registry.find(transactional_id)
        if not error and transaction is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if not error and raises_epoch and self.registry.feature_level < IMPLICIT_ADDS_SINCE:
            error = ErrorCode.UNSUPPORTED_VERSION
        if error or transaction is None:
            self.registry.reply(ticket, ApiOutcome(error))
            return
        judged = self._judge_end(transaction, producer_id, epoch, is_commit, raises_epoch)
        if isinstance(judged, ErrorCode):
            self.registry.reply(ticket, ApiOutcome(judged))
        elif judged is EndOutcome.REPEAT:
            image = transaction.image
            self.registry.reply(ticket, ApiOutcome(producer_id=image.producer_id, epoch=image.epoch))
        elif not raises_epoch and NO_CONNECTION < connection < transaction.newest_connection:
            self.registry.reply(ticket, ApiOutcome(closes_connection=True))
        else:
            self._prepare(transaction, is_commit, ticket, now, raises_epoch=raises_epoch)

    @staticmethod
    def _judge_end(
        transaction: Transaction, producer_id: int, epoch: int, is_commit: bool, raises_epoch: bool
    ) -> EndOutcome | ErrorCode:
        image = transaction.image
        busy = transaction.storing is not None or image.state in PREPARED
        if raises_epoch:
            if busy:
                return ErrorCode.CONCURRENT_TRANSACTIONS
            return judge_end(image, producer_id, epoch, is_commit)
        if producer_id != image.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if busy and epoch == image.epoch:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        return judge_old_end(image, epoch, is_commit)

    def _prepare(
        self, transaction: Transaction, is_commit: bool, ticket: Ticket, now: Instant, *, raises_epoch: bool
    ) -> None:
        """Store the outcome that a client has requested: the state PrepareCommit or PrepareAbort."""
        image = transaction.image
        next_id = NO_ID
        if raises_epoch and transaction.is_exhausted:
            found = self._new_id()
            if found is None:
                self.registry.reply(ticket, ApiOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
                return
            next_id = found
        epoch = min(image.epoch + 1, EPOCH_MAX) if raises_epoch else image.epoch
        changed = image._replace(
            state=next_state(image.state, TransactionEvent.COMMIT if is_commit else TransactionEvent.ABORT),
            epoch=epoch,
            previous_producer_id=image.producer_id,
            next_producer_id=next_id,
            client_version=IMPLICIT_ADDS_SINCE if raises_epoch else 0,
            updated_ms=now.time_ms,
            partitions=image.partitions if image.state is TransactionState.ONGOING else frozenset(),
            started_ms=image.started_ms if image.state is TransactionState.ONGOING else now.time_ms,
        )
        outcome = ApiOutcome(producer_id=image.producer_id, epoch=epoch)
        if next_id != NO_ID:
            outcome = ApiOutcome(producer_id=next_id, epoch=0)
        last_epoch = image.epoch if raises_epoch else transaction.last_epoch
        self.registry.store(transaction, TransactionChange(changed, last_epoch, ticket, outcome))

    def _abort(self, transaction: Transaction, now: Instant, ticket: Ticket | None = None) -> None:
        """Abort an open transaction that timed out or whose producer is fenced, and raise the epoch.

        `ticket` identifies the InitProducerId request of the new producer, or is None. This request is
        answered CONCURRENT_TRANSACTIONS; when the client repeats the request, the producer gets the next
        epoch.
        """
        image = transaction.image
        raised = min(image.epoch + 1, EPOCH_MAX)
        state = image.state
        last_epoch = image.epoch
        client_version = IMPLICIT_ADDS_SINCE
        if self.registry.feature_level < IMPLICIT_ADDS_SINCE:
            state = next_state(state, TransactionEvent.FENCE)
            last_epoch, client_version = NO_EPOCH, 0
            if transaction.has_raised_epoch:
                raised = image.epoch
            transaction.image = image = image._replace(epoch=raised)
            transaction.last_epoch = NO_EPOCH
        changed = image._replace(
            state=next_state(state, TransactionEvent.ABORT),
            epoch=raised,
            previous_producer_id=image.producer_id,
            client_version=client_version,
            updated_ms=now.time_ms,
        )
        outcome = ApiOutcome(ErrorCode.CONCURRENT_TRANSACTIONS)
        self.registry.store(
            transaction, TransactionChange(changed, last_epoch, ticket, outcome, is_fence=True)
        )

    # --- time --------------------------------------------------------------------------------------------

    def load(
        self, index: int, epoch: int, stored: Mapping[str, TransactionLogValue], now: Instant
    ) -> list[str]:
        """Load the transactions of a partition; resume their timeouts, and send missing markers again.

        Returns the ids whose stored values are invalid.
        """
        unusable = self.registry.load(index, epoch, stored, now)
        self._set_expiry(now)
        return unusable

    def was_loaded(self, transaction: Transaction, now: Instant) -> None:
        """Resume the timeout of an open transaction that was read from the log."""
        image = transaction.image
        if image.state is TransactionState.ONGOING:
            # The clock may have been put back meanwhile: never more than the whole timeout is left.
            elapsed_ms = min(max(now.time_ms - image.started_ms, 0), image.timeout_ms)
            self._set_deadline(transaction, image.timeout_ms - elapsed_ms, now)

    def was_stored(self, transaction: Transaction, now: Instant) -> None:
        """Start the timeout of a transaction that has begun; stop the timeout if it is no longer open."""
        if transaction.state is not TransactionState.ONGOING:
            transaction.deadline_s = NEVER
            self._open.pop(transaction.id, None)
        elif transaction.deadline_s == NEVER:
            self._set_deadline(transaction, transaction.image.timeout_ms, now)

    def was_not_stored(self, transaction: Transaction, now: Instant) -> None:
        """Do nothing: the timeout does not change."""

    def was_forgotten(self, transaction: Transaction) -> None:
        """Stop the timeout of a transaction."""
        self._open.pop(transaction.id, None)

    def _set_deadline(self, transaction: Transaction, left_ms: int, now: Instant) -> None:
        if transaction.image.timeout_ms == TWO_PHASE_TIMEOUT_MS:
            return
        transaction.deadline_s = now.uptime_s + left_ms / 1000
        self._open[transaction.id] = transaction
        self._abort_at_s = min(self._abort_at_s, now.uptime_s + self.settings.abort_interval_ms / 1000)

    def _set_expiry(self, now: Instant) -> None:
        if self.registry.transactions:
            interval_s = self.settings.expiration_interval_ms / 1000
            self._expire_at_s = min(self._expire_at_s, now.uptime_s + interval_s)

    def next_deadline(self) -> float | None:
        """Return the uptime in seconds at which `advance` must be called next; None if nothing is due."""
        earliest = min(self._abort_at_s, self._expire_at_s, self.marking.next_deadline())
        return None if earliest == NEVER else earliest

    def advance(self, now: Instant) -> None:
        """Run the actions that are due: send markers again, abort timed-out transactions, expire ids."""
        self.marking.advance(now)
        if self._abort_at_s <= now.uptime_s:
            self._abort_at_s = NEVER
            self._abort_overdue(now)
        if self._expire_at_s <= now.uptime_s:
            self._expire_at_s = NEVER
            self._expire(now)
            self._set_expiry(now)

    def _abort_overdue(self, now: Instant) -> None:
        for transaction in list(self._open.values()):
            if transaction.deadline_s <= now.uptime_s and transaction.storing is None:
                self._abort(transaction, now)
        if self._open:
            self._abort_at_s = now.uptime_s + self.settings.abort_interval_ms / 1000

    def _expire(self, now: Instant) -> None:
        for transaction in list(self.registry.transactions.values()):
            idle_ms = now.time_ms - transaction.image.updated_ms
            if transaction.state not in FINISHED or transaction.storing is not None:
                continue
            if idle_ms >= self.settings.expiration_ms:
                next_state(transaction.state, TransactionEvent.EXPIRE)
                self.registry.store(transaction, TransactionChange(None, NO_EPOCH, None, ApiOutcome()))


def _refuse_producer(transaction: Transaction | None, producer_id: int, epoch: int) -> ErrorCode:
    """Return the error for a producer that may not use a transactional id, or NONE if it may.

    The errors are INVALID_PRODUCER_ID_MAPPING and PRODUCER_FENCED.
    """
    if transaction is None or transaction.image.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.image.epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def _can_be_stored(transactional_id: str) -> bool:
    """Return True if a transactional id fits into a key of `__transaction_state`: at most 32,767 bytes."""
    size = len(transactional_id)
    return size * 4 <= STRING_BYTES_MAX or len(transactional_id.encode()) <= STRING_BYTES_MAX
