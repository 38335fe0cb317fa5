"""Requests that name a topic, partition or other resource more than once: each is answered once.

A response that repeats the entry of a resource for every time the request names it lets a few
kilobytes of request become hundreds of megabytes. The handlers of all APIs whose responses have more about a
resource than its name pass their requests through here, or refuse repetition where Apache Kafka does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def once(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Return the items with different keys, in the order of their first; of several, the last counts."""
    return list({key(item): item for item in items}.values())


def merged(
    topics: Iterable[T],
    name: Callable[[T], Hashable],
    partitions: str,
    index: Callable[[Any], Hashable] | None = None,
) -> list[T]:
    """Merge topics that are named more than once, and keep each partition once.

    `partitions` is the attribute of a topic that lists its partitions. `index` is their key; without
    it they are numbers. Order is that of the first time something is named; of several entries for a
    partition the last counts, as in Apache Kafka, which keeps such requests in tables. The topics given are
    changed.
    """
    first: dict[Hashable, T] = {}
    found: dict[Hashable, dict[Hashable, Any]] = {}
    for topic in topics:
        key = name(topic)
        places = found.get(key)
        if places is None:
            places = found[key] = {}
            first[key] = topic
        for partition in getattr(topic, partitions):
            places[partition if index is None else index(partition)] = partition
    for key, topic in first.items():
        setattr(topic, partitions, list(found[key].values()))
    return list(first.values())
