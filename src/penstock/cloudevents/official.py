"""Converts events to and from objects of the official CloudEvents SDK (the package ``cloudevents``).

The SDK's objects hold JSON data as Python values, and get a generated `id` and `time` if these are missing.
The functions here generate nothing, so that a converted event has exactly the given attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.cloudevents.event import JSON_TYPE, Event, imply_json
from penstock.cloudevents.mediatype import charset_of, is_json
from penstock.cloudevents.outcome import InvalidEventError
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType, Timestamp, canonical_text
from penstock.errors import MissingDependencyError


def from_sdk(event: Any, *, extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS) -> Event:
    """Return an event of the CloudEvents SDK, version 1 or 2, as an `Event`.

    Data that are not bytes become JSON if the content type is JSON or missing, and text otherwise.

    Raises:
        InvalidEventError: the object breaks a rule.
    """
    attributes = dict(event.get_attributes())
    core = {name: attributes.pop(name, None) for name in ("id", "source", "type", "specversion")}
    core |= {
        name: attributes.pop(name, None) for name in ("subject", "time", "datacontenttype", "dataschema")
    }
    data, content_type = event.get_data(), core["datacontenttype"]
    arguments = {**core, "extensions": attributes, "extension_types": extension_types}
    if data is None or isinstance(data, (bytes, bytearray, memoryview)):
        return Event(**arguments, data=data)
    if content_type is None or is_json(content_type):
        as_json = Event(**{**arguments, "datacontenttype": JSON_TYPE}, json=data)
        same = Event(**arguments, data=as_json.data)
        return imply_json(same) if content_type is None else same
    if not isinstance(data, str):
        raise InvalidEventError(
            "J10", f"data of {content_type} must be bytes or text, not {type(data).__name__}"
        )
    return Event(**arguments, data=data.encode(charset_of(content_type)))


def to_sdk(event: Event, *, parse_data: bool = False) -> Any:
    """Return the event as a `cloudevents.core.v1.event.CloudEvent` of the SDK.

    Data stay bytes; with `parse_data`, JSON becomes Python values, as in the SDK's own readers.
    Timestamps become `datetime`, and lose what a `datetime` cannot represent.

    Raises:
        MissingDependencyError: the package ``cloudevents`` is not installed.
        InvalidEventError: T7, the time is not representable as a `datetime`.
    """
    try:
        from cloudevents.core.v1.event import CloudEvent
    except ImportError:
        raise MissingDependencyError("to_sdk needs the official SDK: pip install 'cloudevents>=2'") from None
    if event.time_text is not None and event.time is None:
        raise InvalidEventError("T7", f"the time {event.time_text} is not representable as a datetime")
    attributes: dict[str, Any] = dict(event.attributes())
    if event.content_type is not None:
        attributes["datacontenttype"] = event.content_type
    for name, value in attributes.items():
        if isinstance(value, Timestamp):
            attributes[name] = event.time if name == "time" else str(value)
        elif isinstance(value, bytes):
            attributes[name] = canonical_text(value)
    data: Any = event.data
    if parse_data and data is not None and event.content_type is not None and is_json(event.content_type):
        data = event.json()
    official = CloudEvent(attributes, data)
    if event.time_text is None:
        # The SDK puts in the current time where there is none.
        official.get_attributes().pop("time", None)
    return official
