"""Tests of the producer with a broker that refuses, hangs up, stays silent, or is of an old release."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from client.fake_broker import FakeBroker, fake_broker, limited_to
from client.jumping_loop import run_jumping
from for_each import for_each
from penstock.client.produce.producer import AsyncProducer
from penstock.errors import (
    ConfigError,
    DecodeError,
    EncodeError,
    KafkaError,
    NetworkError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.records.rows import decode_rows

Scenario = Callable[[FakeBroker, AsyncProducer], Awaitable[None]]


def played(
    scenario: Scenario,
    prepare: Callable[[FakeBroker], object] | None = None,
    run: Callable[[Coroutine[Any, Any, FakeBroker]], FakeBroker] = asyncio.run,
    **options: object,
) -> FakeBroker:
    options = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 20, "reconnect_backoff_ms": 5, **options}

    async def play() -> FakeBroker:
        async with fake_broker({"t": 1, "u": 3}) as broker:
            if prepare is not None:
                prepare(broker)
            producer = AsyncProducer(broker.bootstrap_servers, **options)
            try:
                await scenario(broker, producer)
            finally:
                await producer.close(5)
            return broker

    return run(play())


def stored(broker: FakeBroker, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    log = broker.logs[topic, partition]
    return [row.value for batch in log.batches for row in decode_rows(batch, topic, partition)[0]]


async def send_five(broker: FakeBroker, producer: AsyncProducer) -> None:
    deliveries = [await producer.send("t", b"%d" % n) for n in range(5)]
    assert [(await d).offset for d in deliveries] == [0, 1, 2, 3, 4]


FIVE = [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    "codes",
    [(6,), (3, 5), (7, 7), (19,), (100,), (13, 56)],
    ids=lambda codes: "+".join(ErrorCode(c).name for c in codes),
)
def test_errors_that_pass_are_not_noticed(codes: tuple[int, ...]) -> None:
    broker = played(send_five, lambda b: b.fail(ApiKey.PRODUCE, *codes))
    assert stored(broker) == FIVE


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_dropped_connection_is_not_noticed(idempotent: bool) -> None:
    broker = played(send_five, lambda b: b.hang_up(ApiKey.PRODUCE, 2), enable_idempotence=idempotent)
    assert stored(broker) == FIVE


def test_a_lost_answer_does_not_repeat_the_records() -> None:
    def store_and_hang_up(broker: FakeBroker, header: Any, request: Any) -> object:
        broker.answer(header, request)
        from client.fake_broker import HANG_UP

        return HANG_UP

    broker = played(send_five, lambda b: b.script(ApiKey.PRODUCE, store_and_hang_up, store_and_hang_up))
    assert stored(broker) == FIVE


def test_a_silent_broker_is_given_up_and_asked_again() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"first")
        broker.stay_silent(ApiKey.PRODUCE)
        assert (await producer.send_and_wait("t", b"second")).offset == 1

    import penstock.client.produce.sender as sender

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sender, "TIMEOUT_SLACK_S", 0.0)
        broker = played(scenario, request_timeout_ms=100)
    assert stored(broker) == [b"first", b"second"]


def test_a_new_leader_is_found() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as old, fake_broker({"t": 1}) as new:
            new.node_id = 1
            both = [(0, "127.0.0.1", old.port), (1, "127.0.0.1", new.port)]
            old.brokers = new.brokers = both
            async with AsyncProducer(old.bootstrap_servers, retry_backoff_ms=5) as producer:
                await producer.send_and_wait("t", b"a")
                old.leaders["t", 0] = new.leaders["t", 0] = 1
                old.fail(ApiKey.PRODUCE, *[6] * 1000)  # however often it is asked before the leader is known
                await producer.send_and_wait("t", b"b")
            assert (stored(old), stored(new)) == ([b"a"], [b"b"])

    asyncio.run(play())


def test_order_holds_over_retries_with_five_under_way() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"0")
        broker.fail(ApiKey.PRODUCE, 7)
        deliveries = []
        for n in range(1, 40):
            deliveries.append(await producer.send("t", b"%d" % n))
            await asyncio.sleep(0)
        assert [(await d).offset for d in deliveries] == list(range(1, 40))

    broker = played(scenario)
    assert stored(broker) == [b"%d" % n for n in range(40)]


def test_a_gap_in_the_sequence_begins_a_new_epoch() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        # The broker forgets the producer's state, and answers as one that sees a gap.
        broker.fail(ApiKey.PRODUCE, 45)
        await producer.send_and_wait("t", b"b")
        await producer.send_and_wait("t", b"c")

    broker = played(scenario)
    assert stored(broker) == [b"a", b"b", b"c"]
    asked = [(r.producer_id, r.producer_epoch) for r in broker.asked(ApiKey.INIT_PRODUCER_ID)]
    assert asked == [(-1, -1), (101, 0)]


def test_an_epoch_that_cannot_be_raised_makes_a_new_id() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.fail(ApiKey.PRODUCE, 45)
        broker.fail(ApiKey.INIT_PRODUCER_ID, 47)
        await producer.send_and_wait("t", b"b")

    broker = played(scenario)
    assert [r.producer_id for r in broker.asked(ApiKey.INIT_PRODUCER_ID)] == [-1, 101, -1]


def test_what_is_refused_fails_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(broker: FakeBroker, header: Any, request: Any) -> ProduceResponse:
        (topic,) = request.topic_data
        why = [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="no key")]
        answer = PartitionProduceResponse(
            index=0, error_code=87, base_offset=-1, record_errors=why, error_message="compacted topic"
        )
        return ProduceResponse(
            responses=[
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[answer])
            ]
        )

    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        broker.script(ApiKey.PRODUCE, refuse)
        delivery = await producer.send("t", b"a")
        with pytest.raises(KafkaError, match=r"writing to t-0 \(compacted topic\) \(record 0 .*: no key\)"):
            await delivery
        await producer.send_and_wait("t", b"b")

    with caplog.at_level(logging.WARNING, "penstock.client"):
        broker = played(scenario)
    assert stored(broker) == [b"b"]
    assert caplog.text == ""


def test_a_failure_that_nobody_looks_at_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.fail(ApiKey.PRODUCE, 87)
        await producer.send("t", b"b")
        await producer.flush()

    with caplog.at_level(logging.WARNING, "penstock.client"):
        played(scenario)
    assert "1 records for t-0 were not written: " in caplog.text


def test_a_partition_that_an_answer_leaves_out_is_written_again() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        broker.script(ApiKey.PRODUCE, lambda *_: ProduceResponse())
        assert (await producer.send_and_wait("t", b"a")).offset == 0
        assert len(broker.asked(ApiKey.PRODUCE)) == 2

    played(scenario)


def test_garbage_fails_what_was_under_way_and_nothing_else() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        broker.send_garbage(ApiKey.PRODUCE, b"\xff" * 8)
        with pytest.raises(DecodeError, match="frame of -1 bytes"):
            await producer.send_and_wait("t", b"a")
        await producer.send_and_wait("t", b"b")

    assert stored(played(scenario)) == [b"b"]


def test_too_large_a_batch_is_split_until_it_fits() -> None:
    def at_most_100_bytes(broker: FakeBroker, header: Any, request: Any) -> object:
        broker.script(ApiKey.PRODUCE, at_most_100_bytes)
        size = len(request.topic_data[0].partition_data[0].records)
        return broker.answer(header, request, 10 if size > 100 else 0)

    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        deliveries = [await producer.send("t", b"%010d" % n) for n in range(20)]
        assert [(await d).offset for d in deliveries] == list(range(20))
        with pytest.raises(KafkaError, match=r"raise the topic's max\.message\.bytes"):
            await producer.send_and_wait("t", b"x" * 200)
        await producer.send_and_wait("t", b"last")

    broker = played(scenario, lambda b: b.script(ApiKey.PRODUCE, at_most_100_bytes))
    assert stored(broker) == [b"%010d" % n for n in range(20)] + [b"last"]


def test_delivery_timeout_names_the_obstacle() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.fail(ApiKey.PRODUCE, *[19] * 1000)
        with pytest.raises(RequestTimeoutError, match=r"delivery\.timeout\.ms = 60000.*NOT_ENOUGH_REPLICAS"):
            await producer.send_and_wait("t", b"b")

    played(scenario, run=run_jumping, delivery_timeout_ms=60_000, retry_backoff_max_ms=1000)


def test_a_broker_that_goes_away_is_named_when_the_time_is_up() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        await broker.stop()
        delivery = await producer.send("t", b"b")
        with pytest.raises(RequestTimeoutError, match=r"delivery\.timeout\.ms = 60000.*refused"):
            await delivery

    played(scenario, run=run_jumping, delivery_timeout_ms=60_000)


def test_a_partition_without_a_leader_is_waited_for() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.leaders["t", 0] = -1
        broker.fail(ApiKey.PRODUCE, 6)
        delivery = await producer.send("t", b"b")
        await asyncio.sleep(0.1)
        assert not delivery.done()
        broker.leaders["t", 0] = 0
        assert (await delivery).offset == 1
        broker.leaders["t", 0] = -1
        broker.fail(ApiKey.PRODUCE, *[6] * 50)
        with pytest.raises(RequestTimeoutError, match=r"the last obstacle: .*LEADER_NOT_AVAILABLE"):
            await producer.send_and_wait("t", b"c")

    played(
        scenario,
        run=run_jumping,
        delivery_timeout_ms=60_000,
        retry_backoff_ms=100,
        retry_backoff_max_ms=1000,
    )


def test_what_nobody_acknowledges_still_respects_the_connection() -> None:
    """With acks=0 only the socket's buffer slows the producer down; all records still arrive."""

    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        for _ in range(40):
            await producer.send("t", b"x" * 500_000)
        await producer.flush()
        await producer.close()
        for _ in range(200):
            if len(stored(broker)) == 40:
                break
            await asyncio.sleep(0.02)

    assert len(stored(played(scenario, acks=0))) == 40


def test_nobody_waits_for_room_for_ever() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.stay_silent(ApiKey.PRODUCE, 100)
        await producer.send("t", b"x" * 2000)
        with pytest.raises(RequestTimeoutError, match=r"no room .* max\.block\.ms = 60000.*buffer\.memory"):
            await producer.send("t", b"b")

    played(scenario, run=run_jumping, buffer_memory=2000, max_block_ms=60_000)


def test_room_comes_with_acknowledgements() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        for n in range(50):
            await producer.send("t", b"%04d" % n * 100)
        await producer.flush()

    assert len(stored(played(scenario, buffer_memory=2000))) == 50


def test_a_throttled_producer_waits() -> None:
    def throttle(broker: FakeBroker, header: Any, request: Any) -> object:
        answer = broker.answer(header, request)
        answer.throttle_time_ms = 150
        return answer

    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        broker.script(ApiKey.PRODUCE, throttle)
        await producer.send_and_wait("t", b"a")
        start = asyncio.get_running_loop().time()
        await producer.send_and_wait("t", b"b")
        assert asyncio.get_running_loop().time() - start > 0.1

    played(scenario)


# -- idempotence and old brokers


def test_without_producer_ids_the_broker_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await send_five(broker, producer)
        broker.hang_up(ApiKey.PRODUCE)  # what begins anew says nothing anew
        await producer.send_and_wait("u", b"5")

    broker = played(scenario, lambda b: b.versions.pop(ApiKey.INIT_PRODUCER_ID), client_id="shop")
    assert stored(broker) == FIVE
    (said,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert said == (
        f"shop: broker {broker.bootstrap_servers} does not know InitProducerId: it is too old for this; "
        "going on without idempotence: records that are sent again may be stored twice. "
        "enable.idempotence=true refuses such a broker, and false goes on without this warning"
    )
    assert all(
        p.records for r in broker.asked(ApiKey.PRODUCE) for t in r.topic_data for p in t.partition_data
    )


def test_without_permission_for_producer_ids_likewise() -> None:
    assert stored(played(send_five, lambda b: b.fail(ApiKey.INIT_PRODUCER_ID, 31))) == FIVE


def test_who_wants_no_producer_ids_is_not_warned(caplog: pytest.LogCaptureFixture) -> None:
    played(send_five, lambda b: b.versions.pop(ApiKey.INIT_PRODUCER_ID), enable_idempotence=False)
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_idempotence_that_was_asked_for_is_not_given_up_quietly() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        with pytest.raises(UnsupportedVersionError, match="does not know InitProducerId"):
            await producer.send_and_wait("t", b"a")

    played(scenario, lambda b: b.versions.pop(ApiKey.INIT_PRODUCER_ID), enable_idempotence=True)


def test_a_coordinator_that_is_loading_is_asked_again() -> None:
    assert stored(played(send_five, lambda b: b.fail(ApiKey.INIT_PRODUCER_ID, 14, 15))) == FIVE


@for_each(
    [
        (release, version, magic, codec)
        for codec in ["none", "gzip", "lz4"]
        for release, version, magic in [("0.8", 0, 0), ("0.10.0", 2, 1), ("2.1", 7, 2), ("4.0", 12, 2)]
    ]
)
def test_each_release_gets_the_format_it_stores(release: str, version: int, magic: int, codec: str) -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        for n in range(3):
            await producer.send("t", b"%d" % n, key=b"k", timestamp=1000 + n)
        await producer.flush()

    broker = played(scenario, lambda b: setattr(b, "versions", limited_to(release)), compression_type=codec)
    assert {h.api_version for h, _ in broker.requests if h.api_key == ApiKey.PRODUCE} == {version}
    (batch,) = broker.logs["t", 0].batches
    assert batch[16] == magic
    rows, _ = decode_rows(batch, "t", 0)
    assert [(r.key, r.value) for r in rows] == [(b"k", b"%d" % n) for n in range(3)]
    assert [r.timestamp for r in rows] == ([-1] * 3 if magic == 0 else [1000, 1001, 1002])


@pytest.mark.parametrize(
    ("send", "options", "error", "words"),
    [
        ({"headers": [("a", b"1")]}, {}, EncodeError, "headers need Kafka 0.11"),
        ({}, {"compression_type": "zstd"}, UnsupportedVersionError, "zstd needs Kafka 2.1"),
    ],
)
def test_what_an_old_broker_cannot_store_is_an_error(
    send: dict[str, Any], options: dict[str, object], error: type[Exception], words: str
) -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        with pytest.raises(error, match=words):
            await producer.send_and_wait("t", b"a", **send)

    played(scenario, lambda b: setattr(b, "versions", limited_to("0.10.0")), **options)


def test_topics_without_ids_are_named() -> None:
    broker = played(send_five, lambda b: setattr(b, "topic_ids", False))
    assert stored(broker) == FIVE
    assert {h.api_version for h, _ in broker.requests if h.api_key == ApiKey.PRODUCE} == {12}


def test_without_acknowledgements_nobody_waits() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        deliveries = [await producer.send("t", b"%d" % n) for n in range(5)]
        assert [(await d).offset for d in deliveries] == [-1] * 5

    assert stored(played(scenario, acks=0)) == FIVE


# -- the application's mistakes


@for_each(
    [
        ("value is bytes or None, not str: encode it", {"value": "text"}),
        ("key is bytes or None, not int$", {"key": 5}),
        ("header 'h' is bytes or None, not str", {"headers": [("h", "text")]}),
        ("header's name is text, not bytes", {"headers": [(b"h", b"x")]}),
        ("value is bytes or None, not int$", {"value": 5}),
        ("value is bytes or None, not list$", {"value": [1, 2]}),
        ("key is bytes or None, not bool$", {"key": True}),
        ("header 'h' is bytes or None, not int$", {"headers": [("h", 5)]}),
        ("header's name is text that UTF-8 can say", {"headers": [("\ud800", b"x")]}),
        (
            "timestamp is milliseconds since 1970, a whole number of 64 bits, or a datetime, not 1.5",
            {"timestamp": 1.5},
        ),
        ("timestamp is milliseconds since 1970", {"timestamp": "now"}),
        ("timestamp is milliseconds since 1970", {"timestamp": True}),
        ("timestamp is milliseconds since 1970", {"timestamp": 2**63}),
    ]
)
def test_wrong_types_are_refused_at_once(words: str, options: dict[str, Any]) -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        with pytest.raises(EncodeError, match=words):
            await producer.send("t", **options)
        await producer.send_and_wait("t", bytearray(b"fine"), headers={"h": memoryview(b"x"), "n": None})

    broker = played(scenario)
    (row,) = decode_rows(broker.logs["t", 0].batches[0], "t", 0)[0]
    assert (row.value, row.headers) == (b"fine", [("h", b"x"), ("n", None)])


def test_wrong_places_are_refused() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        with pytest.raises(ConfigError, match="'u' has 3 partitions, 0 to 2: there is no partition 3"):
            await producer.send("u", b"a", partition=3)
        with pytest.raises(ConfigError, match="no name of a topic"):
            await producer.send("", b"a")
        with pytest.raises(KafkaError, match="topic 'tt' does not exist"):
            await producer.send("tt", b"a")

    played(scenario, topic_metadata_propagation_max_ms=20)


def test_an_own_partitioner_decides() -> None:
    broker = played(
        lambda b, p: _send_keys(p), partitioner=lambda key, count: None if key is None else int(key) % count
    )
    assert stored(broker, "u", 2) == [b"2", b"5"]


async def _send_keys(producer: AsyncProducer) -> None:
    for n in range(6):
        await producer.send("u", b"%d" % n, key=b"%d" % n)
    await producer.flush()


def test_a_closed_producer_says_so_and_fails_the_rest() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.send_and_wait("t", b"a")
        broker.stay_silent(ApiKey.PRODUCE, 10)
        late = await producer.send("t", b"b")
        await producer.close(0.05)
        with pytest.raises(NetworkError, match="closed before the record was acknowledged"):
            await late
        with pytest.raises(NetworkError, match="closed"):
            await producer.send("t", b"c")

    played(scenario)


def test_who_is_interrupted_does_not_wait_for_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.closing.INTERRUPTED_PATIENCE_S", 0.05)

    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.stay_silent(ApiKey.PRODUCE, 10)
            with pytest.raises(KeyboardInterrupt):
                await _send_and_interrupt(broker)

    asyncio.run(asyncio.wait_for(play(), 5))


async def _send_and_interrupt(broker: FakeBroker) -> None:
    async with AsyncProducer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"a")
        raise KeyboardInterrupt


def test_flush_may_time_out() -> None:
    async def scenario(broker: FakeBroker, producer: AsyncProducer) -> None:
        await producer.flush()
        await producer.send_and_wait("t", b"a")
        broker.stay_silent(ApiKey.PRODUCE, 10)
        await producer.send("t", b"b")
        with pytest.raises(RequestTimeoutError, match=r"1 batches are not acknowledged after 0\.05 s"):
            await producer.flush(0.05)
        await producer.close(0)

    played(scenario)
