"""The cluster's metadata log: `__cluster_metadata-0`, in the records that Apache Kafka's controllers write.

Topics, their ids, partitions and settings are a sequence of metadata records
(KIP-631) in an ordinary log. A start replays it, a change appends to it. A record is
framed as: frame version (uvarint, 1), record type (uvarint), record version (uvarint), body.

This module reads and writes records; `cluster` and `image` interpret them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import DecodeError, StorageError
from penstock.protocol import messages
from penstock.protocol.messages.abort_transaction_record import AbortTransactionRecord
from penstock.protocol.messages.begin_transaction_record import BeginTransactionRecord
from penstock.protocol.messages.clear_elr_record import ClearElrRecord
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.end_transaction_record import EndTransactionRecord
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.format.varint import read_unsigned

if TYPE_CHECKING:
    from penstock.log.contract import Log
    from penstock.log.directory.metadata_snapshots import SnapshotFile
    from penstock.protocol.message import Message

LEADER_EPOCH = 1
"""The first raft epoch of a quorum of one, after it has elected itself once."""

_FRAME_VERSION = 1
_REGISTRATION = bytes((_FRAME_VERSION, 0))
"""The first bytes of a framed RegisterBrokerRecord: frame version and record type."""

_READ_BYTES = 1 << 20

WRITTEN_VERSIONS: dict[type[Message], int] = {
    TopicRecord: 0,
    PartitionRecord: 1,
    PartitionChangeRecord: 0,
    ConfigRecord: 0,
    ClientQuotaRecord: 0,
    RemoveTopicRecord: 0,
    ProducerIdsRecord: 0,
    FeatureLevelRecord: 0,
    ClearElrRecord: 0,
}
"""The record types that this broker writes, with their versions. Security records, all of version 0, are not
listed."""

SECURITY_RECORDS = {
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    22: "RemoveUserScramCredentialRecord",
    26: "RemoveDelegationTokenRecord",
}
"""The names of security records, by type. Few clusters have them: their classes are imported on first use."""

NEWEST_VERSIONS = {
    0: 4, 1: 0, 2: 0, 3: 2, 4: 0, 5: 2, 7: 0, 8: 0, 9: 0, 10: 0, 11: 0, 12: 0, 14: 0, 15: 0, 17: 3, 18: 0,
    19: 0, 20: 0, 21: 0, 22: 0, 23: 0, 24: 0, 25: 0, 26: 0, 27: 0, 28: 0, 29: 0,
}  # fmt: skip
"""The types of records that Apache Kafka 4.3 writes, each with its newest version."""

METADATA_LEVEL_MAX = 30
"""The highest supported level: 4.3-IV0. The additions of later levels to the records are unknown."""

METADATA_LEVEL_MIN = 7
"""The lowest supported level: 3.3-IV3, the oldest that Apache Kafka 4.x accepts. Before it, KRaft was not for
production."""

SCRAM_SINCE = 11
"""3.5-IV2: the level from which on metadata have users with SCRAM credentials (KIP-900)."""

TOKENS_SINCE = 14
"""3.6-IV2: the level from which on metadata have delegation tokens."""

DIRECTORIES_SINCE = 17
"""3.7-IV2: from this level on, records of partitions contain directory ids."""

VOTERS_SINCE = 21
"""3.9-IV0: from this level on, the metadata log may contain the voters of its quorum (KIP-853). Earlier
releases do not start on a snapshot that contains them."""

ELIGIBLE_REPLICAS_SINCE = 23
"""4.0-IV1: from this level on records of partitions have eligible leader replicas (KIP-966)."""

_TRANSACTIONS: tuple[type[Message], ...] = (
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
"""The records at the ends of a metadata transaction, whose records take effect together or not at all
(KIP-868)."""

_CLASSES: dict[int, type[Message]] = {
    cls.API_KEY: cls for cls in (*WRITTEN_VERSIONS, *_TRANSACTIONS) if cls.API_KEY is not None
}


def frame(record: Message, level: int = DIRECTORIES_SINCE) -> bytes:
    """Return the bytes of a metadata record, as the value of a log record, for a `metadata.version` level."""
    assert record.API_KEY is not None
    version = WRITTEN_VERSIONS.get(type(record), 0)
    if level >= ELIGIBLE_REPLICAS_SINCE and (
        isinstance(record, PartitionChangeRecord)
        or (isinstance(record, PartitionRecord) and record.eligible_leader_replicas is not None)
    ):
        version = 2
    elif version and level < DIRECTORIES_SINCE:
        version = 0
    # All three numbers are below 128, where an unsigned varint is the byte itself.
    return bytes((_FRAME_VERSION, record.API_KEY, version)) + record.encode(version)


def unframe(value: bytes) -> Message | None:
    """Return the metadata record in the value of a log record, or None for a type that is not used here.

    Raises:
        DecodeError: the frame or the body is damaged, or of a newer version than is supported.
    """
    key, version, position = record_head(value)
    cls = _CLASSES.get(key)
    if cls is None:
        name = SECURITY_RECORDS.get(key)
        if name is None:
            return None
        found: type[Message] = getattr(messages, name)
        cls = _CLASSES[key] = found
    if version > cls.VERSIONS[1]:
        raise DecodeError(f"{cls.NAME} version {version} is newer than {cls.VERSIONS[1]}")
    return cls.decode(value[position:], version)


def known_head(value: bytes) -> tuple[int, int, int]:
    """Return type, version and body position of a framed record, whose type must be supported.

    Raises:
        DecodeError: the record's type or version is unknown, or the frame is damaged.
    """
    key, version, position = record_head(value)
    newest = NEWEST_VERSIONS.get(key)
    if newest is None or version > newest:
        raise DecodeError(f"a record of type {key} and version {version}")
    return key, version, position


def record_head(value: bytes) -> tuple[int, int, int]:
    """Return type, version and body position of a framed metadata record.

    Raises:
        DecodeError: the frame is damaged, or of an unsupported version.
    """
    try:
        frame_version, position = read_unsigned(value, 0)
        key, position = read_unsigned(value, position)
        version, position = read_unsigned(value, position)
    except IndexError:
        raise DecodeError("a metadata record is cut short") from None
    if frame_version != _FRAME_VERSION:
        raise DecodeError(f"a metadata record in frame version {frame_version}, expected {_FRAME_VERSION}")
    return key, version, position


class MetadataSnapshot(Protocol):
    """Metadata records that replace all of the log below an offset."""

    @property
    def file(self) -> SnapshotFile: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def values(self) -> Sequence[bytes]: ...


class MetadataBase(Protocol):
    """Files beside the metadata log in a data directory: snapshot and quorum state."""

    @property
    def snapshot(self) -> MetadataSnapshot | None: ...

    @property
    def epoch(self) -> int: ...

    def begin_epoch(self, epoch: int) -> None: ...


class MetadataLog:
    """Metadata records in a log, and in a snapshot of its earlier part."""

    def __init__(self, log: Log, base: MetadataBase | None = None) -> None:
        """Prepare to replay `log`. `base` has the files beside it; None for a log in memory."""
        self._log = log
        self._base = base
        self.level = ELIGIBLE_REPLICAS_SINCE
        """The `metadata.version` whose records are written; set after the replay."""
        self.registrations: dict[int, int] = {}
        """The broker epoch of each node's last RegisterBrokerRecord, which Apache Kafka has written."""
        last = max(log.leader_epochs.latest, -1 if base is None else base.epoch)
        self.epoch = LEADER_EPOCH if last < 0 else last + 1
        """The raft epoch of the records that this run writes: one above the last epoch of the log."""
        self._has_begun = False
        self._kept_to: int | None = None
        """The offset to which the log must be truncated after a failed append; None otherwise."""
        self.bytes_behind = 0
        """The size in bytes of the log's records after the newest snapshot."""

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def has_snapshot(self) -> bool:
        """True if a snapshot replaces the first part of the log."""
        return self._base is not None and self._base.snapshot is not None

    @property
    def snapshot_file(self) -> SnapshotFile | None:
        """The file of the snapshot that the start has read, or None."""
        snapshot = None if self._base is None else self._base.snapshot
        return None if snapshot is None else snapshot.file

    @property
    def size_bytes(self) -> int:
        """The size of the log in bytes, without snapshots."""
        return self._log.size_bytes

    def bytes_below(self, offset: int) -> int:
        """Return the number of bytes that `drop_before` would free."""
        return sum(each.size for each in self._log.segments if each.end_offset <= offset)

    def drop_before(self, offset: int) -> None:
        """Delete whole segments below an offset for which there is a snapshot; the log begins there.

        Raises:
            StorageError: a file cannot be removed.
        """
        self._log.delete_before(offset)

    def replay(self) -> Iterator[Message]:
        """Yield every record of the log whose type is used here, in order.

        Records of a metadata transaction are yielded when it ends, and never if it was aborted or is open.

        Raises:
            StorageError: the log cannot be read, or its records are malformed.
        """
        pending: list[Message] | None = None
        for record in self._replay_all():
            if isinstance(record, BeginTransactionRecord):
                pending = []
            elif isinstance(record, AbortTransactionRecord):
                pending = None
            elif isinstance(record, EndTransactionRecord):
                yield from pending or ()
                pending = None
            elif pending is not None:
                pending.append(record)
            else:
                yield record

    def _replay_all(self) -> Iterator[Message]:
        offset = self._log.start_offset
        snapshot = None if self._base is None else self._base.snapshot
        if snapshot is not None:
            try:
                yield from filter(None, map(self._read, snapshot.values))
            except DecodeError as error:
                raise StorageError(f"a snapshot of {METADATA_TOPIC}-0 cannot be read: {error}") from error
            offset = snapshot.end_offset
        while offset < self._log.end_offset:
            data = self._log.read(offset, _READ_BYTES).to_bytes()
            self.bytes_behind += len(data)
            try:
                for start, end, _ in split_batches(data):
                    header = read_header(data, start)
                    offset = header.next_offset
                    if not header.is_control:
                        yield from self._records(data, start, end)
            except DecodeError as error:
                raise StorageError(
                    f"{METADATA_TOPIC}-0 cannot be read near offset {offset}: {error}"
                ) from error

    def _records(self, data: bytes, start: int, end: int) -> Iterator[Message]:
        for row in decode_batch(data, start, end, METADATA_TOPIC, 0):
            record = self._read(row.value or b"")
            if record is not None:
                yield record

    def _read(self, value: bytes) -> Message | None:
        """Return the result of `unframe` for a log record's value; store the broker epochs of registrations.

        Raises:
            DecodeError: an error of `unframe`.
        """
        if value[:2] == _REGISTRATION:
            from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord

            _, version, position = record_head(value)
            found = RegisterBrokerRecord.decode(value[position:], version)
            self.registrations[found.broker_id] = found.broker_epoch
            return None
        return unframe(value)

    def append(self, records: Sequence[Message], now_ms: int, *, flushes: bool = True) -> None:
        """Append records in one batch and force it to disk: after a crash all of them are there, or none.

        If `flushes` is False, the batch reaches the disk at the latest with the next one.

        Raises:
            StorageError: the records could not be written.
        """
        self._take_back()
        if not self._has_begun:
            if self._base is not None:
                self._base.begin_epoch(self.epoch)
            self._has_begun = True
        first_offset = self._log.end_offset
        last_offset = first_offset + len(records) - 1
        batch = encode_batch(
            [(None, frame(record, self.level), (), now_ms) for record in records],
            base_offset=first_offset,
            partition_leader_epoch=self.epoch,
        )
        self._kept_to = first_offset
        try:
            self._log.append(
                batch, first_offset=first_offset, last_offset=last_offset, max_timestamp=now_ms, now_ms=now_ms
            )
            if flushes:
                self._log.flush()
        except BaseException:
            with suppress(StorageError):
                self._take_back()
            raise
        self._kept_to = None
        self.bytes_behind += len(batch)

    def _take_back(self) -> None:
        """Truncate the records of an append that failed, so that the next start does not apply them.

        Raises:
            StorageError: the log cannot be cut; then nothing may be appended.
        """
        if self._kept_to is not None:
            self._log.truncate_to(self._kept_to)
            self._kept_to = None
