"""The JSON lines of ``consume -J``, made from columns: a batch of records in one compiled pass.

The lines equal those of `envelopes.json_printer`, byte for byte. The module imports numpy, so it is used only
for many records.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from penstock.cli.envelopes import TIMESTAMP_NAMES
from penstock.model import TimestampType
from penstock.records.columns import NO_BYTES
from penstock.records.kernels.json_kernels import GROWTH, HEADER_BYTES, LINE_BYTES, put_lines

if TYPE_CHECKING:
    from penstock.model import TopicPartition
    from penstock.records.columns import BytesColumn, RecordColumns
    from penstock.records.kernels.compiled import Bytes


def _kinds() -> tuple[bytes, list[int]]:
    data, ends = b"", []
    for kind in range(-1, max(TimestampType) + 1):
        name = TIMESTAMP_NAMES.get(TimestampType(kind), "unknown")
        data += f',"tstype":"{name}","ts":'.encode()
        ends.append(len(data))
    return data, ends


_KIND_BYTES, _ENDS = _kinds()
_KINDS = np.frombuffer(_KIND_BYTES, dtype=np.uint8).copy()
_KIND_ENDS = np.array(_ENDS, dtype=np.int64)


def json_lines(columns: RecordColumns, tp: TopicPartition, last: int | None = None) -> memoryview:
    """Return the first `last` rows (default: all) as JSON lines; every column must have been decoded.

    Raises:
        ValueError: a column is missing.
    """
    offsets, timestamps, types = columns.offsets, columns.timestamps, columns.timestamp_types
    key, value, headers = columns.key, columns.value, columns.headers
    if offsets is None or timestamps is None or types is None or key is None or value is None:
        raise ValueError("lines need every column")
    if headers is None:
        raise ValueError("lines need the headers")
    last = columns.row_count if last is None else last
    start = json.dumps(
        {"topic": tp.topic, "partition": tp.partition}, ensure_ascii=False, separators=(",", ":")
    )
    head = np.frombuffer(f'{start[:-1]},"offset":'.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    texts = (key, value, headers.names, headers.values)
    room = (
        last * (LINE_BYTES + len(head))
        + len(headers.names) * HEADER_BYTES
        # A header's name stands there twice where a value of its record is in base64.
        + 2 * GROWTH * sum(int(column.offsets[-1] - column.offsets[0]) for column in texts)
    )
    target = np.empty(room, dtype=np.uint8)
    size = put_lines(
        target, head.copy(), _KINDS, _KIND_ENDS, 0, last, offsets, timestamps, types,
        key.data, key.offsets, _bits(key), key.validity_offset,
        value.data, value.offsets, _bits(value), value.validity_offset,
        headers.offsets, headers.names.data, headers.names.offsets, headers.values.data,
        headers.values.offsets, _bits(headers.values), headers.values.validity_offset,
    )  # fmt: skip
    return target[:size].data


def rows_before(columns: RecordColumns, stop_ms: int | None) -> tuple[int, bool]:
    """Return the number of rows before the first row with a timestamp of `stop_ms` or later.

    The second value is True if there is such a row.
    """
    if stop_ms is None or columns.timestamps is None:
        return columns.row_count, False
    late = np.flatnonzero(columns.timestamps >= stop_ms)
    return (int(late[0]), True) if len(late) else (columns.row_count, False)


def _bits(column: BytesColumn) -> Bytes:
    return NO_BYTES if column.validity is None else column.validity
