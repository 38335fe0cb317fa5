"""Tests of landing from Spark into lake tables, without the JVM: the tasks' files and the driver's commit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import Place, place
from lake.s3_server import Store, s3_server
from penstock import Admin, write_topic
from penstock.errors import ConfigError, PenstockError
from penstock.lake.lander import Lander, LandSettings
from penstock.spark.source.landing.options import landing_options
from penstock.spark.source.landing.reader import LandingWork
from penstock.spark.source.landing.rows import FILES_SCHEMA, TaskEntries
from penstock.spark.source.landing.writer import LandingBatchWriter, commit_in_lake, joined, sink_options
from penstock.spark.source.reader import BatchReader

LAKES = ("object", "delta", "iceberg")


@pytest.fixture
def store() -> Iterator[Store]:
    with s3_server() as found:
        yield found


def counted(first: int, rows: int) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([b"k%d" % (n % 3) for n in range(first, first + rows)], pa.binary()),
            "value": pa.array([b"%d" % n for n in range(first, first + rows)], pa.binary()),
            "partition": pa.array([n % 2 for n in range(first, first + rows)], pa.int32()),
        }
    )


def given_for(there: Place, brokers: str, topic: str, **options: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": brokers, "subscribe": topic, "landing": there.where}
    given |= {f"landing.store.{name}": value for name, value in there.options.items()}
    return given | {name.replace("_", "."): value for name, value in options.items()}


def read(given: Mapping[str, str]) -> TaskEntries:
    """Run the tasks of a batch query without the commit; return what they have written and passed on."""
    writer = pickle.loads(pickle.dumps(LandingBatchWriter(given, FILES_SCHEMA)))
    reader = BatchReader(LandingWork(given, FILES_SCHEMA, streaming=False))
    on_executors = pickle.loads(pickle.dumps(reader))
    tasks = [[*on_executors.read(each)] for each in reader.partitions()]
    return joined([pickle.loads(pickle.dumps(writer.write(iter(rows)))) for rows in tasks])


def values_in(there: Place) -> list[int]:
    return sorted(map(int, there.rows().column("value").to_pylist()))


@pytest.mark.parametrize("kind", LAKES)
def test_tasks_write_and_the_driver_commits_once(
    kind: str, store: Store, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, there = new_topic(counted(0, 30)), place(kind, store, tmp_path)
    given = given_for(there, brokers, topic, includeHeaders="true", minPartitions="3")
    options, _ = sink_options(given, FILES_SCHEMA)
    assert options.lake is not None
    first = read(given)
    assert len(first.handed) >= 2
    assert there.table(topic).state().rows == 0
    # A driver that is killed does not know whether its commit was the last thing it did.
    done = commit_in_lake(options.lake, "q 0", first)
    assert done is not None
    assert (done.rows, done.commits) == (30, 1)
    assert commit_in_lake(options.lake, "q 0", first) is None
    assert values_in(there) == [*range(30)]
    position = there.table(topic).positions()
    assert position is not None
    assert position.offsets == {0: 15, 1: 15}
    with Admin(brokers) as admin:
        assert position.topic_id == admin.describe_topics([topic])[0].topic_id
    # A batch query that is repeated reads what came since.
    write_topic(counted(30, 30), topic, bootstrap_servers=brokers)
    second = read(given)
    assert min(each.start for each in second.ranges) == 15
    assert commit_in_lake(options.lake, "q 1", second) is not None
    assert values_in(there) == [*range(60)]
    # Nothing new is no commit, and upkeep removes what was written for nothing.
    assert read(given).handed == ()
    for _ in range(2):
        there.table(topic).tidy(small_bytes=1, keep_snapshots_s=0, orphan_s=0)
    assert len(there.files()) == there.table(topic).state().files
    assert values_in(there) == [*range(60)]


@pytest.mark.parametrize("kind", LAKES)
def test_the_files_of_two_drivers_count_once(
    kind: str, store: Store, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, there = new_topic(counted(0, 20)), place(kind, store, tmp_path)
    given = given_for(there, brokers, topic)
    lake = landing_options({key: given[key] for key in given if key.startswith("landing")}).lake
    assert lake is not None
    # The same batch twice, by tasks that ran twice: the second one finds its offsets in the table.
    one, other = read(given), read(given)
    assert commit_in_lake(lake, "q 0", one) is not None
    assert commit_in_lake(lake, "q 0", other) is None
    assert values_in(there) == [*range(20)]
    # A checkpoint of before: a part of its batch is in the table, and a part is not.
    write_topic(counted(20, 10), topic, bootstrap_servers=brokers)
    behind = TaskEntries(
        one.writer,
        one.layout,
        ranges=tuple(each._replace(end=15) for each in one.ranges),
        topic_ids=one.topic_ids,
        handed=one.handed,
    )
    with pytest.raises(ConfigError, match=r'startingOffsets = \{.*"0": 10, "1": 10'):
        commit_in_lake(lake, "q 1", behind)
    # Another topic of the same name.
    with Admin(brokers) as admin:
        admin.delete_topics([topic])
        admin.create_topic(topic, partitions=2)
    write_topic(counted(0, 40), topic, bootstrap_servers=brokers)
    with pytest.raises(ConfigError, match="deleted and created anew"):
        commit_in_lake(lake, "q 2", read(given))
    assert values_in(there) == [*range(20)]


def test_a_lander_goes_on_where_spark_was(
    store: Store, brokers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, there = new_topic(counted(0, 20)), place("iceberg", store, tmp_path)
    given = given_for(there, brokers, topic, landing_columns="partition,offset,timestamp,key,value")
    given["landing.partitionBy"] = "day(timestamp), bucket(4, key)"
    LandingBatchWriter(given, FILES_SCHEMA).commit([])
    options, _ = sink_options(given, FILES_SCHEMA)
    assert options.lake is not None
    assert commit_in_lake(options.lake, "q 0", read(given)) is not None
    write_topic(counted(20, 20), topic, bootstrap_servers=brokers)
    with Lander(LandSettings(topic, brokers), there.table(topic)) as lander:
        lander.run(follow=False)
        assert lander.written.rows == 20
    write_topic(counted(40, 20), topic, bootstrap_servers=brokers)
    assert commit_in_lake(options.lake, "q 1", read(given)) is not None
    assert values_in(there) == [*range(60)]
    from pyiceberg.catalog import load_catalog

    files = load_catalog("c", **there.options).load_table("sales.orders").inspect.files().to_pylist()
    assert len({str(each["partition"]) for each in files}) == 2
    assert None not in {value for each in files for value in each["partition"].values()}


def test_mistakes_with_tables_of_the_lake(store: Store, brokers: str, tmp_path: Path) -> None:
    there = place("iceberg-s3", store, tmp_path)

    def why(**options: str) -> str:
        given = given_for(there, brokers, "orders", **options)
        with pytest.raises(PenstockError) as caught:
            read(given)
        return str(caught.value)

    assert "says its format" in why(landing_format="delta")
    assert "ftp:// is no place of tables" in why(landing="ftp://host/x")
    assert "no request that creates a file whole" in why(landing="hdfs://host/x")
    assert "txnAppId and txnVersion are for directories" in why(txnAppId="a", txnVersion="1")
    assert "takes one topic, not" in why(subscribe="a,b")
    assert "this is a directory" in why(landing=str(tmp_path / "d"))
    shown = repr(landing_options({"landing": there.where, "landing.store.s3.secret-access-key": "hush"}))
    assert "hush" not in shown
