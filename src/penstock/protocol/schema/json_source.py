"""Reads properties from a definition's JSON. A `DefinitionError` for a wrong type names file and field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.common.suggestions import did_you_mean, short_repr
from penstock.protocol.schema.definition import DefinitionError
from penstock.protocol.schema.versions import Versions

NAME_LENGTH_MAX = 200
"""The maximum length of a name in characters."""


def is_name(text: object) -> bool:
    """Return True if `text` can be a name: ASCII letters and digits, beginning with a letter."""
    return isinstance(text, str) and text.isascii() and text.isalnum() and text[0].isalpha()


class JsonSource:
    """A reader of the properties in the JSON of one definition. `origin` names the file in errors."""

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def fail(self, path: str, problem: str) -> DefinitionError:
        return DefinitionError(f"{self._origin}: {path}: {problem}" if path else f"{self._origin}: {problem}")

    def keyed(self, source: object, path: str, known: set[str]) -> dict[str, Any]:
        if not isinstance(source, dict):
            raise self.fail(path, f"expected an object, found {short_repr(source)}")
        if unknown := source.keys() - known:
            key = min(map(str, unknown))
            raise self.fail(path, f"unknown property {short_repr(key)}{did_you_mean(key, sorted(known))}")
        return source

    def items(self, spec: Mapping[str, Any], key: str, path: str) -> list[Any]:
        items = spec.get(key, [])
        if not isinstance(items, list):
            raise self.fail(path, f"{key} must be a list")
        return items

    def name(self, spec: Mapping[str, Any], path: str) -> str:
        name = spec.get("name")
        if name is None:
            raise self.fail(path, "name is missing")
        if not isinstance(name, str) or not is_name(name):
            raise self.fail(path, f"{short_repr(name)} is no name: letters and digits, a letter first")
        if len(name) > NAME_LENGTH_MAX:
            raise self.fail(path, f"{short_repr(name)} is longer than {NAME_LENGTH_MAX} characters")
        return name

    def names(self, spec: Mapping[str, Any], key: str) -> list[str]:
        names = self.items(spec, key, "")
        if not all(isinstance(each, str) for each in names):
            raise self.fail("", f"{key} must be a list of names")
        return names

    def flag(self, spec: Mapping[str, Any], key: str, path: str) -> bool:
        flag = spec.get(key, False)
        if not isinstance(flag, bool):
            raise self.fail(path, f"{key} must be true or false")
        return flag

    def range(self, text: object, path: str) -> Versions:
        try:
            return Versions.parse(text if isinstance(text, str) else repr(text))
        except ValueError as error:
            raise self.fail(path, str(error)) from error

    def versions(
        self, spec: Mapping[str, Any], key: str, path: str, missing: Versions | None = None
    ) -> Versions:
        if key in spec:
            return self.range(spec[key], path or key)
        if missing is None:
            raise self.fail(path, f"{key} is missing")
        return missing


def number_of(source: object) -> Any:
    """Return `source`, or its number if it is a string of digits: Kafka's definitions write some tags so."""
    return int(source) if isinstance(source, str) and source.isdecimal() and len(source) < 10 else source
