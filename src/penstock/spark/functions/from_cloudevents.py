"""CloudEvents in a DataFrame of records: `from_cloudevents` adds the attributes as columns.

Records go through `decode_events` in Python, a batch at a time: SQL functions would reformat the numbers in
JSON data and miss duplicate members. With ``modes="binary"``, column expressions check and split the events,
which the JVM evaluates: no Python worker, but it takes several times the CPU. For records of this package's
source, ``.option("cloudevents", "columns")`` is cheaper still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField, StructType

from penstock.cloudevents.types import WELL_KNOWN_EXTENSIONS, AttributeType
from penstock.errors import ConfigError
from penstock.spark.functions.sql_rules import (
    apart,
    is_attribute_name,
    is_canonical_time,
    micros_of,
    problem,
    shown,
    wrong_core,
    wrong_extension,
    wrong_timestamp,
    wrong_utf8,
)
from penstock.spark.functions.to_cloudevents import canonical
from penstock.spark.runtime.releases import arrow_udf
from penstock.spark.source.schema import CLOUDEVENTS_COLUMNS, EVENT_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.cloudevents.read_record import Profile

CORE = ("specversion", "id", "source", "type", "time", "subject", "dataschema", "datacontenttype")
REQUIRED = ("ce_specversion", "ce_id", "ce_source", "ce_type")
NO_CLAIM = (
    "K16: not an event: its content-type is no event format's, "
    "and none of ce_id, ce_source, ce_specversion, ce_type is there"
)
ENTRIES = "array<struct<key:string,value:string>>"


def from_cloudevents(
    df: DataFrame,
    *,
    columns: Sequence[str] = tuple(CLOUDEVENTS_COLUMNS),
    modes: Literal["both", "binary"] = "both",
    profile: Profile = "strict",
    assume_structured: bool = False,
    partitionkey_from_key: bool = False,
    extension_types: Mapping[str, AttributeType] = WELL_KNOWN_EXTENSIONS,
) -> DataFrame:
    """Return `df` with a column for each attribute of the events in its records.

    `df` has the columns `value` (binary) and `headers` (array of structs of `key` and `value`), as Kafka
    sources with headers give them, and `key` for `partitionkey_from_key`. All its columns stay, except those
    that are replaced. The new columns are those of the source option ``cloudevents``; `columns` selects some
    of these, or adds: `time_text`, `content_type`, `outcome`, `rule`, and ``ce_<name>`` for the text of one
    extension. A record that is no valid event has the reason in `error` and null in the other new columns.

    ``modes="binary"`` needs no Python worker: a record in structured mode then has an error, as for an
    unknown event format (rule K15). The other options are those of `penstock.cloudevents.from_record`.

    Raises:
        ConfigError: a column is missing or unknown, or the options are wrong.
    """
    _check(df, columns, modes, profile, ("key",) if partitionkey_from_key else ())
    careful = profile != "strict" or assume_structured or partitionkey_from_key
    if modes == "binary":
        if careful:
            raise ConfigError(
                "modes='binary' reads by the strict profile, without assume_structured "
                "and partitionkey_from_key"
            )
        event = _binary_event(df, dict(extension_types))
    else:
        event = df.select(
            "*", _decoder(profile, assume_structured, partitionkey_from_key, extension_types).alias("_event")
        )
    kept = [F.col(_quoted(name)) for name in df.columns if name not in columns]
    return event.select(*kept, *(_column(name) for name in columns))


def _check(df: DataFrame, columns: Sequence[str], modes: str, profile: str, more: Sequence[str] = ()) -> None:
    for name in ("value", "headers", *more):
        if name not in df.columns:
            hint = (
                "; ask the source for them with .option('includeHeaders', True)" if name == "headers" else ""
            )
            raise ConfigError(f"from_cloudevents needs a column {name!r}{hint}")
    if modes not in ("both", "binary"):
        raise ConfigError(f"modes must be 'both' or 'binary', not {modes!r}")
    if profile not in ("strict", "lenient"):
        raise ConfigError(f"profile must be 'strict' or 'lenient', not {profile!r}")
    for name in columns:
        if name not in EVENT_COLUMNS and not name.startswith("ce_"):
            raise ConfigError(f"no event column is called {name!r}; there are {', '.join(EVENT_COLUMNS)}")


def _column(name: str) -> Column:
    if name.startswith("ce_"):
        return F.try_element_at(F.col("_event.extensions"), F.lit(name[3:])).alias(name)
    if name in ("outcome", "rule"):
        error = F.col("_event.error")
        rule = F.split_part(error, F.lit(":"), F.lit(1))
        if name == "rule":
            return rule.alias(name)
        invalid = F.when(error.startswith("K16: not an event"), "not an event").otherwise("invalid event")
        return F.when(error.isNull(), "event").otherwise(invalid).alias(name)
    return F.col(f"_event.{name}").alias(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


EVENT_STRUCT = StructType(
    [StructField(name, kind) for name, kind in EVENT_COLUMNS.items() if name not in ("outcome", "rule")]
)


def _decoder(
    profile: Profile, assume_structured: bool, with_keys: bool, types: Mapping[str, AttributeType]
) -> Column:
    """Return a column expression that decodes a record's event with a Python function."""
    names = ("value", "headers", "key") if with_keys else ("value", "headers")
    event: Column = _udf(profile, assume_structured, names, dict(types))(*map(F.col, names))
    return event


def _udf(
    profile: Profile, assume_structured: bool, names: Sequence[str], types: dict[str, AttributeType]
) -> Any:
    import pyarrow as pa

    options: dict[str, Any] = {
        "profile": profile,
        "assume_structured": assume_structured,
        "partitionkey_from_key": "key" in names,
        "extension_types": types,
    }

    def decode(value: Any, headers: Any) -> Any:
        return decode_column(value, headers, **options)

    def decode_keyed(value: Any, headers: Any, key: Any) -> Any:
        return decode_column(value, headers, key, **options)

    made = decode_keyed if "key" in names else decode
    # Spark reads from these what kind of function it is.
    made.__annotations__ = dict.fromkeys((*names, "return"), pa.Array)
    return arrow_udf(
        made,
        EVENT_STRUCT,
        instead="say modes='binary', or let the source decode events with the option cloudevents='columns'",
    )


def decode_column(
    value: pa.Array, headers: pa.Array, key: pa.Array | None = None, **options: Any
) -> pa.Array:
    """Decode the events in arrays of record values, headers and optional keys; return an array of structs."""
    import pyarrow as pa

    from penstock.cloudevents.columnar import decode_events
    from penstock.records.arrow import HEADERS_TYPE

    columns = {"value": value.cast(pa.binary()), "headers": headers.cast(HEADERS_TYPE)}
    if key is not None:
        columns["key"] = key.cast(pa.binary())
    decoded = decode_events(pa.RecordBatch.from_pydict(columns), columns=EVENT_STRUCT.names, **options)
    return pa.StructArray.from_arrays(
        [decoded.column(name) for name in EVENT_STRUCT.names], names=EVENT_STRUCT.names
    )


def _binary_event(df: DataFrame, types: dict[str, AttributeType]) -> DataFrame:
    """Return `df` with the columns `_event`, for records in binary mode, and `_is_structured`, a boolean."""
    found = df.withColumns(_selected())
    found = found.withColumn("_is_structured", _is_structured())
    found = found.withColumns(_texts())
    found = found.withColumn("_error", _error(types))
    is_event = F.col("_error").isNull() & ~F.col("_is_structured")
    time = F.col("_texts.time")
    micros = F.when(is_event & time.isNotNull(), micros_of(time))
    found = found.withColumn("_micros", micros)
    integers = [name for name, kind in types.items() if kind is AttributeType.INTEGER]
    return found.withColumn("_event", _event(is_event, integers))


def _selected() -> dict[str, Column]:
    """Return column expressions for a record's ``ce_`` headers and its content types, without duplicates."""
    headers = F.coalesce(F.col("headers"), F.array().cast("array<struct<key:string,value:binary>>"))
    attributes = F.filter(headers, lambda header: header.key.startswith("ce_"))
    contents = F.filter(headers, lambda header: F.lower(header.key) == "content-type")
    return {"_attributes": F.array_distinct(attributes), "_contents": F.array_distinct(contents.value)}


def _is_format(value: Column) -> Column:
    """Return a column expression: true if a media type begins with ``application/cloudevents``."""
    return F.coalesce(
        F.lower(F.substring(value, 1, 23).cast("string")) == "application/cloudevents", F.lit(False)
    )


def _is_structured() -> Column:
    return (F.size("_contents") == 1) & _is_format(F.get("_contents", F.lit(0)))


def _texts() -> dict[str, Column]:
    """Return column expressions for the texts of core attributes, and of extensions with their names."""
    keys, values = F.col("_attributes.key"), F.col("_attributes.value")

    def value_of(name: str) -> Column:
        return F.get(values, F.array_position(keys, f"ce_{name}").cast("int") - 1).cast("string")

    content_type = F.coalesce(F.get("_contents", F.lit(0)).cast("string"), value_of("datacontenttype"))
    texts = [value_of(name).alias(name) for name in CORE[:-1]] + [content_type.alias(CORE[-1])]
    core = [f"ce_{name}" for name in CORE]
    others = F.filter(F.col("_attributes"), lambda header: ~header.key.isin(core))
    entries = F.transform(
        others,
        lambda header: F.struct(
            F.substr(header.key, F.lit(4)).alias("key"), header.value.cast("string").alias("value")
        ),
    )
    return {"_texts": F.struct(*texts), "_entries": entries.cast(ENTRIES)}


def _error(types: dict[str, AttributeType]) -> Column:
    """Return a column expression for the first rule that a record in binary mode breaks.

    The order of rules is that of `from_record`; null means that the record is valid.
    """
    keys = F.col("_attributes.key")
    claims = F.arrays_overlap(keys, F.array(*map(F.lit, REQUIRED)))
    several = F.size("_contents") > 1
    formats = F.exists("_contents", _is_format)
    no_claim = ~claims & ~formats
    conflict = F.when(several, "content-type").otherwise(_first_conflict(keys))
    twice = problem("D3", "the header ", shown(conflict), " is there twice, with different values")
    return (
        F.when(F.col("_is_structured"), _unreadable())
        .when(no_claim, NO_CLAIM)
        .when(conflict.isNotNull(), twice)
        .otherwise(F.coalesce(*_wrong_required(keys), *_wrong_others(types)))
    )


def _first_conflict(keys: Column) -> Column:
    """Return a column expression for the first header name that occurs with different values, or null."""
    indices = F.sequence(F.lit(0), F.size(keys) - 1)
    doubled = F.filter(indices, lambda at: F.array_position(keys, F.get(keys, at)) <= at)
    return F.when(
        F.size(F.array_distinct(keys)) < F.size(keys), F.get(keys, F.try_element_at(doubled, F.lit(1)))
    )


def _unreadable() -> Column:
    media_type = F.lower(F.trim(F.split_part(_content_type_text(), F.lit(";"), F.lit(1)), F.lit(" \t")))
    batch = problem("K3", "the batch content mode does not exist on Kafka")
    unknown = problem("K15", "the event format ", shown(media_type), " cannot be read here")
    return F.when(media_type.startswith("application/cloudevents-batch"), batch).otherwise(unknown)


def _content_type_text() -> Column:
    return F.get("_contents", F.lit(0)).cast("string")


def _wrong_required(keys: Column) -> list[Column]:
    missing = [
        F.when(
            ~F.array_contains(keys, f"ce_{name}"), problem("C1", f"the required header ce_{name} is missing")
        )
        for name in CORE[:4]
    ]
    wrong = list(missing)
    for name, rule in (("specversion", "C8"), ("id", "C6"), ("source", "C7"), ("type", "C9")):
        text = F.col(f"_texts.{name}")
        wrong.append(F.when(text.isNull(), problem("D4", f"the required attribute {name} is null")))
        wrong.append(wrong_utf8(name, text))
        if name == "specversion":
            wrong.append(F.when(text == "", problem("C8", "specversion is empty")))
            version = problem("D13", "specversion is ", shown(text), "; only '1.0' is understood")
            wrong.append(F.when(text != "1.0", version))
        else:
            wrong.append(wrong_core(name, rule, text))
    return wrong


def _wrong_others(types: dict[str, AttributeType]) -> list[Column]:
    time = F.col("_texts.time")
    wrong = [wrong_utf8("time", time), wrong_timestamp("time", time)]
    for name, rule in (("subject", "C11"), ("dataschema", "C10")):
        text = F.col(f"_texts.{name}")
        wrong += [wrong_utf8(name, text), wrong_core(name, rule, text)]
    entries = F.transform(apart(F.col("_entries")), lambda entry: _wrong_entry(entry.key, entry.value, types))
    first = F.try_element_at(F.filter(entries, lambda entry: entry.isNotNull()), F.lit(1))
    wrong.append(F.when(F.size("_entries") > 0, first))
    text = F.col("_texts.datacontenttype")
    return [*wrong, wrong_utf8("datacontenttype", text), wrong_core("datacontenttype", "C13", text)]


def _wrong_entry(name: Column, text: Column, types: dict[str, AttributeType]) -> Column:
    header = F.concat(F.lit("ce_"), name)
    return F.coalesce(
        F.when(~is_attribute_name(name), problem("D6", "the header ", shown(header), " names no attribute")),
        wrong_utf8(name, text),
        wrong_extension(name, text, types),
    )


def _event(is_event: Column, integers: list[str]) -> Column:
    texts = {name: F.when(is_event, F.col(f"_texts.{name}")) for name in CORE}
    time = texts["time"]
    keep_text = time.isNotNull() & ~(F.col("_micros").isNotNull() & is_canonical_time(time))
    # Names are there once in a valid event; in the others `map_from_entries` would stumble.
    entries = F.when(is_event, F.filter("_entries", lambda entry: entry.value.isNotNull()))
    entries = F.transform(
        entries,
        lambda entry: F.struct(
            entry.key.alias("key"), canonical(entry.key, entry.value, integers).alias("value")
        ),
    )
    columns = {
        **texts,
        "time": F.timestamp_micros("_micros"),
        "time_text": F.when(keep_text, time),
        "content_type": texts["datacontenttype"],
        "extensions": F.map_from_entries(entries),
        "data": F.when(is_event, F.col("value").cast("binary")),
        "error": F.col("_error"),
    }
    return F.struct(*(columns[field.name].alias(field.name) for field in EVENT_STRUCT.fields))
