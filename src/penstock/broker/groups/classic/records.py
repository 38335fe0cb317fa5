"""The records of classic groups in `__consumer_offsets`: GroupMetadata, keys of type 2.

The generation and its members, with their metadata and assignments, are stored when a generation begins, and
again when its leader has assigned partitions. A rebalance in progress is not stored: after a restart the
members have to join again.
"""

from __future__ import annotations

from penstock.broker.coordination.records import KeyAndValue, stored_version
from penstock.broker.groups.classic.group import ClassicGroup
from penstock.broker.groups.classic.states import Bypass, State
from penstock.broker.groups.records import CLASSIC_GROUP_KEY
from penstock.protocol.messages.group_metadata_key import GroupMetadataKey
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue, MemberMetadata

GROUP_VALUE_VERSION = 3
"""The version in which GroupMetadata values are written. Version 4 adds nothing, and Kafka before 3.5
cannot read it.
"""

NOT_YET_MS = -1
"""The state-change time in a stored generation to which the leader has not assigned partitions yet: -1."""

_GROUP_PREFIX = CLASSIC_GROUP_KEY.to_bytes(2, "big")


def group_record(group_id: str, value: GroupMetadataValue | None) -> KeyAndValue:
    """Return the GroupMetadata record of a group, or its tombstone if `value` is None."""
    key = _GROUP_PREFIX + GroupMetadataKey(group=group_id).encode(0)
    if value is None:
        return key, None
    return key, GROUP_VALUE_VERSION.to_bytes(2, "big") + value.encode(GROUP_VALUE_VERSION)


def empty_record(group_id: str, now_ms: int) -> KeyAndValue:
    """Return the record of a group that has not had members yet."""
    return group_record(
        group_id,
        GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=now_ms,
            members=[],
        ),
    )


class ClassicRecords:
    """Reads the records of classic groups for the store."""

    key_types = frozenset((CLASSIC_GROUP_KEY,))

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[str, GroupMetadataValue | None]:
        """Return the group's id and its stored state, which is None for a tombstone.

        `key` is the bytes of the key after its type.

        Raises:
            DecodeError: the record is damaged, or its value has a newer version than is supported.
        """
        group_id = GroupMetadataKey.decode(key, 0).group
        if value is None:
            return group_id, None
        version = stored_version(value, GroupMetadataValue.VERSIONS[1], "group")
        return group_id, GroupMetadataValue.decode(value[2:], version)


def snapshot(group: ClassicGroup, now_ms: int) -> GroupMetadataValue:
    """Return a group as the value of its record. `now_ms` becomes the time of its last state change."""
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
    """Fill a new group from the value of its record. The session of every member restarts at `now`."""
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
