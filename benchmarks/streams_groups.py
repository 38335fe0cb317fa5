"""Streams groups (KIP-1071) at the broker: idle members, and rebalances of tasks.

    python benchmarks/streams_groups.py [--quick] [--rounds N]

Beside Apache Kafka 4.3, in turn; without Java, Penstock alone. Load comes from raw sockets, the same for both
brokers: members are instances of one thread each, which take tasks and give them up at once. CPU is the
broker's, all threads: the figure to compare where the machine has other work. Both compute each assignment at
once (`group.streams.assignment.interval.ms=0`), and the internal topics are there before.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

from broker_sides import Side, kafka_side, penstock_side
from groups import Peer
from harness import arguments, print_table
from penstock.protocol.messages import streams_group_heartbeat_request as beating
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SETTINGS = {
    "group.streams.min.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
}
BEAT = 0
INTERVAL_S = 5.0
"""Between heartbeats of idle members: `group.streams.heartbeat.interval.ms` of both brokers."""
GROUP_OF = 50
"""Members of each group of idle ones, and its tasks."""
RETRIED = (14, 15, 16)
LISTS = (
    *("source_topics", "source_topic_regex", "repartition_sink_topics", "repartition_source_topics"),
    *("state_changelog_topics", "copartition_groups"),
)
"""The lists of a subtopology, which are empty where nothing is said."""
names = itertools.count()

Tasks = dict[str, list[int]]


async def make_topics(peer: Peer, name: str, partitions: int) -> None:
    """Make a topic, and what its application would have the broker make: a repartition topic, a changelog."""
    topics = [
        CreatableTopic(name=each, num_partitions=partitions, replication_factor=1)
        for each in (name, f"{name}-r", f"{name}-c")
    ]
    made = await peer.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
    assert not any(each.error_code for each in made.topics), made.topics[0].error_message


def topology(topic: str) -> beating.Topology:
    """Two subtopologies: each has a task for each partition of the topic, the second has state."""

    def made(**more: Any) -> beating.Subtopology:
        empty: dict[str, Any] = {name: [] for name in LISTS}
        return beating.Subtopology(**(empty | more))

    between, kept = beating.TopicInfo(name=f"{topic}-r"), beating.TopicInfo(name=f"{topic}-c")
    reading = made(subtopology_id="0", source_topics=[topic], repartition_sink_topics=[between.name])
    counting = made(subtopology_id="1", repartition_source_topics=[between], state_changelog_topics=[kept])
    return beating.Topology(epoch=0, subtopologies=[reading, counting])


class Member:
    """A member: it takes the tasks that it is given and gives up those that it has to, at once."""

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
        """Send a heartbeat; return whether it was told its tasks."""
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


async def make_ready(peer: Peer, group: str, standbys: int = 0) -> None:
    """Wait until the broker coordinates a group, and have its tasks copied."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while (await peer.ask(request, 4)).coordinators[0].error_code:
        await asyncio.sleep(0.05)
    if standbys:
        config = AlterableConfig(name="streams.num.standby.replicas", config_operation=0, value=str(standbys))
        resource = AlterConfigsResource(resource_type=32, resource_name=group, configs=[config])
        await peer.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)


async def settle(members: list[Member], active: int, standby: int = 0) -> None:
    """Have members beat, each as soon as it has been answered, until all tasks are evenly theirs."""
    least, more = divmod(active, len(members))

    def is_even() -> bool:
        counts = [member.active_count for member in members]
        if sum(counts) != active or sum(member.standby_count for member in members) != standby:
            return False
        return max(counts) <= least + bool(more) if not standby else True

    async def take_part(member: Member) -> None:
        while not is_even() or len({each.epoch for each in members}) > 1:
            if not await member.beat():
                await asyncio.sleep(0.02)

    async with asyncio.timeout(300):
        await asyncio.gather(*map(take_part, members))


async def idle_cpu(target: Side, count: int, seconds: float) -> float:
    """Milliseconds of CPU per second that members cost which only send heartbeats."""
    peer = await Peer.open(target)
    topic = f"idle-{next(names)}"
    await make_topics(peer, topic, GROUP_OF // 2)
    members = []
    for number in range(count):
        group = f"{topic}-{number // GROUP_OF}"
        if number % GROUP_OF == 0:
            await make_ready(peer, group)
        members.append(Member(await Peer.open(target), group, topic, number))
    for first in range(0, count, GROUP_OF):
        await settle(members[first : first + GROUP_OF], GROUP_OF)

    async def go_on(member: Member, delay: float) -> None:
        await asyncio.sleep(delay)
        while True:
            await member.beat()
            await asyncio.sleep(INTERVAL_S)

    tasks = [
        asyncio.create_task(go_on(member, INTERVAL_S * number / count))
        for number, member in enumerate(members)
    ]
    await asyncio.sleep(INTERVAL_S)
    cpu, start = target.cpu_seconds, time.perf_counter()
    await asyncio.sleep(seconds)
    used = (target.cpu_seconds - cpu) / (time.perf_counter() - start)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(*(member.leave() for member in members))
    return used * 1000


async def rebalance(target: Side, count: int, tasks: int, standbys: int) -> dict[str, tuple[float, float]]:
    """Seconds, and seconds of CPU, of rebalances: all members join, one more joins, one leaves."""
    peer = await Peer.open(target)
    topic = f"rebalance-{next(names)}-{os.getpid()}"
    partitions = tasks // 2
    await make_topics(peer, topic, partitions)
    await make_ready(peer, topic, standbys)
    members = [Member(await Peer.open(target), topic, topic, number) for number in range(count)]
    figures: dict[str, tuple[float, float]] = {}

    async def timed(what: str, run: Callable[[], Awaitable[object]]) -> None:
        cpu, start = target.cpu_seconds, time.perf_counter()
        await run()
        figures[what] = time.perf_counter() - start, target.cpu_seconds - cpu

    await timed(f"{count} members join", lambda: settle(members, tasks, partitions * standbys))
    more = [*members, Member(await Peer.open(target), topic, topic, count)]
    await timed("one more joins", lambda: settle(more, tasks, partitions * standbys))

    async def lose_one() -> None:
        await more[0].leave()
        await settle(more[1:], tasks, partitions * standbys)

    await timed("one leaves", lose_one)
    for member in more[1:]:
        await member.leave()
    await peer.close()
    return figures


def ratio(figures: list[float]) -> str:
    return f"{figures[0] / figures[1]:.2f}" if len(figures) > 1 else ""


async def run(targets: list[Side], rounds: int, quick: bool) -> None:
    head = ("", *(target.name for target in targets), "ratio")
    count = 100 if quick else 1000
    found = [
        [await idle_cpu(target, count, 5 if quick else 10) for target in targets]
        for _ in range(min(rounds, 3))
    ]
    figures = [statistics.median(each) for each in zip(*found, strict=True)]
    print_table(
        "Idle members of streams groups, heartbeats every 5 s: the broker's CPU, ms per second",
        head,
        [(f"{count} members", *(f"{figure:.1f}" for figure in figures), ratio(figures))],
    )
    members, tasks = (10, 100) if quick else (50, 500)
    for standbys in (0, 1):
        for target in targets:
            await rebalance(target, members, tasks, standbys)  # for the JVM to get warm
        runs = [
            [await rebalance(target, members, tasks, standbys) for target in targets] for _ in range(rounds)
        ]
        rows = []
        for what in runs[0][0]:
            for index, unit in enumerate(("ms", "ms of CPU")):
                medians = [
                    statistics.median(each[side][what][index] for each in runs) * 1000
                    for side in range(len(targets))
                ]
                rows.append((f"{what}, {unit}", *(f"{figure:,.1f}" for figure in medians), ratio(medians)))
        copies = "a copy of each with state" if standbys else "no copies"
        print_table(f"Rebalances over {tasks} tasks, {copies}", head, rows)


def main() -> None:
    options = arguments("Streams groups at the broker", rounds=3, quick_rounds=1)
    words = ["--port", "0"]
    for name, value in SETTINGS.items():
        words += ["--config", f"{name}={value}"]
    with ExitStack() as stack:
        targets = [stack.enter_context(penstock_side(*words))]
        if shutil.which("java") and shutil.which("mvn"):
            targets.append(stack.enter_context(kafka_side(SETTINGS)))
        asyncio.run(run(targets, options.rounds, options.quick))


if __name__ == "__main__":
    main()
