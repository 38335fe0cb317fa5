"""Tests of dead letters of share groups (KIP-1191): which records get one, its content, and failures."""

from __future__ import annotations

from typing import Any

import pytest

from broker.bench_node import batch_of, make_topic, produce
from broker.sharing.group_member import ACCEPT, REJECT, RELEASE, Bench, Member, ack_code, ranges
from penstock.broker.config.values import BrokerConfig
from penstock.broker.sharing import dead_records
from penstock.errors import StorageError
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import split_batches

GAP = 0

CREATING = {"errors_deadletterqueue_auto_create_topics_enable": "true"}

DEAD = {"errors.deadletterqueue.topic.name": "dlq.t"}
COPYING = {**DEAD, "errors.deadletterqueue.copy.record.enable": "true"}
ENABLED = {"errors_deadletterqueue_group_enable": "true"}

REJECTED, EXCEEDED = "Offset rejected by client.", "Offset delivery count exceeded the threshold."


def dead_bench(partitions: int = 1, group: dict[str, str] | None = None, **settings: object) -> Bench:
    """Return a bench whose group has a dead letter topic with one partition."""
    bench = Bench(partitions, group={**DEAD, **(group or {})}, **settings)
    make_topic(bench.node, "dlq.t", **ENABLED)
    return bench


def letters(bench: Bench, partition: int = 0, topic: str = "dlq.t") -> list[Any]:
    """Return the records of a dead letter topic's partition."""
    return [record for batch in dead_batches(bench, partition, topic) for record in batch]


def dead_batches(bench: Bench, partition: int = 0, topic: str = "dlq.t") -> list[list[Any]]:
    """Return the records of a dead letter topic's partition, as a list for each batch."""
    found = bench.node.cluster.topics[topic].partitions[partition]
    data = found.log.read(0, 1 << 24, up_to_offset=found.high_watermark, at_least_one=True).to_bytes()
    return [decode_batch(data, start, end, topic, partition) for start, end, _ in split_batches(data)]


def headers(record: Any) -> dict[str, str]:
    return {name.removeprefix("__dlq.errors."): value.decode() for name, value in record.headers}


def told(bench: Bench, **where: Any) -> list[tuple[int, int, str]]:
    """Return the offset, the delivery count and the reason in the headers of each dead letter."""
    found = [headers(each) for each in letters(bench, **where)]
    return [(int(each["offset"]), int(each["delivery.count"]), each["message"]) for each in found]


def stored(bench: Bench) -> list[tuple[int, int, int]]:
    """Return the stored state batches in order: first offset, last offset and state."""
    return [
        (each.first_offset, each.last_offset, each.delivery_state)
        for write in bench.persister.writes
        for each in write.state_batches
    ]


def test_a_rejected_record_has_a_dead_letter() -> None:
    bench = dead_bench(partitions=2)
    bench.fill(3, partition=1)
    member = Member(bench)
    member.fetch(partitions=[0, 1])
    assert ack_code(member.acknowledge((0, 2, [ACCEPT, REJECT, GAP]), partition=1)) == 0
    (letter,) = letters(bench)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, bench.clock.now_ms())
    assert [name for name, _ in letter.headers] == [
        f"__dlq.errors.{name}"
        for name in ("topic", "partition", "offset", "group", "delivery.count", "message")
    ]
    assert headers(letter) == {
        "topic": "t", "partition": "1", "offset": "1",
        "group": "g", "delivery.count": "1", "message": REJECTED,
    }  # fmt: skip


def test_a_record_is_archived_after_its_dead_letter_was_written() -> None:
    bench = dead_bench()
    bench.fill(2)
    member = Member(bench)
    member.fetch()
    refusing = bench.node.append_at_leader
    bench.node.append_at_leader = lambda *of: None  # type: ignore[method-assign]
    assert ack_code(member.acknowledge((0, 1, [REJECT]))) == 0
    assert stored(bench) == [(0, 1, 3)]
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 0
    assert ranges(Member(bench, "other").fetch()) == []
    bench.node.append_at_leader = refusing  # type: ignore[method-assign]
    bench.node.cluster.topics["t"].partitions[0].leader_epoch += 1  # the next leader finds the record
    assert ranges(Member(bench, "third").fetch()) == []
    assert told(bench) == [(0, 1, REJECTED), (1, 1, REJECTED)]
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 2


@pytest.mark.parametrize("how", ["release", "expire", "close"])
def test_a_record_that_was_delivered_too_often_has_a_dead_letter(how: str) -> None:
    bench = dead_bench(group={"share.delivery.count.limit": "2"})
    bench.fill(1)
    for delivery in (1, 2):
        assert letters(bench) == []
        member = Member(bench, f"m{delivery}")
        assert ranges(member.fetch()) == [(0, 0, delivery)]
        if how == "release":
            assert ack_code(member.acknowledge((0, 0, [RELEASE]))) == 0
        elif how == "expire":
            bench.pass_ms(30_000)
        else:
            member.fetch(epoch=-1)
    assert told(bench) == [(0, 2, EXCEEDED)]
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1


def test_the_next_leader_knows_the_reason_by_the_deliveries() -> None:
    bench = dead_bench(group={"share.delivery.count.limit": "2"})
    bench.fill(2)
    bench.node.append_at_leader = lambda *of: None  # type: ignore[method-assign]
    for count in (1, 2):
        member = Member(bench, f"m{count}")
        member.fetch()
        member.acknowledge(*([(0, 0, [REJECT])] if count == 1 else []), (1, 1, [RELEASE]))
    del bench.node.append_at_leader  # type: ignore[method-assign]
    bench.node.cluster.topics["t"].partitions[0].leader_epoch += 1
    Member(bench, "next").fetch()
    assert told(bench) == [(0, 1, REJECTED), (1, 2, EXCEEDED)]


def test_a_partition_is_chosen_by_that_of_the_record() -> None:
    bench = Bench(5, group=DEAD)
    make_topic(bench.node, "dlq.t", partitions=2, **ENABLED)
    member = Member(bench)
    for index in (0, 3):
        bench.fill(1, partition=index)
    member.fetch(partitions=[0, 3])
    for index in (0, 3):
        member.acknowledge((0, 0, [REJECT]), partition=index)
    assert [headers(letter)["partition"] for letter in letters(bench, 0)] == ["0"]
    assert [headers(letter)["partition"] for letter in letters(bench, 1)] == ["3"]


@pytest.mark.parametrize("codec", [0, 4])
def test_records_are_copied(codec: int) -> None:
    """With copying enabled, a dead letter has the key and value of its record.

    The batches are uncompressed or use one of the codecs.
    """
    bench = dead_bench(group=COPYING)
    produce(bench.node, batch_of(b"a", None, b"c", key=b"key", codec=codec))
    produce(bench.node, batch_of(b"d", key=None, codec=codec))
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 3, [REJECT, ACCEPT, REJECT, REJECT]))
    assert [(each.key, each.value) for each in letters(bench)] == [
        (b"key", b"a"), (b"key", b"c"), (None, b"d")
    ]  # fmt: skip
    assert [offset for offset, _, _ in told(bench)] == [0, 2, 3]


def test_a_record_that_is_gone_has_a_dead_letter_all_the_same() -> None:
    bench = dead_bench(group=COPYING)
    bench.fill(2, 1)
    member = Member(bench)
    member.fetch()
    bench.persister.held = []
    member.acknowledge((0, 2, [REJECT]))
    bench.topic.partitions[0].delete_records(2)
    bench.persister.answer_held()
    bench.run_due()
    assert [(each.value, headers(each)["offset"]) for each in letters(bench)] == [
        (None, "0"), (None, "1"), (b"value", "2")
    ]  # fmt: skip


def test_a_record_that_does_not_fit_has_no_copy() -> None:
    bench = Bench(group=COPYING)
    make_topic(bench.node, "dlq.t", max_message_bytes="1000", **ENABLED)
    produce(bench.node, batch_of(b"x" * 5000, b"y" * 300, b"z" * 300, b"w" * 300))
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 3, [REJECT]))
    found = letters(bench)
    assert [None if each.value is None else each.value[:1] for each in found] == [None, b"y", b"z", b"w"]
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 4


def test_many_records_are_written_batch_by_batch() -> None:
    """Each turn of the event loop writes one batch of limited size: 500, 500 and 200 records."""
    bench = dead_bench(group=COPYING)
    for _ in range(12):
        bench.fill(100)
    member = Member(bench)
    taken = sum(last - first + 1 for first, last, _ in ranges(member.fetch(max_records=2000)))
    assert taken == 1200
    member.acknowledge((0, 1199, [REJECT]))
    sizes = [len(batch) for batch in dead_batches(bench)]
    assert sizes == [500, 500, 200]
    assert [offset for offset, _, _ in told(bench)] == list(range(1200))
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1200


@pytest.mark.parametrize(
    ("name", "topic", "broker", "why"),
    [
        ("dlq.t", None, {}, "topic dlq.t does not exist"),
        ("dlq.t", {}, {}, "does not have errors.deadletterqueue.group.enable=true"),
        ("other", ENABLED, {}, "does not begin with dlq."),
        ("other", None, CREATING, "does not begin with dlq."),
        ("__x", ENABLED, {}, "the name of topic __x begins with __"),
        ("dlq.t", {**ENABLED, "cleanup_policy": "compact"}, {}, "offset 0"),
    ],
)  # fmt: skip
def test_without_a_usable_topic_records_are_archived(
    name: str,
    topic: dict[str, str] | None,
    broker: dict[str, str],
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(group={"errors.deadletterqueue.topic.name": name}, **broker)
    if topic is not None:
        make_topic(bench.node, name, **topic)
    bench.fill(3)
    member = Member(bench)
    member.fetch()
    assert ack_code(member.acknowledge((0, 2, [REJECT]))) == 0
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 3
    if topic is not None:
        assert letters(bench, topic=name) == []
    (line,) = [each.message for each in caplog.records if "without dead letters" in each.message]
    assert why in line
    assert "3 records of t-0" in line


def test_the_broker_creates_the_topic_if_it_may() -> None:
    bench = Bench(2, group=DEAD, errors_deadletterqueue_auto_create_topics_enable="true", num_partitions="2")
    bench.fill(1, partition=1)
    member = Member(bench)
    member.fetch(partitions=[0, 1])
    assert "dlq.t" not in bench.node.cluster.topics
    member.acknowledge((0, 0, [REJECT]), partition=1)
    topic = bench.node.cluster.topics["dlq.t"]
    assert len(topic.partitions) == 2
    assert topic.config.overrides == {
        "errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"
    }  # fmt: skip
    assert told(bench, partition=1) == [(0, 1, REJECTED)]


def test_any_name_is_allowed_without_a_prefix() -> None:
    bench = Bench(
        group={"errors.deadletterqueue.topic.name": "x"}, errors_deadletterqueue_topic_name_prefix=""
    )
    make_topic(bench.node, "x", **ENABLED)
    bench.fill(1)
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 0, [REJECT]))
    assert told(bench, topic="x") == [(0, 1, REJECTED)]


@pytest.mark.parametrize("failures", [1, 4, 5])
def test_a_failing_write_is_tried_again_and_ends_only_itself(
    failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench = dead_bench(group={"share.record.lock.duration.ms": "60000"})
    bench.fill(2)
    member = Member(bench)
    member.fetch()
    append = bench.node.append_at_leader
    left = [StorageError("the disk refuses")] * failures

    def fail(*of: Any) -> None:
        if left:
            raise left.pop()
        append(*of)

    bench.node.append_at_leader = fail  # type: ignore[method-assign]
    assert ack_code(member.acknowledge((0, 0, [REJECT]))) == 0
    for _ in range(failures):
        bench.pass_ms(8_000)
    lines = [each.message for each in caplog.records if "without dead letters" in each.message]
    assert len(lines) == (failures == 5)
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1
    assert ack_code(member.acknowledge((1, 1, [REJECT]))) == 0
    assert [offset for offset, _, _ in told(bench)] == ([1] if failures == 5 else [0, 1])


def test_an_error_in_the_broker_ends_only_the_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = dead_bench()
    bench.fill(3)
    member = Member(bench)
    member.fetch()
    with monkeypatch.context() as patch:
        patch.setattr(dead_records, "BATCH_BYTES", None)
        assert ack_code(member.acknowledge((0, 1, [REJECT]))) == 0
    assert bench.node.failures.counts == {"share groups": 1}
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 2
    member.acknowledge((2, 2, [REJECT]))
    assert [offset for offset, _, _ in told(bench)] == [2]


def test_a_refused_acknowledgement_has_no_dead_letter() -> None:
    bench = dead_bench()
    bench.fill(1)
    member = Member(bench)
    member.fetch()
    bench.persister.error_code = 15
    assert ack_code(member.acknowledge((0, 0, [REJECT]))) == 15
    assert letters(bench) == []
    bench.persister.error_code = 0
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == 0
    assert letters(bench) == []


def test_without_memory_records_are_archived() -> None:
    bench = dead_bench()
    bench.fill(1)
    member = Member(bench)
    member.fetch()
    bench.node.kept.limit_bytes = 0
    assert ack_code(member.acknowledge((0, 0, [REJECT]))) == 0
    assert letters(bench) == []
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1


@pytest.mark.parametrize(("level", "release"), [(1, None), (2, "4.3"), (None, "4.3")])
def test_a_cluster_without_the_feature_has_no_dead_letters(level: int | None, release: str | None) -> None:
    bench = dead_bench()
    if level is not None:
        bench.node.cluster.set_features({"share.version": level}, bench.clock.now_ms())
    if release is not None:
        bench.node.config.release = BrokerConfig({}, release).release
    bench.fill(1)
    member = Member(bench)
    member.fetch()
    assert ack_code(member.acknowledge((0, 0, [REJECT]))) == 0
    assert stored(bench) == [] or {state for _, _, state in stored(bench)} == {4}
    assert letters(bench) == []
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1


def test_a_share_partition_with_waiting_dead_letters_stays_in_memory() -> None:
    bench = dead_bench()
    bench.fill(1)
    bench.node.append_at_leader = lambda *of: None  # type: ignore[method-assign]
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 0, [REJECT]))
    (led,) = bench.node.sharing.partitions.values()
    assert not led.may_be_dropped
    assert led.size_bytes > 1400
