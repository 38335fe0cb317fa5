"""Tests of the metrics port: `/health` with the reasons for a bad status, and `/metrics` with group lag."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from penstock import Admin, Broker, Cluster, Producer, TopicPartition
from penstock.broker.groups import lag
from penstock.broker.network.health import REASONS_MAX, Health


def get(port: int | None, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def health(broker: Broker) -> tuple[int, dict[str, Any]]:
    assert broker.server is not None
    code, text = get(broker.server.metrics_port, "/health")
    return code, json.loads(text)


def lags(broker: Broker) -> dict[str, float]:
    assert broker.server is not None
    _, text = get(broker.server.metrics_port, "/metrics")
    lines = (line for line in text.splitlines() if "consumergroup" in line and not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


class Stub:
    """A stand-in for the server, whose state a test sets, for the health page."""

    class Node:
        node_id = 7
        not_ready: str | None = None

    is_stopping = False
    is_listening = True
    storage_failures: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("state", "not_ready", "status", "reason"),
    [
        ({}, None, "serving", None),
        ({"is_listening": False}, None, "starting", "does not listen yet"),
        ({}, "fenced", "starting", "fenced"),
        ({"is_stopping": True}, None, "stopping", "stops"),
        ({"storage_failures": ("disk 1 is gone",)}, None, "impaired", "disk 1 is gone"),
        ({"is_stopping": True, "storage_failures": ("x",)}, "fenced", "stopping", "stops"),
    ],
)
def test_status_and_reasons(
    state: dict[str, Any], not_ready: str | None, status: str, reason: str | None
) -> None:
    stub: Any = Stub()
    stub.node = Stub.Node()
    stub.node.not_ready = not_ready
    vars(stub).update(state)
    found = json.loads(Health(stub).as_json())
    assert found["status"] == Health(stub).status == status
    assert found["node_id"] == 7
    assert Health(stub).is_ready == (status == "serving")
    assert (found["reasons"] == []) == (reason is None)
    assert reason is None or reason in found["reasons"][0]


def test_reasons_have_a_limit() -> None:
    stub: Any = Stub()
    stub.node = Stub.Node()
    stub.storage_failures = [f"log {number} is gone" for number in range(REASONS_MAX + 5)]
    reasons = json.loads(Health(stub).as_json())["reasons"]
    assert len(reasons) == REASONS_MAX + 1
    assert reasons[-1] == "and 5 more"


def test_a_broker_that_serves_is_healthy() -> None:
    with Broker(penstock_metrics_port=0) as broker:
        assert health(broker) == (
            200,
            {"status": "serving", "node_id": broker.server.node.node_id, "reasons": []},
        )
        assert get(broker.server.metrics_port, "/health/live")[0] == 200


def test_a_log_that_was_removed_is_a_reason(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, penstock_metrics_port=0) as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("t", b"v").result(timeout=10)
        (tmp_path / "t-0").rename(tmp_path.parent / "elsewhere")
        deadline = time.monotonic() + 30
        while (found := health(broker))[0] == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert found[0] == 503
        assert found[1]["status"] == "impaired"
        assert "t-0" in found[1]["reasons"][0]
        assert get(broker.server.metrics_port, "/health/live")[0] == 200
        (tmp_path.parent / "elsewhere").rename(tmp_path / "t-0")


def test_a_node_of_a_cluster_is_ready_while_the_controller_counts_on_it() -> None:
    with Cluster(penstock_metrics_port=0) as cluster:
        for number in cluster.node_ids:
            node = cluster._node(number)
            assert node.server is not None
            assert node.member is not None
            assert get(node.server.metrics_port, "/health")[0] == 200
            node.member.brokers.by_id[number].fenced = 1
            code, text = get(node.server.metrics_port, "/health")
            assert code == 503
            assert "fenced" in text


def test_lag_of_groups_under_the_names_of_kafka_exporter(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path, penstock_metrics_port=0) as broker:
        assert lags(broker) == {}
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(5):
                producer.send("t", b"v").result(timeout=10)
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.alter_group_offsets("readers", {TopicPartition("t", 0): 2})
            admin.alter_group_offsets('odd "id"\\\n', {TopicPartition("t", 0): 5})
        labels = '{consumergroup="readers",topic="t",partition="0"}'
        odd = '{consumergroup="odd \\"id\\"\\\\\\n",topic="t",partition="0"}'
        expected = {
            f"kafka_consumergroup_current_offset{labels}": 2,
            f"kafka_consumergroup_lag{labels}": 3,
            'kafka_consumergroup_lag_sum{consumergroup="readers",topic="t"}': 3,
            f"kafka_consumergroup_current_offset{odd}": 5,
            f"kafka_consumergroup_lag{odd}": 0,
            'kafka_consumergroup_lag_sum{consumergroup="odd \\"id\\"\\\\\\n",topic="t"}': 0,
            "penstock_consumergroup_offsets_left_out": 0,
        }
        assert lags(broker) == expected
    # After a start no client has asked for a group or a log: the lag is the same.
    with Broker(data_dir=tmp_path, penstock_metrics_port=0) as broker:
        assert lags(broker) == expected


def test_lags_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "ROWS_MAX", 3)
    with (
        Broker(penstock_metrics_port=0) as broker,
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        admin.create_topic("t", 2)
        for group in ("a", "b", "c"):
            admin.alter_group_offsets(group, {TopicPartition("t", number): 0 for number in (0, 1)})
        found = lags(broker)
        assert sum(name.startswith("kafka_consumergroup_lag{") for name in found) == 3
        assert found["penstock_consumergroup_offsets_left_out"] == 3
