"""The client's state machine of SASL, without I/O: SaslHandshake, then SaslAuthenticate or raw tokens.

    message = authenticator.begin()
    while message is not None:
        answer = ...            # send it, await the answer: of the API, or of a raw token
        message = authenticator.receive(answer)
    authenticator.session_lifetime_ms

The authenticator reports success only once the mechanism is satisfied, including the broker's proof of its
identity. The message of each failure is one line with the reason of the broker and what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import AuthenticationError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

if TYPE_CHECKING:
    from penstock.client.security.mechanisms import Mechanism

STEPS_MAX = 20
"""The maximum number of tokens in one authentication. Kerberos needs four."""


class RawToken(NamedTuple):
    """A SASL token that is sent with only its length before it, to brokers before 1.0."""

    token: bytes
    is_answered: bool = True


Outgoing = SaslHandshakeRequest | SaslAuthenticateRequest | RawToken
Incoming = SaslHandshakeResponse | SaslAuthenticateResponse | bytes


class Authenticator:
    """One authentication, or one re-authentication, on one connection."""

    def __init__(self, mechanism: Mechanism, broker: object, *, is_raw: bool = False) -> None:
        """Begin an authentication. `broker` is the name of the broker in error messages.

        `is_raw` means that the broker has no SaslAuthenticate (before Kafka 1.0).
        """
        self._mechanism = mechanism
        self._broker = broker
        self._is_raw = is_raw
        self._has_begun = False
        self._steps = 0
        self.is_done = False
        self.session_lifetime_ms = 0
        """The milliseconds until the broker requires another authentication; 0 for no limit."""

    @property
    def handshake_version(self) -> int:
        """The version of SaslHandshake to send: 0 if raw tokens follow, 1 if SaslAuthenticate requests do."""
        return 0 if self._is_raw else 1

    @property
    def is_slow(self) -> bool:
        """True if `receive` may take milliseconds, and should run in a thread."""
        return self._mechanism.is_slow

    def begin(self) -> SaslHandshakeRequest:
        """Return the first message to send to the broker."""
        return SaslHandshakeRequest(mechanism=self._mechanism.name)

    def receive(self, answer: Incoming) -> Outgoing | None:
        """Process the response to the last message; return the next message, or None after success.

        Raises:
            AuthenticationError: the broker refuses, or does not prove its identity.
        """
        if isinstance(answer, SaslHandshakeResponse):
            return self._receive_handshake(answer)
        if not self._has_begun or self.is_done:
            raise self._error("the broker answers what it was not asked")
        if isinstance(answer, SaslAuthenticateResponse):
            if answer.error_code:
                raise self._refusal(answer)
            self.session_lifetime_ms = max(answer.session_lifetime_ms, 0)
            answer = answer.auth_bytes
        return self._next(bytes(answer))

    def refused_by_silence(self) -> AuthenticationError:
        """Return the error for a broker that has closed the connection to refuse a raw token."""
        return self._error(f"the broker closed the connection without a reason: {self._mechanism.hint()}")

    def _receive_handshake(self, answer: SaslHandshakeResponse) -> Outgoing | None:
        if self._has_begun:
            raise self._error("the broker answers what it was not asked")
        self._has_begun = True
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            enabled = ", ".join(sorted(answer.mechanisms)[:20]) or "none"
            raise self._error(f"the mechanism is not enabled there; set sasl.mechanism to one of: {enabled}")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise self._error(
                "this listener has no SASL: set security.protocol to PLAINTEXT instead of SASL_PLAINTEXT, or "
                "to SSL instead of SASL_SSL, or use another port"
            )
        if answer.error_code:
            raise self._error(str(error_for(answer.error_code, "SaslHandshake")))
        return self._wrapped(self._mechanism.initial())

    def _next(self, challenge: bytes) -> Outgoing | None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise self._error(f"no end after {STEPS_MAX} tokens")
        try:
            token = self._mechanism.respond(challenge)
        except AuthenticationError as error:
            raise self._error(str(error)) from None
        if token is None:
            self.is_done = True
            return None
        return self._wrapped(token)

    def _wrapped(self, token: bytes) -> Outgoing:
        if self._is_raw:
            return RawToken(token, is_answered=not self._mechanism.is_silent_at_end)
        return SaslAuthenticateRequest(auth_bytes=token)

    def _refusal(self, answer: SaslAuthenticateResponse) -> AuthenticationError:
        said = (answer.error_message or "").strip()
        if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
            return self._error(f"{said or 'refused'}: {self._mechanism.hint()}")
        return self._error(said or str(error_for(answer.error_code, "SaslAuthenticate")))

    def _error(self, why: str) -> AuthenticationError:
        return AuthenticationError(f"{self._broker}: authentication by {self._mechanism.name} failed: {why}")
