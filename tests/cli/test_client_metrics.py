"""Tests of ``penstock metrics``: client metrics subscriptions (KIP-714) and the broker's metrics page."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from penstock import Admin
from penstock.broker.client_metrics.newest_values import Pusher
from penstock.cli import main
from penstock.errors import ConfigError
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.telemetry.points import MetricKind, Point
from penstock.testing import KafkaBroker


@pytest.fixture
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(config={"penstock.client.metrics": "true", "penstock.metrics.port": "0"}) as broker:
        yield broker


def metrics_address(broker: KafkaBroker) -> str:
    assert broker.server is not None
    return f"127.0.0.1:{broker.server.metrics_port}"


def asked_for(broker: KafkaBroker) -> tuple[list[str], int]:
    """Return the metrics that a broker requests from a new client: name prefixes and the interval in ms."""
    from broker.bench_node import ask

    answer = broker._call(lambda server: ask(server.node, GetTelemetrySubscriptionsRequest(), 0))
    return answer.requested_metrics, answer.push_interval_ms


def test_subscribe_and_unsubscribe(broker: KafkaBroker) -> None:
    words = ["metrics", "subscribe", "-b", broker.bootstrap_servers, "a"]
    assert main([*words, "--metric", "org.a", "--metric", "org.b", "--interval-ms", "1000"]) == 0
    assert asked_for(broker) == (["org.a", "org.b"], 1000)
    assert (
        main([*words, "--metric", "*", "--match", "client_id=other", "--match", "client_source_port=1"]) == 0
    )
    assert asked_for(broker) == ([], 300_000)
    assert main([*words, "--metric", "*"]) == 0
    assert asked_for(broker) == (["*"], 300_000)
    assert main(["metrics", "unsubscribe", "-b", broker.bootstrap_servers, "a"]) == 0
    assert asked_for(broker) == ([], 300_000)


def test_the_newest_values(broker: KafkaBroker, capsys: pytest.CaptureFixture[str]) -> None:
    def push(server: object) -> None:
        for number in range(2):
            pusher = Pusher(f"id{number}", f"c{number}", "made-up", "1.0", "127.0.0.1")
            points = [
                Point("a.total", MetricKind.DELTA, 3, (("topic", "t"),)),
                Point("b.avg", MetricKind.GAUGE, 0.5),
            ]
            service.values.take(bytes([number]), pusher, {}, points, 7, is_last=False)

    assert broker.server is not None
    service = broker.server.node.client_metrics
    assert service is not None
    broker._call(push)
    words = ["metrics", "list", metrics_address(broker)]
    assert main([*words, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["client_id"], row["name"], row["value"]) for row in rows] == [
        ("c0", "a.total", 3),
        ("c0", "b.avg", 0.5),
        ("c1", "a.total", 3),
        ("c1", "b.avg", 0.5),
    ]
    assert (rows[0]["labels"], rows[0]["kind"], rows[0]["time_ms"]) == ({"topic": "t"}, "sum", 7)
    assert main([*words, "--client-id", "c1", "--name", "a."]) == 0
    table = capsys.readouterr().out
    assert "topic=t" in table
    assert "c0" not in table
    assert "b.avg" not in table


def test_a_broker_that_takes_none(capsys: pytest.CaptureFixture[str]) -> None:
    with KafkaBroker(config={"penstock.metrics.port": "0"}) as broker:
        assert main(["metrics", "list", metrics_address(broker)]) != 0
        assert "penstock.client.metrics=true" in capsys.readouterr().err
        with pytest.raises(ConfigError, match="penstock_client_metrics"):
            broker.client_metrics()
        with pytest.raises(ConfigError, match="penstock_client_metrics"):
            broker.subscribe_to_client_metrics()
        assert main(["metrics", "list", broker.bootstrap_servers]) != 0


@pytest.mark.parametrize("text", [b"{}", b"[1]", b'[{"name": "x"}]', b"no json", b"\xff", b'{"name": 1}'])
def test_another_server(text: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *values: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        code = main(["metrics", "list", f"127.0.0.1:{server.server_port}"])
        thread.join()
    assert code != 0
    assert "not what a broker of Penstock answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["", "x", "http://127.0.0.1:9192/", "a:b", "127.0.0.1:99999", "127.0.0.1:1"]
)
def test_what_is_no_address(address: str) -> None:
    assert main(["metrics", "list", address]) != 0


def test_a_subscription_is_set_by_the_admin(broker: KafkaBroker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.alter_config(client_metrics="b", set={"metrics": "org.c", "interval.ms": 500})
        assert asked_for(broker) == (["org.c"], 500)
        with pytest.raises(ConfigError, match="client_metrics="):
            admin.alter_config("t", client_metrics="b", set={})
