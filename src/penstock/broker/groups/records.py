"""The records of `__consumer_offsets`, as Apache Kafka writes them: committed offsets and groups.

A key begins with an int16 that says what it is: 0 and 1 an offset, 2 a group; others belong to newer
kinds of groups and are passed over. A value begins with its version. No value means: it is gone.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.broker.groups.offsets import NEVER_EXPIRES, Committed, Place
from penstock.errors import DecodeError
from penstock.protocol.messages.group_metadata_key import GroupMetadataKey
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue
from penstock.protocol.messages.offset_commit_key import OffsetCommitKey
from penstock.protocol.messages.offset_commit_value import OffsetCommitValue

LEGACY_OFFSET_KEY, OFFSET_KEY, GROUP_KEY = 0, 1, 2

OFFSET_VALUE_VERSION = 3
EXPIRING_OFFSET_VALUE_VERSION = 1
"""The one version that has a time of expiry."""
GROUP_VALUE_VERSION = 3
"""Version 4 is flexible and adds nothing; brokers older than 3.5 cannot read it."""

_OFFSET_PREFIX = OFFSET_KEY.to_bytes(2, "big")
_GROUP_PREFIX = GROUP_KEY.to_bytes(2, "big")

KeyAndValue = tuple[bytes, bytes | None]


class StoredOffset(NamedTuple):
    """An offset of a group, or that there is none any more."""

    group_id: str
    place: Place
    committed: Committed | None


class StoredGroup(NamedTuple):
    """A group, or that there is none any more."""

    group_id: str
    value: GroupMetadataValue | None


def offset_record(group_id: str, place: Place, committed: Committed | None) -> KeyAndValue:
    """The record for an offset; None is its tombstone."""
    key = _OFFSET_PREFIX + OffsetCommitKey(group=group_id, topic=place[0], partition=place[1]).encode(0)
    if committed is None:
        return key, None
    expires = committed.expire_ms != NEVER_EXPIRES
    version = EXPIRING_OFFSET_VALUE_VERSION if expires else OFFSET_VALUE_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_ms,
        expire_timestamp=committed.expire_ms,
    )
    return key, version.to_bytes(2, "big") + value.encode(version)


def group_record(group_id: str, value: GroupMetadataValue | None) -> KeyAndValue:
    """The record for a group; None is its tombstone."""
    key = _GROUP_PREFIX + GroupMetadataKey(group=group_id).encode(0)
    if value is None:
        return key, None
    return key, GROUP_VALUE_VERSION.to_bytes(2, "big") + value.encode(GROUP_VALUE_VERSION)


def read_record(key: bytes | None, value: bytes | None) -> StoredOffset | StoredGroup | None:
    """What a record says; None for one that says nothing about groups of this kind.

    Raises:
        DecodeError: the record is damaged, or its value of a version newer than we know.
    """
    if key is None or len(key) < 2:
        return None
    kind = int.from_bytes(key[:2], "big")
    if kind in (LEGACY_OFFSET_KEY, OFFSET_KEY):
        offset_key = OffsetCommitKey.decode(key[2:], 0)
        place = offset_key.topic, offset_key.partition
        return StoredOffset(offset_key.group, place, _read_offset(value))
    if kind == GROUP_KEY:
        group_id = GroupMetadataKey.decode(key[2:], 0).group
        if value is None:
            return StoredGroup(group_id, None)
        version = _version(value, GroupMetadataValue.VERSIONS[1], "group")
        return StoredGroup(group_id, GroupMetadataValue.decode(value[2:], version))
    return None


def _read_offset(value: bytes | None) -> Committed | None:
    if value is None:
        return None
    version = _version(value, OffsetCommitValue.VERSIONS[1], "offset")
    stored = OffsetCommitValue.decode(value[2:], version)
    return Committed(
        stored.offset, stored.leader_epoch, stored.metadata, stored.commit_timestamp, stored.expire_timestamp
    )


def _version(value: bytes, newest: int, what: str) -> int:
    version = int.from_bytes(value[:2], "big", signed=True)
    if not 0 <= version <= newest or len(value) < 2:
        raise DecodeError(f"a stored {what} of version {version}; the newest known is {newest}")
    return version
