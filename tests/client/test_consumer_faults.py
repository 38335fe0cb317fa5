"""Tests of consumers and range readers with a broker that refuses, moves, truncates, or is outdated."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from client.fake_broker import FakeBroker, fake_broker, limited_to
from client.jumping_loop import run_jumping
from for_each import for_each
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.consumer import AsyncConsumer
from penstock.client.fetch.offsets import MAX_TIMESTAMP, OffsetAt, fetch_offsets
from penstock.client.fetch.ranges import RangeReader, decode_part, fetch_ranges_async
from penstock.errors import (
    ConfigError,
    CorruptRecordError,
    DecodeError,
    KafkaError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.model import EARLIEST, LATEST, OffsetRange, TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.fetch_response import AbortedTransaction, FetchResponse
from penstock.records.batch import ABORT_MARKER, COMMIT_MARKER, encode_batch, encode_marker
from penstock.records.legacy import encode_message_set

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Scenario = Callable[[FakeBroker, AsyncConsumer], Awaitable[None]]


def fill(broker: FakeBroker, count: int = 10, each: int = 2, partition: int = 0) -> None:
    """Append `count` records to a fake log, in batches of `each`; each record's value is its offset."""
    log = broker.logs["t", partition]
    for start in range(log.end, log.end + count, each):
        log.append(encode_batch([(None, b"%d" % n, (), n) for n in range(start, start + each)]))


def played(
    scenario: Scenario, prepare: Callable[[FakeBroker], object] | None = None, **options: object
) -> FakeBroker:
    options = {
        "retry_backoff_ms": 5,
        "retry_backoff_max_ms": 20,
        "reconnect_backoff_ms": 5,
        "auto_offset_reset": "earliest",
        **options,
    }

    async def play() -> FakeBroker:
        async with fake_broker({"t": 2}) as broker:
            fill(broker)
            if prepare is not None:
                prepare(broker)
            async with AsyncConsumer(broker.bootstrap_servers, **options) as consumer:
                consumer.assign([T0])
                await scenario(broker, consumer)
            return broker

    return asyncio.run(play())


async def read(consumer: AsyncConsumer, count: int, timeout_s: float = 60) -> list[int]:
    """Poll until `count` records have arrived; return their offsets."""
    deadline = time.monotonic() + timeout_s
    found: list[int] = []
    while len(found) < count and time.monotonic() < deadline:
        records = await consumer.poll(200)
        assert all(record.value == b"%d" % record.offset for record in records)
        found += [record.offset for record in records]
    return found


async def read_ten(broker: FakeBroker, consumer: AsyncConsumer) -> None:
    assert await read(consumer, 10) == list(range(10))
    assert await consumer.position(T0) == 10


@pytest.mark.parametrize("codes", [(6,), (3,), (5, 5), (74,), (100,), (103,), (78,), (2,)])
def test_errors_that_pass_are_not_noticed(codes: tuple[int, ...]) -> None:
    played(read_ten, lambda b: b.fail(ApiKey.FETCH, *codes))


@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.LIST_OFFSETS])
def test_dropped_connections_are_not_noticed(key: ApiKey) -> None:
    played(read_ten, lambda b: b.hang_up(key, 2))


def test_a_top_level_error_is_not_noticed() -> None:
    played(read_ten, lambda b: b.script(ApiKey.FETCH, lambda *_: FetchResponse(error_code=70)))


def test_a_new_leader_is_found() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as old, fake_broker({"t": 1}) as new:
            new.node_id = 1
            old.brokers = new.brokers = [(0, "127.0.0.1", old.port), (1, "127.0.0.1", new.port)]
            fill(new)
            async with AsyncConsumer(old.bootstrap_servers, retry_backoff_ms=5) as consumer:
                consumer.assign([T0])
                consumer.seek(T0, 4)
                old.script(ApiKey.FETCH, lambda b, h, r: _move(old, new) or b.answer(h, r, 6))
                assert await read(consumer, 6) == [4, 5, 6, 7, 8, 9]

    asyncio.run(play())


def _move(old: FakeBroker, new: FakeBroker) -> None:
    old.leaders["t", 0] = new.leaders["t", 0] = 1


def test_a_partition_without_a_leader_is_waited_for() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        consumer.seek(T0, 0)
        broker.leaders["t", 0] = -1
        assert await consumer.poll(100) == []
        broker.leaders["t", 0] = 0
        assert await read(consumer, 10) == list(range(10))

    played(scenario)


def test_a_throttled_consumer_waits() -> None:
    def throttle(broker: FakeBroker, header: Any, request: Any) -> Any:
        answer = broker._fetched(request, 0)
        answer.throttle_time_ms = 150
        return answer

    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        assert await read(consumer, 10) == list(range(10))
        start = time.monotonic()
        fill(broker, 2)
        assert await read(consumer, 2) == [10, 11]
        assert time.monotonic() - start > 0.1

    played(scenario, lambda b: b.script(ApiKey.FETCH, throttle))


def test_an_error_that_stays_is_raised() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        with pytest.raises(KafkaError, match=r"fetching t-0 at offset 0.*TOPIC_AUTHORIZATION_FAILED"):
            await read(consumer, 10)
        assert await read(consumer, 10) == list(range(10))

    played(scenario, lambda b: b.fail(ApiKey.FETCH, 29))


def test_garbage_is_named_and_read_again() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        with pytest.raises(DecodeError, match="frame of -1 bytes"):
            await read(consumer, 10)
        assert await read(consumer, 10) == list(range(10))

    played(scenario, lambda b: b.send_garbage(ApiKey.FETCH, b"\xff" * 4))


def test_a_damaged_batch_stops_its_partition_until_somebody_seeks() -> None:
    def damage(broker: FakeBroker) -> None:
        batch = bytearray(broker.logs["t", 0].batches[2])
        batch[-2] ^= 1
        broker.logs["t", 0].batches[2] = bytes(batch)

    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        for _ in range(2):
            with pytest.raises(CorruptRecordError, match="checksum"):
                await read(consumer, 10)
            # What comes before the damaged batch has been handed out.
            assert await consumer.position(T0) == 4
        with pytest.raises(CorruptRecordError, match="checksum"):
            await consumer.poll_arrow(1000)
        consumer.seek(T0, 6)
        assert await read(consumer, 4) == [6, 7, 8, 9]

    played(scenario, damage)


def test_checksums_may_be_left_out() -> None:
    def damage(broker: FakeBroker) -> None:
        batch = bytearray(broker.logs["t", 0].batches[0])
        batch[17] ^= 1
        broker.logs["t", 0].batches[0] = bytes(batch)

    played(read_ten, damage, check_crcs=False)


@pytest.mark.parametrize(("reset", "found"), [("earliest", [4, 5]), ("latest", [])])
def test_outside_the_log_the_reset_policy_counts(reset: str, found: list[int]) -> None:
    def cut(broker: FakeBroker) -> None:
        broker.logs["t", 0].start = 4
        broker.logs["t", 0].batches[:2] = []

    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        for offset in (1, 99):
            consumer.seek(T0, offset)
            if found:
                assert (await read(consumer, 2))[:2] == found
                continue
            while await consumer.position(T0) == offset:
                assert await consumer.poll(200) == []
            assert await consumer.position(T0) == 10

    played(scenario, cut, auto_offset_reset=reset)


def test_without_a_policy_it_is_an_error() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        with pytest.raises(ConfigError, match=r"partition t-0 has no position: seek\(\)"):
            await consumer.poll(1000)
        consumer.seek(T0, 99)
        with pytest.raises(KafkaError, match=r"offset 99 of t-0 is outside the log: seek\(\)"):
            await consumer.poll(1000)
        consumer.seek(T0, 5)
        assert await read(consumer, 5) == [5, 6, 7, 8, 9]

    played(scenario, auto_offset_reset="none")


def test_a_seek_does_not_wait_for_the_parked_fetch() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        await read(consumer, 10)
        await consumer.poll(50)
        await asyncio.wait_for(broker.parked.wait(), 5)
        start = time.monotonic()
        consumer.seek(T0, 8)
        assert await read(consumer, 2) == [8, 9]
        assert time.monotonic() - start < 5

    played(scenario, fetch_max_wait_ms=20_000)


def test_a_cut_first_batch_is_asked_for_with_more_room() -> None:
    def cut(broker: FakeBroker, header: Any, request: Any) -> Any:
        answer = broker._fetched(request, 0)
        size = request.topics[0].partitions[0].partition_max_bytes
        data = answer.responses[0].partitions[0]
        data.records = bytes(data.records)[:size]
        if size < 3000:
            broker.scripts[ApiKey.FETCH].append(cut)
        return answer

    def prepare(broker: FakeBroker) -> None:
        broker.versions = limited_to("0.8")
        log = broker.logs["t", 0]
        log.batches = [encode_message_set([(None, b"x" * 2900, 0)], 0, offsets=[0])]
        log.end = 1
        broker.script(ApiKey.FETCH, cut)

    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        (record,) = await consumer.poll(5000)
        assert len(record.value or b"") == 2900

    broker = played(scenario, prepare, max_partition_fetch_bytes=1024)
    sizes = [r.topics[0].partitions[0].partition_max_bytes for r in broker.asked(ApiKey.FETCH)]
    assert sizes[:2] == [1024, 2926]  # as much as the beginning of the message says that it takes


@pytest.mark.parametrize(("release", "version"), [("0.8", 0), ("0.10.0", 2), ("2.1", 10), ("4.0", 17)])
def test_each_release_is_read(release: str, version: int) -> None:
    def prepare(broker: FakeBroker) -> None:
        broker.versions = limited_to(release)
        if version < 4:
            log = broker.logs["t", 0]
            log.batches = [
                encode_message_set([(None, b"%d" % n, 5)], version and 1, offsets=[n]) for n in range(10)
            ]

    broker = played(read_ten, prepare)
    assert {h.api_version for h, _ in broker.requests if h.api_key == ApiKey.FETCH} == {version}


def test_topics_without_ids_are_named() -> None:
    broker = played(read_ten, lambda b: setattr(b, "topic_ids", False))
    assert {h.api_version for h, _ in broker.requests if h.api_key == ApiKey.FETCH} == {12}


def test_who_had_something_goes_last_next_time() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        fill(broker, 10, partition=1)
        consumer.assign([T0, T1])
        seen = set()
        while seen != {0, 1}:
            seen |= {record.partition for record in await consumer.poll(1000)}

    broker = played(scenario)
    first = broker.asked(ApiKey.FETCH)[0].topics[0].partitions
    assert [p.partition for p in first] == [0, 1]


# -- transactions


def transactions(broker: FakeBroker) -> None:
    """Fill the log with three transactions of two producers: one is aborted, two are committed.

    Offsets: 0-1 of producer 1, 2-3 of producer 2, 4 of none, 5 aborts 1, 6 commits 2, 7 of 1, 8 commits 1.
    """
    log = broker.logs["t", 0]
    log.batches.clear()

    def batch(base: int, count: int, producer: int = -1) -> bytes:
        rows = [(None, b"%d" % n, (), 0) for n in range(base, base + count)]
        return encode_batch(
            rows,
            base_offset=base,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=base if producer >= 0 else -1,
            is_transactional=producer >= 0,
        )

    def marker(base: int, kind: int, producer: int) -> bytes:
        return encode_marker(
            kind, base_offset=base, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=0
        )

    log.batches += [batch(0, 2, 1), batch(2, 2, 2), batch(4, 1), marker(5, ABORT_MARKER, 1)]
    log.batches += [marker(6, COMMIT_MARKER, 2), batch(7, 1, 1), marker(8, COMMIT_MARKER, 1)]
    log.end = 9

    def list_aborted(broker: FakeBroker, header: Any, request: Any) -> Any:
        broker.script(ApiKey.FETCH, list_aborted)
        answer = broker._fetched(request, 0)
        data = answer.responses[0].partitions[0]
        offset = request.topics[0].partitions[0].fetch_offset
        if request.isolation_level and offset <= 5:
            data.aborted_transactions = [AbortedTransaction(producer_id=1, first_offset=0)]
        return answer

    broker.script(ApiKey.FETCH, list_aborted)


@pytest.mark.parametrize(
    ("isolation", "expected"), [("read_uncommitted", [0, 1, 2, 3, 4, 7]), ("read_committed", [2, 3, 4, 7])]
)
@pytest.mark.parametrize("size", [100, 1 << 20])
def test_aborted_records_are_seen_by_those_who_ask_for_them(
    isolation: str, expected: list[int], size: int
) -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        assert await read(consumer, len(expected)) == expected
        # Control records take offsets, too: the position goes past them.
        await consumer.poll(100)
        assert await consumer.position(T0) == 9
        consumer.seek(T0, 0)
        found: list[int] = []
        while len(found) < len(expected):
            batch = await consumer.poll_arrow(1000, columns=["offset"])
            assert batch is not None
            found += batch["offset"].to_pylist()
        assert found == expected

    played(
        scenario,
        transactions,
        isolation_level=isolation,
        max_partition_fetch_bytes=max(size, 1024),
        fetch_max_bytes=max(size, 1024),
    )
    ranges, _ = ranged([("t", 0, 1, 8)], transactions, isolation=isolation, fetch_bytes=size)
    assert ranges == [(0, n) for n in expected if n >= 1]


# -- offsets


def test_offsets_are_looked_up_again_after_errors() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        broker.fail(ApiKey.LIST_OFFSETS, 6, 78)
        assert await consumer.end_offsets([T0, T1]) == {T0: 10, T1: 0}
        broker.fail(ApiKey.LIST_OFFSETS, 29)
        with pytest.raises(KafkaError, match=r"looking up offsets of t-0.*AUTHORIZATION"):
            await consumer.beginning_offsets([T0])

    played(scenario)


def test_old_brokers_have_no_offsets_by_time() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        assert await consumer.end_offsets([T0]) == {T0: 10}
        with pytest.raises(UnsupportedVersionError, match=r"offsets by time need Kafka 0\.10\.1"):
            await consumer.offsets_for_times({T0: 5})

    played(scenario, lambda b: setattr(b, "versions", limited_to("0.10.0")))


def test_the_greatest_timestamp_needs_a_newer_broker() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.versions = limited_to("2.1")
            config = ConsumerConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                assert await fetch_offsets(client, {}) == {}
                found = await fetch_offsets(client, {T0: LATEST})
                assert found == {T0: OffsetAt(0)}
                with pytest.raises(UnsupportedVersionError, match=r"Kafka 3\.0"):
                    await fetch_offsets(client, {T0: MAX_TIMESTAMP})

    asyncio.run(play())


# -- ranges


def ranged(
    ranges: list[tuple[str, int, int, int]],
    prepare: Callable[[FakeBroker], object] | None = None,
    config: dict[str, object] | None = None,
    run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run,
    **options: Any,
) -> tuple[list[tuple[int, int]], FakeBroker]:
    """Read offset ranges from a fake broker; return (partition, offset) of each record, and the broker."""

    async def play() -> tuple[list[tuple[int, int]], FakeBroker]:
        async with fake_broker({"t": 2}) as broker:
            fill(broker)
            fill(broker, 6, 3, partition=1)
            if prepare is not None:
                prepare(broker)
            parsed = ConsumerConfig.parse(
                {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 5}, config or {}
            )
            async with AsyncClient(parsed) as client:
                batches = [
                    batch
                    async for _, batch in fetch_ranges_async(
                        client, [OffsetRange(*one) for one in ranges], ["partition", "offset"], **options
                    )
                ]
            return [(row["partition"], row["offset"]) for b in batches for row in b.to_pylist()], broker

    found: tuple[list[tuple[int, int]], FakeBroker] = run(play())
    return found


@for_each(
    [
        (ranges, expected, fetch_bytes)
        for fetch_bytes in [1 << 20, 100]
        for ranges, expected in [
            ([], []),
            ([("t", 0, 3, 3)], []),
            ([("t", 0, 0, 10)], [(0, n) for n in range(10)]),
            ([("t", 0, 3, 8)], [(0, n) for n in range(3, 8)]),
            ([("t", 0, 3, 4), ("t", 1, 2, 5)], [(0, 3), (1, 2), (1, 3), (1, 4)]),
            ([("t", 0, 7, 9), ("t", 0, 1, 2), ("t", 0, 4, 5)], [(0, 1), (0, 4), (0, 7), (0, 8)]),
        ]
    ]
)
def test_exactly_the_range_and_no_fetch_past_its_end(
    ranges: list[tuple[str, int, int, int]], expected: list[tuple[int, int]], fetch_bytes: int
) -> None:
    found, broker = ranged(ranges, fetch_bytes=fetch_bytes)
    assert sorted(found) == expected
    ends = {(topic, partition): end for topic, partition, _, end in ranges}
    spans = [
        (p.partition, p.fetch_offset)
        for r in broker.asked(ApiKey.FETCH)
        for t in r.topics
        for p in t.partitions
    ]
    for partition, offset in spans:
        assert any(p == partition and start <= offset < end for _, p, start, end in ranges), (offset, ends)


@pytest.mark.parametrize("bad", [("t", 0, -1, 5), ("t", 0, 5, 4)])
def test_what_is_no_range_is_refused(bad: tuple[str, int, int, int]) -> None:
    with pytest.raises(ConfigError, match="are no range"):
        ranged([bad])


def test_ranges_of_partitions_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match="there is no partition 7"):
        ranged([("t", 7, 0, 1)])
    with pytest.raises(KafkaError, match="topic 'tt' does not exist; did you mean"):
        ranged([("tt", 0, 0, 1)])


@pytest.mark.parametrize("codes", [(6,), (100, 74), (5,)])
def test_ranges_survive_errors_that_pass(codes: tuple[int, ...]) -> None:
    found, _ = ranged([("t", 0, 0, 10)], lambda b: b.fail(ApiKey.FETCH, *codes))
    assert found == [(0, n) for n in range(10)]


def test_ranges_without_a_leader_end_with_that_word() -> None:
    def orphan(broker: FakeBroker) -> None:
        broker.leaders["t", 0] = -1

    with pytest.raises(RequestTimeoutError, match=r"fetching t-0 did not succeed .*LEADER_NOT_AVAILABLE"):
        ranged([("t", 0, 0, 10)], orphan, run=run_jumping)


def test_ranges_do_not_put_up_with_errors_for_ever() -> None:
    with pytest.raises(RequestTimeoutError, match=r"fetching t-0 did not succeed within 60 s.*NOT_LEADER"):
        ranged([("t", 0, 0, 10)], lambda b: b.fail(ApiKey.FETCH, *[6] * 500), run=run_jumping)


def _truncate(broker: FakeBroker) -> None:
    broker.logs["t", 0].start = 6
    broker.logs["t", 0].batches[:3] = []


def test_records_that_are_gone_are_an_error_unless_they_may_be() -> None:
    with pytest.raises(KafkaError, match=r"records 2 to 8 of t-0 .* the log begins at offset 6"):
        ranged([("t", 0, 2, 9)], _truncate)
    assert ranged([("t", 0, 2, 9)], _truncate, fail_on_data_loss=False)[0] == [(0, 6), (0, 7), (0, 8)]
    assert ranged([("t", 0, 2, 5)], _truncate, fail_on_data_loss=False)[0] == []
    assert ranged([("t", 0, 50, 60)], fail_on_data_loss=False)[0] == []


def test_a_range_beyond_the_end_of_the_log_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.fetch.fetcher.BEYOND_END_PATIENCE_S", 0.1)
    assert ranged([("t", 0, 8, 60)], fail_on_data_loss=False)[0] == [(0, 8), (0, 9)]
    with pytest.raises(KafkaError, match="records 10 to 59 of t-0 were asked for"):
        ranged([("t", 0, 8, 60)])


def test_a_compacted_tail_ends_the_range() -> None:
    """Compaction has removed the last records of the range, and no later batch covers their offsets."""

    def compact(broker: FakeBroker) -> None:
        broker.settings["cleanup.policy"] = "compact,delete"
        del broker.logs["t", 0].batches[3:]

    found, _ = ranged([("t", 0, 0, 10)], compact)
    assert found == [(0, n) for n in range(6)]


def test_a_compacted_gap_is_passed() -> None:
    def compact(broker: FakeBroker) -> None:
        del broker.logs["t", 0].batches[1:4]

    assert ranged([("t", 0, 1, 9)], compact)[0] == [(0, 1), (0, 8)]


def test_memory_is_bounded_by_what_is_read() -> None:
    """While the application reads nothing, the client holds one response and fetches at most one more."""

    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            fill(broker, 1000, 1)
            config = ConsumerConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                reader = RangeReader(client, [OffsetRange("t", 0, 0, 1000)], fetch_bytes=1000)
                await reader.start()
                await asyncio.sleep(0.2)
                assert len(broker.asked(ApiKey.FETCH)) <= 2
                count = 0
                while parts := await reader.next_parts():
                    count += sum(b.num_rows for p in parts for b in decode_part(p, ["offset"], 1 << 20))
                assert count == 1000
                await reader.close()

    asyncio.run(play())


def test_earliest_and_latest_have_no_negative_offsets() -> None:
    async def scenario(broker: FakeBroker, consumer: AsyncConsumer) -> None:
        consumer.seek(T0, LATEST)
        assert await consumer.position(T0) == 10
        consumer.seek(T0, EARLIEST)
        assert await consumer.position(T0) == 0
        with pytest.raises(ConfigError, match="offset -7: offsets begin at 0"):
            consumer.seek(T0, -7)
        with pytest.raises(ConfigError, match="t-1 is not assigned"):
            consumer.seek(T1, 0)

    played(scenario)
