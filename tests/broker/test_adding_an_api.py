"""How to add an API, done with one that does not exist: ARCHITECTURE.md's recipe over a real socket.

Two definitions, one handler; nothing else has to know. In the package, the definitions are files below
`protocol/definitions/` and the classes are generated from them; here both are made at run time.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Broker
from penstock.broker import dispatch
from penstock.broker.dispatch import Context, handler
from penstock.errors import UnsupportedVersionError
from penstock.protocol.api import API_TABLE, Api
from penstock.protocol.classes import load_message
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse

ECHO = 1000

REQUEST = {
    "apiKey": ECHO,
    "type": "request",
    "name": "EchoRequest",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Words", "type": "[]string", "versions": "0+"},
        {"name": "Loud", "type": "bool", "versions": "1+", "taggedVersions": "1+", "tag": 0},
    ],
}

RESPONSE = {
    "apiKey": ECHO,
    "type": "response",
    "name": "EchoResponse",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "Lines", "type": "[]EchoLine", "versions": "0+", "fields": [
            {"name": "Text", "type": "string", "versions": "0+"},
        ]},
    ],
}  # fmt: skip


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[type[Message], type[Message]]]:
    """The message classes of the made-up API, registered with a handler for the length of a test."""
    classes = []
    for definition in (REQUEST, RESPONSE):
        path = tmp_path / f"{definition['name']}.json"
        path.write_text(json.dumps(definition))
        classes.append(load_message(path))
    request_class, response_class = classes

    api = Api(ECHO, "Echo", (0, 1), 1, False, ("broker",))
    api._request, api._response = request_class, response_class
    monkeypatch.setitem(API_TABLE, ECHO, api)
    line_class = vars(sys.modules[response_class.__module__])["EchoLine"]

    @handler(ECHO, 0, 1)  # type: ignore[arg-type]
    def answer(request: Message, context: Context) -> Message:
        words = [word.upper() if request.loud else word for word in request.words]  # type: ignore[attr-defined]
        return response_class(lines=[line_class(text=word) for word in words])  # type: ignore[call-arg]

    yield request_class, response_class
    del dispatch.ROUTES[ECHO]


def ask(broker: Broker, message: Message, version: int, response_class: type[Message]) -> Message:
    with socket.create_connection((broker.host, broker.port), timeout=10) as connection:
        for chunk in encode_request(message, version, 7, "newcomer"):
            connection.sendall(chunk)
        stream = connection.makefile("rb")
        frame = stream.read(int.from_bytes(stream.read(4), "big"))
        stream.close()
    correlation_id, response = decode_response(frame, response_class, version)
    assert correlation_id == 7
    return response


def test_a_new_api_is_answered_and_announced(echo: tuple[type[Message], type[Message]]) -> None:
    request_class, response_class = echo
    with Broker() as broker:
        quiet = ask(broker, request_class(words=["a", "b"]), 0, response_class)  # type: ignore[call-arg]
        loud = ask(broker, request_class(words=["a"], loud=True), 1, response_class)  # type: ignore[call-arg]
        offered = ask(broker, ApiVersionsRequest(), 0, ApiVersionsResponse)
    assert [line.text for line in quiet.lines] == ["a", "b"]  # type: ignore[attr-defined]
    assert [line.text for line in loud.lines] == ["A"]  # type: ignore[attr-defined]
    assert isinstance(offered, ApiVersionsResponse)
    assert (ECHO, 0, 1) in [(api.api_key, api.min_version, api.max_version) for api in offered.api_keys]


def test_a_version_that_is_not_defined_is_refused(echo: tuple[type[Message], type[Message]]) -> None:
    request_class, _ = echo
    with pytest.raises(UnsupportedVersionError, match="versions 0 to 1, not 2"):
        encode_request(request_class(), 2, 0, None)
