from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from penstock.errors import DecodeError
from penstock.spark.source.options import CloudEventsOptions
from penstock.spark.source.schema import Projection, schema_for

HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))

VALID = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"1"),
    ("ce_source", b"/s"),
    ("ce_type", b"t"),
    ("ce_hue", b"red"),
]


def record(value: bytes | None, headers: list[tuple[str, bytes | None]]) -> dict[str, object]:
    return {"value": value, "headers": [{"key": k, "value": v} for k, v in headers]}


def batch(*records: dict[str, object]) -> pa.RecordBatch:
    n = len(records)
    return pa.record_batch(
        {
            "key": pa.array([b"k"] * n, pa.binary()),
            "value": pa.array([r["value"] for r in records], pa.binary()),
            "topic": pa.array(["t"] * n),
            "partition": pa.array([3] * n, pa.int32()),
            "offset": pa.array(range(10, 10 + n), pa.int64()),
            "timestamp": pa.array([0] * n, pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([0] * n, pa.int32()),
            "headers": pa.array([r["headers"] for r in records], HEADERS),
        }
    )


MIXED = batch(record(b"one", VALID), record(b"raw", [("x", None)]), record(b"two", VALID))


def rows(options: CloudEventsOptions, records: pa.RecordBatch = MIXED) -> list[dict[str, object]]:
    projection = Projection(schema_for(False, options), options)
    return [row for piece in projection.batches(records) for row in piece.to_pylist()]


def test_valid_events_are_columns_and_the_others_keep_what_they_were() -> None:
    one, raw, two = rows(CloudEventsOptions())
    assert (one["id"], one["source"], one["data"], one["extensions"]) == ("1", "/s", b"one", [("hue", "red")])
    assert (one["key"], one["value"], one["headers"], one["error"], one["offset"]) == (
        b"k",
        None,
        None,
        None,
        10,
    )
    assert raw["error"]
    assert (raw["id"], raw["data"]) == (None, None)
    assert (raw["key"], raw["value"], raw["offset"], raw["partition"]) == (b"k", b"raw", 11, 3)
    assert raw["headers"] == [{"key": "x", "value": None}]
    assert two["data"] == b"two"


def test_everything_raw_on_request() -> None:
    assert [row["value"] for row in rows(CloudEventsOptions(raw="all"))] == [b"one", b"raw", b"two"]
    assert rows(CloudEventsOptions(), batch(record(b"x", VALID)))[0]["value"] is None
    assert rows(CloudEventsOptions(), batch(record(b"x", [])))[0]["value"] == b"x"


def test_invalid_ones_dropped_or_refused() -> None:
    assert [row["data"] for row in rows(CloudEventsOptions(invalid="drop"))] == [b"one", b"two"]
    with pytest.raises(DecodeError, match=r"t-3 at offset 11: .*set cloudevents\.invalid"):
        rows(CloudEventsOptions(invalid="fail"))


def test_only_the_columns_asked_for() -> None:
    options = CloudEventsOptions()
    projection = Projection(
        StructType([StructField(name, StringType()) for name in ("data", "ce_hue", "id", "outcome")]), options
    )
    assert projection.fetched == ("value", "headers")
    (piece,) = projection.batches(MIXED)
    assert piece.schema.names == ["data", "ce_hue", "id", "outcome"]
    assert piece.column("ce_hue").to_pylist() == ["red", None, "red"]
    assert piece.column("data").to_pylist() == ["one", None, "two"]


def test_the_documented_extensions_have_their_types_and_columns_of_text() -> None:
    good = record(b"x", [*VALID, ("ce_sampledrate", b"-0"), ("ce_deprecated", b"true")])
    bad = record(b"x", [*VALID, ("ce_sampledrate", b"often")])
    options = CloudEventsOptions()
    schema = StructType(
        [StructField(name, StringType()) for name in ("ce_sampledrate", "ce_deprecated", "error")]
    )
    (piece,) = Projection(schema, options).batches(batch(good, bad, record(b"x", VALID)))
    assert piece.column("ce_sampledrate").to_pylist() == ["0", None, None]
    assert piece.column("ce_deprecated").to_pylist() == ["true", None, None]
    errors = piece.column("error").to_pylist()
    assert errors[::2] == [None, None]
    assert errors[1].startswith("T2: ")
