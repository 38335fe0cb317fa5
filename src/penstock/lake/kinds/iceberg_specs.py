"""Parse Iceberg's partition transforms: ``day(timestamp)``, ``bucket(16, key)``, ``type``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import ConfigError
from penstock.lake.kinds.manifests import TIME_COLUMNS

_CALL = re.compile(
    r"(year|month|day|hour|bucket|truncate|identity|void)\(\s*(?:(\d+)\s*,\s*)?([^,()]+?)\s*\)"
)


def transforms(texts: Sequence[str], schema: pa.Schema) -> list[tuple[str, Any]]:
    """Parse texts such as ``bucket(16, key)``; return (column, transform of pyiceberg) for each.

    ``date`` and ``hour`` are transforms of the column with the time, unless a column has that name.

    Raises:
        ConfigError: a text is no transform, or names no column.
    """
    from pyiceberg.transforms import parse_transform

    found = []
    for text in texts:
        column, name = text, "identity"
        if match := _CALL.fullmatch(text):
            needs_width = match[1] in ("bucket", "truncate")
            if needs_width != (match[2] is not None):
                raise ConfigError(
                    f"{text!r}: bucket and truncate take a number and a column, others a column"
                )
            column, name = match[3], match[1] + (f"[{match[2]}]" if needs_width else "")
        elif text in ("date", "hour") and text not in schema.names:
            name = "day" if text == "date" else "hour"
            column = next((each for each in TIME_COLUMNS if each in schema.names), TIME_COLUMNS[-1])
        if column not in schema.names:
            raise ConfigError(f"partitions by {text!r}: no column {column!r} among {', '.join(schema.names)}")
        found.append((column, parse_transform(name)))
    return found
