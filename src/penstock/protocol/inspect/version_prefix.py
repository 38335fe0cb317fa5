"""The version prefix of messages that are stored or sent outside of requests and responses.

A request's header has its version; a message that is stored in a topic or sent from member to member
has its version in front of it. Kafka has three forms:

- most carry two bytes of version: consumer protocol, values of `__consumer_offsets` and similar topics;
- keys of coordinators carry two bytes for the record type: the API key in the definition of the key;
- metadata records (KRaft and tiered storage) carry three unsigned varints: the version of this
  frame, which is 1, the API key, and the version.

A few control records have their version as their own first field, and no prefix.
"""

from __future__ import annotations

import struct
from struct import Struct

from penstock.errors import ConfigError, DecodeError
from penstock.protocol.compiler.runtime import read_uvarint, write_uvarint
from penstock.protocol.message import Message
from penstock.protocol.schema.definition import Definition
from penstock.protocol.schema.loader import load_definition

METADATA_FRAME_VERSION = 1

_INT16 = Struct(">h")

TWO_BYTES, KEY, VARINTS = "two bytes", "key", "varints"

_WITHOUT = frozenset({"QuorumStateData"})
"""Names of messages without a version prefix, because Kafka stores them as JSON in files of their own."""

_ways: dict[type[Message], str] = {}


def leading_bytes(message_class: type[Message], version: int) -> bytes:
    """Return the version prefix of a message of this class at `version`.

    Raises:
        ConfigError: messages of this class have no prefix.
    """
    way = _way(message_class)
    if way == VARINTS:
        numbers = (METADATA_FRAME_VERSION, message_class.API_KEY or 0, version)
        return b"".join(map(write_uvarint, numbers))
    return _INT16.pack((message_class.API_KEY or 0) if way == KEY else version)


def read_leading(message_class: type[Message], data: bytes) -> tuple[int | None, int]:
    """Read a version prefix; return (version, position after the prefix).

    The version is None if the prefix has none.

    Raises:
        DecodeError: the bytes are too short, or the prefix is that of another message.
        ConfigError: messages of this class have no prefix.
    """
    way, name = _way(message_class), message_class.NAME
    try:
        if way == VARINTS:
            return _read_varints(message_class, data)
        (number,) = _INT16.unpack_from(data)
    except (IndexError, struct.error):
        raise DecodeError(f"{name}: {len(data)} bytes are too short for the version in front") from None
    if way == TWO_BYTES:
        return number, 2
    if number != message_class.API_KEY:
        raise DecodeError(
            f"{name}: the bytes begin with {number}, the key of {name} is {message_class.API_KEY}"
        )
    return None, 2


def _read_varints(message_class: type[Message], data: bytes) -> tuple[int, int]:
    frame, position = read_uvarint(data, 0)
    key, position = read_uvarint(data, position)
    version, position = read_uvarint(data, position)
    if frame != METADATA_FRAME_VERSION:
        raise DecodeError(f"{message_class.NAME}: frame version {frame} is unknown, it should be 1")
    if key != message_class.API_KEY:
        raise DecodeError(
            f"{message_class.NAME}: the bytes say key {key}, this record has key {message_class.API_KEY}"
        )
    return version, position


def _way(message_class: type[Message]) -> str:
    way = _ways.get(message_class)
    if way is None:
        definition = message_class.DEFINITION or load_definition(message_class.NAME)
        way = _ways[message_class] = _way_of(definition)
    if not way:
        raise ConfigError(f"{message_class.NAME} has no version in front of it: leave out framed")
    return way


def _way_of(definition: Definition) -> str:
    """Return the form of version prefix that messages of a definition have; an empty string for none."""
    if definition.type == "coordinator-key":
        return KEY
    if definition.type == "metadata":
        return VARINTS
    says_itself = any(field.attribute == "version" for field in definition.root.fields[:1])
    if definition.type not in ("coordinator-value", "data") or says_itself or definition.name in _WITHOUT:
        return ""
    return TWO_BYTES
