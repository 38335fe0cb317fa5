"""sarama, franz-go and kafkajs against a broker that has every combination of TLS and SASL they support.

One broker has a listener of each kind, and each program runs once. In every case the program writes, and
reads in a group. Then it manages ACLs, users, tokens and quotas as far as its library can. At last it tries
all the logins that must be refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker.security.test_bearer_tokens import key_set, token
from compat.peers import go_program, need, node_program
from compat.places import ONE_AND_LATER_THREE, listening, made
from compat.test_programs import run
from penstock import Admin
from security_certificates import authority, issue

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PASSWORD = "pw,=é"
"""A password with characters that SCRAM must escape, and one that takes two bytes in UTF-8."""

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module", params=ONE_AND_LATER_THREE)
def cases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Run a broker with all listeners; yield the client settings that must work and those to be refused."""
    directory = tmp_path_factory.mktemp("secured")
    trusted = authority()
    (directory / "ca.pem").write_text(trusted.certificate_pem)
    (directory / "keys.json").write_text(key_set())
    server = issue(trusted)
    keystore = directory / "server.pem"
    keystore.write_text(server.key_pem + server.certificate_pem)
    certificate, key = issue(trusted, "ann", client=True).write(directory, "ann")
    names = ("OPEN", "SSL", "MTLS", "SASL_PLAINTEXT", "SASL_SSL")
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
        "listener.security.protocol.map": "OPEN:PLAINTEXT,SSL:SSL,MTLS:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "SASL_SSL:SASL_SSL",
        "ssl.keystore.location": str(keystore),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.mtls.ssl.truststore.location": str(directory / "ca.pem"),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{directory}/keys.json",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ann;User:CN=ann;User:ANONYMOUS",
        "delegation.token.secret.key": "for-tokens",
    }
    for name in ("sasl_plaintext", "sasl_ssl"):
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = f'{PLAIN_MODULE} user_ann="{PASSWORD}";'
    with made(request.param, config=settings) as served:
        address = listening(served)
        with Admin(address["OPEN"]) as admin:
            admin.set_password("ann", PASSWORD)
        yield cases_at(address, directory, {"Certificate": certificate, "Key": key})


def cases_at(
    address: Mapping[str, str], directory: Path, pair: Mapping[str, str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the client settings that must work at the listeners, and those that must be refused."""
    now = time.time()
    tls = {"Tls": True, "Ca": str(directory / "ca.pem")}
    ann = {
        "User": "ann",
        "Password": PASSWORD,
        "Token": "",
    }
    bearer = {"Token": token(iat=now - 1, exp=now + 600)}
    good: list[dict[str, Any]] = []
    for listener, extra in (("SASL_SSL", tls), ("SASL_PLAINTEXT", {})):
        for mechanism in MECHANISMS:
            who = bearer if mechanism == "OAUTHBEARER" else ann
            case = {"Name": f"{listener}.{mechanism}", "Address": address[listener], "Mechanism": mechanism}
            good.append({**case, **extra, **who})
    # The first is used for administration; SCRAM proves both ends.
    good.sort(key=lambda case: case["Name"] != "SASL_SSL.SCRAM-SHA-512")
    good.append({"Name": "SSL", "Address": address["SSL"], **tls})
    good.append({"Name": "MTLS", "Address": address["MTLS"], **tls, **pair})
    wrong = {**ann, "Password": "wrong"}
    at = {"Address": address["SASL_PLAINTEXT"]}
    bad: list[dict[str, Any]] = [
        {"Name": "wrong.PLAIN", "Mechanism": "PLAIN", **at, **wrong},
        {"Name": "wrong.SCRAM-SHA-512", "Mechanism": "SCRAM-SHA-512", **at, **wrong},
        {"Name": "unknown.SCRAM-SHA-256", "Mechanism": "SCRAM-SHA-256", **at, **ann, "User": "eve"},
        {"Name": "forged.OAUTHBEARER", "Mechanism": "OAUTHBEARER", **at, "Token": token(exp=now - 60)},
    ]
    return {"Good": good, "Bad": bad}


def played(cases: dict[str, list[dict[str, Any]]], path: Path, program: list[object]) -> str:
    path.write_text(json.dumps(cases))
    printed = run(*program)
    for case in cases["Good"]:
        assert f"ok group {case['Name']}\n" in printed, printed
    assert printed.count("refused ") == len(cases["Bad"]), printed
    return printed


def test_sarama(cases: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    printed = played(cases, path, [go_program("sarama"), path, "secured"])
    assert all(f"ok {part}\n" in printed for part in ("acls", "users", "quotas")), printed
    assert "Invalid username or password" in printed


def test_franz_go(cases: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    printed = played(cases, path, [go_program("franz"), path, "secured"])
    assert all(f"ok {part}\n" in printed for part in ("acls", "users", "tokens", "quotas")), printed
    assert "Invalid username or password" in printed


def test_kafkajs(cases: dict[str, list[dict[str, Any]]], tmp_path: Path) -> None:
    path, directory = tmp_path / "cases.json", node_program("kafkajs")
    printed = played(cases, path, [need("node"), directory / "secured.js", path])
    assert "ok acls\n" in printed
    assert "Invalid username or password" in printed
