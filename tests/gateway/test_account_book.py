"""Tests of the gateway's file of user accounts: its syntax, its file permissions, and its reloading."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from for_each import for_each
from penstock.errors import ConfigError
from penstock.gateway.accounts.book import USERS_MAX, AccountBook
from penstock.gateway.accounts.settings import has_login, overlaid, without_login
from penstock.security.scram import ITERATIONS_MIN, salted_password
from penstock.security.secrets import Secret

BASE = {"bootstrap.servers": "kafka:9093", "security.protocol": "SASL_PLAINTEXT"}

TEXT = """
sasl.enabled.mechanisms = ["PLAIN", "SCRAM-SHA-256"]
connections.max.reauth.ms = 60000

[users.device-7]
password = "${env:DEVICE_7}"
cluster.sasl.mechanism = "PLAIN"
cluster.sasl.username = "collector"
cluster.sasl.password = "sesame"

[default.cluster]
sasl.mechanism = "PLAIN"
sasl.username = "nobody"
sasl.password = "open"
"""


def tables(**users: Any) -> dict[str, Any]:
    account = {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    return {
        "users": {name: {"password": "secret", "cluster": account, **more} for name, more in users.items()}
    }


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_file_says_who_may_connect_and_as_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_7", "hidden-1")
    book = AccountBook(written(tmp_path / "accounts.toml", TEXT), BASE)
    accounts = book.accounts
    assert accounts.mechanisms == ("PLAIN", "SCRAM-SHA-256")
    assert accounts.lifetime_ms == 60000
    assert accounts.password("device-7") == Secret("hidden-1")
    security = accounts.users["device-7"].account.config.security
    assert security is not None
    assert (security.username, security.password) == ("collector", Secret("sesame"))
    assert accounts.default is not None
    assert accounts.default.config.security is not None
    assert accounts.default.config.security.username == "nobody"
    assert accounts.password("another") is None
    for shown in (repr(accounts.users["device-7"].account), repr(security), repr(accounts.default.config)):
        assert not {"hidden-1", "sesame", "open"} & set(shown.replace("'", " ").split())


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match="chmod 600"):
        AccountBook(written(tmp_path / "a.toml", TEXT, mode), BASE)


def test_a_file_is_read_again_and_what_stays_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_7", "hidden-1")
    path = tmp_path / "accounts.toml"
    book = AccountBook(written(path, TEXT), BASE)
    before = book.accounts
    assert not book.has_changed()
    written(path, TEXT.replace('"open"', '"opened"'))
    assert book.has_changed()
    after = book.read()
    assert not book.has_changed()
    assert after.users["device-7"] is before.users["device-7"]
    assert after.default is not before.default
    assert after.live == {after.users["device-7"].account, after.default}
    written(path, "[users")
    with pytest.raises(ConfigError, match=r"accounts\.toml"):
        book.read()
    assert book.accounts is after
    assert not book.has_changed()
    path.unlink()
    assert book.has_changed()
    with pytest.raises(ConfigError, match="cannot be read"):
        book.read()


@for_each(
    [
        ({}, "name users"),
        ({"users": {}}, "name users"),
        ({"users": []}, "name users"),
        ({"users": {"a": "x"}}, r"\[users.a\] is no table"),
        ({"users": {"a": {"password": "secret-1"}}}, "a table `cluster` is missing"),
        ({"users": {"a": {"cluster": {}}}}, "a password is missing"),
        ({"users": {"a": {"password": 5, "cluster": {}}}}, "a password is missing"),
        ({"users": {"a": {"password": "${env:NO_SUCH_SECRET}", "cluster": {}}}}, "NO_SUCH_SECRET is not set"),
        ({"users": {"a": {"password": "secret-1", "cluster": {}, "more": 1}}}, "'more' is not known"),
        ({"default": {"password": "secret-1", "cluster": {}}}, "'password' is not known"),
        (tables(a={"cluster": {"nonsense": "secret-1"}}), r"\[users.a\], cluster: .*nonsense"),
        (tables(a={"cluster": {"bootstrap.servers": "x:1"}}), "is that of the gateway"),
        (tables(a={}) | {"sasl.enabled.mechanisms": ["GSSAPI"]}, "name some of PLAIN"),
        (tables(a={}) | {"sasl.enabled.mechanisms": []}, "name some of PLAIN"),
        (tables(a={}) | {"connections": {"max": {"reauth": {"ms": -1}}}}, "number of milliseconds"),
        (tables(a={}) | {"user": {"a": {"password": "secret-1"}}}, "'user.a.password' is not known"),
        ({"users": {str(number): {} for number in range(USERS_MAX + 1)}}, "are the most"),
    ]
)
def test_what_does_not_fit_is_refused_and_no_secret_is_shown(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        AccountBook(given, BASE)
    assert "secret-1" not in str(caught.value)


def test_credentials_of_scram_are_those_of_the_password_and_unknown_names_look_alike() -> None:
    accounts = AccountBook(tables(ann={}), BASE).accounts
    known = accounts.credential("ann", "SCRAM-SHA-512")
    assert known is not None
    salted = salted_password("SCRAM-SHA-512", "secret", known.salt, ITERATIONS_MIN)
    assert known == type(known).of_salted_password("SCRAM-SHA-512", salted, known.salt, ITERATIONS_MIN)
    # What is sent of it before it is proved does not depend on whether the name is known.
    fake = accounts.fake_credential("ann", "SCRAM-SHA-512", is_token=False)
    assert (fake.salt, fake.iterations) == (known.salt, known.iterations)
    assert fake.stored_key != known.stored_key
    assert accounts.credential("bob", "SCRAM-SHA-512") is None
    assert accounts.token_credential("ann", "SCRAM-SHA-512") is None


def test_credentials_of_the_gateway_and_of_an_account_do_not_mix() -> None:
    base = {**BASE, "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": "x", "ssl.ca.location": "ca.pem"}
    account = {"sasl.mechanisms": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    assert overlaid(base, account) == {**BASE, "ssl.ca.location": "ca.pem", **account}
    assert overlaid(base, {"client.id": "x"}) == {**base, "client.id": "x"}


def test_a_connection_before_the_login_keeps_tls() -> None:
    assert without_login(BASE) == {"bootstrap.servers": "kafka:9093"}
    given = {"security.protocol": "sasl_ssl", "ssl.ca.location": "ca.pem", "sasl.mechanism": "PLAIN"}
    assert without_login(given) == {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    assert not has_login(given)
    assert has_login({**given, "sasl.username": "u"})
    assert has_login({**given, "sasl.mechanism": "OAUTHBEARER"})
