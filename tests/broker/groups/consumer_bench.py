"""A test broker without sockets for members of consumer groups (KIP-848); the test moves the clock."""

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
    """A test broker with a topic ``t`` of 4 partitions, for requests of KIP-848 members.

    `store` and `clock` outlive it, so that another can start on them after a restart.
    """

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
        """Return another broker that starts on the same store and clock."""
        return ConsumerBench(self.store, self.clock, **self.settings)

    def wait(self, seconds: float) -> None:
        """Move the clock, and fire the group timers that are due."""
        self.clock.advance(round(seconds * 1000))
        self.node.groups.settle(self.clock.monotonic())

    def topic_id(self, name: str) -> bytes:
        topic_id: bytes = self.node.cluster.topics[name].id
        return topic_id

    def beat(self, member: str, epoch: int, group: str = "g", version: int = 1, **fields: Any) -> Any:
        """Send a ConsumerGroupHeartbeat and return the response.

        `owned` lists partition numbers of ``t``, or is a dict from topic name to partition numbers.
        """
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
        """Return the assignment in a response, as a dict from topic to partitions; None without one."""
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
        """Commit offset 5 for partitions of ``t``; return the error code of each partition."""
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
