"""Tests of copying a topic to another cluster: each record once, even after interruptions."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.errors import ConfigError, KafkaError, PenstockError, TopicRecreatedError
from penstock.records.format.batch_header import read_header
from penstock.tables import topic_mirror
from penstock.tables.topic_mirror import TopicMirror

RECORDS = [
    (0, b"k", b"v", 1_700_000_000_000, [("a", b"1"), ("a", b"2"), ("n", None)]),
    (1, None, None, 5, []),
    (2, b"\xff", b"", 1_700_000_000_001, [("bin", b"\xfe")]),
    (2, b"", b"\x00", 0, []),
]


@pytest.fixture
def old() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def new() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


def fill(address: str, topic: str = "t", rounds: int = 1) -> None:
    """Write the test records `rounds` times to a topic of three partitions, which is created if necessary."""
    with Admin(address) as admin:
        if topic not in admin.list_topics():
            admin.create_topic(topic, partitions=3, config={"retention.ms": "-1"})
    with Producer(address) as producer:
        sent = [
            producer.send(topic, value, key=key, partition=where, timestamp=at, headers=headers)
            for _ in range(rounds)
            for where, key, value, at, headers in RECORDS
        ]
        for delivery in sent:
            delivery.result()


def contents(
    address: str, topic: str = "t", isolation: str = "read_committed"
) -> list[list[tuple[Any, ...]]]:
    """Return the records of each partition in the order of their offsets."""
    found: dict[int, list[tuple[Any, ...]]] = {0: [], 1: [], 2: []}
    with Consumer(address, isolation_level=isolation) as consumer:
        consumer.assign([(topic, number) for number in found])
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(consumer.assignment())
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for r in consumer.poll(timeout_ms=500):
                found[r.partition].append((r.key, r.value, r.timestamp, tuple(r.headers)))
    return list(found.values())


def copy(old: str, new: str, **options: Any) -> int:
    """Copy the topic to its end, and return the number of copied records."""
    with TopicMirror("t", old, new, **options) as mirror:
        while not mirror.is_at_end:
            mirror.step()
        return sum(part.copied for part in mirror.progress())


def test_everything_about_a_record_stays_and_a_second_run_goes_on(old: str, new: str) -> None:
    fill(old)
    assert copy(old, new) == 4
    assert contents(new) == contents(old)
    assert copy(old, new) == 0
    fill(old)
    assert copy(old, new, compression="gzip") == 4
    assert contents(new) == contents(old)
    with Admin(new) as admin:
        settings = admin.describe_config("t")
        assert settings["retention.ms"].value == "-1"
        (group,) = [group.group_id for group in admin.list_groups()]
        assert group.startswith("penstock-mirror-")


def test_a_copy_that_fails_midway_leaves_nothing_of_it(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_mirror, "STEP_BYTES_MAX", 100)
    fill(old, rounds=5)
    with TopicMirror("t", old, new) as mirror:
        assert mirror.step(5_000) > 0
        send_offsets = mirror._producer.send_offsets

        def fail(*arguments: Any) -> None:
            send_offsets(*arguments)
            mirror._producer.flush()
            raise ZeroDivisionError

        monkeypatch.setattr(mirror._producer, "send_offsets", fail)
        with pytest.raises(ZeroDivisionError):
            mirror.step(5_000)
    # Which partition came first is up to the fetches.
    written, committed = (contents(new, isolation=each) for each in ("read_uncommitted", "read_committed"))
    assert sum(map(len, written)) > sum(map(len, committed))
    copy(old, new)
    assert contents(new) == contents(old)


def test_a_second_copy_of_the_same_name_fences_the_first(old: str, new: str) -> None:
    fill(old)
    with TopicMirror("t", old, new) as first:
        assert copy(old, new) == 4
        with pytest.raises(PenstockError, match=r"another copy named penstock-mirror-.* has started"):
            first.step(5_000)
    assert contents(new) == contents(old)


def test_aborted_records_are_not_copied_unless_asked_for(old: str, new: str) -> None:
    fill(old)
    with Producer(old, transactional_id="x") as producer:
        producer.begin_transaction()
        producer.send("t", b"aborted", partition=0).result()
        producer.abort_transaction()
    assert copy(old, new) == 4
    assert contents(new) == contents(old)
    assert copy(old, new, target_topic="all", isolation="read_uncommitted", name="other") == 5


def test_a_target_without_transactions_gets_each_record_too(old: str) -> None:
    fill(old)
    with Broker(as_version="0.10.2", log_retention_ms=-1) as older:
        with Admin(old) as admin:
            admin.create_topic("plain", partitions=1)
        with Producer(old) as producer:
            producer.send("plain", b"v", key=b"k", timestamp=7).result()
        for expected in (1, 0):
            with TopicMirror("plain", old, older.bootstrap_servers) as mirror:
                assert not mirror.is_exactly_once
                copied = 0
                while not mirror.is_at_end:
                    copied += mirror.step()
            assert copied == expected


def test_what_cannot_be_copied_is_refused(old: str, new: str) -> None:
    fill(old)
    with pytest.raises(ConfigError, match="source and target are one cluster"), TopicMirror("t", old, old):
        pass
    with pytest.raises(KafkaError, match="'none' does not exist"), TopicMirror("none", old, new):
        pass
    with Admin(new) as admin:
        admin.create_topic("t", partitions=1)
    with pytest.raises(ConfigError, match="penstock topic grow t --partitions 3"), TopicMirror("t", old, new):
        pass
    assert copy(old, new, target_topic="u", name="n") == 4
    with Admin(old) as admin:
        admin.delete_topics(["t"])
        admin.create_topic("t", partitions=3)
    with pytest.raises(TopicRecreatedError, match="penstock group delete n starts afresh"):
        copy(old, new, target_topic="u", name="n")
    with Admin(new) as admin:
        # Positions of an older release say nothing of the topic.
        plain = {tp: at.offset for tp, at in admin.list_group_offsets("n").items()}
        admin.alter_group_offsets("n", plain)
    with pytest.raises(ConfigError, match="penstock group delete n starts afresh"):
        copy(old, new, target_topic="u", name="n")


def test_what_retention_has_removed_is_said(old: str, new: str, caplog: pytest.LogCaptureFixture) -> None:
    fill(old)
    assert copy(old, new) == 4
    fill(old)
    with Admin(old) as admin:
        admin.delete_records({("t", 2): 3})
    assert copy(old, new) == 3
    assert "t-2: offsets 2 to 2 were removed from the source before they were copied" in caplog.text


def test_partitions_that_the_source_gets_meanwhile_are_copied_too(
    old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(old)
    with TopicMirror("t", old, new) as mirror:
        while not mirror.is_at_end:
            mirror.step()
        with Admin(old) as admin:
            admin.create_partitions("t", 5)
        with Producer(old) as producer:
            for number in (1, 3, 4):
                producer.send("t", b"late", partition=number).result()
        mirror.look_at_end()
        assert not mirror.is_at_end
        while not mirror.is_at_end:
            mirror.step()
        assert [part.copied for part in mirror.progress()] == [1, 2, 2, 1, 1]
    assert "t has 5 partitions now" in caplog.text
    assert copy(old, new) == 0
    with Consumer(new) as consumer:
        assert list(consumer.end_offsets([("t", 3), ("t", 4)]).values()) == [2, 2]  # a record, and its marker


def test_the_codec_of_the_source_is_kept_unless_another_is_asked_for(old: str, new: str) -> None:
    with Admin(old) as admin:
        admin.create_topic("t", partitions=3)
    with Producer(old, compression_type="zstd") as producer:
        producer.send("t", b"v" * 1000, partition=0).result()
    copy(old, new)
    copy(old, new, target_topic="plain", name="plain", compression="none")
    sizes = {}
    for topic in ("t", "plain"):
        with Consumer(new) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek_to_beginning()
            part = consumer.poll_part(5_000)
            assert part is not None
            sizes[topic] = read_header(part.records).batch_length
    assert sizes["t"] < 200 < 1000 < sizes["plain"]


def test_what_retention_removes_while_it_is_copied_is_said(
    old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(old)
    with TopicMirror("t", old, new) as mirror:
        while not mirror.is_at_end:
            mirror.step()
        mirror._consumer.pause([("t", 2)])
        fill(old)
        with Admin(old) as admin:
            admin.delete_records({("t", 2): 3})
        mirror._consumer.resume([("t", 2)])
        mirror.look_at_end()
        while not mirror.is_at_end:
            mirror.step()
        assert sum(part.copied for part in mirror.progress()) == 7
    assert "t-2: offsets 2 to 2 were removed from the source before they were copied" in caplog.text


@pytest.mark.soak
def test_a_copy_that_is_killed_at_any_moment_has_every_record_once(old: str, new: str) -> None:
    rounds = 20_000
    fill(old, rounds=rounds)
    words = [sys.executable, "-m", "penstock", "mirror", "--from", old, "-b", new, "-t", "t", "-q"]
    dice = random.Random(7)
    kills = 0
    while True:
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + dice.uniform(0.8, 2.5)
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if process.poll() is not None:
                assert process.returncode == 0
                break
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
    assert kills > 0
    assert contents(new) == contents(old)


def recreate(address: str, topic: str, rounds: int) -> None:
    with Admin(address) as admin:
        admin.delete_topics([topic])
    fill(address, topic, rounds)


def to_end(mirror: TopicMirror) -> None:
    while not mirror.is_at_end:
        mirror.step()


@pytest.mark.parametrize("rounds", [1, 9])
def test_a_source_that_was_created_anew_ends_the_copy(old: str, new: str, rounds: int) -> None:
    """The new topic is shorter or longer than the copy.

    Both a running copy and a restarted one end.
    """
    fill(old, rounds=3)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
        recreate(old, "t", rounds)
        with pytest.raises(
            TopicRecreatedError, match=r"in the source.*penstock group delete penstock-mirror"
        ):
            mirror.step(5_000)
    with pytest.raises(TopicRecreatedError, match="created anew"), TopicMirror("t", old, new):
        pass
    assert [len(each) for each in contents(new)] == [3, 3, 6]
    with Admin(new) as admin:
        admin.delete_groups([mirror.name])
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    assert [len(each) for each in contents(new)] == [3 + rounds, 3 + rounds, 6 + 2 * rounds]


def test_a_target_that_was_created_anew_ends_the_copy(old: str, new: str) -> None:
    fill(old, rounds=3)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
        recreate(new, "t", 0)
        fill(old)
        with pytest.raises(TopicRecreatedError, match="in the target, what was copied is gone"):
            mirror.step(5_000)
    with pytest.raises(TopicRecreatedError, match="in the target"), TopicMirror("t", old, new):
        pass
    with Admin(new) as admin:
        admin.delete_groups([mirror.name])
        admin.delete_records({TopicPartition("t", number): -1 for number in range(3)})
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    assert [len(each) for each in contents(new)] == [4, 4, 8]


def test_a_target_that_was_deleted_is_filled_from_the_beginning(old: str, new: str) -> None:
    """The copy's offsets are deleted with the topic."""
    fill(old, rounds=3)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    recreate(new, "t", 0)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    assert [len(each) for each in contents(new)] == [3, 3, 6]


def test_positions_without_ids_are_taken_as_they_are_and_get_them(old: str, new: str) -> None:
    fill(old, rounds=3)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    with Admin(new) as admin:
        plain = {tp: at.offset for tp, at in admin.list_group_offsets(mirror.name).items()}
        admin.alter_group_offsets(mirror.name, plain)
    fill(old)
    with TopicMirror("t", old, new) as mirror:
        to_end(mirror)
    assert [len(each) for each in contents(new)] == [4, 4, 8]
    recreate(old, "t", 9)
    with pytest.raises(TopicRecreatedError), TopicMirror("t", old, new):
        pass
