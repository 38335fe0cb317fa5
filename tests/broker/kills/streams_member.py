"""A streams application instance for a test to kill: ``python streams_member.py streams SERVERS GROUP
TOPIC SEED FILE``.

The instance has two members (KIP-1071), like an instance with two threads. Subtopology 0 reads TOPIC and
writes the partition and offset of each record to the repartition topic ``r``; subtopology 1 reads ``r`` and
counts the records. The program appends to FILE the lines of `member.py`, in which partition numbers above
those of TOPIC are partitions of ``r``, and these lines:

    E MEMBER EPOCH     the broker has answered with this member epoch
    N PARTITION OFFSET    subtopology 1 has counted this record of TOPIC
    F TEXT             an invariant was broken; TEXT describes it
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from penstock import Consumer, Producer, TopicPartition
from penstock.errors import NetworkError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages import offset_commit_request as committing
from penstock.protocol.messages import offset_fetch_request as fetching
from penstock.protocol.messages import streams_group_heartbeat_request as beating
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from broker.kills.member import Diary
from broker.wire_client import WireClient

PARTITIONS = 3
REPARTITION = "r"
ALONE_S = 4.0
"""The time in seconds without an answer after which a member drops its tasks.

Its session, of 5 s, may be about to expire.
"""
BROKEN = (OSError, EOFError)
RETRIED = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
LOST = (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND)

Task = tuple[str, int]
"""A subtopology id and a partition number."""


def place_of(task: Task) -> int:
    """Return the number by which the event file identifies a task's input partition.

    The partitions of TOPIC come first, then those of the repartition topic.
    """
    return task[1] + PARTITIONS * int(task[0])


def tasks_in(listed: Any) -> set[Task]:
    return {(each.subtopology_id, index) for each in listed or () for index in each.partitions}


def task_ids(tasks: Iterable[Task]) -> list[beating.TaskIds]:
    found: dict[str, list[int]] = {}
    for name, index in sorted(tasks):
        found.setdefault(name, []).append(index)
    return [beating.TaskIds(subtopology_id=name, partitions=indexes) for name, indexes in found.items()]


def topology(topic: str) -> beating.Topology:
    empty: dict[str, Any] = {
        name: []
        for name in (
            "source_topics",
            "source_topic_regex",
            "repartition_sink_topics",
            "repartition_source_topics",
            "state_changelog_topics",
            "copartition_groups",
        )
    }
    made, kept = beating.TopicInfo(name=REPARTITION), beating.TopicInfo(name="c")
    reading = {"subtopology_id": "0", "source_topics": [topic], "repartition_sink_topics": [REPARTITION]}
    counting = {
        "subtopology_id": "1",
        "repartition_source_topics": [made],
        "state_changelog_topics": [kept],
    }
    return beating.Topology(
        epoch=0, subtopologies=[beating.Subtopology(**(empty | each)) for each in (reading, counting)]
    )


class Coordinator:
    """A connection to the group coordinator, which looks the coordinator up again after an error."""

    def __init__(self, servers: str, group: str) -> None:
        self._addresses = [(each.split(":")[0], int(each.split(":")[1])) for each in servers.split(",")]
        self._group = group
        self._wire: WireClient | None = None

    def ask(self, request: Any, version: int) -> Any:
        """Send a request to the coordinator; return the response, or None if the connection breaks."""
        try:
            if self._wire is None:
                self._wire = self._found()
            return self._wire.ask(request, version)
        except BROKEN:
            self.lose()
            return None

    def lose(self) -> None:
        if self._wire is not None:
            self._wire.socket.close()
        self._wire = None

    def _found(self) -> WireClient:
        request = FindCoordinatorRequest(coordinator_keys=[self._group])
        for host, port in self._addresses:
            with suppress(*BROKEN), WireClient(port, 2, host=host) as client:
                [found] = client.ask(request, 4).coordinators
                if not found.error_code:
                    return WireClient(found.port, 2, host=found.host)
        raise OSError("nobody answers")


class Member:
    """One member of the streams group, with its epoch and the tasks that it runs."""

    def __init__(self, name: str, diary: Diary) -> None:
        self.name = name
        self._diary = diary
        self.epoch = 0
        self.active: set[Task] = set()
        self.standby: set[Task] = set()
        self.tells = True
        self.next_beat = 0.0
        self.answered = 0.0
        """The time at which the last answered heartbeat was sent, in monotonic seconds."""
        self.positions: dict[Task, int] = {}
        self.committed: dict[Task, int] = {}

    @property
    def held(self) -> set[Task]:
        return self.active | self.standby

    def drop(self, tasks: Iterable[Task], word: str = "L") -> None:
        """Stop running these active tasks, and write a line for each to the event file."""
        dropped = list(tasks)
        now = time.monotonic()
        self._diary.say((word, now, place_of(task)) for task in dropped)
        for task in dropped:
            self.active.discard(task)
            self.positions.pop(task, None)
            self.committed.pop(task, None)

    def lose(self) -> None:
        """Drop all tasks and go back to epoch 0, so that the next heartbeat joins again."""
        self.drop(set(self.active), "X")
        self.standby.clear()
        self.epoch, self.tells, self.next_beat = 0, True, 0.0

    def lose_if_alone(self) -> None:
        if self.epoch and time.monotonic() - self.answered > ALONE_S:
            self.lose()

    def take(self, active: set[Task], standby: set[Task]) -> None:
        """Adopt the tasks of a response. The offsets of dropped tasks were committed before."""
        self.drop(self.active - active)
        self._diary.say(("O", time.monotonic(), place_of(task)) for task in active - self.active)
        self.active, self.standby = active, standby
        self.tells, self.next_beat = True, 0.0


class Instance:
    """An instance of the streams application: two members that share one loop."""

    def __init__(self, servers: str, group: str, topic: str, dice: Random, diary: Diary) -> None:
        self._group, self._topic, self._dice, self._diary = group, topic, dice, diary
        self._process = f"p{dice.randrange(1 << 60)}"
        self._members = [Member(f"{self._process}-{number}", diary) for number in range(2)]
        self._coordinator = Coordinator(servers, group)
        self._assigned: set[Task] = set()

    def run(self, consumer: Consumer, producer: Producer) -> None:
        while True:
            for member in self._members:
                member.lose_if_alone()
                if time.monotonic() >= member.next_beat:
                    self._beat(member)
            self._find_positions()
            self._work(consumer, producer)

    # --- heartbeats --------------------------------------------------------------------------------------

    def _beat(self, member: Member) -> None:
        sent = time.monotonic()
        request = beating.StreamsGroupHeartbeatRequest(
            group_id=self._group, member_id=member.name, member_epoch=member.epoch
        )
        if member.epoch == 0:
            request.topology, request.process_id = topology(self._topic), self._process
            request.rebalance_timeout_ms = 10_000
        if member.tells or member.epoch == 0:
            request.active_tasks, request.standby_tasks = task_ids(member.active), task_ids(member.standby)
            request.warmup_tasks = []
        answer = self._coordinator.ask(request, 0)
        member.lose_if_alone()
        if member.epoch != request.member_epoch:
            return  # the answer is about tasks that it has no more
        if answer is None or answer.error_code in RETRIED:
            self._coordinator.lose()
            member.tells, member.next_beat = True, time.monotonic() + 0.1
            return
        if answer.error_code in LOST:
            member.lose()
            member.next_beat = time.monotonic() + 0.1
            return
        if answer.error_code:
            self._fault(f"heartbeat: {answer.error_code} {answer.error_message}")
            member.next_beat = time.monotonic() + 0.2
            return
        if answer.member_epoch < member.epoch:
            self._fault(f"{member.name} goes from epoch {member.epoch} to {answer.member_epoch}")
        member.epoch, member.answered, member.tells = answer.member_epoch, sent, False
        member.next_beat = time.monotonic() + answer.heartbeat_interval_ms / 1000
        self._diary.say([("E", member.name, member.epoch)])
        if answer.active_tasks is not None:
            self._follow(member, tasks_in(answer.active_tasks), tasks_in(answer.standby_tasks))

    def _follow(self, member: Member, active: set[Task], standby: set[Task]) -> None:
        if (active, standby) == (member.active, member.standby):
            return
        if member.active - active:
            time.sleep(self._dice.uniform(0, 0.2))  # stores take their time to close
            self._commit(member, member.active - active)
        for other in self._members:
            other.lose_if_alone()
            if other is not member and (active | standby) & other.held:
                self._fault(f"{member.name} and {other.name} have {(active | standby) & other.held}")
        if member.epoch:  # else it has been lost on the way
            member.take(active, standby)

    def _fault(self, text: str) -> None:
        self._diary.say([("F", text)])

    # --- offsets -----------------------------------------------------------------------------------------

    def _topic_of(self, task: Task) -> str:
        return self._topic if task[0] == "0" else REPARTITION

    def _find_positions(self) -> None:
        """Fetch the committed offsets of tasks that have no position yet."""
        for member in self._members:
            unknown = [task for task in member.active if task not in member.positions]
            if not unknown:
                continue
            topics = [
                fetching.OffsetFetchRequestTopics(
                    name=self._topic_of((name, 0)),
                    partition_indexes=[task[1] for task in unknown if task[0] == name],
                )
                for name in sorted({task[0] for task in unknown})
            ]
            group = fetching.OffsetFetchRequestGroup(
                group_id=self._group, member_id=member.name, member_epoch=member.epoch, topics=topics
            )
            answer = self._coordinator.ask(fetching.OffsetFetchRequest(groups=[group]), 9)
            if answer is None or answer.groups[0].error_code:
                continue
            for topic in answer.groups[0].topics:
                for found in topic.partitions:
                    task = ("1" if topic.name == REPARTITION else "0"), found.partition_index
                    if not found.error_code:
                        member.positions[task] = member.committed[task] = max(0, found.committed_offset)

    def _commit(self, member: Member, tasks: Iterable[Task]) -> None:
        """Commit the positions of tasks that have advanced since their last commit."""
        ends = {task: member.positions[task] for task in tasks if task in member.positions}
        ends = {task: end for task, end in ends.items() if end > member.committed[task]}
        if not ends:
            return
        self._diary.say(("T", time.monotonic(), place_of(task), end) for task, end in ends.items())
        topics = [
            committing.OffsetCommitRequestTopic(
                name=self._topic_of(task),
                partitions=[
                    committing.OffsetCommitRequestPartition(partition_index=task[1], committed_offset=end)
                ],
            )
            for task, end in ends.items()
        ]
        request = committing.OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=member.epoch,
            member_id=member.name,
            topics=topics,
        )
        answer = self._coordinator.ask(request, 9)
        if answer is None:
            return
        codes = {each.error_code for topic in answer.topics for each in topic.partitions}
        if codes == {0}:
            member.committed.update(ends)
            self._diary.say(("C", time.monotonic(), place_of(task), end) for task, end in ends.items())
        elif codes & set(RETRIED):
            self._coordinator.lose()
        elif E.UNKNOWN_MEMBER_ID in codes:
            member.lose()
        elif codes != {E.STALE_MEMBER_EPOCH}:
            self._fault(f"commit: {codes}")

    # --- records -----------------------------------------------------------------------------------------

    def _work(self, consumer: Consumer, producer: Producer) -> None:
        """Read some records, process them, and commit the offsets."""
        owners = {
            TopicPartition(self._topic_of(task), task[1]): (member, task)
            for member in self._members
            for task in member.positions
        }
        consumer.assign(list(owners))
        for at, (member, task) in owners.items():
            consumer.seek(at, member.positions[task])
        for member in self._members:
            member.lose_if_alone()
        began = time.monotonic()
        records = consumer.poll(100) if owners else time.sleep(0.05)
        for record in records or ():
            member, task = owners[TopicPartition(record.topic, record.partition)]
            if record.offset < member.positions.get(task, 1 << 60):
                continue
            self._diary.say([("D", began, time.monotonic(), place_of(task), record.offset, 1)])
            member.positions[task] = record.offset + 1
            if task[0] == "0":
                producer.send(REPARTITION, b"%d %d" % (record.partition, record.offset), partition=task[1])
            else:
                self._diary.say([("N", (record.value or b"").decode())])
        producer.flush()
        time.sleep(self._dice.uniform(0, 0.02))
        for member in self._members:
            member.lose_if_alone()
            self._commit(member, list(member.active))


def main() -> None:
    _, servers, group, topic, seed, path = sys.argv[1:]
    retries = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 200}
    instance = Instance(servers, group, topic, Random(int(seed)), Diary(Path(path)))
    reading = {"auto.offset.reset": "earliest", "max.poll.records": 20, **retries}
    while True:
        # It began while nothing served, or what it sends does not arrive: what was not committed comes again.
        with (
            suppress(NetworkError, RequestTimeoutError),
            Consumer(servers, reading) as consumer,
            Producer(servers, {"enable.idempotence": True, **retries}) as producer,
        ):
            instance.run(consumer, producer)


if __name__ == "__main__":
    main()
