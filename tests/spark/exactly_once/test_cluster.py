"""Tests of the exactly-once sink with a real broker and without Spark.

Its drivers and task attempts are killed, time out, or are fenced by successors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, Broker, read_topic
from penstock.client.background_loop import run
from penstock.errors import ConfigError, KafkaError, ProducerFencedError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.attempt import AttemptResult, TaskAttempt, write_attempt
from penstock.spark.exactly_once.decision import Decision, Ranges, TopicIds, merged
from penstock.spark.exactly_once.driver import SinkDriver
from penstock.spark.exactly_once.gate import _held, gate_for, hold
from penstock.spark.exactly_once.kafka_cluster import KafkaSinkCluster
from penstock.spark.exactly_once.keeper import abort_batch, commit_batch, commit_job
from penstock.spark.exactly_once.place import SinkPlace
from penstock.spark.exactly_once.settlement import LostRowsError, TransactionFate


@pytest.fixture
def place(brokers: str, numbers: Iterator[int]) -> SinkPlace:
    return SinkPlace(f"penstock-{next(numbers)}", brokers)


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic(partitions=2)


def united(written: Sequence[AttemptResult]) -> tuple[Ranges, TopicIds]:
    topic_ids: TopicIds = frozenset().union(*(each.topic_ids for each in written))
    return merged(each.ranges for each in written), topic_ids


class Sink:
    """One exactly-once sink, with the task attempts and the drivers that a test creates."""

    def __init__(self, place: SinkPlace, topic: str) -> None:
        self.place = place
        self.topic = topic
        self.clusters: list[KafkaSinkCluster] = []

    def write(
        self, batch: int, *values: int, task: int = 0, number: int = 0, run_id: str = "r"
    ) -> AttemptResult:
        rows = pa.record_batch({"value": pa.array([b"%d" % value for value in values], pa.binary())})
        return write_attempt(self.place, TaskAttempt(run_id, batch, task, number), iter([(self.topic, rows)]))

    def driver(self, *, accepts_loss: bool = False) -> SinkDriver:
        cluster = KafkaSinkCluster(self.place)
        self.clusters.append(cluster)
        return SinkDriver(cluster, accepts_loss=accepts_loss)

    def commit(self, driver: SinkDriver, batch: int, *written: AttemptResult) -> None:
        transactions = [each.transaction for each in written if each.transaction is not None]
        ranges, topic_ids = united(written)
        run(driver.commit(batch, transactions, ranges, topic_ids=topic_ids))

    def decide(self, batch: int, *written: AttemptResult) -> None:
        """Run a driver that records its decision to commit a batch and dies before it commits."""
        cluster = KafkaSinkCluster(self.place)
        self.clusters.append(cluster)
        transactions = tuple(each.transaction for each in written if each.transaction is not None)
        run(cluster.take_over())
        ranges, topic_ids = united(written)
        rows = sum(each.rows for each in written)
        run(cluster.decide(Decision(batch, transactions, ranges, rows, topic_ids)))

    def values(self) -> list[int]:
        table = read_topic(self.topic, self.place.bootstrap_servers, isolation="read_committed")
        return sorted(int(value) for value in table["value"].to_pylist())

    def shows(self, values: list[int]) -> None:
        """Wait until consumers of committed records read exactly `values`."""
        deadline = time.monotonic() + 30
        while self.values() != values:
            assert time.monotonic() < deadline, (self.values(), values)
            time.sleep(0.02)

    def close(self) -> None:
        for cluster in self.clusters:
            run(cluster.close())


@pytest.fixture
def sink(place: SinkPlace, topic: str) -> Iterator[Sink]:
    made = Sink(place, topic)
    yield made
    made.close()


def test_rows_count_with_the_commit_and_not_before(sink: Sink) -> None:
    driver = sink.driver()
    for batch in range(3):
        written = [sink.write(batch, batch * 10 + task, task=task) for task in range(2)]
        sink.shows([ten * 10 + one for ten in range(batch) for one in range(2)])
        sink.commit(driver, batch, *written)
    sink.shows([0, 1, 10, 11, 20, 21])


def test_an_attempt_without_rows_opens_no_transaction(sink: Sink) -> None:
    assert sink.write(0) == AttemptResult(None, {}, 0)
    sink.commit(sink.driver(), 0, sink.write(0))
    assert sink.values() == []


def test_a_decided_batch_is_rolled_forward_and_what_is_written_again_dropped(sink: Sink) -> None:
    sink.decide(0, sink.write(0, 1), sink.write(0, 2, task=1))
    again = [sink.write(0, 1, run_id="s"), sink.write(0, 2, task=1, run_id="s")]
    assert again[0].transaction is not None
    assert again[0].transaction.transactional_id.endswith("-1"), "the ids of the decided ones are let alone"
    sink.commit(sink.driver(), 0, *again)
    sink.shows([1, 2])


def test_a_batch_that_was_not_decided_is_written_anew(sink: Sink) -> None:
    sink.write(0, 1)
    sink.write(0, 2, task=1)
    sink.commit(sink.driver(), 0, sink.write(0, 1, run_id="s"), sink.write(0, 2, task=1, run_id="s"))
    sink.shows([1, 2])


def test_attempts_that_lost_are_aborted_so_that_readers_do_not_wait(sink: Sink) -> None:
    sink.write(0, 1)  # of a speculative copy, or of an executor that died
    sink.commit(sink.driver(), 0, sink.write(0, 1, number=1))
    sink.shows([1])


def test_rows_aborted_after_the_decision_are_copied_from_the_log(sink: Sink) -> None:
    one, two = sink.write(0, 1, 2, 3), sink.write(0, 4, 5, task=1)
    sink.decide(0, one, two)
    assert two.transaction is not None
    run(sink.clusters[0].fence(two.transaction.transactional_id))
    sink.commit(sink.driver(), 0, sink.write(0, 1, 2, 3, run_id="s"), sink.write(0, 4, 5, task=1, run_id="s"))
    sink.shows([1, 2, 3, 4, 5])


def test_a_copy_that_was_decided_is_not_made_twice(sink: Sink) -> None:
    one = sink.write(0, 1, 2, 3)
    assert one.transaction is not None
    sink.decide(0, one)
    cluster = sink.clusters[0]
    run(cluster.fence(one.transaction.transactional_id))
    copy, ranges, _ = run(cluster.copy([one.transaction], one.ranges))
    run(cluster.decide(Decision(0, (copy,), ranges)))
    sink.commit(sink.driver(), 0, sink.write(0, 1, 2, 3, run_id="s"))
    sink.shows([1, 2, 3])
    # Long after, the id of the copy is used again: the log knows what the coordinator does not.
    run(cluster.fence(copy.transactional_id))
    assert run(cluster.end(copy, is_commit=True)) is TransactionFate.UNCLEAR
    assert run(cluster.inspect([copy], ranges)) == {copy: TransactionFate.COMMITTED}


def test_copied_records_are_those_that_were_aborted(sink: Sink, brokers: str) -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"1"}], []],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    columns = {
        "key": pa.array([b"k", None], pa.binary()),
        "value": pa.array([None, b"v"], pa.binary()),
        "headers": headers,
        "partition": pa.array([1, 0], pa.int32()),
        "timestamp": pa.array([1_000, 2_000], pa.timestamp("us", tz="UTC")),
    }
    rows = pa.record_batch(columns)
    written = write_attempt(sink.place, TaskAttempt("r", 0, 0, 0), iter([(sink.topic, rows)]))
    assert written.transaction is not None
    sink.decide(0, written)
    run(sink.clusters[0].fence(written.transaction.transactional_id))
    sink.commit(sink.driver(), 0)
    deadline = time.monotonic() + 30
    while (table := read_topic(sink.topic, brokers, isolation="read_committed")).num_rows < 2:
        assert time.monotonic() < deadline
    table = table.sort_by("timestamp")
    assert table["key"].to_pylist() == [b"k", None]
    assert table["value"].to_pylist() == [None, b"v"]
    assert table["partition"].to_pylist() == [1, 0]
    assert [time.microsecond for time in table["timestamp"].to_pylist()] == [1_000, 2_000]
    assert table["headers"].to_pylist() == [[{"key": "h", "value": b"1"}], []]


def test_rows_that_retention_has_removed_are_never_lost_in_silence(sink: Sink, brokers: str) -> None:
    from penstock.client.admin.admin import AsyncAdmin
    from penstock.protocol.messages.delete_records_request import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsTopic,
    )

    written = sink.write(0, 1, 2, 3)
    assert written.transaction is not None
    sink.decide(0, written)
    run(sink.clusters[0].fence(written.transaction.transactional_id))

    async def delete() -> None:
        async with AsyncAdmin(brokers) as admin:
            await admin.start()
            partitions = [DeleteRecordsPartition(partition_index=p, offset=-1) for p in (0, 1)]
            topic = DeleteRecordsTopic(name=sink.topic, partitions=partitions)
            await admin._client.request(DeleteRecordsRequest(topics=[topic], timeout_ms=5_000))

    run(delete())
    again = sink.write(0, 1, 2, 3, run_id="s")
    with pytest.raises(LostRowsError, match="rows of batch 0 are lost"):
        sink.commit(sink.driver(), 0, again)
    cluster = KafkaSinkCluster(sink.place)
    sink.clusters.append(cluster)
    run(SinkDriver(cluster, accepts_loss=True).commit(0, [], {}))
    sink.commit(sink.driver(), 1, sink.write(1, 4))
    sink.shows([4])


def recreate(topic: str, brokers: str, *, is_created: bool = True) -> None:
    with Admin(brokers) as admin:
        admin.delete_topics([topic])
        if is_created:
            admin.create_topic(topic, partitions=2)


@pytest.mark.parametrize("is_created", [True, False])
@pytest.mark.parametrize("is_aborted", [False, True])
def test_rows_of_a_decided_batch_that_went_with_their_topic_are_never_lost_in_silence(
    sink: Sink, brokers: str, new_topic: Callable[..., str], is_created: bool, is_aborted: bool
) -> None:
    other = Sink(sink.place, new_topic(partitions=1))
    lost, kept = sink.write(0, 1, 2), other.write(0, 3, 4, task=1)
    sink.decide(0, lost, kept)
    if is_aborted:
        for each in (lost, kept):
            assert each.transaction is not None
            run(sink.clusters[0].fence(each.transaction.transactional_id))
    recreate(sink.topic, brokers, is_created=is_created)
    for _ in range(2):
        with pytest.raises(LostRowsError, match="rows of batch 0 are lost"):
            sink.commit(sink.driver(), 0)
    sink.commit(sink.driver(accepts_loss=True), 0)
    other.shows([3, 4])
    if not is_created:
        with Admin(brokers) as admin:
            admin.create_topic(sink.topic, partitions=2)
    sink.commit(sink.driver(), 1, sink.write(1, 5))
    sink.shows([5])


def test_a_batch_whose_topic_is_replaced_while_it_is_written_is_written_once_more(
    sink: Sink, brokers: str
) -> None:
    written = [sink.write(0, 1, 2)]
    recreate(sink.topic, brokers)
    written.append(sink.write(0, 3, task=1))
    with pytest.raises(KafkaError, match="deleted and created anew, while batch 0 was written") as caught:
        sink.commit(sink.driver(), 0, *written)
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_ID
    abort_batch(sink.place, 0, written)
    again = [sink.write(0, 1, 2, run_id="s"), sink.write(0, 3, task=1, run_id="s")]
    sink.commit(sink.driver(), 0, *again)
    sink.shows([1, 2, 3])


def test_a_driver_that_was_taken_over_cannot_decide(sink: Sink) -> None:
    old, new = sink.driver(), sink.driver()
    sink.commit(old, 0, sink.write(0, 1))
    written = sink.write(1, 2)
    sink.commit(new, 1, sink.write(1, 2, number=1))
    with pytest.raises(ProducerFencedError, match="another driver has taken over"):
        sink.commit(old, 1, written)
    sink.shows([1, 2])


def test_an_old_checkpoint_is_refused(sink: Sink) -> None:
    driver = sink.driver()
    for batch in range(2):
        sink.commit(driver, batch, sink.write(batch, batch))
    with pytest.raises(ConfigError, match=r"batch 0 is to be written, but the sink holds batch 1"):
        sink.commit(sink.driver(), 0, sink.write(0, 0, run_id="s"))


def test_a_failed_batch_is_aborted_and_a_decided_one_is_not(sink: Sink) -> None:
    written = sink.write(0, 1)
    sink.write(0, 2, task=1)  # its task has failed: no message of it
    abort_batch(sink.place, 0, [written])
    sink.commit(sink.driver(), 0, sink.write(0, 3))
    sink.shows([3])
    decided = sink.write(1, 4)
    sink.decide(1, decided)
    abort_batch(sink.place, 1, [decided])
    sink.commit(sink.driver(), 1)
    sink.shows([3, 4])


def test_batches_of_a_run_share_a_driver_and_jobs_leave_nothing_behind(sink: Sink, brokers: str) -> None:
    for batch in range(2):
        commit_batch(sink.place, "r", batch, [sink.write(batch, batch)], fails_on_loss=True)
    commit_batch(sink.place, "s", 2, [sink.write(2, 2, run_id="s")], fails_on_loss=True)
    job = Sink(SinkPlace(sink.place.sink + "-job", brokers), sink.topic)
    commit_job(job.place, 0, [job.write(0, 7), job.write(0, 8, task=1)])
    sink.shows([0, 1, 2, 7, 8])
    state = KafkaSinkCluster(job.place)
    sink.clusters.append(state)
    found: Any = run(state.peek())
    assert (found.decision, found.finished) == (None, -1)


def test_a_job_without_a_name_stores_nothing_and_loses_nothing(numbers: Any) -> None:
    with Broker(transaction_abort_timed_out_transaction_cleanup_interval_ms=50) as broker:
        from penstock import Admin

        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("job", partitions=2)
            at, short = broker.bootstrap_servers, {"transaction.timeout.ms": "200"}
            job = Sink(SinkPlace("penstock-job", at), "job")
            gate = gate_for(job.place, "job")
            hold(job.place, gate).result(30)
            commit_job(job.place, 0, [job.write(0, 7), job.write(0, 8, task=1)], gate=gate)
            job.shows([7, 8])
            late = Sink(SinkPlace("penstock-late-job", at, short), "job")
            written = late.write(0, 9)
            time.sleep(0.6)
            commit_job(late.place, 0, [written])  # aborted meanwhile: copied from the log
            job.shows([7, 8, 9])
            failed = Sink(SinkPlace("penstock-failed-job", at), "job")
            lost = [failed.write(0, 1), failed.write(0, 2, task=1), failed.write(0, 3, number=1)]
            abort_batch(failed.place, 0, lost[:2], is_repeatable=False)
            assert admin.list_transactions(states=["Ongoing"]) == []
            job.shows([7, 8, 9])
            assert admin.list_topics() == ["job"]


def test_a_transaction_that_times_out_before_the_decision_is_copied(new_topic: Any, numbers: Any) -> None:
    settings = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 50}
    with Broker(**settings) as broker:
        from penstock import Admin

        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("late", partitions=2)
        place = SinkPlace("penstock-late", broker.bootstrap_servers, {"transaction.timeout.ms": "200"})
        sink = Sink(place, "late")
        written = sink.write(0, 1, 2)
        time.sleep(0.6)
        sink.commit(sink.driver(), 0, written)
        sink.shows([1, 2])
        sink.close()


def test_rows_of_a_job_appear_when_its_gate_ends_and_not_before(sink: Sink) -> None:
    sink.commit(sink.driver(), 0, sink.write(0, 1))
    gate = gate_for(sink.place, sink.topic)
    sink.shows([1])  # a gate that no task has closed holds nothing up
    hold(sink.place, gate).result(30)
    written = [sink.write(1, 10, 11), sink.write(1, 12, task=1)]
    _held.clear()  # as in another worker
    hold(sink.place, gate).result(30)
    written.append(sink.write(1, 13, task=2))
    driver = sink.driver()
    sink.commit(driver, 1, *written)
    assert sink.values() == [1], "all is committed, nothing is seen"
    run(sink.clusters[-1].end_gate(gate, [each.transaction for each in written if each.transaction]))
    sink.shows([1, 10, 11, 12, 13])
    _held.clear()
    with pytest.raises(KafkaError):
        hold(sink.place, gate).result(30)


def test_the_gate_of_a_job_that_fails_ends_with_it(sink: Sink) -> None:
    gate = gate_for(sink.place, sink.topic)
    hold(sink.place, gate).result(30)
    abort_batch(sink.place, 0, [sink.write(0, 1)], gate)
    sink.commit(sink.driver(), 0, sink.write(0, 2))
    sink.shows([2])


def test_settings_that_rule_transactions_out_are_refused(sink: Sink) -> None:
    sink.place = SinkPlace(sink.place.sink, sink.place.bootstrap_servers, {"acks": "1"})
    with pytest.raises(ConfigError, match="acks"):
        sink.write(0, 1)
