"""Tests without I/O of the exactly-once sink's decisions, given its stored state and broker responses."""

from __future__ import annotations

import pytest

from penstock.errors import ConfigError, DecodeError
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.exactly_once.decision import (
    Course,
    Decision,
    SinkState,
    TaskTransaction,
    course_of,
    merged,
)
from penstock.spark.exactly_once.place import SinkPlace
from penstock.spark.exactly_once.settlement import (
    Copy,
    EndTransactions,
    Finish,
    Inspect,
    Lose,
    Settlement,
    TransactionFate,
    fate_after_end,
)

ONE, TWO = TaskTransaction("s-task-0-0-0", 7, 3), TaskTransaction("s-task-0-1-0", 8, 0)
DECISION = Decision(5, (ONE, TWO), {"t": {0: (10, 20), 2: (5, 6)}}, 11, frozenset({("t", bytes(range(16)))}))


def test_a_decision_is_read_as_it_was_written() -> None:
    assert Decision.from_bytes(DECISION.to_bytes()) == DECISION


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":1}',
        b'{"version":1,"batch":0,"rows":0,"transactions":[["a",1]],"ranges":{}}',
        b'{"version":1,"batch":0,"rows":0,"transactions":[],"ranges":{"t":{"x":[1,2]}}}',
    ],
)
def test_what_is_no_decision_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError, match="does not hold a decision"):
        Decision.from_bytes(value)


def test_a_decision_of_a_later_version_is_refused() -> None:
    with pytest.raises(DecodeError, match="version 2"):
        Decision.from_bytes(b'{"version":2}')


@pytest.mark.parametrize(
    ("state", "batch", "course"),
    [
        (SinkState(), 0, Course.DECIDE),
        (SinkState(DECISION, 4), 5, Course.ROLL_FORWARD),
        (SinkState(DECISION, 5), 5, Course.DROP),
        (SinkState(DECISION, 4), 6, Course.DECIDE),
        (SinkState(None, 5), 5, Course.DROP),
    ],
)
def test_the_course_of_a_batch(state: SinkState, batch: int, course: Course) -> None:
    assert course_of(state, batch) is course


@pytest.mark.parametrize("state", [SinkState(DECISION, 4), SinkState(DECISION, 5), SinkState(None, 5)])
def test_a_checkpoint_that_is_older_than_the_sink_is_refused(state: SinkState) -> None:
    with pytest.raises(ConfigError, match=r"batch 4 .* holds batch 5"):
        course_of(state, 4)


def test_ranges_of_tasks_are_united() -> None:
    assert merged([{"t": {0: (5, 9)}}, {"t": {0: (1, 3), 1: (0, 1)}}, {"u": {0: (2, 3)}}]) == {
        "t": {0: (1, 9), 1: (0, 1)},
        "u": {0: (2, 3)},
    }


def test_every_transaction_is_committed() -> None:
    settlement = Settlement(DECISION)
    assert settlement.next_action() == EndTransactions((ONE, TWO))
    settlement.learn({ONE: TransactionFate.COMMITTED})
    assert settlement.next_action() == EndTransactions((TWO,))
    settlement.learn({TWO: TransactionFate.COMMITTED})
    assert settlement.next_action() == Finish()


def test_what_the_coordinator_does_not_know_is_read_in_the_log() -> None:
    settlement = Settlement(DECISION)
    settlement.learn({ONE: TransactionFate.COMMITTED, TWO: TransactionFate.UNCLEAR})
    assert settlement.next_action() == Inspect((TWO,))
    settlement.learn({TWO: TransactionFate.UNCLEAR})
    assert settlement.next_action() == Inspect((TWO,))
    settlement.learn({TWO: TransactionFate.COMMITTED})
    assert settlement.next_action() == Finish()


def test_aborted_transactions_are_copied_once_all_others_are_settled() -> None:
    settlement = Settlement(DECISION)
    settlement.learn({ONE: TransactionFate.ABORTED})
    assert settlement.next_action() == EndTransactions((TWO,))
    settlement.learn({TWO: TransactionFate.COMMITTED})
    assert settlement.next_action() == Copy((ONE,))


def test_lost_rows_come_before_copies_and_can_be_given_up() -> None:
    settlement = Settlement(DECISION)
    settlement.learn({ONE: TransactionFate.ABORTED, TWO: TransactionFate.LOST})
    assert settlement.next_action() == Lose((TWO,))
    settlement.give_up((TWO,))
    assert settlement.next_action() == Copy((ONE,))


def test_a_settled_transaction_stays_settled() -> None:
    settlement = Settlement(DECISION)
    settlement.learn({ONE: TransactionFate.COMMITTED, TWO: TransactionFate.COMMITTED})
    settlement.learn({ONE: TransactionFate.ABORTED})
    assert settlement.next_action() == Finish()


def test_answers_to_a_commit() -> None:
    assert fate_after_end(0) is TransactionFate.COMMITTED
    for code in (
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ):
        assert fate_after_end(code) is TransactionFate.UNCLEAR
    assert fate_after_end(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) is None


def test_ids_are_few_and_neighbouring_batches_share_none() -> None:
    place = SinkPlace("penstock-q", "localhost:9092")
    ids = {place.task_id(batch, 0, 0) for batch in range(100)}
    assert len(ids) == 2
    assert all(each.startswith(place.task_prefix) for each in ids)
    assert not {place.driver_id, place.copy_id} & ids
    assert not any(each.startswith(place.task_prefix) for each in (place.driver_id, place.copy_id))
    assert place.task_id(0, 1, 0, 1) != place.task_id(0, 1, 0)


def test_a_misspelt_setting_is_suggested_as_spark_writes_it() -> None:
    from penstock.spark.exactly_once.kafka_cluster import KafkaSinkCluster

    with pytest.raises(
        ConfigError, match=r"unknown option 'kafka\.linger\.msec'; did you mean 'kafka\.linger\.ms'"
    ):
        KafkaSinkCluster(SinkPlace("q", "localhost:9092", {"linger.msec": "1"}))
