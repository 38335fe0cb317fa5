"""The topology of a Kafka Streams application, as its members send it: subtopologies and their topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class InternalTopic(NamedTuple):
    """A topic that the application needs, and that the broker creates.

    If `partitions` is 0, the broker computes the number. If the replication factor is 0, the cluster's
    default is used.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()


class CopartitionGroup(NamedTuple):
    """Topics that need equal partition counts, as indices into the topic lists of their subtopology."""

    source_topics: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition_topics: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A part of the application that runs as one task for each partition of its inputs."""

    id: str
    source_topics: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopic, ...] = ()
    """The repartition topics that this subtopology reads, and that other subtopologies write."""
    repartition_sinks: tuple[str, ...] = ()
    """The names of the repartition topics that this subtopology writes, and that others read."""
    changelogs: tuple[InternalTopic, ...] = ()
    """The changelog topics, from which the subtopology's state stores can be restored."""
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    def inputs(self) -> Iterator[str]:
        """Yield the names of the topics that the subtopology reads."""
        yield from self.source_topics
        for topic in self.repartition_sources:
            yield topic.name

    def topics(self) -> Iterator[str]:
        """Yield the names of the topics that must exist: the inputs and the changelogs."""
        yield from self.inputs()
        for topic in self.changelogs:
            yield topic.name

    def copartitioned(self, group: CopartitionGroup) -> Iterator[str]:
        """Yield the names of the topics in a copartition group."""
        for index in group.source_topics:
            yield self.source_topics[index]
        for index in group.repartition_topics:
            yield self.repartition_sources[index].name


class Topology(NamedTuple):
    """All subtopologies of an application, and the epoch that the application assigns to them."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] = ()

    def is_same(self, other: Topology) -> bool:
        """Return True if this topology and `other` are equal, ignoring the order of subtopologies."""
        return self.epoch == other.epoch and sorted(self.subtopologies) == sorted(other.subtopologies)

    def topics(self) -> frozenset[str]:
        """Return the names of the topics that must exist: inputs and changelogs of all subtopologies."""
        return frozenset(name for each in self.subtopologies for name in each.topics())

    def named_topics(self) -> list[str]:
        """Return the names of all topics in the topology, including repartition sinks, each once."""
        names = (name for each in self.subtopologies for name in (*each.topics(), *each.repartition_sinks))
        return list(dict.fromkeys(names))

    def readers(self) -> dict[str, str]:
        """Return a dict from topic name to the id of the subtopology that reads the topic."""
        return {name: each.id for each in self.subtopologies for name in each.inputs()}
