"""Schemas and versions of subjects, as a registry stores them. A schema has text, type and references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError, DecodeError

AVRO = "AVRO"
JSON = "JSON"
PROTOBUF = "PROTOBUF"
TYPES = (AVRO, JSON, PROTOBUF)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to another schema: the name in the referring text, and the other's subject and version."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        """Return the reference as JSON for requests and answers."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, its type (``AVRO``, ``JSON`` or ``PROTOBUF``) and its references."""

    text: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise ConfigError(f"there is no schema type {self.type!r}: it is one of {', '.join(TYPES)}")
        if not isinstance(self.text, str):
            raise ConfigError(f"the text of a schema is needed, not {type(self.text).__name__}")

    def as_json(self) -> dict[str, Any]:
        """Return the schema as JSON for a request; the type is left out for Avro, the default."""
        body: dict[str, Any] = {"schema": self.text}
        if self.type != AVRO:
            body["schemaType"] = self.type
        if self.references:
            body["references"] = [reference.as_json() for reference in self.references]
        return body


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A version of a subject: its number, the id and the GUID of its schema, and the schema."""

    subject: str
    version: int
    id: int
    schema: Schema
    guid: str | None = None


def references_in(found: object) -> tuple[Reference, ...]:
    """Return the references in the member ``references`` of a request's or an answer's JSON.

    Raises:
        DecodeError: the references are malformed.
    """
    if found is None:
        return ()
    try:
        return tuple(_reference(each) for each in _list(found))
    except (KeyError, TypeError, ValueError):
        raise DecodeError(
            f"references of a schema have name, subject and version, not {found!r:.100}"
        ) from None


def schema_in(found: Mapping[str, Any]) -> Schema:
    """Return the schema that the JSON of a request or an answer contains.

    Raises:
        DecodeError: the document has no schema, or one of an unknown type.
    """
    text = found.get("schema")
    kind = found.get("schemaType") or AVRO
    if not isinstance(text, str) or kind not in TYPES:
        raise DecodeError(f"no schema of a known type in {found!r:.200}")
    return Schema(text, kind, references_in(found.get("references")))


def _reference(found: Mapping[str, Any]) -> Reference:
    return Reference(str(found["name"]), str(found["subject"]), int(found["version"]))


def _list(found: Any) -> Iterable[Any]:
    if not isinstance(found, list):
        raise TypeError(found)
    return found
