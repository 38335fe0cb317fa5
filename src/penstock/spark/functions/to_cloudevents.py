"""Records from a DataFrame of events: `to_cloudevents` makes keys, values and headers from attribute columns.

The binary mode is column expressions, which the JVM evaluates. The structured mode goes through
`encode_events` in Python, a batch at a time: SQL functions cannot put the exact text of JSON data into
an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.cloudevents.event import CORE as CORE_NAMES
from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.cloudevents.write_record import partitionkey_mapper
from penstock.errors import ConfigError
from penstock.spark.functions.sql_rules import (
    MICROS_MAX,
    MICROS_MIN,
    apart,
    is_attribute_name,
    problem,
    shown,
    time_text_of,
    wrong_core,
    wrong_timestamp,
    wrong_typed_extension,
)
from penstock.spark.runtime.releases import arrow_udf
from penstock.spark.source.schema import EVENT_COLUMNS, HEADERS_TYPE

if TYPE_CHECKING:
    from penstock.cloudevents.formats.registry import FormatName
    from penstock.cloudevents.headers import Mode
    from penstock.cloudevents.write_record import KeyMapper

SLOTS = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")
"""The core attributes, in the order in which they are written."""

_HEADERS = {name: "content-type" if name == "datacontenttype" else f"ce_{name}" for name in SLOTS}
_RULES = {
    "id": "C6",
    "source": "C7",
    "type": "C9",
    "subject": "C11",
    "datacontenttype": "C13",
    "dataschema": "C10",
}
_REPLACED = {*EVENT_COLUMNS, "key", "value", "headers"}
_ENTRIES = "array<struct<key:string,value:string>>"
_HEADERS_SQL = "array<struct<key:string,value:binary>>"
RECORD = StructType(
    [
        StructField("value", BinaryType()),
        StructField("headers", HEADERS_TYPE),
        StructField("error", StringType()),
    ]
)


def to_cloudevents(
    df: DataFrame,
    *,
    mode: Mode = "binary",
    key_mapper: KeyMapper | None = None,
    event_format: FormatName = "json",
    text_data: bool = False,
    binary_headers: bool = False,
    errors: Literal["raise", "column"] = "raise",
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> DataFrame:
    """Return the records that carry the events of `df`: columns `key`, `value` and `headers`.

    `df` has the columns that `from_cloudevents` makes, or some of them: `id`, `source` and `type` are
    required. `time` is a timestamp, or text. Extensions are in the map `extensions`, or each in a column
    ``ce_<name>``. The record key is the column `key`, or null; `key_mapper` may be
    `partitionkey_mapper`. Other columns, such as `topic`, stay. The options are those of
    `penstock.cloudevents.encode_events`.

    A row that is no valid event fails the query; with ``errors="column"`` its value and headers are
    null, and a last column `error` has the reason.

    Raises:
        ConfigError: a column is missing or of a wrong type, or the options are wrong.
    """
    _check(df, mode, key_mapper, errors)
    types = {**extension_types, **_column_types(df, extension_types)}
    if mode == "binary":
        found = _binary_record(df, types)
    else:
        options = {
            "mode": mode,
            "event_format": event_format,
            "text_data": text_data,
            "binary_headers": binary_headers,
            "extension_types": dict(extension_types),
        }
        found = df.withColumn("_record", _encoder(options)(F.struct(*_event_columns(df))))
    error = F.col("_record.error")
    value, headers = F.col("_record.value"), F.col("_record.headers")
    if errors == "raise":
        headers = F.when(error.isNotNull(), F.raise_error(error).cast(_HEADERS_SQL)).otherwise(headers)
        value = F.when(error.isNotNull(), F.raise_error(error).cast("binary")).otherwise(value)
    key = F.col("key").cast("binary") if "key" in df.columns else F.lit(None).cast("binary")
    if key_mapper is not None:
        key = F.coalesce(_partition_key(df).cast("binary"), key)
    columns = [key.alias("key"), value.alias("value"), headers.alias("headers")]
    columns += [
        F.col("`" + name.replace("`", "``") + "`")
        for name in df.columns
        if name not in _REPLACED and not name.startswith("ce_")
    ]
    if errors == "column":
        columns.append(error.alias("error"))
    return found.select(*columns)


def _check(df: DataFrame, mode: str, key_mapper: KeyMapper | None, errors: str) -> None:
    for name in ("id", "source", "type"):
        if name not in df.columns:
            raise ConfigError(f"to_cloudevents needs a column {name!r}")
    if mode not in ("binary", "structured"):
        raise ConfigError(f"mode must be 'binary' or 'structured', not {mode!r}")
    if errors not in ("raise", "column"):
        raise ConfigError(f"errors must be 'raise' or 'column', not {errors!r}")
    if key_mapper not in (None, partitionkey_mapper):
        raise ConfigError("a DataFrame takes partitionkey_mapper only; make other keys a column 'key'")
    if "time" in df.columns and not isinstance(
        df.schema["time"].dataType, (TimestampType, StringType, NullType)
    ):
        raise ConfigError("column time: give it the type timestamp (with a time zone), or string")


def _column_types(df: DataFrame, declared: Mapping[str, AttributeType]) -> dict[str, AttributeType]:
    """Return a dict from extension name to attribute type, for columns ``ce_<name>`` that are not text."""
    found: dict[str, AttributeType] = {}
    for field in df.schema.fields:
        if not field.name.startswith("ce_") or isinstance(field.dataType, (StringType, NullType)):
            continue
        kind = _type_of(field.dataType)
        if kind is None:
            raise ConfigError(
                f"no extension can be a column of {field.dataType.simpleString()}: {field.name}"
            )
        name = field.name[3:]
        if declared.get(name, kind) is not kind:
            raise ConfigError(f"column {field.name}: a {declared[name].value} is declared")
        found[name] = kind
    return found


def _type_of(kind: DataType) -> AttributeType | None:
    if isinstance(kind, BooleanType):
        return AttributeType.BOOLEAN
    if isinstance(kind, IntegralType):
        return AttributeType.INTEGER
    if isinstance(kind, BinaryType):
        return AttributeType.BINARY
    return AttributeType.TIMESTAMP if isinstance(kind, TimestampType) else None


def _event_columns(df: DataFrame) -> list[Column]:
    """Return the columns of `df` that belong to the event and are passed to `encode_events`."""
    names = [name for name in df.columns if name in EVENT_COLUMNS or name.startswith("ce_")]
    return [F.col("`" + name.replace("`", "``") + "`").alias(name) for name in names]


def _encoder(options: dict[str, Any]) -> Any:
    import pyarrow as pa

    def encode(events: Any) -> Any:
        return encode_column(events, **options)

    encode.__annotations__ = dict.fromkeys(("events", "return"), pa.Array)
    return arrow_udf(encode, RECORD, instead="say mode='binary'")


def encode_column(events: Any, **options: Any) -> Any:
    """Encode an array of event structs; return records with the columns that `encode_events` makes."""
    import pyarrow as pa

    from penstock.cloudevents.columnar import encode_events

    encoded = encode_events(pa.RecordBatch.from_struct_array(events), errors="column", **options)
    return pa.StructArray.from_arrays([encoded.column(name) for name in RECORD.names], names=RECORD.names)


def _partition_key(df: DataFrame) -> Column:
    in_map = F.try_element_at("extensions", F.lit("partitionkey")) if "extensions" in df.columns else None
    found = [F.col("ce_partitionkey")] if "ce_partitionkey" in df.columns else []
    return F.coalesce(*found, in_map if in_map is not None else F.lit(None).cast("string"))


def _binary_record(df: DataFrame, types: dict[str, AttributeType]) -> DataFrame:
    """Return `df` with the record in binary mode as the struct `_record`."""
    data = F.col("data").cast("binary") if "data" in df.columns else F.lit(None).cast("binary")
    texts = {name: _text(df, name) for name in SLOTS}
    implied = F.lit(None).cast("string")
    if "content_type" in df.columns:
        is_json = (F.col("content_type") == "application/json") & data.isNotNull()
        implied = F.when(is_json, "application/json")
    content_type = F.coalesce(texts["datacontenttype"], implied)
    found = df.withColumn("_texts", F.struct(*(text.alias(name) for name, text in texts.items())))
    found = found.withColumn("_content_type", content_type)
    found = found.withColumn("_entries", _entries(df).cast(_ENTRIES))
    found = found.withColumn("_error", _error(df, types))
    is_event = F.col("_error").isNull()
    texts = {name: F.col(f"_texts.{name}") for name in SLOTS} | {"datacontenttype": F.col("_content_type")}
    core = [
        F.struct(F.lit(_HEADERS[name]).alias("key"), text.cast("binary").alias("value"))
        for name, text in texts.items()
    ]
    integers = [name for name, kind in types.items() if kind is AttributeType.INTEGER]
    extensions = F.transform(
        F.array_sort("_entries"),
        lambda entry: F.struct(
            F.concat(F.lit("ce_"), entry.key).alias("key"),
            canonical(entry.key, entry.value, integers).cast("binary").alias("value"),
        ),
    )
    headers = F.concat(F.array(*core).cast(_HEADERS_SQL), extensions.cast(_HEADERS_SQL))
    headers = F.filter(headers, lambda header: header.value.isNotNull())
    record = F.struct(
        F.when(is_event, data).alias("value"),
        F.when(is_event, headers).alias("headers"),
        F.col("_error").alias("error"),
    )
    return found.withColumn("_record", record)


def canonical(name: Column, text: Column, integers: list[str]) -> Column:
    """Return a column expression for the canonical text of a valid extension: an Integer "-0" becomes "0"."""
    return F.when(name.isin(integers) & (text == "-0"), "0").otherwise(text)


def _text(df: DataFrame, name: str) -> Column:
    """Return a column expression for the text of a core attribute."""
    if name not in df.columns and not (name == "time" and "time_text" in df.columns):
        return F.lit("1.0" if name == "specversion" else None).cast("string")
    if name != "time":
        return F.col(name).cast("string")
    given = F.col("time_text").cast("string") if "time_text" in df.columns else F.lit(None).cast("string")
    if "time" not in df.columns:
        return given
    time = F.col("time")
    if isinstance(df.schema["time"].dataType, TimestampType):
        time = time_text_of(_sayable(F.unix_micros(time)))
    return F.coalesce(given, time.cast("string"))


def _sayable(micros: Column) -> Column:
    return F.when(micros.between(MICROS_MIN, MICROS_MAX), micros)


def _entries(df: DataFrame) -> Column:
    """Return a column expression for all extensions: those of the map, then those in ``ce_`` columns."""
    parts = [F.array().cast(_ENTRIES)]
    if "extensions" in df.columns:
        parts.append(F.coalesce(F.map_entries("extensions").cast(_ENTRIES), parts[0]))
    for field in df.schema.fields:
        if field.name.startswith("ce_"):
            text = _extension_text(F.col("`" + field.name.replace("`", "``") + "`"), field.dataType)
            parts.append(F.array(F.struct(F.lit(field.name[3:]).alias("key"), text.alias("value"))))
    if len(parts) > 1:
        parts[1] = apart(parts[1])
    return F.filter(F.concat(*parts), lambda entry: entry.value.isNotNull())


def _extension_text(column: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return F.base64(column)
    if isinstance(kind, TimestampType):
        return time_text_of(_sayable(F.unix_micros(column)))
    return column.cast("string")


def _error(df: DataFrame, types: dict[str, AttributeType]) -> Column:
    """Return a column expression for the first rule that an event breaks, in the order of `encode_events`."""
    wrong: list[Column] = []
    if "time" in df.columns and isinstance(df.schema["time"].dataType, TimestampType):
        micros = F.unix_micros("time")
        late = ~micros.between(MICROS_MIN, MICROS_MAX)
        wrong.append(F.when(late, problem("T7", "time is not within the years 1 to 9999")))
    texts = {name: F.col(f"_texts.{name}") for name in SLOTS}
    wrong += [
        F.when(~F.is_valid_utf8(text), problem("K27", f"{name} is not UTF-8 text"))
        for name, text in texts.items()
    ]
    wrong += [
        F.when(texts[name].isNull(), problem("C1", f"the required attribute {name} is null"))
        for name in ("id", "source", "specversion", "type")
    ]
    wrong.append(_wrong_names())
    version = texts["specversion"]
    wrong.append(F.when(version == "", problem("C8", "specversion is empty")))
    only = problem("D13", "specversion is ", shown(version), "; only '1.0' is understood")
    wrong.append(F.when(version != "1.0", only))
    wrong += [wrong_core(name, rule, texts[name]) for name, rule in _RULES.items()]
    wrong.append(wrong_timestamp("time", texts["time"]))
    entries = F.transform(apart(F.col("_entries")), lambda entry: _wrong_entry(entry.key, entry.value, types))
    wrong.append(F.try_element_at(F.filter(entries, lambda entry: entry.isNotNull()), F.lit(1)))
    empty_key = F.exists("_entries", lambda entry: (entry.key == "partitionkey") & (entry.value == ""))
    wrong.append(F.when(empty_key, problem("P1", "partitionkey is empty")))
    structured = F.lower(F.substring("_content_type", 1, 23)) == "application/cloudevents"
    reason = (
        "with data of ",
        shown(F.col("_content_type")),
        " a binary record would pass for a structured one",
    )
    wrong.append(F.when(structured, problem("K14", *reason, "; use mode='structured'")))
    return F.coalesce(*wrong)


def _wrong_names() -> Column:
    keys = F.col("_entries.key")
    indices = F.sequence(F.lit(0), F.size(keys) - 1)
    doubled = F.filter(indices, lambda at: F.array_position(keys, F.get(keys, at)) <= at)
    twice = F.get(keys, F.try_element_at(doubled, F.lit(1)))
    bad_name = F.exists(keys, lambda key: ~F.is_valid_utf8(key))
    bad = F.filter("_entries", lambda entry: ~F.is_valid_utf8(entry.value))
    return (
        F.when(bad_name, problem("K27", "an extension's name is not UTF-8 text"))
        .when(F.size(bad) > 0, problem("K27", F.try_element_at(bad.key, F.lit(1)), " is not UTF-8 text"))
        .when(
            F.size(F.array_distinct(keys)) < F.size(keys),
            problem("C2", "the extension ", twice, " is there twice"),
        )
    )


def _wrong_entry(name: Column, text: Column, types: dict[str, AttributeType]) -> Column:
    return F.coalesce(
        F.when(name.isin(sorted(CORE_NAMES)), problem("C2", name, " is a core attribute, not an extension")),
        F.when(~is_attribute_name(name), problem("C3", "not an attribute name: ", shown(name))),
        wrong_typed_extension(name, text, types),
    )
