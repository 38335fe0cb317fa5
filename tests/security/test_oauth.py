"""Tests of OAuth bearer tokens: callback results, the client's SASL message, and messages servers refuse."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.security.oauth import (
    OAuthError,
    Token,
    claims_of,
    client_message,
    read_client_message,
    refusal_of,
    token_of,
    unsecured_token,
)
from penstock.security.secrets import Secret


def jwt(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"aGVhZA.{body}.c2ln"


@pytest.mark.parametrize(
    ("value", "expiry", "extensions"),
    [
        (jwt(exp=5000), 5000.0, {}),
        (Secret(jwt(exp=5000.5)), 5000.5, {}),
        ("opaque", None, {}),
        (("opaque", 7000), 7000, {}),
        (("opaque", 1_800_000_000_000), 1_800_000_000.0, {}),
        (("opaque", 7000, "ann"), 7000, {}),
        (("opaque", 7000, "ann", {"logicalCluster": "l"}), 7000, {"logicalCluster": "l"}),
        (Token(Secret("opaque"), 1.0, {"a": "b"}), 1.0, {"a": "b"}),
    ],
)
def test_what_callbacks_return(value: object, expiry: float | None, extensions: dict[str, str]) -> None:
    token = token_of(value)
    assert token.expires_at_s == expiry
    assert token.extensions == extensions
    assert "opaque" not in repr(token)


@pytest.mark.parametrize(
    "value", [None, 5, "", "a b", "a\x01b", ("x",), ("x", "y"), ("x", True), b"bytes", {}]
)
def test_what_is_no_token_is_refused(value: object) -> None:
    with pytest.raises(OAuthError, match="token callback"):
        token_of(value)


@settings(max_examples=100)
@given(
    st.from_regex(r"[A-Za-z0-9._~+/-]{1,40}", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[a-zA-Z]{1,8}", fullmatch=True).filter(lambda key: key != "auth"),
        st.from_regex(r"[!-~ ]{1,20}", fullmatch=True),
        max_size=3,
    ),
)
def test_what_a_client_sends_is_what_a_server_reads(text: str, extensions: dict[str, str]) -> None:
    message = read_client_message(client_message(Token(Secret(text), None, extensions)))
    assert message.token == Secret(text)
    assert message.extensions == extensions
    assert message.authorization_id == ""


def test_the_message_of_rfc_7628() -> None:
    message = (
        b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer vF9dft4qmT==\x01\x01"
    )
    read = read_client_message(message)
    assert read.token.reveal() == "vF9dft4qmT=="
    assert read.authorization_id == "user@example.com"
    assert read.extensions == {"host": "server.example.com", "port": "143"}


@for_each(
    [
        b"",
        b"\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Bearer x\x01\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01k1=v\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01" + b"k=v\x01" * 100_000 + b"\x01",
    ]
)
def test_messages_that_a_server_does_not_read(message: bytes) -> None:
    with pytest.raises(OAuthError):
        read_client_message(message)


@settings(max_examples=200)
@given(st.binary(max_size=100))
def test_random_messages_raise_nothing_else(data: bytes) -> None:
    for message in (data, b"n,,\x01" + data):
        try:
            read_client_message(message)
        except OAuthError:
            continue
    refusal_of(data)
    claims_of(data.decode("latin-1"))


def test_extensions_that_cannot_be_sent() -> None:
    for key, value in (("auth", "x"), ("a1", "x"), ("a", "\x01"), ("a", "")):
        with pytest.raises(OAuthError, match="cannot be sent"):
            client_message(Token(Secret("x"), None, {key: value}))


def test_a_token_without_signature_and_what_a_refusal_says() -> None:
    token = unsecured_token({"sub": "ann"}, 1000.0, 60.0)
    text = token.text.reveal()
    assert text.endswith(".")
    assert claims_of(text) == {"sub": "ann", "iat": 1000, "exp": 1060}
    assert claims_of("a.b") == claims_of("a.!.c") == claims_of(f"a.{'W10'}.c") == {}
    assert refusal_of(b'{"status":"x","scope":"s"}') == "x (scope wanted: s)"
    assert refusal_of(b"[]") == refusal_of(b"no") == "no reason that can be read"
