"""Tests of transactions in a complete broker: what producers are answered, and what readers get."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bench_node import ask
from broker.transactions.broker_bench import BrokerBench
from penstock.common.failures import LINES_MAX
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

A, B, C = ("t", 0), ("t", 1), ("out", 2)


def begun(bench: BrokerBench) -> int:
    """Initialize a transactional id, which gets epoch 0; return the producer id."""
    error, producer_id, epoch = bench.initialize()
    assert (error, epoch) == (0, 0)
    return producer_id


def test_committed_data_are_seen_and_aborted_data_are_not() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 0, b"1", b"2") == (0, 0)
    assert bench.read() == []
    assert bench.read(isolation=0) == [b"1", b"2"]
    assert bench.end(pid, 0) == (0, pid, 1)
    assert bench.read() == [b"1", b"2"]
    assert bench.write(pid, 1, 0, b"3") == (0, 3)
    assert bench.end(pid, 1, commit=False) == (0, pid, 2)
    assert bench.write(pid, 2, 0, b"4") == (0, 5)
    assert bench.end(pid, 2) == (0, pid, 3)
    assert bench.read() == [b"1", b"2", b"4"]
    assert bench.read(isolation=0) == [b"1", b"2", b"3", b"4"]
    assert bench.aborted() == [(pid, 3)]
    assert bench.aborted(5) == []
    assert bench.stable() == (7, 7)


@pytest.mark.parametrize(("version", "code"), [(10, 48), (11, 120)])
def test_before_kip_890_partitions_are_added_first(version: int, code: int) -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 0, b"1", version=version)[0] == code
    assert bench.add(pid, 0, A) == [0]
    assert bench.write(pid, 0, 0, b"1", version=version) == (0, 0)
    assert bench.end(pid, 0, version=4)[0] == 0
    assert bench.read() == [b"1"]
    assert bench.write(pid, 0, 1, b"late", version=version)[0] == code
    assert bench.stable() == (2, 2)


def test_a_late_batch_of_kip_890_is_fenced() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    bench.write(pid, 0, 0, b"1")
    bench.end(pid, 0)
    assert bench.write(pid, 0, 1, b"late")[0] == 47
    assert bench.read() == [b"1"]


def test_partitions_are_added_all_or_none() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.add(pid, 0, A, ("none", 0), ("t", 9)) == [55, 3, 3]
    assert bench.end(pid, 0, version=4)[0] == 48
    assert bench.add(pid, 1, A) == [90]
    assert bench.add(pid, 1, A, version=1) == [47]
    assert bench.add(pid + 1, 0, A) == [49]


def test_transactional_data_need_a_transactional_id() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 0, b"1", name=None)[0] == 53
    assert bench.write(pid, 0, 0, b"1", name="other")[0] == 49
    assert bench.write(pid, 0, 0, b"1")[0] == 0
    assert bench.write(pid, 0, 1, b"2", transactional=False)[0] == 48


def test_a_first_batch_that_is_not_the_first_is_refused_and_its_partition_marked() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 3, b"1")[0] == 45
    assert bench.end(pid, 0)[0] == 0
    assert bench.stable() == (1, 1)  # a marker, and nothing else
    assert bench.read() == []


def test_batches_sent_again_are_written_once() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 0, b"1") == bench.write(pid, 0, 0, b"1") == (0, 0)
    assert bench.write(pid, 0, 2, b"3")[0] == 45
    assert bench.end(pid, 0)[0] == 0
    assert bench.read() == [b"1"]


def test_the_last_stable_offset_waits_and_everything_behind_it_too() -> None:
    bench = BrokerBench()
    pids = [bench.initialize(name)[1] for name in ("x", "y", "z")]
    for pid, name in zip(pids, ("x", "y", "z"), strict=True):
        bench.write(pid, 0, 0, name.encode(), name=name)
    bench.write_plain(b"plain")
    bench.end(pids[2], 0, commit=False, name="z")
    bench.end(pids[1], 0, commit=False, name="y")
    assert bench.stable() == (0, 6)
    assert bench.read() == []
    assert bench.end_offset(1) == 0
    assert bench.end_offset(0) == 6
    assert bench.end_offset(1, timestamp=0) == -1
    bench.end(pids[0], 0, commit=False)
    assert bench.read() == [b"plain"]
    assert bench.aborted() == [(pids[2], 2), (pids[1], 1), (pids[0], 0)]
    assert bench.aborted(4) == [(pids[2], 2), (pids[1], 1), (pids[0], 0)]
    assert bench.aborted(7) == []
    assert bench.end_offset(1) == 7


def test_a_transaction_whose_time_is_up_is_aborted() -> None:
    bench = BrokerBench()
    _, pid, _ = bench.initialize(timeout_ms=5_000)
    bench.write(pid, 0, 0, b"1")
    bench.wait(20_000)
    assert bench.stable() == (2, 2)
    assert bench.read() == []
    assert bench.write(pid, 0, 1, b"2")[0] == 47
    assert bench.end(pid, 0)[0] == 48
    assert bench.end(pid, 0, commit=False) == (0, pid, 1)
    assert bench.end(pid, 0, version=1)[0] == 47


def test_another_producer_fences_the_first() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    bench.write(pid, 0, 0, b"1")
    assert bench.initialize()[0] == 51
    assert bench.initialize() == (0, pid, 2)
    assert bench.write(pid, 0, 1, b"2")[0] == 47
    assert bench.end(pid, 0)[0] == 90
    assert bench.write(pid, 2, 0, b"3")[0] == 0
    bench.end(pid, 2)
    assert bench.read() == [b"3"]


def test_a_topic_that_is_deleted_does_not_hold_up_the_end() -> None:
    from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

    bench = BrokerBench()
    pid = begun(bench)
    bench.write(pid, 0, 0, b"1")
    bench.write(pid, 0, 0, b"1", partition=C)
    bench.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="out")], timeout_ms=1000), 6)
    assert bench.end(pid, 0)[0] == 0
    assert bench.node.transactions.coordinator.registry.transactions["x"].state == "CompleteCommit"
    assert bench.read() == [b"1"]


def test_without_their_topic_transactional_ids_are_unknown() -> None:
    from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState

    bench = BrokerBench()
    pid = begun(bench)
    names = [DeleteTopicState(name="__transaction_state")]
    deleted = bench.ask(DeleteTopicsRequest(topics=names, timeout_ms=1000), 6).response
    assert deleted.responses[0].error_code == 0
    assert bench.end(pid, 0)[0] == 16
    assert bench.initialize() == (0, pid + 1, 0)
    assert bench.write(pid, 0, 0, b"1")[0] == 49
    assert bench.write(pid + 1, 0, 0, b"1")[0] == 0
    assert bench.end(pid + 1, 0)[0] == 0
    assert bench.read() == [b"1"]


# --- offsets ------------------------------------------------------------------------------------------------


def test_offsets_count_once_they_are_committed() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    bench.commit(10, group="g")
    assert bench.commit_offset(pid, 0, 20) == 0
    assert bench.offset() == (0, 10)
    assert bench.offset(stable=True) == (88, -1)
    bench.end(pid, 0)
    assert bench.offset(stable=True) == (0, 20)
    assert bench.commit_offset(pid, 1, 30) == 0
    bench.end(pid, 1, commit=False)
    assert bench.offset(stable=True) == (0, 20)


@pytest.mark.parametrize(("version", "code"), [(3, 48), (4, 120)])
def test_before_kip_890_offsets_are_added_first(version: int, code: int) -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.commit_offset(pid, 0, 20, version=version) == code
    assert bench.add_offsets(pid, 0) == 0
    assert bench.commit_offset(pid, 0, 20, version=version) == 0
    assert bench.end(pid, 0, version=3)[0] == 0
    assert bench.offset() == (0, 20)


def test_since_kip_1319_offsets_are_of_topics_by_id() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.commit_offset(pid, 0, 20, version=6) == 0
    assert bench.commit_offset(pid, 0, 20, version=6, topic_id=bytes(16)) == 100
    assert bench.commit_offset(pid, 0, 20, version=6, index=9) == 3
    bench.end(pid, 0)
    assert bench.offset(stable=True) == (0, 20)


def test_since_kip_1319_a_group_that_is_missing_has_an_error_of_its_own() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    for version, code in ((5, 22), (6, 69)):
        assert bench.commit_offset(pid, 0, 20, version=version, generation_id_or_member_epoch=1) == code


def test_a_plain_commit_that_came_later_wins() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    bench.commit_offset(pid, 0, 30)
    bench.commit(40, group="g")
    bench.end(pid, 0)
    assert bench.offset(stable=True) == (0, 40)
    assert bench.again().offset() == (0, 40)


def test_members_are_known_by_generation_and_id() -> None:
    bench = BrokerBench()
    leader, follower = bench.pair()
    pid = begun(bench)
    member = {"generation_id_or_member_epoch": 2, "member_id": leader}
    assert bench.commit_offset(pid, 0, 1, **{**member, "member_id": "nobody"}) == 25
    assert bench.commit_offset(pid, 0, 1, **{**member, "generation_id_or_member_epoch": 1}) == 22
    assert bench.commit_offset(pid, 0, 1, **member) == 0
    assert bench.commit_offset(pid, 0, 2) == 0  # without any name there is no fence
    bench.join(leader)
    bench.join(follower)
    assert bench.state() == "CompletingRebalance"
    again = {"generation_id_or_member_epoch": 3, "member_id": leader}
    assert bench.commit_offset(pid, 0, 3, **again) == 0


def test_wrong_commits_of_offsets() -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.commit_offset(pid, 0, 1, group="") == 24
    assert bench.commit_offset(pid, 0, 1, index=9) == 3
    assert bench.commit_offset(pid + 1, 0, 1) == 49
    assert bench.commit_offset(pid, 1, 1) == 47
    assert bench.commit_offset(pid, 0, 1, group="new", generation_id_or_member_epoch=1) == 22


def test_deleting_a_group_forgets_what_is_pending() -> None:
    from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest

    bench = BrokerBench()
    pid = begun(bench)
    bench.commit_offset(pid, 0, 30)
    response = bench.ask(DeleteGroupsRequest(groups_names=["g"]), 2).response
    assert response.results[0].error_code == 0
    bench.end(pid, 0)
    assert bench.offset() == (0, -1)
    assert bench.again().offset() == (0, -1)


# --- restarts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [False, True])
def test_open_transactions_go_on_after_a_restart(tmp_path: Path, kill: bool) -> None:
    bench = BrokerBench.on_disk(tmp_path)
    pid = begun(bench)
    bench.write(pid, 0, 0, b"0")
    bench.end(pid, 0, commit=False)
    bench.write(pid, 1, 0, b"1")
    bench.commit_offset(pid, 1, 17)
    bench = bench.restart(tmp_path, kill=kill)
    assert bench.stable() == (2, 3)
    assert bench.read() == []
    assert bench.offset(stable=True) == (88, -1)
    assert bench.write(pid, 1, 1, b"2") == (0, 3)
    assert bench.end(pid, 1) == (0, pid, 2)
    assert bench.read() == [b"1", b"2"]
    assert bench.offset(stable=True) == (0, 17)
    bench = bench.restart(tmp_path, kill=kill)
    assert bench.read() == [b"1", b"2"]
    assert bench.aborted() == [(pid, 0)]
    assert bench.offset(stable=True) == (0, 17)
    assert bench.end(pid, 1) == (0, pid, 2)  # a retry is still known
    assert bench.write(pid, 1, 2, b"late")[0] == 47
    bench.store.close()


def test_markers_that_are_missing_are_written_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.broker.transactions.service import TransactionService
    from penstock.protocol.error_codes import ErrorCode

    bench = BrokerBench.on_disk(tmp_path)
    pid = begun(bench)
    for partition in (A, B, C):
        bench.write(pid, 0, 0, b"1", partition=partition)
    with monkeypatch.context() as patch:
        patch.setattr(TransactionService, "mark_here", lambda *what: ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert bench.end(pid, 0)[0] == 0
        assert bench.read() == []
        bench.store.abandon()
    bench = BrokerBench.on_disk(tmp_path, bench.clock)
    bench.node.maintain(bench.clock.now_ms())
    for partition in (A, B, C):
        assert bench.read(partition=partition) == [b"1"]
        assert bench.stable(partition) == (2, 2)
    bench.store.close()


def test_the_index_of_aborted_transactions_is_in_kafkas_format(tmp_path: Path) -> None:
    bench = BrokerBench.on_disk(tmp_path)
    pid = begun(bench)
    bench.write(pid, 0, 0, b"1")
    bench.end(pid, 0, commit=False)
    [path] = (tmp_path / "t-0").glob("*.txnindex")
    fields = (pid, 0, 1, 2)
    assert path.name == "00000000000000000000.txnindex"
    assert path.read_bytes() == bytes(2) + b"".join(number.to_bytes(8, "big") for number in fields)
    path.unlink()
    bench = bench.restart(tmp_path, kill=True)
    assert bench.aborted() == [(pid, 0)]
    assert path.exists()
    bench.store.close()


def test_nothing_of_transactions_is_loaded_by_others() -> None:
    bench = BrokerBench()
    bench.write_plain(b"1")
    bench.read()
    assert bench.node._transactions is None


def test_a_request_of_thousands_of_markers_that_are_refused_writes_a_hundred_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = BrokerBench()
    pid = begun(bench)
    assert bench.write(pid, 0, 0, b"1") == (0, 0)
    topics = [WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    marker = WritableTxnMarker(producer_id=pid, producer_epoch=-1, topics=topics)
    answer = ask(bench.node, WriteTxnMarkersRequest(markers=[marker] * 2_000), 1)
    codes = {each.error_code for one in answer.markers for each in one.topics[0].partitions}
    assert codes == {ErrorCode.INVALID_PRODUCER_EPOCH}
    assert sum("the marker of producer" in record.getMessage() for record in caplog.records) <= LINES_MAX
