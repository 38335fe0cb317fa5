"""Shapes of JSON values, as Arrow types: derived from a JSON Schema or from values.

A part without a single shape (several types, a recursive type, objects without named properties) stays JSON
text. Null and missing properties are null in every shape.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.errors import DecodeError

BOOLEAN, INTEGER, NUMBER, STRING, OBJECT, LIST, MAP, TEXT, NOTHING = (
    "boolean",
    "integer",
    "number",
    "string",
    "object",
    "list",
    "map",
    "text",
    "null",
)
NESTING_MAX = 60
SHAPES_MAX = 10_000
_INT64 = 1 << 63

_PLAIN = {
    BOOLEAN: pa.bool_(),
    INTEGER: pa.int64(),
    NUMBER: pa.float64(),
    STRING: pa.string(),
    TEXT: pa.string(),
    NOTHING: pa.null(),
}


class MisfitError(DecodeError):
    """Raised if a value has another shape than its schema defines."""


@dataclass(frozen=True)
class JsonShape:
    """The structure of JSON values: `kind` is their type, such as OBJECT; `children` are shapes of parts."""

    kind: str
    children: tuple[tuple[str, JsonShape], ...] = ()
    """The shapes of parts by name: an object's properties, or one nameless entry for list items or map
    values.
    """

    @property
    def type(self) -> pa.DataType:
        """Return the Arrow type of the shape."""
        if self.kind == OBJECT:
            return pa.struct([pa.field(name, shape.type) for name, shape in self.children])
        if self.kind == LIST:
            return pa.list_(pa.field("element", self.children[0][1].type))
        if self.kind == MAP:
            return pa.map_(pa.string(), self.children[0][1].type)
        return _PLAIN[self.kind]

    @property
    def is_parsed_by_arrow(self) -> bool:
        """Return True if Arrow's JSON parser can read values of this shape."""
        if self.kind in (MAP, TEXT):
            return False
        return all(shape.is_parsed_by_arrow for _, shape in self.children)


ANY = JsonShape(TEXT)
EMPTY = JsonShape(NOTHING)


def shape_of_schema(root: Any, referenced: Mapping[str, Any]) -> JsonShape:
    """Return the shape that a JSON Schema defines.

    Raises:
        DecodeError: the value is not a JSON Schema, or a reference cannot be resolved.
    """
    return _Reader(root, referenced).shape(root, root, (f"{id(root)}#",), 0)


class _Reader:
    """Derives shapes from a JSON Schema, whose references it resolves."""

    def __init__(self, root: Any, referenced: Mapping[str, Any]) -> None:
        self._root = root
        self._referenced = referenced
        self._left = SHAPES_MAX

    def shape(self, schema: Any, base: Any, above: tuple[str, ...], depth: int) -> JsonShape:
        self._left -= 1
        if self._left < 0 or depth > NESTING_MAX:
            raise DecodeError(f"the JSON Schema has more than {SHAPES_MAX} parts, or is nested too deeply")
        if schema is True or schema == {}:
            return ANY
        if not isinstance(schema, dict):
            raise DecodeError(f"{schema!r:.60} is no JSON Schema")
        if isinstance(schema.get("$ref"), str):
            ref = schema["$ref"]
            if f"{id(base)}{ref}" in above:
                return ANY  # a type that holds itself
            found, base = self._resolve(ref, base)
            return self.shape(found, base, (*above, f"{id(base)}{ref}"), depth + 1)
        for word in ("oneOf", "anyOf"):
            if isinstance(schema.get(word), list):
                return self._one_of(schema[word], base, above, depth)
        if isinstance(schema.get("allOf"), list):
            return (
                ANY if len(schema["allOf"]) != 1 else self.shape(schema["allOf"][0], base, above, depth + 1)
            )
        return self._typed(schema, base, above, depth)

    def _one_of(self, options: list[Any], base: Any, above: tuple[str, ...], depth: int) -> JsonShape:
        found = {
            self.shape(each, base, above, depth + 1)
            for each in options
            if not (isinstance(each, dict) and each.get("type") == "null")
        }
        return found.pop() if len(found) == 1 else ANY if found else EMPTY

    def _typed(self, schema: dict[str, Any], base: Any, above: tuple[str, ...], depth: int) -> JsonShape:
        kind = schema.get("type")
        if isinstance(kind, list):
            others = [each for each in kind if each != "null"]
            kind = others[0] if len(others) == 1 else None if others else "null"
        if kind is None:
            if "properties" in schema:
                kind = "object"
            elif isinstance(schema.get("enum"), list) and all(isinstance(e, str) for e in schema["enum"]):
                kind = "string"
        if kind == "object":
            return self._object(schema, base, above, depth)
        if kind == "array":
            items = schema.get("items", True)
            if isinstance(items, list) or "prefixItems" in schema:
                return ANY
            return JsonShape(LIST, (("", self.shape(items, base, above, depth + 1)),))
        return JsonShape(str(kind)) if kind in (BOOLEAN, INTEGER, NUMBER, STRING, NOTHING) else ANY

    def _object(self, schema: dict[str, Any], base: Any, above: tuple[str, ...], depth: int) -> JsonShape:
        properties = schema.get("properties")
        if isinstance(properties, dict) and properties:
            return JsonShape(
                OBJECT,
                tuple((name, self.shape(each, base, above, depth + 1)) for name, each in properties.items()),
            )
        more = schema.get("additionalProperties")
        return (
            JsonShape(MAP, (("", self.shape(more, base, above, depth + 1)),))
            if isinstance(more, dict)
            else ANY
        )

    def _resolve(self, ref: str, base: Any) -> tuple[Any, Any]:
        name, _, pointer = ref.partition("#")
        if name:
            known = self._referenced.get(name)
            if known is None:
                documents = [each for each in self._referenced.values() if isinstance(each, dict)]
                known = next((each for each in documents if each.get("$id") == name), None)
            if known is None:
                raise DecodeError(f"the JSON Schema refers to {name!r}, which is none of its references")
            base = known
        found = base
        for part in pointer.split("/")[1:] if pointer.startswith("/") else []:
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or part not in found:
                raise DecodeError(f"the JSON Schema refers to {ref!r}, which is not there")
            found = found[part]
        return found, base


def shape_of_type(kind: pa.DataType) -> JsonShape:
    """Return the shape of an inferred Arrow type; times become text, as they were written."""
    if pa.types.is_struct(kind):
        return JsonShape(OBJECT, tuple((field.name, shape_of_type(field.type)) for field in kind))
    if pa.types.is_list(kind):
        return JsonShape(LIST, (("", shape_of_type(kind.value_type)),))
    if pa.types.is_boolean(kind):
        return JsonShape(BOOLEAN)
    if pa.types.is_integer(kind):
        return JsonShape(INTEGER)
    if pa.types.is_floating(kind):
        return JsonShape(NUMBER)
    return EMPTY if pa.types.is_null(kind) else JsonShape(STRING)


def shape_of_value(value: Any) -> JsonShape:
    """Return the shape of one JSON value."""
    if isinstance(value, dict):
        return JsonShape(OBJECT, tuple((key, shape_of_value(each)) for key, each in value.items()))
    if isinstance(value, list):
        found = EMPTY
        for each in value:
            found = merged(found, shape_of_value(each))
        return JsonShape(LIST, (("", found),))
    if isinstance(value, bool):
        return JsonShape(BOOLEAN)
    if isinstance(value, int):
        return JsonShape(INTEGER) if -_INT64 <= value < _INT64 else ANY
    if isinstance(value, float):
        return JsonShape(NUMBER)
    return JsonShape(STRING) if isinstance(value, str) else EMPTY


def merged(one: JsonShape, other: JsonShape) -> JsonShape:
    """Return a shape that fits the values of two shapes: JSON text if the shapes have nothing in common."""
    if one == other or other.kind == NOTHING:
        return one
    if one.kind == NOTHING:
        return other
    if {one.kind, other.kind} == {INTEGER, NUMBER}:
        return JsonShape(NUMBER)
    if one.kind != other.kind:
        return ANY
    if one.kind == LIST:
        return JsonShape(LIST, (("", merged(one.children[0][1], other.children[0][1])),))
    if one.kind == OBJECT:
        found = dict(one.children)
        for name, shape in other.children:
            found[name] = merged(found.get(name, EMPTY), shape)
        return JsonShape(OBJECT, tuple(found.items())) if len(found) <= SHAPES_MAX else ANY
    return ANY


def fitted(value: Any, shape: JsonShape, place: str = "the value") -> Any:
    """Convert a JSON value to the form that an array of the shape's type accepts.

    Raises:
        MisfitError: the value has another shape; the message has the path in the value.
    """
    if value is None and shape.kind != TEXT:
        return None
    kind = shape.kind
    if kind == TEXT:
        return None if value is None else json.dumps(value, ensure_ascii=False)
    if kind == OBJECT and isinstance(value, dict):
        return {name: fitted(value.get(name), each, f"{place}.{name}") for name, each in shape.children}
    if kind == MAP and isinstance(value, dict):
        inner = shape.children[0][1]
        return [(key, fitted(each, inner, f"{place}.{key}")) for key, each in value.items()]
    if kind == LIST and isinstance(value, list):
        inner = shape.children[0][1]
        return [fitted(each, inner, f"{place}[{number}]") for number, each in enumerate(value)]
    if kind == BOOLEAN and isinstance(value, bool):
        return value
    if kind == STRING and isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if kind == NUMBER:
            return _as_float(value, place)
        if kind == INTEGER and math.isfinite(value) and int(value) == value and -_INT64 <= value < _INT64:
            return int(value)
    raise MisfitError(f"{place} is {json.dumps(value)[:60]}, and the schema says {kind}")


def _as_float(value: float, place: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise MisfitError(f"{place} is a number that no column of numbers holds") from None
