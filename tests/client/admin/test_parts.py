"""Tests of the parts of the admin client, each with connections that give prepared responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.client.admin.configs import APPEND, DELETE, SET, ConfigAdministration, changes_of, resource_of
from penstock.client.admin.refusals import refusal
from penstock.client.admin.security import SecurityAdministration
from penstock.client.admin.topics import NewTopic, TopicAdministration
from penstock.errors import KafkaError, NetworkError, TopicAuthorizationError
from penstock.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from penstock.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from penstock.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


class Connections:
    """A stand-in for `AsyncClient` that answers each request with the next prepared response.

    A prepared exception is raised. Retries happen at once.
    """

    def __init__(self, *responses: Any) -> None:
        self.config = SimpleNamespace(request_timeout_ms=1000)
        self.request_timeout_s = 1.0
        self.cluster: Any = SimpleNamespace(topics={})
        self.connection = SimpleNamespace(address="one:9092")
        self.versions = SimpleNamespace(choose=lambda request: 6)
        self.responses = list(responses)
        self.requests: list[Any] = []
        self.asked: list[int] = []

    async def peer(self, node: int = -1) -> Any:
        self.asked.append(node)
        return self

    async def request(self, message: Any, timeout_s: float) -> Any:
        self.requests.append(message)
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response

    async def refresh(self, names: Sequence[str] = (), *, all_topics: bool = False) -> None:
        leader = SimpleNamespace(leader=1)
        self.cluster.topics.update({name: SimpleNamespace(partitions={0: leader}) for name in names})

    async def retrying(self, what: str, attempt: Callable[[], Awaitable[Any]]) -> Any:
        for _ in range(5):
            try:
                return await attempt()
            except NetworkError:
                pass
        raise AssertionError(what)


def created(code: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="orders", error_code=code)])


def deleted(code: int) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[DeletableTopicResult(name="orders", error_code=code)])


def test_what_a_lost_response_has_done_is_no_error_of_the_next_attempt() -> None:
    client: Any = Connections(NetworkError("lost"), created(36), NetworkError("lost"), deleted(3))
    topics = TopicAdministration(client)
    asyncio.run(topics.create([NewTopic("orders", 3)]))
    asyncio.run(topics.delete(["orders"]))
    assert client.responses == []


def test_the_first_attempt_is_refused_for_what_was_there_before() -> None:
    client: Any = Connections(created(36), deleted(41))
    topics = TopicAdministration(client)
    with pytest.raises(KafkaError, match=r"'orders': .*TOPIC_ALREADY_EXISTS"):
        asyncio.run(topics.create([NewTopic("orders", 3)]))
    with pytest.raises(KafkaError, match="NOT_CONTROLLER") as caught:
        asyncio.run(topics.delete(["orders"]))
    assert caught.value.retriable


def test_settings_are_changed_at_the_broker_that_has_them() -> None:
    ok = IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()])
    client: Any = Connections(ok, ok, ok)
    configs = ConfigAdministration(client)
    changes = changes_of({"a": True}, ["b"], {"c": ["x", "y"]}, {})
    assert [(each.name, each.config_operation, each.value) for each in changes] == [
        ("a", SET, "true"),
        ("c", APPEND, "x,y"),
        ("b", DELETE, None),
    ]
    for resource in (resource_of("orders", None), resource_of(None, 7), resource_of(None, None)):
        asyncio.run(configs.alter(resource, changes, validate_only=True))
    asked = [request.resources[0] for request in client.requests]
    assert [(each.resource_type, each.resource_name) for each in asked] == [(2, "orders"), (4, "7"), (4, "")]
    assert client.asked == [-2, 7, -2]
    assert resource_of(None, None, "slow").broker is None


def test_a_password_is_not_sent() -> None:
    done = AlterUserScramCredentialsResponse(results=[AlterUserScramCredentialsResult()])
    client: Any = Connections(done)
    security = SecurityAdministration(client)
    asyncio.run(security.set_password("ada", "tickets-please", ["SCRAM-SHA-256"], 4096))
    [upsertion] = client.requests[0].upsertions
    assert (upsertion.name, upsertion.mechanism, upsertion.iterations) == ("ada", 1, 4096)
    assert b"tickets" not in upsertion.salt + upsertion.salted_password


def test_a_refusal_has_the_words_of_the_broker_and_the_name_of_the_error() -> None:
    assert str(refusal(40, "'orders'", "retention.sm is no setting")) == (
        "retention.sm is no setting (INVALID_CONFIG)"
    )
    assert isinstance(refusal(29, "'orders'", "no"), TopicAuthorizationError)
    assert not refusal(3, "'orders'").retriable
    assert str(refusal(3, "'orders'")).count("UNKNOWN_TOPIC_OR_PARTITION") == 1
