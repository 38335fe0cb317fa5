"""The definition language: messages described as data, read and checked.

A definition is a JSON object in Kafka's own language. It names the message, the versions that
exist and those that are flexible, and its fields: each with a type and the versions that carry it.
Two properties extend the language as KIP-625 proposes: `type` may be an object that maps version
ranges to types, and `encoding` may map version ranges to encodings of an integer.

Promises that whatever passes `parse_definition` resolves at every valid version. Every rule that a
definition breaks is a `DefinitionError` that names file and field. Does not know any bytes:
`penstock.protocol.compiler.layout` resolves a definition at one version.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.protocol.schema.versions import Versions

FIXED, SIGNED, UNSIGNED = "fixed", "signed", "unsigned"

INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
OTHER_SCALARS = ("bool", "float64", "uuid", "string", "bytes", "records")
NULLABLE_SCALARS = ("string", "bytes", "records")


FILE_BYTES_MAX = 4 << 20
"""The size of a file with a definition. Kafka's largest has some 20 KB."""


class DefinitionError(ConfigError):
    """A definition breaks a rule of the language. The message names file and field."""


class NewStruct:
    """The default of a struct that is not null: a new one with its own defaults."""


class FieldType(NamedTuple):
    """What a field holds at some version: a scalar or struct `base`, or an array of it."""

    base: str
    encoding: str = FIXED
    is_array: bool = False

    @property
    def is_integer(self) -> bool:
        return self.base in INTEGER_BITS

    @property
    def is_struct(self) -> bool:
        return self.base not in INTEGER_BITS and self.base not in OTHER_SCALARS

    @property
    def can_be_null(self) -> bool:
        return self.is_array or self.is_struct or self.base in NULLABLE_SCALARS


class FieldSpec:
    """One field of a struct, all versions together."""

    __slots__ = (
        "attribute", "default", "entity_type", "flexible", "ignorable", "map_key", "name", "nullable",
        "path", "tag", "tagged", "types", "versions",
    )  # fmt: skip

    path: str
    name: str
    attribute: str
    types: Sequence[tuple[Versions, FieldType]]
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    flexible: Versions | None
    ignorable: bool
    default: object
    map_key: bool
    entity_type: str | None

    def type_at(self, version: int) -> FieldType:
        """The type at a version that has the field."""
        if len(self.types) == 1:
            return self.types[0][1]
        return next(field_type for versions, field_type in self.types if version in versions)

    @property
    def is_made_late(self) -> bool:
        """Whether this is a struct that is made when somebody asks for it: a tagged one is rarely sent."""
        return self.default is NewStruct and bool(self.tagged) and not self.nullable

    @property
    def slot(self) -> str:
        """Where the value is kept: the attribute itself, unless that is made late."""
        return f"_{self.attribute}" if self.is_made_late else self.attribute

    @property
    def widest(self) -> FieldType:
        """The type that holds what any version of the field holds."""
        return max((each for _, each in self.types), key=lambda each: INTEGER_BITS.get(each.base, 0))


class StructSpec:
    """A group of fields with a name: a whole message, or a part of one."""

    __slots__ = ("fields", "name", "versions")

    def __init__(self, name: str, versions: Versions, fields: list[FieldSpec]) -> None:
        self.name = name
        self.versions = versions
        self.fields = fields


class Definition:
    """A message, all versions together. `structs` holds every struct inside it, outermost first."""

    __slots__ = (
        "api_key", "flexible", "latest_unstable", "listeners", "name", "root", "source", "structs", "type",
        "valid",
    )  # fmt: skip

    source: str
    name: str
    type: str
    api_key: int | None
    listeners: tuple[str, ...]
    valid: Versions
    flexible: Versions
    latest_unstable: bool
    root: StructSpec
    structs: dict[str, StructSpec]


def snake_case(name: str) -> str:
    """The Python spelling of a field's name: ``maxWaitMs`` is ``max_wait_ms``."""
    words = []
    for before, letter, after in zip(" " + name, name, name[1:] + " ", strict=False):
        # A capital begins a word after a small letter or digit, or as the last one of several.
        if letter.isupper() and before != " " and (not before.isupper() or after.islower()):
            words.append("_")
        words.append(letter)
    return "".join(words).lower()


def definitions_directory() -> str:
    """Where the definitions of Kafka's own messages are kept."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "definitions")


def load_definition(name: str) -> Definition:
    """Read one of Kafka's messages by name, such as ``FetchRequest``."""
    return read_definition(os.path.join(definitions_directory(), name + ".json"))


def read_definition(path: str | os.PathLike[str]) -> Definition:
    """Read a definition from a file. Lines that begin with ``//`` are comments.

    Raises:
        DefinitionError: the file is no JSON or breaks a rule of the language.
        OSError: the file cannot be read.
    """
    import json

    name = os.fspath(path)
    if "\0" in name:
        raise DefinitionError(f"{name!r} is no name of a file")
    with open(path, "rb") as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise DefinitionError(f"{name}: no definition: it has more than {FILE_BYTES_MAX} bytes")
    try:
        lines = data.decode("utf-8").split("\n")
        source = json.loads("\n".join("" if line.lstrip().startswith("//") else line for line in lines))
    except ValueError as error:
        raise DefinitionError(f"{name}: no JSON: {error}") from error
    except RecursionError:
        raise DefinitionError(f"{name}: no definition: objects or lists nest too deep to be read") from None
    return parse_definition(source, os.path.basename(path))


def parse_definition(source: object, origin: str) -> Definition:
    """Check a definition that was read from `origin` and put it into shape.

    Raises:
        DefinitionError: it breaks a rule of the language.
    """
    from penstock.protocol.schema.rules import Parser

    return Parser(origin).message(source)
