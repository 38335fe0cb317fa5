"""Tests of the memory budget for state that clients cause: what is dropped first when it is exceeded."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from broker.bench_node import ask, ask_bytes, batch_of, context_of, make_node, make_topic, produce
from broker.groups.requests import commit_request, join_request, leave_request, subscription
from broker.wire_client import WireClient, is_well
from penstock import Broker
from penstock.broker.context import Context
from penstock.broker.coordination.timers import Timer, Timers
from penstock.broker.handlers import ROUTES
from penstock.broker.network.metrics import Metrics, render
from penstock.broker.node import Node
from penstock.broker.partitions.fetch_sessions import SESSIONS_PER_CONNECTION_MAX
from penstock.broker.partitions.producers.producer_state import Producers, SeenBatch
from penstock.broker.quota_entities import entity_of
from penstock.broker.requests.kept_state import KeptState
from penstock.broker.requests.quotas import CLIENT_CHARACTERS_MAX, TIME
from penstock.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

MIB = 1 << 20


# --- the budget -----------------------------------------------------------------------------------------


def test_what_is_least_lost_is_given_up_first_and_what_stays_leaves_a_quarter() -> None:
    sizes = {"cheap": 40, "dear": 40, "lasting": 0}

    def give_up(kind: str) -> Any:
        def one() -> bool:
            had = sizes[kind] > 0
            sizes[kind] = max(0, sizes[kind] - 10)
            return had

        return one

    kept = KeptState(100)
    kept.add("dear", lambda: sizes["dear"], give_up("dear"), loss=1)
    kept.add("lasting", lambda: sizes["lasting"])
    kept.add("cheap", lambda: sizes["cheap"], give_up("cheap"))
    assert kept.has_room_for(20)
    assert sizes["cheap"] == 40
    assert kept.has_room_for(50)
    assert sizes == {"cheap": 10, "dear": 40, "lasting": 0}
    assert kept.has_room_for(75, stays=True)
    assert sizes == {"cheap": 0, "dear": 20, "lasting": 0}
    assert not kept.has_room_for(76, stays=True)
    assert not kept.has_room_for(101)
    assert kept.given_up == {"cheap": 4, "dear": 4}
    assert kept.refused == 2


# --- fetch sessions -------------------------------------------------------------------------------------


def fetch_of(partitions: int, session: int = 0, epoch: int = 0, start: int = 0) -> FetchRequest:
    asked = [FetchPartition(partition=start + n, partition_max_bytes=100) for n in range(partitions)]
    topics = [FetchTopic(topic="t", partitions=asked)]
    return FetchRequest(session_id=session, session_epoch=epoch, topics=topics)


def fetch(context: Context, request: FetchRequest) -> Any:
    context.now = context.arrived + 10  # nothing waits
    return ROUTES[1].handle(request, context)


def test_sessions_take_no_more_than_the_budget_and_clients_are_told_which_ended() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB)
    make_topic(node)
    owners = [context_of(node, 11) for _ in range(30)]
    sessions = [fetch(context, fetch_of(200)).session_id for context in owners]
    assert all(sessions)
    assert node.fetch_sessions.size_bytes <= MIB
    assert len(node.fetch_sessions) < 10
    assert fetch(owners[0], fetch_of(0, sessions[0], 1)).error_code == 70, "it was given up"
    assert fetch(owners[-1], fetch_of(0, sessions[-1], 1)).error_code == 0
    assert node.kept.given_up["fetch sessions"] == 30 - len(node.fetch_sessions)


def test_a_session_that_grows_beyond_the_budget_ends_and_a_large_one_never_begins() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB)
    make_topic(node)
    context = context_of(node, 11)
    assert fetch(context, fetch_of(2000)).session_id == 0, "it is answered without one"
    session = fetch(context, fetch_of(1000)).session_id
    assert fetch(context, fetch_of(1000, session, 1, start=1000)).error_code == 70
    assert node.fetch_sessions.size_bytes == 0


def test_bytes_of_sessions_follow_what_is_forgotten_and_removed() -> None:
    node = make_node()
    make_topic(node)
    context = context_of(node, 11)
    session = fetch(context, fetch_of(10)).session_id
    ten = node.fetch_sessions.size_bytes
    fetch(context, fetch_of(5, session, 1, start=5))
    assert node.fetch_sessions.size_bytes == ten, "nothing new"
    fetch(context, fetch_of(5, session, 2, start=10))
    assert node.fetch_sessions.size_bytes > ten
    fetch(context, fetch_of(1, session, -1))
    assert node.fetch_sessions.size_bytes == 0


def test_sessions_end_with_their_connection_and_a_connection_has_few() -> None:
    with Broker() as broker:
        assert broker.server is not None
        sessions = broker.server.node.fetch_sessions
        with WireClient(broker.port) as client:
            client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
            ids = [client.ask(fetch_of(1), 11).session_id for _ in range(SESSIONS_PER_CONNECTION_MAX + 1)]
            assert len(sessions) == SESSIONS_PER_CONNECTION_MAX
            assert sessions.get(ids[0]) is None
            assert client.ask(fetch_of(0, ids[-1], 1), 11).error_code == 0
        deadline = time.monotonic() + 10
        while len(sessions):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        with WireClient(broker.port) as again:
            assert again.ask(fetch_of(0, ids[-1], 2), 11).error_code == 70
            assert again.ask(fetch_of(1), 11).session_id > 0


# --- groups ---------------------------------------------------------------------------------------------


def join(node: Node, request: JoinGroupRequest, version: int = 4, client_id: str = "c") -> Any:
    context = context_of(node, version)
    context.session.client_id = client_id
    return ROUTES[11].handle(request, context)


def groups_size(node: Node) -> int:
    return node.kept.sizes()["groups"]


def test_ids_given_away_are_short_and_the_oldest_are_taken_back() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB)
    first = join(node, join_request(), client_id="c" * 30_000)
    assert first.error_code == 79
    assert len(first.member_id) < 200
    for _ in range(2000):
        last = join(node, join_request())
        assert last.error_code == 79
    assert node.kept.sizes()["member ids"] <= MIB
    assert join(node, join_request(first.member_id)).error_code == 25, "asks for another one"
    late = join(node, join_request(last.member_id))
    assert getattr(late, "error_code", 0) == 0, "it is in, or waits for the others"


def test_groups_that_were_only_asked_for_are_no_more_once_their_ids_are_gone() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB)
    for number in range(1000):
        join(node, join_request(group=f"group-{number}"))
    groups = node.groups.coordinator.groups
    assert len(groups) == len(node.groups.coordinator.outbox.given_away) < 1000
    node.clock.advance(60_000)  # type: ignore[attr-defined]
    node.groups.settle(node.clock.monotonic())
    assert not groups
    assert groups_size(node) == 0


def test_members_and_what_they_say_fit_into_the_budget_or_are_refused() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB, group_initial_rebalance_delay_ms=0)
    large = {"range": subscription("t") + bytes(100_000)}
    answers = [join(node, join_request(group=f"g{n}", protocols=large), 3) for n in range(20)]
    refused = [answer for answer in answers if answer.error_code == 15]
    assert 10 < len(refused) < 20
    assert groups_size(node) <= MIB
    member = answers[0].member_id
    again = join(node, join_request(member, group="g0", protocols=large), 3)
    assert again.error_code == 0, "who is in stays in"
    for number, answer in enumerate(answers):
        if not answer.error_code:
            ask(node, leave_request(answer.member_id, group=f"g{number}"), 3)
    assert node.groups.coordinator.outbox.tally.size_bytes == 0


def test_offsets_with_notes_fit_into_the_budget_and_old_ones_can_always_be_moved() -> None:
    node = make_node(penstock_kept_state_bytes_max=MIB)
    make_topic(node, partitions=10)
    note = "n" * 4000
    codes = []
    for number in range(40):
        request = commit_request({("t", n): 1 for n in range(10)}, group=f"g{number}", metadata=note)
        answer = ask(node, request, 5)
        codes.append({p.error_code for topic in answer.topics for p in topic.partitions})
    assert codes[0] == {0}
    assert codes[-1] == {28}
    assert node.kept.sizes()["offsets"] <= MIB
    moved = ask(node, commit_request({("t", 0): 2}, group="g0", metadata=note), 5)
    assert moved.topics[0].partitions[0].error_code == 0


def test_protocols_that_members_no_longer_know_are_forgotten() -> None:
    node = make_node(group_initial_rebalance_delay_ms=0)
    member = join(node, join_request(protocols=("p0",)), 3).member_id
    for number in range(20):
        join(node, join_request(member, protocols=(f"p{number}", f"p{number + 1}")), 3)
    assert len(node.groups.coordinator.groups["g"].roster._supported) <= 2


def test_timers_that_are_off_do_not_pile_up_and_hold_nothing() -> None:
    timers = Timers()
    kept = Timer(lambda now: None)
    timers.set(kept, 1000.0)
    for _ in range(10_000):
        timer = Timer(lambda now: None)
        timers.set(timer, 500.0)
        timer.end()
    assert len(timers) < 1000
    assert timers.next_deadline() <= 1000.0
    timers.set(timer, 700.0)
    fired = []
    kept.fire = fired.append
    timers.run(2000.0)
    assert fired == [2000.0]


# --- answers --------------------------------------------------------------------------------------------


def test_unread_answers_in_memory_take_no_more_than_the_budget() -> None:
    """Twenty clients request large DescribeConfigs responses and never read them.

    Such responses are in memory, whereas records are sent from files.
    """
    with Broker(config={"penstock.kept.state.bytes.max": str(2 * MIB)}) as broker:
        server = broker.server
        assert server is not None
        names = [f"topic-{n}" for n in range(200)]
        with WireClient(broker.port) as good:
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
            good.ask(CreateTopicsRequest(topics=topics), 4)
        resources = [DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
        request = DescribeConfigsRequest(resources=resources, include_documentation=True)
        with contextlib.ExitStack() as stack:
            lazy = [stack.enter_context(WireClient(broker.port)) for _ in range(20)]
            for client in lazy:
                for _ in range(20):
                    with contextlib.suppress(ConnectionError):
                        client.send(request, 4)
                assert server.answers.size_bytes <= 2 * MIB
                assert is_well(broker.port)
            assert server.node.kept.given_up["answers"] > 0
            text = render(server, Metrics())
            assert 'penstock_kept_state_given_up_total{kind="answers"}' in text
            assert 'penstock_kept_state_bytes{kind="fetch sessions"} 0' in text
        deadline = time.monotonic() + 10
        while server.answers.size_bytes:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        with WireClient(broker.port) as good:
            assert len(good.ask(request, 4).results) == 200


# --- other tables ---------------------------------------------------------------------------------------


def test_producers_beyond_the_limit_are_forgotten_the_idlest_first_where_most_are() -> None:
    node = make_node(penstock_producers_max=20)
    topic = make_topic(node, partitions=2)
    for producer in range(100):
        produce(node, batch_of(b"a", producer_id=producer, producer_epoch=0, base_sequence=0))
        node.clock.advance(10)  # type: ignore[attr-defined]
    fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    produce(node, batch_of(b"a", **fields), partition=1)
    node.maintain(node.clock.now_ms())
    assert [partition.producer_count for partition in topic.partitions] == [19, 1]
    assert produce(node, batch_of(b"a", **fields), partition=1).base_offset == 0, "a repetition still"
    again = batch_of(b"a", producer_id=99, producer_epoch=0, base_sequence=0)
    assert produce(node, again).base_offset == 99


def test_idle_producers_go_by_the_time_they_were_last_heard_of() -> None:
    producers = Producers(1000)
    for producer, seen_ms in ((1, 5), (2, 1), (3, 9)):
        producers.record(producer, 0, SeenBatch(0, 0, 0, 0, 0), seen_ms)
    assert producers.forget_idlest(2) == 1
    assert producers.forget_idlest(2) == 0
    assert 2 not in producers
    assert 1 in producers


@pytest.mark.parametrize(
    ("kind", "name", "setting", "text"),
    [
        (2, "t", "leader.replication.throttled.replicas", "1:1," * 5000),
        (32, "g" * 1001, "consumer.session.timeout.ms", "50000"),
    ],
)
def test_settings_and_names_that_are_kept_have_a_length(
    kind: int, name: str, setting: str, text: str
) -> None:
    node = make_node()
    make_topic(node)
    config = AlterableConfig(name=setting, config_operation=0, value=text)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    response = ask_bytes(node, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 44


def test_topics_are_created_with_settings_of_limited_length_only() -> None:
    node = make_node()
    config = CreatableTopicConfig(name="leader.replication.throttled.replicas", value="1:1," * 5000)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])
    assert ask(node, CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 44


def test_clients_with_quotas_are_known_by_the_beginning_of_their_ids() -> None:
    node = make_node()
    node.cluster.quotas[entity_of({"client-id": None})] = {TIME: 50.0}
    node.quotas_changed()
    assert node.throttle is not None
    context = context_of(node, 4)
    context.session.client_id = "c" * 30_000
    node.router.find(3, 9).handle(MetadataRequest(topics=[]), context)
    assert {len(client or "") for _, (_, client) in node.throttle.quotas._used} == {CLIENT_CHARACTERS_MAX}
