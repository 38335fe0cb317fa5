"""Looks up the partitions of topics before a command starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.model import TopicPartition

if TYPE_CHECKING:
    from penstock.client import Admin


def partitions_of(
    bootstrap: str, topic: str, chosen: Collection[int], config: Mapping[str, str]
) -> list[TopicPartition]:
    """Return all partitions of `topic`, or only those with the numbers `chosen` if some are given.

    Raises:
        ConfigError: a chosen partition does not exist.
        PenstockError: the topic does not exist, or the cluster cannot be reached.
    """
    from penstock.client import Admin
    from penstock.client.config import ClientConfig, ConsumerConfig, known_names

    consumers_only = known_names(ConsumerConfig).keys() - known_names(ClientConfig).keys()
    shared = {name: value for name, value in config.items() if name not in consumers_only}
    with Admin(bootstrap_servers=bootstrap, config=shared) as admin:
        (description,) = admin.describe_topics([topic])
    numbers = sorted(partition.partition for partition in description.partitions)
    missing = sorted(set(chosen) - set(numbers))
    if missing:
        raise ConfigError(f"topic {topic!r} has no partition {missing[0]}; {span(len(numbers))}")
    return [TopicPartition(topic, number) for number in numbers if not chosen or number in chosen]


def numbered(admin: Admin, wanted: Mapping[str, Collection[int] | None]) -> list[TopicPartition]:
    """Return the partitions in `wanted`, a dict from topic to partition numbers (None: all), sorted.

    Raises:
        ConfigError: a given partition does not exist.
        PenstockError: a topic does not exist, or the cluster cannot be reached.
    """
    counts = {topic.name: len(topic.partitions) for topic in admin.describe_topics(list(wanted))}
    tps = []
    for topic, numbers in wanted.items():
        for number in range(counts[topic]) if numbers is None else numbers:
            if number >= counts[topic]:
                raise ConfigError(f"topic {topic!r} has no partition {number}; {span(counts[topic])}")
            tps.append(TopicPartition(topic, number))
    return sorted(tps)


def span(count: int) -> str:
    """Return text such as "it has 3 partitions, 0 to 2", for errors about missing partitions."""
    return f"it has {count} partitions, 0 to {count - 1}" if count > 1 else "it has one, partition 0"
