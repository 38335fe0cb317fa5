"""Makes events from formats with typed attributes: Avro and Protobuf, and partly JSON.

`read_extension` reconciles the declared type of an extension with the type that arrived; `build_event` checks
a whole set of attributes and makes the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from penstock.cloudevents.event import (
    CORE,
    NO_EXTENSIONS,
    REQUIRED,
    Event,
    check_core,
    check_partitionkey,
    check_specversion,
    make_event,
)
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.timestamps import parse_timestamp
from penstock.cloudevents.types import (
    URI,
    AttributeType,
    AttributeValue,
    Timestamp,
    URIReference,
    check_integer,
    is_attribute_name,
    read_text,
)

_TYPED_TEXT = (Timestamp, URI, URIReference)


def read_extension(name: str, value: object, lenient: bool, declared: AttributeType | None) -> AttributeValue:
    """Return an extension's value: text is converted to the declared type, other values must have this type.

    The lenient profile keeps a value of another type unchanged.

    Raises:
        InvalidEventError: no attribute can have a value of this type (C5), the value is not of the declared
            type (C16), or it breaks the rule of its type (T1 to T7).
    """
    if isinstance(value, str):
        kind = declared or AttributeType.STRING
        if isinstance(value, _TYPED_TEXT):
            own = _type_of_text(value)
            kind = own if declared in (None, AttributeType.STRING) else kind
        try:
            return read_text(name, kind, value)
        except InvalidEventError:
            if not lenient or kind is AttributeType.STRING:
                raise
            return read_text(name, AttributeType.STRING, value)
    if isinstance(value, bool):
        actual = AttributeType.BOOLEAN
    elif isinstance(value, int):
        actual = AttributeType.INTEGER
        check_integer(name, value)
    elif isinstance(value, bytes):
        actual = AttributeType.BINARY
    else:
        raise InvalidEventError("C5", f"{name} has a value of a kind that no attribute can have")
    if declared is not None and declared is not actual and not lenient:
        raise InvalidEventError("C16", f"{name} must be a {declared.value}, not a {actual.value}")
    return value


def _type_of_text(value: str) -> AttributeType:
    if isinstance(value, Timestamp):
        return AttributeType.TIMESTAMP
    return AttributeType.URI if isinstance(value, URI) else AttributeType.URI_REFERENCE


def build_event(
    values: Mapping[str, AttributeValue | None],
    data: bytes | None,
    json_implied: bool,
    lenient: bool,
    extension_types: Mapping[str, AttributeType],
    rule: str,
) -> Event:
    """Return the event with the given attributes; None stands for an attribute that is not set.

    Raises:
        InvalidEventError: a rule is broken; `rule` is the rule to report for a core attribute of the wrong
            type.
    """
    core: dict[str, str | None] = dict.fromkeys(CORE)
    extensions: dict[str, AttributeValue] = {}
    for name, value in values.items():
        if value is None:
            continue
        if name in CORE:
            if not isinstance(value, str):
                raise InvalidEventError(rule, f"{name} must be text")
            core[name] = str(value)
        elif not is_attribute_name(name):
            raise InvalidEventError("C3", f"not an attribute name: {shown(name)}")
        else:
            extensions[name] = read_extension(name, value, lenient, extension_types.get(name))
    for name in REQUIRED:
        if core[name] is None:
            raise InvalidEventError("C1", f"the required attribute {name} is missing")
    check_specversion(core["specversion"])
    for name, text in core.items():
        if text is not None and name != "time":
            check_core(name, text)
    time_text = core["time"]
    if not lenient:
        check_partitionkey(extensions.get("partitionkey"))
    return make_event(
        core["id"] or "",
        core["source"] or "",
        core["type"] or "",
        core["subject"],
        None if time_text is None else parse_timestamp("time", time_text),
        time_text,
        core["datacontenttype"],
        core["dataschema"],
        MappingProxyType(extensions) if extensions else NO_EXTENSIONS,
        data,
        json_implied,
    )
