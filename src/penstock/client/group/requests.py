"""The requests of a group member, and the changes that it reports to its application."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from penstock.client.assignors.member_metadata import PROTOCOL_TYPE, encode_assignment
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

COORDINATOR_CODES = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))
"""Error codes after which the coordinator must be looked up again."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""The epoch with which a static member leaves temporarily: its partitions are kept until its session ends."""


class ChangeKind(Enum):
    """The kind of a change of a member's partitions: they are assigned, revoked or lost."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class AssignmentChange(NamedTuple):
    """A change of partitions that the application must be notified of."""

    kind: ChangeKind
    partitions: tuple[TopicPartition, ...]


class FindGroupCoordinator(NamedTuple):
    """A request to any broker for the group's coordinator. The outcome is a node id."""


class CountPartitions(NamedTuple):
    """A request for the partition counts of topics.

    The outcome maps the topics that exist to their counts.
    """

    topics: tuple[str, ...]


class NameTopics(NamedTuple):
    """A request for topic names by topic id. The outcome maps the ids that the cluster has to names."""

    topic_ids: tuple[bytes, ...]


Call = (
    FindGroupCoordinator
    | CountPartitions
    | NameTopics
    | ConsumerGroupHeartbeatRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | ShareGroupHeartbeatRequest
)


class Outgoing(NamedTuple):
    """A request to be sent. `node` is the coordinator, or None if the request goes to any broker."""

    ticket: int
    call: Call
    node: int | None
    timeout_ms: float


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of a member. Field names are Kafka's option names with underscores for dots."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: float = 45_000
    heartbeat_interval_ms: float = 3_000
    max_poll_interval_ms: float = 300_000
    request_timeout_ms: float = 30_000
    client_rack: str | None = None
    remote_assignor: str | None = None
    """The broker's assignor that the member asks for (``group.remote.assignor``, KIP-848)."""
    may_lower_session_timeout: bool = False
    """True if the session timeout is the default, and not set by the application."""


def join_request(
    settings: MemberSettings,
    member_id: str,
    session_timeout_ms: float,
    protocols: Mapping[str, bytes],
    reason: str,
) -> JoinGroupRequest:
    """Return a JoinGroup request. `protocols` maps assignors, preferred first, to subscriptions."""
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=int(session_timeout_ms),
        rebalance_timeout_ms=int(settings.max_poll_interval_ms),
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()
        ],
        reason=reason or None,
    )


def sync_request(
    settings: MemberSettings,
    member_id: str,
    generation: int,
    protocol_name: str,
    assignments: Mapping[str, Sequence[TopicPartition]],
) -> SyncGroupRequest:
    """Return a SyncGroup request. The leader passes the `assignments` of all members, other members none."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=encode_assignment(partitions))
            for member_id, partitions in assignments.items()
        ],
    )


def heartbeat_request(settings: MemberSettings, member_id: str, generation: int) -> HeartbeatRequest:
    """Return a Heartbeat request, which prolongs the member's session."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
    )


def leave_request(settings: MemberSettings, member_id: str, reason: str) -> LeaveGroupRequest:
    """Return a LeaveGroup request with the reason (KIP-800)."""
    return LeaveGroupRequest(
        group_id=settings.group_id,
        member_id=member_id,
        members=[MemberIdentity(member_id=member_id, reason=reason)],
    )


def is_first_join(call: Call) -> bool:
    """Return True for a JoinGroup without a member id: its response has an id to join again with."""
    return isinstance(call, JoinGroupRequest) and not call.member_id


def is_farewell(call: Call) -> bool:
    """Return True if closing must wait for the response, because the request leaves the group.

    This includes a JoinGroup without a member id: the coordinator assigns an id, which must leave as well.
    """
    if isinstance(call, (ConsumerGroupHeartbeatRequest, ShareGroupHeartbeatRequest)):
        return call.member_epoch < 0
    return isinstance(call, LeaveGroupRequest) or is_first_join(call)


class WantedTopics(NamedTuple):
    """A subscription of a member: topic names, a regular expression for the broker (RE2), or both."""

    names: tuple[str, ...] = ()
    regex: str = ""

    @classmethod
    def of(cls, topics: Iterable[str]) -> WantedTopics:
        """Return names and patterns separately. Patterns, which begin with ``^``, are joined to one."""
        wanted = sorted(set(topics))
        patterns = [each for each in wanted if each.startswith("^")]
        names = tuple(each for each in wanted if not each.startswith("^"))
        regex = patterns[0] if len(patterns) == 1 else "|".join(f"({each})" for each in patterns)
        return cls(names, regex)


class Heartbeats:
    """Makes the heartbeat requests of one consumer group member (KIP-848).

    A null field means "unchanged", so most heartbeats have few fields. All fields are set in the first
    heartbeat, and in the next one after a heartbeat without a response.
    """

    def __init__(self, settings: MemberSettings) -> None:
        self._settings = settings
        self._sent: WantedTopics | None = None
        """The subscription that the coordinator has; None if all fields must be set in the next heartbeat."""

    def reset(self) -> None:
        """Set all fields in the next heartbeat, because the coordinator may lack some of them."""
        self._sent = None

    def has_sent(self, subscription: WantedTopics) -> bool:
        """Return True if the coordinator has this subscription from an earlier heartbeat."""
        return self._sent == subscription

    def compose(
        self,
        member_id: str,
        epoch: int,
        subscription: WantedTopics,
        owned: Iterable[tuple[bytes, int]],
        *,
        lists_owned: bool,
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat. `owned` are partitions by topic id; a member that joins owns none.

        The heartbeat lists `owned` if `lists_owned` is True, or if all fields are set. For the coordinator
        the list is complete: a revoked partition that is missing in the list goes to another member.
        """
        settings = self._settings
        is_full = self._sent is None or epoch == JOIN_EPOCH
        is_new = is_full or self._sent != subscription
        self._sent = subscription
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
            topic_partitions=_by_topic(owned) if is_full or lists_owned else None,
        )

    def farewell(self, member_id: str) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat that leaves the group. A static member leaves temporarily, with epoch -2."""
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
