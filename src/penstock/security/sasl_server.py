"""SASL on the server (KIP-43, 152, 368): which frames a client may send, the responses, the session's end.

This module does no I/O: whole frames and times go in, and a `FrameVerdict` comes out: what to send, and
whether to close the connection. Before authentication, only ApiVersions, SaslHandshake and SaslAuthenticate
are served. A failure is answered after a delay, so that guessing is slow; then the connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import DecodeError, UnsupportedVersionError
from penstock.protocol.api import API_TABLE, ApiKey, response_header_version
from penstock.protocol.codec import codec_for
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_request_header
from penstock.security.sasl_mechanisms import TOKENS_MAX, AuthenticationFailed, Exchange, Identity

if TYPE_CHECKING:
    from penstock.protocol.message import Message

FRAME_BYTES_MAX = 524_288
"""The maximum size of a frame in bytes before authentication: the default of
`sasl.server.max.receive.size`.
"""

REAUTHENTICATION_PAUSE_MS = 1000
"""The minimum time in milliseconds between two re-authentications. A SaslHandshake before that is handled as
an ordinary request.
"""

_HANDSHAKE_VERSIONS = (0, 1)
_AUTHENTICATE_VERSIONS = (0, 2)
_LIFETIME_SINCE = 1
_WRAPPED_SINCE = 1
"""The first version of SaslHandshake after which tokens are sent in SaslAuthenticate requests."""

VERSION_QUESTIONS_MAX = 8
"""The maximum number of ApiVersions requests in unsupported versions that a client may send before its
login.
"""

_PROTOCOL_HINT = "is it a client without SASL, or one that speaks another protocol?"


class LoginState(Enum):
    """The state of a connection's login, which determines what the client may send next."""

    INITIAL = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    TOKENS = "tokens of the mechanism"
    COMPLETE = "any request"
    FAILED = "nothing"


class LoginOutcome(Enum):
    """The outcome of a login, or EXPIRED: the end of the session after a login."""

    SUCCESSFUL = "successful"
    FAILED = "failed"
    EXPIRED = "expired"


class FrameVerdict(NamedTuple):
    """The server's reaction to a frame: what to send, with which delay, and whether to close."""

    reply: bytes | None = None
    """The framed response to send, or None."""
    closes: bool = False
    """True if the connection must be closed after the response."""
    delays: bool = False
    """True if response and close must wait for `connection.failed.authentication.delay.ms`."""
    reason: str = ""
    """The reason for closing the connection, for the log. It contains no secret."""
    authenticated: Identity | None = None
    """The identity that this frame has authenticated, or None."""
    outcome: LoginOutcome | None = None
    """The outcome of the login or session that this frame has ended; None if the frame ends neither."""


PASS = FrameVerdict()
"""The verdict on a request that may proceed: the server must dispatch it to its handler."""


class SaslServer:
    """The SASL state machine of one connection.

    `mechanisms` are those that the listener offers; `exchange` creates the `Exchange` of a mechanism.
    `answer_api_versions` handles a frame with ApiVersions and returns the framed response.
    `lifetime_max_ms` returns `connections.max.reauth.ms` for a mechanism; 0 means no limit.
    """

    __slots__ = (
        "_answer_api_versions",
        "_begin_exchange",
        "_exchange",
        "_expires_at",
        "_is_again",
        "_is_wrapped",
        "_lifetime_max_ms",
        "_mechanism",
        "_mechanisms",
        "_questions",
        "_repeated_at",
        "_tokens",
        "identity",
        "state",
    )

    def __init__(
        self,
        mechanisms: Sequence[str],
        exchange: Callable[[str], Exchange],
        answer_api_versions: Callable[[memoryview], bytes],
        lifetime_max_ms: Callable[[str], int] = lambda mechanism: 0,
    ) -> None:
        self._mechanisms = mechanisms
        self._begin_exchange = exchange
        self._answer_api_versions = answer_api_versions
        self._lifetime_max_ms = lifetime_max_ms
        self.state = LoginState.INITIAL
        self.identity: Identity | None = None
        """The authenticated identity, or None. It is kept during a re-authentication."""
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._is_wrapped = False
        self._is_again = False
        self._questions = 0
        self._tokens = 0
        self._repeated_at: float | None = None
        self._expires_at: float | None = None

    @property
    def mechanism(self) -> str:
        """The mechanism in use, or the last one used."""
        return self._mechanism

    @property
    def expires_at(self) -> float | None:
        """The time when the session expires, in seconds of the monotonic clock; None if it never does."""
        return self._expires_at

    def end_session(self, now: float) -> None:
        """Expire the session now: if the next request begins no new login, the connection is closed."""
        self._expires_at = now

    def receive(self, frame: memoryview, now: float, now_ms: int) -> FrameVerdict:
        """Return the `FrameVerdict` on one frame, given without its size prefix.

        `now` is in monotonic seconds, `now_ms` in milliseconds since 1970.
        """
        state = self.state
        try:
            if state is LoginState.COMPLETE:
                return self._receive_ordinary(frame, now)
            if state is LoginState.TOKENS:
                return self._receive_token(frame, now, now_ms)
            if state is LoginState.FAILED:
                return self._fail("more was sent after authentication had failed")
            return self._receive_first(frame)
        except (DecodeError, UnsupportedVersionError) as error:
            hint = f"; {_PROTOCOL_HINT}" if state is LoginState.INITIAL else ""
            return self._fail(f"a request before authentication cannot be read: {error}{hint}")

    # --- before the mechanism ----------------------------------------------------------------------------

    def _receive_first(self, frame: memoryview) -> FrameVerdict:
        key, version = _key_and_version(frame)
        if key == ApiKey.API_VERSIONS and self.state is LoginState.INITIAL:
            self._questions += 1
            if self._questions > VERSION_QUESTIONS_MAX:
                return self._fail(f"ApiVersions asked for {self._questions} times before authentication")
            reply = self._answer_api_versions(frame)
            if not int.from_bytes(reply[8:10], "big"):
                self.state = LoginState.HANDSHAKE
            return FrameVerdict(reply)
        if key == ApiKey.SASL_HANDSHAKE:
            return self._receive_handshake(frame, version)
        name = API_TABLE[key].name if key in API_TABLE else f"key {key}"
        hint = f" ({_PROTOCOL_HINT})" if self.state is LoginState.INITIAL else ""
        return self._fail(f"{name} before authentication, expected {self.state.value}{hint}")

    def _receive_handshake(self, frame: memoryview, version: int) -> FrameVerdict:
        from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse

        request, correlation_id = _decoded(frame, ApiKey.SASL_HANDSHAKE, version, _HANDSHAKE_VERSIONS)
        mechanism: str = request.mechanism
        if mechanism not in self._mechanisms:
            if self._is_again:
                return self._fail(f"authentication again by {mechanism!r}, which is not enabled")
            response = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=list(self._mechanisms)
            )
            reply = _framed(response, ApiKey.SASL_HANDSHAKE, version, correlation_id)
            reason = (
                f"SASL mechanism {mechanism[:64]!r} is not enabled, there are {', '.join(self._mechanisms)}"
            )
            return self._fail(reason, reply, delays=True)
        if self._is_again and mechanism != self._mechanism:
            # As in Apache Kafka, the next frame fails.
            self._exchange = None
        else:
            self._exchange = self._begin_exchange(mechanism)
            self._mechanism = mechanism
        self._is_wrapped = version >= _WRAPPED_SINCE
        self._tokens = 0
        self.state = LoginState.TOKENS
        response = SaslHandshakeResponse(mechanisms=list(self._mechanisms))
        return FrameVerdict(_framed(response, ApiKey.SASL_HANDSHAKE, version, correlation_id))

    # --- the mechanism -----------------------------------------------------------------------------------

    def _receive_token(self, frame: memoryview, now: float, now_ms: int) -> FrameVerdict:
        if self._exchange is None:
            return self._fail("another mechanism than the session has begun with", delays=True)
        if not self._is_wrapped:
            return self._judge_raw(bytes(frame), now, now_ms)
        key, version = _key_and_version(frame)
        if key != ApiKey.SASL_AUTHENTICATE:
            return self._refuse_other(frame, key, version)
        request, correlation_id = _decoded(frame, ApiKey.SASL_AUTHENTICATE, version, _AUTHENTICATE_VERSIONS)
        return self._judge_wrapped(bytes(request.auth_bytes), version, correlation_id, now, now_ms)

    def _judge_raw(self, token: bytes, now: float, now_ms: int) -> FrameVerdict:
        try:
            answer, identity = self._step(token)
        except AuthenticationFailed as error:
            return self._fail(self._described(error), delays=True)
        if identity is not None:
            self._succeed(identity, now, now_ms)
        reply = b"" if answer is None else len(answer).to_bytes(4, "big") + answer
        return _answered(reply, identity)

    def _judge_wrapped(
        self, token: bytes, version: int, correlation_id: int, now: float, now_ms: int
    ) -> FrameVerdict:
        from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse

        response = SaslAuthenticateResponse(error_message="", auth_bytes=b"")
        identity: Identity | None = None
        failure: AuthenticationFailed | None = None
        try:
            answer, identity = self._step(token)
            response.auth_bytes = answer or b""
        except AuthenticationFailed as error:
            failure = error
            response.error_code = ErrorCode.SASL_AUTHENTICATION_FAILED
            response.error_message = self._told(error)
        if identity is not None:
            lifetime_ms = self._succeed(identity, now, now_ms)
            if version >= _LIFETIME_SINCE:
                response.session_lifetime_ms = lifetime_ms
        reply = _framed(response, ApiKey.SASL_AUTHENTICATE, version, correlation_id)
        if failure is not None:
            return self._fail(self._described(failure), reply, delays=True)
        return _answered(reply, identity)

    def _step(self, token: bytes) -> tuple[bytes | None, Identity | None]:
        exchange = self._exchange
        assert exchange is not None
        self._tokens += 1
        if self._tokens > TOKENS_MAX:
            raise AuthenticationFailed
        answer = exchange.step(token)
        identity = exchange.identity
        if identity is not None and self.identity is not None and identity.name != self.identity.name:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication"
                f" from User.{self.identity.name}: User.{identity.name}"
            )
        return answer, identity

    def _refuse_other(self, frame: memoryview, key: int, version: int) -> FrameVerdict:
        """Return the verdict on another API during a login: error 34 (ILLEGAL_SASL_STATE), then close.

        The error is sent if the API's response has an `error_code` field.
        """
        api = API_TABLE.get(ApiKey(key)) if key in API_TABLE else None
        if api is None:
            return self._fail(f"key {key} amid the tokens of {self._mechanism}")
        header = decode_request_header(frame)[0]
        response: Any = api.response()
        if hasattr(response, "error_code"):
            response.error_code = ErrorCode.ILLEGAL_SASL_STATE
        reply = _framed(response, ApiKey(key), version, header.correlation_id)
        return self._fail(f"{api.name} amid the tokens of {self._mechanism}", reply, delays=True)

    def _succeed(self, identity: Identity, now: float, now_ms: int) -> int:
        """Store the authenticated identity; return the session's lifetime in milliseconds (0: unlimited)."""
        limits = [self._lifetime_max_ms(self._mechanism)]
        if identity.expiry_ms is not None:
            limits.append(max(identity.expiry_ms - now_ms, 1))
        lifetime_ms = min((limit for limit in limits if limit > 0), default=0)
        self._expires_at = now + lifetime_ms / 1000 if lifetime_ms else None
        self.identity = identity
        self._exchange = None
        self._is_again = False
        self.state = LoginState.COMPLETE
        return lifetime_ms

    # --- afterwards --------------------------------------------------------------------------------------

    def _receive_ordinary(self, frame: memoryview, now: float) -> FrameVerdict:
        """Return the verdict on a request of an authenticated client.

        If the session has no expiry, this takes one comparison.
        """
        expires_at = self._expires_at
        if expires_at is None:
            return PASS
        if len(frame) >= 4 and int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE:
            if self._repeated_at is not None and (now - self._repeated_at) * 1000 < REAUTHENTICATION_PAUSE_MS:
                return PASS
            self._repeated_at = now
            self._is_again = True
            return self._receive_handshake(frame, int.from_bytes(frame[2:4], "big"))
        if now > expires_at:
            ended = self._fail("its session has expired, and it has not authenticated itself again")
            return ended._replace(outcome=LoginOutcome.EXPIRED)
        return PASS

    def _fail(self, reason: str, reply: bytes | None = None, *, delays: bool = False) -> FrameVerdict:
        outcome = None if self.state is LoginState.FAILED else LoginOutcome.FAILED
        self.state = LoginState.FAILED
        self._exchange = None
        return FrameVerdict(reply, closes=True, delays=delays, reason=reason, outcome=outcome)

    def _told(self, error: AuthenticationFailed) -> str:
        """Return the error message that the client gets after a failed authentication."""
        again = "re-" if self.identity is not None else ""
        return str(error) or (
            f"Authentication failed during {again}authentication due to invalid credentials"
            f" with SASL mechanism {self._mechanism}"
        )

    def _described(self, error: AuthenticationFailed) -> str:
        return f"{self._mechanism}: {self._told(error)}"


def _answered(reply: bytes, identity: Identity | None) -> FrameVerdict:
    """Return the verdict on a token that was accepted; `identity` is None if more tokens must follow."""
    outcome = None if identity is None else LoginOutcome.SUCCESSFUL
    return FrameVerdict(reply, authenticated=identity, outcome=outcome)


def _key_and_version(frame: memoryview) -> tuple[int, int]:
    if len(frame) < 8:
        raise DecodeError(f"a frame of {len(frame)} bytes is no request")
    return int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True)


def _decoded(frame: memoryview, key: ApiKey, version: int, versions: tuple[int, int]) -> tuple[Any, int]:
    """Return the decoded request in a frame, and the request's correlation id."""
    if not versions[0] <= version <= versions[1]:
        raise UnsupportedVersionError(f"{API_TABLE[key].name} in version {version} is not offered")
    header, position = decode_request_header(frame)
    request = codec_for(API_TABLE[key].request, version).decode(frame, position)[0]
    return request, header.correlation_id


def _framed(response: Message, key: ApiKey, version: int, correlation_id: int) -> bytes:
    body = correlation_id.to_bytes(4, "big", signed=True)
    if response_header_version(key, version):
        body += b"\0"
    body += codec_for(API_TABLE[key].response, version).encode(response)
    return len(body).to_bytes(4, "big") + body
