"""Tests of the commands against a real broker: their output and exit codes."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Broker
from penstock.cli import main

Penstock = Callable[..., tuple[int, bytes, str]]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Penstock:
    """Return a function that runs a command in this process: exit code, stdout and stderr."""

    def run(*words: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        out, err = capsysbinary.readouterr()
        return code, out, err.decode()

    return run


def test_from_a_topic_created_to_a_topic_deleted(penstock: Penstock, address: str) -> None:
    assert (
        penstock(
            "topic", "create", "life", "-b", address, "-p", "2", "-r", "1", "--config", "retention.ms=-1"
        )[0]
        == 0
    )
    code, _, err = penstock("topic", "create", "life", "-b", address)
    assert code == 1
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert penstock("topic", "create", "life", "-b", address, "--if-not-exists")[::2] == (0, "")
    assert b"life\n" in penstock("topic", "list", "-b", address)[1]

    lines = penstock("topic", "describe", "life", "-b", address)[1].decode().splitlines()
    assert lines[0].startswith("topic life, id ")
    assert [line.split() for line in lines[2:4]] == [
        ["0", "1", "1", "1", "0", "0"],
        ["1", "1", "1", "1", "0", "0"],
    ]
    assert lines[4:] == ["retention.ms=-1"]

    assert penstock("topic", "delete", "life", "-b", address) == (0, b"deleted topic life\n", "")
    code, _, err = penstock("topic", "delete", "life", "-b", address)
    assert code == 1
    assert "life" in err


def test_a_topic_is_tuned_grown_and_trimmed(penstock: Penstock, address: str) -> None:
    at = ("-b", address)
    penstock("topic", "create", "tuned", *at)
    assert (
        penstock("config", "set", "tuned", "retention.ms=5000", "cleanup.policy=compact,delete", *at)[0] == 0
    )
    described = penstock("config", "describe", "tuned", *at)[1]
    assert described == b"cleanup.policy=compact,delete\nretention.ms=5000\n"
    assert penstock("config", "get", "tuned", "retention.ms", *at)[1] == b"5000\n"
    assert penstock("config", "set", "tuned", *at, "--delete", "retention.ms", "--dry-run")[0] == 0
    assert penstock("config", "set", "tuned", *at, "--subtract", "cleanup.policy=compact")[0] == 0
    assert penstock("config", "describe", "tuned", *at)[1] == b"cleanup.policy=delete\nretention.ms=5000\n"
    assert b"\nsegment.ms=604800000\n" in penstock("config", "describe", "tuned", *at, "--all")[1]
    assert penstock("config", "get", "--node", "1", "node.id", *at)[1] == b"1\n"
    # A broker keeps any name, as Kafka does; who mistypes one should hear of it.
    for where in (["--node", "1"], ["--all-brokers"]):
        code, _, err = penstock("config", "set", *where, "log.segment.byte=1000000", "--dry-run", *at)
        assert (code, "did you mean log.segment.bytes" in err) == (0, True)
    said = b"broker 1: changed log.segment.bytes\n"
    assert penstock("config", "set", "--node", "1", "log.segment.bytes=1000000", *at) == (0, said, "")
    assert penstock("config", "set", "--node", "1", "--delete", "log.segment.bytes", *at)[0] == 0
    code, _, err = penstock("config", "get", "tuned", "retention.sm", *at)
    assert (code, "did you mean retention.ms" in err) == (2, True)
    for words in (["set", "a=b"], ["set", "tuned"], ["describe"], ["get", "retention.ms"]):
        assert penstock("config", *words, *at)[0] == 2

    said = b"topic tuned has 2 partitions now\n"
    assert penstock("topic", "grow", "tuned", "--partitions", "2", *at) == (0, said, "")
    penstock("produce", "-t", "tuned", "-p", "1", *at, stdin=b"a\nb\nc\n")
    assert penstock("topic", "trim", "tuned", "--before", "1:2", *at)[1] == b"tuned 1 2\n"
    assert penstock("topic", "trim", "tuned", *at)[1] == b"tuned 0 0\ntuned 1 3\n"
    assert penstock("topic", "trim", "tuned", "--before", "x", *at)[0] == 2


def test_what_is_produced_is_consumed(penstock: Penstock, address: str) -> None:
    produce = ["produce", "-b", address, "-t", "letters", "-p", "0"]
    consume = ["consume", "-b", address, "-t", "letters", "-e", "-q"]
    penstock("topic", "create", "letters", "-b", address)
    said = "% 3 messages to letters\n"
    given = b"k:one\ntwo\nk2:\n"
    assert penstock(*produce, "-K", ":", "-H", "lang=en", "-H", "none", stdin=given) == (0, b"", said)
    assert penstock(*produce, "-k", "key", "-Z", "-z", "zstd", "-D", ",", stdin=b"three,,four")[0] == 0

    assert penstock(*consume)[1] == b"one\ntwo\n\nthree\n\nfour\n"
    assert penstock(*consume, "-Z", "-K", "=")[1] == b"k=one\nNULL=two\nk2=\nkey=three\nkey=NULL\nkey=four\n"
    assert penstock(*consume, "-f", "%p/%o %h;")[1].startswith(b"0/0 lang=en,none=;0/1 ")
    assert penstock(*consume, "-c", "2", "-D", "|")[1] == b"one|two|"
    assert penstock(*consume, "-o", "-1")[1] == b"four\n"
    assert penstock(*consume, "-o", "4", "-p", "0")[1] == b"\nfour\n"
    assert penstock(*consume, "-o", "end")[1] == b""
    rows = [json.loads(line) for line in penstock(*consume, "-J")[1].splitlines()]
    assert [row["payload"] for row in rows] == ["one", "two", "", "three", None, "four"]
    after = str(rows[3]["ts"])
    assert penstock(*consume, "-o", f"s@{after}", "-f", "%s,")[1].endswith(b"three,,four,")
    assert penstock(*consume, "-o", f"e@{rows[0]['ts']}")[1] == b""

    code, _out, err = penstock("consume", "-b", address, "-t", "letters", "-e", "-c", "6")
    assert (code, err) == (0, "% Reached end of topic letters [0] at offset 6\n")


def test_files_are_messages_or_full_of_them(penstock: Penstock, address: str, tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(b"a\nb\n")
    second.write_bytes(b"\x00\xff")
    penstock("topic", "create", "files", "-b", address)
    produce = ["produce", "-b", address, "-t", "files"]
    assert penstock(*produce, str(first), str(second))[0] == 0
    assert penstock(*produce, "-l", str(first), "-c", "1")[0] == 0
    assert (
        penstock("consume", "-b", address, "-t", "files", "-e", "-q", "-f", "%s|")[1] == b"a\nb\n|\x00\xff|a|"
    )


WRONG = [
    (["nonsense"], 2, "No such command 'nonsense'"),
    (["consume"], 2, "Missing argument: which topic?"),
    (["consume", "-t", "x", "-o", "somewhere"], 2, "-o somewhere: give beginning"),
    (["consume", "-t", "x", "-f", "%q"], 2, "%q is no token"),
    (["consume", "-t", "x", "-J", "-K", ":"], 2, "leave out -f and -K"),
    (["consume", "-t", "x", "-X", "nonsense"], 2, "-X takes NAME=VALUE"),
    (["produce", "-t", "x", "-k", "a", "-K", ":"], 2, "choose one"),
    (["produce", "-t", "x", "-z", "rar"], 2, "'rar' is not one of"),
    (["produce", "-t", "x", "-l"], 2, "exactly one FILE"),
    (["produce", "-t", "x", "-H", "=x"], 2, "-H takes NAME=VALUE"),
    (["produce", "-t", "x", "/no/such/file"], 2, "does not exist"),
    (["broker", "--port", "65536"], 2, "65536 is not in the range"),
    (["broker", "-o", "penstock.nonsense=1"], 2, "penstock.nonsense"),
    (["broker", "--data-dir", "/dev/null/x", "--port", "0"], 1, "/dev/null/x"),
    (["broker", "--host", "256.256.256.256", "--port", "0"], 1, "256.256.256.256"),
    (["topic", "create"], 2, "Missing argument 'TOPIC...'"),
    (["topic", "create", "x", "--partitions", "0"], 2, "0 is not in the range"),
    (["demo", "--limit", "366"], 2, "366 is not in the range"),
    (["demo", "--output", "/dev/null/x"], 1, "/dev/null/x"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_a_mistake_is_told_in_one_line(words: list[str], code: int, message: str, penstock: Penstock) -> None:
    ended, out, err = penstock(*words)
    assert ended == code
    assert out == b""
    assert err.startswith("penstock: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [["consume", "-e", "-t", "none"], ["topic", "describe", "none"], ["topic", "delete", "none"]],
    ids=" ".join,
)
def test_an_unknown_topic_is_told_in_one_line(words: list[str], penstock: Penstock, address: str) -> None:
    code, _, err = penstock(*words, "-b", address)
    assert code == 1
    assert "'none' does not exist" in err
    assert err.count("\n") == 1


def test_an_unknown_partition_is_told_in_one_line(penstock: Penstock, address: str) -> None:
    penstock("topic", "create", "single", "-b", address)
    code, _, err = penstock("consume", "-b", address, "-t", "single", "-p", "7")
    assert code == 2
    assert err == "penstock: topic 'single' has no partition 7; it has one, partition 0\n"


def test_an_unreachable_broker_is_told_in_one_line(penstock: Penstock) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{nobody.getsockname()[1]}"
        for words in (["topic", "list"], ["consume", "-t", "x"], ["produce", "-t", "x"]):
            code, _, err = penstock(*words, "-b", closed, stdin=b"hello\n")
            assert code == 1
            assert closed in err
            assert err.count("\n") == 1


def test_a_port_in_use_is_told_in_one_line(penstock: Penstock, address: str) -> None:
    port = address.rpartition(":")[2]
    code, _, err = penstock("broker", "--port", port)
    assert code == 1
    assert f"port {port}" in err
    assert err.count("\n") == 1


def start(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_reader_that_leaves_ends_consume_quietly(address: str, penstock: Penstock) -> None:
    penstock("topic", "create", "pipe", "-b", address)
    penstock("produce", "-b", address, "-t", "pipe", stdin=b"x\n" * 100_000)
    with start("consume", "-b", address, "-t", "pipe", "-q") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(2) == b"x\n"
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr.read() == b""


def test_ctrl_c_ends_quietly(address: str, penstock: Penstock) -> None:
    penstock("topic", "create", "waiting", "-b", address)
    penstock("produce", "-b", address, "-t", "waiting", stdin=b"x\n")
    with start("consume", "-b", address, "-t", "waiting", "-q") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"x\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def test_a_broker_process_says_where_it_listens_and_keeps_its_log(tmp_path: Path, penstock: Penstock) -> None:
    for round_number in range(2):
        with start("broker", "--data-dir", str(tmp_path / "data"), "--port", "0") as process:
            assert process.stdout is not None
            line = process.stdout.readline().decode()
            there = line.split("listening on ")[1].split(",")[0]
            if round_number == 0:
                penstock("topic", "create", "kept", "-b", there)
                assert penstock("produce", "-b", there, "-t", "kept", stdin=b"still here\n")[0] == 0
            else:
                assert penstock("consume", "-b", there, "-t", "kept", "-e", "-q")[1] == b"still here\n"
            started = time.monotonic()
            process.terminate()
            assert process.wait(20) == 0
            assert time.monotonic() - started < 10


def test_starting_a_broker_needs_neither_click_nor_rich() -> None:
    code = (
        "import sys; from penstock.broker import command_line; from penstock.cli import main;"
        "command_line.run = lambda settings: 0;"
        "main(['broker', '--port', '0', '-o', 'num.partitions=2']);"
        "print(*(name for name in ('click', 'rich', 'asyncio', 'argparse') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "words", [[], ["broker"], ["topic"], ["topic", "create"], ["produce"], ["consume"], ["demo"]]
)
def test_help_teaches(words: list[str], penstock: Penstock) -> None:
    code, out, err = penstock(*words, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(b"Usage: penstock")
    if words != ["topic", "create"]:
        assert b"  penstock " in out
