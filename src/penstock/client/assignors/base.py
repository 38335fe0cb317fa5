"""The base class of assignors, by which one member of a group assigns partitions to all members.

To write an assignor, derive a class from `Assignor`, and set ``partition.assignment.strategy`` to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.client.assignors.member_metadata import NO_GENERATION, Subscription
from penstock.model import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""A dict from member id to the partitions assigned to the member."""


class Previous(NamedTuple):
    """A member's last assignment and its generation. `partitions` is None before the first assignment."""

    partitions: Sequence[TopicPartition] | None = None
    generation: int = NO_GENERATION


class Assignor(ABC):
    """Base class of strategies that divide partitions among the members of a group.

    All members of a group must have an assignor with the same `name`.
    """

    name: str
    is_cooperative = False
    """True if members keep their partitions while the group rebalances. Then `assign` must not give a
    partition to a member while another one owns it: the owner must revoke it first, and the next rebalance
    assigns it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', 'without a name')}>"

    def user_data(self, topics: Sequence[str], previous: Previous) -> bytes | None:
        """Return the `user_data` for the member's subscription, or None.

        The group leader's `assign` receives it.

        `previous` is the member's last assignment.
        """
        return None

    @abstractmethod
    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, Subscription]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """Return the partitions of each member: together, all partitions of the subscribed topics.

        `partition_counts` leaves out topics that do not exist. Every member needs an entry, which may be
        empty. The same input must give the same output, because any member may become the leader.
        """


def ordered(members: Mapping[str, Subscription]) -> list[str]:
    """Return member ids in the order in which assignors serve them: static members first, by instance id."""

    def key(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].instance_id
        return instance_id is None, java_order(member_id if instance_id is None else instance_id)

    return sorted(members, key=key)


def java_order(text: str) -> bytes:
    """Return a key that sorts text as Java does: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")
