"""SASL of clients before 1.0: tokens as bare frames, behind SaslHandshake 0 or behind nothing at all.

Since SaslHandshake 1 each token is a SaslAuthenticate request (KIP-152). Before, what followed the handshake
were frames that hold nothing but a token, in both directions, and a refusal was a connection that ends.
Clients of 0.9 began with the token of GSSAPI, without a handshake.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from penstock.gateway.calls import Call
from penstock.gateway.translation.errors import Refused
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import error_for
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest

if TYPE_CHECKING:
    from penstock.gateway.translation.rules import Ranges

BARE_TOKENS_IN = 0
"""The version of SaslHandshake that bare tokens follow."""

GSSAPI = "GSSAPI"

_INITIAL_TOKEN = 0x60
"""The first byte of a context token of GSSAPI: application tag 0 (RFC 2743, 3.1)."""

_KERBEROS = bytes((0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02))
"""The object identifier of Kerberos 5 (1.2.840.113554.1.2.2), which follows tag and length."""

_HEAD_BYTES = 32


def is_bare_token(frame: bytes | memoryview) -> bool:
    """Return whether the first frame of a connection is no request, but the token that clients of 0.9 begin
    with.
    """
    head = bytes(frame[:_HEAD_BYTES])
    return bool(head) and head[0] == _INITIAL_TOKEN and _KERBEROS in head


def handshake(mechanism: str, upstream: Ranges) -> Generator[Call, Any, None]:
    """Announce a mechanism to the cluster, for a client that announces none.

    Raises:
        Refused: the cluster does not take the mechanism, or has no SaslHandshake 1.
    """
    _check(upstream)
    request = SaslHandshakeRequest(mechanism=mechanism)
    response = yield Call(ApiKey.SASL_HANDSHAKE, 1, request)
    if response.error_code:
        error = error_for(response.error_code, f"SASL with {mechanism}")
        raise Refused(f"{error}; the cluster takes {', '.join(response.mechanisms) or 'none'}")


def exchange(token: bytes | memoryview, upstream: Ranges) -> Generator[Call, Any, bytes]:
    """Pass on a bare token of a client; return the token to answer, as a frame of its own.

    Each frame behind SaslHandshake 0 comes here until the cluster has accepted the client. The connection to
    the cluster has had SaslHandshake 1 with the same mechanism.

    Raises:
        Refused: the cluster does not accept the client. Its connection is closed, without an answer.
    """
    _check(upstream)
    request = SaslAuthenticateRequest(auth_bytes=bytes(token))
    response = yield Call(ApiKey.SASL_AUTHENTICATE, 0, request)
    if response.error_code:
        raise Refused(str(error_for(response.error_code, response.error_message or "SASL")))
    return bytes(response.auth_bytes)


def _check(upstream: Ranges) -> None:
    if upstream.get(ApiKey.SASL_HANDSHAKE, (0, 0))[1] < 1 or ApiKey.SASL_AUTHENTICATE not in upstream:
        raise Refused("the cluster is older than 1.0: bare tokens are passed on to it as they are")
