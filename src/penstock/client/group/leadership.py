"""The work of a group's leader in the classic protocol: all subscriptions, and the assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.client.assignors.base import Assignor
from penstock.client.assignors.member_metadata import Subscription
from penstock.model import TopicPartition


class Leadership:
    """A leader's data about its group: all members, and the partition counts of the current assignment."""

    def __init__(self) -> None:
        self.members: Mapping[str, Subscription] = {}
        """A dict from member id to the member's subscription, for all members."""
        self.counts: Mapping[str, int] | None = {}
        """The number of partitions of each topic at the last assignment; None before this leader has the
        counts."""

    @property
    def topics(self) -> set[str]:
        """The topics that any member subscribes to."""
        return {topic for member in self.members.values() for topic in member.topics}

    def update_counts(self, counts: Mapping[str, int]) -> bool:
        """Return True if partition counts differ from those of the last assignment: a rebalance is needed.

        If the leader has no counts yet, store these counts and return False.
        """
        if self.counts is None:
            self.counts = dict(counts)
            return False
        known = self.counts
        return any(counts.get(topic, 0) != known.get(topic, 0) for topic in self.topics)

    def assign(self, assignor: Assignor, counts: Mapping[str, int]) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the assignment that `assignor` computes for the existing topics. Raises its errors."""
        self.counts = present = {topic: count for topic, count in counts.items() if count > 0}
        return assignor.assign(present, self.members)
