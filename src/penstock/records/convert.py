"""Converts records between magic 0, 1 and 2, for clients that support only a format older than the log's.

Conversion down drops control batches, headers and producer fields, and keeps the codec; magic 0 loses the
timestamps too. Conversion up turns a whole message set into one batch. The rules are those of Apache Kafka up
to 3.9 (KIP-31, KIP-32, KIP-98).
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from penstock.errors import (
    CorruptRecordError,
    DecodeError,
    EncodeError,
    UnsupportedVersionError,
)
from penstock.model import NO_TIMESTAMP, Record, TimestampType
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, iter_records, read_marker
from penstock.records.compression.codecs import (
    CHUNK_RECORDS,
    CompressionCodec,
    UnpackBudget,
    compress,
    quick_level,
)
from penstock.records.format.batch_header import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_BIT,
    MAGIC_POSITION,
    pack_header,
    read_header,
    refresh_crc,
    split_batches,
    verify_crc,
)
from penstock.records.legacy import encode_message, iter_messages, read_message
from penstock.records.message_loops import lowered, raised
from penstock.records.row_format import RowLike, encode_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Buffer

    from penstock.records.legacy import LegacyMessage

_MESSAGE_BYTES = (26, 34)
"""The size in bytes of a message of magic 0 or 1 without its key and value; the index is the magic."""

_DELTA_MAX = (1 << 31) - 1
"""The greatest difference between offsets in one batch: each is stored as an int32 delta from the first."""

_TIME_DELTA_MAX = (1 << 63) - 1
"""The greatest difference between timestamps in a batch: each is stored as an int64 delta from the first."""


def convert_down(
    buffer: Buffer,
    magic: int,
    *,
    first_offset: int = 0,
    verify: bool = False,
    budget: UnpackBudget | None = None,
    enough_bytes: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    unpacks_zstd: bool = False,
    quick_bytes: int = 0,
) -> bytes:
    """Convert the batches and messages in `buffer` to messages of `magic` 0 or 1; return their bytes.

    Messages that already have this magic or an older one are copied. Records of uncompressed batches below
    `first_offset` are left out; a compressed batch becomes one wrapper with all its records. The result may
    be longer than the input, and is empty if there were only control batches. The result ends after the batch
    with which it reaches `enough_bytes`, or before a batch that is damaged, exceeds `budget`, or is
    compressed with zstd; if that batch is the first, the error is raised. `aborted` lists the (producer id,
    first offset) of aborted transactions, as a fetch of committed data does; their batches are left out. With
    `unpacks_zstd`, batches in zstd become uncompressed messages. Gzip batches of up to `quick_bytes` become
    wrappers of level 1: several times as fast as the default, and up to a quarter larger.

    Raises:
        UnsupportedVersionError: the first batch is compressed with zstd, which older magics do not support.
        CorruptRecordError: the layout of the first batch, or its checksum (if `verify`), is wrong.
        UnpackLimitError: the first batch needs more than `budget` allows.
    """
    view = memoryview(buffer)
    if budget is None:
        budget = UnpackBudget()
    out = bytearray()
    aborted = list(aborted)
    transactions = AbortedTransactions(aborted) if aborted else None
    try:
        for start, end, found in split_batches(view):
            if found <= magic:
                out += view[start:end]
            elif found < 2 or not _is_left_out(view, start, end, transactions):
                _convert_one(
                    view, start, end, magic, first_offset, verify, budget, out, unpacks_zstd, quick_bytes
                )
            if enough_bytes is not None and len(out) >= enough_bytes:
                break
    except (DecodeError, UnsupportedVersionError):
        if not out:
            raise
        # What comes before is returned; the next fetch begins here, and gets the error.
    return bytes(out)


def offset_after(buffer: Buffer) -> int:
    """Return the offset after the last whole batch or message in `buffer`.

    Raises:
        CorruptRecordError: `buffer` has no whole batch, or the header of the last one is wrong.
    """
    view = memoryview(buffer)
    last = None
    for start, _, magic in split_batches(view):
        last = start, magic
    if last is None:
        raise CorruptRecordError("no whole batch")
    start, magic = last
    if magic == 2:
        return read_header(view, start).next_offset
    return int.from_bytes(view[start : start + 8], "big", signed=True) + 1


def _convert_one(
    view: memoryview,
    start: int,
    end: int,
    magic: int,
    first_offset: int,
    verify: bool,
    budget: UnpackBudget,
    out: bytearray,
    unpacks_zstd: bool,
    quick_bytes: int,
) -> None:
    """Convert the batch in `view[start:end]` and append the messages to `out`; on an error append nothing."""
    header = None
    if view[start + MAGIC_POSITION] == 2:
        header = read_header(view, start)
        attributes = header.attributes
    else:
        attributes = read_message(view, start, end).attributes
    codec = attributes & CODEC_MASK
    if codec == CompressionCodec.ZSTD:
        if not unpacks_zstd:
            raise UnsupportedVersionError("records compressed with zstd cannot be given to so old a client")
        codec = CompressionCodec.NONE
    if header is not None:
        if verify:
            verify_crc(view, start, end)
            verify = False
        done = lowered(view, start, end, header, magic, codec, first_offset, budget, quick_bytes)
        if done is not None:
            out += done
            return
        if not header.codec:
            budget.take_records(header.record_count)
    chunks = iter_records(view, start, end, "", -1, budget, verify=verify)
    try:
        if codec:
            out += _wrapper(chunks, magic, codec, budget, quick_level(codec, end - start, quick_bytes))
        else:
            out += _messages(chunks, magic, 0, budget, first_offset)
    except EncodeError as error:  # offsets or times that only a broken batch leads to
        raise CorruptRecordError(f"records cannot be written with magic {magic}: {error}") from error


def _is_left_out(view: memoryview, start: int, end: int, transactions: AbortedTransactions | None) -> bool:
    """Return True if the batch of magic 2 in `view[start:end]` is a control batch or was aborted.

    Raises:
        CorruptRecordError: the header or the marker cannot be read.
    """
    header = read_header(view, start)
    if transactions is None or not header.is_transactional:
        return header.is_control
    if header.is_control:
        if read_marker(view, start, end)[0] == ABORT_MARKER:
            transactions.end_transaction(header.producer_id, header.last_offset)
        return True
    return transactions.is_aborted(header.producer_id, header.last_offset)


def _messages(
    chunks: Iterable[Sequence[Record]], magic: int, base: int, budget: UnpackBudget, first_offset: int = 0
) -> bytearray:
    """Encode records as uncompressed messages, without records below `first_offset`.

    The offsets in the messages are relative to `base`.
    """
    out = bytearray()
    for records in chunks:
        budget.take_bytes(sum(_message_size(record, magic) for record in records))
        for record in records:
            if record.offset >= first_offset:
                appended = (
                    LOG_APPEND_BIT
                    if magic == 1 and record.timestamp_type == TimestampType.LOG_APPEND_TIME
                    else 0
                )
                out += encode_message(
                    magic, record.offset - base, record.key, record.value, record.timestamp, appended
                )
    return out


def _message_size(record: Record, magic: int) -> int:
    """Return the size in bytes of a record when it is encoded as a message of `magic`."""
    return _MESSAGE_BYTES[magic] + len(record.key or b"") + len(record.value or b"")


def _wrapper(
    chunks: Iterator[Sequence[Record]], magic: int, codec: int, budget: UnpackBudget, level: int | None
) -> bytes:
    """Encode records as one compressed message; return no bytes if there are no records."""
    first = next(chunks, None)
    if not first:
        return b""
    facts = _Facts(first[0])
    inner = _messages(
        facts.watch(chain([first], chunks)), magic, first[0].offset if magic == 1 else 0, budget
    )
    value = compress(codec, inner, level, broken_lz4_checksum=magic == 0)
    appended = (
        LOG_APPEND_BIT if magic == 1 and first[0].timestamp_type == TimestampType.LOG_APPEND_TIME else 0
    )
    return encode_message(magic, facts.last_offset, None, value, facts.latest_ms, codec | appended)


class _Facts:
    """Finds the last offset and the latest timestamp of records while their compressed message is encoded."""

    def __init__(self, first: Record) -> None:
        self.last_offset = first.offset
        self.latest_ms = first.timestamp

    def watch(self, chunks: Iterable[Sequence[Record]]) -> Iterator[Sequence[Record]]:
        for records in chunks:
            self.last_offset = records[-1].offset
            self.latest_ms = max(self.latest_ms, max(record.timestamp for record in records))
            yield records


def convert_up(
    buffer: Buffer,
    *,
    codec: int | None = None,
    base_offset: int | None = None,
    timestamp_ms: int = NO_TIMESTAMP,
    partition_leader_epoch: int = -1,
    verify: bool = True,
    budget: UnpackBudget | None = None,
    mixed: bool = False,
    nested: bool = False,
    may_be_cut: bool = False,
    quick_bytes: int = 0,
) -> bytes:
    """Convert the messages of magic 0 and 1 in `buffer` to one batch of magic 2; return its bytes.

    `codec` is the codec of the batch, by default the one of the first message. If `base_offset` is given,
    offsets count from there, as a broker assigns them to a produced message set; otherwise the messages keep
    their offsets. Messages of magic 0 get `timestamp_ms`. If `mixed`, a wrapper may contain messages of a
    magic other than its own; if `nested`, a wrapper may contain wrappers. If `may_be_cut`, a partial message
    at the end is dropped. A batch in gzip is compressed at level 1 if the set has at most `quick_bytes`.

    Raises:
        CorruptRecordError: there is no message, there is a batch of magic 2 or a partial message, the layout
            is wrong, or (if `verify`) a checksum is wrong.
        UnpackLimitError: the messages contain more than `budget` allows.
    """
    view = memoryview(buffer)
    if budget is None:
        budget = UnpackBudget()
    if base_offset is not None and timestamp_ms == NO_TIMESTAMP and verify:
        batch = raised(
            view, codec, base_offset, partition_leader_epoch, budget, mixed, may_be_cut, quick_bytes
        )
        if batch is not None:
            return batch
    growing = _GrowingBatch(base_offset, timestamp_ms, budget)
    position = 0
    for count, (start, end, magic) in enumerate(split_batches(view), 1):
        if magic > 1:
            raise CorruptRecordError("a batch of magic 2 among messages")
        if codec is None:
            codec = read_message(view, start, end).codec
        for message in iter_messages(
            view, start, end, verify=verify, budget=budget, mixed=mixed, nested=nested
        ):
            growing.add(message)
        position = end
        if count % CHUNK_RECORDS == 0:
            budget.take_records(CHUNK_RECORDS)
    if position != view.nbytes and not may_be_cut:
        raise CorruptRecordError(f"a message set with {view.nbytes - position} bytes of a partial message")
    try:
        codec = codec or CompressionCodec.NONE
        return growing.finish(codec, partition_leader_epoch, quick_level(codec, view.nbytes, quick_bytes))
    except EncodeError as error:  # offsets or times that only a broken message set leads to
        raise CorruptRecordError(f"messages at offset {growing.first_offset}: {error}") from error


class _GrowingBatch:
    """A batch of magic 2 under construction, to which messages are added.

    Messages are encoded in chunks, so that only few of them are Python objects at a time.
    """

    def __init__(self, base_offset: int | None, timestamp_ms: int, budget: UnpackBudget) -> None:
        self._assigned = base_offset
        self._timestamp_ms = timestamp_ms
        self._budget = budget
        self._body = bytearray()
        self._rows: list[RowLike] = []
        self._deltas: list[int] = []
        self._count = 0
        self._last_offset = -1
        self._base_ms = self._latest_ms = NO_TIMESTAMP
        self._type = TimestampType.CREATE_TIME
        self.first_offset = 0

    def add(self, message: LegacyMessage) -> None:
        """Add one message to the batch.

        Raises:
            CorruptRecordError: the message's offset is not after the last one, or too far from the first.
            UnpackLimitError: the batch grows beyond the budget.
        """
        offset = message.offset if self._assigned is None else self._assigned + self._count
        timestamp = self._timestamp_ms if message.magic == 0 else message.timestamp
        if not self._count:
            self.first_offset = offset
            self._base_ms = self._latest_ms = timestamp
        elif offset <= self._last_offset:
            raise CorruptRecordError("a message set whose offsets do not ascend")
        if abs(timestamp - self._base_ms) > _TIME_DELTA_MAX:
            raise CorruptRecordError(f"times {self._base_ms} and {timestamp} are too far apart for one batch")
        if offset - self.first_offset > _DELTA_MAX:
            raise CorruptRecordError(
                f"a message set from offset {self.first_offset} to {offset}: too far for one batch"
            )
        self._last_offset = offset
        self._latest_ms = max(self._latest_ms, timestamp)
        if message.timestamp_type == TimestampType.LOG_APPEND_TIME:
            self._type = TimestampType.LOG_APPEND_TIME
        key = None if message.key is None else bytes(message.key)
        value = None if message.value is None else bytes(message.value)
        self._rows.append((key, value, (), timestamp))
        self._deltas.append(offset - self.first_offset)
        self._count += 1
        if len(self._rows) >= CHUNK_RECORDS:
            self._write()

    def _write(self) -> None:
        written = encode_records(self._rows, self._base_ms, self._deltas)
        self._budget.take_bytes(len(written))
        self._body += written
        self._rows = []
        self._deltas = []

    def finish(self, codec: int, partition_leader_epoch: int, level: int | None) -> bytes:
        """Return the encoded batch with all messages that were added.

        Raises:
            CorruptRecordError: there were no messages.
            EncodeError: a number does not fit into its field.
        """
        if not self._count:
            raise CorruptRecordError("a message set without a whole message")
        self._write()
        body: bytes | bytearray = self._body
        if codec:
            body = compress(codec, body, level)
        batch = bytearray(HEADER_BYTES + len(body))
        batch[HEADER_BYTES:] = body
        pack_header(
            batch,
            base_offset=self.first_offset,
            partition_leader_epoch=partition_leader_epoch,
            attributes=codec | (LOG_APPEND_BIT if self._type == TimestampType.LOG_APPEND_TIME else 0),
            record_count=self._count,
            base_timestamp=self._base_ms,
            max_timestamp=self._latest_ms,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            last_offset_delta=self._last_offset - self.first_offset,
        )
        refresh_crc(batch, 0, len(batch))
        return bytes(batch)
