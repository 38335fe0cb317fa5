from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from free_ports import free_ports
from penstock import Admin, Broker, Consumer, read_topic, write_topic
from penstock.errors import PenstockError
from penstock.spark import ParquetTable, Progress, follow, progress_of, reason

pytestmark = pytest.mark.spark


def counted(rows: int, first: int = 0) -> pa.Table:
    """Return records n = first, first + 1, ... with key and value n, in partition n mod 2."""
    n = range(first, first + rows)
    texts = pa.array([b"%d" % i for i in n], pa.binary())
    return pa.table({"key": texts, "value": texts, "partition": pa.array([i % 2 for i in n], pa.int32())})


class Stream:
    """A streaming query from a topic to a Parquet table that can run several times."""

    def __init__(self, spark: Any, brokers: str, directory: Path) -> None:
        self.spark = spark
        self.brokers = brokers
        self.checkpoint = directory / "checkpoint"
        self.table = ParquetTable(directory / "table")

    def frame(self, topic: str | None, **options: object) -> Any:
        reader = self.spark.readStream.format("penstock").option("kafka.bootstrap.servers", self.brokers)
        chosen = {"subscribe": topic} if topic else {}
        for name, value in {**chosen, "startingOffsets": "earliest", **options}.items():
            reader = reader.option(name, value)
        return reader.schema("value string, partition int, offset bigint").load()

    def run(
        self, topic: str | None, write: Callable[..., Any] | None = None, **options: object
    ) -> list[Progress]:
        """Read all available records, and return the progress report of every batch."""
        query = (
            self.frame(topic, **options)
            .writeStream.foreachBatch(write or self.table.write)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        seen: list[Progress] = []
        follow(query, seen.append, every_seconds=0.05)
        return seen

    def values(self) -> list[int]:
        return sorted(int(value) for value in self.table.read()["value"].to_pylist())


@pytest.fixture
def stream(spark: Any, brokers: str, tmp_path: Path) -> Stream:
    return Stream(spark, brokers, tmp_path)


def test_batches_are_limited_and_a_restart_reads_the_rest(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(counted(100))
    seen = [p for p in stream.run(topic, maxOffsetsPerTrigger=40) if p.rows]
    assert [(p.rows, p.lag) for p in seen] == [(40, 60), (40, 20), (20, 0)]
    assert stream.values() == [*range(100)]
    write_topic(counted(30, 100), topic, bootstrap_servers=brokers)
    seen = [p for p in stream.run(topic) if p.rows]
    assert [p.rows for p in seen] == [30]
    assert stream.values() == [*range(130)]
    assert sum(p.rows for p in stream.run(topic)) == 0


def test_tools_for_lag_see_a_query_in_its_group(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    """The query commits its offsets to a group after the last batch of trigger AvailableNow.

    A query that keeps running commits them as well.
    """
    topic = new_topic(counted(100))
    group = {"kafka.group.id": f"{topic}-group", "commitOffsets": "true"}
    with Admin(bootstrap_servers=brokers) as admin:

        def committed() -> dict[tuple[str, int], int]:
            return {tuple(tp): at.offset for tp, at in admin.list_group_offsets(f"{topic}-group").items()}

        stream.run(topic, maxOffsetsPerTrigger=60, **group)
        assert committed() == {(topic, 0): 50, (topic, 1): 50}
        with running(stream, topic, **group) as query:
            write_topic(counted(20, 100), topic, bootstrap_servers=brokers)
            wait_for(stream, query, 120)
            deadline = time.monotonic() + 60
            while committed() != {(topic, 0): 60, (topic, 1): 60}:
                assert time.monotonic() < deadline, committed()
                time.sleep(0.1)


def test_a_group_that_has_members_is_left_alone(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(counted(10))
    with Consumer(bootstrap_servers=brokers, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        assert consumer.poll(30_000)
        with pytest.raises(PenstockError, match=r"has members.*name another with kafka\.group\.id"):
            stream.run(topic, commitOffsets="true", **{"kafka.group.id": topic})


def test_a_running_query_outlives_its_broker(spark: Any, tmp_path: Path) -> None:
    """The broker is away for longer than the client's timeouts, and returns with all its records."""
    [port] = free_ports(1)
    kept = {"data_dir": tmp_path / "data", "port": port, "log_retention_ms": -1}
    quick = {"kafka.default.api.timeout.ms": "400", "kafka.request.timeout.ms": "300"}
    with Broker(**kept) as broker:
        stream = Stream(spark, broker.bootstrap_servers, tmp_path)
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topic("lasting", partitions=2)
        write_topic(counted(10), "lasting", broker.bootstrap_servers)
        running_query = running(stream, "lasting", **quick)
        query = running_query.__enter__()
        wait_for(stream, query, 10)
    try:
        time.sleep(1.2)  # three times what a call may take
        assert query.isActive
        with Broker(**kept) as broker:
            write_topic(counted(10, 10), "lasting", broker.bootstrap_servers)
            wait_for(stream, query, 20)
            query.stop()
    finally:
        running_query.__exit__(None, None, None)
    assert stream.values() == [*range(20)]


def test_offsets_in_the_checkpoint_are_those_of_sparks_kafka_source(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    """The topic id is stored with the offsets.

    Spark's Kafka source reads it as a topic without partitions.
    """
    topic = new_topic(counted(10))
    stream.run(topic)
    lines = (stream.checkpoint / "offsets" / "0").read_text().splitlines()
    with Admin(bootstrap_servers=brokers) as admin:
        (described,) = admin.describe_topics([topic])
    beside = {f"(id of {topic}: {described.topic_id})": {}}
    assert json.loads(lines[-1]) == {topic: {"0": 5, "1": 5}, **beside}


def test_a_batch_run_again_is_in_the_table_once(stream: Stream, new_topic: Callable[..., str]) -> None:
    topic = new_topic(counted(50))

    def write_and_die(frame: Any, batch_id: int) -> None:
        stream.table.write(frame, batch_id)
        if batch_id == 1:
            raise RuntimeError("killed after the write")

    with pytest.raises(PenstockError, match="killed after the write"):
        stream.run(topic, write_and_die, maxOffsetsPerTrigger=20)
    assert len(stream.values()) == 40
    again = [p for p in stream.run(topic, maxOffsetsPerTrigger=20) if p.rows]
    assert [p.batch_id for p in again] == [1, 2]
    assert stream.values() == [*range(50)]


def test_a_topic_that_appears_later_is_read_from_its_start(
    stream: Stream, new_topic: Callable[..., str]
) -> None:
    new_topic(counted(4), name="growing")
    stream.run(None, subscribePattern="growing-.*")
    new_topic(counted(6, 4), name="growing")
    stream.run(None, subscribePattern="growing-.*")
    assert stream.values() == [*range(10)]


@pytest.mark.parametrize("options", [{}, {"maxOffsetsPerTrigger": 7}], ids=["unlimited", "limited"])
def test_a_running_query_reads_partitions_and_topics_that_appear(
    stream: Stream, brokers: str, new_topic: Callable[..., str], options: dict[str, object]
) -> None:
    """With failOnDataLoss=false, the query also continues without a deleted topic."""
    name = f"living-{len(options)}"
    topic = new_topic(only(0, range(10)), partitions=1, name=name)
    with (
        Admin(bootstrap_servers=brokers) as admin,
        running(stream, None, subscribePattern=f"{name}-.*", failOnDataLoss="false", **options) as query,
    ):
        wait_for(stream, query, 10)
        admin.create_partitions(topic, 2)
        write_topic(only(1, range(10, 20)), topic, bootstrap_servers=brokers)
        wait_for(stream, query, 20)
        new_topic(counted(10, 20), name=name)
        wait_for(stream, query, 30)
        admin.delete_topics([topic])
        new_topic(counted(10, 30), name=name)
        wait_for(stream, query, 40)
    assert stream.values() == [*range(40)]


def test_a_deleted_topic_fails_a_running_query(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(only(0, range(5)), partitions=1)
    with running(stream, topic) as query:
        wait_for(stream, query, 5)
        with Admin(bootstrap_servers=brokers) as admin:
            admin.delete_topics([topic])
        with pytest.raises(PenstockError, match=f"{topic}-0 .*gone.*set failOnDataLoss to 'false'"):
            follow(query, lambda _: None)


def only(partition: int, numbers: range) -> pa.Table:
    """Return records of one partition, with each number as key and value."""
    texts = pa.array([b"%d" % i for i in numbers], pa.binary())
    places = pa.array([partition] * len(numbers), pa.int32())
    return pa.table({"key": texts, "value": texts, "partition": places})


@contextmanager
def running(stream: Stream, topic: str | None, **options: object) -> Iterator[Any]:
    """Start a query that runs until the block ends, and yield it."""
    query = (
        stream.frame(topic, **options)
        .writeStream.foreachBatch(stream.table.write)
        .option("checkpointLocation", str(stream.checkpoint))
        .start()
    )
    try:
        yield query
    finally:
        query.stop()


def wait_for(stream: Stream, query: Any, count: int) -> None:
    """Wait until the table has `count` rows.

    Raise AssertionError if the query ends earlier.
    """
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if any(stream.table.files()) and len(stream.values()) >= count:
            return
        if not query.isActive:
            raise AssertionError(reason(query.exception()) if query.exception() else "the query has ended")
        time.sleep(0.2)
    raise AssertionError(f"{count} rows did not come within two minutes")


def recreated(brokers: str, topic: str, rows: int, first: int) -> None:
    with Admin(bootstrap_servers=brokers) as admin:
        admin.delete_topics([topic])
        admin.create_topic(topic, partitions=2)
    write_topic(counted(rows, first), topic, bootstrap_servers=brokers)


@pytest.mark.parametrize("rows", [40, 300])
def test_a_topic_that_was_created_anew_ends_a_query_or_is_read_from_its_beginning(
    stream: Stream, brokers: str, new_topic: Callable[..., str], rows: int
) -> None:
    """The new topic is shorter or longer than the offsets in the checkpoint."""
    topic = new_topic(counted(100))
    stream.run(topic)
    recreated(brokers, topic, rows, 1000)
    with pytest.raises(
        PenstockError, match=r"created anew: its id was [\w-]{22} and is [\w-]{22}.*failOnDa"
    ) as caught:
        stream.run(topic)
    assert "\n" not in str(caught.value)
    stream.run(topic, failOnDataLoss="false")
    assert stream.values() == [*range(100), *range(1000, 1000 + rows)]
    write_topic(counted(10, 5000), topic, bootstrap_servers=brokers)
    stream.run(topic)
    assert stream.values()[-10:] == [*range(5000, 5010)]


def test_a_topic_no_longer_subscribed_is_noticed(stream: Stream, new_topic: Callable[..., str]) -> None:
    one, two = new_topic(counted(2)), new_topic(counted(2, 2))
    stream.run(f"{one},{two}")
    with pytest.raises(PenstockError, match=f"{two}-0, {two}-1 of the checkpoint are gone"):
        stream.run(one)


def test_mistakes_are_told_in_one_line(stream: Stream) -> None:
    for topic, options, message in (
        ("nowhere", {}, "^unknown topic 'nowhere'"),
        ("x", {"endingOffsets": "latest"}, "^endingOffsets means nothing in a streaming query"),
    ):
        with pytest.raises(PenstockError, match=message):
            stream.run(topic, **options)


def test_rows_of_a_stream_written_to_a_topic(
    stream: Stream, brokers: str, new_topic: Callable[..., str]
) -> None:
    topic, copy = new_topic(counted(100)), new_topic()
    query = (
        stream.frame(topic, maxOffsetsPerTrigger=60)
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", brokers)
        .option("topic", copy)
        .option("checkpointLocation", str(stream.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    follow(query, lambda _: None)
    assert progress_of(query.lastProgress).batch_id == 1
    values = read_topic(copy, bootstrap_servers=brokers)["value"].to_pylist()
    assert sorted(map(int, values)) == [*range(100)]
