"""A client for Kafka 0.7 tests that sends and receives frames without interpreting them."""

from __future__ import annotations

import socket

from penstock.v07.server import Broker07
from penstock.v07.wire import Part, RequestType, WireRequest, encode_request


class RawClient:
    """One connection to a 0.7 broker.

    `answer` returns the next frame without its length, or None once the broker has closed the connection.
    """

    def __init__(self, broker: Broker07) -> None:
        self._socket = socket.create_connection((broker.host, broker.port), 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, kind: RequestType, *parts: Part) -> bytes | None:
        """Send a request; return its response, or the result of `alive` if it has none."""
        self.send(encode_request(WireRequest(kind, parts)))
        return self.answer() if kind.is_answered else self.alive()

    def alive(self) -> bytes | None:
        """Return b"" if the broker still answers, or None if it has closed the connection."""
        try:
            self.send(bytes.fromhex("00000004 0002 0000"))
            return b"" if self.answer() == b"\0\0" else None
        except OSError:
            return None

    def answer(self) -> bytes | None:
        head = self._receive(4)
        return None if head is None else self._receive(int.from_bytes(head, "big"))

    def _receive(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except ConnectionError:
                return None
            if not piece:
                return None
            data += piece
        return data
