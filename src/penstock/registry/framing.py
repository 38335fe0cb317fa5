"""The wire formats of values with a schema: 0 (an id in front), 1 (a GUID in a header), and message indexes.

Format 0 is the byte 0, the schema's id in four bytes, and the value; a Protobuf value has the path of its
message type after the id. Format 1 is the byte 1 and the sixteen bytes of the schema's GUID; Confluent's
serializers put it into a header, and leave the value unchanged.

Apicurio's serializers write format 0, also with ids of eight bytes, or put an id of eight bytes into a
header. It is either the content id, which Apicurio Registry's Confluent interface also uses, or the global
id, which that interface does not have.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.errors import CorruptRecordError, DecodeError, EncodeError
from penstock.records.format.varint import TEN_BYTES, encode_varint, read_varint

MAGIC_ID = 0
MAGIC_GUID = 1
GUID_BYTES = 17
KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"
APICURIO_CONTENT_ID = {KEY_HEADER: "apicurio.key.contentId", VALUE_HEADER: "apicurio.value.contentId"}
"""A dict from the names of Confluent's headers with schema ids to the names of Apicurio's headers with
content ids."""
APICURIO_GLOBAL_ID = {KEY_HEADER: "apicurio.key.globalId", VALUE_HEADER: "apicurio.value.globalId"}
ID_SIZES = (4, 8)
"""The possible sizes in bytes of an id in front of a value: Confluent's, and that of Apicurio's
`Legacy8ByteIdHandler`."""
MESSAGE_INDEXES_MAX = 64
"""The most message indexes in front of a value: the greatest nesting depth of a Protobuf message type."""


SchemaId = int | uuid.UUID
"""The identifier of a schema on the wire: an id in format 0, or a GUID in format 1."""


class Framed(NamedTuple):
    """The schema id or GUID in a value's prefix or header, and the position at which the value begins."""

    schema: SchemaId
    begin: int


def id_prefix(schema_id: int, id_bytes: int = 4) -> bytes:
    """Return the prefix of format 0: a zero byte, and the id in `id_bytes` bytes.

    Raises:
        EncodeError: the id does not fit into `id_bytes` bytes.
    """
    if not 0 <= schema_id < 1 << (8 * id_bytes - (id_bytes == 8)):
        raise EncodeError(f"the schema id {schema_id} does not fit into {id_bytes} bytes")
    return bytes([MAGIC_ID]) + schema_id.to_bytes(id_bytes, "big")


def guid_header(guid: str | uuid.UUID) -> bytes:
    """Return the seventeen bytes of format 1, which are the value of a header.

    Raises:
        EncodeError: `guid` is not a GUID.
    """
    try:
        known = guid if isinstance(guid, uuid.UUID) else uuid.UUID(guid)
    except (ValueError, AttributeError, TypeError):
        raise EncodeError(f"{guid!r} is no GUID of a schema") from None
    return bytes([MAGIC_GUID]) + known.bytes


def read_prefix(data: bytes, id_bytes: int = 4) -> Framed:
    """Return the schema that a value's prefix names, in format 0 (with ids of `id_bytes` bytes) or 1.

    Raises:
        DecodeError: the value is too short, or begins with another byte.
    """
    if not data:
        raise DecodeError("the value is empty: no schema id stands in front")
    if data[0] == MAGIC_ID:
        if len(data) <= id_bytes:
            raise DecodeError(f"the value has {len(data)} bytes: a schema id takes {id_bytes + 1}")
        number = int.from_bytes(data[1 : id_bytes + 1], "big")
        if number >= 1 << 63:
            raise DecodeError(f"the value begins with {data[: id_bytes + 1].hex(' ')}: no id of a schema")
        return Framed(number, id_bytes + 1)
    if data[0] == MAGIC_GUID:
        if len(data) < GUID_BYTES:
            raise DecodeError(f"the value has {len(data)} bytes: a schema GUID takes {GUID_BYTES}")
        return Framed(uuid.UUID(bytes=bytes(data[1:GUID_BYTES])), GUID_BYTES)
    raise DecodeError(f"the value begins with byte {data[0]}: a schema id begins with 0, a GUID with 1")


Headers = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | str | None]] | None


def header_value(headers: Headers, name: str) -> bytes | None:
    """Return the value of the last header with the name `name`, or None if there is none."""
    found: bytes | None = None
    for key, value in headers.items() if isinstance(headers, Mapping) else headers or ():
        if key == name and value is not None:
            found = value.encode() if isinstance(value, str) else bytes(value)
    return found


def apicurio_prefix(content_id: bytes) -> bytes:
    """Return the prefix of format 0 for the content id in a header of Apicurio's serializers.

    Raises:
        DecodeError: the content id does not have eight bytes, or does not fit into four.
    """
    number = int.from_bytes(content_id, "big")
    if len(content_id) != 8 or number >= 1 << 32:
        raise DecodeError(f"the header of Apicurio's content id has {content_id.hex(' ')}: no id of a schema")
    return id_prefix(number)


NO_GLOBAL_IDS = (
    "a header of Apicurio's names its global id, which Confluent's interface does not have: write with "
    "apicurio.registry.use-id = contentId"
)


def read_framing(data: bytes, headers: Headers = None, *, is_key: bool = False, id_bytes: int = 4) -> Framed:
    """Return the schema of a value: the one that a header names, or else the one in the value's prefix.

    An id in the prefix has `id_bytes` bytes: four, or eight as Apicurio's serializers may write it.

    Raises:
        DecodeError: neither a header nor the prefix names a schema.
    """
    own = KEY_HEADER if is_key else VALUE_HEADER
    named = header_value(headers, own)
    if named is None:
        content_id = header_value(headers, APICURIO_CONTENT_ID[own])
        if content_id is not None:
            return Framed(read_prefix(apicurio_prefix(content_id)).schema, 0)
        if header_value(headers, APICURIO_GLOBAL_ID[own]) is not None:
            raise DecodeError(NO_GLOBAL_IDS)
        return read_prefix(data, id_bytes)
    found = read_prefix(named)
    if found.begin != len(named):
        raise DecodeError(f"the header of the schema id has {len(named)} bytes, not {found.begin}")
    return Framed(found.schema, 0)


def read_index(data: bytes, at: int) -> tuple[int, int]:
    """Return a zig-zag varint of message indexes and the position after it.

    Raises:
        DecodeError: the varint has more than ten bytes, or does not end within the value.
    """
    try:
        return read_varint(data, at, TEN_BYTES)
    except (IndexError, CorruptRecordError):
        raise DecodeError("a varint of the message indexes does not end") from None


def message_indexes(path: Sequence[int]) -> bytes:
    """Return the encoded path of a Protobuf message type; a single 0 byte for a file's first message."""
    if list(path) == [0]:
        return b"\0"
    return encode_varint(len(path)) + b"".join(map(encode_varint, path))


def read_message_indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Return the path of a message type in its file, and the position after it.

    Raises:
        DecodeError: the path is negative, too long or cut off.
    """
    count, at = read_index(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MESSAGE_INDEXES_MAX:
        raise DecodeError(f"there are {count} message indexes: {MESSAGE_INDEXES_MAX} are allowed")
    path = []
    for _ in range(count):
        index, at = read_index(data, at)
        if index < 0:
            raise DecodeError(f"a message index is {index}")
        path.append(index)
    return tuple(path), at
