"""TLS between a socket and a `ServedConnection`: a `TlsFront` decrypts what arrives and encrypts what leaves.

`ServedConnection` does not depend on TLS. Ciphertext is read into one buffer that all `TlsFront` objects
share, and is decrypted at once into the connection's own buffer. So an idle connection needs little memory
besides OpenSSL's state. A handshake that fails sends its alert before the socket is closed, and the reason is
logged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from penstock.security.sasl_server import LoginOutcome
from penstock.security.tls import TlsConnection, TlsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.broker.network.connection import ServedConnection
    from penstock.broker.network.host import ConnectionHost
    from penstock.broker.security.listener_security import ListenerSecurity


class TlsFront(asyncio.BufferedProtocol):
    """The asyncio protocol object of a TLS connection; `connection` handles the decrypted bytes."""

    __slots__ = (
        "_connection",
        "_has_begun",
        "_held",
        "_is_paused",
        "_security",
        "_server",
        "_tls",
        "_transport",
    )

    _transport: asyncio.Transport

    def __init__(
        self, server: ConnectionHost, connection: ServedConnection, security: ListenerSecurity
    ) -> None:
        assert security.tls is not None
        self._server = server
        self._connection = connection
        self._security = security
        self._tls = TlsConnection(security.tls, is_server=True)
        self._held = bytearray()
        self._is_paused = False
        self._has_begun = False

    # --- what the transport calls ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connection.connection_made(TlsTransport(self))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._server.tls_scratch

    def buffer_updated(self, nbytes: int) -> None:
        received = self._server.tls_scratch[:nbytes]
        if self._has_begun:
            self._take(received)
            return
        # The first message is what costs the broker a signature.
        self._has_begun = True
        hello = received.tobytes()
        if not self._server.handshake_turns.run(lambda: self._take_hello(hello)):
            self._transport.pause_reading()

    def _take_hello(self, hello: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._take(memoryview(hello))

    def _take(self, received: memoryview) -> None:
        """Process ciphertext that has arrived: decrypt, continue the handshake, and pass plaintext on."""
        tls = self._tls
        was_ready = tls.is_ready
        try:
            tls.receive(received)
            self.flush()
            if not was_ready and tls.is_ready:
                self._begin_session()
            self._pass_on()
            self._end_with_the_peer()
        except TlsError as error:
            if not tls.is_ready:
                self._security.logins.add(LoginOutcome.FAILED)
            self._connection.hang_up(f"TLS: {error}")
        except Exception:
            self._connection.fail("what TLS has brought")

    def eof_received(self) -> bool:
        try:
            self._tls.receive_end()
        except TlsError as error:
            self._connection.hang_up(f"TLS: {error}")
        self._connection.eof_received()
        return False

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)

    # --- within ------------------------------------------------------------------------------------------

    def _begin_session(self) -> None:
        """Set the session's principal from the client's certificate, unless SASL follows."""
        if self._security.listener.has_sasl:
            return
        principal = self._security.principal_of(self._tls.peer_certificate())
        if principal is None:
            self._security.logins.add(LoginOutcome.FAILED)
            self._connection.hang_up("no rule of ssl.principal.mapping.rules fits the client's certificate")
            return
        self._security.logins.add(LoginOutcome.SUCCESSFUL)
        self._connection.session.principal = principal
        self._connection.authenticated()

    def _pass_on(self) -> None:
        """Pass decrypted bytes to the connection, and store the bytes for which it has no room."""
        connection, tls = self._connection, self._tls
        while True:
            if self._held:
                if not self._pass_held():
                    break
                continue
            room = connection.get_buffer(-1)
            if not len(room):
                break
            count = tls.read_into(room)
            if not count:
                return
            connection.buffer_updated(count)
        # The ciphertext lies in the shared buffer, which the next connection needs.
        scratch = self._server.scratch
        while count := tls.read_into(scratch):
            self._held += scratch[:count]

    def _end_with_the_peer(self) -> None:
        """Answer close_notify and close the socket, once everything received before it has been processed.

        Clients wait for this answer; clients with asyncio wait for 30 seconds.
        """
        if self._tls.is_ended and not self._held:
            self.close()

    def _pass_held(self) -> bool:
        """Pass the stored decrypted bytes to the connection; return False if it has no room for them."""
        room = self._connection.get_buffer(-1)
        size = min(len(room), len(self._held))
        if not size or self._is_paused:
            return False
        room[:size] = self._held[:size]
        del self._held[:size]
        self._connection.buffer_updated(size)
        return True

    def resume_reading(self) -> None:
        """Pass the stored decrypted bytes to the connection, then continue to read from the socket."""
        self._is_paused = False
        while self._held and not self._is_paused:
            if not self._pass_held():
                break
        if not self._held and not self._is_paused:
            self._transport.resume_reading()
            self._end_with_the_peer()

    def pause_reading(self) -> None:
        """Stop reading from the socket: the connection has no room."""
        self._is_paused = True
        self._transport.pause_reading()

    def write(self, data: Any) -> None:
        """Encrypt `data` and send it. After `close`, drop `data`, as asyncio's transports do."""
        if not self._transport.is_closing():
            self._tls.write(data)
            self.flush()

    def flush(self) -> None:
        """Write the ciphertext that OpenSSL has produced to the socket's transport."""
        for chunk in self._tls.to_send():
            self._transport.write(chunk)

    def close(self) -> None:
        """Send all queued ciphertext, alerts and close_notify included, and close the socket."""
        self._tls.close()
        self.flush()
        self._transport.close()

    @property
    def raw(self) -> asyncio.Transport:
        """The transport of the socket, which carries ciphertext."""
        return self._transport


class TlsTransport(asyncio.Transport):
    """The transport of a connection behind a `TlsFront`: written bytes are encrypted, then sent."""

    def __init__(self, front: TlsFront) -> None:
        self._front = front

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._front.raw.get_extra_info(name, default)

    def write(self, data: Any) -> None:
        self._front.write(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self._front.write(data)

    def pause_reading(self) -> None:
        self._front.pause_reading()

    def resume_reading(self) -> None:
        self._front.resume_reading()

    def is_reading(self) -> bool:
        return self._front.raw.is_reading()

    def is_closing(self) -> bool:
        return self._front.raw.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._front.raw.get_write_buffer_size()

    def close(self) -> None:
        self._front.close()

    def abort(self) -> None:
        self._front.raw.abort()
