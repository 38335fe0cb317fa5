"""Tests of consumers in classic groups with a Penstock broker."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.client import AsyncConsumer
from penstock.client.cluster.client import AsyncClient
from penstock.client.group.membership import Membership
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.errors import ConfigError, KafkaError
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse

PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Yield the address of a broker without an initial rebalance delay."""
    with Broker(config={"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}) as b:
        yield b.bootstrap_servers


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
    settings: dict[str, Any] = {"group_id": f"g-{topic}", "auto_offset_reset": "earliest", **options}
    return Consumer(servers, **{"heartbeat_interval_ms": 50, **settings})


def poll_until(consumers: list[Consumer], is_done: Callable[[], bool]) -> list[bytes | None]:
    """Poll the consumers in turn until a condition holds; return the values of their records."""
    values: list[bytes | None] = []
    deadline = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < deadline, "nothing happens"
        for consumer in consumers:
            values += [record.value for record in consumer.poll(20)]
    return values


def test_one_member_reads_everything_and_goes_on_where_it_was(servers: str, topic: str) -> None:
    fill(servers, topic, 100)
    values: list[bytes | None] = []
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while len(values) < 100:
            values += [record.value for record in consumer.poll(100)]
        assert consumer.lag() == dict.fromkeys(consumer.assignment(), 0)
    fill(servers, topic, 20, 100)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while len(values) < 120:
            values += [record.value for record in consumer.poll(100)]
    assert sorted(values) == sorted(b"%d" % number for number in range(120))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_and_hand_over(servers: str, topic: str, strategy: str) -> None:
    options = {"partition_assignment_strategy": strategy}
    with member(servers, topic, **options) as first, member(servers, topic, **options) as second:
        first.subscribe(topic)
        poll_until([first], lambda: len(first.assignment()) == 4)
        second.subscribe(topic)
        poll_until([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 2)
        assert not set(first.assignment()) & set(second.assignment())
        first.unsubscribe()
        assert first.assignment() == []
        poll_until([second], lambda: len(second.assignment()) == 4)


def test_cooperative_members_keep_what_stays(servers: str, topic: str) -> None:
    told: list[tuple[str, set[TopicPartition]]] = []
    options = {"partition_assignment_strategy": "cooperative-sticky"}
    with member(servers, topic, **options) as first, member(servers, topic, **options) as second:
        first.subscribe(
            topic,
            on_assigned=lambda partitions: told.append(("assigned", set(partitions))),
            on_revoked=lambda partitions: told.append(("revoked", set(partitions))),
        )
        poll_until([first], lambda: len(first.assignment()) == 4)
        second.subscribe(topic)
        poll_until([first, second], lambda: len(second.assignment()) == 2)
        revoked = [partitions for word, partitions in told if word == "revoked"]
        assert revoked == [set(second.assignment())]
        assert [len(partitions) for word, partitions in told if word == "assigned" and partitions] == [4]


def test_eager_members_are_told_of_everything(servers: str, topic: str) -> None:
    told: list[tuple[str, int]] = []
    with member(servers, topic) as first, member(servers, topic) as second:
        first.subscribe(
            topic,
            on_assigned=lambda partitions: told.append(("assigned", len(partitions))),
            on_revoked=lambda partitions: told.append(("revoked", len(partitions))),
        )
        poll_until([first], lambda: len(first.assignment()) == 4)
        second.subscribe(topic)
        poll_until([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 2)
        first.close()
    assert told == [("assigned", 4), ("revoked", 4), ("assigned", 2), ("revoked", 2)]


def test_commits_by_hand(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    where = TopicPartition(topic, 1)
    with member(servers, topic, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        consumer.commit({where: 3})
        consumer.commit({TopicPartition(topic, 2): OffsetAndMetadata(4, "a note")})
        done = threading.Event()
        errors: list[object] = []

        def note(offsets: object, error: object) -> None:
            errors.append(error)
            done.set()

        consumer.commit_async({TopicPartition(topic, 3): 5}, note)
        assert done.wait(PATIENCE_S)
        assert errors == [None]
        found = consumer.committed([TopicPartition(topic, number) for number in range(4)])
    assert [at and at[:2] for at in found.values()] == [None, (3, ""), (4, "a note"), (5, "")]
    with pytest.raises(ConfigError, match="offsets begin at 0"), member(servers, topic) as consumer:
        consumer.commit({where: -2})


def test_a_loop_commits_what_was_worked_off_and_no_more(servers: str, topic: str) -> None:
    """A record whose processing raises is delivered again; a record after which the loop breaks is not."""
    fill(servers, topic, 40)
    seen: list[bytes | None] = []

    def fail_at_the_eleventh() -> None:
        with member(servers, topic) as consumer:
            consumer.subscribe(topic)
            for record in consumer:
                if len(seen) == 10:
                    raise ZeroDivisionError
                seen.append(record.value)

    with pytest.raises(ZeroDivisionError):
        fail_at_the_eleventh()
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        for record in consumer:
            seen.append(record.value)
            if len(seen) == 25:
                break
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while len(seen) < 40:
            seen += [record.value for record in consumer.poll(100, max_records=4)]
    assert Counter(seen) == Counter(b"%d" % number for number in range(40))


def test_a_failing_list_comes_again_whole(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    first: list[bytes | None] = []
    failed: list[bytes | None] = []

    def fail_with_a_list() -> None:
        with member(servers, topic) as consumer:
            consumer.subscribe(topic)
            while len(first) < 40:
                first.extend(record.value for record in consumer.poll(100))
            fill(servers, topic, 40, 40)
            while not failed:
                failed.extend(record.value for record in consumer.poll(100, max_records=7))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_with_a_list()
    rest: list[bytes | None] = []
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        while len(rest) < 40:
            rest += [record.value for record in consumer.poll(100)]
    assert set(failed) <= set(rest)
    assert len(set(rest)) == 40


def test_what_a_failing_loop_was_at_is_not_committed_by_its_callback(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    seen: list[bytes | None] = []

    def fail_at_the_eleventh() -> None:
        with member(servers, topic, enable_auto_commit=False) as consumer:
            consumer.subscribe(topic, on_revoked=lambda _: consumer.commit())
            for record in consumer:
                if len(seen) == 10:
                    raise ZeroDivisionError
                seen.append(record.value)

    with pytest.raises(ZeroDivisionError):
        fail_at_the_eleventh()
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        seen += poll_until([consumer], lambda: consumer.lag() and not any(consumer.lag().values()))
    assert Counter(seen) == Counter(b"%d" % number for number in range(40))


def test_arrow_batches_in_a_group(servers: str, topic: str) -> None:
    fill(servers, topic, 400)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        rows = 0
        while rows < 400:
            batch = consumer.poll_arrow(100, columns=("value", "headers"))
            rows += 0 if batch is None else batch.num_rows
        assert rows == 400


def test_positions_in_a_group(servers: str, topic: str) -> None:
    """A seek replaces the committed offset, also in a callback; pause and resume keep the position."""
    fill(servers, topic, 40)
    where = TopicPartition(topic, 2)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic, on_assigned=lambda partitions: consumer.seek(where, 9))
        values = poll_until([consumer], lambda: consumer.lag() and not any(consumer.lag().values()))
        assert len(values) == 31
        consumer.pause([where])
        fill(servers, topic, 4, 40)
        later = poll_until([consumer], lambda: sum(consumer.lag().values()) == 1)
        assert b"42" not in later
        consumer.resume([where])
        assert poll_until([consumer], lambda: sum(consumer.lag().values()) == 0) == [b"42"]


def test_who_goes_back_takes_the_commits_along(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    where = TopicPartition(topic, 0)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: consumer.lag() and not any(consumer.lag().values()))
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        consumer.seek(where, 2)
        assert [record.offset for record in consumer.poll(60_000, max_records=3)] == [2, 3, 4]
    with member(servers, topic) as consumer:
        assert [at and at.offset for at in consumer.committed([where]).values()] == [5]


def test_what_is_read_of_commits_after_going_back_keeps_no_commit_from_following(
    servers: str, topic: str
) -> None:
    fill(servers, topic, 40)
    where = TopicPartition(topic, 0)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: consumer.lag() and not any(consumer.lag().values()))
        consumer.commit()
        consumer.seek(where, 2)
        assert [at and at.offset for at in consumer.committed([where]).values()] == [10]
        assert [record.offset for record in consumer.poll(60_000, max_records=3)] == [2, 3, 4]
    with member(servers, topic) as consumer:
        assert [at and at.offset for at in consumer.committed([where]).values()] == [5]


def test_a_commit_ahead_of_what_was_read_stays(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    where = TopicPartition(topic, 0)
    with member(servers, topic) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        consumer.pause([other for other in consumer.assignment() if other != where])
        consumer.seek(where, 2)
        assert [record.offset for record in consumer.poll(60_000, max_records=3)] == [2, 3, 4]
        consumer.commit({where: 8})
    with member(servers, topic) as consumer:
        assert [at and at.offset for at in consumer.committed([where]).values()] == [8]


@pytest.mark.parametrize("reset", ["earliest", "latest", "by_duration:PT1H"])
def test_where_a_group_begins(servers: str, topic: str, reset: str) -> None:
    hours_ago = int((time.time() - 7200) * 1000)
    with Producer(servers) as producer:
        producer.send(topic, b"old", partition=0, timestamp=hours_ago)
        producer.send(topic, b"new", partition=0)
    with member(servers, topic, auto_offset_reset=reset) as consumer:
        consumer.subscribe(topic)
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        assert consumer.position(TopicPartition(topic, 0)) in {"earliest": (0, 2), "latest": (2,)}.get(
            reset, (1, 2)
        )


def test_a_group_without_a_reset_says_so(servers: str, topic: str) -> None:
    with member(servers, topic, auto_offset_reset="none") as consumer:
        consumer.subscribe(topic)
        with pytest.raises(ConfigError, match=r"has no position: seek\(\), or set auto.offset.reset"):
            poll_until([consumer], lambda: False)


def test_patterns_find_new_topics(servers: str, topic: str) -> None:
    with member(servers, topic, metadata_max_age_ms=100) as consumer:
        consumer.subscribe(f"^{topic}.*")
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        with Admin(servers) as admin:
            admin.create_topic(f"{topic}-more", 2)
        poll_until([consumer], lambda: len(consumer.assignment()) == 6)


def test_a_pattern_outlives_a_poll_that_is_cancelled(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled or failed poll does not stop the search for matching topics: the next poll repeats it."""
    refresh = AsyncClient.refresh
    looking = asyncio.Event()

    async def for_ever(client: AsyncClient, *topics: Any, **options: Any) -> None:
        if options.get("all_topics"):
            looking.set()
            await asyncio.Event().wait()
        await refresh(client, *topics, **options)

    async def consume() -> int:
        async with AsyncConsumer(servers, group_id=topic) as consumer:
            consumer.subscribe(f"^{topic}")
            with monkeypatch.context() as patch:
                patch.setattr(AsyncClient, "refresh", for_ever)
                polling = asyncio.ensure_future(consumer.poll(60_000))
                await looking.wait()
                polling.cancel()
                await asyncio.wait([polling])
            deadline = time.monotonic() + PATIENCE_S
            while not consumer.assignment() and time.monotonic() < deadline:
                await consumer.poll(20)
            return len(consumer.assignment())

    assert asyncio.run(consume()) == 4


def test_a_static_member_keeps_its_place(servers: str, topic: str) -> None:
    options = {"group_instance_id": "one"}
    with member(servers, topic, **options) as consumer, member(servers, topic) as other:
        consumer.subscribe(topic)
        other.subscribe(topic)
        poll_until([consumer, other], lambda: len(consumer.assignment()) == len(other.assignment()) == 2)
        kept = consumer.assignment()
        consumer.close()
        other_told: list[object] = []
        other.subscribe(topic, on_revoked=other_told.append)
        with member(servers, topic, **options) as again:
            again.subscribe(topic)
            poll_until([again, other], lambda: len(again.assignment()) == 2)
            assert again.assignment() == kept
            assert other_told == []


def test_a_second_member_with_the_same_instance_id_fences_the_first(servers: str, topic: str) -> None:
    with member(servers, topic, group_instance_id="one") as first:
        first.subscribe(topic)
        poll_until([first], lambda: len(first.assignment()) == 4)
        with member(servers, topic, group_instance_id="one") as second:
            second.subscribe(topic)
            with pytest.raises(KafkaError, match="give every consumer one of its own"):
                poll_until([first, second], lambda: False)
            poll_until([second], lambda: len(second.assignment()) == 4)


def test_who_does_not_poll_loses_its_partitions_and_can_come_back(servers: str, topic: str) -> None:
    lost: list[int] = []
    options = {"max_poll_interval_ms": 300}
    with member(servers, topic, **options) as slow, member(servers, topic, **options) as quick:
        slow.subscribe(topic, on_lost=lambda partitions: lost.append(len(partitions)))
        quick.subscribe(topic)
        poll_until([slow, quick], lambda: len(slow.assignment()) == len(quick.assignment()) == 2)
        # A pause of the machine is none of the application's, and costs partitions all the same.
        before = len(lost)
        poll_until([quick], lambda: len(quick.assignment()) == 4)
        with pytest.raises(KafkaError, match=r"raise max\.poll\.interval\.ms"):
            slow.commit({TopicPartition(topic, 0): 0})
        poll_until([slow, quick], lambda: len(slow.assignment()) == len(quick.assignment()) == 2)
        assert lost[before] == 2


def test_heartbeats_go_on_while_the_application_works(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test counts heartbeats instead of waiting for a session timeout.

    So its result does not depend on the machine's speed.
    """
    beats: list[float] = []
    answered = Membership._heard

    def count(membership: Membership, answer: HeartbeatResponse, now: float) -> None:
        beats.append(now)
        answered(membership, answer, now)

    monkeypatch.setattr(Membership, "_heard", count)
    revoked: list[object] = []
    with member(servers, topic) as consumer:
        consumer.subscribe(topic, on_revoked=revoked.append, on_lost=revoked.append)
        poll_until([consumer], lambda: len(consumer.assignment()) == 4)
        before, deadline = len(beats), time.monotonic() + PATIENCE_S
        while len(beats) < before + 5:
            assert time.monotonic() < deadline, "no heartbeats while the application works"
            time.sleep(0.02)
        consumer.poll(50)
        consumer.commit({TopicPartition(topic, 0): 0})
        assert revoked == []


def test_mistakes_are_explained(servers: str, topic: str) -> None:
    with Consumer(servers) as consumer:
        with pytest.raises(ConfigError, match=r'needs the option "group\.id"'):
            consumer.subscribe(topic)
        with pytest.raises(ConfigError, match=r'needs the option "group\.id"'):
            consumer.commit()
    with member(servers, topic) as consumer:
        with pytest.raises(ConfigError, match=r"subscribe\(\) or assign\(\) first"):
            consumer.poll(0)
        with pytest.raises(ConfigError, match="names of topics"):
            consumer.subscribe([])
        with pytest.raises(ConfigError, match="is no pattern"):
            consumer.subscribe("^(")
        consumer.subscribe(topic)
        with pytest.raises(ConfigError, match="exclude each other"):
            consumer.assign([TopicPartition(topic, 0)])


def test_assigned_partitions_begin_where_the_group_has_committed(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    where = TopicPartition(topic, 1)
    for expected in (0, 10):
        with member(servers, topic) as consumer:
            consumer.assign([where])
            assert consumer.position(where) == expected
            poll_until([consumer], lambda: consumer.position(where) == 10)


def test_the_errors_of_callbacks_come_out_of_poll(servers: str, topic: str) -> None:
    with member(servers, topic) as consumer:
        consumer.subscribe(topic, on_assigned=lambda partitions: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            poll_until([consumer], lambda: False)
        assert len(consumer.assignment()) == 4


def test_asyncio_members_with_coroutines_as_callbacks(servers: str, topic: str) -> None:
    fill(servers, topic, 40)
    told: list[str] = []

    async def on_assigned(partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0)
        told.append("assigned")

    async def consume() -> int:
        options: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}
        async with AsyncConsumer(servers, **options) as consumer:
            consumer.subscribe(topic, on_assigned=on_assigned, on_revoked=lambda _: told.append("revoked"))
            count = 0
            async for _ in consumer:
                count += 1
                if count == 40:
                    await consumer.commit()
                    break
            return sum(at.offset for at in (await consumer.committed(consumer.assignment())).values() if at)

    assert asyncio.run(consume()) == 40
    assert told == ["assigned", "revoked"]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_whoever_comes_and_goes(servers: str, topic: str, strategy: str, seed: int) -> None:
    """Members join, leave, break off and stall.

    Every record is read, and no committed record is read again.
    """
    fill(servers, topic, 600)
    dice = random.Random(seed)
    seen: Counter[bytes | None] = Counter()
    failed: set[bytes | None] = set()
    group: list[Consumer] = []
    deadline = time.monotonic() + PATIENCE_S * 2
    while len(seen) < 600:
        assert time.monotonic() < deadline, "records are missing"
        if len(group) < 4 and dice.random() < 0.15:
            group.append(member(servers, topic, partition_assignment_strategy=strategy))
            group[-1].subscribe(topic)
        if group and dice.random() < 0.08:
            goer = group.pop(dice.randrange(len(group)))
            goer.close()
        for consumer in dice.sample(group, len(group)):
            records = consumer.poll(5, max_records=dice.randint(1, 8))
            if records and dice.random() < 0.05:
                failed.update(record.value for record in records)
                group.remove(consumer)
                consumer.close(has_failed=True)
            else:
                seen.update(record.value for record in records)
    for consumer in group:
        consumer.close()
    assert set(seen) == {b"%d" % number for number in range(600)}
    assert max(seen.values()) == 1, [value for value, times in seen.items() if times > 1]
