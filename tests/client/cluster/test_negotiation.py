"""Tests of version negotiation with brokers of every age: some list versions, hang up, or never answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from client.fake_broker import FakeBroker, fake_broker, limited_to
from penstock.client.addresses import Address
from penstock.client.cluster.client import AsyncClient
from penstock.client.cluster.negotiation import ONCE_MORE_TIMES, NodeVersions
from penstock.client.config import ClientConfig, ConsumerConfig
from penstock.client.fetch.cursors import FetchSettings
from penstock.client.fetch.fetcher import Fetcher
from penstock.errors import NetworkError, UnsupportedVersionError
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.create_topics_request import CreateTopicsRequest
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.metadata_response import MetadataResponse
from penstock.protocol.messages.produce_request import ProduceRequest


def negotiated(
    broker_script: object = None, release: str | None = None, **options: object
) -> tuple[NodeVersions, FakeBroker]:
    async def scenario() -> tuple[NodeVersions, FakeBroker]:
        async with fake_broker() as broker:
            if release is not None:
                broker.versions = limited_to(release)
            if callable(broker_script):
                broker_script(broker)
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, options)
            async with AsyncClient(config) as client:
                peer = await client.peer()
                return peer.versions, broker

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("release", "metadata", "produce", "fetch", "asked"),
    [("4.0", 13, 12, 17, 1), ("2.1", 7, 7, 10, 2), ("0.10.0", 1, 2, 2, 2)],
)
def test_the_highest_common_version_is_spoken(
    release: str, metadata: int, produce: int, fetch: int, asked: int
) -> None:
    versions, broker = negotiated(release=release)
    assert not versions.is_ancient
    assert versions.choose(MetadataRequest) == metadata
    assert versions.choose(ProduceRequest) == produce
    assert versions.choose(FetchRequest) == fetch
    assert len(broker.asked(ApiKey.API_VERSIONS)) == asked


def test_error_35_with_an_empty_list_means_version_0() -> None:
    def before_2_4(broker: FakeBroker) -> None:
        broker.versions[ApiKey.API_VERSIONS] = (0, 2)
        broker.script(ApiKey.API_VERSIONS, lambda b, h, r: _version_0(h, ApiVersionsResponse(error_code=35)))

    versions, broker = negotiated(before_2_4)
    assert [h.api_version for h, _ in broker.requests if h.api_key == ApiKey.API_VERSIONS] == [3, 0]
    assert versions.choose(MetadataRequest) == 13


def test_error_35_with_a_range_is_believed() -> None:
    versions, broker = negotiated(release="2.1")
    assert [h.api_version for h, _ in broker.requests if h.api_key == ApiKey.API_VERSIONS] == [3, 2]
    assert versions.highest(ApiKey.PRODUCE) == 7
    assert versions.highest(ApiKey.CREATE_TOPICS) == -1


def test_a_broker_that_hangs_up_is_ancient() -> None:
    versions, broker = negotiated(release="0.8")
    assert versions.is_ancient
    assert versions.choose(MetadataRequest) == 0
    assert len(broker.asked(ApiKey.API_VERSIONS)) == 2 + ONCE_MORE_TIMES
    with pytest.raises(UnsupportedVersionError, match="does not know CreateTopics: it is too old"):
        versions.choose(CreateTopicsRequest)


def test_a_broker_in_trouble_is_not_taken_for_an_old_one() -> None:
    """A broker hangs up on two ApiVersions requests, and answers the third.

    Taken for one before 0.10, it would be sent records without producer ids and headers.
    """
    versions, broker = negotiated(lambda broker: broker.hang_up(ApiKey.API_VERSIONS, 2))
    assert not versions.is_ancient
    assert len(broker.asked(ApiKey.API_VERSIONS)) == 3


def test_whoever_told_its_versions_once_is_never_old() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            config = ClientConfig.parse(
                {"bootstrap.servers": broker.bootstrap_servers}, {"reconnect_backoff_ms": 1}
            )
            async with AsyncClient(config) as client:
                await client.peer()
                broker.hang_up(ApiKey.API_VERSIONS, 9)
                with pytest.raises(NetworkError):
                    await client.peer(0, "fetch")

    asyncio.run(scenario())


def test_a_broker_beside_a_newer_one_is_never_old() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, fake_broker() as other:
            config = ClientConfig.parse(
                {"bootstrap.servers": broker.bootstrap_servers}, {"reconnect_backoff_ms": 1}
            )
            async with AsyncClient(config) as client:
                await client.peer()
                other.hang_up(ApiKey.API_VERSIONS, 9)
                with pytest.raises(NetworkError):
                    await client.greet(Address("127.0.0.1", other.port))

    asyncio.run(scenario())


def test_a_broker_that_was_taken_for_an_old_one_is_asked_again_beside_a_newer_one() -> None:
    """A broker stalls so long that the client takes it for one before 0.10.

    When another broker of its cluster answers ApiVersions, the client sends the request to the first one
    again.
    """

    async def scenario() -> None:
        async with fake_broker() as broker, fake_broker() as other:
            broker.hang_up(ApiKey.API_VERSIONS, 2 + ONCE_MORE_TIMES)
            config = ClientConfig.parse(
                {"bootstrap.servers": broker.bootstrap_servers}, {"reconnect_backoff_ms": 1}
            )
            async with AsyncClient(config) as client:
                first = await client.peer()
                assert first.versions.is_ancient
                (await client.greet(Address("127.0.0.1", other.port))).connection.close()
                assert "it is asked again" in str(first.connection.cause)
                assert not (await client.peer()).versions.is_ancient

    asyncio.run(scenario())


def test_a_reader_of_committed_records_has_brokers_answer_what_versions_they_speak() -> None:
    """Fetch version 0 returns aborted records, too.

    So a `read_committed` consumer sends ApiVersions again to a broker that has stalled.
    """

    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.hang_up(ApiKey.API_VERSIONS, 2 + ONCE_MORE_TIMES)
            options = {"reconnect_backoff_ms": 1, "isolation_level": "read_committed"}
            config = ConsumerConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, options)
            async with AsyncClient(config) as client:
                first = await client.peer()
                assert first.versions.is_ancient
                Fetcher(client, FetchSettings.of_consumer(config))
                assert "it is asked again" in str(first.connection.cause)
                assert not (await client.peer()).versions.is_ancient

    asyncio.run(scenario())


def test_a_broker_that_stays_silent_is_read_as_an_old_one_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.versions = limited_to("0.8")
            options = {"reconnect_backoff_ms": 1, "isolation_level": "read_committed"}
            config = ConsumerConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, options)
            async with AsyncClient(config) as client:
                assert (await client.peer()).versions.is_ancient
                Fetcher(client, FetchSettings.of_consumer(config))
                assert (await client.peer()).versions.is_ancient
                assert len(broker.asked(ApiKey.API_VERSIONS)) == 2 * (2 + ONCE_MORE_TIMES)
                assert [each.levelname for each in caplog.records if "read as a Kafka" in each.message] == [
                    "WARNING"
                ]

    asyncio.run(scenario())


@pytest.mark.parametrize("options", [{}, {"isolation_level": "read_committed", "api_version_request": False}])
def test_other_readers_may_read_from_a_kafka_before_0_10(options: dict[str, object]) -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.versions = limited_to("0.8")
            config = ConsumerConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, options)
            async with AsyncClient(config) as client:
                first = await client.peer()
                Fetcher(client, FetchSettings.of_consumer(config))
                assert first.versions.is_ancient
                assert first.connection.cause is None

    asyncio.run(scenario())


def test_a_newer_broker_that_is_met_meanwhile_counts() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, fake_broker() as other:
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:

                async def meet(broker: FakeBroker, header: Any, request: Any) -> Any:
                    (await client.greet(Address("127.0.0.1", other.port))).connection.close()
                    return broker.answer(header, request)

                broker.hang_up(ApiKey.API_VERSIONS, 2 + ONCE_MORE_TIMES)
                broker.script(ApiKey.METADATA, meet)
                with pytest.raises(NetworkError, match="what versions it speaks: it is asked again"):
                    await client.greet(Address("127.0.0.1", broker.port))

    asyncio.run(scenario())


def test_a_broker_that_keeps_silent_is_ancient() -> None:
    """Kafka 0.9.0.0 and 0.9.0.1 neither answer ApiVersions nor close the connection."""
    versions, _ = negotiated(
        lambda broker: broker.stay_silent(ApiKey.API_VERSIONS, 9), api_version_request_timeout_ms=50
    )
    assert versions.is_ancient


def test_a_broker_that_answers_other_questions_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.cluster.negotiation.PROMPT_S", 0.05)
    monkeypatch.setattr("penstock.client.cluster.negotiation.ONCE_MORE_S", 0.2)
    start = time.monotonic()
    versions, broker = negotiated(lambda broker: broker.stay_silent(ApiKey.API_VERSIONS, 9))
    assert versions.is_ancient
    # On a busy machine the answer to the other request is late too, and the client begins again.
    assert len(broker.asked(ApiKey.API_VERSIONS)) >= 1 + ONCE_MORE_TIMES
    assert time.monotonic() - start < 5


def test_a_broker_that_stalls_once_is_not_taken_for_an_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is just starting on a busy machine answers the second ApiVersions request."""
    monkeypatch.setattr("penstock.client.cluster.negotiation.PROMPT_S", 0.05)
    versions, broker = negotiated(lambda broker: broker.stay_silent(ApiKey.API_VERSIONS, 1))
    assert not versions.is_ancient
    assert len(broker.asked(ApiKey.API_VERSIONS)) == 2


@pytest.mark.parametrize("kind", ["silent", "hangs up"])
def test_a_broker_that_stalls_several_times_keeps_a_producer_idempotent(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A broker may get no CPU time for seconds.

    Taken for one before 0.10, it would get records without producer ids, and store retried ones twice.
    """
    monkeypatch.setattr("penstock.client.cluster.negotiation.PROMPT_S", 0.05)
    monkeypatch.setattr("penstock.client.cluster.negotiation.ONCE_MORE_S", 0.2)

    def stalls(broker: FakeBroker) -> None:
        if kind == "silent":
            broker.stay_silent(ApiKey.API_VERSIONS, 3)
        else:
            broker.hang_up(ApiKey.API_VERSIONS, 4)

    versions, _ = negotiated(stalls)
    assert not versions.is_ancient
    assert versions.highest(ApiKey.INIT_PRODUCER_ID) >= 0


def test_a_slow_broker_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.client.cluster.negotiation.PROMPT_S", 0.05)

    async def late(broker: FakeBroker, header: Any, request: Any) -> Any:
        await asyncio.sleep(0.2)
        return broker.answer(header, request)

    def slow(broker: FakeBroker) -> None:
        broker.script(ApiKey.API_VERSIONS, late)
        broker.script(ApiKey.METADATA, late)

    versions, _ = negotiated(slow)
    assert not versions.is_ancient


def test_an_ancient_broker_is_not_asked_again() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.versions = limited_to("0.8")
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                await client.peer()
                asked = len(broker.asked(ApiKey.API_VERSIONS))
                await client.refresh()
                assert (await client.peer(0, "fetch")).versions.is_ancient
                assert len(broker.asked(ApiKey.API_VERSIONS)) == asked

    asyncio.run(scenario())


def test_a_broker_is_not_asked_when_the_options_say_that_it_is_ancient() -> None:
    async def scenario() -> None:
        async with fake_broker() as broker:
            broker.versions = limited_to("0.8")
            servers = {"bootstrap.servers": broker.bootstrap_servers, "api.version.request": "false"}
            async with AsyncClient(ClientConfig.parse(servers, {})) as client:
                assert (await client.peer()).versions.is_ancient
                assert not broker.asked(ApiKey.API_VERSIONS)

    asyncio.run(scenario())


def test_a_new_old_cluster_names_no_brokers() -> None:
    """Metadata of Kafka 0.8 lists no brokers, not even the answering one, before there is a topic."""

    async def scenario() -> None:
        async with fake_broker({"t": 1}) as broker:
            broker.versions = limited_to("0.8")
            broker.script(ApiKey.METADATA, *[lambda *_: MetadataResponse()] * 2)
            config = ClientConfig.parse({"bootstrap.servers": broker.bootstrap_servers}, {})
            async with AsyncClient(config) as client:
                await client.bootstrap()
                assert client.cluster.nodes == {}
                assert len((await client.topic("t")).partitions) == 1

    asyncio.run(scenario())


def test_a_broker_that_hangs_up_once_is_asked_again() -> None:
    versions, _ = negotiated(lambda broker: broker.hang_up(ApiKey.API_VERSIONS))
    assert not versions.is_ancient


def test_a_server_that_hangs_up_on_everything_is_no_broker() -> None:
    def deaf(broker: FakeBroker) -> None:
        broker.hang_up(ApiKey.API_VERSIONS, 9)
        broker.hang_up(ApiKey.METADATA, 9)

    with pytest.raises(NetworkError, match=r"no broker answered at .* is it a Kafka broker\?"):
        negotiated(deaf)


def test_versions_may_be_limited_or_disjoint() -> None:
    versions = NodeVersions(Address("h", 1), {int(ApiKey.FETCH): (4, 17), int(ApiKey.METADATA): (99, 100)})
    assert versions.choose(FetchRequest, 12) == 12
    with pytest.raises(UnsupportedVersionError, match="speaks Fetch 4 to 17, 0 to 3 would do"):
        versions.choose(FetchRequest, 3)
    with pytest.raises(UnsupportedVersionError, match="speaks Metadata 99 to 100"):
        versions.choose(MetadataRequest)


def _version_0(header: object, message: ApiVersionsResponse) -> bytes:
    """Return the frame of a response in version 0, regardless of the request's version."""
    body = message.encode(0)
    return (len(body) + 4).to_bytes(4, "big") + header.correlation_id.to_bytes(4, "big") + body  # type: ignore[attr-defined]


def test_the_port_of_a_controller_is_named_as_that() -> None:
    """The client recognizes a controller by the APIs that it lists, such as BrokerRegistration.

    Its error names the port as that of a controller.
    """
    ranges = {int(ApiKey.API_VERSIONS): (0, 4), int(ApiKey.BROKER_REGISTRATION): (0, 4)}
    with pytest.raises(
        UnsupportedVersionError, match=r"h:1 is the port of a controller, .* that of a broker"
    ):
        NodeVersions(Address("h", 1), ranges).choose(MetadataRequest)
    with pytest.raises(UnsupportedVersionError, match="too old for this"):
        NodeVersions(Address("h", 1), {int(ApiKey.PRODUCE): (0, 3)}).choose(MetadataRequest)
