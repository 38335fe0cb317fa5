"""Tests of a transactional producer with lost answers, busy coordinators and exceeded timeouts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from client.transactions.levels import LEVELS, committed_values, set_level
from penstock import Admin, Producer
from penstock.errors import (
    KafkaError,
    PenstockError,
    ProducerFencedError,
    RequestTimeoutError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    TransactionFatalError,
    TransactionRetriableError,
    TransactionStateError,
)
from penstock.testing import KafkaBroker

_names = itertools.count()
FAST = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 5,
    "request.timeout.ms": 1000,
}


class Place:
    """A broker with injected faults, one transaction protocol version, and a topic for one test."""

    def __init__(self, broker: KafkaBroker, admin: Admin, level: int) -> None:
        self.broker, self.admin, self.level = broker, admin, level
        self.servers = broker.bootstrap_servers
        self.topic = f"t{next(_names)}"
        self.name = f"id-{self.topic}"
        admin.create_topic(self.topic, partitions=2)

    def producer(self, **options: object) -> Producer:
        return Producer(self.servers, config={**FAST, **options}, transactional_id=self.name)

    def committed(self) -> list[bytes]:
        return committed_values(self.servers, self.admin, self.topic, self.name)


@pytest.fixture(scope="module", params=LEVELS)
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[KafkaBroker, Admin, int]]:
    with KafkaBroker(transaction_abort_timed_out_transaction_cleanup_interval_ms=100) as broker:
        set_level(broker.bootstrap_servers, request.param)
        with Admin(broker.bootstrap_servers) as admin:
            yield broker, admin, request.param


@pytest.fixture
def place(cluster: tuple[KafkaBroker, Admin, int]) -> Iterator[Place]:
    yield Place(*cluster)
    cluster[0].faults.clear()


STEPS = ["FindCoordinator", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit"]


@pytest.mark.parametrize("api", [*STEPS, "Produce", "EndTxn"])
@pytest.mark.parametrize("is_applied", [False, True])
def test_a_lost_answer_to_any_request_loses_and_doubles_nothing(
    place: Place, api: str, is_applied: bool
) -> None:
    place.broker.faults.close(api, applied=is_applied, times=1)
    with place.producer() as producer:
        for number in range(3):
            with producer.transaction():
                producer.send(place.topic, b"%d" % number)
                producer.send_offsets({(place.topic, 0): number}, place.name)
    assert place.committed() == [b"0", b"1", b"2"]
    (at,) = place.admin.list_group_offsets(place.name).values()
    assert at.offset == 2


@pytest.mark.parametrize("api", STEPS[1:])
@pytest.mark.parametrize(
    "error", ["COORDINATOR_LOAD_IN_PROGRESS", "CONCURRENT_TRANSACTIONS", "NOT_COORDINATOR"]
)
def test_a_coordinator_that_is_busy_or_has_moved_is_asked_again(place: Place, api: str, error: str) -> None:
    if place.level == 2 and api.startswith("Add"):
        api = "EndTxn"
    place.broker.faults.fail(api, error=error, times=3)
    with place.producer() as producer, producer.transaction():
        producer.send(place.topic, b"1")
        producer.send_offsets({(place.topic, 0): 1}, place.name)
    assert place.committed() == [b"1"]


def test_a_record_that_is_refused_makes_the_transaction_abortable(place: Place) -> None:
    with place.producer() as producer:
        place.broker.faults.fail("Produce", error="INVALID_RECORD", topic=place.topic, times=1)
        producer.begin_transaction()
        delivery = producer.send(place.topic, b"refused")
        with pytest.raises(TransactionAbortableError) as caught:
            producer.commit_transaction()
        assert isinstance(caught.value.__cause__, KafkaError)
        assert isinstance(delivery.exception(0), KafkaError)
        with pytest.raises(TransactionAbortableError):
            producer.send(place.topic, b"more")
        with pytest.raises(TransactionAbortableError):
            producer.begin_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(place.topic, b"accepted")
    assert place.committed() == [b"accepted"]


def test_records_that_time_out_make_it_abortable_and_the_next_one_has_a_new_epoch(place: Place) -> None:
    with place.producer(**{"delivery.timeout.ms": 300}) as producer:
        producer.begin_transaction()
        before = producer.transaction_coordinates
        with place.broker.faults.fail("Produce", error="NOT_ENOUGH_REPLICAS", topic=place.topic):
            delivery = producer.send(place.topic, b"late")
            with pytest.raises(RequestTimeoutError):
                delivery.result(10)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.send(place.topic, b"next")
            after = producer.transaction_coordinates
        assert after.producer_epoch > before.producer_epoch
    assert place.committed() == [b"next"]


def test_a_commit_that_does_not_end_in_time_is_called_again(place: Place) -> None:
    with place.producer(**{"max.block.ms": 200}) as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"1").result(10)
        with place.broker.faults.fail("EndTxn", error="COORDINATOR_LOAD_IN_PROGRESS"):
            with pytest.raises(TransactionRetriableError, match="same call again"):
                producer.commit_transaction()
            with pytest.raises(TransactionStateError, match="commit_transaction"):
                producer.abort_transaction()
            with pytest.raises(TransactionStateError, match="commit_transaction"):
                producer.begin_transaction()
        producer.commit_transaction()
        with producer.transaction():
            producer.send(place.topic, b"2")
    assert place.committed() == [b"1", b"2"]


def test_a_refused_id_can_be_tried_again(place: Place) -> None:
    with place.producer() as producer:
        fault = place.broker.faults.fail("InitProducerId", error="TRANSACTIONAL_ID_AUTHORIZATION_FAILED")
        with pytest.raises(TransactionalIdAuthorizationError):
            producer.init_transactions()
        fault.stop()
        producer.init_transactions()
        with producer.transaction():
            producer.send(place.topic, b"1")
    assert place.committed() == [b"1"]


def test_a_timeout_above_what_the_broker_allows_is_fatal(place: Place) -> None:
    with place.producer(**{"transaction.timeout.ms": 10_000_000}) as producer:
        with pytest.raises(TransactionFatalError, match="INVALID_TRANSACTION_TIMEOUT"):
            producer.begin_transaction()
        with pytest.raises(TransactionFatalError):
            producer.begin_transaction()


def test_a_transaction_that_ran_into_its_timeout_is_not_committed(place: Place) -> None:
    options = {"transaction.timeout.ms": 100}
    with place.producer(**options) as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"late").result(10)
        deadline = time.monotonic() + 30
        while place.admin.describe_transactions([place.name])[0].state != "CompleteAbort":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        if place.level == 2:
            with pytest.raises(TransactionAbortableError):
                producer.commit_transaction()
            producer.abort_transaction()
            with producer.transaction():
                producer.send(place.topic, b"next")
        else:
            with pytest.raises(ProducerFencedError):
                producer.commit_transaction()
    assert place.committed() == ([b"next"] if place.level == 2 else [])


def test_an_abort_gives_up_what_was_not_sent(place: Place) -> None:
    with place.producer() as producer:
        producer.begin_transaction()
        producer.send(place.topic, b"first").result(10)
        with place.broker.faults.fail("Produce", error="NOT_ENOUGH_REPLICAS", topic=place.topic):
            deliveries = [producer.send(place.topic, b"x" * 10) for _ in range(50)]
            producer.abort_transaction()
        assert all(isinstance(each.exception(5), PenstockError) for each in deliveries)
        with producer.transaction():
            producer.send(place.topic, b"next")
    assert place.committed() == [b"next"]


def test_a_block_whose_commit_is_refused_is_aborted(place: Place) -> None:
    with place.producer() as producer:
        place.broker.faults.fail("Produce", error="INVALID_RECORD", topic=place.topic, times=1)
        with pytest.raises(TransactionAbortableError), producer.transaction():
            producer.send(place.topic, b"refused")
        with producer.transaction():
            producer.send(place.topic, b"accepted")
    assert place.committed() == [b"accepted"]


def test_a_fenced_producer_reports_fencing_and_not_the_error_behind_it(place: Place) -> None:
    with place.producer() as producer:
        place.broker.faults.fail("EndTxn", error="PRODUCER_FENCED", times=1)
        with pytest.raises(ProducerFencedError, match="another producer"), producer.transaction():
            producer.send(place.topic, b"1")
        with pytest.raises(ProducerFencedError):
            producer.begin_transaction()
