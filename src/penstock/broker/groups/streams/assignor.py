"""The assignor of streams groups, `sticky`: tasks stay with their members as far as the load stays even.

The assignor is a pure function of the members, with their present tasks, and of the numbers of tasks. As in
Apache Kafka 4.4, the load of a process is the number of its tasks divided by the number of its members; no
warm-up tasks are assigned, and racks and client tags are ignored.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.broker.groups.streams.tasks import Task, Tasks


class Worker(NamedTuple):
    """One member as input of the assignor: its process, and its present tasks."""

    process_id: str
    had: Tasks
    offsets: Mapping[Task, int] = {}
    """A dict from task to the changelog offset up to which the member has restored the task's state."""


Assignment = dict[str, Tasks]


def assign(
    members: Mapping[str, Worker], tasks: Mapping[str, int], stateful: Collection[str], standbys: int
) -> Assignment:
    """Return the target assignment of every member.

    `tasks` has the number of tasks of each subtopology. `stateful` are the subtopologies that have state:
    each of their tasks gets `standbys` standby copies on other processes, or fewer if there are too few
    processes.
    """
    if not members:
        return {}
    everything = [(subtopology, index) for subtopology, count in tasks.items() for index in range(count)]
    copied = [task for task in everything if task[0] in stateful] if standbys > 0 else []
    division = _Division(members, len(everything), len(everything) + len(copied) * standbys)
    division.assign_active(everything)
    division.assign_standbys(copied, standbys)
    return division.outcome()


class _Process:
    """A process of the application, with its members and their tasks."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.counts: dict[str, int] = {}
        self.tasks: set[Task] = set()
        self.total = 0

    @property
    def load(self) -> float:
        return self.total / len(self.counts)

    def least_loaded(self) -> str:
        return min(self.counts, key=lambda member_id: (self.counts[member_id], member_id))


class _Quota:
    """The maximum number of tasks per member while members get their former tasks back.

    The maximum is the number of tasks, less those of members that have reached it, divided by the number
    of other members.
    """

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.each = -(-tasks // members)

    def note(self, count: int) -> None:
        """Recompute the other members' limit if `count`, one member's number of tasks, has reached it."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = -(-self._tasks // self._members) if self._members else 0


class _Division:
    """An assignment of tasks that is being computed, with the load of each process so far."""

    def __init__(self, members: Mapping[str, Worker], active: int, total: int) -> None:
        self._members = members
        self._processes: dict[str, _Process] = {}
        self._was_active: dict[Task, str] = {}
        self._has_state: dict[Task, list[str]] = {}
        """A dict from task to the members that have its state: those with a standby task first, then by
        descending changelog offset.
        """
        self._active: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._standby: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._active_quota = _Quota(active, len(members))
        self._total_quota = _Quota(total, len(members))
        candidates: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id, member in sorted(members.items()):
            process = self._processes.setdefault(member.process_id, _Process(len(self._processes)))
            process.counts[member_id] = 0
            self._was_active.update(dict.fromkeys(member.had.active, member_id))
            for task in member.had.standby | member.offsets.keys():
                place = task not in member.had.standby, -member.offsets.get(task, 0), member_id
                candidates.setdefault(task, []).append(place)
        for task, places in candidates.items():
            self._has_state[task] = [member_id for *_, member_id in sorted(places)]
        self._by_load = [(0.0, process.number, process) for process in self._processes.values()]

    def outcome(self) -> Assignment:
        """Return the computed assignment of every member."""
        return {
            member_id: Tasks(frozenset(self._active[member_id]), frozenset(self._standby[member_id]))
            for member_id in self._members
        }

    # --- active tasks ------------------------------------------------------------------------------------

    def assign_active(self, tasks: Iterable[Task]) -> None:
        """Assign every task: to its former active member, or one with state, or the least loaded member.

        Former members get tasks only up to their equal share.
        """
        left = sorted(tasks, key=lambda task: (task[1], task[0]))
        for find in (self._was_active.get, self._with_state):
            waiting = []
            for task in left:
                member_id = find(task)
                if member_id is not None and self._count(member_id) < self._active_quota.each:
                    self._give_active(task, member_id)
                else:
                    waiting.append(task)
            left = waiting
        for task in sorted(left):
            member_id = self._least_loaded_without(task)
            assert member_id is not None, "no process has an active task yet that is left"
            self._give_active(task, member_id)

    def _give_active(self, task: Task, member_id: str) -> None:
        self._active[member_id].add(task)
        self._active_quota.note(self._add(task, member_id))

    # --- standby tasks -----------------------------------------------------------------------------------

    def assign_standbys(self, tasks: Iterable[Task], standbys: int) -> None:
        """Assign standby copies of every task to members of processes that do not have the task.

        The former active member comes first, then members with state, each up to an equal share, then the
        least loaded.
        """
        left: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=lambda task: (task[1], task[0]), reverse=True):
            for number in range(standbys):
                member_id = self._former(task)
                if member_id is None:
                    left.append((task, standbys - number))
                    break
                self._give_standby(task, member_id)
        for task, count in sorted(left, reverse=True):
            for _ in range(count):
                member_id = self._least_loaded_without(task)
                if member_id is None:
                    break
                self._give_standby(task, member_id)

    def _former(self, task: Task) -> str | None:
        """Return a former member of the task that may take more and whose process lacks the task, or None."""
        for member_id in (self._was_active.get(task), self._with_state(task, without=True)):
            if member_id is None or task in self._process_of(member_id).tasks:
                continue
            if self._count(member_id) < self._total_quota.each:
                return member_id
        return None

    def _give_standby(self, task: Task, member_id: str) -> None:
        self._standby[member_id].add(task)
        self._add(task, member_id)

    # --- load --------------------------------------------------------------------------------------------

    def _process_of(self, member_id: str) -> _Process:
        return self._processes[self._members[member_id].process_id]

    def _count(self, member_id: str) -> int:
        return self._process_of(member_id).counts[member_id]

    def _add(self, task: Task, member_id: str) -> int:
        process = self._process_of(member_id)
        process.tasks.add(task)
        process.counts[member_id] += 1
        process.total += 1
        heapq.heappush(self._by_load, (process.load, process.number, process))
        count = process.counts[member_id]
        self._total_quota.note(count)
        return count

    def _with_state(self, task: Task, *, without: bool = False) -> str | None:
        """Return the first member with state of a task, or a later one with less load; None if there is none.

        A later one must have less load both as a process and as a member. `without` excludes members whose
        process already has the task.
        """
        found: str | None = None
        least = 0.0, 0
        for member_id in self._has_state.get(task, ()):
            process = self._process_of(member_id)
            if not (without and task in process.tasks):
                load = process.load, process.counts[member_id]
                if found is None or (load[0] < least[0] and load[1] < least[1]):
                    found, least = member_id, load
        return found

    def _least_loaded_without(self, task: Task) -> str | None:
        """Return the least loaded member of the least loaded process without this task, or None.

        The caller must assign the task to the member, since the process is removed from the heap.
        """
        heap, passed, found = self._by_load, [], None
        while heap and found is None:
            entry = heapq.heappop(heap)
            load, _, process = entry
            if load != process.load:
                continue  # a later entry says what the process has by now
            if task in process.tasks:
                passed.append(entry)
            else:
                found = process.least_loaded()
        for entry in passed:
            heapq.heappush(heap, entry)
        return found
