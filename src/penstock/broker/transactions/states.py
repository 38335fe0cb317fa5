"""The states of a transactional id, as a table of events and the state changes that they cause.

`TRANSITIONS` is complete: a transaction changes its state by `next_state` and in no other way. The names and
numbers of the states are those of Apache Kafka, which stores the numbers and returns the names to clients.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.common.transitions import Transitions


class TransactionState(StrEnum):
    """The state of a transactional id. Values are the names in DescribeTransactions and ListTransactions."""

    EMPTY = "Empty"
    """No transaction has begun since the last InitProducerId."""
    ONGOING = "Ongoing"
    """A transaction has at least one partition."""
    PREPARE_COMMIT = "PrepareCommit"
    """The commit is decided and stored; markers are being written."""
    PREPARE_ABORT = "PrepareAbort"
    """The abort is decided and stored; markers are being written."""
    COMPLETE_COMMIT = "CompleteCommit"
    """All markers of a committed transaction are written."""
    COMPLETE_ABORT = "CompleteAbort"
    """All markers of an aborted transaction are written."""
    DEAD = "Dead"
    """The transactional id has expired. This state is never stored: a tombstone is written."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """The producer is being fenced, before its transaction is aborted. This state is never stored."""


NUMBERS: dict[TransactionState, int] = {
    TransactionState.EMPTY: 0,
    TransactionState.ONGOING: 1,
    TransactionState.PREPARE_COMMIT: 2,
    TransactionState.PREPARE_ABORT: 3,
    TransactionState.COMPLETE_COMMIT: 4,
    TransactionState.COMPLETE_ABORT: 5,
    TransactionState.DEAD: 6,
    TransactionState.PREPARE_EPOCH_FENCE: 7,
}
"""A dict from state to its number in the records of `__transaction_state`."""

STORED: dict[int, TransactionState] = {
    number: state
    for state, number in NUMBERS.items()
    if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
}
"""A dict from number to state, for the states that a record may have."""

PREPARED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
"""The states in which the outcome is stored, and markers are still being written."""

FINISHED = frozenset(
    (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
)
"""The states without an open transaction: the id may begin one, get another producer id, or expire."""


class TransactionEvent(StrEnum):
    """An event that changes the state of a transactional id."""

    INITIALIZE = "a producer gets its id and epoch"
    ADD = "partitions are added"
    COMMIT = "commit is asked for"
    ABORT = "abort is asked for, or time is up"
    FENCE = "another producer takes over the id"
    MARKED = "every partition has its marker"
    EXPIRE = "the id has not been used for too long"


TRANSITIONS = Transitions[TransactionState, TransactionEvent](
    {
        (TransactionState.EMPTY, TransactionEvent.INITIALIZE): TransactionState.EMPTY,
        (TransactionState.EMPTY, TransactionEvent.ADD): TransactionState.ONGOING,
        (TransactionState.EMPTY, TransactionEvent.ABORT): TransactionState.PREPARE_ABORT,
        (TransactionState.EMPTY, TransactionEvent.EXPIRE): TransactionState.DEAD,
        (TransactionState.ONGOING, TransactionEvent.ADD): TransactionState.ONGOING,
        (TransactionState.ONGOING, TransactionEvent.COMMIT): TransactionState.PREPARE_COMMIT,
        (TransactionState.ONGOING, TransactionEvent.ABORT): TransactionState.PREPARE_ABORT,
        (TransactionState.ONGOING, TransactionEvent.FENCE): TransactionState.PREPARE_EPOCH_FENCE,
        (TransactionState.PREPARE_EPOCH_FENCE, TransactionEvent.ABORT): TransactionState.PREPARE_ABORT,
        (TransactionState.PREPARE_COMMIT, TransactionEvent.MARKED): TransactionState.COMPLETE_COMMIT,
        (TransactionState.PREPARE_ABORT, TransactionEvent.MARKED): TransactionState.COMPLETE_ABORT,
        (TransactionState.COMPLETE_COMMIT, TransactionEvent.INITIALIZE): TransactionState.EMPTY,
        (TransactionState.COMPLETE_COMMIT, TransactionEvent.ADD): TransactionState.ONGOING,
        (TransactionState.COMPLETE_COMMIT, TransactionEvent.ABORT): TransactionState.PREPARE_ABORT,
        (TransactionState.COMPLETE_COMMIT, TransactionEvent.EXPIRE): TransactionState.DEAD,
        (TransactionState.COMPLETE_ABORT, TransactionEvent.INITIALIZE): TransactionState.EMPTY,
        (TransactionState.COMPLETE_ABORT, TransactionEvent.ADD): TransactionState.ONGOING,
        (TransactionState.COMPLETE_ABORT, TransactionEvent.ABORT): TransactionState.PREPARE_ABORT,
        (TransactionState.COMPLETE_ABORT, TransactionEvent.EXPIRE): TransactionState.DEAD,
    }
)
"""A dict from (present state, event) to the next state.

An abort without an open transaction exists only since KIP-890.
"""

next_state = TRANSITIONS.next_state
