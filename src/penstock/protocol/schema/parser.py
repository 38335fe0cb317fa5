"""Parse JSON into a `Definition`, and check the rules of the definition language.

A definition that `parse_definition` accepts resolves at every valid version. Any other raises a
`DefinitionError` that names file and field.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.common.suggestions import did_you_mean, short_repr
from penstock.protocol.quoting import is_identifier
from penstock.protocol.schema.definition import (
    FIXED,
    SIGNED,
    UNSIGNED,
    Definition,
    DefinitionError,
    FieldSpec,
    FieldType,
    NewStruct,
    StructSpec,
    snake_case,
)
from penstock.protocol.schema.json_source import JsonSource, is_name, number_of
from penstock.protocol.schema.scalar_types import INTEGER_BITS, SCALARS
from penstock.protocol.schema.versions import NO_VERSIONS, OPEN_END, Versions, turning_points

MESSAGE_TYPES = ("request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value")
ENTITY_TYPES = {
    "unknown": None, "transactionalId": "string", "producerId": "int64", "groupId": "string",
    "topicName": "string", "brokerId": "int32",
}  # fmt: skip

_MESSAGE_KEYS = {
    "name", "type", "apiKey", "listeners", "validVersions", "flexibleVersions", "latestVersionUnstable",
    "deprecatedVersions", "fields", "commonStructs", "about",
}  # fmt: skip
_FIELD_KEYS = {
    "name", "type", "encoding", "versions", "nullableVersions", "taggedVersions", "tag", "flexibleVersions",
    "ignorable", "default", "mapKey", "entityType", "zeroCopy", "fields", "about",
}  # fmt: skip
_PATH_LENGTH_MAX = 1000
_VARINT_BITS = (16, 32, 64)

STRUCT_DEPTH_MAX = 16
"""The greatest depth of nested structs: each level is a loop in a codec, and Python compiles no more than 20
nested loops. The messages of Kafka nest 5 deep."""

FIELDS_MAX = 2_000
"""The maximum number of fields of one message. The fields of a struct count once for each use of the struct,
since a codec has code for each. A short definition can have very many fields: ten structs, each with ten
fields of the next one. Python compiles an expression of some 3,000 terms, and a codec can have one with a
term for each field."""

# Names that the classes made from a definition, and their codecs, need for themselves.
_TAKEN_ATTRIBUTES = {"self", "unknown_tags", "encode", "decode", "isinstance", "tuple"}
_TAKEN_STRUCTS = {
    "MadeLate", "Message", "Struct", "Records", "UnknownTags", "DecodeError", "EncodeError", *vars(builtins),
}  # fmt: skip


def parse_definition(source: object, origin: str) -> Definition:
    """Return the checked definition in `source`, which `json.loads` returned; `origin` names the file.

    Raises:
        DefinitionError: the definition breaks a rule of the language.
    """
    return Parser(origin).message(source)


class Parser:
    """Parses one definition, and holds the state for rules that concern the whole definition."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.json = JsonSource(origin)
        self.fail = self.json.fail
        self._structs: dict[str, StructSpec] = {}
        self._uses: list[tuple[str, str, Versions]] = []
        self._depth = 0
        self._valid = NO_VERSIONS
        self._flexible = NO_VERSIONS

    # Messages

    def message(self, source: object) -> Definition:
        spec = self.json.keyed(source, "", _MESSAGE_KEYS)
        name = self.json.name(spec, "")
        if not name[0].isupper():
            raise self.fail("", f"a message's name begins with a capital letter, unlike {name}")
        message_type = spec.get("type")
        if message_type not in MESSAGE_TYPES:
            raise self.fail("", f"type must be one of {', '.join(MESSAGE_TYPES)}")
        self._valid = self.json.versions(spec, "validVersions", "")
        if "flexibleVersions" not in spec and self._valid:
            raise self.fail("", "flexibleVersions is missing: write 0+ for a new message, or none")
        # Of a message that has been removed only name, key and type remain.
        self._flexible = self.json.versions(spec, "flexibleVersions", "", NO_VERSIONS)
        if self._flexible and self._flexible.highest < self._valid.highest:
            raise self.fail("", "flexibleVersions must have no end: a message never turns back")
        is_api = message_type in ("request", "response")
        for key, allowed in (("listeners", ("request",)), ("latestVersionUnstable", ("request",))):
            if spec.get(key) and message_type not in allowed:
                raise self.fail("", f"{key} belongs to requests only")
        api_key = spec.get("apiKey")
        if (is_api or api_key is not None) and not (type(api_key) is int and 0 <= api_key <= OPEN_END):
            raise self.fail("", "apiKey must be a number from 0 to 32767")
        for common in self.json.items(spec, "commonStructs", ""):
            known = {"name", "versions", "fields", "about"}
            struct_name = self.json.name(self.json.keyed(common, "commonStructs", known), "commonStructs")
            versions = self.json.versions(common, "versions", "")
            self.struct(struct_name, common, f"commonStructs {struct_name}", versions)
        fields = self.fields(spec, "")
        definition = Definition()
        definition.source, definition.name, definition.type = self.origin, name, message_type
        definition.api_key = api_key
        definition.listeners = tuple(self.json.names(spec, "listeners"))
        definition.valid, definition.flexible = self._valid, self._flexible
        definition.latest_unstable = self.json.flag(spec, "latestVersionUnstable", "")
        if name in self._structs:
            raise self.fail("", f"a struct is called {name} too")
        if name in _TAKEN_STRUCTS or not is_identifier(name):
            raise self.fail("", f"a message cannot be called {name}: the name is taken in Python")
        definition.root = root = StructSpec(name, self._valid, fields)
        self.check_structs(root)
        definition.structs = self.ordered_structs(root)
        return definition

    def check_structs(self, root: StructSpec) -> None:
        for path, name, versions in self._uses:
            struct = self._structs.get(name)
            if struct is None:
                raise self.no_type(path, name)
            if not struct.versions.covers(versions.intersect(self._valid)):
                raise self.fail(path, f"used in versions {versions}, but struct {name} has {struct.versions}")
        extents: dict[str, tuple[int, int]] = {}
        for struct in (root, *self._structs.values()):
            self.check_extent(struct, (struct.name,), extents)
        points = turning_points(self._ranges(root), self._valid)
        empty = {
            (struct.name, version)
            for version in points
            for struct in self.without_bytes([root, *self._structs.values()], version)
        }
        for struct in (root, *self._structs.values()):
            for field in struct.fields:
                self.check_elements(field, points, empty)

    def _ranges(self, root: StructSpec) -> Iterator[Versions]:
        """Yield every version range in a definition that affects the encoding, such as a field's versions."""
        yield self._flexible
        for struct in (root, *self._structs.values()):
            for field in struct.fields:
                yield field.versions
                yield field.nullable

    def check_elements(self, field: FieldSpec, points: Sequence[int], empty: set[tuple[str, int]]) -> None:
        """Check that no array has elements of zero bytes, so that the bytes left limit its count."""
        field_type = field.widest
        if not (field_type.is_array and field_type.is_struct):
            return
        for version in points:
            if version in field.versions and (field_type.base, version) in empty:
                raise self.fail(field.path, f"in version {version}, its elements have no fields")

    def without_bytes(self, structs: Sequence[StructSpec], version: int) -> list[StructSpec]:
        """Return the structs that are encoded as no bytes at all in a version."""
        if version in self._flexible:
            return []
        known: dict[str, bool] = {}

        def has_bytes(struct: StructSpec) -> bool:
            if struct.name not in known:
                known[struct.name] = any(
                    version in field.versions and takes_bytes(field) for field in struct.fields
                )
            return known[struct.name]

        def takes_bytes(field: FieldSpec) -> bool:
            if not field.widest.is_struct or field.widest.is_array or version in field.nullable:
                return True
            return has_bytes(self._structs[field.widest.base])

        return [struct for struct in structs if not has_bytes(struct)]

    def check_extent(
        self, struct: StructSpec, outer: tuple[str, ...], known: dict[str, tuple[int, int]]
    ) -> tuple[int, int]:
        """Check the limits of a struct; return (number of fields including nested ones, depth of nesting).

        `outer` are the structs around it. `known` stores the results, so that each struct is checked once.
        """
        if struct.name in known:
            return known[struct.name]
        count, depth = len(struct.fields), 0
        for inner in inner_structs(struct):
            if inner in outer:
                raise self.fail(f"struct {inner}", "contains itself")
            if len(outer) > STRUCT_DEPTH_MAX:
                raise self.too_deep(f"struct {inner}")
            fields, levels = self.check_extent(self._structs[inner], (*outer, inner), known)
            count, depth = count + fields, max(depth, levels + 1)
            if depth > STRUCT_DEPTH_MAX:
                raise self.too_deep(f"struct {inner}")
        if count > FIELDS_MAX:
            where = f"struct {struct.name}" if struct.name in self._structs else ""
            raise self.fail(where, f"more than {FIELDS_MAX} fields, with those of the structs at each use")
        known[struct.name] = count, depth
        return count, depth

    def too_deep(self, path: str) -> DefinitionError:
        return self.fail(path, f"structs nest more than {STRUCT_DEPTH_MAX} deep")

    def ordered_structs(self, root: StructSpec) -> dict[str, StructSpec]:
        ordered: dict[str, StructSpec] = {}
        todo = list(inner_structs(root))
        while todo:
            name = todo.pop(0)
            if name not in ordered:
                ordered[name] = self._structs[name]
                todo += inner_structs(self._structs[name])
        unused = self._structs.keys() - ordered.keys()
        if unused:
            raise self.fail(f"struct {min(unused)}", "is never used")
        return ordered

    # Structs and fields

    def struct(self, name: str, spec: Mapping[str, Any], path: str, versions: Versions) -> None:
        if name in self._structs:
            raise self.fail(path, f"there are two structs called {name}")
        if not name[0].isupper():
            raise self.fail(path, f"struct {name} must begin with a capital letter")
        if name in _TAKEN_STRUCTS or not is_identifier(name):
            raise self.fail(path, f"a struct cannot be called {name}: the name is taken in Python")
        if self._depth == STRUCT_DEPTH_MAX:
            raise self.too_deep(path)
        self._structs[name] = StructSpec(name, versions, [])
        self._depth += 1
        self._structs[name].fields.extend(self.fields(spec, path))
        self._depth -= 1

    def fields(self, spec: Mapping[str, Any], path: str) -> list[FieldSpec]:
        sources = self.json.items(spec, "fields", path)
        fields = [self.field(each, path, number) for number, each in enumerate(sources, 1)]
        seen: set[str] = set()
        for field in fields:
            if field.attribute in seen:
                raise self.fail(field.path, "the name occurs twice")
            seen.add(field.attribute)
        tags = sorted(field.tag for field in fields if field.tag is not None)
        for expected, tag in enumerate(tags):
            if tag != expected:
                problem = f"tags must be 0, 1, 2 … without gap or repetition: {short_repr(tags)}"
                raise self.fail(path, problem)
        return fields

    def field(self, source: object, parent: str, number: int) -> FieldSpec:
        called = source.get("name") if isinstance(source, dict) else None
        path = f"{parent}.{called if is_name(called) else f'field {number}'}".lstrip(".")
        if len(path) > _PATH_LENGTH_MAX:
            path = "…" + path[-_PATH_LENGTH_MAX:]
        spec = self.json.keyed(source, path, _FIELD_KEYS)
        field = FieldSpec()
        field.name = self.json.name(spec, path)
        field.path = path
        field.attribute = snake_case(field.name)
        if not is_identifier(field.attribute) or field.attribute in _TAKEN_ATTRIBUTES:
            raise self.fail(path, f"in Python it would be called {field.attribute}, which is taken")
        field.tagged = self.json.versions(spec, "taggedVersions", path, NO_VERSIONS)
        field.versions = self.json.versions(spec, "versions", path, field.tagged or None)
        field.nullable = self.json.versions(spec, "nullableVersions", path, NO_VERSIONS)
        has_own = "flexibleVersions" in spec
        field.flexible = self.json.versions(spec, "flexibleVersions", path) if has_own else None
        field.tag = number_of(spec.get("tag"))
        field.ignorable = self.json.flag(spec, "ignorable", path)
        field.map_key = self.json.flag(spec, "mapKey", path)
        field.entity_type = spec.get("entityType")
        field.types = self.types(spec, field)
        self.check_field(field)
        field.default = self.default(field, spec.get("default"))
        base = field.types[0][1]
        if spec.get("fields"):
            if not base.is_struct:
                raise self.fail(path, f"only a struct can have fields, and {base.base} is none")
            self.struct(base.base, spec, path, field.versions)
        if base.is_struct:
            self._uses.append((path, base.base, field.versions))
        return field

    def check_field(self, field: FieldSpec) -> None:
        path, field_type = field.path, field.types[0][1]
        if field.nullable and not field_type.can_be_null:
            raise self.fail(path, f"{field_type.base} cannot be null")
        if field.flexible is not None and (field_type.base not in ("string", "bytes") or field_type.is_array):
            raise self.fail(path, "flexibleVersions of a field is only for string and bytes")
        if field.entity_type is not None:
            if not isinstance(field.entity_type, str) or field.entity_type not in ENTITY_TYPES:
                raise self.fail(path, f"unknown entityType {short_repr(field.entity_type)}")
            if ENTITY_TYPES[field.entity_type] not in (None, field.widest.base):
                raise self.fail(path, f"a {field.entity_type} is a {ENTITY_TYPES[field.entity_type]}")
        if field.tag is None:
            if field.tagged:
                raise self.fail(path, "taggedVersions without a tag")
            return
        if not isinstance(field.tag, int) or isinstance(field.tag, bool) or field.tag < 0:
            raise self.fail(path, "tag must be a number from 0 up")
        if not field.tagged:
            raise self.fail(path, "a tag without taggedVersions")
        if field.tagged.highest != OPEN_END:
            raise self.fail(path, "taggedVersions must have no end: a tag is never used again")
        if not field.versions.covers(field.tagged):
            raise self.fail(path, "taggedVersions reach beyond versions")
        if not self._flexible.covers(field.tagged.intersect(self._valid)):
            raise self.fail(path, f"tagged in {field.tagged}, but flexible versions are {self._flexible}")
        if field.nullable.intersect(field.tagged) not in (NO_VERSIONS, field.tagged):
            raise self.fail(path, "either all tagged versions are nullable or none")
        if field.map_key:
            raise self.fail(path, "a tagged field cannot be a key")

    # Types

    def types(self, spec: Mapping[str, Any], field: FieldSpec) -> list[tuple[Versions, FieldType]]:
        path, source = field.path, spec.get("type")
        if isinstance(source, str):
            types = [(Versions(0, OPEN_END), self.type(source, path))]
        elif isinstance(source, dict) and source:
            types = [(self.json.range(key, path), self.type(each, path)) for key, each in source.items()]
        else:
            raise self.fail(path, "type must be a name, or an object of version ranges and names")
        if len(types) > 1 or isinstance(source, dict):
            self.check_ranges(types, field)
            if any(not each.is_integer or each.is_array != types[0][1].is_array for _, each in types):
                raise self.fail(path, "only the width and encoding of an integer may change between versions")
        if "encoding" in spec:
            if isinstance(source, dict):
                raise self.fail(path, "give a type per version or an encoding per version, not both")
            types = self.encodings(spec["encoding"], types[0][1], field)
        return types

    def encodings(
        self, source: object, field_type: FieldType, field: FieldSpec
    ) -> list[tuple[Versions, FieldType]]:
        if not field_type.is_integer or field_type.encoding != FIXED:
            raise self.fail(field.path, "encoding is for fields of a plain integer type")
        if isinstance(source, str):
            source = {str(field.versions): source}
        if not isinstance(source, dict) or not source:
            raise self.fail(field.path, "encoding must be an object of version ranges and encodings")
        types = []
        for key, each in source.items():
            bits = INTEGER_BITS[field_type.base]
            known = [FIXED, SIGNED, UNSIGNED] if field_type.base in ("int16", "int32", "int64") else [FIXED]
            encoding = next((name for name in known if each == f"{name}{bits}"), None)
            if encoding is None:
                names = " or ".join(f"{name}{bits}" for name in known)
                raise self.fail(
                    field.path, f"encoding of {field_type.base} is {names}, not {short_repr(each)}"
                )
            types.append((self.json.range(key, field.path), field_type._replace(encoding=encoding)))
        self.check_ranges(types, field)
        return types

    def check_ranges(self, types: Sequence[tuple[Versions, FieldType]], field: FieldSpec) -> None:
        """Check that every version of the field has exactly one type."""
        needed = field.versions.intersect(self._valid)
        expected = needed.lowest
        for low, high in sorted(
            versions.intersect(needed) for versions, _ in types if versions.intersect(needed)
        ):
            if low < expected:
                raise self.fail(field.path, f"version {low} has more than one type")
            if low > expected:
                break
            expected = high + 1
        if expected <= needed.highest:
            raise self.fail(field.path, f"version {expected} has no type")

    def type(self, text: object, path: str) -> FieldType:
        if not isinstance(text, str):
            raise self.fail(path, f"{short_repr(text)} is no type")
        is_array, base = text.startswith("[]"), text.removeprefix("[]")
        if base in SCALARS:
            if is_array and not SCALARS[base].can_be_element:
                raise self.fail(path, f"there are no arrays of {base}")
            return FieldType(base, FIXED, is_array)
        for bits in _VARINT_BITS:
            if base in (f"varint{bits}", f"unsigned_varint{bits}"):
                return FieldType(f"int{bits}", SIGNED if base[0] == "v" else UNSIGNED, is_array)
        if base.startswith("[]"):
            raise self.fail(path, "there are no arrays of arrays: use an array of structs")
        if not is_name(base) or not base[0].isupper():
            raise self.no_type(path, text)
        return FieldType(base, FIXED, is_array)

    # Defaults

    def default(self, field: FieldSpec, source: object) -> object:
        """Return the default of a field as a Python value: () for an empty array, NewStruct for a struct."""
        field_type, path = field.widest, field.path
        if source == "null":
            if not field.nullable.covers(field.versions.intersect(self._valid)):
                raise self.fail(path, "null is no default where not all versions of the field are nullable")
            return None
        is_empty = source is None or source == ""
        scalar = None if field_type.is_array else SCALARS.get(field_type.base)
        if scalar is None or scalar.default_is_fixed:
            if not is_empty:
                raise self.fail(
                    path, f"default of {field_type.base} can only be empty or null, not {short_repr(source)}"
                )
            if field_type.is_array:
                return ()
            return NewStruct if scalar is None else scalar.default(None)
        try:
            return scalar.default(None if is_empty else source)
        except (ValueError, OverflowError) as error:
            raise self.fail(path, f"{short_repr(source)} is no {field_type.base}: {error}") from error

    def no_type(self, path: str, name: str) -> DefinitionError:
        hint = did_you_mean(name, sorted({*SCALARS, *self._structs}))
        return self.fail(path, f"there is no type and no struct called {short_repr(name)}{hint}")


def inner_structs(struct: StructSpec) -> Iterator[str]:
    """Yield the names of the structs that are types of fields of `struct`, in order."""
    for field in struct.fields:
        if field.types[0][1].is_struct:
            yield field.types[0][1].base
