"""Apply the `on_batches` functions of hooks to batches of records.

A batch is decoded only if a function reads `Batch.table`. A changed batch keeps the producer, transaction,
offsets and compression of its header.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.gateway.hooks.hook import Batch, ClientRequest, Refused
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import (
    HEADER_BYTES,
    BatchHeader,
    pack_header,
    read_header,
    refresh_crc,
    split_batches,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.gateway.hooks.hook import OnBatches

MAGIC = 2


def changed_records(
    records: Any, request: ClientRequest, topic: str, partition: int, functions: Sequence[OnBatches]
) -> Any:
    """Apply hook functions to one partition's batches; return the records, the same object if unchanged.

    Raises:
        Refused: a function refuses the records, or reads `Batch.table` of messages of format 0 or 1.
        DecodeError, EncodeError: the records, or what a function returns, cannot be decoded or encoded.
    """
    chunks: list[Any] = []
    behind = 0
    has_changed = False
    for start, end, magic in split_batches(records):
        chunk = memoryview(records)[start:end]
        behind = end
        header = read_header(records, start) if magic == MAGIC else None
        if header is None or not (header.is_control or not header.record_count):
            changed = _changed(chunk, header, request, topic, partition, functions)
            has_changed = has_changed or changed is not chunk
            chunk = changed
        chunks.append(chunk)
    if not has_changed:
        return records
    chunks.append(memoryview(records)[behind:])
    return b"".join(chunks)


def _changed(
    chunk: Any,
    header: BatchHeader | None,
    request: ClientRequest,
    topic: str,
    partition: int,
    functions: Sequence[OnBatches],
) -> Any:
    table: pa.Table | None = None

    def read() -> pa.Table:
        if header is None:
            raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", "a hook is for records of format 2 alone")
        return _decoded(chunk, topic, partition) if table is None else table

    for function in functions:
        returned = function(Batch(request, topic, partition, read))
        if returned is not None:
            table = returned
    if table is None:
        return chunk
    if header is None:
        raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", "a hook is for records of format 2 alone")
    return _encoded(table, header, is_produced=request.api == "Produce")


def _decoded(chunk: Any, topic: str, partition: int) -> pa.Table:
    import pyarrow as pa

    from penstock.records.arrow import to_arrow
    from penstock.records.decode import decode_columns

    return pa.Table.from_batches([to_arrow(decode_columns(chunk), topic, partition)])


def _encoded(table: Any, header: BatchHeader, *, is_produced: bool) -> bytes | bytearray | memoryview:
    """Encode the table that replaces the records of a batch; `header` is the header of the original batch.

    Raises:
        Refused: the table of a Produce is empty; the number of an idempotent producer's records has changed;
            or the offsets of fetched records have changed.
    """
    rows = table.num_rows
    if is_produced:
        if not rows:
            raise Refused("INVALID_RECORD", "no record of a batch is left")
        if header.producer_id >= 0 and rows != header.record_count:
            # The broker counts the producer's sequence numbers, and so does the producer.
            raise Refused("INVALID_RECORD", "a hook may not leave out records of an idempotent producer")
        return _written(table, header, header.base_offset)
    if not rows:
        return _emptied(header)
    offsets = table.column("offset").to_pylist()
    first, last = header.base_offset, header.base_offset + header.last_offset_delta
    if offsets[0] < first or offsets[-1] > last or any(a >= b for a, b in itertools.pairwise(offsets)):
        raise Refused("UNKNOWN_SERVER_ERROR", "a hook may not change the offsets of records that are read")
    if offsets == list(range(first, last + 1)):
        return _written(table, header, first)
    return _written_by_rows(table, header, [offset - first for offset in offsets])


def _written(table: Any, header: BatchHeader, base_offset: int) -> memoryview:
    """Encode a table as a batch with consecutive offsets; all other properties are those of `header`."""
    from penstock.records.arrow import from_arrow
    from penstock.records.encode import encode_columns

    written = encode_columns(
        from_arrow(_one_batch(table)),
        codec=header.codec,
        batch_bytes_max=1 << 31,
        base_offset=base_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        timestamp_type=header.timestamp_type,
        is_transactional=header.is_transactional,
        partition_leader_epoch=header.partition_leader_epoch,
    )
    return written[0]


def _written_by_rows(table: Any, header: BatchHeader, deltas: list[int]) -> bytearray:
    """Encode a table as a batch with gaps between its offsets, like a batch after compaction."""
    from penstock.records.arrow import from_arrow

    columns = from_arrow(_one_batch(table))
    nothing: list[Any] = [None] * len(deltas)
    keys = nothing if columns.key is None else columns.key.to_list()
    values = nothing if columns.value is None else columns.value.to_list()
    headers: list[Any] = [()] * len(deltas) if columns.headers is None else columns.headers.to_list()
    assert columns.timestamps is not None
    rows = list(zip(keys, values, headers, columns.timestamps.tolist(), strict=True))
    batch = bytearray(
        encode_batch(
            rows,
            base_offset=header.base_offset,
            codec=header.codec,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            timestamp_type=header.timestamp_type,
            is_transactional=header.is_transactional,
            partition_leader_epoch=header.partition_leader_epoch,
            offset_deltas=deltas,
        )
    )
    _pack(batch, read_header(batch), header, len(rows))
    return batch


def _one_batch(table: Any) -> pa.RecordBatch:
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        return table
    return table.combine_chunks().to_batches()[0]


def _emptied(header: BatchHeader) -> bytearray:
    """Return a batch without records, as compaction leaves it, so that consumers skip its offsets."""
    batch = bytearray(HEADER_BYTES)
    _pack(batch, header, header, 0)
    return batch


def _pack(batch: bytearray, times: BatchHeader, header: BatchHeader, count: int) -> None:
    """Write the header of a batch, with the last offset of `header` even if the last record was removed."""
    pack_header(
        batch,
        base_offset=header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=header.attributes & ~0x40,
        record_count=count,
        base_timestamp=times.base_timestamp,
        max_timestamp=times.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        last_offset_delta=header.last_offset_delta,
    )
    refresh_crc(batch, 0, len(batch))
