"""Tests of ``penstock gateway``: the addresses it listens on, its output, and the options it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from penstock.broker.security.throwaway import Security
from penstock.cli import main
from penstock.cli.gateway import port_range
from penstock.cli.listing import NOUNS
from penstock.client import Admin
from penstock.errors import ConfigError
from penstock.testing import KafkaBroker
from penstock.v07.driver import Driver07


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", "gateway", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_gateway_runs_until_it_is_to_stop() -> None:
    with KafkaBroker() as broker:
        process = start("--to", broker.bootstrap_servers, "--port", "0")
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("gateway at 127.0.0.1:")
            assert line.endswith(f"cluster at {broker.bootstrap_servers}\n")
            with Admin(bootstrap_servers=line.split()[2].rstrip(",")) as admin:
                [node] = admin.describe_cluster().nodes
                assert node.port != broker.port
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=20)
            assert process.returncode == 0
            assert f"INFO broker 1 at {broker.bootstrap_servers} is found at port {node.port}" in log
        finally:
            process.kill()
            process.communicate()


def test_a_gateway_prints_which_clients_send_what() -> None:
    with KafkaBroker() as broker:
        process = start("--to", broker.bootstrap_servers, "--port", "0", "--watch", "-d", "200ms")
        try:
            assert process.stdout is not None
            at = process.stdout.readline().split()[2].rstrip(",")
            with Admin(bootstrap_servers=at) as admin:
                admin.list_topics()
            while not (line := process.stdout.readline()).startswith("penstock"):
                assert line
            assert line.split()[2:5] == ["-", "127.0.0.1", "ApiVersions"]
        finally:
            process.kill()
            process.communicate()


def test_a_gateway_prints_lines_of_json() -> None:
    with KafkaBroker() as broker:
        process = start("--to", broker.bootstrap_servers, "--port", "0", "--watch", "-d", "10m", "-J")
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while "is found at port" not in line:
                line = process.stderr.readline()
            with Admin(bootstrap_servers=f"127.0.0.1:{line.split()[-1]}") as admin:
                admin.list_topics()
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
            rows = [json.loads(line) for line in out.splitlines()]
            assert {row["api"] for row in rows} >= {"ApiVersions", "Metadata"}
            assert all(list(row) == [field.name for field in NOUNS["gateway client"]] for row in rows)
            assert all(row["is_spoken"] for row in rows)
        finally:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "a:b"], "is not host:port"),
        (["--to", "a:1", "--ports", "9-x"], "FIRST-LAST is needed"),
        (["--to", "a:1", "--json"], "give both"),
        (["--to", "a:1", "-X", "nonsense=1"], "nonsense"),
        (["--to", "a:1", "--watch", "-d", "1ms"], "at least 100 ms"),
    ],
)
def test_what_does_not_fit_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "--port", "0", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_file_of_accounts_that_others_can_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "accounts.toml"
    path.write_text("")
    path.chmod(0o644)
    assert main(["gateway", "--port", "0", "--to", "a:1", "--accounts", str(path)]) == 2
    assert f"chmod 600 {path}" in capsys.readouterr().err


def test_devices_log_in_at_a_gateway_of_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "accounts.toml"
    path.write_text('[users.device]\npassword = "device-1"\n[users.device.cluster]\n')
    path.chmod(0o600)
    security = Security("SSL")
    security.settings("127.0.0.1", 0)  # makes the certificate
    words = ["--accounts", str(path), "--tls-cert", str(security.directory / "server.pem")]
    with KafkaBroker() as broker:
        process = start("--to", broker.bootstrap_servers, "--port", "0", *words)
        try:
            assert process.stdout is not None
            at = process.stdout.readline().split()[2].rstrip(",")
            config = {
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": security.ca_file,
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": "device",
                "sasl.password": "device-1",
            }
            with Admin(bootstrap_servers=at, config=config) as admin:
                assert len(admin.describe_cluster().nodes) == 1
            process.send_signal(signal.SIGTERM)
            out, log = process.communicate(timeout=20)
            assert process.returncode == 0
            assert "device-1" not in out + log
        finally:
            process.kill()
            process.communicate()


def test_ranges_of_ports() -> None:
    assert port_range("9093-9095") == range(9093, 9096)
    assert port_range(" 9093 ") == range(9093, 9094)
    for text in ("", "-", "9095-9093", "0-5", "1-65536", "a"):
        with pytest.raises(ConfigError):
            port_range(text)


def test_a_gateway_writes_metrics_a_log_and_conversations(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    with KafkaBroker() as broker:
        words = ["--to", broker.bootstrap_servers, "--port", "0", "--metrics-port", "0"]
        process = start(*words, "--access-log", str(log), "--explain", "127.0.0.1")
        try:
            assert process.stderr is not None
            ports: dict[str, str] = {}
            while len(ports) < 2:
                line = process.stderr.readline()
                if "is found at port" in line:
                    ports["broker"] = line.split()[-1]
                elif "metrics at" in line:
                    ports["metrics"] = line.split()[-1]
            with Admin(bootstrap_servers=f"127.0.0.1:{ports['broker']}") as admin:
                admin.list_topics()
            text = urllib.request.urlopen(ports["metrics"]).read().decode()
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=20)
        finally:
            process.kill()
            process.communicate()
    assert 'api="Metadata"' in text
    assert {json.loads(line)["name"] for line in out.splitlines()} >= {"MetadataRequest", "MetadataResponse"}
    assert "Metadata" in {json.loads(line)["api"] for line in log.read_text().splitlines()}


def test_explaining_and_watching_at_once_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "--to", "localhost:1", "--watch", "--explain", "127.0.0.1"]) != 0
    assert "both print" in capsys.readouterr().err


def test_a_gateway_serves_clients_of_0_7() -> None:
    with KafkaBroker() as broker:
        process = start(
            "--to", broker.bootstrap_servers, "--port", "0", "--v07-port", "0", "--v07-messages", "plain"
        )
        try:
            assert process.stdout is not None
            process.stdout.readline()
            line = process.stdout.readline()
            assert line.startswith("Kafka 0.7 at 127.0.0.1:")
            with Driver07("127.0.0.1", int(line.rpartition(":")[2])) as driver:
                driver.send("old", [b"{}"], partition=0)
                while not driver.latest("old", 0):
                    pass
                (message,) = driver.messages("old", 0, driver.earliest("old", 0))
            assert json.loads(message.payload) == {}
        finally:
            process.kill()
            process.communicate()
