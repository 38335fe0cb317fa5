"""A conversion of record columns to single records, with which tests compare columns and rows."""

from __future__ import annotations

from penstock.model import Record, TimestampType
from penstock.records.columns import RecordColumns


def rows_of(columns: RecordColumns, topic: str, partition: int) -> list[Record]:
    """Return the records of columns that have all been decoded."""
    assert columns.offsets is not None
    assert columns.timestamps is not None
    assert columns.timestamp_types is not None
    assert columns.key is not None
    assert columns.value is not None
    assert columns.headers is not None
    return [
        Record(
            topic,
            partition,
            int(columns.offsets[row]),
            int(columns.timestamps[row]),
            TimestampType(int(columns.timestamp_types[row])),
            columns.key[row],
            columns.value[row],
            columns.headers[row] or (),
        )
        for row in range(columns.row_count)
    ]
