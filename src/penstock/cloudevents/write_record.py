"""Writes an event as a Kafka record (key, value, headers), in binary or structured mode.

The value of a binary record is the data byte for byte, or null without data; the key is the caller's unless a
key mapper is given. Headers are pairs of name and bytes, as confluent-kafka, kafka-python and aiokafka accept
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from penstock.cloudevents.event import JSON_TYPE, Event
from penstock.cloudevents.formats.registry import Format, FormatName, format_named
from penstock.cloudevents.headers import (
    CONTENT_TYPE,
    PREFIX,
    SPECVERSION_BYTES,
    Mode,
    _could_pass_for_a_part,
    header_pairs,
    is_structured,
)
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.repeats import remembered
from penstock.cloudevents.types import canonical_text
from penstock.errors import ConfigError, EncodeError

RecordParts = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]
KeyMapper = Callable[[Event], bytes | str | None]


def partitionkey_mapper(event: Event) -> bytes | None:
    """Return the UTF-8 bytes of the event's `partitionkey` as the record key, or None (rule K19)."""
    value = event.extensions.get("partitionkey")
    return None if value is None else canonical_text(value).encode()


def to_record(
    event: Event,
    *,
    mode: Mode = "binary",
    key: bytes | str | None = None,
    key_mapper: KeyMapper | None = None,
    event_format: FormatName = "json",
    text_data: bool = False,
    binary_headers: bool = False,
    headers: Iterable[tuple[str, bytes]] = (),
    magic: int = 2,
) -> RecordParts:
    """Return the record (key, value, headers) that carries `event`.

    The key is `key`, unless `key_mapper` returns one. In structured mode, the value has the format
    `event_format`, `text_data` is an option of that format, and `binary_headers` adds the ``ce_`` headers for
    routing (rule K33). `headers` are added after the event's own. `magic` is the version of the message
    format; records have no headers below 2 (before Kafka 0.11).

    Raises:
        EncodeError: the combination is not possible: binary mode without headers (K9); one of `headers`
            looks like an attribute to a reader that ignores the case of names (C23); or a key
            or header is of another type than bytes (a key may be text, a header's value None).
        InvalidEventError: K14, no binary record can carry the event: its data are themselves an event
            in an event format.
    """
    if key_mapper is not None:
        mapped = key_mapper(event)
        key = key if mapped is None else mapped
    if key is not None and key.__class__ is not bytes:
        key = _key_bytes(key)
    if mode == "binary":
        if magic < 2:
            raise EncodeError("K9: records of this message format have no headers; use mode='structured'")
        value = event.data
        content_type = event.datacontenttype or (JSON_TYPE if event.json_implied else None)
        written = _attribute_headers(
            event, None if content_type is None else content_type_header(content_type)
        )
    elif mode == "structured":
        rendering, header = _rendering(event_format)
        value = rendering.write_event(event, text_data=text_data)
        written = [header]
        if binary_headers:
            written += _attribute_headers(event, None)
        if magic < 2:
            written = []
    else:
        raise ConfigError(f"mode must be 'binary' or 'structured', not {mode!r}")
    if headers:
        written += _extra_headers(headers)
    return key, value, written


@lru_cache(maxsize=16)
def _rendering(event_format: str) -> tuple[Format, tuple[str, bytes]]:
    """Return the event format with the name `event_format`, and its content-type header."""
    rendering = format_named(event_format)
    if rendering is None:
        raise ConfigError(f"no event format is called {event_format!r}")
    return rendering, (CONTENT_TYPE, rendering.MEDIA_TYPE.encode())


@remembered(maxsize=1024)
def content_type_header(content_type: str) -> bytes:
    """Return the value of the content-type header of a record in binary mode, for data of a media type.

    Raises:
        InvalidEventError: K14, readers would take the record for a record in structured mode.
    """
    raw = content_type.encode()
    if is_structured(raw):
        reason = f"with data of {shown(content_type)} a binary record would pass for a structured one"
        raise InvalidEventError("K14", f"{reason}; use mode='structured'")
    return raw


def _attribute_headers(event: Event, content_type: bytes | None) -> list[tuple[str, bytes]]:
    """Return one header per attribute, in the order of rule V5."""
    headers = [
        ("ce_specversion", SPECVERSION_BYTES),
        ("ce_id", event.id.encode()),
        ("ce_source", event.source.encode()),
        ("ce_type", event.type.encode()),
    ]
    if content_type is not None:
        headers.append((CONTENT_TYPE, content_type))
    if event.dataschema is not None:
        headers.append(("ce_dataschema", event.dataschema.encode()))
    if event.subject is not None:
        headers.append(("ce_subject", event.subject.encode()))
    if event.time_text is not None:
        headers.append(("ce_time", event.time_text.encode()))
    if event.extensions:
        headers += [
            (PREFIX + name, canonical_text(value).encode())
            for name, value in sorted(event.extensions.items())
        ]
    return headers


def _extra_headers(headers: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Return the caller's additional headers as a list.

    Raises EncodeError for a header that a reader may take for a part of the event.
    """
    extra: list[tuple[str, bytes]] = []
    for name, value in header_pairs(headers):
        if not isinstance(name, str):
            raise EncodeError(f"a header's name is text, not {type(name).__name__}")
        if _could_pass_for_a_part(name):
            raise EncodeError(
                f"C23: the header {name!r} would pass for a part of the event; use another name"
            )
        if isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        if value is not None and not isinstance(value, bytes):
            hint = "; encode it, for instance with .encode()" if isinstance(value, str) else ""
            raise EncodeError(f"the header {name!r} is bytes or None, not {type(value).__name__}{hint}")
        extra.append((name, value))  # type: ignore[arg-type]  # null is a value that a header may have
    return extra


def _key_bytes(key: object) -> bytes:
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    raise EncodeError(f"a record's key is bytes, text or None, not {type(key).__name__}")
