"""Tests of a broker with a second listener that speaks Kafka 0.7's protocol."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock import Broker
from penstock.broker.config.broker_keys import BROKER_KEYS
from penstock.broker.network.kafka07 import PREFIX
from penstock.errors import ConfigError, NetworkError
from penstock.v07.driver import Driver07
from penstock.v07.settings import NUMBERS, PER_TOPIC, TEXTS

MODERN = b"another topic of that name"


def values(address: str | None, topic: str) -> list[bytes]:
    assert address is not None
    return penstock.read_topic(topic, address, protocol="0.7")["value"].to_pylist()


def connected(address: str | None) -> Driver07:
    assert address is not None
    host, port = address.split(":")
    return Driver07(host, int(port))


def send(address: str | None, topic: str, *payloads: bytes) -> None:
    with connected(address) as driver:
        driver.send(topic, payloads, partition=0)
        driver.latest(topic, 0)  # an answer: everything before it has been taken


@pytest.mark.parametrize("on_disk", [False, True])
def test_both_listeners_keep_their_data_and_ports_over_a_restart(tmp_path: Path, on_disk: bool) -> None:
    broker = Broker(tmp_path if on_disk else None, listen_07=0)
    assert broker.address_07 is None
    with broker:
        where = broker.address_07
        send(where, "t", b"one", b"two")
        penstock.write_topic(pa.table({"value": [MODERN]}), "t", broker.bootstrap_servers)
    with broker:
        assert broker.address_07 == where
        assert values(where, "t") == [b"one", b"two"]
        modern = penstock.read_topic("t", broker.bootstrap_servers)
        assert modern["value"].to_pylist() == [MODERN]
    assert (tmp_path / "kafka-0.7" / "t-0").is_dir() == on_disk
    if on_disk:
        assert penstock.read_log(tmp_path / "kafka-0.7", "t")["value"].to_pylist() == [b"one", b"two"]


def test_a_broker_without_it_makes_no_directory(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        assert broker.address_07 is None
    assert not (tmp_path / "kafka-0.7").exists()


def test_settings_of_0_7_go_by_their_own_names() -> None:
    named = {name.removeprefix(PREFIX) for name in BROKER_KEYS if name.startswith(PREFIX)}
    ours = {name for name in NUMBERS if name.startswith("penstock.")}  # those of the broker hold
    assert named == {*NUMBERS, *TEXTS, *PER_TOPIC, "host", "port"} - ours
    with Broker(listen_07=0, config={"penstock.0.7.num.partitions": 3}) as broker:
        send(broker.address_07, "t", b"x")
        with connected(broker.address_07) as driver:
            assert driver.partition_count("t") == 3


@pytest.mark.parametrize(
    ("config", "error", "told"),
    [
        ({"penstock.0.7.num.partition": 3}, ConfigError, "penstock.0.7.num.partitions"),
        ({"penstock.0.7.num.partitions": "many"}, ConfigError, "num.partitions is a whole number"),
        ({"penstock.0.7.port": 70_000}, ConfigError, "65535"),
        ({"penstock.0.7.host": "203.0.113.7"}, NetworkError, "cannot listen for Kafka 0.7 on 203.0.113.7:0"),
    ],
)
def test_what_does_not_fit_is_named(config: dict[str, object], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=re.escape(told)), Broker(config={"penstock.0.7.port": 0} | config):
        pytest.fail("it has started")


def test_the_command_says_where(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "broker", "--port", "0", "--listen-0.7", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "listening on" in process.stdout.readline()
        told = re.search(r"Kafka 0\.7 at (\S+)", process.stderr.readline())
        assert told is not None
        try:
            send(told[1], "t", b"one")
            assert values(told[1], "t") == [b"one"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
