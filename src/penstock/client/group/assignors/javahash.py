"""The order in which Java's hash maps hold what is put into them.

Where an assignor has several equally good answers, the Java client takes the one that its HashMap happens
to bring first. A group whose leader changes from a Java member to one of ours must not be shuffled for
that, so the order is reproduced: by bucket, then by insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from penstock.model import TopicPartition

T = TypeVar("T")

TABLE_SIZE_MIN = 16
LOAD_FACTOR = 0.75


def text_hash(text: str) -> int:
    """``String.hashCode``, as an unsigned number of 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value


def place_hash(where: TopicPartition) -> int:
    """``TopicPartition.hashCode``, as an unsigned number of 32 bits."""
    return (31 * (31 + where.partition) + text_hash(where.topic)) & 0xFFFFFFFF


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> Sequence[T]:
    """`keys`, in the order of a HashMap into which they were put one by one."""
    listed = list(keys)
    size = TABLE_SIZE_MIN
    while len(listed) > size * LOAD_FACTOR:
        size *= 2

    def bucket(key: T) -> int:
        value = hash_of(key)
        return (value ^ value >> 16) & (size - 1)

    return sorted(listed, key=bucket)
