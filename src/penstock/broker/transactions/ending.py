"""EndTxn: what commit and abort mean in which state, as two tables.

Before KIP-890 (EndTxn v0-v4) all transactions of a producer have the same epoch, and a request must have it.
Since then (v5) each end raises the epoch, by which a repeated request is recognised.
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.broker.transactions.states import TransactionState
from penstock.broker.transactions.transaction import LAST_CLIENT_EPOCH, Image
from penstock.protocol.error_codes import ErrorCode


class EndOutcome(Enum):
    """The outcome of an EndTxn request that is not refused."""

    PREPARE = auto()
    """The outcome is stored, then markers are written."""
    REPEAT = auto()
    """It has been done before: success, with the producer id and epoch that are current."""


class EpochComparison(Enum):
    """How the producer id and epoch of a request compare with the current ones."""

    CURRENT = auto()
    PREVIOUS = auto()
    """Those before the end of the last transaction: the request may come for the second time."""
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
"""Before KIP-890, with the current epoch: by state and by whether it is a commit."""

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
"""Since KIP-890; what is not listed is fenced. Between Prepare* and Complete* no request gets here."""


def is_exhausted_pair(image: Image, producer_id: int, epoch: int) -> bool:
    """Return True for the producer id and epoch that were replaced last, because epochs were used up."""
    return producer_id == image.previous_producer_id and epoch == LAST_CLIENT_EPOCH and image.epoch == 0


def judge_old_end(image: Image, epoch: int, is_commit: bool) -> EndOutcome | ErrorCode:
    """Decide about an EndTxn before KIP-890 (v0 to v4) that has the current producer id."""
    if epoch != image.epoch:
        return _FENCED
    return ENDS_OLD[image.state, is_commit]


def judge_end(image: Image, producer_id: int, epoch: int, is_commit: bool) -> EndOutcome | ErrorCode:
    """Decide about an EndTxn of KIP-890 (v5)."""
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
