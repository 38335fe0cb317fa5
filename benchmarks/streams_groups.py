"""Measure streams groups (KIP-1071) in the broker: idle members, and rebalances of tasks.

    python benchmarks/streams_groups.py [--quick] [--rounds N]

Penstock and Apache Kafka 4.3 are measured in turn; without Java, only Penstock. The load comes from raw
sockets and is equal for both brokers. Members are instances with one thread each, which accept and give up
tasks immediately. CPU is that of all threads of the broker, and the better figure on a machine with other
load. Both brokers compute each assignment without delay (`group.streams.assignment.interval.ms=0`), and the
internal topics exist in advance.
"""

from __future__ import annotations

import asyncio
from typing import Any

from broker_sides import Side
from groups import Peer
from heartbeat_groups import (
    RETRIED,
    Kind,
    compare,
    print_idle,
    print_rebalances,
    set_group_config,
    wait_for_coordinator,
)
from penstock.protocol.messages import streams_group_heartbeat_request as beating
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

SETTINGS = {
    "group.streams.min.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}
BEAT = 0
LISTS = (
    *("source_topics", "source_topic_regex", "repartition_sink_topics", "repartition_source_topics"),
    *("state_changelog_topics", "copartition_groups"),
)
"""The list fields of a subtopology, which `topology` leaves empty unless they are given."""

Tasks = dict[str, list[int]]


async def make_topics(peer: Peer, name: str, partitions: int) -> None:
    """Create a topic with its application's repartition and changelog topics, which a broker would create."""
    topics = [
        CreatableTopic(name=each, num_partitions=partitions, replication_factor=1)
        for each in (name, f"{name}-r", f"{name}-c")
    ]
    made = await peer.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
    assert not any(each.error_code for each in made.topics), made.topics[0].error_message


def topology(topic: str) -> beating.Topology:
    """Return a topology of two subtopologies.

    Each has a task for each partition of the topic; the tasks of the second have state.
    """

    def made(**more: Any) -> beating.Subtopology:
        empty: dict[str, Any] = {name: [] for name in LISTS}
        return beating.Subtopology(**(empty | more))

    between, kept = beating.TopicInfo(name=f"{topic}-r"), beating.TopicInfo(name=f"{topic}-c")
    reading = made(subtopology_id="0", source_topics=[topic], repartition_sink_topics=[between.name])
    counting = made(subtopology_id="1", repartition_source_topics=[between], state_changelog_topics=[kept])
    return beating.Topology(epoch=0, subtopologies=[reading, counting])


class Member:
    """A streams group member that accepts and gives up tasks as soon as the broker requires it."""

    def __init__(self, peer: Peer, group: str, topic: str, number: int) -> None:
        self.peer = peer
        self.group, self.topic = group, topic
        self.id = f"member-{number:04}"
        self.epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self._tells = False

    @property
    def active_count(self) -> int:
        return sum(map(len, self.active.values()))

    @property
    def standby_count(self) -> int:
        return sum(map(len, self.standby.values()))

    async def beat(self) -> bool:
        """Send a heartbeat; return True if the response contains the member's tasks."""
        request = beating.StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=self.id, member_epoch=self.epoch
        )
        if self.epoch == 0:
            request.topology, request.process_id = topology(self.topic), self.id
            request.rebalance_timeout_ms = 60_000
        if self.epoch == 0 or self._tells:
            request.active_tasks, request.standby_tasks = task_ids(self.active), task_ids(self.standby)
            request.warmup_tasks = []
        while (answer := await self.peer.ask(request, BEAT)).error_code in RETRIED:
            await asyncio.sleep(0.02)
        assert answer.error_code == 0, (answer.error_code, answer.error_message)
        self.epoch, self._tells = answer.member_epoch, False
        if answer.active_tasks is None:
            return False
        self.active, self.standby = tasks_in(answer.active_tasks), tasks_in(answer.standby_tasks)
        self._tells = True
        return True

    async def leave(self) -> None:
        request = beating.StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=self.id, member_epoch=-1
        )
        await self.peer.ask(request, BEAT)
        await self.peer.close()


def task_ids(tasks: Tasks) -> list[beating.TaskIds]:
    return [beating.TaskIds(subtopology_id=name, partitions=indexes) for name, indexes in tasks.items()]


def tasks_in(listed: Any) -> Tasks:
    return {each.subtopology_id: list(each.partitions) for each in listed or ()}


def kind_of(standbys: int) -> Kind:
    """Return the kind of groups whose stateful tasks (half of all) have `standbys` standby tasks each."""

    async def make_ready(peer: Peer, group: str) -> None:
        await wait_for_coordinator(peer, group)
        if standbys:
            await set_group_config(peer, group, "streams.num.standby.replicas", str(standbys))

    def is_even(members: list[Member], tasks: int) -> bool:
        counts = [member.active_count for member in members]
        copies = sum(member.standby_count for member in members)
        if sum(counts) != tasks or copies != tasks // 2 * standbys:
            return False
        return bool(standbys) or max(counts) <= -(-tasks // len(members))

    async def make_topic(peer: Peer, name: str, tasks: int) -> None:
        await make_topics(peer, name, tasks // 2)

    return Kind(make_topic, make_ready, Member, is_even)


async def run(targets: list[Side], rounds: int, quick: bool) -> None:
    await print_idle(kind_of(0), targets, rounds, quick, "streams")
    for standbys, copies in ((0, "no copies"), (1, "a copy of each with state")):
        await print_rebalances(kind_of(standbys), targets, rounds, quick, f"{{}} tasks, {copies}")


if __name__ == "__main__":
    compare("Streams groups at the broker", SETTINGS, run)
