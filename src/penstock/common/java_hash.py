"""Java's hash codes, and the order in which its hash maps iterate, reproduced exactly.

Several rules of Kafka follow from ``String.hashCode`` and ``HashMap``: which partition of
`__consumer_offsets` holds a group, which of equally good assignments the Java client takes, and which
partition a keyed message of Kafka 0.7 goes to. Penstock must have the same results as Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

TABLE_SIZE_MIN = 16
LOAD_FACTOR = 0.75


def string_hash(text: str) -> int:
    """Return ``String.hashCode`` of `text`, a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_of(key: str, count: int) -> int:
    """Return the index of the partition that holds the state of a group or transactional id.

    The index is ``Utils.abs(key.hashCode()) % count``, where ``Utils.abs`` of the smallest number is 0.
    """
    number = string_hash(key)
    return 0 if number == -(1 << 31) else abs(number) % count


def partition_hash(topic: str, partition: int) -> int:
    """Return ``TopicPartition.hashCode`` as an unsigned 32-bit integer."""
    return (31 * (31 + partition) + string_hash(topic)) & 0xFFFFFFFF


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> Sequence[T]:
    """Return `keys` in the order in which a ``HashMap`` iterates after they were inserted in the given order.

    `hash_of` returns the hash code of a key, signed or unsigned. Keys of one bucket keep their order.
    """
    listed = list(keys)
    size = TABLE_SIZE_MIN
    while len(listed) > size * LOAD_FACTOR:
        size *= 2

    def bucket(key: T) -> int:
        value = hash_of(key) & 0xFFFFFFFF
        return (value ^ value >> 16) & (size - 1)

    return sorted(listed, key=bucket)
