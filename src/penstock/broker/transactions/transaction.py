"""The state of one transactional id, in memory and in `__transaction_state`."""

from __future__ import annotations

from typing import NamedTuple

from penstock.broker.transactions.records import TAGGED_VALUE_VERSION
from penstock.broker.transactions.states import NUMBERS, STORED, TransactionState
from penstock.errors import DecodeError
from penstock.protocol.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

NO_ID = -1
"""The value of a producer id field without a producer id: -1."""
NO_EPOCH = -1
"""The value of a producer epoch field without an epoch: -1."""
NO_TIME = -1
"""The start time of a transaction that has not begun: -1."""
EPOCH_MAX = 32767
"""The highest producer epoch. Clients never get it: only the markers of a producer id's last transaction
have it.
"""
LAST_CLIENT_EPOCH = EPOCH_MAX - 1
"""The highest epoch that a client gets. A producer with it can end one more transaction."""
NEVER = float("inf")

NO_CONNECTION = -1
"""The connection number if the caller passes none: -1."""

TopicPartition = tuple[str, int]


class Instant(NamedTuple):
    """A point in time on both clocks: the time of day for records, uptime for deadlines."""

    time_ms: int
    """Milliseconds since 1970. This clock may be set back or forward."""
    uptime_s: float
    """Seconds of a monotonic clock."""


class Image(NamedTuple):
    """The stored part of a transaction: Apache Kafka's `TransactionLogValue`, field by field."""

    state: TransactionState
    producer_id: int
    epoch: int
    previous_producer_id: int
    """The producer id before the last change. It differs from `producer_id` only right after a replacement
    of the id."""
    next_producer_id: int
    """The producer id for the next transaction if this one has used the last epoch; otherwise -1."""
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    client_version: int
    """The client's transaction version: 2 if a request that follows KIP-890 began or ended the last
    transaction, otherwise 0."""
    updated_ms: int
    started_ms: int


class Transaction:
    """One transactional id. `image` is its stored part; all other attributes are only in memory."""

    __slots__ = (
        "deadline_s",
        "has_raised_epoch",
        "id",
        "image",
        "is_sending",
        "last_epoch",
        "newest_connection",
        "retry_after_s",
        "retry_at_s",
        "storing",
        "unmarked",
        "weight",
    )

    def __init__(self, transactional_id: str, image: Image) -> None:
        self.id = transactional_id
        self.image = image
        self.last_epoch = NO_EPOCH
        """The producer's epoch before it was last raised. A repeated request has this epoch."""
        self.storing: object | None = None
        """The change that is being stored, or None. Until it is stored, every request for this id gets
        CONCURRENT_TRANSACTIONS."""
        self.has_raised_epoch = False
        """True if fencing has raised the epoch but could not be stored. The next fencing does not raise
        the epoch again."""
        self.deadline_s = NEVER
        """The uptime in seconds at which the transaction times out and is aborted; `NEVER` without
        timeout."""
        self.unmarked: set[TopicPartition] = set()
        """The partitions to which the marker has not been written yet."""
        self.is_sending = False
        """True while markers are being sent."""
        self.retry_at_s = NEVER
        """The uptime, in seconds, of the next attempt to write markers or to store the transaction's end."""
        self.retry_after_s = 0.0
        """The delay, in seconds, before the next attempt to write markers or to store the transaction's
        end; it doubles with each failure.
        """
        self.newest_connection = NO_CONNECTION
        """The number of the newest connection that has added partitions to the transaction."""
        self.weight = 0

    @property
    def state(self) -> TransactionState:
        return self.image.state

    @property
    def is_exhausted(self) -> bool:
        """True if the producer id has no further epoch for a client."""
        return self.image.epoch >= LAST_CLIENT_EPOCH


def stored_form(image: Image, version: int) -> TransactionLogValue:
    """Return the `__transaction_state` record value for an image; version 0 has no tagged fields."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(image.partitions):
        topics.setdefault(topic, []).append(partition)
    listed = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
    value = TransactionLogValue(
        producer_id=image.producer_id,
        producer_epoch=image.epoch,
        transaction_timeout_ms=image.timeout_ms,
        transaction_status=NUMBERS[image.state],
        transaction_partitions=None if image.state is TransactionState.EMPTY else listed,
        transaction_last_update_timestamp_ms=image.updated_ms,
        transaction_start_timestamp_ms=image.started_ms,
    )
    if version >= TAGGED_VALUE_VERSION:
        value.previous_producer_id = image.previous_producer_id
        value.next_producer_id = image.next_producer_id
        value.client_transaction_version = image.client_version
    return value


def image_of(stored: TransactionLogValue) -> Image:
    """Return the image that a stored value describes.

    Raises:
        DecodeError: the value has a state that is unknown or never stored.
    """
    state = STORED.get(stored.transaction_status)
    if state is None:
        raise DecodeError(
            f"a stored transaction is in state {stored.transaction_status}, which is never stored"
        )
    partitions = frozenset(
        (entry.topic, number)
        for entry in stored.transaction_partitions or ()
        for number in entry.partition_ids
    )
    return Image(
        state=state,
        producer_id=stored.producer_id,
        epoch=stored.producer_epoch,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        timeout_ms=stored.transaction_timeout_ms,
        partitions=partitions,
        client_version=stored.client_transaction_version,
        updated_ms=stored.transaction_last_update_timestamp_ms,
        started_ms=stored.transaction_start_timestamp_ms,
    )
