"""Tests of copying consumer group offsets with a topic: no group skips or repeats a record in the copy."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import pytest

from old_brokers import ask_0_9_briefly
from penstock import Admin, Broker, Consumer, Producer, TopicPartition
from penstock.client.group.offsets import OffsetAndMetadata
from penstock.client.produce.encoded import EncodedBatch, TableDelivery
from penstock.errors import ConfigError, KafkaError, PenstockError
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.tables import topic_mirror
from penstock.tables.mirroring import map_topic, offset_map
from penstock.tables.mirroring.record_check import check_copy
from penstock.tables.topic_mirror import TopicMirror

PARTITIONS = 2
KEEP = "penstock.keep.offsets"


@pytest.fixture
def old() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def new() -> Iterator[str]:
    with Broker(log_retention_ms=-1) as broker:
        yield broker.bootstrap_servers


class Source:
    """A source topic with transaction markers, aborted records, and gaps within and between batches.

    They make the offsets of the copy differ.
    """

    def __init__(self, address: str, dice: random.Random) -> None:
        self.address, self._dice = address, dice
        self._number = 0
        with Admin(address) as admin:
            admin.create_topic("t", partitions=PARTITIONS, config={"retention.ms": "-1"})

    def grow(self) -> None:
        dice = self._dice
        for _ in range(dice.randrange(1, 4)):
            kind = dice.choice(("plain", "gaps", "committed", "aborted", "committed"))
            if kind == "gaps":
                self._leave_gaps()
            elif kind == "plain":
                with Producer(self.address, linger_ms=dice.choice((0, 5))) as producer:
                    self._send(producer)
            else:
                with Producer(self.address, transactional_id=f"x{dice.randrange(3)}") as producer:
                    producer.begin_transaction()
                    self._send(producer)
                    producer.commit_transaction() if kind == "committed" else producer.abort_transaction()

    def _next(self) -> bytes:
        self._number += 1
        return b"%d" % self._number

    def _send(self, producer: Producer) -> None:
        for _ in range(self._dice.randrange(1, 9)):
            producer.send("t", self._next(), partition=self._dice.randrange(PARTITIONS)).result()

    def _leave_gaps(self) -> None:
        """Write batches with offset gaps, as compaction leaves them."""
        dice = self._dice
        with Admin(self.address) as admin:
            admin.alter_config("t", set={KEEP: "true"})
            for partition in range(PARTITIONS):
                end = end_of(admin, partition)
                deltas = sorted(dice.sample(range(20), dice.randrange(1, 8)))
                rows = [(b"k", self._next(), (), 1_000 + at) for at in deltas]
                first = end + dice.choice((0, 0, 3))
                codec = dice.choice((CompressionCodec.NONE, CompressionCodec.GZIP))
                put_batch(self.address, partition, rows, first, deltas, codec)
            admin.alter_config("t", set={KEEP: "false"})


def put_batch(
    address: str, partition: int, rows: list[Any], first: int, deltas: list[int], codec: int = 0
) -> None:
    data = encode_batch(rows, base_offset=first, offset_deltas=deltas, codec=codec)
    delivery = TableDelivery("t")
    with Producer(address) as producer:
        batch = EncodedBatch(partition, memoryview(bytearray(data)), len(rows))
        producer.send_encoded("t", batch, delivery)
        delivery.result()


def end_of(admin: Admin, partition: int, topic: str = "t", when: int = -1) -> int:
    tp = TopicPartition(topic, partition)
    at = admin.list_offsets({tp: when})[tp]
    return 0 if at is None else at.offset


def records(address: str, topic: str = "t") -> list[list[tuple[int, bytes]]]:
    """Return the offsets and values that a read_committed consumer gets from each partition."""
    found: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    with Consumer(address, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(consumer.assignment())
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for r in consumer.poll(timeout_ms=500):
                found[r.partition].append((r.offset, bytes(r.value or b"")))
    return found


def commit(address: str, group: str, partition: int, offset: int, metadata: str = "") -> None:
    with Admin(address) as admin:
        admin.alter_group_offsets(group, {("t", partition): OffsetAndMetadata(offset, metadata)})


def committed(address: str, group: str, topic: str = "t") -> dict[int, tuple[int, str]]:
    with Admin(address) as admin:
        found = admin.list_group_offsets(group)
    return {tp.partition: (at.offset, at.metadata) for tp, at in found.items() if tp.topic == topic}


def unread(found: list[tuple[int, bytes]], offset: int) -> list[bytes]:
    """Return the values that a group has yet to read from an offset on."""
    return [value for _, value in found[bisect_left(found, (offset, b"")) :]]


def to_end(mirror: TopicMirror) -> None:
    mirror.look_at_end()
    while not mirror.is_at_end:
        mirror.step()


def check_groups(old: str, new: str, groups: list[str]) -> int:
    """Check that every group continues at the same record in the target; return the number of offsets."""
    here, there = records(old), records(new)
    assert [[value for _, value in part] for part in there] == [[value for _, value in part] for part in here]
    compared = 0
    for group in groups:
        source, target = committed(old, group), committed(new, group)
        assert source.keys() == target.keys()
        for partition, (offset, metadata) in source.items():
            moved, note = target[partition]
            assert note == metadata
            assert unread(there[partition], moved) == unread(here[partition], offset), (group, partition)
            compared += 1
    return compared


class StopError(Exception):
    """An exception that simulates a crash of the copy."""


def stop_somewhere(mirror: TopicMirror, dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the copy fail at its next commit, before the commit or after its effect."""
    what = dice.choice(("send_offsets", "commit_transaction"))
    client: Any = mirror._producer
    if not mirror.is_exactly_once:
        what, client = "alter_group_offsets", mirror._admin
    call = getattr(client, what)
    is_after = dice.random() < 0.5

    def stop(*arguments: Any) -> None:
        if is_after:
            call(*arguments)
        raise StopError

    monkeypatch.setattr(client, what, stop)


@pytest.mark.parametrize("keep_offsets", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_group_skips_a_record_or_has_one_again(
    seed: int, keep_offsets: bool, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs and commits are random, and the copy is stopped and restarted at random points."""
    dice = random.Random(seed)
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", dice.choice((2, 5, 512)))
    monkeypatch.setattr(topic_mirror, "STEP_BYTES_MAX", dice.choice((100, 1_000)))
    source = Source(old, dice)
    groups = [f"g{number}" for number in range(6)]
    compared = 0
    for _ in range(4):
        source.grow()
        with Admin(old) as admin:
            for group in dice.sample(groups, 4):
                partition = dice.randrange(PARTITIONS)
                offset = dice.randrange(end_of(admin, partition) + 1)
                commit(old, group, partition, offset, dice.choice(("", f"note {offset}")))
        try:
            with TopicMirror("t", old, new, groups=["g*"], keep_offsets=keep_offsets) as mirror:
                mirror.move_groups()
                ahead = [(group, at) for group in groups for at in committed(new, group).items()]
                there = records(new)
                for _, (partition, (offset, _)) in ahead:
                    assert offset <= (there[partition][-1][0] + 2 if there[partition] else offset)
                if dice.random() < 0.5:
                    stop_somewhere(mirror, dice, monkeypatch)
                to_end(mirror)
                mirror.move_groups()
        except StopError:
            continue
        compared += check_groups(old, new, groups)
    with TopicMirror("t", old, new, groups=["g*"], keep_offsets=keep_offsets) as mirror:
        to_end(mirror)
        mirror.move_groups()
        assert mirror.waiting_offsets == 0
        here, there = records(old), records(new)
        with Admin(old) as admin:
            for partition in range(PARTITIONS):
                for offset in range(end_of(admin, partition) + 1):
                    target = mirror._translated(partition, offset)
                    assert target is not None
                    assert unread(there[partition], target) == unread(here[partition], offset)
    compared += check_groups(old, new, groups)
    assert compared > 0
    if keep_offsets:
        assert there == here


def test_an_offset_waits_until_its_records_are_copied(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_mirror, "STEP_BYTES_MAX", 1)
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for number in range(3):
            producer.send("t", b"%d" % number, partition=0).result()
    commit(old, "g", 0, 2)
    with TopicMirror("t", old, new, groups=["g"]) as mirror:
        for position in range(3):
            assert (mirror.move_groups(), mirror.waiting_offsets) == ((0, 1) if position < 2 else (1, 0))
            assert mirror.step(5_000) == 1
        assert committed(new, "g") == {0: (4, "")}  # a record and a marker for each step
        assert mirror.move_groups() == 0
        assert mirror.groups == ["g"]
        assert [part.moved for part in mirror.progress()] == [1, 0]


def test_a_group_that_consumes_in_the_target_is_left_alone(
    old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for number in range(4):
            producer.send("t", b"%d" % number, partition=0).result()
    for group in ("moves", "joined", "was-there"):
        commit(old, group, 0, 1)
    with Admin(new) as admin:
        admin.create_topic("t", partitions=PARTITIONS)
    commit(new, "was-there", 0, 0)
    with (
        TopicMirror("t", old, new, groups=["*"]) as mirror,
        Consumer(new, group_id="joined", enable_auto_commit=False) as consumer,
    ):
        consumer.subscribe("t")
        while not consumer.assignment():
            consumer.poll(100)
        to_end(mirror)
        assert mirror.move_groups() == 1
        assert mirror.groups == ["moves"]
        assert committed(new, "was-there") == {0: (0, "")}
        assert committed(new, "joined") == {}
        commit(new, "moves", 0, 3)  # it reads on there
        commit(old, "moves", 0, 2)
        assert mirror.move_groups() == 0
        assert committed(new, "moves") == {0: (3, "")}
    assert "group joined is left alone while it has members in the target" in caplog.text
    assert "group was-there is left alone: it has offsets in the target" in caplog.text
    with Admin(new) as admin:
        admin.delete_groups(["moves"])
    with TopicMirror("t", old, new, groups=["moves"]) as mirror:
        assert mirror.move_groups() == 1
    assert committed(new, "moves") == {0: (2, "")}


def test_groups_go_back_and_forth_as_in_the_source_and_stay_when_they_are_deleted_there(
    old: str, new: str
) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for number in range(4):
            producer.send("t", b"%d" % number, partition=1).result()
    for offset in (3, 1, 4):
        commit(old, "g", 1, offset, f"at {offset}")
        with TopicMirror("t", old, new, groups=["g"]) as mirror:  # another machine each time
            to_end(mirror)
            assert mirror.move_groups() == 1
            assert mirror.move_groups() == 0
        assert committed(new, "g") == {1: (offset if offset < 4 else 5, f"at {offset}")}
    with Admin(old) as admin:
        admin.delete_groups(["g"])
    with TopicMirror("t", old, new, groups=["g"]) as mirror:
        assert mirror.move_groups() == 0
    assert committed(new, "g") == {1: (5, "at 4")}


def test_groups_of_copies_are_not_moved(old: str, new: str) -> None:
    """Offsets of other copies' groups mean nothing in the target.

    Those of this copy's own group would be overwritten.
    """
    Source(old, random.Random(1))
    with Producer(old) as producer:
        producer.send("t", b"v", partition=0).result()
    for group in ("penstock-mirror-x-t", "mine", "other"):
        commit(old, group, 0, 0)
    with TopicMirror("t", old, new, name="mine", groups=["*"]) as mirror:
        to_end(mirror)
        assert mirror.move_groups() == 1
        assert mirror.groups == ["other"]


def test_a_second_copy_ends_the_first_before_it_commits_for_groups(old: str, new: str) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        producer.send("t", b"1", partition=0).result()
    with TopicMirror("t", old, new, groups=["*"]) as first:
        to_end(first)
        commit(old, "g", 0, 1)
        with TopicMirror("t", old, new):
            pass
        with pytest.raises(PenstockError, match=r"another copy named penstock-mirror-.* has started"):
            first.move_groups()
    assert committed(new, "g") == {}


def test_a_copy_of_an_older_release_has_a_map_from_where_it_goes_on(
    old: str, new: str, caplog: pytest.LogCaptureFixture
) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for _ in range(4):
            producer.send("t", b"v", partition=0).result()
        with TopicMirror("t", old, new) as mirror:
            to_end(mirror)
            name = mirror.name
        with Admin(new) as admin:
            plain = {tp: at.offset for tp, at in admin.list_group_offsets(name).items()}
            admin.alter_group_offsets(name, plain)
        producer.send("t", b"v", partition=0).result()
    commit(old, "early", 0, 2)
    commit(old, "late", 0, 4)
    with TopicMirror("t", old, new, groups=["*"]) as mirror:
        to_end(mirror)
        assert mirror.move_groups() == 1
        assert mirror.groups == ["late"]
    assert committed(new, "late") == {0: (5, "")}
    assert "has no map of partition 0 before offset 4" in caplog.text
    assert "group early is not moved: t-0: offset 2 lies before the map" in caplog.text


def test_a_target_that_does_not_let_the_map_be_made(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Source(old, random.Random(1))
    monkeypatch.setattr(map_topic, "SETTINGS", {"cleanup.policy": "nonsense"})
    with pytest.raises(KafkaError), TopicMirror("t", old, new, groups=["g"]):
        pass
    with TopicMirror("t", old, new) as mirror:
        assert mirror.move_groups() == 0
    assert "cannot be made, so that no map of offsets is kept" in caplog.text


def test_a_target_without_transactions_gets_groups_too(old: str) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for _ in range(3):
            producer.send("t", b"v", partition=0).result()
    with Broker(as_version="0.10.2", log_retention_ms=-1) as older:
        for offset in (1, 3):
            commit(old, "g", 0, offset)
            with TopicMirror("t", old, older.bootstrap_servers, groups=["g"]) as mirror:
                to_end(mirror)
                assert mirror.move_groups() == 1
            assert committed(older.bootstrap_servers, "g") == {0: (offset, "")}


@pytest.mark.parametrize("release", ["0.9", "0.10.2"])
def test_a_source_of_old_has_its_groups_moved(
    release: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before 0.11 have no transactions, so all records count as committed."""
    ask_0_9_briefly(release, monkeypatch)
    with Broker(as_version=release, log_retention_ms=-1) as older:
        address = older.bootstrap_servers
        with Producer(address) as producer:
            for _ in range(4):
                producer.send("t", b"v", partition=0).result()
        commit(address, "g", 0, 3, "old")
        with TopicMirror("t", address, new, groups=["g"]) as mirror:
            while not mirror.is_at_end:
                mirror.step()
            assert mirror.move_groups() == 1
        assert committed(new, "g") == {0: (3, "old")}


def test_a_target_that_keeps_offsets_begins_where_the_source_does(old: str, new: str) -> None:
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for number in range(6):
            producer.send("t", b"%d" % number, partition=0).result()
    with Admin(old) as admin:
        admin.delete_records({("t", 0): 2})
    commit(old, "g", 0, 5, "kept")
    for _ in range(2):
        with TopicMirror("t", old, new, groups=["g"], keep_offsets=True) as mirror:
            to_end(mirror)
            mirror.move_groups()
    with Admin(new) as admin:
        assert (end_of(admin, 0, when=-2), end_of(admin, 0)) == (2, 6)
    assert records(new) == records(old)
    assert committed(new, "g") == {0: (5, "kept")}
    with Admin(old) as admin:
        admin.delete_records({("t", 0): 4})
    with Producer(old) as producer:
        producer.send("t", b"6", partition=0).result()
    with TopicMirror("t", old, new, keep_offsets=True) as mirror:
        to_end(mirror)
    with Admin(new) as admin:  # what the source removes later stays
        assert (end_of(admin, 0, when=-2), end_of(admin, 0)) == (2, 7)
        admin.delete_records({("t", 0): 4})
    # Written, and not committed: the log itself says what there is.
    with Admin(new) as admin:
        admin.alter_group_offsets(mirror.name, {("t", 0): 3})
    with TopicMirror("t", old, new, keep_offsets=True) as mirror:
        to_end(mirror)
    assert records(new) == records(old)
    with (
        pytest.raises(ConfigError, match=r"has penstock.keep.offsets, and this copy does not keep offsets"),
        TopicMirror("t", old, new),
    ):
        pass
    with Admin(new) as admin:
        admin.alter_config("t", set={KEEP: "false"})
    with (
        pytest.raises(ConfigError, match=r"penstock config set t penstock.keep.offsets=true"),
        TopicMirror("t", old, new, keep_offsets=True),
    ):
        pass
    with Producer(new) as producer:
        assert producer.send("t", b"on", partition=0).result().offset == 7


def test_what_retention_has_removed_from_the_target_leaves_the_map(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group whose next record is removed continues with the first remaining one."""
    monkeypatch.setattr(offset_map, "CHUNK_RUNS", 2)
    monkeypatch.setattr(topic_mirror, "STEP_BYTES_MAX", 1)
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for number in range(8):
            producer.send("t", b"%d" % number, partition=0).result()
    with TopicMirror("t", old, new, groups=["g"]) as mirror:
        to_end(mirror)
        assert mirror._maps is not None
        before = mirror._maps.maps[0].chunks()
        with Admin(new) as admin:
            admin.delete_records({("t", 0): 9})  # four records and their markers, and a fifth
        monkeypatch.setattr(topic_mirror, "TRIM_EVERY_S", 0)
        mirror.look_at_end()
        assert len(before) - len(mirror._maps.maps[0].chunks()) == 2
        for offset, expected in ((1, 9), (4, 9), (5, 10)):
            commit(old, "g", 0, offset)
            assert mirror.move_groups() == (offset != 4)  # the same as before
            assert committed(new, "g") == {0: (expected, "")}
    # The chunks are gone from the topic as well.
    with TopicMirror("t", old, new) as mirror:
        assert mirror._maps is not None
        assert min(mirror._maps.maps[0].chunks()) == 4
        assert not mirror._maps.has_changed


def test_a_copy_goes_on_behind_what_another_of_its_name_had_under_way(old: str, new: str) -> None:
    """Copies that keep offsets do not fence each other, but each record is written once."""
    Source(old, random.Random(1))
    with (
        TopicMirror("t", old, new, keep_offsets=True) as first,
        TopicMirror("t", old, new, keep_offsets=True) as second,
        Producer(old) as producer,
    ):
        for number in range(6):
            for partition in range(PARTITIONS):
                producer.send("t", b"%d" % number, partition=partition).result()
            turns = (first, second) if number % 2 else (second, first)
            for mirror in turns:
                mirror.look_at_end()
                for _ in range(20):
                    if not mirror.is_at_end:
                        mirror.step(5_000)
                assert mirror.is_at_end
    assert records(new) == records(old)


def test_nothing_follows_a_batch_that_is_refused(old: str, new: str) -> None:
    """The copy stops at the refused batch, which could never be copied after later ones."""
    Source(old, random.Random(1))
    with Producer(old) as producer:
        for value in (b"small", b"large" * 1_000, b"last"):
            producer.send("t", value, partition=0).result()
    with TopicMirror("t", old, new, keep_offsets=True) as mirror:
        with Admin(new) as admin:
            admin.alter_config("t", set={"max.message.bytes": "1000"})
        with pytest.raises(KafkaError):
            to_end(mirror)
    assert records(new)[0] == [(0, b"small")]
    with Admin(new) as admin:
        admin.alter_config("t", set={"max.message.bytes": "1000000"})
    with TopicMirror("t", old, new, keep_offsets=True) as mirror:
        to_end(mirror)
    assert records(new) == records(old)


@pytest.mark.soak
@pytest.mark.parametrize("keep_offsets", [False, True])
@pytest.mark.parametrize("seed", [11])
def test_groups_of_a_copy_that_is_killed_at_any_moment(
    seed: int, keep_offsets: bool, old: str, new: str
) -> None:
    dice = random.Random(seed)
    source = Source(old, dice)
    words = [sys.executable, "-m", "penstock", "mirror", "--from", old, "-b", new, "-t", "t", "-q", "-f"]
    words += ["--groups", "g*", *(["--keep-offsets"] if keep_offsets else [])]
    groups = [f"g{number}" for number in range(5)]
    history: dict[tuple[str, int], list[int]] = {}
    deadline = time.monotonic() + 60
    kills = seen = 0
    while time.monotonic() < deadline:
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            until = time.monotonic() + dice.uniform(0.5, 5)
            while time.monotonic() < until:
                source.grow()
                with Admin(old) as admin:
                    group, partition = dice.choice(groups), dice.randrange(PARTITIONS)
                    offset = dice.randrange(end_of(admin, partition) + 1)
                commit(old, group, partition, offset)
                history.setdefault((group, partition), []).append(offset)
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        seen += check_history(old, new, history)
    with TopicMirror("t", old, new, groups=["g*"], keep_offsets=keep_offsets) as mirror:
        to_end(mirror)
        mirror.move_groups()
        assert mirror.waiting_offsets == 0
    assert kills > 5
    assert seen > 5
    assert check_groups(old, new, groups) > 5
    assert all(not each.different for each in check_copy("t", old, new, keep_offsets=keep_offsets))


def check_history(old: str, new: str, history: dict[tuple[str, int], list[int]]) -> int:
    """Check that each group continues in a killed copy at one of its committed offsets.

    Return the number of offsets compared.
    """
    with Admin(new) as admin:
        if "t" not in admin.list_topics():
            return 0
    here, there = records(old), records(new)
    seen = 0
    for (group, partition), offsets in history.items():
        moved = committed(new, group).get(partition)
        if moved is None:
            continue
        expected = [unread(here[partition], offset)[:1] for offset in offsets]
        to_read = unread(there[partition], moved[0])[:1]
        if not to_read:  # what comes next is not copied yet
            to_read = [value for _, value in here[partition]][len(there[partition]) :][:1]
        assert to_read in expected, (group, partition, moved)
        seen += 1
    return seen
