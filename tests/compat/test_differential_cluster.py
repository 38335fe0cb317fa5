"""A cluster of Penstock and one of Apache Kafka give clients the same answers after the same events.

Brokers die and come back, leaders are elected, replicas and coordinators move. After each event every live
broker gets the same requests in all versions, and the answers are compared field by field: errors, leaders,
leader hints, epochs, in-sync and offline replicas, offsets, preferred replicas. Every difference that is
allowed has a row, with a reason, in `docs/reference/differences.md`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from compat.cluster_scripts import CLUSTER_SCRIPTS, ClusterTalk, ports_of
from compat.kafka_cluster import KafkaCluster as ApacheCluster
from compat.test_differential import common, unexplained
from compat.transcript import Exchange, Mismatch, compare
from penstock import Consumer, Producer, read_topic
from penstock.model import TopicPartition
from penstock.testing import KafkaCluster

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

RELEASE = "4.3.0"
RACKS = ("r1", "r2", "r3")
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
SETTINGS = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "replica.selector.class": SELECTOR,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "log.retention.ms": -1,
}


class Pair(NamedTuple):
    """The cluster of Penstock, the cluster of Apache Kafka, and the versions that both offer."""

    ours: KafkaCluster
    theirs: ApacheCluster
    ranges: dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    # Without eligible leader replicas (KIP-966), which a cluster of ours does not have.
    apache = ApacheCluster(
        RELEASE,
        tmp_path_factory.mktemp("apache"),
        racks=RACKS,
        settings=SETTINGS,
        features={"eligible.leader.replicas.version": 0},
    )
    with apache as theirs, KafkaCluster(3, racks=RACKS, config=SETTINGS) as ours:
        ranges = common(ours.bootstrap_servers, theirs.servers)
        yield Pair(ours, theirs, ranges)


def transcript(
    ports: list[int],
    kill: Callable[[int], object],
    start: Callable[[int], object],
    ranges: dict[str, tuple[int, int]],
    script: str,
) -> tuple[list[Exchange], dict[str, int]]:
    with ClusterTalk(ports, kill, start, ranges, script.replace("_", "")) as talk:
        CLUSTER_SCRIPTS[script](talk)
        return talk.exchanges, talk.marks


@pytest.mark.parametrize("script", CLUSTER_SCRIPTS)
def test_the_same_is_seen_of_the_same_events(pair: Pair, script: str) -> None:
    ours, theirs, ranges = pair
    other, marks = transcript(
        theirs.ports,
        lambda broker: theirs.kill(broker - 1),
        lambda broker: theirs.start(broker - 1),
        ranges,
        script,
    )
    # What came first there comes first here.
    fences_first = marks.get("epoch", 2) == 2
    mine, _ = transcript(
        ports_of(ours), lambda broker: ours.kill(broker, fence=fences_first), ours.start, ranges, script
    )
    found = list(compare(mine, other))
    differences = unexplained(found, RELEASE)
    print(f"{script}: {len(mine)} answers compared, {len(found) - len(differences)} explained differences")
    if differences:
        kinds: dict[tuple[str, str, str, str], list[Mismatch]] = {}
        for each in differences:
            key = each.api, each.path, str(each.ours)[:80], str(each.theirs)[:80]
            kinds.setdefault(key, []).append(each)
        shown = "\n".join(
            f"{len(alike)} times, versions {sorted({each.version for each in alike})}: {alike[0]}"
            for alike in kinds.values()
        )
        pytest.fail(f"{len(differences)} of {len(mine)} differ:\n{shown}")


def test_our_consumer_reads_from_the_nearest_replica_of_apache_kafka(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = pair.theirs
    with ClusterTalk(theirs.ports, theirs.kill, theirs.start, pair.ranges, "nearest") as talk:
        talk.make("t", [1, 2, 3])
    topic = "nearest-t"

    def produce(first: int, end: int) -> None:
        with Producer(theirs.servers, {"acks": "all"}) as producer:
            for future in [producer.send(topic, b"%d" % number) for number in range(first, end)]:
                future.result(timeout=60)

    def read(consumer: Consumer, count: int) -> list[int]:
        found: list[int] = []
        deadline = time.monotonic() + 120
        while len(found) < count and time.monotonic() < deadline:
            found += [int(record.value or b"") for record in consumer.poll(500)]
        return found

    caplog.set_level("DEBUG", "penstock.client")
    produce(0, 100)
    with Consumer(theirs.servers, {"auto.offset.reset": "earliest", "client.rack": "r3"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert read(consumer, 100) == list(range(100))
        assert f"{topic}-0 is read from broker 3, as broker 1 says" in caplog.text
        theirs.kill(2)
        try:
            produce(100, 200)
            assert read(consumer, 100) == list(range(100, 200))
        finally:
            theirs.start(2)
        assert f"{topic}-0 is read from its leader again: broker 3 has failed" in caplog.text
    table = read_topic(topic, theirs.servers, columns=["value"], config={"client.rack": "r2"})
    assert [int(value) for value in table["value"].to_pylist()] == list(range(200))
