"""Tests of share consumers with a scripted broker: acknowledgement modes, failures, worker pools."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from client.fake_broker import FakeBroker
from client.share.fake_queue import ACCEPTED, REJECTED, FakeQueue, fake_queue
from penstock import AcknowledgeType, AsyncShareConsumer, ShareConsumer, TopicPartition
from penstock.errors import ConfigError, KafkaError, NetworkError, PenstockError, UnsupportedVersionError
from penstock.model import ShareRecord
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import share_acknowledge_response as acknowledged
from penstock.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse

TP = TopicPartition("t", 0)
PATIENCE_S = 60.0


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await test()

    asyncio.run(limited())


def consumer_of(queue: FakeQueue, **options: Any) -> AsyncShareConsumer:
    settings: dict[str, Any] = {
        "group_id": "g",
        "fetch_max_wait_ms": 50,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 5,
        "enable_metrics_push": False,
        **options,
    }
    made = AsyncShareConsumer(queue.broker.bootstrap_servers, **settings)
    made.subscribe("t")
    return made


async def at_once(consumer: AsyncShareConsumer) -> list[ShareRecord]:
    """Poll until records arrive, and return them."""
    while not (records := await consumer.poll(1_000)):
        pass
    return records


def test_the_next_poll_accepts_and_the_end_accepts_the_rest() -> None:
    async def test() -> None:
        async with fake_queue(b"a", b"b") as queue:
            async with consumer_of(queue, max_poll_records=1) as consumer:
                first = await at_once(consumer)
                assert [(row.offset, row.value, row.delivery_count) for row in first] == [(0, b"a", 1)]
                assert queue.final == {}
                second = await at_once(consumer)
                assert [row.offset for row in second] == [1]
                assert consumer.assignment() == [TP]
                assert consumer.acquisition_lock_timeout_ms == 30_000
            assert queue.final == {0: ACCEPTED, 1: ACCEPTED}
            assert queue.left
            assert queue.session is None

    run(test)


def test_an_application_that_failed_releases_its_last_records() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:

            async def fail() -> None:
                async with consumer_of(queue) as consumer:
                    await at_once(consumer)
                    raise ValueError("no")

            with pytest.raises(ValueError, match="no"):
                await fail()
            assert queue.final == {}
            assert queue.free == {0}
            async with consumer_of(queue) as consumer:
                assert [row.delivery_count for row in await at_once(consumer)] == [2]

    run(test)


def test_each_record_of_a_loop_is_accepted_when_the_next_is_asked_for() -> None:
    async def test() -> None:
        async with fake_queue(b"a", b"b", b"c") as queue:
            async with consumer_of(queue) as consumer:
                async for record in consumer:
                    if record.offset == 1:
                        break
            assert queue.final == {0: ACCEPTED, 1: ACCEPTED}
            assert queue.free == {2}

    run(test)


def test_explicit_acknowledgements_go_with_the_next_poll() -> None:
    async def test() -> None:
        told: list[tuple[dict[TopicPartition, Sequence[range]], PenstockError | None]] = []
        async with fake_queue(b"a", b"b", b"c") as queue:
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                consumer.subscribe("t", on_acknowledged=lambda offsets, error: told.append((offsets, error)))
                records = await at_once(consumer)
                with pytest.raises(ConfigError, match="3 records of the last poll"):
                    await consumer.poll()
                consumer.acknowledge(records[0])
                consumer.acknowledge(records[1], "release")
                consumer.acknowledge_offsets(("t", 0), 2, 2, AcknowledgeType.REJECT)
                again = await at_once(consumer)
                assert [(row.offset, row.delivery_count) for row in again] == [(1, 2)]
                assert queue.final == {0: ACCEPTED, 2: REJECTED}
                consumer.acknowledge(again)
                assert await consumer.commit() == {TP: None}
            assert queue.final == {0: ACCEPTED, 1: ACCEPTED, 2: REJECTED}
            assert told == [({TP: [range(3)]}, None), ({TP: [range(1, 2)]}, None)]

    run(test)


def test_renewed_records_come_again_before_anything_new() -> None:
    async def test() -> None:
        async with (
            fake_queue(b"a", b"b") as queue,
            consumer_of(queue, share_acknowledgement_mode="explicit") as consumer,
        ):
            records = await at_once(consumer)
            consumer.acknowledge(records[0], "renew")
            consumer.acknowledge(records[1], "accept")
            queue.produce(b"c")
            again = await consumer.poll()
            assert [(row.offset, row.delivery_count) for row in again] == [(0, 1)]
            assert queue.renewals.is_set()
            consumer.acknowledge(again)
            assert [row.offset for row in await at_once(consumer)] == [2]
            assert queue.final == {0: ACCEPTED, 1: ACCEPTED}

    run(test)


def test_a_session_that_ended_gives_its_records_out_again() -> None:
    async def test() -> None:
        async with (
            fake_queue(b"a") as queue,
            consumer_of(queue, share_acknowledgement_mode="explicit") as consumer,
        ):
            consumer.acknowledge(await at_once(consumer))
            queue.end_session()
            results = await consumer.commit()
            error = results[TP]
            assert isinstance(error, KafkaError)
            assert error.code == ErrorCode.SHARE_SESSION_NOT_FOUND
            again = await at_once(consumer)
            assert [row.delivery_count for row in again] == [2]
            consumer.acknowledge(again)
            assert await consumer.commit() == {TP: None}

    run(test)


def test_a_connection_that_breaks_fails_what_was_under_way() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                consumer.acknowledge(await at_once(consumer))
                queue.broker.hang_up(ApiKey.SHARE_ACKNOWLEDGE)
                results = await consumer.commit()
                assert isinstance(results[TP], NetworkError)
                queue.end_session()
                consumer.acknowledge(await at_once(consumer))
                assert await consumer.commit() == {TP: None}
            assert queue.final == {0: ACCEPTED}

    run(test)


def answering_whole_batches(queue: FakeQueue) -> None:
    """Let the broker return more records than requested, as brokers do with larger batches."""

    async def fetch(broker: FakeBroker, header: Any, request: Any) -> Any:
        request.max_records = 100
        return await queue.fetch(broker, header, request)

    queue.broker.always(ApiKey.SHARE_FETCH, fetch)


def test_a_connection_that_ends_takes_what_was_not_handed_out_along() -> None:
    """The broker releases records that the application has not got yet.

    Another member may have finished them before the next poll.
    """

    async def test() -> None:
        async with fake_queue(b"a", b"b", b"c") as queue:
            answering_whole_batches(queue)
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                while not (records := await consumer.poll(1_000, max_records=1)):
                    pass
                consumer.acknowledge(records)
                await consumer.commit()
                await queue.broker.stop()
                queue.end_session()
                queue.free.discard(1)  # another member has finished it
                again = asyncio.Event()
                heartbeat = queue.heartbeat

                def beat(broker: FakeBroker, header: Any, request: Any) -> Any:
                    again.set()
                    return heartbeat(broker, header, request)

                queue.broker.always(ApiKey.SHARE_GROUP_HEARTBEAT, beat)
                await queue.broker.start(queue.broker.port)
                await again.wait()
                assert [(row.offset, row.delivery_count) for row in await at_once(consumer)] == [(2, 2)]

    run(test)


def test_a_partition_that_has_moved_takes_what_was_not_handed_out_along() -> None:
    async def test() -> None:
        async with fake_queue(b"a", b"b", b"c") as old, fake_queue() as new:
            new.broker.node_id = 1
            nodes = [(0, "127.0.0.1", old.broker.port), (1, "127.0.0.1", new.broker.port)]
            for queue in (old, new):
                answering_whole_batches(queue)
                queue.broker.brokers = nodes
                queue.broker.leaders["t", 0] = 0
                queue.broker.versions.setdefault(ApiKey.FIND_COORDINATOR, (0, 4))
            async with consumer_of(old, share_acknowledgement_mode="explicit") as consumer:
                while not (records := await consumer.poll(1_000, max_records=1)):
                    pass
                old.move_to(new)
                consumer.acknowledge(records)
                error = (await consumer.commit())[TP]
                assert isinstance(error, KafkaError)
                assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                while consumer.fetcher is None or consumer.fetcher._client.cluster.leader(TP) != 1:
                    await asyncio.sleep(0.001)
                assert [(row.offset, row.delivery_count) for row in await at_once(consumer)] == [
                    (0, 2),
                    (1, 2),
                    (2, 2),
                ]

    run(test)


def refusing_acknowledgements(queue: FakeQueue, times: int) -> list[float]:
    """Let the broker refuse this number of acknowledgements as if it could not store them now.

    Returns a list to which the arrival time of each is added.
    """
    came: list[float] = []

    async def refuse(broker: FakeBroker, header: Any, request: Any) -> Any:
        came.append(asyncio.get_running_loop().time())
        if len(came) > times:
            return queue.acknowledge(broker, header, request)
        assert queue.session is not None
        queue.session += 1
        topics = [
            acknowledged.ShareAcknowledgeTopicResponse(
                topic_id=broker.topic_id("t"),
                partitions=[
                    acknowledged.PartitionData(
                        partition_index=0, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
                    )
                ],
            )
        ]
        return acknowledged.ShareAcknowledgeResponse(responses=topics)

    queue.broker.always(ApiKey.SHARE_ACKNOWLEDGE, refuse)
    return came


def test_a_commit_tries_again_until_the_broker_can_store_it() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                consumer.acknowledge(await at_once(consumer))
                came = refusing_acknowledgements(queue, 3)
                assert await consumer.commit() == {TP: None}
                assert len(came) == 4
                assert came[-1] - came[0] >= 3 * 0.0008, "each try comes after a backoff"
            assert queue.final == {0: ACCEPTED}

    run(test)


def test_a_lock_that_ran_out_does_not_fail_the_others() -> None:
    async def test() -> None:
        async with fake_queue(*[b"v"] * 8) as queue:
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                consumer.acknowledge(await at_once(consumer))
                queue.locked.discard(5)
                results = await consumer.commit()
                assert "share.record.lock.duration.ms" in str(results[TP])
            assert sorted(queue.final) == [0, 1, 2, 3, 4, 6, 7]

    run(test)


def test_a_fenced_member_joins_again_and_keeps_what_it_has() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            async with consumer_of(queue, share_acknowledgement_mode="explicit") as consumer:
                records = await at_once(consumer)
                code = ErrorCode.FENCED_MEMBER_EPOCH
                fenced = asyncio.Event()

                def fence(*_: object) -> ShareGroupHeartbeatResponse:
                    fenced.set()
                    return ShareGroupHeartbeatResponse(error_code=code)

                queue.broker.script(ApiKey.SHARE_GROUP_HEARTBEAT, fence)
                await fenced.wait()
                consumer.acknowledge(records)
                queue.produce(b"b")
                consumer.acknowledge(await at_once(consumer))
                assert await consumer.commit() == {TP: None}
            assert queue.final == {0: ACCEPTED, 1: ACCEPTED}

    run(test)


@pytest.mark.parametrize("is_hint", [False, True])
def test_a_partition_that_moves_gives_its_records_out_at_its_new_leader(is_hint: bool) -> None:
    """The client finds the new leader from metadata, or from the leader in an error response."""

    async def test() -> None:
        async with fake_queue(b"a", b"b") as old, fake_queue() as new:
            new.broker.node_id = 1
            nodes = [(0, "127.0.0.1", old.broker.port), (1, "127.0.0.1", new.broker.port)]
            for queue in (old, new):
                queue.broker.brokers = nodes
                queue.broker.leaders["t", 0] = 0
                queue.broker.versions.setdefault(ApiKey.FIND_COORDINATOR, (0, 4))
            async with consumer_of(old, share_acknowledgement_mode="explicit") as consumer:
                records = await at_once(consumer)
                old.move_to(new, is_hint=is_hint)
                consumer.acknowledge(records)
                results = await consumer.commit()
                error = results[TP]
                assert isinstance(error, KafkaError)
                assert error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                again = await at_once(consumer)
                assert [row.delivery_count for row in again] == [2, 2]
                consumer.acknowledge(again)
                assert await consumer.commit() == {TP: None}
            assert new.final == {0: ACCEPTED, 1: ACCEPTED}

    run(test)


def test_a_broker_without_share_groups_is_named_as_that() -> None:
    async def test() -> None:
        async with fake_queue() as queue:
            code = ErrorCode.UNSUPPORTED_VERSION
            refusal = ShareGroupHeartbeatResponse(error_code=code)
            queue.broker.always(ApiKey.SHARE_GROUP_HEARTBEAT, lambda *_: refusal)
            async with consumer_of(queue) as consumer:
                with pytest.raises(KafkaError, match=r"Kafka 4\.2 or newer"):
                    await consumer.poll()
            queue.broker.versions[ApiKey.SHARE_GROUP_HEARTBEAT] = (0, 0)
            async with consumer_of(queue) as consumer:
                with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2 or newer"):
                    await consumer.poll()

    run(test)


def test_calls_that_do_not_fit_are_refused() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            async with consumer_of(queue) as consumer:
                records = await at_once(consumer)
                with pytest.raises(ConfigError, match=r"share\.acknowledgement\.mode"):
                    consumer.acknowledge(records[0])
                with pytest.raises(ConfigError, match="no patterns"):
                    consumer.subscribe("^t.*")
                with pytest.raises(ConfigError, match="unsubscribe"):
                    consumer.subscribe([])
                with pytest.raises(ConfigError, match="workers"):
                    await consumer.run(print, workers=0)
                await consumer.unsubscribe()
                with pytest.raises(ConfigError, match="subscribe"):
                    await consumer.poll()
            with pytest.raises(NetworkError, match="closed"):
                await consumer.start()

    run(test)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("auto_offset_reset", "share.auto.offset.reset"),
        ("isolation_level", "share.isolation.level"),
        ("enable_auto_commit", "share.acknowledgement.mode"),
        ("group_instance_id", "not static"),
        ("linger_ms", "belongs to the producer"),
    ],
)
def test_options_of_other_clients_are_refused(name: str, advice: str) -> None:
    options: dict[str, Any] = {"group_id": "g", name: "earliest"}
    with pytest.raises(ConfigError, match=advice):
        AsyncShareConsumer("localhost:1", **options)


def test_a_share_consumer_needs_a_group() -> None:
    with pytest.raises(ConfigError, match=r"group\.id"):
        AsyncShareConsumer("localhost:1")


def test_a_pool_decides_by_what_its_function_returns_and_raises() -> None:
    async def test() -> None:
        async with fake_queue(b"good", b"bad", b"broken", b"again") as queue:
            seen: list[tuple[bytes | None, int]] = []

            async def handle(record: ShareRecord) -> str | None:
                seen.append((record.value, record.delivery_count))
                if record.value == b"broken":
                    raise OSError("broken")
                if record.value == b"again" and record.delivery_count < 2:
                    return "release"
                if len(queue.final) >= 3 and record.value == b"again":
                    consumer.stop()
                return "reject" if record.value == b"bad" else None

            def on_error(record: ShareRecord, error: BaseException) -> AcknowledgeType:
                assert isinstance(error, OSError)
                return AcknowledgeType.REJECT

            async with consumer_of(queue) as consumer:
                summary = await consumer.run(handle, workers=3, on_error=on_error, idle_ms=200)
            assert queue.final == {0: ACCEPTED, 1: REJECTED, 2: REJECTED, 3: ACCEPTED}
            assert summary == (2, 1, 2, 0)
            assert sorted(seen, key=str) == [
                (b"again", 1),
                (b"again", 2),
                (b"bad", 1),
                (b"broken", 1),
                (b"good", 1),
            ]

    run(test)


def test_what_a_pool_works_on_is_renewed() -> None:
    async def test() -> None:
        async with fake_queue(b"slow") as queue:
            queue.lock_ms = 40

            async def handle(record: ShareRecord) -> None:
                await queue.renewals.wait()
                consumer.stop()

            async with consumer_of(queue) as consumer:
                assert await consumer.run(handle, workers=2) == (1, 0, 0, 0)
            assert queue.final == {0: ACCEPTED}

    run(test)


def test_a_record_whose_function_raises_comes_again() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:

            async def handle(record: ShareRecord) -> None:
                if record.delivery_count < 3:
                    raise ValueError("not yet")
                consumer.stop()

            async with consumer_of(queue) as consumer:
                assert await consumer.run(handle, workers=2) == (1, 2, 0, 0)
            assert queue.counts == {0: 3}

    run(test)


def test_a_pool_ends_with_the_error_of_its_group() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            refusal = ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            queue.broker.always(ApiKey.SHARE_GROUP_HEARTBEAT, lambda *_: refusal)
            async with consumer_of(queue) as consumer:
                with pytest.raises(KafkaError, match="READ on the group"):
                    await consumer.run(print, workers=4)

    run(test)


def test_a_function_may_not_renew_by_itself() -> None:
    async def test() -> None:
        async with fake_queue(b"a") as queue:
            errors: list[BaseException] = []

            async def handle(record: ShareRecord) -> str:
                return "renew"

            async def on_error(record: ShareRecord, error: BaseException) -> str:
                errors.append(error)
                consumer.stop()
                return "reject"

            async with consumer_of(queue) as consumer:
                await consumer.run(handle, workers=1, on_error=on_error)
            assert isinstance(errors[0], ConfigError)
            assert queue.final == {0: REJECTED}

    run(test)


def test_the_blocking_consumer_works_in_threads() -> None:
    async def test() -> None:
        async with fake_queue(*[b"v"] * 6) as queue:
            together = threading.Barrier(3, timeout=PATIENCE_S)

            def handle(record: ShareRecord) -> None:
                together.wait()  # three at a time, or never
                if record.offset >= 3:
                    consumer.stop()

            def work() -> tuple[int, ...]:
                with consumer:
                    consumer.subscribe("t")
                    return tuple(consumer.run(handle, workers=3))

            options: dict[str, Any] = {"fetch_max_wait_ms": 50, "enable_metrics_push": False}
            consumer = ShareConsumer(queue.broker.bootstrap_servers, group_id="g", **options)
            assert await asyncio.to_thread(work) == (6, 0, 0, 0)
            assert queue.final == dict.fromkeys(range(6), ACCEPTED)

    run(test)


def test_the_blocking_consumer_has_the_same_calls() -> None:
    async def test() -> None:
        async with fake_queue(*[b"%d" % number for number in range(6)]) as queue:
            told: list[object] = []
            threads: list[threading.Thread] = []

            def note(offsets: object, error: object) -> None:
                told.append(error)
                threads.append(threading.current_thread())

            def work() -> None:
                options: dict[str, Any] = {"fetch_max_wait_ms": 50, "enable_metrics_push": False}
                options |= {"group_id": "g", "value_deserializer": int, "max_poll_records": 2}
                with ShareConsumer(queue.broker.bootstrap_servers, **options) as consumer:
                    consumer.subscribe("t", on_acknowledged=note)
                    values = []
                    while len(values) < 4:
                        values += [record.value for record in consumer.poll()]
                    assert consumer.commit() == {TP: None}
                    for record in consumer:
                        values.append(record.value)
                        if len(values) == 6:
                            break
                    assert values == list(range(6))
                    assert consumer.stats().rxmsgs == 6
                assert set(threads) == {threading.current_thread()}
                assert set(told) == {None}

            await asyncio.to_thread(work)
            assert queue.final == dict.fromkeys(range(6), ACCEPTED)

    run(test)
