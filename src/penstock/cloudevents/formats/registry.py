"""Which event formats can be read and written, by media type (rules K14, K15, K3)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, Protocol

from penstock.cloudevents.event import Event
from penstock.cloudevents.types import AttributeType

FormatName = Literal["json", "avro", "protobuf"]


class Format(Protocol):
    """What a module of an event format offers."""

    MEDIA_TYPE: str

    def read_event(
        self, data: bytes, *, lenient: bool = ..., extension_types: Mapping[str, AttributeType] = ...
    ) -> Event: ...

    def write_event(self, event: Event, *, text_data: bool = ...) -> bytes: ...


_MODULES = {"json": "json_format", "avro": "avro_format", "protobuf": "protobuf_format"}


@lru_cache(maxsize=16)
def format_named(name: str) -> Format | None:
    """The format called `name`, which is what follows the ``+`` of its media type."""
    module = _MODULES.get(name)
    if module is None:
        return None
    rendering: Format = importlib.import_module(f"penstock.cloudevents.formats.{module}")
    return rendering
