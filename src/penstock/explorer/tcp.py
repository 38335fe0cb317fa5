"""Reassembles TCP segments to streams of bytes, in both directions of every connection in a capture.

Segments may be repeated, out of order, overlapping or wrapped around 2^32. If the capture lacks some,
the stream ends there, and `missing_bytes` has their number, since later positions would be uncertain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from penstock.explorer.pcap import ACK, SYN, TcpSegment


class TcpStream:
    """The bytes of one direction of a TCP connection. `complete` puts the added segments in order."""

    def __init__(self) -> None:
        self.data = b""
        self.missing_bytes = 0
        self._began = 0.0
        self._first: int | None = None
        self._is_opened = False
        self._latest = 0
        self._pieces: list[tuple[int, int, float, bytes]] = []
        self._ends: list[int] = []
        self._times: list[float] = []

    def add(self, segment: TcpSegment) -> None:
        """Add a segment of this direction."""
        if self._first is None:
            self._first = self._latest = segment.sequence
            self._began = segment.time
        # The position nearest to the latest one that has this sequence number: it wraps at 2^32.
        position = self._latest + ((segment.sequence - self._latest + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        if segment.flags & SYN:
            self._first, self._is_opened = position + 1, True
            position += 1
        if segment.data:
            self._pieces.append((position, len(self._pieces), segment.time, segment.data))
        self._latest = max(self._latest, position)

    def is_reopened_by(self, segment: TcpSegment) -> bool:
        """Return True if a SYN begins another connection between the same ports."""
        return (
            self._is_opened
            and self._first is not None
            and (segment.sequence + 1 - self._first) & 0xFFFFFFFF != 0
        )

    def complete(self) -> None:
        """Join the segments in order, up to the first that is missing."""
        self._pieces.sort()
        if not self._pieces or self._first is None:
            return
        position = self._first if self._is_opened else self._pieces[0][0]
        joined = bytearray()
        for start, _, time, data in self._pieces:
            if start > position:
                self.missing_bytes = start - position
                break
            fresh = data[position - start :]
            if fresh:
                joined += fresh
                position += len(fresh)
                self._ends.append(len(joined))
                self._times.append(time)
        self.data = bytes(joined)
        self._pieces.clear()

    def time_of(self, end: int) -> float:
        """Return the time at which the byte before position `end` was first seen, in seconds since 1970."""
        if not self._times:
            return self._began
        return self._times[min(bisect_left(self._ends, end), len(self._times) - 1)]


class TcpConnection:
    """The two streams of a TCP connection. `client` is the end that sent the first SYN, if captured."""

    def __init__(self, source: str, destination: str) -> None:
        self.ends = (source, destination)
        self.streams = {source: TcpStream(), destination: TcpStream()}
        self.client: str | None = None

    @property
    def has_data(self) -> bool:
        return any(stream.data for stream in self.streams.values())


def connections(segments: Iterable[TcpSegment]) -> list[TcpConnection]:
    """Assemble TCP segments into connections, in the order of their first segments."""
    found: list[TcpConnection] = []
    current: dict[frozenset[str], TcpConnection] = {}
    for segment in segments:
        key = frozenset((segment.source, segment.destination))
        connection = current.get(key)
        opens = segment.flags & SYN and not segment.flags & ACK
        if connection is None or (opens and connection.streams[segment.source].is_reopened_by(segment)):
            connection = current[key] = TcpConnection(segment.source, segment.destination)
            found.append(connection)
        if segment.flags & SYN:
            connection.client = segment.source if opens else segment.destination
        connection.streams[segment.source].add(segment)
    for connection in found:
        for stream in connection.streams.values():
            stream.complete()
    return found
