"""OAUTHBEARER without I/O: bearer tokens, the client's message (RFC 7628), token callbacks' results.

`penstock.broker.security.bearer_tokens` verifies the signature of a token; this module reads a token only to
find its expiry.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from penstock.errors import AuthenticationError
from penstock.security.secrets import Secret, revealed

SEPARATOR = "\x01"
DUMMY_ANSWER = b"\x01"
"""The message that a client sends after the server has refused its token (RFC 7628). The server then ends the
exchange.
"""

UNSECURED_LOGIN = "unsecuredLogin"
"""The prefix of the options of `sasl.jaas.config` for tokens without a signature (KIP-255)."""

MESSAGE_BYTES_MAX = 256 << 10
"""The maximum size in bytes of a client's message that is read; tokens have a few kilobytes."""

TOKEN_TEXT = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
EXTENSION_NAME = re.compile(r"[A-Za-z]+")
EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
MILLISECONDS_FROM = 1e11
"""An expiry above this number is read as milliseconds, because as seconds it would be after the year 5000."""


class OAuthError(AuthenticationError):
    """Raised if a token, or a message with a token, is malformed or not accepted."""


class Token(NamedTuple):
    """A bearer token: its text, its expiry in seconds since 1970, and its SASL extensions."""

    text: Secret
    expires_at_s: float | None = None
    extensions: Mapping[str, str] = {}
    principal: str = ""


class ClientMessage(NamedTuple):
    """The first message of an OAUTHBEARER client."""

    token: Secret
    authorization_id: str
    extensions: dict[str, str]


def token_of(value: object) -> Token:
    """Return the result of a token callback as a `Token`.

    The result is a `Token`, the token's text, or librdkafka's tuple: text, expiry in seconds (from the AWS
    signer in milliseconds), then optionally principal and extensions.

    Raises:
        OAuthError: the result has another type, or the text is no bearer token.
    """
    if isinstance(value, Token):
        token = value
    elif isinstance(value, (str, Secret)):
        token = Token(Secret(revealed(value)))
    elif isinstance(value, tuple) and 2 <= len(value) <= 4 and isinstance(value[0], (str, Secret)):
        token = _of_tuple(value)
    else:
        raise OAuthError(
            f"the token callback returned {type(value).__name__}: expected text, or (text, expiry in "
            "seconds, principal, extensions)"
        )
    text = token.text.reveal()
    if not TOKEN_TEXT.fullmatch(text):
        raise OAuthError("the token callback returned a text that is no bearer token (RFC 6750)")
    if token.expires_at_s is None:
        expiry = claims_of(text).get("exp")
        if isinstance(expiry, (int, float)) and not isinstance(expiry, bool):
            token = token._replace(expires_at_s=float(expiry))
    return token


def _of_tuple(value: tuple[Any, ...]) -> Token:
    text, expiry, *rest = value
    if expiry is not None and (isinstance(expiry, bool) or not isinstance(expiry, (int, float))):
        raise OAuthError("the token callback returned an expiry that is no number of seconds")
    if expiry is not None and expiry > MILLISECONDS_FROM:
        expiry /= 1000
    # The signer of AWS returns (text, expiry); librdkafka's callback adds the principal, then the extensions.
    extensions = next((part for part in rest if isinstance(part, Mapping)), {})
    principal = next((part for part in rest if isinstance(part, str)), "")
    return Token(Secret(revealed(text)), expiry, extensions, principal)


def claims_of(text: str) -> dict[str, Any]:
    """Return the claims of a JWT, without a check of its signature; empty if the text is no JWT."""
    parts = text.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64url_decoded(parts[1]))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def client_message(token: Token) -> bytes:
    """Return the first message of a client.

    Raises:
        OAuthError: an extension has a name or value that cannot be sent.
    """
    pairs = [f"auth=Bearer {token.text.reveal()}"]
    for key, value in token.extensions.items():
        if not EXTENSION_NAME.fullmatch(key) or key == "auth" or not EXTENSION_VALUE.fullmatch(value):
            raise OAuthError(f"extension {key!r} cannot be sent: a name is letters, a value printable ASCII")
        pairs.append(f"{key}={value}")
    return f"n,,{SEPARATOR}{SEPARATOR.join(pairs)}{SEPARATOR}{SEPARATOR}".encode()


def read_client_message(message: bytes) -> ClientMessage:
    """Return the contents of a client's first message.

    Raises:
        OAuthError: the message is malformed, or the scheme is not Bearer.
    """
    if len(message) > MESSAGE_BYTES_MAX:
        raise OAuthError(f"the client's message has more than {MESSAGE_BYTES_MAX} bytes")
    try:
        text = bytes(message).decode()
    except UnicodeDecodeError:
        raise OAuthError("the client's message is not UTF-8") from None
    match = re.fullmatch(r"n,(?:a=([^,\x01]+))?,\x01((?:[^\x01]+\x01)+)\x01", text)
    if match is None:
        raise OAuthError("the client's message of OAUTHBEARER is malformed")
    authorization_id = (match[1] or "").replace("=2C", ",").replace("=3D", "=")
    pairs: dict[str, str] = {}
    for pair in match[2].split(SEPARATOR)[:-1]:
        key, equals, value = pair.partition("=")
        if not equals or not EXTENSION_NAME.fullmatch(key) or not EXTENSION_VALUE.fullmatch(value):
            raise OAuthError("a pair of the client's message of OAUTHBEARER is malformed")
        if key in pairs:
            raise OAuthError("a key of the client's message of OAUTHBEARER comes twice")
        pairs[key] = value
    scheme, _, token = pairs.pop("auth", "").partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer" or not TOKEN_TEXT.fullmatch(token):
        raise OAuthError("the client's message of OAUTHBEARER has no bearer token")
    return ClientMessage(Secret(token), authorization_id, pairs)


def unsecured_token(claims: Mapping[str, object], now_s: float, lifetime_s: float) -> Token:
    """Return a token without a signature, which proves nothing, for brokers under development."""
    expires_at_s = int(now_s + lifetime_s)
    body = {**claims, "iat": int(now_s), "exp": expires_at_s}
    parts = [base64url(json.dumps(part).encode()) for part in ({"alg": "none"}, body)]
    return Token(Secret(".".join([*parts, ""])), expires_at_s)


def refusal_of(challenge: bytes) -> str:
    """Return the reason in a server's refusal of a token, which is JSON (RFC 7628), as one line."""
    try:
        said = json.loads(challenge)
    except (ValueError, RecursionError):
        return "no reason that can be read"
    if not isinstance(said, dict):
        return "no reason that can be read"
    status = str(said.get("status", "invalid_token"))[:200]
    scope = said.get("scope")
    return f"{status} (scope wanted: {str(scope)[:200]})" if scope else status


def base64url(data: bytes) -> str:
    """Return the bytes in base64 for URLs, without padding (RFC 7515)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def base64url_decoded(text: str) -> bytes:
    """Return the bytes that `base64url` has encoded. Raises ValueError if the text is malformed."""
    try:
        return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
