"""Tests of converting a message from one version to another by the names of its fields."""

from __future__ import annotations

import pytest

from for_each import for_each
from penstock.gateway.translation.errors import NotForwarded
from penstock.gateway.translation.fields import convert
from penstock.protocol.api import API_TABLE
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from penstock.protocol.schema.loader import load_definition
from protocol.samples import sample


@for_each(list(API_TABLE))
def test_to_the_same_version_is_a_copy(key: int) -> None:
    api = API_TABLE[key]
    for message_class in (api.request, api.response):
        definition = load_definition(message_class.NAME)
        low, high = message_class.VERSIONS
        for version in range(low, high + 1):
            message = sample(message_class, definition, version, 1)
            before = message.encode(version)
            copy = convert(message, version, version)
            assert copy is not message
            assert copy.encode(version) == before == message.encode(version)


@for_each(list(API_TABLE))
def test_up_and_down_again_loses_nothing(key: int) -> None:
    """A request is unchanged if the newer version has all its fields.

    Otherwise the conversion may raise `NotForwarded`.
    """
    api = API_TABLE[key]
    definition = load_definition(api.request.NAME)
    low, high = api.versions
    for version in range(low, high):
        message = sample(api.request, definition, version, 2)
        fields = [
            field for struct in [definition.root, *definition.structs.values()] for field in struct.fields
        ]
        is_lossless = all(version + 1 in field.versions for field in fields if version in field.versions)
        has_tags = version in definition.flexible
        try:
            back = convert(convert(message, version, version + 1), version + 1, version)
        except NotForwarded:
            back = None
        if is_lossless:
            assert back is not None
            assert back.encode(version) == message.encode(version) or has_tags


def test_what_responses_may_lose() -> None:
    leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    partition = PartitionProduceResponse(index=0, error_code=6, current_leader=leader)
    response = ProduceResponse(
        responses=[TopicProduceResponse(name="t", partition_responses=[partition])],
        node_endpoints=[NodeEndpoint(node_id=3, host="h", port=1)],
    )
    with pytest.raises(NotForwarded, match="which is set"):
        convert(response, 10, 2)
    found = convert(response, 10, 2, may_lose=True)
    assert found.responses[0].partition_responses[0].error_code == 6
    assert found.node_endpoints == []
    assert len(response.node_endpoints) == 1


def test_what_would_be_lost_is_refused() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t")], validate_only=True)
    with pytest.raises(NotForwarded, match="CreateTopicsRequest 0 has no field validateOnly, which is set"):
        convert(request, 1, 0)
    with pytest.raises(NotForwarded, match="MetadataRequest 0 has no null for Topics"):
        convert(MetadataRequest(topics=None), 1, 0)
    plain = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=5)
    assert convert(plain, 1, 0) == plain
