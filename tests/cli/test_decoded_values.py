"""Tests of `penstock consume --value avro`: it decodes values to text, JSON, CSV and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from penstock import Broker, Producer
from penstock.cli.commands import penstock
from penstock.registry import AvroSerializer

DECIMAL = {"logicalType": "decimal", "precision": 6, "scale": 2}
ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "city", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
            },
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
ROW = {"id": 1, "city": "Zürich", "tags": ["a", "b"], "price": "1.50", "at": "2026-01-31T12:00:00+00:00"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Start a broker with a schema registry and a topic of three values; yield the broker.

    The values are Avro, bytes that are no Avro, and a tombstone.
    """
    from datetime import UTC, datetime
    from decimal import Decimal

    with Broker(registry=True) as broker:
        serializer = AvroSerializer(broker.registry_url, ORDER).bound("orders")
        row = ROW | {"price": Decimal("1.50"), "at": datetime(2026, 1, 31, 12, tzinfo=UTC)}
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("orders", serializer(row), key=b"k")
            producer.send("orders", b"no Avro")
            producer.send("orders", None)
        yield broker


def consume(broker: Broker, *words: str) -> Result:
    asked = ["consume", "orders", "-e", "-q", "--value", "avro", "--registry", broker.registry_url]
    done = CliRunner().invoke(penstock, [*asked, "-b", broker.bootstrap_servers, *words])
    assert done.exit_code == 0, done.output
    return done


def test_as_text(broker: Broker) -> None:
    done = consume(broker, "-Z")
    first, second, third = done.stdout.splitlines()
    assert json.loads(first) == ROW
    assert (second, third) == ("no Avro", "NULL")
    assert "% orders [0] at offset 1: the value does not decode: " in done.stderr


def test_as_lines_of_json(broker: Broker) -> None:
    lines = [json.loads(line) for line in consume(broker, "-J").stdout.splitlines()]
    assert [line["payload"] for line in lines] == [ROW, "no Avro", None]
    assert [line["key"] for line in lines] == ["k", None, None]


def test_as_columns_of_a_file(broker: Broker, tmp_path: Path) -> None:
    done = consume(broker, "--output", str(tmp_path / "orders.parquet"))
    table = pyarrow.parquet.read_table(tmp_path / "orders.parquet")
    assert table["value"].to_pylist()[0]["city"] == "Zürich"
    assert table["offset"].to_pylist() == [0, 2]
    assert "% 1 messages are left out, since they do not decode" in done.stderr
    consume(broker, "--output", str(tmp_path / "orders.csv"))
    head, first, tombstone = (tmp_path / "orders.csv").read_text("utf-8").splitlines()
    names = [name.strip('"') for name in head.split(",")]
    assert [name for name in names if name.startswith("value")] == [f"value.{name}" for name in ROW]
    assert '"Zürich"' in first
    assert '"[""a"", ""b""]"' in first
    assert "1.50" in first
    assert tombstone.count(",") == len(names) - 1


def test_a_registry_that_is_away_says_so(broker: Broker) -> None:
    words = ["consume", "orders", "-e", "--value", "avro", "--registry", "http://127.0.0.1:9"]
    done = CliRunner().invoke(penstock, [*words, "-b", broker.bootstrap_servers])
    assert done.exit_code != 0
    assert "127.0.0.1:9" in str(done.exception)
