"""Record batches of magic 2: the header, the frame around the records, and the records as rows.

Promises: a reader never looks past the bytes it was given, and whatever bytes come in, the outcome
is a value or a `DecodeError`. Imports neither numpy nor anything else that is slow to load: the
broker and the log live on this module. Columns are made by `decode` and `encode`.

Layout: protocol definition of KIP-98 (batch) and KIP-82 (headers). All numbers are big-endian; the
varints inside records are zig-zag.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import CorruptRecordError, EncodeError
from penstock.model import Header, Record, TimestampType
from penstock.records.compression import Codec, compress, decompress
from penstock.records.crc import crc32c

if TYPE_CHECKING:
    from typing_extensions import Buffer

_HEADER = struct.Struct(">qiibIhiqqqhii")
_ENTRY = struct.Struct(">qi4xb")
_PRODUCER = struct.Struct(">qhi")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_UINT32 = struct.Struct(">I")

HEADER_BYTES = _HEADER.size
"""Bytes of a batch before its first record: 61."""

LENGTH_EXTRA_BYTES = 12
"""Bytes of a batch, or of a message of magic 0 or 1, that its own length field does not count."""

_LENGTH_MIN = {0: 14, 1: 22, 2: HEADER_BYTES - LENGTH_EXTRA_BYTES}
CRC_AT = 17
_ATTRIBUTES_AT, _MAX_TIMESTAMP_AT, _PRODUCER_AT = 21, 35, 43
_ENTRY_BYTES = _ENTRY.size

CODEC_MASK = 0x07
LOG_APPEND_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

RECORD_BYTES_MIN = 7
"""Length, attributes, two deltas, two lengths and the header count, one byte each."""

DECOMPRESSED_BYTES_MAX = 1 << 30
"""What one compressed batch may grow to where the caller names no limit."""

ABORT_MARKER, COMMIT_MARKER = 0, 1


class BatchHeader(NamedTuple):
    """The fixed part of a batch, field by field as on the wire."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int:
        """Bits 0-2. A number: an unknown codec is an error only for whoever reads the records."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return (
            TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_BIT else TimestampType.CREATE_TIME
        )

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_delete_horizon(self) -> bool:
        """Compaction has put its delete horizon (KIP-534) in the place of the base timestamp."""
        return bool(self.attributes & DELETE_HORIZON_BIT)

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_EXTRA_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; it wraps from 2^31 - 1 to 0. -1 where there is none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


# --- frames -------------------------------------------------------------------------------------------


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header of the batch of magic 2 that begins at `position`.

    Raises:
        CorruptRecordError: the bytes end too early, the magic is not 2, or a count is impossible.
    """
    try:
        header = BatchHeader._make(_HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptRecordError(
            f"a batch header needs {HEADER_BYTES} bytes behind position {position}"
        ) from None
    if header.magic != 2:
        raise CorruptRecordError(f"a batch of magic {header.magic} where magic 2 is due")
    if header.batch_length < _LENGTH_MIN[2]:
        raise CorruptRecordError(f"a batch of length {header.batch_length}, the least is {_LENGTH_MIN[2]}")
    if header.record_count < 0 or header.last_offset_delta < 0:
        raise CorruptRecordError(
            f"a batch with {header.record_count} records and last offset delta {header.last_offset_delta}"
        )
    return header


def split_batches(buffer: Buffer) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, magic) of every whole batch, or message of magic 0 or 1, in `buffer`.

    Stops quietly at a partial one at the end: a fetch response may be cut anywhere.

    Raises:
        CorruptRecordError: an unknown magic, or a length too small for it.
    """
    size = memoryview(buffer).nbytes
    start = 0
    unpack = _ENTRY.unpack_from
    while start + _ENTRY_BYTES <= size:
        _, length, magic = unpack(buffer, start)
        if magic not in _LENGTH_MIN or length < _LENGTH_MIN[magic]:
            raise CorruptRecordError(f"a batch of magic {magic} and length {length} at position {start}")
        end = start + LENGTH_EXTRA_BYTES + length
        if end > size:
            return
        yield start, end, magic
        start = end


def verify_crc(buffer: Buffer, start: int, end: int) -> None:
    """Compare the checksum of the batch in `buffer[start:end]` with its bytes.

    Raises:
        CorruptRecordError: they differ.
    """
    expected = _UINT32.unpack_from(buffer, start + CRC_AT)[0]
    actual = crc32c(memoryview(buffer)[start + _ATTRIBUTES_AT : end])
    if actual != expected:
        raise CorruptRecordError(
            f"the batch at position {start} has checksum {actual:#010x}, its header says {expected:#010x}"
        )


def set_base_offset(buffer: bytearray | memoryview, start: int, base_offset: int) -> None:
    """Write the base offset of the batch at `start`. The checksum does not cover it."""
    _INT64.pack_into(buffer, start, base_offset)


def set_leader_epoch(buffer: bytearray | memoryview, start: int, leader_epoch: int) -> None:
    """Write the partition leader epoch of the batch at `start`. The checksum does not cover it."""
    _INT32.pack_into(buffer, start + LENGTH_EXTRA_BYTES, leader_epoch)


def set_max_timestamp_log_append(buffer: bytearray | memoryview, start: int, end: int, now_ms: int) -> None:
    """Make `now_ms` the time of every record in the batch, as a broker with log-append time does."""
    attributes = _INT16.unpack_from(buffer, start + _ATTRIBUTES_AT)[0]
    _INT16.pack_into(buffer, start + _ATTRIBUTES_AT, attributes | LOG_APPEND_BIT)
    _INT64.pack_into(buffer, start + _MAX_TIMESTAMP_AT, now_ms)
    refresh_crc(buffer, start, end)


def set_producer(
    buffer: bytearray | memoryview,
    start: int,
    end: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> None:
    """Make the batch one of an idempotent producer: its id, its epoch, the sequence of the first record."""
    _PRODUCER.pack_into(buffer, start + _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    refresh_crc(buffer, start, end)


def refresh_crc(buffer: bytearray | memoryview, start: int, end: int) -> None:
    """Write the checksum that the bytes of the batch have now."""
    _UINT32.pack_into(buffer, start + CRC_AT, crc32c(memoryview(buffer)[start + _ATTRIBUTES_AT : end]))


def pack_header(
    batch: bytearray | memoryview,
    *,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    record_count: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    last_offset_delta: int | None = None,
) -> None:
    """Write the header in front of the records that `batch` already holds, with a checksum of 0.

    Raises:
        EncodeError: a number does not fit into its field.
    """
    try:
        _HEADER.pack_into(
            batch,
            0,
            base_offset,
            len(batch) - LENGTH_EXTRA_BYTES,
            partition_leader_epoch,
            2,
            0,
            attributes,
            record_count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        )
    except struct.error as error:
        raise EncodeError(f"a batch header cannot be written: {error}") from None


def records_bytes(
    buffer: Buffer, start: int, end: int, header: BatchHeader, limit_bytes: int = DECOMPRESSED_BYTES_MAX
) -> memoryview:
    """Return the records of a batch, decompressed, back to back.

    Raises:
        CorruptRecordError: they do not decompress, exceed `limit_bytes`, or cannot be as many as the
            header says.
    """
    records = memoryview(buffer)[start + HEADER_BYTES : end]
    if header.codec and header.record_count:
        records = decompress(header.codec, records, limit_bytes)
    if header.record_count * RECORD_BYTES_MIN > len(records):
        raise CorruptRecordError(f"{header.record_count} records do not fit into {len(records)} bytes")
    return records


# --- rows to a batch ----------------------------------------------------------------------------------

RowLike = tuple["bytes | None", "bytes | None", "Iterable[Header]", int]
"""What a record is made of: key, value, headers, timestamp in milliseconds."""


def encode_varint(number: int) -> bytes:
    """Write a signed number of up to 64 bits as a zig-zag varint."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_SHORT_MAX = 1 << 13
_short_varints: list[bytes] = []


def _short_varint_table() -> list[bytes]:
    """Return the varints of 0 to 8191, and that of -1 as the last: index -1, where Python looks for it."""
    if not _short_varints:
        _short_varints.extend([*map(encode_varint, range(_SHORT_MAX)), encode_varint(-1)])
    return _short_varints


def record_size_max(key: bytes | None, value: bytes | None, headers: Sequence[Header] = ()) -> int:
    """Return how many bytes a record takes in an uncompressed batch at most (its deltas may take less)."""
    size = 36 + (len(key) if key else 0) + (len(value) if value else 0)
    for name, content in headers:
        size += 10 + 3 * len(name) + (len(content) if content else 0)
    return size


def encode_batch(
    records: Sequence[RowLike],
    *,
    base_offset: int = 0,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = -1,
    offset_deltas: Sequence[int] | None = None,
) -> bytes:
    """Write one batch of magic 2.

    `offset_deltas` gives offsets with gaps (default 0, 1, 2, ...), ascending, the last one being the
    batch's last offset delta.

    Raises:
        EncodeError: no records, a value of a wrong type, or one that no field can hold.
    """
    if not records:
        raise EncodeError("a batch needs at least one record")
    timestamps = [record[3] for record in records]
    try:
        body = _encode_records(records, timestamps[0], offset_deltas)
        last_offset_delta = len(records) - 1 if offset_deltas is None else offset_deltas[-1]
        attributes = (
            codec
            | (LOG_APPEND_BIT if timestamp_type == TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
        )
        if codec:
            body = compress(codec, body, level)
        batch = bytearray(HEADER_BYTES + len(body))
        batch[HEADER_BYTES:] = body
        pack_header(
            batch,
            base_offset=base_offset,
            partition_leader_epoch=partition_leader_epoch,
            attributes=attributes,
            record_count=len(records),
            base_timestamp=timestamps[0],
            max_timestamp=max(timestamps),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            last_offset_delta=last_offset_delta,
        )
    except EncodeError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise EncodeError(f"a record cannot be written: {error}") from error
    refresh_crc(batch, 0, len(batch))
    return bytes(batch)


def _encode_records(
    records: Sequence[RowLike], base_timestamp: int, offset_deltas: Sequence[int] | None
) -> bytes:
    """Write the records back to back.

    The hot loop of the row API: short numbers come from a table, and a record without headers is
    one join of ready pieces.
    """
    short = _short_varint_table()
    out: list[bytes] = []
    append = out.append
    join = b"".join
    for index, (key, value, headers, timestamp) in enumerate(records):
        delta = timestamp - base_timestamp
        offset = index if offset_deltas is None else offset_deltas[index]
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        record = join(
            (
                b"\0",
                short[delta] if 0 <= delta < _SHORT_MAX else encode_varint(delta),
                short[offset] if offset < _SHORT_MAX else encode_varint(offset),
                short[key_size] if key_size < _SHORT_MAX else encode_varint(key_size),
                key or b"",
                short[value_size] if value_size < _SHORT_MAX else encode_varint(value_size),
                value or b"",
                _encode_headers(headers) if headers else b"\0",
            )
        )
        size = len(record)
        append(short[size] if size < _SHORT_MAX else encode_varint(size))
        append(record)
    return join(out)


def _encode_headers(headers: Iterable[Header]) -> bytes:
    pieces = [b""]
    for name, value in headers:
        encoded = name.encode()
        pieces += (encode_varint(len(encoded)), encoded)
        pieces += (encode_varint(-1),) if value is None else (encode_varint(len(value)), value)
        pieces[0] += b"\0"
    pieces[0] = encode_varint(len(pieces[0]))
    return b"".join(pieces)


# --- a batch to rows ----------------------------------------------------------------------------------


def read_unsigned(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """Read a varint of at most `bits` bits, not yet un-zig-zagged; return (number, next position).

    Raises:
        IndexError: the bytes run out.
        CorruptRecordError: the number runs on.
    """
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise CorruptRecordError(f"a varint of more than {bits} bits")
    if result >> bits:
        raise CorruptRecordError(f"a varint of more than {bits} bits")
    return result, position


def read_varint(data: bytes, position: int, bits: int = 32) -> tuple[int, int]:
    """Read a zig-zag varint of at most `bits` bits; return (number, next position). Raises likewise."""
    result, position = read_unsigned(data, position, bits)
    return (result >> 1) ^ -(result & 1), position


def decode_batch(
    buffer: Buffer,
    start: int,
    end: int,
    topic: str,
    partition: int,
    *,
    verify: bool = True,
    limit_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> list[Record]:
    """Return the records of the batch, or of the message of magic 0 or 1, in `buffer[start:end]`.

    Everything in it, control records too: whoever hands records to an application looks at the
    header first, or uses `rows.decode_rows`. Header names that are not UTF-8 come with U+FFFD in the
    place of the broken bytes.

    Raises:
        CorruptRecordError: wrong checksum (if `verify`), wrong layout, or more than `limit_bytes`
            after decompression.
    """
    view = memoryview(buffer)
    if end - start < _ENTRY_BYTES or end > view.nbytes:
        raise CorruptRecordError(f"a batch of {end - start} bytes is cut short")
    if view[start + 16] != 2:
        from penstock.records.legacy import decode_entry

        return decode_entry(view, start, end, topic, partition, verify=verify, limit_bytes=limit_bytes)
    header = read_header(view, start)
    if header.size != end - start:
        raise CorruptRecordError(f"a batch of {header.size} bytes, {end - start} are given")
    if verify:
        verify_crc(view, start, end)
    data = bytes(records_bytes(view, start, end, header, limit_bytes))
    try:
        return _decode_records(data, header, topic, partition)
    except IndexError:
        raise CorruptRecordError(f"the records of batch {header.base_offset} are cut short") from None


def _decode_records(data: bytes, header: BatchHeader, topic: str, partition: int) -> list[Record]:
    """Read `record_count` records from `data`.

    The hot loop of the row API: numbers of one or two bytes, nearly all there are, are read in place.
    """
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    timestamp_type = header.timestamp_type
    appended_at = header.max_timestamp if header.attributes & LOG_APPEND_BIT else None
    size_of_data = len(data)
    new_record = tuple.__new__
    out: list[Record] = []
    append = out.append
    position = 0
    headers: Sequence[Header]
    for _ in range(header.record_count):
        length = data[position]
        position += 1
        if length > 0x7F:
            more = data[position]
            position += 1
            length = length & 0x7F | more << 7
            if more > 0x7F:
                length, position = read_unsigned(data, position - 2)
        end = position + ((length >> 1) ^ -(length & 1))
        if end > size_of_data or length & 1:
            raise CorruptRecordError(f"a record that ends at {end} of {size_of_data} bytes")
        position += 1  # attributes: none are defined
        delta = data[position]
        position += 1
        if delta > 0x7F:
            more = data[position]
            position += 1
            delta = delta & 0x7F | more << 7
            if more > 0x7F:
                delta, position = read_unsigned(data, position - 2, 64)
        offset = data[position]
        position += 1
        if offset > 0x7F:
            more = data[position]
            position += 1
            offset = offset & 0x7F | more << 7
            if more > 0x7F:
                offset, position = read_unsigned(data, position - 2)
        size = data[position]
        position += 1
        if size > 0x7F:
            more = data[position]
            position += 1
            size = size & 0x7F | more << 7
            if more > 0x7F:
                size, position = read_unsigned(data, position - 2)
        if size & 1:
            key = None
        else:
            size >>= 1
            key = data[position : position + size]
            position += size
        size = data[position]
        position += 1
        if size > 0x7F:
            more = data[position]
            position += 1
            size = size & 0x7F | more << 7
            if more > 0x7F:
                size, position = read_unsigned(data, position - 2)
        if size & 1:
            value = None
        else:
            size >>= 1
            value = data[position : position + size]
            position += size
        if data[position]:
            headers, position = _decode_headers(data, position, end)
        else:
            headers = ()
            position += 1
        if position != end:
            raise CorruptRecordError(f"a record ends {position - end:+} bytes from where its length says")
        append(
            new_record(
                Record,
                (
                    topic,
                    partition,
                    base_offset + ((offset >> 1) ^ -(offset & 1)),
                    base_timestamp + ((delta >> 1) ^ -(delta & 1)) if appended_at is None else appended_at,
                    timestamp_type,
                    key,
                    value,
                    headers,
                ),
            )
        )
    if position != size_of_data:
        raise CorruptRecordError(f"{size_of_data - position} bytes behind the last record")
    return out


def _decode_headers(data: bytes, position: int, end: int) -> tuple[list[Header], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= (end - position) // 2:
        raise CorruptRecordError(f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if not 0 <= size <= end - position:
            raise CorruptRecordError(f"a header name of {size} bytes, {end - position} are left")
        name = data[position : position + size].decode(errors="replace")
        size, position = read_varint(data, position + size)
        if size > end - position:
            raise CorruptRecordError(f"a header value of {size} bytes, {end - position} are left")
        headers.append((name, None if size < 0 else data[position : position + size]))
        position += max(size, 0)
    return headers, position


# --- control batches ----------------------------------------------------------------------------------


def read_marker(buffer: Buffer, start: int, end: int) -> tuple[int, int]:
    """Return (type, coordinator epoch) of the control batch in `buffer[start:end]`.

    The type is `ABORT_MARKER`, `COMMIT_MARKER` or a number of KRaft's; the epoch is -1 where the
    type has none. Longer keys and values than today's are fine.

    Raises:
        CorruptRecordError: no control record, or one too short.
    """
    records = decode_batch(buffer, start, end, "", -1, verify=False)
    if not records:
        raise CorruptRecordError("a control batch without a record")
    key, value = records[0].key, records[0].value
    if key is None or len(key) < 4:
        raise CorruptRecordError("a control record whose key is too short")
    kind = _INT16.unpack_from(key, 2)[0]
    if kind not in (ABORT_MARKER, COMMIT_MARKER):
        return kind, -1
    if value is None or len(value) < 6:
        raise CorruptRecordError("a transaction marker whose value is too short")
    return kind, _INT32.unpack_from(value, 2)[0]


def encode_marker(
    kind: int,
    *,
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    partition_leader_epoch: int = -1,
) -> bytes:
    """Write the control batch that ends a transaction (`ABORT_MARKER` or `COMMIT_MARKER`)."""
    return encode_batch(
        [(struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator_epoch), (), timestamp)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )
