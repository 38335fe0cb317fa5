"""Tests of the first use of many topics: the requests and the names in them grow only linearly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.client import AsyncProducer
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.produce_response import ProduceResponse

COUNT = 120
NAMES = [f"t{number}" for number in range(COUNT)]


class Asked:
    """An interceptor that counts requests and the topics in Metadata requests.

    It also makes some Produce requests fail.
    """

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}
        self.named: list[list[str]] = []
        self.refusing: set[str] = set()

    def __call__(self, route: Any) -> Any:
        handle = route.handle

        def counted(request: Any, context: Any) -> Any:
            self.requests[route.key] = self.requests.get(route.key, 0) + 1
            if isinstance(request, MetadataRequest):
                names = [each.name or "" for each in request.topics or ()]
                self.named.append(["*"] if request.topics is None else names)
            answer = handle(request, context)
            if isinstance(answer, ProduceResponse):
                self._refuse(answer, context)
            return answer

        return route._replace(handle=counted)

    def _refuse(self, answer: ProduceResponse, context: Any) -> None:
        for topic in answer.responses:
            found = context.node.cluster.topics_by_id.get(topic.topic_id)
            name = topic.name or (found.name if found else "")
            if name in self.refusing:
                self.refusing.discard(name)
                for partition in topic.partition_responses:
                    partition.error_code, partition.base_offset = 6, -1

    def clear(self) -> None:
        self.requests.clear()
        self.named.clear()


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def broker(asked: Asked) -> Iterator[Broker]:
    with Broker(interceptors=[asked]) as broker:
        yield broker


def test_one_after_the_other_each_topic_is_asked_for_once(broker: Broker, asked: Asked) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for name in NAMES:
            producer.send(name, b"v")
        producer.flush()
    assert sum(map(len, asked.named)) == COUNT
    assert asked.requests[ApiKey.METADATA] <= COUNT + 2
    assert asked.requests[ApiKey.PRODUCE] <= COUNT


def test_at_once_they_are_asked_for_together(broker: Broker, asked: Asked) -> None:
    async def send() -> None:
        async with AsyncProducer(broker.bootstrap_servers) as producer:
            await asyncio.gather(*(producer.send(name, b"v") for name in NAMES))
            await producer.flush()

    asyncio.run(send())
    assert sum(map(len, asked.named)) <= COUNT + 1
    assert asked.requests[ApiKey.METADATA] <= 4
    assert asked.requests[ApiKey.PRODUCE] <= 4


def test_after_a_refusal_only_its_topic_is_asked_for_again(broker: Broker, asked: Asked) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for name in NAMES:
            producer.send(name, b"v")
        producer.flush()
        asked.clear()
        asked.refusing.add("t7")
        producer.send("t7", b"again")
        producer.flush()
    assert asked.named == [["t7"]]


@pytest.mark.parametrize("use", ["subscribe", "assign", "create"])
def test_relatives_ask_a_number_of_times_that_does_not_grow(use: str, broker: Broker, asked: Asked) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(NAMES)
    created = dict(asked.requests)
    with Producer(broker.bootstrap_servers) as producer:
        for name in NAMES:
            producer.send(name, b"v")
    if use == "create":
        assert created[ApiKey.CREATE_TOPICS] == 1
        assert created[ApiKey.METADATA] <= 3
        return
    asked.clear()
    settings = {"auto.offset.reset": "earliest", "group.id": "g"}
    with Consumer(broker.bootstrap_servers, config=settings) as consumer:
        if use == "subscribe":
            consumer.subscribe(NAMES)
        else:
            consumer.assign([(name, 0) for name in NAMES])
        seen = 0
        while seen < COUNT:
            seen += len(consumer.poll(1_000))
    assert asked.requests[ApiKey.METADATA] <= 5
    assert asked.requests.get(ApiKey.LIST_OFFSETS, 0) <= 3
    assert asked.requests.get(ApiKey.OFFSET_FETCH, 0) <= 3
