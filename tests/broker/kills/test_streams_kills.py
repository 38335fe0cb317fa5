"""Tests that kill brokers and instances of a streams group (KIP-1071) with SIGKILL, at random moments.

After each kill, offsets and epochs must not have gone back, and no task may be active twice. At the end every
record has passed both subtopologies, and every task is active once, with a standby at another instance.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from broker.kills.diaries import Diaries
from broker.kills.streams_member import REPARTITION
from broker.kills.test_member_kills import GROUP, PARTITIONS, TOPIC, Run, Served, served
from penstock import Admin, Consumer, TopicPartition
from penstock.errors import PenstockError

TASKS = [(name, index) for name in "01" for index in range(PARTITIONS)]
READ = [TopicPartition(name, index) for name in (TOPIC, REPARTITION) for index in range(PARTITIONS)]
"""The input partitions of all tasks, in the order of the partition numbers in the event files."""


class StreamsRun(Run):
    """A test run like `Run`, for a streams group, whose members own tasks."""

    def __init__(self, at: Served, directory: Path, seed: int) -> None:
        super().__init__("streams", at, directory, seed)
        self.starts = dict.fromkeys(range(len(READ)), 0)
        self._epoch = 0

    def offsets(self, admin: Admin) -> dict[int, int]:
        found = admin.list_group_offsets(GROUP)
        return {READ.index(tp): at.offset for tp, at in found.items()}

    def check_offsets(self, admin: Admin, before: Diaries) -> None:
        """Check that offsets and epochs have not gone back, and that no task is active twice."""
        super().check_offsets(admin, before)
        [group] = admin.describe_streams_groups([GROUP])
        assert group.epoch >= self._epoch, f"the group has gone back to epoch {group.epoch}"
        assert group.epoch >= group.assignment_epoch
        self._epoch = group.epoch
        for member in group.members:
            least = before.epochs.get(member.member_id, 0)
            assert member.epoch >= least, f"{member.member_id} is at {member.epoch}, was at {least}"
        active = Counter(task for member in group.members for task in member.active_tasks)
        assert not [task for task, count in active.items() if count > 1], "active twice"
        copies = Counter(
            (member.process_id, task)
            for member in group.members
            for task in (*member.active_tasks, *member.standby_tasks)
        )
        assert not [task for task, count in copies.items() if count > 1], "twice in one process"

    def is_through(self, admin: Admin) -> bool:
        self.members.check()
        ends = self.ends()
        if self.offsets(admin) != dict(enumerate(ends)) or ends[:PARTITIONS] != list(self.produced.values()):
            return False
        try:
            [group] = admin.describe_streams_groups([GROUP])
        except PenstockError:
            return False
        processes = {member.process_id for member in group.members}
        return group.state == "Stable" and len(processes) == len(self.members.running)

    def ends(self) -> list[int]:
        with Consumer(self.at.servers) as consumer:
            found = consumer.end_offsets(READ)
            return [found[each] for each in READ]

    def wait_until(self, is_so: object, what: str, say: object = str) -> None:
        super().wait_until(is_so, what, say)
        if what == "records are left":
            self.check_tasks()

    def check_tasks(self) -> None:
        """Check that every task is active once, and each stateful one has a standby at another instance."""
        with Admin(self.at.servers) as admin:
            [group] = admin.describe_streams_groups([GROUP])
        active = {
            (task.subtopology, task.partition): member.process_id
            for member in group.members
            for task in member.active_tasks
        }
        assert sorted(active) == TASKS
        standby = {
            (task.subtopology, task.partition): member.process_id
            for member in group.members
            for task in member.standby_tasks
        }
        assert sorted(standby) == [task for task in TASKS if task[0] == "1"]
        assert not [task for task, process in standby.items() if active[task] == process]

    def judge(self) -> None:
        diaries = self.members.diaries()
        assert diaries.faults == []
        assert diaries.consumer_faults() == []
        places = {(partition, each) for partition, count in self.produced.items() for each in range(count)}
        assert places == diaries.counted, f"{sorted(places - diaries.counted)[:10]} were not counted"


@pytest.mark.slow
def test_a_few_kills(tmp_path: Path) -> None:
    with served("one", tmp_path / "data") as at:
        StreamsRun(at, tmp_path, seed=1).go(kills=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("place", ["one", "three", "nodes of three"])
def test_fifty_kills(place: str, tmp_path: Path) -> None:
    with served(place, tmp_path / "data") as at:
        StreamsRun(at, tmp_path, seed=2).go(kills=50)
