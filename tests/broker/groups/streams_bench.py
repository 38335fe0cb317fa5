"""A test broker without sockets for members of streams groups (KIP-1071); the test moves the clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broker.bench_node import NOW_MS, ask, make_node, make_topic
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.clock import ManualClock
from penstock.log.segments.salvage import sound_batches
from penstock.protocol import messages
from penstock.protocol.messages import streams_group_heartbeat_request as asked
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest
from penstock.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from penstock.records.batch import decode_batch

NAMES = {
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}

TaskList = dict[str, list[int]]


def internal(name: str, partitions: int = 0, factor: int = 0, **configs: str) -> asked.TopicInfo:
    return asked.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=factor,
        topic_configs=[
            asked.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def topology_of(*subtopologies: asked.Subtopology, epoch: int = 0) -> asked.Topology:
    return asked.Topology(epoch=epoch, subtopologies=list(subtopologies))


def subtopology(number: int, *sources: str, **more: Any) -> asked.Subtopology:
    fields: dict[str, Any] = {
        "subtopology_id": str(number),
        "source_topics": list(sources),
        "source_topic_regex": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "state_changelog_topics": [],
        "copartition_groups": [],
    }
    return asked.Subtopology(**(fields | more))


def word_count(epoch: int = 0) -> asked.Topology:
    """Return the topology of a word count application.

    Lines of topic ``t`` become words in the repartition topic ``r``; the counts are stored in the changelog
    topic ``c``.
    """
    return topology_of(
        subtopology(0, "t", repartition_sink_topics=["r"]),
        subtopology(
            1,
            repartition_source_topics=[internal("r")],
            state_changelog_topics=[internal("c", cleanup_policy="compact")],
        ),
        epoch=epoch,
    )


def task_ids(tasks: TaskList | None) -> list[asked.TaskIds] | None:
    if tasks is None:
        return None
    return [asked.TaskIds(subtopology_id=each, partitions=indexes) for each, indexes in tasks.items()]


def tasks_in(listed: Any) -> TaskList | None:
    """Return the tasks of a response field as a dict from subtopology to partitions; None stays None."""
    return None if listed is None else {each.subtopology_id: sorted(each.partitions) for each in listed}


class StreamsBench:
    """A test broker with a topic ``t`` of 3 partitions, for requests about streams groups.

    `store` and `clock` outlive it, so that another can start on them after a restart.
    """

    def __init__(
        self, store: LogStore | None = None, clock: ManualClock | None = None, **settings: Any
    ) -> None:
        self.clock = clock or ManualClock(NOW_MS)
        self.store = store or MemoryStore(1, self.clock)
        self.settings = settings
        self.node = make_node(self.store, self.clock, **settings)
        if "t" not in self.node.cluster.topics:
            make_topic(self.node, "t", partitions=3)

    def restarted(self) -> StreamsBench:
        """Return another broker that starts on the same store and clock."""
        return StreamsBench(self.store, self.clock, **self.settings)

    def wait(self, seconds: float) -> None:
        """Move the clock, and fire the group timers that are due."""
        self.clock.advance(round(seconds * 1000))
        self.node.groups.settle(self.clock.monotonic())

    def beat(
        self,
        member: str,
        epoch: int,
        *,
        owned: tuple[TaskList, TaskList] | None = None,
        topology: asked.Topology | None = None,
        process: str | None = None,
        group: str = "g",
        version: int = 1,
        **more: Any,
    ) -> Any:
        """Send a StreamsGroupHeartbeat and return the response.

        `owned` is a pair: the member's active tasks and its standby tasks.
        """
        active, standby = owned or (None, None)
        fields: dict[str, Any] = {
            "group_id": group,
            "member_id": member,
            "member_epoch": epoch,
            "topology": topology,
            "process_id": process,
            "active_tasks": task_ids(active),
            "standby_tasks": task_ids(standby),
            "warmup_tasks": None if owned is None else [],
        }
        return ask(self.node, asked.StreamsGroupHeartbeatRequest(**(fields | more)), version)

    def join(
        self,
        member: str,
        topology: asked.Topology | None = None,
        *,
        process: str | None = None,
        **more: Any,
    ) -> Any:
        fields: dict[str, Any] = {"rebalance_timeout_ms": 60_000}
        return self.beat(
            member,
            0,
            owned=({}, {}),
            topology=topology or word_count(),
            process=process or member,
            **(fields | more),
        )

    def settle(
        self, *members: str, group: str = "g", rounds: int = 4
    ) -> dict[str, tuple[TaskList, TaskList]]:
        """Send heartbeats of members until their tasks are stable.

        Returns the active and the standby tasks of each member.
        """
        described = {each.member_id: each for each in self.describe(group).members}
        epochs = {member: described[member].member_epoch for member in members}
        owned: dict[str, tuple[TaskList, TaskList]] = {}
        for _ in range(rounds):
            self.wait(1.5)
            for _ in range(3):
                for member in members:
                    answer = self.beat(member, epochs[member], owned=owned.get(member), group=group)
                    assert answer.error_code == 0, answer.error_message
                    epochs[member] = answer.member_epoch
                    active, standby = tasks_in(answer.active_tasks), tasks_in(answer.standby_tasks)
                    if active is not None and standby is not None:
                        owned[member] = active, standby
        self.epochs = epochs
        return self.assigned(group)

    def assigned(self, group: str = "g") -> dict[str, tuple[TaskList, TaskList]]:
        """Return the active and the standby tasks of each member."""
        return {
            member.member_id: (
                tasks_in(member.assignment.active_tasks) or {},
                tasks_in(member.assignment.standby_tasks) or {},
            )
            for member in self.describe(group).members
        }

    def describe(self, group: str = "g", **more: Any) -> Any:
        return ask(self.node, StreamsGroupDescribeRequest(group_ids=[group], **more), 1).groups[0]

    def delete_group(self, group: str = "g") -> int:
        response = ask(self.node, DeleteGroupsRequest(groups_names=[group]), 2)
        code: int = response.results[0].error_code
        return code

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
