"""Creates message classes from a user's own definitions, with source that `class_writer` generates."""

from __future__ import annotations

import os
import sys
from types import ModuleType

from penstock.protocol.message import Message
from penstock.protocol.schema.class_writer import module_source
from penstock.protocol.schema.definition import Definition, snake_case
from penstock.protocol.schema.loader import read_definition


def load_message(path: str | os.PathLike[str]) -> type[Message]:
    """Read a message definition from a file, and return a message class made from it.

    Raises:
        DefinitionError: the definition breaks a rule of the language.
        OSError: the file cannot be read.
    """
    return message_class(read_definition(path))


def message_class(definition: Definition) -> type[Message]:
    """Return a new message class for a definition that is not one of Kafka's own."""
    name = f"penstock.protocol.loaded.{snake_case(definition.name)}_{id(definition):x}"
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(module_source(definition), f"<classes of {definition.source}>", "exec"), module.__dict__)
    made: type[Message] = getattr(module, definition.name)
    made.DEFINITION = definition
    return made
