"""Computes the partitions and internal topics that a topology needs, and finds errors in its topics.

The result depends only on the topology and on the existing topics. The rules are those of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from penstock.broker.groups.streams.topology import InternalTopic, Subtopology, Topology
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

NAMES_MAX = 3
"""The maximum number of topics that the detail text of a status lists."""

TASKS_MAX = 10_000
"""The most tasks of one group, and the most partitions that one request may create."""


class Status(IntEnum):
    """The statuses of a group in responses to heartbeats, as numbers on the wire."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
    """The member lacks client tags that the settings require. Sent since version 1 of the response."""


class Problem(NamedTuple):
    """The reason for which a topology cannot run yet: a status code and a text."""

    status: Status
    detail: str


class Configured(NamedTuple):
    """A topology checked against the existing topics.

    `tasks` has the number of tasks of each subtopology, in order of ids. It is None if partition counts are
    unknown.
    """

    tasks: Mapping[str, int] | None
    internal: Mapping[str, InternalTopic] = {}
    """A mapping from name to internal topic for all internal topics, with their computed partition counts."""
    missing: tuple[InternalTopic, ...] = ()
    """The internal topics that do not exist yet, and have to be created."""
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        """Return True if tasks can be assigned."""
        return self.problem is None and self.tasks is not None


NOT_CONFIGURED = Configured(None)
"""The result for a topology whose tasks and topics cannot be computed."""


class _WrongPartitions(Exception):
    """Raised if topics do not have the partition counts that the topology needs."""


def check_topology(topology: Topology) -> None:
    """Check a topology for errors that do not depend on the existing topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY (130).
    """
    seen: set[str] = set()
    for each in topology.subtopologies:
        if each.id in seen:
            raise _invalid(f"There are two subtopologies {each.id}.")
        seen.add(each.id)
        for changelog in each.changelogs:
            if changelog.partitions != 0:
                raise _invalid(
                    f"Changelog topic {changelog.name} must have an undefined partition count, "
                    f"but it is set to {changelog.partitions}."
                )
        if any(topic.partitions < 0 for topic in each.repartition_sources):
            raise _invalid(f"A repartition topic of subtopology {each.id} has less than 0 partitions.")
        if not any(True for _ in each.inputs()):
            raise _invalid(f"No source topics found for subtopology {each.id}")
        for group in each.copartition_groups:
            for indexes, topics in (
                (group.source_topics, len(each.source_topics)),
                (group.repartition_topics, len(each.repartition_sources)),
            ):
                if not all(0 <= index < topics for index in indexes):
                    raise _invalid(f"A copartition group of subtopology {each.id} names a topic it lacks.")


def configure(topology: Topology, counts: Mapping[str, int]) -> Configured:
    """Compute partition counts and tasks; `counts` has the partition counts of the existing topics.

    Raises:
        KafkaError: STREAMS_INVALID_TOPOLOGY (130), if partition counts depend on each other in a cycle, a
            repartition topic has no writer, or there would be more than `TASKS_MAX` tasks.
    """
    repartitions = {topic.name for each in topology.subtopologies for topic in each.repartition_sources}
    missing = {name for each in topology.subtopologies for name in each.source_topics} - counts.keys()
    if missing:
        detail = f"Source topics {_named(sorted(missing))} are missing."
        return Configured(None, problem=Problem(Status.MISSING_SOURCE_TOPICS, detail))
    decided = _repartition_counts(topology.subtopologies, counts)
    if not repartitions <= decided.keys():
        raise _invalid(
            "Failed to compute number of partitions for all repartition topics, because "
            "a repartition source topic is never used as a sink topic."
        )
    try:
        _make_equal(topology.subtopologies, counts, decided)
        inputs = {
            each.id: max(counts.get(name, decided.get(name, 0)) for name in each.inputs())
            for each in sorted(topology.subtopologies)
        }
        internal = _internal_topics(topology.subtopologies, decided, inputs)
        for name, topic in internal.items():
            if counts.get(name, topic.partitions) != topic.partitions:
                raise _WrongPartitions(
                    f"Existing topic {name} has different number of partitions: expected "
                    f"{topic.partitions}, found {counts[name]}"
                )
    except _WrongPartitions as error:
        return Configured(None, problem=Problem(Status.INCORRECTLY_PARTITIONED_TOPICS, str(error)))
    if sum(inputs.values()) > TASKS_MAX:
        raise _invalid(f"The topology has more than {TASKS_MAX} tasks.")
    to_make = tuple(topic for name, topic in internal.items() if name not in counts)
    problem = None
    if to_make:
        detail = f"Internal topics are missing: {_named(sorted(topic.name for topic in to_make))}"
        problem = Problem(Status.MISSING_INTERNAL_TOPICS, detail)
    return Configured(inputs, internal, to_make, problem)


def _repartition_counts(subtopologies: Iterable[Subtopology], counts: Mapping[str, int]) -> dict[str, int]:
    """Return the partition counts of repartition topics, by topic name.

    If the topology does not set a topic's count, it is the largest partition count among the inputs of the
    subtopology that writes the topic.
    """
    decided = {
        topic.name: topic.partitions
        for each in subtopologies
        for topic in each.repartition_sources
        if topic.partitions
    }
    waiting = [each for each in subtopologies if each.repartition_sinks]
    while waiting:
        left = []
        for each in waiting:
            known = [decided[topic.name] for topic in each.repartition_sources if topic.name in decided]
            known += [counts[name] for name in each.source_topics if name in counts]
            if known:
                for name in each.repartition_sinks:
                    decided.setdefault(name, max(known))
            elif any(name not in decided for name in each.repartition_sinks):
                left.append(each)
        if len(left) == len(waiting):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. "
                "There may be loops in the topology that cannot be resolved."
            )
        waiting = left
    return decided


def _make_equal(
    subtopologies: Iterable[Subtopology], counts: Mapping[str, int], decided: dict[str, int]
) -> None:
    """Give the repartition topics of a copartition group the partition count of its other topics."""
    fixed = {topic.name for each in subtopologies for topic in each.repartition_sources if topic.partitions}
    for each in subtopologies:
        repartitions = {topic.name for topic in each.repartition_sources}
        for group in each.copartition_groups:
            names = sorted(set(each.copartitioned(group)))
            sizes = {name: counts.get(name, decided.get(name, 0)) for name in names}
            leading = [name for name in names if name not in repartitions]
            leading = leading or [name for name in names if name in fixed]
            if not leading:
                wanted = max(sizes.values(), default=0)
            else:
                wanted = sizes[leading[0]]
                if any(sizes[name] != wanted for name in leading):
                    listed = ", ".join(f"{name}={sizes[name]}" for name in leading)
                    raise _WrongPartitions(
                        f"Following topics do not have the same number of partitions: [{{{listed}}}]"
                    )
            for name in names:
                if name in fixed and sizes[name] != wanted:
                    raise _WrongPartitions(
                        f"Number of partitions [{sizes[name]}] of repartition topic [{name}] "
                        f"doesn't match number of partitions [{wanted}] of the source topic."
                    )
                if name in repartitions:
                    decided[name] = wanted


def _internal_topics(
    subtopologies: Iterable[Subtopology], decided: Mapping[str, int], inputs: Mapping[str, int]
) -> dict[str, InternalTopic]:
    found: dict[str, InternalTopic] = {}
    for each in sorted(subtopologies):
        for topic in each.repartition_sources:
            found[topic.name] = topic._replace(partitions=topic.partitions or decided[topic.name])
        for topic in each.changelogs:
            found[topic.name] = topic._replace(partitions=inputs[each.id])
    return found


def _named(names: list[str]) -> str:
    more = len(names) - NAMES_MAX
    listed = ", ".join(names[:NAMES_MAX])
    return f"{listed} and {more} additional topics" if more > 0 else listed


def _invalid(detail: str) -> KafkaError:
    return error_for(ErrorCode.STREAMS_INVALID_TOPOLOGY, detail)
