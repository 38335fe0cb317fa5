"""Rows of an upsert: keeps the last row of each key, and marks rows without a value as deletions."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

DELETED_COLUMN = "_deleted"
"""A temporary column of booleans, which no table has: true if a row deletes the table's row with the same
key.
"""


def with_deletions(rows: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    """Return rows with the column `DELETED_COLUMN` added, which is true where `values` is null."""
    return rows.append_column(DELETED_COLUMN, values.is_null())


def last_of_each(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key. Rows of a partition must be in offset order."""
    numbered = rows.select(list(key)).append_column("_row", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([("_row", "max")]).column("_row_max")
    return rows.take(last.sort())


def kept_rows(rows: pa.Table) -> pa.Table:
    """Return the rows that are not deletions, without the column `DELETED_COLUMN`."""
    return rows.filter(pc.invert(rows.column(DELETED_COLUMN))).drop_columns([DELETED_COLUMN])
