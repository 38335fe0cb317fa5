"""The heartbeats of one member of a consumer group: which fields each of them has (KIP-848).

A field that is null keeps what the coordinator has, so that most heartbeats are short. The first heartbeat
has every field, and so has the next one after a heartbeat whose answer has not come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.group.requests import MemberSettings
from penstock.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""The epoch by which a static member goes for a while: its partitions are kept until its session ends."""


class Subscription(NamedTuple):
    """What a member subscribes to: topics by name, those that a regular expression of RE2 fits, or both."""

    names: tuple[str, ...] = ()
    regex: str = ""

    @classmethod
    def of(cls, topics: Iterable[str]) -> Subscription:
        """Divide names from patterns, which begin with ``^``. Several patterns become alternatives of one."""
        wanted = sorted(set(topics))
        patterns = [each for each in wanted if each.startswith("^")]
        names = tuple(each for each in wanted if not each.startswith("^"))
        regex = patterns[0] if len(patterns) == 1 else "|".join(f"({each})" for each in patterns)
        return cls(names, regex)


class Heartbeats:
    """Composes the heartbeats of one member."""

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self._told: Subscription | None = None
        """The subscription that the coordinator has; None where the next heartbeat has to say everything."""

    def tell_all(self) -> None:
        """Have the next heartbeat say everything: it is not certain what the coordinator has."""
        self._told = None

    def knows(self, subscription: Subscription) -> bool:
        """Return whether the coordinator has this subscription, if it has got the last heartbeat."""
        return self._told == subscription

    def compose(
        self,
        member_id: str,
        epoch: int,
        subscription: Subscription,
        owned: Iterable[tuple[bytes, int]],
        *,
        tells_owned: bool,
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat. `owned` are partitions by topic id; a member that joins owns none.

        They are said where `tells_owned`, and in heartbeats that say everything. The coordinator takes the
        list as complete: a partition that had to be given up and is not in it goes to another member.
        """
        settings = self._settings
        is_full = self._told is None or epoch == JOIN_EPOCH
        is_new = is_full or self._told != subscription
        self._told = subscription
        return ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id,
            rack_id=settings.client_rack if is_full else None,
            rebalance_timeout_ms=int(settings.max_poll_interval_ms) if is_full else -1,
            subscribed_topic_names=list(subscription.names) if is_new else None,
            subscribed_topic_regex=subscription.regex if is_new else None,
            server_assignor=settings.remote_assignor if is_full else None,
            topic_partitions=_by_topic(owned) if is_full or tells_owned else None,
        )

    def farewell(self, member_id: str) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat by which the member leaves; one that is static, for a while."""
        is_static = self._settings.group_instance_id is not None
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=member_id,
            member_epoch=STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH,
            instance_id=self._settings.group_instance_id,
        )


def _by_topic(owned: Iterable[tuple[bytes, int]]) -> list[TopicPartitions]:
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(owned):
        topics.setdefault(topic_id, []).append(number)
    return [TopicPartitions(topic_id=topic_id, partitions=numbers) for topic_id, numbers in topics.items()]
