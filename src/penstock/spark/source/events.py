"""CloudEvents as columns: executors decode the events before records are passed to the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import DecodeError
from penstock.spark.source.options import CloudEventsOptions

if TYPE_CHECKING:
    import pyarrow as pa

RAW_COLUMNS = ("value", "headers")
"""The record columns `value` and `headers`, whose contents a valid event's other columns repeat. They are
null for valid events unless the option `raw` is "all"."""


def event_columns(
    batch: pa.RecordBatch, columns: Sequence[str], options: CloudEventsOptions
) -> dict[str, pa.Array]:
    """Return a dict of the columns of `batch` and the columns of the events in its records, by name.

    Raises:
        DecodeError: a record is not a valid event, and the option `invalid` is "fail".
    """
    import pyarrow.compute as pc

    from penstock.cloudevents.columnar import decode_events

    typed = {name for name in columns if name[:3] == "ce_" and _is_typed(name[3:])}
    wanted = [name for name in columns if name not in batch.schema.names and name not in typed]
    if typed:
        wanted.append("extensions")
    decoded = decode_events(
        batch,
        columns=[*dict.fromkeys([*wanted, "error"])],
        profile="lenient" if options.profile == "lenient" else "strict",
        assume_structured=options.assume_structured,
    )
    errors = decoded.column("error")
    found = {
        name: pc.map_lookup(decoded.column("extensions"), name[3:], "first")
        if name in typed
        else decoded.column(name)
        for name in columns
    }
    if options.invalid == "fail" and errors.null_count < len(errors):
        raise DecodeError(_first_error(batch, errors))
    if options.invalid == "drop" and errors.null_count < len(errors):
        valid = pc.is_null(errors)
        return {name: column.filter(valid) for name, column in found.items()}
    if options.raw == "invalid":
        for name in RAW_COLUMNS:
            if name in found:
                found[name] = _only_where(pc.is_valid(errors), found[name], errors.null_count)
    return found


def _is_typed(name: str) -> bool:
    """Return True if the Arrow column of an extension is not text; Spark gets its text in `extensions`."""
    from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType

    return WELL_KNOWN_EXTENSIONS.get(name) in (
        AttributeType.BOOLEAN,
        AttributeType.INTEGER,
        AttributeType.BINARY,
        AttributeType.TIMESTAMP,
    )


def _only_where(keep: pa.BooleanArray, column: pa.Array, dropped: int) -> pa.Array:
    """Return `column` with null in all rows where `keep` is false."""
    import pyarrow as pa

    if dropped == len(column):
        return pa.nulls(len(column), column.type)
    if dropped == 0:
        return column
    return column.take(_positions(keep))


def _positions(keep: pa.BooleanArray) -> pa.Array:
    """Return an array for Arrow's `take`: the row's own index where `keep` is true, else null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(keep, pa.array(range(len(keep)), pa.int32()), pa.scalar(None, pa.int32()))


def _first_error(batch: pa.RecordBatch, errors: pa.Array) -> str:
    row, error = next((i, text) for i, text in enumerate(errors.to_pylist()) if text is not None)
    location = ""
    if {"topic", "partition", "offset"} <= set(batch.schema.names):
        topic, partition, offset = (batch.column(n)[row].as_py() for n in ("topic", "partition", "offset"))
        location = f"{topic}-{partition} at offset {offset}: "
    return f"{location}{error}; set cloudevents.invalid to 'keep' or 'drop' to go on"
