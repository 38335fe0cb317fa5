"""Converts Arrow types to Spark's type names and back, for table.json and for columns that users declare."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import ConfigError

_PLAIN = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
}


def spark_type(kind: pa.DataType) -> str:
    """Return Spark's name for an Arrow type.

    Raises:
        ConfigError: Spark has no such type.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    raise ConfigError(f"a column of type {kind} cannot be landed: it is none of Spark's types")


_NAMES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "text": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

_TOKEN = re.compile(r"\s*(?:(`[^`]+`|[^\s,:<>()]+)|([,:<>()]))")

DEPTH_MAX = 16
"""The maximum nesting depth of arrays, maps and structs in a declaration of columns."""


def fields_of(text: str) -> pa.Schema:
    """Return the columns in a user's declaration: ``id bigint, lines array<struct<sku:string,n:int>>``.

    Raises:
        ConfigError: the text is no list of names and types.
    """
    parser = _Parser(text)
    fields = [parser.field(0)]
    while parser.take(","):
        fields.append(parser.field(0))
    if not parser.is_done:
        raise parser.error("a comma")
    names = [field.name for field in fields]
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError(f"{text!r} names a column twice")
    return pa.schema(fields)


class _Parser:
    """Parses a declaration of columns, such as ``id bigint, tags array<string>``, for `fields_of`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ConfigError(f"{text!r} is no list of columns: {text[position:][:20]!r} makes no sense")
            self._tokens.append(match[1] or match[2])
            position = match.end()
        self._next = 0

    @property
    def is_done(self) -> bool:
        return self._next == len(self._tokens)

    def error(self, wanted: str) -> ConfigError:
        found = "the end" if self.is_done else repr(self._tokens[self._next])
        return ConfigError(
            f"{self._text!r} is no list of columns such as 'id bigint, name string': {wanted} is due in the "
            f"place of {found}"
        )

    def take(self, token: str) -> bool:
        if not self.is_done and self._tokens[self._next] == token:
            self._next += 1
            return True
        return False

    def field(self, depth: int) -> pa.Field:
        name = self._word("a name")
        self.take(":")
        return pa.field(name.strip("`"), self._type(depth))

    def _word(self, wanted: str) -> str:
        if self.is_done or self._tokens[self._next] in ",:<>()":
            raise self.error(wanted)
        self._next += 1
        return self._tokens[self._next - 1]

    def _due(self, token: str) -> None:
        if not self.take(token):
            raise self.error(repr(token))

    def _type(self, depth: int) -> pa.DataType:
        if depth > DEPTH_MAX:
            raise ConfigError(f"{self._text!r}: types stand in types more than {DEPTH_MAX} deep")
        name = self._word("a type").lower()
        if name == "decimal":
            return self._decimal()
        if name == "array":
            self._due("<")
            kind = pa.list_(pa.field("element", self._type(depth + 1)))
        elif name == "map":
            self._due("<")
            key = self._type(depth + 1)
            self._due(",")
            kind = pa.map_(key, self._type(depth + 1))
        elif name == "struct":
            self._due("<")
            fields = [self.field(depth + 1)]
            while self.take(","):
                fields.append(self.field(depth + 1))
            kind = pa.struct(fields)
        elif name in _NAMES:
            return _NAMES[name]
        else:
            self._next -= 1
            raise self.error(f"one of the types {', '.join(_NAMES)}, decimal, array, map, struct")
        self._due(">")
        return kind

    def _decimal(self) -> pa.DataType:
        if not self.take("("):
            return pa.decimal128(10, 0)
        digits = self._word("a number")
        scale = self._word("a number") if self.take(",") else "0"
        self._due(")")
        try:
            return pa.decimal128(int(digits), int(scale))
        except ValueError as error:
            raise ConfigError(f"{self._text!r}: decimal({digits},{scale}) is no type: {error}") from None
