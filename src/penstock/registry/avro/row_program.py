"""Writes rows as Avro with compiled code, which executes a program of nested tuples, made from each schema.

The compiled function takes dictionaries whose values have exactly the schema's types. All other rows are left
to fastavro, so that conversions between types have a single implementation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.errors import DecodeError
from penstock.records.native import LIBRARY
from penstock.registry.avro.schema import AvroArray, AvroFixed, AvroRecord, Enum, Map, Type, Union, parse_avro

NULL, BOOLEAN, INT, LONG, FLOAT, DOUBLE, STRING, BYTES, FIXED, ENUM, RECORD, ARRAY, MAP, OPTION, LOGICAL = (
    range(15)
)
_PRIMITIVES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
}
NODES_MAX = 5_000

Program = tuple[Any, ...]

write_row: Any = getattr(LIBRARY, "write_avro_row", None)
"""``write_row(program, row, prefix)`` returns the prefix followed by the encoded row, or None if fastavro
must write it."""


class _Uncompiled(Exception):
    """Raised if a schema has a type that only fastavro writes."""


def row_program(text: str, referenced: Iterable[str]) -> Program | None:
    """Return the program with which `write_row` encodes rows of a schema, or None if only fastavro can.

    The result is None if the schema is recursive or has a union of several types, if the compiled function is
    missing, or if the application has registered its own logical types with fastavro.
    """
    if write_row is None or not _has_plain_types():
        return None
    try:
        return _Compiler().node(parse_avro(text, referenced), ())
    except (DecodeError, _Uncompiled):
        return None


def _has_plain_types() -> bool:
    from fastavro.write import LOGICAL_WRITERS

    return all(
        str(getattr(each, "__module__", "")).startswith("fastavro.") for each in LOGICAL_WRITERS.values()
    )


class _Compiler:
    def __init__(self) -> None:
        self._left = NODES_MAX

    def node(self, kind: Type, above: tuple[Type, ...]) -> Program:
        self._left -= 1
        if self._left < 0 or kind in above:
            raise _Uncompiled
        above = (*above, kind)
        if isinstance(kind, AvroRecord):
            children = tuple(self.node(each.type, above) for each in kind.fields)
            may_miss = tuple(
                child[0] == OPTION and each.default is None
                for each, child in zip(kind.fields, children, strict=True)
            )
            return RECORD, tuple(each.name for each in kind.fields), children, may_miss
        if isinstance(kind, AvroArray):
            return ARRAY, self.node(kind.items, above)
        if isinstance(kind, Map):
            return MAP, self.node(kind.values, above)
        if isinstance(kind, Enum):
            return ENUM, {symbol: place for place, symbol in enumerate(kind.symbols)}
        if isinstance(kind, Union):
            return self._option(kind, above)
        if isinstance(kind, AvroFixed):
            if kind.logical is not None:
                raise _Uncompiled
            return FIXED, kind.size
        return self._primitive(kind)

    def _option(self, kind: Union, above: tuple[Type, ...]) -> Program:
        branches = kind.branches
        nulls = [place for place, each in enumerate(branches) if each.kind == "null"]
        if len(branches) != 2 or len(nulls) != 1:
            raise _Uncompiled
        child = self.node(branches[1 - nulls[0]], above)
        if child[0] in (RECORD, MAP):  # whose dictionaries may say their branch, as fastavro takes it
            raise _Uncompiled
        return OPTION, nulls[0], child

    def _primitive(self, kind: Type) -> Program:
        from fastavro.write import LOGICAL_WRITERS

        plain: Program = (_PRIMITIVES[kind.kind],)
        prepare = LOGICAL_WRITERS.get(f"{kind.kind}-{kind.logical}")
        if prepare is None:
            return plain
        schema = {"type": kind.kind, "logicalType": kind.logical}
        if kind.logical == "decimal":
            schema |= {"precision": kind.precision, "scale": kind.scale}  # type: ignore[dict-item]
        return LOGICAL, prepare, schema, plain
