"""Tests of clients that log in at the gateway: single frames, without sockets and without waiting."""

from __future__ import annotations

import random
from typing import Any

import pytest

from for_each import for_each
from gateway.relays import World, answers_of, asked_of, frames_of, request, response
from penstock.gateway.accounts.book import AccountBook
from penstock.gateway.accounts.login import FAILURE_DELAY_S
from penstock.gateway.contracts import Pause
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.protocol.messages.metadata_response import MetadataResponse
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.security.scram import ScramClient

BASE = {"bootstrap.servers": "kafka:9093", "security.protocol": "SASL_PLAINTEXT"}
PLAIN_OK = b"\0ann\0ann-secret"
METADATA = request(MetadataRequest(topics=[]), 5, 9)


def account(name: str) -> dict[str, str]:
    return {"sasl.mechanism": "PLAIN", "sasl.username": name, "sasl.password": "p"}


def book(*, default: bool = False, lifetime_ms: int = 0) -> AccountBook:
    tables: dict[str, Any] = {
        "users": {
            "ann": {"password": "ann-secret", "cluster": account("A")},
            "bob": {"password": "bob-secret", "cluster": account("B")},
        },
        "connections.max.reauth.ms": lifetime_ms,
    }
    if default:
        tables["default"] = {"cluster": account("D")}
    return AccountBook(tables, BASE)


BOOK, WITH_DEFAULT, WITH_LIFETIME = book(), book(default=True), book(lifetime_ms=60_000)


def world(accounts: AccountBook = BOOK) -> World:
    return World(book=accounts, has_account=True)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return request(SaslHandshakeRequest(mechanism=mechanism), version, 2)


def token(data: bytes, version: int = 2) -> bytes:
    return request(SaslAuthenticateRequest(auth_bytes=data), version, 3)


def bare(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def account_of(one: World) -> str | None:
    login = one.relay.login
    assert login is not None
    return None if login.account is None else login.account.name


@pytest.mark.parametrize("split", [0, 1, 7])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain(version: int, split: int) -> None:
    one = world()
    one.client_sends(request(ApiVersionsRequest(), 0, 1), split=split)
    [(_, offered)] = answers_of(one.client.taken(), 18, 0)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in offered.api_keys}
    assert (ranges[17], ranges[36]) == ((0, 1), (0, 2))
    one.client_sends(handshake(), split=split)
    [(_, answer)] = answers_of(one.client.taken(), 17, 1)
    assert (answer.error_code, answer.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    one.client_sends(token(PLAIN_OK, version), split=split)
    [(number, answer)] = answers_of(one.client.taken(), 36, version)
    assert (number, answer.error_code) == (3, 0)
    assert one.brokers == [], "no broker is connected before a request"
    one.client_sends(METADATA, split=split)
    assert account_of(one) == "user ann"
    assert asked_of(one.broker.taken()) == [(3, 5, 9)]
    one.broker_sends(response(MetadataResponse(), 5, 9))
    assert len(frames_of(one.client.taken())) == 1
    assert one.held == 0


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("version", [0, 1])
def test_scram_wrapped_and_bare(mechanism: str, version: int) -> None:
    one = world()
    client = ScramClient(mechanism, "bob", "bob-secret")

    def ask(data: bytes) -> bytes:
        one.client_sends(token(data) if version else bare(data))
        taken = one.client.taken()
        return bytes(answers_of(taken, 36, 2)[0][1].auth_bytes) if version else frames_of(taken)[0]

    one.client_sends(handshake(mechanism, version))
    answers_of(one.client.taken(), 17, version)
    client.verify(ask(client.final(ask(client.first()))))
    one.client_sends(METADATA)
    assert account_of(one) == "user bob"
    assert asked_of(one.broker.taken()) == [(3, 5, 9)]


@pytest.mark.parametrize("split", [0, 1])
def test_handshake_0_has_bare_tokens_and_bare_answers(split: int) -> None:
    one = world()
    one.client_sends(handshake(version=0), bare(PLAIN_OK), METADATA, split=split)
    _, second = frames_of(one.client.taken())
    assert second == b""
    assert account_of(one) == "user ann"
    assert asked_of(one.broker.taken()) == [(3, 5, 9)]


def wrong(data: bytes, mechanism: str = "PLAIN") -> tuple[list[float], Any, World]:
    """Log in with a wrong SASL token; return the delays in seconds, the response, and the `World`."""
    one = world()
    one.client_sends(handshake(mechanism))
    one.client.taken()
    one.client_sends(token(data), METADATA)
    assert one.client.taken() == b"", "the answer waits"
    assert one.client.paused & Pause.HELD
    delays = [seconds for seconds, _ in one.delayed]
    for _, work in one.delayed:
        work()
    [(_, answer)] = answers_of(one.client.taken(), 36, 2)
    assert one.client.is_closed
    assert one.brokers == []
    assert one.failures == []
    return delays, answer, one


@pytest.mark.parametrize("data", [b"\0ann\0wrong", b"\0nobody\0ann-secret", b"\0ann\0bob-secret"])
def test_a_wrong_password_and_an_unknown_user_get_the_same(data: bytes) -> None:
    delays, answer, one = wrong(data)
    assert delays == [FAILURE_DELAY_S]
    assert answer.error_code == 58
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert "secret" not in " ".join(one.ends)


def test_an_unknown_user_of_scram_goes_as_far_as_a_known_one() -> None:
    seen = []
    for name in ("ann", "nobody"):
        one = world()
        client = ScramClient("SCRAM-SHA-256", name, "wrong", nonce="a" * 20)
        one.client_sends(handshake("SCRAM-SHA-256"))
        one.client.taken()
        one.client_sends(token(client.first()))
        [(_, answer)] = answers_of(one.client.taken(), 36, 2)
        challenge = bytes(answer.auth_bytes)
        one.client_sends(token(client.final(challenge)))
        [(delay, work)] = one.delayed
        work()
        [(_, answer)] = answers_of(one.client.taken(), 36, 2)
        salt = challenge.split(b",")[1]
        seen.append((len(salt), challenge.split(b",")[2], delay, answer.error_code, answer.error_message))
        assert one.client.is_closed
    assert seen[0] == seen[1]
    assert seen[0][3] == 58


def test_a_mechanism_that_is_not_offered_gets_33() -> None:
    one = world()
    one.client_sends(handshake("GSSAPI"))
    [(_, work)] = one.delayed
    work()
    [(_, answer)] = answers_of(one.client.taken(), 17, 1)
    assert answer.error_code == 33
    assert one.client.is_closed


def test_a_client_without_sasl_has_the_default_or_ends() -> None:
    one = world(WITH_DEFAULT)
    one.client_sends(request(ApiVersionsRequest(), 0, 1), METADATA)
    assert account_of(one) == "clients without SASL"
    assert asked_of(one.broker.taken()) == [(3, 5, 9)]
    one.client_sends(handshake())
    one.broker_sends(response(MetadataResponse(), 5, 9))
    answers = frames_of(one.client.taken())
    assert int.from_bytes(answers[-1][4:6], "big") == 34, "it is somebody already"
    two = world()
    two.client_sends(METADATA)
    assert two.client.is_closed
    assert two.brokers == []
    assert "Metadata before authentication" in two.ends[0]


def test_a_device_with_the_default_beside_it_is_its_own_account() -> None:
    one = world(WITH_DEFAULT)
    one.client_sends(request(ApiVersionsRequest(), 0, 1), handshake(), token(PLAIN_OK), METADATA)
    assert account_of(one) == "user ann"


def test_a_session_that_does_not_end_refuses_a_second_login() -> None:
    one = world()
    one.client_sends(handshake(), token(PLAIN_OK))
    one.client.taken()
    one.client_sends(handshake())
    [(_, answer)] = answers_of(one.client.taken(), 17, 1)
    assert answer.error_code == 34
    assert not one.client.is_closed


def test_authentication_again_keeps_the_order_of_responses() -> None:
    one = world(WITH_LIFETIME)
    one.client_sends(handshake(), token(PLAIN_OK))
    _, last = frames_of(one.client.taken())
    [(_, answer)] = answers_of(bare(last), 36, 2)
    assert answer.session_lifetime_ms == 60_000
    one.now += 50
    one.client_sends(METADATA, handshake(), token(PLAIN_OK), request(MetadataRequest(topics=[]), 5, 10))
    assert one.client.taken() == b"", "what was asked first is answered first"
    assert asked_of(one.broker.taken()) == [(3, 5, 9), (3, 5, 10)]
    one.broker_sends(response(MetadataResponse(), 5, 9))
    assert [int.from_bytes(each[:4], "big") for each in frames_of(one.client.taken())] == [9, 2, 3]
    one.now += 50
    one.client_sends(METADATA)
    assert not one.client.is_closed, "the session was renewed"
    one.now += 20
    one.client_sends(METADATA)
    assert one.client.is_closed
    assert "session has expired" in one.ends[0]


def test_authentication_again_as_another_user_ends_the_connection() -> None:
    one = world(WITH_LIFETIME)
    one.client_sends(handshake(), token(PLAIN_OK))
    one.client.taken()
    one.client_sends(handshake(), token(b"\0bob\0bob-secret"))
    [(_, work)] = one.delayed
    work()
    assert one.client.is_closed
    assert account_of(one) == "user ann"


def test_an_expired_session_may_still_authenticate_again() -> None:
    one = world(WITH_LIFETIME)
    one.client_sends(handshake(), token(PLAIN_OK))
    one.client.taken()
    one.now += 61
    one.client_sends(handshake(), token(PLAIN_OK), METADATA)
    assert len(frames_of(one.client.taken())) == 2
    assert asked_of(one.broker.taken()) == [(3, 5, 9)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
        (600 << 10).to_bytes(4, "big") + b"\0\x11\0\1",
        (-5).to_bytes(4, "big", signed=True) + b"\0\x11\0\1",
        bare(b""),
        bare(b"\0\x11\0\1"),
        bare(b"\0\x11\0\x09\0\0\0\1"),
        bare(b"\0\x24\0\2\0\0\0\1\xff\xff"),
    ],
)
def test_hostile_bytes_end_that_connection_only(data: bytes) -> None:
    one, other = world(), world()
    one.client_sends(data + bytes(8))
    assert one.client.is_closed
    assert one.failures == []
    assert one.held == 0
    other.client_sends(handshake(), token(PLAIN_OK), METADATA)
    assert account_of(other) == "user ann"


@for_each(range(40))
def test_random_tokens_prove_nothing_and_raise_nothing(seed: int) -> None:
    dice = random.Random(seed)
    for version in (0, 1):
        one = world(WITH_LIFETIME)
        mechanism = dice.choice(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
        one.client_sends(handshake(mechanism, version))
        data = bytearray(dice.choice([PLAIN_OK, b"n,,n=ann,r=" + b"a" * 20]))
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        data += dice.randbytes(dice.randrange(3))
        for _ in range(3):
            one.client_sends(token(bytes(data)) if version else bare(bytes(data)))
        for _, work in one.delayed:
            work()
        assert account_of(one) is None or data == PLAIN_OK
        assert one.failures == []
        assert one.brokers == []


def test_tokens_without_end_are_not_taken() -> None:
    one = world()
    one.client_sends(handshake("SCRAM-SHA-256"))
    for _ in range(20):
        one.client_sends(token(b"n,,n=ann,r=aaaa"))
    [(_, work)] = one.delayed
    work()
    assert one.client.is_closed
