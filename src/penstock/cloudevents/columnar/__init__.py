"""Converts whole Arrow batches of CloudEvents.

Needs numpy and pyarrow; fast only with the compiled kernels.
"""

from __future__ import annotations

from penstock.cloudevents.columnar.decode import EVENT_COLUMNS as EVENT_COLUMNS
from penstock.cloudevents.columnar.decode import decode_events as decode_events
from penstock.cloudevents.columnar.decode import schema_for as schema_for
from penstock.cloudevents.columnar.encode import encode_events as encode_events
from penstock.cloudevents.columnar.event_columns import EVENT_SCHEMA as EVENT_SCHEMA

__all__ = ["EVENT_COLUMNS", "EVENT_SCHEMA", "decode_events", "encode_events", "schema_for"]
