"""Tests of quotas: how usage is measured, how long clients are throttled, and that handlers apply them."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bench_node import NOW_MS, ask, batch_of, make_node, make_topic
from for_each import for_each
from penstock import Broker
from penstock.broker.config.values import BrokerConfig
from penstock.broker.context import Context
from penstock.broker.metadata.stores import open_store
from penstock.broker.node import Node
from penstock.broker.quota_entities import Entity, entity_of
from penstock.broker.requests.dispatch import Unanswered, call
from penstock.broker.requests.quotas import (
    CLIENTS_MAX,
    FETCHED,
    MUTATIONS,
    PRODUCED,
    TIME,
    TIME_DELAY_MAX_S,
    WINDOWS,
    Filter,
    Mutations,
    MutationTokens,
    Quotas,
    Usage,
    Windows,
    matching,
)
from penstock.broker.session import Session
from penstock.clock import ManualClock
from penstock.errors import KafkaError
from penstock.protocol.api import ApiKey
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.messages import (
    alter_client_quotas_request,
    create_partitions_request,
    create_topics_request,
    delete_topics_request,
    describe_client_quotas_request,
    fetch_request,
    metadata_request,
    produce_request,
)
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.metadata_response import MetadataResponse

CLIENT: Entity = entity_of({"client-id": "c"})


# --- how much, how long -------------------------------------------------------------------------------------


def test_what_ten_seconds_allow_may_be_used_at_once_and_more_has_to_wait() -> None:
    quotas = Quotas({CLIENT: {PRODUCED: 100.0}})
    assert quotas.charge(PRODUCED, "c", 1000, 0.0) == 0
    assert quotas.charge(PRODUCED, "c", 500, 0.0) == pytest.approx(5.0)
    assert quotas.charge(PRODUCED, "other", 10**9, 0.0) == 0
    assert quotas.charge(FETCHED, "c", 10**9, 0.0) == 0
    assert quotas.charge(PRODUCED, "c", 0, 12.0) == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5000)), min_size=20, max_size=60))
def test_whoever_rests_as_told_stays_within_the_quota(uses: list[tuple[float, int]]) -> None:
    most = 1000.0
    quotas = Quotas({CLIENT: {PRODUCED: most}})
    now = 0.0
    used = []
    for pause, amount in uses:
        now += pause
        used.append((now, amount))
        now += quotas.charge(PRODUCED, "c", amount, now)
    # One use more than what the windows hold is what may slip through before the rest begins.
    total = sum(amount for _, amount in used[:-1])
    assert total <= most * (used[-1][0] + WINDOWS) + 5000


def test_too_much_time_costs_a_second_at_most() -> None:
    quotas = Quotas({CLIENT: {TIME: 1.0}})
    assert quotas.charge(TIME, "c", 1e9, 0.0) == TIME_DELAY_MAX_S


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 100)), max_size=50))
def test_a_rate_is_that_of_the_last_eleven_seconds(uses: list[tuple[float, int]]) -> None:
    usage, now, total = Usage(), 0.0, 0
    for pause, amount in uses:
        now += pause
        usage.add(amount, now)
        total += amount
        rate, seconds = usage.rate(now)
        assert 10 - 1e-9 <= seconds <= WINDOWS
        assert 0 <= rate * seconds <= total + 1e-6
    assert usage.rate(now + WINDOWS + 1)[0] == 0


@pytest.mark.parametrize("known", range(8))
def test_the_nearest_quota_applies(known: int) -> None:
    order = [
        {"user": "ANONYMOUS", "client-id": "c"},
        {"user": "ANONYMOUS", "client-id": None},
        {"user": "ANONYMOUS"},
        {"user": None, "client-id": "c"},
        {"user": None, "client-id": None},
        {"user": None},
        {"client-id": "c"},
        {"client-id": None},
    ]
    limits = {entity_of(names): {TIME: float(n + 1)} for n, names in enumerate(order) if n >= known}
    limits[entity_of({"user": "somebody"})] = {TIME: 99.0}
    limits[CLIENT] = {**limits.get(CLIENT, {}), PRODUCED: 5.0}
    quotas = Quotas(limits)
    limit = quotas.limit(TIME, "c")
    assert limit is not None
    assert limit.most == known + 1
    other = quotas.limit(TIME, "d")
    assert other is not None
    # A quota of a user is shared by its clients, the others are each client's own.
    assert (limit.shared_by == other.shared_by) == (known in (2, 5) or (limit.most, other.most) == (3, 3))


def test_a_changed_quota_counts_at_once_and_what_was_used_stays_used() -> None:
    limits = {CLIENT: {PRODUCED: 100.0}}
    quotas = Quotas(limits)
    assert quotas.charge(PRODUCED, "c", 1000, 0.0) == 0
    limits[CLIENT][PRODUCED] = 50.0
    quotas.changed()
    assert quotas.charge(PRODUCED, "c", 0, 0.0) == pytest.approx(10.0)


def test_clients_without_number_are_not_remembered_for_ever() -> None:
    quotas = Quotas({entity_of({"client-id": None}): {TIME: 1.0}})
    for n in range(CLIENTS_MAX + 100):
        quotas.charge(TIME, str(n), 1, 0.0)
    assert len(quotas._used) == CLIENTS_MAX
    assert len(quotas._found) <= CLIENTS_MAX


def test_filters() -> None:
    both, user = entity_of({"client-id": "c", "user": None}), entity_of({"user": "u"})
    entities = [CLIENT, both, user]
    assert matching(entities, [], strict=False) == entities
    assert matching(entities, [], strict=True) == []
    assert matching(entities, [Filter("client-id", None)], strict=False) == [CLIENT, both]
    assert matching(entities, [Filter("client-id", None)], strict=True) == [CLIENT]
    assert matching(entities, [Filter("user", frozenset((None,)))], strict=False) == [both]


# --- handlers -----------------------------------------------------------------------------------------------


def set_quota(node: Node, key: str, value: float | None, dry: bool = False, **names: str | None) -> int:
    api = alter_client_quotas_request
    parts = [api.EntityData(entity_type=k.replace("_", "-"), entity_name=v) for k, v in names.items()]
    op = api.OpData(key=key, value=value or 0.0, remove=value is None)
    entry = api.EntryData(entity=parts, ops=[op])
    (answer,) = ask(node, api.AlterClientQuotasRequest(entries=[entry], validate_only=dry), 1).entries
    return int(answer.error_code)


def quotas_of(node: Node) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    request = describe_client_quotas_request.DescribeClientQuotasRequest()
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in ask(node, request, 1).entries
    ]


@for_each(
    [
        (PRODUCED, 1.0, {"client_id": "c"}, 0),
        (TIME, 0.5, {"user": None}, 0),
        (PRODUCED, 0.5, {"client_id": "c"}, 42),
        (PRODUCED, math.nan, {"client_id": "c"}, 42),
        (PRODUCED, math.inf, {"client_id": "c"}, 42),
        (PRODUCED, -1.0, {"client_id": "c"}, 42),
        (PRODUCED, 1.0, {"client_id": ""}, 42),
        (PRODUCED, 1.0, {"nonsense": "c"}, 42),
        (PRODUCED, 1.0, {"ip": "1.2.3.4"}, 42),
        (PRODUCED, 1.0, {}, 42),
        ("nonsense", 1.0, {"client_id": "c"}, 42),
        (MUTATIONS, 0.5, {"client_id": "c"}, 0),
        (MUTATIONS, 1.0, {"ip": "1.2.3.4"}, 42),
        ("connection_creation_rate", 1.0, {"ip": None}, 0),
        ("connection_creation_rate", 1.0, {"user": None}, 42),
        ("nonsense", None, {"client_id": "c"}, 0),
    ]
)
def test_what_can_be_set(key: str, value: float | None, names: dict[str, str | None], code: int) -> None:
    node = make_node()
    for dry in (True, False):
        assert set_quota(node, key, value, dry, **names) == code
        assert len(quotas_of(node)) == (not dry and code == 0 and value is not None)


def test_quotas_outlive_a_restart(tmp_path: Path) -> None:
    clock = ManualClock(NOW_MS)

    def start() -> Node:
        config = BrokerConfig({"log.dirs": str(tmp_path)})
        return Node(config, open_store(config, clock), clock)

    node = start()
    assert set_quota(node, PRODUCED, 10.0, client_id="c", user=None) == 0
    assert set_quota(node, TIME, 7.5, client_id=None) == 0
    assert set_quota(node, FETCHED, 7.0, client_id="gone") == 0
    assert set_quota(node, FETCHED, None, client_id="gone") == 0
    node.store.close()
    again = start()
    assert quotas_of(again) == [
        ({"client-id": "c", "user": None}, {PRODUCED: 10.0}),
        ({"client-id": None}, {TIME: 7.5}),
    ]
    assert again.throttle is not None
    again.store.close()


def asked(node: Node, request: Any, version: int, client_id: str = "c") -> tuple[Any, int]:
    """Handle a request with all interceptors; return the response and the client's throttle time in ms."""
    context = Context(node, Session())
    context.session.client_id = client_id
    context.now_ms = node.clock.now_ms()
    context.arrived = context.now = node.clock.monotonic()
    outcome = call(request, node.router.find(request.API_KEY, version), 1, context)
    while isinstance(outcome, Unanswered):
        outcome = outcome.run()
    if outcome is None:
        return None, context.throttle_ms
    frame = b"".join(bytes(getattr(piece, "read", lambda p=piece: p)()) for piece in outcome)
    return decode_response(frame[4:], response_of(request), version)[1], context.throttle_ms


def response_of(request: Any) -> Any:
    from penstock.protocol.api import API_TABLE

    return API_TABLE[request.API_KEY].response


def produce_of(size: int, acks: int = 1) -> Any:
    part = produce_request.PartitionProduceData(index=0, records=batch_of(b"x" * size))
    topic = produce_request.TopicProduceData(name="t", partition_data=[part])
    return produce_request.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def fetch_of(max_bytes: int = 1 << 30) -> Any:
    part = fetch_request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    topic = fetch_request.FetchTopic(topic="t", partitions=[part])
    return fetch_request.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, topics=[topic])


def test_without_quotas_handlers_are_as_they_were() -> None:
    node = make_node()
    make_topic(node)
    assert node.throttle is None
    assert node.router.find(ApiKey.PRODUCE, 9).handle is node.routes[ApiKey.PRODUCE].handle
    assert set_quota(node, PRODUCED, 1e6, client_id="c") == 0
    assert node.router.find(ApiKey.PRODUCE, 9).handle is not node.routes[ApiKey.PRODUCE].handle
    assert set_quota(node, PRODUCED, None, client_id="c") == 0
    assert node.router.find(ApiKey.PRODUCE, 9).handle is node.routes[ApiKey.PRODUCE].handle


@pytest.mark.parametrize("acks", [0, 1])
def test_a_produce_beyond_the_quota_is_kept_and_its_client_rests(acks: int) -> None:
    node = make_node()
    topic = make_topic(node)
    assert set_quota(node, PRODUCED, 1000.0, client_id="c") == 0
    _, rest_ms = asked(node, produce_of(5000, acks), 9)
    assert rest_ms == 0
    answer, rest_ms = asked(node, produce_of(10_000, acks), 9)
    assert 5000 < rest_ms < 5500
    if acks:
        assert answer.throttle_time_ms == rest_ms
    assert topic.partitions[0].high_watermark == 2
    assert asked(node, produce_of(10_000, acks), 9, client_id="other")[1] == 0


def test_a_fetch_has_no_more_than_the_windows_hold_and_then_rests() -> None:
    node = make_node()
    make_topic(node)
    for _ in range(30):
        asked(node, produce_of(1000), 9)
    assert set_quota(node, FETCHED, 1000.0, client_id="c") == 0
    answer, rest_ms = asked(node, fetch_of(), 11)
    size = len(answer.responses[0].partitions[0].records)
    assert 8000 < size <= 10_000
    assert (rest_ms, answer.throttle_time_ms) == (0, 0)
    answer, rest_ms = asked(node, fetch_of(), 11)
    assert 6000 < rest_ms < 10_000
    assert answer.throttle_time_ms == rest_ms
    assert len(answer.responses[0].partitions[0].records) == size


def test_time_is_charged_for_every_request() -> None:
    node = make_node()
    make_topic(node)
    assert set_quota(node, TIME, 1.0, user=None) == 0
    assert node.throttle is not None
    now = iter(range(1000))
    node.throttle._monotonic = lambda: next(now) / 10
    node.router.reset()
    rests = [asked(node, MetadataRequest(topics=[]), 9)[1] for _ in range(3)]
    assert rests[-1] == 1000


# --- connections --------------------------------------------------------------------------------------------


async def timed_requests(address: tuple[str, int], count: int) -> list[float]:
    """Send several requests at once; return the arrival times of the answers, in seconds after sending."""
    reader, writer = await asyncio.open_connection(*address)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(count):
        writer.write(b"".join(encode_request(MetadataRequest(topics=[]), 9, number, "c")))
    came = []
    for number in range(count):
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        assert decode_response(frame, MetadataResponse, 9)[0] == number
        came.append(loop.time() - began)
    writer.close()
    return came


def test_an_answer_leaves_at_once_and_the_next_request_waits() -> None:
    with Broker() as broker:
        address = (broker.host, broker.port)
        entry = alter_client_quotas_request.EntryData(
            entity=[alter_client_quotas_request.EntityData(entity_type="client-id", entity_name="c")],
            ops=[alter_client_quotas_request.OpData(key=TIME, value=1e-6)],
        )
        request = alter_client_quotas_request.AlterClientQuotasRequest(entries=[entry])

        async def throttled() -> list[float]:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"".join(encode_request(request, 1, 1, "admin")))
            await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            writer.close()
            return await timed_requests(address, 3)

        came = asyncio.run(throttled())
        assert came[1] >= 0.95
        assert came[2] >= 1.9


# --- topics that are created and deleted ------------------------------------------------------------------


def creation(partitions: int, *names: str, only: bool = False) -> Any:
    api = create_topics_request
    topics = [
        api.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return api.CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=only)


def growth(name: str, count: int) -> Any:
    api = create_partitions_request
    topic = api.CreatePartitionsTopic(name=name, count=count, assignments=None)
    return api.CreatePartitionsRequest(topics=[topic], timeout_ms=1000)


def deletion(version: int, *names: str) -> Any:
    api = delete_topics_request
    if version < 6:
        return api.DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    return api.DeleteTopicsRequest(
        topics=[api.DeleteTopicState(name=name) for name in names], timeout_ms=1000
    )


def limited_node(rate: float = 1.0, texts: dict[str, str] | None = None) -> tuple[Node, ManualClock]:
    """Return a node whose client ``c`` has a quota of partition changes per second.

    The quota is measured in two windows of one second.
    """
    settings = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "1"}
    clock = ManualClock(NOW_MS)
    config = BrokerConfig({**settings, **(texts or {})})
    node = Node(config, open_store(config, clock), clock)
    assert set_quota(node, MUTATIONS, rate, client_id="c") == 0
    return node, clock


def test_a_change_begun_within_the_quota_is_made_whole_and_the_next_one_waits() -> None:
    node, clock = limited_node()
    answer, rest_ms = asked(node, creation(10, "a", "b"), 7)
    assert [(each.name, each.error_code) for each in answer.topics] == [("a", 0), ("b", 89)]
    assert "b" not in node.cluster.topics
    assert answer.topics[1].error_message == "The throttling quota has been exceeded"
    assert (rest_ms, answer.throttle_time_ms) == (8000, 8000)
    clock.advance(7500)
    assert asked(node, creation(10, "b"), 7)[1] == 500
    clock.advance(500)
    answer, rest_ms = asked(node, creation(10, "b"), 7)
    assert (answer.topics[0].error_code, rest_ms, answer.throttle_time_ms) == (0, 0, 0)
    clock.advance(1_000_000)
    assert asked(node, creation(2, "c"), 7)[1] == asked(node, creation(1, "d"), 7)[1] == 0
    assert asked(node, creation(1, "e"), 7)[0].topics[0].error_code == 89  # two windows, not a thousand


@pytest.mark.parametrize(
    ("request_of", "version", "strict_since"),
    [
        (lambda version: creation(1, "new"), 6, 6),
        (lambda version: creation(1, "new"), 5, 6),
        (lambda version: deletion(version, "t"), 6, 5),
        (lambda version: deletion(version, "t"), 5, 5),
        (lambda version: deletion(version, "t"), 4, 5),
        (lambda version: growth("t", 5), 3, 3),
        (lambda version: growth("t", 5), 2, 3),
    ],
)
def test_clients_that_do_not_know_the_error_are_throttled_only(
    request_of: Any, version: int, strict_since: int
) -> None:
    node, _ = limited_node()
    make_topic(node)
    assert asked(node, creation(10, "full"), 7)[1] == 0  # 8 too many
    before = sum(len(topic.partitions) for topic in node.cluster.topics.values())
    answer, rest_ms = asked(node, request_of(version), version)
    [result] = getattr(answer, "topics", None) or getattr(answer, "responses", None) or answer.results
    after = sum(len(topic.partitions) for topic in node.cluster.topics.values())
    is_strict = version >= strict_since
    assert result.error_code == (89 if is_strict else 0)
    assert (after == before) == is_strict
    assert rest_ms == answer.throttle_time_ms == 8000 + 1000 * abs(after - before)


def test_only_what_would_be_done_is_counted_and_dry_runs_are() -> None:
    node, _ = limited_node()
    make_topic(node)
    for _ in range(10):
        assert asked(node, creation(5, "t"), 7)[0].topics[0].error_code == 36
        assert asked(node, deletion(6, "absent"), 6)[0].responses[0].error_code == 3
        assert asked(node, growth("t", 1), 3)[0].results[0].error_code == 37
    assert asked(node, creation(5, "u", only=True), 7)[0].topics[0].error_code == 0
    assert asked(node, creation(5, "u", only=True), 7)[0].topics[0].error_code == 89
    assert asked(node, creation(5, "u"), 7, client_id="other")[0].topics[0].error_code == 0


def test_topics_that_metadata_creates_are_counted_and_never_refused() -> None:
    node, _ = limited_node()
    for name in "abcd":
        request = MetadataRequest(topics=[metadata_request.MetadataRequestTopic(name=name)])
        answer, rest_ms = asked(node, request, 9)
        assert (answer.topics[0].error_code, rest_ms) == (0, 0)
    assert asked(node, creation(1, "e"), 7)[1] == 2000


def test_a_quota_of_changes_that_was_altered_counts_at_once() -> None:
    node, _ = limited_node()
    assert asked(node, creation(6, "a"), 7)[1] == 0
    assert set_quota(node, MUTATIONS, 0.5, client_id="c") == 0
    assert asked(node, creation(1, "b"), 7)[1] == 8000
    assert set_quota(node, MUTATIONS, None, client_id="c") == 0
    assert asked(node, creation(1, "b"), 7)[1] == 0


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 50)), max_size=60))
def test_changes_stay_within_the_quota_and_one_change(uses: list[tuple[float, int]]) -> None:
    mutations = Mutations(Quotas({CLIENT: {MUTATIONS: 2.0}}), {}, Windows(5, 1))
    now, made = 0.0, 0
    for pause, partitions in uses:
        now += pause
        charge = mutations.charge("c", now, is_strict=True)
        assert charge is not None
        try:
            charge.take(partitions)
        except KafkaError:
            assert charge.delay_s > 0
        else:
            made += partitions
            assert made <= 2.0 * (now + 5) + 50 + 1e-6


def test_buckets_without_number_are_not_remembered_for_ever() -> None:
    tokens: MutationTokens = {}
    mutations = Mutations(Quotas({entity_of({"client-id": None}): {MUTATIONS: 1.0}}), tokens, Windows())
    for n in range(CLIENTS_MAX + 100):
        charge = mutations.charge(str(n), 0.0, is_strict=False)
        assert charge is not None
        charge.take(1)
    assert len(tokens) == CLIENTS_MAX
