"""The states of a transactional producer, and the table of transitions between them.

The states have the names of Apache Kafka's `TransactionManager`. If the table has no transition for an event,
a call of the application raises `TransactionStateError`, and the state stays.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.common.transitions import IllegalTransitionError, Transitions
from penstock.errors import TransactionStateError


class ProducerPhase(StrEnum):
    """The state of a transactional producer. The value is the phrase for it in error messages."""

    UNINITIALIZED = "it has no producer id yet"
    INITIALIZING = "it is getting its producer id"
    READY = "no transaction is open"
    IN_TRANSACTION = "a transaction is open"
    PREPARED = "its transaction is prepared, to be committed or aborted"
    COMMITTING = "it is committing"
    ABORTING = "it is aborting"
    ABORTABLE_ERROR = "its transaction has failed and must be aborted"
    FATAL_ERROR = "it has failed for good and must be closed"


class ProducerEvent(StrEnum):
    """An event of the state machine. The value of a call is its name in error messages."""

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


TRANSITIONS: Transitions[ProducerPhase, ProducerEvent] = Transitions(
    {
        (ProducerPhase.UNINITIALIZED, ProducerEvent.INITIALIZE): ProducerPhase.INITIALIZING,
        (ProducerPhase.INITIALIZING, ProducerEvent.INITIALIZED): ProducerPhase.READY,
        (ProducerPhase.INITIALIZING, ProducerEvent.REFUSED): ProducerPhase.UNINITIALIZED,
        (ProducerPhase.READY, ProducerEvent.BEGIN): ProducerPhase.IN_TRANSACTION,
        (ProducerPhase.IN_TRANSACTION, ProducerEvent.SEND_OFFSETS): ProducerPhase.IN_TRANSACTION,
        (ProducerPhase.IN_TRANSACTION, ProducerEvent.PREPARE): ProducerPhase.PREPARED,
        (ProducerPhase.IN_TRANSACTION, ProducerEvent.COMMIT): ProducerPhase.COMMITTING,
        (ProducerPhase.IN_TRANSACTION, ProducerEvent.ABORT): ProducerPhase.ABORTING,
        (ProducerPhase.IN_TRANSACTION, ProducerEvent.FAILED): ProducerPhase.ABORTABLE_ERROR,
        (ProducerPhase.PREPARED, ProducerEvent.COMMIT): ProducerPhase.COMMITTING,
        (ProducerPhase.PREPARED, ProducerEvent.ABORT): ProducerPhase.ABORTING,
        (ProducerPhase.COMMITTING, ProducerEvent.ENDED): ProducerPhase.READY,
        (ProducerPhase.COMMITTING, ProducerEvent.ENDED_IN_DOUBT): ProducerPhase.INITIALIZING,
        (ProducerPhase.COMMITTING, ProducerEvent.FAILED): ProducerPhase.ABORTABLE_ERROR,
        (ProducerPhase.ABORTING, ProducerEvent.ENDED): ProducerPhase.READY,
        (ProducerPhase.ABORTING, ProducerEvent.ENDED_IN_DOUBT): ProducerPhase.INITIALIZING,
        (ProducerPhase.ABORTABLE_ERROR, ProducerEvent.ABORT): ProducerPhase.ABORTING,
        **{(state, ProducerEvent.FAILED_FOR_GOOD): ProducerPhase.FATAL_ERROR for state in ProducerPhase},
    }
)
"""The table of transitions, from a state and an event to the next state."""


def next_state(state: ProducerPhase, event: ProducerEvent) -> ProducerPhase:
    """Return the state after `event` in `state`.

    Raises:
        TransactionStateError: the event is not allowed in this state.
    """
    try:
        return TRANSITIONS.next_state(state, event)
    except IllegalTransitionError:
        raise TransactionStateError(
            f"{event.value} does not fit what the producer is doing: {state.value}"
        ) from None
