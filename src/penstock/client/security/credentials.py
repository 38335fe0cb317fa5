"""The credentials of a client: makes a SASL mechanism for each authentication, and caches OAuth tokens."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING

from penstock.client.security.mechanisms import Gssapi, Mechanism, OAuthBearer, Plain, Scram, check_library
from penstock.common.threads import in_own_thread
from penstock.errors import NetworkError, PenstockError
from penstock.security.oauth import OAuthError, Token, client_message, token_of

if TYPE_CHECKING:
    from penstock.client.security.settings import OAuthSettings, SecuritySettings

REFRESH_AFTER = 0.8
"""The fraction of a token's lifetime after which it is renewed: Java's
``sasl.login.refresh.window.factor``."""

PROVIDER_TIMEOUT_S = 60.0
"""The time limit in seconds for a token callback."""


class Credentials:
    """Makes SASL mechanisms from the credentials of one client. Used on the client's event loop only."""

    def __init__(self, settings: SecuritySettings) -> None:
        check_library(settings.mechanism)
        self._settings = settings
        self._tokens = TokenSource(settings.oauth) if settings.mechanism == "OAUTHBEARER" else None

    async def mechanism(self, host: str, life_s: float = 0.0) -> Mechanism:
        """Return a mechanism for one authentication with a broker at `host`.

        The session that follows should last for at least `life_s` seconds.

        Raises:
            AuthenticationError: no token is available, or Kerberos has no ticket.
            NetworkError: the token provider cannot be reached.
        """
        settings = self._settings
        name = settings.mechanism
        if self._tokens is not None:
            return OAuthBearer(client_message(await self._tokens.token(life_s)))
        if name == "GSSAPI":
            service, principal = settings.kerberos_service, settings.kerberos_principal
            # Kerberos waits for its key centers as long as it likes.
            return await in_own_thread(Gssapi, service, host, principal, settings.kerberos_keytab)
        assert settings.password is not None
        if name == "PLAIN":
            return Plain(settings.username, settings.password)
        return Scram(name, settings.username, settings.password, is_token=settings.is_token)


class TokenSource:
    """The current OAuth token, which is renewed when most of its lifetime has passed."""

    def __init__(self, settings: OAuthSettings) -> None:
        self._settings = settings
        self._token: Token | None = None
        self._refresh_at_s = 0.0
        self._lock = asyncio.Lock()

    async def token(self, life_s: float = 0.0) -> Token:
        """Return a token, if possible one that is valid for `life_s` more seconds.

        The old token is returned if it is valid, and no other is available. If a broker's clock is ahead, a
        token expires sooner for the broker than for this client: the broker grants a session that ends when
        the token expires by the broker's clock.

        Raises:
            AuthenticationError: the provider refuses, or returns no token.
            NetworkError: the provider cannot be reached.
        """
        async with self._lock:
            now = time.time()
            present = self._token
            if present is not None and now < self._refresh_at_s:
                ends = present.expires_at_s
                if ends is None or ends - now >= life_s:
                    return present
            try:
                token = await self._fetch(now)
            except PenstockError:
                old = self._token
                if old is not None and old.expires_at_s is not None and now < old.expires_at_s - 1:
                    return old
                raise
            if token.expires_at_s is not None and token.expires_at_s <= now:
                raise OAuthError(
                    f"the token ended {now - token.expires_at_s:.0f} s ago by this machine's clock"
                )
            self._token = token
            # A file costs nothing to read, and may have been replaced because the token was revoked.
            is_kept = token.expires_at_s is not None and not self._settings.is_token_file
            life_s = token.expires_at_s - now if is_kept and token.expires_at_s is not None else 0.0
            self._refresh_at_s = now + REFRESH_AFTER * life_s
            return token

    async def _fetch(self, now: float) -> Token:
        settings = self._settings
        if settings.provider is not None:
            token = await self._called()
        elif settings.unsecured is not None:
            token = settings.unsecured.token(now)
        else:
            from penstock.client.security.oidc import fetch_token

            token = await asyncio.to_thread(fetch_token, settings)
        return token._replace(extensions={**settings.extensions, **token.extensions})

    async def _called(self) -> Token:
        provider, argument = self._settings.provider, self._settings.provider_argument
        assert provider is not None
        arguments = (argument,) if _wants_argument(provider) else ()
        try:
            async with asyncio.timeout(PROVIDER_TIMEOUT_S):
                if inspect.iscoroutinefunction(provider):
                    value = await provider(*arguments)
                else:
                    value = await in_own_thread(provider, *arguments)
                    if inspect.isawaitable(value):
                        value = await value
        except PenstockError:
            raise
        except TimeoutError:
            raise NetworkError(f"the token callback took longer than {PROVIDER_TIMEOUT_S:g} s") from None
        except Exception as error:
            raise OAuthError(f"the token callback failed: {type(error).__name__}: {error}") from error
        return token_of(value)


def _wants_argument(provider: object) -> bool:
    """Return True if a token callback has a required parameter, for librdkafka's configuration text."""
    try:
        parameters = inspect.signature(provider).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional and each.default is each.empty for each in parameters)
