"""EndTxn: what commit and abort mean in which state, as two tables.

Before KIP-890 (EndTxn v0-v4) all transactions of a producer have the same epoch, and a request must have it.
Since then (v5) each end raises the epoch, by which a repeated request is recognised.
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.broker.transactions.states import State
from penstock.broker.transactions.transaction import LAST_CLIENT_EPOCH, Image
from penstock.protocol.error_codes import ErrorCode


class End(Enum):
    """The outcome of an EndTxn request that is not refused."""

    PREPARE = auto()
    """The outcome is stored, then markers are written."""
    REPEAT = auto()
    """It has been done before: success, with the producer id and epoch that are current."""


class Epoch(Enum):
    """How the producer id and epoch of a request compare with the current ones."""

    CURRENT = auto()
    PREVIOUS = auto()
    """Those before the end of the last transaction: the request may come for the second time."""
    OTHER = auto()


_INVALID = ErrorCode.INVALID_TXN_STATE
_CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
_FENCED = ErrorCode.PRODUCER_FENCED

COMMIT, ABORT = True, False

ENDS_OLD: dict[tuple[State, bool], End | ErrorCode] = {
    (State.EMPTY, COMMIT): _INVALID,
    (State.EMPTY, ABORT): _INVALID,
    (State.ONGOING, COMMIT): End.PREPARE,
    (State.ONGOING, ABORT): End.PREPARE,
    (State.PREPARE_COMMIT, COMMIT): _CONCURRENT,
    (State.PREPARE_COMMIT, ABORT): _CONCURRENT,
    (State.PREPARE_ABORT, COMMIT): _CONCURRENT,
    (State.PREPARE_ABORT, ABORT): _CONCURRENT,
    (State.COMPLETE_COMMIT, COMMIT): End.REPEAT,
    (State.COMPLETE_COMMIT, ABORT): _INVALID,
    (State.COMPLETE_ABORT, COMMIT): _INVALID,
    (State.COMPLETE_ABORT, ABORT): End.REPEAT,
}
"""Before KIP-890, with the current epoch: by state and by whether it is a commit."""

ENDS: dict[tuple[State, Epoch, bool], End | ErrorCode] = {
    (State.EMPTY, Epoch.CURRENT, COMMIT): _INVALID,
    (State.EMPTY, Epoch.CURRENT, ABORT): End.PREPARE,
    (State.ONGOING, Epoch.CURRENT, COMMIT): End.PREPARE,
    (State.ONGOING, Epoch.CURRENT, ABORT): End.PREPARE,
    (State.COMPLETE_COMMIT, Epoch.CURRENT, COMMIT): _INVALID,
    (State.COMPLETE_COMMIT, Epoch.CURRENT, ABORT): End.PREPARE,
    (State.COMPLETE_COMMIT, Epoch.PREVIOUS, COMMIT): End.REPEAT,
    (State.COMPLETE_COMMIT, Epoch.PREVIOUS, ABORT): _INVALID,
    (State.COMPLETE_ABORT, Epoch.CURRENT, COMMIT): _INVALID,
    (State.COMPLETE_ABORT, Epoch.CURRENT, ABORT): End.PREPARE,
    (State.COMPLETE_ABORT, Epoch.PREVIOUS, COMMIT): _INVALID,
    (State.COMPLETE_ABORT, Epoch.PREVIOUS, ABORT): End.REPEAT,
}
"""Since KIP-890; what is not listed is fenced. Between Prepare* and Complete* no request gets here."""


def is_exhausted_pair(image: Image, producer_id: int, epoch: int) -> bool:
    """Return True for the producer id and epoch that were replaced last, because epochs were used up."""
    return producer_id == image.previous_producer_id and epoch == LAST_CLIENT_EPOCH and image.epoch == 0


def judge_old_end(image: Image, epoch: int, is_commit: bool) -> End | ErrorCode:
    """Decide about an EndTxn before KIP-890 (v0 to v4) that has the current producer id."""
    if epoch != image.epoch:
        return _FENCED
    return ENDS_OLD[image.state, is_commit]


def judge_end(image: Image, producer_id: int, epoch: int, is_commit: bool) -> End | ErrorCode:
    """Decide about an EndTxn of KIP-890 (v5)."""
    replaced = producer_id != image.producer_id and is_exhausted_pair(image, producer_id, epoch)
    if producer_id != image.producer_id and not replaced:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    relation = Epoch.OTHER
    if image.client_version >= 2 and (replaced or 0 <= epoch == image.epoch - 1):
        # From version 2 on, the end raised the epoch. Otherwise this is the producer before the current
        # one, which must not get its epoch.
        relation = Epoch.PREVIOUS
    elif epoch == image.epoch:
        relation = Epoch.CURRENT
    return ENDS.get((image.state, relation, is_commit), _FENCED)
