"""Tests of OAUTHBEARER tokens: accepted only if signed by the provider, for this broker, and not expired."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock import Admin, Broker
from penstock.broker.config.security_settings import BrokerSecuritySettings
from penstock.broker.config.values import BrokerConfig
from penstock.broker.security.bearer_tokens import Keys, TokenClaims, TokenError, validator_of, verify
from penstock.clock import ManualClock
from penstock.errors import ConfigError, PenstockError
from penstock.security.oauth import base64url

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

NOW_S = 1_700_000_000.0
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


@functools.cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Return a new RSA key.

    It takes a quarter of a second, so that only tests that need it use this fixture.
    """
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def key_set() -> str:
    rsa_numbers, ec_numbers = rsa_key().public_key().public_numbers(), EC_KEY.public_key().public_numbers()
    x, y = (base64url(each.to_bytes(32, "big")) for each in (ec_numbers.x, ec_numbers.y))
    return json.dumps(
        {
            "keys": [
                {"kty": "RSA", "kid": "r", "n": number(rsa_numbers.n), "e": number(rsa_numbers.e)},
                {"kty": "EC", "kid": "e", "crv": "P-256", "x": x, "y": y},
                {"kty": "oct", "kid": "o", "k": "AAAA"},
            ]
        }
    )


def token(key: Any = EC_KEY, header: dict[str, Any] | None = None, **changes: Any) -> str:
    is_rsa = isinstance(key, rsa.RSAPrivateKey)
    claims = {
        "sub": "ann",
        "iat": NOW_S - 10,
        "exp": NOW_S + 600,
        "iss": "idp",
        "aud": ["kafka", "x"],
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    head = {"alg": "RS256", "kid": "r"} if is_rsa else {"alg": "ES256", "kid": "e"}
    head = {name: value for name, value in {**head, **(header or {})}.items() if value is not None}
    signed = f"{base64url(json.dumps(head).encode())}.{base64url(json.dumps(claims).encode())}"
    if is_rsa:
        signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    else:
        halves = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = b"".join(half.to_bytes(32, "big") for half in halves)
    return f"{signed}.{base64url(signature)}"


CLAIMS = TokenClaims("sub", "idp", frozenset({"kafka"}), 30)


@pytest.fixture(scope="module")
def keys() -> Keys:
    made = Keys(key_set, lambda: 0.0, 3600)
    made.load()
    return made


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"header": {"kid": None}},
        {"aud": "kafka"},
        {"exp": NOW_S - 20},
        {"iat": NOW_S + 20},
        {"key": "RSA"},
    ],
    ids=range(6),
)
def test_a_good_token_names_its_principal(keys: Keys, changes: dict[str, Any]) -> None:
    key = {"key": rsa_key()} if "key" in changes else {}
    good = verify(token(**changes | key), keys, CLAIMS, NOW_S)
    assert good.principal == "ann"
    assert good.expiry_ms > 0


def unsigned(algorithm: str) -> str:
    head = base64url(json.dumps({"alg": algorithm}).encode())
    return f"{head}.{token().split('.')[1]}."


@for_each(
    [
        (unsigned("none"), "unsigned"),
        (unsigned("None"), "unsigned"),
        (unsigned("HS256"), "unsigned"),
        (token(OTHER_KEY), "signature"),
        (token(header={"kid": "r"}), "signature"),
        (token(header={"kid": "?"}), "signature"),
        (token(header={"kid": "o"}), "signature"),
        (token().rsplit(".", 1)[0] + ".AAAA", "signature"),
        (token(header={"alg": "RS256"}), "signature"),
        (token(header={"crit": ["x"]}), "understood"),
        (token(exp=NOW_S - 31), "expired"),
        (token(exp=None), "exp"),
        (token(exp="soon"), "exp"),
        (token(exp=True), "exp"),
        (token(iat=None), "iat"),
        (token(iat=NOW_S + 60), "clocks"),
        (token(nbf=NOW_S + 60), "clocks"),
        (token(iss="evil"), "issuer"),
        (token(iss=None), "issuer"),
        (token(aud="other"), "audience"),
        (token(aud=None), "audience"),
        (token(aud=[1]), "audience"),
        (token(sub=None), "sub"),
        (token(sub=" "), "sub"),
        (token(sub=7), "sub"),
        (token(sub="ann\ud800"), "sub"),
        (token().rsplit(".", 1)[0] + ".A", "signature is not base64"),
        ("", "parts"),
        ("a.b", "parts"),
        ("a.b.c", "JWT"),
        ("e30.e30.", "unsigned"),
        ("W10.e30.", "understood"),
        ("x" * 40_000, "parts"),
    ]
)
def test_what_is_not_good_is_refused_without_being_quoted(text: str, reason: str, keys: Keys) -> None:
    with pytest.raises(TokenError, match=reason) as caught:
        verify(text, keys, CLAIMS, NOW_S)
    assert len(text) < 30 or text[:20] not in str(caught.value)


@settings(max_examples=200)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_token_with_one_byte_changed_is_that_of_the_same_user_or_none(position: int, value: int) -> None:
    made = Keys(key_set, lambda: 0.0, 3600)
    made.load()
    data = bytearray(GOOD.encode())
    data[position % len(data)] = value
    try:
        good = verify(data.decode("latin-1"), made, CLAIMS, NOW_S)
    except TokenError:
        return
    assert good.principal == "ann"


GOOD = token()


def test_keys_are_read_again_when_an_unknown_one_is_named() -> None:
    times = [0.0]
    made = Keys(key_set, lambda: times[0], 3600)
    made.load()
    began: list[bool] = []
    made._begin_reading = lambda: began.append(True)  # type: ignore[method-assign]
    made.find("unknown", "EC")
    assert not began
    times[0] = 61.0
    made.find("e", "EC")
    assert not began
    made.find("unknown", "EC")
    assert began == [True]


@pytest.mark.parametrize("url", [None, "http://idp.example/keys", "file:///missing", "keys.json"])
def test_without_keys_the_broker_does_not_start(url: str | None) -> None:
    texts = {"sasl.oauthbearer.jwks.endpoint.url": url} if url else {}
    with pytest.raises(ConfigError):
        validator_of(BrokerSecuritySettings(BrokerConfig(texts), "X"), ManualClock(0))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": [{"kty": "EC"}]}', '{"keys": 7}'])
def test_a_set_without_usable_keys_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        Keys(lambda: text, lambda: 0.0, 1).load()


def test_a_broker_with_tokens(tmp_path: Path) -> None:
    import time

    (tmp_path / "keys.json").write_text(key_set())
    prefix = "listener.name.sasl_plaintext."
    config = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        f"{prefix}sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": f"file://{tmp_path}/keys.json",
    }
    with Broker(config=config) as broker:
        now = time.time()
        for key, is_good in ((rsa_key(), True), (OTHER_KEY, False)):
            text = token(key, iat=now, exp=now + 600)
            settings_ = {
                "bootstrap.servers": broker.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.provider": lambda text=text: (text, now + 600),
            }
            if is_good:
                with Admin(config=settings_) as admin:
                    assert admin.list_topics() == []
            else:
                with pytest.raises(PenstockError, match="invalid_token"), Admin(config=settings_) as admin:
                    admin.list_topics()
