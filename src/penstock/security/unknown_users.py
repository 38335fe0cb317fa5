"""Credentials of SCRAM for users who do not exist: answers do not reveal who does.

A first message is answered with salt and iterations. For an unknown name both are derived from a secret of
the server, in one of the shapes that credentials of users have there.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from math import log
from typing import NamedTuple

from penstock.security.scram import (
    HASHES,
    ITERATIONS_MIN,
    NONCE_CHARACTERS,
    NONCE_LENGTH,
    ScramCredential,
    base36,
)

_NONCE_BYTES = frozenset(NONCE_CHARACTERS.encode())


class CredentialShape(NamedTuple):
    """What is sent of a credential before it is proved, but for the bytes of the salt."""

    salt_length: int
    is_text: bool
    """Whether the salt is of the characters of nonces, as the tools of Apache Kafka make it."""
    iterations: int


USUAL_SHAPE = CredentialShape(NONCE_LENGTH, True, ITERATIONS_MIN)


def shape_of(credential: ScramCredential) -> CredentialShape:
    """Return the shape of a credential."""
    salt = credential.salt
    is_text = all(byte in _NONCE_BYTES for byte in salt)
    return CredentialShape(len(salt), is_text, credential.iterations)


def fake_credential(
    mechanism: str, key: bytes, username: str, shapes: Mapping[CredentialShape, int] | None = None
) -> ScramCredential:
    """Return a credential that no password fits, for a user who does not exist.

    With the `key` of a server, a name always gets the same salt, so that responses do not reveal which users
    exist. `shapes` says how many users have credentials of each shape: names that do not exist have them as
    often, and one has another only where these numbers have changed.
    """
    name = username.encode("utf-8", "surrogatepass")
    size = hashlib.new(HASHES[mechanism]).digest_size
    shape = _shape_for(mechanism.encode() + b"\0" + name, key, shapes) if shapes else USUAL_SHAPE
    return ScramCredential(
        derived_salt(key, name, shape),
        hmac.digest(key, b"stored" + name, HASHES[mechanism])[:size],
        hmac.digest(key, b"server" + name, HASHES[mechanism])[:size],
        shape.iterations,
    )


def derived_salt(key: bytes, name: bytes, shape: CredentialShape = USUAL_SHAPE) -> bytes:
    """Return a salt that only the `key` makes of a name."""
    text = b""
    block = 0
    while len(text) < shape.salt_length:
        digest = hmac.digest(key, b"salt%d" % block + name, "sha256")
        text += base36(digest).encode() if shape.is_text else digest
        block += 1
    return text[: shape.salt_length]


def _shape_for(name: bytes, key: bytes, shapes: Mapping[CredentialShape, int]) -> CredentialShape:
    """Draw a shape by its number, by lots that stay the same for a name (rendezvous hashing)."""

    def lot(shape: CredentialShape) -> float:
        digest = hmac.digest(key, b"shape%d %d %d" % shape + name, "sha256")
        drawn = (int.from_bytes(digest[:8], "big") + 1) / (1 << 64)
        return -log(drawn) / shapes[shape]

    return min(sorted(shapes), key=lot)
