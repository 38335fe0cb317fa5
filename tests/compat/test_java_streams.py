"""Kafka Streams, unchanged, against Penstock: its state stores, internal topics and rebalances.

`make soak` also runs the tests against three Penstock brokers, and against Apache Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.peers import PATIENCE_S, java, maven_classpath, real_kafka, until
from compat.places import ONE_AND_LATER_THREE, PLACES, made
from compat.streams_application import (
    BEGIN_MS,
    BY_STREAMS_GROUPS,
    GROUP_SETTINGS,
    STEP_MS,
    WINDOW_MS,
    Start,
    Writer,
    has_all,
    numbers,
    read,
    starting,
)
from penstock import Admin, Broker
from penstock.client import StreamsGroupDescription

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

SETTINGS = {"offsets.topic.num.partitions": "5", "num.partitions": "3"}


@pytest.fixture
def start() -> Iterator[Start]:
    """Provide a function that starts instances; all of them are killed when the test ends."""
    with starting() as started:
        yield started


@pytest.fixture(params=[*ONE_AND_LATER_THREE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param in PLACES:
        with made(request.param, tmp_path / "data", SETTINGS) as brokers:
            yield brokers.bootstrap_servers
    else:
        with real_kafka("4.3.0", settings=SETTINGS) as found:
            yield found


def test_word_count(servers: str, start: Start, tmp_path: Path) -> None:
    """Two instances share the tasks; when one is killed, the other restores its state from the changelog."""
    writer = Writer(servers)
    writer.prepare()
    writer.write(300)
    first = start(servers, "wordcount", tmp_path / "first")
    second = start(servers, "wordcount", tmp_path / "second", "num.stream.threads=2")
    until(lambda: first.is_running and second.is_running, "both instances")
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the counts")
    until(lambda: set(read(servers, "named")) == writer.named, "the names")
    first_window = Counter(f"key {number % 9}@{BEGIN_MS}" for number in range(WINDOW_MS // STEP_MS))
    until(lambda: has_all(numbers(servers, "windows"), first_window), "the windows")

    first.kill()
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the rest")
    until(lambda: second.is_running, "the one that is left")
    until(lambda: second.ask("a") == numbers(servers, "counts")["a"], "its store and what it told")
    with Admin(bootstrap_servers=servers) as admin:
        made = {topic for topic in admin.list_topics() if topic.startswith("wordcount-")}
        changelog = admin.describe_config("wordcount-counts-changelog")
    assert {"wordcount-words-repartition", "wordcount-counts-changelog"} <= made
    assert changelog["cleanup.policy"].value == "compact"
    second.close()
    _reset(servers)


def _reset(servers: str) -> None:
    """Run Apache Kafka's reset tool, which resets the group's offsets and deletes the internal topics."""
    asked = ("--bootstrap-server", servers, "--application-id", "wordcount", "--input-topics", "lines")
    tool = "org.apache.kafka.tools.StreamsResetter"
    java(maven_classpath("kafka-4.3.0"), tool, *asked, "--force", check=True)
    with Admin(bootstrap_servers=servers) as admin:
        until(lambda: not any(t.startswith("wordcount-") for t in admin.list_topics()), "their end")


def test_exactly_once_where_instances_are_killed(servers: str, start: Start, tmp_path: Path) -> None:
    """Each word is counted once, although two instances are killed and lose their local state."""
    guarantee = "processing.guarantee=exactly_once_v2"
    writer = Writer(servers)
    writer.prepare()
    writer.write(300)
    first = start(servers, "exact", tmp_path / "first", guarantee)
    until(lambda: sum(numbers(servers, "counts").values()) > 200, "the first counts")
    writer.write(300)
    first.kill()
    second = start(servers, "exact", tmp_path / "second", guarantee)
    until(lambda: numbers(servers, "counts") == dict(writer.words), "every word, once")
    writer.write(300)
    second.kill()
    third = start(servers, "exact", tmp_path / "third", guarantee)
    until(lambda: numbers(servers, "counts") == dict(writer.words), "every word of the rest, once")
    third.close()
    assert numbers(servers, "counts") == dict(writer.words)


@pytest.fixture(params=[*ONE_AND_LATER_THREE, pytest.param("Apache Kafka", marks=pytest.mark.soak)])
def streams_servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    settings = {**SETTINGS, **GROUP_SETTINGS}
    if request.param in PLACES:
        with made(request.param, tmp_path / "data", settings) as brokers:
            yield brokers.bootstrap_servers
    else:
        with real_kafka("4.3.0", settings=settings) as found:
            yield found


def groups_tool(servers: str, *args: object) -> str:
    tool = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    done = java(maven_classpath("kafka-4.4.0"), tool, "--bootstrap-server", servers, *args, check=True)
    return done.stdout


def test_word_count_by_a_streams_group(streams_servers: str, start: Start, tmp_path: Path) -> None:
    """The broker creates internal topics and assigns tasks; a standby takes over from a killed instance."""
    servers = streams_servers
    writer = Writer(servers)
    writer.prepare()
    with Admin(bootstrap_servers=servers) as admin:
        admin.alter_config(group="tasks", set={"streams.num.standby.replicas": "1"})
    writer.write(300)
    first = start(servers, "tasks", tmp_path / "first", *BY_STREAMS_GROUPS, "application.server=one:1")
    second = start(
        servers, "tasks", tmp_path / "second", *BY_STREAMS_GROUPS, "num.stream.threads=2",
        "application.server=two:2",
    )  # fmt: skip
    until(lambda: first.is_running and second.is_running, "both instances")
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the counts")
    assert "tasks" in groups_tool(servers, "--list").split()
    members = groups_tool(servers, "--describe", "--group", "tasks", "--members", "--verbose")
    assert members.count(" ACTIVE:") == 3, members
    assert " STANDBY:" in members
    first.kill()
    writer.write(300)
    until(lambda: has_all(numbers(servers, "counts"), writer.words), "the rest")
    until(lambda: second.is_running, "the one that is left")
    until(lambda: second.ask("a") == numbers(servers, "counts")["a"], "its store and what it told")
    second.close()
    reset = ("--group", "tasks", "--reset-offsets", "--input-topic", "lines", "--to-earliest", "--execute")
    until(
        lambda: "Empty" in groups_tool(servers, "--describe", "--group", "tasks", "--state"), "an empty group"
    )
    assert "lines" in groups_tool(servers, *reset)
    assert "tasks" in groups_tool(servers, "--delete", "--group", "tasks")
    assert "tasks" not in groups_tool(servers, "--list").split()


def test_a_static_member_that_comes_back_has_its_tasks(start: Start, tmp_path: Path) -> None:
    """Restarting it raises the group epoch by one, and all members keep their tasks."""
    static = (*BY_STREAMS_GROUPS, "group.instance.id=one")
    settings = {**SETTINGS, **GROUP_SETTINGS, "group.streams.session.timeout.ms": "60000"}
    with Broker(config=settings) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:

        def group() -> StreamsGroupDescription:
            until(lambda: admin.describe_streams_groups(["static"])[0].state == "Stable", "a stable group")
            return admin.describe_streams_groups(["static"])[0]

        writer = Writer(broker.bootstrap_servers)
        writer.prepare()
        writer.write(300)
        first = start(broker.bootstrap_servers, "static", tmp_path / "one", *static)
        second = start(broker.bootstrap_servers, "static", tmp_path / "two", *BY_STREAMS_GROUPS)
        until(lambda: first.is_running and second.is_running, "both instances")
        before = group()
        first.close()
        assert admin.describe_streams_groups(["static"])[0].state == "Reconciling", "it has left for good"
        again = start(broker.bootstrap_servers, "static", tmp_path / "one", *static)
        until(lambda: again.is_running, "the one that has come back")
        after = group()
        assert after.epoch == before.epoch + 1
        tasks = [sorted(each.active_tasks for each in found.members) for found in (before, after)]
        assert tasks[0] == tasks[1]
        writer.write(300)
        until(lambda: has_all(numbers(broker.bootstrap_servers, "counts"), writer.words), "the counts")
        again.close()
        second.close()


def test_what_is_not_offered_ends_it_at_once(start: Start, tmp_path: Path) -> None:
    """An application that needs a streams group ends with an exception if the broker lacks the protocol."""
    with Broker(config={**SETTINGS, "group.coordinator.rebalance.protocols": "classic"}) as broker:
        servers = broker.bootstrap_servers
        Writer(servers).prepare()
        application = start(servers, "refused", tmp_path / "refused", *BY_STREAMS_GROUPS)
        application.process.wait(PATIENCE_S)
        application.kill()  # what it printed has been read by then
        reason = "The cluster does not support the STREAMS group protocol"
        assert any(reason in line for line in application.lines), application.lines
