"""Opens connections with TLS and SASL: handshakes and authentication.

- All connections of a client share one buffer for ciphertext.
- Before a broker has proved its identity, the client sends only what is needed for that proof.
- An error names the broker, the side that refused, and what to do.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.client.cluster.connection import Connection, open_socket
from penstock.client.cluster.login_session import LoginSession
from penstock.client.security.authenticator import Authenticator, Incoming, Outgoing, RawToken
from penstock.client.security.credentials import Credentials
from penstock.client.security.rotation import (
    LOGINS,
    LOOK_EVERY_S,
    TRY_AGAIN_AFTER_S,
    SecurityFiles,
    context_of,
    is_same_login,
    login_key,
)
from penstock.errors import (
    AuthenticationError,
    NetworkError,
    PenstockError,
)
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.security.tls import TlsConnection

if TYPE_CHECKING:
    from penstock.client.addresses import Address
    from penstock.client.cluster.negotiation import NodeVersions
    from penstock.client.config import ClientConfig
    from penstock.client.security.settings import SecuritySettings
    from penstock.common.reused_buffers import ReusedMemory

CIPHERTEXT_BYTES = 64 << 10
"""The size in bytes of the buffer for received ciphertext, which connections share."""


class SecuredOpener:
    """Opens and authenticates the connections of one client."""

    def __init__(self, settings: SecuritySettings, config: ClientConfig, memory: ReusedMemory) -> None:
        """Read the certificates of the security settings.

        Raises ConfigError if they cannot be used, MissingDependencyError if a library is not installed.
        """
        self.settings = settings
        self._config = config
        self._memory = memory
        self._files = SecurityFiles(settings)
        self._renewing = asyncio.Lock()
        self._login = login_key(config.bootstrap_servers, settings.given)
        self._context = context_of(settings)
        self._credentials = Credentials(settings) if settings.uses_sasl else None
        self._ciphertext = memoryview(bytearray(CIPHERTEXT_BYTES if settings.uses_tls else 0))

    async def connect(self, address: Address) -> Connection:
        """Return a new connection after the TLS handshake.

        Raises:
            AuthenticationError: the broker's certificate is not valid for its host, or the broker has no TLS.
            NetworkError: the broker cannot be reached, or not in time.
        """
        await self._renew()
        config, context = self._config, self._context
        sock = await open_socket(address, config)
        loop = asyncio.get_running_loop()

        def make() -> Connection:
            tls = None
            if context is not None:
                tls = TlsConnection(context, is_server=False, server_name=address.host)
            return Connection(
                address,
                sock,
                config.client_id,
                config.receive_message_max_bytes,
                self._memory,
                tls=tls,
                ciphertext=self._ciphertext,
            )

        try:
            _, connection = await loop.create_connection(make, sock=sock)
        except (OSError, ValueError) as error:
            sock.close()
            raise NetworkError(f"{address}: {error}") from error
        timeout_s = config.socket_connection_setup_timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s):
                await connection.ready
        except TimeoutError:
            late = NetworkError(
                f"{address}: no TLS handshake within {timeout_s:g} s; does this port speak TLS?"
            )
            connection.close(late)
            raise late from None
        except BaseException:
            connection.close()
            raise
        return connection

    async def authenticate(self, connection: Connection, versions: NodeVersions) -> None:
        """Authenticate a connection with SASL, for the first time or again.

        Do nothing without credentials.

        Raises:
            AuthenticationError: the broker refuses, or does not prove its identity. The connection is closed.
            LoginPendingError: the broker refuses credentials from a file, which may be replaced soon.
            NetworkError, RequestTimeoutError: the connection ended.
        """
        if self._credentials is None:
            return
        await self._renew()
        try:
            await self._authenticate(connection, versions, self._credentials)
        except AuthenticationError as error:
            patience_s = self._config.penstock_login_patience_ms / 1000
            judged = LOGINS.judge(self._login, error, patience_s, self._files)
            connection.close(judged)
            raise judged from None
        except PenstockError as error:
            connection.close(error)
            raise
        except BaseException:
            connection.close()
            raise
        LOGINS.accept(self._login)

    async def authenticator(
        self, address: Address, session_s: float, *, is_raw: bool
    ) -> Authenticator | None:
        """Return the state machine for one more authentication, or None if there are no credentials.

        `session_s` is the length of the last session in seconds. `is_raw` means that the broker has no
        SaslAuthenticate.

        Raises:
            AuthenticationError: no token is available now.
        """
        if self._credentials is None:
            return None
        await self._renew()
        mechanism = await self._credentials.mechanism(address.host, session_s)
        return Authenticator(mechanism, address, is_raw=is_raw)

    async def until_another_try(self) -> None:
        """Wait before another attempt of a pending login, until a file has changed or a second has passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TRY_AGAIN_AFTER_S
        while loop.time() < deadline:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._files.have_changed():
                return

    async def _renew(self) -> None:
        """Read certificates and secrets from their files again, if these have changed."""
        if not self._files.have_changed():
            return
        async with self._renewing:
            if not self._files.have_changed():
                return
            found = await asyncio.to_thread(self._files.read, self.settings)
            if found is None:
                return
            settings, self._context = found
            if not is_same_login(settings, self.settings):
                self._credentials = Credentials(settings) if settings.uses_sasl else None
            self.settings = settings

    async def _authenticate(
        self, connection: Connection, versions: NodeVersions, credentials: Credentials
    ) -> None:
        address, session = connection.address, connection.session
        is_raw = int(ApiKey.SASL_AUTHENTICATE) not in versions.ranges
        mechanism = await credentials.mechanism(address.host, 0.0 if session is None else session.lifetime_s)
        authenticator = Authenticator(mechanism, address, is_raw=is_raw)
        timeout_s = self._config.request_timeout_ms / 1000
        message: Outgoing | None = authenticator.begin()
        version = authenticator.handshake_version
        while message is not None:
            try:
                answer = await _exchange(connection, message, version, timeout_s)
            except NetworkError:
                if isinstance(message, RawToken) or version == authenticator.handshake_version == 0:
                    raise authenticator.refused_by_silence() from None
                raise
            if authenticator.is_slow:
                message = await asyncio.to_thread(authenticator.receive, answer)
            else:
                message = authenticator.receive(answer)
            version = 0 if is_raw else versions.choose(SaslAuthenticateRequest)
        if session is None:
            session = LoginSession(connection, lambda: self.authenticate(connection, versions))
            connection.session = session
        session.keep(authenticator.session_lifetime_ms)


async def _exchange(connection: Connection, message: Outgoing, version: int, timeout_s: float) -> Incoming:
    """Send one message of an authentication, and return the response."""
    if isinstance(message, RawToken):
        return await connection.exchange_token(message.token, timeout_s, is_answered=message.is_answered)
    answered: Incoming = await connection.request(message, version, timeout_s, at_once=True)
    return answered
