"""Delegation tokens (KIP-48, KIP-373): limits, lifetimes, and the right to renew or expire a token.

A token is an id and an HMAC, which is computed from the id with the broker's secret. The HMAC is the password
of a SCRAM login with the token. The metadata log contains all fields of a token except the HMAC.
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
"""The most delegation tokens that may exist at a time."""

TOKENS_OF_ONE_MAX = 1000
"""The most existing delegation tokens that one principal may have requested."""

RENEWERS_MAX = 100
"""The most principals that may renew one token."""

ITERATIONS = 4096


class TokenCredentials:
    """SCRAM credentials of delegation tokens, computed at the first login with a token and then cached."""

    def __init__(self, secret: Secret, salt_key: bytes) -> None:
        """Prepare an empty cache. Salts are derived from `salt_key`, so each token's salt is constant."""
        self._secret = secret
        self._salt_key = salt_key
        self._known: dict[tuple[str, str], ScramCredential] = {}

    def credential(self, token_id: str, mechanism: str) -> ScramCredential:
        """Return the SCRAM credential whose password is the token's HMAC in base64.

        The first call for a token takes 2 ms.
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
    """Return metadata records that remove the delegation tokens that have expired."""
    from penstock.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord

    return [
        RemoveDelegationTokenRecord(token_id=token.token_id)
        for token in image.tokens.values()
        if now_ms > min(token.expiry_ms, token.max_ms)
    ]


def renewed(
    token: DelegationToken, principal: str, now_ms: int, period_ms: int, limit_ms: int
) -> DelegationToken:
    """Return the token with a new expiry: `period_ms` from now; the latest allowed if that is negative.

    Raises:
        KafkaError: the principal may not renew the token (63), or the token has expired (66).
    """
    if principal not in (token.owner, *token.renewers):
        raise _not_yours()
    if now_ms > token.expiry_ms or now_ms > token.max_ms:
        raise _expired()
    wanted = min(limit_ms, period_ms) if period_ms > 0 else limit_ms
    return token._replace(expiry_ms=min(token.max_ms, now_ms + wanted))


def ended(token: DelegationToken, principal: str, now_ms: int, period_ms: int) -> DelegationToken | None:
    """Return the token with its expiry `period_ms` from now; None, to remove it, if that is negative.

    Raises:
        KafkaError: the principal may not expire the token (63), or the token has expired (66).
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
