"""Functions on columns with schemas: `from_schema` decodes bytes, `to_schema` encodes values.

They work on any DataFrame, batch or stream, in Spark's Python workers. For records of this package's source,
the source option ``value.format`` is cheaper: the encoded bytes then do not pass through the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.errors import ConfigError
from penstock.security.secrets import Secret
from penstock.spark.runtime.releases import arrow_udf
from penstock.spark.value_options import FORMATS, FieldOptions, WrittenField, registry_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.value_columns import ReadField

Registry = str | Mapping[str, object]


def from_schema(
    column: Column | str,
    format: str,
    registry: Registry | None = None,
    *,
    subject: str | None = None,
    schema: str | None = None,
    version: int | None = None,
    message: str | None = None,
    headers: Column | str | None = None,
    is_key: bool = False,
    invalid: Literal["fail", "keep"] = "fail",
) -> Column:
    """Return a column of decoded values, in the type of their schema, from a column of bytes.

        orders.select(from_schema("value", "avro", registry, subject="orders-value").alias("order"))

    Args:
        column: the column, of type binary.
        format: ``"avro"``, ``"json"`` or ``"protobuf"``.
        registry: the URL of a registry, or settings of its client. Without one, values have no schema id.
        subject: the subject whose newest version, at the time of this call, is the reader's schema.
        schema: the text of the reader's schema, instead of a subject.
        version: a version of the subject, instead of the newest.
        message: the full name of a Protobuf message; by default the file's first.
        headers: the column of record headers, if they contain the schema ids.
        is_key: True if the bytes are record keys.
        invalid: ``"fail"``: the first row that does not decode ends the query. ``"keep"``: the column is a
            struct of ``value`` and ``error``, the reason.

    Raises:
        ConfigError: the arguments contradict each other, or there is no such subject.
        DecodeError: the text is not a schema of this format.
        RegistryError, NetworkError: the request to the registry fails.
        MissingDependencyError: Spark is 4.0.
    """
    from penstock.spark.value_columns import read_field

    if format not in FORMATS[1:]:
        raise ConfigError(f"the format is {format!r}: it is one of {', '.join(FORMATS[1:])}")
    if invalid not in ("fail", "keep"):
        raise ConfigError(f"invalid is 'fail' or 'keep', not {invalid!r}")
    if (schema is None) == (subject is None):
        raise ConfigError("from_schema needs one of the two: subject= or schema=")
    if subject is not None and registry is None:
        raise ConfigError("subject= needs registry=, which has its versions")
    name = "key" if is_key else "value"
    options = FieldOptions(name, format, schema, subject, version, message)
    found = read_field(options, _settings(registry))
    kind = StructType([StructField("value", found.whole), StructField("error", StringType())])
    named = [column] if headers is None else [column, headers]
    made = _decoder(found, kind, invalid, has_headers=headers is not None)(*map(_column, named))
    result: Column = made if invalid == "keep" else made["value"]
    return result


def to_schema(
    column: Column | str,
    format: str,
    registry: Registry,
    *,
    topic: str,
    schema: str | None = None,
    is_key: bool = False,
    conf: Mapping[str, Any] | None = None,
    message: str | None = None,
) -> Column:
    """Return a column of encoded values (bytes), each with its schema id in front; nulls stay nulls.

        orders.select(to_schema(F.struct("id", "city"), "avro", registry, topic="orders").alias("value"))

    The workers register the schema, under the subject of the topic.

    Args:
        column: structs, or values of another type that the schema describes.
        format: ``"avro"``, ``"json"``, or ``"protobuf"``, for which the column must be structs.
        registry: the URL of a registry, or settings of its client.
        topic: the topic, from which the subject is made.
        schema: the text of the schema; by default one made from the column's type.
        is_key: True if the values are record keys.
        conf: settings of the serializers of `penstock.registry`.
        message: the full name of a Protobuf message of `schema`; by default the file's first.

    Raises:
        ConfigError: the arguments contradict each other.
        MissingDependencyError: Spark is 4.0.
    """
    import pyarrow as pa

    if format not in FORMATS[1:]:
        raise ConfigError(f"columns are written as 'avro', 'json' or 'protobuf', not {format!r}")
    settings = _settings(registry)
    if settings is None:
        raise ConfigError("to_schema needs registry=, where the schema is registered")
    name = "key" if is_key else "value"
    field = WrittenField(name, format, schema, tuple((conf or {}).items()), settings, message)

    def encode(rows: Any) -> Any:
        from penstock.spark.runtime.worker_errors import plain_errors
        from penstock.spark.value_encoding import encoded

        with plain_errors():
            return encoded(field, rows, topic)

    # Spark reads from these what kind of function it is.
    encode.__annotations__ = {"rows": pa.Array, "return": pa.Array}
    made: Column = arrow_udf(encode, BinaryType(), instead="use the sink's option value.format")(
        _column(column)
    )
    return made


def _decoder(found: ReadField, kind: StructType, invalid: str, *, has_headers: bool) -> Any:
    import pyarrow as pa

    def decode(data: Any) -> Any:
        return decode_column(found, kind, invalid, data, None)

    def decode_with_headers(data: Any, headers: Any) -> Any:
        return decode_column(found, kind, invalid, data, headers)

    made = decode_with_headers if has_headers else decode
    names = ("data", "headers") if has_headers else ("data",)
    made.__annotations__ = dict.fromkeys((*names, "return"), pa.Array)
    return arrow_udf(made, kind, instead="let the source decode values with its option value.format")


def decode_column(
    found: ReadField, kind: StructType, invalid: str, data: pa.Array, headers: pa.Array | None
) -> pa.Array:
    """Return structs of the decoded value and the error, for each value of a column of bytes.

    Raises:
        DecodeError: a value does not decode, and `invalid` is "fail".
        RegistryError, NetworkError: the request to the registry fails.
    """
    import pyarrow as pa

    from penstock.records.arrow import HEADERS_TYPE
    from penstock.spark.runtime.releases import arrow_schema_of
    from penstock.spark.runtime.worker_errors import plain_errors
    from penstock.spark.value_columns import decoded_whole

    target = arrow_schema_of(kind)
    with plain_errors():
        values, errors = decoded_whole(
            found,
            data.cast(pa.binary()),
            None if headers is None else headers.cast(HEADERS_TYPE),
            target.field(0).type,
            fails=invalid == "fail",
        )
    return pa.StructArray.from_arrays([values, errors], fields=list(target))


def _column(given: Column | str) -> Column:
    return F.col(given) if isinstance(given, str) else given


def _settings(registry: Registry | None) -> tuple[tuple[str, str | Secret], ...] | None:
    if registry is None:
        return None
    if not isinstance(registry, (str, Mapping)):
        raise ConfigError(f"registry is {registry!r}: a URL or settings are needed, which go to the workers")
    given = {"url": registry} if isinstance(registry, str) else registry
    return registry_settings({name: str(each) for name, each in given.items()})
