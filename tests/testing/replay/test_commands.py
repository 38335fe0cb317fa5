"""Tests of the commands for recordings of traffic, and of recordings in pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.testing import KafkaBroker
from penstock.testing.replay import Recording
from testing.replay.shop import capture, write_orders

SUITE = """
import pytest
from penstock import Producer


@pytest.mark.kafka(recording="orders.rec")
@pytest.mark.parametrize("key", [b"k0", b"other"])
def test_orders(kafka_broker, key):
    with Producer(kafka_broker.bootstrap_servers) as producer:
        producer.send("orders", b"masked", key=key, headers=[("trace", b"t-0")])


@pytest.mark.kafka(recording="orders.rec", otherwise="broker")
def test_more(kafka_broker):
    with Producer(kafka_broker.bootstrap_servers) as producer:
        producer.send("others", b"it").result(timeout=10)
"""


def test_a_capture_becomes_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk, made = tmp_path / "talk.pcap", tmp_path / "orders.rec"
    talk.write_bytes(capture())
    words = [
        "--mask-field",
        "customer.email",
        "--mask-match",
        "t-[0-9]",
        "--mask",
        "client_ids",
        "--port",
        "9092",
    ]
    assert main(["wire", "record", str(talk), str(made), *words]) == 0
    recording = Recording.load(made)
    assert recording.masked == ("client_ids", "values")
    assert capsys.readouterr().out == f"{made}: {len(recording.exchanges)} requests\n"


def test_a_recording_is_played_to_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "orders.rec"
    Recording.from_pcap(capture()).save(made)
    with KafkaBroker() as broker:
        assert main(["wire", "replay", str(made), broker.bootstrap_servers]) == 0
        assert capsys.readouterr().out == ""
    with KafkaBroker() as broker:
        write_orders(broker.bootstrap_servers, 2)
        assert main(["wire", "replay", str(made), broker.bootstrap_servers]) == 1
        assert capsys.readouterr().out == "Fetch: records of orders-0 was 10, is 12\n"


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    talk = tmp_path / "talk.pcap"
    talk.write_bytes(capture())
    assert main(["wire", "record", str(talk), str(tmp_path / "x"), "--mask", "everything"]) == 2
    assert "places out of values, keys, headers, client_ids" in capsys.readouterr().err
    assert main(["wire", "replay", str(talk), "127.0.0.1:1"]) == 1
    assert "is no recording of Penstock" in capsys.readouterr().err


def test_a_suite_with_a_recording(tmp_path: Path) -> None:
    from penstock.testing.replay import mask_all

    (tmp_path / "test_suite.py").write_text(SUITE)
    Recording.from_pcap(capture(), mask=mask_all("values")).save(tmp_path / "orders.rec")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "3 passed, 1 error" in done.stdout, done.stdout  # the error is that of the fixture
    assert "record 0 of the request has key b'other', recorded is b'k0'" in done.stdout
