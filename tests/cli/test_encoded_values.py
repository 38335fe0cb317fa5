"""Tests of `penstock produce --value avro`: JSON lines are encoded with a schema of the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock import Broker, read_topic
from penstock.cli.commands import penstock

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "city", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(registry=True) as broker:
        yield broker


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "order.avsc"
    path.write_text(ORDER)
    return str(path)


def run(broker: Broker, verb: str, *words: str, text: str | None = None) -> Result:
    there = ["-b", broker.bootstrap_servers, "--registry", broker.registry_url]
    return CliRunner().invoke(penstock, [verb, *words, *there], input=text)


def test_lines_are_values_and_keys_of_schemas(broker: Broker, schema: str, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text('{"type": "integer"}')
    words = ["--value", "avro", "--schema", schema, "--key-format", "json", "--key-schema", str(key)]
    done = run(
        broker, "produce", "a", *words, "-K", "|", text='7|{"id": 1}\n8|{"id": 2, "city": "Bern"}\n9|null\n'
    )
    assert done.exit_code == 0, done.output
    table = read_topic(
        "a", broker.bootstrap_servers, value="avro", key_format="json", registry=broker.registry_url
    )
    assert table["value"].to_pylist() == [{"id": 1, "city": None}, {"id": 2, "city": "Bern"}, None]
    assert table["key"].to_pylist() == [7, 8, 9]
    # The schema is there now, and need not be said.
    done = run(broker, "produce", "a", "--value", "avro", text='{"id": 3}\n')
    assert done.exit_code == 0, done.output
    done = run(broker, "produce", "b", "--value", "avro", "--subject", "a-value", text='{"id": 4}\n')
    assert done.exit_code == 0, done.output
    table = read_topic(
        "b", broker.bootstrap_servers, value="avro", registry=broker.registry_url, schema=ORDER
    )
    assert table["value"].to_pylist() == [{"id": 4, "city": None}]


def test_what_consume_prints_is_produced_again(broker: Broker, schema: str) -> None:
    run(
        broker, "produce", "c", "--value", "avro", "--schema", schema, text='{"id": 1, "city": "Ulm"}\nnull\n'
    )
    lines = run(broker, "consume", "c", "-e", "-q", "-J", "--value", "avro").stdout
    done = run(broker, "produce", "-t", "d", "-J", "--value", "avro", "--schema", schema, text=lines)
    assert done.exit_code == 0, done.output
    first, second = (
        read_topic(name, broker.bootstrap_servers, columns=["key", "value"]) for name in ("c", "d")
    )
    assert first.equals(second)


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (["--value", "avro"], '{"id": 1}\n', "the registry has no subject 'unknown-value'"),
        (["--schema", "FILE"], "x\n", "--schema goes with --value"),
        (["--subject", "s"], "x\n", "--subject goes with --value"),
        (["--message-type", "M", "--value", "avro"], "x\n", "--message-type goes with --value protobuf"),
        (["--key-schema", "FILE"], "x\n", "--key-schema goes with --key-format"),
        (["--value", "json", "--schema", "FILE"], "x\n", "the schema is of type AVRO"),
        (["--value", "avro", "-f", "csv"], "x\n", "take JSON texts, not -f csv"),
        (["--value", "avro", "--schema", "FILE"], '{"id": 1}\n{"id": "x"}\n', "message 2: $.id is"),
        (["--value", "avro", "--schema", "FILE"], "{\n", "message 1: the value is no JSON"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, schema: str, words: list[str], text: str, said: str) -> None:
    topic = "unknown" if "unknown" in said else "e"  # some of the others register a schema
    done = run(broker, "produce", topic, *(schema if word == "FILE" else word for word in words), text=text)
    assert done.exit_code != 0
    assert said in str(done.exception) or said in done.output
