"""Requests that name a topic, partition or other resource more than once: each is answered once.

If a response had an entry for every repetition, a few kilobytes of request could become hundreds of
megabytes. So an API uses this module, or refuses repetition as Apache Kafka does, if its response has more
than the names of resources.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from copy import copy
from typing import Any, TypeVar

T = TypeVar("T")


def once(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Return the last item of each key, in the order in which the keys first occurred."""
    return list({key(item): item for item in items}.values())


def merged(
    topics: Iterable[T],
    name: Callable[[T], Hashable],
    partitions: str,
    index: Callable[[Any], Hashable] | None = None,
) -> list[T]:
    """Merge topics that are named more than once, and keep each partition once. Changes `topics`.

    `partitions` is the attribute of a topic that lists its partitions. `index` returns the key of a
    partition; by default partitions are numbers. Topics and partitions keep the order of their first
    occurrence. Of several entries for a partition the last is kept, as in Apache Kafka, which keeps such
    requests in tables.
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


def in_order(
    topics: list[T], name: Callable[[T], Hashable], partitions: str, index: Callable[[Any], Hashable]
) -> list[T]:
    """Keep each partition once, in the order of first occurrence across topics. Changes `topics`.

    Unlike `merged`, it is for requests in which the order matters: a topic may occur again after another
    topic. Only adjacent entries of one topic are merged.
    """
    if len({name(topic) for topic in topics}) == len(topics):
        return merged(topics, name, partitions, index)
    kept = {
        (name(topic), index(partition)): (topic, partition)
        for topic in topics
        for partition in getattr(topic, partitions)
    }
    found: list[T] = []
    last: Hashable = None
    for (key, _), (topic, partition) in kept.items():
        if not found or key != last:
            found.append(copy(topic))
            setattr(found[-1], partitions, [])
            last = key
        getattr(found[-1], partitions).append(partition)
    return found
