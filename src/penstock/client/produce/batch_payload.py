"""The bytes of a producer's batch: rows encoded, or an encoded batch stamped with a producer id.

The version of Produce decides the format: batches of magic 2 from version 3 on, messages of magic 1 in
version 2, and magic 0 in older versions (KIP-98, KIP-32).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.produce.batches import ProducerBatch, Row
from penstock.errors import EncodeError, UnsupportedVersionError
from penstock.protocol.since import PRODUCE_MAGIC_1_SINCE, PRODUCE_MAGIC_2_SINCE, PRODUCE_ZSTD_SINCE
from penstock.records.batch import decode_batch, encode_written, record_size_max
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import ATTRIBUTES_POSITION, CRC_POSITION, refresh_crc, set_producer
from penstock.records.legacy import encode_message_set
from penstock.records.row_format import decode_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from penstock.headers import Header


def payload_for(
    batch: ProducerBatch, produce_version: int, codec: CompressionCodec, *, is_transactional: bool = False
) -> Buffer:
    """Return the encoded batch for a Produce request: newly encoded, or the bytes of the last attempt.

    Raises:
        EncodeError: a value has a wrong type, or a record has headers and the record format supports none.
        UnsupportedVersionError: the broker is too old for the codec.
    """
    if codec == CompressionCodec.ZSTD and produce_version < PRODUCE_ZSTD_SINCE:
        raise UnsupportedVersionError("compression.type=zstd needs Kafka 2.1 or newer; try lz4")
    if produce_version < PRODUCE_MAGIC_2_SINCE:
        if batch.base_sequence >= 0:
            raise UnsupportedVersionError(
                "a batch with a producer id needs Kafka 0.11 or newer, and this broker is older than others; "
                "set enable.idempotence=false"
            )
        return _message_set(batch, 1 if produce_version == PRODUCE_MAGIC_1_SINCE else 0, codec)
    if batch.payload is None:
        batch.payload = (
            _stamped(batch, is_transactional)
            if batch.encoded is not None
            else _encoded(batch, codec, is_transactional)
        )
    return batch.payload


def rows_of(batch: ProducerBatch) -> list[Row]:
    """Return the records of a batch, decoded if the batch is encoded already."""
    if batch.encoded is None:
        writer = batch.writer
        body = memoryview(writer.body(0))
        records = decode_records(body, writer.count, 0, writer.base_timestamp, None, "", 0)
    else:
        records = decode_batch(batch.encoded, 0, len(batch.encoded), "", 0, verify=False)
    return [(record.key, record.value, record.headers, record.timestamp) for record in records]


def row_size(row: Row) -> int:
    """Return an upper limit for the encoded size of one record in a batch, in bytes."""
    return record_size_max(row[0], row[1], row[2])


def _encoded(batch: ProducerBatch, codec: CompressionCodec, is_transactional: bool) -> bytearray:
    encoded = encode_written(
        batch.writer,
        codec=codec,
        producer_id=batch.owner.producer_id,
        producer_epoch=batch.owner.epoch,
        base_sequence=batch.base_sequence,
        is_transactional=is_transactional,
    )
    batch.hold(encoded, batch.count, batch.size)
    return encoded


def _stamped(batch: ProducerBatch, is_transactional: bool) -> Buffer:
    """Write the producer id, epoch and sequence into the encoded batch in place, and return the batch."""
    assert batch.encoded is not None
    if batch.base_sequence >= 0:
        owner = batch.owner
        set_producer(
            batch.encoded,
            0,
            len(batch.encoded),
            owner.producer_id,
            owner.epoch,
            batch.base_sequence,
            is_transactional=is_transactional,
        )
    elif not any(batch.encoded[CRC_POSITION:ATTRIBUTES_POSITION]):  # there is no checksum yet
        refresh_crc(batch.encoded, 0, len(batch.encoded))
    return batch.encoded


def _message_set(batch: ProducerBatch, magic: int, codec: CompressionCodec) -> bytes:
    rows = rows_of(batch)
    if any(row[2] and not _can_do_without(row[2]) for row in rows):
        raise EncodeError(
            "record headers need Kafka 0.11 or newer; the broker is older. "
            "Events can be sent with mode='structured' (K9)"
        )
    return encode_message_set(
        [(key, value, timestamp) for key, value, _, timestamp in rows], magic, codec=codec
    )


def _can_do_without(headers: Sequence[Header]) -> bool:
    """Return True if headers can be dropped: the only one is the content type of a structured CloudEvent."""
    if len(headers) != 1 or headers[0][0] != "content-type":
        return False
    return (headers[0][1] or b"").startswith(b"application/cloudevents+")
