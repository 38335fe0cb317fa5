"""A client of an old version, whose requests are translated for a broker that takes only newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.wire_client import WireClient
from penstock.gateway.calls import Call
from penstock.gateway.translation import offered, spoken, translate
from penstock.protocol.api import API_TABLE
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest

Ranges = Mapping[int, tuple[int, int]]


def versions_of(client: WireClient) -> dict[int, tuple[int, int]]:
    """What the broker of a connection really takes."""
    answer = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    return spoken({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})


class OldClient:
    """Asks a broker through the translation, and nothing but that; every call is kept."""

    def __init__(self, client: WireClient, upstream: Ranges | None = None) -> None:
        self._client = client
        self.upstream = versions_of(client) if upstream is None else upstream
        self.calls: list[Call] = []

    def ask(self, request: Message, version: int) -> Any:
        """Send a request at `version`; return the answer as a client of it reads it."""
        assert request.API_KEY is not None
        body = self.ask_bytes(request.API_KEY, version, request.encode(version))
        return None if body is None else API_TABLE[request.API_KEY].response.decode(body, version)

    def ask_bytes(self, api_key: int, version: int, body: bytes) -> bytes | None:
        """The same for the bytes behind the header of a request."""
        low, high = offered(self.upstream)[api_key]
        assert low <= version <= high
        request = API_TABLE[api_key].request.decode(memoryview(body), version)
        steps = translate(api_key, version, request, self.upstream)
        response: Any = None
        try:
            while True:
                call = steps.send(response)
                self.calls.append(call)
                first, last = self.upstream[call.api_key]
                assert first <= call.version <= last, "the cluster does not take that"
                response = self._client.ask(call.message, call.version)
        except StopIteration as done:
            assert request.encode(version) == body, "the request has been changed"
            return None if done.value is None else done.value.encode(version)
