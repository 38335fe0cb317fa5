"""``penstock mirror`` as somebody with an old broker would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Broker, read_topic
from penstock.cli import main
from penstock.v07.driver import Driver07
from penstock.v07.server import Broker07


def test_a_topic_leaves_kafka_0_7(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker07(tmp_path / "old") as old, Broker() as new:
        with Driver07(old.host, old.port) as driver:
            driver.send("events", [b"one", b"two"], partition=0)
            assert driver.latest("events", 0)
        words = [
            "mirror",
            "--from-0.7",
            f"{old.host}:{old.port}",
            "-t",
            "events",
            "-b",
            new.bootstrap_servers,
        ]
        assert main([*words, "-z", "gzip"]) == 0
        out, err = capsys.readouterr()
        assert out == "copied 2 messages of events to events\n"
        assert err == "partition 0: 2 messages, byte 26 of 26\n"
        assert main([*words, "-q"]) == 0
        assert capsys.readouterr() == ("copied 0 messages of events to events\n", "")
        assert read_topic("events", new.bootstrap_servers)["value"].to_pylist() == [b"one", b"two"]
        assert main([*words[:2], "127.0.0.1:1", *words[3:]]) == 1
        err = capsys.readouterr().err
        assert "Kafka 0.7 broker 127.0.0.1:1: connection refused" in err
        assert err.count("\n") == 1
