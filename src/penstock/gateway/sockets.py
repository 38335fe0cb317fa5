"""The sockets of a gateway, for asyncio: one for each client, and one to a broker for each client.

All sockets read into one shared buffer, whose bytes are forwarded before the next socket is read. If the
kernel does not accept all bytes, the remainder is copied, and the sender's socket is not read until the
remainder is sent. So a peer that does not read blocks only its own connection, and the gateway buffers at
most one read for it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import TYPE_CHECKING, Protocol, cast

from penstock.common.listening.addresses import canonical_address
from penstock.gateway.contracts import Pause
from penstock.gateway.limits import READ_BYTES
from penstock.gateway.relay import Relay
from penstock.security.tls import TlsError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from typing_extensions import Buffer

    from penstock.gateway.addresses import ServerNames
    from penstock.gateway.calls import NodeCall
    from penstock.gateway.contracts import Attachable, RelayHost, Tap
    from penstock.gateway.routes import BrokerRoutes
    from penstock.security.tls import TlsConnection

SHORT_READ_BYTES = 16 << 10
"""The size in bytes of each read while more than half of `Limits.held_bytes_max` is in use."""

LINGER_S = 5.0
"""The longest time in seconds for which a connection that is being closed continues to send unsent bytes."""

REAUTHENTICATE_AGAIN_S = 0.02
"""The seconds until the next attempt to re-authenticate, if a request is in flight."""

HAS_POSIX_WRITE = os.name == "posix"
"""True if `os.write` can write to a socket's file descriptor."""


class SocketHost(Protocol):
    """The attributes and methods of the gateway that its sockets use."""

    scratch: memoryview
    """The buffer into which every socket reads."""
    ciphertext: memoryview
    """The buffer into which sockets with TLS read, before they decrypt into `scratch`."""

    @property
    def is_short(self) -> bool:
        """True if buffers are so full that sockets should read only `SHORT_READ_BYTES` at a time."""

    def hold(self, size: int) -> bool:
        """Reserve `size` bytes of `Limits.held_bytes_max`; return False if the limit is exceeded."""

    def let_go(self, size: int) -> None:
        """Release `size` bytes that were reserved by `hold`."""


class Socket:
    """The common part of client and broker sockets: writes to one connection, and pauses reading from it.

    The host counts the unsent bytes of all connections. If they exceed the limit, the connection ends.
    """

    def __init__(self, host: SocketHost, transport: asyncio.Transport) -> None:
        self._host = host
        self._transport = transport
        self._fd = transport.get_extra_info("socket").fileno()
        self._why_paused = Pause(0)
        self._unsent = 0
        """The number of unsent bytes of this connection, which are reserved with `SocketHost.hold`."""
        transport.set_write_buffer_limits(high=0)

    def send(self, data: Buffer) -> bool:
        """Send bytes; return False if the limit of unsent bytes is exceeded."""
        transport = self._transport
        if transport.is_closing():
            return True
        view = memoryview(data)
        if HAS_POSIX_WRITE and not transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, view)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                transport.abort()
                return True
            if sent == len(view):
                return True
            view = view[sent:]
        transport.write(bytes(view))
        return self._count()

    def _count(self) -> bool:
        unsent = self._transport.get_write_buffer_size()
        more, self._unsent = unsent - self._unsent, unsent
        if more > 0:
            return self._host.hold(more)
        self._host.let_go(-more)
        return True

    def written(self) -> None:
        """Release the memory reserved for unsent bytes, since they are sent or the connection has ended."""
        self._host.let_go(self._unsent)
        self._unsent = 0

    def pause(self, why: Pause) -> None:
        if not self._why_paused:
            self._transport.pause_reading()
        self._why_paused |= why

    def go_on(self, why: Pause) -> None:
        if self._why_paused:
            self._why_paused &= ~why
            if not self._why_paused:
                self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection when unsent bytes are sent, or at the latest after `LINGER_S` seconds."""
        transport = self._transport
        if not transport.is_closing():
            transport.close()
            if transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(LINGER_S, transport.abort)

    def abort(self) -> None:
        self._transport.abort()

    def reset(self) -> None:
        """Close the connection so that the peer gets a TCP reset."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


class SocketOwner(SocketHost, Protocol):
    """The interface of the gateway that its client sockets call."""

    def tap_of(self, peer: str, local: str) -> Tap | None:
        """Return the tap that records a client's connection, or None if nothing is recorded.

        Addresses are ``host:port``; `local` is the gateway's address of the connection.
        """

    def enter(self, client: ClientSocket) -> None:
        """Register a client that has connected."""

    def leave(self, client: ClientSocket) -> None:
        """Unregister a client whose connection has ended."""


class ClientSocket(asyncio.BufferedProtocol):
    """The connection of one client, through TLS if `tls` is given.

    `home` is the id of the broker to whose port the client has connected, or None for the bootstrap port.
    With `names`, the TLS server name (SNI) that the client has sent determines `home`.
    """

    def __init__(
        self,
        clients: SocketOwner,
        relays: RelayHost,
        home: int | None,
        advertised_host: str | None,
        tls: TlsConnection | None = None,
        names: ServerNames | None = None,
    ) -> None:
        self._names = names
        self._clients = clients
        self._relays = relays
        self._home = home
        self._advertised_host = advertised_host
        self._tls = tls
        self._socket: Socket | None = None
        self.relay: Relay | None = None
        self.active_at = self.connected_at = 0.0
        self._tap: Tap | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        self._socket = Socket(self._clients, transport)
        peer = transport.get_extra_info("peername") or ("?", 0)
        local = transport.get_extra_info("sockname") or ("127.0.0.1", 0)
        host = self._advertised_host or canonical_address(local[0])
        self.active_at = self.connected_at = self._loop.time()
        peer_text = f"{canonical_address(peer[0])}:{peer[1]}"
        self._tap = self._clients.tap_of(peer_text, f"{canonical_address(local[0])}:{local[1]}")
        self.relay = Relay(self._relays, self, self._home, peer_text, host)
        self._clients.enter(self)

    @property
    def is_shaking_hands(self) -> bool:
        """True if a TLS handshake is in progress."""
        return self._tls is not None and not self._tls.is_ready

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._tls is not None:
            return self._clients.ciphertext
        scratch = self._clients.scratch
        return scratch[:SHORT_READ_BYTES] if self._clients.is_short else scratch

    def buffer_updated(self, nbytes: int) -> None:
        self.active_at = self._loop.time()
        relay = self.relay
        if relay is None or relay.is_closed:
            return
        scratch, tls = self._clients.scratch, self._tls
        if tls is None:
            self._take(relay, scratch[:nbytes])
            return
        try:
            tls.receive(self._clients.ciphertext[:nbytes])
            if self._names is not None and tls.is_ready:
                relay.home, self._names = self._names.node_of(tls.asked_name), None
            while not relay.is_closed and (count := tls.read_into(scratch)):
                self._take(relay, scratch[:count])
        except TlsError as error:
            relay.close(str(error))
            return
        self._flush()
        if tls.is_ended:
            relay.close("the client has ended the connection")

    def _take(self, relay: Relay, data: memoryview) -> None:
        if self._tap is not None:
            self._tap.received(data)
        relay.client_bytes(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self.relay is not None:
            self.relay.client_clogged(True)

    def resume_writing(self) -> None:
        self.active_at = self._loop.time()
        assert self._socket is not None
        self._socket.written()
        if self.relay is not None:
            self.relay.client_clogged(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._socket is not None:
            self._socket.written()
        if self.relay is not None:
            self.relay.client_lost()
        if self._tap is not None:
            self._tap.ended()
        self._clients.leave(self)

    # --- what the relay calls

    def send(self, data: Buffer) -> None:
        assert self._socket is not None
        if self._tap is not None:
            self._tap.sent(memoryview(data))
        tls = self._tls
        if tls is not None:
            tls.write(data)
            self._flush()
        elif not self._socket.send(data):
            self._end("responses that are not read take too much memory (held_bytes_max)")

    def _flush(self) -> None:
        assert self._tls is not None
        assert self._socket is not None
        for chunk in self._tls.to_send():
            if not self._socket.send(chunk):
                self._end("responses that are not read take too much memory (held_bytes_max)")
                return

    def _end(self, reason: str) -> None:
        if self.relay is not None:
            self.relay.close(reason)
        self.abort()

    def pause(self, why: Pause) -> None:
        assert self._socket is not None
        self._socket.pause(why)

    def go_on(self, why: Pause) -> None:
        assert self._socket is not None
        self._socket.go_on(why)

    def close(self) -> None:
        assert self._socket is not None
        if self._tls is not None:
            self._tls.close()
            self._flush()
        self._socket.close()

    def abort(self) -> None:
        """Close the client's connection at once, without sending unsent bytes."""
        assert self._socket is not None
        self._socket.abort()

    def reset(self) -> None:
        assert self._socket is not None
        self._socket.reset()


class UpstreamSocket(asyncio.BufferedProtocol):
    """The connection to a broker for one client of the gateway, through TLS if `tls` is given.

    `lost` is called when the broker has closed the connection.
    """

    def __init__(
        self,
        host: SocketHost,
        relay: Attachable,
        routes: BrokerRoutes,
        node_id: int | None,
        tls: TlsConnection | None,
        lost: Callable[[], None],
    ) -> None:
        self.routes = routes
        self.node_id = node_id
        self._host = host
        self._relay = relay
        self._tls = tls
        self._lost = lost
        self._socket: Socket | None = None
        self._renewal: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take_over(self, transport: asyncio.Transport) -> None:
        """Become the asyncio protocol of `transport`, which is already connected and authenticated."""
        transport.set_protocol(self)
        self._socket = Socket(self._host, transport)

    def renew_after(self, seconds: float, begin: Callable[[], None]) -> None:
        """Call `begin`, which starts a re-authentication, after a number of seconds if still connected."""
        if not self._is_closed:
            self._renewal = asyncio.get_running_loop().call_later(seconds, begin)

    def show(self, credentials: Generator[NodeCall, object, object]) -> None:
        """Re-authenticate (KIP-368) with the requests in `credentials`, once no request is in flight."""
        if not (self._is_closed or self._relay.reauthenticate(credentials)):
            self.renew_after(REAUTHENTICATE_AGAIN_S, lambda: self.show(credentials))

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._tls is not None:
            return self._host.ciphertext
        scratch = self._host.scratch
        return scratch[:SHORT_READ_BYTES] if self._host.is_short else scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_closed:
            return
        tls = self._tls
        scratch = self._host.scratch
        if tls is None:
            self._relay.upstream_bytes(scratch[:nbytes])
            return
        try:
            tls.receive(self._host.ciphertext[:nbytes])
            while not self._is_closed and (count := tls.read_into(scratch)):
                self._relay.upstream_bytes(scratch[:count])
        except TlsError as error:
            self._lose(f"broker {self.node_id}: {error}")
            return
        self._flush()
        if tls.is_ended:
            self._lose("the broker has ended the connection")

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if not self._is_closed:
            self._relay.upstream_clogged(True)

    def resume_writing(self) -> None:
        if self._socket is not None:
            self._socket.written()
        if not self._is_closed:
            self._relay.upstream_clogged(False)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._socket is not None:
            self._socket.written()
        self._lose("the broker has ended the connection")

    def _lose(self, reason: str) -> None:
        if self._is_closed:
            return
        self.close()
        self._lost()
        self._relay.upstream_lost(reason)

    # --- what the relay calls

    def send(self, data: Buffer) -> None:
        assert self._socket is not None
        tls = self._tls
        if tls is not None:
            tls.write(data)
            self._flush()
        elif not self._socket.send(data):
            self._refuse()

    def _flush(self) -> None:
        assert self._tls is not None
        assert self._socket is not None
        for chunk in self._tls.to_send():
            if not self._socket.send(chunk):
                self._refuse()
                return

    def _refuse(self) -> None:
        self._relay.close("requests that the broker does not read take too much memory (held_bytes_max)")
        if self._socket is not None:
            self._socket.abort()

    def pause(self, why: Pause) -> None:
        if self._socket is not None:
            self._socket.pause(why)

    def go_on(self, why: Pause) -> None:
        if self._socket is not None:
            self._socket.go_on(why)

    def reset(self) -> None:
        self.close()
        if self._socket is not None:
            self._socket.reset()

    def close(self) -> None:
        self._is_closed = True
        if self._renewal is not None:
            self._renewal.cancel()
        if self._socket is not None:
            self._socket.close()


def new_buffer(size: int = READ_BYTES) -> memoryview:
    """Allocate a read buffer, which all sockets of a gateway share."""
    return memoryview(bytearray(size))
