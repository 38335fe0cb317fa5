"""Tests of the JAAS file in KAFKA_OPTS, as the test harnesses of other projects configure brokers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.wire_client import WireClient
from penstock.broker.network.listeners import Listener
from penstock.broker.security.login_file import login_file, login_settings
from penstock.errors import ConfigError
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.jaas import parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"

FILE = f"""
/* as in a harness */
KafkaServer {{
    {PLAIN} required
    username="admin" password="admin-secret"
    user_admin="admin-secret"   // between brokers
    user_ann="a;b}}c";
    {SCRAM} required username="admin" password="admin-secret";
    {KERBEROS} required keyTab="/etc/kafka.keytab" principal="kafka/localhost@EXAMPLE.COM";
}};
inside.KafkaServer {{
    {PLAIN} required user_bob="inside";
    {OAUTH} required unsecuredLoginStringClaim_sub="admin";
}};
KafkaClient {{ {PLAIN} required username="ann" password="${{file:/not/there}}"; }};
"""

OUTSIDE = Listener("OUTSIDE", "", 9092, "SASL_SSL")
INSIDE = Listener("INSIDE", "", 9093, "SASL_PLAINTEXT")
OPEN = Listener("PLAINTEXT", "", 9094)


@pytest.fixture
def options(tmp_path: Path) -> str:
    (tmp_path / "jaas.conf").write_text(FILE)
    return f"-Xmx256M -Djava.security.auth.login.config={tmp_path}/jaas.conf -Dother=1"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("", None),
        ("-Xmx1G -Djava.security.auth.login.config", None),
        ("-Djava.security.auth.login.config=", None),
        ("-Djava.security.auth.login.config=/a.conf", "/a.conf"),
        ("-Djava.security.auth.login.config==/a.conf", "/a.conf"),
        ("-Djava.security.auth.login.config=/a.conf -Djava.security.auth.login.config=b.conf", "b.conf"),
        ("-Djava.security.auth.login.config=file:/a.conf", "/a.conf"),
        ("-Djava.security.auth.login.config=file:///a.conf", "/a.conf"),
        ("-Djava.security.auth.login.config=file:a.conf", "a.conf"),
    ],
)
def test_the_file_is_named_as_for_a_jvm(words: str, path: str | None) -> None:
    assert login_file(words) == path


def test_the_section_of_a_listener_goes_before_that_of_all(options: str) -> None:
    found = login_settings(options, [OUTSIDE, INSIDE, OPEN], {})
    modules = {name: parse_jaas(text) for name, text in found.items()}
    assert sorted(modules) == [
        "listener.name.inside.oauthbearer.sasl.jaas.config",
        "listener.name.inside.plain.sasl.jaas.config",
        "listener.name.outside.gssapi.sasl.jaas.config",
        "listener.name.outside.plain.sasl.jaas.config",
    ]
    assert modules["listener.name.inside.plain.sasl.jaas.config"].text("user_bob") == "inside"
    assert modules["listener.name.outside.plain.sasl.jaas.config"].text("user_ann") == "a;b}c"
    unsecured = modules["listener.name.inside.oauthbearer.sasl.jaas.config"]
    assert unsecured.text("unsecuredLoginStringClaim_sub") == "admin"
    assert modules["listener.name.outside.gssapi.sasl.jaas.config"].text("keyTab") == "/etc/kafka.keytab"


@pytest.mark.parametrize(
    "own", ["listener.name.outside.plain.sasl.jaas.config", "listener.name.outside.sasl.jaas.config"]
)
def test_settings_win_over_the_file(options: str, own: str) -> None:
    found = login_settings(options, [OUTSIDE, INSIDE], {own: f'{PLAIN} required user_eve="x";'})
    assert "listener.name.outside.plain.sasl.jaas.config" not in found
    assert "listener.name.inside.plain.sasl.jaas.config" in found


def test_a_broker_without_sasl_does_not_look_for_the_file() -> None:
    assert login_settings("-Djava.security.auth.login.config=/not/there", [OPEN], {}) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("KafkaClient { };", r"no section KafkaServer or outside\.KafkaServer .* sections are KafkaClient"),
        ("", "its sections are none"),
        (f'KafkaServer {{ {PLAIN} required user_a="canary"; }}', "does not end with '};'"),
        (f'KafkaServer {{ {PLAIN} required user_a="canary" }};', "name of an option or a semicolon"),
        (f'KafkaServer {{ {PLAIN} required user_a="canary"; ', "login module is expected"),
        (f'{PLAIN} required user_a="canary";', "'{' is expected after the name of the section"),
        ("= {};", "name of a section is expected"),
        ("KafkaServer { }; KafkaServer { };", "a section KafkaServer already"),
        ("KafkaServer { com.sun.JndiLoginModule required; };", "JndiLoginModule is not allowed"),
        (
            f'KafkaServer {{ {PLAIN} required user_a="canary"; {PLAIN} required user_b="canary"; }};',
            "section KafkaServer has two entries of PlainLoginModule",
        ),
        ("x" * (1 << 20) + "y", "more than"),
    ],
)
def test_mistakes_name_the_file_and_no_password(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why) as caught:
        login_settings(f"-Djava.security.auth.login.config={path}", [OUTSIDE], {})
    assert str(path) in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which KAFKA_OPTS names: No such file"):
        login_settings(f"-Djava.security.auth.login.config={tmp_path}/no", [OUTSIDE], {})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read"):
        login_settings(f"-Djava.security.auth.login.config={tmp_path}/binary", [OUTSIDE], {})


def test_a_listener_with_settings_of_its_own_needs_no_section(tmp_path: Path) -> None:
    (tmp_path / "jaas.conf").write_text("KafkaClient { };")
    own = {"plain.sasl.jaas.config": f'{PLAIN} required user_eve="x";'}
    assert login_settings(f"-Djava.security.auth.login.config={tmp_path}/jaas.conf", [OUTSIDE], own) == {}


@pytest.mark.parametrize("brokers", [1, 2])
def test_users_of_the_file_log_in(options: str, brokers: int) -> None:
    command = [sys.executable, "-m", "penstock.broker", "--for-tests", f"--brokers={brokers}"]
    command += ["-o", "listeners=INSIDE://127.0.0.1:0", "-o", "sasl.enabled.mechanisms=PLAIN"]
    command += ["-o", "listener.security.protocol.map=INSIDE:SASL_PLAINTEXT"]
    environment = {**os.environ, "KAFKA_OPTS": options}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as broker:
        try:
            assert broker.stdout is not None
            port = int(broker.stdout.readline().partition('"port": ')[2].partition(",")[0])
            with WireClient(port) as client:
                assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
                login = SaslAuthenticateRequest(auth_bytes=b"\0bob\0inside")
                assert client.ask(login, 2).error_code == 0
        finally:
            broker.terminate()
