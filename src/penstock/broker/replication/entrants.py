"""Adds a request's partitions to its transaction, and waits until this addition is replicated.

Since KIP-890 a write adds its partition to the transaction. The coordinator may be on another node. If it
fails before the addition is replicated, its successor ends the transaction without a marker in this
partition, and the partition's readers wait for ever. So nothing is written before the addition is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.partitions.producers.transactional_appends import is_transactional
from penstock.broker.requests.purgatory import Wait
from penstock.common.java_hash import partition_of
from penstock.errors import StorageError
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_response
from penstock.protocol.since import (
    PRODUCE_IMPLICIT_ADDS_SINCE,
    PRODUCE_TOPIC_IDS_SINCE,
    TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE,
)
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.broker.context import Context

Entrant: TypeAlias = tuple[tuple[str, int], int, int]
"""A partition to add to a transaction: topic, partition number, producer id and producer epoch."""

PATIENCE_S = 5.0
"""The seconds that a write waits for the coordinator's replicas. After that the response has a retriable
error."""

STEP_S = 0.001
"""The seconds between checks for the addition. Commits at the coordinator cause checks as well, but its
node may stop."""


def entrants_of_records(
    request: Any, version: int, topic_of: Callable[[str, bytes, bool], Any]
) -> list[Entrant]:
    """Return the partitions that a Produce request adds to its transaction by writing to them."""
    found: list[Entrant] = []
    if version < PRODUCE_IMPLICIT_ADDS_SINCE:
        return found
    for data in request.topic_data:
        topic = topic_of(data.name, data.topic_id, version >= PRODUCE_TOPIC_IDS_SINCE)
        for each in data.partition_data if topic is not None else ():
            if not 0 <= each.index < len(topic.partitions) or not is_transactional(each.records):
                continue
            header = read_header(each.records)
            producer = header.producer_id, header.producer_epoch
            if _begins(topic.partitions[each.index], *producer):
                found.append(((topic.name, each.index), *producer))
    return found


def entrants_of_offsets(request: Any, version: int, topics: Mapping[str, Any]) -> list[Entrant]:
    """Return the partition that a TxnOffsetCommit adds to its transaction, as a list of one or none."""
    topic = topics.get(OFFSETS_TOPIC)
    if version < TXN_OFFSET_COMMIT_IMPLICIT_ADDS_SINCE or topic is None:
        return []
    index = partition_of(request.group_id, len(topic.partitions))
    producer = request.producer_id, request.producer_epoch
    return [((OFFSETS_TOPIC, index), *producer)] if _begins(topic.partitions[index], *producer) else []


def _begins(partition: Any, producer_id: int, epoch: int) -> bool:
    if not partition.leads:
        return False
    try:
        return not partition.states.transactions.is_open(producer_id, epoch)
    except StorageError:
        return False  # the write meets the same error, and reports it


def enter(
    entrants: list[Entrant],
    request: Any,
    context: Context[Any],
    write: Callable[[], Any],
    refuse: Callable[[], Any],
) -> Any:
    """Wait until the coordinator's replicas have stored the partitions; return the result of `write`.

    If the replicas do not store the partitions in time, return the result of `refuse`.
    """
    entry = context.node.membership.entry(request.transactional_id, entrants)
    deadline = context.now + PATIENCE_S

    def check() -> Any:
        if entry.is_done:
            return write()
        if context.now >= deadline:
            return refuse()
        entry.call_when_done(lambda: context.node.purgatory.notify(entry))
        return Wait((entry,), context.node.clock.monotonic() + STEP_S, 1, check)

    if entry.is_done:
        return write()
    for topic in getattr(request, "topic_data", ()):  # the frame is not there any more when its turn comes
        for data in topic.partition_data:
            data.records = None if data.records is None else memoryview(bytearray(data.records))
    return check()


def refused_records(request: Any, version: int) -> Any:
    """Return the response to a Produce with partitions not added in time: NOT_ENOUGH_REPLICAS (19)."""
    return error_response(ApiKey.PRODUCE, version, request, ErrorCode.NOT_ENOUGH_REPLICAS)


def refused_offsets(request: Any, version: int) -> Any:
    """Return the response to a TxnOffsetCommit whose partition was not added in time.

    The error is COORDINATOR_NOT_AVAILABLE (15).
    """
    return error_response(ApiKey.TXN_OFFSET_COMMIT, version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
