"""What transactions append to a partition: batches that take part in one, offsets of groups, and markers."""

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
"""Producer id and epoch, in the header of a batch."""


class Target(Protocol):
    """A partition that is appended to."""

    topic: str
    index: int
    leader_epoch: int

    @property
    def log(self) -> Log: ...
    @property
    def states(self) -> ProducerStateManager: ...
    def check_leads(self) -> None: ...
    def advance(self) -> None: ...


class Joining(Protocol):
    """Has partitions take part in the transaction that a request belongs to."""

    is_implicit: bool
    """Whether writing to a partition adds it to the transaction (KIP-890); if not, it has been added."""
    has_refused: bool
    """Whether the last batch was refused before its partition was asked."""

    def join(self, topic: str, index: int, producer_id: int, epoch: int) -> None:
        """Ask the coordinator about a partition.

        Raises:
            KafkaError: it does not agree, or cannot be asked.
        """


def refusal_of(error: KafkaError, records: memoryview | None, joining: Joining | None) -> KafkaError:
    """Return the error to answer a refused Produce with: which of several reasons Apache Kafka gives.

    It looks first whether a batch of a transaction comes in a request without a transactional id (53).
    """
    return _without_id() if joining is None and is_transactional(records) else error


def refusal_of_all(batches: Iterable[memoryview | None], transactional_id: str | None) -> KafkaError | None:
    """Return why a Produce of several batches is refused as a whole; None where it is not.

    That is a batch of a transaction in a request without a transactional id (53), or batches of transactions
    of two producers (49).
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
    """Return whether records are a batch of a transaction."""
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
    partition: Target, producer_id: int, epoch: int, first_sequence: int, joining: Joining | None
) -> Verification | None:
    """Ask the coordinator to add or verify the partition of a batch, if it has not yet.

    Return what the batch is to be appended with.

    Raises:
        KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), the request names no transactional id; or what
            the coordinator or the partition refuses it with.
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


def join_batch(partition: Target, header: BatchHeader, joining: Joining | None) -> Verification | None:
    """Return what `join` returns for the producer of the batch with this header."""
    return join(partition, header.producer_id, header.producer_epoch, header.base_sequence, joining)


def append_offsets(
    partition: Target,
    batch: memoryview,
    header: BatchHeader,
    now_ms: int,
    verification: Verification | None,
) -> int:
    """Append records of the broker's own that belong to a transaction: offsets of a group.

    `verification` is what `join` has returned. Sequence numbers are not looked at. Return the offset of the
    first record.

    Raises:
        KafkaError: the transaction has ended meanwhile.
        StorageError: they could not be written; nothing has changed.
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
    partition: Target,
    producer_id: int,
    epoch: int,
    coordinator_epoch: int,
    is_commit: bool,
    transaction_version: int,
    now_ms: int,
) -> int:
    """End a producer's transaction; return the offset of the marker.

    Raises:
        KafkaError: INVALID_PRODUCER_EPOCH (47), TRANSACTION_COORDINATOR_FENCED (52), NOT_LEADER_OR_FOLLOWER
            (6).
        StorageError: it could not be written; nothing has changed.
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
