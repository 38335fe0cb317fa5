"""Tests of unsigned OAUTHBEARER tokens, which a broker accepts only if its settings enable them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.wire_client import WireClient
from for_each import for_each
from penstock import Admin, Broker, Producer
from penstock.broker.config.security_settings import BrokerSecuritySettings
from penstock.broker.config.values import BrokerConfig
from penstock.broker.security.bearer_tokens import TokenError
from penstock.broker.security.throwaway import Security
from penstock.broker.security.unsecured_tokens import UnsecuredRules, unsecured_rules_of
from penstock.errors import AuthenticationError, ConfigError
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.oauth import base64url
from penstock.security.sasl_mechanisms import ScopesMissing

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1000
PACKAGE = "org.apache.kafka.common.security"
MODULE = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required"
HANDLER = f"{PACKAGE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SECURED_HANDLER = f"{PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
JAAS = "listener.name.x.oauthbearer.sasl.jaas.config"
CLASS = "listener.name.x.oauthbearer.sasl.server.callback.handler.class"
KEYS = "sasl.oauthbearer.jwks.endpoint.url"
ASKED = f'{MODULE} unsecuredLoginStringClaim_sub="admin";'


def encoded(value: object) -> str:
    return base64url(json.dumps(value).encode())


def token(head: object = None, signature: str = "", **changes: Any) -> str:
    claims = {"sub": "ann", "iat": NOW_S - 10, "exp": NOW_S + 600, **changes}
    claims = {name: value for name, value in claims.items() if value != "-"}
    return f"{encoded({'alg': 'none'} if head is None else head)}.{encoded(claims)}.{signature}"


def rules(options: str = "") -> UnsecuredRules:
    found = asked({JAAS: f"{MODULE} unsecuredLoginStringClaim_sub=x {options};"})
    assert found is not None
    return found


def asked(texts: dict[str, str]) -> UnsecuredRules | None:
    return unsecured_rules_of(BrokerSecuritySettings(BrokerConfig(texts), "X"))


@for_each(
    [
        (token(), "", "ann", NOW_S + 600),
        (token({"alg": "none", "typ": "JWT"}), "", "ann", NOW_S + 600),
        (token(exp=NOW_S + 0.5), "", "ann", NOW_S + 0.5),
        (token(exp=NOW_S, iat=NOW_S - 1), 'unsecuredValidatorAllowableClockSkewMs="1"', "ann", NOW_S),
        (token(iat="-"), "", "ann", NOW_S + 600),
        (token(iat=NOW_S), "", "ann", NOW_S + 600),
        (token(iat=NOW_S + 3), 'unsecuredValidatorAllowableClockSkewMs="3000"', "ann", NOW_S + 600),
        (token(nbf=NOW_S + 60), "", "ann", NOW_S + 600),
        (token(sub=" ann b "), "", " ann b ", NOW_S + 600),
        (token(sub="Zoë \U0001f600"), "", "Zoë \U0001f600", NOW_S + 600),
        (token(name="bob"), "unsecuredValidatorPrincipalClaimName=name", "bob", NOW_S + 600),
        (token(sub="-", name="bob"), 'unsecuredValidatorPrincipalClaimName=" name "', "bob", NOW_S + 600),
        (token(scope="read"), "", "ann", NOW_S + 600),
        (token(scope=[]), "", "ann", NOW_S + 600),
        (token(scope=" read "), "unsecuredValidatorRequiredScope=read", "ann", NOW_S + 600),
        (token(scope=["x", "b", " a"]), 'unsecuredValidatorRequiredScope="a  b"', "ann", NOW_S + 600),
        (
            token(roles=["a"]),
            "unsecuredValidatorScopeClaimName=roles unsecuredValidatorRequiredScope=a",
            "ann",
            NOW_S + 600,
        ),
    ]
)
def test_a_token_that_follows_the_rules(text: str, options: str, principal: str, expiry_s: float) -> None:
    good = rules(options).check(text, NOW_MS)
    assert (good.principal, good.expiry_ms) == (principal, expiry_s * 1000)


@for_each(
    [
        (token(signature="AAAA"), "takes tokens without one"),
        (token({"alg": "RS256"}), "takes tokens without one"),
        (token({"alg": "RS256"}, "AAAA"), "takes tokens without one"),
        (token({"alg": "None"}), "takes tokens without one"),
        (token({}), "takes tokens without one"),
        (token({"alg": None}), "takes tokens without one"),
        (token({"alg": ["none"]}), "takes tokens without one"),
        (token([]), "understood"),
        (f"{encoded({'alg': 'none'})}.{encoded(['sub'])}.", "understood"),
        (f"{encoded({'alg': 'none'})}..", "JWT"),
        (token()[:-1], "three parts"),
        (token() + ".", "three parts"),
        (token()[1:], "JWT"),
        ("", "three parts"),
        ("..", "JWT"),
        ("x" * 40_000, "three parts"),
        (token(x="y" * 40_000), "three parts"),
        (token(exp="-"), "exp is missing"),
        (token(exp=None), "exp is missing"),
        (token(exp=str(NOW_S + 60)), "no number"),
        (token(exp=True), "no number"),
        (token(exp=float("nan")), "no number"),
        (token(exp=float("inf")), "no number"),
        (token(exp=10**400), "no number"),
        (token(exp=-1, iat="-"), "no number"),
        (token(exp=NOW_S), "expired"),
        (token(exp=NOW_S - 31), "expired 31 s ago"),
        (token(iat=None), "no number"),
        (token(iat="now"), "no number"),
        (token(iat=NOW_S + 1), "clocks"),
        (token(sub="-"), "its claim sub names no principal"),
        (token(sub=""), "names no principal"),
        (token(sub=" "), "names no principal"),
        (token(sub=7), "names no principal"),
        (token(sub=True), "names no principal"),
        (token(sub=["ann"]), "names no principal"),
        (token(sub="ann\ud800"), "names no principal"),
        (token(scope=7), "neither text nor a list"),
        (token(scope={"a": "b"}), "neither text nor a list"),
    ]
)
def test_what_does_not_follow_the_rules_is_refused_without_being_quoted(text: str, reason: str) -> None:
    with pytest.raises(TokenError, match=reason) as caught:
        rules().check(text, NOW_MS)
    assert len(text) < 30 or text[:20] not in str(caught.value)


def test_an_expiry_that_is_not_after_the_issue_is_refused_within_the_skew_as_well() -> None:
    with pytest.raises(TokenError, match="exp is not after its iat"):
        rules('unsecuredValidatorAllowableClockSkewMs="60000"').check(token(exp=NOW_S, iat=NOW_S), NOW_MS)


@for_each(["-", "", [], "a", "a b", ["a"], ["ab"], [1], ["a b"]])
def test_a_token_without_all_scopes_is_told_which_it_must_have(scope: object) -> None:
    with pytest.raises(ScopesMissing) as caught:
        rules('unsecuredValidatorRequiredScope="a b"').check(token(scope=scope), NOW_MS)
    assert caught.value.scopes == ("a", "b")


@settings(max_examples=200)
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_token_with_one_byte_changed_is_a_token_or_refused(position: int, value: int) -> None:
    data = bytearray(token().encode())
    data[position % len(data)] = value
    try:
        good = UnsecuredRules().check(data.decode("latin-1"), NOW_MS)
    except TokenError:
        return
    assert good.principal.strip().encode()
    assert good.expiry_ms > NOW_MS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200)
@given(JSON, st.dictionaries(st.sampled_from(["sub", "iat", "exp", "nbf", "scope"]), JSON))
def test_any_header_and_claims_are_a_token_or_refused(head: object, claims: dict[str, Any]) -> None:
    checked = UnsecuredRules(required_scopes=("a",), skew_ms=1)
    for text in (token(head), token(**claims), f"{encoded(head)}.{encoded(claims)}."):
        try:
            good = checked.check(text, NOW_MS)
        except (TokenError, ScopesMissing):
            continue
        assert claims.get("scope") in ("a", ["a"]) or "a" in claims["scope"]
        assert good.expiry_ms >= NOW_MS


# --- who takes them -----------------------------------------------------------------------------------------


@for_each(
    [
        {JAAS: ASKED},
        {JAAS: f"{MODULE} unsecuredValidatorPrincipalClaimName=sub;"},
        {"listener.name.x.sasl.jaas.config": ASKED},
        {"oauthbearer.sasl.jaas.config": ASKED},
        {CLASS: HANDLER},
        {CLASS: HANDLER, JAAS: f"{MODULE};"},
        {CLASS: HANDLER, "listener.name.x.sasl.jaas.config": f"{PACKAGE}.plain.PlainLoginModule required;"},
        {"listener.name.x.sasl.server.callback.handler.class": HANDLER},
        {"sasl.server.callback.handler.class": HANDLER},
    ]
)
def test_settings_that_ask_for_them(texts: dict[str, str]) -> None:
    assert asked(texts) == UnsecuredRules()


@for_each(
    [
        {},
        {JAAS: f"{MODULE};"},
        {JAAS: f"{MODULE} unsecured=true clientId=x;"},
        {JAAS: f"{PACKAGE}.plain.PlainLoginModule required unsecuredLoginStringClaim_sub=x;"},
        {"sasl.jaas.config": ASKED},
        {"listener.name.y.oauthbearer.sasl.jaas.config": ASKED},
        {"listener.name.x.plain.sasl.jaas.config": ASKED},
        {JAAS: ASKED, CLASS: SECURED_HANDLER},
        {JAAS: ASKED, KEYS: "file:///keys.json"},
        {JAAS: ASKED, f"listener.name.x.{KEYS}": "https://idp.example/keys"},
        {CLASS: SECURED_HANDLER, KEYS: "file:///keys.json"},
    ]
)
def test_settings_that_do_not_ask_for_them(texts: dict[str, str]) -> None:
    assert asked(texts) is None


@for_each(
    [
        ({CLASS: HANDLER, KEYS: "file:///keys.json"}, "remove one of them"),
        (
            {JAAS: f"{MODULE} unsecuredValidatorRequiredScopes=x;"},
            "did you mean 'unsecuredValidatorRequiredSc",
        ),
        ({JAAS: f'{MODULE} unsecuredValidatorRequiredScope="canary\\"";'}, "no scope; write printable"),
        ({JAAS: f'{MODULE} unsecuredValidatorAllowableClockSkewMs="-1";'}, "no whole number of millis"),
        ({JAAS: f"{MODULE} unsecuredValidatorAllowableClockSkewMs=canary;"}, "no whole number of millis"),
        ({JAAS: f"{MODULE} unsecuredLoginStringClaim_sub=canary"}, "does not end with a semicolon"),
    ]
)
def test_settings_that_contradict_each_other_or_are_malformed(texts: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        asked(texts)
    assert "canary" not in str(caught.value)


@for_each(
    [
        {"listener.name.x.plain.sasl.server.callback.handler.class": HANDLER},
        {CLASS: "org.example.Own"},
        {CLASS: f"{HANDLER}2"},
    ]
)
def test_handlers_of_others_stop_the_start(texts: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded, which protects the broker"):
        Broker(config=texts).start()


# --- over a socket ------------------------------------------------------------------------------------------

LISTENER = "listener.name.sasl_plaintext."


def served(options: str = "unsecuredLoginStringClaim_sub=admin", **more: str) -> Broker:
    config = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{LISTENER}oauthbearer.sasl.jaas.config": f"{MODULE} {options};",
        **more,
    }
    return Broker(config=config)


def client(broker: Broker, options: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} {options};",
    }


def test_a_client_with_the_options_of_java_logs_in(caplog: pytest.LogCaptureFixture) -> None:
    more = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    }
    with caplog.at_level(logging.WARNING), served(**more) as broker:
        alice = client(broker, 'unsecuredLoginStringClaim_sub=alice unsecuredLoginLifetimeSeconds="60"')
        with Admin(config=alice) as admin:
            admin.create_topic("orders")
        with Producer(config=alice) as producer:
            assert producer.send("orders", b"x").result(10).offset == 0
        with Admin(config=client(broker, "unsecuredLoginStringClaim_sub=bob")) as admin:
            assert admin.list_topics() == []
    told = [record.message for record in caplog.records if "without a signature" in record.message]
    assert told == [
        "listener SASL_PLAINTEXT takes tokens of OAUTHBEARER without a signature: any client can log in as"
        " any user; use it for tests only"
    ]


def test_a_broker_for_tests_takes_them_by_one_argument() -> None:
    security = Security("SASL_PLAINTEXT", users=["alice"], unsecured_tokens=True)
    with Broker(security=security) as broker:
        for mechanism in (None, "SCRAM-SHA-256", "PLAIN"):
            with Admin(config=broker.client_settings("alice", mechanism)) as admin:
                assert admin.list_topics() == []
        with pytest.raises(ConfigError, match="there is no user 'bob'"):
            broker.client_settings("bob")
    assert security.mechanisms[0] == "OAUTHBEARER"


def test_a_broker_for_tests_takes_none_without_the_argument() -> None:
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url.* for tests, the option unsecuredLogin"):
        Broker(security=Security("SASL_PLAINTEXT", mechanisms=["OAUTHBEARER"])).start()
    with pytest.raises(ConfigError, match="name SASL_PLAINTEXT or SASL_SSL"):
        Security("SSL", unsecured_tokens=True)
    with pytest.raises(ConfigError, match="'a b' cannot be described"):
        Security("SASL_SSL", users=["a b"], unsecured_tokens=True).client_settings()


def test_a_client_without_the_scope_is_told_so() -> None:
    with served('unsecuredValidatorRequiredScope="read write"') as broker:
        options = 'unsecuredLoginStringClaim_sub=alice unsecuredLoginListClaim_scope="|write|read"'
        with Admin(config=client(broker, options)) as admin:
            assert admin.list_topics() == []
        why = r"insufficient_scope \(scope wanted: read write\)"
        settings_ = client(broker, "unsecuredLoginStringClaim_sub=alice")
        with pytest.raises(AuthenticationError, match=why), Admin(config=settings_) as admin:
            admin.list_topics()


def test_a_signed_token_and_one_that_has_expired_are_refused_in_the_way_of_rfc_7628() -> None:
    refused = b'{"status":"invalid_token"}'
    with served() as broker:
        for text in (token({"alg": "RS256"}, "AAAA", exp=4e9), token(exp=NOW_S), token(exp="-")):
            with WireClient(broker.port) as wire:
                assert wire.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
                login = f"n,,\x01auth=Bearer {text}\x01\x01".encode()
                answer = wire.ask(SaslAuthenticateRequest(auth_bytes=login), 2)
                assert (answer.error_code, bytes(answer.auth_bytes)) == (0, refused)
                answer = wire.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
                assert (answer.error_code, answer.error_message) == (58, refused.decode())
