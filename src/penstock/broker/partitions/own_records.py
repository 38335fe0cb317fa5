"""Records that the broker itself keeps in topics of its own: appended as one batch, and read at a start.

The topics are `__consumer_offsets`, `__transaction_state` and `__share_group_state`. What coordinators
store in them is known to them alone; this module has what all three do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from penstock.log.segments.salvage import sound_batches
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.log.contract import Log
    from penstock.model import Record


class _Limits(Protocol):
    @property
    def max_message_bytes(self) -> int: ...
    @property
    def segment_bytes(self) -> int: ...


class OwnPartition(Protocol):
    """A partition of one of the broker's own topics, as far as its records are appended."""

    @property
    def log(self) -> Log: ...
    @property
    def config(self) -> _Limits: ...
    @property
    def leader_epoch(self) -> int: ...
    def advance(self) -> None:
        """Take in what has been appended to the log."""


def append_own(
    partition: OwnPartition, records: Sequence[tuple[bytes, bytes | None]], now_ms: int, what: str
) -> tuple[int, int]:
    """Append records as one batch: all or none of them. Return the first offset and the batch's bytes.

    `what` says in errors whose records they are.

    Raises:
        KafkaError: MESSAGE_TOO_LARGE (10), they exceed what a batch of the topic may have.
        StorageError: they could not be written.
    """
    log = partition.log
    first_offset = log.end_offset
    batch = encode_batch(
        [(key, value, (), now_ms) for key, value in records],
        base_offset=first_offset,
        partition_leader_epoch=partition.leader_epoch,
    )
    check_own_size(partition, len(batch), len(records), what)
    log.append(
        batch,
        first_offset=first_offset,
        last_offset=first_offset + len(records) - 1,
        max_timestamp=now_ms,
        now_ms=now_ms,
    )
    partition.advance()
    return first_offset, len(batch)


def check_own_size(partition: OwnPartition, size: int, count: int, what: str) -> None:
    """Raises KafkaError: MESSAGE_TOO_LARGE (10), a batch of `count` records exceeds what the topic takes."""
    limit = min(partition.config.max_message_bytes, partition.config.segment_bytes)
    if size > limit:
        raise error_for(
            ErrorCode.MESSAGE_TOO_LARGE, f"{count} records of {what} have {size} bytes, the limit is {limit}"
        )


def own_rows(log: Log, topic: str, index: int, lost: Callable[[str], None]) -> Iterator[Record]:
    """Yield the records of a partition, in order, those of control batches left out.

    What is damaged is passed over; `lost` is called with a description of it.

    Raises:
        StorageError: the log cannot be read.
    """
    for segment in list(log.segments):
        for batch, magic in sound_batches(segment, partial(_damaged, lost, segment.base_offset)):
            if magic < 2 or read_header(batch).last_offset < log.start_offset:
                continue
            try:
                rows = decode_batch(batch, 0, len(batch), topic, index, verify=False)
            except Exception as error:
                # A barrier: nothing has been taken from the batch yet. Bytes under a right checksum may be
                # anything.
                lost(f"a batch: {type(error).__name__}: {error}")
                continue
            yield from rows


def _damaged(lost: Callable[[str], None], segment: int, position: int, size: int) -> None:
    lost(f"{size} bytes at position {position} of segment {segment} are no sound batch")
