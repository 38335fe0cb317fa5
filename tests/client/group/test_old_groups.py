"""Tests of offsets and groups at brokers without ApiVersions: 0.8.0, 0.8.1, 0.8.2 and 0.9."""

from __future__ import annotations

import asyncio

import pytest

from client.fake_broker import FakeBroker, fake_broker, limited_to
from client.old_offsets import check_automatic_commits, check_commits, check_no_groups, check_no_offsets, fill
from old_brokers import ask_0_9_briefly
from penstock import Broker, Consumer
from penstock.client.cluster.client import MAIN, AsyncClient
from penstock.client.config import ClientConfig
from penstock.client.group.old_groups import GROUPS_0_9, OFFSETS_0_8_1, OFFSETS_0_8_2, Ranges, peer_for_groups
from penstock.errors import NetworkError
from penstock.protocol.api import ApiKey


@pytest.mark.parametrize("release", ["0.8.1", "0.8.2", "0.9"])
def test_offsets_are_committed_and_fetched(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_0_9_briefly(release, monkeypatch)
    with Broker(as_version=release) as broker:
        fill(broker.bootstrap_servers, "t")
        check_commits(broker.bootstrap_servers, "t", "g")
        check_automatic_commits(broker.bootstrap_servers, "t", "h")


@pytest.mark.parametrize("release", ["0.8.0", "0.8.1", "0.8.2"])
def test_a_subscribed_consumer_is_told_at_once_that_there_are_no_groups(release: str) -> None:
    with Broker(as_version=release) as broker:
        fill(broker.bootstrap_servers, "t")
        check_no_groups(broker.bootstrap_servers, "t", has_offsets=release != "0.8.0")


def test_a_broker_that_stores_no_offsets_says_so() -> None:
    with Broker(as_version="0.8.0") as broker:
        fill(broker.bootstrap_servers, "t")
        check_no_offsets(broker.bootstrap_servers, "t")


def test_a_group_of_0_9_shares_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_0_9_briefly("0.9", monkeypatch)
    with Broker(as_version="0.9") as broker:
        fill(broker.bootstrap_servers, "t")
        with Consumer(broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe("t")
            read = 0
            while read < 10:
                read += len(consumer.poll(30_000))


def learnt(known: tuple[ApiKey, ...], *hang_ups: ApiKey) -> tuple[Ranges, FakeBroker]:
    """Connect to a broker that supports some group APIs and hangs up once per entry of `hang_ups`.

    Returns the versions that the client assumes, and the broker.
    """

    async def play() -> tuple[Ranges, FakeBroker]:
        async with fake_broker({"t": 1}) as broker:
            broker.versions = limited_to("0.8") | dict.fromkeys(known, (0, 1))
            for key in hang_ups:
                broker.hang_up(key)
            config = ClientConfig.parse(
                {"bootstrap.servers": broker.bootstrap_servers, "api.version.request": "false"}, {}
            )
            async with AsyncClient(config) as client:
                await client.bootstrap()
                for _ in range(2):
                    await peer_for_groups(client, 0, MAIN)
                return client.old_groups[client.cluster.nodes[0].address], broker

    return asyncio.run(play())


FIND, COMMIT, FETCH, LIST = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.LIST_GROUPS,
)


@pytest.mark.parametrize(
    ("known", "hang_ups", "expected"),
    [
        ((FIND, COMMIT, FETCH, LIST), (), GROUPS_0_9),
        ((FIND, COMMIT, FETCH), (), OFFSETS_0_8_2),
        ((COMMIT, FETCH), (), OFFSETS_0_8_1),
        ((), (), {}),
        # One that was in trouble is not taken for an older one.
        ((FIND, COMMIT, FETCH, LIST), (LIST,), GROUPS_0_9),
        ((FIND, COMMIT, FETCH), (FIND,), OFFSETS_0_8_2),
        ((FIND, COMMIT, FETCH), (FIND, FIND), OFFSETS_0_8_2),
        ((COMMIT, FETCH), (FETCH,), OFFSETS_0_8_1),
    ],
)
def test_what_a_broker_knows_is_found_out_by_asking(
    known: tuple[ApiKey, ...], hang_ups: tuple[ApiKey, ...], expected: Ranges
) -> None:
    found, broker = learnt(known, *hang_ups)
    assert found == expected
    questions = {ApiKey(header.api_key) for header, _ in broker.requests}
    assert questions <= {ApiKey.METADATA, FIND, FETCH, LIST}


def test_nobody_is_asked_before_an_answer_is_needed() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.versions = limited_to("0.8")
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                await client.topic("t")
                assert not client.old_groups
                assert not broker.asked(ApiKey.LIST_GROUPS)

    asyncio.run(play())


def test_a_broker_that_is_gone_is_not_taken_for_0_8_0() -> None:
    async def play() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.versions = limited_to("0.8")
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                await client.topic("t")
                await broker.stop()
                with pytest.raises(NetworkError):
                    await peer_for_groups(client, 0, MAIN)
                assert not client.old_groups

    asyncio.run(play())
