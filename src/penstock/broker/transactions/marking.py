"""Markers: the control batches that end a transaction in each of its partitions.

Markers are sent when the outcome has been stored, and repeated until every partition has its marker; then the
end of the transaction is stored. After a restart before that, all markers are sent again: a second marker
does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.broker.transactions.outbox import ApiOutcome, Markers
from penstock.broker.transactions.registry import TransactionChange, TransactionRegistry
from penstock.broker.transactions.states import PREPARED, TransactionEvent, TransactionState, next_state
from penstock.broker.transactions.transaction import NEVER, NO_ID, Instant, TopicPartition, Transaction
from penstock.protocol.error_codes import ErrorCode

RETRY_FIRST_S = 0.02
"""The delay, in seconds, after a first failure until markers are sent again."""
RETRY_MAX_S = 5.0
"""The longest delay, in seconds. With each further failure the delay doubles, up to this."""

_MARKED = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION)
"""The error codes of a marker write after which the marker is not sent again.

A log whose message format has no markers cannot contain a transaction.
"""


class Marking:
    """Completes prepared transactions: sends their markers, and stores their end."""

    def __init__(self, registry: TransactionRegistry) -> None:
        self._registry = registry
        self.retry_first_s = RETRY_FIRST_S
        self.retry_max_s = RETRY_MAX_S
        self._retries: dict[str, Transaction] = {}
        """A dict from transactional id to a transaction that waits for the next attempt to write markers
        or to store its end."""

    def was_loaded(self, transaction: Transaction, now: Instant) -> None:
        """Send the markers of a transaction whose outcome was stored before it was loaded."""
        if transaction.state in PREPARED:
            self._begin_marking(transaction, now)

    def was_stored(self, transaction: Transaction, now: Instant) -> None:
        """Send the markers of a transaction whose outcome has just been stored."""
        if transaction.state in PREPARED:
            self._begin_marking(transaction, now)

    def was_not_stored(self, transaction: Transaction, now: Instant) -> None:
        """Schedule another attempt to store the end of a transaction."""
        if transaction.state in PREPARED:
            self._try_later(transaction, now)

    def was_forgotten(self, transaction: Transaction) -> None:
        """Stop sending the markers of a transaction."""
        self._retries.pop(transaction.id, None)

    def _begin_marking(self, transaction: Transaction, now: Instant) -> None:
        transaction.unmarked = set(transaction.image.partitions)
        transaction.retry_after_s = 0.0
        self._go_on_marking(transaction, now)

    def _go_on_marking(self, transaction: Transaction, now: Instant) -> None:
        """Send the missing markers, or store the end of the transaction if none is missing."""
        image = transaction.image
        if not transaction.unmarked:
            self._complete(transaction, now)
            return
        transaction.is_sending = True
        markers = Markers(
            transaction.id,
            image.producer_id,
            image.epoch,
            image.state is TransactionState.PREPARE_COMMIT,
            self._registry.epoch_for(transaction),
            image.client_version,
            tuple(sorted(transaction.unmarked)),
        )
        self._registry.outbox.markers.append(markers)

    def marked(self, markers: Markers, outcomes: Mapping[TopicPartition, ErrorCode], now: Instant) -> None:
        """Record the results of writing a transaction's markers to partitions.

        A partition without a result was not reached. A deleted partition has the result NONE, because it
        needs no marker. Failed markers are sent again until they are written.
        """
        transaction = self._registry.transactions.get(markers.transactional_id)
        if transaction is None or transaction.state not in PREPARED or not transaction.is_sending:
            return
        image = transaction.image
        sent = image.producer_id, image.epoch, self._registry.epoch_for(transaction)
        if sent != (markers.producer_id, markers.epoch, markers.coordinator_epoch):
            return
        transaction.is_sending = False
        transaction.unmarked.difference_update(
            partition for partition, error in outcomes.items() if error in _MARKED
        )
        if transaction.unmarked:
            self._try_later(transaction, now)
        else:
            self._complete(transaction, now)

    def _try_later(self, transaction: Transaction, now: Instant) -> None:
        doubled = 2 * transaction.retry_after_s
        transaction.retry_after_s = min(max(doubled, self.retry_first_s), self.retry_max_s)
        transaction.retry_at_s = now.uptime_s + transaction.retry_after_s
        self._retries[transaction.id] = transaction

    def _complete(self, transaction: Transaction, now: Instant) -> None:
        """Store the end of a transaction, with the next producer id if the epochs are used up."""
        image = transaction.image
        is_replaced = image.next_producer_id != NO_ID
        changed = image._replace(
            state=next_state(image.state, TransactionEvent.MARKED),
            producer_id=image.next_producer_id if is_replaced else image.producer_id,
            epoch=0 if is_replaced else image.epoch,
            previous_producer_id=image.producer_id,
            next_producer_id=NO_ID,
            partitions=frozenset(),
            updated_ms=now.time_ms,
        )
        self._registry.store(
            transaction, TransactionChange(changed, transaction.last_epoch, None, ApiOutcome())
        )

    def retry(self, transactional_id: str, now: Instant) -> None:
        """Send the missing markers of a transaction again at once, because they may succeed now."""
        transaction = self._retries.pop(transactional_id, None)
        if transaction is not None:
            transaction.retry_at_s = NEVER
            self._go_on_marking(transaction, now)

    def next_deadline(self) -> float:
        """Return the uptime in seconds of the next attempt to send markers, or `NEVER`."""
        return min((each.retry_at_s for each in self._retries.values()), default=NEVER)

    def advance(self, now: Instant) -> None:
        """Send again all markers whose next attempt is due."""
        for transaction in [each for each in self._retries.values() if each.retry_at_s <= now.uptime_s]:
            del self._retries[transaction.id]
            transaction.retry_at_s = NEVER
            self._go_on_marking(transaction, now)
