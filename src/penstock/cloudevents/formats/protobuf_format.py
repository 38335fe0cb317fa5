"""The Protobuf event format (rules R1 to R5): one CloudEvent message, or a batch of them.

The messages are few and small, so their wire format is written here: no protobuf library is needed.
A Timestamp has no offset and at most nanoseconds, so a time comes back as the same instant in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from penstock.cloudevents.event import REQUIRED, Event
from penstock.cloudevents.formats.json_format import encode_text, is_text_in_utf8
from penstock.cloudevents.formats.typed import build_event
from penstock.cloudevents.grammar import INTEGER_MAX, INTEGER_MIN
from penstock.cloudevents.mediatype import essence
from penstock.cloudevents.outcome import InvalidEventError, in_batch, shown
from penstock.cloudevents.timestamps import instant, timestamp_of
from penstock.cloudevents.types import (
    URI,
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    AttributeValue,
    Timestamp,
    URIReference,
)
from penstock.cloudevents.uris import is_uri
from penstock.errors import EncodeError

MEDIA_TYPE = "application/cloudevents+protobuf"
BATCH_MEDIA_TYPE = "application/cloudevents-batch+protobuf"
PROTOBUF_TYPE = "application/protobuf"

# Fields of CloudEvent.
_ID, _SOURCE, _SPEC_VERSION, _TYPE, _ATTRIBUTES, _BINARY_DATA, _TEXT_DATA, _PROTO_DATA = range(1, 9)
_REQUIRED_FIELDS = {_ID: "id", _SOURCE: "source", _SPEC_VERSION: "specversion", _TYPE: "type"}
# Fields of CloudEventAttributeValue.
_BOOLEAN, _INTEGER, _STRING, _BYTES, _URI, _URI_REF, _TIMESTAMP = range(1, 8)
# Wire types.
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

_CORE_KINDS = {"datacontenttype": _STRING, "subject": _STRING, "dataschema": _URI, "time": _TIMESTAMP}
_EPOCH_DAY = 719_163
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799
_NANOS = 1_000_000_000


def write_event(event: Event, *, text_data: bool = False) -> bytes:
    """The event as a CloudEvent message. `text_data` writes text media types in UTF-8 to `text_data`.

    Raises:
        EncodeError: R5, the time is outside of the years 1 to 9999.
    """
    attributes = event.attributes()
    parts = [_field(number, str(attributes.pop(name)).encode()) for number, name in _REQUIRED_FIELDS.items()]
    if event.content_type is not None:
        attributes["datacontenttype"] = event.content_type
    for name, value in attributes.items():
        kind = _CORE_KINDS.get(name) or _kind_of(value)
        entry = _field(1, name.encode()) + _field(2, _attribute(name, kind, value))
        parts.append(_field(_ATTRIBUTES, entry))
    if event.data is not None:
        parts.append(_data(event, event.data, text_data))
    return b"".join(parts)


def write_batch(events: Iterable[Event], *, text_data: bool = False) -> bytes:
    """The events as a CloudEventBatch message."""
    return b"".join(_field(1, write_event(event, text_data=text_data)) for event in events)


def _data(event: Event, data: bytes, text_data: bool) -> bytes:
    content_type = event.content_type
    if content_type is not None and essence(content_type) == PROTOBUF_TYPE and event.dataschema is not None:
        return _field(_PROTO_DATA, _field(1, event.dataschema.encode()) + _field(2, data))
    if text_data and content_type is not None and is_text_in_utf8(content_type):
        try:
            data.decode()
        except UnicodeDecodeError:
            pass
        else:
            return _field(_TEXT_DATA, data)
    return _field(_BINARY_DATA, data)


def _kind_of(value: AttributeValue) -> int:
    for kind, number in (
        (bool, _BOOLEAN),
        (int, _INTEGER),
        (bytes, _BYTES),
        (Timestamp, _TIMESTAMP),
        (URI, _URI),
        (URIReference, _URI_REF),
    ):
        if isinstance(value, kind):
            return number
    return _STRING


def _attribute(name: str, kind: int, value: AttributeValue) -> bytes:
    if isinstance(value, int):
        return _tag(kind, _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, bytes):
        return _field(kind, value)
    if kind == _TIMESTAMP:
        return _field(kind, _timestamp(name, value))
    return _field(kind, value.encode())


def _timestamp(name: str, text: str) -> bytes:
    days, second_of_day, fraction = instant(text)
    seconds = (days - _EPOCH_DAY) * 86_400 + second_of_day
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:
        raise EncodeError(f"R5: {name} is outside of what a Protobuf Timestamp can hold: {text}")
    nanos = int(fraction[:9].ljust(9, "0"))
    written = b"" if seconds == 0 else _tag(1, _VARINT) + _varint(seconds & 0xFFFF_FFFF_FFFF_FFFF)
    return written if nanos == 0 else written + _tag(2, _VARINT) + _varint(nanos)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _field(number: int, data: bytes) -> bytes:
    return _tag(number, _LENGTH) + _varint(len(data)) + data


def read_event(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Event:
    """The event that a CloudEvent message stands for.

    Raises:
        InvalidEventError: R1, it is no such message; or it is not a valid event.
    """
    attributes: dict[str, AttributeValue | None] = {}
    payload: tuple[int, bytes] | None = None
    for number, value in _fields(data):
        if number in _REQUIRED_FIELDS:
            # A field of proto3 with its default value is as good as absent.
            attributes[_REQUIRED_FIELDS[number]] = _text(_bytes_of(value)) or None
        elif number == _ATTRIBUTES:
            name, attribute = _read_entry(_bytes_of(value))
            if name in REQUIRED:
                raise InvalidEventError("R4", f"the required attribute {name} has a field of its own")
            if name in attributes:
                raise InvalidEventError("C2", f"the attribute {shown(name)} is there twice")
            attributes[name] = attribute
        elif number in (_BINARY_DATA, _TEXT_DATA, _PROTO_DATA):
            payload = number, _bytes_of(value)
    return build_event(attributes, _read_data(payload, attributes), False, lenient, extension_types, "R4")


def read_batch(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> list[Event]:
    """The events of a CloudEventBatch message.

    Raises:
        InvalidEventError: it is no such message, or one of its events is not valid.
    """
    events: list[Event] = []
    for body in [_bytes_of(value) for number, value in _fields(data) if number == 1]:
        try:
            events.append(read_event(body, lenient=lenient, extension_types=extension_types))
        except InvalidEventError as error:
            raise in_batch(error, len(events)) from None
    return events


def _read_data(
    payload: tuple[int, bytes] | None, attributes: dict[str, AttributeValue | None]
) -> bytes | None:
    if payload is None:
        return None
    number, data = payload
    if number == _BINARY_DATA:
        return data
    content_type = attributes.get("datacontenttype")
    if number == _TEXT_DATA:
        return encode_text(_text(data), content_type if isinstance(content_type, str) else "")
    message = {field: _bytes_of(value) for field, value in _fields(data) if field in (1, 2)}
    # The field says what the data are; without this the event would no longer do so.
    attributes.setdefault("datacontenttype", PROTOBUF_TYPE)
    type_url = _text(message.get(1, b""))
    if is_uri(type_url):
        attributes.setdefault("dataschema", type_url)
    return message.get(2, b"")


def _read_entry(data: bytes) -> tuple[str, AttributeValue]:
    name, value = "", b""
    for number, field in _fields(data):
        if number == 1:
            name = _text(_bytes_of(field))
        elif number == 2:
            value = _bytes_of(field)
    found: tuple[int, int | bytes] | None = None
    for number, field in _fields(value):
        if _BOOLEAN <= number <= _TIMESTAMP:
            found = number, field
    if found is None:
        raise InvalidEventError("R4", f"the attribute {shown(name)} has no value")
    if _CORE_KINDS.get(name, found[0]) != found[0]:
        raise InvalidEventError("R4", f"{name} has a value of the wrong type")
    return name, _read_value(name, *found)


def _read_value(name: str, number: int, field: int | bytes) -> AttributeValue:
    if number in (_BOOLEAN, _INTEGER):
        if not isinstance(field, int):
            raise InvalidEventError("R1", f"the value of {shown(name)} has the wrong wire type")
        if number == _BOOLEAN:
            return field != 0
        signed = field - (1 << 64) if field >> 63 else field
        if not INTEGER_MIN <= signed <= INTEGER_MAX:
            raise InvalidEventError("T2", f"{shown(name)} does not fit a signed 32-bit Integer")
        return signed
    data = _bytes_of(field)
    if number == _BYTES:
        return data
    if number == _TIMESTAMP:
        return Timestamp(_read_timestamp(name, data))
    text = _text(data)
    return URI(text) if number == _URI else URIReference(text) if number == _URI_REF else text


def _read_timestamp(name: str, data: bytes) -> str:
    fields: dict[int, int] = {}
    for number, value in _fields(data):
        if number in (1, 2):
            if not isinstance(value, int):
                raise InvalidEventError("R1", f"the time of {shown(name)} has the wrong wire type")
            fields[number] = value - (1 << 64) if value >> 63 else value
    seconds, nanos = fields.get(1, 0), fields.get(2, 0)
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX or not 0 <= nanos < _NANOS:
        raise InvalidEventError("T7", f"{shown(name)} is outside of the years 1 to 9999")
    return timestamp_of(seconds, nanos)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidEventError("R1", "a string of the message is not UTF-8") from None


def _bytes_of(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise InvalidEventError("R1", "a field of the message has the wrong wire type")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message; numbers as int, everything else as bytes."""
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            value, position = _read_varint(data, position)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire_type, -1)
        if wire_type == _LENGTH:
            size, position = _read_varint(data, position)
        if number == 0 or size < 0 or size > len(data) - position:
            raise InvalidEventError("R1", "the message is cut off or no Protobuf")
        yield number, data[position : position + size]
        position += size


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise InvalidEventError("R1", "the message is cut off")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise InvalidEventError("R1", "a number of the message does not end")
