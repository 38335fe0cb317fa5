"""Tests of commands at brokers of old Kafka releases: they print the fields that those brokers return."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from old_brokers import ask_0_9_briefly
from penstock import Producer
from penstock.cli import main
from penstock.client.blocking.admin import Admin
from penstock.testing import KafkaBroker

RELEASES = ["0.8.1", "0.8.2", "0.9", "0.10.0", "0.10.2", "0.11"]


@pytest.fixture(params=RELEASES)
def servers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    ask_0_9_briefly(request.param, monkeypatch)
    with KafkaBroker(as_version=request.param) as broker:
        servers = broker.bootstrap_servers
        with Producer(servers) as producer:
            for number in range(3):
                producer.send("t", b"%d" % number)
        with Admin(servers) as admin:
            admin.alter_group_offsets("g", {("t", 0): 1})
        yield servers


def test_what_a_release_can_tell(servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*words: str) -> str:
        assert main([*words, "-b", servers]) == 0
        return capsys.readouterr().out

    described = told("topic", "describe", "t").splitlines()
    assert described[2].split() == ["0", "1", "1", "1", "0", "3"]
    row = json.loads(told("topic", "describe", "t", "--json"))
    assert (row["first_offset"], row["next_offset"]) == (0, 3)
    assert json.loads(told("group", "lag", "g", "--json"))["lag"] == 2
    assert json.loads(told("group", "reset", "g", "--to-latest", "--json"))["new"] == 3
    rows = [json.loads(line) for line in told("top", "-n", "1", "-G", "g", "--json").splitlines()]
    assert [(each.get("records"), each.get("lag")) for each in rows if each.get("topic", "t") == "t"] == [
        (3, None),
        (None, 2),
    ]


@pytest.mark.parametrize(("release", "says"), [("0.10.2", "older than Kafka 0.11"), ("0.11", "")])
def test_settings_that_are_not_told_are_said_to_be_unknown(
    release: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with KafkaBroker(as_version=release) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topic("t")
        assert main(["topic", "describe", "t", "-b", broker.bootstrap_servers]) == 0
    out = capsys.readouterr().out
    assert says in out
    assert ("settings unknown" in out) is bool(says)
