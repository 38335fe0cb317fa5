"""Tests of finding brokers, routing requests to leaders, refreshing metadata, and error messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from client.fake_broker import FakeBroker, fake_broker
from client.jumping_loop import run_jumping
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import ConfigError, KafkaError, NetworkError, RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode, error_for

T0 = TopicPartition("t", 0)


def client_of(servers: str, **options: object) -> AsyncClient:
    options.setdefault("retry_backoff_ms", 5)
    options.setdefault("reconnect_backoff_ms", 5)
    return AsyncClient(ClientConfig.parse({"bootstrap.servers": servers}, options))


def played(
    scenario: Callable[[FakeBroker, AsyncClient], Awaitable[None]],
    servers: str = "{0}",
    run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
    **options: object,
) -> None:
    async def play() -> None:
        async with (
            fake_broker({"t": 2, "orders": 1}) as broker,
            client_of(servers.format(broker.bootstrap_servers), **options) as client,
        ):
            await scenario(broker, client)

    run(play())


def test_dead_bootstrap_servers_are_passed_over() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        assert client.cluster.cluster_id == "fake"

    played(scenario, "127.0.0.1:1,{0}")


def test_a_server_that_accepts_and_says_nothing_holds_nobody_up() -> None:
    async def scenario() -> None:
        writers: list[asyncio.StreamWriter] = []
        silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        async with (
            fake_broker({"t": 2}) as broker,
            client_of(f"127.0.0.1:{port},{broker.bootstrap_servers}") as client,
        ):
            await client.bootstrap()
            # The silent one is still being waited for, and nothing waits for that.
            assert [address.port for address in client.addresses_opening()] == [port]
        silent.close()
        for writer in writers:
            writer.close()

    asyncio.run(scenario())


def test_unreachable_says_where_and_why_within_moments() -> None:
    async def scenario() -> None:
        async with client_of("127.0.0.1:1") as client:
            with pytest.raises(NetworkError) as caught:
                await client.bootstrap()
        assert str(caught.value) == (
            "no broker answered at 127.0.0.1:1: connection refused; is it running? "
            "is bootstrap.servers right?"
        )

    start = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - start < 5


def test_a_broker_that_is_just_starting_is_waited_for() -> None:
    async def scenario() -> None:
        broker = await FakeBroker().start()
        port = broker.port
        await broker.stop()
        async with client_of(f"127.0.0.1:{port}") as client:
            starting = asyncio.get_running_loop().call_later(
                0.1, lambda: tasks.append(asyncio.ensure_future(broker.start(port)))
            )
            tasks: list[asyncio.Future[FakeBroker]] = []
            await client.bootstrap()
            starting.cancel()
        await broker.stop()

    asyncio.run(scenario())


def test_one_connection_serves_everybody() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await asyncio.gather(*(client.topic("t") for _ in range(10)), *(client.peer() for _ in range(10)))
        await client.peer(broker.node_id)
        assert broker.connections == 1
        await client.peer(broker.node_id, "fetch")
        assert broker.connections == 2

    played(scenario)


def test_leaders_are_looked_up_and_missing_ones_named() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        assert await client.leader(T0) == 0
        with pytest.raises(ConfigError, match="'t' has 2 partitions, 0 to 1: there is no partition 5"):
            await client.leader(TopicPartition("t", 5))
        broker.leaders["t", 1] = -1
        await client.refresh()
        with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"):
            await client.leader(TopicPartition("t", 1))
        with pytest.raises(NetworkError, match="node 9 is not among the brokers"):
            await client.peer(9)

    played(scenario)


def test_an_unknown_topic_is_named_with_its_neighbours() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        with pytest.raises(KafkaError, match="topic 'order' does not exist; did you mean 'orders'") as caught:
            await client.topic("order")
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # It is not asked for again with every refresh.
        await client.refresh()
        assert [t.name for t in broker.asked(ApiKey.METADATA)[-1].topics] == []

    played(scenario)


def test_a_topic_that_is_being_created_is_waited_for() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        broker.fail(ApiKey.METADATA, 5, 3, -1, 5)
        assert len((await client.topic("t")).partitions) == 2

    played(scenario, allow_auto_create_topics=True)


def test_a_topic_that_may_not_be_seen_is_no_riddle() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        broker.fail(ApiKey.METADATA, 29)
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            await client.topic("t")

    played(scenario)


def test_retrying_goes_on_after_errors_that_pass() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        errors = [error_for(7), error_for(6), NetworkError("gone")]

        async def attempt() -> str:
            if errors:
                raise errors.pop(0)
            return "done"

        before = len(broker.asked(ApiKey.METADATA))
        assert await client.retrying("trying", attempt) == "done"
        # Two of the three errors ask for fresh metadata.
        assert len(broker.asked(ApiKey.METADATA)) == before + 2

    played(scenario)


def test_retrying_ends_with_the_deadline_and_the_last_obstacle() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()

        async def attempt() -> None:
            raise error_for(7)

        with pytest.raises(
            RequestTimeoutError, match=r"trying did not succeed within 0\.1 s.*REQUEST_TIMED_OUT"
        ):
            await client.retrying("trying", attempt, 100)

        async def hang() -> None:
            await asyncio.sleep(10)

        with pytest.raises(RequestTimeoutError, match="hanging did not succeed"):
            await client.retrying("hanging", hang, 50)

        async def refuse() -> None:
            raise error_for(29)

        with pytest.raises(KafkaError, match="AUTHORIZATION"):
            await client.retrying("trying", refuse)

    played(scenario)


def test_a_lost_connection_is_opened_again() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        port = broker.port
        await broker.stop()
        await asyncio.sleep(0.05)
        with pytest.raises(NetworkError, match="no broker answered"):
            await client.refresh()
        await broker.start(port)
        await client.retrying("refreshing", client.refresh)

    played(scenario)


def test_a_node_that_moved_is_found_through_bootstrap() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        broker.brokers = [(0, "127.0.0.1", 1)]
        await client.bootstrap()
        assert client.cluster.nodes[0].port == 1
        with pytest.raises(NetworkError, match=r"127\.0\.0\.1:1: connection refused"):
            await client.peer(0)
        broker.brokers = []
        await client.refresh()
        await client.peer(0)

    played(scenario)


def test_concurrent_refreshes_ask_once_and_new_topics_again() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        before = len(broker.asked(ApiKey.METADATA))
        await asyncio.gather(*(client.refresh() for _ in range(5)))
        assert len(broker.asked(ApiKey.METADATA)) == before + 1
        await asyncio.gather(client.refresh(["t"]), client.refresh(["orders"]))
        assert {"t", "orders"} <= client.cluster.topics.keys()

    played(scenario)


def test_a_closed_client_says_so() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.bootstrap()
        await client.close()
        with pytest.raises(NetworkError, match="closed"):
            await client.refresh()

    played(scenario)


def test_cancelling_one_waiter_leaves_the_others() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        first = asyncio.ensure_future(client.refresh(["t"]))
        second = asyncio.ensure_future(client.refresh(["t"]))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert "t" in client.cluster.topics

    played(scenario)


def test_old_metadata_is_asked_for_again() -> None:
    async def scenario(broker: FakeBroker, client: AsyncClient) -> None:
        await client.topic("t")
        asked = len(broker.asked(ApiKey.METADATA))
        await client.topic("t")
        assert len(broker.asked(ApiKey.METADATA)) == asked
        await asyncio.sleep(301)
        await client.topic("t")
        assert len(broker.asked(ApiKey.METADATA)) == asked + 1

        # Nobody answers: what is known will do.
        await broker.stop()
        await asyncio.sleep(301)
        assert len((await client.topic("t")).partitions) == 2

    played(scenario, run=run_jumping, metadata_max_age_ms=300_000)
