"""The Avro event format (rules A1 to A4): a datum of CloudEvents' schema, without header or schema id.

The schema is a record of `attribute`, a map of string to (null, boolean, int, string, bytes), and `data`, a
union of bytes, null, boolean, map, array, double and string. Data are written as bytes, so that they stay
unchanged (the union would make every number a double). On reading, every branch of the union is accepted;
data that are neither bytes nor text become JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping

from penstock.cloudevents.event import Event
from penstock.cloudevents.formats.json_format import encode_text, is_text_in_utf8
from penstock.cloudevents.formats.typed import build_event
from penstock.cloudevents.mediatype import is_json
from penstock.cloudevents.outcome import InvalidEventError
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType, AttributeValue
from penstock.errors import CorruptRecordError
from penstock.records.format.varint import TEN_BYTES, encode_varint, read_varint

MEDIA_TYPE = "application/cloudevents+avro"

_DEPTH_MAX = 100
_DOUBLE = struct.Struct("<d")


def write_event(event: Event, *, text_data: bool = False) -> bytes:
    """Return the event as an Avro datum. `text_data` writes data of text media types in UTF-8 as strings."""
    attributes = event.attributes()
    if event.content_type is not None:
        attributes["datacontenttype"] = event.content_type
    parts = [encode_varint(len(attributes))]
    for name, value in attributes.items():
        parts += [_bytes(name.encode()), _attribute(value)]
    parts.append(encode_varint(0))
    data, content_type = event.data, event.content_type
    if data is None:
        parts.append(encode_varint(1))
    elif text_data and content_type is not None and is_text_in_utf8(content_type) and _is_utf8(data):
        parts += [encode_varint(6), _bytes(data)]
    else:
        parts += [encode_varint(0), _bytes(data)]
    return b"".join(parts)


def _attribute(value: AttributeValue) -> bytes:
    if isinstance(value, bool):
        return encode_varint(1) + (b"\x01" if value else b"\x00")
    if isinstance(value, int):
        return encode_varint(2) + encode_varint(value)
    if isinstance(value, str):
        return encode_varint(3) + _bytes(value.encode())
    return encode_varint(4) + _bytes(value)


def _bytes(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_event(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Event:
    """Return the event that an Avro datum encodes.

    Raises:
        InvalidEventError: the data are not such a datum (A2), or not a valid event.
    """
    reader = _Reader(data)
    attributes: dict[str, AttributeValue | None] = {}
    for _ in reader.items():
        name = reader.string()
        if name in attributes:
            raise InvalidEventError("C2", f"the attribute {name[:80]!r} is there twice")
        attributes[name] = reader.branch(_ATTRIBUTE)  # type: ignore[assignment]  # the branches read nothing else
    payload = reader.branch(_DATA)
    if reader.position != len(data):
        raise InvalidEventError("A2", "there are more bytes after the datum")
    content_type = attributes.get("datacontenttype")
    as_bytes, implied = _payload(payload, content_type if isinstance(content_type, str) else None)
    return build_event(attributes, as_bytes, implied, lenient, extension_types, "A3")


def _payload(value: object, content_type: str | None) -> tuple[bytes | None, bool]:
    """Return data read from Avro as bytes, and True if they are JSON without a content type."""
    if value is None or isinstance(value, bytes):
        return value, False
    if isinstance(value, str) and (content_type is None or not is_json(content_type)):
        return encode_text(value, content_type or ""), False
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InvalidEventError("A4", "data has a number that JSON does not have") from None
    return text.encode(), content_type is None


class _Reader:
    """Reads Avro's binary encoding. Every size is checked against the number of remaining bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self._depth = 0

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise InvalidEventError("A2", "the datum is cut off")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def long(self) -> int:
        try:
            value, self.position = read_varint(self.data, self.position, TEN_BYTES)
        except IndexError:
            raise InvalidEventError("A2", "the datum is cut off") from None
        except CorruptRecordError:
            raise InvalidEventError("A2", "a number of the datum does not end") from None
        return value

    def string(self) -> str:
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError:
            raise InvalidEventError("A2", "a string of the datum is not UTF-8") from None

    def items(self) -> _Items:
        return _Items(self)

    def branch(self, branches: tuple[Callable[[_Reader], object], ...]) -> object:
        """Read the branch number of a union, then a value of this branch; return the value."""
        number = self.long()
        if not 0 <= number < len(branches):
            raise InvalidEventError("A2", f"the datum has branch {number} of a union of {len(branches)}")
        return branches[number](self)

    def nested(self, read: Callable[[_Reader], object]) -> object:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise InvalidEventError("A2", "the datum is nested too deeply")
        value = read(self)
        self._depth -= 1
        return value


class _Items:
    """Iterates over the items of a map or array, which Avro encodes in blocks."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._left = 0

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> None:
        if self._left == 0:
            self._left = self._reader.long()
            if self._left < 0:  # then the size of the block in bytes follows, for those who skip it
                self._left = -self._left
                self._reader.long()
            if self._left == 0:
                raise StopIteration
            if self._left > len(self._reader.data) - self._reader.position:
                raise InvalidEventError("A2", "a block of the datum has more items than bytes are left")
        self._left -= 1


def _null(reader: _Reader) -> None:
    return None


def _boolean(reader: _Reader) -> bool:
    byte = reader.take(1)
    if byte not in (b"\x00", b"\x01"):
        raise InvalidEventError("A2", "a boolean of the datum is neither true nor false")
    return byte == b"\x01"


def _integer(reader: _Reader) -> int:
    return reader.long()


def _double(reader: _Reader) -> float | int:
    value: float = _DOUBLE.unpack(reader.take(8))[0]
    # What was an integer in JSON is one again.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _byte_string(reader: _Reader) -> bytes:
    return reader.take(reader.long())


def _map_of(read: Callable[[_Reader], object]) -> Callable[[_Reader], dict[str, object]]:
    def read_map(reader: _Reader) -> dict[str, object]:
        return {reader.string(): read(reader) for _ in reader.items()}

    return read_map


def _array_of(read: Callable[[_Reader], object]) -> Callable[[_Reader], list[object]]:
    def read_array(reader: _Reader) -> list[object]:
        return [read(reader) for _ in reader.items()]

    return read_array


def _json_object(reader: _Reader) -> object:
    """Return the map in a record CloudEventData, in which CloudEvents' schema wraps nested maps."""
    return reader.nested(_map_of(lambda inner: inner.branch(_NESTED)))


def _member(reader: _Reader) -> object:
    return reader.branch(_MEMBER)


_ATTRIBUTE = (_null, _boolean, _integer, _Reader.string, _byte_string)
_MEMBER = (_null, _boolean, _json_object, _double, _Reader.string)
_NESTED = (_null, _boolean, _map_of(_json_object), _array_of(_json_object), _double, _Reader.string)
_DATA = (
    _byte_string,
    _null,
    _boolean,
    _map_of(_member),
    _array_of(_json_object),
    _double,
    _Reader.string,
)
