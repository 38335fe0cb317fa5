"""One CloudEvent as an immutable Python object.

Every `Event` is valid: its constructor checks every rule, and nothing can be changed afterwards. Its data are
the bytes that a binary-mode record has as its value; every format preserves them byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, NoReturn

from penstock.cloudevents.mediatype import charset_of, check_media_type
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.timestamps import format_timestamp, instant, parse_timestamp
from penstock.cloudevents.types import (
    WELL_KNOWN_EXTENSIONS,
    AttributeType,
    AttributeValue,
    Timestamp,
    check_string,
    is_attribute_name,
    typed_value,
)
from penstock.cloudevents.uris import check_uri, check_uri_reference
from penstock.common.logs import logger_named

SPECVERSION = "1.0"
REQUIRED = ("id", "source", "specversion", "type")
OPTIONAL = ("datacontenttype", "dataschema", "subject", "time")
CORE = frozenset(REQUIRED + OPTIONAL)
NO_EXTENSIONS: Mapping[str, AttributeValue] = MappingProxyType({})
JSON_TYPE = "application/json"

NAME_CHARACTERS_MAX = 20
"""The recommended maximum length of an extension's name, in characters (rule C4)."""

_ADVICE_MAX = 100
_advised: set[str] = set()
_log = logger_named("penstock.cloudevents")

_SAME_NAMES = ("id", "source", "type", "subject", "datacontenttype", "dataschema", "extensions", "data")

Data = bytes | bytearray | memoryview


class _Fields:
    """A mutable object for building an event; a change of its class then makes it an `Event`."""

    __slots__ = (
        "data",
        "datacontenttype",
        "dataschema",
        "extensions",
        "id",
        "json_implied",
        "source",
        "specversion",
        "subject",
        "time",
        "time_text",
        "type",
    )
    id: str
    source: str
    type: str
    specversion: str
    subject: str | None
    time: datetime | None
    time_text: str | None
    datacontenttype: str | None
    dataschema: str | None
    extensions: Mapping[str, AttributeValue]
    data: bytes | None
    json_implied: bool


class Event(_Fields):
    """A CloudEvent 1.0.

    `time_text` is the timestamp as it was written; `time` is this timestamp as a `datetime`, cut to
    microseconds, or None if it is not representable. `data` is None for an event without data, which is not
    the same as ``b""``. `extensions` maps names to `str`, `int`, `bool` or `bytes`. `json_implied` is True
    for an event that came as JSON without a `datacontenttype`, which makes its data JSON (rule J8);
    `content_type` takes that into account.
    """

    __slots__ = ()

    def __init__(
        self,
        *,
        id: str,
        source: str,
        type: str,
        specversion: str = SPECVERSION,
        subject: str | None = None,
        time: datetime | str | None = None,
        datacontenttype: str | None = None,
        dataschema: str | None = None,
        extensions: Mapping[str, AttributeValue | datetime | None] | None = None,
        extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
        data: Data | None = None,
        json: object = ...,
    ) -> None:
        """Create an event. Its data are bytes (`data`), or a value that is written as JSON (`json`).

        Raises:
            InvalidEventError: a rule is broken; the error names the rule.
        """
        if json is not ...:
            if data is not None:
                raise InvalidEventError("J11", "give either data or json, not both")
            data = _json_bytes(json)
            datacontenttype = datacontenttype or JSON_TYPE
        set_field: Callable[[str, object], None] = super().__setattr__
        check_specversion(specversion)
        given = {"id": id, "source": source, "type": type, "specversion": specversion, "subject": subject}
        given |= {"datacontenttype": datacontenttype, "dataschema": dataschema}
        for name, value in given.items():
            if value is not None or name in REQUIRED:
                check_core(name, value)
            set_field(name, value)
        moment, text = _read_time(time)
        set_field("time", moment)
        set_field("time_text", text)
        set_field("extensions", _read_extensions(extensions, extension_types))
        set_field("data", None if data is None else _read_data(data))
        set_field("json_implied", False)

    @property
    def content_type(self) -> str | None:
        """Return the media type of the data: `datacontenttype`, or JSON if `json_implied` is true."""
        return JSON_TYPE if self.json_implied else self.datacontenttype

    def attributes(self) -> dict[str, AttributeValue]:
        """Return every attribute that is set, including extensions, in the order of writing."""
        values: dict[str, AttributeValue | None] = {
            "specversion": self.specversion,
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "datacontenttype": self.datacontenttype,
            "dataschema": self.dataschema,
            "subject": self.subject,
            "time": None if self.time_text is None else Timestamp(self.time_text),
        }
        values.update(sorted(self.extensions.items()))
        return {name: value for name, value in values.items() if value is not None}

    def json(self) -> Any:
        """Return the data as a parsed JSON value, or None if the event has no data.

        Raises:
            ValueError: the data are not JSON.
        """
        from json import loads

        return None if self.data is None else loads(self.data)

    def text(self) -> str | None:
        """Return the data as text in the charset of `datacontenttype` (default UTF-8); None without data.

        Raises:
            UnicodeDecodeError: the data are not text in that charset.
        """
        return None if self.data is None else self.data.decode(charset_of(self.datacontenttype or ""))

    def replace(self, **changes: Any) -> Event:
        """Return a copy with some constructor arguments changed, checked like a new event."""
        arguments: dict[str, Any] = {name: getattr(self, name) for name in _SAME_NAMES}
        arguments["time"] = self.time_text
        if "json" in changes:
            del arguments["data"]
        copy = Event(**(arguments | changes))
        if self.json_implied and changes.keys().isdisjoint(("data", "json", "datacontenttype")):
            object.__setattr__(copy, "json_implied", True)
        return copy

    __replace__ = replace

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an Event cannot be changed; use event.replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an Event cannot be changed; use event.replace({name}=None)")

    def __eq__(self, other: object) -> bool:
        """Return True if attributes and data are equal. Timestamps are compared by instant, not by text."""
        if not isinstance(other, Event):
            return NotImplemented
        return (
            self.id == other.id
            and self.source == other.source
            and self.type == other.type
            and self.specversion == other.specversion
            and self.subject == other.subject
            and self.content_type == other.content_type
            and self.dataschema == other.dataschema
            and self.data == other.data
            and _same_instant(self.time_text, other.time_text)
            and self.extensions.keys() == other.extensions.keys()
            and all(_same_value(value, other.extensions[name]) for name, value in self.extensions.items())
        )

    def __hash__(self) -> int:
        return hash((self.source, self.id))

    def __repr__(self) -> str:
        values: dict[str, object] = {**self.attributes()}
        if self.data is not None:
            values["data"] = self.data if len(self.data) <= 80 else f"<{len(self.data)} bytes>"
        return f"Event({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def __reduce__(self) -> tuple[object, ...]:
        fields = {name: getattr(self, name) for name in _Fields.__slots__}
        return (_restore, (fields | {"extensions": dict(self.extensions)},))


def make_event(
    id: str,
    source: str,
    type: str,
    subject: str | None,
    time: datetime | None,
    time_text: str | None,
    datacontenttype: str | None,
    dataschema: str | None,
    extensions: Mapping[str, AttributeValue],
    data: bytes | None,
    json_implied: bool = False,
) -> Event:
    """Return an event made of parts that the caller has checked, several times faster than `Event()`."""
    fields: Any = _Fields()
    fields.id = id
    fields.source = source
    fields.type = type
    fields.specversion = SPECVERSION
    fields.subject = subject
    fields.time = time
    fields.time_text = time_text
    fields.datacontenttype = datacontenttype
    fields.dataschema = dataschema
    fields.extensions = extensions
    fields.data = data
    fields.json_implied = json_implied
    fields.__class__ = Event
    event: Event = fields
    return event


def imply_json(event: Event) -> Event:
    """Mark an event's data, if any, as JSON implied by the JSON format; return the event.

    The event was read from JSON and has no `datacontenttype`."""
    if event.datacontenttype is None and event.data is not None:
        object.__setattr__(event, "json_implied", True)
    return event


def check_specversion(text: object) -> None:
    """Check that a specversion is ``1.0``.

    Raises:
        InvalidEventError: C8, it is empty or no text; D13, it is another version.
    """
    if text == SPECVERSION:
        return
    if not isinstance(text, str):
        raise InvalidEventError("C8", f"specversion must be text, not {type(text).__name__}")
    if not text:
        raise InvalidEventError("C8", "specversion is empty")
    raise InvalidEventError("D13", f"specversion is {shown(text)}; only '1.0' is understood")


_CORE_CHECKS: Mapping[str, tuple[str, Callable[[str, str], None]]] = {
    "id": ("C6", check_string),
    "source": ("C7", check_uri_reference),
    "specversion": ("C8", check_string),
    "type": ("C9", check_string),
    "datacontenttype": ("C13", check_media_type),
    "dataschema": ("C10", check_uri),
    "subject": ("C11", check_string),
}


def check_core(name: str, text: object) -> None:
    """Check the text of one core attribute other than `time`.

    Raises:
        InvalidEventError: the value is not text, or is empty (C6 to C13), or breaks the rule of its type.
    """
    rule, check = _CORE_CHECKS[name]
    if not isinstance(text, str):
        raise InvalidEventError(rule, f"{name} must be text, not {type(text).__name__}")
    if not text:
        raise InvalidEventError(rule, f"{name} is empty")
    check(name, text)


def check_partitionkey(value: object) -> None:
    """Check that a partition key is not empty.

    Raises:
        InvalidEventError: P1, the partition key is empty.
    """
    if value == "":
        raise InvalidEventError("P1", "partitionkey is empty")


def _read_time(time: datetime | str | None) -> tuple[datetime | None, str | None]:
    if time is None:
        return None, None
    if isinstance(time, datetime):
        return time, format_timestamp("time", time)
    if not isinstance(time, str):
        raise InvalidEventError("C12", f"time must be a datetime or text, not {type(time).__name__}")
    return parse_timestamp("time", time), str(time)


def _read_extensions(
    extensions: Mapping[str, AttributeValue | datetime | None] | None, types: Mapping[str, AttributeType]
) -> Mapping[str, AttributeValue]:
    if not extensions:
        return NO_EXTENSIONS
    values: dict[str, AttributeValue] = {}
    for name, value in extensions.items():
        if name in CORE:
            raise InvalidEventError("C2", f"{name} is a core attribute, not an extension")
        if not is_attribute_name(name):
            raise InvalidEventError("C3", f"not an attribute name: {shown(name)}")
        if value is not None:
            values[name] = typed_value(name, value, types.get(name))
            if len(name) > NAME_CHARACTERS_MAX or name[0].isdigit():
                _advise_other_name(name)
    check_partitionkey(values.get("partitionkey"))
    return MappingProxyType(values) if values else NO_EXTENSIONS


def _advise_other_name(name: str) -> None:
    """Log a warning, once for each name, that some implementations refuse an extension's name (rule C4)."""
    if name in _advised or len(_advised) >= _ADVICE_MAX:
        return
    _advised.add(name)
    _log.warning("C4: names should begin with a letter and have at most 20 characters: %s", shown(name))


def _read_data(data: Data) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise InvalidEventError(
        "K12", f"data must be bytes, not {type(data).__name__}; use json= for a JSON value"
    )


def _json_bytes(value: object) -> bytes:
    from json import dumps

    try:
        return dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidEventError("J9", f"data cannot be written as JSON: {error}") from error


def _same_instant(left: str | None, right: str | None) -> bool:
    if left == right:
        return True
    return left is not None and right is not None and instant(left) == instant(right)


def _same_value(left: AttributeValue, right: AttributeValue) -> bool:
    if isinstance(left, Timestamp) and isinstance(right, Timestamp):
        return _same_instant(left, right)
    # True == 1 in Python, but a Boolean is not an Integer.
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _restore(fields: dict[str, Any]) -> Event:
    if fields["extensions"]:
        fields["extensions"] = MappingProxyType(fields["extensions"])
    else:
        fields["extensions"] = NO_EXTENSIONS
    restored: Any = _Fields()
    for name, value in fields.items():
        setattr(restored, name, value)
    restored.__class__ = Event
    event: Event = restored
    return event
