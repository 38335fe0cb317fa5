"""The states of a transactional id as a table: which event leads from which state to which.

`TRANSITIONS` is complete: a transaction changes its state by `next_state` and in no other way. The names and
numbers of the states are those of Apache Kafka, which stores the numbers and answers the names.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.common.transitions import Transitions


class State(StrEnum):
    """The state of a transactional id. Values are the names in DescribeTransactions and ListTransactions."""

    EMPTY = "Empty"
    """It has a producer id, and no transaction since it got it."""
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
    """It has expired. Never stored: a tombstone is written."""
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Its producer is being fenced, before the abort that follows. Never stored."""


NUMBERS: dict[State, int] = {
    State.EMPTY: 0,
    State.ONGOING: 1,
    State.PREPARE_COMMIT: 2,
    State.PREPARE_ABORT: 3,
    State.COMPLETE_COMMIT: 4,
    State.COMPLETE_ABORT: 5,
    State.DEAD: 6,
    State.PREPARE_EPOCH_FENCE: 7,
}
"""The number of each state in the records of `__transaction_state`."""

STORED: dict[int, State] = {
    number: state for state, number in NUMBERS.items() if state not in (State.DEAD, State.PREPARE_EPOCH_FENCE)
}
"""The states that a record may name, by their numbers."""

PREPARED = frozenset((State.PREPARE_COMMIT, State.PREPARE_ABORT))
"""The outcome is decided and stored; markers are missing."""

FINISHED = frozenset((State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT))
"""No transaction is open: the id may begin one, get another producer id, or expire."""


class Event(StrEnum):
    """An event that changes the state of a transactional id."""

    INITIALIZE = "a producer gets its id and epoch"
    ADD = "partitions are added"
    COMMIT = "commit is asked for"
    ABORT = "abort is asked for, or time is up"
    FENCE = "another producer takes over the id"
    MARKED = "every partition has its marker"
    EXPIRE = "the id has not been used for too long"


TRANSITIONS = Transitions[State, Event](
    {
        (State.EMPTY, Event.INITIALIZE): State.EMPTY,
        (State.EMPTY, Event.ADD): State.ONGOING,
        (State.EMPTY, Event.ABORT): State.PREPARE_ABORT,
        (State.EMPTY, Event.EXPIRE): State.DEAD,
        (State.ONGOING, Event.ADD): State.ONGOING,
        (State.ONGOING, Event.COMMIT): State.PREPARE_COMMIT,
        (State.ONGOING, Event.ABORT): State.PREPARE_ABORT,
        (State.ONGOING, Event.FENCE): State.PREPARE_EPOCH_FENCE,
        (State.PREPARE_EPOCH_FENCE, Event.ABORT): State.PREPARE_ABORT,
        (State.PREPARE_COMMIT, Event.MARKED): State.COMPLETE_COMMIT,
        (State.PREPARE_ABORT, Event.MARKED): State.COMPLETE_ABORT,
        (State.COMPLETE_COMMIT, Event.INITIALIZE): State.EMPTY,
        (State.COMPLETE_COMMIT, Event.ADD): State.ONGOING,
        (State.COMPLETE_COMMIT, Event.ABORT): State.PREPARE_ABORT,
        (State.COMPLETE_COMMIT, Event.EXPIRE): State.DEAD,
        (State.COMPLETE_ABORT, Event.INITIALIZE): State.EMPTY,
        (State.COMPLETE_ABORT, Event.ADD): State.ONGOING,
        (State.COMPLETE_ABORT, Event.ABORT): State.PREPARE_ABORT,
        (State.COMPLETE_ABORT, Event.EXPIRE): State.DEAD,
    }
)
"""From a state, by an event, to a state. An abort with no transaction open exists since KIP-890 only."""

next_state = TRANSITIONS.next_state
