"""Tests of ShareFetch at one node: acquired ranges, waiting requests, and refused ones."""

from __future__ import annotations

import pytest

from broker.bench_node import NOW_MS, make_node, make_topic
from broker.sharing.group_member import ACCEPT, REJECT, RELEASE, RENEW, Bench, Member, ack_code, codes, ranges
from broker.transactions.broker_bench import BrokerBench
from for_each import for_each
from penstock.protocol.messages.share_fetch_request import ShareFetchRequest


def records_bytes(answer: object) -> int:
    part = answer.responses[0].partitions[0]  # type: ignore[attr-defined]
    return sum(map(len, part.records))


def test_whole_batches_are_acquired() -> None:
    bench = Bench()
    bench.fill(10)
    member = Member(bench)
    answer = member.fetch(max_records=5)
    assert ranges(answer) == [(0, 9, 1)]
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert ranges(member.fetch()) == []


def test_a_limit_of_records_cuts_a_batch() -> None:
    bench = Bench()
    bench.fill(10)
    member = Member(bench)
    sizes = set()
    found = []
    for _ in range(3):
        answer = member.fetch(max_records=4, share_acquire_mode=1)
        found += ranges(answer)
        sizes.add(records_bytes(answer))
    assert found == [(0, 3, 1), (4, 7, 1), (8, 9, 1)]
    assert len(sizes) == 1, "the whole batch comes each time"


def test_ranges_end_with_the_batch_that_fills_them() -> None:
    bench = Bench()
    bench.fill(10, 2, 2, 2, 5)
    assert ranges(Member(bench).fetch(batch_size=3)) == [(0, 9, 1), (10, 13, 1), (14, 20, 1)]


def test_what_was_released_comes_again_and_what_was_accepted_does_not() -> None:
    bench = Bench()
    bench.fill(3)
    member, other = Member(bench), Member(bench, "other")
    member.fetch()
    assert ack_code(member.acknowledge((0, 2, [ACCEPT, RELEASE, REJECT]))) == 0
    assert ranges(other.fetch()) == [(1, 1, 2)]
    state = bench.persister.states["g", bench.topic.id, 0]
    assert (state.start_offset, state.done_count) == (1, 1)
    assert ack_code(other.acknowledge((1, 1, [ACCEPT]))) == 0
    assert (state.start_offset, state.done_count, state.offsets) == (3, 0, {})


def test_acknowledgements_come_with_a_fetch() -> None:
    bench = Bench()
    bench.fill(2, 2)
    member = Member(bench)
    assert ranges(member.fetch(max_records=1)) == [(0, 1, 1)]
    answer = member.fetch(acks=[(0, 1, [ACCEPT])])
    assert (ranges(answer), codes(answer)) == ([(2, 3, 1)], [(0, 0)])
    answer = member.fetch(acks=[(2, 2, [ACCEPT]), (3, 9, [ACCEPT])])
    assert codes(answer) == [(0, 42)]
    assert ack_code(member.acknowledge((2, 3, [ACCEPT]))) == 0, "the bad batch has undone the good one"


def test_a_session_counts_requests() -> None:
    bench = Bench()
    member = Member(bench)
    assert member.fetch(acks=[(0, 0, [1])]).error_code == 42
    assert member.fetch(epoch=3).error_code == 122
    assert member.acknowledge(epoch=0).error_code == 123
    assert member.fetch(epoch=0).error_code == 0
    assert member.fetch(epoch=1).error_code == 0
    assert member.fetch(epoch=1).error_code == 123
    assert member.acknowledge(epoch=2).error_code == 0, "one sequence"
    assert member.fetch(epoch=3, is_renew_ack=True).error_code == 42, "limits of a fetch are not 0"
    assert member.fetch(epoch=3).error_code == 0, "what is not valid takes no epoch"
    assert member.fetch(epoch=-1).error_code == 0
    assert member.fetch(epoch=-1).error_code == 122
    assert member.acknowledge(epoch=4).error_code == 122


@pytest.mark.parametrize(("group", "name"), [(None, "m"), ("g", ""), ("g", "m" * 37), ("g", None)])
def test_members_have_names(group: str | None, name: str | None) -> None:
    bench = Bench()
    request = ShareFetchRequest(group_id=group, member_id=name, share_session_epoch=0)
    assert Member(bench).send(request).error_code == 42


def test_unknown_acquire_modes_are_refused() -> None:
    assert Member(Bench()).fetch(share_acquire_mode=2).error_code == -1


def test_locks_end() -> None:
    bench = Bench()
    bench.fill(2)
    member, other = Member(bench), Member(bench, "other")
    member.fetch()
    other.fetch()
    bench.pass_ms(29_999)
    assert ranges(other.fetch()) == []
    bench.pass_ms(2)
    assert ranges(other.fetch()) == [(0, 1, 2)]
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]))) == 121


def test_a_fetch_waits_for_a_lock_to_end() -> None:
    bench = Bench()
    bench.fill(1)
    Member(bench).fetch()
    other = Member(bench, "other")
    assert other.fetch(max_wait_ms=60_000) is None
    bench.pass_ms(30_000)
    assert ranges(other.answer) == [(0, 0, 2)]


def test_a_fetch_waits_for_records_and_for_no_longer_than_it_may() -> None:
    bench = Bench()
    member = Member(bench)
    assert member.fetch(max_wait_ms=500) is None
    bench.fill(1)
    bench.run_due()
    assert ranges(member.answer) == [(0, 0, 1)]
    assert member.fetch(max_wait_ms=500) is None
    bench.pass_ms(499)
    assert member.answer is None
    bench.pass_ms(1)
    assert ranges(member.answer) == []


def test_a_fetch_waits_for_as_many_bytes_as_it_asks_for() -> None:
    bench = Bench()
    member = Member(bench)
    bench.fill(1)
    assert member.fetch(max_wait_ms=500, min_bytes=130) is None
    bench.fill(1)
    bench.run_due()
    assert ranges(member.answer) == [(0, 1, 1)]
    bench.fill(1)
    assert member.fetch(max_wait_ms=500, min_bytes=130) is None
    bench.pass_ms(500)
    assert ranges(member.answer) == [(2, 2, 1)], "in the end it gets what there is"


def test_what_waits_acquires_nothing_once_its_session_is_another() -> None:
    bench = Bench()
    member = Member(bench)
    assert member.fetch(max_wait_ms=500) is None
    again = Member(bench)
    assert again.fetch().error_code == 0
    bench.fill(1)
    bench.run_due()
    assert member.answer.error_code == 122
    assert ranges(again.fetch()) == [(0, 0, 1)]


@pytest.mark.parametrize("how", ["connection", "final fetch", "final acknowledgement"])
def test_the_end_of_a_session_frees_what_the_member_has(how: str) -> None:
    bench = Bench()
    bench.fill(2)
    member, other = Member(bench), Member(bench, "other")
    assert ranges(member.fetch()) == [(0, 1, 1)]
    assert other.fetch(max_wait_ms=1000) is None
    if how == "connection":
        member.session.release()
        free = [(0, 1, 2)]
    elif how == "final fetch":
        assert codes(member.fetch(epoch=-1, acks=[(0, 0, [ACCEPT])])) == [(0, 0)]
        free = [(1, 1, 2)]
    else:
        assert ack_code(member.acknowledge((1, 1, [REJECT]), epoch=-1)) == 0
        free = [(0, 0, 2)]
    bench.run_due()
    assert ranges(other.answer) == free
    assert len(bench.node.sharing.sessions) == 1


def test_a_record_is_delivered_so_often_and_then_archived() -> None:
    bench = Bench()
    bench.fill(1)
    member = Member(bench)
    counts = []
    for _ in range(7):
        counts += [count for _, _, count in ranges(member.fetch())]
        bench.pass_ms(30_001)
    assert counts == [1, 2, 3, 4, 5]
    assert bench.persister.states["g", bench.topic.id, 0].start_offset == 1


def test_what_fails_often_is_delivered_in_ever_smaller_parts() -> None:
    bench = Bench()
    bench.fill(16)
    member = Member(bench)
    found = []
    for _ in range(6):
        answer = ranges(member.fetch())
        found.append(answer)
        for first, last, _ in answer:
            member.acknowledge((first, last, [RELEASE]))
    assert found[:3] == [[(0, 15, 1)], [(0, 15, 2)], [(0, 15, 3)]]
    assert found[3:] == [[(0, 7, 4)], [(0, 0, 5)], [(1, 1, 5)]]


def test_so_many_records_may_be_in_flight() -> None:
    bench = Bench(group={"share.partition.max.record.locks": "100"})
    bench.fill(*[1] * 200)
    member = Member(bench)
    assert sum(last - first + 1 for first, last, _ in ranges(member.fetch())) == 100
    assert ranges(member.fetch()) == []
    member.acknowledge((0, 9, [ACCEPT]))
    assert sum(last - first + 1 for first, last, _ in ranges(member.fetch())) == 10


def test_a_renewed_lock_begins_anew() -> None:
    bench = Bench()
    bench.fill(2)
    member, other = Member(bench), Member(bench, "other")
    member.fetch()
    other.fetch()
    bench.pass_ms(20_000)
    assert ack_code(member.acknowledge((0, 0, [RENEW]), renews=True)) == 0
    assert ack_code(member.acknowledge((0, 0, [RENEW]))) == 42, "the request has to say that it renews"
    bench.pass_ms(20_000)
    assert ranges(other.fetch()) == [(1, 1, 2)]
    assert ack_code(other.acknowledge((0, 0, [ACCEPT]))) == 121
    answer = member.fetch(
        acks=[(0, 0, [RENEW])], is_renew_ack=True, min_bytes=0, max_records=0, batch_size=0, max_bytes=0
    )
    assert codes(answer) == [(0, 0)]
    bench.configure(**{"share.renew.acknowledge.enable": "false"})
    assert ack_code(member.acknowledge((0, 0, [RENEW]), renews=True)) == 121


@for_each(
    [
        ([(5, 4, [1])], 42),
        ([(3, 4, [1]), (1, 2, [1])], 42),
        ([(1, 2, [])], 42),
        ([(1, 3, [1, 1])], 42),
        ([(1, 1, [4])], 42),
        ([(1, 1, [5])], 42),
        ([(1, 1, [-1])], 42),
        ([(1, 50, [1])], 42),
        ([(0, 0, [1])], 0),
        ([(9, 9, [1])], 121),
        ([(1, 1, [1]), (9, 9, [1])], 121),
        ([(1, 3, [0, 1, 2])], 0),
    ]
)
def test_faults_in_acknowledgements(acks: list[tuple[int, int, list[int]]], code: int) -> None:
    bench = Bench()
    bench.fill(9, 1)
    member, other = Member(bench), Member(bench, "other")
    member.fetch(max_records=9)
    other.fetch()
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == 0
    assert ack_code(member.acknowledge(*acks)) == code
    done = code == 0 and acks[0][0] > 0
    assert ack_code(member.acknowledge((1, 8, [ACCEPT]))) == (121 if done else 0)


def test_partitions_that_there_are_not() -> None:
    bench = Bench()
    member = Member(bench)
    answer = member.fetch(partitions=[0, 7])
    assert codes(answer) == [(3, 0), (0, 0)]
    assert codes(member.fetch(partitions=[0], topic_id=bytes(15) + b"\7")) == [(3, 0), (100, 0)]
    assert codes(member.acknowledge((0, 0, [1]), topic_id=bytes(15) + b"\7")) == [(100, 0)]
    assert codes(member.acknowledge((0, 0, [1]), partition=7)) == [(3, 0)]
    assert codes(member.acknowledge((0, 0, [1]))) == [(42, 0)]


def test_partitions_take_turns_and_share_the_bytes() -> None:
    bench = Bench(partitions=2)
    bench.fill(*[5] * 10)
    bench.fill(*[5] * 10, partition=1)
    member = Member(bench)
    answer = member.fetch(partitions=[0, 1], max_bytes=500)
    assert (ranges(answer), ranges(answer, 1)) == ([(0, 4, 1)], [(0, 4, 1)])
    first = [part.partition_index for part in member.fetch(max_records=1).responses[0].partitions]
    second = [part.partition_index for part in member.fetch(max_records=1).responses[0].partitions]
    assert first != second


def test_groups_begin_where_they_are_set_to() -> None:
    bench = Bench(group={"share.auto.offset.reset": "latest"})
    bench.fill(3)
    member = Member(bench)
    assert ranges(member.fetch()) == []
    bench.fill(2)
    assert ranges(member.fetch()) == [(3, 4, 1)]
    bench.configure("h", **{"share.auto.offset.reset": "by_duration:PT1H"})
    bench.clock.advance(2 * 3600_000)
    bench.fill(1, time_ms=NOW_MS + 2 * 3600_000)
    assert ranges(Member(bench, group="h").fetch()) == [(5, 5, 1)]
    state = bench.persister.states["h", bench.topic.id, 0]
    assert state.start_offset == -1, "the first offset is stored with what is first done"


def test_the_start_of_the_log_moves_up() -> None:
    bench = Bench()
    bench.fill(5, 5)
    member = Member(bench)
    assert ranges(member.fetch(max_records=1)) == [(0, 4, 1)]
    bench.node.cluster.topics["t"].partitions[0].delete_records(7)
    assert ranges(member.fetch()) == [(7, 9, 1)]
    assert ack_code(member.acknowledge((0, 4, [ACCEPT]))) == 0, "it is done"


def test_state_is_stored_before_the_answer() -> None:
    bench = Bench()
    bench.fill(2)
    member, other = Member(bench), Member(bench, "other")
    member.fetch()
    bench.persister.held = []
    assert member.acknowledge((0, 0, [ACCEPT])) is None
    other.fetch()
    assert ack_code(other.acknowledge((0, 0, [ACCEPT]))) == 121
    bench.persister.answer_held()
    bench.run_due()
    assert ack_code(member.answer) == 0


def test_what_cannot_be_stored_has_not_happened() -> None:
    bench = Bench()
    bench.fill(2)
    member = Member(bench)
    member.fetch()
    bench.persister.error_code = 16
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]))) == 15
    bench.persister.error_code = 0
    assert ack_code(member.acknowledge((0, 1, [ACCEPT]))) == 0


@pytest.mark.parametrize(("error", "code"), [(74, 6), (124, 6), (69, 69), (42, -1), (3, 3), (56, 56)])
def test_fenced_share_partitions_are_read_anew(error: int, code: int) -> None:
    bench = Bench()
    bench.fill(2)
    member = Member(bench)
    member.fetch()
    bench.persister.error_code = error
    assert ack_code(member.acknowledge((0, 0, [ACCEPT]))) == code
    bench.persister.error_code = 0
    assert ranges(member.fetch()) == ([] if error == 56 else [(0, 1, 1)])


def test_a_group_without_a_state_gets_nothing() -> None:
    bench = Bench()
    bench.persister.knows_all = False
    assert codes(Member(bench).fetch()) == [(-1, 0)]
    bench.node.share_persister = None
    assert codes(Member(bench).fetch()) == [(15, 0)]


def test_a_coordinator_that_is_away_is_waited_for() -> None:
    bench = Bench()
    bench.fill(1)
    bench.persister.error_code = 15
    member = Member(bench)
    assert member.fetch(max_wait_ms=1000) is None
    bench.persister.error_code = 0
    bench.pass_ms(200)
    assert ranges(member.answer) == [(0, 0, 1)]


def test_the_next_leader_knows_what_was_stored() -> None:
    bench = Bench()
    bench.fill(4)
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 1, [ACCEPT, RELEASE]))
    partition = bench.node.cluster.topics["t"].partitions[0]
    partition.become(1, partition.leader_epoch + 1, (1,), (1,))
    assert ack_code(member.acknowledge((2, 2, [ACCEPT]))) == 121
    assert ranges(member.fetch()) == [(1, 1, 2), (2, 3, 1)]


@pytest.mark.parametrize(("start", "epoch"), [(1, 2), (-1, 1)], ids=["set", "deleted and made anew"])
def test_offsets_that_were_set_while_no_member_was_there_count(start: int, epoch: int) -> None:
    bench = Bench()
    bench.fill(3)
    member = Member(bench)
    member.fetch()
    member.acknowledge((0, 2, [ACCEPT]))
    member.fetch(epoch=-1)
    state = bench.persister.states["g", bench.topic.id, 0]
    state.start_offset, state.state_epoch = start, epoch
    assert ranges(Member(bench, "next").fetch()) == [(max(start, 0), 2, 1)]


def test_a_member_that_begins_a_session_anew_keeps_what_it_has() -> None:
    bench = Bench()
    bench.fill(3)
    member = Member(bench)
    member.fetch()
    assert ranges(member.fetch(epoch=0)) == []
    assert ack_code(member.acknowledge((0, 2, [ACCEPT]))) == 0


def test_sessions_are_limited() -> None:
    bench = Bench(group_share_max_share_sessions=2)
    first, second, third = (Member(bench, name) for name in "abc")
    first.fetch()
    second.fetch()
    assert third.fetch(max_wait_ms=100) is None
    bench.pass_ms(100)
    assert third.answer.error_code == 133
    second.session.release()
    assert third.fetch(epoch=0).error_code == 0


def test_forgotten_partitions_are_not_read() -> None:
    from penstock.protocol.messages.share_fetch_request import ForgottenTopic

    bench = Bench(partitions=2)
    member = Member(bench)
    member.fetch(partitions=[0, 1])
    bench.fill(1)
    bench.fill(1, partition=1)
    gone = [ForgottenTopic(topic_id=bench.topic.id, partitions=[0])]
    answer = member.fetch(forgotten_topics_data=gone)
    assert (ranges(answer), ranges(answer, 1)) == ([], [(0, 0, 1)])


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_transactions_have_left(isolation: str) -> None:
    bench = Bench(group={"share.isolation.level": isolation})
    producer = BrokerBench(clock=bench.clock)
    bench.node, bench.topic = producer.node, producer.node.cluster.topics["t"]
    bench.node.share_persister = bench.persister
    bench.configure(**{"share.auto.offset.reset": "earliest", "share.isolation.level": isolation})
    _, producer_id, _ = producer.initialize()
    producer.write(producer_id, 0, 0, b"aborted", b"too")
    producer.end(producer_id, 0, commit=False)  # a marker at 2
    producer.write(producer_id, 1, 0, b"committed")
    producer.end(producer_id, 1)  # at 4
    producer.write(producer_id, 2, 0, b"open")
    member = Member(bench)
    found = ranges(member.fetch())
    if isolation == "read_uncommitted":
        assert found == [(0, 5, 1)]
        return
    assert found == [(2, 4, 1)], "markers are acquired, and clients acknowledge them as gaps"
    state = bench.persister.states["g", bench.topic.id, 0]
    assert state.start_offset == 2, "what was aborted is archived, and that is stored"
    assert ack_code(member.acknowledge((2, 4, [0, ACCEPT, 0]))) == 0
    producer.end(producer_id, 2, commit=False)
    assert ranges(member.fetch()) == [(6, 6, 1)]


def test_topics_that_may_not_be_read() -> None:
    node = make_node(
        clock=(bench := Bench()).clock,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:root",
    )
    bench.node, bench.topic = node, make_topic(node)
    bench.node.share_persister = bench.persister
    bench.configure(**{"share.auto.offset.reset": "earliest"})
    bench.fill(1)
    member = Member(bench)
    assert codes(member.fetch()) == [(29, 0)]
    assert codes(member.acknowledge((0, 0, [ACCEPT]))) == [(29, 0)]


def test_a_cluster_may_be_without_share_groups() -> None:
    bench = Bench()
    bench.node.cluster.set_features({"share.version": 0}, NOW_MS)
    assert Member(bench).fetch().error_code == 35
    assert Member(bench).acknowledge().error_code == 35
    bench.node.cluster.set_features({"share.version": 1}, NOW_MS)
    assert Member(bench).fetch().error_code == 0


def test_idle_share_partitions_leave_memory() -> None:
    bench = Bench()
    bench.fill(1)
    member = Member(bench)
    member.fetch()
    bench.node.sharing.maintain()
    bench.clock.advance(400_000)
    bench.node.sharing.maintain()
    assert bench.node.sharing.partitions, "its start offset is not stored"
    bench.run_due()
    member.fetch()
    member.acknowledge((0, 0, [ACCEPT]))
    bench.clock.advance(400_000)
    bench.node.sharing.maintain()
    assert not bench.node.sharing.partitions
