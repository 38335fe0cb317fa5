"""Shared code of benchmarks for consumer and streams groups, whose members only send heartbeats.

A benchmark's `Kind` defines how members join, and when partitions or tasks are evenly distributed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from broker_sides import Side, idle_ms, kafka_side, penstock_side
from groups import Peer
from harness import arguments, print_table
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

INTERVAL_S = 5.0
"""Seconds between the heartbeats of an idle member, the default of both brokers."""
GROUP_OF = 50
"""The number of members in each idle group, and of the partitions or tasks that they share."""
RETRIED = (14, 15, 16)
"""Error codes of a coordinator that is not ready yet."""
names = itertools.count()


class Member(Protocol):
    """A group member that accepts and gives up partitions or tasks as soon as the broker requires it."""

    epoch: int

    async def beat(self) -> bool:
        """Send a heartbeat; return True if the response changes the member's assignment."""

    async def leave(self) -> None:
        """Leave the group, and close the connection."""


@dataclass(frozen=True)
class Kind:
    """A kind of group: functions that create topics and members, and detect the end of a rebalance."""

    make_topic: Callable[[Peer, str, int], Awaitable[object]]
    """A function that creates the topics for a given number of partitions or tasks."""
    make_ready: Callable[[Peer, str], Awaitable[object]]
    """A function that prepares a group for its members, and waits for its coordinator."""
    new_member: Callable[[Peer, str, str, int], Any]
    """A function that makes a member, given its connection, group, topic and number."""
    is_even: Callable[[list[Any], int], bool]
    """A function that returns True if all partitions or tasks are evenly distributed over the members."""


async def wait_for_coordinator(peer: Peer, group: str) -> None:
    """Wait until a group's coordinator is ready."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    while (await peer.ask(request, 4)).coordinators[0].error_code:
        await asyncio.sleep(0.05)


async def set_group_config(peer: Peer, group: str, name: str, value: str) -> None:
    """Set a dynamic setting of a group (resource type 32)."""
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=32, resource_name=group, configs=[config])
    await peer.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)


async def settle(kind: Kind, members: list[Any], amount: int) -> None:
    """Send heartbeats until everything is evenly distributed and all members have one epoch.

    Members do not wait between heartbeats: real clients would wait a second or more, with either broker.
    """
    async with asyncio.timeout(300):
        while not kind.is_even(members, amount) or len({each.epoch for each in members}) > 1:
            if not any(await asyncio.gather(*(each.beat() for each in members))):
                await asyncio.sleep(0.005)


async def idle_cpu(kind: Kind, target: Side, count: int, seconds: float) -> float:
    """Return the broker's CPU ms per second for members that only send heartbeats."""
    peer = await Peer.open(target)
    topic = f"idle-{next(names)}"
    await kind.make_topic(peer, topic, GROUP_OF)
    members = []
    for number in range(count):
        group = f"{topic}-{number // GROUP_OF}"
        if number % GROUP_OF == 0:
            await kind.make_ready(peer, group)
        members.append(kind.new_member(await Peer.open(target), group, topic, number))
    for first in range(0, count, GROUP_OF):
        await settle(kind, members[first : first + GROUP_OF], GROUP_OF)
    used = await idle_ms(target, [member.beat for member in members], INTERVAL_S, seconds)
    await asyncio.gather(*(member.leave() for member in members))
    return used


async def rebalance(kind: Kind, target: Side, count: int, amount: int) -> dict[str, tuple[float, float]]:
    """Return the seconds and CPU seconds of three rebalances.

    In the first all members join, in the second one more joins, and in the third one leaves.
    """
    peer = await Peer.open(target)
    topic = f"rebalance-{next(names)}-{os.getpid()}"
    await kind.make_topic(peer, topic, amount)
    await kind.make_ready(peer, topic)
    members = [kind.new_member(await Peer.open(target), topic, topic, number) for number in range(count)]
    figures: dict[str, tuple[float, float]] = {}

    async def timed(what: str, run: Callable[[], Awaitable[object]]) -> None:
        cpu, start = target.cpu_seconds, time.perf_counter()
        await run()
        figures[what] = time.perf_counter() - start, target.cpu_seconds - cpu

    await timed(f"{count} members join", lambda: settle(kind, members, amount))
    more = [*members, kind.new_member(await Peer.open(target), topic, topic, count)]
    await timed("one more joins", lambda: settle(kind, more, amount))

    async def lose_one() -> None:
        await more[0].leave()
        await settle(kind, more[1:], amount)

    await timed("one leaves", lose_one)
    for member in more[1:]:
        await member.leave()
    await peer.close()
    return figures


def ratio(figures: list[float]) -> str:
    return f"{figures[0] / figures[1]:.2f}" if len(figures) > 1 else ""


def heading(targets: list[Side]) -> tuple[str, ...]:
    return ("", *(target.name for target in targets), "ratio")


async def print_idle(kind: Kind, targets: list[Side], rounds: int, quick: bool, of: str) -> None:
    """Print the CPU that idle members cost each broker: medians of rounds in which brokers take turns."""
    count = 100 if quick else 1000
    found = [
        [await idle_cpu(kind, target, count, 5 if quick else 10) for target in targets]
        for _ in range(min(rounds, 3))
    ]
    figures = [statistics.median(each) for each in zip(*found, strict=True)]
    print_table(
        f"Idle members of {of} groups, heartbeats every 5 s: the broker's CPU, ms per second",
        heading(targets),
        [(f"{count} members", *(f"{figure:.1f}" for figure in figures), ratio(figures))],
    )


async def print_rebalances(kind: Kind, targets: list[Side], rounds: int, quick: bool, over: str) -> None:
    """Print the time and CPU of rebalances at each broker: medians of rounds in which brokers take turns.

    `over` is a format string for the numbers of members and of partitions or tasks.
    """
    members, amount = (10, 100) if quick else (50, 500)
    for target in targets:
        await rebalance(kind, target, members, amount)  # for the JVM to get warm
    runs = [[await rebalance(kind, target, members, amount) for target in targets] for _ in range(rounds)]
    rows = []
    for what in runs[0][0]:
        for index, unit in enumerate(("ms", "ms of CPU")):
            medians = [
                statistics.median(each[side][what][index] for each in runs) * 1000
                for side in range(len(targets))
            ]
            rows.append((f"{what}, {unit}", *(f"{figure:,.1f}" for figure in medians), ratio(medians)))
    print_table(f"Rebalances over {over.format(amount)}", heading(targets), rows)


def compare(
    title: str, settings: Mapping[str, object], run: Callable[[list[Side], int, bool], Awaitable[None]]
) -> None:
    """Run a benchmark at Penstock and, if Java is installed, at Apache Kafka with equal settings."""
    options = arguments(title, rounds=3, quick_rounds=1)
    words = ["--port", "0"]
    for name, value in settings.items():
        words += ["--config", f"{name}={value}"]
    with ExitStack() as stack:
        targets = [stack.enter_context(penstock_side(*words))]
        if shutil.which("java") and shutil.which("mvn"):
            targets.append(stack.enter_context(kafka_side(settings)))

        async def all_of_it() -> None:
            await run(targets, options.rounds, options.quick)

        asyncio.run(all_of_it())
