"""Converts a classic group to its stored form, and back.

The generation and its members, with their metadata and assignments, are stored when a generation begins, and
again when its leader has assigned. A rebalance in progress is not stored: after a restart the members have to
join again.
"""

from __future__ import annotations

from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.states import Bypass, State
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata

NOT_YET_MS = -1
"""The stored time of the last state change while the generation's leader has not assigned partitions yet."""


def snapshot(group: ClassicGroup, now_ms: int) -> GroupMetadataValue:
    """Return the stored form of a group. `now_ms` becomes the time of its last state change."""
    group.since_ms = now_ms
    is_assigned = group.state is not State.COMPLETING
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.roster.leader_id,
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


def restore(group: ClassicGroup, stored: GroupMetadataValue, now: float) -> None:
    """Fill a new group from its stored form. The session of every member restarts at `now`."""
    group.generation = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol = stored.protocol
    group.roster.leader_id = stored.leader
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
        group.roster.enrol(member)
        group.renew(member, now)
    if not group.members:
        return
    if stored.current_state_timestamp == NOT_YET_MS and not any(m.assignment for m in group.members.values()):
        group.resume_rebalance(Bypass.READ_UNASSIGNED, now)
    else:
        group.bypass(Bypass.READ_ASSIGNED)
