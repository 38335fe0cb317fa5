"""Connections with TLS and SASL: what `penstock.client.cluster.connection` does in the clear, secured.

Promises:
- TLS is decrypted straight into the buffer that a frame is received into; ciphertext passes one buffer that
  all connections of a client share.
- Nothing is sent to a broker before it has proved who it is, except what proves that to it.
- Credentials are shown again before the broker's session ends (KIP-368). Requests made meanwhile wait and are
  sent in order; none is lost.
- A failure names the broker, which end refused, and what to do.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from penstock.client.cluster.connection import Connection, open_socket
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
    DecodeError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
)
from penstock.protocol.api import ApiKey
from penstock.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from penstock.security.tls import TlsConnection, TlsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from penstock.client.addresses import Address
    from penstock.client.cluster.negotiation import NodeVersions
    from penstock.client.config import ClientConfig
    from penstock.client.security.settings import SecuritySettings
    from penstock.common.reused_buffers import ReusedMemory
    from penstock.protocol.message import Message

CIPHERTEXT_BYTES = 64 << 10
"""How much ciphertext is received at a time, into the buffer that connections share."""

SESSION_PARTS = (0.85, 0.95)
"""After which part of a session credentials are shown again; at random, as in Java, so that clients
disperse.
"""

REAUTHENTICATION_S_MIN = 1.05
"""Brokers take a second authentication within one second of the first for a mistake."""


class SecuredConnection(Connection):
    """A connection to one broker through TLS, or with SASL, or both. Made by `SecuredOpener`."""

    def __init__(
        self,
        address: Address,
        sock: Any,
        client_id: str,
        frame_bytes_max: int,
        memory: ReusedMemory,
        *,
        tls: TlsConnection | None,
        ciphertext: memoryview,
    ) -> None:
        super().__init__(address, sock, client_id, frame_bytes_max, memory)
        self._tls = tls
        self._ciphertext = ciphertext
        self.ready: asyncio.Future[None] = self._loop.create_future()
        """Done when the TLS handshake is over, which is at once without TLS."""
        self._held: list[tuple[Message, int, float, asyncio.Future[Any] | None]] | None = None
        """Requests that wait for the end of a re-authentication; None while there is none."""
        self._raw: asyncio.Future[bytes] | None = None
        self._session_ends: float | None = None
        self.session_s = 0.0
        """For how long the broker has accepted the credentials shown last, in seconds; 0 for ever."""
        self._session_timer: asyncio.TimerHandle | None = None
        self._opener: SecuredOpener | None = None
        self._versions: NodeVersions | None = None
        self._reauthenticating: asyncio.Task[None] | None = None

    # -- TLS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._tls is None:
            self.ready.set_result(None)
            return
        self._tls.start()
        self._flush()

    def get_buffer(self, sizehint: int) -> Buffer:
        return super().get_buffer(sizehint) if self._tls is None else self._ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        tls = self._tls
        if tls is None:
            self._received(nbytes)
            return
        try:
            tls.receive(self._ciphertext[:nbytes])
            if tls.is_ready and not self.ready.done():
                self.ready.set_result(None)
            while self.cause is None and (count := tls.read_into(super().get_buffer(0))):
                self._received(count)
        except TlsError as error:
            self._flush()
            self._fail(TlsError(f"{self.address}: {error}"))
            return
        self._flush()
        if tls.is_ended and self.cause is None:
            self.connection_lost(None)

    def _received(self, count: int) -> None:
        if self._raw is None:
            super().buffer_updated(count)
            return
        try:
            self._wire.received(count)
            frame = self._wire.next_frame()
        except DecodeError as error:
            self.close(self._described(error))
            return
        if frame is not None:
            raw, self._raw = self._raw, None
            self._wire.expect_raw_frames(False)
            if not raw.done():
                raw.set_result(bytes(frame))

    def _write(self, chunks: Sequence[Buffer]) -> None:
        tls = self._tls
        if tls is None:
            super()._write(chunks)
            return
        for chunk in chunks:
            tls.write(chunk)
        self._flush()

    def _flush(self) -> None:
        """Send the pending ciphertext of the TLS connection."""
        if self._tls is None or self.cause is not None:
            return
        chunks = self._tls.to_send()
        if chunks:
            super()._write(chunks)

    def _end_timers(self) -> None:
        super()._end_timers()
        if self._session_timer is not None:
            self._session_timer.cancel()

    def _fail(self, cause: PenstockError) -> None:
        self.close(cause)

    def close(self, cause: PenstockError | None = None) -> None:
        if self.cause is not None:
            return
        if self._tls is not None and cause is None:
            self._tls.close()
            try:
                self._flush()
            except PenstockError:
                return  # the kernel refused, and that has closed the connection
        super().close(cause)
        why = self._not_alive()
        held, self._held = self._held or [], None
        waiting = [future for *_, future in held if future is not None]
        for future in [self.ready, self._raw, *waiting]:
            if future is not None and not future.done():
                future.set_exception(why)
                future.exception()  # marks it as retrieved: asyncio need not report it

    def connection_lost(self, exc: Exception | None) -> None:
        if self.cause is None and self._tls is not None and not self._tls.is_ready:
            try:
                self._tls.receive_end()
            except TlsError as error:
                self.close(NetworkError(f"{self.address}: {error}"))
                return
            self.close(
                NetworkError(
                    f"broker {self.address} ended the connection when TLS began: does this port speak TLS?"
                )
            )
            return
        if self.cause is None and self._session_ends is not None and self._loop.time() >= self._session_ends:
            self.close(NetworkError(f"broker {self.address} ended the connection: the session has expired"))
            return
        super().connection_lost(exc)

    # -- requests

    def request(self, message: Message, version: int, timeout_s: float) -> asyncio.Future[Any]:
        if self._must_wait():
            assert self._held is not None
            future: asyncio.Future[Any] = self._loop.create_future()
            self._held.append((message, version, timeout_s, future))
            return future
        return super().request(message, version, timeout_s)

    def send_only(self, message: Message, version: int) -> None:
        if self._must_wait():
            assert self._held is not None
            self._held.append((message, version, 0.0, None))
            return
        super().send_only(message, version)

    @property
    def is_idle(self) -> bool:
        return not self._held and not self._wire.requests_in_flight

    @property
    def unsent_bytes(self) -> int:
        return super().unsent_bytes + (1 if self._held else 0)

    def _must_wait(self) -> bool:
        """Whether requests wait; begins to authenticate anew where the session is over already."""
        if self.cause is not None:
            return False
        ends = self._session_ends
        if self._held is None and ends is not None and self._loop.time() >= ends:
            self._reauthenticate()
        return self._held is not None

    # -- authentication

    def keep_authenticated(self, opener: SecuredOpener, versions: NodeVersions, lifetime_ms: int) -> None:
        """Show credentials again in time, where a session of `lifetime_ms` ends; 0: it does not."""
        self._opener, self._versions = opener, versions
        if self._session_timer is not None:
            self._session_timer.cancel()
        if lifetime_ms <= 0:
            self._session_ends = self._session_timer = None
            return
        self.session_s = lifetime_s = lifetime_ms / 1000
        self._session_ends = self._loop.time() + lifetime_s
        after_s = max(lifetime_s * random.uniform(*SESSION_PARTS), min(REAUTHENTICATION_S_MIN, lifetime_s))
        self._session_timer = self._loop.call_later(after_s, self._reauthenticate)

    def _reauthenticate(self) -> None:
        if self.cause is None and self._held is None:
            self._held = []
            self._reauthenticating = self._loop.create_task(self._reauthenticate_now())

    async def _reauthenticate_now(self) -> None:
        assert self._opener is not None
        assert self._versions is not None
        try:
            await self._opener.authenticate(self, self._versions)
        except PenstockError as error:
            self.close(error)
            return
        held, self._held = self._held or [], None
        for message, version, timeout_s, future in held:
            if future is not None and future.done():
                continue  # given up by its caller
            try:
                if future is None:
                    super().send_only(message, version)
                else:
                    _hand_over(super().request(message, version, timeout_s), future)
            except PenstockError as error:
                if future is not None and not future.done():
                    future.set_exception(error)

    async def exchange(self, message: Outgoing, version: int, timeout_s: float) -> Incoming:
        """Send one message of an authentication and await its answer."""
        if not isinstance(message, RawToken):
            answered: Incoming = await super().request(message, version, timeout_s)
            return answered
        if self.cause is not None:
            raise self._not_alive()
        if message.is_answered:
            self._wire.expect_raw_frames(True)
            self._raw = raw = self._loop.create_future()
        self._write([len(message.token).to_bytes(4, "big"), message.token])
        if not message.is_answered:
            return b""
        try:
            async with asyncio.timeout(timeout_s):
                token: bytes = await raw
                return token
        except TimeoutError:
            error = RequestTimeoutError(f"broker {self.address} did not answer in time while authenticating")
            self.close(error)
            raise error from None


def _hand_over(source: asyncio.Future[Any], target: asyncio.Future[Any]) -> None:
    """Give the outcome of one future to another."""

    def done(_: asyncio.Future[Any]) -> None:
        error = None if source.cancelled() else source.exception()
        if target.done():
            return
        if source.cancelled():
            target.cancel()
        elif error is not None:
            target.set_exception(error)
        else:
            target.set_result(source.result())

    source.add_done_callback(done)


class SecuredOpener:
    """Opens and authenticates the connections of one client."""

    def __init__(self, settings: SecuritySettings, config: ClientConfig, memory: ReusedMemory) -> None:
        """Raises ConfigError for certificates that cannot be used, MissingDependencyError for a library."""
        self.settings = settings
        self._config = config
        self._memory = memory
        self._files = SecurityFiles(settings)
        self._renewing = asyncio.Lock()
        self._login = login_key(config.bootstrap_servers, settings.given)
        self._context = context_of(settings)
        self._credentials = Credentials(settings) if settings.uses_sasl else None
        self._ciphertext = memoryview(bytearray(CIPHERTEXT_BYTES if settings.uses_tls else 0))

    async def connect(self, address: Address) -> SecuredConnection:
        """Open a connection, and shake hands by TLS.

        Raises:
            AuthenticationError: the broker is not who it should be, or does not speak TLS.
            NetworkError: it cannot be reached, or not in time.
        """
        await self._renew()
        config, context = self._config, self._context
        sock = await open_socket(address, config)
        loop = asyncio.get_running_loop()

        def make() -> SecuredConnection:
            tls = None
            if context is not None:
                tls = TlsConnection(context, is_server=False, server_name=address.host)
            return SecuredConnection(
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
        """Show credentials, the first time or again, where the settings have some.

        Raises:
            AuthenticationError: the broker refuses, or does not prove who it is. The connection is closed.
            LoginPendingError: the broker refuses what a file has; another try is worth while.
            NetworkError, RequestTimeoutError: the connection ended.
        """
        if self._credentials is None:
            return
        assert isinstance(connection, SecuredConnection)
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
        """Return what shows the credentials to a broker once more; None where the settings have none.

        `session_s` is for how long the broker has accepted those shown last; `is_raw`: it has no
        SaslAuthenticate.

        Raises:
            AuthenticationError: there is no token at the moment.
        """
        if self._credentials is None:
            return None
        await self._renew()
        mechanism = await self._credentials.mechanism(address.host, session_s)
        return Authenticator(mechanism, address, is_raw=is_raw)

    async def until_another_try(self) -> None:
        """Return when a login that is waited out is worth another try."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TRY_AGAIN_AFTER_S
        while loop.time() < deadline:
            await asyncio.sleep(LOOK_EVERY_S)
            if self._files.have_changed():
                return

    async def _renew(self) -> None:
        """Take certificates and secrets from their files again, where these have changed."""
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
        self, connection: SecuredConnection, versions: NodeVersions, credentials: Credentials
    ) -> None:
        address = connection.address
        is_raw = int(ApiKey.SASL_AUTHENTICATE) not in versions.ranges
        mechanism = await credentials.mechanism(address.host, connection.session_s)
        authenticator = Authenticator(mechanism, address, is_raw=is_raw)
        timeout_s = self._config.request_timeout_ms / 1000
        message: Outgoing | None = authenticator.begin()
        version = authenticator.handshake_version
        while message is not None:
            try:
                answer = await connection.exchange(message, version, timeout_s)
            except NetworkError:
                if isinstance(message, RawToken) or version == authenticator.handshake_version == 0:
                    raise authenticator.refused_by_silence() from None
                raise
            if authenticator.is_slow:
                message = await asyncio.to_thread(authenticator.receive, answer)
            else:
                message = authenticator.receive(answer)
            version = 0 if is_raw else versions.choose(SaslAuthenticateRequest)
        connection.keep_authenticated(self, versions, authenticator.session_lifetime_ms)
