"""Tests of fetch sessions (KIP-227): incremental responses, and the checks of session ids and epochs."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from broker.bench_node import NOW_MS, ask, ask_bytes, batch_of, make_node, make_topic, produce
from penstock.broker.node import Node
from penstock.broker.partitions.fetch_sessions import EVICTION_MS, FetchSessions, OwnedSessions
from penstock.broker.requests.kept_state import KeptState
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

NEW, OVER = 0, -1


def request(
    session: int, epoch: int, *asked: tuple[int, int], forget: tuple[int, ...] = (), **fields: Any
) -> FetchRequest:
    """Return a Fetch request of a session.

    Each of `asked` is a pair of partition and offset of topic ``t``.
    """
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in asked
    ]
    where = {"topic": "t", "topic_id": fields.pop("topic_id", bytes(16))}
    return FetchRequest(
        session_id=session,
        session_epoch=epoch,
        topics=[FetchTopic(**where, partitions=partitions)] if asked else [],
        forgotten_topics_data=[ForgottenTopic(**where, partitions=list(forget))] if forget else [],
        **fields,
    )


def told(answer: Any) -> list[int]:
    """Check that a Fetch response has no error; return the partitions that it lists."""
    assert answer.error_code == 0
    return [partition.partition_index for topic in answer.responses for partition in topic.partitions]


def node_of(partitions: int = 3, clock: ManualClock | None = None, **settings: object) -> Node:
    node = make_node(clock=clock, **settings)
    make_topic(node, partitions=partitions)
    return node


def begin(node: Node, *asked: tuple[int, int], version: int = 12, **fields: Any) -> int:
    answer = ask(node, request(0, NEW, *asked, **fields), version)
    assert told(answer) == [index for index, _ in asked], "the first answer names everything"
    assert answer.session_id > 0
    return int(answer.session_id)


def test_only_what_is_new_is_told() -> None:
    node = node_of()
    session = begin(node, (0, 0), (1, 0), (2, 0))
    assert told(ask(node, request(session, 1), 12)) == []
    produce(node, batch_of(b"x"), partition=1)
    answer = ask(node, request(session, 2), 12)
    assert (told(answer), answer.session_id) == ([1], session)
    # The fetcher has not moved on, so it is told again; then it has.
    assert told(ask(node, request(session, 3), 12)) == [1]
    assert told(ask(node, request(session, 4, (1, 1)), 12)) == []


def test_partitions_join_and_leave() -> None:
    node = node_of()
    session = begin(node, (0, 0))
    assert told(ask(node, request(session, 1, (2, 0)), 12)) == [2]
    for index in (0, 2):
        produce(node, batch_of(b"x"), partition=index)
    assert told(ask(node, request(session, 2, forget=(0,)), 12)) == [2]
    empty = ask(node, request(session, 3, forget=(2,)), 12)
    assert (told(empty), empty.session_id) == ([], 0)
    assert ask(node, request(session, 4), 12).error_code == 70, "a session of nothing has ended"


def test_beginnings_and_errors_are_news_too() -> None:
    node = node_of()
    for _ in range(3):
        produce(node, batch_of(b"x"))
    session = begin(node, (0, 3), (1, 0))
    node.cluster.topic("t").partitions[0].delete_records(2)
    answer = ask(node, request(session, 1), 12)
    assert told(answer) == [0]
    assert answer.responses[0].partitions[0].log_start_offset == 2
    out_of_range = ask(node, request(session, 2, (1, 77)), 12)
    assert [p.error_code for p in out_of_range.responses[0].partitions] == [1]
    assert told(ask(node, request(session, 3, (1, 0)), 12)) == [1], "the error is over"
    assert told(ask(node, request(session, 4), 12)) == []


def test_who_has_had_records_waits_for_the_others() -> None:
    node = node_of()
    for index in range(3):
        produce(node, batch_of(b"x" * 100), partition=index)
    one = 150
    answer = ask(node, request(0, NEW, (0, 0), (1, 0), (2, 0), max_bytes=one), 12)
    order = []
    for epoch in range(1, 4):
        answer = ask(node, request(answer.session_id, epoch, max_bytes=one), 12)
        order += [p.partition_index for p in answer.responses[0].partitions if p.records]
    assert sorted(order) == [0, 1, 2]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_epochs_and_ids_are_checked(version: int) -> None:
    node = node_of()
    fields = {"topic_id": node.cluster.topic("t").id} if version >= 13 else {}
    answer = ask_bytes(node, request(0, NEW, (0, 0), **fields), version)
    session = answer.session_id
    assert session > 0
    assert ask_bytes(node, request(session, 5), version).error_code == 71
    assert ask_bytes(node, request(session + 1, 1), version).error_code == 70
    other = 12 if version >= 13 else 13
    assert ask_bytes(node, request(session, 1), other).error_code == 106
    assert ask_bytes(node, request(session, 1), version).session_id == session
    ended = ask_bytes(node, request(session, OVER, (0, 0), **fields), version)
    assert (ended.error_code, ended.session_id) == (0, 0)
    assert ask_bytes(node, request(session, 2), version).error_code == 70


def test_beginning_anew_ends_the_old_session() -> None:
    node = node_of()
    first = begin(node, (0, 0))
    answer = ask(node, request(first, NEW, (1, 0)), 12)
    assert answer.session_id not in (0, first)
    assert ask(node, request(first, 1), 12).error_code == 70
    assert len(node.fetch_sessions) == 1


def test_a_session_waits_for_records_and_counts_the_request_once() -> None:
    node = node_of()
    session = begin(node, (0, 0), (1, 0))
    wait = ask(node, request(session, 1, min_bytes=1, max_wait_ms=500), 12)
    assert isinstance(wait, Wait)
    assert wait.answer is not None
    produce(node, batch_of(b"x"), partition=1)
    assert told(wait.answer()) == [1]
    assert told(ask(node, request(session, 2, (1, 1)), 12)) == []


def test_epochs_start_again_at_one() -> None:
    node = node_of()
    session = begin(node, (0, 0))
    found = node.fetch_sessions.get(session)
    assert found is not None
    found.epoch = 2**31 - 1
    assert ask(node, request(session, 2**31 - 1), 12).error_code == 0
    assert ask(node, request(session, 1), 12).error_code == 0


def test_no_slots_no_sessions() -> None:
    node = node_of(max_incremental_fetch_session_cache_slots=0)
    answer = ask(node, request(0, NEW, (0, 0)), 12)
    assert (told(answer), answer.session_id) == ([0], 0)


def test_who_is_replaced_when_slots_run_out() -> None:
    def topics(count: int) -> list[FetchTopic]:
        return [FetchTopic(topic="t", partitions=[FetchPartition(partition=n) for n in range(count)])]

    sessions = FetchSessions(2, KeptState(1 << 20), count(1).__next__)
    owned = OwnedSessions(sessions)
    now = NOW_MS
    small, large = (sessions.begin(topics(n), False, now, owned) for n in (1, 5))
    assert small is not None
    assert large is not None
    assert sessions.begin(topics(9), False, now + EVICTION_MS, owned) is None, "both may stay that long"
    now += EVICTION_MS + 1
    small.used_ms = large.used_ms = now
    assert sessions.begin(topics(1), False, now, owned) is None, "no larger than what is there"
    middle = sessions.begin(topics(3), False, now, owned)
    assert middle is not None
    assert sessions.get(small.id) is None
    large.used_ms = now + EVICTION_MS
    idle_since = now + EVICTION_MS + 1
    assert sessions.begin(topics(1), False, idle_since, owned) is not None, "middle has been idle"
    assert sessions.get(middle.id) is None
    assert sessions.get(large.id) is large


def test_a_log_that_parts_from_what_the_fetcher_has_read() -> None:
    node = node_of(1)
    partition = node.cluster.topic("t").partitions[0]
    produce(node, batch_of(b"a", b"b"))
    partition.leader_epoch = 2
    produce(node, batch_of(b"c"))
    asked = request(0, OVER, (0, 3))
    for epoch, found in ((0, (0, 2)), (1, (0, 2)), (2, (-1, -1))):
        asked.topics[0].partitions[0].last_fetched_epoch = epoch
        answer = ask_bytes(node, asked, 12).responses[0].partitions[0]
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == found
        assert answer.error_code == 0
    asked.topics[0].partitions[0].last_fetched_epoch = 3
    assert ask_bytes(node, asked, 12).responses[0].partitions[0].error_code == 1
