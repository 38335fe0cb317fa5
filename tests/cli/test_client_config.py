"""Tests of ``--config`` with files for Java clients, librdkafka and kcat, and of ways to pass passwords."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.client_config import completed, read_config, without_passwords
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.settings import gathered
from penstock.errors import ConfigError

JAVA = r"""# client.properties
bootstrap.servers = b1:9093
security.protocol=SASL_SSL
sasl.mechanism: SCRAM-SHA-512
ssl.truststore.location=/etc/kafka\ stores/trust.jks
! another comment
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="ann" \
  password="a\\"b\u00e9";
acks=all
group.id=me
"""

KCAT = r"""# kcat.conf
metadata.broker.list=b1:9093
security.protocol=sasl_ssl
sasl.mechanisms=PLAIN
sasl.username=ann
sasl.password=a\b=c #d
ssl.ca.location=/etc/ca.pem
topic.metadata.refresh.sparse=true
"""


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)
    monkeypatch.delenv("PENSTOCK_SASL_PASSWORD", raising=False)


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "client.conf"
    path.write_text(text)
    return str(path)


def test_a_file_of_java(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, JAVA)) == {
        "bootstrap.servers": "b1:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.truststore.location": "/etc/kafka stores/trust.jks",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="a\\"bé";',
    }


def test_a_file_of_kcat_escapes_nothing(tmp_path: Path) -> None:
    assert read_config(write(tmp_path, KCAT)) == {
        "metadata.broker.list": "b1:9093",
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": r"a\b=c #d",
        "ssl.ca.location": "/etc/ca.pem",
    }


@pytest.mark.parametrize(("text", "why"), [("hello", "line 1: NAME=VALUE"), ("a=1\n=2", "line 2")])
def test_a_line_that_is_no_setting_is_told_by_its_number_and_not_shown(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        read_config(write(tmp_path, text))
    assert "hello" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_config(str(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_config(str(tmp_path / "binary"))
    (tmp_path / "long").write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="longer than"):
        read_config(str(tmp_path / "long"))


def test_secrets_come_from_the_environment_where_security_is_asked_for(tmp_path: Path) -> None:
    environment = {
        "PENSTOCK_SASL_PASSWORD": "pw",
        "PENSTOCK_SSL_KEY_PASSWORD": "key",
        "PENSTOCK_OTHER": "x",
        "XDG_CONFIG_HOME": str(tmp_path),
    }

    def values(**typed: str) -> dict[str, str]:
        names = {name.replace("_", "."): value for name, value in typed.items()}
        found = gathered(None, None, environment, names)
        return {name: setting.value for name, setting in found.items() if name not in names}

    assert values() == {}
    asked = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_username": "ann"}
    assert values(**asked) == {"sasl.password": "pw", "ssl.key.password": "key"}
    assert values(**asked, sasl_plain_password="own") == {"ssl.key.password": "key"}
    assert values(security_protocol="SSL") == {"ssl.key.password": "key"}


def test_a_password_is_asked_for_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"security.protocol": "SASL_SSL", "sasl.mechanisms": "scram-sha-256", "sasl.username": "ann"}
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "prompt", lambda text, **options: f"{text} {options['hide_input']}")
    assert completed(asked)["sasl.password"] == "password of ann True"
    assert "sasl.password" not in completed(asked, may_ask=False)


@pytest.mark.parametrize("name", ["sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.key.pem"])
def test_a_password_on_the_command_line_is_refused_and_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError, match="every user of the machine can read") as caught:
        without_passwords({name: "canary"})
    assert "canary" not in str(caught.value)
    assert without_passwords({name: "${env:SECRET}"}) == {name: "${env:SECRET}"}


@click.command()
@bootstrap_option()
@property_option()
def show(bootstrap: str, properties: tuple[str, ...]) -> None:
    click.echo(bootstrap)
    for name, value in sorted(client_settings(properties).items()):
        click.echo(f"{name}={value}")


def test_the_command_line_goes_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "bootstrap.servers=b1:9\nclient.id=file\nssl.ca.location=/ca\n")
    run = CliRunner().invoke
    for option in ("--config", "-F", "--config-file"):
        assert run(show, [option, path]).output == "b1:9\nclient.id=file\nssl.ca.location=/ca\n"
    assert run(show, ["-X", "client.id=x", "-b", "b2:9", "-F", path]).output == (
        "b2:9\nclient.id=x\nssl.ca.location=/ca\n"
    )
    monkeypatch.setenv("PENSTOCK_CONFIG", path)
    assert run(show, []).output == "b1:9\nclient.id=file\nssl.ca.location=/ca\n"
    monkeypatch.delenv("PENSTOCK_CONFIG")
    assert run(show, []).output == "127.0.0.1:9092\n"
    refused = run(show, ["-F", str(tmp_path / "none")])
    assert refused.exit_code == 2
    assert "No such file" in refused.output
