"""The JSON event format (rules J1 to J19, D15 to D18): converts an event, or a batch, to bytes and back.

The data of an event are never reformatted: on reading, the text of the `data` value is cut out unchanged; on
writing, JSON data are inserted unchanged. That keeps number precision, member order and spelling. Data that
cannot be inserted unchanged go to `data_base64`, as do JSON data with white space around them, which would be
lost in `data`.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring as _quote
from types import MappingProxyType

from penstock.cloudevents.event import (
    NO_EXTENSIONS,
    REQUIRED,
    SPECVERSION,
    Event,
    check_core,
    check_partitionkey,
    check_specversion,
    make_event,
)
from penstock.cloudevents.formats.json_scan import (
    Members,
    Span,
    json_text,
    read_utf8,
    scan_object,
    scan_object_at,
    scan_value,
    skip_white_space,
)
from penstock.cloudevents.formats.layouts import Layouts
from penstock.cloudevents.formats.typed import read_extension
from penstock.cloudevents.mediatype import charset_of, is_json, is_text
from penstock.cloudevents.outcome import InvalidEventError, in_batch, shown
from penstock.cloudevents.repeats import remembered
from penstock.cloudevents.timestamps import parse_common, parse_timestamp
from penstock.cloudevents.types import (
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    AttributeValue,
    is_attribute_name,
    read_base64,
)

MEDIA_TYPE = "application/cloudevents+json"
BATCH_MEDIA_TYPE = "application/cloudevents-batch+json"

_check_repeated = remembered(maxsize=8192)(check_core)
_layouts = Layouts()


def read_event(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> Event:
    """Return the event in a JSON object.

    Raises:
        InvalidEventError: the bytes are not JSON, or not a valid event.
    """
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        raise InvalidEventError("J19", "the value is not UTF-8 text") from None
    event = _read_by_layout(text, lenient, extension_types)
    if event is None:
        text = text.removeprefix("\ufeff")
        members, spans = scan_object(text)
        layout = dict(members)
        event = _read_object(text, members, spans.get("data"), lenient, extension_types)
        _layouts.learn(layout)
    return event


def has_required_members(data: bytes) -> bool:
    """Return True for a JSON object with members for all four required attributes (rule D10)."""
    try:
        members, _ = _scan(read_utf8(data))
    except InvalidEventError:
        return False
    return members.keys() >= set(REQUIRED)


def _read_by_layout(text: str, lenient: bool, extension_types: Mapping[str, AttributeType]) -> Event | None:
    """Return the event if its envelope matches a known `EnvelopeLayout` and is valid, else None."""
    for layout in _layouts.learnt:
        match = layout.match(text)
        if match:
            break
    else:
        return None
    begin = match.end()
    if text.find("\\", 0, begin) >= 0:
        return None
    _layouts.prefer(layout)
    id, source, type, content_type, subject, time_text, dataschema, data_base64 = match.group(*layout.fields)
    payload = time = None
    try:
        if not (id and id.isascii() and id.isprintable()):
            check_core("id", id)
        holds_json = _check_all_repeated(source, type, content_type, dataschema)
        if subject is not None and not (subject and subject.isascii() and subject.isprintable()):
            check_core("subject", subject)
        if time_text is not None:
            time = parse_common(time_text)
        extensions = NO_EXTENSIONS
        if layout.extensions:
            others: Members = {name: match[place] for name, place in layout.extensions}
            extensions = _read_extensions(others, lenient, extension_types)
        if layout.has_data:
            value, end = scan_value(text, begin)
            if data_base64 is not None or text[end:] != "}":
                return None
            if holds_json:
                payload = text[begin:end].encode()
            else:
                payload = _read_data(value, text[begin:end], content_type, lenient)
        elif data_base64 is not None:
            payload = read_base64("data_base64", data_base64, "J13")
    except (ValueError, StopIteration, RecursionError):
        return None  # the slower parser raises the exact error
    implied = layout.has_data and content_type is None
    return make_event(
        id, source, type, subject, time, time_text, content_type, dataschema, extensions, payload, implied
    )


@remembered(maxsize=8192)
def _check_all_repeated(source: str, type: str, content_type: str | None, dataschema: str | None) -> bool:
    """Check attributes whose values often repeat between events, with a cache; return True if data are JSON.

    Raises:
        ValueError: an attribute is invalid, or the content type has a tab, which JSON allows only escaped.
    """
    if content_type is not None and "\t" in content_type:
        raise ValueError("left to the careful way")
    check_core("source", source)
    check_core("type", type)
    if content_type is not None:
        check_core("datacontenttype", content_type)
    if dataschema is not None:
        check_core("dataschema", dataschema)
    return content_type is None or is_json(content_type)


def _scan(text: str) -> tuple[Members, Span | None]:
    members, spans = scan_object(text)
    return members, spans.get("data")


def _read_object(
    text: str,
    members: Members,
    span: Span | None,
    lenient: bool,
    extension_types: Mapping[str, AttributeType],
) -> Event:
    take = members.pop
    specversion = take("specversion", ...)
    if specversion != SPECVERSION:
        check_specversion(_required("specversion", specversion))
    id = _required("id", take("id", ...))
    if not (id and id.isascii() and id.isprintable()):
        check_core("id", id)
    source = _required("source", take("source", ...))
    _check_repeated("source", source)
    type = _required("type", take("type", ...))
    _check_repeated("type", type)
    content_type = dataschema = subject = time = time_text = payload = None
    extensions = NO_EXTENSIONS
    if members:
        payload_value = take("data", None)
        data_base64 = take("data_base64", None)
        content_type = _core_text("datacontenttype", take("datacontenttype", None))
        if content_type is not None:
            _check_repeated("datacontenttype", content_type)
        subject = _core_text("subject", take("subject", None))
        if subject is not None and not (subject and subject.isascii() and subject.isprintable()):
            check_core("subject", subject)
        time_text = _core_text("time", take("time", None))
        if time_text is not None:
            time = parse_timestamp("time", time_text)
        if members:
            dataschema = _core_text("dataschema", take("dataschema", None))
            if dataschema is not None:
                _check_repeated("dataschema", dataschema)
            if members:
                extensions = _read_extensions(members, lenient, extension_types)
        if data_base64 is not None:
            payload = _read_base64(data_base64, span)
        elif span is not None:
            payload = _read_data(payload_value, text[span[0] : span[1]], content_type, lenient)
    implied = span is not None and content_type is None
    return make_event(
        id, source, type, subject, time, time_text, content_type, dataschema, extensions, payload, implied
    )


def _required(name: str, value: object) -> str:
    if value.__class__ is str:
        return value
    if value is ...:
        raise InvalidEventError("C1", f"the required attribute {name} is missing")
    if value is None:
        raise InvalidEventError("J4", f"the required attribute {name} is null")
    return _core_text(name, value) or ""


def _core_text(name: str, value: object) -> str | None:
    if value is None or value.__class__ is str:
        return value
    rule = "C5" if isinstance(value, (list, dict)) else "J3"
    raise InvalidEventError(rule, f"{name} must be a JSON string")


def _read_extensions(
    members: Members, lenient: bool, extension_types: Mapping[str, AttributeType]
) -> Mapping[str, AttributeValue]:
    extensions: dict[str, AttributeValue] = {}
    for name, value in members.items():
        if not is_attribute_name(name):
            raise InvalidEventError("C3", f"not an attribute name: {shown(name)}")
        if value is not None:
            extensions[name] = _read_extension(name, value, lenient, extension_types.get(name))
    if not lenient:
        check_partitionkey(extensions.get("partitionkey"))
    return MappingProxyType(extensions) if extensions else NO_EXTENSIONS


def _read_extension(
    name: str, value: object, lenient: bool, declared: AttributeType | None
) -> AttributeValue:
    if isinstance(value, float):
        raise InvalidEventError("J3", f"{name} is a number with a fraction or exponent")
    return read_extension(name, value, lenient, declared)


def _read_base64(value: object, span: Span | None) -> bytes:
    if span is not None:
        raise InvalidEventError("J11", "data and data_base64 exclude each other")
    if not isinstance(value, str):
        raise InvalidEventError("J13", "data_base64 must be a JSON string")
    return read_base64("data_base64", value, "J13")


def _read_data(value: object, text: str, content_type: str | None, lenient: bool) -> bytes | None:
    if content_type is None or is_json(content_type):
        return text.encode()
    if isinstance(value, str):
        return encode_text(value, content_type)
    if not lenient:
        raise InvalidEventError(
            "J15", f"data must be a JSON string where datacontenttype is {shown(content_type)}"
        )
    return None if value is None else text.encode()


def encode_text(string: str, content_type: str) -> bytes:
    """Return the data of an event, given as text, as bytes in the charset of their media type, or in UTF-8.

    Raises:
        InvalidEventError: J15, the string cannot be encoded.
    """
    try:
        return string.encode(charset_of(content_type))
    except UnicodeEncodeError:
        pass
    try:
        return string.encode()
    except UnicodeEncodeError:
        raise InvalidEventError("J15", "data has a surrogate without its partner") from None


def write_event(event: Event, *, text_data: bool = False, one_line: bool = False) -> bytes:
    """Return the event as a JSON object, without white space, with the attributes in a fixed order.

    `text_data` puts UTF-8 data of text media types into `data` as a string; otherwise they go to
    `data_base64`, which every reader converts back to the same bytes. `one_line` puts JSON data with line
    breaks into `data_base64`, too, so that the object has no line break.
    """
    content_type = event.datacontenttype
    data = event.data
    as_base64 = one_line and data is not None and (b"\n" in data or b"\r" in data)
    if as_base64:
        content_type = event.content_type  # base64 implies nothing (J13)
    rest = _write_repeated(event.source, event.type, content_type, event.dataschema)
    text = f'{{"specversion":"1.0","id":{_quote(event.id)}{rest}'
    if (subject := event.subject) is not None:
        text += f',"subject":{_quote(subject)}'
    if (time_text := event.time_text) is not None:
        text += f',"time":"{time_text}"'
    if extensions := event.extensions:
        for name, value in sorted(extensions.items()):
            text += f',"{name}":{_write_value(value)}'
    if data is not None:
        text += _write_data(data, content_type or event.content_type, text_data, as_base64)
    return (text + "}").encode()


@remembered(maxsize=4096)
def _write_repeated(source: str, type: str, content_type: str | None, dataschema: str | None) -> str:
    """Return JSON members, from a cache, for the attributes whose values often repeat between events."""
    text = f',"source":{_quote(source)},"type":{_quote(type)}'
    if content_type is not None:
        text += f',"datacontenttype":{_quote(content_type)}'
    return text if dataschema is None else f'{text},"dataschema":{_quote(dataschema)}'


def is_text_in_utf8(content_type: str) -> bool:
    """Return True for a media type of UTF-8 text, which JSON's member `data` can contain as a string."""
    return is_text(content_type) and charset_of(content_type) in ("utf-8", "ascii")


def _write_value(value: AttributeValue) -> str:
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return f'"{_base64(value)}"'


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def _write_data(data: bytes, content_type: str | None, text_data: bool, no_json: bool) -> str:
    if content_type is not None:
        if is_json(content_type):
            text = None if no_json else json_text(data)
            if text is not None:
                return f',"data":{text}'
        elif text_data and is_text_in_utf8(content_type):
            try:
                return f',"data":{_quote(data.decode())}'
            except UnicodeDecodeError:
                pass
    return f',"data_base64":"{_base64(data)}"'


def read_batch(
    data: bytes,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> list[Event]:
    """Return the events of a JSON array (rules J18, C25), for files and HTTP bodies; Kafka has no batches.

    Raises:
        InvalidEventError: the bytes are not a JSON array, or one of its events is invalid.
    """
    text = read_utf8(data)
    events: list[Event] = []
    try:
        position = skip_white_space(text, 0)
        if text[position] != "[":
            raise ValueError("no array")
        position = skip_white_space(text, position + 1)
        more = text[position] != "]"
        position += not more
        while more:
            if text[position] != "{":
                raise InvalidEventError("J18", "it is not a JSON object")
            members, spans, end = scan_object_at(text, position)
            events.append(_read_object(text, members, spans.get("data"), lenient, extension_types))
            position = skip_white_space(text, end)
            more = text[position] == ","
            if not more and text[position] != "]":
                raise ValueError("no comma")
            position = skip_white_space(text, position + 1)
        if skip_white_space(text, position) != len(text):
            raise ValueError("more text")
    except InvalidEventError as error:
        raise in_batch(error, len(events)) from None
    except (ValueError, IndexError):
        raise InvalidEventError("J18", "the batch is not a JSON array") from None
    except RecursionError:
        raise InvalidEventError("J18", "the JSON is nested too deeply") from None
    return events


def write_batch(events: Iterable[Event], *, text_data: bool = False) -> bytes:
    """Return events as a JSON array (a batch in the JSON event format)."""
    return b"[" + b",".join(write_event(event, text_data=text_data) for event in events) + b"]"
