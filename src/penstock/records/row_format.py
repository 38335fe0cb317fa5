"""Encodes and decodes the records inside a batch of magic 2 as rows: the hot loops of the row API.

The compiled versions are in `native/rows.h` and `native/row_writer.h`. The Python code runs if the compiled
module is missing, and for records that the compiled loops do not handle. It is written for speed: short
varints are read and written inline, and a record without headers is one join of cached bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from penstock.errors import CorruptRecordError
from penstock.headers import Header
from penstock.model import Record, TimestampType
from penstock.records import native
from penstock.records.format.varint import SHORT_MAX, encode_varint, read_unsigned, read_varint, short_varints

RowLike = tuple["bytes | None", "bytes | None", "Iterable[Header]", int]
"""The parts of a record: key, value, headers, timestamp in milliseconds."""

RECORD_OVERHEAD_BYTES = 36
"""The maximum bytes of a record besides its key, value and headers: five varints and an attribute byte."""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

_read_rows = getattr(native.LIBRARY, "read_rows", None)
_write_rows = getattr(native.LIBRARY, "write_rows", None)
"""The compiled loops, or None if not built. They return None for records that only Python code can handle."""


def encode_records(
    records: Sequence[RowLike], base_timestamp: int, offset_deltas: Sequence[int] | None
) -> bytes:
    """Encode records; return their bytes, one record after another."""
    if _write_rows is not None:
        written: bytes | None = _write_rows(records, base_timestamp, offset_deltas)
        if written is not None:
            return written
    short = short_varints()
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
                short[delta] if 0 <= delta < SHORT_MAX else encode_varint(delta),
                short[offset] if offset < SHORT_MAX else encode_varint(offset),
                short[key_size] if key_size < SHORT_MAX else encode_varint(key_size),
                key or b"",
                short[value_size] if value_size < SHORT_MAX else encode_varint(value_size),
                value or b"",
                _encode_headers(headers) if headers else b"\0",
            )
        )
        size = len(record)
        append(short[size] if size < SHORT_MAX else encode_varint(size))
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


class PlainMeter:
    """A counter of the bytes in all batches of a producer; `Meter` is its compiled version, if built."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def add(self, count: int) -> None:
        """Add `count` to the number of bytes in use; a negative `count` is for bytes that were freed."""
        self.used += count


class PlainRowWriter:
    """A batch to which records are added one by one; it stores the rows, and encodes all at the end.

    The compiled class (`native/row_writer.h`) encodes each record when it is added, and stores no rows.
    `outcome` is the result of the batch, which is the result of all its records: `delivery_class(outcome,
    index, time)` returns the delivery object of one record, with its time in milliseconds. Callers hold
    `lock` during all calls except `note` and `put`, which take it themselves.
    """

    __slots__ = (
        "_delivery_class",
        "_dropped",
        "_grant",
        "_is_open",
        "_lane",
        "_lock",
        "_meter",
        "_noted",
        "_outcome",
        "_rows",
        "limit",
        "max_timestamp",
        "size",
    )

    def __init__(
        self,
        limit: int,
        meter: PlainMeter,
        outcome: object,
        delivery_class: Callable[[object, int, int], object],
        lock: AbstractContextManager[object],
    ) -> None:
        self.limit = limit
        """The maximum size of the batch in bytes. A batch of one record may be larger."""
        self.size = 0
        self.max_timestamp = 0
        self._meter = meter
        self._outcome = outcome
        self._delivery_class = delivery_class
        self._rows: list[RowLike] = []
        self._is_open = True
        self._lane: tuple[Mapping[str, object], str, object] | None = None
        self._lock = lock
        self._noted = self._grant = self._dropped = 0

    @property
    def count(self) -> int:
        """The number of records in the batch."""
        return self._dropped or len(self._rows)

    @property
    def base_timestamp(self) -> int:
        """The timestamp of the first record."""
        return self._rows[0][3]

    def add(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header], timestamp: int, size: int
    ) -> int:
        """Add a record of at most `size` encoded bytes; return its index, or -1 if it does not fit.

        A record does not fit if the batch is closed or would have more than `limit` bytes, or if the
        difference between its timestamp and the first record's has more than 64 bits. The caller has checked
        the types of the arguments.
        """
        rows = self._rows
        if not self._is_open or (rows and self.size + size > self.limit):
            return -1
        if rows and not INT64_MIN <= timestamp - rows[0][3] <= INT64_MAX:
            return -1
        if not rows or timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        rows.append((key, value, headers, timestamp))
        self.size += size
        self._meter.used += size
        return len(rows) - 1

    def put(
        self, key: bytes | None, value: bytes | None, headers: Sequence[Header], timestamp: int, size: int
    ) -> object | None:
        """Add a record as `add` does, from any thread; return its delivery object (None: it does not fit)."""
        with self._lock:
            index = self.add(key, value, headers, timestamp, size)
        return None if index < 0 else self._delivery_class(self._outcome, index, timestamp)

    def note(
        self, value: bytes | None, timestamp: int, headers: Sequence[Header] = (), size: int | None = None
    ) -> object | None:
        """Add a record without a key on the fast path (see `open_lane`); return its delivery object.

        Returns None and adds nothing if the record does not fit, memory is full, the fast path is closed, or
        the topic's metadata have changed since it was opened. `timestamp` is in milliseconds since 1970.
        `size` is required with headers. Callable from any thread.
        """
        if type(value) is not bytes and value is not None:
            return None
        if size is None:
            size = RECORD_OVERHEAD_BYTES if value is None else RECORD_OVERHEAD_BYTES + len(value)
        rows = self._rows
        with self._lock:
            lane, meter = self._lane, self._meter
            if (
                lane is None
                or self._noted >= self._grant
                or meter.used >= meter.limit
                or self.size + size > self.limit
                or lane[0].get(lane[1]) is not lane[2]
                or (rows and not INT64_MIN <= timestamp - rows[0][3] <= INT64_MAX)
            ):
                return None
            index = len(rows)
            rows.append((None, value, headers, timestamp))
            if timestamp > self.max_timestamp or not index:
                self.max_timestamp = timestamp
            self.size += size
            self._noted += size
            meter.used += size
        return self._delivery_class(self._outcome, index, timestamp)

    def open_lane(self, topics: Mapping[str, object], topic: str, info: object, grant: int) -> None:
        """Open the fast path of `note` for up to `grant` bytes, as long as `topics[topic]` is `info`."""
        self._lane = (topics, topic, info) if self._is_open and type(topic) is str else None
        self._noted, self._grant = 0, grant

    def close_lane(self) -> int:
        """Close the fast path of `note`; return the number of bytes added on it since `open_lane`."""
        noted, self._noted, self._lane = self._noted, 0, None
        return noted

    def close(self) -> None:
        """Close the batch: no more records can be added."""
        self._is_open = False
        self._lane = None

    def drop(self) -> None:
        """Close the batch and free its records; `count` stays unchanged."""
        self.close()
        self._dropped, self._rows = self.count, []

    def body(self, room: int) -> bytearray:
        """Return `room` zero bytes (space for the batch header), followed by the encoded records.

        Raises:
            ValueError: the records have been dropped.
        """
        if self._dropped:
            raise ValueError("the records have been dropped")
        body = bytearray(room)
        body += encode_records(self._rows, self.base_timestamp, None)
        return body


RowWriter: Any = getattr(native.LIBRARY, "RowWriter", PlainRowWriter)
Meter: Any = getattr(native.LIBRARY, "Meter", PlainMeter)
"""The compiled class, or `PlainMeter` if the former is not built, as for a free-threaded Python. `RowWriter`
is chosen in the same way.
"""


def readable(data: memoryview) -> memoryview | bytes:
    """Return `data` in the type that `decode_some` reads fastest: as bytes if it runs as Python code."""
    return data if _read_rows is not None else bytes(data)


def decode_records(
    data: memoryview | bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    appended_at: int | None,
    topic: str,
    partition: int,
    record_class: type[Record] = Record,
) -> list[Record]:
    """Decode the `count` records in `data`, from a batch with the base offset `base_offset`.

    `appended_at` is the timestamp of all records, or None if each has its own.

    Raises:
        IndexError: the bytes end within a record.
        CorruptRecordError: a record does not follow the format, or bytes are left after the last one.
    """
    records, position = decode_some(
        data, 0, count, base_offset, base_timestamp, appended_at, topic, partition, record_class
    )
    if position != len(data):
        raise CorruptRecordError(f"{len(data) - position} bytes behind the last record")
    return records


def decode_some(
    data: memoryview | bytes,
    position: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    appended_at: int | None,
    topic: str,
    partition: int,
    record_class: type[Record] = Record,
) -> tuple[list[Record], int]:
    """Decode `count` records from `position` on; return (the records as `record_class`, next position).

    `base_offset` and `base_timestamp` come from the batch header; `appended_at` is the timestamp of all
    records, or None if each has its own.

    Raises:
        IndexError: the bytes end inside a record.
        CorruptRecordError: a record does not follow the format.
    """
    timestamp_type = TimestampType.CREATE_TIME if appended_at is None else TimestampType.LOG_APPEND_TIME
    if _read_rows is not None:
        place = (data, position, count, base_offset, base_timestamp, appended_at)
        found: tuple[list[Record], int] | None = _read_rows(
            *place, topic, partition, record_class, timestamp_type
        )
        if found is not None:
            return found
    data = bytes(data)
    size_of_data = len(data)
    new_record = tuple.__new__
    out: list[Record] = []
    append = out.append
    headers: Sequence[Header]
    for _ in range(count):
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
                record_class,
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
    return out, position


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
