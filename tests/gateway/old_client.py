"""A client that uses old API versions: the gateway's translation converts them for a newer broker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from broker.wire_client import WireClient
from penstock.gateway.calls import NodeCall
from penstock.gateway.translation import offered, spoken, translate
from penstock.protocol.api import API_TABLE
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic

Ranges = Mapping[int, tuple[int, int]]


def versions_of(client: WireClient) -> dict[int, tuple[int, int]]:
    """Return the version ranges that a broker accepts and the gateway can use."""
    answer = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    return spoken({each.api_key: (each.min_version, each.max_version) for each in answer.api_keys})


def await_leaders(client: WireClient, topic: str, partitions: int = 1) -> None:
    """Wait until all partitions of a new topic have leaders, which Apache Kafka's broker elects later."""
    deadline = time.monotonic() + 60
    while True:
        found = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 4).topics[0]
        if len(found.partitions) == partitions and all(each.leader_id >= 0 for each in found.partitions):
            asked = [ListOffsetsPartition(partition_index=each, timestamp=-1) for each in range(partitions)]
            request = ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
            )
            answer = client.ask(request, 3).topics[0]
            if not any(each.error_code for each in answer.partitions):
                return
        assert time.monotonic() < deadline, found
        time.sleep(0.01)


class OldClient:
    """A client whose requests pass through the gateway's translation, and which records all its calls."""

    def __init__(self, client: WireClient, upstream: Ranges | None = None) -> None:
        self._client = client
        self.upstream = versions_of(client) if upstream is None else upstream
        self.calls: list[NodeCall] = []

    def ask(self, request: Message, version: int) -> Any:
        """Send a request at an old version; return the response decoded at that version."""
        assert request.API_KEY is not None
        body = self.ask_bytes(request.API_KEY, version, request.encode(version))
        return None if body is None else API_TABLE[request.API_KEY].response.decode(body, version)

    def ask_bytes(self, api_key: int, version: int, body: bytes) -> bytes | None:
        """Send a request body as bytes through the translation; return the response body."""
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
