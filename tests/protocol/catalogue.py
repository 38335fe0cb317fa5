"""A list of all messages and their versions, with class and definition, for tests that cover each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from penstock.protocol import messages
from penstock.protocol.message import Message
from penstock.protocol.message_index import HOMES
from penstock.protocol.schema.definition import Definition
from penstock.protocol.schema.loader import load_definition

NAMES = sorted(HOMES)


@cache
def message(name: str) -> tuple[type[Message], Definition]:
    return getattr(messages, name), load_definition(name)


def versions(name: str) -> Iterator[tuple[type[Message], Definition, int]]:
    message_class, definition = message(name)
    for version in range(message_class.VERSIONS[0], message_class.VERSIONS[1] + 1):
        yield message_class, definition, version
