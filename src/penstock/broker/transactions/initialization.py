"""InitProducerId: chooses the producer id and epoch that a producer gets (KIP-98, KIP-360).

`judge_initialization` decides for a transactional id that exists and has no change in progress.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from penstock.broker.transactions.states import FINISHED, TransactionState
from penstock.broker.transactions.transaction import LAST_CLIENT_EPOCH, NO_EPOCH, NO_ID, Transaction

TWO_PHASE_TIMEOUT_MS = 2**31 - 1
"""The timeout that is stored for a transaction that never times out."""


class Initialization(NamedTuple):
    """An InitProducerId request with a transactional id. -1 stands for a missing producer id or epoch."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_ID
    epoch: int = NO_EPOCH
    two_phase_commit: bool = False
    keeps_prepared: bool = False

    @property
    def names_producer(self) -> bool:
        """True if the request has a producer id and epoch."""
        return self.producer_id != NO_ID


class Judgement(Enum):
    """The result of an InitProducerId request, as `judge_initialization` returns it."""

    FENCED = auto()
    """A newer producer has the same transactional id. The response has PRODUCER_FENCED."""
    WAIT = auto()
    """Markers of the last transaction are still missing. The response has CONCURRENT_TRANSACTIONS."""
    ABORT_FIRST = auto()
    """A transaction is open. It is aborted, and the response has CONCURRENT_TRANSACTIONS."""
    NEW_ID = auto()
    """All epochs of the producer id are used up: the producer gets a new id, with epoch 0."""
    RAISE_EPOCH = auto()
    """The producer keeps its id, and gets the epoch after the current one."""
    REPEAT = auto()
    """The request is a repeated one: the producer gets the current id and epoch again."""


def judge_initialization(transaction: Transaction, request: Initialization) -> Judgement:
    """Return the result for `request`. The checks are in Apache Kafka's order, which clients can observe."""
    image = transaction.image
    if request.names_producer and request.producer_id != image.producer_id:
        was_replaced = (
            request.producer_id == image.previous_producer_id and request.epoch >= LAST_CLIENT_EPOCH
        )
        if not was_replaced:
            return Judgement.FENCED
    if image.state is TransactionState.ONGOING:
        return Judgement.ABORT_FIRST
    if image.state not in FINISHED:
        return Judgement.WAIT
    is_current = (request.producer_id, request.epoch) == (image.producer_id, image.epoch)
    if transaction.is_exhausted and (not request.names_producer or is_current):
        return Judgement.NEW_ID
    if not request.names_producer or is_current:
        return Judgement.RAISE_EPOCH
    return Judgement.REPEAT if request.epoch == transaction.last_epoch else Judgement.FENCED
