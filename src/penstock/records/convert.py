"""Records from one magic to another: for fetchers and producers older than the log, and the other way.

Down: control batches, headers and producer fields are lost, the codec stays; magic 0 loses the
timestamps too. Up: a whole message set becomes one batch.
The rules are those of Apache Kafka up to 3.9 (KIP-31, KIP-32, KIP-98).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import CorruptRecordError, EncodeError, UnsupportedVersionError
from penstock.model import NO_TIMESTAMP, Record, TimestampType
from penstock.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DECOMPRESSED_BYTES_MAX,
    decode_batch,
    encode_batch,
    read_header,
    split_batches,
)
from penstock.records.compression import Codec
from penstock.records.legacy import encode_message_set, iter_messages, read_message

if TYPE_CHECKING:
    from typing_extensions import Buffer

_DELTA_MAX = (1 << 31) - 1
"""How far apart the offsets of one batch can be: they are kept as int32 beside the first."""


def convert_down(
    buffer: Buffer,
    magic: int,
    *,
    first_offset: int = 0,
    verify: bool = False,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> bytes:
    """Return the batches and messages in `buffer` as messages of `magic` 0 or 1.

    What is of that magic or an older one already stays as it is. Of uncompressed batches the records
    below `first_offset` are left out; a compressed batch becomes one wrapper with all its records.
    The result is longer than the input at times, and empty where only control batches were.

    Raises:
        UnsupportedVersionError: the first batch is compressed with zstd, which older magics do not know.
            Before a later one the result ends.
        CorruptRecordError: the layout, or a checksum (if `verify`), is wrong.
    """
    view = memoryview(buffer)
    out: list[bytes] = []
    for start, end, found in split_batches(view):
        if found <= magic:
            out.append(bytes(view[start:end]))
            continue
        if found == 2:
            attributes = read_header(view, start).attributes
            if attributes & CONTROL_BIT:
                continue
        else:
            attributes = read_message(view, start, end).attributes
        codec = attributes & CODEC_MASK
        if codec == Codec.ZSTD:
            if out:
                break  # what comes before is told; the next fetch begins here
            raise UnsupportedVersionError("records compressed with zstd cannot be given to so old a client")
        records = decode_batch(view, start, end, "", -1, verify=verify, limit_bytes=limit_bytes)
        if not codec:
            records = [record for record in records if record.offset >= first_offset]
        if records:
            out.append(_message_set(records, magic, codec))
    return b"".join(out)


def _message_set(records: list[Record], magic: int, codec: int) -> bytes:
    try:
        return encode_message_set(
            [(record.key, record.value, record.timestamp) for record in records],
            magic,
            codec=codec,
            offsets=[record.offset for record in records],
            timestamp_type=records[0].timestamp_type,
        )
    except EncodeError as error:  # offsets or times that only a broken batch leads to
        raise CorruptRecordError(f"records at offset {records[0].offset}: {error}") from error


def convert_up(
    buffer: Buffer,
    *,
    codec: int | None = None,
    base_offset: int | None = None,
    timestamp_ms: int = NO_TIMESTAMP,
    partition_leader_epoch: int = -1,
    verify: bool = True,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
    mixed: bool = False,
) -> bytes:
    """Return the messages of magic 0 and 1 in `buffer` as one batch of magic 2.

    `codec` is the batch's, by default the one of the first message. With a `base_offset`, offsets
    count from there, as a broker assigns them to a producer's set; without, they stay, gaps and all.
    Messages of magic 0 get `timestamp_ms`. Where `mixed`, a wrapper may hold messages of another magic.

    Raises:
        CorruptRecordError: nothing in it, a batch of magic 2 among it, a partial message, wrong layout
            or (if `verify`) a wrong checksum.
    """
    view = memoryview(buffer)
    rows: list[tuple[bytes | None, bytes | None, tuple[()], int]] = []
    offsets: list[int] = []
    timestamp_type = TimestampType.CREATE_TIME
    position = 0
    for start, end, magic in split_batches(view):
        if magic > 1:
            raise CorruptRecordError("a batch of magic 2 among messages")
        if codec is None:
            codec = read_message(view, start, end).codec
        for message in iter_messages(view, start, end, verify=verify, limit_bytes=limit_bytes, mixed=mixed):
            key = None if message.key is None else bytes(message.key)
            value = None if message.value is None else bytes(message.value)
            rows.append((key, value, (), timestamp_ms if message.magic == 0 else message.timestamp))
            offsets.append(message.offset)
            if message.timestamp_type == TimestampType.LOG_APPEND_TIME:
                timestamp_type = TimestampType.LOG_APPEND_TIME
        position = end
    if not rows or position != view.nbytes:
        raise CorruptRecordError(f"a message set with {view.nbytes - position} bytes of a partial message")
    if base_offset is not None:
        offsets = list(range(base_offset, base_offset + len(rows)))
    first = offsets[0]
    if any(later <= sooner for sooner, later in pairwise(offsets)):
        raise CorruptRecordError("a message set whose offsets do not ascend")
    if offsets[-1] - first > _DELTA_MAX:
        raise CorruptRecordError(f"a message set from offset {first} to {offsets[-1]}: too far for one batch")
    try:
        return encode_batch(
            rows,
            base_offset=first,
            codec=codec or Codec.NONE,
            timestamp_type=timestamp_type,
            partition_leader_epoch=partition_leader_epoch,
            offset_deltas=[offset - first for offset in offsets],
        )
    except EncodeError as error:  # offsets or times that only a broken message set leads to
        raise CorruptRecordError(f"messages at offset {first}: {error}") from error
