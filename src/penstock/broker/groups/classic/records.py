"""The records of classic groups in `__consumer_offsets`: GroupMetadata, keys of type 2."""

from __future__ import annotations

from penstock.broker.coordination.records import KeyAndValue, stored_version
from penstock.protocol.messages.group_metadata_key import GroupMetadataKey
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue

GROUP_KEY = 2

GROUP_VALUE_VERSION = 3
"""The version of the values that are written. Version 4 adds nothing, and Kafka before 3.5 cannot read it."""

_GROUP_PREFIX = GROUP_KEY.to_bytes(2, "big")


def group_record(group_id: str, value: GroupMetadataValue | None) -> KeyAndValue:
    """Return the record of a group; the value None makes a tombstone."""
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

    key_types = frozenset((GROUP_KEY,))

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[str, GroupMetadataValue | None]:
        """Return the group's id and its state, which is None for a tombstone. `key` comes without its type.

        Raises:
            DecodeError: the record is damaged, or its value has a newer version than is supported.
        """
        group_id = GroupMetadataKey.decode(key, 0).group
        if value is None:
            return group_id, None
        version = stored_version(value, GroupMetadataValue.VERSIONS[1], "group")
        return group_id, GroupMetadataValue.decode(value[2:], version)
