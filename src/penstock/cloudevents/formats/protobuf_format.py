"""The Protobuf event format (rules R1 to R5): one CloudEvent message, or a batch.

The messages are few and small, so no protobuf library is needed.
A Timestamp has no offset and at most nanoseconds, so a time is read back as the same instant in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from penstock.common.protobuf import FieldBudget, Fields, ProtobufError, length_field, varint_field
from penstock.errors import EncodeError

MEDIA_TYPE = "application/cloudevents+protobuf"
BATCH_MEDIA_TYPE = "application/cloudevents-batch+protobuf"
PROTOBUF_TYPE = "application/protobuf"

# Fields of CloudEvent.
_ID, _SOURCE, _SPEC_VERSION, _TYPE, _ATTRIBUTES, _BINARY_DATA, _TEXT_DATA, _PROTO_DATA = range(1, 9)
_REQUIRED_FIELDS = {_ID: "id", _SOURCE: "source", _SPEC_VERSION: "specversion", _TYPE: "type"}
# Fields of CloudEventAttributeValue.
_BOOLEAN, _INTEGER, _STRING, _BYTES, _URI, _URI_REF, _TIMESTAMP = range(1, 8)

_CORE_KINDS = {"datacontenttype": _STRING, "subject": _STRING, "dataschema": _URI, "time": _TIMESTAMP}
_EPOCH_DAY = 719_163
_SECONDS_MIN, _SECONDS_MAX = -62_135_596_800, 253_402_300_799
_NANOS = 1_000_000_000


def write_event(event: Event, *, text_data: bool = False) -> bytes:
    """Return the event as a CloudEvent message. `text_data` writes UTF-8 data of text types to `text_data`.

    Raises:
        EncodeError: R5, the time is outside of the years 1 to 9999.
    """
    attributes = event.attributes()
    parts = [
        length_field(number, str(attributes.pop(name)).encode()) for number, name in _REQUIRED_FIELDS.items()
    ]
    if event.content_type is not None:
        attributes["datacontenttype"] = event.content_type
    for name, value in attributes.items():
        kind = _CORE_KINDS.get(name) or _kind_of(value)
        entry = length_field(1, name.encode()) + length_field(2, _attribute(name, kind, value))
        parts.append(length_field(_ATTRIBUTES, entry))
    if event.data is not None:
        parts.append(_data(event, event.data, text_data))
    return b"".join(parts)


def write_batch(events: Iterable[Event], *, text_data: bool = False) -> bytes:
    """Return the events as a CloudEventBatch message."""
    return b"".join(length_field(1, write_event(event, text_data=text_data)) for event in events)


def _data(event: Event, data: bytes, text_data: bool) -> bytes:
    content_type = event.content_type
    if content_type is not None and essence(content_type) == PROTOBUF_TYPE and event.dataschema is not None:
        return length_field(_PROTO_DATA, length_field(1, event.dataschema.encode()) + length_field(2, data))
    if text_data and content_type is not None and is_text_in_utf8(content_type):
        try:
            data.decode()
        except UnicodeDecodeError:
            pass
        else:
            return length_field(_TEXT_DATA, data)
    return length_field(_BINARY_DATA, data)


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
        return varint_field(kind, value)
    if isinstance(value, bytes):
        return length_field(kind, value)
    if kind == _TIMESTAMP:
        return length_field(kind, _timestamp(name, value))
    return length_field(kind, value.encode())


def _timestamp(name: str, text: str) -> bytes:
    days, second_of_day, fraction = instant(text)
    seconds = (days - _EPOCH_DAY) * 86_400 + second_of_day
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:
        raise EncodeError(f"R5: {name} is outside of what a Protobuf Timestamp can hold: {text}")
    nanos = int(fraction[:9].ljust(9, "0"))
    written = b"" if seconds == 0 else varint_field(1, seconds)
    return written if nanos == 0 else written + varint_field(2, nanos)


def read_event(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Event:
    """Return the event in a CloudEvent message.

    Raises:
        InvalidEventError: the bytes are not a CloudEvent message (R1), or not a valid event.
    """
    attributes: dict[str, AttributeValue | None] = {}
    try:
        found = _read_message(data, attributes)
    except ProtobufError as error:
        raise InvalidEventError("R1", str(error)) from None
    return build_event(attributes, found, False, lenient, extension_types, "R4")


def read_batch(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> list[Event]:
    """Return the events of a CloudEventBatch message.

    Raises:
        InvalidEventError: the bytes are not a CloudEventBatch message, or one of its events is invalid.
    """
    bodies: list[bytes] = []
    fields = _fields(data)
    try:
        while fields.advance():
            if fields.number == 1:
                bodies.append(fields.data())
    except ProtobufError as error:
        raise InvalidEventError("R1", str(error)) from None
    events: list[Event] = []
    for body in bodies:
        try:
            events.append(read_event(body, lenient=lenient, extension_types=extension_types))
        except InvalidEventError as error:
            raise in_batch(error, len(events)) from None
    return events


def _fields(data: bytes) -> Fields:
    """Return a reader of the fields of a Protobuf message, without limits for their number and size."""
    return Fields(data, FieldBudget())


def _read_message(data: bytes, attributes: dict[str, AttributeValue | None]) -> bytes | None:
    """Decode a CloudEvent message: add its attributes to `attributes`, and return the event's data."""
    payload: tuple[int, bytes] | None = None
    fields = _fields(data)
    while fields.advance():
        number = fields.number
        if number in _REQUIRED_FIELDS:
            # A field of proto3 with its default value is as good as absent.
            attributes[_REQUIRED_FIELDS[number]] = fields.text() or None
        elif number == _ATTRIBUTES:
            name, attribute = _read_entry(fields.message())
            if name in REQUIRED:
                raise InvalidEventError("R4", f"the required attribute {name} has a field of its own")
            if name in attributes:
                raise InvalidEventError("C2", f"the attribute {shown(name)} is there twice")
            attributes[name] = attribute
        elif number in (_BINARY_DATA, _TEXT_DATA, _PROTO_DATA):
            payload = number, fields.data()
    return _read_data(payload, attributes)


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
    type_url, value = "", b""
    message = _fields(data)
    while message.advance():
        if message.number == 1:
            type_url = message.text()
        elif message.number == 2:
            value = message.data()
    # The field says what the data are; without this the event would no longer do so.
    attributes.setdefault("datacontenttype", PROTOBUF_TYPE)
    if is_uri(type_url):
        attributes.setdefault("dataschema", type_url)
    return value


def _read_entry(fields: Fields) -> tuple[str, AttributeValue]:
    name = ""
    value: Fields | None = None
    while fields.advance():
        if fields.number == 1:
            name = fields.text()
        elif fields.number == 2:
            value = fields.message()
    kind = 0
    found: AttributeValue = ""
    while value is not None and value.advance():
        if _BOOLEAN <= value.number <= _TIMESTAMP:  # a oneof: the last one counts
            kind, found = value.number, _read_value(name, value)
    if not kind:
        raise InvalidEventError("R4", f"the attribute {shown(name)} has no value")
    if _CORE_KINDS.get(name, kind) != kind:
        raise InvalidEventError("R4", f"{name} has a value of the wrong type")
    return name, found


def _read_value(name: str, field: Fields) -> AttributeValue:
    number = field.number
    if number == _STRING:
        return field.text()
    if number == _BOOLEAN:
        return field.varint() != 0
    if number == _INTEGER:
        signed = field.signed()
        if not INTEGER_MIN <= signed <= INTEGER_MAX:
            raise InvalidEventError("T2", f"{shown(name)} does not fit a signed 32-bit Integer")
        return signed
    if number == _BYTES:
        return field.data()
    if number == _TIMESTAMP:
        return Timestamp(_read_timestamp(name, field.message()))
    return URI(field.text()) if number == _URI else URIReference(field.text())


def _read_timestamp(name: str, fields: Fields) -> str:
    seconds = nanos = 0
    while fields.advance():
        if fields.number == 1:
            seconds = fields.signed()
        elif fields.number == 2:
            nanos = fields.signed()
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX or not 0 <= nanos < _NANOS:
        raise InvalidEventError("T7", f"{shown(name)} is outside of the years 1 to 9999")
    return timestamp_of(seconds, nanos)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidEventError("R1", "a string of the message is not UTF-8") from None
