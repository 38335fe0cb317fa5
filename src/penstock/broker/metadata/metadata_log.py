"""The cluster's metadata log: `__cluster_metadata-0`, in the records that Apache Kafka's controllers write.

Topics, their ids, partitions and settings are stored as metadata records (KIP-631) in an ordinary log. The
start of a broker replays the log; each change appends records. A record is framed as: frame version (uvarint,
1), record type (uvarint), record version (uvarint), body.

This module reads and writes records; `image` decides what each of them does to the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import DecodeError, StorageError
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header, split_batches
from penstock.records.format.varint import read_unsigned

if TYPE_CHECKING:
    from penstock.log.contract import Log
    from penstock.log.directory.metadata_snapshots import SnapshotFile
    from penstock.protocol.message import Message

LEADER_EPOCH = 1
"""The first raft epoch of a quorum with one voter, which has elected itself once."""

FRAME_VERSION = 1

_READ_BYTES = 1 << 20

RECORDS = {
    0: "register_broker", 1: "unregister_broker", 2: "topic", 3: "partition", 4: "config",
    5: "partition_change", 7: "fence_broker", 8: "unfence_broker", 9: "remove_topic", 10: "delegation_token",
    11: "user_scram_credential", 12: "feature_level", 14: "client_quota", 15: "producer_ids",
    17: "broker_registration_change", 18: "access_control_entry", 19: "remove_access_control_entry",
    20: "no_op", 21: "zk_migration_state", 22: "remove_user_scram_credential", 23: "begin_transaction",
    24: "end_transaction", 25: "abort_transaction", 26: "remove_delegation_token", 27: "register_controller",
    28: "clear_elr", 29: "unregister_controller",
}  # fmt: skip
"""The types of records that Apache Kafka 4.4 writes, with their names in lower case, without ``Record``."""

_BEGIN, _END, _ABORT = 23, 24, 25
"""The types of the records at the ends of a metadata transaction, whose records take effect together or not
at all (KIP-868)."""

_WITHOUT_EFFECT = {20, 21}

METADATA_LEVEL_MAX = 33
"""The highest supported level of `metadata.version`: 4.4-IV2. Later levels may add fields and records
that this code cannot read.
"""

METADATA_LEVEL_MIN = 7
"""The lowest supported level of `metadata.version`: 3.3-IV3, the oldest that Apache Kafka 4.x accepts.

Before this level, KRaft was not ready for production.
"""

SCRAM_SINCE = 11
"""3.5-IV2: the level from which on metadata can have SCRAM credentials (KIP-900)."""

TOKENS_SINCE = 14
"""3.6-IV2: the level from which on metadata can have delegation tokens."""

DIRECTORIES_SINCE = 17
"""3.7-IV2: from this level on, records of partitions contain directory ids."""

VOTERS_SINCE = 21
"""3.9-IV0: from this level on, the metadata log may contain the voters of its quorum (KIP-853).

Earlier releases do not start on a snapshot that contains voters.
"""

ELIGIBLE_REPLICAS_SINCE = 23
"""4.0-IV1: from this level on records of partitions have eligible leader replicas (KIP-966)."""

CORDONED_SINCE = 30
"""4.3-IV0: the first level whose broker registrations list cordoned directories, which get no new
partitions.
"""

_CLASSES: dict[int, type[Message]] = {}
"""A dict from record type to its class, filled on use: most clusters use few types, and imports take
time.
"""


def record_class(key: int) -> type[Message] | None:
    """Return the class of a record type, or None if the type is unknown."""
    cls = _CLASSES.get(key)
    if cls is None and (name := RECORDS.get(key)) is not None:
        module = import_module(f"penstock.protocol.messages.{name}_record")
        cls = _CLASSES[key] = getattr(module, f"{name.title().replace('_', '')}Record")
    return cls


def _version(record: Message, level: int) -> int:
    """Return the version in which a record is written at a `metadata.version` level."""
    if level >= ELIGIBLE_REPLICAS_SINCE and (
        isinstance(record, PartitionChangeRecord)
        or (isinstance(record, PartitionRecord) and record.eligible_leader_replicas is not None)
    ):
        return 2
    if isinstance(record, PartitionRecord):
        return int(level >= DIRECTORIES_SINCE)
    if record.API_KEY == 0:  # RegisterBrokerRecord, which this broker writes only into snapshots
        return 4 if level >= CORDONED_SINCE else 3 if level >= DIRECTORIES_SINCE else 2 if level >= 8 else 1
    return 0


def frame(record: Message, level: int = DIRECTORIES_SINCE) -> bytes:
    """Return the bytes of a metadata record, as the value of a log record, for a `metadata.version` level."""
    assert record.API_KEY is not None
    version = _version(record, level)
    # All three numbers are below 128, where an unsigned varint is the byte itself.
    return bytes((FRAME_VERSION, record.API_KEY, version)) + record.encode(version)


def unframe(value: bytes, *, is_strict: bool = False) -> Message | None:
    """Return the metadata record in the value of a log record.

    None is returned for records without an effect, and, unless `is_strict` is set, for unknown types.

    Raises:
        DecodeError: the frame or the body is damaged, or of a newer version than is supported.
    """
    key, version, position = record_head(value)
    cls = record_class(key)
    if cls is None and not is_strict:
        return None
    if cls is None or version > cls.VERSIONS[1]:
        raise DecodeError(f"a record of type {key} and version {version}")
    return None if key in _WITHOUT_EFFECT else cls.decode(value[position:], version)


class RecordReader:
    """Decodes metadata records. It yields the records of a metadata transaction at its end (KIP-868)."""

    def __init__(self, *, is_strict: bool = False) -> None:
        """Prepare to decode records. With `is_strict`, unknown record types are errors."""
        self._is_strict = is_strict
        self._pending: list[Message] | None = None

    @property
    def is_within_transaction(self) -> bool:
        """True if a metadata transaction has begun and not ended."""
        return self._pending is not None

    def records(self, values: Iterable[bytes]) -> Iterator[Message]:
        """Yield the records in framed `values` that have an effect, in order.

        Raises:
            DecodeError: a record is damaged, or its type or version is not supported.
        """
        for value in values:
            record = unframe(value, is_strict=self._is_strict)
            if record is None:
                continue
            if record.API_KEY == _BEGIN:
                self._pending = []
            elif record.API_KEY == _ABORT:
                self._pending = None
            elif record.API_KEY == _END:
                pending, self._pending = self._pending or (), None
                yield from pending
            elif self._pending is None:
                yield record
            else:
                self._pending.append(record)


def record_head(value: bytes) -> tuple[int, int, int]:
    """Return type and version of a framed metadata record, and the position of its body.

    Raises:
        DecodeError: the frame is damaged, or of an unsupported version.
    """
    try:
        frame_version, position = read_unsigned(value, 0)
        key, position = read_unsigned(value, position)
        version, position = read_unsigned(value, position)
    except IndexError:
        raise DecodeError("a metadata record is cut short") from None
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"a metadata record in frame version {frame_version}, expected {FRAME_VERSION}")
    return key, version, position


class MetadataSnapshot(Protocol):
    """A snapshot: metadata records that replace all records of the log below an offset."""

    @property
    def file(self) -> SnapshotFile: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def values(self) -> Sequence[bytes]: ...


class MetadataBase(Protocol):
    """The interface of the files beside the metadata log: the newest snapshot and the quorum state."""

    @property
    def snapshot(self) -> MetadataSnapshot | None: ...

    @property
    def epoch(self) -> int: ...

    def begin_epoch(self, epoch: int) -> None: ...


class MetadataLog:
    """The metadata log of a cluster: the records in the log, and those in its snapshot."""

    def __init__(self, log: Log, base: MetadataBase | None = None) -> None:
        """Prepare to replay `log`. `base` has its snapshot and quorum state; None for a log in memory."""
        self._log = log
        self._base = base
        self.level = ELIGIBLE_REPLICAS_SINCE
        """The `metadata.version` level that determines the versions of written records; set after the replay.
        """
        last = max(log.leader_epochs.latest, -1 if base is None else base.epoch)
        self.epoch = LEADER_EPOCH if last < 0 else last + 1
        """The raft epoch of the records that this run writes: one above the last epoch of the log."""
        self._has_begun = False
        self._kept_to: int | None = None
        """The offset to which the log must be truncated before the next append, because an append
        failed; otherwise None.
        """
        self.bytes_behind = 0
        """The size in bytes of the log's records after the newest snapshot."""

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def has_snapshot(self) -> bool:
        """True if a snapshot replaces the first part of the log, whose records may be deleted."""
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
        """Return the size in bytes of the segments that `drop_before` would delete for an offset."""
        return sum(each.size for each in self._log.segments if each.end_offset <= offset)

    def drop_before(self, offset: int) -> None:
        """Delete whole segments below an offset that a snapshot covers; the log then starts at this offset.

        Raises:
            StorageError: a file cannot be removed.
        """
        self._log.delete_before(offset)

    def replay(self) -> Iterator[Message]:
        """Yield every record of the log that has an effect, in order; see `RecordReader`.

        Raises:
            StorageError: the log cannot be read, or its records are malformed.
        """
        reader = RecordReader()
        offset = self._log.start_offset
        snapshot = None if self._base is None else self._base.snapshot
        if snapshot is not None:
            try:
                yield from reader.records(snapshot.values)
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
                        rows = decode_batch(data, start, end, METADATA_TOPIC, 0)
                        yield from reader.records(row.value or b"" for row in rows)
            except DecodeError as error:
                raise StorageError(
                    f"{METADATA_TOPIC}-0 cannot be read near offset {offset}: {error}"
                ) from error

    def append(self, records: Sequence[Message], now_ms: int, *, flushes: bool = True) -> None:
        """Append records in one batch and flush it: after a crash, the log has all of these records or none.

        If `flushes` is False, the batch is flushed at the latest with the next batch.

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
        """Truncate the log to remove the records of a failed append, so that no start applies them.

        Raises:
            StorageError: the log cannot be truncated. Then no records may be appended before a truncation
            succeeds.
        """
        if self._kept_to is not None:
            self._log.truncate_to(self._kept_to)
            self._kept_to = None
