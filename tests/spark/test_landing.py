"""Tests of landing topics with Spark itself: tasks decode and write Parquet, and the sink commits it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from penstock import Admin, write_topic
from penstock.errors import PenstockError
from penstock.landing.table import LandingTable
from penstock.spark import follow, land, reason

pytestmark = [pytest.mark.spark, pytest.mark.compat]


def counted(rows: int) -> pa.Table:
    texts = pa.array([b"%d" % n for n in range(rows)], pa.binary())
    keys = pa.array([b"a/b" if n % 3 else None for n in range(rows)], pa.binary())
    return pa.table(
        {"key": keys, "value": texts, "partition": pa.array([n % 2 for n in range(rows)], pa.int32())}
    )


def numbers_in(path: Path) -> list[int]:
    table = ds.dataset(path, format="parquet", partitioning="hive").to_table()
    return sorted(map(int, table["value"].to_pylist()))


def of(reader: Any, brokers: str, topic: str) -> Any:
    return (
        reader.option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )


def stream(
    spark: Any,
    brokers: str,
    topic: str,
    path: Path,
    checkpoint: Path,
    columns: str = "key string, value, offset",
    **options: str,
) -> list[int]:
    """Land all records of a topic in batches of 30 rows; return Spark's row count of each batch."""
    reader = of(spark.readStream, brokers, topic).options(maxOffsetsPerTrigger=30, **options)
    landed = land(reader.option("minPartitions", 2), path, partition_by=["key"], columns=columns)
    query = landed.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    counts: list[int] = []
    follow(query, lambda progress: counts.append(progress.rows))
    return counts


def test_a_stream_is_landed_once_whatever_spark_repeats(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, path, checkpoint = new_topic(counted(50)), tmp_path / "lake" / "t", tmp_path / "checkpoint"
    stream(spark, brokers, topic, path, checkpoint)
    assert numbers_in(path) == [*range(50)]
    files = sorted(path.rglob("*.parquet"))
    # As after a crash between the sink's commit and Spark's: the last batch runs again.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
    stream(spark, brokers, topic, path, checkpoint)
    assert sorted(path.rglob("*.parquet")) == files
    assert not list(path.rglob("*.unfinished"))
    assert numbers_in(path) == [*range(50)]
    (writer,) = LandingTable(path).writers()
    ranges = [each for manifest in LandingTable(path).manifests(writer) for each in manifest.ranges]
    for partition in (0, 1):
        cut = sorted(each[2:] for each in ranges if each.partition == partition)
        assert [start for start, _ in cut] == [0, *(end for _, end in cut[:-1])]
        assert cut[-1][1] == 25
    by_spark = spark.read.parquet(str(path))
    assert (by_spark.count(), by_spark.where("key is null").count()) == (50, 17)
    # Other columns than the table has end the query before it writes.
    with pytest.raises(PenstockError, match=r"column offset: bigint there, none here.*Land into another"):
        stream(spark, brokers, new_topic(counted(5)), path, tmp_path / "other", columns="key string, value")
    assert numbers_in(path) == [*range(50)]


def test_a_topic_that_was_created_anew_is_landed_behind_the_old_one_or_not_at_all(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, path, checkpoint = new_topic(counted(50)), tmp_path / "t", tmp_path / "checkpoint"
    stream(spark, brokers, topic, path, checkpoint)
    with Admin(bootstrap_servers=brokers) as admin:
        admin.delete_topics([topic])
        admin.create_topic(topic, partitions=2)
    write_topic(counted(80), topic, bootstrap_servers=brokers)
    with pytest.raises(PenstockError, match="deleted and created anew: its id was"):
        stream(spark, brokers, topic, path, checkpoint)
    assert numbers_in(path) == [*range(50)]
    stream(spark, brokers, topic, path, checkpoint, failOnDataLoss="false")
    assert numbers_in(path) == sorted([*range(50), *range(80)])
    (writer,) = LandingTable(path).writers()
    manifests = [each for each in LandingTable(path).manifests(writer) if each.ranges]
    ids = [each.topic_ids[topic] for each in manifests]
    assert len(set(ids)) == 2
    begins = [ids.index(each) for each in dict.fromkeys(ids)]
    assert [min(each.start for each in manifests[at].ranges) for at in begins] == [0, 0]


def test_a_job_is_landed_once_for_its_name_and_number(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, path = new_topic(counted(30)), tmp_path / "t"
    for version in (0, 0, 1):
        landed = land(of(spark.read, brokers, topic), path, partition_by="date")
        landed.option("txnAppId", "nightly").option("txnVersion", version).save()
    assert numbers_in(path) == sorted([*range(30)] * 2)
    assert not list(path.rglob("*.unfinished"))
    delta = land(of(spark.read, brokers, topic), tmp_path / "delta", format="delta", partition_by="topic")
    delta.save()
    from deltalake import DeltaTable

    assert DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().num_rows == 30


def test_a_stream_goes_into_a_table_of_a_catalog_once_whatever_spark_repeats(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    from pyiceberg.catalog import load_catalog

    topic, checkpoint = new_topic(counted(50)), tmp_path / "checkpoint"
    options = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }

    def run() -> list[tuple[int, int]]:
        reader = of(spark.readStream, brokers, topic).option("maxOffsetsPerTrigger", 30)
        landed = land(
            reader,
            "iceberg://local/sales.orders",
            partition_by=["day(timestamp)", "bucket(2, key)"],
            store=options,
        )
        query = landed.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        shown: list[int] = []
        follow(query, lambda progress: shown.append(progress.rows))
        files = [each["observedMetrics"]["landed"]["files"] for each in query.recentProgress]
        return list(zip(shown, files, strict=True))

    shown = run()
    assert sum(rows for rows, _ in shown) == 50
    assert all(0 < files < rows for rows, files in shown)
    table = load_catalog("local", **options).load_table("sales.orders")
    assert sorted(map(int, table.scan().to_arrow()["value"].to_pylist())) == [*range(50)]
    snapshots = len(table.metadata.snapshots)
    # As after a crash between the table's commit and Spark's: the last batch runs again.
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink(missing_ok=True)
    write_topic(counted(10), topic, bootstrap_servers=brokers)
    run()
    found = table.refresh().scan().to_arrow()["value"].to_pylist()
    assert sorted(map(int, found)) == sorted([*range(50), *range(10)])
    assert len(table.metadata.snapshots) == snapshots + 1


def test_mistakes_are_said_where_they_were_made(
    spark: Any, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = new_topic(counted(3))

    def why(act: Callable[[], object]) -> str:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own kinds; the sentence is looked at
            act()
        return reason(caught.value)

    def source() -> Any:
        return of(spark.read, brokers, topic).format("penstock").option("landing", str(tmp_path / "t"))

    assert "landing.columns instead of schema" in why(
        lambda: source().schema("value binary").load().write.format("noop").mode("overwrite").save()
    )
    frame = spark.range(3)
    assert "takes the rows of one source with that option, unchanged" in why(
        lambda: frame.write.format("penstock").option("landing", str(tmp_path / "t")).mode("append").save()
    )
    assert "did you mean 'landing.partitionBy'" in why(
        lambda: land(of(spark.read, brokers, topic), tmp_path / "t", partitionedBy="date").save()
    )
    # A file that was written and not committed is seen by no reader.
    assert source().load().where("file is not null").count() == 1
    assert not list((tmp_path / "t").rglob("*.parquet"))
