"""CloudEvents on Kafka: converts single events, or whole Arrow batches, to records and back.

`Event`, `to_record` and `from_record` work on one record; `decode_events` and `encode_events` work on a
`pyarrow.RecordBatch` and need ``penstock[arrow]``. Everything except those two functions works without other
packages. Each name is imported on its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.cloudevents.columnar import decode_events as decode_events
    from penstock.cloudevents.columnar import encode_events as encode_events
    from penstock.cloudevents.event import Event as Event
    from penstock.cloudevents.formats.batches import read_events as read_events
    from penstock.cloudevents.formats.batches import write_events as write_events
    from penstock.cloudevents.headers import other_headers as other_headers
    from penstock.cloudevents.official import from_sdk as from_sdk
    from penstock.cloudevents.official import to_sdk as to_sdk
    from penstock.cloudevents.outcome import InvalidEvent as InvalidEvent
    from penstock.cloudevents.outcome import InvalidEventError as InvalidEventError
    from penstock.cloudevents.outcome import NotAnEvent as NotAnEvent
    from penstock.cloudevents.read_record import from_message as from_message
    from penstock.cloudevents.read_record import from_record as from_record
    from penstock.cloudevents.types import URI as URI
    from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS as WELL_KNOWN_EXTENSIONS
    from penstock.cloudevents.types import AttributeType as AttributeType
    from penstock.cloudevents.types import Timestamp as Timestamp
    from penstock.cloudevents.types import URIReference as URIReference
    from penstock.cloudevents.write_record import partitionkey_mapper as partitionkey_mapper
    from penstock.cloudevents.write_record import to_record as to_record

_HOMES = {
    "AttributeType": "types",
    "Event": "event",
    "InvalidEvent": "outcome",
    "InvalidEventError": "outcome",
    "NotAnEvent": "outcome",
    "Timestamp": "types",
    "URI": "types",
    "URIReference": "types",
    "WELL_KNOWN_EXTENSIONS": "types",
    "decode_events": "columnar",
    "encode_events": "columnar",
    "from_message": "read_record",
    "from_record": "read_record",
    "from_sdk": "official",
    "other_headers": "headers",
    "partitionkey_mapper": "write_record",
    "read_events": "formats.batches",
    "to_record": "write_record",
    "to_sdk": "official",
    "write_events": "formats.batches",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
