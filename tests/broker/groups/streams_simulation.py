"""A simulation of a streams group and its members, driven by one seed.

Members join, die, leave and come back, several in one process; some are static and come back with a new
member id. Answers are lost, topics are created and deleted, standby tasks are switched on and off, the broker
restarts, and writes to disks fail.

`StreamsWorld(seed).run()` raises AssertionError, with the seed, if an invariant is broken. At any time: a
task is active at one member at most, no process has a task twice, and epochs only grow. After a quiet period:
every task is active, each standby is at another process than its active task, and each member has the tasks
that the broker lists for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from broker.bench_node import make_topic
from broker.groups.streams_bench import StreamsBench, internal, subtopology, tasks_in, topology_of
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages import streams_group_heartbeat_request as asked

STEPS = 250
GROUP = "g"
PROCESSES = ("p", "q", "r")
REBALANCE_MS = 20_000
LOST = (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND, E.UNRELEASED_INSTANCE_ID)
INSTANCES = {"i": "p", "j": "q", "k": "q"}
"""A dict from the instance id of each static member to its process id."""

TaskSet = frozenset[tuple[str, int]]
NOTHING: TaskSet = frozenset()


def topology(epoch: int = 0) -> asked.Topology:
    """Return a topology with two source topics, one of them repartitioned.

    Two of its subtopologies have state stores; one has none.
    """
    return topology_of(
        subtopology(0, "t", repartition_sink_topics=["r"]),
        subtopology(1, repartition_source_topics=[internal("r")], state_changelog_topics=[internal("c1")]),
        subtopology(2, "u", state_changelog_topics=[internal("c2")]),
        epoch=epoch,
    )


def task_set(listed: Any) -> TaskSet:
    return frozenset((name, index) for name, indexes in (tasks_in(listed) or {}).items() for index in indexes)


def task_lists(tasks: TaskSet) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, index in sorted(tasks):
        found.setdefault(name, []).append(index)
    return found


class Member:
    """A simulated member of a streams group, with the tasks that it runs."""

    def __init__(self, name: str, process: str, instance: str | None) -> None:
        self.name = name
        self.process = process
        self.instance = instance
        self.epoch = 0
        self.active, self.standby = NOTHING, NOTHING
        self.wanted: tuple[TaskSet, TaskSet] | None = None
        """The tasks in the last response, until the member has taken them over; then None."""
        self.tells = True
        """True if the next heartbeat lists the member's tasks."""
        self.seen_endpoints = 0

    def lose(self) -> None:
        """Drop all tasks and go back to epoch 0, so that the next heartbeat joins again."""
        self.epoch, self.active, self.standby, self.wanted, self.tells = 0, NOTHING, NOTHING, None, True

    def follow(self) -> None:
        """Replace the tasks that run with those of the last response."""
        if self.wanted is not None:
            self.active, self.standby = self.wanted
            self.wanted, self.tells = None, True


class StreamsWorld:
    """One simulated run of a streams group, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.bench = StreamsBench(group_streams_initial_rebalance_delay_ms=self.dice.choice([0, 3000]))
        self.members: dict[str, Member] = {}
        self.count = 0
        self.group_epoch = 0
        self.refuses, self.loses = False, True
        self.standbys = 0
        self.log: list[object] = []
        self.arm()

    # --- the broker --------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Install the injected faults in the broker; called after each start of the broker."""
        topic = self.bench.node.groups.topic
        append = topic.append

        def maybe(*what: Any) -> Any:
            if self.refuses:
                raise StorageError("the disk refuses")
            return append(*what)

        topic.append = maybe  # type: ignore[method-assign]

    def restart(self) -> None:
        self.bench = self.bench.restarted()
        self.arm()

    def change_topics(self) -> None:
        node, name = self.bench.node, self.dice.choice(("u", "c2", "t"))
        topic = node.cluster.topics.get(name)
        if topic is None and name != "c2":
            make_topic(node, name, partitions=3 if name == "t" else 2)
        elif topic is not None and self.dice.random() < 0.4:
            node.cluster.delete_topics([topic], self.bench.clock.now_ms())
            node.forget_topics([name], self.bench.clock.now_ms())

    def change_standbys(self) -> None:
        self.standbys = self.dice.randrange(3)
        self.bench.settings["group_streams_num_standby_replicas"] = self.standbys
        self.restart()

    # --- steps -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the simulation; raise AssertionError, with the seed, if an invariant is broken."""
        steps: list[tuple[int, Callable[[], object]]] = [
            (12, self.join),
            (80, self.beat_one),
            (25, self.follow_one),
            (4, self.leave),
            (3, self.die),
            (25, lambda: self.bench.wait(self.dice.choice([0.2, 0.6, 1.2, 5.0, 12.0]))),
            (4, self.change_topics),
            (3, self.change_standbys),
            (3, self.restart),
            (4, self.change_faults),
            (1, self.delete),
        ]
        actions = [step for weight, step in steps for _ in range(weight)]
        try:
            for _ in range(STEPS):
                self.dice.choice(actions)()
                self.check()
            self.quieten()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}: {error}") from error

    def change_faults(self) -> None:
        self.refuses = self.dice.random() < 0.2

    def join(self) -> None:
        if len(self.members) < 6:
            self.count += 1
            free = {*INSTANCES} - {each.instance for each in self.members.values()}
            instance = self.dice.choice((None, None, *sorted(free)))
            process = INSTANCES[instance] if instance else self.dice.choice(PROCESSES)
            member = Member(f"m{self.count}", process, instance)
            self.members[member.name] = member
            self.beat(member)

    def one(self) -> Member | None:
        return self.dice.choice(list(self.members.values())) if self.members else None

    def beat_one(self) -> None:
        member = self.one()
        if member is not None:
            self.beat(member)

    def follow_one(self) -> None:
        member = self.one()
        if member is not None:
            member.follow()

    def beat(self, member: Member) -> None:
        owned = task_lists(member.active), task_lists(member.standby)
        offsets = None if self.dice.random() < 0.8 else self.some_offsets()
        if member.epoch == 0:
            answer = self.bench.join(
                member.name,
                topology(),
                process=member.process,
                group=GROUP,
                rebalance_timeout_ms=REBALANCE_MS,
                user_endpoint=asked.Endpoint(host=member.process, port=1),
                instance_id=member.instance,
                task_offsets=offsets,
            )
        else:
            tells = member.tells or self.dice.random() < 0.3
            answer = self.bench.beat(
                member.name,
                member.epoch,
                owned=owned if tells else None,
                group=GROUP,
                endpoint_information_epoch=member.seen_endpoints,
                instance_id=member.instance,
                task_offsets=offsets,
            )
        self.log.append((member.name, member.epoch, answer.error_code, answer.member_epoch))
        if answer.error_code in LOST:
            member.lose()
            return
        if answer.error_code == E.NOT_COORDINATOR:
            member.tells = True
            return
        if answer.error_code == E.INVALID_REQUEST:
            # It has tasks of topics that are gone: the application fails, and begins again.
            assert "task" in answer.error_message.lower(), answer.error_message
            member.lose()
            return
        assert answer.error_code == 0, answer.error_message
        if self.loses and self.dice.random() < 0.1:
            # The answer is lost. It may have taken back what the member has not begun with, which counts as
            # given up; the next one says again what the member is to have.
            member.wanted, member.tells = None, True
            return
        assert answer.member_epoch >= member.epoch, f"{member.name} goes back from epoch {member.epoch}"
        member.epoch, member.tells = answer.member_epoch, False
        member.seen_endpoints = answer.endpoint_information_epoch
        if answer.active_tasks is not None:
            member.wanted = task_set(answer.active_tasks), task_set(answer.standby_tasks)
            if self.dice.random() < 0.5:
                member.follow()

    def leave(self) -> None:
        member = self.one()
        if member is not None:
            epoch = -1 if member.instance is None else self.dice.choice((-1, -2))
            answer = self.bench.beat(member.name, epoch, group=GROUP, instance_id=member.instance)
            if answer.error_code != E.NOT_COORDINATOR:
                del self.members[member.name]

    def some_offsets(self) -> list[asked.TaskOffset]:
        """Return random changelog offsets of two tasks, which a heartbeat reports.

        A member may have local state of tasks that it ran earlier.
        """
        tasks = self.dice.sample([(name, index) for name in "12" for index in range(2)], 2)
        return [
            asked.TaskOffset(subtopology_id=name, partition=index, offset=self.dice.randrange(9))
            for name, index in tasks
        ]

    def die(self) -> None:
        member = self.one()
        if member is not None:
            del self.members[member.name]

    def delete(self) -> None:
        self.bench.delete_group(GROUP)
        if GROUP not in self.bench.node.groups.streams.groups:
            self.group_epoch = 0
            for member in self.members.values():
                member.lose()

    # --- laws --------------------------------------------------------------------------------------------

    def check(self) -> None:
        group = self.bench.node.groups.streams.groups.get(GROUP)
        if group is None:
            return
        stored = group.stored
        assert stored.epoch >= self.group_epoch, "the group epoch goes back"
        self.group_epoch = stored.epoch
        assert stored.target_epoch <= stored.epoch
        static = {each.instance_id: name for name, each in stored.members.items() if each.instance_id}
        assert stored.instances == static
        assert stored.offsets.keys() <= stored.members.keys()
        for member_id, current in stored.currents.items():
            assert member_id in stored.members
            assert current.epoch <= stored.epoch
        # A member that has been removed has lost its tasks, though it does not know it yet.
        living = [each for each in self.members.values() if each.name in stored.members and each.epoch > 0]
        active = Counter(task for each in living for task in each.active)
        assert all(count == 1 for count in active.values()), f"active twice: {active}"
        copies = Counter(
            (each.process, task) for each in living for tasks in (each.active, each.standby) for task in tasks
        )
        assert all(count == 1 for count in copies.values()), f"twice in one process: {copies}"

    def quieten(self) -> None:
        """Let all members send heartbeats, without faults, until no assignment changes any more."""
        self.refuses, self.loses = False, False
        for name, partitions in (("t", 3), ("u", 2)):
            if name not in self.bench.node.cluster.topics:
                make_topic(self.bench.node, name, partitions=partitions)
        if not self.members:
            self.join()
        self.bench.describe(GROUP)  # the sessions begin when the group is read
        self.bench.wait(46)  # who died leaves
        for _ in range(12):
            for _ in range(3):
                for member in self.members.values():
                    self.beat(member)
                    member.follow()
                    self.check()
            self.bench.wait(1.5)
        described = self.bench.describe(GROUP)
        assert described.group_state == "Stable", described.group_state
        assert {each.member_id for each in described.members} == set(self.members)
        holders: dict[tuple[str, int], list[str]] = {}
        for each in described.members:
            member = self.members[each.member_id]
            assert task_set(each.assignment.active_tasks) == member.active
            assert task_set(each.assignment.standby_tasks) == member.standby
            for task in member.standby:
                holders.setdefault(task, []).append(member.process)
        wanted = {("0", index) for index in range(3)} | {("1", index) for index in range(3)}
        wanted |= {("2", index) for index in range(2)}
        owners = {task: each.process for each in self.members.values() for task in each.active}
        assert set(owners) == wanted, f"{wanted - set(owners)} are nowhere active"
        processes = {each.process for each in self.members.values()}
        for task in wanted:
            copies = holders.get(task, [])
            assert owners[task] not in copies
            possible = min(self.standbys, len(processes) - 1) if task[0] in "12" else 0
            assert len(copies) == possible, f"{task} has {len(copies)} standby tasks of {possible}"
