"""Tests of the requests that a connection may send before and after SASL, as frames without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.errors import PenstockError
from penstock.protocol.api import API_TABLE, ApiKey, response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.sasl_mechanisms import (
    INVALID_TOKEN,
    BearerExchange,
    Exchange,
    PlainExchange,
    ScopesMissing,
    ScramExchange,
)
from penstock.security.sasl_server import (
    VERSION_QUESTIONS_MAX,
    FrameVerdict,
    LoginOutcome,
    LoginState,
    SaslServer,
)
from penstock.security.scram import ScramClient, ScramCredential
from penstock.security.secrets import Secret
from penstock.security.unknown_users import fake_credential

NOW, NOW_MS = 1000.0, 1_700_000_000_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CREDENTIALS = {
    mechanism: ScramCredential.of_password(mechanism, "ann-secret", b"salt", 4096)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
}


class Users:
    """A user store for tests: ann can use every mechanism, bob only PLAIN.

    Ann also has one delegation token.
    """

    def password(self, name: str) -> Secret | None:
        return {"ann": Secret("ann-secret"), "bob": Secret("bob-secret")}.get(name)

    def credential(self, name: str, mechanism: str) -> ScramCredential | None:
        return CREDENTIALS[mechanism] if name == "ann" else None

    def token_credential(self, token_id: str, mechanism: str) -> tuple[ScramCredential, str, int] | None:
        return (CREDENTIALS[mechanism], "ann", NOW_MS + 60_000) if token_id == "token1" else None

    def fake_credential(self, name: str, mechanism: str, *, is_token: bool) -> ScramCredential:
        return fake_credential(mechanism, b"key", name)


def validate(token: str) -> Any:
    if token == "good":
        return SimpleNamespace(principal="ann", expiry_ms=NOW_MS + 30_000)
    if token == "narrow":
        raise ScopesMissing("it lacks the scope b", ("a", "b"))
    raise PenstockError("the signature is wrong")


def begin(mechanism: str) -> Exchange:
    if mechanism == "PLAIN":
        return PlainExchange(Users())
    if mechanism == "OAUTHBEARER":
        return BearerExchange(validate, lambda reason: None)
    return ScramExchange(mechanism, Users(), lambda: NOW_MS)


def api_versions(frame: memoryview) -> bytes:
    error = 35 if int.from_bytes(frame[2:4], "big") > 4 else 0
    return b"\0\0\0\x06" + bytes(frame[4:8]) + error.to_bytes(2, "big")


def authenticator(*, lifetime_ms: int = 0, mechanisms: tuple[str, ...] = MECHANISMS) -> SaslServer:
    return SaslServer(mechanisms, begin, api_versions, lambda mechanism: lifetime_ms)


def frame(request: Any, version: int, correlation_id: int = 7) -> memoryview:
    key = request.API_KEY
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big") + b"\0\1c"
    if response_header_version(key, version) or (key == ApiKey.API_VERSIONS and version >= 3):
        head += b"\0"
    return memoryview(head + codec_for(type(request), version).encode(request))


def handshake(mechanism: str = "PLAIN", version: int = 1) -> memoryview:
    return frame(SaslHandshakeRequest(mechanism=mechanism), version)


def token(data: bytes, version: int = 2) -> memoryview:
    return frame(SaslAuthenticateRequest(auth_bytes=data), version)


def answer(verdict: FrameVerdict, key: ApiKey, version: int) -> Any:
    assert verdict.reply is not None
    assert int.from_bytes(verdict.reply[:4], "big") == len(verdict.reply) - 4
    position = 9 if response_header_version(key, version) else 8
    return codec_for(API_TABLE[key].response, version).decode(memoryview(verdict.reply), position)[0]


def send(sasl: SaslServer, *frames: memoryview, now: float = NOW) -> FrameVerdict:
    verdict = FrameVerdict()
    for each in frames:
        verdict = sasl.receive(each, now, NOW_MS)
    return verdict


def log_in(
    sasl: SaslServer, password: bytes = b"ann-secret", version: int = 2, now: float = NOW
) -> FrameVerdict:
    return send(sasl, handshake(), token(b"\0ann\0" + password, version), now=now)


# --- order --------------------------------------------------------------------------------------------------


def test_api_versions_then_handshake_then_token() -> None:
    sasl = authenticator()
    assert not send(sasl, frame(ApiVersionsRequest(), 5)).closes
    assert not send(sasl, frame(ApiVersionsRequest(), 0)).closes
    verdict = log_in(sasl)
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_message == ""
    assert verdict.authenticated is not None
    assert verdict.authenticated.name == "ann"
    assert sasl.state is LoginState.COMPLETE
    assert send(sasl, frame(MetadataRequest(), 1)) == FrameVerdict()


def test_versions_are_not_asked_for_without_end() -> None:
    sasl = authenticator()
    for _ in range(VERSION_QUESTIONS_MAX):
        assert not send(sasl, frame(ApiVersionsRequest(), 5)).closes
    verdict = send(sasl, frame(ApiVersionsRequest(), 5))
    assert verdict.closes
    assert verdict.reply is None
    assert not verdict.delays


@for_each(
    (frames,)
    for frames in [
        (frame(MetadataRequest(), 1),),
        (token(b"\0ann\0ann-secret"),),
        (handshake(version=1)[:5],),
        (frame(ApiVersionsRequest(), 0), frame(ApiVersionsRequest(), 0)),
        (frame(ApiVersionsRequest(), 0), frame(MetadataRequest(), 1)),
        (memoryview(b"\x00\x11\x00\x02" + bytes(handshake())[4:]),),
        (memoryview(b"`\x82\x01\x00" + bytes(20)),),
        (handshake(), memoryview(b"\x00\x24\x00\x03" + bytes(token(b""))[4:])),
        (memoryview(b"GET / HTTP/1.1"),),
        (memoryview(b""),),
        (memoryview(b"\x00\x11"),),
        (handshake(), memoryview(b"\x00\x24\x00\x01\x00")),
    ]
)
def test_what_comes_out_of_turn_closes_the_connection_without_an_answer(
    frames: tuple[memoryview, ...],
) -> None:
    sasl = authenticator()
    verdict = send(sasl, *frames)
    assert verdict.closes
    assert verdict.reply is None
    assert verdict.reason
    assert sasl.identity is None
    assert send(sasl, handshake()).closes


@pytest.mark.parametrize("request_", [ApiVersionsRequest(), SaslHandshakeRequest(mechanism="PLAIN")])
def test_another_api_amid_tokens_is_answered_with_34_and_closed_late(request_: Any) -> None:
    verdict = send(authenticator(), handshake(), frame(request_, 0))
    assert verdict.closes
    assert verdict.delays
    assert verdict.reply is not None
    assert int.from_bytes(verdict.reply[8:10], "big") == 34


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["", "GSSAPI", "plain", "SCRAM-SHA-1"])
def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are(
    mechanism: str, version: int
) -> None:
    verdict = send(authenticator(mechanisms=("PLAIN",)), handshake(mechanism, version))
    response = answer(verdict, ApiKey.SASL_HANDSHAKE, version)
    assert (response.error_code, response.mechanisms) == (33, ["PLAIN"])
    assert verdict.closes
    assert verdict.delays


def test_raw_tokens_after_handshake_0() -> None:
    sasl = authenticator()
    verdict = send(sasl, handshake(version=0), memoryview(b"\0ann\0ann-secret"))
    assert verdict.reply == b"\0\0\0\0"
    assert sasl.state is LoginState.COMPLETE
    verdict = send(authenticator(), handshake(version=0), memoryview(b"\0ann\0wrong"))
    assert verdict.reply is None
    assert verdict.closes
    assert verdict.delays


# --- PLAIN --------------------------------------------------------------------------------------------------


@for_each(
    [
        (data, text, version)
        for version in [0, 1, 2]
        for data, text in [
            (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
            (b"\0ann\0ann-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
            (b"\0\0\0\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
            (b"ann\0x", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
            (b"\0\0x", "Authentication failed: username not specified"),
            (b"\0ann\0", "Authentication failed: password not specified"),
            (b"\0ann\0wrong", "Authentication failed: Invalid username or password"),
            (b"\0carl\0ann-secret", "Authentication failed: Invalid username or password"),
            (b"\0ann\0ann-secre", "Authentication failed: Invalid username or password"),
            (b"\0\xff\0x", "Authentication failed: Invalid username or password"),
            (
                b"bob\0ann\0ann-secret",
                "Authentication failed: Client requested an authorization id that is different from username",
            ),
        ]
    ]
)
def test_plain_is_refused_with_kafkas_texts(data: bytes, text: str, version: int) -> None:
    sasl = authenticator()
    verdict = send(sasl, handshake(), token(data, version))
    response = answer(verdict, ApiKey.SASL_AUTHENTICATE, version)
    assert (response.error_code, response.error_message, bytes(response.auth_bytes)) == (58, text, b"")
    assert verdict.closes
    assert verdict.delays
    assert sasl.identity is None


def test_plain_may_name_itself_as_the_one_to_act_for() -> None:
    assert send(authenticator(), handshake(), token(b"ann\0ann\0ann-secret")).authenticated is not None


def test_no_password_is_in_a_verdict() -> None:
    verdict = log_in(authenticator(), b"another-secret")
    assert "secret" not in repr(verdict)


# --- SCRAM --------------------------------------------------------------------------------------------------


def scram(mechanism: str, name: str, password: str, sasl: SaslServer, **extensions: str) -> FrameVerdict:
    client = ScramClient(mechanism, name, password, extensions=extensions)
    verdict = send(sasl, handshake(mechanism), token(client.first()))
    if verdict.closes:
        return verdict
    server_first = bytes(answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).auth_bytes)
    verdict = send(sasl, token(client.final(server_first)))
    if not verdict.closes:
        client.verify(bytes(answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).auth_bytes))
    return verdict


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(mechanism: str) -> None:
    verdict = scram(mechanism, "ann", "ann-secret", authenticator())
    assert verdict.authenticated is not None
    for name, password in (("ann", "wrong"), ("bob", "bob-secret"), ("nobody", "x")):
        verdict = scram(mechanism, name, password, authenticator())
        assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_message == (
            "Authentication failed during authentication due to invalid credentials"
            f" with SASL mechanism {mechanism}"
        )


def test_unknown_users_get_a_challenge_that_stays_the_same() -> None:
    salts = set()
    for nonce in ("abc", "xyz"):
        first = f"n,,n=nobody,r={nonce}".encode()
        verdict = send(authenticator(), handshake("SCRAM-SHA-256"), token(first))
        text = bytes(answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).auth_bytes).decode()
        salts.add(text.split(",")[1])
    assert len(salts) == 1


def test_a_delegation_token_logs_in_its_owner_until_it_expires() -> None:
    sasl = authenticator()
    verdict = scram("SCRAM-SHA-256", "token1", "ann-secret", sasl, tokenauth="true")
    assert verdict.authenticated is not None
    assert (verdict.authenticated.name, verdict.authenticated.is_token) == ("ann", True)
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 60_000
    assert scram("SCRAM-SHA-256", "token2", "ann-secret", authenticator(), tokenauth="true").closes
    assert scram("SCRAM-SHA-256", "token1", "ann-secret", authenticator()).closes


def test_a_proof_that_is_replayed_proves_nothing() -> None:
    client = ScramClient("SCRAM-SHA-256", "ann", "ann-secret")
    first = client.first()
    verdict = send(authenticator(), handshake("SCRAM-SHA-256"), token(first))
    final = client.final(bytes(answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).auth_bytes))
    other = authenticator()
    verdict = send(other, handshake("SCRAM-SHA-256"), token(first), token(final))
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_code == 58
    assert other.identity is None


# --- OAUTHBEARER --------------------------------------------------------------------------------------------


def bearer(text: str, authorization: str = "", more: str = "") -> bytes:
    return f"n,{authorization},\x01auth=Bearer {text}\x01{more}\x01".encode()


@pytest.mark.parametrize(
    "data",
    [bearer("good"), bearer("good", "a=ann"), bearer("good", more="logicalCluster=lkc-1\x01host=h\x01"),
     b"n,,\x01host=x\x01auth=bEaReR  good\x01\x01"],
)  # fmt: skip
def test_a_good_bearer_token(data: bytes) -> None:
    verdict = send(authenticator(), handshake("OAUTHBEARER"), token(data))
    assert verdict.authenticated is not None
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 30_000


@for_each(
    [
        b"",
        b"\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        bearer("good", more="k1=v\x01"),
        bearer("good", "a=bob"),
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer good\x01auth=Bearer good\x01\x01",
        b"n,,auth=Bearer good\x01\x01",
        b"n,,\x01auth=Bearer g\xff\x01\x01",
    ]
)
def test_a_malformed_bearer_message_is_answered_with_58(data: bytes) -> None:
    verdict = send(authenticator(), handshake("OAUTHBEARER"), token(data))
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_code == 58
    assert verdict.closes


@pytest.mark.parametrize(
    ("text", "refusal"),
    [("forged", INVALID_TOKEN), ("narrow", b'{"status":"insufficient_scope","scope":"a b"}')],
)
def test_a_refused_bearer_token_is_told_and_then_ends(text: str, refusal: bytes) -> None:
    sasl = authenticator()
    verdict = send(sasl, handshake("OAUTHBEARER"), token(bearer(text)))
    response = answer(verdict, ApiKey.SASL_AUTHENTICATE, 2)
    assert (response.error_code, bytes(response.auth_bytes)) == (0, refusal)
    assert sasl.identity is None
    response = answer(send(sasl, token(b"\x01")), ApiKey.SASL_AUTHENTICATE, 2)
    assert (response.error_code, response.error_message) == (58, refusal.decode())


def test_tokens_without_end_are_cut_off() -> None:
    sasl = authenticator()
    send(sasl, handshake("OAUTHBEARER"))
    verdicts = [send(sasl, token(bearer("forged"))) for _ in range(9)]
    assert verdicts[-1].closes


# --- the end of a session -----------------------------------------------------------------------------------


def test_lifetime_is_the_shorter_of_setting_and_credential() -> None:
    for lifetime_ms, told in ((0, 30_000), (10_000, 10_000), (90_000, 30_000)):
        sasl = authenticator(lifetime_ms=lifetime_ms)
        verdict = send(sasl, handshake("OAUTHBEARER"), token(bearer("good")))
        assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == told


@pytest.mark.parametrize("version", [0, 2])
def test_the_first_request_after_the_end_closes_the_connection(version: int) -> None:
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl, version=version)
    assert send(sasl, frame(MetadataRequest(), 1), now=NOW + 4) == FrameVerdict()
    verdict = send(sasl, frame(MetadataRequest(), 1), now=NOW + 6)
    assert verdict.closes
    assert verdict.reply is None
    assert verdict.outcome is LoginOutcome.EXPIRED
    assert send(sasl, frame(MetadataRequest(), 1), now=NOW + 6).outcome is None  # it has ended once


def test_a_client_may_authenticate_itself_again_before_and_after_the_end() -> None:
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    again = log_in(sasl, now=NOW + 4)
    assert again.authenticated is not None
    assert again.outcome is LoginOutcome.SUCCESSFUL
    assert send(sasl, frame(MetadataRequest(), 1), now=NOW + 8) == FrameVerdict()
    assert log_in(sasl, now=NOW + 60).authenticated is not None
    assert send(sasl, frame(MetadataRequest(), 1), now=NOW + 62) == FrameVerdict()


def test_again_as_another_user_or_with_a_wrong_password_ends_it() -> None:
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    verdict = send(sasl, handshake(), token(b"\0bob\0bob-secret"), now=NOW + 2)
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_message == (
        "Cannot change principals during re-authentication from User.ann: User.bob"
    )
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    verdict = log_in(sasl, b"wrong", now=NOW + 2)
    assert verdict.outcome is LoginOutcome.FAILED
    assert answer(verdict, ApiKey.SASL_AUTHENTICATE, 2).error_code == 58


def test_again_by_another_mechanism() -> None:
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    assert not send(sasl, handshake("SCRAM-SHA-256"), now=NOW + 2).closes
    verdict = send(sasl, token(b"n,,n=ann,r=abc"), now=NOW + 2)
    assert verdict.closes
    assert verdict.reply is None
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    assert send(sasl, handshake("GSSAPI"), now=NOW + 2).reply is None


def test_too_soon_or_without_an_end_it_is_an_ordinary_request() -> None:
    sasl = authenticator(lifetime_ms=5000)
    log_in(sasl)
    assert not log_in(sasl, now=NOW + 0.5).closes
    assert send(sasl, handshake(), now=NOW + 1.4) == FrameVerdict()
    sasl = authenticator()
    log_in(sasl)
    assert send(sasl, handshake(), now=NOW + 60) == FrameVerdict()
    sasl.end_session(NOW + 60)
    assert send(sasl, frame(MetadataRequest(), 1), now=NOW + 61).closes


# --- whatever comes -----------------------------------------------------------------------------------------

_FRAMES = st.sampled_from(
    [
        frame(ApiVersionsRequest(), 0),
        frame(MetadataRequest(), 1),
        handshake(),
        handshake("SCRAM-SHA-256"),
        handshake("OAUTHBEARER", 0),
        token(b"\0ann\0wrong"),
        token(b"n,,n=ann,r=abc"),
        token(b"c=biws,r=abc,p=AAAA"),
        token(b"\x01"),
        token(bearer("forged"), 0),
    ]
)


@settings(max_examples=300)
@given(st.lists(st.one_of(_FRAMES, st.binary(max_size=60).map(memoryview)), max_size=8))
def test_nobody_gets_in_without_a_proof_in_whatever_order(frames: list[memoryview]) -> None:
    sasl = authenticator()
    for each in frames:
        verdict = sasl.receive(each, NOW, NOW_MS)
        assert verdict.authenticated is None
        assert verdict.closes or verdict.reply is not None
        if verdict.closes:
            assert sasl.state is LoginState.FAILED
    assert sasl.identity is None


@settings(max_examples=200)
@given(st.integers(0, 60), st.integers(0, 255))
def test_a_login_with_one_byte_changed_never_becomes_another_user(position: int, value: int) -> None:
    sasl = authenticator()
    data = bytearray(token(b"\0ann\0ann-secret"))
    data[position % len(data)] = value
    verdict = send(sasl, handshake(), memoryview(bytes(data)))
    if verdict.authenticated is not None:
        assert verdict.authenticated.name == "ann"


def _truncated() -> Iterator[memoryview]:
    whole = token(b"\0ann\0ann-secret")
    for size in range(len(whole)):
        yield whole[:size]


@for_each(list(_truncated()))
def test_a_truncated_login_is_none(part: memoryview) -> None:
    verdict = send(authenticator(), handshake(), part)
    assert verdict.closes
    assert verdict.authenticated is None
