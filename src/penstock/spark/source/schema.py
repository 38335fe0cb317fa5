"""The columns of a read in Spark, and the conversion of fetched Arrow batches to them.

A user schema is the only way to prune columns in a Python data source: only the columns that it names
are decoded. `key`, `value` and `data` may be requested as strings; the bytes are passed on
unchecked, like Spark's own cast from binary to string.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.errors import ConfigError
from penstock.model import COLUMN_NAMES

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.source.options import CloudEventsOptions
    from penstock.spark.source.where.condition import Where
    from penstock.spark.value_columns import ValueColumns

HEADERS_TYPE = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

KAFKA_COLUMNS: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS_TYPE,
}

CLOUDEVENTS_COLUMNS: Mapping[str, DataType] = {
    "id": StringType(),
    "source": StringType(),
    "specversion": StringType(),
    "type": StringType(),
    "subject": StringType(),
    "time": TimestampType(),
    "datacontenttype": StringType(),
    "dataschema": StringType(),
    "extensions": MapType(StringType(), StringType()),
    "data": BinaryType(),
    "error": StringType(),
}
"""The columns of events by default. `error` is the reason why a record is not a valid event, or null."""

CLOUDEVENTS_EXTRA_COLUMNS: Mapping[str, DataType] = {
    "time_text": StringType(),
    "content_type": StringType(),
    "outcome": StringType(),
    "rule": StringType(),
}
"""Further columns of events, made only if a schema names them: exact texts, and the outcome with the broken
rule."""

EVENT_COLUMNS = {**CLOUDEVENTS_COLUMNS, **CLOUDEVENTS_EXTRA_COLUMNS}

EXTENSION_PREFIX = "ce_"
"""The prefix of columns for single extension attributes: ``ce_hue`` has the text of the extension `hue`."""

TEXT_OR_BYTES = ("key", "value", "data")

BATCH_BYTES = 1 << 20
BATCH_ROWS_MAX = 10_000
"""The most rows of a batch for Spark; with BATCH_BYTES it limits batches, which Spark neither joins nor cuts.
About 1 MiB costs the least CPU per row."""
EVENT_BATCH_BYTES = 8 << 20
"""The bytes of records whose events or values are decoded at a time: as many as one fetch returns. Each such
batch needs dozens of arrays, however small: with 2 MiB instead, a task takes a sixth more CPU for events
of 300 bytes.
"""


def schema_for(
    include_headers: bool, cloudevents: CloudEventsOptions | None, values: ValueColumns | None = None
) -> StructType:
    """Return the default schema of a query, for which the user has given no schema."""
    columns = dict(KAFKA_COLUMNS)
    if not include_headers and cloudevents is None:
        del columns["headers"]
    if cloudevents is not None:
        columns.update(CLOUDEVENTS_COLUMNS)
    decoded = [] if values is None else values.struct_fields()
    return StructType([*(StructField(name, kind) for name, kind in columns.items()), *decoded])


class Projection:
    """Converts fetched batches to the columns of one schema, in its order and with its types.

    `fetched` are the columns of records from which the schema's columns are made.
    """

    def __init__(
        self,
        schema: StructType,
        cloudevents: CloudEventsOptions | None,
        values: ValueColumns | None = None,
        where: Where | None = None,
    ) -> None:
        known = {
            **KAFKA_COLUMNS,
            **(EVENT_COLUMNS if cloudevents else {}),
            **({} if values is None else values.columns),
        }
        if cloudevents is not None:
            names = (field.name.lower() for field in schema.fields)
            known |= {name: StringType() for name in names if name.startswith(EXTENSION_PREFIX)}
        spellings = {name.lower(): name for name in known}
        self.schema = schema
        self.cloudevents = cloudevents
        self.values = values
        self.where = where
        self.columns: list[str] = []
        for field in schema.fields:
            name = spellings.get(field.name.lower())
            if name is None:
                raise ConfigError(_unknown_column(field.name, known))
            if not _fits(field.dataType, known[name], name):
                raise ConfigError(
                    f"column {field.name!r} cannot be read as {field.dataType.simpleString()}; "
                    f"it is {known[name].simpleString()}{' or string' if name in TEXT_OR_BYTES else ''}"
                )
            self.columns.append(name)
        if not self.columns:
            raise ConfigError("the schema names no column")
        self.fetched = self._fetched()
        self._target: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_target": None}

    def _fetched(self) -> tuple[str, ...]:
        wanted = set(self.columns)
        if self.cloudevents is not None:
            wanted |= {"value", "headers"}
            if self.cloudevents.invalid == "fail":
                wanted |= {"topic", "partition", "offset"}
        if self.values is not None:
            wanted |= self.values.fetched(wanted)
        if self.where is not None:
            wanted |= self.where.columns
        return tuple(name for name in COLUMN_NAMES if name in wanted)

    def batches(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that `where` selects, with the schema's types, in batches of about BATCH_BYTES."""
        if self.where is not None:
            batch = self.where.filtered(batch)
        if batch.num_rows:
            yield from cut(self._project(batch))

    def _project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        target = self._arrow_schema()
        if self.cloudevents is not None:
            from penstock.spark.source.events import event_columns

            found = event_columns(batch, self.columns, self.cloudevents)
        else:
            if self.values is not None:
                found = self.values.made(batch, self.columns, target)
            else:
                found = {name: batch.column(name) for name in self.columns}
            if "headers" in found:
                found["headers"] = _null_where_none(found["headers"])
        arrays = [_as_type(found[name], target.field(i).type) for i, name in enumerate(self.columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    def _arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the batches for Spark; it is made on first use, in the worker."""
        if self._target is None:
            from penstock.spark.runtime.releases import arrow_schema_of

            self._target = arrow_schema_of(self.schema)
        return self._target


def cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of `batch` of about BATCH_BYTES and at most BATCH_ROWS_MAX rows, without copies."""
    rows = batch.num_rows
    if rows == 0:
        return
    row_bytes = max(1, batch.nbytes // rows)
    step = max(1, min(BATCH_ROWS_MAX, BATCH_BYTES // row_bytes))
    pieces = max(1, round(rows / step))
    edges = [rows * i // pieces for i in range(pieces + 1)]
    for begin, until in pairwise(edges):
        yield batch.slice(begin, until - begin)


def _null_where_none(headers: pa.ListArray) -> pa.ListArray:
    """Return `headers` with null for rows without headers, as in Spark's Kafka source."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(headers.values) == 0:
        return pa.nulls(len(headers), headers.type)
    has_none = pc.equal(pc.list_value_length(headers), 0).fill_null(True)
    if not pc.any(has_none).as_py():
        return headers
    offsets = pc.add(headers.offsets, 0)  # a slice takes no mask
    return pa.ListArray.from_arrays(offsets, headers.values, headers.type, mask=has_none)


def _as_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if column.type == wanted:
        return column
    if pa.types.is_binary(column.type) and pa.types.is_string(wanted):
        return column.view(wanted)
    return column.cast(wanted)


def _fits(wanted: DataType, natural: DataType, name: str) -> bool:
    if name in TEXT_OR_BYTES and isinstance(wanted, StringType):
        return True
    return wanted.simpleString() == natural.simpleString()


def _unknown_column(name: str, known: Mapping[str, DataType]) -> str:
    if name.lower() in EVENT_COLUMNS or name.lower().startswith(EXTENSION_PREFIX):
        return f"column {name!r} comes with the option cloudevents = 'columns'"
    return f"unknown column {name!r}; there are: {', '.join(known)}"
