"""Tests of the gateway's hooks and named faults, run again with three Apache Kafka 4.3 nodes behind it.

The hooks mask values, check events, add a header with the client's address, rename topics, and separate
tenants; transactions and old clients pass through them. The faults make requests fail, get lost, be damaged
or be reordered, and close connections.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from compat.kafka_cluster import KafkaCluster
from compat.peers import shared_kafka, until
from gateway import test_gateway_faults, test_hooks
from gateway.test_gateway import consume
from gateway.test_gateway_faults import gateway  # noqa: F401  a fixture
from penstock.client import Admin, Producer
from penstock.errors import KafkaError
from penstock.gateway import Gateway

confluent = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.compat, pytest.mark.soak, pytest.mark.timeout(600)]

PATIENCE_S = 120.0

for module in (test_hooks, test_gateway_faults):
    globals().update(
        {
            name: law
            for name, law in vars(module).items()
            if name.startswith("test_") and "world" not in law.__code__.co_names
        }
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    settings = {"num.partitions": 3}
    with KafkaCluster("4.3.0", tmp_path_factory.mktemp("kafka"), settings=settings) as cluster:
        found = SimpleNamespace(bootstrap_servers=cluster.servers)
        options = {"bootstrap_servers": cluster.servers, "transactional_id": "first"}
        with Producer(**options) as producer, producer.transaction():
            producer.send("first", b"1")
        assert consume(cluster.servers, "first", 1) == [1]  # so that coordinators have found their topics
        yield found


@pytest.fixture(autouse=True)
def laws_find_the_cluster(cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tests that start their own broker one Apache Kafka node instead. Delete its topics afterwards."""

    @contextmanager
    def given(**_: object) -> Iterator[SimpleNamespace]:
        servers = shared_kafka("4.3")
        try:
            yield SimpleNamespace(bootstrap_servers=servers)
        finally:
            with Admin(bootstrap_servers=servers) as admin:
                names = [name for name in admin.list_topics() if not name.startswith("__")]
                admin.delete_topics(names)
                until(lambda: not {*names} & {*admin.list_topics()}, "topics are deleted", PATIENCE_S)

    for module in (test_hooks, test_gateway_faults):
        monkeypatch.setattr(module, "KafkaBroker", given)


@pytest.fixture
def topic(cluster: SimpleNamespace, request: pytest.FixtureRequest) -> str:
    """Create a topic with one partition, named after the test; return its name."""
    name = request.node.name.replace("[", "-").replace("]", "")
    with Admin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topic(name, partitions=1, replication_factor=3)
    return name


class Application:
    """An application on librdkafka's idempotent producer that collects the outcome of each record."""

    def __init__(self, gateway: Gateway, **settings: Any) -> None:  # noqa: F811
        options = {
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,
            "socket.timeout.ms": 10_000,
        }
        self.producer = confluent.Producer(
            {"bootstrap.servers": gateway.bootstrap_servers, **options, **settings}
        )
        self.errors: list[Any] = []

    def write(self, topic: str, count: int) -> None:
        """Write numbers, each in a request of its own, some in flight."""
        for number in range(count):
            self.producer.produce(
                topic, b"%d" % number, partition=0, on_delivery=lambda error, _: self.errors.append(error)
            )
            self.producer.poll(0.01)
        assert self.producer.flush(PATIENCE_S) == 0


# Those that keep a request from its broker leave the first alone. Apache Kafka takes the first batch that it
# meets of a producer for the first that there is, and those before it, sent again, for batches that it has.
FAULTS: dict[str, Callable[[Any, str], Any]] = {
    "fail": lambda faults, topic: faults.fail(
        "Produce", "NOT_LEADER_OR_FOLLOWER", topic=topic, times=3, skip=1
    ),
    "applied": lambda faults, topic: faults.fail(
        "Produce", "REQUEST_TIMED_OUT", topic=topic, times=3, applied=True
    ),
    "delay": lambda faults, topic: faults.delay("Produce", 0.2, topic=topic, times=3),
    "drop": lambda faults, topic: faults.drop("Produce", topic=topic, times=1, applied=True),
    "close": lambda faults, topic: faults.close("Produce", topic=topic, times=3, skip=1, applied=True),
    "reset": lambda faults, topic: faults.close("Produce", topic=topic, times=3, skip=1, reset=True),
    "cut": lambda faults, topic: faults.corrupt("Produce", "cut", topic=topic, times=2),
    "reorder": lambda faults, topic: faults.reorder("Produce", topic=topic, times=4, skip=1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_producer_of_others_writes_once_and_in_order_under_each_fault(
    cluster: SimpleNamespace,
    gateway: Gateway,  # noqa: F811
    topic: str,
    fault: str,
) -> None:
    happening = FAULTS[fault](gateway.faults, topic)
    application = Application(gateway)
    application.write(topic, 60)
    assert application.errors == [None] * 60
    assert happening.count >= 1
    gateway.faults.clear()
    assert consume(cluster.bootstrap_servers, topic, 60, group_id=f"of {topic}") == list(range(60))


def test_a_group_of_others_reads_all_while_its_requests_fail(
    cluster: SimpleNamespace,
    gateway: Gateway,  # noqa: F811
    topic: str,
) -> None:
    Application(gateway).write(topic, 200)
    faults = gateway.faults
    happening = [
        faults.fail("JoinGroup", "COORDINATOR_NOT_AVAILABLE", times=1),
        faults.fail("SyncGroup", "REBALANCE_IN_PROGRESS", times=1),
        faults.close("Fetch", topic=topic, times=2),
        faults.fail("OffsetCommit", "NOT_COORDINATOR", times=1),
        faults.corrupt("Fetch", "records", topic=topic, skip=3, times=1),
    ]
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": f"of {topic}",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "fetch.message.max.bytes": 500,
        }
    )
    consumer.subscribe([topic])
    found: list[int] = []
    end = time.monotonic() + PATIENCE_S
    while len(found) < 200 and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and not message.error():
            found.append(int(message.value()))
    consumer.commit(asynchronous=False)
    consumer.close()
    assert found == list(range(200))
    assert [each.count for each in happening[:4]] == [1, 1, 2, 1]


def test_a_refusal_reaches_a_producer_of_others(gateway: Gateway, topic: str) -> None:  # noqa: F811
    from penstock.gateway.hooks import Refused

    @gateway.on_batches("Produce")
    def short_ones(batch: Any) -> None:
        if batch.topic == topic and max(map(len, batch.table["value"].to_pylist())) > 2:
            raise Refused("POLICY_VIOLATION", "values of at most two bytes")

    application = Application(gateway)
    application.write(topic, 60)
    application.producer.produce(
        topic, b"long", partition=0, on_delivery=lambda error, _: application.errors.append(error)
    )
    application.producer.flush(PATIENCE_S)
    assert application.errors[:60] == [None] * 60
    assert application.errors[60].code() == confluent.KafkaError.POLICY_VIOLATION


def test_a_hook_of_a_cluster_that_raises_ends_that_request_only(gateway: Gateway) -> None:  # noqa: F811
    calls = threading.Semaphore(0)

    @gateway.on_request("DescribeGroups")
    def broken(request: Any) -> None:
        calls.release()
        raise RuntimeError("broken")

    with Admin(bootstrap_servers=gateway.bootstrap_servers) as admin:
        with pytest.raises(KafkaError):
            admin.describe_groups(["g"])
        assert calls.acquire(timeout=0)
        assert "first" in set(admin.list_topics())
