"""A client for tests that sends exactly the requests it is given, over a plain socket."""

from __future__ import annotations

import socket
import struct
from typing import Any

from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest


class WireClient:
    """A connection to a broker, over a new socket or a given one.

    Correlation ids count from 1.
    """

    def __init__(
        self,
        port: int,
        timeout_s: float = 10,
        client_id: str = "wire",
        *,
        over: socket.socket | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.client_id = client_id
        self.socket = over or socket.socket()
        self.socket.settimeout(timeout_s)
        try:
            self.socket.connect((host, port))
        except OSError:
            self.socket.close()
            raise
        self._sent = 0
        self._due: dict[int, tuple[type[Message], int]] = {}

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def bytes_of(self, request: Message, version: int) -> bytes:
        assert request.API_KEY is not None
        self._sent += 1
        self._due[self._sent] = (API_TABLE[request.API_KEY].response, version)
        return b"".join(map(bytes, encode_request(request, version, self._sent, self.client_id)))

    def send(self, request: Message, version: int) -> int:
        """Send a request; return its correlation id."""
        self.socket.sendall(self.bytes_of(request, version))
        return self._sent

    def receive(self) -> tuple[int, Any]:
        """Read the next response; return its correlation id and message."""
        frame = self.receive_frame()
        message, version = self._due[struct.unpack_from(">i", frame)[0]]
        return decode_response(frame, message, version)

    def receive_frame(self) -> bytes:
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the broker has closed the connection")
            data += more
        return bytes(data)

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive()[1]

    def is_closed_by_peer(self) -> bool:
        """Return True if the peer has closed the connection, or closes it without sending more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def is_well(port: int) -> bool:
    """Return True if the broker answers an ApiVersions request on a new connection."""
    with WireClient(port) as client:
        answer = client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
        return bool(answer.api_keys) and answer.error_code == 0
