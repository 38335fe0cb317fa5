"""Tests that invalid arguments, files and numbers are reported in one line as the user's mistake."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from for_each import for_each
from penstock import Broker, read_topic
from penstock.cli import main
from penstock.cli.positions import parse_span
from penstock.errors import ConfigError

ODD = "\udcff"
"""The character as which Python passes a byte that is not valid UTF-8 on the command line."""

HUGE = "9" * 25


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def penstock(*words: str) -> tuple[int, str]:
    """Run a command in a process of its own; return its exit code and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=120,
    )
    return done.returncode, done.stderr


CASES: list[tuple[tuple[str, ...], str]] = [
    (("topic", "create", ODD), "is not UTF-8 text"),
    (("topic", "create", "x", "--config", f"{ODD}=1"), "is not UTF-8 text"),
    (("topic", "create", "x", "--partitions", HUGE), "is not in the range 1<=x<=2147483647"),
    (("topic", "create", "x", "--replication-factor", HUGE), "is not in the range 1<=x<=32767"),
    (("topic", "grow", "x", "--partitions", HUGE), "is not in the range"),
    (("topic", "trim", "x", "--before", f"0:{HUGE}"), "--before takes PARTITION:OFFSET"),
    (("topic", "trim", "x", "--before", "0:\u00b2"), "--before takes PARTITION:OFFSET"),
    (("config", "describe", "--node", HUGE), "is not in the range"),
    (("config", "set", "x", f"retention.ms={ODD}"), "is not UTF-8 text"),
    (("group", "describe", ODD), "is not UTF-8 text"),
    (("group", "reset", "g", "--topic", "t", "--to-offset", HUGE), "is not in the range"),
    (("group", "reset", "g", "--topic", "t", "--shift-by", HUGE), "is not in the range"),
    (("group", "reset", "g", "--topic", "t", "--by-duration", f"PT{HUGE}H"), "that is before 1970"),
    (("consume", "-t", ODD), "is not UTF-8 text"),
    (("consume", "-t", "t", "-G", ODD), "is not UTF-8 text"),
    (("produce", "-t", ODD, __file__), "is not UTF-8 text"),
    (("produce", "-t", "t", "-X", f"client.id={ODD}", __file__), "is not UTF-8 text"),
    (("produce", "-t", "t", "/dev/zero"), "/dev/zero has more than 1048576 bytes"),
    (("produce", "-t", "t", "-l", "/dev/zero"), "a message without an end after 1048576 bytes"),
    (("mirror", "--from-0.7", "zookeeper://x:y/z", "-t", "t"), "does not say where a ZooKeeper is"),
]
"""Arguments of commands that are invalid, each with the expected error text."""

EACH_IN_TURN = """
import ast, sys
from penstock.cli import main
for words in ast.literal_eval(sys.stdin.readline()):
    code = main(words)
    print(code, file=sys.stderr)
    print(flush=True, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def told(address: str) -> list[tuple[int, str]]:
    """Run all `CASES` in one process, since starting it is slow; return exit codes and error texts."""
    done = subprocess.run(
        [sys.executable, "-c", EACH_IN_TURN],
        input=ascii([(*words, "-b", address) for words, _ in CASES]) + "\n",
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    print(done.stderr)
    answers = [each.rpartition("\n") for each in done.stderr.split("\n\n")[:-1]]
    return [(int(code), said) for said, _, code in answers]


@for_each(range(len(CASES)))
def test_what_makes_no_sense_is_told_in_one_line(number: int, told: list[tuple[int, str]]) -> None:
    code, said = told[number]
    assert code == 2, said
    lines = [line for line in said.splitlines() if "waiting for" not in line]
    assert len(lines) == 1
    assert CASES[number][1] in lines[0]
    assert "bug" not in lines[0]
    assert "codec" not in lines[0]


def test_a_word_that_is_no_text_comes_from_a_command_line(address: str) -> None:
    """A command line can hold bytes that are not UTF-8.

    `CASES` are passed to their process as text, so this test starts a process with such a byte.
    """
    code, said = penstock("topic", "create", ODD, "-b", address)
    assert code == 2
    assert "is not UTF-8 text" in said


def test_a_broker_is_given_a_file_of_settings_that_has_no_end() -> None:
    code, said = penstock("broker", "--config-file", "/dev/zero", "--port", "0")
    assert code == 2
    assert said == "penstock: /dev/zero has more than 1048576 characters: that is no server.properties\n"


def test_what_is_sent_may_be_any_bytes(address: str) -> None:
    words = ("produce", "-t", "bytes", "-b", address, "-k", ODD, "-H", f"h={ODD}", __file__)
    assert penstock("topic", "create", "bytes", "-b", address)[0] == 0
    assert penstock(*words, "-q") == (0, "")
    table = read_topic("bytes", address)
    assert table["key"].to_pylist() == [b"\xff"]
    assert table["headers"].to_pylist() == [[{"key": "h", "value": b"\xff"}]]


def test_offsets_of_any_length_are_refused() -> None:
    with pytest.raises(ConfigError):
        parse_span([HUGE])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("topic create x --partitions two", "'two' is not a whole number; see penstock topic create --help"),
        ("consume -X", "requires an argument; see penstock consume --help"),
        ("topic create x --partitions", "requires an argument; see penstock topic create --help"),
        ("topic list -b 127.0.0.1:99999", "'127.0.0.1:99999': ports go from 1 to 65535"),
        ("topic list -b 127.0.0.1:0", "'127.0.0.1:0': ports go from 1 to 65535"),
        ("topic list -b 127.0.0.1:x", "'127.0.0.1:x' is not host:port"),
        ("topic list -b 127.0.0.1:٩", "is not host:port"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


def test_one_of_a_thing_is_not_several(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["topic", "create", "only", "-b", broker.bootstrap_servers]) == 0
        assert main(["cluster", "describe", "-b", broker.bootstrap_servers]) == 0
    out = capsys.readouterr().out
    assert "1 topic with 1 partition\n" in out
    assert "0 partitions without a leader" in out


def test_a_topic_without_settings_of_its_own_is_not_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["topic", "create", "plain", "-b", broker.bootstrap_servers]) == 0
        capsys.readouterr()
        assert main(["config", "describe", "plain", "-b", broker.bootstrap_servers]) == 0
    out, err = capsys.readouterr()
    assert (out, err.count("plain has no settings of its own; --all shows the defaults")) == ("", 1)


def test_rules_without_an_authorizer_are_told_what_to_set(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acl", "list", "-b", address]) == 1
    err = capsys.readouterr().err
    assert ".:" not in err
    assert "(SECURITY_DISABLED); access rules need authorizer.class.name among the settings" in err
