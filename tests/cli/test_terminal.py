"""Tests that commands escape control characters from records and brokers on a terminal.

To pipes and files they write such characters unchanged.
"""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import threading
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Broker
from penstock.cli import main
from penstock.client import Consumer, Producer
from penstock.client.admin.configs import ConfigValue
from penstock.client.admin.groups import GroupDescription, GroupListing, MemberDescription
from penstock.client.admin.topics import TopicDescription
from penstock.client.cluster.metadata import BrokerNode, PartitionInfo
from penstock.client.fetch.offsets import OffsetAt
from penstock.cloudevents import Event, to_record
from penstock.errors import KafkaError
from penstock.model import TopicPartition

EVIL = "\x1b[2J\x1b]0;owned\x07\nforged line\r\x9b31m\u202e\u2028[red]\udc80"
"""Text whose control characters clear a screen, forge a line, or change the title, colours or direction.

Its last character cannot be encoded as UTF-8.
"""

SENT = EVIL.removesuffix("\udc80")

Run = Callable[..., tuple[int, str, str]]


class Terminal:
    """A pseudo terminal that replaces stdout. Stderr counts as a terminal too, but is read separately."""

    def __init__(self) -> None:
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.stdout = open(slave, "w", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        self._data = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 65536):
                self._data += data
        except OSError:  # how a terminal ends on Linux
            pass

    def close(self) -> str:
        self.stdout.close()
        self._reader.join()
        os.close(self._master)
        return self._data.decode("utf-8", "surrogateescape")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command on a terminal: exit code, stdout and stderr.

    It raises AssertionError if the output has a control character.
    """

    def run_words(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        terminal = Terminal()
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal.stdout)
            code = main(words)
        out, err = terminal.close(), capsys.readouterr().err
        for line in (out + err).split("\n"):
            assert line.replace("\t", "").isprintable(), (words, line)
            assert not line.startswith("forged"), words
        return code, out, err

    return run_words


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Start a broker whose records and group have control characters in their texts; yield its address."""
    value = f"value {SENT}".encode() + b"\xff"
    event = Event(id="1", source="/s", type="t", data=f"data {SENT}".encode(), datacontenttype="text/plain")
    with Broker() as one, Producer(one.bootstrap_servers) as producer:
        for headers in ([(f"name{SENT}", f"content {SENT}".encode())], []):
            producer.send("t", value, key=f"key {SENT}".encode(), headers=headers).result()
        key, data, headers_of_event = to_record(event, headers=[("other", SENT.encode())])
        producer.send("events", data, key=key, headers=headers_of_event).result()
        producer.send("events", b"no event", headers=[("ce_id", SENT.encode())]).result()
        config = {"group.id": f"group {SENT}", "client.id": f"client {SENT}", "auto.offset.reset": "earliest"}
        with Consumer(one.bootstrap_servers, config=config) as consumer:
            consumer.subscribe("t")
            while not consumer.poll(timeout_ms=1000):
                pass
            consumer.commit()
            yield one.bootstrap_servers


@pytest.mark.parametrize(
    "words",
    [
        "consume -t t -e",
        "consume -t t -e -J",
        "consume -t t -e -K :",
        "consume -t t -e -f %t/%p/%o/%T:%k=%s;%h(%S,%K)\\n",
        "consume -t t -G new -e",
        "group list",
        "group list -v",
        "event read -t events -e",
        "event read -t events -e --jsonl",
        "topic list",
        "topic describe t",
        "config describe t --all",
    ],
)
def test_what_a_broker_holds(broker: str, run: Run, words: str) -> None:
    code, out, err = run(*words.split(" "), "-b", broker)
    assert code == 0, err
    if words.startswith("consume"):
        assert out.count("forged line") >= 2
        assert ("\\u001b[2J" if "-J" in words else "\\x1b[2J") in out


def test_a_group_with_a_hostile_name(broker: str, run: Run) -> None:
    name = f"group {SENT}"
    for words in (["describe"], ["lag"], ["reset", "--to-earliest"], ["delete"]):
        _, out, err = run("group", words[0], name, *words[1:], "-b", broker)
        assert out or err
    code, out, _ = run("group", "describe", name, "-b", broker)
    assert code == 0
    assert "client \\x1b[2J" in out


def test_names_that_there_are_not(broker: str, run: Run) -> None:
    for words in (
        ["topic", "describe", SENT],
        ["topic", "create", SENT],
        ["topic", "delete", SENT],
        ["topic", "trim", SENT],
        ["consume", "-t", SENT, "-e"],
        ["consume", "-t", "t", "-o", SENT],
        ["consume", "-t", "t", "-f", f"%{SENT}"],
        ["config", "get", "t", SENT],
        ["config", "set", "t", f"{SENT}=1"],
        ["event", "read", "-t", SENT, "-e"],
        ["group", "describe", SENT],
    ):
        code, out, err = run(*words, "-b", broker)
        assert (code, out) != (0, "")
        assert code == 0 or err


def test_raw_is_what_one_asks_for_and_what_a_pipe_gets(
    broker: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal.stdout)
        assert main(["consume", "-t", "t", "-e", "-c", "1", "--raw", "-b", broker]) == 0
    whole = f"value {SENT}".encode() + b"\xff\n"
    assert terminal.close().encode("utf-8", "surrogateescape") == whole
    capsysbinary.readouterr()
    assert main(["consume", "-t", "t", "-e", "-c", "1", "-b", broker]) == 0
    assert capsysbinary.readouterr().out == whole
    assert main(["group", "list", "-b", broker]) == 0
    assert f"group {SENT}".encode() in capsysbinary.readouterr().out


# -- what only a hostile broker says


class HostileAdmin:
    """A stand-in for an admin client that returns text with control characters in every field."""

    def __init__(self, *_: object, **__: object) -> None:
        self.place = TopicPartition(f"topic {EVIL}", 0)

    def __enter__(self) -> HostileAdmin:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def list_topics(self, **_: object) -> list[str]:
        return [self.place.topic]

    def describe_topics(self, names: list[str]) -> list[TopicDescription]:
        return [TopicDescription(name, [PartitionInfo(0, 1)], f"id {EVIL}") for name in names]

    def list_offsets(self, places: dict[TopicPartition, int]) -> dict[TopicPartition, OffsetAt]:
        return {place: OffsetAt(5) for place in places}

    def list_group_offsets(self, name: str) -> dict[TopicPartition, OffsetAt]:
        return {self.place: OffsetAt(1)}

    def describe_config(self, *_: object, **__: object) -> dict[str, ConfigValue]:
        return {
            f"name {EVIL}": ConfigValue(f"value {EVIL}", False, False, False),
            "n": ConfigValue(EVIL, False, False, False),
        }

    def delete_records(self, bounds: dict[Any, int]) -> dict[TopicPartition, int]:
        return {self.place: 5}

    def list_groups(self, **_: object) -> list[GroupListing]:
        return [GroupListing(f"group {EVIL}", f"type {EVIL}", f"state {EVIL}")]

    def describe_groups(self, names: list[str]) -> list[GroupDescription]:
        member = MemberDescription(
            *[f"{word} {EVIL}" for word in ("id", "instance", "client", "host")], (self.place,)
        )
        node = BrokerNode(1, f"host {EVIL}", 9092)
        return [GroupDescription(f"g {EVIL}", f"s {EVIL}", EVIL, f"a {EVIL}", node, (member,))]

    def alter_group_offsets(self, name: str, plan: object) -> None:
        pass

    def delete_topics(self, names: object) -> None:
        raise KafkaError(87, "INVALID_RECORD", f"the broker says: {EVIL}")


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["topic", "describe", EVIL],
        ["topic", "trim", "t"],
        ["topic", "delete", "t"],
        ["group", "list"],
        ["group", "list", "-v"],
        ["group", "describe", "g"],
        ["group", "lag", "g"],
        ["group", "reset", "g", "--to-earliest"],
        ["group", "reset", EVIL, "--to-earliest", "--execute"],
        ["config", "describe", "t"],
        ["config", "get", "t", "n"],
        ["config", "get", "t", "m"],
    ],
    ids=lambda words: ascii(" ".join(words))[:40],
)
def test_what_a_broker_says(run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setattr("penstock.client.Admin", HostileAdmin, raising=False)
    _, out, err = run(*words)
    assert "\x1b[2J" not in out + err
    assert out + err != ""
    if words[-1] != "m":
        assert "\\x1b[2J\\x1b]0;owned\\x07\\nforged line\\r\\x9b31m\\u202e\\u2028[red]\\udc80" in out + err


# -- files


def test_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"evil {SENT.replace('/', '')}.json"
    definition = {
        "name": "Evil", "type": "data", "validVersions": "0", "flexibleVersions": "none",
        "fields": [{"name": "A", "type": "string", "versions": "0+", "default": f"default {SENT}"}],
    }  # fmt: skip
    path.write_text(json.dumps(definition))
    other = tmp_path / "other.json"
    other.write_text(
        json.dumps({**definition, "fields": [{"name": "A", "type": "string", "versions": "0+"}]})
    )
    sample = tmp_path / "sample.json"
    sample.write_text(json.dumps({"a": SENT}))
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "/s",
        "type": "t",
        "x": "\u200f",
        "data": f"data {SENT}\x7f",
    }
    one = tmp_path / "event.json"
    one.write_text(json.dumps(event))
    for words in (
        ["schema", "show", path],
        ["schema", "code", path, "0"],
        ["schema", "check", path, other],
        ["schema", "sizes", path, sample],
        ["wire", "encode", "-n", path, "-v", "0", sample],
        ["wire", "decode", "-n", path, "-v", "0", "--tree", b"\0\x08\x1b[2J\xc2\x9b\n".hex() + "0000"],
        ["wire", "decode", "-n", path, "-v", "0", "--tree", (b"\0\x07\x1b[2J\xc2\x9b\n").hex()],
        ["wire", "decode", "-n", path, "-v", "0", "--json", (b"\0\x07\x1b[2J\xc2\x9b\n").hex()],
        ["wire", "decode", tmp_path / f"missing {SENT.replace('/', '')}"],
        ["event", "validate", path],
        ["event", "validate", one],
        ["event", "encode", one],
        ["event", "encode", "--mode", "structured", one],
        ["event", "convert", "--to", "json-batch", one],
        ["event", "convert", "--to", "avro", one],
        ["event", "decode", "-H", "content-type=application/cloudevents+json", one],
        ["event", "decode", "--jsonl", one],
        ["event", "encode", "--jsonl", one],
        ["event", "validate", "--jsonl", one],
    ):
        _, out, err = run(*map(str, words))
        assert out or err, words
