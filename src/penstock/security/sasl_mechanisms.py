"""The server's side of SASL mechanisms: PLAIN, SCRAM-SHA-256 and -512, OAUTHBEARER. Tokens in, tokens out.

GSSAPI, which needs a library, is in `penstock.broker.security.kerberos`. `step` is called with each token of
the client and returns the response. It raises `AuthenticationFailed` for a token that proves no identity;
the messages for clients are Apache Kafka's.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from penstock.errors import PenstockError
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    from penstock.security.scram import ScramCredential, ScramServer

PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"

SCRAM_CODES = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
"""The SCRAM mechanisms with their codes in requests and records (KIP-554)."""

SUPPORTED = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, "GSSAPI")
"""The mechanisms that `sasl.enabled.mechanisms` may name."""

TOKENS_MAX = 8
"""The maximum number of tokens that a client may send before it has proved an identity. SCRAM needs two."""


class AuthenticationFailed(PenstockError):
    """Raised if a peer has not proved its identity. The peer gets the message, or a general text if empty."""


class ScopesMissing(PenstockError):
    """Raised if a bearer token lacks some of the required `scopes`. The message is for the log."""

    def __init__(self, message: str, scopes: Sequence[str]) -> None:
        super().__init__(message)
        self.scopes = tuple(scopes)


class Identity:
    """The identity of an authenticated peer, valid until `expiry_ms` (ms since 1970; None: no limit)."""

    __slots__ = ("expiry_ms", "is_token", "name")

    def __init__(self, name: str, expiry_ms: int | None = None, *, is_token: bool = False) -> None:
        self.name = name
        self.expiry_ms = expiry_ms
        self.is_token = is_token
        """True if the login used a delegation token: such a session may not create delegation tokens."""


class Users(Protocol):
    """The interface through which a SASL exchange looks up the credentials of users and delegation tokens."""

    def password(self, name: str) -> Secret | None:
        """Return a user's password for PLAIN, or None if the user is unknown."""

    def credential(self, name: str, mechanism: str) -> ScramCredential | None:
        """Return a user's credential for a SCRAM mechanism, or None if the user has none."""

    def token_credential(self, token_id: str, mechanism: str) -> tuple[ScramCredential, str, int] | None:
        """Return a delegation token's credential, its owner, and its expiry (ms since 1970), or None."""

    def fake_credential(self, name: str, mechanism: str, *, is_token: bool) -> ScramCredential:
        """Return a credential that no proof matches, so that responses do not show which users exist."""


class BearerToken(Protocol):
    """A bearer token that was validated: its user name and expiry."""

    @property
    def principal(self) -> str:
        """The user name in the token."""

    @property
    def expiry_ms(self) -> int:
        """The expiry of the token in milliseconds since 1970."""


ValidateToken = Callable[[str], BearerToken]
"""A function that checks a token's text and returns the valid token. For an invalid one, it raises
PenstockError with a message for the log."""


class Exchange(Protocol):
    """The server's side of one authentication with one SASL mechanism."""

    identity: Identity | None
    """The authenticated identity; None until the exchange is complete."""

    def step(self, token: bytes) -> bytes | None:
        """Process a token of the client; return the response (may be empty), or None to send no response.

        Raises:
            AuthenticationFailed: the token does not prove the identity.
        """


class PlainExchange:
    """The mechanism PLAIN (RFC 4616): ``[authzid] NUL authcid NUL passwd``, in one token."""

    def __init__(self, users: Users) -> None:
        self.identity: Identity | None = None
        self._users = users

    def step(self, token: bytes) -> bytes:
        """Check name and password in constant time; return an empty response."""
        parts = token.decode(errors="replace").split("\0", 4)
        if len(parts) != 3:
            raise AuthenticationFailed(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
            )
        authorization, name, password = parts
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        expected = self._users.password(name)
        wanted = expected.reveal() if expected is not None else "\0"
        is_right = hmac.compare_digest(password.encode(errors="replace"), wanted.encode(errors="replace"))
        if expected is None or not is_right:
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if authorization and authorization != name:
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.identity = Identity(name)
        return b""


class ScramExchange:
    """The mechanism SCRAM (RFC 5802). An unknown user fails in the last step, like a wrong password."""

    def __init__(self, mechanism: str, users: Users, now_ms: Callable[[], int]) -> None:
        from penstock.security.scram import ScramServer

        self.identity: Identity | None = None
        self._users = users
        self._now_ms = now_ms
        self._server: ScramServer = ScramServer(mechanism)
        self._has_begun = False
        self._identity: Identity | None = None

    def step(self, token: bytes) -> bytes:
        """Return the response to a token. The first token names the user, the second proves the password."""
        from penstock.security.scram import ScramError

        try:
            if self._has_begun:
                answer = self._server.receive_final(token)
                if self._identity is None:
                    raise AuthenticationFailed
                self.identity = self._identity
                return answer
            self._has_begun = True
            self._server.receive_first(token)
            return self._server.challenge(self._find())
        except ScramError:
            raise AuthenticationFailed from None

    def _find(self) -> ScramCredential:
        """Return the credential of the user or token in the first message; a fake one if there is none."""
        name, mechanism = self._server.username, self._server.mechanism
        # Made for names that exist as well, so that it takes as long.
        fake = self._users.fake_credential(name, mechanism, is_token=self._server.is_token)
        if self._server.is_token:
            found = self._users.token_credential(name, mechanism)
            if found is not None and found[2] > self._now_ms():
                self._identity = Identity(found[1], found[2], is_token=True)
                return found[0]
        else:
            credential = self._users.credential(name, mechanism)
            if credential is not None:
                self._identity = Identity(name)
                return credential
        return fake


_BEARER = re.compile(rb"n,(?:a=([^,\x01]*))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)+)\x01", re.DOTALL)

INVALID_TOKEN = b'{"status":"invalid_token"}'
"""The response to a token that is refused (RFC 7628). The reason is in the broker's log only."""


def _insufficient_scope(scopes: Sequence[str]) -> bytes:
    """Return the response to a token that lacks scopes (RFC 7628): it names all required scopes."""
    said = {"status": "insufficient_scope", "scope": " ".join(scopes)}
    return json.dumps(said, separators=(",", ":")).encode()


class BearerExchange:
    """The mechanism OAUTHBEARER (RFC 7628): one message with a token.

    The function `note` gets the reason if the token is refused.
    """

    def __init__(self, validate: ValidateToken, note: Callable[[str], object]) -> None:
        self.identity: Identity | None = None
        self._validate = validate
        self._note = note
        self._refusal = b""

    def step(self, token: bytes) -> bytes:
        """Check the token; return the response. After a refusal, the client answers with the byte 1."""
        if self._refusal and token == b"\x01":
            raise AuthenticationFailed(self._refusal.decode())
        match = _BEARER.fullmatch(token)
        if match is None:
            raise AuthenticationFailed
        pairs = [part.partition(b"=") for part in match[2].split(b"\x01") if part]
        values = [value.decode("ascii") for key, _, value in pairs if key == b"auth"]
        scheme, _, text = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not text.strip():
            raise AuthenticationFailed
        try:
            good = self._validate(text.strip())
        except PenstockError as error:
            self._note(str(error))
            self._refusal = (
                _insufficient_scope(error.scopes) if isinstance(error, ScopesMissing) else INVALID_TOKEN
            )
            return self._refusal
        authorization = (match[1] or b"").decode(errors="replace").replace("=2C", ",").replace("=3D", "=")
        if authorization and authorization != good.principal:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({authorization})"
                f" that is different from the token's principal name ({good.principal})"
            )
        self.identity = Identity(good.principal, good.expiry_ms)
        return b""
