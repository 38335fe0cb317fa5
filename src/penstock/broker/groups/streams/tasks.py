"""Tasks of a streams application: a subtopology and the number of a partition, in one of three roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

Task: TypeAlias = tuple[str, int]
"""A subtopology's id and the number of a partition of its inputs."""

_NONE: frozenset[Task] = frozenset()


class Tasks(NamedTuple):
    """Three sets of tasks, one for each role: active, standby and warm-up."""

    active: frozenset[Task] = _NONE
    standby: frozenset[Task] = _NONE
    """Tasks whose state the member keeps up to date, so that it can take them over fast."""
    warmup: frozenset[Task] = _NONE
    """Tasks whose state is built up, to become active. Apache Kafka 4.4's assignor assigns no such tasks."""

    def __bool__(self) -> bool:
        return any(self)

    def __le__(self, other: object) -> bool:
        """Return True if the tasks in each role are also in `other`, in the same role."""
        return isinstance(other, Tasks) and all(
            mine <= theirs for mine, theirs in zip(self, other, strict=True)
        )

    def __sub__(self, other: Tasks) -> Tasks:
        """Return the tasks of this object that `other` does not have in the same role."""
        return Tasks(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def __and__(self, other: Tasks) -> Tasks:
        """Return the tasks that this object and `other` have in the same role."""
        return Tasks(*(mine & theirs for mine, theirs in zip(self, other, strict=True)))

    def __or__(self, other: Tasks) -> Tasks:
        """Return for each role the tasks of this object and of `other`."""
        return Tasks(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def every(self) -> frozenset[Task]:
        """Return all tasks, in all three roles."""
        return self.active | self.standby | self.warmup

    @property
    def size(self) -> int:
        """Return the number of tasks in all three roles together."""
        return sum(map(len, self))


NO_TASKS = Tasks()


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return a dict from subtopology id to its tasks' partition indices, both in ascending order."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return found
