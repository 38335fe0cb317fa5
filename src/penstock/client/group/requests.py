"""The requests of a member to the coordinator, and the changes that it reports to the application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from penstock.client.assignors.member_metadata import PROTOCOL_TYPE, encode_assignment
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment

COORDINATOR_CODES = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))
"""The coordinator has to be found again."""


class Kind(Enum):
    """What happens to partitions of the application."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    LOST = "lost"


class Change(NamedTuple):
    """A change for the application: partitions were assigned, must be revoked, or are lost."""

    kind: Kind
    partitions: tuple[TopicPartition, ...]


class FindCoordinator(NamedTuple):
    """Ask any broker for the coordinator. The answer is its node id."""


class CountPartitions(NamedTuple):
    """Ask for the number of partitions of topics. The answer maps those that exist to it."""

    topics: tuple[str, ...]


class NameTopics(NamedTuple):
    """Ask for the names of topics by their ids. The answer maps the ids that are known to them."""

    topic_ids: tuple[bytes, ...]


Call = (
    FindCoordinator
    | CountPartitions
    | NameTopics
    | ConsumerGroupHeartbeatRequest
    | JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
)


class Outgoing(NamedTuple):
    """A request. `node` is the coordinator, or None for calls that go elsewhere."""

    ticket: int
    call: Call
    node: int | None
    timeout_ms: float


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of a member. Field names are Kafka's with underscores for dots."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: float = 45_000
    heartbeat_interval_ms: float = 3_000
    max_poll_interval_ms: float = 300_000
    request_timeout_ms: float = 30_000
    client_rack: str | None = None
    remote_assignor: str | None = None
    """The assignor that the member names to the broker (``group.remote.assignor``, KIP-848)."""
    may_lower_session_timeout: bool = False
    """Whether the session timeout is a default, not one that the application has set."""


def join_request(
    settings: MemberSettings,
    member_id: str,
    session_timeout_ms: float,
    protocols: Mapping[str, bytes],
    reason: str,
) -> JoinGroupRequest:
    """Ask to be a member. `protocols` are the assignors with a subscription each, preferred ones first."""
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
    """Ask what is assigned to the member. The leader gives every member's partitions in `assignments`."""
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
    """The Heartbeat request: prolongs the member's session."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=settings.group_instance_id,
    )


def leave_request(settings: MemberSettings, member_id: str, reason: str) -> LeaveGroupRequest:
    """The LeaveGroup request, with the reason."""
    return LeaveGroupRequest(
        group_id=settings.group_id,
        member_id=member_id,
        members=[MemberIdentity(member_id=member_id, reason=reason)],
    )


def is_first_join(call: Call) -> bool:
    """Whether the answer will bring a member id, for which the coordinator then waits."""
    return isinstance(call, JoinGroupRequest) and not call.member_id


def is_farewell(call: Call) -> bool:
    """Whether the call leaves the group, or will bring a member id that has to be given back."""
    if isinstance(call, ConsumerGroupHeartbeatRequest):
        return call.member_epoch < 0
    return isinstance(call, LeaveGroupRequest) or is_first_join(call)
