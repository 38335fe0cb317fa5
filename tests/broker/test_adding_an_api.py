"""How to add an API, done with one that does not exist: ARCHITECTURE.md's recipe over a real socket.

Two definitions, one handler; nothing else has to know. First it is done to a copy of the package, step by
step as the recipe says, and every file that changed must be one that the recipe names; then at run time,
with classes made on the spot.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Broker
from penstock.broker.context import Context
from penstock.broker.handlers import ROUTES
from penstock.broker.requests.routes import Route
from penstock.errors import UnsupportedVersionError
from penstock.protocol.api import API_TABLE, Api
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.loaded_classes import load_message
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


ROOT = Path(__file__).resolve().parents[2]

HANDLER = """from penstock.broker.context import Context
from penstock.protocol.messages.echo_request import EchoRequest
from penstock.protocol.messages.echo_response import EchoLine, EchoResponse


def echo(request: EchoRequest, context: Context) -> EchoResponse:
    words = [word.upper() if request.loud else word for word in request.words]
    return EchoResponse(lines=[EchoLine(text=word) for word in words])
"""

ASK = """
import socket
from penstock import Broker
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.messages import ApiVersionsRequest, ApiVersionsResponse, EchoRequest, EchoResponse

with Broker() as broker:
    for message, version, answer in ((ApiVersionsRequest(), 0, ApiVersionsResponse),
                                     (EchoRequest(words=["a", "b"], loud={loud}), {loud}, EchoResponse)):
        with socket.create_connection((broker.host, broker.port), timeout=10) as connection:
            connection.sendall(b"".join(encode_request(message, version, 7, "newcomer")))
            stream = connection.makefile("rb")
            response = decode_response(stream.read(int.from_bytes(stream.read(4), "big")), answer, version)[1]
            stream.close()
        if answer is EchoResponse:
            print(*(line.text for line in response.lines))
        else:
            print(*((api.min_version, api.max_version) for api in response.api_keys if api.api_key == 1000))
"""


class Copy:
    """The package in a directory of its own, where things can be added."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.protocol = path / "src/penstock/protocol"
        self.handlers = path / "src/penstock/broker/handlers"
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src/penstock", path / "src/penstock", ignore=without)
        (path / "tools").mkdir()
        shutil.copy(ROOT / "tools/generate_messages.py", path / "tools")

    def run(self, *arguments: str) -> str:
        environment = {"PYTHONPATH": str(self.path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def define(self, highest: int) -> None:
        for definition in (REQUEST, RESPONSE):
            path = self.protocol / "definitions" / f"{definition['name']}.json"
            path.write_text(json.dumps({**definition, "validVersions": f"0-{highest}"}))

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.path.rglob("*") if path.is_file())
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in paths}

    def changed_since(self, before: dict[str, bytes]) -> set[str]:
        after = self.files()
        assert before.keys() <= after.keys()
        return {name for name, content in after.items() if before.get(name) != content}


def named_in_the_recipe() -> set[str]:
    """What the recipe names in backticks: files, and directories with a slash at the end."""
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    text = page.split("## How to add an API\n")[1].partition("\n## ")[0]
    return {name for name in re.findall(r"`([\w./]+)`", text) if "/" in name}


def test_adding_an_api_and_a_version_changes_the_files_that_the_recipe_names(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    before = copy.files()

    copy.define(highest=0)
    copy.run(str(tmp_path / "tools/generate_messages.py"))
    (copy.handlers / "echo.py").write_text(HANDLER)
    init = copy.handlers / "__init__.py"
    text = init.read_text()
    init.write_text(text.replace("OFFERED = {\n", "OFFERED = {\n    ApiKey.ECHO: Offer(0, 0),\n", 1))
    added = copy.changed_since(before)
    assert copy.run("-c", ASK.format(loud=0)) == "(0, 0)\na b\n"

    before = copy.files()
    copy.define(highest=1)
    copy.run(str(tmp_path / "tools/generate_messages.py"))
    init.write_text(init.read_text().replace("ECHO: Offer(0, 0)", "ECHO: Offer(0, 1)"))
    raised = copy.changed_since(before)
    assert copy.run("-c", ASK.format(loud=1)) == "(0, 1)\nA B\n"

    protocol, handlers = "src/penstock/protocol", "src/penstock/broker/handlers"
    ours = {f"{protocol}/definitions/EchoRequest.json", f"{protocol}/definitions/EchoResponse.json"}
    classes = {f"{protocol}/messages/echo_request.py", f"{protocol}/messages/echo_response.py"}
    both = {*ours, *classes, f"{protocol}/api_keys.py", f"{handlers}/__init__.py"}
    once = {f"{protocol}/messages/__init__.pyi", f"{protocol}/message_index.py", f"{handlers}/echo.py"}
    assert raised == both
    assert added == both | once
    named = named_in_the_recipe()
    for name in added:
        assert name in named or f"{name.rpartition('/')[0]}/" in named, f"{name} is not in ARCHITECTURE.md"


def test_the_recipe_names_the_tables_without_which_an_api_is_closed_or_untested() -> None:
    tables = {
        "src/penstock/broker/handlers/": "OFFERED",
        "src/penstock/broker/security/guards/table.py": "GUARDS",
        "tests/broker/handlers/test_every_version.py": "REQUESTS",
        "tests/broker/security/test_guards.py": "DENIED",
    }
    recipe = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## How to add an API\n")[1]
    assert tables.keys() <= named_in_the_recipe()
    for place, table in tables.items():
        files = [ROOT / place] if place.endswith(".py") else [*(ROOT / place).glob("*.py")]
        assert any(
            f"{table} = " in file.read_text("utf-8") or f"{table}: " in file.read_text("utf-8")
            for file in files
        )
        assert f"`{table}`" in recipe


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[type[Message], type[Message]]:
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

    def answer(request: Message, context: Context) -> Message:
        words = [word.upper() if request.loud else word for word in request.words]  # type: ignore[attr-defined]
        return response_class(lines=[line_class(text=word) for word in words])  # type: ignore[call-arg]

    monkeypatch.setitem(ROUTES, ECHO, Route(ECHO, 0, 1, answer))  # type: ignore[arg-type]
    return request_class, response_class


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
