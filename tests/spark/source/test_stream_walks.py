"""Tests of streams over topics that grow, lose records to retention, or are deleted, in random order.

Every record is read once, or the query stops with a reason.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import ConfigError, NetworkError
from penstock.model import TopicPartition
from penstock.protocol.uuid import uuid_to_text
from penstock.spark.runtime.releases import ReadMaxRows
from penstock.spark.source.planning import BEGINS_HERE, DataLossError
from penstock.spark.source.reader import RowWork
from penstock.spark.source.schema import schema_for
from penstock.spark.source.stream_reader import StreamPlanner, StreamReader, UnlimitedStreamReader

OPTIONS = {
    "kafka.bootstrap.servers": "127.0.0.1:1",
    "subscribePattern": "t.*",
    "startingOffsets": "earliest",
    "minPartitions": "1",
}


class Cluster:
    """A stand-in for brokers: topics with partitions, each with a start offset and an end offset.

    Topics have ids if `has_ids` is set. A topic that is created again gets another id.
    """

    def __init__(self, *, has_ids: bool = False) -> None:
        self.topics: dict[str, list[list[int]]] = {"t0": [[0, 0]]}
        self.lives: dict[str, int] = {}
        """The number of times that each topic was deleted, by name."""
        self.has_ids = has_ids
        self.gone = False

    def id_of(self, topic: str) -> bytes:
        return f"{topic} {self.lives.get(topic, 0)}".encode().ljust(16, b".")

    def topic_ids(self, topics: Iterable[str]) -> dict[str, bytes]:
        return {topic: self.id_of(topic) for topic in topics if topic in self.topics} if self.has_ids else {}

    def delete(self, topic: str) -> None:
        del self.topics[topic]
        self.lives[topic] = self.lives.get(topic, 0) + 1

    def partition_counts(self, selection: object) -> dict[str, int]:
        if self.gone:
            raise NetworkError("no broker answers")
        return {name: len(partitions) for name, partitions in self.topics.items()}

    def lookup(self, questions: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if self.gone:
            raise NetworkError("no broker answers")
        found: dict[TopicPartition, int | None] = {}
        for tp, question in questions.items():
            partitions = self.topics.get(tp.topic, [])
            if tp.partition < len(partitions):
                found[tp] = partitions[tp.partition][0 if question == -2 else 1]
        return found

    def close(self) -> None: ...


class Query:
    """A simulated streaming query that records which offsets its micro-batches read.

    It can be restarted.
    """

    def __init__(self, cluster: Cluster, kind: type[StreamPlanner], **options: str) -> None:
        self.cluster, self.kind, self.options = cluster, kind, {**OPTIONS, **options}
        self.read: list[tuple[TopicPartition, int]] = []
        self.read_of: list[tuple[bytes, int, int]] = []
        """The records that were read, as (topic id, partition, offset)."""
        self.start: Any = None
        self.logged: Any = None
        """The end offsets of a micro-batch in Spark's offset log that is not completed; None without one."""
        self.planned: set[bytes] = set()
        """The ids of the topics that existed when the last micro-batch was planned."""
        self.reader = self.new_reader()

    def new_reader(self) -> Any:
        reader = self.kind(RowWork(self.options, schema_for(False, None), streaming=True))
        reader._brokers = self.cluster  # type: ignore[assignment]
        return reader

    def restart(self) -> None:
        self.reader = self.new_reader()
        if self.start is not None and isinstance(self.reader, UnlimitedStreamReader):
            self.reader.partitions(self.start, self.start)  # Spark 4.0 and 4.1 do so

    def batch(self, *, dies: bool = False) -> None:
        if self.logged is None:
            end = self.plan()
            if end == self.start:
                return
            self.logged = end
        tasks = self.reader.partitions(self.start, self.logged)
        if dies:
            return
        for task in tasks:
            for span in task.spans:
                tp = TopicPartition(span.topic, span.partition)
                topic_id = self.cluster.id_of(span.topic)
                assert task.topic_ids.get(span.topic, topic_id) == topic_id
                self.read_of += [(topic_id, tp.partition, n) for n in range(span.start, span.end)]
                self.read += [(tp, offset) for offset in range(span.start, span.end)]
        self.start, self.logged = self.logged, None

    def plan(self) -> Any:
        self.planned = {self.cluster.id_of(name) for name in self.cluster.topics}
        if isinstance(self.reader, StreamReader):
            limit = self.reader.getDefaultReadLimit()
            if self.start is None:
                self.start = self.reader.initialOffset()
            return self.reader.latestOffset(self.start, limit)
        end = self.reader.latestOffset()
        if self.start is None:
            self.start = self.reader.initialOffset()
        return end


GROWTH = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 5), st.integers(1, 30)),
    st.tuples(st.just("partition"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("topic"), st.just(0), st.just(0)),
    st.tuples(st.just("batch"), st.just(0), st.just(0)),
    st.tuples(st.just("die"), st.just(0), st.just(0)),
)
LOSSES = st.one_of(
    GROWTH,
    st.tuples(st.just("retain"), st.integers(0, 5), st.integers(1, 40)),
    st.tuples(st.just("delete"), st.integers(0, 2), st.just(0)),
)
LIVES = st.one_of(LOSSES, st.tuples(st.just("recreate"), st.integers(0, 2), st.integers(0, 60)))
KINDS = st.sampled_from([StreamReader, UnlimitedStreamReader])
LIMITS = st.sampled_from([{}, {"maxOffsetsPerTrigger": "7"}, {"maxOffsetsPerTrigger": "1"}])
COMES_AND_GOES = [
    *(("topic", 0, 0), ("batch", 0, 0), ("partition", 0, 0), ("die", 0, 0)),
    *(("topic", 0, 0), ("partition", 0, 0), ("batch", 0, 0), ("write", 4, 1), ("delete", 2, 0)),
]
"""Steps in which a topic is created after a micro-batch was planned, and deleted before the next.

The planned micro-batch runs only after a restart.
"""


def change(cluster: Cluster, what: str, which: int, count: int) -> None:
    names = sorted(cluster.topics)
    every = [(name, i) for name in names for i in range(len(cluster.topics[name]))]
    if what == "topic":
        cluster.topics[f"t{len(names)}"] = [[0, 0]]
    elif not every:
        return
    elif what == "partition":
        cluster.topics[names[which % len(names)]].append([0, 0])
    elif what == "delete":
        cluster.delete(names[which % len(names)])
    elif what == "recreate":
        name = names[which % len(names)]
        cluster.delete(name)
        cluster.topics[name] = [[0, count]]
    else:
        name, i = every[which % len(every)]
        bounds = cluster.topics[name][i]
        if what == "write":
            bounds[1] += count
        else:
            bounds[0] = min(bounds[1], bounds[0] + count)


def apply(query: Query, steps: list[tuple[str, int, int]]) -> None:
    for what, which, count in steps:
        if what == "batch":
            query.batch()
        elif what == "die":
            query.batch(dies=True)
            query.restart()
        else:
            change(query.cluster, what, which, count)


def drain(query: Query) -> None:
    for _ in range(10_000):
        before = query.start
        query.batch()
        if query.start == before and query.logged is None:
            return
    raise AssertionError("the query does not come to the end of its topics")


@given(st.lists(GROWTH, max_size=30), KINDS, LIMITS)
def test_topics_and_partitions_that_appear_are_read_from_their_start(
    steps: list[tuple[str, int, int]], kind: type[StreamPlanner], limits: dict[str, str]
) -> None:
    query = Query(Cluster(), kind, **limits)
    apply(query, steps)
    drain(query)
    written = [
        (TopicPartition(name, i), offset)
        for name, partitions in query.cluster.topics.items()
        for i, (_, end) in enumerate(partitions)
        for offset in range(end)
    ]
    assert sorted(query.read) == sorted(written)


@given(st.lists(LOSSES, max_size=30), KINDS, LIMITS)
def test_a_query_that_may_lose_data_goes_on_and_reads_nothing_twice(
    steps: list[tuple[str, int, int]], kind: type[StreamPlanner], limits: dict[str, str]
) -> None:
    query = Query(Cluster(), kind, failOnDataLoss="false", **limits)
    # Topics that are deleted do not come back here: their offsets begin anew.
    apply(query, [step for step in steps if step[0] != "topic"])
    drain(query)
    assert len(set(query.read)) == len(query.read)
    there = {
        (TopicPartition(name, i), offset)
        for name, partitions in query.cluster.topics.items()
        for i, (first, end) in enumerate(partitions)
        for offset in range(first, end)
    }
    assert there <= set(query.read)


@given(st.lists(LOSSES, max_size=30), KINDS, LIMITS)
def test_a_query_that_must_not_lose_data_reads_everything_or_says_what_is_gone(
    steps: list[tuple[str, int, int]], kind: type[StreamPlanner], limits: dict[str, str]
) -> None:
    query = Query(Cluster(), kind, **limits)
    written: set[tuple[TopicPartition, int]] = set()
    lost_at_start = True
    try:
        for step in steps:
            if step[0] == "topic":
                continue
            apply(query, [step])
            for name, partitions in query.cluster.topics.items():
                for i, (first, end) in enumerate(partitions):
                    written |= {(TopicPartition(name, i), offset) for offset in range(first, end)}
            if lost_at_start:
                # What retention takes before the query begins is not the query's.
                lost_at_start = query.start is None
                if lost_at_start:
                    written = set()
        drain(query)
    except DataLossError:
        return
    assert written <= set(query.read)
    assert len(set(query.read)) == len(query.read)


def of_cluster(cluster: Cluster) -> set[tuple[bytes, int, int]]:
    """Return all records in the cluster, as (topic id, partition, offset)."""
    return {
        (cluster.id_of(name), i, offset)
        for name, partitions in cluster.topics.items()
        for i, (first, end) in enumerate(partitions)
        for offset in range(first, end)
    }


@given(st.lists(LIVES, max_size=30), KINDS, LIMITS)
def test_nothing_of_a_topic_that_is_created_anew_is_skipped_or_read_twice(
    steps: list[tuple[str, int, int]], kind: type[StreamPlanner], limits: dict[str, str]
) -> None:
    query = Query(Cluster(has_ids=True), kind, failOnDataLoss="false", **limits)
    apply(query, steps)
    drain(query)
    assert len(set(query.read_of)) == len(query.read_of)
    assert of_cluster(query.cluster) <= set(query.read_of)


@given(st.lists(LIVES, max_size=30), KINDS, LIMITS)
@example(COMES_AND_GOES, StreamReader, {})
def test_a_query_that_must_not_lose_data_ends_where_a_topic_was_created_anew(
    steps: list[tuple[str, int, int]], kind: type[StreamPlanner], limits: dict[str, str]
) -> None:
    query = Query(Cluster(has_ids=True), kind, **limits)
    known: set[bytes] = set()
    written: set[tuple[bytes, int, int]] = set()
    try:
        for step in steps:
            apply(query, [step])
            if step[0] == "batch" and query.start is not None:
                known |= query.planned
            # A topic that comes and goes between two plans, or before the first, is not the query's.
            written |= {record for record in of_cluster(query.cluster) if record[0] in known}
        drain(query)
    except DataLossError:
        return
    written |= of_cluster(query.cluster)
    assert written <= set(query.read_of)
    assert len(set(query.read_of)) == len(query.read_of)


@pytest.mark.parametrize("kind", [StreamReader, UnlimitedStreamReader])
@pytest.mark.parametrize("length", [3, 10, 40])
def test_the_reason_has_both_ids_and_what_to_do(kind: type[StreamPlanner], length: int) -> None:
    query = Query(Cluster(has_ids=True), kind)
    query.cluster.topics["t0"][0][1] = 10
    query.batch()
    change(query.cluster, "recreate", 0, length)
    with pytest.raises(DataLossError) as raised:
        query.batch()
    ids = [uuid_to_text(f"t0 {n}".encode().ljust(16, b".")) for n in (0, 1)]
    said = str(raised.value)
    assert "topic t0 was deleted and created anew" in said
    assert all(each in said for each in ids)
    assert "set failOnDataLoss to 'false'" in said


@pytest.mark.parametrize("length", [3, 10, 40])
def test_a_query_that_may_lose_data_says_once_that_a_topic_was_created_anew(
    length: int, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(Cluster(has_ids=True), StreamReader, failOnDataLoss="false", maxOffsetsPerTrigger="2")
    query.cluster.topics["t0"][0][1] = 10
    drain(query)
    change(query.cluster, "recreate", 0, length)
    with caplog.at_level(logging.WARNING, "penstock.spark"):
        drain(query)
    assert [offset for _, offset in query.read[10:]] == [*range(length)]
    assert len([line for line in caplog.messages if "created anew" in line]) == 1


@pytest.mark.parametrize("kind", [StreamReader, UnlimitedStreamReader])
def test_a_checkpoint_without_ids_is_taken_as_it_is_and_gets_them(kind: type[StreamPlanner]) -> None:
    query = Query(Cluster(has_ids=True), kind)
    query.cluster.topics["t0"][0][1] = 10
    query.start = {"t0": {"0": 4}}  # of an older release, or of the connector of the JVM
    query.restart()
    query.batch()
    assert [offset for _, offset in query.read] == [*range(4, 10)]
    assert query.start == {"t0": {"0": 10}, f"(id of t0: {uuid_to_text(query.cluster.id_of('t0'))})": {}}
    change(query.cluster, "recreate", 0, 20)
    with pytest.raises(DataLossError, match="created anew"):
        query.batch()


def test_an_id_that_a_broker_does_not_say_any_more_is_kept() -> None:
    query = Query(Cluster(has_ids=True), StreamReader)
    query.cluster.topics["t0"][0][1] = 10
    query.batch()
    start = query.start
    query.cluster.has_ids = False
    query.batch()
    assert query.start == start
    query.cluster.topics["t0"][0][1] = 11
    query.batch()
    assert set(query.start) == set(start)


def test_a_stream_waits_for_brokers_that_have_answered_before(monkeypatch: Any) -> None:
    slept: list[float] = []
    monkeypatch.setattr("penstock.spark.source.stream_reader.time.sleep", slept.append)
    query = Query(Cluster(), StreamReader)
    query.cluster.topics["t0"][0][1] = 10
    query.batch()
    query.cluster.gone = True
    for _ in range(3):
        query.batch()
    assert slept == [1.0] * 3
    query.cluster.gone = False
    query.cluster.topics["t0"][0][1] = 20
    query.batch()
    assert len(query.read) == 20


def test_an_outage_that_is_too_long_ends_the_query() -> None:
    query = Query(Cluster(), StreamReader, maxBrokerOutage="0s")
    query.batch()
    query.cluster.gone = True
    with pytest.raises(NetworkError, match="no broker answers"):
        query.batch()


def test_a_first_contact_that_fails_is_told_at_once() -> None:
    query = Query(Cluster(), StreamReader)
    query.cluster.gone = True
    with pytest.raises(NetworkError):
        query.batch()


def test_available_now_ends_where_the_topics_ended() -> None:
    query = Query(Cluster(), StreamReader)
    query.cluster.topics["t0"][0][1] = 10
    query.reader.prepareForTriggerAvailableNow()
    query.start = query.reader.initialOffset()
    assert query.reader.latestOffset(query.start, ReadMaxRows(4)) == {"t0": {"0": 4}}
    query.cluster.topics["t1"] = [[0, 5]]
    assert query.reader.latestOffset({"t0": {"0": 4}}, ReadMaxRows(100)) == {"t0": {"0": 10}}


def test_an_older_spark_starts_where_its_first_batch_ends_when_that_is_the_latest() -> None:
    query = Query(Cluster(), UnlimitedStreamReader, startingOffsets="latest")
    query.cluster.topics["t0"][0][1] = 10
    end = query.reader.latestOffset()
    query.cluster.topics["t0"][0][1] = 15
    assert query.reader.initialOffset() == {"t0": {"0": 10}}
    assert end == {"t0": {"0": 10}, BEGINS_HERE: {}}


@pytest.mark.parametrize("starting", ["latest", '{"t0": {"0": -1}}'])
def test_a_query_that_dies_in_its_first_micro_batch_begins_where_it_began(starting: str) -> None:
    """Spark logs only the end of the first micro-batch; after a restart, it requests the start again."""
    query = Query(Cluster(), StreamReader, startingOffsets=starting)
    log = query.cluster.topics["t0"][0]
    log[1] = 10
    query.batch(dies=True)
    log[1] = 15
    query.start = None  # nothing is committed
    query.restart()
    query.start = query.reader.initialOffset()
    query.batch()
    query.batch()
    assert query.read == [(TopicPartition("t0", 0), offset) for offset in range(10, 15)]
    query.batch()
    assert query.start == {"t0": {"0": 15}}


def test_a_first_micro_batch_that_another_source_has_planned_is_not_guessed_at() -> None:
    """Spark's Kafka connector stores its start offsets in a file whose path a Python source does not get."""
    options = {"startingOffsets": "latest"}
    query = Query(Cluster(), StreamReader, **options)
    query.cluster.topics["t0"][0][1] = 10
    query.start, query.logged = query.reader.initialOffset(), {"t0": {"0": 10}}
    with pytest.raises(DataLossError, match=r"first micro-batch.*penstock spark checkpoint"):
        query.batch()
    told = Query(query.cluster, StreamReader, startingOffsets='{"t0": {"0": 4}}')
    told.start, told.logged = told.reader.initialOffset(), {"t0": {"0": 10}}
    told.batch()
    assert [offset for _, offset in told.read] == [*range(4, 10)]
    lossy = Query(query.cluster, StreamReader, failOnDataLoss="false", **options)
    lossy.start, lossy.logged = lossy.reader.initialOffset(), {"t0": {"0": 10}}
    lossy.batch()
    assert lossy.read == []


def test_available_now_begins_no_later_than_it_ends() -> None:
    query = Query(Cluster(), StreamReader, startingOffsets="latest")
    query.reader.prepareForTriggerAvailableNow()
    query.cluster.topics["t0"][0][1] = 10
    query.batch()
    query.batch()
    assert (query.read, query.start) == ([], {"t0": {"0": 0}, BEGINS_HERE: {}})


def test_an_older_spark_is_limited_once_it_knows_its_position() -> None:
    query = Query(Cluster(), UnlimitedStreamReader, maxOffsetsPerTrigger="3")
    query.cluster.topics["t0"][0][1] = 10
    query.batch()
    assert len(query.read) == 10
    query.cluster.topics["t0"][0][1] = 20
    query.batch()
    assert len(query.read) == 13
    query.restart()
    query.batch()
    assert len(query.read) == 16


def test_an_older_spark_is_told_of_wrong_options_at_its_first_question() -> None:
    query = Query(Cluster(), UnlimitedStreamReader, maxOffsetsPerTrigger="none")
    with pytest.raises(ConfigError, match="maxOffsetsPerTrigger"):
        query.reader.latestOffset()
