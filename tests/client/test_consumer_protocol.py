"""Tests of consumers with ``group_protocol="consumer"`` (KIP-848), with Penstock's broker and a cluster."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer, OffsetAndMetadata
from penstock.client.cluster.connection import Connection
from penstock.errors import ConfigError, KafkaError, TransactionAbortableError, UnsupportedVersionError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.offset_commit_request import OffsetCommitRequest
from penstock.testing import KafkaBroker, KafkaCluster

PATIENCE_S = 120.0
SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
"""Broker settings with a heartbeat every 50 ms, since each step of a rebalance takes a heartbeat."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(config=SETTINGS) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    with Admin(servers) as admin:
        admin.create_topic(name, 4)
    return name


def fill(servers: str, topic: str, count: int, start: int = 0) -> None:
    with Producer(servers) as producer:
        for number in range(start, start + count):
            producer.send(topic, b"%d" % number, partition=number % 4)


def member(servers: str, topic: str, **options: Any) -> Consumer:
    """Return a consumer in a group named after the topic."""
    settings: dict[str, Any] = {
        "group_id": f"g-{topic}",
        "auto_offset_reset": "earliest",
        "group_protocol": "consumer",
        **options,
    }
    return Consumer(servers, **settings)


def poll_until(consumers: list[Consumer], is_done: Callable[[], bool]) -> list[bytes | None]:
    """Poll the consumers in turn until a condition holds; return the values of their records."""
    values: list[bytes | None] = []
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, "nothing happens"
        for consumer in consumers:
            values += [record.value for record in consumer.poll(20)]
    return values


def assigned(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


def consumed(*consumers: Consumer) -> list[int]:
    """Return the positions of all assigned partitions of these consumers."""
    return [offset for consumer in consumers for offset in consumer.positions().values()]


class Notes:
    """A record of rebalance callbacks: the name and the partitions of each call, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, frozenset[int]]] = []

    def callbacks(self) -> dict[str, Callable[[list[TopicPartition]], None]]:
        def noting(word: str) -> Callable[[list[TopicPartition]], None]:
            return lambda partitions: self.told.append((word, frozenset(tp.partition for tp in partitions)))

        return {f"on_{word}": noting(word) for word in ("assigned", "revoked", "lost")}


def test_one_member_reads_everything_and_goes_on_where_it_was(servers: str, topic: str) -> None:
    fill(servers, topic, 100)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        values: list[bytes | None] = []
        while len(values) < 100:
            values += [record.value for record in consumer.poll(100)]
        assert consumer.lag() == dict.fromkeys(consumer.assignment(), 0)
        assert consumer.group_metadata().generation > 0
        assert consumer.group_metadata().member_id == consumer.member_id
        group = consumer.stats().cgrp
        assert group is not None
        assert (group.state, group.member_id, group.assignment_size) == ("up", consumer.member_id, 4)
    fill(servers, topic, 20, 100)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while len(values) < 120:
            values += [record.value for record in consumer.poll(100)]
    assert sorted(values) == sorted(b"%d" % number for number in range(120))


def test_only_what_moves_is_revoked(servers: str, topic: str) -> None:
    notes = Notes()
    with member(servers, topic) as first, member(servers, topic) as second:
        first.subscribe(topic, **notes.callbacks())
        poll_until([first], lambda: assigned(first) == [4])
        second.subscribe(topic)
        poll_until([first, second], lambda: assigned(first, second) == [2, 2])
        moved = frozenset(tp.partition for tp in second.assignment())
        assert notes.told == [
            ("assigned", frozenset(range(4))),
            ("revoked", moved),
            ("assigned", frozenset()),
        ]
        second.unsubscribe()
        assert second.assignment() == []
        poll_until([first], lambda: assigned(first) == [4])
        assert notes.told[3:] == [("assigned", moved)]
    assert notes.told[4:] == [("revoked", frozenset(range(4)))]


def test_members_come_and_go_and_no_record_is_skipped(servers: str, topic: str) -> None:
    """Every record is read.

    Members commit before they give partitions up, so that no record is read twice.
    """
    dice = random.Random(848)
    fill(servers, topic, 400)
    seen: Counter[bytes | None] = Counter()
    members: list[Consumer] = []
    try:
        for number in range(30):
            if members and (len(members) == 3 or dice.random() < 0.4):
                members.pop(dice.randrange(len(members))).close()
            else:
                members.append(member(servers, topic, auto_commit_interval_ms=50, max_poll_records=20))
                members[-1].subscribe(topic)
            for _ in range(dice.randrange(1, 15)):
                for consumer in members:
                    seen.update(record.value for record in consumer.poll(10))
            fill(servers, topic, 20, 400 + 20 * number)
        if not members:
            members.append(member(servers, topic))
            members[-1].subscribe(topic)
        everything = {b"%d" % number for number in range(1000)}
        deadline = time.monotonic() + PATIENCE_S
        while seen.keys() < everything:
            assert time.monotonic() < deadline, sorted(everything - seen.keys())[:10]
            for consumer in members:
                seen.update(record.value for record in consumer.poll(20))
    finally:
        for consumer in members:
            consumer.close()
    assert set(seen) == everything
    assert max(seen.values()) == 1


def test_commits_while_partitions_are_revoked_count(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    with (
        member(servers, topic, enable_auto_commit=False) as first,
        member(servers, topic, enable_auto_commit=False) as second,
    ):
        committed: list[int] = []

        def give_up(partitions: list[TopicPartition]) -> None:
            offsets = {tp: first.positions()[tp] for tp in partitions}
            first.commit(offsets)
            committed.append(len(offsets))

        first.subscribe(topic, on_revoked=give_up)
        values: list[bytes | None] = []
        while len(values) < 40:
            values += [record.value for record in first.poll(100)]
        second.subscribe(topic)
        values += poll_until([first, second], lambda: assigned(first, second) == [2, 2])
        assert committed == [2]
        fill(servers, topic, 8, 40)
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < 48:
            assert time.monotonic() < deadline
            values += [record.value for each in (first, second) for record in each.poll(50)]
    assert sorted(values) == sorted(b"%d" % number for number in range(48))


def test_a_commit_of_an_older_epoch_is_sent_again_under_the_newer_one(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before 4.3 refuse a commit in flight when the member's epoch changes (KAFKA-20066)."""
    request = Connection.request
    sent: list[int] = []

    def refuse_first(self: Connection, message: Any, version: int, timeout_s: float) -> Any:
        answer = request(self, message, version, timeout_s)
        return late(message, answer) if isinstance(message, OffsetCommitRequest) else answer

    async def late(message: OffsetCommitRequest, awaited: Any) -> Any:
        sent.append(message.generation_id_or_member_epoch)
        answer = await awaited
        if len(sent) == 1:
            while first.group_metadata().generation == sent[0]:
                await asyncio.sleep(0.01)
            for each in answer.topics:
                for partition in each.partitions:
                    partition.error_code = ErrorCode.STALE_MEMBER_EPOCH
        return answer

    async def scenario() -> None:
        async with first, second:
            first.subscribe(topic)
            second.subscribe(topic)
            while len(first.assignment()) < 4:
                await first.poll(10)
            monkeypatch.setattr(Connection, "request", refuse_first)
            committing = asyncio.create_task(first.commit({TopicPartition(topic, 0): 1}))
            async with asyncio.timeout(PATIENCE_S):
                while not committing.done():
                    await first.poll(10)
                    await second.poll(10)
            await committing
            kept = TopicPartition(topic, 0)
            assert (await first.committed([kept]))[kept] == OffsetAndMetadata(1)

    options: dict[str, Any] = {"group_id": f"g-{topic}", "group_protocol": "consumer"}
    first = AsyncConsumer(servers, enable_auto_commit=False, **options)
    second = AsyncConsumer(servers, enable_auto_commit=False, **options)
    asyncio.run(scenario())
    assert len(sent) == 2
    assert sent[1] > sent[0] > 0


def test_a_stale_commit_without_a_newer_epoch_fails_and_a_stale_read_goes_on() -> None:
    with KafkaBroker(config=SETTINGS) as broker:
        topic = broker.create_topic("t", partitions=4)
        fill(broker.bootstrap_servers, topic, 8)
        with member(broker.bootstrap_servers, topic, enable_auto_commit=False) as consumer:
            consumer.subscribe(topic)
            with broker.faults.fail("OffsetFetch", error="STALE_MEMBER_EPOCH", times=2) as fault:
                values: list[bytes | None] = []
                while len(values) < 8:
                    values += [record.value for record in consumer.poll(100)]
                fault.wait(2)
            before = consumer.group_metadata()
            with (
                broker.faults.fail("OffsetCommit", error="STALE_MEMBER_EPOCH"),
                pytest.raises(KafkaError, match="the group has gone on") as caught,
            ):
                consumer.commit()
            assert caught.value.code == ErrorCode.STALE_MEMBER_EPOCH
            assert consumer.group_metadata() == before
            consumer.commit()
            assert len(consumer.committed(consumer.assignment())) == 4


def test_a_member_whose_application_is_slow_loses_its_partitions(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    notes = Notes()
    with member(servers, topic, max_poll_interval_ms=300) as slow, member(servers, topic) as other:
        slow.subscribe(topic, **notes.callbacks())
        poll_until([slow], lambda: assigned(slow) == [4])
        other.subscribe(topic)
        poll_until([other], lambda: assigned(other) == [4])
        with pytest.raises(KafkaError) as caught:
            slow.commit({TopicPartition(topic, 0): 1})
        assert caught.value.code == ErrorCode.UNKNOWN_MEMBER_ID
        poll_until([slow, other], lambda: assigned(slow, other) == [2, 2])
        words = [word for word, partitions in notes.told]
        assert words[:3] == ["assigned", "lost", "assigned"]
        assert "revoked" not in words


def test_a_fenced_member_joins_again() -> None:
    with KafkaBroker(config=SETTINGS) as broker:
        topic = broker.create_topic("t", partitions=4)
        notes = Notes()
        with member(broker.bootstrap_servers, topic) as consumer:
            consumer.subscribe(topic, **notes.callbacks())
            poll_until([consumer], lambda: assigned(consumer) == [4])
            member_id = consumer.member_id
            for error in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"):
                notes.told.clear()
                broker.faults.fail("ConsumerGroupHeartbeat", error=error, times=1)
                poll_until([consumer], lambda: len(notes.told) == 2)
                everything = frozenset(range(4))
                assert notes.told == [("lost", everything), ("assigned", everything)]
                assert consumer.member_id == member_id


@pytest.mark.parametrize("applied", [True, False])
def test_lost_heartbeats_cost_no_record(applied: bool) -> None:
    """Heartbeat requests or responses are lost, some with the connection, while members come and go."""
    dice = random.Random(848)
    seen: Counter[bytes | None] = Counter()
    members: list[Consumer] = []
    # A farewell may be lost as well: then the partitions are free when the session ends.
    with KafkaBroker(config={**SETTINGS, "group.consumer.session.timeout.ms": "3000"}) as broker:
        servers = broker.bootstrap_servers
        topic = broker.create_topic("t", partitions=4)
        count = 0
        try:
            for _ in range(8):
                fault = dice.choice([broker.faults.drop, broker.faults.close])
                fault("ConsumerGroupHeartbeat", applied=applied, times=1, skip=dice.randrange(4))
                if len(members) < 2 or dice.random() < 0.5:
                    consumer = member(servers, topic, request_timeout_ms=300, max_poll_records=5)
                    consumer.subscribe(topic)
                    members.append(consumer)
                else:
                    members.pop(dice.randrange(len(members))).close()
                fill(servers, topic, 20, count)
                count += 20
                for _ in range(20):
                    for consumer in members:
                        seen.update(record.value for record in consumer.poll(10))
            broker.faults.clear()
            deadline = time.monotonic() + PATIENCE_S
            while len(seen) < count or sum(assigned(*members)) != 4:
                assert time.monotonic() < deadline, (len(seen), count, assigned(*members))
                for consumer in members:
                    seen.update(record.value for record in consumer.poll(20))
        finally:
            for consumer in members:
                consumer.close()
    assert len(seen) == count


def test_a_static_member_has_its_partitions_back_under_another_id(servers: str, topic: str) -> None:
    with member(servers, topic, group_instance_id="one") as first:
        first.subscribe(topic)
        second = member(servers, topic, group_instance_id="two")
        second.subscribe(topic)
        poll_until([first, second], lambda: assigned(first, second) == [2, 2])
        had, member_id = second.assignment(), second.member_id
        second.close()
        with member(servers, topic, group_instance_id="two") as again:
            again.subscribe(topic)
            poll_until([first, again], lambda: assigned(first, again) == [2, 2])
            assert set(again.assignment()) == set(had)
            assert again.member_id != member_id


def test_a_pattern_as_text_is_the_broker_s_and_a_compiled_one_the_client_s(servers: str) -> None:
    with Admin(servers) as admin:
        for name in ("pattern-a", "pattern-b", "other-pattern-a"):
            admin.create_topic(name, 1)
        with (
            member(servers, "text", metadata_max_age_ms=300_000) as text,
            member(servers, "compiled", metadata_max_age_ms=100) as compiled,
        ):
            with pytest.raises(ConfigError):
                text.subscribe("^(")
            text.subscribe("^pattern-[ab]")
            compiled.subscribe(re.compile(r"pattern-(?!b).*"))  # RE2 has no look-ahead
            poll_until([text, compiled], lambda: assigned(text, compiled) == [2, 1])
            assert {tp.topic for tp in text.assignment()} == {"pattern-a", "pattern-b"}
            assert [tp.topic for tp in compiled.assignment()] == ["pattern-a"]
            assert text.subscription() == {"pattern-a", "pattern-b"}
            admin.create_topic("pattern-c", 1)
            text.subscribe("^pattern-.*")
            poll_until([text, compiled], lambda: assigned(text, compiled) == [3, 2])
            text.subscribe(["pattern-a"])
            poll_until([text], lambda: assigned(text) == [1])


def test_a_pattern_that_the_broker_cannot_read_is_an_error(servers: str) -> None:
    with member(servers, "unreadable") as consumer:
        consumer.subscribe("^a(?!b)")
        with pytest.raises(KafkaError, match="RE2") as caught:
            consumer.poll(PATIENCE_S * 1000)
        assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_topic_that_comes_later_is_read(servers: str) -> None:
    with member(servers, "later") as consumer:
        consumer.subscribe("later")
        assert consumer.poll(100) == []
        with Admin(servers) as admin:
            admin.create_topic("later", 2)
        with Producer(servers) as producer:
            for number in range(4):
                producer.send("later", b"%d" % number, partition=number % 2)
        values: list[bytes | None] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(values) < 4:
            assert time.monotonic() < deadline
            values += [record.value for record in consumer.poll(50)]


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_assignor_is_the_member_s_choice(servers: str, topic: str, assignor: str) -> None:
    with member(servers, topic, group_remote_assignor=assignor) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: assigned(consumer) == [4])
        with Admin(servers) as admin:
            assert admin.describe_groups([f"g-{topic}"])[0].assignor == assignor


def test_an_assignor_that_the_broker_does_not_have_is_an_error(servers: str, topic: str) -> None:
    with member(servers, topic, group_remote_assignor="sticky") as consumer:
        consumer.subscribe(topic)
        with pytest.raises(KafkaError, match=r"'sticky' of group\.remote\.assignor"):
            consumer.poll(PATIENCE_S * 1000)


def test_arrow_batches_of_a_group(servers: str, topic: str) -> None:
    pytest.importorskip("pyarrow")
    fill(servers, topic, 40)
    rows = 0
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while rows < 40:
            batch = consumer.poll_arrow(500)
            rows += 0 if batch is None else batch.num_rows
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: assigned(consumer) == [4])
        assert consumer.poll_arrow(50) is None


def test_offsets_in_a_transaction_have_the_member_s_epoch(servers: str, topic: str) -> None:
    fill(servers, topic, 8)
    with (
        member(servers, topic, enable_auto_commit=False) as consumer,
        Producer(servers, transactional_id=f"tx-{topic}") as producer,
    ):
        consumer.subscribe(topic)
        values: list[bytes | None] = []
        while len(values) < 8:
            values += [record.value for record in consumer.poll(100)]
        with producer.transaction():
            producer.send_offsets(consumer.positions(), consumer)
        committed = consumer.committed(consumer.assignment())
        assert {at.offset for at in committed.values() if at is not None} == {2}
        metadata = consumer.group_metadata()
        late = metadata._replace(generation=metadata.generation + 1)
        with pytest.raises(TransactionAbortableError), producer.transaction():
            producer.send_offsets(consumer.positions(), late)


def test_asyncio_and_callbacks_that_are_coroutines(servers: str, topic: str) -> None:
    fill(servers, topic, 8)
    told: list[str] = []

    async def scenario() -> None:
        async def note(partitions: list[TopicPartition]) -> None:
            await asyncio.sleep(0)
            told.append(f"{len(partitions)}")

        consumer = AsyncConsumer(
            servers, group_id=f"g-{topic}", group_protocol="consumer", auto_offset_reset="earliest"
        )
        async with consumer, asyncio.timeout(PATIENCE_S):
            consumer.subscribe(topic, on_assigned=note, on_revoked=note)
            values = []
            async for record in consumer:
                values.append(record.value)
                if len(values) == 8:
                    break
            await consumer.commit()
            assert sorted(values) == sorted(b"%d" % number for number in range(8))

    asyncio.run(scenario())
    assert told == ["4", "4"]


# -- which protocol


def protocol_of(consumer: Consumer) -> str:
    """Return the group protocol that a consumer uses: `consumer` (KIP-848) or `classic`."""
    group = consumer._consumer._group
    assert group is not None
    return "consumer" if group._choice.speaks_consumer else "classic"


def test_auto_takes_the_new_protocol_where_there_is_one(servers: str, topic: str) -> None:
    with member(servers, topic, group_protocol="auto") as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: assigned(consumer) == [4])
        assert protocol_of(consumer) == "consumer"


@pytest.mark.parametrize("version", ["3.9", "2.8"])
def test_auto_takes_the_classic_one_of_older_brokers(version: str) -> None:
    with Broker(as_version=version, config=SETTINGS) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topic("t", 4)
        with member(broker.bootstrap_servers, "t", group_protocol="auto") as consumer:
            consumer.subscribe("t")
            poll_until([consumer], lambda: assigned(consumer) == [4])
            assert protocol_of(consumer) == "classic"
        with member(broker.bootstrap_servers, "t") as consumer:
            consumer.subscribe("t")
            with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 4\.0"):
                consumer.poll(1000)


def test_auto_joins_a_group_of_classic_members_and_turns_it(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    with member(servers, topic, group_protocol="classic", heartbeat_interval_ms=50) as classic:
        classic.subscribe(topic)
        seen = poll_until([classic], lambda: assigned(classic) == [4])
        with member(servers, topic, group_protocol="auto") as consumer:
            consumer.subscribe(topic)
            seen += poll_until([classic, consumer], lambda: assigned(classic, consumer) == [2, 2])
            assert [protocol_of(classic), protocol_of(consumer)] == ["classic", "consumer"]
            fill(servers, topic, 40, 40)
            seen += poll_until([classic, consumer], lambda: consumed(classic, consumer) == [20] * 4)
        seen += poll_until([classic], lambda: assigned(classic) == [4])
        with Admin(servers) as admin:
            assert {each.state for each in admin.describe_groups([f"g-{topic}"])} == {"Stable"}
        fill(servers, topic, 40, 80)
        seen += poll_until([classic], lambda: consumed(classic) == [30] * 4)
    assert set(seen) == {b"%d" % number for number in range(120)}


def test_auto_joins_a_group_that_may_not_turn_as_a_classic_member() -> None:
    policy = {"group.consumer.migration.policy": "disabled"}
    with Broker(config={**SETTINGS, **policy}) as broker:
        servers = broker.bootstrap_servers
        with Admin(servers) as admin:
            admin.create_topic("t", 4)
        with member(servers, "t", group_protocol="classic", heartbeat_interval_ms=50) as classic:
            classic.subscribe("t")
            poll_until([classic], lambda: assigned(classic) == [4])
            with member(servers, "t") as refused:
                refused.subscribe("t")
                with pytest.raises(KafkaError, match=r"members of the classic protocol.*is disabled"):
                    refused.poll(PATIENCE_S * 1000)
            with member(servers, "t", group_protocol="auto", heartbeat_interval_ms=50) as consumer:
                consumer.subscribe("t")
                poll_until([classic, consumer], lambda: assigned(classic, consumer) == [2, 2])
                assert protocol_of(consumer) == "classic"
                classic.close()
                poll_until([consumer], lambda: assigned(consumer) == [4])


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_is_restarted_member_by_member_into_the_other_protocol_and_back(
    servers: str, topic: str, strategy: str
) -> None:
    """Every record is read, also while members of both protocols are in the group."""
    old = {
        "group_protocol": "classic",
        "heartbeat_interval_ms": 50,
        "partition_assignment_strategy": strategy,
    }
    seen: Counter[bytes | None] = Counter()
    members = [member(servers, topic, **old), member(servers, topic, **old)]
    written = 0
    try:
        for each in members:
            each.subscribe(topic)
        seen.update(poll_until(members, lambda: assigned(*members) == [2, 2]))
        for kinds in ({"group_protocol": "consumer"}, old):
            for place in range(2):
                members[place].close()
                members[place] = member(servers, topic, **kinds)
                members[place].subscribe(topic)
                with Producer(servers) as producer:
                    for number in range(written, written + 20):
                        producer.send(topic, b"%d" % number, partition=number % 4)
                written += 20
                values = poll_until(members, lambda: assigned(*members) == [2, 2])
                seen.update(values)
                deadline = time.monotonic() + PATIENCE_S
                while len(seen) < written:
                    assert time.monotonic() < deadline
                    for each in members:
                        seen.update(record.value for record in each.poll(20))
                for each in members:
                    each.commit()
    finally:
        for each in members:
            each.close()
    assert set(seen) == {b"%d" % number for number in range(written)}


# -- a cluster


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_group_outlives_its_coordinator(protocol: str) -> None:
    """The group has two KIP-848 consumers, or a classic member and a consumer that has upgraded the group."""
    options: dict[str, Any] = {"group_protocol": protocol}
    if protocol == "classic":
        options["heartbeat_interval_ms"] = 50
    with KafkaCluster(3, config=SETTINGS, broker_session_timeout_ms=1_000) as cluster:
        cluster.create_topic("t", partitions=6, replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2)
        servers = cluster.bootstrap_servers
        seen: Counter[bytes | None] = Counter()
        with member(servers, "t", **options) as first, member(servers, "t") as second:
            first.subscribe("t")
            seen.update(poll_until([first], lambda: assigned(first) == [6]))
            second.subscribe("t")
            seen.update(poll_until([first, second], lambda: assigned(first, second) == [3, 3]))
            had = [set(consumer.assignment()) for consumer in (first, second)]
            lost: list[object] = []
            first.subscribe("t", on_lost=lost.append)
            second.subscribe("t", on_lost=lost.append)
            cluster.kill(cluster.coordinator(group="g-t"))
            with Producer(servers) as producer:
                for number in range(60):
                    producer.send("t", b"%d" % number, partition=number % 6)
            deadline = time.monotonic() + PATIENCE_S
            while len(seen) < 60:
                assert time.monotonic() < deadline
                for consumer in (first, second):
                    seen.update(record.value for record in consumer.poll(50))
            assert [set(consumer.assignment()) for consumer in (first, second)] == had
            for consumer in (first, second):
                consumer.commit()
            assert lost == []
            second.unsubscribe()
            poll_until([first], lambda: assigned(first) == [6])
        assert max(seen.values()) == 1
