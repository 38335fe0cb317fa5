"""Reads a Kafka record (key, value, headers) as an `Event`, a `NotAnEvent` or an `InvalidEvent`.

An attribute that the record lacks gets no default, and no content of a record raises an exception. Headers
have the form of confluent-kafka, kafka-python and aiokafka: a sequence of pairs of name and bytes. Names may
repeat, values may be None, and `headers` itself may be None.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from penstock.cloudevents.event import (
    CORE,
    JSON_TYPE,
    NO_EXTENSIONS,
    Event,
    check_core,
    check_partitionkey,
    check_specversion,
    make_event,
)
from penstock.cloudevents.formats.json_format import has_required_members
from penstock.cloudevents.formats.registry import Format, format_named
from penstock.cloudevents.headers import (
    CONTENT_TYPE,
    PREFIX,
    SPECVERSION_BYTES,
    STRUCTURED_PREFIX,
    HeaderPairs,
    Headers,
    Mode,
    header_pairs,
    is_structured,
)
from penstock.cloudevents.mediatype import essence
from penstock.cloudevents.outcome import NO_CLAIM, InvalidEvent, InvalidEventError, NotAnEvent, shown
from penstock.cloudevents.repeats import remembered
from penstock.cloudevents.timestamps import parse_timestamp
from penstock.cloudevents.types import (
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    AttributeValue,
    check_string,
    is_attribute_name,
    read_text,
)
from penstock.cloudevents.uris import check_uri_reference
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, DecodeError
from penstock.headers import Headerless

Profile = Literal["strict", "lenient"]
Outcome = Event | NotAnEvent | InvalidEvent
REQUIRED_SET = frozenset(("ce_id", "ce_source", "ce_specversion", "ce_type"))

_CORE_HEADERS = frozenset(PREFIX + name for name in CORE)
_SEQUENCES = (list, tuple)
_log = logger_named("penstock.cloudevents")
_warned = False


def from_message(message: Any, **options: Any) -> Outcome:
    """Return the outcome of reading a message of confluent-kafka, kafka-python, aiokafka or this package.

    confluent-kafka's messages have methods `key()`, `value()` and `headers()`, the others have attributes
    of these names. `options` are those of `from_record`.
    """
    parts = [getattr(message, name) for name in ("key", "value", "headers")]
    key, value, headers = [part() if callable(part) else part for part in parts]
    return from_record(key, value, headers, **options)


def from_record(
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    *,
    profile: Profile = "strict",
    assume_structured: bool = False,
    partitionkey_from_key: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Outcome:
    """Return the record as an `Event`, `NotAnEvent` or `InvalidEvent`. Never raises because of its content.

    Key, value and the values of headers are bytes; text and other bytes-like objects are accepted. Any other
    type is a mistake in the program, and raises a `DecodeError`.

    The lenient profile ignores the case of header names (D1), uses the last value of a header that is
    repeated with different values (D3), ignores ``ce_`` headers that name no attribute (D6), keeps a declared
    extension of the wrong type as it is, and recognises structured JSON sent as plain ``application/json``
    (D10). Required attributes and their rules are the same in both profiles.

    `assume_structured` reads records without content-type as structured JSON (D9). A record whose format has
    no headers (`penstock.headers.HEADERLESS`, set by Penstock's consumers) does not need the option: JSON
    with the four required members is an event there, in the only mode that Kafka before 0.11 allows (K9).
    `partitionkey_from_key` fills an absent `partitionkey` from the record key (D21). `extension_types`
    declares extensions that are not Strings.
    """
    lenient = profile == "lenient"
    if not lenient and profile != "strict":
        raise ConfigError(f"profile must be 'strict' or 'lenient', not {profile!r}")
    if headers.__class__ in _SEQUENCES and not lenient and not partitionkey_from_key:
        event = _read_quickly(headers, value, extension_types)
        if event is not None:
            return event
    try:
        attributes, content_type, conflict = _select(header_pairs(headers), lenient)
        if conflict is not None:
            refusal = _judge_conflict(conflict, attributes, content_type)
            if refusal is not None:
                return refusal
        if content_type is not None and content_type[:23].lower() == STRUCTURED_PREFIX:
            event = _read_structured(content_type, value, lenient, extension_types)
        elif not REQUIRED_SET.isdisjoint(attributes):
            event = _read_binary(attributes, content_type, value, lenient, extension_types)
        elif _passes_for_structured(content_type, value, lenient, assume_structured, headers):
            event = _read_structured(b"application/cloudevents+json", value, lenient, extension_types)
        else:
            return NO_CLAIM
        if partitionkey_from_key and key is not None:
            return _with_partitionkey(event, _as_bytes(key))
        return event
    except InvalidEventError as error:
        return InvalidEvent(error.rule, error.reason)


def content_mode(headers: Headers, *, profile: Profile = "strict") -> Mode:
    """Return the content mode (binary or structured) of a record that is an event (rule K14)."""
    attributes, content_type, _ = _select(header_pairs(headers), profile == "lenient")
    return "structured" if is_structured(content_type) or REQUIRED_SET.isdisjoint(attributes) else "binary"


class _OutOfTheOrdinary(Exception):
    """Raised by `_read_quickly` for a record that only the slower code of `from_record` handles."""


def _read_quickly(headers: Any, value: Any, extension_types: Mapping[str, AttributeType]) -> Event | None:
    """Return the event of a regular record without repeated headers, or None for any other record."""
    found = dict(headers)
    if len(found) != len(headers):
        return None
    content_type = found.pop(CONTENT_TYPE, None)
    try:
        rendering = None if content_type is None else _format_or_none(content_type)
        if rendering is None:
            return _read_binary(found, content_type, value, False, extension_types)
        if found or value.__class__ is not bytes:
            return None
        return rendering.read_event(value, extension_types=extension_types)
    except (InvalidEventError, _OutOfTheOrdinary, AttributeError, TypeError):
        # The last two: values that are not bytes, which the careful way makes so.
        return None


def _select(pairs: HeaderPairs, lenient: bool) -> tuple[dict[str, bytes | None], bytes | None, str | None]:
    """Return the ``ce_`` headers, the content type, and the first header name repeated with another value."""
    attributes: dict[str, bytes | None] = {}
    content_types: list[bytes | None] | None = None
    conflict: str | None = None
    for name, value in pairs:
        if value.__class__ is not bytes:
            value = _as_bytes(value)
        if name[:3] == PREFIX and not lenient:
            if attributes.setdefault(name, value) != value and conflict is None:
                conflict = name
        elif len(name) == 12 and name.lower() == CONTENT_TYPE:
            if content_types is None:
                content_types = [value]
            else:
                content_types.append(value)
        elif lenient and name[:3].lower() == PREFIX:
            folded = name.lower()
            # CE_ID and Ce_Foo are attributes written in capitals (D1), ce_Foo names none (D6).
            if name == folded or name[:3] != PREFIX or folded in _CORE_HEADERS:
                attributes[folded] = value
    if content_types is None:
        return attributes, None, conflict
    if len(content_types) > 1 and not lenient and len(set(content_types)) > 1:
        conflict = CONTENT_TYPE
        # Enough to see whether the record claims to be an event.
        content_types.sort(key=is_structured)
    return attributes, content_types[-1], conflict


def _as_bytes(value: Any) -> bytes | None:
    """Return a header, key or value of a client's record as bytes.

    Raises:
        DecodeError: it is neither text nor bytes. (`bytes(5)` would silently return five zero bytes.)
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise DecodeError(f"a record's key, value and headers are bytes or None, not {type(value).__name__}")


def _judge_conflict(
    conflict: str, attributes: dict[str, bytes | None], content_type: bytes | None
) -> InvalidEvent | NotAnEvent | None:
    """Return the outcome for a header repeated with different values (rule D3), or None if it has no effect.

    In structured mode the attributes are in the value, and ``ce_`` headers are ignored (K33).
    """
    if is_structured(content_type) and conflict != CONTENT_TYPE:
        return None
    if not is_structured(content_type) and REQUIRED_SET.isdisjoint(attributes):
        return NO_CLAIM
    return InvalidEvent("D3", f"the header {shown(conflict)} is there twice, with different values")


def _passes_for_structured(
    content_type: bytes | None, value: bytes | None, lenient: bool, assume_structured: bool, headers: Headers
) -> bool:
    """Return True for structured JSON whose content type is not the one of CloudEvents (rules D9, D10)."""
    if content_type is None:
        if assume_structured or headers.__class__ is not Headerless:
            return assume_structured
        return value is not None and has_required_members(_as_bytes(value) or b"")
    if not lenient or value is None:
        return False
    return essence(content_type.decode("latin-1")) == JSON_TYPE and has_required_members(
        _as_bytes(value) or b""
    )


@remembered(maxsize=256)
def _format_of(content_type: bytes) -> Format:
    media_type = essence(content_type.decode("utf-8", "replace"))
    name = media_type.removeprefix("application/cloudevents")
    if name.startswith("-batch"):
        raise InvalidEventError("K3", "the batch content mode does not exist on Kafka")
    rendering = format_named(name[1:]) if name[:1] == "+" else None
    if rendering is None:
        raise InvalidEventError("K15", f"the event format {shown(media_type)} cannot be read here")
    return rendering


@remembered(maxsize=1024)
def _format_or_none(content_type: bytes) -> Format | None:
    """Return the format of a structured record, or None for the content type of a binary record."""
    return _format_of(content_type) if is_structured(content_type) else None


def _read_structured(
    content_type: bytes, value: bytes | None, lenient: bool, extension_types: Mapping[str, AttributeType]
) -> Event:
    rendering = _format_of(content_type)
    if value is None:
        raise InvalidEventError("K32", "a structured record has no value")
    return rendering.read_event(_as_bytes(value) or b"", lenient=lenient, extension_types=extension_types)


def _read_binary(
    attributes: dict[str, bytes | None],
    content_type: bytes | None,
    value: bytes | None,
    lenient: bool,
    extension_types: Mapping[str, AttributeType],
) -> Event:
    take = attributes.pop
    try:
        specversion, id, source, type = (
            take("ce_specversion"),
            take("ce_id"),
            take("ce_source"),
            take("ce_type"),
        )
    except KeyError as missing:
        raise InvalidEventError("C1", f"the required header {missing.args[0]} is missing") from None
    if specversion != SPECVERSION_BYTES:
        check_specversion(_required("specversion", specversion))
    id_text = _required("id", id)
    if not (id_text.isascii() and id_text.isprintable()):
        check_string("id", id_text)
    source_text, type_text = _read_source(source), _read_type(type)
    time = time_text = datacontenttype = subject = dataschema = None
    extensions = NO_EXTENSIONS
    if attributes:
        raw = take("ce_time", None)
        if raw is not None:
            time_text = _text("time", raw)
            time = parse_timestamp("time", time_text)
        if attributes:
            subject = _optional("subject", take("ce_subject", None))
            dataschema = _optional("dataschema", take("ce_dataschema", None))
            if attributes:
                stray = take("ce_datacontenttype", None)
                if stray is not None and content_type is None:
                    content_type = stray
                    _warn_of_stray_content_type()
                extensions = _read_extensions(attributes, lenient, extension_types)
    if content_type is not None:
        datacontenttype = _read_content_type(content_type)
    if value.__class__ is not bytes:
        value = _as_bytes(value)
    return make_event(
        id_text,
        source_text,
        type_text,
        subject,
        time,
        time_text,
        datacontenttype,
        dataschema,
        extensions,
        value,
    )


# Sources, types and content types repeat from record to record.
@remembered(maxsize=4096)
def _read_source(raw: bytes | None) -> str:
    text = _required("source", raw)
    check_uri_reference("source", text)
    return text


@remembered(maxsize=4096)
def _read_type(raw: bytes | None) -> str:
    text = _required("type", raw)
    check_string("type", text)
    return text


@remembered(maxsize=1024)
def _read_content_type(raw: bytes) -> str:
    text = _text("datacontenttype", raw)
    check_core("datacontenttype", text)
    return text


def _text(name: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidEventError("D8", f"the header of {name} is not UTF-8: {shown(raw)}") from None


def _required(name: str, raw: bytes | None) -> str:
    if raw:
        return _text(name, raw)
    if raw is None:
        raise InvalidEventError("D4", f"the required attribute {name} is null")
    check_core(name, "")
    raise AssertionError("an empty attribute passed")


def _optional(name: str, raw: bytes | None) -> str | None:
    if raw is None:
        return None
    text = _text(name, raw)
    if not text or name != "subject" or not (text.isascii() and text.isprintable()):
        check_core(name, text)
    return text


def _read_extensions(
    attributes: dict[str, bytes | None], lenient: bool, extension_types: Mapping[str, AttributeType]
) -> Mapping[str, AttributeValue]:
    extensions: dict[str, AttributeValue] = {}
    for header, raw in attributes.items():
        name = header[3:]
        if header[:3] != PREFIX:
            if len(header) == 12 and header.lower() == CONTENT_TYPE:
                raise _OutOfTheOrdinary
        elif not is_attribute_name(name):
            if not lenient:
                raise InvalidEventError("D6", f"the header {shown(header)} names no attribute")
        elif raw is not None:
            text = _text(name, raw)
            declared = extension_types.get(name, AttributeType.STRING)
            extensions[name] = _read_extension(name, declared, text, lenient)
    return MappingProxyType(extensions) if extensions else NO_EXTENSIONS


def _read_extension(name: str, declared: AttributeType, text: str, lenient: bool) -> AttributeValue:
    try:
        if name == "partitionkey" and not lenient:
            check_partitionkey(text)
        return read_text(name, declared, text)
    except InvalidEventError:
        if not lenient or declared is AttributeType.STRING:
            raise
    return read_text(name, AttributeType.STRING, text)


def _with_partitionkey(event: Event, key: bytes | None) -> Event:
    if not key or "partitionkey" in event.extensions:
        return event
    try:
        return event.replace(extensions={**event.extensions, "partitionkey": key.decode()})
    except ValueError:  # neither bytes that are no UTF-8 nor characters that no attribute may have
        return event


def _warn_of_stray_content_type() -> None:
    global _warned
    if not _warned:
        _warned = True
        _log.warning(
            "D5: a producer writes the header ce_datacontenttype where the binding has content-type; "
            "it is understood, and this is said once"
        )
