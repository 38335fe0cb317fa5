"""Codes of delegation tokens: what their owners show, made of their ids by a secret of the brokers."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from penstock.security.secrets import Secret


def token_hmac(secret: Secret, token_id: str) -> bytes:
    """Return the code of a token: HMAC-SHA-512 of its id."""
    return hmac.digest(secret.reveal().encode(), token_id.encode(), "sha512")


class TokenCodes:
    """The codes of all tokens, and the tokens by them. Working one out takes some microseconds."""

    def __init__(self, secret: Secret, token_ids: Iterable[str]) -> None:
        self.secret = secret
        self._codes: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        for token_id in token_ids:
            self.add(token_id)

    def add(self, token_id: str) -> None:
        """Know one more token; nothing changes for one that is known."""
        if token_id not in self._codes:
            code = self._codes[token_id] = token_hmac(self.secret, token_id)
            self._ids[_digest(code)] = token_id

    def remove(self, token_id: str) -> None:
        """Drop a token."""
        code = self._codes.pop(token_id, None)
        if code is not None:
            del self._ids[_digest(code)]

    def code(self, token_id: str) -> bytes:
        """Return the code of a token that is known."""
        return self._codes[token_id]

    def token_id(self, code: bytes) -> str | None:
        """Return the token of a code, None for a wrong one.

        The look-up goes by a digest: how long it takes says nothing about how much of a code is right.
        """
        return self._ids.get(_digest(code))


def _digest(code: bytes) -> bytes:
    return sha256(code).digest()
