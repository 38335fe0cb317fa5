"""Decodes batches of any magic into columns, with compiled kernels.

A buffer is decoded in groups of batches of about a megabyte, so that a group is still in the processor's
cache for the next step: list its batches, compare checksums, decompress what is compressed into a scratch
buffer, find the fields of every record, copy the requested columns.

Guarantees: control batches and aborted transactions are never returned; rows outside the offset range are
removed; any bytes give columns or a `DecodeError`; and memory is proportional to the data. A partial batch at
the end of a buffer is ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.model import COLUMN_NAMES
from penstock.records.aborted import AbortedTransactions
from penstock.records.batch import ABORT_MARKER, read_marker
from penstock.records.columns import RecordColumns, empty
from penstock.records.compression.codecs import (
    BYTES_OPTION,
    RECORDS_OPTION,
    UNPACKED_BYTES_MAX,
    UNPACKED_RECORDS_MAX,
    CompressionCodec,
    UnpackBudget,
    decompress,
    decompress_into,
    room_for,
)
from penstock.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_BIT,
    RECORD_BYTES_MIN,
    TRANSACTIONAL_BIT,
    split_batches,
)
from penstock.records.format.crc import crc32c
from penstock.records.growing import GrowingColumns, problem
from penstock.records.kernels import decode_kernels as kernels
from penstock.records.kernels.compiled import Bytes, Ints
from penstock.records.legacy import LegacyMessage, flattened, inner_messages, read_message, verify_message_crc

if TYPE_CHECKING:
    from typing_extensions import Buffer

GROUP_BYTES = 1 << 20
"""The total bytes of the batches that are decoded together: one or two times a second-level CPU cache."""

LIMIT_BYTES = 1 << 31
"""The default limit in bytes for the decompressed size of all compressed batches of one call."""

BATCH_BYTES = 1 << 20
"""The default size in bytes of each `RecordColumns` from `iter_columns`: fastest for Spark and Arrow
readers.
"""

_TABLE_LINES = 1024
_OFFSET_MAX = (1 << 63) - 1
_MESSAGE_BYTES_MIN = 26


class WholeBatches(NamedTuple):
    """A buffer that must contain only whole batches, as a sealed segment does, and its end offset.

    A partial batch at its end is an error. Offsets that do not ascend, or that reach `end_offset`, are
    errors, too.
    """

    data: Buffer
    end_offset: int
    """The exclusive upper limit of the offsets in the buffer."""


def decode_columns(
    buffers: Sequence[Buffer] | Buffer,
    *,
    columns: Collection[str] = COLUMN_NAMES,
    start_offset: int = 0,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    verify_crcs: bool = True,
    limit_bytes: int = LIMIT_BYTES,
    limit_records: int = UNPACKED_RECORDS_MAX,
) -> RecordColumns:
    """Decode the records in `buffers` (whole batches of one partition, in offset order) into columns.

    `columns` are names of `model.COLUMN_NAMES` (``topic`` and ``partition`` are not in the data and
    cost nothing). `end_offset` is exclusive. `aborted` lists (producer id, first offset) of aborted
    transactions, as a fetch response does; without `aborted`, uncommitted data are read.

    Raises:
        CorruptRecordError: a checksum or the layout is wrong. UnpackLimitError: all compressed batches
        together have more than `limit_bytes`, or one of them has more than `limit_records`. DecodeError: a
        column has more than 2 GiB. ValueError: a column name is unknown.
    """
    decoder = _Decoder(
        buffers, columns, start_offset, end_offset, aborted, verify_crcs, limit_bytes, limit_records
    )
    for _ in decoder.steps():
        pass
    return decoder.finish()


def iter_columns(
    buffers: Iterable[Buffer | WholeBatches] | Buffer,
    *,
    columns: Collection[str] = COLUMN_NAMES,
    start_offset: int = 0,
    end_offset: int | None = None,
    aborted: Iterable[tuple[int, int]] = (),
    verify_crcs: bool = True,
    limit_bytes: int = UNPACKED_BYTES_MAX,
    limit_records: int = UNPACKED_RECORDS_MAX,
    batch_bytes: int = BATCH_BYTES,
    keep_last: bool = False,
) -> Iterator[RecordColumns]:
    """Yield the same records as `decode_columns`, in parts of about `batch_bytes`, in bounded memory.

    A buffer may be given as `WholeBatches`: then a partial batch in it is an error.

    A part has at least one batch of the log, of any size. With `keep_last`, the last part may be empty, and
    has the next offset; no other part is empty. `limit_bytes` and `limit_records` apply to each compressed
    batch. Raises the same errors as `decode_columns`.
    """
    decoder = _Decoder(
        buffers,
        columns,
        start_offset,
        end_offset,
        aborted,
        verify_crcs,
        limit_bytes,
        limit_records,
        min(batch_bytes, GROUP_BYTES),
        batch_bytes,
    )
    try:
        for size_bytes in decoder.steps():
            if size_bytes >= batch_bytes:
                yield decoder.finish()
                decoder.restart()
    except UnpackLimitError:
        before = decoder.finish()
        if before.row_count:
            yield before
        raise
    rest = decoder.finish()
    if rest.row_count or keep_last:
        yield rest


class _Decoder:
    """The state of a call that decodes buffers: the current position, and the columns decoded so far."""

    def __init__(
        self,
        buffers: Iterable[Buffer | WholeBatches] | Buffer,
        columns: Collection[str],
        start_offset: int,
        end_offset: int | None,
        aborted: Iterable[tuple[int, int]],
        verify_crcs: bool,
        limit_bytes: int,
        limit_records: int,
        group_bytes: int = GROUP_BYTES,
        piece_bytes: int = 0,
    ) -> None:
        if isinstance(buffers, (bytes, bytearray, memoryview)):
            buffers = (buffers,)
        unknown = set(columns) - set(COLUMN_NAMES)
        if unknown:
            raise ValueError(
                f"no column is called {', '.join(sorted(unknown))}; known: {', '.join(COLUMN_NAMES)}"
            )
        self._buffers = cast("Iterable[Buffer | WholeBatches]", buffers)
        self._columns = columns
        self._first_offset = start_offset
        self._end_offset = _OFFSET_MAX if end_offset is None else end_offset
        aborted = list(aborted)
        self._aborted = AbortedTransactions(aborted) if aborted else None
        self._verify = verify_crcs
        self._limit_bytes = limit_bytes
        self._limit_records = limit_records
        self._left_bytes = limit_bytes
        self._group_bytes = group_bytes
        self._piece_bytes = piece_bytes
        self._walk: Ints = np.zeros(kernels.WALK_SIZE, dtype=np.int64)
        self._walk[kernels.NEXT_OFFSET] = start_offset
        self._scratch: Bytes = np.empty(0, dtype=np.uint8)
        self._bytes_known = 0
        if isinstance(buffers, Sequence):
            self._bytes_known = sum(memoryview(cast("Buffer", buffer)).nbytes for buffer in buffers)
        self._rows = GrowingColumns(columns, input_bytes=0 if piece_bytes else self._bytes_known)
        self._bytes_done = 0
        self._whole_to = self._last_offset = -1

    def finish(self) -> RecordColumns:
        """Return the columns decoded so far, or since the last `restart`."""
        next_offset = max(int(self._walk[kernels.NEXT_OFFSET]), self._first_offset)
        return self._rows.finish(min(next_offset, self._end_offset))

    def restart(self) -> None:
        """Begin with new, empty columns, after `finish` has returned the previous ones."""
        self._rows = GrowingColumns(self._columns, before=self._rows)

    def steps(self) -> Iterator[int]:
        """Decode the groups of batches; after each group, yield the size in bytes of the columns so far."""
        for buffer in self._buffers:
            self._whole_to = -1
            if isinstance(buffer, WholeBatches):
                buffer, self._whole_to = buffer
            self._last_offset = -1
            whole = memoryview(buffer).nbytes
            if not whole:
                continue
            data: Bytes = np.frombuffer(memoryview(buffer), dtype=np.uint8)
            data.flags.writeable = False  # one type of array, so that kernels are compiled once
            table: Ints = np.empty(
                (min(_TABLE_LINES, len(data) // HEADER_BYTES + 1), kernels.TABLE_COLUMNS), dtype=np.int64
            )
            while True:
                outcome = kernels.walk_batches(
                    data, 0, self._group_bytes, self._first_offset, self._end_offset, table, self._walk
                )
                size = int(self._walk[kernels.POSITION])
                self._bytes_done += size
                lines = int(self._walk[kernels.LINES])
                if lines:
                    if self._whole_to >= 0:
                        self._check_order(table, lines)
                    yield from self._take_batches(data, table, lines)
                data = data[size:]
                if outcome == kernels.LEGACY:
                    taken = yield from self._take_messages(data)
                    data = data[taken:]
                    if not taken:
                        self._check_end(data, whole)
                        break
                elif outcome == kernels.DONE:
                    self._check_end(data, whole)
                    break
                elif outcome != kernels.OK:
                    raise problem(outcome, f"byte {whole - len(data)}")

    def _check_order(self, table: Ints, lines: int) -> None:
        """Raise CorruptRecordError if offsets in `WholeBatches` do not ascend or reach its end offset."""
        firsts, lasts = table[:lines, kernels.BASE_OFFSET], table[:lines, kernels.LAST_OFFSET]
        previous = np.concatenate(([self._last_offset], lasts[:-1]))
        wrong = np.flatnonzero((firsts <= previous) | (lasts < firsts) | (lasts >= self._whole_to))
        if len(wrong):
            line = int(wrong[0])
            raise CorruptRecordError(
                f"offsets {firsts[line]} to {lasts[line]} after {previous[line]}, and before {self._whole_to}"
            )
        self._last_offset = int(lasts[-1])

    def _check_end(self, rest: Bytes, size: int) -> None:
        """Raise CorruptRecordError if bytes of `WholeBatches` are left but the end offset is not reached."""
        if self._whole_to >= 0 and len(rest):
            next_offset = int(self._walk[kernels.NEXT_OFFSET])
            if not self._end_offset <= next_offset <= self._whole_to:
                raise CorruptRecordError(
                    f"no whole batch at byte {size - len(rest)} of {size}, before offset {self._whole_to}"
                )

    def _share_done(self, spans: int, records: int, rest: float) -> float:
        """Return the fraction of the input, or of the part to yield, that is decoded after a step.

        The step decodes `records` records in `spans` bytes, and up to `rest` bytes may follow these. The
        fraction is used to estimate the sizes of arrays.
        """
        if not self._piece_bytes:
            return min(self._bytes_done / self._bytes_known, 1.0) if self._bytes_known else 1.0
        added = max(self._rows.likely_size(spans, records), 1)
        size = self._rows.size_bytes + added
        steps = -(-max(self._piece_bytes - size, 0) // added)
        return size / (size + min(steps, rest / max(spans, 1)) * added)

    def _rest(self) -> float:
        """Return the number of input bytes after the batches that were listed last; infinity if unknown."""
        return max(self._bytes_known - self._bytes_done, 0) if self._bytes_known else inf

    # --- magic 2 ---

    def _take_batches(self, data: Bytes, table: Ints, lines: int) -> Iterator[int]:
        """Decode the batches listed in `table`; after each step, yield the size in bytes of the columns."""
        seen, records = int(self._walk[kernels.ATTRIBUTES_SEEN]), int(self._walk[kernels.RECORDS])
        if self._verify:
            _verify_crcs(data, table, lines)
        if seen & CONTROL_BIT or (self._aborted is not None and seen & TRANSACTIONAL_BIT):
            lines = self._drop_uncommitted(data, table, lines)
            records = int(table[:lines, kernels.COUNT].sum())
        if seen & CODEC_MASK:
            yield from self._take_compressed(data, table, lines)
        else:
            self._scan(data, table, lines, records, self._rest())
            yield self._rows.size_bytes

    def _scan(self, data: Bytes, table: Ints, lines: int, records: int, rest: float) -> None:
        spans = int((table[:lines, kernels.END] - table[:lines, kernels.RECORDS_AT]).sum())
        self._rows.take(
            kernels.scan_records,
            data,
            table,
            lines,
            records,
            self._first_offset,
            self._end_offset,
            spans,
            self._share_done(spans, records, rest),
        )

    def _drop_uncommitted(self, data: Bytes, table: Ints, lines: int) -> int:
        """Remove control batches and aborted batches from the table; return its remaining lines."""
        kept = 0
        for line in range(lines):
            attributes = int(table[line, kernels.ATTRIBUTES])
            producer_id = int(table[line, kernels.PRODUCER_ID])
            last_offset = int(table[line, kernels.LAST_OFFSET])
            if attributes & CONTROL_BIT:
                if self._aborted is not None and attributes & TRANSACTIONAL_BIT:
                    start, end = int(table[line, kernels.BATCH_AT]), int(table[line, kernels.END])
                    if read_marker(data.data, start, end)[0] == ABORT_MARKER:
                        self._aborted.end_transaction(producer_id, last_offset)
                continue
            if (
                self._aborted is not None
                and attributes & TRANSACTIONAL_BIT
                and self._aborted.is_aborted(producer_id, last_offset)
            ):
                continue
            table[kept] = table[line]
            kept += 1
        return kept

    def _take_compressed(self, data: Bytes, table: Ints, lines: int) -> Iterator[int]:
        """Decompress the listed batches into the scratch buffer and scan their records, one group at a time.

        Yields the bytes of the columns so far after each group, because small compressed batches may become
        large.
        """
        view = data.data
        first = filled = records = taken = 0
        listed_end = int(table[lines - 1, kernels.END]) if lines else 0

        def scan(end: int) -> None:
            scratch = self._scratch[:filled]
            scratch.flags.writeable = False
            rest = (self._rest() + listed_end - compressed_end) * filled / max(taken, 1)
            self._scan(scratch, table[first:], end - first, records, rest)

        for line in range(lines):
            batch = table[line]
            codec, count = int(batch[kernels.ATTRIBUTES]) & CODEC_MASK, int(batch[kernels.COUNT])
            compressed_end = int(batch[kernels.END])
            compressed = view[int(batch[kernels.RECORDS_AT]) : compressed_end]
            try:
                if codec and count > self._limit_records:
                    raise self._too_many(count)
                end = self._decompress(codec, compressed, filled)
            except UnpackLimitError as error:
                if line > first:  # what comes before is handed out
                    scan(line)
                offset = self._walk[kernels.NEXT_OFFSET] = int(batch[kernels.BASE_OFFSET])
                raise UnpackLimitError(f"the compressed batch at offset {offset}: {error}") from None
            if count * RECORD_BYTES_MIN > end - filled:
                raise CorruptRecordError(f"{count} records do not fit into {end - filled} bytes")
            batch[kernels.RECORDS_AT], batch[kernels.END] = filled, end
            filled = end
            records += count
            taken += len(compressed)
            if filled >= self._group_bytes or line == lines - 1:
                scan(line + 1)
                first, filled, records, taken = line + 1, 0, 0, 0
                walked = self._walk[kernels.NEXT_OFFSET]
                if line < lines - 1:  # a piece may end here: it does not know of the batches behind
                    self._walk[kernels.NEXT_OFFSET] = int(batch[kernels.LAST_OFFSET]) + 1
                yield self._rows.size_bytes
                self._walk[kernels.NEXT_OFFSET] = walked

    def _too_many(self, count: int) -> UnpackLimitError:
        return UnpackLimitError(
            f"it has {count} records, more than {self._limit_records}; the limit is {RECORDS_OPTION}"
        )

    def _too_large(self) -> UnpackLimitError:
        return UnpackLimitError(
            f"more than {self._limit_bytes} bytes of records when decompressed; the limit is {BYTES_OPTION}"
        )

    def _decompress(self, codec: int, compressed: memoryview, at: int) -> int:
        """Decompress a batch to position `at` of the scratch buffer; return the position after its data."""
        if self._piece_bytes:
            self._left_bytes = self._limit_bytes
        limit = self._left_bytes
        try:
            if codec == CompressionCodec.GZIP:  # its size is not known before it is done
                whole = decompress(codec, compressed, limit)
                codec, compressed = CompressionCodec.NONE, whole
            room = len(compressed) if codec == CompressionCodec.NONE else room_for(codec, compressed, limit)
        except UnpackLimitError:
            raise self._too_large() from None
        if at + room > len(self._scratch):
            larger: Bytes = empty(max(at + room, 2 * self._group_bytes), np.uint8)
            larger[:at] = self._scratch[:at]
            self._scratch = larger
        try:
            size = decompress_into(codec, compressed, self._scratch.data[at : at + room], limit)
        except UnpackLimitError:
            raise self._too_large() from None
        self._left_bytes -= size
        return at + size

    # --- magic 0 and 1 ---

    def _take_messages(self, data: Bytes) -> Generator[int, None, int]:
        """Decode the messages of magic 0 and 1 at the beginning of `data`; return their size in bytes.

        Yields the bytes of the columns so far after each step.
        """
        view = data.data
        run_start = position = 0
        for start, end, magic in split_batches(view):
            if magic > 1:
                break
            if self._verify:
                verify_message_crc(view, start, end)
            message = read_message(view, start, end)
            if message.offset >= self._end_offset and not message.codec:
                self._walk[kernels.NEXT_OFFSET] = message.offset
                break
            before = int(self._walk[kernels.NEXT_OFFSET])
            self._walk[kernels.NEXT_OFFSET] = min(message.offset + 1, _OFFSET_MAX)
            if message.codec:
                self._scan_run(data[run_start:start])
                if message.offset >= self._first_offset:
                    self._take_wrapper(message, before)
                run_start = end
            elif end - run_start >= self._group_bytes:
                self._scan_run(data[run_start:end])
                run_start = end
            self._bytes_done += end - position
            position = end
            if run_start == end:
                yield self._rows.size_bytes
        self._scan_run(data[run_start:position])
        yield self._rows.size_bytes
        return position

    def _scan_run(self, run: Bytes) -> None:
        """Decode `run`, the bytes of consecutive uncompressed messages of magic 0 or 1."""
        if len(run):
            self._scan_messages(run, 0, -1, 0, 0)

    def _take_wrapper(self, wrapper: LegacyMessage, before: int) -> None:
        """Decode the messages inside a compressed message (wrapper).

        If an UnpackLimitError is raised, the reader can continue at offset `before`.

        `before` is the offset to read next if UnpackLimitError is raised for the wrapper.
        """
        if self._piece_bytes:
            self._left_bytes = self._limit_bytes
        budget = UnpackBudget(self._left_bytes, self._limit_records)
        try:
            inner, delta, has_wrappers = inner_messages(
                wrapper, budget, verify=self._verify, nested=wrapper.magic == 0
            )
            if has_wrappers:
                again = UnpackBudget(self._left_bytes, self._limit_records)
                inner = memoryview(flattened(wrapper, again, verify=self._verify))
        except UnpackLimitError as error:
            self._walk[kernels.NEXT_OFFSET] = before
            raise UnpackLimitError(f"the compressed message at offset {wrapper.offset}: {error}") from None
        self._left_bytes = budget.bytes_left
        run: Bytes = np.frombuffer(inner, dtype=np.uint8)
        run.flags.writeable = False
        self._scan_messages(run, delta, wrapper.magic, wrapper.attributes & LOG_APPEND_BIT, wrapper.timestamp)

    def _scan_messages(
        self, run: Bytes, offset_delta: int, magic: int, attributes: int, timestamp: int
    ) -> None:
        table: Ints = np.zeros((1, kernels.TABLE_COLUMNS), dtype=np.int64)
        table[0, kernels.END] = len(run)
        table[0, kernels.BASE_OFFSET] = offset_delta
        table[0, kernels.MAGIC] = magic
        table[0, kernels.ATTRIBUTES] = attributes
        table[0, kernels.TIME] = timestamp
        messages = len(run) // _MESSAGE_BYTES_MIN
        self._rows.take(
            kernels.scan_messages,
            run,
            table,
            1,
            messages,
            self._first_offset,
            self._end_offset,
            len(run),
            self._share_done(len(run), messages, self._rest()),
        )


def _verify_crcs(data: Bytes, table: Ints, lines: int) -> None:
    """Verify the checksums of the listed batches, which cover all bytes from the attributes on."""
    positions = table[:lines, kernels.BATCH_AT].tolist()
    ends = table[:lines, kernels.END].tolist()
    expected = table[:lines, kernels.CRC].tolist()
    for line in range(lines):
        actual = crc32c(data[positions[line] + ATTRIBUTES_POSITION : ends[line]].data)
        if actual != expected[line]:
            raise CorruptRecordError(
                f"the batch with base offset {table[line, kernels.BASE_OFFSET]} has checksum {actual:#010x}, "
                f"its header says {expected[line]:#010x}"
            )
