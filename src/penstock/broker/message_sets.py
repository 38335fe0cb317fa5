"""What producers before 0.11 send: message sets of magic 0 and 1, turned into one batch of magic 2.

The log holds magic 2 only, as Apache Kafka's does since 4.0, so that everything behind this module has
one format to deal with. Conversion keeps keys, values, times and the codec; messages of magic 0 have
no time, and get none. Batches of magic 2 in an old Produce version come this way too, unconverted:
what decides is the magic byte (aiokafka does this).

A broker that behaves as 0.8 or 0.9 takes magic 1 as well, even within a wrapper of magic 0 (kafka-node
compresses this way), and stores it as the magic 0 that consumers of that time understand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.admission import check_batch, check_times
from penstock.errors import CorruptRecordError
from penstock.model import TimestampType
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.batch import read_header, split_batches
from penstock.records.convert import convert_up

if TYPE_CHECKING:
    from penstock.broker.config import TopicConfig
    from penstock.records.batch import BatchHeader


def batches_of(records: memoryview, config: TopicConfig, now_ms: int) -> list[tuple[memoryview, BatchHeader]]:
    """Return the batches of magic 2 that an old Produce request stands for, judged, with their headers.

    A cut entry at the end is dropped, as brokers always did.

    Raises:
        KafkaError: CORRUPT_MESSAGE (2), MESSAGE_TOO_LARGE (10), INVALID_RECORD (87) or INVALID_TIMESTAMP
            (32), and what `admission` refuses.
    """
    try:
        entries = list(split_batches(records))
        if not entries:
            return []
        newest = max(magic for _, _, magic in entries)
        # Releases before 0.10 did not look at the magic byte, so producers that run ahead got away with 1.
        unseen = config.stored_magic == 0
        known = 1 if unseen else config.stored_magic
        if newest > known:
            raise error_for(ErrorCode.CORRUPT_MESSAGE, f"magic {newest}; this broker knows up to {known}")
        if entries[0][2] == 2:
            if len(entries) > 1:
                raise error_for(ErrorCode.INVALID_RECORD, "more than one batch for a partition")
            batch = records[: entries[0][1]]
            return [(batch, check_batch(batch, config, now_ms))]
        largest = max(end - start for start, end, _ in entries)
        if largest > config.max_message_bytes:
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a message of {largest} bytes, max.message.bytes is {config.max_message_bytes}",
            )
        whole = records[: entries[-1][1]]
        batch = memoryview(bytearray(convert_up(whole, base_offset=0, mixed=unseen)))
    except CorruptRecordError as error:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    header = read_header(batch)
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        raise error_for(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set log-append time")
    check_times(header, config, now_ms)
    return [(batch, header)]
