"""DescribeTransactions and ListTransactions: the states of transactional ids."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from penstock.broker.transactions.coordinator import TransactionCoordinator
from penstock.broker.transactions.states import PREPARED, TransactionState
from penstock.broker.transactions.transaction import NO_TIME, Instant, TopicPartition, Transaction
from penstock.protocol.error_codes import ErrorCode

STATE_NAMES = frozenset(state.value for state in TransactionState)
"""The state names that ListTransactions accepts as a filter."""


class Description(NamedTuple):
    """The description of one transactional id. If `error` is not NONE, the other fields have no meaning."""

    error: ErrorCode = ErrorCode.NONE
    state: str = ""
    timeout_ms: int = 0
    started_ms: int = NO_TIME
    producer_id: int = 0
    epoch: int = 0
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions of an open transaction; while it is being ended, the partitions without a marker."""


def describe(coordinator: TransactionCoordinator, transactional_id: str) -> Description:
    """Return the description of one transactional id."""
    if not transactional_id:
        return Description(ErrorCode.INVALID_REQUEST)
    transaction = coordinator.registry.transactions.get(transactional_id)
    if transaction is None:
        index = coordinator.registry.partition_of(transactional_id)
        if index in coordinator.registry.loading:
            return Description(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        loaded = coordinator.registry.is_loaded(index)
        return Description(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if loaded else ErrorCode.NOT_COORDINATOR)
    image = transaction.image
    partitions = transaction.unmarked if image.state in PREPARED else image.partitions
    return Description(
        state=image.state.value,
        timeout_ms=image.timeout_ms,
        started_ms=image.started_ms,
        producer_id=image.producer_id,
        epoch=image.epoch,
        partitions=tuple(sorted(partitions)),
    )


def listed(
    coordinator: TransactionCoordinator,
    now: Instant,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    longer_than_ms: int = -1,
    is_wanted: Callable[[str], bool] | None = None,
) -> list[Transaction]:
    """Return the transactions that pass all filters; an empty filter passes all.

    `longer_than_ms` is compared with the time since the transaction's start. The start counts as 1970 for an
    id without a transaction. `is_wanted` returns True if an id may be returned.
    """
    found = []
    for transaction in coordinator.registry.transactions.values():
        image = transaction.image
        if states and image.state.value not in states:
            continue
        if producer_ids and image.producer_id not in producer_ids:
            continue
        if longer_than_ms >= 0 and now.time_ms - image.started_ms <= longer_than_ms:
            continue
        if is_wanted is None or is_wanted(transaction.id):
            found.append(transaction)
    return found
