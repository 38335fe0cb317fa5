"""Converts Arrow tables to record batches of a producer: chooses partitions and writes records by column.

This module needs pyarrow and numpy; the first `send_arrow` imports it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.client.config import ProducerConfig
from penstock.client.produce.encoded import EncodedBatch as EncodedBatch
from penstock.client.produce.encoded import TableDelivery as TableDelivery
from penstock.client.produce.encoded import WriteSummary as WriteSummary
from penstock.client.produce.partitioner import PARTITIONERS
from penstock.client.produce.partitioner_columns import (
    UNDECIDED,
    partitions_by_call,
    partitions_by_murmur2,
    rows_by_partition,
    spread,
)
from penstock.errors import ConfigError, EncodeError
from penstock.records.arrow import from_arrow
from penstock.records.columns import RecordColumns
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.encode import encode_columns
from penstock.records.format.batch_header import HEADER_BYTES, RECORD_COUNT_POSITION
from penstock.records.kernels.compiled import Int32s

CHUNK_BYTES = 8 << 20
"""The approximate size in bytes of the chunks in which a table is encoded. Chunks bound the memory, and the
first is sent early."""

FIELDS = ("key", "value", "headers", "partition", "timestamp")
"""The columns of an Arrow table that `send_arrow` reads."""

POSITIONS = frozenset(("topic", "offset", "timestampType"))
"""Columns of a topic's table that may be dropped, because the broker sets them for each record that it
writes."""

UNNAMED_INDEX = "__index_level_"
"""The prefix of pandas' column names for an index without a name."""

_RECORD_COUNT = struct.Struct(">i")

RECORD_EXTRA_BYTES = 10
"""The minimum size in bytes of a record besides key, value and headers: its lengths, deltas and
attributes.

The estimate of the number of batches includes it, so that no batch is left with a few rows."""

SPREAD_ROWS_MIN = 1_000
"""The number of rows up to which rows without a key go to only as many partitions as they fill batches. The
rows of larger chunks go to all partitions.
"""


class ColumnEncoder:
    """Encodes Arrow record batches into batches for the partitions of one topic."""

    def __init__(self, config: ProducerConfig, dice: Callable[[], float]) -> None:
        self._codec = CompressionCodec.from_name(config.compression_type)
        self._batch_bytes_max = min(config.batch_size, config.max_request_size)
        self._partitioner = config.partitioner
        self._turn = int(dice() * 1_000_000)

    def encode(
        self, batch: pa.RecordBatch, count: int, available: Sequence[int], now_ms: int
    ) -> list[EncodedBatch]:
        """Return one Arrow record batch as batches for the partitions of a topic.

        The topic has `count` partitions, `available` of which have leaders. Rows without a timestamp get
        `now_ms`. Checksums are computed when a batch is sent, since they cover its producer id.

        Raises:
            EncodeError: a column has a type that no record can hold.
            ConfigError: a row names a partition that does not exist.
        """
        if not batch.num_rows:
            return []
        columns = from_arrow(batch, timestamp_ms=now_ms)
        partitions = self._partitions(batch, columns, count, available)
        encoded: list[EncodedBatch] = []
        for partition, rows in rows_by_partition(partitions, count):
            encoded += [
                EncodedBatch(partition, data, _RECORD_COUNT.unpack_from(data, RECORD_COUNT_POSITION)[0])
                for data in encode_columns(
                    columns,
                    rows=rows,
                    codec=self._codec,
                    batch_bytes_max=self._batch_bytes_max,
                    has_crc=False,
                )
            ]
        return encoded

    def _partitions(
        self, batch: pa.RecordBatch, columns: RecordColumns, count: int, available: Sequence[int]
    ) -> Int32s:
        rows = columns.row_count
        partitions = _wanted_partitions(batch, count)
        if partitions is None or (partitions == UNDECIDED).any():
            by_key = self._partitions_by_key(columns, count)
            partitions = (
                by_key if partitions is None else np.where(partitions == UNDECIDED, by_key, partitions)
            )
            size = batch.nbytes + RECORD_EXTRA_BYTES * rows
            turns = -(-size // max(1, self._batch_bytes_max - HEADER_BYTES))
            rows_each = -(-rows // max(1, turns))
            # All partitions get something of every chunk, so that all leaders have something to do.
            rows_each = min(rows_each, -(-rows // len(available))) if rows > SPREAD_ROWS_MIN else rows_each
            self._turn = spread(partitions, available, rows_each, self._turn % len(available))
        return partitions

    def _partitions_by_key(self, columns: RecordColumns, count: int) -> Int32s:
        chosen = self._partitioner
        keys, rows = columns.key, columns.row_count
        if chosen == "murmur2_random" and (keys is None or keys.null_count == rows):
            return np.full(rows, UNDECIDED, dtype=np.int32)
        if chosen in ("murmur2", "murmur2_random") and keys is not None:
            return partitions_by_murmur2(keys, count, null_is_empty=chosen == "murmur2")
        call = PARTITIONERS[chosen] if isinstance(chosen, str) else chosen
        partitions = partitions_by_call(keys, rows, count, call)
        _check_partitions(partitions, count)
        return partitions


def oldest_time_ms(data: pa.Table | pa.RecordBatch, fields: Mapping[str, str]) -> int | None:
    """Return a table's oldest timestamp in milliseconds since 1970, or None if it has no timestamps."""
    name = fields.get("timestamp", "timestamp")
    if name not in data.schema.names or not data.num_rows:
        return None
    column = data.column(name)
    oldest = pc.min(column)
    if pa.types.is_timestamp(column.type):
        oldest = pc.cast(oldest, pa.timestamp("ms", tz=column.type.tz), safe=False)
    value: int | None = pc.cast(oldest, pa.int64()).as_py()
    return value


def record_batches(data: pa.Table | pa.RecordBatch, fields: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns that a producer reads, in record batches of about `CHUNK_BYTES`.

    `fields` maps the names in `FIELDS` to names of columns of `data`. A field that it leaves out is read from
    the column of the same name.

    Raises:
        EncodeError: the table has neither a key nor a value, lacks a column that `fields` names, or has a
            column that would be lost.
    """
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        raise EncodeError(f"a pyarrow Table or RecordBatch is needed, not {type(data).__name__}")
    if not isinstance(fields, Mapping):
        raise EncodeError(f"fields is {fields!r}: a mapping is needed, such as {{'key': 'user'}}")
    names = _field_names(data.schema.names, fields)
    return _cut(pa.table({field: data.column(name) for field, name in names.items()}))


def _cut(table: pa.Table) -> Iterator[pa.RecordBatch]:
    if not table.num_rows:
        return
    rows = max(1, table.num_rows * CHUNK_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield from table.slice(start, rows).combine_chunks().to_batches()


def _field_names(present: Sequence[str], fields: Mapping[str, str]) -> dict[str, str]:
    for field, name in fields.items():
        if field not in FIELDS:
            raise EncodeError(f"records have no field {field!r}; they have {', '.join(FIELDS)}")
        if name not in present:
            raise EncodeError(f"there is no column {name!r} for the {field}; there are {', '.join(present)}")
    names = {field: fields.get(field, field) for field in FIELDS}
    found = {field: name for field, name in names.items() if name in present}
    if not found.keys() & {"key", "value"}:
        raise EncodeError(
            f"neither a column 'key' nor 'value' among {', '.join(present) or 'no columns'}: "
            "rename one, or say which column is what"
        )
    lost = [
        name
        for name in present
        if name not in found.values() and name not in POSITIONS and not name.startswith(UNNAMED_INDEX)
    ]
    if lost:
        raise EncodeError(
            f"column {lost[0]!r} would be lost: a record has {', '.join(FIELDS)}. Leave it out, make it part "
            "of the value, or say which column is what, as in fields={'value': " + repr(lost[0]) + "}"
        )
    return found


def _wanted_partitions(batch: pa.RecordBatch, count: int) -> Int32s | None:
    """Return the column `partition`, with `UNDECIDED` for null; None if the batch has no such column."""
    if "partition" not in batch.schema.names:
        return None
    column = batch.column("partition")
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise EncodeError(f"column 'partition' is {column.type}: whole numbers are needed")
    nulls = column.null_count
    partitions = np.array(column.cast(pa.int64()).fill_null(0))
    _check_partitions(partitions, count)
    partitions = partitions.astype(np.int32)
    if nulls:
        partitions[np.asarray(column.is_null())] = UNDECIDED
    return partitions


def _check_partitions(partitions: NDArray[Any], count: int) -> None:
    wrong = np.flatnonzero((partitions < UNDECIDED) | (partitions >= count))
    if len(wrong):
        raise ConfigError(
            f"row {wrong[0]} names partition {partitions[wrong[0]]}; the topic has {count}, 0 to {count - 1}"
        )
