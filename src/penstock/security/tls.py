"""A TLS connection without I/O, for either side: ciphertext in, plaintext out, and the reverse.

- The minimum version is TLS 1.2. `to_send` returns all bytes for the peer, including alerts of a failed
handshake.
- Plaintext is read into the caller's buffer. Neither OpenSSL nor the queues hold more than `SLICE_BYTES` and
one record between calls, so that an idle connection takes a tenth of the memory of asyncio's.
- Failures raise TlsError with one line: which end refused, and why. A peer without TLS is recognised by its
first byte.
- A connection may end without close_notify (Apache Kafka sends none), since requests and responses have
lengths.
"""

from __future__ import annotations

import ssl
from collections import deque
from typing import TYPE_CHECKING

from penstock.errors import AuthenticationError
from penstock.security.tls_reasons import (
    UNREADABLE,
    UNREADABLE_FIRST,
    certificate_names,
    not_tls,
    why_refused,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

SLICE_BYTES = 32 << 10
"""The maximum number of bytes of ciphertext that are passed to OpenSSL at a time, because its buffers never
shrink."""

SEND_BYTES = 64 << 10
"""The maximum number of bytes that are encrypted at a time: records of 16 KiB, collected in OpenSSL's
buffer."""

INTERNAL_ERROR_ALERT = bytes.fromhex("15030300020250")
"""The TLS alert with which Apache Kafka answers bytes that are not TLS. Clients recognise this alert."""


ASKED_NAME = "penstock_asked_name"


def keep_asked_name(tls: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
    """Store the server name that a client sends (SNI). Use it as the ``sni_callback`` of an SSL context."""
    setattr(tls, ASKED_NAME, name)


class TlsError(AuthenticationError):
    """Raised if the ends do not agree on TLS: protocol, certificate or host name. Retrying does not help."""

    is_of_one_broker = True


class TlsConnection:
    """One side of one TLS connection.

    A client begins with `start`. Both sides then pass received bytes to `receive`, call `read_into` until it
    returns 0, and send what `to_send` returns, also after a TlsError and after `close`.
    """

    __slots__ = (
        "_failure",
        "_has_read",
        "_incoming",
        "_is_first",
        "_is_server",
        "_outgoing",
        "_pending",
        "_queue",
        "_tls",
        "_written",
        "is_ended",
        "is_ready",
        "server_name",
    )

    def __init__(self, context: ssl.SSLContext, *, is_server: bool, server_name: str | None = None) -> None:
        """Begin a connection. `server_name` is the host that a client connects to.

        It is sent as SNI, and compared with the certificate.
        """
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.server_name = None if server_name is None else server_name.rstrip(".")
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=is_server, server_hostname=self.server_name
        )
        self._is_server = is_server
        self._is_first = True
        self._failure: TlsError | None = None
        self._has_read = False
        self._pending: memoryview | None = None
        self._queue: deque[memoryview] = deque()
        self._written: list[bytes] = []
        self.is_ready = False
        """True after this side has completed the handshake."""
        self.is_ended = False
        """True after the peer has sent close_notify or has closed the socket."""

    @property
    def asked_name(self) -> str | None:
        """The server name that a client has sent (SNI), or None.

        The name is available only if the context has `keep_asked_name` as its ``sni_callback``.
        """
        name: str | None = getattr(self._tls, ASKED_NAME, None)
        return name

    @property
    def version(self) -> str | None:
        """The protocol, ``TLSv1.3`` or ``TLSv1.2``, or None before the end of the handshake."""
        return self._tls.version()

    @property
    def cipher(self) -> str | None:
        """OpenSSL's name of the cipher, or None before the end of the handshake."""
        cipher = self._tls.cipher()
        return None if cipher is None else cipher[0]

    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate in DER if it was requested, sent and verified; otherwise None."""
        return self._tls.getpeercert(True) if self.is_ready else None

    def start(self) -> None:
        """Begin the handshake. A client's first message is then in `to_send`."""
        self._shake_hands()

    def receive(self, data: Buffer) -> None:
        """Process received ciphertext: `data`, which must stay valid until `read_into` returns 0.

        Raises:
            TlsError: the peer does not speak TLS, or the handshake failed. Send the bytes that `to_send`
                returns, then close the socket.
        """
        view = memoryview(data)
        if not view.nbytes:
            return
        if self._is_first:
            self._is_first = False
            other = not_tls(bytes(view[:4]), is_server=self._is_server)
            if other is not None:
                if self._is_server:
                    self._written.append(INTERNAL_ERROR_ALERT)
                raise TlsError(other)
        self._pending = view
        while not self.is_ready and self._feed():
            self._shake_hands()

    def receive_end(self) -> None:
        """Record that the peer has closed the socket.

        Raises:
            TlsError: the socket was closed during the handshake, after the peer had sent something.
        """
        self._incoming.write_eof()
        self.is_ended = True
        if not self.is_ready and not self._is_first:
            raise TlsError("the peer ended the connection in the middle of the TLS handshake")

    def read_into(self, buffer: Buffer) -> int:
        """Read plaintext into `buffer`; return the number of bytes, 0 if there is no more now.

        Raises:
            TlsError: the peer refuses this side's certificate (TLS 1.3 reports that after the handshake), or
                a record is damaged.
        """
        if not self.is_ready:
            return 0
        if self._failure is not None:
            raise self._failure
        view = memoryview(buffer)
        read: Callable[[int, memoryview], int] = self._tls.read  # type: ignore[assignment]
        filled, room = 0, view.nbytes
        while filled < room:
            try:
                count = read(room - filled, view[filled:])
            except ssl.SSLWantReadError:
                if not self._feed():
                    break
                continue
            except ssl.SSLError as error:
                if isinstance(error, (ssl.SSLZeroReturnError, ssl.SSLEOFError)):
                    self.is_ended = True
                    self._pending = None
                    break
                self._pending = None
                self._failure = self._error(error)
                if not (self._has_read or self._is_server) and error.reason == UNREADABLE:
                    self._failure = TlsError(UNREADABLE_FIRST)
                if filled:
                    break  # what came before the error is worked off first
                raise self._failure from None
            if not count:
                self.is_ended = True
                break
            filled += count
        self._has_read = self._has_read or filled > 0
        return filled

    def write(self, data: Buffer) -> None:
        """Encrypt `data`. Before the end of the handshake, `data` is queued and must stay valid till then."""
        view = memoryview(data)
        if view.nbytes != len(view):
            view = view.cast("B")
        if not self.is_ready:
            self._queue.append(view)
            return
        self._encrypt(view)

    def to_send(self) -> list[bytes]:
        """Return the ciphertext to send to the peer now, as a list of chunks, or an empty list."""
        if self._outgoing.pending:
            self._written.append(self._outgoing.read())
        if not self._written:
            return []
        written, self._written = self._written, []
        return written

    def close(self) -> None:
        """Add close_notify to the bytes of `to_send`. No data can be sent afterwards."""
        if self.is_ready:
            try:
                self._tls.unwrap()
            except (ssl.SSLError, ValueError, OSError):
                return

    # -- within

    def _feed(self) -> bool:
        """Pass the next slice of received bytes to OpenSSL; return False if there is none."""
        pending = self._pending
        if pending is None:
            return False
        if pending.nbytes <= SLICE_BYTES:
            self._incoming.write(pending)
            self._pending = None
        else:
            self._incoming.write(pending[:SLICE_BYTES])
            self._pending = pending[SLICE_BYTES:]
        return True

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except (ssl.SSLError, ssl.CertificateError) as error:
            self._pending = None
            raise self._error(error) from None
        self.is_ready = True
        while self._queue:
            self._encrypt(self._queue.popleft())

    def _encrypt(self, view: memoryview) -> None:
        write, size = self._tls.write, view.nbytes
        position = 0
        while position < size:
            try:
                position += write(view[position : position + SEND_BYTES])
            except ssl.SSLError as error:
                raise self._error(error) from None
            if self._outgoing.pending >= SEND_BYTES:
                self._written.append(self._outgoing.read())

    def _error(self, error: Exception) -> TlsError:
        names = certificate_names(self._tls) if isinstance(error, ssl.SSLCertVerificationError) else ""
        return TlsError(why_refused(error, self._is_server, self.server_name, names))
