"""Tests of SASL tokens as frames without a header, as clients before Kafka 1.0 send them."""

from __future__ import annotations

import pytest

from gateway.test_translation_table import taken
from penstock.gateway.translation import NotForwarded, sasl
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

UPSTREAM = taken("4.3")
KERBEROS = bytes.fromhex("60820234 06092a864886f71201020201 00".replace(" ", "")) + bytes(500)


def test_the_first_token_of_0_9_is_no_request() -> None:
    assert sasl.is_bare_token(KERBEROS)
    assert sasl.is_bare_token(memoryview(KERBEROS))
    assert not sasl.is_bare_token(b"")
    assert not sasl.is_bare_token(b"\0\x12\0\0\0\0\0\1\0\4test")
    assert not sasl.is_bare_token(b"\0\x11\0\0\0\0\0\1\0\4test\0\5PLAIN")
    assert not sasl.is_bare_token(b"\x60" + bytes(40))


def test_tokens_become_requests_and_answers_become_tokens() -> None:
    steps = sasl.exchange(memoryview(b"\0user\0secret"), UPSTREAM)
    call = next(steps)
    assert (call.api_key, call.version, call.node_id) == (36, 0, None)
    assert call.message.encode(0) == b"\0\0\0\x0c\0user\0secret"  # type: ignore[attr-defined]
    with pytest.raises(StopIteration) as done:
        steps.send(SaslAuthenticateResponse(auth_bytes=memoryview(b"challenge")))
    assert done.value.value == b"challenge"


def test_a_client_that_is_not_accepted_is_refused() -> None:
    steps = sasl.exchange(b"x", UPSTREAM)
    next(steps)
    with pytest.raises(NotForwarded, match=r"wrong password.*SASL_AUTHENTICATION_FAILED"):
        steps.send(SaslAuthenticateResponse(error_code=58, error_message="wrong password"))


def test_a_mechanism_is_announced_for_clients_that_do_not() -> None:
    steps = sasl.handshake(sasl.GSSAPI, UPSTREAM)
    call = next(steps)
    assert (call.api_key, call.version, call.message.mechanism) == (17, 1, "GSSAPI")  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        steps.send(SaslHandshakeResponse())
    steps = sasl.handshake(sasl.GSSAPI, UPSTREAM)
    next(steps)
    with pytest.raises(NotForwarded, match="the cluster takes PLAIN, SCRAM-SHA-256"):
        steps.send(SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "SCRAM-SHA-256"]))


@pytest.mark.parametrize("upstream", [{17: (0, 0), 36: (0, 2)}, {17: (0, 1)}, {}])
def test_clusters_before_1_0_take_bare_tokens_themselves(upstream: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(NotForwarded, match=r"older than 1\.0"):
        next(sasl.exchange(b"x", upstream))
    with pytest.raises(NotForwarded, match=r"older than 1\.0"):
        next(sasl.handshake("PLAIN", upstream))
