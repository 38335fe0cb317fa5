"""SCRAM credentials for users that do not exist, so that responses do not show which users exist.

SCRAM's first response has salt and iterations. For an unknown name, both are derived from a secret of the
server. Its salt length, salt form and iterations (the shape) equal those of some real user's credential.
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
    """The properties of a credential that the server's first message shows: salt length, form, iterations."""

    salt_length: int
    is_text: bool
    """True if the salt is printable text, as Apache Kafka's tools make it; False if it is random bytes."""
    iterations: int


USUAL_SHAPE = CredentialShape(NONCE_LENGTH, True, ITERATIONS_MIN)


def shape_of(credential: ScramCredential) -> CredentialShape:
    """Return the shape of a credential, which the server's first message shows: salt and iterations."""
    salt = credential.salt
    is_text = all(byte in _NONCE_BYTES for byte in salt)
    return CredentialShape(len(salt), is_text, credential.iterations)


def fake_credential(
    mechanism: str, key: bytes, username: str, shapes: Mapping[CredentialShape, int] | None = None
) -> ScramCredential:
    """Return a credential that no password matches, for a user that does not exist.

    With the same `key`, a name always gets the same salt, so that repeated attempts do not show that the user
    is unknown. `shapes` has the number of users with each shape. Unknown names get shapes in the same
    proportion, and a name gets another shape only after these numbers have changed.
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
    """Return a salt that is derived from a name with the secret `key`."""
    text = b""
    block = 0
    while len(text) < shape.salt_length:
        digest = hmac.digest(key, b"salt%d" % block + name, "sha256")
        text += base36(digest).encode() if shape.is_text else digest
        block += 1
    return text[: shape.salt_length]


def _shape_for(name: bytes, key: bytes, shapes: Mapping[CredentialShape, int]) -> CredentialShape:
    """Choose the shape for an unknown name, with probabilities in proportion to the counts in `shapes`.

    The choice stays the same for a name (rendezvous hashing).
    """

    def lot(shape: CredentialShape) -> float:
        digest = hmac.digest(key, b"shape%d %d %d" % shape + name, "sha256")
        drawn = (int.from_bytes(digest[:8], "big") + 1) / (1 << 64)
        return -log(drawn) / shapes[shape]

    return min(sorted(shapes), key=lot)
