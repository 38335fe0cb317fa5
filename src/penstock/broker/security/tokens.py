"""Delegation tokens (KIP-48, KIP-373): who may make, renew, end and see them, and until when they last.

A token is an id and a code that only the broker's secret makes of it, which is the password of its login by
SCRAM. The log holds everything but that code.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from penstock.broker.security.image import DelegationToken
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.security.token_codes import token_hmac

if TYPE_CHECKING:
    from penstock.broker.security.image import SecurityImage
    from penstock.errors import KafkaError
    from penstock.protocol.message import Message
    from penstock.security.scram import ScramCredential
    from penstock.security.secrets import Secret

TOKENS_MAX = 10_000
"""Delegation tokens that there can be."""

TOKENS_OF_ONE_MAX = 1000
"""Those of them that one principal may have asked for."""

RENEWERS_MAX = 100
"""Principals that may renew one token."""

ITERATIONS = 4096


class TokenCredentials:
    """SCRAM credentials of tokens, worked out at their first login and kept while there are few."""

    def __init__(self, secret: Secret, salt_key: bytes) -> None:
        """Salts are made with `salt_key`: the same ones for a token whenever it logs in."""
        self._secret = secret
        self._salt_key = salt_key
        self._known: dict[tuple[str, str], ScramCredential] = {}

    def credential(self, token_id: str, mechanism: str) -> ScramCredential:
        """Return the credential whose password is the base64 text of the token's code. Takes 2 ms at
        first.
        """
        from penstock.security.scram import ScramCredential
        from penstock.security.unknown_users import derived_salt

        found = self._known.get((token_id, mechanism))
        if found is None:
            password = b64encode(token_hmac(self._secret, token_id)).decode()
            salt = derived_salt(self._salt_key, token_id.encode())
            found = ScramCredential.of_password(mechanism, password, salt, ITERATIONS)
            if len(self._known) >= 1000:
                self._known.clear()
            self._known[token_id, mechanism] = found
        return found


def records_of_expired(image: SecurityImage, now_ms: int) -> list[Message]:
    """Records that remove the tokens whose time is over."""
    from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord

    return [
        RemoveDelegationTokenRecord(token_id=token.token_id)
        for token in image.tokens.values()
        if now_ms > min(token.expiry_ms, token.max_ms)
    ]


def renewed(
    token: DelegationToken, principal: str, now_ms: int, period_ms: int, limit_ms: int
) -> DelegationToken:
    """Return the token with a later end. `period_ms` below 0 asks for as much as is allowed.

    Raises:
        KafkaError: it is not the principal's to renew (63), or has expired (66).
    """
    if principal not in (token.owner, *token.renewers):
        raise _not_yours()
    if now_ms > token.expiry_ms or now_ms > token.max_ms:
        raise _expired()
    wanted = min(limit_ms, period_ms) if period_ms > 0 else limit_ms
    return token._replace(expiry_ms=min(token.max_ms, now_ms + wanted))


def ended(token: DelegationToken, principal: str, now_ms: int, period_ms: int) -> DelegationToken | None:
    """Return the token with another end; None where it is to be removed now, which `period_ms` below 0 asks
    for.

    Raises:
        KafkaError: it is not the principal's to end (63), or has expired (66).
    """
    if principal not in (token.owner, *token.renewers):
        raise _not_yours()
    if period_ms < 0:
        return None
    if now_ms > token.expiry_ms or now_ms > token.max_ms:
        raise _expired()
    return token._replace(expiry_ms=min(token.max_ms, now_ms + period_ms))


def _not_yours() -> KafkaError:
    return error_for(
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, "the token has another owner and other renewers"
    )


def _expired() -> KafkaError:
    return error_for(ErrorCode.DELEGATION_TOKEN_EXPIRED, "the token has expired")
