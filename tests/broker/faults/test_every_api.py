"""Tests that an injected fault can make every offered API fail, in every version.

The response has the error code in the field where the API has it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from broker.bench_node import context_of, make_node, make_topic
from broker.handlers.test_every_version import REQUESTS
from for_each import for_each
from penstock.broker.context import CloseConnection
from penstock.broker.faults.answers import Answerer
from penstock.broker.faults.requests import Request
from penstock.broker.handlers import ROUTES
from penstock.broker.requests.dispatch import call
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.routes import intercepted, when_answered
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import RequestHeader, decode_response
from penstock.protocol.message import Struct

CODE = 41


def codes_in(value: Any) -> list[int]:
    """Return every error code in a response, from structs and lists at any depth."""
    if isinstance(value, list):
        return [code for each in value for code in codes_in(each)]
    if not isinstance(value, Struct):
        return []
    names = [name for name in ("error_code", "partition_error_code") if hasattr(value, name)]
    own = [getattr(value, name) for name in names]
    return own + [code for name in value.__slots__ for code in codes_in(getattr(value, name))]


def topic_name(node: Any, topic_id: bytes) -> str | None:
    topic = node.cluster.topics_by_id.get(topic_id)
    return topic.name if topic is not None else None


@for_each([(key, applied) for key in sorted(ROUTES) for applied in (False, True)])
def test_fails_in_every_version(key: int, applied: bool) -> None:
    route = ROUTES[key]
    for version in range(route.min_version, route.max_version + 1):
        node = make_node(unstable_api_versions_enable="true", penstock_client_metrics="true")
        make_topic(node, partitions=1)
        message = REQUESTS[route.key](node, version)
        context = context_of(node, version)
        request = Request(RequestHeader(key, version, 3, "test"), message, 1, partial(topic_name, node))
        inner = intercepted(node.router.find(key, version), [lambda route: route._replace()])
        answerer = Answerer(request, lambda place: CODE, applied=applied)

        def handle(message: Any, context: Any, answerer: Any = answerer, inner: Any = inner) -> Any:
            question = answerer.question(message)
            real = None if question is None else inner.handle(question, context)
            return when_answered(real, lambda real: answerer.answer(message, real))

        try:
            pieces = call(message, inner._replace(handle=handle), 3, context)
        except CloseConnection:
            continue
        assert isinstance(pieces, list), Wait
        data = b"".join(piece.read() if hasattr(piece, "read") else bytes(piece) for piece in pieces)
        number, response = decode_response(data[4:], API_TABLE[key].response, version)
        assert number == 3
        assert CODE in codes_in(response), (version, response)
