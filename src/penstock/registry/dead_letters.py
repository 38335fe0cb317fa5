"""Dead letters: records whose key or value could not be decoded, with offset, reason and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("field", pa.string()),
        ("reason", pa.string()),
        ("data", pa.binary()),
    ]
)


class DeadLetters:
    """Collects the records that a reader could not decode: the argument ``dead_letters`` of `read_topic`.

    >>> dead = DeadLetters()
    >>> table = read_topic("orders", value="avro", registry="http://localhost:8081", dead_letters=dead)
    >>> dead.table
    """

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add a table with the columns of `penstock.registry.dead_letters.SCHEMA`."""
        if table.num_rows:
            self._tables.append(table)

    @property
    def table(self) -> pa.Table:
        """Return a table of topic, partition, offset, field (``key`` or ``value``), reason, and bytes."""
        return pa.concat_tables(self._tables) if self._tables else SCHEMA.empty_table()

    def __len__(self) -> int:
        return sum(table.num_rows for table in self._tables)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.table.to_pylist())

    def __repr__(self) -> str:
        return f"<DeadLetters: {len(self)}>"
