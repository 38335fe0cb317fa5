"""A scripted broker with one share group: locks on records, and the session rules of KIP-932."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from client.fake_broker import FakeBroker
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages import share_acknowledge_response as acknowledged
from penstock.protocol.messages import share_fetch_response as fetched
from penstock.protocol.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.records.batch import encode_batch

TOPIC = "t"
ACCEPTED, RELEASED, REJECTED = 1, 2, 3


class FakeQueue:
    """A scripted share group on topic ``t`` with one partition, which starts at the first record."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.lock_ms = 30_000
        self.epoch = 0
        self.session: int | None = None
        """The session epoch that the next request must have; None without a session."""
        self.counts: dict[int, int] = {}
        self.free: set[int] = set()
        self.locked: set[int] = set()
        self.final: dict[int, int] = {}
        """A dict from offset to the type of its final acknowledgement."""
        self.renewals = asyncio.Event()
        self.changed = asyncio.Event()
        self.left = False
        self.moved_to: FakeQueue | None = None
        """The queue of the broker that now leads the partition; None if it has not moved."""
        self.is_hint = False
        broker.always(ApiKey.SHARE_GROUP_HEARTBEAT, self.heartbeat)
        broker.always(ApiKey.SHARE_FETCH, self.fetch)
        broker.always(ApiKey.SHARE_ACKNOWLEDGE, self.acknowledge)

    def produce(self, *values: bytes) -> None:
        log = self.broker.logs[TOPIC, 0]
        self.free |= set(range(log.end, log.end + len(values)))
        log.append(encode_batch([(None, value, (), 1_000) for value in values]))
        self.changed.set()

    def heartbeat(self, broker: FakeBroker, header: Any, request: Any) -> Any:
        if request.member_epoch < 0:
            self.left = True
            return ShareGroupHeartbeatResponse(member_epoch=-1)
        self.epoch += 1
        topics = [TopicPartitions(topic_id=broker.topic_id(TOPIC), partitions=[0])]
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.epoch,
            heartbeat_interval_ms=50,
            assignment=Assignment(topic_partitions=topics),
        )

    def _check(self, epoch: int) -> int:
        """Check a request's session epoch, and count the request; return the error code."""
        if self.session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == -1:
            return 0
        if epoch != self.session:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        self.session += 1
        return 0

    def end_session(self) -> None:
        """Release all locks, as when the connection of the session ends."""
        self.session = None
        self.free |= self.locked
        self.locked.clear()

    def move_to(self, other: FakeQueue, *, is_hint: bool = False) -> None:
        """Make another broker the leader of the partition; locked records are free there.

        With `is_hint` only error responses about the partition name the new leader, and metadata do not.
        """
        self.moved_to, self.is_hint = other, is_hint
        other.broker.logs = self.broker.logs
        other.free, other.counts = self.free | self.locked, self.counts
        for queue in (self, other):
            queue.broker.leaders[TOPIC, 0] = (self if is_hint else other).broker.node_id
        self.changed.set()

    def hint(self, answer: Any, made: Any) -> Any:
        """Add the partition's new leader to a response, if there is one and `is_hint` is set."""
        if self.moved_to is None or not self.is_hint:
            return answer
        broker = self.moved_to.broker
        answer.node_endpoints = [
            made.NodeEndpoint(node_id=broker.node_id, host="127.0.0.1", port=broker.port)
        ]
        for topic in answer.responses:
            for part in topic.partitions:
                part.current_leader = made.LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=7)
        return answer

    def _apply(self, partition: Any) -> int:
        if self.moved_to is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        decided: dict[int, int] = {}
        for batch in partition.acknowledgement_batches:
            offsets = range(batch.first_offset, batch.last_offset + 1)
            types = batch.acknowledge_types
            types = types * len(offsets) if len(types) == 1 else types
            decided.update(zip(offsets, types, strict=True))
        if not decided.keys() <= self.locked:
            return ErrorCode.INVALID_RECORD_STATE
        for offset, kind in decided.items():
            if kind == 4:
                self.renewals.set()
                continue
            self.locked.discard(offset)
            if kind == RELEASED:
                self.free.add(offset)
                self.changed.set()
            else:
                self.final[offset] = kind
        return 0

    async def fetch(self, broker: FakeBroker, header: Any, request: Any) -> Any:
        if request.share_session_epoch == 0:
            self.session = 0
        code = self._check(request.share_session_epoch)
        if code:
            return fetched.ShareFetchResponse(error_code=code)
        acks = [p for topic in request.topics for p in topic.partitions if p.acknowledgement_batches]
        ack_code = self._apply(acks[0]) if acks else 0
        if not self.free and not acks:
            self.changed.clear()
            try:
                async with asyncio.timeout(request.max_wait_ms / 1000):
                    await self.changed.wait()
            except TimeoutError:
                pass
        if self.moved_to is not None:
            lost = fetched.PartitionData(
                partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=b""
            )
            topic = fetched.ShareFetchableTopicResponse(topic_id=broker.topic_id(TOPIC), partitions=[lost])
            return self.hint(fetched.ShareFetchResponse(responses=[topic]), fetched)
        taken = sorted(self.free)[: request.max_records]
        for offset in taken:
            self.free.discard(offset)
            self.locked.add(offset)
            self.counts[offset] = self.counts.get(offset, 0) + 1
        data = fetched.PartitionData(
            partition_index=0,
            acknowledge_error_code=ack_code,
            records=broker.logs[TOPIC, 0].read(taken[0], 1 << 20) if taken else b"",
            acquired_records=[
                fetched.AcquiredRecords(
                    first_offset=offset, last_offset=offset, delivery_count=self.counts[offset]
                )
                for offset in taken
            ],
        )
        topic = fetched.ShareFetchableTopicResponse(topic_id=broker.topic_id(TOPIC), partitions=[data])
        return fetched.ShareFetchResponse(
            acquisition_lock_timeout_ms=self.lock_ms, responses=[topic] if taken or acks else []
        )

    def acknowledge(self, broker: FakeBroker, header: Any, request: Any) -> Any:
        code = self._check(request.share_session_epoch)
        if code:
            return acknowledged.ShareAcknowledgeResponse(error_code=code)
        parts = [
            acknowledged.PartitionData(partition_index=0, error_code=self._apply(partition))
            for topic in request.topics
            for partition in topic.partitions
        ]
        if request.share_session_epoch == -1:
            self.end_session()
        topic = acknowledged.ShareAcknowledgeTopicResponse(topic_id=broker.topic_id(TOPIC), partitions=parts)
        answer = acknowledged.ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=self.lock_ms, responses=[topic] if parts else []
        )
        return self.hint(answer, acknowledged)


@asynccontextmanager
async def fake_queue(*values: bytes) -> AsyncIterator[FakeQueue]:
    """Run a fake broker with a share group and these records for the length of a block."""
    broker = await FakeBroker({TOPIC: 1}).start()
    try:
        queue = FakeQueue(broker)
        if values:
            queue.produce(*values)
        yield queue
    finally:
        await broker.stop()
    assert not broker.failures, broker.failures
