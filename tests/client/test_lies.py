"""Tests of brokers with well-formed but useless answers: every call ends in time with a clear error.

A table combines calls with false answers. The clock jumps (`client.jumping_loop`), so that the default limits
can be used and nothing is measured: a call without a limit would never return.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from client.fake_broker import FakeBroker, fake_broker
from client.jumping_loop import run_jumping
from penstock.client.admin.admin import AsyncAdmin
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig, ConsumerConfig
from penstock.client.fetch.consumer import AsyncConsumer
from penstock.client.fetch.ranges import fetch_ranges_async
from penstock.client.produce.producer import AsyncProducer
from penstock.errors import PenstockError
from penstock.model import OffsetRange, TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.create_partitions_response import CreatePartitionsResponse
from penstock.protocol.messages.create_topics_response import CreateTopicsResponse
from penstock.protocol.messages.delete_groups_response import DeleteGroupsResponse
from penstock.protocol.messages.delete_records_response import DeleteRecordsResponse
from penstock.protocol.messages.delete_topics_response import DeleteTopicsResponse
from penstock.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from penstock.protocol.messages.fetch_response import FetchResponse
from penstock.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from penstock.protocol.messages.init_producer_id_response import InitProducerIdResponse
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.metadata_response import MetadataResponseBroker
from penstock.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_delete_response import OffsetDeleteResponse
from penstock.protocol.messages.offset_fetch_response import OffsetFetchResponse, OffsetFetchResponseGroup
from penstock.protocol.messages.sync_group_response import SyncGroupResponse
from penstock.records.batch import encode_batch
from penstock.records.format.batch_header import set_base_offset
from penstock.tables.reading import plan_reading
from penstock.tables.spec import checked_bounds

T0 = TopicPartition("t", 0)
BROKER = r"127\.0\.0\.1:\d+"
FOR_EVER = 2**31 - 1


def left(what: str, api: str) -> str:
    return f"broker {BROKER} left {what} out of its answer to {api}"


def gave(count: int, api: str) -> str:
    return f"broker {BROKER} gave {count} answers to one {api}"


Call = Callable[[str], Awaitable[Any]]
Lie = Callable[[FakeBroker], object]


class Case(NamedTuple):
    """One false answer of a broker, the call that meets it, and the expected error and time limit."""

    name: str
    call: Call
    lie: Lie
    error: str
    limit_s: float


@pytest.fixture(autouse=True)
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the consumer's deadlines use the event loop's clock, too."""
    clock = SimpleNamespace(monotonic=lambda: asyncio.get_running_loop().time())
    monkeypatch.setattr("penstock.client.fetch.consumer.time", clock)


# -- the calls


async def read(servers: str) -> int:
    """Read a topic as `read_topic` does; return the number of rows."""
    config = ConsumerConfig.parse({"bootstrap.servers": servers}, {})
    async with AsyncClient(config) as client:
        bounds = checked_bounds("earliest", "latest")
        plan = await plan_reading(client, ["t"], bounds, lambda _, known: sorted(known), "read_uncommitted")
        found = fetch_ranges_async(client, plan.ranges, ["offset"])
        return sum([batch.num_rows async for _, batch in found])


async def read_range(servers: str) -> int:
    """Read offsets 4 to 9 without asking for the log's start and end; return the number of rows."""
    config = ConsumerConfig.parse({"bootstrap.servers": servers}, {})
    async with AsyncClient(config) as client:
        found = fetch_ranges_async(client, [OffsetRange("t", 0, 4, 10)], ["offset"])
        return sum([batch.num_rows async for _, batch in found])


async def consume(servers: str) -> None:
    """Poll for ever, from offset 4 on."""
    async with AsyncConsumer(servers) as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 4)
        while True:
            await consumer.poll(5_000)


async def consume_in_group(servers: str) -> None:
    async with AsyncConsumer(servers, group_id="g", max_poll_interval_ms=60_000) as consumer:
        consumer.subscribe(["t"])
        while True:
            await consumer.poll(5_000)


async def produce(servers: str) -> None:
    producer = AsyncProducer(servers)
    try:
        await (await producer.send("t", b"v", partition=0))
    finally:
        await producer.close(0)


def administer(call: Callable[[AsyncAdmin], Awaitable[Any]]) -> Call:
    async def do(servers: str) -> Any:
        async with AsyncAdmin(servers) as admin:
            return await call(admin)

    return do


def as_consumer(call: Callable[[AsyncConsumer], Awaitable[Any]], **options: object) -> Call:
    async def do(servers: str) -> Any:
        async with AsyncConsumer(servers, group_id="g", enable_auto_commit=False, **options) as consumer:
            consumer.assign([T0])
            return await call(consumer)

    return do


commit = as_consumer(lambda consumer: consumer.commit({T0: 3}))
committed = as_consumer(lambda consumer: consumer.committed([T0]))
end_offsets = as_consumer(lambda consumer: consumer.end_offsets([T0]))


# -- the lies


def twist(key: ApiKey, change: Callable[[Any], object]) -> Lie:
    return lambda broker: broker.twist(key, change)


def answer(key: ApiKey, made: Any) -> Lie:
    return lambda broker: broker.always(key, lambda *_: made)


def both(*lies: Lie) -> Lie:
    return lambda broker: [lie(broker) for lie in lies]


def partitions_of_fetch(change: Callable[[Any], object]) -> Lie:
    return twist(
        ApiKey.FETCH, lambda answer: [change(p) for topic in answer.responses for p in topic.partitions]
    )


def nothing(partition: Any) -> None:
    partition.records = b""


def half(partition: Any) -> None:
    partition.records = bytes(partition.records or b"")[:70]


def jumps_to(offset: int) -> Callable[[Any], None]:
    def change(partition: Any) -> None:
        batch = bytearray(encode_batch([(None, b"v", (), 0)]))
        set_base_offset(batch, 0, offset)
        partition.records = bytes(batch)

    return change


def throttled(answer: Any) -> None:
    answer.throttle_time_ms = FOR_EVER
    answer.responses = []


def leave_out_first(answer: Any) -> None:
    answer.responses = []


def of_each(partitions: Callable[[Any], Any], change: Callable[[Any], object]) -> Callable[[Any], None]:
    def do(answer: Any) -> None:
        for partition in partitions(answer):
            change(partition)

    return do


def offsets_told(answer: Any) -> list[Any]:
    return [partition for topic in answer.topics for partition in topic.partitions]


def leaderless(answer: Any) -> None:
    for topic in answer.topics:
        for partition in topic.partitions:
            partition.leader_id, partition.error_code = -1, 5


def lives_at(host: str, port: int) -> Lie:
    return twist(
        ApiKey.METADATA,
        lambda answer: setattr(answer, "brokers", [MetadataResponseBroker(node_id=0, host=host, port=port)]),
    )


def code_always(key: ApiKey, code: int) -> Lie:
    return lambda broker: broker.always(key, lambda b, h, r: b.answer(h, r, code))


def raw(key: ApiKey, make: Callable[[int], bytes]) -> Lie:
    def lie(broker: FakeBroker) -> None:
        broker.always(key, lambda b, header, r: make(header.correlation_id))

    return lie


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def end_at(offset: int) -> Lie:
    """Let ListOffsets and Fetch both answer that the log ends at this offset."""

    def latest(partition: Any) -> None:
        partition.offset = offset if partition.offset else 0

    return both(
        twist(ApiKey.LIST_OFFSETS, of_each(offsets_told, latest)),
        partitions_of_fetch(lambda partition: setattr(partition, "high_watermark", offset)),
    )


def empty_beyond_ten(broker: FakeBroker) -> None:
    end_at(2**62)(broker)
    said = broker.lies[ApiKey.FETCH]

    async def fetch(b: FakeBroker, header: Any, request: Any) -> Any:
        if request.topics[0].partitions[0].fetch_offset < 10:
            return await said(b, header, request)
        made = b._fetched(request, 0)
        made.responses[0].partitions[0].error_code = 0
        made.responses[0].partitions[0].high_watermark = 2**62
        return made

    broker.always(ApiKey.FETCH, fetch)


def commits_nothing() -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[])


def commit_refused(code: int) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])


def coordinator_at(node_id: int) -> Lie:
    def lie(broker: FakeBroker) -> None:
        found = {"node_id": node_id, "host": "127.0.0.1", "port": broker.port}
        made = FindCoordinatorResponse(coordinators=[Coordinator(key="g", **found)])
        broker.always(ApiKey.FIND_COORDINATOR, lambda *_: made)

    return lie


def joined(**fields: Any) -> JoinGroupResponse:
    return JoinGroupResponse(**{"member_id": "m", "generation_id": 1, "protocol_name": "range", **fields})


OFFSETS_V7 = {ApiKey.OFFSET_FETCH: (1, 7)}


def old_offset_fetch(broker: FakeBroker) -> None:
    broker.always(ApiKey.OFFSET_FETCH, lambda *_: OffsetFetchResponse(topics=[]))
    broker.versions[ApiKey.OFFSET_FETCH] = (1, 7)


API_S = 60.0
"""The default of `default.api.timeout.ms`, in seconds."""

FETCH_LIES = [
    ("leaves the partition out", twist(ApiKey.FETCH, leave_out_first), left("partition t-0", "Fetch")),
    (
        "answers another topic",
        twist(ApiKey.FETCH, lambda a: [setattr(t, "topic_id", b"?" * 16) for t in a.responses]),
        left("partition t-0", "Fetch"),
    ),
    (
        "goes back",
        partitions_of_fetch(jumps_to(1)),
        f"broker {BROKER} answered a fetch of t-0 at offset 4 with records that end at 2",
    ),
    (
        "negative offsets",
        partitions_of_fetch(jumps_to(-7)),
        f"broker {BROKER} answered a fetch of t-0 at offset 4 with records that end at -6",
    ),
    (
        "jumps ahead",
        partitions_of_fetch(jumps_to(2**60)),
        f"broker {BROKER} answered a fetch .* end at {2**60 + 1}; the partition ends at 10",
    ),
    (
        "jumps out of the numbers",
        both(
            partitions_of_fetch(jumps_to(2**63 - 1)),
            partitions_of_fetch(lambda p: (jumps_to(2**63 - 1)(p), setattr(p, "high_watermark", -1))),
        ),
        f"broker {BROKER} answered a fetch of t-0 .* records that end at {2**63}",
    ),
    (
        "half a batch",
        partitions_of_fetch(half),
        rf"broker {BROKER} sent 70 bytes of a batch of \d+ bytes at offset 4 of t-0, although \d+",
    ),
    (
        "less than a length",
        partitions_of_fetch(lambda p: setattr(p, "records", b"\0" * 9)),
        f"broker {BROKER} sent 9 bytes of a batch",
    ),
    (
        "nothing",
        partitions_of_fetch(nothing),
        f"broker {BROKER} answers fetches of t-0 at offset 4 with nothing.* ends at 10, and .* not compacted",
    ),
    (
        "nothing, and settings are secret",
        both(partitions_of_fetch(nothing), code_always(ApiKey.DESCRIBE_CONFIGS, 29)),
        f"broker {BROKER} answers fetches of t-0 at offset 4 with nothing",
    ),
]
"""False answers to Fetch that range readers and consumers must both detect."""

CASES = [
    *(Case(f"range, Fetch: {name}", read_range, lie, error, API_S) for name, lie, error in FETCH_LIES),
    *(Case(f"consumer, Fetch: {name}", consume, lie, error, API_S) for name, lie, error in FETCH_LIES),
    Case(
        "range, Fetch: throttles for ever",
        read_range,
        twist(ApiKey.FETCH, throttled),
        f"fetching t-0 from {BROKER}.*THROTTLING_QUOTA_EXCEEDED",
        API_S + 60,
    ),
    Case(
        "range, Fetch: refuses",
        read_range,
        code_always(ApiKey.FETCH, 6),
        f"fetching t-0 at offset 4 from broker {BROKER}.*NOT_LEADER",
        API_S,
    ),
    Case(
        "range, Fetch: refuses the whole",
        read_range,
        answer(ApiKey.FETCH, FetchResponse(error_code=70)),
        f"fetching from broker {BROKER}.*FETCH_SESSION_ID_NOT_FOUND",
        API_S,
    ),
    Case(
        "range, Fetch: is silent",
        read_range,
        lambda b: b.stay_silent(ApiKey.FETCH, 99),
        f"broker {BROKER} did not answer",
        API_S + 40,
    ),
    Case(
        "range, Fetch: another request",
        read_range,
        raw(ApiKey.FETCH, lambda c: framed((c + 1).to_bytes(4, "big") + bytes(30))),
        f"{BROKER} contradicts the protocol: request",
        API_S,
    ),
    Case(
        "range, Fetch: another API",
        read_range,
        raw(ApiKey.FETCH, lambda c: framed(c.to_bytes(4, "big") + b"\0\7\1\2\3\4\5\6")),
        "FetchResponse",
        API_S,
    ),
    Case(
        "consumer, Fetch: another request",
        consume,
        raw(ApiKey.FETCH, lambda c: framed((c + 1).to_bytes(4, "big") + bytes(30))),
        f"{BROKER} contradicts the protocol: request",
        API_S,
    ),
    Case(
        "read, no end of the log",
        read,
        empty_beyond_ten,
        f"broker {BROKER} answers fetches of t-0 at offset 10 with nothing.* ends at {2**62}",
        API_S,
    ),
    Case(
        "read, Metadata: leaves the topic out",
        read,
        twist(ApiKey.METADATA, lambda a: setattr(a, "topics", [])),
        left("topic 't'", "Metadata"),
        API_S,
    ),
    Case(
        "read, Metadata: no leader",
        read,
        twist(ApiKey.METADATA, leaderless),
        "partition t-0.*LEADER_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "read, Metadata: leader unknown",
        read,
        twist(ApiKey.METADATA, lambda a: setattr(a, "brokers", [])),
        "partition t-0.*LEADER_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "read, Metadata: port 70000",
        read,
        lives_at("127.0.0.1", 70_000),
        r"127\.0\.0\.1:70000: there is no port 70000",
        API_S,
    ),
    Case("read, Metadata: port 0", read, lives_at("127.0.0.1", 0), r"there is no port 0", API_S),
    Case("read, Metadata: no name", read, lives_at("a\0b", 9092), "no name of a host", API_S),
    Case("read, Metadata: a long name", read, lives_at("a" * 300, 9092), "no name of a host", API_S),
    Case(
        "read, Metadata: refuses", read, code_always(ApiKey.METADATA, 29), "topic 't'.*AUTHORIZATION", API_S
    ),
    Case(
        "range, Metadata: loses the leader",
        read_range,
        both(code_always(ApiKey.FETCH, 6), lambda b: b.leaders.update({("t", 0): 9})),
        "fetching t-0 did not succeed|LEADER_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "offsets, ListOffsets: leaves out",
        end_offsets,
        twist(ApiKey.LIST_OFFSETS, lambda a: setattr(a, "topics", [])),
        left("partition t-0", "ListOffsets"),
        API_S,
    ),
    Case(
        "offsets, ListOffsets: negative",
        end_offsets,
        twist(ApiKey.LIST_OFFSETS, of_each(offsets_told, lambda p: setattr(p, "offset", -5))),
        "t-0.*OFFSET_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "offsets, ListOffsets: refuses",
        end_offsets,
        code_always(ApiKey.LIST_OFFSETS, 78),
        "t-0.*OFFSET_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "read, ListOffsets: ends before it begins",
        read,
        twist(
            ApiKey.LIST_OFFSETS, of_each(offsets_told, lambda p: setattr(p, "offset", 0 if p.offset else 10))
        ),
        f"broker {BROKER} says that t-0 begins at 10 and ends at 0",
        API_S,
    ),
    Case(
        "produce, leaves out",
        produce,
        twist(ApiKey.PRODUCE, leave_out_first),
        f"delivery.timeout.ms = 120000; the last obstacle: broker {BROKER} left partition t-0 out.* Produce",
        121,
    ),
    Case(
        "produce, refuses",
        produce,
        code_always(ApiKey.PRODUCE, 6),
        "not acknowledged within delivery.timeout.ms.*writing to t-0.*NOT_LEADER",
        121,
    ),
    Case(
        "produce, silence",
        produce,
        lambda b: b.stay_silent(ApiKey.PRODUCE, 99),
        f"delivery.timeout.ms.*broker {BROKER} did not answer",
        152,
    ),
    Case(
        "produce, throttled for ever",
        produce,
        both(code_always(ApiKey.PRODUCE, 6), twist(ApiKey.PRODUCE, throttled)),
        f"delivery.timeout.ms.*broker {BROKER} left partition t-0 out",
        152,
    ),
    Case(
        "produce, no leader",
        produce,
        twist(ApiKey.METADATA, leaderless),
        "delivery.timeout.ms.*partition t-0.*LEADER_NOT_AVAILABLE",
        121,
    ),
    Case(
        "produce, producer id -1",
        produce,
        answer(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=-1, producer_epoch=-1)),
        f"delivery.timeout.ms.*broker {BROKER} gave out producer id -1 with epoch -1",
        121,
    ),
    Case(
        "produce, no producer id",
        produce,
        code_always(ApiKey.INIT_PRODUCER_ID, 15),
        f"delivery.timeout.ms.*getting a producer id from {BROKER}.*COORDINATOR_NOT_AVAILABLE",
        121,
    ),
    Case(
        "commit, leaves out",
        commit,
        answer(ApiKey.OFFSET_COMMIT, commits_nothing()),
        f"committing offsets did not succeed.*broker {BROKER} left partition t-0 out.* OffsetCommit",
        API_S,
    ),
    Case(
        "commit, never the coordinator",
        commit,
        answer(ApiKey.OFFSET_COMMIT, commit_refused(16)),
        f"committing for group 'g', at broker {BROKER}.*NOT_COORDINATOR",
        API_S,
    ),
    Case(
        "commit, coordinator -1",
        commit,
        both(coordinator_at(-1), answer(ApiKey.OFFSET_COMMIT, commits_nothing())),
        f"broker {BROKER} says that node -1 coordinates group 'g'",
        API_S,
    ),
    Case(
        "commit, no coordinator named",
        commit,
        answer(ApiKey.FIND_COORDINATOR, FindCoordinatorResponse(coordinators=[])),
        gave(0, "FindCoordinator"),
        API_S,
    ),
    Case(
        "commit, no coordinator",
        commit,
        code_always(ApiKey.FIND_COORDINATOR, 15),
        f"coordinator of group 'g', at broker {BROKER}.*COORDINATOR_NOT_AVAILABLE",
        API_S,
    ),
    Case(
        "committed, leaves out",
        committed,
        old_offset_fetch,
        f"reading committed offsets did not succeed.*broker {BROKER} left partition t-0 out.* OffsetFetch",
        API_S,
    ),
    Case(
        "committed, no group",
        committed,
        answer(ApiKey.OFFSET_FETCH, OffsetFetchResponse(groups=[])),
        left("partition t-0", "OffsetFetch"),
        API_S,
    ),
    Case(
        "committed, another group",
        committed,
        answer(ApiKey.OFFSET_FETCH, OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="h")])),
        left("group 'g'", "OffsetFetch"),
        API_S,
    ),
    Case(
        "group, rebalances for ever",
        consume_in_group,
        answer(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=27)),
        f"group 'g': not able to join within 65 s; .*JoinGroup, .* by broker {BROKER}.*REBALANCE_IN",
        70,
    ),
    Case(
        "group, a new id for ever",
        consume_in_group,
        answer(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=79, member_id="m")),
        f"JoinGroup, answered \\d+ times by broker {BROKER}.*MEMBER_ID_REQUIRED",
        70,
    ),
    Case(
        "group, never the coordinator",
        consume_in_group,
        answer(ApiKey.JOIN_GROUP, JoinGroupResponse(error_code=16)),
        f"JoinGroup, answered \\d+ times by broker {BROKER}.*NOT_COORDINATOR",
        70,
    ),
    Case(
        "group, no generation",
        consume_in_group,
        answer(ApiKey.JOIN_GROUP, joined(generation_id=-1)),
        f"group 'g': broker {BROKER} made this consumer member 'm' of generation -1",
        70,
    ),
    Case(
        "group, never in sync",
        consume_in_group,
        both(
            answer(ApiKey.JOIN_GROUP, joined(leader="other")),
            answer(ApiKey.SYNC_GROUP, SyncGroupResponse(error_code=27)),
        ),
        f"SyncGroup, answered \\d+ times by broker {BROKER}.*REBALANCE_IN_PROGRESS",
        70,
    ),
    Case(
        "admin, CreateTopics",
        administer(lambda a: a.create_topic("n")),
        answer(ApiKey.CREATE_TOPICS, CreateTopicsResponse()),
        left("topic n", "CreateTopics"),
        API_S,
    ),
    Case(
        "admin, DeleteTopics",
        administer(lambda a: a.delete_topics(["t"])),
        answer(ApiKey.DELETE_TOPICS, DeleteTopicsResponse()),
        left("topic t", "DeleteTopics"),
        API_S,
    ),
    Case(
        "admin, CreatePartitions",
        administer(lambda a: a.create_partitions("t", 3)),
        answer(ApiKey.CREATE_PARTITIONS, CreatePartitionsResponse()),
        gave(0, "CreatePartitions"),
        API_S,
    ),
    Case(
        "admin, DescribeConfigs",
        administer(lambda a: a.describe_config("t")),
        twist(ApiKey.DESCRIBE_CONFIGS, lambda a: setattr(a, "results", a.results * 2)),
        gave(2, "DescribeConfigs"),
        API_S,
    ),
    Case(
        "admin, IncrementalAlterConfigs",
        administer(lambda a: a.alter_config("t", set={"a": 1})),
        answer(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsResponse()),
        gave(0, "IncrementalAlterConfigs"),
        API_S,
    ),
    Case(
        "admin, DeleteRecords",
        administer(lambda a: a.delete_records({T0: 3})),
        answer(ApiKey.DELETE_RECORDS, DeleteRecordsResponse()),
        left("partition t-0", "DeleteRecords"),
        API_S,
    ),
    Case(
        "admin, DescribeGroups",
        administer(lambda a: a.describe_groups(["g"])),
        answer(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse()),
        gave(0, "DescribeGroups"),
        API_S,
    ),
    Case(
        "admin, DescribeGroups: another",
        administer(lambda a: a.describe_groups(["g"])),
        answer(ApiKey.DESCRIBE_GROUPS, DescribeGroupsResponse(groups=[DescribedGroup(group_id="h")])),
        left("group 'g'", "DescribeGroups"),
        API_S,
    ),
    Case(
        "admin, DeleteGroups",
        administer(lambda a: a.delete_groups(["g"])),
        answer(ApiKey.DELETE_GROUPS, DeleteGroupsResponse()),
        gave(0, "DeleteGroups"),
        API_S,
    ),
    Case(
        "admin, OffsetDelete",
        administer(lambda a: a.delete_group_offsets("g", [T0])),
        answer(ApiKey.OFFSET_DELETE, OffsetDeleteResponse()),
        left("partition t-0", "OffsetDelete"),
        API_S,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_lie_ends_as_an_error_that_names_it(case: Case) -> None:
    async def play() -> float:
        async with fake_broker({"t": 1}) as broker:
            log = broker.logs["t", 0]
            for first in range(0, 10, 2):
                log.append(encode_batch([(None, b"%d" % n, (), n) for n in range(first, first + 2)]))
            case.lie(broker)
            clock = asyncio.get_running_loop().time
            start = clock()
            with pytest.raises(PenstockError, match=case.error):
                await case.call(broker.bootstrap_servers)
            return clock() - start

    # Work in other threads makes the clock jump as well.
    assert run_jumping(play()) <= 2 * case.limit_s + 5


@pytest.mark.parametrize("ranges", [[], [(5, 2)], [(-3, -1)], [(2**15 - 1, 2**15 - 1)]])
def test_versions_that_make_no_sense_are_refused_at_once(ranges: list[tuple[int, int]]) -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:

            def nonsense(answer: ApiVersionsResponse) -> None:
                low, high = ranges[0] if ranges else (0, 0)
                for api in answer.api_keys:
                    api.min_version, api.max_version = low, high
                answer.api_keys = answer.api_keys if ranges else []

            broker.twist(ApiKey.API_VERSIONS, nonsense)
            with pytest.raises(PenstockError, match=f"{BROKER}.*(Metadata|ApiVersions)"):
                await read(broker.bootstrap_servers)

    run_jumping(play())


def test_an_answer_that_comes_right_in_time_is_as_good_as_any(caplog: pytest.LogCaptureFixture) -> None:
    """The false answers stop after 30 s.

    All records are read, and one log line names the cause of the wait.
    """

    async def play() -> int:
        async with fake_broker({"t": 1}) as broker:
            for n in range(10):
                broker.logs["t", 0].append(encode_batch([(None, b"v", (), n)]))
            broker.twist(ApiKey.FETCH, leave_out_first)
            reading = asyncio.create_task(read(broker.bootstrap_servers))
            await asyncio.sleep(30)
            del broker.lies[ApiKey.FETCH]
            return await reading

    with caplog.at_level(logging.WARNING, "penstock.client"):
        assert run_jumping(play()) == 10
    said = [record.getMessage() for record in caplog.records if record.name == "penstock.client"]
    assert len(said) == 1
    assert "trying on: broker 127.0.0.1" in said[0]


def test_a_compacted_end_is_the_end_whatever_reads_it() -> None:
    """Empty answers at the end of the log are no error if the topic's cleanup policy is `compact`."""

    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            for n in range(10):
                broker.logs["t", 0].append(encode_batch([(None, b"v", (), n)]))
            broker.logs["t", 0].batches[6:] = []
            broker.settings["cleanup.policy"] = "compact"
            assert await read(broker.bootstrap_servers) == 6
            async with AsyncConsumer(broker.bootstrap_servers) as consumer:
                consumer.assign([T0])
                consumer.seek(T0, 6)
                end = asyncio.get_running_loop().time() + 600
                while asyncio.get_running_loop().time() < end:
                    assert await consumer.poll(5_000) == []

    run_jumping(play())


def test_records_written_during_the_read_may_lie_behind_its_high_watermark() -> None:
    async def play() -> int:
        async with fake_broker({"t": 1}) as broker:
            for n in range(10):
                broker.logs["t", 0].append(encode_batch([(None, b"v", (), n)]))
            broker.lies.clear()
            partitions_of_fetch(lambda p: setattr(p, "high_watermark", min(p.high_watermark, 8)))(broker)
            return await read(broker.bootstrap_servers)

    assert run_jumping(play()) == 10


def test_a_pause_that_a_quota_asks_for_is_cut_at_the_request_timeout() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                assert client.throttle_s("b", 0) == client.throttle_s("b", -5) == 0
                assert client.throttle_s("b", 1_500) == 1.5
                assert client.throttle_s("b", FOR_EVER) == 30

    run_jumping(play())


@pytest.mark.parametrize("key", [ApiKey.LIST_OFFSETS, ApiKey.FETCH, ApiKey.FIND_COORDINATOR])
def test_a_poll_ends_in_its_own_time_whatever_the_broker_does(key: ApiKey) -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.stay_silent(key, 99)
            in_group = key is ApiKey.FIND_COORDINATOR
            async with AsyncConsumer(
                broker.bootstrap_servers, group_id="g" if in_group else None, enable_auto_commit=False
            ) as consumer:
                consumer.assign([T0])
                clock = asyncio.get_running_loop().time
                for _ in range(3):
                    begin = clock()
                    assert await consumer.poll(1_000) == []
                    assert clock() - begin < 25  # of the 30 s that a request may take

    run_jumping(play())


def test_an_error_in_the_background_reaches_the_poll_that_comes_next() -> None:
    async def poll_on(consumer: AsyncConsumer) -> None:
        while True:
            assert await consumer.poll(0) == []

    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.fail(ApiKey.LIST_OFFSETS, 29)
            async with AsyncConsumer(broker.bootstrap_servers) as consumer:
                consumer.assign([T0])
                with pytest.raises(PenstockError, match=r"looking up offsets of t-0.*AUTHORIZATION"):
                    await poll_on(consumer)

    run_jumping(play())
