"""A slow and simple codec that follows a message definition field by field, to check the compiled codec.

It shares only the definition and the message classes with the compiled codec.
"""

from __future__ import annotations

import re
import struct
import sys

from penstock.protocol.schema.definition import Definition, FieldSpec, FieldType, NewStruct, StructSpec

FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint16": "H", "uint32": "I", "float64": "d",
}  # fmt: skip


class Malformed(Exception):
    pass


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = bytes(data), 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise Malformed("out of data")
        self.at += size
        return self.data[self.at - size : self.at]

    def fixed(self, code: str):
        return struct.unpack(">" + code, self.take(struct.calcsize(code)))[0]

    def uvarint(self, bits: int = 32) -> int:
        value = 0
        for shift in range(0, bits + 6, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                if value >= 1 << bits:
                    raise Malformed("too large")
                return value
        raise Malformed("too long")


def uvarint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value % 128 + 128])
        value //= 128
    return out + bytes([value])


def encode(definition: Definition, version: int, message) -> bytes:
    return _encode_struct(definition, version, definition.root, message)


def decode(definition: Definition, version: int, message_class: type, data: bytes):
    """Return the decoded message and the number of bytes that it took."""
    reader = Reader(data)
    classes = vars(sys.modules[message_class.__module__])
    return _decode_struct(definition, version, definition.root, classes, reader), reader.at


# Writing


def _encode_struct(definition: Definition, version: int, spec: StructSpec, value) -> bytes:
    out = b""
    tags = dict(value.unknown_tags or {})
    for field in spec.fields:
        content = getattr(value, field.attribute)
        if version not in field.versions:
            continue
        data = _encode_field(definition, version, field, content)
        if version not in field.tagged:
            out += data
        elif content != default(field, sys.modules[type(value).__module__]):
            tags[field.tag] = data
    if version in definition.flexible:
        out += uvarint(len(tags))
        for tag in sorted(tags):
            out += uvarint(tag) + uvarint(len(tags[tag])) + tags[tag]
    return out


def default(field: FieldSpec, module):
    if field.default is NewStruct:
        return getattr(module, field.widest.base)()
    return [] if field.default == () else field.default


def _encode_field(definition: Definition, version: int, field: FieldSpec, value) -> bytes:
    compact = version in (definition.flexible if field.flexible is None else field.flexible)
    field_type = field.type_at(version)
    if field_type.is_array:
        if value is None:
            return _length(None, compact, "i")
        elements = [_encode_one(definition, version, field_type, item, compact, False) for item in value]
        return _length(len(value), compact, "i") + b"".join(elements)
    if field_type.is_struct and version in field.nullable:
        null, present = (b"\0", b"\1") if version in field.tagged else (b"\xff", b"\1")
        if value is None:
            return null
        return present + _encode_one(definition, version, field_type, value, compact, False)
    return _encode_one(definition, version, field_type, value, compact, version in field.nullable)


def _encode_one(
    definition: Definition, version: int, of: FieldType, value, compact: bool, nullable: bool
) -> bytes:
    if of.is_struct:
        return _encode_struct(definition, version, definition.structs[of.base], value)
    if of.base in ("string", "bytes", "records"):
        code = "h" if of.base == "string" else "i"
        if value is None:
            return _length(None, compact, code)
        data = value.encode() if of.base == "string" else bytes(value)
        return _length(len(data), compact, code) + data
    if of.base == "uuid":
        return bytes(value)
    if of.encoding == "fixed":
        return struct.pack(">" + FORMATS[of.base], value)
    bits = int(of.base.removeprefix("int"))
    if of.encoding == "signed":
        return uvarint(2 * value if value >= 0 else -2 * value - 1)
    return uvarint(value % (1 << bits))


def _length(length: int | None, compact: bool, code: str) -> bytes:
    if compact:
        return uvarint(0 if length is None else length + 1)
    return struct.pack(">" + code, -1 if length is None else length)


# Reading


def _decode_struct(definition: Definition, version: int, spec: StructSpec, classes: dict, reader: Reader):
    value = classes[spec.name]()
    tagged = {}
    for field in spec.fields:
        if version in field.tagged:
            tagged[field.tag] = field
        elif version in field.versions:
            setattr(value, field.attribute, _decode_field(definition, version, field, classes, reader))
    if version not in definition.flexible:
        return value
    last = -1
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        if tag <= last:
            raise Malformed("tags must increase")
        last = tag
        payload = Reader(reader.take(size))
        if tag in tagged:
            decoded = _decode_field(definition, version, tagged[tag], classes, payload)
            setattr(value, tagged[tag].attribute, decoded)
        else:
            value.unknown_tags = {**(value.unknown_tags or {}), tag: payload.data}
    return value


def _decode_field(definition: Definition, version: int, field: FieldSpec, classes: dict, reader: Reader):
    compact = version in (definition.flexible if field.flexible is None else field.flexible)
    nullable = version in field.nullable
    field_type = field.type_at(version)
    if field_type.is_array:
        count = _read_length(reader, compact, "i", nullable)
        if count is None:
            return None
        if count > len(reader.data) - reader.at:
            raise Malformed("too many elements")
        return [
            _decode_one(definition, version, field_type, classes, reader, compact, False)
            for _ in range(count)
        ]
    if field_type.is_struct and nullable:
        is_null = reader.uvarint() == 0 if version in field.tagged else reader.fixed("b") < 0
        return (
            None if is_null else _decode_one(definition, version, field_type, classes, reader, compact, False)
        )
    return _decode_one(definition, version, field_type, classes, reader, compact, nullable)


def _decode_one(definition, version, of: FieldType, classes, reader: Reader, compact: bool, nullable: bool):
    if of.is_struct:
        return _decode_struct(definition, version, definition.structs[of.base], classes, reader)
    if of.base in ("string", "bytes", "records"):
        size = _read_length(reader, compact, "h" if of.base == "string" else "i", nullable)
        if size is None:
            return None
        data = reader.take(size)
        if of.base != "string":
            return data
        return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]?", b"\xff", data).decode("utf-8", "replace")
    if of.base == "uuid":
        return reader.take(16)
    if of.encoding == "fixed":
        return reader.fixed(FORMATS[of.base])
    bits = int(of.base.removeprefix("int"))
    sent = reader.uvarint(bits)
    if of.encoding == "signed":
        return sent // 2 if sent % 2 == 0 else -(sent + 1) // 2
    return sent - (1 << bits) if sent >= 1 << (bits - 1) else sent


def _read_length(reader: Reader, compact: bool, code: str, nullable: bool) -> int | None:
    length = reader.uvarint() - 1 if compact else reader.fixed(code)
    if length == -1 and nullable:
        return None
    if length < 0:
        raise Malformed("null or negative")
    return length
