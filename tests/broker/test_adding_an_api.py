"""Tests of ARCHITECTURE.md's recipe for adding an API: they follow it for an API that does not exist.

The steps are done in a copy of the repository. Every changed file must be one that the recipe names, and each
step must have the effect that the recipe promises. Other tests define the API at run time, and use it over a
real socket.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
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
            {"name": "ErrorCode", "type": "int16", "versions": "0+"},
            {"name": "Length", "type": "int32", "versions": "0+"},
        ]},
    ],
}  # fmt: skip


ROOT = Path(__file__).resolve().parents[2]

PROTOCOL, BROKER = "src/penstock/protocol", "src/penstock/broker"
HANDLERS = f"{BROKER}/handlers"
OFFERS = f"{HANDLERS}/__init__.py"
GUARDS = f"{BROKER}/security/guards/table.py"
ERRORS = f"{PROTOCOL}/error_response.py"
QUOTAS = f"{BROKER}/requests/throttling.py"
TRANSACTIONS = f"{BROKER}/transactions/answers.py"
COORDINATED = f"{BROKER}/replication/coordinated.py"
GATE = f"{BROKER}/replication/gate.py"
EVERY_VERSION = "tests/broker/handlers/test_every_version.py"
DENIED = "tests/broker/security/test_guards.py"
LAYOUTS = "tests/protocol/facts/layouts.txt"

HANDLER = """from penstock.broker.context import Context
from penstock.errors import KafkaError
from penstock.protocol.messages.echo_request import EchoRequest
from penstock.protocol.messages.echo_response import EchoLine, EchoResponse


def echo(request: EchoRequest, context: Context) -> EchoResponse:
    code = 0
    if context.mutations is not None:
        try:
            context.mutations.take(1)
        except KafkaError as error:
            code = error.code
    words = [word.upper() if request.loud else word for word in request.words]
    return EchoResponse(lines=[EchoLine(text=word, error_code=code, length=len(word)) for word in words])
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

OF_A_NODE = """
from broker.bench_node import ask_bytes, make_node
from penstock.broker.context import CloseConnection
from penstock.protocol.messages.echo_request import EchoRequest

def print_answer(node):
    try:
        lines = ask_bytes(node, EchoRequest(words=["a", "b"]), 0).lines
    except CloseConnection:
        print("closed")
    else:
        print(*(f"{line.text}:{line.error_code}" for line in lines))
"""
"""Python source that is put before the test programs: functions that send requests to a node."""

RIGHTS = """
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
print_answer(make_node(authorizer_class_name=STANDARD, super_users="User:root"))
print_answer(make_node(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS"))
"""

ERROR = """
from penstock.protocol.error_response import error_response
refusal = error_response(1000, 0, EchoRequest(words=["a"]), 29)
print(*(f"{line.text}:{line.error_code}:{line.length}" for line in refusal.lines))
"""

FENCED = """
from penstock.broker.transactions.answers import answer_of_coordinator
from penstock.protocol.error_codes import ErrorCode
print(int(answer_of_coordinator(ErrorCode.PRODUCER_FENCED, 1000, 0)))
"""

THROTTLED = """
from penstock.protocol.messages import alter_client_quotas_request as quotas
node = make_node()
limit = quotas.OpData(key="controller_mutation_rate", value=0.001)
entity = quotas.EntityData(entity_type="client-id", entity_name=None)
ask_bytes(node, quotas.AlterClientQuotasRequest(entries=[quotas.EntryData(entity=[entity], ops=[limit])]), 0)
for _ in range(2):
    print_answer(node)
"""

FORWARDED = """
from broker.wire_client import WireClient
from penstock.testing import KafkaCluster
with KafkaCluster(2) as cluster:
    with WireClient(int(cluster.address(2).rpartition(":")[2])) as client:
        for is_cut in (False, True):
            if is_cut:
                cluster.cut_from_controller(2)
            print(*(line.error_code for line in client.ask(EchoRequest(words=["a"]), 0).lines))
"""

REPLICATED = """
from penstock.broker.replication.gate import ReplicationGate
route = make_node().router.find(1000, 0)
print(ReplicationGate(None, selects_by_rack=False).intercept(route) is not route)
"""


class Copy:
    """A copy of the package and its tests in a temporary directory, in which the recipe is followed."""

    def __init__(self, path: Path) -> None:
        self.path = path / "repository"
        self._compiled = path / "compiled"
        self._times = count(1_000_000_000)
        """A counter of modification times for changed files.

        Python compiles a module again only if its time or its size differs.
        """
        without = shutil.ignore_patterns("__pycache__")
        for name in ("src/penstock", "tests/broker", "tests/protocol"):
            shutil.copytree(ROOT / name, self.path / name, ignore=without)
        for file in (ROOT / "tools/generate_messages.py", *(ROOT / "tests").glob("*.py")):
            place = self.path / file.relative_to(ROOT)
            place.parent.mkdir(exist_ok=True)
            shutil.copy2(file, place)

    def run(self, *arguments: str, fails: bool = False) -> str:
        """Run a Python program with the copy as its package; return what it prints."""
        environment = {
            "PYTHONPATH": f"{self.path / 'src'}:{self.path / 'tests'}",
            "PYTHONPYCACHEPREFIX": str(self._compiled),
        }
        done = subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        assert not fails or re.search(r"^(?:AssertionError|Failed)", done.stderr, re.MULTILINE), done.stderr
        return done.stdout

    def asks(self, program: str) -> list[str]:
        """Run a program that sends requests of the new API; return the lines that it prints."""
        return self.run("-c", OF_A_NODE + program).splitlines()

    def holds(self, file: str, law: str, *, fails: bool = False) -> None:
        """Run one test of the copy, and check that it passes, or that it fails if `fails` is True."""
        module = file.removeprefix("tests/").removesuffix(".py").replace("/", ".")
        self.run("-c", f"from {module} import {law}; {law}()", fails=fails)

    def write(self, file: str, text: str) -> None:
        path = self.path / file
        path.write_text(text)
        os.utime(path, (next(self._times),) * 2)

    def define(self, highest: int) -> None:
        for definition in (REQUEST, RESPONSE):
            text = json.dumps({**definition, "validVersions": f"0-{highest}"})
            self.write(f"{PROTOCOL}/definitions/{definition['name']}.json", text)
        self.run("tools/generate_messages.py")

    def follow_to_the_offer(self) -> None:
        """Follow steps 1 to 4 of the recipe, after which the API is offered."""
        self.define(highest=0)
        self.write(f"{HANDLERS}/echo.py", HANDLER)
        text = (self.path / OFFERS).read_text()
        self.write(OFFERS, text.replace("OFFERED = {\n", "OFFERED = {\n    ApiKey.ECHO: Offer(0, 0),\n", 1))

    @contextmanager
    def changed(self, file: str, pattern: str, replacement: str) -> Iterator[None]:
        """Replace the only match of a pattern in a file for the length of a block."""
        before = (self.path / file).read_text()
        text, places = re.subn(pattern, replacement, before, flags=re.MULTILINE)
        assert places == 1, f"{pattern} in {file}"
        self.write(file, text)
        yield
        self.write(file, before)

    def row(self, file: str, table: str, row: str) -> AbstractContextManager[None]:
        """Add a row to a table of a module for the length of a block."""
        begin = rf"^({table}(?:: [^=\n]+)? = (?:frozenset\(\s*)?[({{])"
        return self.changed(file, begin, rf"\1{row}, ")

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.path.rglob("*") if path.is_file())
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in paths}

    def changed_since(self, before: dict[str, bytes]) -> set[str]:
        after = self.files()
        assert before.keys() <= after.keys()
        return {name for name, content in after.items() if before.get(name) != content}


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Return a copy in which steps 1 to 4 of the recipe have been followed.

    Tests share it, and undo their changes.
    """
    copy = Copy(tmp_path_factory.mktemp("offered"))
    copy.follow_to_the_offer()
    return copy


def recipe() -> str:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    return page.split("## How to add an API\n")[1].partition("\n## ")[0]


def is_named(file: str) -> bool:
    """Return True if the recipe names a file in backticks, or its directory with a final slash."""
    named = {name for name in re.findall(r"`([\w./]+)`", recipe()) if "/" in name}
    return file in named or f"{file.rpartition('/')[0]}/" in named


def test_adding_an_api_and_a_version_changes_the_files_that_the_recipe_names(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    before = copy.files()
    copy.follow_to_the_offer()
    added = copy.changed_since(before)
    assert copy.run("-c", ASK.format(loud=0)) == "(0, 0)\na b\n"

    before = copy.files()
    copy.define(highest=1)
    with copy.changed(OFFERS, r"ECHO: Offer\(0, 0\)", "ECHO: Offer(0, 1)"):
        raised = copy.changed_since(before)
        assert copy.run("-c", ASK.format(loud=1)) == "(0, 1)\nA B\n"

    ours = {f"{PROTOCOL}/definitions/EchoRequest.json", f"{PROTOCOL}/definitions/EchoResponse.json"}
    classes = {f"{PROTOCOL}/messages/echo_request.py", f"{PROTOCOL}/messages/echo_response.py"}
    both = {*ours, *classes, f"{PROTOCOL}/api_keys.py", OFFERS}
    once = {f"{PROTOCOL}/messages/__init__.pyi", f"{PROTOCOL}/message_index.py", f"{HANDLERS}/echo.py"}
    assert raised == both
    assert added == both | once
    for name in added:
        assert is_named(name), f"{name} is not in ARCHITECTURE.md"


def test_layouts_are_pinned(offered: Copy) -> None:
    tests, law = "tests/protocol/test_layouts.py", "test_layouts_are_the_facts"
    offered.holds(tests, law, fails=True)
    with offered.changed(LAYOUTS, r"\Z", "EchoRequest 0-0 [s]\nEchoResponse 0-0 [(s h i)]\n"):
        offered.holds(tests, law)
    assert is_named(LAYOUTS)


def test_a_forwarded_api_needs_the_controller(offered: Copy) -> None:
    assert offered.asks(FORWARDED) == ["0", "0"]
    with offered.changed(OFFERS, r"ECHO: Offer\(0, 0\)", "ECHO: Offer(0, 0, forwarded=True)"):
        assert offered.asks(FORWARDED) == ["0", "7"]
    assert "`forwarded=True`" in recipe()


def test_rights_are_refused_in_the_form_of_the_definitions(offered: Copy) -> None:
    assert offered.asks(RIGHTS) == ["closed", "a:0 b:0"]
    with offered.row(GUARDS, "GUARDS", "ApiKey.ECHO: Rule(on_cluster(Operation.DESCRIBE))"):
        assert offered.asks(RIGHTS) == ["a:31 b:31", "a:0 b:0"]
    with offered.row(GUARDS, "OPEN", "ApiKey.ECHO"):
        assert offered.asks(RIGHTS) == ["a:0 b:0", "a:0 b:0"]


def test_error_answers_have_exceptions(offered: Copy) -> None:
    assert offered.asks(ERROR) == ["a:29:0"]
    with offered.row(ERRORS, "_WITHOUT_ENTRIES", "ApiKey.ECHO"):
        assert offered.asks(ERROR) == [""]
    with offered.row(ERRORS, "_ON_FAILURE", '"length": -1'):
        assert offered.asks(ERROR) == ["a:29:-1"]
    assert offered.asks(FENCED) == ["90"]
    with offered.row(TRANSACTIONS, "FENCED_SINCE", "ApiKey.ECHO: 1"):
        assert offered.asks(FENCED) == ["47"]


def test_quotas_count_partitions(offered: Copy) -> None:
    assert offered.asks(THROTTLED) == ["a:0 b:0", "a:0 b:0"]
    with offered.row(QUOTAS, "STRICT_SINCE", "ApiKey.ECHO: 0"):
        assert offered.asks(THROTTLED) == ["a:0 b:0", "a:89 b:89"]
    with offered.row(QUOTAS, "MUTATING", "ApiKey.ECHO"):
        assert offered.asks(THROTTLED) == ["a:0 b:0", "a:0 b:0"]


def test_answers_wait_for_replicas(offered: Copy) -> None:
    assert offered.asks(REPLICATED) == ["False"]
    with offered.row(COORDINATED, "COORDINATED", "ApiKey.ECHO: _of_group"):
        assert offered.asks(REPLICATED) == ["True"]
    with offered.row(GATE, "_WRAPPED", "ApiKey.ECHO: ReplicationGate.produce"):
        assert offered.asks(REPLICATED) == ["True"]


def test_tests_fail_while_an_api_has_no_rows(offered: Copy) -> None:
    made = "lambda node, version: API_TABLE[1000].request()"
    tried, guarded = "test_every_api_that_is_offered_is_tried_here", "test_every_api_has_a_guard_or_is_open"
    offered.holds(EVERY_VERSION, tried, fails=True)
    offered.holds(DENIED, guarded, fails=True)
    with (
        offered.row(GUARDS, "GUARDS", "ApiKey.ECHO: Rule(on_cluster(Operation.DESCRIBE))"),
        offered.row(EVERY_VERSION, "REQUESTS", f"ApiKey.ECHO: {made}"),
    ):
        offered.holds(EVERY_VERSION, tried)
        offered.holds(DENIED, guarded, fails=True)
        with offered.row(DENIED, "DENIED", "ApiKey.ECHO: {31}"):
            offered.holds(DENIED, guarded)


TABLES = {
    OFFERS: {"OFFERED", "COMMON", "CLIENT_METRICS_APIS"},
    GUARDS: {"GUARDS", "OPEN"},
    f"{BROKER}/security/guards/guard.py": {"WITHOUT_MESSAGE"},
    ERRORS: {"_HOLDERS", "_ALSO_IN_ENTRIES", "_WITHOUT_ENTRIES", "_ON_FAILURE", "_ON_FAILURE_OF_ALL"},
    TRANSACTIONS: {"FENCED_SINCE", "ABORTABLE_SINCE"},
    QUOTAS: {"STRICT_SINCE", "MUTATING", "FETCHING"},
    COORDINATED: {"COORDINATED"},
    GATE: {"_WRAPPED"},
    EVERY_VERSION: {"REQUESTS"},
    DENIED: {"DENIED"},
}
"""A dict from module to the tables by API that the recipe names in it."""

OF_OTHER_APIS = {"_ONCE_IN_ZOOKEEPER", "KINDS", "IMPLICIT_ADDS_SINCE"}
"""Tables by API to which no new API belongs.

They concern offsets once stored in ZooKeeper, requests of the share coordinator, and writes that join a
transaction.
"""


def tables_by_api(module: Path) -> set[str]:
    """Return the names of a module's tables whose keys or elements are members of `ApiKey`."""
    found = set()
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else node.value
            keys = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
            if any(isinstance(key, ast.Attribute) and ast.unparse(key.value) == "ApiKey" for key in keys):
                found.add(ast.unparse(target))
    return found


def test_the_recipe_names_every_table_by_api() -> None:
    for file, tables in TABLES.items():
        assert is_named(file), file
        text = (ROOT / file).read_text("utf-8")
        for table in tables:
            assert f"`{table}`" in recipe(), table
            assert re.search(rf"^{table}\b.* = ", text, re.MULTILINE), f"{table} of {file}"
    found = {
        (path.relative_to(ROOT).as_posix(), table)
        for room in (BROKER, PROTOCOL)
        for path in (ROOT / room).rglob("*.py")
        for table in tables_by_api(path)
    }
    assert len(found) > 10
    known = {table for tables in TABLES.values() for table in tables} | OF_OTHER_APIS
    assert {(file, table) for file, table in found if table not in known} == set()


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[type[Message], type[Message]]:
    """Register the made-up API with its message classes and a handler for one test; return the classes."""
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
