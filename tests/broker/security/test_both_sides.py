"""Tests that both client and broker name the reason of a failed TLS handshake.

No error message may show a secret.
"""

from __future__ import annotations

import datetime
import logging
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Admin, Broker
from penstock.broker.security.certificates import CertificateAuthority
from penstock.broker.security.throwaway import Security
from penstock.errors import AuthenticationError, ConfigError
from penstock.testing import KafkaBroker

pytest.importorskip("cryptography")

Settings = dict[str, str]


def strangers_ca(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    path = tmp_path / "other-ca.pem"
    path.write_bytes(CertificateAuthority().certificate_pem)
    return settings | {"ssl.ca.location": str(path)}


def expired_server(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    security.rotate_certificate(expired=True)
    return settings


def elsewhere(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    security.rotate_certificate(hosts=["elsewhere.example"])
    return settings


def no_certificate(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    return {
        name: value for name, value in settings.items() if "certificate" not in name and "key" not in name
    }


def certificate_of(authority: CertificateAuthority, tmp_path: Path, days: int) -> Settings:
    made = authority.issue("ann", (), lifetime=datetime.timedelta(days=days))
    path = tmp_path / "client.pem"
    path.write_bytes(made.key_pem + made.certificate_pem)
    return {"ssl.certificate.location": str(path), "ssl.key.location": str(path)}


def strangers_certificate(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    return settings | certificate_of(CertificateAuthority(), tmp_path, 30)


def expired_certificate(tmp_path: Path, settings: Settings, security: Security) -> Settings:
    return settings | certificate_of(security.authority, tmp_path, -1)


FAILURES: list[tuple[Callable[[Path, Settings, Security], Settings], str, str]] = [
    (strangers_ca, "signed by an unknown CA", "does not know the CA"),
    (expired_server, "has expired", "expired"),
    (elsewhere, "not valid for '127.0.0.1'", "certificate"),
    (no_certificate, "certificate", "certificate"),
    (strangers_certificate, "certificate", "unknown CA|signed|issuer"),
    (expired_certificate, "certificate", "expired"),
]


@pytest.mark.parametrize(
    ("spoil", "client_says", "broker_says"), FAILURES, ids=[f[0].__name__ for f in FAILURES]
)
def test_both_sides_name_the_reason_of_a_failed_handshake(
    spoil: Callable[[Path, Settings, Security], Settings],
    client_says: str,
    broker_says: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    security = Security("SSL", users=["ann"], client_certificates=True)
    with caplog.at_level(logging.INFO, "penstock.broker"), KafkaBroker(security=security) as broker:
        settings = spoil(tmp_path, broker.client_settings("ann"), security)
        broker._call(lambda server: server.renew_certificates())
        with pytest.raises(AuthenticationError, match=client_says) as caught, Admin(config=settings) as admin:
            admin.list_topics()
        assert "\n" not in str(caught.value)
        for _ in range(100):
            if "TLS" in caplog.text:
                break
            time.sleep(0.02)
    assert any(each in caplog.text for each in broker_says.split("|")), caplog.text


CANARY = "canary-5f1d"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.mark.parametrize(
    "settings",
    [
        {"listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} user_ann="{CANARY}"'},
        {"listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} user_ann={CANARY},x;"},
        {"listener.name.sasl_ssl.plain.sasl.jaas.config": CANARY},
        {"listener.name.sasl_ssl.ssl.keystore.key": CANARY},
        {
            "listener.name.sasl_ssl.ssl.keystore.key": (
                f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----"
            ),
            "listener.name.sasl_ssl.ssl.keystore.certificate.chain": "x",
        },
        {
            "listener.name.sasl_ssl.ssl.keystore.password": CANARY,
            "listener.name.sasl_ssl.ssl.keystore.type": "JKS",
        },
        {"listener.name.sasl_ssl.ssl.key.pasword": CANARY},
        {"delegation.token.secret.kye": CANARY},
    ],
)
def test_no_error_of_settings_shows_a_secret(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        shown = ""
        try:
            with Broker(security="SASL_SSL", config=settings) as broker:
                shown = repr(broker) + repr(broker.config)
        except ConfigError as error:
            shown = "".join(traceback.format_exception(error))
    assert shown
    assert CANARY not in shown + caplog.text
