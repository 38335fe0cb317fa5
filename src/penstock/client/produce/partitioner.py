"""Partitioners: the partition of a record, by the rules of Java's client and of librdkafka.

This module computes the partition of one record, `partitioner_columns` those of whole Arrow columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.config import Partitioner
from penstock.model import TopicPartition
from penstock.records import native
from penstock.records.row_format import RECORD_OVERHEAD_BYTES

if TYPE_CHECKING:
    from penstock.client.cluster.metadata import TopicInfo
    from penstock.records.row_format import PlainMeter

MASK32 = 0xFFFFFFFF
MURMUR2_SEED = 0x9747B28C
MURMUR2_M = 0x5BD1E995


def plain_murmur2(data: bytes) -> int:
    """Return the MurmurHash2 that Kafka's Java client computes: signed 32 bits, seed 0x9747b28c."""
    length = len(data)
    h = (MURMUR2_SEED ^ length) & MASK32
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * MURMUR2_M & MASK32
        k = (k ^ k >> 24) * MURMUR2_M & MASK32
        h = h * MURMUR2_M & MASK32 ^ k
    if whole != length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * MURMUR2_M & MASK32
    h = (h ^ h >> 13) * MURMUR2_M & MASK32
    h ^= h >> 15
    return h - (1 << 32) if h & 0x80000000 else h


def plain_fnv1a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash as librdkafka uses it: the absolute value of the signed number."""
    h = 0x811C9DC5
    for byte in data:
        h = (h ^ byte) * 0x01000193 & MASK32
    return h if h < 1 << 31 else (1 << 32) - h


murmur2: Callable[[bytes], int] = getattr(native.LIBRARY, "murmur2", plain_murmur2)
fnv1a: Callable[[bytes], int] = getattr(native.LIBRARY, "fnv1a", plain_fnv1a)
"""The hash function FNV-1a: compiled (`native/keys.h`) if the library is available, else `plain_fnv1a`.
(`murmur2` is chosen in the same way.)
"""


def _murmur2_random(key: bytes | None, count: int) -> int | None:
    return None if key is None else (murmur2(key) & 0x7FFFFFFF) % count


def _murmur2(key: bytes | None, count: int) -> int:
    return (murmur2(key or b"") & 0x7FFFFFFF) % count


def _consistent_random(key: bytes | None, count: int) -> int | None:
    return None if not key else zlib.crc32(key) % count


def _consistent(key: bytes | None, count: int) -> int:
    return zlib.crc32(key or b"") % count


def _fnv1a_random(key: bytes | None, count: int) -> int | None:
    return None if key is None else fnv1a(key) % count


def _fnv1a(key: bytes | None, count: int) -> int:
    return fnv1a(key or b"") % count


PARTITIONERS: dict[str, Partitioner] = {
    "murmur2_random": _murmur2_random,
    "murmur2": _murmur2,
    "consistent_random": _consistent_random,
    "consistent": _consistent,
    "fnv1a_random": _fnv1a_random,
    "fnv1a": _fnv1a,
}
"""A dict from librdkafka's name of a partitioner to the partitioner. ``murmur2_random``, the default, is also
Java's.
"""


class StickyChoice:
    """Chooses the partition of a record if the partitioner returns None, for example without a key.

    As Java's client since 3.3 (KIP-794), it stays with a random partition until `batch_bytes` bytes were
    appended, then chooses another. Partitions without a leader are left out while others have one.
    """

    def __init__(self, batch_bytes: int, dice: Callable[[], float]) -> None:
        self._batch_bytes = batch_bytes
        self._dice = dice
        self._current = -1
        self._appended = 0
        self._available: Sequence[int] = ()

    def choose(self, available: Sequence[int], record_bytes: int) -> int:
        """Return the partition for a record of `record_bytes`. `available` must not be empty."""
        if available is not self._available:
            self._available = available
            if self._current not in available:
                self._appended = self._batch_bytes
        if self._appended >= self._batch_bytes or self._current < 0:
            others = [p for p in available if p != self._current] or list(available)
            self._current = others[int(self._dice() * len(others))]
            self._appended = 0
        self._appended += record_bytes
        return self._current

    def count(self, record_bytes: int) -> None:
        """Count bytes that went to the current partition without a call of `choose`."""
        self._appended += record_bytes

    @property
    def left(self) -> int:
        """The number of bytes that the current partition still gets before another is chosen."""
        return self._batch_bytes - self._appended


class PlainKeyLane:
    """Writes a record with a key directly into the open batch of its partition: the fast path of `send`.

    `writers` has the writer of each partition's open batch, or None. `topics` are the metadata of all topics;
    the lane is valid while they have `info` for its topic. Keys are hashed as by Java's default partitioner.
    The compiled class is in `native/row_writer.h`.
    """

    __slots__ = ("_info", "_meter", "_topic", "_topics", "_writers")

    def __init__(
        self, writers: list[Any], topics: dict[str, TopicInfo], topic: str, info: TopicInfo, meter: PlainMeter
    ) -> None:
        self._writers, self._topics, self._topic, self._info = writers, topics, topic, info
        self._meter = meter

    def note(self, key: bytes, value: bytes | None, timestamp: int) -> object | None:
        """Accept a record without headers, and return its delivery. Any thread may call this method.

        Return None, and accept nothing, if the record's partition has no open batch with room for it, if the
        producer's memory is full, or if the topic's metadata have changed. `timestamp` is in milliseconds
        since 1970.
        """
        if type(key) is not bytes or (type(value) is not bytes and value is not None):
            return None
        meter = self._meter
        if meter.used >= meter.limit or self._topics.get(self._topic) is not self._info:
            return None
        writer = self._writers[(murmur2(key) & 0x7FFFFFFF) % len(self._writers)]
        if writer is None:
            return None
        size = RECORD_OVERHEAD_BYTES + len(key) + (0 if value is None else len(value))
        noted: object | None = writer.put(key, value, (), timestamp, size)
        return noted


KeyLane: Any = getattr(native.LIBRARY, "KeyLane", PlainKeyLane)
"""The compiled class that writes records with a key in the fast path of `send`; `PlainKeyLane` if the
compiled class is missing, as in a free-threaded Python.
"""


class TopicState:
    """The partitions of a topic, prepared for the producer, which reads them for every record."""

    __slots__ = ("available", "count", "info", "key_lane", "sticky", "tp", "writers")

    def __init__(self, info: TopicInfo, sticky: StickyChoice) -> None:
        self.info = info
        self.count = len(info.partitions)
        self.tp = [TopicPartition(info.name, partition) for partition in range(self.count)]
        led = [number for number, p in sorted(info.partitions.items()) if p.leader >= 0]
        self.available = led or list(range(self.count))
        self.sticky = sticky
        self.writers: list[Any] = [None] * self.count
        """The writer of each partition's open batch, or None for a partition without one. A writer takes
        records directly until its batch is full or in flight.
        """
        self.key_lane: Any = None
        """The `KeyLane` of the topic, or None before the first record with a key."""
