"""Classes for message definitions: messages described as data, in Kafka's own definition language.

A definition is a JSON object in Kafka's own language. It names the message, the versions that
exist and those that are flexible, and its fields: each with a type and the versions that have it.
Two properties extend the language as KIP-625 proposes: `type` may be an object that maps version
ranges to types, and `encoding` may map version ranges to encodings of an integer.

`penstock.protocol.schema.parser` makes a `Definition` from JSON, `penstock.protocol.schema.loader` reads
files. `penstock.protocol.compiler.layout` resolves a definition at one version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.protocol.schema.scalar_types import INTEGER_BITS, SCALARS
from penstock.protocol.schema.versions import Versions

FIXED, SIGNED, UNSIGNED = "fixed", "signed", "unsigned"


class DefinitionError(ConfigError):
    """A definition breaks a rule of the language. The message names file and field."""


class NewStruct:
    """A marker for the default value of a struct field: a new struct whose fields have their defaults."""


class FieldType(NamedTuple):
    """The type of a field at some version: a scalar or struct `base`, or an array of `base`."""

    base: str
    encoding: str = FIXED
    is_array: bool = False

    @property
    def is_integer(self) -> bool:
        return self.base in INTEGER_BITS

    @property
    def is_struct(self) -> bool:
        return self.base not in SCALARS

    @property
    def can_be_null(self) -> bool:
        return self.is_array or self.is_struct or SCALARS[self.base].can_be_null


class FieldSpec:
    """The specification of one field of a struct, for all versions."""

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
        """Return the type of the field in one of its versions."""
        if len(self.types) == 1:
            return self.types[0][1]
        return next(field_type for versions, field_type in self.types if version in versions)

    @property
    def is_made_late(self) -> bool:
        """True for a tagged struct: its default is created on first use, because it is rarely sent."""
        return self.default is NewStruct and bool(self.tagged) and not self.nullable

    @property
    def slot(self) -> str:
        """The name of the Python slot: the attribute's name, with "_" before it if `is_made_late`."""
        return f"_{self.attribute}" if self.is_made_late else self.attribute

    @property
    def widest(self) -> FieldType:
        """The type that can contain the values of the field in all versions, such as the widest integer."""
        return max((each for _, each in self.types), key=lambda each: INTEGER_BITS.get(each.base, 0))


class StructSpec:
    """A named group of fields: a whole message, or a struct within one."""

    __slots__ = ("fields", "name", "versions")

    def __init__(self, name: str, versions: Versions, fields: list[FieldSpec]) -> None:
        self.name = name
        self.versions = versions
        self.fields = fields


class Definition:
    """The definition of a message, for all versions. `structs` holds all structs in it, outermost first."""

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
    """Return the Python spelling of a field's name: ``maxWaitMs`` is ``max_wait_ms``."""
    words = []
    for before, letter, after in zip(" " + name, name, name[1:] + " ", strict=False):
        # A capital begins a word after a small letter or digit, or as the last one of several.
        if letter.isupper() and before != " " and (not before.isupper() or after.islower()):
            words.append("_")
        words.append(letter)
    return "".join(words).lower()
