"""Tasks of a streams application: a subtopology and the number of a partition, in one of three roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

Task: TypeAlias = tuple[str, int]
"""A subtopology's id and the number of a partition of its inputs."""

_NONE: frozenset[Task] = frozenset()


class Tasks(NamedTuple):
    """Sets of tasks by role: active, standby and warm-up."""

    active: frozenset[Task] = _NONE
    standby: frozenset[Task] = _NONE
    """Tasks whose state is kept up to date, to take over fast."""
    warmup: frozenset[Task] = _NONE
    """Tasks whose state is built up, to become active. Apache Kafka 4.4's assignor gives none."""

    def __bool__(self) -> bool:
        return any(self)

    def __le__(self, other: object) -> bool:
        """Return True if the tasks in each role are also in `other`, in the same role."""
        return isinstance(other, Tasks) and all(
            mine <= theirs for mine, theirs in zip(self, other, strict=True)
        )

    def __sub__(self, other: Tasks) -> Tasks:
        """Return the tasks that `other` does not have in the same role."""
        return Tasks(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def __and__(self, other: Tasks) -> Tasks:
        """Return the tasks that both have in the same role."""
        return Tasks(*(mine & theirs for mine, theirs in zip(self, other, strict=True)))

    def __or__(self, other: Tasks) -> Tasks:
        """Return the tasks that either has, by role."""
        return Tasks(*(mine | theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def every(self) -> frozenset[Task]:
        """Return the tasks in any role."""
        return self.active | self.standby | self.warmup

    @property
    def size(self) -> int:
        """Return the number of tasks in all roles."""
        return sum(map(len, self))


NO_TASKS = Tasks()


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return the partition indices of each subtopology, with subtopologies and indices in ascending order."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return found
