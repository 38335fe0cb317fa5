"""Tests of landing topics from Spark, without the JVM: options, the tasks' files, the sink's commit."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType

from for_each import for_each
from penstock import Admin
from penstock.errors import ConfigError, MissingDependencyError
from penstock.landing.manifest import LandedFile, Manifest
from penstock.landing.table import LandingTable
from penstock.spark import PenstockDataSource
from penstock.spark.source.landing.options import landing_options
from penstock.spark.source.landing.reader import LandingWork, plan_of
from penstock.spark.source.landing.rows import FILES_SCHEMA
from penstock.spark.source.landing.writer import (
    LandingBatchWriter,
    LandingStreamWriter,
    commit,
    joined,
    pass_on,
)
from penstock.spark.source.reader import BatchReader
from penstock.tables import landed_dataset

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def counted(rows: int) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([b"a/b" if n % 2 else None for n in range(rows)], pa.binary()),
            "value": pa.array([b"%d" % n for n in range(rows)], pa.binary()),
            "partition": pa.array([n % 2 for n in range(rows)], pa.int32()),
        }
    )


def land(brokers: str, topic: str, path: Path, **options: object) -> list[pa.RecordBatch]:
    """Run source and sink as Spark does for a batch query; return the rows passed between them."""
    given = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "landing": str(path)}
    given |= {name.replace("_", "."): str(value) for name, value in options.items()}
    reader = BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    on_executors = pickle.loads(pickle.dumps(reader))
    writer = pickle.loads(pickle.dumps(LandingBatchWriter(given, FILES_SCHEMA)))
    tasks = [[*on_executors.read(each)] for each in reader.partitions()]
    writer.commit([pickle.loads(pickle.dumps(writer.write(iter(rows)))) for rows in tasks])
    return [row for rows in tasks for row in rows]


def test_rows_go_from_the_brokers_into_files(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(counted(3000))
    rows = land(brokers, topic, tmp_path / "t", landing_partitionBy="key", landing_columns="value,key string")
    assert sum(sum(batch["rows"].to_pylist()) for batch in rows) == 3000
    found = landed_dataset(tmp_path / "t").to_table().sort_by([("value", "ascending")])
    assert found.schema.names == ["value", "key"]
    assert sorted(map(int, found["value"].to_pylist())) == [*range(3000)]
    assert found["key"].null_count == 1500
    (manifest,) = LandingTable(tmp_path / "t").manifests(LandingTable(tmp_path / "t").writers()[0])
    assert [tuple(each) for each in manifest.ranges] == [(topic, 0, 0, 1500), (topic, 1, 0, 1500)]
    with Admin(brokers) as admin:
        (described,) = admin.describe_topics([topic])
    assert manifest.topic_ids == {topic: described.topic_id}


def test_all_columns_where_none_is_named(brokers: str, new_topic: Callable[..., str], tmp_path: Path) -> None:
    topic = new_topic(counted(10))
    land(brokers, topic, tmp_path / "t", includeHeaders=True)
    found = landed_dataset(tmp_path / "t")
    assert found.schema.names == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    assert found.to_table()["offset"].to_pylist() == [*range(5)] * 2


def test_events_are_landed_as_columns_by_their_type(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    def event(n: int) -> list[dict[str, object]]:
        given = {"specversion": "1.0", "id": str(n), "source": "/s", "type": f"t/{n % 2}", "hue": "red"}
        given["time"] = f"2026-01-31T0{n}:00:00Z"
        return [{"key": f"ce_{name}", "value": value.encode()} for name, value in given.items()]

    records = pa.table(
        {
            "value": pa.array([b"x"] * 7, pa.binary()),
            "headers": pa.array([*(event(n) for n in range(6)), []], HEADERS),
        }
    )
    topic = new_topic(records, partitions=1)
    land(
        brokers,
        topic,
        tmp_path / "t",
        cloudevents="columns",
        cloudevents_invalid="drop",
        landing_columns="id,type,time,data string,ce_hue",
        landing_partitionBy="type,hour",
        landing_time="time",
    )
    found = landed_dataset(tmp_path / "t").to_table().sort_by([("id", "ascending")]).to_pylist()
    assert [(row["id"], row["type"], row["hour"], row["data"], row["ce_hue"]) for row in found] == [
        (str(n), f"t/{n % 2}", n, "x", "red") for n in range(6)
    ]


def test_a_job_that_is_run_again_has_no_effect(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(counted(10))
    for _ in range(2):
        land(brokers, topic, tmp_path, txnAppId="nightly", txnVersion=3)
    assert landed_dataset(tmp_path).count_rows() == 10
    assert not list(tmp_path.rglob("*.unfinished"))


def test_a_task_that_ends_early_leaves_nothing(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    given = {
        "kafka.bootstrap.servers": brokers,
        "subscribe": new_topic(counted(10)),
        "landing": str(tmp_path),
        "landing.partitionBy": "partition,key",
        "landing.columns": "value, partition, key string",
        "landing.maxPartitions": "1",
    }
    reader = BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    with pytest.raises(ConfigError, match="more than 1 partitions by partition, key"):
        [[*reader.read(each)] for each in reader.partitions()]
    assert not list(tmp_path.rglob("*.unfinished"))


def test_a_table_with_other_columns_ends_the_query_before_it_reads(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(counted(10))
    land(brokers, topic, tmp_path, landing_columns="value")
    with pytest.raises(ConfigError, match="column offset: none there, bigint here"):
        land(brokers, topic, tmp_path, landing_columns="value,offset")
    assert landed_dataset(tmp_path).count_rows() == 10


def test_an_aborted_job_removes_what_it_has_written(
    brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    given = {
        "kafka.bootstrap.servers": brokers,
        "subscribe": new_topic(counted(10)),
        "landing": str(tmp_path),
    }
    reader, writer = (
        BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False)),
        LandingBatchWriter(given, FILES_SCHEMA),
    )
    messages = [writer.write(reader.read(each)) for each in reader.partitions()]
    assert list(tmp_path.rglob("*.unfinished"))
    writer.abort([*messages, None])
    assert not list(tmp_path.rglob("*.unfinished"))


@for_each(
    [
        ({"landing": ""}, "landing names no directory"),
        ({"landing.format": "delta"}, "landing names no directory"),
        ({"landing": "lake/t"}, "landing takes a path from the root, not 'lake/t'"),
        ({"landing": "ftp://lake/t"}, r"'ftp://lake/t': ftp:// is no place of tables"),
        ({"landing": "/t", "landing.partitionedBy": "a"}, "did you mean 'landing.partitionBy'"),
        ({"landing": "/t", "landing.zzzzzzzzz": "a"}, "there are landing, landing.format"),
        ({"landing": "/t", "landing.format": "orc"}, "landing.format is one of parquet, delta, iceberg"),
        ({"landing": "/t", "landing.compression": "xz"}, "landing.compression is one of zstd"),
        ({"landing": "/t", "landing.fileBytes": "1"}, "landing.fileBytes takes a whole number from 65536"),
        (
            {"landing": "/t", "landing.maxPartitions": "0"},
            "landing.maxPartitions takes a whole number from 1",
        ),
        ({"landing": "/t", "landing.columns": " , "}, "landing.columns names no column"),
        ({"landing": "/t", "landing.columns": "value int"}, "neither a name nor a name with 'string'"),
        ({"landing": "/t", "landing.table": "a.b"}, "landing.table means something only with"),
        ({"landing": "/t", "landing.catalog.uri": "x"}, r"landing.catalog.\* mean something only with"),
        ({"landing": "/t", "landing.format": "iceberg"}, "needs the option landing.table"),
    ]
)
def test_options_that_make_no_sense(given: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        landing_options(given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"landing.columns": "nonsense"}, "no column 'nonsense'; there are key, value, topic"),
        ({"landing.columns": "offset string"}, "'offset' takes no type; key, value, data may be 'string'"),
        ({"landing.columns": "value, VALUE"}, "landing.columns names a column twice"),
        ({"landing.columns": "id"}, "no column 'id'"),
        ({"landing.partitionBy": "key"}, "say 'key string' in landing.columns"),
        ({"landing.columns": "value", "landing.partitionBy": "date"}, "made of the column 'timestamp'"),
        ({"maxOffsetPerTrigger": "3"}, "did you mean 'maxOffsetsPerTrigger'"),
    ],
)
def test_plans_that_make_no_sense(given: dict[str, str], why: str, tmp_path: Path) -> None:
    whole = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "landing": str(tmp_path), **given}
    with pytest.raises(ConfigError, match=why):
        plan_of(whole, FILES_SCHEMA, streaming=True)


def test_what_the_data_source_makes_of_the_option(tmp_path: Path) -> None:
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "landing": str(tmp_path)}
    source = PenstockDataSource(given)
    assert source.schema() == FILES_SCHEMA
    assert isinstance(source.streamReader(FILES_SCHEMA)._work, LandingWork)
    assert isinstance(source.reader(FILES_SCHEMA)._work, LandingWork)
    assert isinstance(source.writer(FILES_SCHEMA, overwrite=False), LandingBatchWriter)
    assert isinstance(source.streamWriter(FILES_SCHEMA, overwrite=False), LandingStreamWriter)
    with pytest.raises(ConfigError, match="not overwritten; use mode"):
        source.writer(FILES_SCHEMA, overwrite=True)
    with pytest.raises(ConfigError, match=r"instead of schema\(\.\.\.\)"):
        source.reader(StructType([StructField("value", LongType())]))
    with pytest.raises(ConfigError, match="takes the rows of one source with that option, unchanged"):
        source.writer(StructType([StructField("value", LongType())]), overwrite=False)
    for extra, why in [
        ({"topic": "t"}, "topic and landing contradict each other"),
        ({"txnAppId": "a"}, "txnAppId and txnVersion belong together"),
    ]:
        with pytest.raises(ConfigError, match=why):
            PenstockDataSource({**given, **extra}).writer(FILES_SCHEMA, overwrite=False)
    both = {**given, "txnAppId": "a", "txnVersion": "1"}
    with pytest.raises(ConfigError, match="a stream has its checkpoint"):
        PenstockDataSource(both).streamWriter(FILES_SCHEMA, overwrite=False)


def test_a_library_that_is_missing_is_said_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "deltalake", None)
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "landing": str(tmp_path)}
    reader = BatchReader(LandingWork({**given, "landing.format": "delta"}, FILES_SCHEMA, streaming=False))
    with pytest.raises(MissingDependencyError, match=r"pip install 'penstock\[delta\]'"):
        reader.partitions()


def test_rows_of_something_else_are_refused(tmp_path: Path) -> None:
    def rows(*entries: str | None) -> Any:
        count = len(entries)
        return iter([pa.record_batch([[None] * count, [0] * count, [0] * count, entries], list("abcd"))])

    for entry in ("", "null", "[]", "{}", '{"layout": "x", "writer": 1}', None):
        with pytest.raises(ConfigError, match="takes the rows of one source"):
            pass_on(rows(entry))
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "landing": str(tmp_path)}
    layout = plan_of(given, FILES_SCHEMA, streaming=True).layout.to_json()
    one, two = (json.dumps({"layout": layout, "writer": writer, "ranges": []}) for writer in ("a", "b"))
    with pytest.raises(ConfigError, match="the rows come from more than one source"):
        pass_on(rows(one, two))
    with pytest.raises(ConfigError, match="the rows come from more than one source"):
        joined([pass_on(rows(one)), pass_on(rows(two))])
    options = landing_options({"landing": str(tmp_path)})
    assert commit(options, "w", 0, joined([None, pass_on(iter([]))])) is None
    landed = commit(options, "w", 0, pass_on(rows(one, one)).entries)
    assert landed == Manifest("w", 0, ())
    outside = LandedFile("../x", "_penstock/staging/a/0/x", 0, 0, {}).to_object()
    entry = json.dumps({"layout": layout, "writer": "a", "files": [outside]})
    with pytest.raises(ConfigError, match="no file on its way into a landed table"):
        commit(options, "w", 1, pass_on(rows(entry)).entries)
