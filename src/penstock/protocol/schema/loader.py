"""Loads definitions from files: definitions of Kafka's messages by name, others by path."""

from __future__ import annotations

import os

from penstock.protocol.schema.definition import Definition, DefinitionError
from penstock.protocol.schema.parser import parse_definition

FILE_BYTES_MAX = 4 << 20
"""The greatest size of a definition file in bytes. The largest file of Kafka has some 20 KB."""


def definitions_directory() -> str:
    """Return the directory with the definitions of Kafka's own messages."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "definitions")


def load_definition(name: str) -> Definition:
    """Return the definition of one of Kafka's messages by name, such as ``FetchRequest``."""
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
