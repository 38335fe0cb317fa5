"""Tests of an unstable API version, with packed integers (KIP-625): both sides must enable such versions.

Penstock's client sends the request to Penstock's broker over a socket.
"""

from __future__ import annotations

import asyncio
import sys

import pytest

from penstock import Broker
from penstock.broker.context import Context
from penstock.broker.handlers import ROUTES
from penstock.broker.requests.routes import Route
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import NetworkError
from penstock.protocol.api import API_TABLE, Api, ApiKey, stable_versions
from penstock.protocol.loaded_classes import message_class
from penstock.protocol.message import Message
from penstock.protocol.messages import InitProducerIdRequest, MetadataRequest
from penstock.protocol.schema.parser import parse_definition

KEY = 1001
NUMBERS = list(range(100))
FIXED, PACKED = 0, 1


def definition(end: str, **more: object) -> dict[str, object]:
    offsets = {"0": "fixed64", "1+": "signed64"}
    return {
        "apiKey": KEY,
        "type": end.lower(),
        "name": f"Lag{end}",
        "validVersions": "0-1",
        "flexibleVersions": "0+",
        "fields": [{"name": "Offsets", "type": "[]int64", "versions": "0+", "encoding": offsets}],
        **more,
    }


@pytest.fixture
def lag(monkeypatch: pytest.MonkeyPatch) -> type[Message]:
    """Register a made-up API with an unstable version for one test; return its request class."""
    request = message_class(parse_definition(definition("Request", latestVersionUnstable=True), "request"))
    response = message_class(parse_definition(definition("Response"), "response"))
    api = Api(KEY, "Lag", (0, 1), 0, True, ("broker",))
    api._request, api._response = request, response
    monkeypatch.setitem(API_TABLE, KEY, api)
    seen = sys.modules[request.__module__].seen = []  # type: ignore[attr-defined]

    def answer(asked: Message, context: Context) -> Message:
        seen.append(context.version)
        return response(offsets=[each * 2 for each in asked.offsets])  # type: ignore[call-arg, attr-defined]

    monkeypatch.setitem(ROUTES, KEY, Route(KEY, 0, 1, answer))  # type: ignore[arg-type]
    return request


def converse(request_class: type[Message], broker_enables: bool, client_enables: bool) -> tuple[int, int]:
    """Send a request of the made-up API from Penstock's client to its broker.

    Returns the version that the client chose, and the highest that the broker offers.
    """

    async def ask(servers: str) -> tuple[int, int]:
        options = {"unstable.api.versions.enable": client_enables, "bootstrap.servers": servers}
        async with AsyncClient(ClientConfig.parse(options, {})) as client:
            await client.bootstrap()
            peer = await client.peer()
            version = peer.versions.choose(request_class)
            message = request_class(offsets=NUMBERS)  # type: ignore[call-arg]
            answer = await peer.connection.request(message, version, 10.0)
            assert answer.offsets == [2 * each for each in NUMBERS]
            return version, peer.versions.highest(KEY)

    with Broker(config={"unstable.api.versions.enable": broker_enables}) as broker:
        return asyncio.run(ask(broker.bootstrap_servers))


@pytest.mark.parametrize(
    ("broker_enables", "client_enables", "spoken", "offered"),
    [
        (False, False, FIXED, FIXED),
        (False, True, FIXED, FIXED),
        (True, False, FIXED, PACKED),
        (True, True, PACKED, PACKED),
    ],
)
def test_both_ends_must_want_it(lag, broker_enables, client_enables, spoken, offered):
    assert converse(lag, broker_enables, client_enables) == (spoken, offered)
    assert sys.modules[lag.__module__].seen == [spoken]


def test_neither_end_does_by_default(lag):
    async def ask(servers: str) -> tuple[int, int]:
        async with AsyncClient(ClientConfig.parse({"bootstrap.servers": servers}, {})) as client:
            await client.bootstrap()
            peer = await client.peer()
            with pytest.raises(NetworkError):  # whoever asks all the same is hung up on
                await peer.connection.request(lag(offsets=NUMBERS), PACKED, 10.0)
            return peer.versions.choose(lag), peer.versions.highest(KEY)

    with Broker() as broker:
        assert asyncio.run(ask(broker.bootstrap_servers)) == (FIXED, FIXED)


def test_what_is_packed_is_smaller(lag):
    message = lag(offsets=NUMBERS)
    assert len(message.encode(FIXED)) == 1 + 8 * 100 + 1
    assert len(message.encode(PACKED)) == 1 + 64 + 2 * 36 + 1


def test_what_is_unstable_in_kafka_is_so_here():
    """InitProducerId 6 (KIP-939), which may still change in Kafka's trunk, is the only unstable version."""
    assert API_TABLE[ApiKey.INIT_PRODUCER_ID].versions == (0, 6)
    assert stable_versions(InitProducerIdRequest) == (0, 5)
    assert stable_versions(MetadataRequest) == MetadataRequest.VERSIONS
    assert [key for key, api in API_TABLE.items() if api.latest_unstable] == [ApiKey.INIT_PRODUCER_ID]
