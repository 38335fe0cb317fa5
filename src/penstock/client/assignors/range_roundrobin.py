"""The range and round-robin assignors, which disregard earlier assignments."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.assignors.base import Assignment, Assignor, java_order, ordered
from penstock.client.assignors.member_metadata import Subscription
from penstock.model import TopicPartition


class RangeAssignor(Assignor):
    """Assigns each member a range of consecutive partitions of every topic, as Kafka's RangeAssignor."""

    name = "range"

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
        assignment: Assignment = {member_id: [] for member_id in members}
        in_order = ordered(members)
        for topic, count in partition_counts.items():
            takers = [member_id for member_id in in_order if topic in members[member_id].topics]
            if not takers:
                continue
            share, rest = divmod(count, len(takers))
            first = 0
            for index, member_id in enumerate(takers):
                last = first + share + (index < rest)
                assignment[member_id] += [TopicPartition(topic, number) for number in range(first, last)]
                first = last
        return assignment


class RoundRobinAssignor(Assignor):
    """Assigns the sorted partitions of all topics to the members in turn."""

    name = "roundrobin"

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
        assignment: Assignment = {member_id: [] for member_id in members}
        circle = ordered(members)
        subscribed = {topic for member in members.values() for topic in member.topics}
        at = 0
        for topic in sorted(subscribed & partition_counts.keys(), key=java_order):
            for number in range(partition_counts[topic]):
                while topic not in members[circle[at % len(circle)]].topics:
                    at += 1
                assignment[circle[at % len(circle)]].append(TopicPartition(topic, number))
                at += 1
        return assignment
