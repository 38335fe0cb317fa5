"""The states of a transactional producer, and the table of transitions between them.

The states have the names of Apache Kafka's `TransactionManager`. If the table has no transition for an event,
a call of the application raises `TransactionStateError`, and the state stays.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.common.transitions import IllegalTransitionError, Transitions
from penstock.errors import TransactionStateError


class State(StrEnum):
    """The state of a transactional producer. The value is its name in messages."""

    UNINITIALIZED = "it has no producer id yet"
    INITIALIZING = "it is getting its producer id"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    PREPARED = "its transaction is prepared, to be committed or aborted"
    COMMITTING = "it is committing"
    ABORTING = "it is aborting"
    ABORTABLE_ERROR = "its transaction has failed and must be aborted"
    FATAL_ERROR = "it has failed for good and must be closed"


class Event(StrEnum):
    """An event of the state machine. The value is its name in messages, if the event is a call."""

    INITIALIZE = "init_transactions()"
    INITIALIZED = "a producer id and epoch were given out"
    REFUSED = "no producer id was given out"
    BEGIN = "begin_transaction()"
    SEND_OFFSETS = "send_offsets()"
    PREPARE = "prepare_transaction()"
    COMMIT = "commit_transaction()"
    ABORT = "abort_transaction()"
    ENDED = "the coordinator has stored the outcome"
    ENDED_IN_DOUBT = "the coordinator has stored the outcome, and an older request may still arrive"
    FAILED = "something of the transaction has failed"
    FAILED_FOR_GOOD = "the producer is fenced, or an error leaves no way on"


TRANSITIONS: Transitions[State, Event] = Transitions(
    {
        (State.UNINITIALIZED, Event.INITIALIZE): State.INITIALIZING,
        (State.INITIALIZING, Event.INITIALIZED): State.READY,
        (State.INITIALIZING, Event.REFUSED): State.UNINITIALIZED,
        (State.READY, Event.BEGIN): State.IN_TRANSACTION,
        (State.IN_TRANSACTION, Event.SEND_OFFSETS): State.IN_TRANSACTION,
        (State.IN_TRANSACTION, Event.PREPARE): State.PREPARED,
        (State.IN_TRANSACTION, Event.COMMIT): State.COMMITTING,
        (State.IN_TRANSACTION, Event.ABORT): State.ABORTING,
        (State.IN_TRANSACTION, Event.FAILED): State.ABORTABLE_ERROR,
        (State.PREPARED, Event.COMMIT): State.COMMITTING,
        (State.PREPARED, Event.ABORT): State.ABORTING,
        (State.COMMITTING, Event.ENDED): State.READY,
        (State.COMMITTING, Event.ENDED_IN_DOUBT): State.INITIALIZING,
        (State.COMMITTING, Event.FAILED): State.ABORTABLE_ERROR,
        (State.ABORTING, Event.ENDED): State.READY,
        (State.ABORTING, Event.ENDED_IN_DOUBT): State.INITIALIZING,
        (State.ABORTABLE_ERROR, Event.ABORT): State.ABORTING,
        **{(state, Event.FAILED_FOR_GOOD): State.FATAL_ERROR for state in State},
    }
)
"""The table of transitions, from a state and an event to the next state."""


def next_state(state: State, event: Event) -> State:
    """Return the state that `event` leads to.

    Raises:
        TransactionStateError: the event is not allowed in this state.
    """
    try:
        return TRANSITIONS.next_state(state, event)
    except IllegalTransitionError:
        raise TransactionStateError(
            f"{event.value} does not fit what the producer is doing: {state.value}"
        ) from None
