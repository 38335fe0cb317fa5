"""Measure the cost of a record as a broker gets more topics, partitions, connections, groups or log bytes.

    python benchmarks/scale.py [--quick] [--only AXIS] [--most N] [--publish]

Each axis has one broker on disk. One-record requests go to all its topics, partitions, connections or groups
in turn, so that no cache of the last one helps. CPU is the broker's; memory is its resident memory after the
requests. Between any two runs a second broker, the yardstick, which never grows, handles one-record requests.
A point is the median ratio to the yardstick's cost, times the yardstick's lowest cost. A temporarily slow
machine therefore does not bend a curve. `--publish` writes the page docs/reference/scale.md and the pictures
docs/pictures/scale-*.svg.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import select
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, takewhile
from pathlib import Path
from typing import NamedTuple

from broker_sides import Side, ask, penstock_side
from curves import Panel, picture
from harness import print_table
from penstock.protocol.framing import encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.records.batch import encode_batch

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "scale.md"
PICTURES = ROOT / "docs" / "pictures"

IN_FLIGHT = 16
TOPICS_AT_ONCE = 500
FILLING_BYTES = 10_000
VALUE = b"v" * 100


class Point(NamedTuple):
    """One measured point of an axis: the broker's CPU per request, keyed by the request's name, and memory.

    CPU is measured in units of the yardstick's cost, and converted to microseconds for display.
    """

    x: int
    cpu: dict[str, float]
    resident_mb: float


class Axis(NamedTuple):
    """A quantity that grows, such as topics.

    `points` is a function that measures a list of sizes; `word` is the label of the horizontal axis.
    """

    word: str
    sizes: tuple[int, ...]
    points: Callable[[Sequence[int], Yardstick], Iterator[Point]]


# --- requests -----------------------------------------------------------------------------------------------


def frame(request: Message, version: int) -> bytes:
    return b"".join(map(bytes, encode_request(request, version, 1, "scale")))


def produced(topic: str, partition: int, batch: bytes | None = None) -> bytes:
    """Return a Produce request with one record of 100 bytes, or with `batch`."""
    batch = batch or encode_batch([(b"key", VALUE, (), int(time.time() * 1000))])
    data = PartitionProduceData(index=partition, records=batch)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=topics), 9)


def fetched(topic: str, partition: int, offset: int = 0) -> bytes:
    """Return a Fetch request that gets one batch."""
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1)
    topics = [FetchTopic(topic=topic, partitions=[asked])]
    request = FetchRequest(min_bytes=1, max_wait_ms=1_000, max_bytes=1, session_epoch=-1, topics=topics)
    return frame(request, 12)


def committed(group: str) -> bytes:
    """Return an OffsetCommit request of one partition for a group without members."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topics = [OffsetCommitRequestTopic(name="one", partitions=[partition])]
    return frame(OffsetCommitRequest(group_id=group, topics=topics), 7)


def create(side: Side, topics: Sequence[CreatableTopic]) -> None:
    with side.connect() as connection:
        for start in range(0, len(topics), TOPICS_AT_ONCE):
            part = list(topics[start : start + TOPICS_AT_ONCE])
            ask(connection, CreateTopicsRequest(topics=part, timeout_ms=60_000), 5)


@contextmanager
def on_first_core() -> Iterator[Side]:
    """Run a broker on the first available core.

    All brokers run there, since cores of one machine may differ in speed and load.
    """
    with penstock_side() as side:
        if sys.platform == "linux":
            os.sched_setaffinity(side.pid, {min(os.sched_getaffinity(0))})
        yield side


def topic(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)


# --- load ---------------------------------------------------------------------------------------------------


class Load:
    """Client connections to a broker; `IN_FLIGHT` requests are pending, each on a connection of its own."""

    def __init__(self, side: Side, connections: int = IN_FLIGHT) -> None:
        self._side = side
        self._all: dict[int, socket.socket] = {}
        self._poller = select.epoll()
        for _ in range(connections):
            connection = side.connect()
            self._all[connection.fileno()] = connection
            self._poller.register(connection.fileno(), select.EPOLLIN)

    def close(self) -> None:
        for connection in self._all.values():
            connection.close()
        self._poller.close()

    def once(self, frames: Sequence[bytes]) -> float:
        """Send every frame once; return the broker's CPU seconds per request."""
        return self._run(iter(frames))

    def for_a_while(self, turns: Iterator[bytes], seconds: float) -> float:
        """Send frames for `seconds`; return the broker's CPU seconds per request."""
        end = time.perf_counter() + seconds
        return self._run(takewhile(lambda _: time.perf_counter() < end, turns))

    def _run(self, frames: Iterator[bytes]) -> float:
        idle = deque(self._all)
        arrived: dict[int, bytes] = {}
        done, cpu = 0, self._side.cpu_seconds

        def send() -> None:
            following = next(frames, None)
            if following is not None:
                number = idle.popleft()
                arrived[number] = b""
                self._all[number].sendall(following)

        for _ in range(min(IN_FLIGHT, len(self._all))):
            send()
        while arrived:
            for number, _ in self._poller.poll(30):
                data = arrived[number] + self._all[number].recv(1 << 16)
                if len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                    arrived[number] = data
                    continue
                del arrived[number]
                idle.append(number)
                done += 1
                send()
        return (self._side.cpu_seconds - cpu) / max(done, 1)


class Yardstick:
    """A broker that does not grow: its cost for Produce shows the current speed of the machine."""

    def __init__(self, side: Side, seconds: float, rounds: int) -> None:
        create(side, [topic("one", IN_FLIGHT)])
        self._load = Load(side)
        self._turns = cycle([produced("one", n) for n in range(IN_FLIGHT)])
        self._seconds = seconds
        self._rounds = rounds
        self._load.for_a_while(self._turns, 1.0)  # until Python has specialized its code
        self.least_us = self._now() * 1e6
        """The lowest cost of a Produce request so far, in microseconds of CPU."""

    def _now(self) -> float:
        return self._load.for_a_while(self._turns, self._seconds)

    def cost(self, load: Load, frames: Sequence[bytes]) -> float:
        """Return the cost of a request in units of the yardstick's, after sending every frame once."""
        load.once(frames)
        os.sync()  # what the file system has left to do for new files is no part of a record
        turns = cycle(frames)  # each run goes on where the last one stopped
        ratios, before = [], self._now()
        for _ in range(self._rounds):
            took = load.for_a_while(turns, self._seconds)
            after = self._now()
            ratios.append(2 * took / (before + after))
            self.least_us = min(self.least_us, after * 1e6)
            before = after
        return statistics.median(ratios)


# --- axes ---------------------------------------------------------------------------------------------------


def topics(sizes: Sequence[int], yard: Yardstick) -> Iterator[Point]:
    with on_first_core() as side:
        load, there = Load(side), 0
        for size in sizes:
            create(side, [topic(f"topic-{n}") for n in range(there, size)])
            there = size
            names = [f"topic-{n}" for n in range(size)]
            yield both(side, load, [(name, 0) for name in names], size, yard)
        load.close()


def partitions(sizes: Sequence[int], yard: Yardstick) -> Iterator[Point]:
    for size in sizes:
        with on_first_core() as side:
            create(side, [topic("one", size)])
            load = Load(side)
            yield both(side, load, [("one", n) for n in range(size)], size, yard)
            load.close()


def connections(sizes: Sequence[int], yard: Yardstick) -> Iterator[Point]:
    with on_first_core() as side:
        create(side, [topic("one", IN_FLIGHT)])
        for size in sizes:
            load = Load(side, size)
            yield both(side, load, [("one", n) for n in range(IN_FLIGHT)], size, yard)
            load.close()


def groups(sizes: Sequence[int], yard: Yardstick) -> Iterator[Point]:
    with on_first_core() as side:
        create(side, [topic("one")])
        load = Load(side)
        for size in sizes:
            frames = [committed(f"group-{n}") for n in range(size)]
            cost = yard.cost(load, frames)
            yield Point(size, {"OffsetCommit": cost}, side.resident_bytes / 1e6)
        load.close()


def log_bytes(sizes: Sequence[int], yard: Yardstick) -> Iterator[Point]:
    """Measure logs of given sizes in MB, with batches of 10 KB.

    Each read begins at a random offset and returns one batch.
    """
    batch = encode_batch([(None, b"x" * (FILLING_BYTES // 10), (), 1_700_000_000_000)] * 10)
    for size in sizes:
        with on_first_core() as side:
            create(side, [topic("one")])
            load, count = Load(side), size * 1_000_000 // FILLING_BYTES
            load.once([produced("one", 0, batch)] * count)
            places = random.Random(7).choices(range(count * 10), k=10_000)
            cpu = {"Fetch, 10 KB": yard.cost(load, [fetched("one", 0, at) for at in places])}
            cpu["Produce"] = yard.cost(load, [produced("one", 0)])
            yield Point(size, cpu, side.resident_bytes / 1e6)
            load.close()


def both(side: Side, load: Load, places: Sequence[tuple[str, int]], x: int, yard: Yardstick) -> Point:
    """Measure Produce and then Fetch requests that go to all given partitions in turn."""
    cpu = {
        "Produce": yard.cost(load, [produced(*place) for place in places]),
        "Fetch": yard.cost(load, [fetched(*place) for place in places]),
    }
    return Point(x, cpu, side.resident_bytes / 1e6)


AXES = {
    "topics": Axis("topics, one partition each", (1, 10, 100, 1_000, 10_000), topics),
    "partitions": Axis("partitions of one topic", (1, 10, 100, 1_000, 10_000), partitions),
    "connections": Axis("connections that take turns", (16, 100, 1_000, 5_000), connections),
    "groups": Axis("groups that commit in turn", (1, 10, 100, 1_000), groups),
    "log": Axis("megabytes in one partition", (1, 10, 100, 1_000, 10_000), log_bytes),
}


# --- the page -----------------------------------------------------------------------------------------------

HEAD = """# What a record costs as a broker grows

`python benchmarks/scale.py --publish` writes this page and its pictures. Raw sockets ask a broker on
disk, kept to one core: {in_flight} requests in flight, each on a connection of its own. Each goes to
the next topic, partition, connection or group, so that none is asked twice in a row. CPU is the
broker's for a request with one record of 100 bytes: the median of {rounds} ratios to the cost of a
Produce at a second broker, which never grows and is asked in between, times the least that this took.
Memory is what the broker has resident afterwards.

Measured on {machine} with {cores} cores, Python {python}, other work on it (load {load:.0f}); axes end
where this machine gets too small. [What it costs](speed.md) has the figures beside other systems.
"""


def page(found: dict[str, list[Point]], rounds: int) -> str:
    text = HEAD.format(
        in_flight=IN_FLIGHT,
        rounds=rounds,
        machine=f"{platform.system()} {platform.machine()}",
        cores=os.cpu_count(),
        python=platform.python_version(),
        load=os.getloadavg()[0],
    )
    for name, points in found.items():
        requests = list(points[0].cpu)
        text += f"\n## {name.capitalize()}\n\n"
        text += f"![Cost and memory by {AXES[name].word}](../pictures/scale-{name}.svg)\n\n"
        text += f"| {AXES[name].word.capitalize()} | " + " | ".join(f"{each}, µs" for each in requests)
        text += " | Memory, MB |\n|---|" + "---|" * (len(requests) + 1) + "\n"
        for point in points:
            costs = " | ".join(f"{point.cpu[each]:.0f}" for each in requests)
            text += f"| {point.x:,} | {costs} | {point.resident_mb:,.0f} |\n"
    return text


def drawn(name: str, points: Sequence[Point]) -> str:
    xs = [point.x for point in points]
    curves = {each: [point.cpu[each] for point in points] for each in points[0].cpu}
    memory = {"resident": [point.resident_mb for point in points]}
    panels = [Panel("CPU of the broker, µs a request", xs, curves), Panel("Memory, MB", xs, memory)]
    return picture(panels, AXES[name].word)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="short runs, one round")
    parser.add_argument("--only", choices=AXES, action="append", help="this axis; may be repeated")
    parser.add_argument("--most", type=int, default=1 << 40, help="leave out larger sizes")
    parser.add_argument("--publish", action="store_true", help="write the page and the pictures")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    seconds, rounds = (0.2, 2) if options.quick else (0.05, 25)
    found = {}
    with on_first_core() as still:
        yard = Yardstick(still, seconds, rounds)
        for name in options.only or AXES:
            sizes = [size for size in AXES[name].sizes if size <= options.most]
            found[name] = list(AXES[name].points(sizes, yard))
    for name, ratios in found.items():
        points = found[name] = [
            point._replace(cpu={each: ratio * yard.least_us for each, ratio in point.cpu.items()})
            for point in ratios
        ]
        rows = [
            (f"{point.x:,}", *(f"{cost:.1f}" for cost in point.cpu.values()), f"{point.resident_mb:,.0f}")
            for point in points
        ]
        print_table(AXES[name].word, ("", *points[0].cpu, "MB"), rows)
        if options.publish:
            (PICTURES / f"scale-{name}.svg").write_text(drawn(name, points), encoding="utf-8")
    if options.publish:
        PAGE.write_text(page(found, rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
