"""SaslHandshake (17) and SaslAuthenticate (36) after authentication, or on listeners without SASL.

While a connection authenticates itself, `penstock.security.sasl_server` answers these requests. Requests that
arrive here came to a listener without SASL, or after a successful authentication that does not expire. They
get ILLEGAL_SASL_STATE (34).
"""

from __future__ import annotations

from penstock.broker.context import Context, Parts
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse


def sasl_handshake(request: SaslHandshakeRequest, context: Context[Parts]) -> SaslHandshakeResponse:
    """Answer ILLEGAL_SASL_STATE (34), because the connection has no authentication in progress."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(request: SaslAuthenticateRequest, context: Context[Parts]) -> SaslAuthenticateResponse:
    """Answer ILLEGAL_SASL_STATE (34), because the connection has no authentication in progress."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
