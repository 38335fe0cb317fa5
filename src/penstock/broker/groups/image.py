"""A group as it is stored, and a group made of what was stored.

Stored are the generation and its members, with what they know and own: when a generation begins, and
again when its leader has assigned. What a rebalance at work has gathered is not stored: after a restart
the members are asked to join again.
"""

from __future__ import annotations

from penstock.broker.groups.group import Group
from penstock.broker.groups.states import State
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata

NOT_YET_MS = -1
"""Stands for the time since when a generation is stable whose leader has not assigned anything."""


def snapshot(group: Group, now_ms: int) -> GroupMetadataValue:
    """What is stored of a group, which has become what it is at `now_ms`."""
    group.since_ms = now_ms
    is_assigned = group.state is not State.COMPLETING
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader_id,
        current_state_timestamp=now_ms if is_assigned else NOT_YET_MS,
        members=[
            MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=member.assignment if is_assigned else b"",
            )
            for member in group.members.values()
        ],
    )


def restore(group: Group, stored: GroupMetadataValue, now: float) -> None:
    """Make a new group what was stored. Every member has one session from `now` on to be heard of."""
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol = stored.protocol
    group.leader_id = stored.leader
    group.since_ms = stored.current_state_timestamp
    for entry in stored.members:
        rebalance_ms = entry.rebalance_timeout if entry.rebalance_timeout >= 0 else entry.session_timeout
        member = group.make_member(
            entry.member_id,
            entry.group_instance_id,
            entry.client_id,
            entry.client_host,
            entry.session_timeout,
            rebalance_ms,
            [(stored.protocol or "", entry.subscription)],
            entry.assignment,
        )
        group.enrol(member)
        group.renew(member, now)
    if not group.members:
        return
    if stored.current_state_timestamp == NOT_YET_MS and not any(m.assignment for m in group.members.values()):
        group.resume_rebalance(now)
    else:
        group.state = State.STABLE
