"""Members of consumer groups (KIP-848) at a broker without sockets, with a clock that moves when told to."""

from __future__ import annotations

from typing import Any

from broker.bench_node import NOW_MS, ask, make_node, make_topic
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.clock import ManualClock
from penstock.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from penstock.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

REBALANCE_MS = 30_000


class ConsumerBench:
    """One broker with a topic ``t`` of 4 partitions. `store` and `clock` outlive it."""

    def __init__(
        self, store: LogStore | None = None, clock: ManualClock | None = None, **settings: object
    ) -> None:
        self.clock = clock or ManualClock(NOW_MS)
        self.store = store or MemoryStore(1, self.clock)
        self.settings = settings
        self.node = make_node(self.store, self.clock, **settings)
        if "t" not in self.node.cluster.topics:
            make_topic(self.node, "t", partitions=4)

    def restarted(self) -> ConsumerBench:
        """Another broker on the same store."""
        return ConsumerBench(self.store, self.clock, **self.settings)

    def wait(self, seconds: float) -> None:
        """Let time pass, and fire what is due."""
        self.clock.advance(round(seconds * 1000))
        self.node.groups.settle(self.clock.monotonic())

    def topic_id(self, name: str) -> bytes:
        topic_id: bytes = self.node.cluster.topics[name].id
        return topic_id

    def beat(self, member: str, epoch: int, group: str = "g", version: int = 1, **fields: Any) -> Any:
        """Send a heartbeat. `owned` are numbers of partitions of ``t``, or a mapping by topic."""
        if "owned" in fields:
            owned = fields.pop("owned")
            if isinstance(owned, list):
                owned = {"t": owned} if owned else {}
            fields["topic_partitions"] = (
                None
                if owned is None
                else [
                    TopicPartitions(topic_id=self.topic_id(name), partitions=indexes)
                    for name, indexes in owned.items()
                ]
            )
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **fields
        )
        return ask(self.node, request, version)

    def join(self, member: str, group: str = "g", version: int = 1, **fields: Any) -> Any:
        fields = {"rebalance_timeout_ms": REBALANCE_MS, "owned": [], **fields}
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", ["t"])
        return self.beat(member, 0, group, version, **fields)

    def assigned(self, response: Any) -> dict[str, list[int]] | None:
        """The partitions in an answer by topic; None where it has no assignment."""
        if response.assignment is None:
            return None
        names = {topic.id: name for name, topic in self.node.cluster.topics.items()}
        return {
            names[each.topic_id]: sorted(each.partitions) for each in response.assignment.topic_partitions
        }

    def describe(self, group: str = "g", version: int = 1) -> Any:
        return ask(self.node, ConsumerGroupDescribeRequest(group_ids=[group]), version).groups[0]

    def commit(
        self,
        member: str,
        epoch: int,
        partitions: tuple[int, ...] = (0,),
        group: str = "g",
        version: int = 9,
        instance: str | None = None,
    ) -> list[int]:
        """Commit offset 5 of partitions of ``t``; return their errors."""
        request = OffsetCommitRequest(
            group_id=group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            group_instance_id=instance,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    topic_id=self.topic_id("t"),
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index, committed_offset=5, committed_metadata=""
                        )
                        for index in partitions
                    ],
                )
            ],
        )
        response = ask(self.node, request, version)
        return [partition.error_code for topic in response.topics for partition in topic.partitions]
