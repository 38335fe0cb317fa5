"""Captures (pcap) of the traffic of chosen clients, for `penstock wire` and `penstock.testing.replay`.

Wireshark reads the file, too. Its packets are synthetic: TCP segments between the addresses of client and
gateway, with the bytes that the client sends and gets, decrypted if it uses TLS. Logins, and requests about
passwords and tokens, are left out, with their responses. Bytes are written as they pass, without buffering a
conversation.
"""

from __future__ import annotations

import ipaddress
import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, BinaryIO

from penstock.common.logs import logger_named
from penstock.errors import ConfigError
from penstock.gateway.heads import is_kafka_request
from penstock.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.clock import Clock

CAPTURE_BYTES_MAX = 1 << 30
"""The size in bytes at which a capture ends, since programs that read it load all of it into memory."""

WAITING_MAX = 2000
"""The most requests of a connection that await responses; the responses to older requests are left out."""

SECRETS = frozenset(
    map(
        int,
        (
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ),
    )
)
"""The APIs whose requests and responses are not written, because they contain passwords or tokens."""

_SIZE_BYTES = 4
_REQUEST_START_BYTES = 8
"""The size in bytes of the first request fields after the size field: API key, version and correlation id."""

_RESPONSE_START_BYTES = 4
"""The size in bytes of the first response field after the size field: the correlation id."""

_RAW_IP = 101
_SEGMENT_BYTES_MAX = 60_000
_IP4 = struct.Struct(">BBHHHBBH4s4s")
_IP6 = struct.Struct(">IHBB16s16s")
_TCP = struct.Struct(">HHIIBBHHH")
_PACKET = struct.Struct("<IIII")
_FIN, _SYN, _PUSH, _ACK = 1, 2, 8, 16
_TCP_PROTOCOL = 6

logger = logger_named("penstock.gateway")


class CaptureFile:
    """A capture file (pcap) with permissions for its owner alone. An existing file of that name is replaced.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._size = 0
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            raise ConfigError(f"the capture {path} cannot be written: {error.strerror}") from None
        self._file: BinaryIO | None = os.fdopen(descriptor, "wb")
        self._write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, _RAW_IP))

    def packet(self, head: bytes, data: bytes | memoryview) -> None:
        """Write a packet. If writing fails, or the size limit is reached, warn and end the capture."""
        seconds, ms = divmod(self._clock.now_ms(), 1000)
        size = len(head) + len(data)
        if self._size + size + _PACKET.size > CAPTURE_BYTES_MAX:
            self._end(f"it has {self._size} bytes, and {CAPTURE_BYTES_MAX} are allowed")
            return
        self._write(b"".join((_PACKET.pack(seconds, ms * 1000, size, size), head, data)))

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._end(str(error))
        self._size += len(data)

    def _end(self, reason: str) -> None:
        if self._file is not None:
            logger.warning("the capture %s ends here: %s", self._path, reason)
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class CapturedConnection:
    """Writes the traffic of one client connection to a capture file. Addresses are ``host:port``."""

    def __init__(self, capture: CaptureFile, peer: str, local: str) -> None:
        self._capture = capture
        self._ends = [_end(peer), _end(local)]
        self._sequences = [1, 1]
        self._waiting: deque[int] = deque(maxlen=WAITING_MAX)
        """The correlation ids of recorded requests that await responses."""
        self._requests = _Stream(_REQUEST_START_BYTES, self._keeps_request)
        self._responses = _Stream(_RESPONSE_START_BYTES, self._keeps_response)
        for source, flags in ((0, _SYN), (1, _SYN | _ACK)):
            self._packet(source, flags, 0, b"")
        self._packet(0, _ACK, 1, b"")

    def received(self, data: memoryview) -> None:
        """Record bytes that the client has sent."""
        for chunk in self._requests.cut(data):
            self._put(0, chunk)

    def sent(self, data: memoryview) -> None:
        """Record bytes that are sent to the client."""
        for chunk in self._responses.cut(data):
            self._put(1, chunk)

    def ended(self) -> None:
        """Write the packets that close the TCP connection in both directions."""
        for source in (0, 1):
            self._packet(source, _FIN | _ACK, self._sequences[source], b"")

    def _keeps_request(self, start: bytes) -> bool:
        if not is_kafka_request(start):  # a token without a header, or what ends the connection
            return False
        if int.from_bytes(start[:2], "big") in SECRETS:
            return False
        self._waiting.append(int.from_bytes(start[4:8], "big", signed=True))
        return True

    def _keeps_response(self, start: bytes) -> bool:
        correlation_id = int.from_bytes(start, "big", signed=True)
        if correlation_id not in self._waiting:
            return False
        while self._waiting.popleft() != correlation_id:
            pass  # it has no response, as acks=0
        return True

    def _put(self, source: int, data: memoryview) -> None:
        for start in range(0, len(data), _SEGMENT_BYTES_MAX):
            piece = data[start : start + _SEGMENT_BYTES_MAX]
            self._packet(source, _PUSH | _ACK, self._sequences[source], piece)
            self._sequences[source] = (self._sequences[source] + len(piece)) & 0xFFFFFFFF

    def _packet(self, source: int, flags: int, sequence: int, data: bytes | memoryview) -> None:
        (address, port), (other, other_port) = self._ends[source], self._ends[1 - source]
        acknowledged = self._sequences[1 - source] if flags & _ACK else 0
        tcp = _TCP.pack(port, other_port, sequence, acknowledged, 5 << 4, flags, 65535, 0, 0)
        size = len(tcp) + len(data)
        if address.version == 4:
            ip = _IP4.pack(
                0x45, 0, 20 + size, 0, 0, 64, _TCP_PROTOCOL, 0, address.packed, other.packed
            )  # fmt: skip
        else:
            ip = _IP6.pack(6 << 28, size, _TCP_PROTOCOL, 64, address.packed, other.packed)
        self._capture.packet(ip + tcp, data)


class _Stream:
    """Divides the bytes of one direction of a connection into frames, and selects the frames to record.

    `is_kept` decides about each frame. It is called with the first `start_bytes` bytes after the size field,
    or fewer for a shorter frame.
    """

    def __init__(self, start_bytes: int, is_kept: Callable[[bytes], bool]) -> None:
        self._start_bytes = start_bytes
        self._is_kept = is_kept
        self._head = bytearray()
        self._left = 0
        self._keeps = False

    def cut(self, data: memoryview) -> Iterator[memoryview]:
        """Yield the parts of `data` that belong to frames to record."""
        position, end = 0, len(data)
        while position < end:
            if self._left:
                stop = min(end, position + self._left)
                if self._keeps:
                    yield data[position:stop]
                self._left -= stop - position
                position = stop
                continue
            stop = min(end, position + self._wanted() - len(self._head))
            self._head += data[position:stop]
            position = stop
            wanted = self._wanted()
            if len(self._head) == wanted and wanted >= _SIZE_BYTES and self._is_whole(wanted):
                head = bytes(self._head)
                self._head.clear()
                self._left = self._size_of(head) + _SIZE_BYTES - wanted
                self._keeps = self._is_kept(head[_SIZE_BYTES:])
                if self._keeps:
                    yield memoryview(head)

    def _wanted(self) -> int:
        """Return the number of bytes needed, with the size field, to decide if the next frame is recorded."""
        if len(self._head) < _SIZE_BYTES:
            return _SIZE_BYTES
        return _SIZE_BYTES + min(self._start_bytes, self._size_of(self._head))

    def _is_whole(self, wanted: int) -> bool:
        return wanted > _SIZE_BYTES or not self._size_of(self._head)

    def _size_of(self, head: bytes | bytearray) -> int:
        return max(int.from_bytes(head[:_SIZE_BYTES], "big", signed=True), 0)


def _end(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    host, _, port = text.rpartition(":")
    return ipaddress.ip_address(host.strip("[]").partition("%")[0]), int(port)
