"""Tests of ``penstock mirror``, which copies topics from a Kafka 0.7 broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Admin, Broker, Producer, read_topic
from penstock.cli import main
from penstock.cli.listing import NOUNS
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


def test_topics_go_from_one_kafka_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "penstock").mkdir()
    with Broker() as old, Broker() as new:
        profile = f"[old]\nbootstrap.servers = '{old.bootstrap_servers}'\nclient.id = 'mirror'\n"
        (tmp_path / "penstock" / "config.toml").write_text(profile)
        with Producer(old.bootstrap_servers) as producer:
            for topic in ("a", "b"):
                producer.send(topic, topic.encode(), key=b"k").result()
        words = ["mirror", "-t", "a", "-t", "b", "-b", new.bootstrap_servers]
        assert main([*words, "--from", old.bootstrap_servers]) == 0
        assert capsys.readouterr().out == "copied 1 messages of a to a\ncopied 1 messages of b to b\n"
        assert main([*words, "--from-profile", "old", "--json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        for row in rows:
            assert list(row) == [field.name for field in NOUNS["mirror"]]
        assert [(row["topic"], row["copied"], row["end"]) for row in rows] == [("a", 0, 1), ("b", 0, 1)]
        assert read_topic("b", new.bootstrap_servers)["key"].to_pylist() == [b"k"]


def test_groups_go_along_and_a_check_compares(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as old, Broker() as new:
        with Producer(old.bootstrap_servers, transactional_id="x") as producer:
            for value in (b"1", b"2", b"3"):
                with producer.transaction():
                    producer.send("t", value, partition=0)
        with Admin(old.bootstrap_servers) as admin:
            for group, offset in (("billing", 2), ("billing-2", 6), ("other", 0)):
                admin.alter_group_offsets(group, {("t", 0): offset})
        words = ["mirror", "-t", "t", "--from", old.bootstrap_servers, "-b", new.bootstrap_servers]
        assert main([*words, "--groups", "bill*"]) == 0
        assert capsys.readouterr().out == (
            "copied 3 messages of t to t\nmoved 2 offsets of 2 groups: billing, billing-2\n"
        )
        with Admin(new.bootstrap_servers) as admin:
            assert "other" not in {group.group_id for group in admin.list_groups()}
            moved = [admin.list_group_offsets(group)["t", 0].offset for group in ("billing", "billing-2")]
        assert moved == [1, 4]  # the second record, and the end behind the copy's marker
        assert main([*words, "-g", "none", "--json"]) == 0
        (row,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (row["copied"], row["position"], row["moved"]) == (0, 6, 0)
        assert main([*words, "--check"]) == 0
        assert capsys.readouterr().out == "t-0: 3 the same\n"
        assert main([*words, "--check", "--json"]) == 0
        (row,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert list(row) == [field.name for field in NOUNS["mirror check"]]
        with Producer(new.bootstrap_servers) as producer:
            producer.send("t", b"foreign", partition=0).result()
        with Producer(old.bootstrap_servers) as producer:
            producer.send("t", b"4", partition=0).result()
        assert main(words) == 0
        capsys.readouterr()
        assert main([*words, "--check"]) == 1
        out, err = capsys.readouterr()
        assert out == "t-0: 4 the same, 1 different\n  offset none, in the target 4: is not of the copy\n"
        assert "1 records differ" in err


def test_progress_as_json_is_there_while_the_copy_goes_on() -> None:
    with Broker() as old, Broker() as new:
        with Producer(old.bootstrap_servers) as producer:
            producer.send("t", b"v").result()
        words = [
            "mirror",
            "-t",
            "t",
            "--from",
            old.bootstrap_servers,
            "-b",
            new.bootstrap_servers,
            "-f",
            "--json",
        ]
        with subprocess.Popen([sys.executable, "-m", "penstock", *words], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            row = json.loads(process.stdout.readline())
            process.kill()
    assert row["copied"] == 1


def test_offsets_are_kept_in_penstock(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as old, Broker() as new:
        with Producer(old.bootstrap_servers, transactional_id="x") as producer:
            for value in (b"1", b"2", b"3"):
                with producer.transaction():
                    producer.send("t", value, partition=0)
        words = ["mirror", "-t", "t", "--from", old.bootstrap_servers, "-b", new.bootstrap_servers]
        assert main([*words, "--keep-offsets"]) == 0
        assert main([*words, "--keep-offsets", "--check"]) == 0
        assert capsys.readouterr().out == "copied 3 messages of t to t\nt-0: 3 the same\n"
        assert read_topic("t", new.bootstrap_servers)["offset"].to_pylist() == [0, 2, 4]
        with Admin(new.bootstrap_servers) as admin:
            assert admin.list_topics() == ["t"]  # no map is needed
        assert main(words) == 2
        assert "penstock config set t penstock.keep.offsets=false" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-t a --from-0.7 y:1 --groups g", "--from-0.7 takes none of --groups"),
        ("-t a --from x:1 --check -f", "--check copies nothing"),
        ("-t a", "say where to copy from"),
        ("-t a -t b --from x:1 --target-topic c", "--target-topic names one topic"),
        ("-t a -t b --from x:1 --name c", "--name names one copy"),
        ("-t a --from x:1 --from-0.7 y:1", "--from-0.7 takes one topic, and none of"),
        ("-t a --from-profile none", "--from-profile: there are no profiles"),
    ],
)
def test_mistakes(
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["mirror", *words.split()]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
