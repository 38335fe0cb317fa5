"""A broker node without sockets for tests, and functions that send requests to its handlers."""

from __future__ import annotations

from typing import Any

from penstock.broker.config.values import BrokerConfig
from penstock.broker.context import Context
from penstock.broker.handlers import ROUTES
from penstock.broker.metadata.planning import Planner
from penstock.broker.node import Node
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.broker.requests.dispatch import answer
from penstock.broker.session import Session
from penstock.clock import ManualClock
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import encode_batch

NOW_MS = 1_700_000_000_000


EVERY_API = {"unstable_api_versions_enable": "true", "penstock_client_metrics": "true"}
"""The settings of a test node that offers every API in every version, unstable versions included."""


def make_node(
    store: LogStore | None = None,
    clock: ManualClock | None = None,
    as_version: str | None = None,
    **settings: object,
) -> Node:
    clock = clock or ManualClock(NOW_MS)
    texts = {name.replace("_", "."): str(value) for name, value in settings.items()}
    config = BrokerConfig(texts, as_version)
    return Node(config, store or MemoryStore(config.node_id, clock), clock)


def context_of(node: Node, version: int, waited_s: float = 0) -> Context:
    context = Context(node, Session(1, "127.0.0.1", ("127.0.0.1", 9092)))
    context.version = version
    context.now_ms = node.clock.now_ms()
    context.arrived = node.clock.monotonic()
    context.now = context.arrived + waited_s
    return context


def ask(node: Node, request: Message, version: int, waited_s: float = 0) -> Any:
    """Call the handler of a request in a version; return the response, a `Wait` or None."""
    assert request.API_KEY is not None
    return ROUTES[request.API_KEY].handle(request, context_of(node, version, waited_s))


def ask_bytes(node: Node, request: Message, version: int) -> Any:
    """Send a request to a node as an encoded frame, and decode the response frame.

    The message classes and the codec must support the version in both directions.
    """
    assert request.API_KEY is not None
    frame = b"".join(encode_request(request, version, 7, "bench"))[4:]
    pieces = answer(memoryview(bytearray(frame)), context_of(node, version))
    assert isinstance(pieces, list)
    data = b"".join(piece.read() if hasattr(piece, "read") else bytes(piece) for piece in pieces)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    correlation_id, response = decode_response(data[4:], API_TABLE[request.API_KEY].response, version)
    assert correlation_id == 7
    return response


def make_topic(node: Node, name: str = "t", partitions: int = 1, **configs: str) -> Any:
    texts = {key.replace("_", "."): text for key, text in configs.items()}
    plan = Planner(node.cluster).new_topic(name, partitions, configs=texts)
    return node.cluster.create_topics([plan], node.clock.now_ms())[0]


def batch_of(
    *values: bytes | None, key: bytes | None = b"k", time_ms: int = NOW_MS, **fields: Any
) -> bytearray:
    return bytearray(encode_batch([(key, value, (), time_ms) for value in values], **fields))


def produce_request(
    records: Any, topic: str = "t", partition: int = 0, acks: int = -1, topic_id: bytes = bytes(16)
) -> ProduceRequest:
    data = PartitionProduceData(
        index=partition, records=None if records is None else memoryview(bytearray(records))
    )
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])],
    )


def produce(node: Node, records: Any, version: int = 9, **where: Any) -> Any:
    """Send a Produce request for one partition; return the partition's entry in the response."""
    response = ask(node, produce_request(records, **where), version)
    return response.responses[0].partition_responses[0]
