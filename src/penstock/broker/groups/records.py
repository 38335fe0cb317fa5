"""The records of `__consumer_offsets`, in Apache Kafka's format.

A key begins with an int16 type: 0 and 1 are offsets, and any other key type belongs to one type of groups
(`GroupRecords`). Records with unknown key types are ignored. A value begins with its version. A null value is
a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from penstock.broker.coordination.records import KeyAndValue, stored_version
from penstock.broker.groups.offsets import NEVER_EXPIRES, CommittedOffset, PartitionKey
from penstock.protocol.message import Message
from penstock.protocol.messages.offset_commit_key import OffsetCommitKey
from penstock.protocol.messages.offset_commit_value import OffsetCommitValue

LEGACY_OFFSET_KEY, OFFSET_KEY, CLASSIC_GROUP_KEY = 0, 1, 2


class ConsumerGroupKey(IntEnum):
    """The key types of the records of consumer groups (KIP-848)."""

    GROUP = 3
    METADATA = 4
    MEMBER = 5
    TARGET = 6
    TARGET_MEMBER = 7
    CURRENT = 8
    REGEX = 16


class ShareGroupKey(IntEnum):
    """The key types of the records of share groups (KIP-932)."""

    MEMBER = 10
    GROUP = 11
    TARGET = 12
    TARGET_MEMBER = 13
    CURRENT = 14
    PARTITIONS = 15


class StreamsGroupKey(IntEnum):
    """The key types of the records of streams groups (KIP-1071)."""

    GROUP = 17
    MEMBER = 19
    TARGET = 20
    TARGET_MEMBER = 21
    CURRENT = 22
    TOPOLOGY = 23


OFFSET_VALUE_VERSION = 3
EXPIRING_OFFSET_VALUE_VERSION = 1
"""The only version of OffsetCommit values that contains an expiry time."""

_OFFSET_PREFIX = OFFSET_KEY.to_bytes(2, "big")

VALUE_VERSION = 0
"""The only version of the values of consumer, share and streams groups."""

_VALUE_PREFIX = VALUE_VERSION.to_bytes(2, "big")

StoredKey = tuple[int, str, str]
"""A parsed record key of a consumer, share or streams group: its type, the group's id, and a third field.

The third field is a member id or a regular expression, or empty if the record has neither.

"""


class StoredOffset(NamedTuple):
    """A parsed record of a group's committed offset; `committed` is None for a tombstone."""

    group_id: str
    partition: PartitionKey
    committed: CommittedOffset | None


class StoredRecord(NamedTuple):
    """A parsed record that belongs to one type of groups; `value` is None for a tombstone."""

    kind: GroupRecords
    key: Any
    """The parsed key. Of two records with the same key, the later one is valid."""
    value: Any


class GroupRecords(Protocol):
    """The records of one type of groups: their key types, and a function that parses them."""

    @property
    def key_types(self) -> Collection[int]:
        """Return the key types (the int16 at the beginning of a key) of this group type's records."""

    def read(self, key_type: int, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        """Return the parsed key and value of a record; the value is None for a tombstone.

        `key` is the bytes of the key after its type.

        Raises:
            DecodeError: the record is damaged, or its value has a newer version than is supported.
        """


def offset_record(group_id: str, partition: PartitionKey, committed: CommittedOffset | None) -> KeyAndValue:
    """Return the record of a committed offset, or a tombstone if `committed` is None."""
    key = _OFFSET_PREFIX + OffsetCommitKey(group=group_id, topic=partition[0], partition=partition[1]).encode(
        0
    )
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


def read_record(
    key: bytes | None, value: bytes | None, kinds: Sequence[GroupRecords]
) -> StoredOffset | StoredRecord | None:
    """Return the parsed record, or None if it is neither an offset nor of a type of groups in `kinds`.

    Raises:
        DecodeError: the record is damaged, or its value has a newer version than is supported.
    """
    if key is None or len(key) < 2:
        return None
    key_type = int.from_bytes(key[:2], "big")
    if key_type in (LEGACY_OFFSET_KEY, OFFSET_KEY):
        offset_key = OffsetCommitKey.decode(key[2:], 0)
        partition = offset_key.topic, offset_key.partition
        return StoredOffset(offset_key.group, partition, _read_offset(value))
    for kind in kinds:
        if key_type in kind.key_types:
            return StoredRecord(kind, *kind.read(key_type, key[2:], value))
    return None


def _read_offset(value: bytes | None) -> CommittedOffset | None:
    if value is None:
        return None
    version = stored_version(value, OffsetCommitValue.VERSIONS[1], "offset")
    stored = OffsetCommitValue.decode(value[2:], version)
    return CommittedOffset(
        stored.offset, stored.leader_epoch, stored.metadata, stored.commit_timestamp, stored.expire_timestamp
    )


class RecordType(NamedTuple):
    """One record type of a group type: converts one class of changes to keys and values, and back.

    A change is a tuple whose last field is the new value, or None for a tombstone.
    """

    number: int
    """The number of the record type: the int16 at the beginning of its keys."""
    change: Callable[..., Any]
    key: type[Any]
    write: Callable[[Any], Message]
    """A function that converts the value of a change to the message to store."""
    read: Callable[[bytes], Any]
    """A function that decodes a stored message to the value of a change, or raises DecodeError."""
    subject: str = "member_id"
    """The name of the key field that has the change's first field; empty if the key has only the group id."""


class RecordTypes:
    """A converter between the changes of one group type and their records, for all its record types."""

    def __init__(self, kind: str, *types: RecordType) -> None:
        """Make a converter for these record types. `kind` is for error messages, such as "share group"."""
        self._kind = kind
        self._by_change: dict[object, RecordType] = {each.change: each for each in types}
        self._by_number = {each.number: each for each in types}

    def record_of(self, group_id: str, change: Any) -> KeyAndValue:
        """Return the record that stores a change to a group."""
        found, value = self._by_change[type(change)], change[-1]
        key = found.key(group_id=group_id, **({found.subject: change[0]} if found.subject else {}))
        if value is None:
            return key_bytes(found.number, key), None
        return key_bytes(found.number, key), _VALUE_PREFIX + found.write(value).encode(VALUE_VERSION)

    def read(self, number: int, key: bytes, value: bytes | None) -> tuple[StoredKey, Any]:
        """Return the parsed key of a record, and the change that it stores, which is None for a tombstone.

        `number` is the type in the record's key, `key` the bytes of the key after the type.

        Raises:
            DecodeError: the record is damaged, or its value has a newer version than is supported.
        """
        found = self._by_number[number]
        about = found.key.decode(key, 0)
        subject = [getattr(about, found.subject)] if found.subject else []
        stored = number, about.group_id, "".join(subject)
        if value is None:
            return stored, None
        stored_version(value, VALUE_VERSION, self._kind)
        return stored, found.change(*subject, found.read(value[2:]))


def key_bytes(key_type: int, key: Message) -> bytes:
    """Return the encoded key of a record of a consumer, share or streams group: its type, then its fields."""
    return key_type.to_bytes(2, "big") + key.encode(0)
