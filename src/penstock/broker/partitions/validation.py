"""Validation of a client's batch by its header, its checksum and the topic's settings.

The records in a batch are decoded only in three cases: in a compacted topic (every record needs a key), if
the topic has its own `compression.type`, and if the header contradicts itself. All other batches pass as
opaque bytes, of which only the first few are compared with the header.

Decoding has a budget. Records that do not fit into it raise `UnpackLimitError`.

Order of the checks and the error codes follow Apache Kafka (`ProduceRequest`, `UnifiedLog`, `LogValidator`),
so that a batch with two faults gets the same error as from Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from penstock.broker.config.values import TopicConfig
from penstock.errors import CorruptRecordError, KafkaError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.since import PRODUCE_ZSTD_SINCE
from penstock.records.batch import records_bytes
from penstock.records.checking import CheckedRecords, walk_batch, walk_numbered
from penstock.records.compression.codecs import CompressionCodec, UnpackBudget, begins_as, compress
from penstock.records.compression.ratios import RATIO_MAX
from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_POSITION,
    LEADER_EPOCH_POSITION,
    LENGTH_EXTRA_BYTES,
    LENGTH_POSITION,
    LOG_APPEND_BIT,
    MAGIC_POSITION,
    MESSAGE_LENGTH_MIN,
    RECORD_BYTES_MIN,
    RECORD_COUNT_POSITION,
    BatchHeader,
    pack_header,
    read_header,
    refresh_crc,
    set_attributes,
    set_max_timestamp,
    unpack_header,
    verify_crc,
)
from penstock.records.format.crc import crc32c
from penstock.records.format.varint import read_unsigned

_new = tuple.__new__

_LENGTH_MIN = 2 * (RECORD_BYTES_MIN - 1)
"""The smallest length field that a record can have, as a zig-zag encoded number."""

_HEADS = (b"", b"\x1f\x8b\x08\x00", b"\x82SNA", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")
_HEAD_END = HEADER_BYTES + 4
"""The end position in a batch of the first four bytes of its compressed records. They identify the
codec: `_HEADS` has the usual bytes of each codec.
"""

_BAD_TIMES = "One or more records have been rejected due to invalid timestamp"
"""The error message for a batch with invalid timestamps, as in Apache Kafka. The reasons are in the
record errors of the response.
"""

BLAMED_MAX = 1_000
"""The maximum number of faulty records of a refused batch that the Produce response lists."""

_LZ4, _ZSTD = int(CompressionCodec.LZ4), int(CompressionCodec.ZSTD)

_CODECS = {
    "uncompressed": CompressionCodec.NONE,
    "gzip": CompressionCodec.GZIP,
    "snappy": CompressionCodec.SNAPPY,
    "lz4": CompressionCodec.LZ4,
    "zstd": CompressionCodec.ZSTD,
}


class RejectedRecords(KafkaError):
    """Raised for a batch that is refused because of some of its records.

    `records` lists each refused record as (index in the batch, reason).
    """

    def __init__(self, error: KafkaError, records: Sequence[tuple[int, str]]) -> None:
        super().__init__(error.code, error.name, str(error), retriable=error.retriable, detail=error.detail)
        self.records = records


class MisshapenRecords(KafkaError):
    """Raised if records are not one batch of magic 2; checked before the partition is looked up."""


def admit_batch(
    records: memoryview | None,
    produce_version: int,
    config: TopicConfig,
    now_ms: int,
    budget: UnpackBudget | None = None,
) -> tuple[memoryview, BatchHeader]:
    """Validate a partition's records in a Produce request of v3 or later; return the batch and its header.

    Raises:
        KafkaError: an error of `only_batch` or `check_batch`, which run if this function's fast check fails.
        UnpackLimitError: the batch's records must be decoded, and are too much for `budget`.
    """
    if records is not None:
        size = len(records)
        if size > HEADER_BYTES:
            # Inlined `read_header`: this fast path only exists to be faster than `check_batch`.
            fields = unpack_header(records)
            first, length, _, magic, crc, attributes, last, base_ms, max_ms, producer, _, sequence, count = (
                fields
            )
            if (
                magic == 2
                and length + LENGTH_EXTRA_BYTES == size <= config.max_message_bytes
                and first == 0
                and last == count - 1
                and count > 0
                and attributes <= (_ZSTD if produce_version >= PRODUCE_ZSTD_SINCE else _LZ4)
                and (producer < 0 or sequence >= 0)
                and -1 <= base_ms <= max_ms
                and crc32c(records[ATTRIBUTES_POSITION:]) == crc
                and begins_right(records, size, attributes, count)
            ):
                header = _new(BatchHeader, fields)
                if max_ms - now_ms > config.after_max_ms or 0 <= base_ms < now_ms - config.before_max_ms:
                    check_batch_times(records, header, config, now_ms, budget)
                return records, header
    batch = only_batch(records, produce_version)
    return batch, check_batch(batch, config, now_ms, budget)


def only_batch(records: memoryview | None, produce_version: int) -> memoryview:
    """Return the one batch of magic 2 that Produce v3 and later must carry for a partition.

    Raises:
        MisshapenRecords: INVALID_RECORD (87) for no batch, several batches, or an older magic.
        KafkaError: CORRUPT_MESSAGE (2) for an impossible length; UNSUPPORTED_COMPRESSION_TYPE (76) for
            zstd before version 7.
    """
    size = len(records) if records is not None else 0
    if records is None or size <= MAGIC_POSITION:
        raise _misshapen(f"Produce v{produce_version} needs one record batch for each partition")
    end = (
        int.from_bytes(records[LENGTH_POSITION:LEADER_EPOCH_POSITION], "big", signed=True)
        + LENGTH_EXTRA_BYTES
    )
    if end < MESSAGE_LENGTH_MIN + LENGTH_EXTRA_BYTES:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, f"a batch of {end} bytes is too small to be one")
    if end > size:
        raise _misshapen(f"the record batch is cut: {size} bytes of {end}")
    if records[MAGIC_POSITION] > 2:
        raise error_for(ErrorCode.CORRUPT_MESSAGE, f"there is no magic {records[MAGIC_POSITION]}")
    if records[MAGIC_POSITION] != 2:
        raise _misshapen(f"Produce v{produce_version} needs magic 2, not magic {records[MAGIC_POSITION]}")
    if size - end > MAGIC_POSITION:
        raise _misshapen(f"Produce v{produce_version} takes one record batch for each partition, not more")
    if (
        produce_version < PRODUCE_ZSTD_SINCE
        and end > HEADER_BYTES
        and records[ATTRIBUTES_POSITION + 1] & CODEC_MASK == CompressionCodec.ZSTD
    ):
        raise error_for(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd needs Produce v{PRODUCE_ZSTD_SINCE}")
    return records if end == size else records[:end]


def check_batch(
    batch: memoryview, config: TopicConfig, now_ms: int, budget: UnpackBudget | None = None
) -> BatchHeader:
    """Validate a complete batch of magic 2 from a client; return its header.

    Raises:
        KafkaError: INVALID_RECORD (87), MESSAGE_TOO_LARGE (10), CORRUPT_MESSAGE (2),
            INVALID_TIMESTAMP (32) or TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53), as it applies.
        UnpackLimitError: the batch's records must be decoded, and are too much for `budget`.

    Header fields that producers may leave unset or wrong are corrected in the buffer itself.
    """
    size = len(batch)
    try:
        header = read_header(batch)
        if header.base_offset != 0 and not config.keeps_offsets:
            raise _invalid(f"a producer numbers its records from 0, not from {header.base_offset}")
        if size > config.max_message_bytes:
            raise error_for(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}",
            )
        verify_crc(batch, 0, size)
    except CorruptRecordError as error:
        raise _unreadable(batch, error) from None
    count = header.record_count
    if count <= 0 or (header.last_offset_delta != count - 1 and not _may_have_gaps(header, config)):
        raise _invalid(f"{count} records cannot end at offset {header.last_offset_delta} of their batch")
    if header.attributes > CompressionCodec.ZSTD:
        _check_attributes(header)
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(f"producer {header.producer_id} sends no sequence number")
    if not begins_right(batch, size, header.codec, count):
        raise _invalid(f"the batch does not hold the {count} records that its header announces")
    if header.attributes & LOG_APPEND_BIT:
        header = _without_log_append_time(batch)
    if not -1 <= header.base_timestamp <= header.max_timestamp:
        header = _with_greatest_time(batch, header, budget)
    if header.max_timestamp >= 0:
        check_batch_times(batch, header, config, now_ms, budget)
    return header


def _may_have_gaps(header: BatchHeader, config: TopicConfig) -> bool:
    """Return True if the topic accepts offset gaps, as in a compacted batch, and the batch has some."""
    return config.keeps_offsets and header.last_offset_delta >= header.record_count


def begins_right(batch: memoryview, size: int, codec: int, count: int) -> bool:
    """Return True if the first bytes after a batch's header can be the records that the header announces.

    An uncompressed batch must have room for its records, and the length fields of its first two records must
    point to the next record, or after the last record to the end of the batch. A compressed batch must begin
    like data of its codec, and must be large enough for its number of records.
    """
    if codec:
        if count * RECORD_BYTES_MIN > (size - HEADER_BYTES) * RATIO_MAX[codec]:
            return False
        # The first bytes that nearly all producers write are checked by one comparison.
        return batch[HEADER_BYTES:_HEAD_END] == _HEADS[codec] or begins_as(codec, batch[HEADER_BYTES:])
    if HEADER_BYTES + count * RECORD_BYTES_MIN > size:
        return False
    # Most lengths take one byte or two, and are read in place.
    length = batch[HEADER_BYTES]
    position = HEADER_BYTES + 1
    if length > 0x7F:
        if batch[HEADER_BYTES + 1] > 0x7F:
            return _begins_long(batch, size, count)
        length = length & 0x7F | batch[HEADER_BYTES + 1] << 7
        position = HEADER_BYTES + 2
    position += length >> 1
    if count == 1:
        return position == size and not length & 1 and length >= _LENGTH_MIN
    if length & 1 or length < _LENGTH_MIN or position + (count - 1) * RECORD_BYTES_MIN > size:
        return False
    length = batch[position]
    if length > 0x7F:
        if batch[position + 1] > 0x7F:
            return _begins_long(batch, size, count)
        length = length & 0x7F | batch[position + 1] << 7
        position += 1
    position += 1 + (length >> 1)
    if count == 2:
        return position == size and not length & 1 and length >= _LENGTH_MIN
    return not length & 1 and length >= _LENGTH_MIN and position + (count - 2) * RECORD_BYTES_MIN <= size


def _begins_long(batch: memoryview, size: int, count: int) -> bool:
    """Do the check of `begins_right` for an uncompressed batch whose first records have 8 KiB or more."""
    position = HEADER_BYTES
    for left in range(count - 1, max(count - 3, -1), -1):
        try:
            length, position = read_unsigned(batch, position)
        except (IndexError, CorruptRecordError):
            return False
        position += length >> 1
        if length & 1 or length < _LENGTH_MIN or position + left * RECORD_BYTES_MIN > size:
            return False
    return count > 2 or position == size


def _without_log_append_time(batch: memoryview) -> BatchHeader:
    """Clear the LogAppendTime bit: only brokers may set it, but Apache Kafka's producers may send it."""
    set_attributes(batch, 0, len(batch), read_header(batch).attributes & ~LOG_APPEND_BIT)
    return read_header(batch)


def _with_greatest_time(batch: memoryview, header: BatchHeader, budget: UnpackBudget | None) -> BatchHeader:
    """Write the greatest timestamp of the records into a batch's header; return the header.

    Raises:
        KafkaError: INVALID_RECORD (87), the records cannot be read.
        UnpackLimitError: the records are too much for `budget`.
    """
    greatest = max(max(chunk.timestamps) for chunk in _chunks(batch, header, budget))
    set_max_timestamp(batch, 0, len(batch), greatest)
    return read_header(batch)


def _chunks(batch: memoryview, header: BatchHeader, budget: UnpackBudget | None) -> Iterator[CheckedRecords]:
    """Yield the decoded records of a complete batch in chunks.

    Raises:
        KafkaError: INVALID_RECORD (87), the records do not decompress, do not follow the format, or are not
            numbered one by one.
        UnpackLimitError: the records are too much for `budget`.
    """
    try:
        yield from walk_batch(batch, header, budget or UnpackBudget())
    except UnpackLimitError:
        raise
    except CorruptRecordError as error:
        raise _invalid(str(error)) from None


def _unreadable(batch: memoryview, error: CorruptRecordError) -> KafkaError:
    """Return the error, invalid or corrupt, for a batch whose header or checksum is wrong.

    A batch with negative counts and a correct checksum is invalid, since the producer made it so.
    """
    if len(batch) >= HEADER_BYTES:
        negative = batch[LAST_OFFSET_DELTA_POSITION] >= 0x80 or batch[RECORD_COUNT_POSITION] >= 0x80
        if negative and crc32c(batch[ATTRIBUTES_POSITION:]) == int.from_bytes(
            batch[CRC_POSITION:ATTRIBUTES_POSITION], "big"
        ):
            return _invalid(str(error))
    return error_for(ErrorCode.CORRUPT_MESSAGE, str(error))


def _check_attributes(header: BatchHeader) -> None:
    if header.codec > CompressionCodec.ZSTD:
        # Kafka has no code for it: the exception that it throws there has none.
        raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no codec {header.codec}")
    if header.attributes & CONTROL_BIT:
        raise _invalid("clients may not write control records")
    if header.is_transactional and header.producer_id < 0:
        raise _invalid("a batch of a transaction names its producer")


def check_batch_times(
    batch: memoryview,
    header: BatchHeader,
    config: TopicConfig,
    now_ms: int,
    budget: UnpackBudget | None = None,
) -> None:
    """Check timestamps with `check_times`; after an error, find the records that cause it.

    Raises:
        RejectedRecords: INVALID_TIMESTAMP (32).
        UnpackLimitError: the records are too much for `budget`.
    """
    try:
        check_times(header, config, now_ms)
    except KafkaError:
        blamed = (
            (chunk.first + index, reason)
            for chunk in _chunks(batch, header, budget)
            for index, time in enumerate(chunk.timestamps)
            if (reason := _reason_against(time, config, now_ms))
        )
        error = error_for(ErrorCode.INVALID_TIMESTAMP, _BAD_TIMES)
        raise RejectedRecords(error, list(islice(blamed, BLAMED_MAX))) from None


def check_times(header: BatchHeader, config: TopicConfig, now_ms: int) -> None:
    """Compare the timestamps in a batch header with the window that the topic allows.

    Raises:
        KafkaError: INVALID_TIMESTAMP (32).
    """
    if config.log_append_time:
        return
    time = header.max_timestamp
    if time - now_ms <= config.after_max_ms:
        time = header.base_timestamp
        if not 0 <= time < now_ms - config.before_max_ms:
            return
    raise error_for(ErrorCode.INVALID_TIMESTAMP, _reason_against(time, config, now_ms))


def _reason_against(time: int, config: TopicConfig, now_ms: int) -> str:
    """Return the reason why a timestamp is not allowed, or an empty string if it is allowed."""
    if time - now_ms > config.after_max_ms:
        return f"timestamp {time} is more than {config.after_max_ms} ms ahead of the broker"
    if 0 <= time < now_ms - config.before_max_ms:
        return f"timestamp {time} is more than {config.before_max_ms} ms behind the broker"
    return ""


def no_segment_holds(size: int, config: TopicConfig) -> KafkaError:
    """Return the error RECORD_LIST_TOO_LARGE (18), for a batch that is larger than `segment.bytes`."""
    return error_for(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"the records have {size} bytes, segment.bytes is {config.segment_bytes}",
    )


def bring_in_line(
    batch: memoryview, header: BatchHeader, config: TopicConfig, budget: UnpackBudget | None = None
) -> memoryview:
    """Check that a compacted topic's records have keys, and recompress the batch with the topic's codec.

    A batch with gaps, which only topics with ``penstock.keep.offsets`` accept, is not changed.

    Raises:
        RejectedRecords: INVALID_RECORD (87), records without a key.
        KafkaError: INVALID_RECORD (87), the records cannot be read; MESSAGE_TOO_LARGE (10), the converted
            batch is too large.
        UnpackLimitError: the records are too much for `budget`.
    """
    codec = storage_codec(header.codec, config)
    if codec == header.codec and not config.compacted:
        return batch
    if _may_have_gaps(header, config):
        return batch  # not changed: decoding requires records that are numbered one by one
    if budget is None:
        budget = UnpackBudget()
    try:
        if codec == header.codec:
            from penstock.broker.partitions.key_validation import keyless  # few topics are compacted

            missing = keyless(batch, header, budget)
        else:
            records = records_bytes(batch, 0, len(batch), header, budget)
            missing = []
            for chunk in walk_numbered(records, header, budget):
                missing += chunk.keyless[: BLAMED_MAX - len(missing)]
    except UnpackLimitError:
        raise
    except CorruptRecordError as error:
        raise _invalid(str(error)) from None
    if missing and config.compacted:
        reason = "Compacted topic cannot accept message without key"
        raise RejectedRecords(_invalid(reason), [(index, reason) for index in missing[:BLAMED_MAX]])
    return batch if codec == header.codec else _in_codec(records, header, codec, config)


def _in_codec(records: memoryview, header: BatchHeader, codec: int, config: TopicConfig) -> memoryview:
    """Compress the uncompressed `records` of a batch with `codec`; return the new batch.

    Raises:
        KafkaError: MESSAGE_TOO_LARGE (10).
    """
    body = records
    if codec:
        body = memoryview(compress(codec, records, compression_level(codec, config)))
    size = HEADER_BYTES + len(body)
    if size > config.max_message_bytes:
        raise error_for(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"in codec {config.codec_name} the batch has {size} bytes, max.message.bytes is "
            f"{config.max_message_bytes}",
        )
    batch = memoryview(bytearray(size))
    batch[HEADER_BYTES:] = body
    pack_header(
        batch,
        base_offset=0,
        partition_leader_epoch=-1,
        attributes=header.attributes & ~CODEC_MASK | codec,
        record_count=header.record_count,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
    refresh_crc(batch, 0, size)
    return batch


def storage_codec(sent: int, config: TopicConfig) -> int:
    """Return the compression codec with which the topic stores records that a client sent with `sent`."""
    return sent if config.codec_name == "producer" else _CODECS[config.codec_name]


def compression_level(codec: int, config: TopicConfig) -> int | None:
    """Return the compression level that the topic sets for a codec, or None if the topic sets none."""
    if codec not in (CompressionCodec.GZIP, CompressionCodec.LZ4, CompressionCodec.ZSTD):
        return None
    name = CompressionCodec(codec).name.lower()
    if f"compression.{name}.level" not in config.overrides:
        return None
    return config.integer(f"compression.{name}.level")


def _misshapen(reason: str) -> MisshapenRecords:
    error = _invalid(reason)
    return MisshapenRecords(
        error.code, error.name, str(error), retriable=error.retriable, detail=error.detail
    )


def _invalid(reason: str) -> KafkaError:
    return error_for(ErrorCode.INVALID_RECORD, reason)
