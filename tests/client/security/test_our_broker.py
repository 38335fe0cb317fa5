"""Tests of Penstock's client with its broker, both secured.

Records are transferred, and a canary password appears in no output.
"""

from __future__ import annotations

import asyncio
import io
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock import Admin, Broker, Consumer, Producer, read_topic, write_topic
from penstock.broker.security.throwaway import Security
from penstock.cli import commands
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.errors import AuthenticationError
from penstock.spark.source.options import read_options

CANARY = "canary-77d0c1"
USERS = {"admin": CANARY, "user": f"{CANARY}-2"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(security=Security("SASL_SSL", users=USERS)) as broker:
        yield broker


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_records_there_and_back(protocol: str) -> None:
    with Broker(security=protocol) as broker:
        config = broker.client_settings()
        values = [b"%d" % number + b"x" * (number * 997 % 70_000) for number in range(300)]
        with Admin(config=config) as admin:
            admin.create_topic("t")
        with Producer(config=config) as producer:
            for value in values:
                producer.send("t", value)
        got: list[bytes | None] = []
        with Consumer(config={**config, "auto.offset.reset": "earliest", "group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            while len(got) < len(values):
                got += [record.value for record in consumer.poll(20_000)]
        assert got == values


def test_tables_there_and_back(broker: Broker) -> None:
    pa = pytest.importorskip("pyarrow")
    config = broker.client_settings()
    where = config.pop("bootstrap.servers")
    table = pa.table({"value": pa.array([b"a", b"b"], pa.binary())})
    with Admin(where, config) as admin:
        admin.create_topic("tables")
    write_topic(table, "tables", where, config=config)
    assert read_topic("tables", where, config=config)["value"].to_pylist() == [b"a", b"b"]
    refused = {**config, "sasl.password": "wrong"}
    with pytest.raises(AuthenticationError, match="does user 'admin' exist"):
        read_topic("tables", where, config=refused)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_every_mechanism_and_a_wrong_password(broker: Broker, mechanism: str) -> None:
    config = broker.client_settings("user", mechanism)
    with Admin(config=config) as admin:
        admin.list_topics()
    wrong = {**config, "sasl.password": "wrong"}
    with Admin(config=config) as admin:
        assert admin.list_topics() is not None
    with pytest.raises(AuthenticationError, match="'user'"), Admin(config=wrong) as admin:
        admin.list_topics()


def test_the_canary_shows_up_in_no_log_repr_or_traceback(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    config = broker.client_settings()
    assert config["sasl.password"] == CANARY  # or nothing is tested
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        parsed = ClientConfig.parse(config, {})
        shown.append(repr(parsed))

        async def play() -> None:
            async with AsyncClient(parsed) as client:
                await client.bootstrap()
                peer = await client.peer()
                shown.extend(
                    [repr(client), repr(peer.connection), repr(client.__dict__), repr(vars(peer.connection))]
                )

        asyncio.run(play(), debug=False)
        for name, value in (
            ("sasl.mechanism", "SCRAM-SHA-1"),
            ("ssl.ca.pem", "x"),
            ("security.protocol", "X"),
        ):
            broken = {**config, "sasl.password": f"{CANARY}-wrong", name: value}
            shown.append(_failure(broken))
        shown.append(_failure({**config, "sasl.password": f"{CANARY}-wrong"}))
    assert len(shown) == 9
    assert not [text for text in [*shown, caplog.text] if CANARY in text]


def _failure(config: dict[str, str]) -> str:
    """Return the traceback of a client that fails, with the local variables of its stack frames."""
    try:
        with Admin(config=config) as admin:
            admin.list_topics()
    except Exception as error:
        out = io.StringIO()
        traceback.print_exception(error, file=out)
        return out.getvalue()
    raise AssertionError("accepted")


def test_the_canary_shows_up_in_no_output_of_commands(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    config = broker.client_settings()
    good, bad = tmp_path / "good.conf", tmp_path / "bad.conf"
    lines = {**config, "ssl.ca.location": config["ssl.ca.location"]}
    good.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    lines["sasl.password"] = f"{CANARY}-wrong"
    bad.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    outputs = []
    for words, code in (
        (["topic", "list", "--config", str(good)], 0),
        (["config", "describe", "--broker", "1", "-F", str(good)], None),
        (["topic", "create", "t1", "-F", str(good)], 0),
        (["topic", "list", "-F", str(bad)], 1),
        (["topic", "list", "-X", f"sasl.password={CANARY}"], None),
        (["group", "list", "-F", str(bad)], 1),
    ):
        done = CliRunner().invoke(commands.penstock, words)
        assert code is None or done.exit_code == code or isinstance(done.exception, AuthenticationError), done
        outputs.append(done.output + str(done.exception))
    assert "t1" in CliRunner().invoke(commands.penstock, ["topic", "list", "-F", str(good)]).output
    assert not [text for text in outputs if CANARY in text]


def test_options_of_spark_show_no_secret_and_reach_executors() -> None:
    given = {
        "kafka.bootstrap.servers": "x:1",
        "subscribe": "t",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "ann",
        "kafka.sasl.password": f" {CANARY} ",
        "kafka.ssl.key.pem": f"-----BEGIN {CANARY}",
        "kafka.ssl.certificate.pem": "-----BEGIN CERTIFICATE-----",
    }
    options = read_options(given, streaming=True)
    assert CANARY not in repr(options)
    assert CANARY not in str(options)
    arrived = pickle.loads(pickle.dumps(options))
    config = ClientConfig.parse(arrived.client, {"bootstrap_servers": "x:1"})
    assert config.security is not None
    assert config.security.password is not None
    assert config.security.password.reveal() == f" {CANARY} "


def test_references_are_resolved_where_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "kafka.bootstrap.servers": "x:1",
        "subscribe": "t",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "${env:PENSTOCK_TEST_USER}",
        "kafka.sasl.password": "${env:PENSTOCK_TEST_PASSWORD}",
    }
    options = read_options(given, streaming=True)
    monkeypatch.setenv("PENSTOCK_TEST_USER", "ann")
    monkeypatch.setenv("PENSTOCK_TEST_PASSWORD", CANARY)
    config = ClientConfig.parse(options.client, {"bootstrap_servers": "x:1"})
    assert config.security is not None
    assert config.security.username == "ann"
    assert config.security.password is not None
    assert config.security.password.reveal() == CANARY
