"""A test broker without sockets for members of share groups (KIP-932); the test moves the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker.bench_node import NOW_MS, ask, make_node, make_topic
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.log.segments.salvage import sound_batches
from penstock.protocol import messages
from penstock.protocol.messages import alter_share_group_offsets_request as alter
from penstock.protocol.messages import delete_share_group_offsets_request as delete
from penstock.protocol.messages import describe_share_group_offsets_request as describe
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.records.batch import decode_batch

NAMES = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
}


class ShareBench:
    """A test broker with a topic ``t`` of 4 partitions, for requests about share groups.

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

    def restarted(self) -> ShareBench:
        """Return another broker that starts on the same store and clock."""
        return ShareBench(self.store, self.clock, **self.settings)

    def wait(self, seconds: float) -> None:
        """Move the clock, and fire the group timers that are due."""
        self.clock.advance(round(seconds * 1000))
        self.node.groups.settle(self.clock.monotonic())

    def topic_id(self, name: str = "t") -> bytes:
        topic_id: bytes = self.node.cluster.topics[name].id
        return topic_id

    def beat(
        self, member: str, epoch: int, *topics: str, group: str = "g", rack_id: str | None = None
    ) -> Any:
        """Send a ShareGroupHeartbeat and return the response.

        Without topics the request leaves the subscription as it is.
        """
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack_id,
            subscribed_topic_names=list(topics) or None,
        )
        return ask(self.node, request, 1)

    def join(self, member: str, *topics: str, group: str = "g") -> Any:
        return self.beat(member, 0, *(topics or ("t",)), group=group)

    def settled(self, *members: str, group: str = "g") -> dict[str, dict[str, list[int]]]:
        """Join members and send heartbeats until their assignments are stable.

        Returns a dict from member to assignment.
        """
        epochs = {member: self.join(member, group=group).member_epoch for member in members}
        for _ in range(3):
            self.wait(1.1)
            for member in members:
                epochs[member] = self.beat(member, epochs[member], group=group).member_epoch
        return self.assigned(group)

    def assigned(self, group: str = "g") -> dict[str, dict[str, list[int]]]:
        """Return the assignment of each member, as a dict from topic to partitions."""
        return {
            member.member_id: {
                topic.topic_name: sorted(topic.partitions) for topic in member.assignment.topic_partitions
            }
            for member in self.describe(group).members
        }

    def describe(self, group: str = "g") -> Any:
        return ask(self.node, ShareGroupDescribeRequest(group_ids=[group]), 1).groups[0]

    def delete_group(self, group: str = "g") -> int | None:
        """Delete a group; return the error code, or None if the share coordinator has not answered yet."""
        response = ask(self.node, DeleteGroupsRequest(groups_names=[group]), 2)
        if isinstance(response, Wait):
            return None
        code: int = response.results[0].error_code
        return code

    def offsets(
        self, group: str = "g", topics: dict[str, list[int]] | None = None
    ) -> dict[str, dict[int, tuple[int, int]]]:
        """Return the start offset and the lag of each partition, in a dict for each topic."""
        named = topics and [
            describe.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
        asked = describe.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)
        response = ask(self.node, describe.DescribeShareGroupOffsetsRequest(groups=[asked]), 1)
        assert response.groups[0].error_code == 0, response.groups[0].error_message
        return {
            topic.topic_name: {
                each.partition_index: (each.start_offset, each.lag) for each in topic.partitions
            }
            for topic in response.groups[0].topics
        }

    def alter(self, starts: dict[tuple[str, int], int], group: str = "g") -> Any:
        """Send AlterShareGroupOffsets with start offsets; return the response."""
        topics: dict[str, alter.AlterShareGroupOffsetsRequestTopic] = {}
        for (name, index), start in starts.items():
            topic = topics.setdefault(name, alter.AlterShareGroupOffsetsRequestTopic(topic_name=name))
            topic.partitions.append(
                alter.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=start)
            )
        request = alter.AlterShareGroupOffsetsRequest(group_id=group, topics=list(topics.values()))
        return ask(self.node, request, 0)

    def drop(self, *topics: str, group: str = "g") -> Any:
        """Send DeleteShareGroupOffsets for topics; return the response."""
        named = [delete.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        return ask(self.node, delete.DeleteShareGroupOffsetsRequest(group_id=group, topics=named), 0)

    # --- what is stored ----------------------------------------------------------------------------------

    def batches(self, group: str = "g") -> Iterator[list[tuple[int, Any, Any]]]:
        """Yield the records of each batch in the group's partition of `__consumer_offsets`.

        A record is a tuple of type, key and value; the value of a tombstone is True.
        """
        for segment in self.node.groups.topic.partition(group).log.segments:
            for batch, _ in sound_batches(segment, lambda position, size: None):
                rows = []
                for row in decode_batch(batch, 0, len(batch), "t", 0):
                    assert row.key is not None
                    key_type = int.from_bytes(row.key[:2], "big")
                    key = value = None
                    if key_type in NAMES:
                        key = getattr(messages, f"{NAMES[key_type]}Key").decode(row.key[2:], 0)
                        if row.value is not None:
                            value_class = getattr(messages, f"{NAMES[key_type]}Value")
                            value = value_class.decode(row.value[2:], 0)
                    rows.append((key_type, key, row.value is None or value))
                yield rows

    def order(self, group: str = "g") -> list[list[int]]:
        """Return the record types of each batch in the group's partition; tombstones have negative types."""
        return [
            [-key_type if value is True else key_type for key_type, _, value in batch]
            for batch in self.batches(group)
        ]
