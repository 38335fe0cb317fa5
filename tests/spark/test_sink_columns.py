from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from penstock.errors import ConfigError, EncodeError
from penstock.spark.source.options import WriteOptions
from penstock.spark.source.writer import SinkColumns


def sink(to: str | None = None, **types: DataType) -> SinkColumns:
    schema = StructType([StructField(name, kind) for name, kind in types.items()])
    return SinkColumns(schema, WriteOptions("localhost:1", to, {}))


BATCH = pa.record_batch(
    {
        "extra": pa.array([1, 2, 3]),
        "VALUE": pa.array(["a", None, "c"], pa.string()),
        "topic": pa.array(["x", "y", "x"]),
    }
)


def test_rows_go_to_the_topics_they_name() -> None:
    columns = sink(extra=LongType(), VALUE=StringType(), topic=StringType())
    found = {topic: records.to_pydict() for topic, records in columns.by_topic(BATCH)}
    assert found == {"x": {"value": [b"a", b"c"]}, "y": {"value": [None]}}


def test_the_option_wins_over_the_column() -> None:
    columns = sink("t", extra=LongType(), VALUE=StringType(), topic=StringType())
    ((topic, records),) = columns.by_topic(BATCH)
    assert (topic, records.schema.names, records.num_rows) == ("t", ["value"], 3)
    assert records.column("value").type == pa.binary()


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="no column 'value' among key"):
        sink("t", key=BinaryType())
    with pytest.raises(ConfigError, match="column 'key' is bigint; the sink takes binary or string"):
        sink("t", key=LongType(), value=BinaryType())
    with pytest.raises(ConfigError, match="say where to write"):
        sink(None, value=BinaryType())
    with pytest.raises(EncodeError, match="null in its column 'topic'"):
        list(
            sink(None, value=BinaryType(), topic=StringType()).by_topic(
                pa.record_batch({"value": [b"x"], "topic": pa.array([None], pa.string())})
            )
        )
