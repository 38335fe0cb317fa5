"""Tests of a broker process in operation: metrics, log lines and graceful shutdown."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.bench_node import batch_of, produce_request
from broker.wire_client import WireClient
from penstock import Broker
from penstock.broker.network.metrics import CLIENT_CHARACTERS_MAX, CLIENT_IDS_MAX, ClientIdCounters
from penstock.broker.requests.routes import VersionedRoute
from penstock.errors import NetworkError
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic


def page(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = answer.read().decode()
        return text


def values(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@contextmanager
def metered() -> Iterator[tuple[Broker, int]]:
    with Broker(config={"penstock.metrics.port": 0, "max.connections.per.ip": 3}) as broker:
        assert broker.server is not None
        assert broker.server.metrics_port
        yield broker, broker.server.metrics_port


def write(client: WireClient) -> None:
    client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
    answer = client.ask(produce_request(batch_of(b"a", b"b")), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_metrics_tell_what_has_happened() -> None:
    with metered() as (broker, port), WireClient(broker.port) as client:
        write(client)
        found = values(page(port))
        assert found['penstock_request_seconds_count{api="Produce"}'] == 1
        assert found['penstock_request_seconds_bucket{api="Produce",le="+Inf"}'] == 1
        assert found['penstock_bytes_in_total{api="Produce"}'] > 100
        assert found['penstock_bytes_out_total{api="Metadata"}'] > 20
        assert found["penstock_connections"] == found["penstock_connections_accepted_total"] == 1
        assert found["penstock_topics"] == found["penstock_partitions"] == 1
        assert found['penstock_log_end_offset{topic="t",partition="0"}'] == 2
        assert found['penstock_log_bytes{topic="t",partition="0"}'] > 60
        assert found["process_resident_memory_bytes"] > 1e6
        with WireClient(broker.port), WireClient(broker.port), WireClient(broker.port) as refused:
            assert refused.is_closed_by_peer()
        assert values(page(port))["penstock_connections_refused_total"] == 1


def test_each_client_id_is_counted() -> None:
    odd = 'a "b"\\\n'
    with (
        metered() as (broker, port),
        WireClient(broker.port, client_id="one") as one,
        WireClient(broker.port, client_id=odd) as other,
    ):
        write(one)
        other.ask(MetadataRequest(topics=[]), 4)
        found = values(page(port))
    label = 'client_id="one"'
    assert found[f"penstock_client_requests_total{{{label}}}"] == 2
    assert found[f"penstock_client_bytes_in_total{{{label}}}"] > 100
    assert found[f"penstock_client_bytes_out_total{{{label}}}"] > 50
    assert found[f"penstock_client_seconds_total{{{label}}}"] > 0
    assert found['penstock_client_requests_total{client_id="a \\"b\\"\\\\\\n"}'] == 1
    assert found["penstock_client_ids_given_up_total"] == 0


def test_client_ids_have_counters_up_to_a_limit() -> None:
    clients = ClientIdCounters()
    for number in range(CLIENT_IDS_MAX):
        clients.of(f"client {number}").requests += 1
    clients.of("client 0").requests += 1
    clients.of("x" * 10_000)
    clients.of(None)
    assert len(clients.counts) == CLIENT_IDS_MAX
    assert clients.given_up == 2
    assert clients.counts["client 0"].requests == 2
    assert "client 1" not in clients.counts
    assert max(map(len, clients.counts)) == CLIENT_CHARACTERS_MAX


def test_the_log_names_the_client_id(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "penstock.broker")
    client_id = b"my\nclient"
    with Broker() as broker, WireClient(broker.port) as client:
        frame = b"\0\3\0\0\0\0\0\7\0\x09" + client_id  # Metadata without a body
        client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        assert client.is_closed_by_peer()
    assert "closing connection from 127.0.0.1, client id 'my\\nclient': a request that" in caplog.text


def test_an_error_of_the_broker_names_the_client_id(caplog: pytest.LogCaptureFixture) -> None:
    def fail(request: Any, context: Any) -> Any:
        raise RuntimeError("by this test")

    def failing(route: VersionedRoute) -> VersionedRoute:
        return route._replace(handle=fail)

    with (
        Broker(interceptors=[failing]) as broker,
        WireClient(broker.port, client_id="victim") as client,
    ):
        client.send(MetadataRequest(topics=[]), 0)
        assert client.is_closed_by_peer()
    assert "from 127.0.0.1, client id 'victim'; its connection is closed" in caplog.text


def test_a_wait_is_counted_when_it_ends() -> None:
    with metered() as (broker, port), WireClient(broker.port) as client, WireClient(broker.port) as writer:
        write(client)
        asked = FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1000)
        request = FetchRequest(
            min_bytes=1, max_wait_ms=20_000, topics=[FetchTopic(topic="t", partitions=[asked])]
        )
        client.send(request, 11)
        while values(page(port))["penstock_requests_waiting"] != 1:
            time.sleep(0.01)
        assert 'penstock_request_seconds_count{api="Fetch"}' not in {
            name: 1 for name, value in values(page(port)).items() if value
        }
        write(writer)
        client.receive()
        assert values(page(port))['penstock_request_seconds_count{api="Fetch"}'] == 1


def test_what_is_written_follows_prometheus() -> None:
    with metered() as (broker, port), WireClient(broker.port) as client:
        write(client)
        text = page(port)
    assert text.endswith("\n")
    kinds: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds
            kinds[name] = kind
        elif not line.startswith("#"):
            assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [0-9.e+-]+', line), line
            name = re.split(r"[{ ]", line)[0]
            assert name in kinds or re.sub("_(bucket|sum|count)$", "", name) in kinds
    assert all(name.endswith("_total") for name, kind in kinds.items() if kind == "counter")


def test_nonsense_at_the_metrics_port() -> None:
    with metered() as (_, port):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            page(port, "/")
        for request, answer in (
            (b"POST /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 405"),
            (b"nonsense\r\n\r\n", b"HTTP/1.1 400"),
            (b"HEAD /metrics HTTP/1.0\r\n\r\n", b"HTTP/1.1 200"),
            (b"G" * 20_000, b""),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(request)
                try:
                    assert connection.recv(12) == answer
                except ConnectionResetError:
                    assert answer == b""
        with socket.create_connection(("127.0.0.1", port)):
            assert page(port)


def test_a_port_for_metrics_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NetworkError, match=f"metrics cannot be served on 127.0.0.1:{port}"):
            Broker(config={"penstock.metrics.port": port}).start()


# --- the process --------------------------------------------------------------------------------------------


def test_lines_of_the_log_and_an_orderly_end(tmp_path: Path) -> None:
    """The broker logs one line for each event.

    A response that is due when the broker is told to stop still arrives.
    """
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"listeners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n"
        "num.io.threads=4\nnum.partition=1\n"
    )
    command = [sys.executable, "-m", "penstock", "broker", "--config-file", str(properties)]
    command += ["--metrics-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port = int(process.stdout.readline().split(",")[0].rpartition(":")[2])
    with WireClient(port) as client, WireClient(port) as nonsense:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        for _ in range(9):
            client.ask(produce_request(batch_of(b"v" * 900_000)), 9)
        nonsense.socket.sendall(b"GET / HTTP/1.1\r\n")
        assert nonsense.is_closed_by_peer()
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 25)
        client.send(FetchRequest(min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])]), 11)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        records = client.receive()[1].responses[0].partitions[0].records
        assert len(records) > 8_000_000
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    lines = errors.splitlines()
    for line in lines:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING) .+", line), line
    told = [line.split(" ", 2)[2] for line in lines]
    for expected in (
        "unknown setting num.partition, passed over; did you mean num.partitions?",
        "without effect in a single process: num.io.threads",
        "metrics at http://127.0.0.1:",
        "created topic t with 1 partitions",
        "closing connection from 127.0.0.1: frame of ",
        "stopping with 1 connections open",
        "stopped in order",
    ):
        assert sum(expected in line for line in told) == 1, (expected, told)


def test_a_reader_that_does_not_read_delays_the_end_only_so_long() -> None:
    with Broker() as broker, WireClient(broker.port) as client:
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        for _ in range(20):
            client.ask(produce_request(batch_of(b"v" * 900_000)), 9)
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 25)
        client.send(FetchRequest(min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])]), 11)
        time.sleep(0.1)
        begin = time.monotonic()
        broker.close()
        assert time.monotonic() - begin < 10
