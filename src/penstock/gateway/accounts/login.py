"""The SASL login of a client at the gateway: selects the login's frames, answers them, finds the account.

This module does no I/O; `penstock.security.sasl_server` checks the frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import DecodeError
from penstock.gateway.heads import no_request
from penstock.gateway.limits import TOKEN_BYTES_MAX
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import encode_response
from penstock.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from penstock.security.sasl_mechanisms import PLAIN, PlainExchange, ScramExchange
from penstock.security.sasl_server import FrameVerdict, LoginState, SaslServer

if TYPE_CHECKING:
    from penstock.gateway.accounts.book import Account, AccountBook
    from penstock.gateway.routes import BrokerRoutes
    from penstock.security.sasl_mechanisms import Exchange

FAILURE_DELAY_S = 0.1
"""The delay in seconds of the response to a failed login. It is the default of Kafka's
``connection.failed.authentication.delay.ms``.
"""

OFFERED = {int(ApiKey.SASL_HANDSHAKE): (0, 1), int(ApiKey.SASL_AUTHENTICATE): (0, 2)}
"""A dict from each SASL API that the gateway answers itself to the lowest and highest version. The
connected broker has no influence on them.
"""

_SASL_OR_VERSIONS = frozenset((*OFFERED, int(ApiKey.API_VERSIONS)))
_NO_KEY = -1


def login_refusal(code: int, correlation_id: int) -> list[bytes | bytearray | memoryview]:
    """Return the response to an unexpected SASL request, with error 34 (ILLEGAL_SASL_STATE).

    `code` is ``(api_key << 16) | version``.
    """
    refusal: Any = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if code >> 16 == ApiKey.SASL_AUTHENTICATE:
        refusal = SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="the gateway logs in itself: connect without SASL",
        )
    return encode_response(refusal, code & 0xFFFF, correlation_id)


NEEDS_MORE, NEEDS_BROKER = -1, -2
"""Results of `Login.turn` if the frame has to wait: for more bytes, or for the API versions of a broker."""


class Begun(NamedTuple):
    """The size and API key of a frame whose beginning has arrived; the key is -1 for a raw SASL token."""

    size: int
    key: int


class Login:
    """The SASL login of one client connection at the gateway; finds out which frames belong to the login.

    `answer_versions` is called with an ApiVersions request and returns the response with its size field.
    `now` returns monotonic seconds, `now_ms` milliseconds since 1970.
    """

    __slots__ = ("_authenticator", "_book", "_now", "_now_ms", "account", "routes")

    def __init__(
        self,
        book: AccountBook,
        answer_versions: Callable[[memoryview], bytes],
        now: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self.account: Account | None = None
        """The account of the client; None before the client has logged in."""
        self.routes: BrokerRoutes | None = None
        """The `BrokerRoutes` of a broker, whose versions the gateway offers in ApiVersions before the login;
        None before any broker has returned its versions."""
        self._book = book
        self._now = now
        self._now_ms = now_ms
        accounts = book.accounts
        self._authenticator = SaslServer(
            accounts.mechanisms, self._exchange, answer_versions, lambda mechanism: accounts.lifetime_ms
        )

    def _exchange(self, mechanism: str) -> Exchange:
        if mechanism == PLAIN:
            return PlainExchange(self._book.accounts)
        return ScramExchange(mechanism, self._book.accounts, self._now_ms)

    @property
    def is_engaged(self) -> bool:
        """True if the next frame must belong to a login.

        That is the case before the login, during a re-authentication, and after the session has expired.
        """
        if self._authenticator.state is not LoginState.COMPLETE:
            return self._authenticator.identity is not None or self.account is None
        expires_at = self._authenticator.expires_at
        return expires_at is not None and self._now() > expires_at

    def begin(self, data: memoryview, position: int, end: int) -> Begun | None:
        """Return size and API key of the frame at `position`, or None if more bytes are needed.

        Raises:
            DecodeError: the session has expired, and the frame does not begin a new login.
        """
        here = end - position
        if here < 4:
            return None
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if self._authenticator.state is LoginState.TOKENS:
            key = _NO_KEY
        elif here < 6:
            return None
        else:
            key = int.from_bytes(data[position + 4 : position + 6], "big", signed=True)
        if self._authenticator.state is LoginState.COMPLETE and key != ApiKey.SASL_HANDSHAKE:
            raise DecodeError("its session has expired, and it has not authenticated itself again")
        return Begun(size, key)

    def turn(self, data: memoryview, position: int, end: int, *, needs_routes: bool) -> int | None:
        """Return the size of the frame at `position` if it is part of the login, None for another request.

        Returns `NEEDS_MORE` if more bytes must arrive first. With `needs_routes`, returns `NEEDS_BROKER` for
        an ApiVersions request as long as no broker's versions are known.

        Raises:
            DecodeError: the size is too large for a token, or the session has expired.
        """
        begun = self.begin(data, position, end)
        if begun is None:
            return NEEDS_MORE
        if self.admits(begun.key):
            return None
        if not 0 <= begun.size <= TOKEN_BYTES_MAX:
            raise no_request(begun.size, TOKEN_BYTES_MAX)
        if begun.key == ApiKey.API_VERSIONS and self.routes is None and needs_routes:
            return NEEDS_BROKER
        return begun.size

    def admits(self, key: int) -> bool:
        """Log the client in with the default account if it sends a request without SASL; return True if so.

        Returns False if there is no default account, or the SASL login has begun.
        """
        default = self._book.accounts.default
        state = self._authenticator.state
        if (
            default is None
            or state not in (LoginState.INITIAL, LoginState.HANDSHAKE)
            or key in _SASL_OR_VERSIONS
        ):
            return False
        self.account = default
        return True

    def takes(self, key: int) -> bool:
        """Return True if the gateway itself answers requests of this API, instead of forwarding them."""
        return self.is_engaged or (key in OFFERED and self._authenticator.identity is not None)

    def receive(self, frame: memoryview) -> FrameVerdict:
        """Check a frame of the login, without its size field; return a `FrameVerdict` with the response.

        A successful login sets `account`.
        """
        verdict = self._authenticator.receive(frame, self._now(), self._now_ms())
        if verdict.authenticated is not None and self.account is None:
            user = self._book.accounts.users.get(verdict.authenticated.name)
            if user is None:  # it has gone since the login began
                return FrameVerdict(closes=True, reason="its user is there no longer")
            self.account = user.account
        return verdict
