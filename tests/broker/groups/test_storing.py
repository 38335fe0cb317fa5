"""Tests that classic groups, members and offsets survive restarts, stored in Kafka's record formats."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bench_node import NOW_MS, make_node
from broker.groups.bench_group import Bench
from broker.groups.requests import commit_request
from penstock.broker.config.values import BrokerConfig
from penstock.broker.coordination.state_topic import StateTopic
from penstock.broker.groups.classic import coordinator as coordinator_module
from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.records import ClassicRecords, group_record, snapshot
from penstock.broker.groups.offsets import CommittedOffset
from penstock.broker.groups.records import StoredOffset, StoredRecord, offset_record, read_record
from penstock.broker.groups.topic import LAYOUT
from penstock.broker.metadata.stores import open_disk_store
from penstock.clock import ManualClock
from penstock.errors import DecodeError, StorageError
from penstock.log.contract import LogConfig
from penstock.log.segments.salvage import sound_batches
from penstock.log.segments.segment import FileSegment
from penstock.log.walk import walk_buffer
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from penstock.protocol.messages.list_groups_request import ListGroupsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.records.batch import encode_batch, encode_marker
from penstock.records.format.crc import crc32c

E = ErrorCode

CLASSIC = ClassicRecords()

STORED_MEMBER = MemberMetadata(
    member_id="m-1",
    group_instance_id="i-1",
    client_id="c",
    client_host="/10.0.0.1",
    rebalance_timeout=30_000,
    session_timeout=10_000,
    subscription=b"S",
    assignment=b"A",
)
STORED_GROUP = GroupMetadataValue(
    protocol_type="consumer",
    generation=5,
    protocol="range",
    leader="m-1",
    current_state_timestamp=NOW_MS,
    members=[STORED_MEMBER],
)


# --- records ---------------------------------------------------------------------------------------------


def test_an_offset_is_written_as_kafka_writes_it() -> None:
    key, value = offset_record("g", ("t", 1), CommittedOffset(42, 3, "m", 1_000))
    assert key == bytes.fromhex("0001 0001 67 0001 74 00000001")
    assert value == bytes.fromhex("0003 000000000000002a 00000003 0001 6d 00000000000003e8")


def test_an_offset_that_expires_is_written_in_version_1() -> None:
    _, value = offset_record("g", ("t", 1), CommittedOffset(42, -1, "m", 1_000, 2_000))
    assert value == bytes.fromhex("0001 000000000000002a 0001 6d 00000000000003e8 00000000000007d0")


def test_a_group_is_written_as_kafka_writes_it() -> None:
    key, value = group_record("g", STORED_GROUP)
    assert key == bytes.fromhex("0002 0001 67")
    assert value is not None
    assert value == (
        bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000005 0005") + b"range"
        + bytes.fromhex("0003") + b"m-1" + NOW_MS.to_bytes(8, "big") + bytes.fromhex("00000001")
        + bytes.fromhex("0003") + b"m-1" + bytes.fromhex("0003") + b"i-1" + bytes.fromhex("0001") + b"c"
        + bytes.fromhex("0009") + b"/10.0.0.1" + (30_000).to_bytes(4, "big") + (10_000).to_bytes(4, "big")
        + bytes.fromhex("00000001") + b"S" + bytes.fromhex("00000001") + b"A"
    )  # fmt: skip


@given(
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.text(max_size=20),
)
def test_offsets_come_back(
    group: str, topic: str, index: int, offset: int, epoch: int, metadata: str
) -> None:
    committed = CommittedOffset(offset, epoch, metadata, NOW_MS)
    key, value = offset_record(group, (topic, index), committed)
    assert read_record(key, value, [CLASSIC]) == StoredOffset(group, (topic, index), committed)
    key, value = offset_record(group, (topic, index), None)
    assert read_record(key, value, [CLASSIC]) == StoredOffset(group, (topic, index), None)


def test_groups_come_back_from_every_version() -> None:
    assert read_record(*group_record("g", STORED_GROUP), [CLASSIC]) == StoredRecord(
        CLASSIC, "g", STORED_GROUP
    )
    assert read_record(*group_record("g", None), [CLASSIC]) == StoredRecord(CLASSIC, "g", None)
    key, _ = group_record("g", None)
    for version in range(5):
        stored = read_record(key, version.to_bytes(2, "big") + STORED_GROUP.encode(version), [CLASSIC])
        assert isinstance(stored, StoredRecord)
        assert stored.value is not None
        assert stored.value.members[0].assignment == b"A"


def test_keys_from_before_0_9_are_offsets_too() -> None:
    key, value = offset_record("g", ("t", 1), CommittedOffset(42, -1, "m", 1_000, 2_000))
    assert read_record(b"\0\0" + key[2:], value, [CLASSIC]) == read_record(key, value, [CLASSIC])


def test_records_of_newer_kinds_of_groups_are_passed_over() -> None:
    assert read_record(b"\0\3\0\1g", b"anything", [CLASSIC]) is None
    assert read_record(None, b"", [CLASSIC]) is None
    assert read_record(b"\0", b"", [CLASSIC]) is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\5", b"\xff\xff", b"\0\3\0"])
def test_damaged_values_are_reported(value: bytes) -> None:
    for key, _ in (group_record("g", None), offset_record("g", ("t", 0), None)):
        with pytest.raises(DecodeError):
            read_record(key, value, [CLASSIC])


def test_the_smallest_hash_lives_in_partition_0() -> None:
    node = make_node()
    topic = StateTopic(LAYOUT, node.cluster, node.store, lambda partition, size: None)
    assert topic.partition_of("polygenelubricants") == 0
    assert topic.partition_of("hello") == 99162322 % 50


# --- restarts --------------------------------------------------------------------------------------------


def test_after_a_restart_generations_go_on_and_members_keep_their_ids() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    assert bench.commit(7, follower, 2) == 0
    bench = bench.again()
    assert bench.heartbeat(leader, 2) == bench.heartbeat(follower, 2) == 0
    assert bench.sync(follower, 2).response.assignment == b"F"
    assert bench.committed() == 7
    third = bench.join()
    assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS
    rejoined = bench.join(leader), bench.join(follower)
    generations = {one.response.generation_id for one in (*rejoined, third)}
    assert generations == {3}
    assert third.response.leader == leader


def test_after_a_restart_members_have_one_session_to_be_heard_of() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench = bench.again()
    bench.heartbeat(leader, 2)
    bench.wait(6_000)
    bench.heartbeat(leader, 2)
    bench.wait(4_001)
    assert bench.heartbeat(leader, 2) == E.REBALANCE_IN_PROGRESS
    assert bench.heartbeat(follower, 2) == E.UNKNOWN_MEMBER_ID


def test_a_rebalance_that_a_restart_interrupts_is_begun_again() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench.join()
    bench.join(leader)
    bench = bench.again()
    assert bench.heartbeat(leader, 2) == 0
    assert bench.sync(follower, 2).response.assignment == b"F"


def test_a_generation_that_a_restart_cuts_short_is_followed_by_another() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    third = bench.join()
    bench.join(leader)
    bench.join(follower)
    bench = bench.again()
    members = leader, follower, third.response.member_id
    assert bench.state() == "PreparingRebalance"
    assert [bench.heartbeat(one, 3) for one in members] == [E.REBALANCE_IN_PROGRESS] * 3
    assert bench.sync(leader, 3, {leader: b"x"}).code == E.REBALANCE_IN_PROGRESS
    assert bench.heartbeat(leader, 2) == E.ILLEGAL_GENERATION
    rejoined = [bench.join(one) for one in members]
    assert {(one.code, one.response.generation_id) for one in rejoined} == {(0, 4)}
    assert {one.response.leader for one in rejoined} == {leader}


def test_groups_of_old_brokers_do_not_say_since_when_they_are_stable() -> None:
    bench = Bench()
    bench.pair()
    group = bench.node.groups.coordinator.groups["g"]
    stored = snapshot(group, NOW_MS)
    stored.current_state_timestamp = -1
    bench.node.groups.store.append("g", [group_record("g", stored)], NOW_MS)
    bench = bench.again()
    assert bench.state() == "Stable"


def test_an_empty_group_and_a_deleted_one_stay_so() -> None:
    bench = Bench()
    leader, follower = bench.pair()
    bench.commit(7, leader, 2)
    bench.leave(leader, follower)
    bench = bench.again()
    assert bench.state() == "Empty"
    assert bench.node.groups.coordinator.groups["g"].generation == 3
    bench.node.groups.delete(bench.node.groups.coordinator.groups["g"], NOW_MS)
    bench = bench.again()
    assert bench.state() == "?"
    assert bench.committed() == -1


def test_static_members_stay_who_they_are() -> None:
    bench = Bench()
    first = bench.join(instance="i1", version=9).response.member_id
    bench.sync(first, 1, {first: b"x"}, group_instance_id="i1")
    bench = bench.again()
    back = bench.join(instance="i1", version=9).response
    assert (back.generation_id, back.skip_assignment) == (1, True)
    bench = bench.again()
    assert bench.heartbeat(first, 1, group_instance_id="i1") == E.FENCED_INSTANCE_ID
    assert bench.sync(back.member_id, 1, group_instance_id="i1").response.assignment == b"x"


def test_what_is_described_is_the_same_after_a_restart() -> None:
    bench = Bench()
    bench.pair()
    request = DescribeGroupsRequest(groups=["g"])
    before = bench.ask(request, 6).response
    assert before.groups[0].group_state == "Stable"
    assert before.groups[0].members[0].client_host == "/10.0.0.1"
    assert bench.again().ask(request, 6).response == before


def disk_bench(path: Path, clock: ManualClock) -> Bench:
    config = BrokerConfig({"log.dirs": str(path)})
    return Bench(open_disk_store(str(path), config, clock), clock)


def test_a_broker_on_disk_that_was_killed_knows_everything_it_has_answered(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)
    bench = disk_bench(tmp_path, clock)
    leader, follower = bench.pair()
    for offset in range(50):
        assert bench.commit(offset, leader, 2) == 0
    bench.store.abandon()
    bench = disk_bench(tmp_path, clock)
    assert bench.heartbeat(follower, 2) == 0
    assert bench.committed() == 49
    bench.store.close()


def test_directories_are_made_for_partitions_that_hold_something_only(tmp_path: Path) -> None:
    bench = disk_bench(tmp_path, ManualClock(NOW_MS))
    bench.commit(1)
    bench.node.groups.open_all()
    bench.store.close()
    assert [path.name for path in sorted(tmp_path.glob(f"{LAYOUT.name}-*"))] == [
        f"{LAYOUT.name}-{ord('g') % 50}"
    ]


# --- the topic -------------------------------------------------------------------------------------------


def test_the_topic_is_internal_compacted_and_made_by_the_coordinator_only() -> None:
    bench = Bench()
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=LAYOUT.name)], allow_auto_topic_creation=True)
    assert bench.ask(asked, 9).response.topics[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    bench.commit(1)
    [topic] = bench.ask(asked, 9).response.topics
    assert (topic.is_internal, len(topic.partitions)) == (True, 50)
    config = bench.node.cluster.topics[LAYOUT.name].config
    assert (config.text("cleanup.policy"), config.segment_bytes) == ("compact", 104857600)


def test_the_number_of_partitions_can_be_set() -> None:
    bench = Bench(offsets_topic_num_partitions=3)
    bench.commit(1)
    assert len(bench.node.cluster.topics[LAYOUT.name].partitions) == 3


def append_raw(bench: Bench, index: int, rows: list[Any], **batch: Any) -> None:
    log = bench.node.cluster.topics[LAYOUT.name].partitions[index].log
    first = log.end_offset
    data = encode_batch([(key, value, (), NOW_MS) for key, value in rows], base_offset=first, **batch)
    log.append(
        data, first_offset=first, last_offset=first + len(rows) - 1, max_timestamp=NOW_MS, now_ms=NOW_MS
    )


def test_offsets_of_a_transaction_count_once_it_has_committed() -> None:
    """Transactional offset records count after a commit marker, and not after an abort marker.

    Penstock writes no such records, but `__consumer_offsets` in a data directory of Apache Kafka may have
    them.
    """
    bench = Bench()
    bench.node.groups.create_topic(NOW_MS)
    index = ord("g") % 50
    for producer, offset in ((1, 10), (2, 20)):
        record = offset_record("g", ("t", producer), CommittedOffset(offset, -1, "", NOW_MS))
        append_raw(bench, index, [record], is_transactional=True, producer_id=producer, producer_epoch=0)
    log = bench.node.cluster.topics[LAYOUT.name].partitions[index].log
    for producer, kind in ((1, 1), (2, 0)):
        first = log.end_offset
        marker = encode_marker(
            kind,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            base_offset=first,
            timestamp=NOW_MS,
        )
        log.append(marker, first_offset=first, last_offset=first, max_timestamp=NOW_MS, now_ms=NOW_MS)
    bench = bench.again()
    assert (bench.committed(index=1), bench.committed(index=2)) == (10, -1)


# --- damage ----------------------------------------------------------------------------------------------

INDEX = ord("g") % 50
"""The partition number of `__consumer_offsets` for group ``g``; group ``h`` is in the next partition."""


def test_a_record_that_makes_no_sense_is_passed_over_and_told(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.commit(7)
    bad_offset, _ = offset_record("g", ("t", 1), None)
    bad_group, _ = group_record("other", None)
    append_raw(bench, INDEX, [(bad_offset, b"\0\x09"), (bad_group, b"\0\3\0\0"), (b"\0\1\0", b"")])
    append_raw(bench, INDEX, [(b"\0\x63", b"a kind of a newer Kafka"), (None, None)])
    bench.commit(8, index=2)
    bench = bench.again()
    assert (bench.committed(), bench.committed(index=1), bench.committed(index=2)) == (7, -1, 8)
    assert bench.join().code == 0
    [line] = [record.getMessage() for record in caplog.records if "is damaged" in record.getMessage()]
    assert line.startswith(f"{LAYOUT.name}-{INDEX} is damaged; passed over, so that older commits")
    assert "the record at offset 1: a stored offset of version 9; the newest known is 4" in line
    assert line.count("the record at offset") == 3


def test_garbage_that_calls_itself_compressed_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.commit(7)
    log = bench.node.cluster.topics[LAYOUT.name].partitions[INDEX].log
    for codec in (1, 2, 3, 4, 5):
        first = log.end_offset
        data = bytearray(encode_batch([(b"k", b"v", (), NOW_MS)], base_offset=first))
        data[22] = codec
        data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
        log.append(bytes(data), first_offset=first, last_offset=first, max_timestamp=NOW_MS, now_ms=NOW_MS)
    bench.commit(8, index=2)
    bench = bench.again()
    assert (bench.committed(), bench.committed(index=2)) == (7, 8)
    assert caplog.text.count("the batch at offsets") == 5


def test_many_losses_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.commit(7)
    key, _ = offset_record("g", ("t", 1), None)
    append_raw(bench, INDEX, [(key, b"\0\x09")] * 1000)
    assert bench.again().committed() == 7
    [line] = [record.getMessage() for record in caplog.records if "is damaged" in record.getMessage()]
    assert line.endswith("and 995 more")


def written_log(path: Path) -> tuple[Path, list[tuple[int, int]]]:
    """Write offset commits of group ``g`` for three partitions, and one of group ``h``.

    Returns the path of the first segment with ``g``, and the position and size of its batches.
    """
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({"log.dirs": str(path)})
    # A fourth batch has no room in the first segment.
    bench = Bench(open_disk_store(str(path), config, clock), clock, offsets_topic_segment_bytes=350)
    for partition in (0, 1, 2, 0):
        assert bench.commit(100 + partition, index=partition) == 0
    assert (
        bench.ask(commit_request({("t", 0): 5}, group="h"), 9).response.topics[0].partitions[0].error_code
        == 0
    )
    bench.store.close()
    log = path / f"{LAYOUT.name}-{INDEX}" / f"{0:020d}.log"
    return log, [(e.position, e.size) for e in walk_buffer(log.read_bytes())]


@pytest.mark.parametrize("at", [11, 16, 17, 22, 30, 57, 65, 70])
@pytest.mark.parametrize("bit", [0, 4, 7])
def test_a_flipped_bit_costs_the_batch_it_is_in(
    at: int, bit: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A flipped bit in any field of a batch loses this batch only: the batches after it are still read.

    The positions `at` lie in the length, magic, checksum, attributes, time, count and records.
    """
    log, batches = written_log(tmp_path)
    data = bytearray(log.read_bytes())
    data[batches[1][0] + at] ^= 1 << bit
    log.write_bytes(data)
    bench = disk_bench(tmp_path, ManualClock(NOW_MS))
    assert [bench.committed(index=index) for index in range(3)] == [100, -1, 102]
    assert bench.join().code == 0
    listed = bench.ask(ListGroupsRequest()).response
    assert (listed.error_code, {group.group_id for group in listed.groups}) == (0, {"g", "h"})
    assert len(batches) == 3
    lost = f"{batches[1][1]} bytes at position {batches[1][0]} of segment 0 are no sound batch"
    assert lost in caplog.text
    bench.store.close()


def noted(damage: list[tuple[int, int]], position: int, size: int) -> None:
    damage.append((position, size))


def test_damage_as_large_as_one_likes(tmp_path: Path) -> None:
    log, batches = written_log(tmp_path)
    data = log.read_bytes()
    start = batches[1][0]
    for garbage in (b"\2" * 3_000_000, bytes(1_100_000), data[start : start + 30]):
        log.write_bytes(data[:start] + garbage + data[start:])
        for index in log.parent.glob("*index"):
            index.unlink()
        damage: list[tuple[int, int]] = []
        segment = FileSegment.existing(str(log.parent), 0, LogConfig(), -1, writable=False)
        found = [bytes(batch) for batch, _ in sound_batches(segment, partial(noted, damage))]
        assert b"".join(found) == data
        assert damage == [(start, len(garbage))]


def test_a_partition_that_cannot_be_read_fails_its_own_groups_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log, _ = written_log(tmp_path)
    aside = log.rename(log.with_suffix(".aside"))
    log.mkdir()
    bench = disk_bench(tmp_path, ManualClock(NOW_MS))
    for _ in range(3):
        listed = bench.ask(ListGroupsRequest()).response
        assert (listed.error_code, [group.group_id for group in listed.groups]) == (0, ["h"])
        assert bench.join().code == E.NOT_COORDINATOR
        assert bench.commit(1) == E.NOT_COORDINATOR
    assert caplog.text.count("cannot be read:") == 1
    log.rmdir()
    aside.rename(log)
    assert bench.committed() == 100
    bench.store.abandon()


def test_a_group_that_cannot_be_restored_begins_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench()
    leader, _ = bench.pair()
    bench.commit(7, leader, 2)

    def fail(group: ClassicGroup, stored: object, now: float) -> None:
        raise OverflowError("a member from a damaged record")

    monkeypatch.setattr(coordinator_module, "restore", fail)
    bench = bench.again()
    assert bench.committed() == 7
    assert bench.state() == "Empty"
    assert bench.join().code == 0
    assert bench.node.failures.counts == {"groups": 1}
    assert "restoring group 'g'" in caplog.text


# --- a disk that refuses ---------------------------------------------------------------------------------


def refuse(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr(bench.node.groups.topic, "append", fail)


def test_a_commit_that_was_not_written_has_not_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.commit(1)
    refuse(bench, monkeypatch)
    assert bench.commit(2) == E.NOT_COORDINATOR
    assert bench.committed() == 1


def test_a_generation_that_was_not_written_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    refuse(bench, monkeypatch)
    refused = bench.join()
    assert refused.code == E.NOT_COORDINATOR
    assert bench.state() == "PreparingRebalance"
    monkeypatch.undo()
    again = bench.join(refused.response.member_id).response
    assert (again.error_code, again.generation_id) == (0, 2)


def test_an_assignment_that_was_not_written_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    first = bench.join().response.member_id
    refuse(bench, monkeypatch)
    answer = bench.sync(first, 1, {first: b"x"})
    assert (answer.code, answer.response.assignment) == (E.NOT_COORDINATOR, b"")
    assert bench.state() == "PreparingRebalance"
    monkeypatch.undo()
    assert bench.join(first).response.generation_id == 2
    assert bench.sync(first, 2, {first: b"y"}).response.assignment == b"y"


def test_the_first_record_of_a_group_is_that_of_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new group writes a record without members first, as Apache Kafka does.

    Readers of `__consumer_offsets` find the group before its members.
    """
    written: list[GroupMetadataValue] = []
    append = StateTopic.append

    def note(self: StateTopic, index: int, records: Any, now_ms: int, what: str) -> int:
        for key, value in records:
            stored = read_record(key, value, [CLASSIC])
            if isinstance(stored, StoredRecord):
                written.append(stored.value)
        return append(self, index, records, now_ms, what)

    monkeypatch.setattr(StateTopic, "append", note)
    Bench().pair()
    first, *others = written
    assert (first.protocol_type, first.generation, first.protocol, first.members) == ("", 0, None, [])
    assert others
    assert {each.protocol_type for each in others} == {"consumer"}
