"""Reads and writes events in files and HTTP bodies: a single event in an event format, or a batch.

Kafka has no batches (rule K3), but a file of events, or the body of an HTTP request, may be a batch. The
media type decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType

from penstock.cloudevents.event import Event
from penstock.cloudevents.formats import avro_format, json_format, protobuf_format
from penstock.cloudevents.mediatype import essence
from penstock.cloudevents.outcome import InvalidEventError, shown
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.errors import EncodeError

_SINGLE: Mapping[str, ModuleType] = {
    module.MEDIA_TYPE: module for module in (json_format, avro_format, protobuf_format)
}
_BATCHES: Mapping[str, ModuleType] = {
    module.BATCH_MEDIA_TYPE: module for module in (json_format, protobuf_format)
}


def read_events(
    body: bytes,
    content_type: str = json_format.BATCH_MEDIA_TYPE,
    *,
    lenient: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> list[Event]:
    """Return the events in a file or HTTP body: one, or those of a batch, depending on the content type.

    Raises:
        InvalidEventError: the bytes are malformed, an event is invalid, or the format is unknown (K15).
    """
    media_type = essence(content_type)
    batch = _BATCHES.get(media_type)
    if batch is not None:
        events: list[Event] = batch.read_batch(body, lenient=lenient, extension_types=extension_types)
        return events
    single = _SINGLE.get(media_type)
    if single is None:
        raise InvalidEventError("K15", f"the event format {shown(media_type)} cannot be read here")
    return [single.read_event(body, lenient=lenient, extension_types=extension_types)]


def write_events(
    events: Iterable[Event],
    content_type: str = json_format.BATCH_MEDIA_TYPE,
    *,
    text_data: bool = False,
) -> bytes:
    """Return events as the bytes of a file or HTTP body that has the given content type.

    Raises:
        EncodeError: the format is unknown or has no batches, or the type is that of a single event
            and there is not exactly one event.
    """
    media_type = essence(content_type)
    batch = _BATCHES.get(media_type)
    if batch is not None:
        return bytes(batch.write_batch(events, text_data=text_data))
    single = _SINGLE.get(media_type)
    if single is None:
        known = ", ".join([*_SINGLE, *_BATCHES])
        raise EncodeError(f"no event format has the media type {media_type}; there are {known}")
    several = list(events)
    if len(several) != 1:
        raise EncodeError(f"{media_type} holds one event, not {len(several)}")
    return bytes(single.write_event(several[0], text_data=text_data))
