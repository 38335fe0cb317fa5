"""Tests of landing keys and values with a schema, without the JVM: columns, schema versions, bad values."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import Producer
from penstock.errors import ConfigError
from penstock.landing.layout import TableLayout
from penstock.landing.table import LandingTable
from penstock.registry import AvroSerializer, Registry, Schema
from penstock.spark.source.landing.reader import LandingWork
from penstock.spark.source.landing.rows import FILES_SCHEMA
from penstock.spark.source.landing.writer import LandingBatchWriter
from penstock.spark.source.reader import BatchReader
from penstock.spark.source.stream_reader import StreamReader
from penstock.tables import landed_dataset

NewTopic = Callable[..., str]


def record(*fields: Any) -> str:
    made = [
        {"name": each[0], "type": each[1], **({"default": each[2]} if each[2:] else {})} for each in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


PLACE = {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
OLD = record(("id", "long"), ("kind", "string"), ("place", ["null", PLACE], None))
NEW = record(("id", "long"), ("kind", "string"), ("place", ["null", PLACE], None), ("size", "int", 1))


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as registry:
        yield registry


def send(brokers: str, registry: Registry, topic: str, schema: str, *rows: Any) -> None:
    write = AvroSerializer(registry.client(), schema).bound(topic)
    with Producer(brokers) as producer:
        for row in rows:
            producer.send(topic, row if isinstance(row, bytes) else write(row), partition=0)


def options(brokers: str, registry: Registry, topic: str, path: Path, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": brokers,
        "subscribe": topic,
        "landing": str(path),
        "value.format": "avro",
        "schema.registry.url": registry.url,
        **{name.replace("__", "."): each for name, each in more.items()},
    }


def land(given: dict[str, str]) -> None:
    """Run source and sink in this process, as Spark does for a batch query."""
    reader = BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    tasks = pickle.loads(pickle.dumps(reader))
    writer = LandingBatchWriter(given, FILES_SCHEMA)
    writer.commit([writer.write(iter([*tasks.read(each)])) for each in reader.partitions()])


def test_fields_are_columns_and_partitions(
    brokers: str, new_topic: NewTopic, registry: Registry, tmp_path: Path
) -> None:
    topic, path = new_topic(partitions=1), tmp_path / "t"
    place = {"city": "Bern"}
    rows = [{"id": n, "kind": "ab"[n % 2], "place": place if n else None} for n in range(4)]
    send(brokers, registry, topic, OLD, *rows, b"no Avro")
    land(options(brokers, registry, topic, path, landing__partitionBy="kind"))
    table = landed_dataset(path).to_table().sort_by("offset")
    assert table.schema.field("place").type == pa.struct([("city", pa.string())])
    assert table["id"].to_pylist() == [0, 1, 2, 3, None]
    assert table["kind"].to_pylist() == ["a", "b", "a", "b", None]
    assert table["place"].to_pylist() == [None, place, place, place, None]
    assert table["value"].to_pylist() == [None] * 4 + [b"no Avro"]
    (reason,) = [each for each in table["value_error"].to_pylist() if each is not None]
    assert "the value begins with byte 110" in reason

    few = tmp_path / "few"
    land(options(brokers, registry, topic, few, landing__columns="ID, offset", value__invalid="drop"))
    assert landed_dataset(few).to_table().sort_by("id").to_pydict() == {
        "id": [0, 1, 2, 3],
        "offset": [0, 1, 2, 3],
    }


def test_a_table_keeps_the_version_of_its_columns(
    brokers: str, new_topic: NewTopic, registry: Registry, tmp_path: Path
) -> None:
    topic, path = new_topic(partitions=1), tmp_path / "t"
    send(brokers, registry, topic, OLD, {"id": 1, "kind": "a"})
    given = options(brokers, registry, topic, path)
    land(given)
    layout = LandingTable(path).layout()
    assert layout is not None
    assert layout.versions == (("value", 1),)
    assert TableLayout.from_json(layout.to_json()) == layout
    send(brokers, registry, topic, NEW, {"id": 2, "kind": "b", "size": 5})
    land(given)
    assert sorted(landed_dataset(path).to_table()["id"].to_pylist()) == [1, 1, 2]
    with pytest.raises(ConfigError, match="column size: none there, int here"):
        land(given | {"value.version": "2"})
    elsewhere = tmp_path / "elsewhere"
    land(options(brokers, registry, topic, elsewhere))
    assert landed_dataset(elsewhere).to_table()["size"].to_pylist() == [1, 5]


def test_tasks_of_a_stream_have_the_schema_with_them(
    brokers: str, new_topic: NewTopic, registry: Registry, tmp_path: Path
) -> None:
    topic = new_topic(partitions=1)
    send(brokers, registry, topic, OLD, {"id": 1, "kind": "a"})
    given = options(brokers, registry, topic, tmp_path / "t")
    task = pickle.loads(pickle.dumps(StreamReader(LandingWork(given, FILES_SCHEMA, streaming=True))))
    assert task._work.__dict__["_plan"].projection.values.versions == {"value": 1}
    # Where there is no schema, pickling says nothing: Spark shows what the planner raises.
    pickle.dumps(
        StreamReader(LandingWork(given | {"value.subject": "nothing"}, FILES_SCHEMA, streaming=True))
    )


def test_records_without_fields_have_no_place_in_parquet(registry: Registry, tmp_path: Path) -> None:
    empty = {"type": "record", "name": "Empty", "fields": []}
    schema = record(("id", "long"), ("parts", {"type": "array", "items": {"type": "map", "values": empty}}))
    registry.client().register("empties-value", Schema(schema))
    given = options("localhost:1", registry, "empties", tmp_path / "t")
    with pytest.raises(ConfigError, match="column 'parts' has a record without fields"):
        BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    BatchReader(LandingWork(given | {"landing.columns": "id"}, FILES_SCHEMA, streaming=False))


def test_what_contradicts_landing_is_said(registry: Registry, tmp_path: Path) -> None:
    given = options("localhost:1", registry, "orders", tmp_path / "t", value__newVersion="fail")
    with pytest.raises(ConfigError, match="newVersion = fail and landing contradict each other"):
        BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    given = options("localhost:1", registry, "orders", tmp_path / "t", where="partition = 1")
    with pytest.raises(ConfigError, match="where and landing contradict each other"):
        BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
