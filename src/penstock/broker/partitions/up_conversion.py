"""Up-conversion for producers before Kafka 0.11: message sets of magic 0 and 1 to a batch of magic 2.

The log holds magic 2 only, as Apache Kafka's does since 4.0, so that all code after this module deals with
one format. Conversion keeps keys, values, times and the codec; messages of magic 0 have
no time, and get none. Batches of magic 2 in an old Produce version pass unconverted: the magic byte
decides (aiokafka sends such batches).

A broker that behaves like Kafka 0.8 or 0.9 accepts magic 1 as well, even within a wrapper of magic 0
(kafka-node compresses this way), and compressed messages within compressed ones; it stores all of them as
magic 0, compressed once, the only form that consumers of that time can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.partitions.validation import check_batch, check_times
from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.model import TimestampType
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.compression.codecs import UnpackBudget
from penstock.records.convert import convert_up
from penstock.records.format.batch_header import read_header, split_batches

if TYPE_CHECKING:
    from penstock.broker.config.values import TopicConfig
    from penstock.records.format.batch_header import BatchHeader


def batches_of(
    records: memoryview, config: TopicConfig, now_ms: int, budget: UnpackBudget | None = None
) -> list[tuple[memoryview, BatchHeader]]:
    """Validate and convert the records of an old Produce request; return batches of magic 2 with headers.

    An incomplete message at the end is dropped, as in all releases of Apache Kafka.

    Raises:
        KafkaError: CORRUPT_MESSAGE (2), MESSAGE_TOO_LARGE (10), INVALID_RECORD (87) or INVALID_TIMESTAMP
            (32), or another error of `validation`.
        UnpackLimitError: the messages are too much for `budget`.
    """
    if budget is None:
        budget = UnpackBudget()
    try:
        found = _look_over(records, budget)
        if found is None:
            return []
        # Releases before 0.10 did not check the magic byte, so newer producers could send magic 1.
        unseen = config.stored_magic == 0
        known = 1 if unseen else config.stored_magic
        if found.newest > known:
            raise error_for(
                ErrorCode.CORRUPT_MESSAGE, f"magic {found.newest}; this broker supports up to {known}"
            )
        if found.first == 2:
            if found.entries > 1:
                raise error_for(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
            batch = records[: found.size]
            return [(batch, check_batch(batch, config, now_ms, budget))]
        if found.largest > config.max_message_bytes:
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a message of {found.largest} bytes, max.message.bytes is {config.max_message_bytes}",
            )
        converted = convert_up(
            records[: found.size], base_offset=0, mixed=unseen, nested=unseen, budget=budget
        )
        batch = memoryview(bytearray(converted))
    except UnpackLimitError:
        raise
    except CorruptRecordError as error:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    header = read_header(batch)
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        raise error_for(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set log-append time")
    check_times(header, config, now_ms)
    return [(batch, header)]


class _Entries(NamedTuple):
    """A summary of a message set's entries: number, total bytes, first and highest magic, largest entry."""

    entries: int
    size: int
    first: int
    newest: int
    largest: int


def _look_over(records: memoryview, budget: UnpackBudget) -> _Entries | None:
    """Return a summary (`_Entries`) of a message set's complete entries, or None if there are none.

    Raises:
        CorruptRecordError: an entry has an unknown magic, or a length too small for its magic.
        UnpackLimitError: there are more entries than `budget` allows. Nothing is deducted from `budget`.
    """
    count = size = newest = largest = first = 0
    for start, end, magic in split_batches(records):
        if not count:
            first = magic
        count += 1
        if count > budget.records_left:
            budget.take_records(count)
        newest = max(newest, magic)
        largest = max(largest, end - start)
        size = end
    return _Entries(count, size, first, newest, largest) if count else None
