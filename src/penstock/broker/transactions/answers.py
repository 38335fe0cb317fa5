"""Error codes of the transaction coordinator, translated for clients of older versions.

The coordinator returns the newest codes. A client that is older than a code gets the code used before.
"""

from __future__ import annotations

from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.since import PRODUCE_IMPLICIT_ADDS_SINCE

FENCED_SINCE: dict[int, int] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}
"""A dict from API to its first version that answers PRODUCER_FENCED (90) instead of INVALID_PRODUCER_EPOCH
(47)."""

ABORTABLE_SINCE: dict[int, int] = {ApiKey.PRODUCE: 11, ApiKey.TXN_OFFSET_COMMIT: 4}
"""A dict from API to its first version that answers TRANSACTION_ABORTABLE (120), not INVALID_TXN_STATE
(48)."""

_UNAVAILABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
)


def answer_of_coordinator(error: ErrorCode, api: int, version: int) -> ErrorCode:
    """Translate `error` to the code that exists in `version` of the coordinator's API `api`."""
    if error == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE.get(api, 0):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def answer_of_produce(error: ErrorCode, version: int) -> ErrorCode:
    """Return the error code for a Produce response after adding or verifying a partition failed."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE[ApiKey.PRODUCE]:
        return ErrorCode.INVALID_TXN_STATE
    if error in _UNAVAILABLE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error == ErrorCode.CONCURRENT_TRANSACTIONS and version < PRODUCE_IMPLICIT_ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error


def answer_of_offsets(error: ErrorCode, version: int) -> ErrorCode:
    """Return the error code for a TxnOffsetCommit response after adding or verifying a partition failed."""
    if error == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE[ApiKey.TXN_OFFSET_COMMIT]:
        return ErrorCode.INVALID_TXN_STATE
    if error == ErrorCode.NETWORK_EXCEPTION:
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return error


LOADING_SINCE = 2
"""The first version of TxnOffsetCommit whose clients retry after COORDINATOR_LOAD_IN_PROGRESS (14)."""
