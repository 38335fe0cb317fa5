"""Tests of the commands that list resources: their JSON lines follow the schema of the resource type."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from penstock import Admin, Broker, Consumer, Producer
from penstock.cli import main
from penstock.cli.commands import penstock as root
from penstock.cli.listing import NOUNS

ROOT = Path(__file__).resolve().parents[2]

LISTING = {
    "topic list": ("topic", ""),
    "topic describe": ("partition", "t"),
    "topic trim": ("offset", "t --before 0:0"),
    "offsets": ("offset", "t --at 0"),
    "config show": ("client setting", ""),
    "config profiles": ("profile", ""),
    "config describe": ("setting", "t --all"),
    "group list": ("group", ""),
    "group describe": ("member", "g"),
    "group lag": ("lag", "g"),
    "group reset": ("reset", "idle --to-earliest"),
    "transaction list": ("transaction", ""),
    "transaction describe": ("transaction description", "tx"),
    "transaction producers": ("producer", "t"),
    "transaction hanging": ("producer", ""),
    "cluster describe": ("cluster", ""),
    "broker list": ("broker", ""),
    "logdir list": ("logdir", ""),
    "logdir sizes": ("partition size", ""),
    "acl list": ("acl", ""),
    "acl add": ("acl", "allow ann read topic:other"),
    "acl remove": ("acl", "allow ann read topic:other"),
    "user list": ("user", ""),
    "quota list": ("quota", ""),
}
"""A dict from each command that lists resources to their type and the command's arguments."""

EMPTY = {"transaction hanging"}
"""The commands that list nothing with the broker of these tests."""

LEVERS = (
    *(
        "start",
        "stop",
        "kill",
        "restart",
        "fence",
        "pause",
        "resume",
        "cut",
        "slow",
        "heal",
        "freeze",
        "thaw",
    ),
    *("shrink-isr", "move-leader", "elect", "move-coordinator", "advance", "clock"),
)

NOT_LISTING = {
    "broker": "runs",
    "directory describe": "prints sentences about one directory",
    "directory set-level": "prints sentences about one directory",
    "spark checkpoint": "prints sentences, or options for Spark",
    "spark settings": "writes a file of settings",
    "topic create": "says nothing",
    "topic delete": "says nothing",
    "topic grow": "says nothing",
    "config get": "prints a value",
    "config set": "says nothing",
    "group delete": "says nothing",
    "share list": "needs a share group; the noun share group, in test_share.py",
    "share describe": "needs a share group; the noun share member, in test_share.py",
    "share lag": "needs a share group; the noun share lag, in test_share.py",
    "share reset": "needs a share group; the noun share reset, in test_share.py",
    "share delete": "says nothing",
    "transaction abort": "prints a sentence",
    "user add": "says nothing",
    "user password": "says nothing",
    "user remove": "says nothing",
    "user quota": "says nothing",
    "quota set": "says nothing",
    "metrics list": "needs a page of metrics; the noun client metric, in test_client_metrics.py",
    "metrics subscribe": "says nothing",
    "metrics unsubscribe": "says nothing",
    "cluster nodes": "needs levers; the noun node, in test_cluster_levers.py",
    **{f"cluster {lever}": "says nothing, or a broker's id" for lever in LEVERS},
    "sql": "prints the rows of an answer; --format",
    "produce": "writes records",
    "consume": "prints records; -J has their form",
    "event decode": "prints an event",
    "event encode": "prints a record",
    "event validate": "prints a verdict",
    "event convert": "prints an event",
    "event read": "prints events; --jsonl",
    "registry run": "runs",
    "registry list": "needs a registry; the noun subject, in test_registry.py",
    "registry show": "prints a schema",
    "registry check": "prints a verdict",
    "registry register": "prints an id",
    "registry diff": "prints where two schemas differ",
    "gateway": "runs; the noun gateway client, in test_gateway.py",
    "mirror": "copies; the noun mirror at its end, in test_mirror.py",
    "land": "lands; the nouns land, land status and land tidy, in lake/test_command.py",
    "top": "shows; the nouns topic rate and group rate, in test_top_perf.py",
    "perf produce": "measures; the noun perf, in test_top_perf.py",
    "perf consume": "measures; the noun perf, in test_top_perf.py",
    "wire decode": "prints a message; --json",
    "wire encode": "prints bytes",
    "wire record": "prints one line",
    "wire replay": "prints a line for each difference",
    "schema show": "prints a grammar",
    "schema code": "prints source",
    "schema check": "prints a verdict",
    "schema diff": "prints where two schemas differ",
    "schema sizes": "prints sentences for people",
    "follow": "prints progress as it comes",
    "demo": "runs",
    "completion": "prints a script",
}

CHECKS: dict[str, Callable[[object], bool]] = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "texts": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "numbers": lambda value: isinstance(value, list) and all(isinstance(item, int) for item in value),
    "null": lambda value: value is None,
}


def leaves(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that has no subcommands, with its name."""
    if not isinstance(command, click.Group) or words == ("broker",):
        yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from leaves(inner, (*words, name))


def check(noun: str, row: dict[str, object]) -> None:
    """Raise AssertionError if a JSON object does not follow the schema of its resource type."""
    fields = NOUNS[noun]
    assert list(row) == [field.name for field in fields]
    for field in fields:
        assert any(CHECKS[kind](row[field.name]) for kind in field.type.split(" or ")), (noun, field, row)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a broker with a resource of every type, and yield its address."""
    settings = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    settings |= {"super.users": "User:ANONYMOUS"}
    with Broker(config=settings) as broker:
        at = broker.bootstrap_servers
        with Admin(at) as admin, Producer(at, transactional_id="tx") as producer:
            admin.create_topic("t", partitions=2, config={"retention.ms": "-1"})
            with producer.transaction():
                producer.send("t", b"one", key=b"k", partition=0)
            for group in ("g", "idle"):
                with Consumer(at, group_id=group) as consumer:
                    consumer.assign([("t", 0)])
                    consumer.commit({("t", 0): 1})
            admin.set_password("ann", "secret")
            admin.set_quotas({"user": "ann", "client-id": None}, {"producer_byte_rate": 1e6})
            with Consumer(at, group_id="g") as consumer:
                consumer.subscribe("t")
                consumer.poll(timeout_ms=5_000)
                assert main(["acl", "add", "allow", "ann", "read", "topic:t", "-b", at]) == 0
                yield at


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., str]:
    """Return a function that runs a command, requires exit code 0, and returns its stdout."""
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock" / "config.toml").write_text("[local]\nbootstrap.servers = '127.0.0.1:9'\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def call(*words: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        code = main(words)
        out, err = capsys.readouterr()
        assert code == 0, err
        return out

    return call


def test_every_command_lists_or_is_known_not_to() -> None:
    names = {name for name, _ in leaves(root)}
    assert names == LISTING.keys() | NOT_LISTING.keys()
    for name, command in leaves(root):
        spellings = {spelling for parameter in command.params for spelling in parameter.opts}
        if name in LISTING:
            assert {"-J", "--json"} <= spellings, name


@pytest.mark.parametrize("name", LISTING)
def test_lines_of_json_have_the_schema_of_their_noun(
    name: str, address: str, run: Callable[..., str]
) -> None:
    noun, arguments = LISTING[name]
    where = [] if name == "config profiles" else ["-b", address]
    words = [*name.split(), *arguments.split(), *where]
    if name == "acl remove":
        run("acl", "add", *arguments.split(), *where)
    lines = run(*words, "--json").splitlines()
    assert bool(lines) == (name not in EMPTY)
    for line in lines:
        check(noun, json.loads(line))
    if name != "acl remove":
        assert run(*words).strip() or name in EMPTY, "a table for people, too"


def test_a_noun_that_nothing_prints_would_be_a_promise_of_nothing() -> None:
    printed_elsewhere = {"topic rate", "group rate", "perf", "mirror", "mirror check", "node"}
    printed_elsewhere |= {"land", "land status", "land tidy"}
    printed_elsewhere |= {"client metric", "subject", "gateway client"}
    printed_elsewhere |= {"share group", "share member", "share lag", "share reset"}
    assert {noun for noun, _ in LISTING.values()} | printed_elsewhere == set(NOUNS)


def test_values_are_those_of_the_cluster(address: str, run: Callable[..., str]) -> None:
    def rows(words: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in run(*words.split(), "--json", "-b", address).splitlines()]

    (broker,) = rows("broker list")
    assert f"{broker['host']}:{broker['port']}" == address
    assert [row["offset"] for row in rows("offsets t")] == [2, 0]
    assert [row["offset"] for row in rows("offsets t:0 --at earliest")] == [0]
    assert [row["offset"] for row in rows("offsets t --at now")] == [None, None]
    (found, _) = rows("offsets t --at 1h")
    assert found["offset"] == 0
    assert isinstance(found["timestamp_ms"], int)
    (cluster,) = rows("cluster describe")
    assert (cluster["brokers"], cluster["leaderless"]) == (1, 0)
    assert {key: rows("quota list")[0][key] for key in ("user", "client_id", "ip")} == {
        "user": "ann",
        "client_id": "<default>",
        "ip": None,
    }
    run("quota", "set", "--user", "ann", "--client-id", "<default>", "producer_byte_rate=", "-b", address)
    run("quota", "set", "--user", "ann", "consumer_byte_rate=5", "-b", address)
    assert [(row["client_id"], row["quota"], row["value"]) for row in rows("quota list")] == [
        (None, "consumer_byte_rate", 5.0)
    ]
    sizes = rows("logdir sizes t")
    assert [row["topic"] for row in sizes] == ["t", "t"]
    assert rows("acl list")[0]["operation"] == "read"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("quota set producer_byte_rate=1", "say whose quotas"),
        ("quota set --user a --ip 1.2.3.4 x=1", "say whose quotas"),
        ("quota set --user a producer_byte_rate=much", "is no number"),
        ("offsets t --at soon", "--at: 'soon' is no time"),
        ("offsets t:7", "has no partition 7"),
        ("logdir sizes none", "no broker has a partition of topic 'none'"),
        ("broker --port 0 list", "do not go with list"),
        ("topic trim t --before 0:1 --before-time 1h", "exclude each other"),
    ],
)
def test_mistakes(words: str, message: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "-b", address]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_the_page_has_the_schemas() -> None:
    """The documentation's tables are current; ``python tools/write_json_nouns.py`` updates them."""
    tool = _tool("write_json_nouns")
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.with_tables(page) == page
    told = re.findall(r"^\| (`.*) \| (.*) \|$", page.partition("<!--")[0], re.MULTILINE)
    commands = {name: noun for names, noun in told for name in re.findall(r"`([a-z ]+)`", names)}
    assert commands == {name: noun for name, (noun, _) in LISTING.items()}


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
