"""Classic members of a consumer group: the responses to SyncGroup and Heartbeat, by the group's state.

A classic member rejoins for every step of its reconciliation: JoinGroup names the partitions that it owns,
the response has the member's epoch as the generation, and SyncGroup returns the partitions. A classic member
never leads, since the broker assigns. Pure functions of the state; the order of checks and the errors are
those of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.groups.consumer.embedded_protocol import PROTOCOL_TYPE
from penstock.broker.groups.consumer.state import ConsumerSubscription, GroupState, MemberState
from penstock.protocol.error_codes import ErrorCode

_NONE = ErrorCode.NONE


def accepts(state: GroupState, protocol_type: str, protocols: Iterable[str]) -> bool:
    """Return True if a classic member may join: all other classic members support one of its protocols."""
    if protocol_type != PROTOCOL_TYPE:
        return False
    known = [{name for name, _ in each.protocols} for each in state.subscriptions.values() if each.is_classic]
    return any(all(name in names for names in known) for name in protocols)


def check_member(state: GroupState, member_id: str, instance_id: str | None) -> ErrorCode:
    """Check the ids in a request; return NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    if instance_id is not None:
        holder = state.instances.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return _NONE if member_id in state.subscriptions else ErrorCode.UNKNOWN_MEMBER_ID


def check_classic(state: GroupState, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Check the member of a classic request; return NONE or an error.

    The errors are UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and ILLEGAL_GENERATION. A member that uses the
    consumer protocol is unknown to classic requests.
    """
    error = check_member(state, member_id, instance_id)
    if error:
        return error
    if not state.subscriptions[member_id].is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _NONE if generation == state.current(member_id).epoch else ErrorCode.ILLEGAL_GENERATION


def check_protocol(
    subscription: ConsumerSubscription, protocol_type: str | None, name: str | None
) -> ErrorCode:
    """Check the protocol that a SyncGroup names: it must be the first one of the member."""
    is_right = protocol_type in (None, PROTOCOL_TYPE) and name in (None, subscription.protocols[0][0])
    return _NONE if is_right else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def has_to_rejoin_first(state: GroupState, member_id: str) -> bool:
    """Return True if SyncGroup must be refused, so that the member rejoins for a newer target assignment.

    A member that must give up partitions first is not refused: the response has the partitions that it keeps.
    """
    current = state.current(member_id)
    return current.epoch < state.target_epoch and current.state is not MemberState.UNREVOKED


def has_to_rejoin(state: GroupState, member_id: str) -> bool:
    """Return True if the response to Heartbeat must ask the member to rejoin.

    The reasons are a newer target assignment, partitions to give up, and assigned partitions that their
    former owners have released.
    """
    current = state.current(member_id)
    if current.epoch < state.target_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    missing = state.target(member_id) - current.assigned.keys()
    return not any(partition in state.owners for partition in missing)
