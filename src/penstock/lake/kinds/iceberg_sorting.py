"""The sort order of Iceberg tables: set it from texts like ``day(timestamp) desc``, and sort files by it.

Needs pyiceberg.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.kinds.iceberg_specs import transforms

_SORT_ORDER_ID = 15
"""The index at which pyiceberg's `DataFile` record has its field `sort_order_id`."""


def set_order(update: Any, texts: Sequence[str], schema: pa.Schema) -> None:
    """Set a table's sort order to `texts` with pyiceberg's `update`. Nulls are first if ascending, else last.

    Raises:
        ConfigError: a text is no transform, or names no column.
    """
    from pyiceberg.table.sorting import NullOrder

    for text in texts:
        name, _, direction = text.strip().rpartition(" ")
        if direction.lower() not in ("asc", "desc") or not name:
            name, direction = text.strip(), "asc"
        ((column, transform),) = transforms([name.strip()], schema)
        if direction.lower() == "desc":
            update.desc(column, transform, NullOrder.NULLS_LAST)
        else:
            update.asc(column, transform, NullOrder.NULLS_FIRST)


def has_order(metadata: Any, texts: Sequence[str]) -> bool:
    """Return True if a table has the sort order in `texts`.

    Raises:
        ConfigError: a text is no transform, or names no column.
    """
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    schema = metadata.schema()
    wanted = _Fields(schema)
    set_order(wanted, texts, schema_to_pyarrow(schema, include_field_ids=False))
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    return order is not None and list(order.fields) == wanted.fields


class _Fields:
    """Collects sort fields through `asc` and `desc`, the methods of pyiceberg's sort updates."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self.fields: list[Any] = []

    def asc(self, column: str, transform: Any, nulls: Any) -> None:
        self._add(column, transform, "asc", nulls)

    def desc(self, column: str, transform: Any, nulls: Any) -> None:
        self._add(column, transform, "desc", nulls)

    def _add(self, column: str, transform: Any, direction: str, nulls: Any) -> None:
        from pyiceberg.table.sorting import SortDirection, SortField

        number = self._schema.find_field(column).field_id
        self.fields.append(SortField(number, transform, SortDirection(direction), nulls))


def in_order(rows: pa.Table, metadata: Any) -> pa.Table:
    """Return rows sorted by the table's sort order; unchanged if the table has none.

    Nested fields, and columns that the rows do not have, are ignored.
    """
    from pyiceberg.table.sorting import NullOrder, SortDirection

    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    if order is None or not order.fields:
        return rows
    schema = metadata.schema()
    keys = []
    # Nulls have a place for each key, so each key with nulls is two: whether it is null, and the value.
    for field in order.fields:
        name = schema.find_column_name(field.source_id)
        if name not in rows.column_names:
            continue
        values = field.transform.pyarrow_transform(schema.find_field(field.source_id).field_type)(
            rows.column(name)
        )
        nulls_first = field.null_order == NullOrder.NULLS_FIRST
        if values.null_count:
            keys.append((pc.is_null(values), "descending" if nulls_first else "ascending"))
        keys.append((values, "ascending" if field.direction == SortDirection.ASC else "descending"))
    if not keys:
        return rows
    names = [f"key{number}" for number in range(len(keys))]
    table = pa.table(dict(zip(names, (values for values, _ in keys), strict=True)))
    sort_keys = [(name, direction) for name, (_, direction) in zip(names, keys, strict=True)]
    return rows.take(pc.sort_indices(table, sort_keys=sort_keys))


def note_order(files: Sequence[Any], metadata: Any) -> None:
    """Set the id of the table's sort order in data files whose rows are sorted by it."""
    if metadata.default_sort_order_id:
        for file in files:
            file[_SORT_ORDER_ID] = metadata.default_sort_order_id
