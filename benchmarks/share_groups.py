"""Measure KIP-848 and share groups in the broker: idle members, rebalances, records per second.

    python benchmarks/share_groups.py [--quick] [--rounds N]

Penstock and Apache Kafka 4.3 are measured in turn; without Java, only Penstock. The load comes from raw
sockets and is equal for both brokers. CPU is that of all threads of the broker, and the better figure on a
machine with other load. Both brokers compute each assignment without delay
(`group.consumer.assignment.interval.ms=0`).
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Mapping
from typing import Any

from broker_sides import Side
from groups import Peer
from harness import print_table
from heartbeat_groups import (
    RETRIED,
    Kind,
    compare,
    heading,
    names,
    print_idle,
    print_rebalances,
    ratio,
    set_group_config,
    wait_for_coordinator,
)
from penstock.protocol.messages import share_fetch_request as fetching
from penstock.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.records.batch import encode_batch

SETTINGS = {
    "group.consumer.min.assignment.interval.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.share.min.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}
BEAT, SHARE_BEAT, SHARE_FETCH = 1, 1, 2


async def topic_id_of(peer: Peer, name: str, partitions: int) -> bytes:
    """Make a topic; return its id."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    made = await peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    assert made.topics[0].error_code == 0, made.topics[0].error_message
    return bytes(made.topics[0].topic_id)


class Member:
    """A consumer group member that accepts and gives up partitions as soon as the broker requires it."""

    def __init__(self, peer: Peer, group: str, topic: str, number: int) -> None:
        self.peer = peer
        self.group, self.topic = group, topic
        self.id = f"member-{number:04}"
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}

    @property
    def count(self) -> int:
        """The number of partitions that the member owns."""
        return sum(map(len, self.owned.values()))

    async def beat(self) -> bool:
        """Send a heartbeat; return True if the response changes the member's partitions."""
        is_new = self.epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=60_000 if is_new else -1,
            subscribed_topic_names=[self.topic] if is_new else None,
            topic_partitions=[] if is_new else self._said,
        )
        while (answer := await self.peer.ask(request, BEAT)).error_code in RETRIED:
            await asyncio.sleep(0.02)
        assert answer.error_code == 0, (answer.error_code, answer.error_message)
        self.epoch, self._said = answer.member_epoch, None
        if answer.assignment is None:
            return False
        self.owned = {
            bytes(each.topic_id): list(each.partitions) for each in answer.assignment.topic_partitions
        }
        self._said = [TopicPartitions(topic_id=key, partitions=value) for key, value in self.owned.items()]
        return True

    _said: list[TopicPartitions] | None = None

    async def leave(self) -> None:
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.id, member_epoch=-1)
        await self.peer.ask(request, BEAT)
        await self.peer.close()


def is_even(members: list[Member], partitions: int) -> bool:
    """Return True if the members own all partitions, and their counts differ by at most one."""
    least, more = divmod(partitions, len(members))
    counts = [member.count for member in members]
    return sum(counts) == partitions and max(counts) <= least + bool(more) and min(counts) >= least


CONSUMERS = Kind(topic_id_of, wait_for_coordinator, Member, is_even)


# --- share groups -------------------------------------------------------------------------------------------


async def fill(target: Side, topic: str, partitions: int, records: int) -> None:
    """Produce records of 100 bytes, in batches of 500."""
    peer = await Peer.open(target)
    now_ms = int(time.time() * 1000)
    batch = encode_batch([(None, b"v" * 100, (), now_ms)] * 500)
    for number in range(records // 500):
        data = PartitionProduceData(index=number % partitions, records=batch)
        topic_data = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topic_data)
        while (await peer.ask(request, 7)).responses[0].partition_responses[0].error_code:
            await asyncio.sleep(0.05)
    await peer.close()


async def share(
    target: Side, members: int, records: int, each: int, *, is_mixed: bool = False, is_exact: bool = False
) -> tuple[float, float]:
    """Return the records per second that members of a share group accept, and the broker's CPU seconds.

    With `is_mixed` every tenth record is first released, which splits the ranges of in-flight records.
    With `is_exact` a fetch returns no more than `each` records (``record_limit``).
    """
    partitions = 4
    control = await Peer.open(target)
    name = f"share-{next(names)}-{os.getpid()}"
    topic_id = await topic_id_of(control, name, partitions)
    await set_group_config(control, name, "share.auto.offset.reset", "earliest")
    await wait_for_coordinator(control, name)
    await fill(target, name, partitions, records)
    left = records

    async def assigned(number: int, peer: Peer) -> str:
        member, epoch, known = f"member-{number}-{os.getpid()}", 0, 0
        while known < partitions:
            request = ShareGroupHeartbeatRequest(
                group_id=name,
                member_id=member,
                member_epoch=epoch,
                subscribed_topic_names=None if epoch else [name],
            )
            answer = await peer.ask(request, SHARE_BEAT)
            assert answer.error_code in (0, *RETRIED), answer.error_message
            if not answer.error_code:
                epoch = answer.member_epoch
            if answer.assignment is not None:
                known = sum(len(found.partitions) for found in answer.assignment.topic_partitions)
            if number == 0 and known < partitions:
                await asyncio.sleep(0.1)
            elif known:
                break
        return member

    async def take_part(member: str, peer: Peer) -> None:
        nonlocal left
        epoch = 0
        said: Mapping[int, list[Any]] = {}
        while left > 0:
            asked = [
                fetching.FetchPartition(partition_index=index, acknowledgement_batches=said.get(index, []))
                for index in (said if epoch else range(partitions))
            ]
            request = fetching.ShareFetchRequest(
                group_id=name,
                member_id=member,
                share_session_epoch=epoch,
                max_wait_ms=50,
                min_bytes=1,
                max_bytes=50 << 20,
                max_records=each,
                batch_size=each,
                share_acquire_mode=int(is_exact),
                topics=[fetching.FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [],
            )
            answer = await peer.ask(request, SHARE_FETCH)
            assert answer.error_code == 0, answer.error_message
            epoch += 1
            said = {}
            for topic in answer.responses:
                for part in topic.partitions:
                    assert part.acknowledge_error_code == 0, part.acknowledge_error_message
                    batches = []
                    for found in part.acquired_records:
                        count = found.last_offset - found.first_offset + 1
                        types = [1]
                        if is_mixed and found.delivery_count == 1:
                            types = [2 if offset % 10 == 0 else 1 for offset in range(count)]
                        left -= count if types == [1] else types.count(1)
                        batches.append(
                            fetching.AcknowledgementBatch(
                                first_offset=found.first_offset,
                                last_offset=found.last_offset,
                                acknowledge_types=types,
                            )
                        )
                    if batches:
                        said[part.partition_index] = batches
        await peer.close()

    beating = [await Peer.open(target) for _ in range(members)]
    ids = [await assigned(number, peer) for number, peer in enumerate(beating)]
    fetchers = [await Peer.open(target) for _ in range(members)]
    cpu, start = target.cpu_seconds, time.perf_counter()
    async with asyncio.timeout(300):
        await asyncio.gather(*(take_part(*pair) for pair in zip(ids, fetchers, strict=True)))
    seconds, used = time.perf_counter() - start, target.cpu_seconds - cpu
    for peer, member in zip(beating, ids, strict=True):
        leave = ShareGroupHeartbeatRequest(group_id=name, member_id=member, member_epoch=-1)
        await peer.ask(leave, SHARE_BEAT)
        await peer.close()
    return records / seconds, used


# --- all of it ----------------------------------------------------------------------------------------------


async def run(targets: list[Side], rounds: int, quick: bool) -> None:
    await print_idle(CONSUMERS, targets, rounds, quick, "consumer")
    await print_rebalances(CONSUMERS, targets, rounds, quick, "{} partitions")
    rows = []
    records = 20_000 if quick else 200_000
    for title, amount, each, kind in (
        ("whole batches", records, 500, {}),
        ("record_limit, 10 a fetch", records // 10, 10, {"is_exact": True}),
        ("every tenth is released once", records // 4, 500, {"is_mixed": True}),
    ):
        for target in targets:
            await share(target, 4, amount, each, **kind)
        results = [
            [await share(target, 4, amount, each, **kind) for target in targets] for _ in range(rounds)
        ]
        rates = [statistics.median(r[side][0] for r in results) for side in range(len(targets))]
        cpus = [statistics.median(r[side][1] for r in results) for side in range(len(targets))]
        rows.append((f"{title}: records/s", *(f"{rate:,.0f}" for rate in rates), ratio(rates)))
        rows.append((f"{title}: CPU µs/record", *(f"{cpu / amount * 1e6:.2f}" for cpu in cpus), ratio(cpus)))
    print_table("Share groups, 4 members, 4 partitions", heading(targets), rows)


if __name__ == "__main__":
    compare("Groups of KIP-848 and share groups at the broker", SETTINGS, run)
