"""Tests of chaos runs: faults happen at their planned times, failures are named, shortened and replayed."""

from __future__ import annotations

import asyncio
import inspect
import unittest
from collections.abc import Iterator

import pytest

from for_each import for_each
from penstock import Admin, AsyncProducer, Consumer, Producer, TopicPartition
from penstock.errors import ConfigError, KafkaError, PenstockError
from penstock.testing import KafkaBroker, KafkaCluster
from penstock.testing.chaos import ChaosError, History, HistoryError, chaos, explore
from penstock.testing.chaos.arming import Armed
from penstock.testing.chaos.plan import KINDS, Plan, PlannedFault
from penstock.testing.chaos.runs import ChaosRun

FAST = {"retry_backoff_ms": 1, "reconnect_backoff_ms": 1}


def plan_of(*faults: PlannedFault) -> Plan:
    return Plan(1, 1, faults)


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as broker:
        yield broker


def send_five(servers: str, topic: str) -> None:
    with Producer(servers, linger_ms=0, **FAST) as producer:  # type: ignore[arg-type]
        for number in range(5):
            producer.send(topic, b"%d" % number).result(10)


@pytest.mark.parametrize(
    "fault",
    [
        PlannedFault("lost_answers", "Produce", 2),
        PlannedFault("lost_requests", "Produce", 2),
        PlannedFault("cut_answers", "Produce", 2),
        PlannedFault("errors", "Produce", 2, 2, "NOT_ENOUGH_REPLICAS"),
        PlannedFault("delays", "Produce", 2, 1, "5"),
        PlannedFault("slow_disks", "Produce", 1, 2, "5"),
        PlannedFault("leaders_move", "Produce", 2),
        PlannedFault("rebalances", "Produce", 2),
        PlannedFault("clocks", "Produce", 2, 1, "46000"),
        PlannedFault("restarts", "Produce", 2),
    ],
    ids=lambda fault: fault.kind,
)
def test_an_idempotent_producer_gets_over_it(broker: KafkaBroker, fault: PlannedFault) -> None:
    topic = broker.create_topic()
    run = ChaosRun(plan_of(fault))
    run.attach(broker)
    with run.history.watching():
        send_five(broker.bootstrap_servers, topic)
    run.disarm()
    assert run.happened == (1,)
    assert not broker.faults.active
    run.check({"writes_once": True})
    values = [record.value for record in run.history.logs[TopicPartition(topic, 0)].records]
    assert values == [b"0", b"1", b"2", b"3", b"4"]


@for_each([name for name in KINDS if name not in ("silence", "refusals")])
def test_every_kind_can_be_put_into_a_cluster(kind: str) -> None:
    import random

    dice = random.Random(kind)
    drawn = [KINDS[kind].draw(kind, dice) for _ in range(40)]
    fault = next(each for each in drawn if each.api in ("Produce", "OffsetCommit"))._replace(skip=1)
    with KafkaCluster(brokers=3) as cluster:
        topic = cluster.create_topic(replicas=[[1, 2, 3]])
        armed = Armed(cluster, plan_of(fault))
        send_five(cluster.bootstrap_servers, topic)
        if fault.api == "OffsetCommit":
            with Consumer(cluster.bootstrap_servers, group_id="g", **FAST) as consumer:  # type: ignore[arg-type]
                consumer.assign([(topic, 0)])
                for offset in range(3):
                    consumer.commit({TopicPartition(topic, 0): offset})
        armed.disarm()
        assert armed.happened == (1,)


def test_a_leader_and_a_coordinator_move() -> None:
    with KafkaCluster(brokers=3) as cluster:
        topic = cluster.create_topic(replicas=[[1, 2, 3]])
        armed = Armed(cluster, plan_of(PlannedFault("leaders_move", "Produce", 1)))
        send_five(cluster.bootstrap_servers, topic)
        armed.disarm()
        assert cluster.partition(topic).leader != 1
        with Consumer(cluster.bootstrap_servers, group_id="g", **FAST) as consumer:  # type: ignore[arg-type]
            consumer.assign([(topic, 0)])
            consumer.commit({TopicPartition(topic, 0): 0})
            before = cluster.coordinator(group="g")
            armed = Armed(cluster, plan_of(PlannedFault("coordinators_move", "OffsetCommit", 0)))
            consumer.commit({TopicPartition(topic, 0): 1})
            armed.disarm()
            assert cluster.coordinator(group="g") != before
            consumer.commit({TopicPartition(topic, 0): 2})


@pytest.mark.parametrize("protocol", ["classic", "clock"])
def test_members_are_expelled_before_the_request_is_handled(broker: KafkaBroker, protocol: str) -> None:
    topic = broker.create_topic()
    kind = ("rebalances", "") if protocol == "classic" else ("clocks", "46000")
    with Consumer(broker.bootstrap_servers, group_id="g", enable_auto_commit=False) as consumer:
        consumer.subscribe(topic)
        while not consumer.assignment():
            consumer.poll(10)
        armed = Armed(broker, plan_of(PlannedFault(kind[0], "OffsetCommit", 1, 1, kind[1])))
        consumer.commit({TopicPartition(topic, 0): 0})
        with pytest.raises(KafkaError) as raised:
            consumer.commit({TopicPartition(topic, 0): 1})
        assert raised.value.name == "UNKNOWN_MEMBER_ID"
        armed.disarm()


def test_faults_are_paused(broker: KafkaBroker) -> None:
    topic = broker.create_topic()
    run = ChaosRun(plan_of(PlannedFault("errors", "Produce", 0, 1, "NOT_ENOUGH_REPLICAS")))
    run.attach(broker)
    with run.paused():
        send_five(broker.bootstrap_servers, topic)
    assert run.happened == ()
    send_five(broker.bootstrap_servers, topic)
    assert run.happened == (1,)
    assert repr(run) == "<ChaosRun 1:1>"


# --- explore ---------------------------------------------------------------------------------------------


def sends_twice(kafka_broker: KafkaBroker, kafka_topic: str, kafka_history: History) -> None:
    """Write records with a producer that retries without idempotence, so that duplicates occur."""
    assert kafka_history.events == []
    with Producer(kafka_broker.bootstrap_servers, enable_idempotence=False, **FAST) as producer:  # type: ignore[arg-type]
        for number in range(4):
            producer.send(kafka_topic, b"%d" % number).result(10)


def test_a_failure_is_named_shortened_and_replayed() -> None:
    with pytest.raises(ChaosError) as raised:
        explore(sends_twice, seed=3, writes_once=True)
    failure = raised.value.failure
    assert failure is not None
    assert failure.name == "DuplicateWrite"
    assert len(failure.shortest.faults) == 1
    assert failure.shortest.faults[0].kind in ("lost_answers", "cut_answers")
    text = str(raised.value)
    assert f'replay: explore(test, ..., replay="{failure.shortest}")' in text
    assert "found: DuplicateWrite: (key null, value" in text
    assert isinstance(raised.value.__cause__, HistoryError)
    for _ in range(3):
        with pytest.raises(ChaosError) as again:
            explore(sends_twice, replay=str(failure.shortest), writes_once=True)
        assert again.value.failure is not None
        assert again.value.failure.name == "DuplicateWrite"
        assert again.value.failure.shortest == failure.shortest


def test_a_right_test_passes_all_runs() -> None:
    def sends_once(kafka_broker: KafkaBroker, kafka_topic: str, kafka_history: History) -> None:
        send_five(kafka_broker.bootstrap_servers, kafka_topic)

    assert explore(sends_once, seed=3, runs=40, writes_once=True) == 40


def test_a_test_that_fails_without_faults() -> None:
    def wrong(kafka_broker: KafkaBroker) -> None:
        raise RuntimeError("always")

    with pytest.raises(
        ChaosError, match=r"run 0 of seed 0 fails: RuntimeError\nwithout any fault\nraised: .*always"
    ):
        explore(wrong)


def test_a_cluster_and_settings() -> None:
    def in_a_cluster(kafka_cluster: KafkaCluster) -> None:
        with Admin(kafka_cluster.bootstrap_servers) as admin:
            admin.create_topic("orders")
            assert admin.describe_topics(["orders"])[0].partitions

    assert explore(in_a_cluster, runs=2, faults=["delays"], settings={"brokers": 2}) == 2


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="has a parameter 'broker'; a run gives kafka_broker"):
        explore(lambda broker: None)
    with pytest.raises(ConfigError, match="has no parameter"):
        explore(lambda: None)
    with pytest.raises(ConfigError, match="chaos has no argument 'exactly_one'"):
        chaos(exactly_one=True)
    with pytest.raises(ConfigError, match="exactly_once=1: exactly_once is True or False"):
        chaos(exactly_once=1)  # type: ignore[arg-type]


# --- the decorator ---------------------------------------------------------------------------------------


def test_a_test_of_unittest() -> None:
    seen: list[int] = []

    class Case(unittest.TestCase):
        @chaos(seed=3, runs=3, writes_once=True)
        def test_it(self, kafka_broker: KafkaBroker, kafka_topic: str, kafka_history: History) -> None:
            seen.append(kafka_broker.port)
            assert kafka_history.events == []
            sends_twice(kafka_broker, kafka_topic, kafka_history)

    result = unittest.TestResult()
    Case("test_it").run(result)
    assert result.wasSuccessful(), result.errors
    assert len(seen) == 3


async def sends_twice_for_asyncio(
    kafka_broker: KafkaBroker, kafka_topic: str, kafka_history: History
) -> None:
    async with AsyncProducer(kafka_broker.bootstrap_servers, enable_idempotence=False, **FAST) as producer:  # type: ignore[arg-type]
        for number in range(4):
            await producer.send_and_wait(kafka_topic, b"%d" % number)


def test_a_program_for_asyncio() -> None:
    with pytest.raises(ChaosError, match="fails: DuplicateWrite"):
        explore(sends_twice_for_asyncio, seed=3, writes_once=True)


def test_an_asyncio_test_of_unittest() -> None:
    class Case(unittest.IsolatedAsyncioTestCase):
        @chaos(seed=3, writes_once=True)
        async def test_it(self, kafka_broker: KafkaBroker, kafka_topic: str, kafka_history: History) -> None:
            await sends_twice_for_asyncio(kafka_broker, kafka_topic, kafka_history)

    result = unittest.TestResult()
    Case("test_it").run(result)
    assert len(result.failures) == 1
    assert "fails: DuplicateWrite" in result.failures[0][1]
    assert 'replay: @chaos(..., replay="3:' in result.failures[0][1]

    @chaos()
    async def double(kafka_broker: int) -> int:
        return 2 * kafka_broker

    assert inspect.iscoroutinefunction(double)
    assert asyncio.run(double(4)) == 8


def test_called_with_its_arguments_it_is_the_test_itself() -> None:
    @chaos(seed=3)
    def double(kafka_broker: int) -> int:
        """Twice."""
        return 2 * kafka_broker

    assert double(4) == 8
    assert double(kafka_broker=5) == 10
    assert double.__doc__ == "Twice."


def test_what_the_test_raises_is_the_cause() -> None:
    error = PenstockError("no")

    @chaos(runs=1)
    def wrong(kafka_broker: KafkaBroker) -> None:
        raise error

    with pytest.raises(ChaosError) as raised:
        wrong()  # type: ignore[call-arg]
    assert raised.value.__cause__ is error


# --- pytest ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> Iterator[list[tuple[int, int]]]:
    """Yield a list to which a test adds the number and the broker's port of each run.

    Raise AssertionError unless it has five runs.
    """
    seen: list[tuple[int, int]] = []
    yield seen
    assert [number for number, _ in seen] == [0, 1, 2, 3, 4]


@chaos(seed=3, runs=5, writes_once=True)
def test_the_decorator_here(
    kafka_broker: KafkaBroker, kafka_topic: str, kafka_chaos: ChaosRun, runs: list[tuple[int, int]]
) -> None:
    runs.append((kafka_chaos.plan.run, kafka_broker.port))
    send_five(kafka_broker.bootstrap_servers, kafka_topic)
    assert len(kafka_chaos.history.events) >= 5


def test_a_history_without_chaos(kafka_history: History, kafka_broker: KafkaBroker, kafka_topic: str) -> None:
    kafka_history.attach(kafka_broker)
    send_five(kafka_broker.bootstrap_servers, kafka_topic)
    assert len(kafka_history.events) == 5
    kafka_history.check(writes_once=True)
