"""The meaning of an error code for a transaction: retry, abort, or close the producer.

The table is the Java producer's (`TransactionManager` of Apache Kafka 4.3), but two errors are abortable here
and fatal in Java. The first is INVALID_TXN_STATE after a commit by the protocol of KIP-890: nothing was
committed, mostly because the transaction's timeout has passed, and an abort gets the next epoch. The second
is a refusal of offsets because their metadata are too long, or because the client is not authorized for their
topic.
"""

from __future__ import annotations

from enum import IntEnum

from penstock.client.transactions.steps import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    End,
    FindCoordinator,
    Initialize,
    Step,
)
from penstock.protocol.error_codes import ErrorCode, error_for


class Verdict(IntEnum):
    """The reactions of a transactional producer to an error code, in ascending order of severity."""

    DONE = 0
    RETRY = 1
    FIND = 2
    """Look the coordinator up again, then retry."""
    REFUSED = 3
    """The coordinator assigns no producer id; the application may call `init_transactions` again."""
    ABORT = 4
    ABORT_AND_RAISE = 5
    """Abort, and get a new epoch before the next transaction."""
    FATAL = 6
    FENCED = 7


MOVED = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))
BUSY = frozenset((ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS))
FENCING = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))
LEFT_BEHIND = frozenset(
    (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    )
)
"""Error codes of TxnOffsetCommit which mean that the group has removed this member."""


def judge_step(step: Step, code: int) -> Verdict:
    """Return the reaction to a coordinator's error code for a step: retry, abort, or give up."""
    if code == ErrorCode.NONE:
        return Verdict.DONE
    if code in MOVED:
        return Verdict.RETRY if isinstance(step, FindCoordinator) else Verdict.FIND
    if code in BUSY:
        return Verdict.RETRY
    if code in FENCING:
        return Verdict.FENCED
    if isinstance(step, FindCoordinator):
        return _judge_search(code)
    if isinstance(step, Initialize):
        return _judge_initialization(code)
    if isinstance(step, AddPartitions | AddOffsets):
        return _judge_addition(step, code)
    if isinstance(step, CommitOffsets):
        return _judge_offsets(code)
    return _judge_end(step, code)


def _is_retriable(code: int) -> bool:
    return error_for(code).retriable


def _judge_search(code: int) -> Verdict:
    if code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
        return Verdict.ABORT
    if code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return Verdict.REFUSED
    return Verdict.RETRY if _is_retriable(code) else Verdict.FATAL


def _judge_initialization(code: int) -> Verdict:
    if code in (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE):
        return Verdict.REFUSED
    return Verdict.RETRY if _is_retriable(code) else Verdict.FATAL


def _judge_addition(step: AddPartitions | AddOffsets, code: int) -> Verdict:
    if code == ErrorCode.UNKNOWN_PRODUCER_ID:
        return Verdict.ABORT_AND_RAISE
    if code in (
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ):
        return Verdict.FATAL
    if code in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE):
        return Verdict.ABORT
    if _is_retriable(code):
        return Verdict.RETRY
    return Verdict.ABORT if isinstance(step, AddPartitions) else Verdict.FATAL


def _judge_offsets(code: int) -> Verdict:
    if code == ErrorCode.REQUEST_TIMED_OUT:
        return Verdict.FIND
    if code in LEFT_BEHIND or code in (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ):
        return Verdict.ABORT
    return Verdict.RETRY if _is_retriable(code) else Verdict.FATAL


def _judge_end(step: End, code: int) -> Verdict:
    if code == ErrorCode.INVALID_TXN_STATE:
        return Verdict.ABORT if step.is_commit and step.raises_epoch else Verdict.FATAL
    if code == ErrorCode.TRANSACTION_ABORTABLE:
        return Verdict.ABORT if step.is_commit else Verdict.FATAL
    if code == ErrorCode.UNKNOWN_PRODUCER_ID:
        return Verdict.ABORT_AND_RAISE if step.is_commit else Verdict.FATAL
    return Verdict.RETRY if _is_retriable(code) else Verdict.FATAL


def judge_batch(code: int | None) -> Verdict:
    """Return the reaction to a batch that has failed permanently. `code` is None without an error code.

    47 (INVALID_PRODUCER_EPOCH) is abortable: the response to the abort's EndTxn shows whether this producer
    is fenced.
    """
    if code == ErrorCode.PRODUCER_FENCED:
        return Verdict.FENCED
    if code in (
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    ):
        return Verdict.FATAL
    return Verdict.ABORT
