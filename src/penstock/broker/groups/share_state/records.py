"""The records of `__share_group_state`, in Kafka's format: converts changes to bytes and back.

A key is an int16 type, then fields without flexible encoding; a value is its version, 0, and flexible fields.
The tombstone of a share partition has the key of a snapshot.
"""

from __future__ import annotations

from typing import TypeVar

from penstock.broker.coordination.records import KeyAndValue, stored_version
from penstock.broker.coordination.state_topic import StateTopicLayout
from penstock.broker.groups.share_state.batches import StateBatch
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.broker.groups.share_state.state import SharePartitionState, ShareStateChange, Update
from penstock.broker.partitions.internal_topics import SHARE_STATE_TOPIC
from penstock.protocol.messages import share_snapshot_value, share_update_value
from penstock.protocol.messages.share_snapshot_key import ShareSnapshotKey
from penstock.protocol.messages.share_update_key import ShareUpdateKey

LAYOUT = StateTopicLayout(
    SHARE_STATE_TOPIC,
    "share.coordinator.state.topic.",
    {"cleanup.policy": "delete", "compression.type": "producer", "retention.ms": "-1"},
    has_min_isr=True,
)

SNAPSHOT_KEY, UPDATE_KEY = 0, 1

VALUE_VERSION = 0

_VERSION = VALUE_VERSION.to_bytes(2, "big")

_B = TypeVar("_B", share_snapshot_value.StateBatch, share_update_value.StateBatch)


def record_of(change: ShareStateChange) -> KeyAndValue:
    """Return the key and value of the record that stores a change."""
    key, value = change
    if isinstance(value, Update):
        body = share_update_value.ShareUpdateValue(
            snapshot_epoch=value.snapshot_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.complete_count,
            state_batches=[_batch(share_update_value.StateBatch, each) for each in value.batches],
        ).encode(VALUE_VERSION)
        return _key(UPDATE_KEY, ShareUpdateKey, key), _VERSION + body
    snapshot_key = _key(SNAPSHOT_KEY, ShareSnapshotKey, key)
    if value is None:
        return snapshot_key, None
    body = share_snapshot_value.ShareSnapshotValue(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.complete_count,
        create_timestamp=value.created_ms,
        write_timestamp=value.written_ms,
        state_batches=[_batch(share_snapshot_value.StateBatch, each) for each in value.batches],
    ).encode(VALUE_VERSION)
    return snapshot_key, _VERSION + body


def _key(key_type: int, made: type[ShareSnapshotKey | ShareUpdateKey], key: ShareKey) -> bytes:
    message = made(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return key_type.to_bytes(2, "big") + message.encode(0)


def _batch(made: type[_B], batch: StateBatch) -> _B:
    return made(
        first_offset=batch.first_offset,
        last_offset=batch.last_offset,
        delivery_state=batch.state,
        delivery_count=batch.deliveries,
    )


def read_change(key: bytes | None, value: bytes | None) -> ShareStateChange | None:
    """Return the change in a record, or None for a record of an unknown type.

    Raises:
        DecodeError: the record is damaged, or its value has a newer version than is supported.
    """
    key_type = int.from_bytes(key[:2], "big") if key is not None and len(key) >= 2 else -1
    if key is None or key_type not in (SNAPSHOT_KEY, UPDATE_KEY):
        return None
    message = (ShareSnapshotKey if key_type == SNAPSHOT_KEY else ShareUpdateKey).decode(key[2:], 0)
    share_key = ShareKey(message.group_id, message.topic_id, message.partition)
    if value is None:
        return ShareStateChange(share_key, None)
    version = stored_version(value, VALUE_VERSION, "share state")
    if key_type == UPDATE_KEY:
        update = share_update_value.ShareUpdateValue.decode(value[2:], version)
        return ShareStateChange(
            share_key,
            Update(
                update.snapshot_epoch,
                update.leader_epoch,
                update.start_offset,
                update.delivery_complete_count,
                tuple(_read_batch(each) for each in update.state_batches),
            ),
        )
    snapshot = share_snapshot_value.ShareSnapshotValue.decode(value[2:], version)
    return ShareStateChange(
        share_key,
        SharePartitionState(
            snapshot.snapshot_epoch,
            snapshot.state_epoch,
            snapshot.leader_epoch,
            snapshot.start_offset,
            snapshot.delivery_complete_count,
            snapshot.create_timestamp,
            snapshot.write_timestamp,
            tuple(_read_batch(each) for each in snapshot.state_batches),
        ),
    )


def _read_batch(batch: share_snapshot_value.StateBatch | share_update_value.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
