"""Tests of the names of topics, groups and transactional ids that hooks match, in every API and version."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from for_each import for_each
from penstock.errors import ConfigError
from penstock.gateway.hooks import Refused, names, renamed_topics, tenant
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
    """Return a message with one item in every list and `name` in every naming field, and their number.

    A naming field holds a topic, group or transactional id.
    """
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


@for_each(KEYS)
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
    for kind, expected in ((0, "blue.g"), (1, "blue.g"), (2, "blue.g"), (3, "g")):
        message = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
        assert renamed(PREFIX, message, 10, 4).coordinator_keys == [expected]
    assert renamed(PREFIX, FindCoordinatorRequest(key="g"), 10, 3).key == "blue.g"


def test_resources_of_configurations_are_names_by_their_type() -> None:
    for kind, expected in ((2, "blue.1"), (32, "blue.1"), (4, "1")):
        message = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name="1")]
        )
        assert renamed(PREFIX, message, 32, 4).resources[0].resource_name == expected


NO_NAMES = {"group_instance_id", "group_state", "group_type"}
"""Fields with "group" in their own name that do not hold a group id."""


def test_every_field_about_topics_groups_and_transactions_is_of_a_kind() -> None:
    """Each such field has a known type of resource, even if its definition has no entity type."""
    words = ("topic", "group", "transactional", "resource_name", "regex", "pattern")
    known = {*names.RESOURCE_TYPES, *names.REGEX_FIELDS, *names.UNTYPED, *NO_NAMES}
    for api in API_TABLE.values():
        for part in ("Request", "Response"):
            definition = definition_of(api.name + part)
            for spec in (definition.root, *definition.structs.values()):
                for field in spec.fields:
                    kind = field.type_at(api.versions[1]).base
                    if kind == "string" and any(word in field.attribute for word in words):
                        assert field.entity_type in NAMED or field.attribute in known, (api.name, field)


def test_names_without_a_type_get_the_prefix_as_well() -> None:
    from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest
    from penstock.protocol.messages.read_share_group_state_request import ReadShareGroupStateRequest

    state = renamed(PREFIX, ReadShareGroupStateRequest(group_id="g"), ApiKey.READ_SHARE_GROUP_STATE, 0)
    assert state.group_id == "blue.g"
    asked = ListTransactionsRequest(transactional_id_pattern="a.*")
    assert renamed(PREFIX, asked, ApiKey.LIST_TRANSACTIONS, 2).transactional_id_pattern == r"blue\.(?:a.*)"


def test_acls_of_renamed_topics_are_found_by_the_names_of_clients() -> None:
    from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest

    hook = renamed_topics({"orders": "orders-v2"})
    for kind, expected in ((2, "orders-v2"), (3, "orders")):
        asked = DescribeAclsRequest(resource_type_filter=kind, resource_name_filter="orders")
        assert renamed(hook, asked, ApiKey.DESCRIBE_ACLS, 3).resource_name_filter == expected


@pytest.mark.parametrize(
    ("regex", "expected"),
    [
        ("ord.*", "(?:ord.*)|sales|b\\.c"),
        ("orders|x", "(?:orders|x)|sales"),
        ("other", "other"),
        ("(", "("),
        (")|sales", ")|sales"),
    ],
)
def test_a_regular_expression_matches_the_names_of_clients(regex: str, expected: str) -> None:
    from penstock.protocol.messages.consumer_group_describe_response import (
        ConsumerGroupDescribeResponse,
        DescribedGroup,
        Member,
    )
    from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

    hook = renamed_topics({"orders": "sales", "order.items": "b.c"})
    asked = ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_regex=regex)
    assert renamed(hook, asked, 68, 1).subscribed_topic_regex == expected
    group = DescribedGroup(group_id="g", members=[Member(subscribed_topic_regex=expected)])
    answer = ConsumerGroupDescribeResponse(groups=[group])
    assert hook.on_response is not None
    hook.on_response(request_of(None, 69, 1), answer)
    if regex != ")|sales":  # no expression: the cluster refuses it
        assert answer.groups[0].members[0].subscribed_topic_regex == regex


def test_a_regular_expression_matches_within_the_prefix() -> None:
    from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest

    message = ConsumerGroupHeartbeatRequest(group_id="g", subscribed_topic_regex="a|b")
    assert renamed(PREFIX, message, 68, 1).subscribed_topic_regex == r"blue\.(?:a|b)"


def test_what_others_have_is_left_out() -> None:
    for hook, found, expected in (
        (PREFIX, ["blue.a", "red.b", "__consumer_offsets"], ["a"]),
        (renamed_topics({"orders": "orders-v2"}), ["orders", "orders-v2", "c"], ["orders", "c"]),
    ):
        response = MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in found])
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
