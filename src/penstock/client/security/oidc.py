"""OAuth tokens from an OIDC provider by the client credentials grant (RFC 6749, 4.4), or from a file.

The functions block; `penstock.client.security.credentials` calls them in a thread, and caches tokens.
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, NoReturn

from penstock.errors import NetworkError
from penstock.security.oauth import OAuthError, Token, token_of
from penstock.security.secrets import Secret, revealed, secret_from_file
from penstock.security.tls_context import TlsSettings, client_context

if TYPE_CHECKING:
    from penstock.client.security.settings import OAuthSettings

ANSWER_BYTES_MAX = 1 << 20
"""The maximum number of bytes that are read of a provider's response."""

FATAL_STATUSES = frozenset((*range(400, 408), *range(409, 416), 501, 505))
"""HTTP statuses after which retries are useless, as in Apache Kafka. After 408, 429 and 5xx, they may
succeed."""


def fetch_token(settings: OAuthSettings) -> Token:
    """Return a token from the provider, or from the file in the token endpoint's URL.

    Raises:
        OAuthError: the provider refuses, or its response has no token.
        NetworkError: the provider cannot be reached or has an error; another try may succeed.
    """
    url = settings.token_endpoint or ""
    if url.startswith("file:"):
        path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
        return token_of(Secret(secret_from_file(path).reveal().strip()))
    body = {"grant_type": "client_credentials"}
    if settings.scope:
        body["scope"] = settings.scope
    request = urllib.request.Request(
        url,
        data=urllib.parse.urlencode(body).encode(),
        headers={
            "Authorization": f"Basic {_basic(settings)}",
            "Accept": "application/json",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    asked_at = time.time()
    answer = _answer(request, settings, urllib.parse.urlsplit(url).netloc.rpartition("@")[2])
    text = answer.get("access_token") or answer.get("id_token")
    if not isinstance(text, str):
        raise OAuthError("the token endpoint answered without access_token")
    token = token_of(Secret(text))
    lifetime = answer.get("expires_in")
    if token.expires_at_s is None and isinstance(lifetime, (int, float)) and not isinstance(lifetime, bool):
        token = token._replace(expires_at_s=asked_at + lifetime)
    return token


def _basic(settings: OAuthSettings) -> str:
    """Return the value of the header Authorization: client id and secret in Base64."""
    pair = [settings.client_id or "", revealed(settings.client_secret or "")]
    if settings.is_header_urlencoded:
        pair = [urllib.parse.quote_plus(part) for part in pair]
    return base64.b64encode(":".join(pair).encode()).decode()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect, because that would send the secret to another server."""

    def redirect_request(self, *arguments: object) -> None:
        return None


def _answer(request: urllib.request.Request, settings: OAuthSettings, host: str) -> dict[str, object]:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if request.full_url.startswith("https:"):
        context = client_context(TlsSettings(ca=settings.ca))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=settings.connect_timeout_s) as got:
            data = got.read(ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            _refused(error.code, error.read(ANSWER_BYTES_MAX), host)
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise NetworkError(f"the token endpoint at {host} cannot be reached: {why}") from None
    if len(data) > ANSWER_BYTES_MAX:
        raise OAuthError(f"the token endpoint at {host} answered more than {ANSWER_BYTES_MAX} bytes")
    return _object(data, host)


def _object(data: bytes, host: str) -> dict[str, object]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise OAuthError(f"the token endpoint at {host} answered no JSON object")
    return answer


def _refused(status: int, data: bytes, host: str) -> NoReturn:
    """Raise the error for an HTTP status, with the provider's OAuth error message if there is one."""
    said = ""
    try:
        answer = _object(data, host)
    except OAuthError:
        answer = {}
    words = [str(answer[key])[:200] for key in ("error", "error_description") if answer.get(key)]
    if words:
        said = f": {': '.join(words)}"
    if status in FATAL_STATUSES or 300 <= status < 400:
        raise OAuthError(
            f"the token endpoint at {host} refuses with HTTP status {status}{said}; are client id, secret, "
            "scope and URL right?"
        )
    raise NetworkError(f"the token endpoint at {host} is in trouble: HTTP status {status}{said}")
