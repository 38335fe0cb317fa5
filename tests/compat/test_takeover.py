"""Data directories of Apache Kafka: Penstock takes them over completely, or refuses and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from compat.handover import Turns, again
from compat.peers import CLUSTER_ID, PATIENCE_S, java, maven_classpath, real_kafka, until
from penstock import Admin, Broker, read_topic
from penstock.broker.metadata.directory_levels import describe
from penstock.errors import StorageError
from penstock.records.format.batch_header import read_header, split_batches

pytestmark = pytest.mark.compat

VERSION = "4.4.0"

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 500}
"""Settings that let Apache Kafka write a metadata snapshot every 500 bytes of records."""


def state_of(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def refused(directory: Path, said: str) -> None:
    """Assert that Penstock's broker refuses the directory with this error, and changes no byte of it."""
    before = state_of(directory)
    with pytest.raises(StorageError, match=f"cannot be taken over whole.*{said}"), Broker(data_dir=directory):
        pass
    assert state_of(directory) == before


def send(servers: str, topic: str, count: int, partition: int = 0) -> list[int]:
    """Write records with an idempotent producer; return their offsets."""
    offsets: list[int] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
    for number in range(count):
        producer.produce(
            topic, b"%d" % number, partition=partition, on_delivery=lambda _, m: offsets.append(m.offset())
        )
    assert producer.flush(PATIENCE_S) == 0
    return offsets


def committed(servers: str, group: str, place: Place) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "log_level": 0})
    try:
        [found] = consumer.committed([place], timeout=PATIENCE_S)
        return int(found.offset)
    finally:
        consumer.close()


def wait_for_marker(servers: str, topic: str) -> None:
    """Wait until a committed record can be read.

    Apache Kafka answers the end of a transaction before it writes the marker.
    """
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "m", "isolation.level": "read_committed", "log_level": 0}
    )
    try:
        consumer.assign([Place(topic, 0, 0)])
        until(lambda: consumer.poll(1) is not None, "the marker")
    finally:
        consumer.close()


def test_a_directory_goes_there_and_back(tmp_path: Path) -> None:
    """Apache Kafka stops cleanly twice, so leader epochs rise; then Penstock and Kafka use the directory.

    Before Penstock starts, a snapshot replaces the metadata log, as happens in Apache Kafka after some
    days.
    """
    directory = tmp_path / "data"
    with real_kafka(VERSION, SNAPSHOTS, directory=tmp_path, in_order=True) as servers:
        admin = AdminClient({"bootstrap.servers": servers})
        wanted = [NewTopic("a", 1, 1, config={"retention.ms": "86400000"}), NewTopic("gone", 1, 1)]
        for future in admin.create_topics(wanted).values():
            future.result(PATIENCE_S)
        admin.create_partitions([NewPartitions("a", 2)])["a"].result(PATIENCE_S)
        assert send(servers, "a", 10) == list(range(10))
        admin.delete_topics(["gone"])["gone"].result(PATIENCE_S)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
        again(lambda: consumer.commit(offsets=[Place("a", 0, 7)], asynchronous=False))
        consumer.close()
    with real_kafka(VERSION, directory=tmp_path, in_order=True) as servers:
        assert send(servers, "a", 10) == list(range(10, 20))
    cut_to_snapshot(directory / "__cluster_metadata-0")
    with Broker(data_dir=directory) as broker:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as ours:
            assert "a" in ours.list_topics()
            assert "gone" not in ours.list_topics()
            assert ours.describe_config("a")["retention.ms"].value == "86400000"
        assert committed(servers, "g", Place("a", 0)) == 7
        assert send(servers, "a", 5) == list(range(20, 25)), "a new producer's id is new"
        assert read_topic("a", servers).num_rows == 25
        server = broker.server
        assert server is not None
        epoch = server.node.cluster.topic("a").partition(0).leader_epoch
        assert epoch == 4, "1 and 3 had no leader, as Apache Kafka stopped"
    with real_kafka(VERSION, directory=tmp_path, in_order=True) as servers:
        assert send(servers, "a", 5) == list(range(25, 30))
        assert send(servers, "a", 5, partition=1) == list(range(5))
        assert committed(servers, "g", Place("a", 0)) == 7
        assert read_topic("a", servers).num_rows == 35
        admin = AdminClient({"bootstrap.servers": servers})
        resource = ConfigResource(ConfigResource.Type.TOPIC, "a")
        [described] = admin.describe_configs([resource]).values()
        assert described.result(PATIENCE_S)["retention.ms"].value == "86400000"
        log = (tmp_path / "server.log").read_text(errors="replace")
        assert "conflicting entries" not in log, "raft epochs have not gone back"
        assert "stray" not in log.lower()
    with Broker(data_dir=directory) as broker:
        assert send(broker.bootstrap_servers, "a", 1) == [30]


def cut_to_snapshot(metadata: Path) -> None:
    """Truncate the start of the metadata log to its newest snapshot, as Apache Kafka does later on."""
    end_offset = max(int(path.name[:20]) for path in metadata.glob("*.checkpoint"))
    assert end_offset > 0
    [log] = metadata.glob("*.log")
    data = log.read_bytes()
    kept = [
        data[start:end]
        for start, end, _ in split_batches(data)
        if read_header(data, start).base_offset >= end_offset
    ]
    for path in metadata.glob("0*.*"):
        if path.suffix in (".log", ".index", ".timeindex") or path.name.startswith("0" * 20):
            path.unlink()
    (metadata / f"{end_offset:020d}.log").write_bytes(b"".join(kept))


@pytest.mark.soak
def test_metadata_that_snapshots_have_cut(tmp_path: Path) -> None:
    """Apache Kafka itself deletes metadata log segments, which it does once a minute."""
    settings = {
        **SNAPSHOTS,
        "metadata.max.retention.bytes": 1000,
        "internal.metadata.log.segment.bytes": 9000,
    }
    metadata = tmp_path / "data" / "__cluster_metadata-0"
    with real_kafka(VERSION, settings, directory=tmp_path, in_order=True) as servers:
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("a", 1, 1)])["a"].result(PATIENCE_S)
        assert send(servers, "a", 3) == [0, 1, 2]
        until(lambda: not (metadata / f"{0:020d}.log").exists(), "cleaning of the metadata log", 240)
    for number in range(2):
        with Broker(data_dir=tmp_path / "data") as broker:
            servers = broker.bootstrap_servers
            assert send(servers, "a", 1) == [3 + 2 * number]
            with Admin(bootstrap_servers=servers) as ours:
                ours.create_topic(f"ours-{number}", 1)
        with real_kafka(VERSION, settings, directory=tmp_path, in_order=True) as servers:
            assert send(servers, "a", 1) == [4 + 2 * number]
            assert send(servers, f"ours-{number}", 1) == [0]


@pytest.mark.parametrize(
    ("version", "rounds"),
    [("4.4.0", 1), *(pytest.param(each, 3, marks=pytest.mark.soak) for each in ("4.4.0", "4.3.0", "3.9.1"))],
)
def test_apache_kafka_starts_where_our_metadata_log_is_cut(version: str, rounds: int, tmp_path: Path) -> None:
    """Penstock and Apache Kafka take turns; Penstock truncates the metadata log each time.

    The directory has a dynamic quorum.
    """
    turns = Turns(tmp_path, dynamic_quorum=True)
    metadata = turns.directory / "__cluster_metadata-0"
    level = version.rpartition(".")[0]
    small = (
        "metadata.log.max.record.bytes.between.snapshots=3000",
        "metadata.max.retention.bytes=9000",
        f"penstock.metadata.version={level}",
    )

    def first_offset() -> int:
        return min((int(path.stem) for path in metadata.glob("*.log")), default=0)

    topics: list[str] = []
    cut_at = 0
    for number in range(rounds):
        with turns.ours(*small, killed=number % 2 == 1) as servers, Admin(servers) as admin:
            assert sorted(admin.list_topics()) == topics
            topics += [f"a{number}", f"b{number}"]
            admin.create_topic(f"a{number}", 1, config={"retention.ms": "86400000"})
            assert send(servers, f"a{number}", 3) == [0, 1, 2]
            while first_offset() == cut_at:
                admin.create_topic("gone", 30)
                admin.delete_topics(["gone"])
            cut_at = first_offset()
            admin.create_topic(f"b{number}", 1)
        with turns.kafka(version) as servers, Admin(servers) as admin:
            topics.sort()
            assert sorted(admin.list_topics()) == topics
            for each in range(number + 1):
                assert admin.describe_config(f"a{each}")["retention.ms"].value == "86400000"
                assert send(servers, f"a{each}", 1) == [3 + number - each]
            topics += [f"c{number}"]
            admin.create_topic(f"c{number}", 1)
    with turns.ours(*small) as servers, Admin(servers) as admin:
        assert sorted(admin.list_topics()) == sorted(topics)
        assert send(servers, "a0", 1) == [3 + rounds]
    log = (tmp_path / "server.log").read_text(errors="replace")
    assert "stray" not in log.lower()
    assert "conflicting entries" not in log


@pytest.mark.soak
@pytest.mark.parametrize("words", [(), ("--standalone",)], ids=["static voters", "dynamic quorum"])
def test_a_directory_that_was_only_formatted(words: tuple[str, ...], tmp_path: Path) -> None:
    """Penstock applies the users and feature levels that `kafka-storage format` wrote for the first start.

    Apache Kafka then continues with the directory.
    """
    turns = Turns(tmp_path, dynamic_quorum=bool(words))
    properties = tmp_path / "format.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=PLAINTEXT://{turns.servers},{turns.controller_listener}\nlog.dirs={turns.directory}\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        + ("" if words else f"controller.quorum.voters=1@{turns.controller_listener.partition('//')[2]}\n")
        + ("controller.quorum.bootstrap.servers=127.0.0.1:9093\n" if words else "")
    )
    user = ("--add-scram", "SCRAM-SHA-256=[name=ann,password=secret]", "--release-version", "4.1-IV1")
    asked = ("format", "-t", CLUSTER_ID, "-c", properties, *user, *words)
    java(maven_classpath(f"kafka-{VERSION}"), "kafka.tools.StorageTool", *asked, check=True)
    for number in range(2):
        with turns.ours() as servers, Admin(servers) as admin:
            assert list(admin.list_users()) == ["ann"]
            if not number:
                admin.create_topic("a", 1)
            assert send(servers, "a", 1) == [2 * number]
        assert describe(str(turns.directory)).level == 27
        with turns.kafka(VERSION) as servers, Admin(servers) as admin:
            assert list(admin.list_users()) == ["ann"]
            assert send(servers, "a", 1) == [2 * number + 1]


def test_transactions(tmp_path: Path) -> None:
    """Penstock shows committed transactions and hides aborted ones.

    A new producer with the transactional id aborts the one left open.
    """

    def values(broker: Broker, topic: str, isolation: str = "read_committed") -> list[bytes]:
        rows = read_topic(topic, broker.bootstrap_servers, isolation=isolation)
        return [value.as_py() for value in rows["value"]]

    def begin(servers: str, topic: str, value: bytes) -> Producer:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "x", "log_level": 0})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(topic, value)
        assert producer.flush(PATIENCE_S) == 0
        return producer

    with real_kafka(VERSION, directory=tmp_path, in_order=True) as servers:
        admin = AdminClient({"bootstrap.servers": servers})
        for name in ("a", "b"):
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)
        begin(servers, "a", b"committed").commit_transaction(60)
        wait_for_marker(servers, "a")
        begin(servers, "b", b"aborted").abort_transaction(60)
        index = tmp_path / "data" / "b-0" / f"{0:020d}.txnindex"
        until(lambda: index.exists() and index.stat().st_size > 0, "the marker")
        begin(servers, "b", b"open")
    with Broker(data_dir=tmp_path / "data") as broker:
        assert values(broker, "a") == [b"committed"]
        assert values(broker, "b") == []
        assert values(broker, "b", "read_uncommitted") == [b"aborted", b"open"]
        begin(broker.bootstrap_servers, "b", b"ours").commit_transaction(60)
        assert values(broker, "b") == [b"ours"]


@pytest.mark.parametrize("version", ["4.3.0", pytest.param(VERSION, marks=pytest.mark.again)])
def test_two_log_directories(version: str, tmp_path: Path) -> None:
    first, second = tmp_path / "data", tmp_path / "second"
    settings = {"log.dirs": f"{first},{second}"}
    with real_kafka(version, settings, directory=tmp_path, in_order=True) as servers:
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("a", 4, 1)])["a"].result(PATIENCE_S)
        for partition in range(4):
            assert send(servers, "a", 3, partition) == [0, 1, 2]
    assert list(first.glob("a-*"))
    assert list(second.glob("a-*"))
    refused(first, "lies in another directory of log.dirs")
    if version == "4.3.0":  # 4.4 leaves nothing in the second directory that would show it
        refused(second, "its metadata are elsewhere")
    with Broker(config={"log.dirs": f"{second},{first}"}) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as ours:
            ours.create_topic("b", 4)
        for partition in range(4):
            assert send(servers, "a", 3, partition) == [3, 4, 5]
            assert send(servers, "b", 1, partition) == [0]
    assert len(list(first.glob("b-*"))) == len(list(second.glob("b-*"))) == 2
    with real_kafka(version, settings, directory=tmp_path, in_order=True) as servers:
        for partition in range(4):
            assert send(servers, "a", 1, partition) == [6]
            assert send(servers, "b", 1, partition) == [1]
    log = (tmp_path / "server.log").read_text(errors="replace")
    assert "stray" not in log.lower()
