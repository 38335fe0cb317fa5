"""Classic members of a consumer group: what SyncGroup and Heartbeat answer them from the group's state.

A classic member joins again for every step of its reconciliation: JoinGroup says what it owns, its answer has
the member's epoch as the generation, and SyncGroup the partitions. It never leads: the broker assigns. Pure
functions of the state; the order of checks and the errors are those of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.broker.groups.consumer.embedded_protocol import PROTOCOL_TYPE
from penstock.broker.groups.consumer.state import GroupState, MemberState, Subscription
from penstock.protocol.error_codes import ErrorCode

_NONE = ErrorCode.NONE


def accepts(state: GroupState, protocol_type: str, protocols: Iterable[str]) -> bool:
    """Return whether a classic member may join: all other classic members know one of its protocols."""
    if protocol_type != PROTOCOL_TYPE:
        return False
    known = [{name for name, _ in each.protocols} for each in state.subscriptions.values() if each.is_classic]
    return any(all(name in names for names in known) for name in protocols)


def check_member(state: GroupState, member_id: str, instance_id: str | None) -> ErrorCode:
    """Check the ids of a request: return NONE, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    if instance_id is not None:
        holder = state.instances.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return _NONE if member_id in state.subscriptions else ErrorCode.UNKNOWN_MEMBER_ID


def check_classic(state: GroupState, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Check the member of a request: return NONE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or
    ILLEGAL_GENERATION.

    A member of the consumer protocol is no member to the classic one.
    """
    error = check_member(state, member_id, instance_id)
    if error:
        return error
    if not state.subscriptions[member_id].is_classic:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _NONE if generation == state.current(member_id).epoch else ErrorCode.ILLEGAL_GENERATION


def check_protocol(subscription: Subscription, protocol_type: str | None, name: str | None) -> ErrorCode:
    """Check the protocol that a SyncGroup names: it must be the member's own first one."""
    is_right = protocol_type in (None, PROTOCOL_TYPE) and name in (None, subscription.protocols[0][0])
    return _NONE if is_right else ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def has_to_rejoin_first(state: GroupState, member_id: str) -> bool:
    """Return whether SyncGroup is refused because of a newer target assignment, for which the member joins
    again.

    A member that has to give up partitions first is answered which.
    """
    current = state.current(member_id)
    return current.epoch < state.target_epoch and current.state is not MemberState.UNREVOKED


def has_to_rejoin(state: GroupState, member_id: str) -> bool:
    """Return whether Heartbeat is answered that the member has to join again.

    The reasons are a newer target assignment, partitions to give up, and partitions it waits for that are all
    free.
    """
    current = state.current(member_id)
    if current.epoch < state.target_epoch or current.state is MemberState.UNREVOKED:
        return True
    if current.state is not MemberState.UNRELEASED:
        return False
    missing = state.target(member_id) - current.assigned.keys()
    return not any(partition in state.owners for partition in missing)
