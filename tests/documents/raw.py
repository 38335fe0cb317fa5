"""Encoding and decoding of the bytes that the first protocol documents describe, without Penstock's code."""

from __future__ import annotations

import socket
import struct
import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

PRODUCE, FETCH, OFFSETS, METADATA, COMMIT, COMMITTED, COORDINATOR, JOIN, HEARTBEAT, LEAVE, SYNC = (
    0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14,
)  # fmt: skip

T = TypeVar("T")


def i8(value: int) -> bytes:
    return struct.pack(">b", value)


def i16(value: int) -> bytes:
    return struct.pack(">h", value)


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def string(value: str | bytes | None) -> bytes:
    if value is None:
        return i16(-1)
    data = value.encode() if isinstance(value, str) else value
    return i16(len(data)) + data


def data(value: bytes | None) -> bytes:
    return i32(-1) if value is None else i32(len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return i32(len(listed)) + b"".join(listed)


def message(
    value: bytes | None, key: bytes | None = None, attributes: int = 0, crc: int | None = None
) -> bytes:
    """Return a message of magic 0, with a correct CRC unless `crc` is given."""
    rest = i8(0) + i8(attributes) + data(key) + data(value)
    return struct.pack(">I", zlib.crc32(rest) if crc is None else crc) + rest


def message_set(*messages: bytes, offsets: Iterable[int] | None = None) -> bytes:
    numbers = range(len(messages)) if offsets is None else offsets
    return b"".join(i64(offset) + data(one) for offset, one in zip(numbers, messages, strict=True))


class Reader:
    """A decoder that reads a response from its start; `end` raises AssertionError if bytes are left."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.at = 0

    def take(self, size: int) -> bytes:
        taken = self.body[self.at : self.at + size]
        assert len(taken) == size, "the answer ends in a field"
        self.at += size
        return taken

    def i8(self) -> int:
        return int.from_bytes(self.take(1), "big", signed=True)

    def i16(self) -> int:
        return int.from_bytes(self.take(2), "big", signed=True)

    def i32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def i64(self) -> int:
        return int.from_bytes(self.take(8), "big", signed=True)

    def string(self) -> bytes | None:
        size = self.i16()
        return None if size == -1 else self.take(size)

    def name(self) -> str:
        found = self.string()
        assert found is not None
        return found.decode()

    def data(self) -> bytes | None:
        size = self.i32()
        return None if size == -1 else self.take(size)

    def array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.i32())]

    def end(self) -> None:
        assert self.at == len(self.body), "the answer goes on behind its last field"


def messages_in(found: bytes) -> tuple[list[tuple[int, int, bytes | None, bytes | None]], bytes]:
    """Return the complete messages of a message set, and the bytes of an incomplete one behind them.

    Each message is (offset, attributes, key, value). Raise AssertionError if a CRC is wrong.
    """
    rows = []
    while len(found) >= 12:
        offset, size = struct.unpack_from(">qi", found)
        one = found[12 : 12 + size]
        if len(one) < size:
            break
        assert struct.unpack_from(">I", one)[0] == zlib.crc32(one[4:])
        reader = Reader(one[4:])
        assert reader.i8() == 0
        attributes = reader.i8()
        rows.append((offset, attributes, reader.data(), reader.data()))
        reader.end()
        found = found[12 + size :]
    return rows, found


class Raw:
    """One connection to a broker, over which a test sends and receives bytes."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 20)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(
        self, api: int, body: bytes, correlation: int = 1, version: int = 0, client: str | bytes | None = "c"
    ) -> None:
        self.socket.sendall(request(api, body, correlation, version, client))

    def frame(self) -> bytes | None:
        """Receive the next frame, without its size; return None if the broker has closed the connection."""
        head = self._receive(4)
        return None if head is None else self._receive(int.from_bytes(head, "big"))

    def answer(self) -> tuple[int, Reader] | None:
        """Receive the next response; return its correlation id and body.

        Return None if the broker has closed the connection.
        """
        body = self.frame()
        if body is None:
            return None
        reader = Reader(body)
        return reader.i32(), reader

    def ask(
        self, api: int, body: bytes, correlation: int = 1, version: int = 0, client: str | bytes | None = "c"
    ) -> Reader:
        self.send(api, body, correlation, version, client)
        found = self.answer()
        assert found is not None, "the broker has closed the connection"
        assert found[0] == correlation
        return found[1]

    def _receive(self, size: int) -> bytes | None:
        found = b""
        while len(found) < size:
            try:
                piece = self.socket.recv(size - len(found))
            except ConnectionError:
                return None
            if not piece:
                return None
            found += piece
        return found


def request(
    api: int, body: bytes, correlation: int = 1, version: int = 0, client: str | bytes | None = "c"
) -> bytes:
    return data(i16(api) + i16(version) + i32(correlation) + string(client) + body)
