"""Tests of `penstock transaction` and `penstock consume --isolation` against a broker."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Admin, Broker, Producer
from penstock.cli import main

Penstock = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            for name in ("t", "hung", "seen"):
                admin.create_topic(name, 2)
        yield broker.bootstrap_servers


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Penstock:
    """Return a function that runs a command in this process: exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        code = main(words)
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


def prepare(address: str, name: str, topic: str) -> int:
    """Leave a transaction open in partition 0 of a topic; return its producer id."""
    with Producer(address, transactional_id=name) as producer:
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0)
        return producer.prepare_transaction().producer_id


def test_a_transaction_is_listed_described_and_aborted(penstock: Penstock, address: str) -> None:
    producer_id = prepare(address, "life", "t")
    where = ("-b", address)
    code, out, err = penstock("transaction", "list", *where, "--state", "Ongoing")
    assert (code, err) == (0, "")
    assert ["life", "1", str(producer_id), "Ongoing"] in [line.split() for line in out.splitlines()]
    rows = [json.loads(line) for line in penstock("transaction", "list", *where, "--json")[1].splitlines()]
    assert {
        "transactional_id": "life",
        "coordinator": 1,
        "producer_id": producer_id,
        "state": "Ongoing",
    } in rows
    assert "life" not in penstock("transaction", "list", *where, "--longer-than", "600000")[1]
    assert "life" in penstock("transaction", "list", *where, "--pattern", "l.*e")[1]
    assert "life" not in penstock("transaction", "list", *where, "--pattern", "l")[1]

    out = penstock("transaction", "describe", *where, "life")[1]
    assert out.startswith("transactional id life, Ongoing, coordinator 1\n")
    assert "in t-0" in out
    (told,) = [json.loads(penstock("transaction", "describe", *where, "life", "-J")[1])]
    assert (told["partitions"], told["producer_epoch"], told["timeout_ms"]) == (["t-0"], 0, 60_000)
    assert told["duration_ms"] >= 0

    (told,) = map(json.loads, penstock("transaction", "producers", *where, "t:0", "-J")[1].splitlines())
    assert (told["producer_id"], told["start_offset"], told["last_sequence"]) == (producer_id, 0, 0)
    assert penstock("transaction", "hanging", *where, "-t", "t", "--older-than", "0")[1].count("\n") == 1

    code, out, err = penstock("transaction", "abort", *where, "life")
    assert (code, err) == (0, "")
    assert out.startswith("life: nothing is open;")
    assert "Empty" in penstock("transaction", "describe", *where, "life")[1]


def test_a_marker_is_written_by_hand_where_a_transaction_hangs(penstock: Penstock, address: str) -> None:
    where = ("-b", address)
    for words in (["--start-offset", "0"], None):
        producer_id = prepare(address, "hanging", "hung")
        (told,) = map(
            json.loads, penstock("transaction", "producers", *where, "hung:0", "-J")[1].splitlines()
        )
        if words is None:
            words = ["--producer-id", str(producer_id), "--producer-epoch", str(told["producer_epoch"])]
            words += ["--coordinator-epoch", str(told["coordinator_epoch"])]
        assert told["start_offset"] is not None
        code, out, _ = penstock("transaction", "abort", *where, "--partition", "hung:0", *words)
        assert (code, out) == (0, f"hung-0: the transaction of producer {producer_id} is aborted\n")
        (told,) = map(
            json.loads, penstock("transaction", "producers", *where, "hung:0", "-J")[1].splitlines()
        )
        assert told["start_offset"] is None
    assert penstock("consume", *where, "-t", "hung", "-e", "--isolation", "read_committed")[1] == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["describe", "nothing"], "transactional id 'nothing' does not exist"),
        (["abort", "nothing"], "transactional id 'nothing' does not exist"),
        (["abort"], "say which transaction"),
        (["abort", "x", "--partition", "t:0"], "say which transaction"),
        (["abort", "x", "--start-offset", "0"], "belong to --partition"),
        (["abort", "--partition", "t", "--start-offset", "0"], "give TOPIC:NUMBER"),
        (["abort", "--partition", "t:0", "--producer-id", "1"], "needs --start-offset"),
        (["abort", "--partition", "t:0", "--start-offset", "1", "--producer-id", "1"], "leave out"),
        (
            ["abort", "--partition", "t:1", "--start-offset", "7"],
            "no transaction is open in t-1 from offset 7",
        ),
        (["list", "--state", "Running"], "no state 'Running'"),
        (["list", "--pattern", "("], "regular expression"),
        (["producers", "nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_said(penstock: Penstock, address: str, words: list[str], told: str) -> None:
    code, _, err = penstock("transaction", words[0], "-b", address, *words[1:])
    assert code != 0
    assert told in err


def test_messages_are_produced_in_one_transaction(penstock: Penstock, address: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two")]
    for file in files:
        file.write_text(file.name)
    where = ("-b", address, "-t", "at-once")
    assert penstock("produce", *where, "-X", "transactional.id=lines", *map(str, files))[0] == 0
    assert penstock("consume", *where, "-e", "-q", "--isolation", "read_committed")[1] == "one\ntwo\n"
    assert "CompleteCommit" in penstock("transaction", "describe", "-b", address, "lines")[1]


def test_consume_leaves_out_what_is_not_committed(penstock: Penstock, address: str) -> None:
    with Producer(address, transactional_id="seen") as producer:
        for value, commits in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
            producer.begin_transaction()
            producer.send("seen", value, partition=0).result(10)
            (producer.commit_transaction if commits else producer.abort_transaction)()
        producer.begin_transaction()
        producer.send("seen", b"open", partition=0)
        producer.prepare_transaction()
    where = ("-b", address, "-t", "seen", "-e", "-q")
    assert penstock("consume", *where, "--isolation", "read_committed")[1] == "kept\nkept too\n"
    by_setting = penstock("consume", *where, "-X", "isolation.level=read_committed")[1]
    assert by_setting == "kept\nkept too\n"
    assert penstock("consume", *where)[1] == "kept\ndropped\nkept too\nopen\n"
    grouped = penstock("consume", *where, "-G", "g", "--isolation", "read_committed")[1]
    assert grouped == "kept\nkept too\n"
