"""Penstock's and Java's share consumers and tools, used together at Apache Kafka and at Penstock."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.peers import java, java_command, maven_classpath, real_kafka
from penstock import Admin, Broker, Producer, ShareConsumer, TopicPartition
from penstock.cli import main
from penstock.model import ShareRecord

pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]

KAFKA = "4.4.0"
PATIENCE_S = 120.0
SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}
OF_KAFKA = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}
COUNT = 300


@pytest.fixture(scope="module", params=["Penstock", pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "Penstock":
        with Broker(config=SETTINGS) as broker:
            yield broker.bootstrap_servers
    else:
        with real_kafka(KAFKA, SETTINGS | OF_KAFKA) as found:
            yield found


@pytest.fixture(scope="module")
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as made:
        yield made


def begin(admin: Admin, name: str, partitions: int = 2) -> str:
    """Create a topic, and let the share group of its name start at the earliest offset."""
    admin.create_topic(name, partitions=partitions)
    admin.alter_config(group=name, set={"share.auto.offset.reset": "earliest"})
    return name


def fill(servers: str, topic: str, numbers: range) -> None:
    with Producer(servers) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % 2)


def wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.1)


def member_count(admin: Admin, group: str) -> int:
    if group not in [each.group_id for each in admin.list_share_groups()]:
        return 0
    return len(admin.describe_share_groups([group])[0].members)


def test_a_group_of_java_s_member_and_ours_has_each_record_once(
    servers: str, admin: Admin, tmp_path: Path
) -> None:
    topic = begin(admin, "both")
    console = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    command = java_command(
        maven_classpath(f"kafka-{KAFKA}"),
        console,
        *("--bootstrap-server", servers, "--topic", topic, "--group", topic, "--timeout-ms", 15_000),
        *("--formatter-property", "print.value=true"),
    )
    output = tmp_path / "java.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
    try:
        seen: Counter[bytes] = Counter()

        def handle(record: ShareRecord) -> None:
            time.sleep(0.002)
            assert record.value is not None
            seen[record.value] += 1
            if len(seen) + len(of_java()) >= COUNT:
                consumer.stop()

        def of_java() -> list[bytes]:
            return [line for line in output.read_bytes().split() if line.isdigit()]

        with ShareConsumer(servers, group_id=topic) as consumer:
            consumer.subscribe(topic)
            wait_until(lambda: consumer.poll(100) == [] and member_count(admin, topic) == 2)
            fill(servers, topic, range(COUNT))
            summary = consumer.run(handle, workers=2, idle_ms=8_000)
        assert summary.refused == 0
        wait_until(lambda: len(of_java()) + len(seen) >= COUNT)
        process.terminate()
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    everything = seen + Counter(of_java())
    assert everything == Counter(b"%d" % number for number in range(COUNT))
    assert seen
    assert of_java()


def test_what_is_released_rejected_and_renewed_is_as_the_broker_counts_it(servers: str, admin: Admin) -> None:
    topic = begin(admin, "decided", partitions=2)
    fill(servers, topic, range(20))
    options = {"group.id": topic, "share.acknowledgement.mode": "explicit"}
    deliveries: Counter[int] = Counter()
    with ShareConsumer(servers, options, value_deserializer=int) as consumer:
        consumer.subscribe(topic)
        done: set[int] = set()
        renewed = 0
        deadline = time.monotonic() + PATIENCE_S
        while len(done) < 20:
            assert time.monotonic() < deadline, done
            for record in consumer.poll():
                number = record.value
                deliveries[number] = max(deliveries[number], record.delivery_count)
                if number == 7 and record.delivery_count < 3:
                    consumer.acknowledge(record, "release")
                elif number == 8 and not renewed:
                    renewed += 1
                    consumer.acknowledge(record, "renew")
                else:
                    consumer.acknowledge(record, "reject" if number == 9 else "accept")
                    done.add(number)
        assert set(consumer.commit().values()) <= {None}
    assert deliveries[7] == 3
    assert deliveries[8] == deliveries[9] == 1
    wait_until(lambda: sum(at.lag or 0 for at in admin.list_share_group_offsets(topic).values()) == 0)


def test_arrow_batches_are_acknowledged_by_their_rows(servers: str, admin: Admin) -> None:
    pytest.importorskip("pyarrow")
    topic = begin(admin, "rows")
    fill(servers, topic, range(100))
    options = {"group.id": topic, "share.acknowledgement.mode": "explicit"}
    released: set[tuple[int, int]] = set()
    rows = 0
    with ShareConsumer(servers, options) as consumer:
        consumer.subscribe(topic)
        deadline = time.monotonic() + PATIENCE_S
        while rows < 100:
            assert time.monotonic() < deadline, rows
            batch = consumer.poll_arrow()
            if batch is None:
                continue
            first = {
                (number, offset)
                for number, offset, count in zip(
                    *(batch[name].to_pylist() for name in ("partition", "offset", "deliveryCount")),
                    strict=True,
                )
                if count == 1
            }
            if first and not released:
                released = {min(first)}
                consumer.acknowledge(batch.slice(0, 1), "release")
                consumer.acknowledge(batch.slice(1), "accept")
                rows += batch.num_rows - 1
            else:
                assert first.isdisjoint(released)
                consumer.acknowledge(batch, "accept")
                rows += batch.num_rows
        assert set(consumer.commit().values()) <= {None}


def test_java_s_tool_and_ours_see_one_group(
    servers: str, admin: Admin, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = begin(admin, "tools")
    fill(servers, topic, range(10))
    with ShareConsumer(servers, group_id=topic) as consumer:
        consumer.subscribe(topic)
        for count, _ in enumerate(consumer, 1):
            if count == 10:
                break
    where = ("-b", servers)

    def ours(*words: str) -> str:
        assert main(["share", *words, *where]) == 0
        return capsys.readouterr().out

    assert topic in ours("list").split()
    assert ours("describe", topic).startswith(f"share group {topic}, Empty")
    wait_until(lambda: "total lag 0" in ours("lag", topic))
    ours("reset", topic, "--topic", topic, "--to-offset", "2", "--execute")
    offsets = admin.list_share_group_offsets(topic)
    assert [at.start_offset for at in offsets.values()] == [2, 2]

    tool = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    args = ("--bootstrap-server", servers, "--describe", "--group", topic)
    done = java(maven_classpath(f"kafka-{KAFKA}"), tool, *args, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(topic)]
    assert [row[:4] for row in sorted(rows)] == [[topic, topic, "0", "2"], [topic, topic, "1", "2"]]

    ours("delete", topic, "--topic", topic)
    assert admin.list_share_group_offsets(topic) == {}
    ours("delete", topic)
    assert topic not in ours("list").split()
    assert main(["share", "lag", topic, *where]) != 0
    assert "no share group" in capsys.readouterr().err


def test_settings_of_a_group_are_shown(admin: Admin) -> None:
    admin.alter_config(group="settled", set={"share.delivery.count.limit": 3})
    shown = admin.describe_config(group="settled")
    assert shown["share.delivery.count.limit"].value == "3"
    assert shown["share.auto.offset.reset"].is_default
    unread = admin.list_share_group_offsets("settled", [TopicPartition("nowhere", 0)])
    assert [at.start_offset for at in unread.values()] == [None]
