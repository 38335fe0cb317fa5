"""Tests of completion with the TAB key: commands, options, and names that the broker returns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from penstock import Admin, Broker, Consumer
from penstock.cli import main

Complete = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        for name in ("delays", "dead-letters", "flights"):
            admin.create_topic(name)
        with Consumer(broker.bootstrap_servers, group_id="billing") as consumer:
            consumer.assign([("delays", 0)])
            consumer.commit({("delays", 0): 0})
        yield broker.bootstrap_servers


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Return a function that returns the completions for a typed command line.

    The text after the last space is the beginning of the word to complete.
    """

    def words(typed: str) -> list[str]:
        monkeypatch.setenv("_PENSTOCK_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", f"penstock {typed}")
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" "))))
        assert main([]) == 0
        return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line]

    return words


def test_commands_and_options(complete: Complete) -> None:
    assert {"broker", "topic", "completion"} <= set(complete(""))
    assert complete("topic d") == ["delete", "describe"]
    assert "--group" in complete("consume --g")
    assert complete("produce -z z") == ["zstd"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("topic describe -b {} de", ["dead-letters", "delays"]),
        ("topic delete -b {} flights d", ["dead-letters", "delays"]),
        ("consume -b {} -t fl", ["flights"]),
        ("produce -b {} -t none", []),
        ("consume -b {} -G ", ["billing"]),
        ("group lag -b {} b", ["billing"]),
        ("config describe -b {} del", ["delays"]),
        ("config get -b {} fl", ["flights"]),
        ("config get -b {} flights retention.", ["retention.bytes", "retention.ms"]),
        ("config set -b {} --node 1 num.par", ["num.partitions"]),
        ("topic describe -b {} __consumer", ["__consumer_offsets"]),
    ],
)
def test_names_of_the_cluster(complete: Complete, servers: str, typed: str, found: list[str]) -> None:
    assert complete(typed.format(servers)) == found


def test_no_cluster_is_no_error(complete: Complete, capsys: pytest.CaptureFixture[str]) -> None:
    assert complete("topic describe -b 127.0.0.1:1 de") == []
    assert capsys.readouterr().err == ""


def test_messages_or_files(complete: Complete) -> None:
    assert complete("schema show FetchRe") == ["FetchRequest", "FetchResponse"]
    assert complete("schema show ./Lamp") == ["./Lamp"]  # of the type "file", which the shell completes


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_the_shell_is_told(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in script
    assert "penstock" in script


def test_bash_takes_it() -> None:
    line = f'eval "$({sys.executable} -m penstock completion bash)" && complete -p penstock'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_penstock_completion" in done.stdout
