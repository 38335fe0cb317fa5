"""Tests of unsigned OAUTHBEARER tokens, configured with the options of Java's and librdkafka's clients."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from penstock.client.security.unsecured_logins import (
    UnsecuredLogin,
    asks_for_unsecured,
    login_of_jaas,
    login_of_text,
)
from penstock.errors import ConfigError
from penstock.security.oauth import claims_of

SUB = {"unsecuredLoginStringClaim_sub": "alice"}


def option(name: str, value: str) -> dict[str, str]:
    return {**SUB, f"unsecuredLogin{name}": value}


@for_each(
    [
        (SUB, {"sub": "alice"}, {}, 3600),
        ({**SUB, "clientId": "x"}, {"sub": "alice"}, {}, 3600),
        (option("LifetimeSeconds", "60"), {"sub": "alice"}, {}, 60),
        (option("StringClaim_scope", "a b"), {"sub": "alice", "scope": "a b"}, {}, 3600),
        (option("NumberClaim_level", "7.5"), {"sub": "alice", "level": 7.5}, {}, 3600),
        (option("ListClaim_scope", "|a|b c"), {"sub": "alice", "scope": ["a", "b c"]}, {}, 3600),
        (option("ListClaim_scope", ",a"), {"sub": "alice", "scope": ["a"]}, {}, 3600),
        (option("ListClaim_scope", "|a||b"), {"sub": "alice", "scope": ["a", "", "b"]}, {}, 3600),
        (option("ListClaim_scope", "|"), {"sub": "alice", "scope": []}, {}, 3600),
        (option("ListClaim_scope", ""), {"sub": "alice", "scope": []}, {}, 3600),
        (option("Extension_traceId", "123"), {"sub": "alice"}, {"traceId": "123"}, 3600),
        (
            {"unsecuredLoginStringClaim_name": "bob", "unsecuredLoginPrincipalClaimName": " name "},
            {"name": "bob"},
            {},
            3600,
        ),
        (
            {**option("ScopeClaimName", "roles"), "unsecuredLoginNumberClaim_scope": "1"},
            {"sub": "alice", "scope": 1.0},
            {},
            3600,
        ),
    ]
)
def test_the_options_of_java(
    options: dict[str, str], claims: dict[str, object], extensions: dict[str, str], lifetime_s: int
) -> None:
    assert asks_for_unsecured(options)
    assert login_of_jaas(options) == (claims, extensions, lifetime_s)


@for_each(
    [
        ({"unsecuredLoginLifetimeSeconds": "60"}, "add the option unsecuredLoginStringClaim_sub"),
        ({"unsecuredLoginStringClaim_sub": " "}, "no claim names the principal"),
        ({"unsecuredLoginNumberClaim_sub": "1"}, "no claim names the principal"),
        (option("PrincipalClaimName", "name"), "add the option unsecuredLoginStringClaim_name"),
        (
            option("StringClaim_iat", "1"),
            "unsecuredLoginStringClaim_iat: the claim iat is made from the time",
        ),
        (option("NumberClaim_exp", "1"), "cannot be set"),
        (option("StringClaim_", "canary"), "the name of a claim follows unsecuredLoginStringClaim_"),
        (option("NumberClaim_level", "canary"), "unsecuredLoginNumberClaim_level is no number"),
        (option("NumberClaim_level", "nan"), "is no number"),
        (option("NumberClaim_scope", "1"), "write unsecuredLoginListClaim_scope"),
        (option("LifetimeSeconds", "canary"), "LifetimeSeconds is no whole number of seconds from 1"),
        (option("LifetimeSeconds", "0"), "no whole number"),
        (option("LifetimeSeconds", "-5"), "no whole number"),
        (option("LifetimeSeconds", "9999999999"), "no whole number"),
        (option("LifetimeSecond", "60"), "did you mean 'unsecuredLoginLifetimeSeconds'"),
        (option("StringClam_x", "canary"), "did you mean 'unsecuredLoginStringClaim_'"),
    ]
)
def test_options_of_java_that_make_no_token(options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        login_of_jaas(options)
    assert "canary" not in str(caught.value)


@for_each(
    [
        ("", {"sub": "admin"}, {}, 3600),
        ("ann", {"sub": "ann"}, {}, 3600),
        ("principal=alice", {"sub": "alice"}, {}, 3600),
        ("principal=a=b  scope=r1,r2", {"sub": "a=b", "scope": ["r1", "r2"]}, {}, 3600),
        (
            "principalClaimName=azp principal=alice scopeClaimName=roles scope=r1 lifeSeconds=600",
            {"azp": "alice", "roles": ["r1"]},
            {},
            600,
        ),
        ("principal=alice extension_traceId=123", {"sub": "alice"}, {"traceId": "123"}, 3600),
    ]
)
def test_the_text_of_librdkafka(
    text: str, claims: dict[str, object], extensions: dict[str, str], lifetime_s: int
) -> None:
    assert login_of_text(text) == (claims, extensions, lifetime_s)


@for_each(
    [
        ("scope=a", "names no principal; add principal=NAME"),
        ("principal=alice canary", "word 2 is not understood"),
        ("principal=", "word 1 is not understood"),
        ("princpal=canary", "word 1 is not understood; .*did you mean 'principal'"),
        ("principal=a principal=canary", "principal is given twice"),
        ("principal=a lifeSeconds=canary", "lifeSeconds is no whole number"),
        ("principal=a principalClaimName=exp", "cannot be set"),
        ("principal=a scope=b scopeClaimName=iat", "cannot be set"),
    ]
)
def test_a_text_that_makes_no_token(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        login_of_text(text)
    assert "canary" not in str(caught.value)


@given(st.dictionaries(st.sampled_from(["StringClaim_x", "ListClaim_scope", "Extension_y"]), st.text()))
def test_a_token_has_the_claims_and_the_times(options: dict[str, str]) -> None:
    login = login_of_jaas({**SUB, **{f"unsecuredLogin{name}": value for name, value in options.items()}})
    token = login.token(1000.9)
    text = token.text.reveal()
    assert text.endswith(".")
    assert claims_of(text) == {**login.claims, "iat": 1000, "exp": 4600}
    assert token.expires_at_s == 4600


def test_the_lifetime_is_that_of_the_login() -> None:
    assert UnsecuredLogin({"sub": "ann"}, {}, 60).token(1000.0).expires_at_s == 1060
