"""Formats of keys and values on the command line, their names in JSON, and files with schemas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import EncodeError

if TYPE_CHECKING:
    from penstock.registry.schemas import Schema

SCHEMA_FORMATS = ("avro", "protobuf", "json")
"""The formats of keys and values that have schemas in a registry."""

ENVELOPE = {"key": "key", "value": "payload"}
"""A dict from the record fields key and value to their names in kcat's JSON lines."""

TYPES = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


def schema_in_file(file: str) -> Schema:
    """Return the schema in a file, whose extension determines the format.

    Raises:
        EncodeError: the extension is unknown, or the file is not UTF-8.
    """
    from penstock.registry.schemas import Schema

    kind = TYPES.get(Path(file).suffix)
    if kind is None:
        raise EncodeError(f"{file}: the name of a schema's file ends with one of {', '.join(TYPES)}")
    try:
        return Schema(Path(file).read_text(encoding="utf-8"), kind)
    except UnicodeDecodeError:
        raise EncodeError(f"{file} is not UTF-8") from None
