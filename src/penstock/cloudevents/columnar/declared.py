"""Declared extensions (names and types): a table of them for the compiled kernels, and their Arrow types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.cloudevents.columnar.arrays import read_only
from penstock.cloudevents.columnar.kernels.header_read_kernels import (
    BINARY_KIND,
    BOOLEAN_KIND,
    INTEGER_KIND,
    KEY_KIND,
    REFERENCE_KIND,
    STRING_KIND,
    TIME_KIND,
    URI_KIND,
)
from penstock.cloudevents.types import AttributeType
from penstock.records.kernels.compiled import Bytes, Int32s

TIMESTAMP = pa.timestamp("us", tz="UTC")

ARROW_TYPES: Mapping[AttributeType, Any] = {
    AttributeType.STRING: pa.string(),
    AttributeType.INTEGER: pa.int32(),
    AttributeType.BOOLEAN: pa.bool_(),
    AttributeType.BINARY: pa.binary(),
    AttributeType.URI: pa.string(),
    AttributeType.URI_REFERENCE: pa.string(),
    AttributeType.TIMESTAMP: TIMESTAMP,
}
"""A dict from the declared type of an extension to the Arrow type of its column ``ce_<name>``."""

_KINDS = {
    AttributeType.STRING: STRING_KIND,
    AttributeType.INTEGER: INTEGER_KIND,
    AttributeType.BOOLEAN: BOOLEAN_KIND,
    AttributeType.BINARY: BINARY_KIND,
    AttributeType.URI: URI_KIND,
    AttributeType.URI_REFERENCE: REFERENCE_KIND,
    AttributeType.TIMESTAMP: TIME_KIND,
}


class Declared(NamedTuple):
    """Declared extensions for kernels: all names in one array, the end and the type of each name."""

    names: Bytes
    ends: Int32s
    kinds: Int32s


def declared_table(extension_types: Mapping[str, AttributeType], *, strict: bool) -> Declared:
    """Return declared extensions as a table for kernels.

    With `strict`, an empty `partitionkey` is invalid.
    """
    return _table(tuple(extension_types.items()), strict)


@lru_cache(maxsize=16)
def _table(types: tuple[tuple[str, AttributeType], ...], strict: bool) -> Declared:
    """Return the result of `declared_table`, from a cache because building it is slow."""
    kinds = {name: _KINDS[kind] for name, kind in types}
    if strict and kinds.get("partitionkey", STRING_KIND) == STRING_KIND:
        kinds["partitionkey"] = KEY_KIND
    names = [name.encode() for name in kinds]
    return Declared(
        read_only(np.frombuffer(b"".join(names) or b"\0", np.uint8)),
        read_only(np.cumsum([0, *map(len, names)], dtype=np.int32)),
        read_only(np.fromiter(kinds.values(), np.int32, len(kinds))),
    )


def type_of_column(column_type: Any) -> AttributeType | None:
    """Return the CloudEvents type of a typed extension column, or None for a text column."""
    types = pa.types
    if types.is_boolean(column_type):
        return AttributeType.BOOLEAN
    if types.is_integer(column_type):
        return AttributeType.INTEGER
    if types.is_timestamp(column_type):
        return AttributeType.TIMESTAMP
    if types.is_binary(column_type) or types.is_large_binary(column_type):
        return AttributeType.BINARY
    return None
