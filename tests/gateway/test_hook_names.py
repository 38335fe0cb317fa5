"""Names in every API and version: what definitions call topics, groups and transactional ids, both ways."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.gateway.hooks import Refused, renamed_topics, tenant
from penstock.gateway.hooks.hook import Client, ClientRequest, Hook
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.codec import codec_for
from penstock.protocol.error_response import definition_of, fields_at
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic

CLIENT = Client("10.0.0.7", 1, "", "", "blue", 1)
NAMED = ("topicName", "groupId", "transactionalId")


def request_of(message: Any, key: int, version: int) -> ClientRequest:
    return ClientRequest(key, version, version, CLIENT, lambda: message)


def filled(message_class: Any, version: int, name: str) -> tuple[Any, int]:
    """A message with one item in every list and `name` in every field that names something; how many."""
    definition = definition_of(message_class.NAME)
    classes = importlib.import_module(message_class.__module__)
    count = 0

    def fill(spec: Any, made: Any, depth: int) -> Any:
        nonlocal count
        for field in fields_at(spec, version):
            kind = field.type_at(version)
            if kind.is_struct:
                inner = definition.structs[kind.base]
                if depth > 6:
                    continue
                each = fill(inner, getattr(classes, inner.name)(), depth + 1)
                setattr(made, field.attribute, [each] if kind.is_array else each)
            elif kind.base == "records":
                setattr(made, field.attribute, b"")
            elif field.entity_type in NAMED:
                count += 1
                setattr(made, field.attribute, [name] if kind.is_array else name)
        return made

    return fill(definition.root, message_class(), 0), count


def encoded(message: Any, version: int) -> bytes:
    return b"".join(bytes(chunk) for chunk in codec_for(type(message), version).encode_chunks(message))


PREFIX = tenant("blue.")
KEYS = sorted(PREFIX.keys_of_requests - {ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS})


@pytest.mark.parametrize("key", KEYS, ids=lambda key: API_TABLE[key].name)
def test_every_name_gets_the_prefix_and_loses_it(key: int) -> None:
    api = API_TABLE[key]
    on_request, on_response = PREFIX.on_request, PREFIX.on_response
    assert on_request is not None
    assert on_response is not None
    for version in range(api.versions[0], api.versions[1] + 1):
        plain, count = filled(api.request, version, "x")
        request = request_of(plain, key, version)
        on_request(request)
        assert encoded(plain, version) == encoded(filled(api.request, version, "blue.x")[0], version)
        answer, answered = filled(api.response, version, "blue.x")
        on_response(request, answer)
        assert encoded(answer, version) == encoded(filled(api.response, version, "x")[0], version)
        other, _ = filled(api.response, version, "red.x")
        before = encoded(other, version)
        on_response(request, other)
        if answered:
            assert len(encoded(other, version)) <= len(before)
        assert count + answered >= 0


def renamed(hook: Hook, message: Any, key: int, version: int) -> Any:
    assert hook.on_request is not None
    hook.on_request(request_of(message, key, version))
    return message


def test_keys_of_coordinators_are_names_by_their_type() -> None:
    for kind, expected in ((0, "blue.g"), (1, "blue.g"), (2, "g")):
        message = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
        assert renamed(PREFIX, message, 10, 4).coordinator_keys == [expected]
    assert renamed(PREFIX, FindCoordinatorRequest(key="g"), 10, 3).key == "blue.g"


def test_resources_of_configurations_are_names_by_their_type() -> None:
    for kind, expected in ((2, "blue.1"), (32, "blue.1"), (4, "1")):
        message = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name="1")]
        )
        assert renamed(PREFIX, message, 32, 4).resources[0].resource_name == expected


def test_a_regular_expression_matches_within_the_prefix() -> None:
    from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

    message = ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_regex="a|b")
    assert renamed(PREFIX, message, 68, 1).subscribed_topic_regex == r"blue\.(?:a|b)"


def test_what_others_have_is_left_out() -> None:
    for hook, names, expected in (
        (PREFIX, ["blue.a", "red.b", "__consumer_offsets"], ["a"]),
        (renamed_topics({"orders": "orders-v2"}), ["orders", "orders-v2", "c"], ["orders", "c"]),
    ):
        response = MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in names])
        assert hook.on_response is not None
        hook.on_response(request_of(None, 3, 12), response)
        assert [each.name for each in response.topics] == expected


def test_tenants_have_no_acls() -> None:
    for key in (ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        assert PREFIX.on_request is not None
        with pytest.raises(Refused) as caught:
            PREFIX.on_request(request_of(None, key, 3))
        assert caught.value.code == 31


def test_names_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot begin names"):
        tenant("a b")
    with pytest.raises(ConfigError, match="stand for the same topic"):
        renamed_topics({"a": "c", "b": "c"})
    with pytest.raises(ConfigError, match="is not the name of a topic"):
        renamed_topics({"a/b": "c"})
