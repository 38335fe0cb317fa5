"""EndTxn: tables with the results of commit and abort in each state, before and since KIP-890.

Before KIP-890 (EndTxn v0-v4) all transactions of a producer have the same epoch, and a request must have that
epoch. Since then (v5) each EndTxn raises the epoch, so that a request with the previous epoch is a
repetition.
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.broker.transactions.states import TransactionState
from penstock.broker.transactions.transaction import LAST_CLIENT_EPOCH, Image
from penstock.protocol.error_codes import ErrorCode


class EndOutcome(Enum):
    """The outcome of an EndTxn request that is not refused."""

    PREPARE = auto()
    """The outcome has to be stored, and then markers have to be written."""
    REPEAT = auto()
    """The transaction has already ended with this result: the response has the current producer id and
    epoch."""


class EpochComparison(Enum):
    """The result of comparing the producer id and epoch of a request with the current ones."""

    CURRENT = auto()
    PREVIOUS = auto()
    """The id and epoch were current before the last transaction ended: the request may be a repetition."""
    OTHER = auto()


_INVALID = ErrorCode.INVALID_TXN_STATE
_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
_FENCED = ErrorCode.PRODUCER_FENCED

COMMIT, ABORT = True, False

ENDS_OLD: dict[tuple[TransactionState, bool], EndOutcome | ErrorCode] = {
    (TransactionState.EMPTY, COMMIT): _INVALID,
    (TransactionState.EMPTY, ABORT): _INVALID,
    (TransactionState.ONGOING, COMMIT): EndOutcome.PREPARE,
    (TransactionState.ONGOING, ABORT): EndOutcome.PREPARE,
    (TransactionState.PREPARE_COMMIT, COMMIT): _CONCURRENT,
    (TransactionState.PREPARE_COMMIT, ABORT): _CONCURRENT,
    (TransactionState.PREPARE_ABORT, COMMIT): _CONCURRENT,
    (TransactionState.PREPARE_ABORT, ABORT): _CONCURRENT,
    (TransactionState.COMPLETE_COMMIT, COMMIT): EndOutcome.REPEAT,
    (TransactionState.COMPLETE_COMMIT, ABORT): _INVALID,
    (TransactionState.COMPLETE_ABORT, COMMIT): _INVALID,
    (TransactionState.COMPLETE_ABORT, ABORT): EndOutcome.REPEAT,
}
"""A dict from (state, True for a commit) to the result before KIP-890, for a request with the current
epoch."""

ENDS: dict[tuple[TransactionState, EpochComparison, bool], EndOutcome | ErrorCode] = {
    (TransactionState.EMPTY, EpochComparison.CURRENT, COMMIT): _INVALID,
    (TransactionState.EMPTY, EpochComparison.CURRENT, ABORT): EndOutcome.PREPARE,
    (TransactionState.ONGOING, EpochComparison.CURRENT, COMMIT): EndOutcome.PREPARE,
    (TransactionState.ONGOING, EpochComparison.CURRENT, ABORT): EndOutcome.PREPARE,
    (TransactionState.COMPLETE_COMMIT, EpochComparison.CURRENT, COMMIT): _INVALID,
    (TransactionState.COMPLETE_COMMIT, EpochComparison.CURRENT, ABORT): EndOutcome.PREPARE,
    (TransactionState.COMPLETE_COMMIT, EpochComparison.PREVIOUS, COMMIT): EndOutcome.REPEAT,
    (TransactionState.COMPLETE_COMMIT, EpochComparison.PREVIOUS, ABORT): _INVALID,
    (TransactionState.COMPLETE_ABORT, EpochComparison.CURRENT, COMMIT): _INVALID,
    (TransactionState.COMPLETE_ABORT, EpochComparison.CURRENT, ABORT): EndOutcome.PREPARE,
    (TransactionState.COMPLETE_ABORT, EpochComparison.PREVIOUS, COMMIT): _INVALID,
    (TransactionState.COMPLETE_ABORT, EpochComparison.PREVIOUS, ABORT): EndOutcome.REPEAT,
}
"""A dict from (state, epoch comparison, True for a commit) to the result since KIP-890.

A combination that is not listed gets PRODUCER_FENCED. Requests in the states PrepareCommit and PrepareAbort
are refused before this lookup.
"""


def is_exhausted_pair(image: Image, producer_id: int, epoch: int) -> bool:
    """Return True for the previous producer id with its last epoch, after which a new id was assigned."""
    return producer_id == image.previous_producer_id and epoch == LAST_CLIENT_EPOCH and image.epoch == 0


def judge_old_end(image: Image, epoch: int, is_commit: bool) -> EndOutcome | ErrorCode:
    """Return the result of an EndTxn before KIP-890 (v0 to v4) that has the current producer id."""
    if epoch != image.epoch:
        return _FENCED
    return ENDS_OLD[image.state, is_commit]


def judge_end(image: Image, producer_id: int, epoch: int, is_commit: bool) -> EndOutcome | ErrorCode:
    """Return the result of an EndTxn since KIP-890 (v5)."""
    replaced = producer_id != image.producer_id and is_exhausted_pair(image, producer_id, epoch)
    if producer_id != image.producer_id and not replaced:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    relation = EpochComparison.OTHER
    if image.client_version >= 2 and (replaced or 0 <= epoch == image.epoch - 1):
        # From version 2 on, the end raised the epoch. Otherwise this is the producer before the current
        # one, which must not get its epoch.
        relation = EpochComparison.PREVIOUS
    elif epoch == image.epoch:
        relation = EpochComparison.CURRENT
    return ENDS.get((image.state, relation, is_commit), _FENCED)
