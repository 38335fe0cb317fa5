"""Tests of the security settings by their names in Java, librdkafka and other clients, and of refusals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from for_each import for_each
from penstock.client.config import ClientConfig
from penstock.client.security.options import INERT, OPTIONS, parse_security
from penstock.client.security.settings import SecuritySettings
from penstock.errors import ConfigError
from penstock.security.secrets import Secret, is_secret_name

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
CANARY = "canary-5a1"


def read(given: dict[str, object]) -> SecuritySettings:
    settings = parse_security(given)
    assert settings is not None
    return settings


def sasl(**more: object) -> dict[str, object]:
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    return {"security.protocol": "SASL_SSL", **dotted}


UNSECURED_OPTIONS = 'unsecuredLoginStringClaim_sub="ann" unsecuredLoginExtension_b=c'
UNSECURED = sasl(sasl_jaas_config=f"{OAUTH_MODULE} required {UNSECURED_OPTIONS};")


@pytest.mark.parametrize(
    "given",
    [
        {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": CANARY},
        {"sasl.mechanisms": "plain", "sasl.username": "ann", "sasl.password": Secret(CANARY)},
        {"sasl.mechanism": "PLAIN", "sasl.plain.username": "ann", "sasl.plain.password": CANARY},
        {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required username="ann" password="{CANARY}";',
        },
        {"sasl.jaas.config": f'kafkashaded.{PLAIN_MODULE} required username="ann" password="{CANARY}";'},
    ],
)
def test_user_and_password_by_any_name(given: dict[str, object]) -> None:
    settings = read({"security.protocol": "sasl_plaintext", **given})
    assert (settings.mechanism, settings.username) == ("PLAIN", "ann")
    assert settings.password == Secret(CANARY)
    assert settings.uses_sasl
    assert not settings.uses_tls
    assert CANARY not in repr(settings)


@for_each(
    [
        ({"ssl.ca.location": "/ca"}, "ca", "/ca"),
        ({"ssl.cafile": "/ca"}, "ca", "/ca"),
        ({"ssl.ca.pem": PEM}, "ca_inline", PEM),
        ({"ssl.truststore.certificates": PEM, "ssl.truststore.type": "PEM"}, "ca_inline", PEM),
        ({"ssl.truststore.location": "/t.jks", "ssl.truststore.password": "x"}, "truststore", "/t.jks"),
        ({"ssl.keystore.location": "/k.p12", "ssl.keystore.type": "PKCS12"}, "keystore", "/k.p12"),
        ({"ssl.key.location": "/k"}, "key", Secret("/k")),
        ({"ssl.keystore.key": "text"}, "key", Secret("text")),
        ({"ssl.key.password": CANARY}, "key_password", Secret(CANARY)),
        ({"ssl.endpoint.identification.algorithm": ""}, "verify_host", False),
        ({"ssl.endpoint.identification.algorithm": "none"}, "verify_host", False),
        ({"ssl.endpoint.identification.algorithm": "https"}, "verify_host", True),
        ({"enable.ssl.certificate.verification": "false"}, "verify", False),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}, "versions", ("TLSv1.2", "TLSv1.3")),
        ({"ssl.cipher.suites": "A"}, "ciphers", "A"),
        ({"ssl.ca.location": None}, "ca", None),
    ]
)
def test_tls_by_any_name(given: dict[str, object], field: str, value: object) -> None:
    settings = read({"security.protocol": "SSL", **given})
    assert getattr(settings.tls, field) == value
    assert settings.uses_tls
    assert not settings.uses_sasl
    assert CANARY not in repr(settings)


def test_tokens_of_delegation_and_of_oauth() -> None:
    jaas = f'{SCRAM_MODULE} required username="id" password="hmac" tokenauth="true";'
    assert read(sasl(sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=jaas)).is_token
    options = f'clientId="me" clientSecret="{CANARY}" scope="s" extension_logicalCluster="l"'
    oidc = f"{OAUTH_MODULE} required {options};"
    settings = read(sasl(sasl_jaas_config=oidc, sasl_oauthbearer_token_endpoint_url="https://idp/token"))
    assert settings.mechanism == "OAUTHBEARER"
    assert settings.oauth.client_id == "me"
    assert settings.oauth.client_secret == Secret(CANARY)
    assert settings.oauth.extensions == {"logicalCluster": "l"}
    assert CANARY not in repr(settings)
    provider: Callable[[], str] = lambda: "token"  # noqa: E731
    assert read(sasl(sasl_mechanism="OAUTHBEARER", oauth_cb=provider)).oauth.provider is provider


def test_kerberos_from_either() -> None:
    jaas = f'{KERBEROS_MODULE} required useKeyTab=true keyTab="/k" principal="ann@X" serviceName="kafka1";'
    settings = read(sasl(sasl_jaas_config=jaas))
    assert settings.mechanism == "GSSAPI"
    found = (settings.kerberos_service, settings.kerberos_keytab, settings.kerberos_principal)
    assert found == ("kafka1", "/k", "ann@X")


@for_each(
    [
        ({"security.protocol": "TLS"}, "expected one of PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "'sasl.mechanism' is missing"),
        (sasl(sasl_mechanism="PLAIN"), "'sasl.username' is missing"),
        (sasl(sasl_mechanism="PLAIN", sasl_username="a"), "'sasl.password' is missing"),
        (sasl(sasl_mechanism="PLAIN,GSSAPI"), "one name is expected"),
        (sasl(sasl_mechanism="SCRAM"), "expected one of"),
        (sasl(sasl_mechanism="SCRAM-SHA-1"), "did you mean"),
        (sasl(sasl_mechanism="AWS_MSK_IAM"), "token callback"),
        (
            sasl(sasl_mechanism="PLAIN", sasl_jaas_config=f"{SCRAM_MODULE} required;"),
            "has the module of SCRAM",
        ),
        (sasl(sasl_jaas_config=f"{SCRAM_MODULE} required;"), "SCRAM-SHA-256 or SCRAM-SHA-512"),
        (sasl(sasl_mechanism="PLAIN", sasl_mechanisms="PLAIN"), "two names for the same"),
        (
            sasl(sasl_jaas_config=f"{PLAIN_MODULE} required username=a password=b;", sasl_username="x"),
            "give one of them",
        ),
        (sasl(sasl_jaas_config=f'{PLAIN_MODULE} required password="{CANARY}"'), "semicolon"),
        (sasl(sasl_mechanism="OAUTHBEARER"), "needs a source of tokens"),
        (sasl(sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="ftp://x"), "expected https"),
        (sasl(sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="https://x"), "client.id"),
        (sasl(sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_endpoint_url="http://x/"), "in the clear"),
        (sasl(sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_token_provider="x"), "expected a function"),
        ({**UNSECURED, "enable.sasl.oauthbearer.unsecure.jwt": "false"}, "is false: remove one of them"),
        (
            {**UNSECURED, "oauth.cb": len},
            r"unsecuredLogin…\).* and a token callback gives tokens: remove one",
        ),
        (
            {**UNSECURED, "sasl.oauthbearer.token.endpoint.url": "https://idp/token"},
            "endpoint.url' gives tokens: remove one",
        ),
        (
            {
                **sasl(sasl_mechanism="OAUTHBEARER", oauth_cb=len),
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
            },
            "'enable.sasl.oauthbearer.unsecure.jwt' makes tokens without a signature, and a token callback",
        ),
        (
            sasl(sasl_jaas_config=f'{OAUTH_MODULE} required unsecuredLoginLifetimeSeconds="5";'),
            "no claim names the principal",
        ),
        ({"security.protocol": "SSL", "ssl.ca.pem": "/path"}, "a PEM text is expected"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/k", "ssl.key.pem": CANARY}, "not from both"),
        ({"security.protocol": "SSL", "ssl.key.pasword": CANARY}, "did you mean 'ssl.key.password'"),
        ({"security.protocol": "SSL", "ssl.key.password": 5}, "expected text"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "http"}, "expected https"),
        (
            {"security.protocol": "SSL", "ssl.key.password": "${env:PENSTOCK_NONE}"},
            "PENSTOCK_NONE is not set",
        ),
    ]
)
def test_what_is_wrong_is_said_and_no_secret_is(given: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_security(given)
    assert CANARY not in str(caught.value)


@for_each(
    [
        UNSECURED,
        {**UNSECURED, "enable.sasl.oauthbearer.unsecure.jwt": "true"},
        {
            **sasl(sasl_mechanism="OAUTHBEARER", sasl_oauthbearer_config="principal=ann extension_b=c"),
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.extensions": "a=b",
        },
    ]
)
def test_an_unsecured_token_by_the_names_of_java_and_librdkafka(given: dict[str, object]) -> None:
    oauth = read(given).oauth
    assert oauth.unsecured is not None
    assert oauth.unsecured.claims == {"sub": "ann"}
    assert set(oauth.extensions.items()) >= {("b", "c")}


def test_no_unsecured_token_is_made_unless_a_setting_asks_for_it() -> None:
    jaas = f'{OAUTH_MODULE} required clientId="me";'
    given = sasl(sasl_jaas_config=jaas, sasl_oauthbearer_token_endpoint_url="https://idp/token")
    assert read(given).oauth.unsecured is None


def test_plaintext_is_no_security_and_settings_without_effect_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert parse_security({"security.protocol": "plaintext"}) is None
    with caplog.at_level(logging.WARNING):
        assert parse_security({"ssl.ca.location": "/ca", "sasl.password": CANARY}) is None
    assert "ssl.ca.location" in caplog.text
    assert "no effect" in caplog.text
    assert CANARY not in caplog.text


def test_every_name_that_hides_something_is_known_as_secret() -> None:
    hidden = {name for name, (key, _) in OPTIONS.items() if key in ("password", "client_secret", "jaas")}
    hidden |= {
        name for name, (key, _) in OPTIONS.items() if key.endswith("_password") or name.endswith("key.pem")
    }
    assert [name for name in hidden if not is_secret_name(name)] == []
    assert not is_secret_name("ssl.ca.location")
    assert is_secret_name("kafka.ssl.keystore.key")


def test_the_config_of_a_client_takes_them_all_and_shows_no_secret() -> None:
    given: dict[str, Any] = {"bootstrap.servers": "x:1", **sasl(sasl_mechanism="PLAIN", sasl_username="ann")}
    config = ClientConfig.parse(given, {"sasl_password": CANARY})
    assert config.security is not None
    assert config.security.password == Secret(CANARY)
    assert CANARY not in repr(config)
    with pytest.raises(ConfigError, match="given twice"):
        ClientConfig.parse({**given, "sasl.password": "x"}, {"sasl_password": "x"})
    with pytest.raises(ConfigError) as caught:
        ClientConfig.parse(None, {"bootstrap_servers": {"sasl.password": CANARY}})
    assert CANARY not in str(caught.value)
    assert (
        ClientConfig.parse({"bootstrap.servers": "x:1", "security.protocol": "PLAINTEXT"}, {}).security
        is None
    )


def test_names_without_effect_are_accepted() -> None:
    assert read({"security.protocol": "SSL", **dict.fromkeys(INERT, "x")}).protocol == "SSL"
