"""Tests that every command that changes something reports the change in one line, and with ``-q`` in none."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock import Admin, Broker
from penstock.cli import main
from penstock.cli import perf as perf_module
from penstock.cli.doing import listed

Run = Callable[..., tuple[int, str, str]]

# In order: later ones work on what earlier ones have made.
CHANGES = [
    ("topic create one", "created topic one with 1 partition"),
    (
        "topic create two three -p 2",
        "created topic two with 2 partitions\ncreated topic three with 2 partitions",
    ),
    ("topic create one --if-not-exists", "topic one is there already"),
    ("topic grow one -p 3", "topic one has 3 partitions now"),
    ("config set one retention.ms=5 segment.ms=6", "topic one: changed retention.ms and segment.ms"),
    ("config set one --delete retention.ms --dry-run", "topic one: retention.ms would be changed"),
    ("config set --all-brokers log.retention.ms=9000", "all brokers: changed log.retention.ms"),
    ("user add ann --password-file {password}", "added user ann"),
    ("user password ann --password-file {password}", "user ann has a new password"),
    ("user quota ann producer_byte_rate=1e9", "user ann: changed producer_byte_rate"),
    (
        "quota set --client-id <default> producer_byte_rate=",
        "client-id <default>: changed producer_byte_rate",
    ),
    ("user remove ann", "removed user ann"),
    (
        "metrics subscribe all --metric * --interval-ms 1000",
        "subscription all asks clients for metrics every 1 s",
    ),
    ("metrics unsubscribe all", "subscription all is removed"),
    ("group delete readers -t one", "deleted 1 offset of group readers"),
    ("group delete readers", "deleted group readers"),
    ("topic delete two three", "deleted topic two\ndeleted topic three"),
]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(config={"penstock.client.metrics": "true"}) as started:
        yield started


@pytest.fixture
def run(broker: Broker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(words: str, stdin: bytes = b"", **values: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False))
        capsys.readouterr()
        noun, *rest = [word.format(**values) for word in words.split()]
        verb = rest[:1] if noun not in ("consume", "produce") else []
        code = main([noun, *verb, "-b", broker.bootstrap_servers, *rest[len(verb) :]])
        ended = capsys.readouterr()
        return code, ended.out, ended.err

    return call


@pytest.mark.parametrize("quietly", [False, True])
def test_every_change_is_told(run: Run, broker: Broker, tmp_path: Path, quietly: bool) -> None:
    password = tmp_path / "password"
    password.write_text("secret")
    password.chmod(0o600)
    for words, said in CHANGES:
        if "group delete readers -t" in words:
            with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
                admin.alter_group_offsets("readers", {("one", 0): 0, ("two", 0): 0})
        expected = "" if quietly else f"{said}\n"
        code, out, err = run(words + " -q" * quietly, password=password)
        assert (code, out) == (0, expected), (words, err)


def test_a_topic_that_cannot_be_created_does_not_keep_the_others_from_it(run: Run) -> None:
    assert run("topic create there")[0] == 0
    code, out, err = run("topic create before there bad/name behind")
    assert code == 1
    assert out == "created topic before with 1 partition\ncreated topic behind with 1 partition\n"
    assert [line.startswith("penstock: ") for line in err.splitlines()] == [True, True]
    assert "there" in err.splitlines()[0]
    assert "bad/name" in err.splitlines()[1]


def test_topics_and_groups_without_a_name_are_all_of_them(run: Run, broker: Broker) -> None:
    assert run("topic describe") == (0, "there are no topics\n", "")
    assert run("group describe") == (0, "there are no groups\n", "")
    run("topic create a b -p 2")
    out = run("topic describe")[1]
    assert [line.split(",")[0] for line in out.splitlines() if line.startswith("topic ")] == [
        "topic a",
        "topic b",
    ]
    rows = [json.loads(line) for line in run("topic describe --json")[1].splitlines()]
    assert [(row["topic"], row["partition"]) for row in rows] == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        for group in ("x", "y"):
            admin.alter_group_offsets(group, {("a", 0): 0})
    assert [line.split(",")[0] for line in run("group describe")[1].splitlines()] == ["group x", "group y"]


def test_the_bare_name_of_a_topic(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("produce orders", b"a\nb\n") == (0, "", "% 2 messages to orders\n")
    assert run("produce orders -q", b"c\n") == (0, "", "")
    Path("file").write_text("d")
    assert run("produce orders file") == (0, "", "% 1 message to orders\n")
    assert run("consume orders -e -q") == (0, "a\nb\nc\nd\n", "")
    assert run("consume -t orders orders -e -q -c 1")[:2] == (0, "a\n")
    for words, message in (
        ("consume", "Missing argument: which topic?"),
        ("produce", "Missing argument: which topic?"),
        ("produce file", "which topic? 'file' is a file; write TOPIC file, or -t file"),
        ("produce orders none", "File 'none' does not exist"),
        ("produce orders .", "File '.' is a directory"),
        ("produce -J none", "File 'none' does not exist"),
    ):
        code, out, err = run(words)
        assert (code, out) == (2, "")
        assert message in err, words


def test_perf_removes_the_topic_that_it_has_made(run: Run, broker: Broker) -> None:
    def topics() -> list[str]:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            return admin.list_topics()

    assert "penstock perf produce --keep makes and fills it" in run("perf consume")[2]
    assert "% topic penstock-perf is removed" in run("perf produce -n 10")[2]
    assert topics() == []
    assert "% topic penstock-perf is kept" in run("perf produce -n 10 --keep")[2]
    assert run("perf consume")[0] == 0
    # It was there before: not what this run has made.
    assert "% topic penstock-perf is kept" in run("perf produce -n 10")[2]
    assert topics() == ["penstock-perf"]


def test_perf_removes_its_topic_after_an_interrupt(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(meter: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(perf_module.Meter, "report_if_due", interrupt)
    assert run("perf produce --rate 1 --for 10s")[0] == 130
    with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.list_topics() == []


def test_words_in_a_sentence() -> None:
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
