"""Checks if one JSON Schema accepts every value that another accepts, and lists the reasons if not.

The checks cover the keywords of most schemas: types, properties, required names, bounds, enums, items,
alternatives. The kinds of incompatibility have the names of Confluent's checker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import DecodeError

PROBLEMS_MAX = 100
DEPTH_MAX = 50
_GROWING = {"maxLength": "MAX_LENGTH", "maximum": "MAXIMUM", "exclusiveMaximum": "EXCLUSIVE_MAXIMUM"}
_GROWING |= {"maxItems": "MAX_ITEMS", "maxProperties": "MAX_PROPERTIES"}
_SHRINKING = {"minLength": "MIN_LENGTH", "minimum": "MINIMUM", "exclusiveMinimum": "EXCLUSIVE_MINIMUM"}
_SHRINKING |= {"minItems": "MIN_ITEMS", "minProperties": "MIN_PROPERTIES"}


def incompatibilities(reader: Any, writer: Any, referenced: Mapping[str, Any] | None = None) -> list[str]:
    """Return the reasons why `reader` refuses values that `writer` accepts; an empty list if none."""
    checker = _Checker(reader, writer, referenced or {})
    checker.compare(reader, writer, "#", 0)
    return checker.found[:PROBLEMS_MAX]


class _Checker:
    """Compares two JSON Schemas part by part, and collects the incompatibilities."""

    def __init__(self, reader: Any, writer: Any, referenced: Mapping[str, Any]) -> None:
        self.found: list[str] = []
        self._roots = (reader, writer)
        self._referenced = referenced
        self._seen: set[tuple[int, int]] = set()

    def _say(self, kind: str, place: str, description: str) -> None:
        self.found.append(
            f'{{errorType:"{kind}", description:"The new schema {description} at path \'{place}\'"}}'
        )

    def compare(self, reader: Any, writer: Any, place: str, depth: int) -> None:
        reader, writer = self._followed(reader, 0), self._followed(writer, 1)
        if (id(reader), id(writer)) in self._seen or depth > DEPTH_MAX or len(self.found) > PROBLEMS_MAX:
            return
        self._seen.add((id(reader), id(writer)))
        if reader is True or reader == {} or writer is False or reader == writer:
            return
        if reader is False:
            self._say("TYPE_NARROWED", place, "takes nothing")
            return
        writer = {} if writer is True else writer
        for word in ("oneOf", "anyOf"):
            if word in reader or word in writer:
                self._compare_options(reader, writer, word, place, depth)
                return
        self._compare_types(reader, writer, place)
        self._compare_bounds(reader, writer, place)
        if "enum" in reader:
            lost = [each for each in writer.get("enum", ()) if each not in reader["enum"]]
            if "enum" not in writer or lost:
                self._say("ENUM_ARRAY_NARROWED", place, f"has an enum without {lost or 'other values'}")
        if "properties" in reader or "properties" in writer or "required" in reader:
            self._compare_properties(reader, writer, place, depth)
        for word in ("items", "additionalProperties"):
            if isinstance(reader.get(word), dict) and not isinstance(writer.get(word), list):
                self.compare(reader[word], writer.get(word, True), f"{place}/{word}", depth + 1)

    def _compare_types(self, reader: Any, writer: Any, place: str) -> None:
        wanted, written = _types(reader), _types(writer)
        if wanted is None:
            return
        if written is None:
            self._say("TYPE_NARROWED", place, f"has type {sorted(wanted)}, where the old one had none")
            return
        lost = {each for each in written - wanted if not (each == "integer" and "number" in wanted)}
        if lost:
            kind = "TYPE_CHANGED" if not written & wanted else "TYPE_NARROWED"
            self._say(kind, place, f"does not have the type {sorted(lost)}")

    def _compare_bounds(self, reader: Any, writer: Any, place: str) -> None:
        for words, is_growing in ((_GROWING, True), (_SHRINKING, False)):
            for word, name in words.items():
                new, old = reader.get(word), writer.get(word)
                if not isinstance(new, (int, float)) or isinstance(new, bool):
                    continue
                if not isinstance(old, (int, float)):
                    self._say(f"{name}_ADDED", place, f"has {word}")
                elif (new < old) if is_growing else (new > old):
                    self._say(
                        f"{name}_{'DECREASED' if is_growing else 'INCREASED'}", place, f"has {word} {new}"
                    )
        for word, name in (("pattern", "PATTERN"), ("multipleOf", "MULTIPLE_OF"), ("const", "CONST")):
            if word in reader and reader[word] != writer.get(word):
                self._say(f"{name}_{'CHANGED' if word in writer else 'ADDED'}", place, f"has another {word}")
        if reader.get("uniqueItems") and not writer.get("uniqueItems"):
            self._say("UNIQUE_ITEMS_ADDED", place, "has uniqueItems")

    def _compare_properties(self, reader: Any, writer: Any, place: str, depth: int) -> None:
        wanted, written = reader.get("properties") or {}, writer.get("properties") or {}
        is_open = writer.get("additionalProperties", True) is not False
        takes_more = reader.get("additionalProperties", True) is not False
        if is_open and not takes_more:
            self._say("ADDITIONAL_PROPERTIES_REMOVED", place, "takes no additional properties")
        for name in written.keys() - wanted.keys():
            if not takes_more and not is_open:
                inner = f"{place}/properties/{name}"
                self._say("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", inner, "lacks the property")
        required, was_required = set(reader.get("required") or ()), set(writer.get("required") or ())
        for name, each in wanted.items():
            inner = f"{place}/properties/{name}"
            if name in written:
                self.compare(each, written[name], inner, depth + 1)
            elif is_open and each not in (True, {}):
                self._say("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", inner, "has the property")
            elif name in required and not (isinstance(each, dict) and "default" in each):
                self._say("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", inner, "needs the property")
        for name in sorted(required - was_required):
            each = wanted.get(name)
            if (name in written or name not in wanted) and not (isinstance(each, dict) and "default" in each):
                self._say("REQUIRED_ATTRIBUTE_ADDED", f"{place}/required/{name}", "needs the property")

    def _compare_options(self, reader: Any, writer: Any, word: str, place: str, depth: int) -> None:
        options = reader.get(word, [reader]) if isinstance(reader, dict) else [reader]
        for number, old in enumerate(writer.get(word, [writer])):
            if not any(self._takes(each, old, depth) for each in options):
                self._say(
                    "COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{place}/{word}/{number}", "lacks an alternative"
                )

    def _takes(self, reader: Any, writer: Any, depth: int) -> bool:
        inner = _Checker(*self._roots, self._referenced)
        inner._seen = set(self._seen)
        inner.compare(reader, writer, "#", depth + 1)
        return not inner.found

    def _followed(self, schema: Any, side: int) -> Any:
        root = self._roots[side]
        for _ in range(DEPTH_MAX):
            if not isinstance(schema, dict) or not isinstance(schema.get("$ref"), str):
                return schema
            name, _, pointer = schema["$ref"].partition("#")
            schema = self._referenced.get(name, {}) if name else root
            root = schema
            for part in pointer.split("/")[1:]:
                part = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(schema, dict) or part not in schema:
                    raise DecodeError(f"the JSON Schema refers to {pointer!r}, which is not there")
                schema = schema[part]
        return schema


def _types(schema: Any) -> set[str] | None:
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind) if isinstance(kind, list) else None
