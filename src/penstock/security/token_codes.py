"""The HMACs of delegation tokens. Brokers compute them from token ids and a secret key.

Clients present them as passwords.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from penstock.security.secrets import Secret


def token_hmac(secret: Secret, token_id: str) -> bytes:
    """Return the HMAC-SHA-512 of a delegation token's id, which its owner presents as the password."""
    return hmac.digest(secret.reveal().encode(), token_id.encode(), "sha512")


class TokenCodes:
    """The HMACs of all delegation tokens, to look up a token's HMAC from its id, and its id from the HMAC."""

    def __init__(self, secret: Secret, token_ids: Iterable[str]) -> None:
        self.secret = secret
        self._codes: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        for token_id in token_ids:
            self.add(token_id)

    def add(self, token_id: str) -> None:
        """Compute and store the HMAC of a token, unless it is stored already."""
        if token_id not in self._codes:
            code = self._codes[token_id] = token_hmac(self.secret, token_id)
            self._ids[_digest(code)] = token_id

    def remove(self, token_id: str) -> None:
        """Remove the HMAC of a token, which is then no longer accepted."""
        code = self._codes.pop(token_id, None)
        if code is not None:
            del self._ids[_digest(code)]

    def code(self, token_id: str) -> bytes:
        """Return the HMAC of a token, which must have been added."""
        return self._codes[token_id]

    def token_id(self, code: bytes) -> str | None:
        """Return the id of the token with this HMAC, or None.

        The look-up uses a digest of the HMAC, so that its time does not show how many bytes are right.
        """
        return self._ids.get(_digest(code))


def _digest(code: bytes) -> bytes:
    return sha256(code).digest()
