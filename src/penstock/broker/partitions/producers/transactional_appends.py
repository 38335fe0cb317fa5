"""Appends to a partition as part of a transaction: batches, committed offsets of groups, markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_marker
from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    MAGIC_POSITION,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
    set_base_offset,
    set_leader_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.partitions.producers.producer_state_manager import ProducerStateManager
    from penstock.broker.partitions.producers.transactions import Verification
    from penstock.errors import KafkaError
    from penstock.log.contract import Log
    from penstock.records.format.batch_header import BatchHeader


_PRODUCER_BYTES = 10
"""The size in bytes of the producer id and the producer epoch in a batch header."""


class AppendTarget(Protocol):
    """The interface of a partition to which the functions of this module append."""

    topic: str
    index: int
    leader_epoch: int

    @property
    def log(self) -> Log: ...
    @property
    def states(self) -> ProducerStateManager: ...
    def check_leads(self) -> None: ...
    def advance(self) -> None: ...


class JoinsTransaction(Protocol):
    """The interface through which an append adds its partition to the transaction of the request."""

    is_implicit: bool
    """True if a write to a partition adds the partition to the transaction (KIP-890). False if the
    client must have added it with AddPartitionsToTxn.
    """
    has_refused: bool
    """True if the last batch could not join its transaction. The response then has -1 as log start
    offset, as in Apache Kafka.
    """

    def join(self, topic: str, index: int, producer_id: int, epoch: int) -> None:
        """Let the coordinator add a partition to the transaction, or verify that it was added.

        Raises:
            KafkaError: the coordinator refuses, or cannot be reached.
        """


def refusal_of(error: KafkaError, records: memoryview | None, joining: JoinsTransaction | None) -> KafkaError:
    """Return the error for refused records that Apache Kafka returns if several errors apply.

    A transactional batch in a request without a transactional id (53) takes precedence over `error`.
    """
    return _without_id() if joining is None and is_transactional(records) else error


def refusal_of_all(batches: Iterable[memoryview | None], transactional_id: str | None) -> KafkaError | None:
    """Return the error because of which a whole Produce request is refused, or None.

    The reasons are a transactional batch in a request without a transactional id (53), and transactional
    batches of two producers (49).
    """
    producer = None
    for batch in batches:
        if batch is None or not is_transactional(batch):
            continue
        if transactional_id is None:
            return _without_id()
        found = bytes(batch[PRODUCER_ID_POSITION : PRODUCER_ID_POSITION + _PRODUCER_BYTES])
        if producer is not None and found != producer:
            return error_for(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING, "batches of transactions of more than one producer"
            )
        producer = found
    return None


def is_transactional(records: memoryview | None) -> bool:
    """Return True if `records` begin with the header of a transactional batch."""
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and records[MAGIC_POSITION] == 2
        and bool(records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_BIT)
    )


def _without_id() -> KafkaError:
    return error_for(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "a batch of a transaction, in a request without a transactional id",
    )


def join(
    partition: AppendTarget,
    producer_id: int,
    epoch: int,
    first_sequence: int,
    joining: JoinsTransaction | None,
) -> Verification | None:
    """Let the coordinator add a batch's partition to its transaction, unless that was done before.

    Depending on `joining.is_implicit`, the coordinator adds the partition or verifies that it was added.
    Returns the verification that the append needs, or None if the transaction is open in the partition.

    Raises:
        KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), the request names no transactional id; or the
            error of the coordinator or of the partition.
        StorageError: the log cannot be opened or read.
    """
    if joining is None:
        raise _without_id()
    states = partition.states
    joining.has_refused = True
    verification = states.transactions.begin_verification(
        producer_id, epoch, first_sequence, joining.is_implicit, states.uptime_ms
    )
    if verification is not None:
        joining.join(partition.topic, partition.index, producer_id, epoch)
    joining.has_refused = False
    return verification


def join_batch(
    partition: AppendTarget, header: BatchHeader, joining: JoinsTransaction | None
) -> Verification | None:
    """Call `join` for the producer id and epoch in this batch header; return the result."""
    return join(partition, header.producer_id, header.producer_epoch, header.base_sequence, joining)


def append_offsets(
    partition: AppendTarget,
    batch: memoryview,
    header: BatchHeader,
    now_ms: int,
    verification: Verification | None,
) -> int:
    """Append a group's offset commits as part of a transaction; return the base offset of their batch.

    `verification` is what `join` has returned. Sequence numbers are not checked.

    Raises:
        KafkaError: the transaction has ended meanwhile.
        StorageError: the records could not be written; nothing has changed.
    """
    states = partition.states
    states.check_append(header, verification)
    log = partition.log
    first_offset = log.end_offset
    last_offset = first_offset + header.last_offset_delta
    set_base_offset(batch, 0, first_offset)
    set_leader_epoch(batch, 0, partition.leader_epoch)
    log.append(
        batch,
        first_offset=first_offset,
        last_offset=last_offset,
        max_timestamp=header.max_timestamp,
        now_ms=now_ms,
    )
    states.producers.record_batch(header, first_offset, header.max_timestamp, states.uptime_ms)
    states.transactions.record_data(header.producer_id, first_offset)
    partition.advance()
    return first_offset


def append_marker(
    partition: AppendTarget,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    is_commit: bool,
    transaction_version: int,
    now_ms: int,
) -> int:
    """Append a marker that ends a producer's transaction; return the offset of the marker.

    Raises:
        KafkaError: INVALID_PRODUCER_EPOCH (47), TRANSACTION_COORDINATOR_FENCED (52), NOT_LEADER_OR_FOLLOWER
            (6).
        StorageError: the marker could not be written; nothing has changed.
    """
    partition.check_leads()
    log, states = partition.log, partition.states
    transactions = states.transactions
    transactions.check_marker(producer_id, epoch, coordinator_epoch, transaction_version)
    offset = log.end_offset
    marker = encode_marker(
        COMMIT_MARKER if is_commit else ABORT_MARKER,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=now_ms,
        partition_leader_epoch=partition.leader_epoch,
    )
    log.append(marker, first_offset=offset, last_offset=offset, max_timestamp=now_ms, now_ms=now_ms)
    aborted = transactions.record_marker(
        producer_id,
        epoch,
        coordinator_epoch,
        is_commit,
        offset,
        now_ms,
        states.uptime_ms,
        transaction_version=transaction_version,
    )
    partition.advance()
    if aborted is not None:
        states.aborted.add(aborted, states.segment_bases())
    return offset
