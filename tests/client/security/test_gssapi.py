"""Tests of SASL/GSSAPI with a fake Kerberos library: the steps of RFC 4752 after Kerberos's own."""

from __future__ import annotations

import sys
import types
from typing import Any, NamedTuple

import pytest

from penstock.client.security.authenticator import Authenticator, RawToken
from penstock.client.security.mechanisms import Gssapi, check_library
from penstock.errors import AuthenticationError, MissingDependencyError
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse


class GSSError(Exception):
    pass


class Wrapped(NamedTuple):
    message: bytes


class Context:
    """A fake GSSAPI security context: it is complete after two steps, and wraps data with a prefix."""

    def __init__(self, name: str, usage: str, creds: object) -> None:
        assert (name, usage) == ("kafka@b1.example", "initiate")
        self.steps = 0

    @property
    def complete(self) -> bool:
        return self.steps == 2

    def step(self, token: bytes | None) -> bytes:
        if token == b"refused":
            raise GSSError("Server not found\nin Kerberos database")
        self.steps += 1
        return b"token%d" % self.steps

    def unwrap(self, data: bytes) -> Wrapped:
        return Wrapped(data.removeprefix(b"wrapped:"))

    def wrap(self, data: bytes, encrypt: bool) -> Wrapped:
        assert not encrypt
        return Wrapped(b"wrapped:" + data)


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = types.ModuleType("gssapi")
    library.Name = lambda text, kind: text
    library.NameType = types.SimpleNamespace(hostbased_service=1, kerberos_principal=2)
    library.Credentials = lambda **values: values
    library.SecurityContext = Context
    library.exceptions = types.SimpleNamespace(GSSError=GSSError)
    monkeypatch.setitem(sys.modules, "gssapi", library)


def mechanism() -> Gssapi:
    return Gssapi("kafka", "b1.example", "ann@X", None)


def sent(message: object) -> bytes:
    assert isinstance(message, SaslAuthenticateRequest)
    return bytes(message.auth_bytes)


def test_tokens_layers_and_the_end() -> None:
    one = Authenticator(mechanism(), "b1.example:1")
    assert sent(one.receive(SaslHandshakeResponse(mechanisms=["GSSAPI"]))) == b"token1"
    assert sent(one.receive(SaslAuthenticateResponse(auth_bytes=b"server"))) == b"token2"
    last = one.receive(SaslAuthenticateResponse(auth_bytes=b"wrapped:\x01\x00\x10\x00"))
    assert sent(last) == b"wrapped:\x01\x00\x10\x00ann@X"
    assert one.receive(SaslAuthenticateResponse()) is None
    assert one.is_done


def test_the_last_raw_token_is_not_answered() -> None:
    one = Authenticator(mechanism(), "b1.example:1", is_raw=True)
    assert one.receive(SaslHandshakeResponse(mechanisms=["GSSAPI"])) == RawToken(b"token1")
    assert one.receive(b"server") == RawToken(b"token2")
    last = one.receive(b"wrapped:\x01\x00\x10\x00")
    assert isinstance(last, RawToken)
    assert not last.is_answered
    assert one.receive(b"") is None


def test_what_kerberos_and_the_broker_refuse() -> None:
    one = mechanism()
    one.initial()
    with pytest.raises(AuthenticationError, match="Server not found in Kerberos database; is there a ticket"):
        one.respond(b"refused")
    two = mechanism()
    two.initial()
    two.respond(b"server")
    with pytest.raises(AuthenticationError, match="encryption of GSSAPI"):
        two.respond(b"wrapped:\x04\x00\x10\x00")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'penstock\[kerberos\]'"):
        mechanism()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="kerberos"):
        check_library("GSSAPI")
    check_library("PLAIN")
