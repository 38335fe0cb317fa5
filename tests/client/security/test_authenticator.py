"""Tests of the client's SASL state machine: the effect of each answer, and answers that it must refuse."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.security.authenticator import STEPS_MAX, Authenticator, RawToken
from penstock.client.security.mechanisms import Mechanism, OAuthBearer, Plain, Scram
from penstock.errors import AuthenticationError
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from penstock.security.oauth import Token, client_message
from penstock.security.scram import ScramCredential, ScramServer
from penstock.security.secrets import Secret

PASSWORD = Secret("canary")
GOOD = SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"])


def plain() -> Plain:
    return Plain("ann", PASSWORD)


def scram() -> Scram:
    return Scram("SCRAM-SHA-256", "ann", PASSWORD)


def oauth() -> OAuthBearer:
    return OAuthBearer(client_message(Token(Secret("a.b.c"))))


MAKERS: list[Callable[[], Mechanism]] = [plain, scram, oauth]


def answer(
    data: bytes = b"", error: int = 0, message: str = "", lifetime_ms: int = 0
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=error, error_message=message, auth_bytes=data, session_lifetime_ms=lifetime_ms
    )


def token_of(message: object) -> bytes:
    assert isinstance(message, SaslAuthenticateRequest)
    return bytes(message.auth_bytes)


def test_plain_by_sasl_authenticate_and_by_raw_tokens() -> None:
    one = Authenticator(plain(), "b:1")
    assert one.begin().mechanism == "PLAIN"
    assert one.handshake_version == 1
    assert token_of(one.receive(GOOD)) == b"\0ann\0canary"
    assert one.receive(answer(lifetime_ms=5000)) is None
    assert one.is_done
    assert one.session_lifetime_ms == 5000
    raw = Authenticator(plain(), "b:1", is_raw=True)
    assert raw.handshake_version == 0
    assert raw.receive(GOOD) == RawToken(b"\0ann\0canary")
    assert raw.receive(b"") is None
    assert "closed the connection without a reason" in str(raw.refused_by_silence())


def test_scram_ends_only_with_the_proof_of_the_broker() -> None:
    server = ScramServer("SCRAM-SHA-256")
    one = Authenticator(scram(), "b:1")
    server.receive_first(token_of(one.receive(GOOD)))
    challenge = server.challenge(ScramCredential.of_password("SCRAM-SHA-256", "canary", b"salt"))
    final = server.receive_final(token_of(one.receive(answer(challenge))))
    assert not one.is_done
    assert one.receive(answer(final)) is None
    assert one.is_done


@pytest.mark.parametrize("early", [0, 1])
def test_success_without_the_proof_of_the_broker_is_refused(early: int) -> None:
    server = ScramServer("SCRAM-SHA-256")
    one = Authenticator(scram(), "b:1")
    server.receive_first(token_of(one.receive(GOOD)))
    if early:
        one.receive(answer(server.challenge(ScramCredential.of_password("SCRAM-SHA-256", "canary", b"salt"))))
    with pytest.raises(AuthenticationError, match="malformed"):
        one.receive(answer(b""))
    assert not one.is_done


@pytest.mark.parametrize(
    ("handshake", "why"),
    [
        (SaslHandshakeResponse(error_code=33, mechanisms=["B", "A"]), "set sasl.mechanism to one of: A, B"),
        (SaslHandshakeResponse(error_code=33, mechanisms=[]), "one of: none"),
        (SaslHandshakeResponse(error_code=34, mechanisms=[]), "this listener has no SASL"),
        (SaslHandshakeResponse(error_code=-1, mechanisms=[]), "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_handshakes_that_fail(handshake: SaslHandshakeResponse, why: str) -> None:
    with pytest.raises(AuthenticationError, match=rf"^b:1: authentication by PLAIN failed: .*{why}"):
        Authenticator(plain(), "b:1").receive(handshake)


@pytest.mark.parametrize(
    ("make", "said", "why"),
    [
        (plain, "Authentication failed: Invalid username or password", "Invalid username.*password of 'ann'"),
        (scram, "", "refused: .*does user 'ann' exist, and has it a credential for SCRAM-SHA-256"),
        (oauth, '{"status":"invalid_token"}', "is the token still valid"),
    ],
)
def test_a_refusal_repeats_the_broker_and_says_what_may_be_wrong(
    make: Callable[[], Mechanism], said: str, why: str
) -> None:
    one = Authenticator(make(), "b:1")
    one.receive(GOOD)
    with pytest.raises(AuthenticationError, match=why) as caught:
        one.receive(answer(error=58, message=said))
    assert "canary" not in str(caught.value)


def test_a_refused_token_is_answered_so_that_the_broker_can_say_why() -> None:
    one = Authenticator(oauth(), "b:1")
    one.receive(GOOD)
    refusal = json.dumps({"status": "insufficient_scope", "scope": "kafka"}).encode()
    assert token_of(one.receive(answer(refusal))) == b"\x01"
    with pytest.raises(AuthenticationError, match=r"insufficient_scope \(scope wanted: kafka\)"):
        one.receive(answer(error=58, message="no"))


@pytest.mark.parametrize("make", MAKERS)
def test_answers_out_of_turn_are_refused(make: Callable[[], Mechanism]) -> None:
    with pytest.raises(AuthenticationError, match="not asked"):
        Authenticator(make(), "b:1").receive(answer())
    twice = Authenticator(make(), "b:1")
    twice.receive(GOOD)
    with pytest.raises(AuthenticationError, match="not asked"):
        twice.receive(GOOD)
    done = Authenticator(plain(), "b:1")
    done.receive(GOOD)
    done.receive(answer())
    with pytest.raises(AuthenticationError, match="not asked"):
        done.receive(answer())


@pytest.mark.parametrize("make", MAKERS)
@settings(max_examples=60)
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5))
def test_random_challenges_end_in_an_authentication_error_or_what_the_mechanism_allows(
    make: Callable[[], Mechanism], challenges: list[bytes]
) -> None:
    one = Authenticator(make(), "b:1")
    one.receive(GOOD)
    try:
        for challenge in challenges:
            one.receive(answer(challenge))
    except AuthenticationError:
        assert not one.is_done or make is not scram
    assert not (one.is_done and make is scram)


def test_there_is_an_end_to_every_exchange() -> None:
    class Endless:
        name, is_slow, is_silent_at_end = "X", False, False

        def initial(self) -> bytes:
            return b""

        def respond(self, challenge: bytes) -> bytes | None:
            return b""

        def hint(self) -> str:
            return ""

    one = Authenticator(Endless(), "b:1")
    one.receive(GOOD)
    for _ in range(STEPS_MAX):
        assert one.receive(answer()) is not None
    with pytest.raises(AuthenticationError, match=f"no end after {STEPS_MAX}"):
        one.receive(answer())
