"""SASL of clients before Kafka 1.0: raw tokens as frames, after SaslHandshake 0 or without any handshake.

Since SaslHandshake 1 each token is a SaslAuthenticate request (KIP-152). Before that, the frames after the
handshake held only a token, in both directions, and a refusal closed the connection. Clients of 0.9 began
with the GSSAPI token, without a handshake.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import NotForwarded
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import error_for
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest

if TYPE_CHECKING:
    from penstock.gateway.calls import Ranges

BARE_TOKENS_IN = 0
"""The version of SaslHandshake after which clients send SASL tokens without headers."""

GSSAPI = "GSSAPI"

_INITIAL_TOKEN = 0x60
"""The first byte of a GSSAPI token that begins a login: application tag 0 (RFC 2743, 3.1)."""

_KERBEROS = bytes((0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x12, 0x01, 0x02, 0x02))
"""The object identifier of Kerberos 5 (1.2.840.113554.1.2.2), which follows tag and length."""

_HEAD_BYTES = 32


def is_bare_token(frame: bytes | memoryview) -> bool:
    """Return True if the first frame of a connection is the GSSAPI token with which clients of 0.9 begin."""
    head = bytes(frame[:_HEAD_BYTES])
    return bool(head) and head[0] == _INITIAL_TOKEN and _KERBEROS in head


def handshake(mechanism: str, upstream: Ranges) -> Generator[NodeCall, Any, None]:
    """Send SaslHandshake to the cluster, for a client that sends none.

    Raises:
        Refused: the cluster does not have the mechanism, or has no SaslHandshake 1.
    """
    _check(upstream)
    request = SaslHandshakeRequest(mechanism=mechanism)
    response = yield NodeCall(ApiKey.SASL_HANDSHAKE, 1, request)
    if response.error_code:
        error = error_for(response.error_code, f"SASL with {mechanism}")
        raise NotForwarded(f"{error}; the cluster takes {', '.join(response.mechanisms) or 'none'}")


def exchange(token: bytes | memoryview, upstream: Ranges) -> Generator[NodeCall, Any, bytes]:
    """Send a client's raw SASL token to the cluster as SaslAuthenticate; return the token to answer with.

    Each frame after SaslHandshake 0 is passed to this function, until the cluster has accepted the client.
    Before that, SaslHandshake 1 with the same mechanism must have been sent to the cluster.

    Raises:
        Refused: the cluster does not accept the client, whose connection is closed without a response.
    """
    _check(upstream)
    request = SaslAuthenticateRequest(auth_bytes=bytes(token))
    response = yield NodeCall(ApiKey.SASL_AUTHENTICATE, 0, request)
    if response.error_code:
        raise NotForwarded(str(error_for(response.error_code, response.error_message or "SASL")))
    return bytes(response.auth_bytes)


def _check(upstream: Ranges) -> None:
    if upstream.get(ApiKey.SASL_HANDSHAKE, (0, 0))[1] < 1 or ApiKey.SASL_AUTHENTICATE not in upstream:
        raise NotForwarded("the cluster is older than 1.0: bare tokens are passed on to it as they are")
