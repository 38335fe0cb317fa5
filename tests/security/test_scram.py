"""Tests of SCRAM: the RFCs' test vectors, invalid messages, and Penstock's client against its server."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from for_each import for_each
from penstock.security.scram import (
    ITERATIONS_MAX,
    ScramClient,
    ScramCredential,
    ScramError,
    ScramServer,
    new_nonce,
    new_salt,
    saslprep,
)
from penstock.security.unknown_users import fake_credential

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
VECTORS = {
    "SCRAM-SHA-256": (
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=",
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=",
    ),
    "SCRAM-SHA-512": (
        "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
        "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
        "6AAub3065EYRmyFpM2RNwqK+eGnrkYuEWbXn19LsEmBqzu8QaCXNc1FwpnX9NhH2hK/60dzj9DoO5DvVkOHbvg==",
        "jZHbYjC1aHh0/hKbxyBuGFjDrgjgKTT1esA7awWiKcRZ0o/0b1yWEebBeSVkkCFewf91nLDfKF24mvD5nmE6rA==",
    ),
}
"""The proof, server signature, stored key and server key of ``user`` with password ``pencil``.

The user and the password are those of RFC 7677, section 3.
"""

MECHANISMS = pytest.mark.parametrize("mechanism", VECTORS)
SHA256 = "SCRAM-SHA-256"
CREDENTIAL = ScramCredential.of_password(SHA256, "pencil", SALT)


def client(mechanism: str = SHA256, password: str = "pencil", user: str = "user") -> ScramClient:
    return ScramClient(mechanism, user, password, nonce=CLIENT_NONCE)


def at_final() -> ScramServer:
    """Return a SCRAM server that expects the client's final message, with the proof of ``user``."""
    server = ScramServer(SHA256, nonce=SERVER_NONCE)
    server.receive_first(client().first())
    server.challenge(CREDENTIAL)
    return server


@MECHANISMS
def test_vectors_of_the_rfc(mechanism: str) -> None:
    proof, signature, stored, server_key = VECTORS[mechanism]
    credential = ScramCredential.of_password(mechanism, "pencil", SALT)
    assert base64.b64encode(credential.stored_key).decode() == stored
    assert base64.b64encode(credential.server_key).decode() == server_key
    one, server = client(mechanism), ScramServer(mechanism, nonce=SERVER_NONCE)
    first = one.first()
    assert first == f"n,,n=user,r={CLIENT_NONCE}".encode()
    server.receive_first(first)
    assert server.username == "user"
    assert server.challenge(credential) == SERVER_FIRST
    final = one.final(SERVER_FIRST)
    assert final == f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={proof}".encode()
    answer = server.receive_final(final)
    assert answer == f"v={signature}".encode()
    assert server.is_done
    assert not one.is_done
    one.verify(answer)
    assert one.is_done


@MECHANISMS
@settings(max_examples=25)
@given(
    user=st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1),
    password=st.text(st.characters(exclude_categories=("Cs",)), min_size=1),
)
@example(user="a,b=c", password="=2C,")
def test_both_halves_agree_on_any_name_and_password(mechanism: str, user: str, password: str) -> None:
    one, server = ScramClient(mechanism, user, password), ScramServer(mechanism)
    credential = ScramCredential.of_password(mechanism, password, new_salt())
    server.receive_first(one.first())
    assert server.username == user
    one.verify(server.receive_final(one.final(server.challenge(credential))))
    assert one.is_done
    assert server.is_done


@MECHANISMS
def test_a_wrong_password_an_unknown_user_and_a_false_server_fail(mechanism: str) -> None:
    credential = ScramCredential.of_password(mechanism, "pencil", SALT)
    for password, kept in (("pencils", credential), ("pencil", fake_credential(mechanism, b"key", "user"))):
        one, server = client(mechanism, password), ScramServer(mechanism)
        server.receive_first(one.first())
        with pytest.raises(ScramError, match="proof is wrong"):
            server.receive_final(one.final(server.challenge(kept)))
        assert not server.is_done
    one, server = client(mechanism), ScramServer(mechanism)
    server.receive_first(one.first())
    forged = ScramCredential(SALT, credential.stored_key, b"x" * len(credential.server_key), 4096)
    answer = server.receive_final(one.final(server.challenge(forged)))
    with pytest.raises(ScramError, match="signature is wrong"):
        one.verify(answer)
    assert not one.is_done


def test_an_unknown_user_always_gets_the_same_salt_and_another_user_another() -> None:
    assert fake_credential(SHA256, b"key", "ann") == fake_credential(SHA256, b"key", "ann")
    assert fake_credential(SHA256, b"key", "ann").salt != fake_credential(SHA256, b"key", "bob").salt
    assert fake_credential(SHA256, b"key", "ann").salt != fake_credential(SHA256, b"yek", "ann").salt
    assert len(fake_credential(SHA256, b"key", "ann").salt) == len(new_salt())


@for_each(
    [
        "",
        "y,,n=user,r=abc",
        "p=tls-unique,,n=user,r=abc",
        "n,,n=user",
        "n,,r=abc,n=user",
        "n,n=user,r=abc",
        "n,,n=,r=abc",
        "n,,n=user,r=",
        "n,,n=a=2cb,r=abc",
        "n,,n=a=b,r=abc",
        "n,,n=us\0er,r=abc",
        "n,,n=user,r=a\x7fb",
        "n,,n=user,r=äb",
        "n,a=other,n=user,r=abc",
        "n,,m=x,n=user,r=abc",
        "n,,n=user,r=abc,m=x",
        "n,,n=user,r=abc,,",
        "n,,n=user,r=abc,key",
        "n,,n=user,r=abc\n",
    ]
)
def test_a_server_refuses_broken_first_messages(message: str) -> None:
    server = ScramServer(SHA256)
    with pytest.raises(ScramError):
        server.receive_first(message.encode())
    with pytest.raises(ScramError, match="out of its turn"):
        server.receive_first(b"n,,n=user,r=abc")
    with pytest.raises(ScramError, match="out of its turn"):
        server.challenge(CREDENTIAL)


def test_a_server_reads_authorization_extensions_and_bytes_that_are_no_text() -> None:
    server = ScramServer(SHA256)
    server.receive_first(b"n,a=us=2Cer,n=us=2Cer,r=abc,tokenAuth=TRUE,other=")
    assert server.username == "us,er"
    assert server.is_token
    assert server.extensions == {"tokenauth": "TRUE", "other": ""}
    for message in (b"n,,n=\xff,r=abc", b"n,,n=" + b"u" * 70_000 + b",r=abc"):
        with pytest.raises(ScramError):
            ScramServer(SHA256).receive_first(message)


def good_final() -> str:
    one = client()
    one.first()
    return one.final(SERVER_FIRST).decode()


@for_each(
    [
        lambda text: "",
        lambda text: text.replace("c=biws", "c=eSws"),
        lambda text: text.replace("c=biws", "c="),
        lambda text: text.replace("c=biws", "c=*"),
        lambda text: text.replace(f"r={CLIENT_NONCE}", "r=other"),
        lambda text: text.replace(SERVER_NONCE, ""),
        lambda text: text.replace(",p=", ",m=x,p="),
        lambda text: text.replace(",p=", ",ext=1,p="),
        lambda text: text[: text.index(",p=")],
        lambda text: text[: text.index(",p=") + 3],
        lambda text: text[: text.index(",p=") + 3] + "AAAA",
        lambda text: text[:-1],
        lambda text: text + "\n",
    ]
)
def test_a_server_refuses_broken_proofs_and_stays_refusing(change: object) -> None:
    server = at_final()
    with pytest.raises(ScramError):
        server.receive_final(change(good_final()).encode())  # type: ignore[operator]
    assert not server.is_done
    with pytest.raises(ScramError, match="out of its turn"):
        server.receive_final(good_final().encode())


def test_messages_replayed_or_out_of_turn_are_refused() -> None:
    server = at_final()
    with pytest.raises(ScramError, match="out of its turn"):
        server.receive_first(client().first())
    other = ScramServer(SHA256)
    other.receive_first(client().first())
    other.challenge(CREDENTIAL)
    with pytest.raises(ScramError, match="another nonce"):
        other.receive_final(good_final().encode())
    done = at_final()
    done.receive_final(good_final().encode())
    with pytest.raises(ScramError, match="out of its turn"):
        done.receive_final(good_final().encode())
    one = client()
    with pytest.raises(ScramError, match="out of its turn"):
        one.final(SERVER_FIRST)
    two = client()
    two.first()
    with pytest.raises(ScramError, match="out of its turn"):
        two.verify(b"v=AAAA")


@for_each(
    [
        ("", "malformed"),
        ("e=other-error", "refuses: other-error"),
        (f"r={CLIENT_NONCE},s=QUFB,i=4096", "does not continue"),
        ("r=other,s=QUFB,i=4096", "does not continue"),
        (f"r={CLIENT_NONCE}\x7f,s=QUFB,i=4096", "does not continue"),
        (f"r={CLIENT_NONCE}x,s=,i=4096", "empty"),
        (f"r={CLIENT_NONCE}x,s=*,i=4096", "base64"),
        (f"r={CLIENT_NONCE}x,s=ä,i=4096", "base64"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=4095", "fewer than 4096"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=1000000000", "more than 1000000"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=" + "9" * 5000, "malformed"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=-4096", "malformed"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=04096", "malformed"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=4096.0", "malformed"),
        (f"r={CLIENT_NONCE}x,s=QUFB,i=٤٠٩٦", "malformed"),
        (f"m=x,r={CLIENT_NONCE}x,s=QUFB,i=4096", "malformed"),
        (f"s=QUFB,r={CLIENT_NONCE}x,i=4096", "malformed"),
    ]
)
def test_a_client_refuses_broken_challenges(message: str, why: str) -> None:
    one = client()
    one.first()
    with pytest.raises(ScramError, match=why):
        one.final(message.encode())
    with pytest.raises(ScramError, match="out of its turn"):
        one.final(SERVER_FIRST)


@pytest.mark.parametrize("message", [b"", b"v=", b"v=*", b"v=AAAA", b"e=invalid-proof", b"x=AAAA", b"\xff"])
def test_a_client_refuses_broken_signatures(message: bytes) -> None:
    one = client()
    one.first()
    one.final(SERVER_FIRST)
    with pytest.raises(ScramError):
        one.verify(message)
    assert not one.is_done


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_scram_errors(data: bytes) -> None:
    waiting = client()
    waiting.first()
    for receive in (ScramServer(SHA256).receive_first, at_final().receive_final, waiting.final):
        try:
            receive(data)
        except ScramError:
            continue


def test_what_cannot_be_sent_is_refused_before() -> None:
    with pytest.raises(ScramError, match="no mechanism"):
        ScramServer("SCRAM-SHA-1")
    with pytest.raises(ScramError, match="password"):
        ScramClient(SHA256, "user", "")
    with pytest.raises(ScramError, match="user name"):
        ScramClient(SHA256, "", "pencil")
    with pytest.raises(ScramError, match="nonce"):
        ScramClient(SHA256, "user", "pencil", nonce="a,b")
    with pytest.raises(ScramError, match="nonce"):
        ScramServer(SHA256, nonce="")
    with pytest.raises(ScramError, match="cannot be sent"):
        ScramClient(SHA256, "user", "pencil", extensions={"a": "x,y"})
    weak = ScramServer(SHA256)
    weak.receive_first(client().first())
    with pytest.raises(ScramError, match="fewer than"):
        weak.challenge(ScramCredential(SALT, b"", b"", 4095))
    assert ITERATIONS_MAX == 1_000_000
    token = ScramClient(SHA256, "id", "hmac", nonce="abc", extensions={"tokenauth": "true"})
    assert token.first() == b"n,,n=id,r=abc,tokenauth=true"


def test_nothing_shows_keys_or_passwords() -> None:
    assert repr(CREDENTIAL) == "<ScramCredential of 4096 iterations>"
    assert "pencil" not in repr(vars(client()))
    assert len({new_nonce() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
    ],
)
def test_saslprep_as_in_the_examples_of_rfc_4013(text: str, prepared: str) -> None:
    assert saslprep(text) == prepared


@pytest.mark.parametrize("text", ["\u0007", "\u06271", "\u0627a\u0627", "\u0378", "\ue000"])
def test_saslprep_refuses_what_rfc_4013_prohibits(text: str) -> None:
    with pytest.raises(ScramError, match="SASLprep"):
        saslprep(text)
