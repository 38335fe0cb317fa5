"""Measure consumer groups in the broker: time to the first record, commits/s, and 1,000 idle members.

    python benchmarks/groups.py [--quick] [--rounds N]

Penstock and Apache Kafka are measured in turn; without Java, only Penstock. The load comes from raw sockets
and is equal for both brokers. The members here only speak the protocol, so that the broker is measured. Both
brokers have `group.initial.rebalance.delay.ms=0`. `group_clients.py` measures the clients.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import statistics
import struct
import time
from contextlib import ExitStack
from typing import Any

from broker_sides import Side, idle_ms, kafka_side, penstock_side
from harness import arguments, print_table
from penstock.protocol.api import API_TABLE
from penstock.protocol.framing import decode_response, encode_request
from penstock.protocol.message import Message
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.records.batch import encode_batch

JOIN, SYNC, HEARTBEAT, COMMIT, FETCH, PRODUCE = 3, 2, 2, 3, 4, 7
"""Request versions that every broker from 2.0 to today supports."""


class Peer:
    """A client connection with one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, target: Side) -> Peer:
        return cls(*await asyncio.open_connection("127.0.0.1", target.port))

    async def ask(self, request: Message, version: int) -> Any:
        assert request.API_KEY is not None
        self._writer.writelines(encode_request(request, version, 1, "bench"))
        size = struct.unpack(">i", await self._reader.readexactly(4))[0]
        frame = await self._reader.readexactly(size)
        return decode_response(frame, API_TABLE[request.API_KEY].response, version)[1]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def make_topic(target: Side, name: str, partitions: int) -> None:
    """Create a topic, and write one record to each partition."""
    peer = await Peer.open(target)
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    await peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 2)
    batch = encode_batch([(b"k", b"v", (), int(time.time() * 1000))])
    for index in range(partitions):
        data = PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=name, partition_data=[data])]
        )
        while (await peer.ask(request, PRODUCE)).responses[0].partition_responses[0].error_code:
            await asyncio.sleep(0.05)
    await peer.close()


async def make_ready(target: Side, group: str) -> None:
    """Wait until a group's coordinator is ready."""
    peer = await Peer.open(target)
    while (await peer.ask(FindCoordinatorRequest(key=group), 0)).error_code:
        await asyncio.sleep(0.05)
    described = DescribeGroupsRequest(groups=[group])
    while (await peer.ask(described, 0)).groups[0].error_code:
        await asyncio.sleep(0.05)
    await peer.close()


class Sharing:
    """A group whose members get one partition each; a run lasts until each partition has been read."""

    def __init__(self, target: Side, topic: str, group: str, members: int) -> None:
        self.target, self.topic, self.group, self.members = target, topic, group, members
        self.read: set[int] = set()

    async def run(self) -> float:
        start = time.perf_counter()
        async with asyncio.timeout(120):
            await asyncio.gather(*(self._member() for _ in range(self.members)))
        return time.perf_counter() - start

    async def _member(self) -> None:
        peer = await Peer.open(self.target)
        member_id, generation = "", -1
        while len(self.read) < self.members:
            code = 27
            if generation >= 0:
                beat = HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=member_id)
                code = (await peer.ask(beat, HEARTBEAT)).error_code
            if code == 0:
                await asyncio.sleep(0.02)
                continue
            joined = await join(peer, self.group, "" if code == 25 else member_id)
            member_id, generation = joined.member_id, joined.generation_id
            synced = await sync(peer, self.group, joined, self.members)
            if synced.error_code or not synced.assignment:
                continue
            for index in struct.unpack(f">{len(synced.assignment) // 4}i", synced.assignment):
                await self._fetch(peer, index)
        await peer.close()

    async def _fetch(self, peer: Peer, index: int) -> None:
        partition = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, topics=[FetchTopic(topic=self.topic, partitions=[partition])]
        )
        response = await peer.ask(request, FETCH)
        if len(response.responses[0].partitions[0].records or b""):
            self.read.add(index)


async def join(peer: Peer, group: str, member_id: str, session_ms: int = 30_000) -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="bench",
        protocols=[JoinGroupRequestProtocol(name="share", metadata=b"")],
    )
    while (joined := await peer.ask(request, JOIN)).error_code:
        if joined.error_code == 25:
            request.member_id = ""
        await asyncio.sleep(0.01)
    return joined


async def sync(peer: Peer, group: str, joined: Any, partitions: int) -> Any:
    """Send SyncGroup and return the response; the leader assigns the partitions in turn."""
    given: dict[str, list[int]] = {member.member_id: [] for member in joined.members}
    names = sorted(given)
    for index in range(partitions if names else 0):
        given[names[index % len(names)]].append(index)
    assignments = [
        SyncGroupRequestAssignment(member_id=one, assignment=struct.pack(f">{len(own)}i", *own))
        for one, own in given.items()
    ]
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=assignments,
    )
    return await peer.ask(request, SYNC)


async def first_record_ms(target: Side, members: int, rounds: int) -> float:
    """Return the median milliseconds from the first connection to the last member's first record."""
    topic = f"first{members}"
    await make_topic(target, topic, members)
    seconds = []
    for number in range(rounds + 1):
        group = f"first-{members}-{number}-{os.getpid()}"
        await make_ready(target, group)
        seconds.append(await Sharing(target, topic, group, members).run())
    return statistics.median(seconds[1:]) * 1000


async def commits(target: Side, connections: int, seconds: float) -> tuple[float, float]:
    """Return the commits per second, of one partition each, and the broker's CPU microseconds per commit."""
    counts = [0] * connections
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="committed", partitions=[partition])
    until = 0.0

    async def load(index: int) -> None:
        group = f"commits-{index}"
        await make_ready(target, group)
        peer = await Peer.open(target)
        request = OffsetCommitRequest(group_id=group, topics=[topic])
        ready.release()
        await go.wait()
        while time.perf_counter() < until:
            response = await peer.ask(request, COMMIT)
            assert response.topics[0].partitions[0].error_code == 0
            counts[index] += 1
        await peer.close()

    ready, go = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(load(index)) for index in range(connections)]
    for _ in tasks:
        await ready.acquire()
    cpu, start = target.cpu_seconds, time.perf_counter()
    until = start + seconds
    go.set()
    await asyncio.gather(*tasks)
    rate = sum(counts) / (time.perf_counter() - start)
    return rate, (target.cpu_seconds - cpu) / sum(counts) * 1e6


async def idle_cpu(target: Side, members: int, seconds: float) -> float:
    """Return the broker's CPU ms per second for members that only send a heartbeat every 3 seconds."""
    peers = []
    for number in range(members):
        group = f"idle-{number}"
        if number < 60:
            await make_ready(target, group)
        peer = await Peer.open(target)
        joined = await join(peer, group, "")
        await sync(peer, group, joined, 1)
        peers.append((peer, HeartbeatRequest(group_id=group, generation_id=1, member_id=joined.member_id)))

    beats = [functools.partial(peer.ask, request, HEARTBEAT) for peer, request in peers]
    used = await idle_ms(target, beats, 3, seconds)
    for peer, _ in peers:
        await peer.close()
    return used


async def run(targets: list[Side], rounds: int, quick: bool) -> None:
    seconds = 1.0 if quick else 3.0
    names = [target.name for target in targets]
    rows = []
    for members in (1, 10, 50):
        figures = [await first_record_ms(target, members, rounds) for target in targets]
        rows.append((f"{members} members", *(f"{figure:,.1f}" for figure in figures)))
    print_table("From joining to the last member's first record, ms", ("", *names), rows)
    rows = []
    for target in targets:
        await make_topic(target, "committed", 1)
    for connections in (1, 16):
        for target in targets:
            await commits(target, connections, 1.0 if quick else 4.0)  # for the JVM to get warm
        pairs = [await commits(target, connections, seconds) for target in targets]
        rows.append((f"{connections} connections", *(f"{rate:,.0f} ({cpu:.0f} µs)" for rate, cpu in pairs)))
    print_table("Commits per second (the broker's CPU for one)", ("", *names), rows)
    members = 100 if quick else 1000
    figures = [await idle_cpu(target, members, 2 if quick else 9) for target in targets]
    print_table(
        "Idle members, heartbeats every 3 s: the broker's CPU, ms per second",
        ("", *names),
        [(f"{members} members", *(f"{figure:.1f}" for figure in figures))],
    )


def main() -> None:
    options = arguments("Consumer groups at the broker", rounds=5, quick_rounds=1)
    with ExitStack() as stack:
        targets = [stack.enter_context(penstock_side())]
        if shutil.which("java") and shutil.which("mvn"):
            targets.append(stack.enter_context(kafka_side()))
        asyncio.run(run(targets, options.rounds, options.quick))


if __name__ == "__main__":
    main()
