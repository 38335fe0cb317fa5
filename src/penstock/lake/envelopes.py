"""Converts Debezium's change events to plain records: the row after the change, or no value for a delete."""

from __future__ import annotations

import json

import pyarrow as pa

OPERATIONS = {"c": "after", "u": "after", "r": "after", "d": None}
"""A dict from Debezium's operation codes to the field of the change event that has the row; None for a
delete.
"""


def unwrapped(records: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Return (records with rows instead of change events, a dict from indices of other records to errors).

    A value is an object with ``op``, ``before`` and ``after``, or such an object under ``payload`` beside its
    schema, as Kafka Connect's converter writes it. A delete becomes a record without a value, like a
    tombstone.
    """
    reasons: dict[int, str] = {}
    values: list[bytes | None] = []
    for row, value in enumerate(records.column("value").to_pylist()):
        found, reason = (None, None) if value is None else _row(value)
        values.append(found)
        if reason is not None:
            reasons[row] = reason
    index = records.schema.get_field_index("value")
    return records.set_column(index, "value", pa.array(values, pa.binary())), reasons


def _row(value: bytes) -> tuple[bytes | None, str | None]:
    """Return (the row in a change event as JSON or None for a delete, the error or None)."""
    try:
        envelope = json.loads(value)
    except (ValueError, RecursionError):
        return None, "the value is no JSON object"
    if isinstance(envelope, dict) and isinstance(envelope.get("payload"), dict) and "op" not in envelope:
        envelope = envelope["payload"]
    operation = envelope.get("op") if isinstance(envelope, dict) else None
    if not isinstance(operation, str) or operation not in OPERATIONS:
        return None, f"the value is no change of a row: its op is {json.dumps(operation)[:40]}"
    part = OPERATIONS[operation]
    if part is None:
        return None, None
    if not isinstance(envelope.get(part), dict):
        return None, f"the value has no row: its {part} is no object"
    return json.dumps(envelope[part], ensure_ascii=False).encode("utf-8", "surrogatepass"), None
