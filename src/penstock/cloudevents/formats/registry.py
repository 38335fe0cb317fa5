"""The event formats that can be read and written, by media type (rules K14, K15, K3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from penstock.cloudevents.event import Event
from penstock.cloudevents.formats import avro_format, json_format, protobuf_format
from penstock.cloudevents.types import AttributeType

FormatName = Literal["json", "avro", "protobuf"]


class Format(Protocol):
    """The functions for reading and writing events that the module of each event format has."""

    MEDIA_TYPE: str

    def read_event(
        self, data: bytes, *, lenient: bool = ..., extension_types: Mapping[str, AttributeType] = ...
    ) -> Event: ...

    def write_event(self, event: Event, *, text_data: bool = ...) -> bytes: ...


_FORMATS: Mapping[str, Format] = {"json": json_format, "avro": avro_format, "protobuf": protobuf_format}


def format_named(name: str) -> Format | None:
    """Return the format called `name`, the part after ``+`` in its media type, or None if it is unknown."""
    return _FORMATS.get(name)
