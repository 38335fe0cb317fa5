"""Checks that this broker can use all contents of a data directory, before it writes to the directory.

A directory of Apache Kafka may contain data that this broker would not use: partitions in further log
directories or on other nodes, and ACLs that no authorizer would enforce. Serving such a directory would lose
settings, assign producer ids again, and leave metadata with which Apache Kafka cannot start any more. So the
directory is refused with a message that says what was found. A metadata log that is damaged before its end is
refused, too: recovery would truncate the records after the damage.

The module writes nothing. The layout of a directory: KIP-631, KIP-858, KIP-866, KIP-868.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import ClusterImage
from penstock.broker.metadata.metadata_log import FRAME_VERSION, RecordReader, unframe
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.errors import StorageError
from penstock.log.contract import LogConfig
from penstock.log.directory.files import storage
from penstock.log.directory.identity_files import META_PROPERTIES, format_file, read_meta_properties
from penstock.log.disk.data_directory import CLEAN_SHUTDOWN, find_partitions
from penstock.log.segments.recovery import segments_in
from penstock.log.segments.salvage import sound_batches
from penstock.log.segments.segment import FileSegment
from penstock.model import TopicPartition
from penstock.protocol.uuid import uuid_from_text
from penstock.records.batch import decode_batch
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.log.directory.identity_files import MetaProperties
    from penstock.log.directory.metadata_snapshots import SnapshotContents
    from penstock.protocol.message import Message
    from penstock.records.format.batch_header import BatchHeader

QUORUM_STATE = "quorum-state"
_SNAPSHOT = re.compile(r"\d{20}-\d{10}\.checkpoint")

_PARTITION = bytes((FRAME_VERSION, 3))
"""The first two bytes of every framed PartitionRecord: frame version and record type."""


def check_takeover(
    path: str, others: Sequence[str] = (), *, has_authorizer: bool = False, has_token_secret: bool = False
) -> None:
    """Check a data directory that another program may have written, and the broker's `others`.

    `has_authorizer` is True if the broker will enforce ACLs in the directory, and `has_token_secret` if the
    broker can verify delegation tokens.

    Raises:
        StorageError: this broker cannot use all contents, or cannot read them.
    """
    known = _check_others(path, others)
    if not os.path.isdir(path):
        return
    meta = read_meta_properties(path)
    partitions = find_partitions(path)
    if meta is not None and meta.has_zookeeper and partitions:
        raise _refusal(
            path,
            "a broker with ZooKeeper has written it, and the settings of its topics, its users and access "
            "rules are in ZooKeeper",
            "move that cluster to KRaft with Apache Kafka 3.9 first; or, if settings do not matter, copy the "
            f"directory, and remove {META_PROPERTIES} from the copy",
        )
    metadata = partitions.pop(TopicPartition(METADATA_TOPIC, 0), None)
    is_only_formatted = format_file(path) is not None and not _has_metadata(metadata)
    if is_only_formatted and partitions:
        raise _refusal(
            path,
            "Apache Kafka has made it, and its metadata are elsewhere (metadata.log.dir, or the first of "
            "several log.dirs)",
            "name that directory, too, in log.dirs",
        )
    if is_only_formatted:
        from penstock.broker.metadata.foreign_metadata import check_records

        values = _bootstrap_values(path)
        _say(path, check_records(values, -1, (), has_authorizer=True, has_token_secret=True))
    if metadata is not None:
        if meta is None:
            _say(path, _found_no_owner(metadata))
        records = metadata_of(path, metadata)
        if records is None:
            _say(path, _found_missing_directory(path, metadata, meta, known))
        else:
            from penstock.broker.metadata.foreign_metadata import check_quorum, check_records, check_voters

            node_id = -1 if meta is None else meta.node_id
            _say(path, check_voters(_text(f"{metadata}/{QUORUM_STATE}"), node_id))
            found = check_records(
                records.values(),
                node_id,
                known,
                has_authorizer=has_authorizer,
                has_token_secret=has_token_secret,
            )
            _say(path, found or check_quorum(records.quorum, node_id))


def bootstrap_records(path: str) -> list[Message]:
    """Return the records of `kafka-storage format` for the first start: feature levels, SCRAM users.

    Empty if the directory has not been formatted.

    Raises:
        StorageError: the file with the records cannot be read.
        DecodeError: a record in it is damaged.
    """
    return [record for value in _bootstrap_values(path) if (record := unframe(value)) is not None]


def _bootstrap_values(path: str) -> Sequence[bytes]:
    from penstock.log.directory.metadata_snapshots import SnapshotFile, read_snapshot

    file = format_file(path)
    if file is None:
        return ()
    try:
        return read_snapshot(SnapshotFile(0, 0, file)).values
    except StorageError as error:
        if error.errno is not None:
            raise
        raise _refusal(
            path, str(error), "format it again (kafka-storage format), or put the file back from a copy"
        ) from error


def _has_metadata(metadata: str | None) -> bool:
    """Return True if a metadata log's directory contains records; False also if `None` is passed."""
    if metadata is None:
        return False
    with storage("read", metadata):
        names = os.listdir(metadata)
        return any(map(_offset_of, names)) or any(
            os.path.getsize(f"{metadata}/{name}") for name in names if name.endswith(".log")
        )


def _found_no_owner(metadata: str) -> tuple[str, str] | None:
    """Return a problem if a directory without `meta.properties` has metadata of Apache Kafka, or None."""
    with storage("read", metadata):
        names = os.listdir(metadata)
    if QUORUM_STATE not in names and not any(map(_offset_of, names)):
        return None
    return (
        f"it has metadata of a cluster, but no {META_PROPERTIES}, which says of which cluster and node",
        _PUT + ", or write one with version=1, cluster.id, node.id and directory.id",
    )


def _found_missing_directory(
    path: str, metadata: str, meta: MetaProperties | None, known: set[str]
) -> tuple[str, str] | None:
    """Return a problem if a directory of `log.dirs` with partitions of this broker is missing, or None.

    The check is only for logs that Apache Kafka has not written.
    """
    from penstock.log.directory.metadata_snapshots import first_voters

    quorum = first_voters(metadata)
    if meta is None or meta.directory_id is None or quorum.voters is None:
        return None
    if uuid_from_text(meta.directory_id) not in quorum.voters:
        return None  # its meta.properties has been made anew: the records have another id of this directory
    records = metadata_of(path, metadata, written_by_any=True)
    if records is None:
        return None
    # Every start does this, and nearly every one ends here: decoding all records once more would make a start
    # with thousands of partitions slower by half (decision 0028).
    ids = list(map(uuid_from_text, known))
    places = (value for value in records.values() if value.startswith(_PARTITION))
    if all(any(each in value for each in ids) for value in places):
        return None
    from penstock.broker.metadata.foreign_metadata import found_elsewhere

    image = ClusterImage()
    for record in RecordReader().records(records.values()):
        image.apply(record)
    return found_elsewhere(image, known)


def _check_others(path: str, others: Sequence[str]) -> set[str]:
    """Check that directories belong to one node and share no partition; return the directories' ids.

    Raises:
        StorageError: the directories belong to several nodes, or a partition is in two of them. Nothing is
        changed.
    """
    found: dict[str, MetaProperties] = {}
    places: dict[TopicPartition, str] = {}
    for each in filter(os.path.isdir, (path, *others)):
        meta = read_meta_properties(each)
        partitions = find_partitions(each)
        if meta is not None:
            found[each] = meta
        elif partitions and others:
            raise _refusal(
                each, "it holds partitions, but no meta.properties, which says whose they are", _PUT
            )
        for partition in partitions:
            if partition in places:
                raise _refusal(each, f"it holds {partition}, which is in {places[partition]} as well", _AWAY)
            places[partition] = each
    for each, meta in found.items():
        for before, other in found.items():
            if each != before and meta.directory_id is not None and meta.directory_id == other.directory_id:
                raise _refusal(
                    each,
                    f"its directory.id, {meta.directory_id}, is that of {before} as well",
                    "one of the two is a copy: leave it out of log.dirs, or put its own meta.properties back",
                )
            if (other.cluster_id, other.node_id) != (meta.cluster_id, meta.node_id):
                raise _refusal(each, f"it is not of the cluster and the node of {before}", _ONE_NODE)
    return {meta.directory_id for meta in found.values() if meta.directory_id}


def _refusal(path: str, found: str, remedy: str) -> StorageError:
    return StorageError(
        f"{path} cannot be taken over whole, and nothing in it was changed: {found}; {remedy}"
    )


# --- the metadata log ------------------------------------------------------------------------------------


class MetadataRecords:
    """The records of a metadata log: those of its newest snapshot, and those after it."""

    def __init__(
        self, path: str, directory: str, bases: list[int], snapshot: SnapshotContents | None
    ) -> None:
        self._path = path
        self._directory = directory
        self._bases = bases
        from penstock.log.directory.metadata_snapshots import first_voters

        self._snapshot = snapshot
        self.quorum = first_voters(directory) if snapshot is None else snapshot.quorum
        """The voters of the quorum according to the records that `values` has read so far."""
        self.end_offset = 0 if snapshot is None else snapshot.end_offset
        """The offset after the last record that `values` has read so far."""
        self.epoch = -1 if snapshot is None else snapshot.epoch
        """The raft epoch of the last record that `values` has read so far."""

    def values(self, end_offset: int | None = None) -> Iterator[bytes]:
        """Yield the framed records: all of them, or those below `end_offset`.

        Raises:
            StorageError: the log is damaged before its end.
            DecodeError: a batch cannot be read.
        """
        from penstock.log.directory.metadata_snapshots import control_kind

        first_offset = 0
        if self._snapshot is not None:
            yield from self._snapshot.values
            first_offset = self._snapshot.end_offset
        bases = [
            base for base, after in zip(self._bases, self._bases[1:], strict=False) if after > first_offset
        ]
        bases += self._bases[-1:]
        for _, batch, header in _sound(self._path, self._directory, bases):
            if header.base_offset < first_offset:
                continue
            if end_offset is not None and header.next_offset > end_offset:
                return
            self.end_offset = header.next_offset
            self.epoch = max(self.epoch, header.partition_leader_epoch)
            for row in decode_batch(batch, 0, len(batch), METADATA_TOPIC, 0, verify=False):
                if header.is_control:
                    self.quorum = self.quorum.after(control_kind(row.key), row.value or b"")
                else:
                    yield row.value or b""


def metadata_of(path: str, directory: str, *, written_by_any: bool = False) -> MetadataRecords | None:
    """Return the records of a metadata log if Apache Kafka has written some of them, else None.

    `path` is the data directory, and `directory` the metadata log's directory in it. If `written_by_any` is
    True, the records are returned even if only Penstock has written the log.

    Raises:
        StorageError: the log is damaged or incomplete.
    """
    with storage("read", directory):
        names = os.listdir(directory)
    bases = segments_in(names)
    newest = max(map(_offset_of, names), default=0)
    if not bases and not newest:
        return None
    is_foreign = QUORUM_STATE in names or newest > 0
    start = bases[0] if bases else newest
    segment, end = (bases[0], start) if bases else (0, newest)
    for base, _, header in _sound(path, directory, bases):
        if header.base_offset < end or (base != segment and base != end):
            raise _refusal(
                path, f"its metadata log goes on at offset {header.base_offset} behind offset {end}", _REPAIR
            )
        segment, end = base, header.next_offset
        is_foreign = is_foreign or header.is_control
    if newest > end:
        raise _refusal(path, f"its metadata log ends at offset {end}, before its snapshot at {newest}", _COPY)
    if not is_foreign and not written_by_any:
        return None
    from penstock.log.directory.metadata_snapshots import newest_whole

    snapshot = newest_whole(directory, start, end)
    if snapshot is None and start > 0:
        raise _refusal(
            path,
            f"its metadata log begins at offset {start}, and no snapshot of what came before is whole",
            _REPAIR,
        )
    return MetadataRecords(path, directory, bases, snapshot)


def _say(path: str, found: tuple[str, str] | None) -> None:
    if found is not None:
        raise _refusal(path, *found)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _offset_of(name: str) -> int:
    """Return the end offset that is part of a snapshot file's name, or 0 for any other file."""
    return int(name[:20]) if _SNAPSHOT.fullmatch(name) else 0


def _sound(path: str, directory: str, bases: list[int]) -> Iterator[tuple[int, memoryview, BatchHeader]]:
    """Yield each batch in the metadata log as (segment base offset, batch, header), after a check for damage.

    Raises:
        StorageError: the log is damaged before its end or, after a clean shutdown, anywhere: recovery would
        truncate the records after the damage.
    """
    damage: list[tuple[int, int, int]] = []
    for base in bases:
        segment = FileSegment.existing(directory, base, LogConfig(), -1, writable=False)
        at = base

        def damaged(position: int, size: int, at: int = at) -> None:
            damage.append((at, position, size))

        for batch, magic in sound_batches(segment, damaged):
            if damage or magic < 2:
                raise _damaged(path, damage or [(base, 0, 0)])
            yield base, batch, read_header(batch)
    if damage and (
        len(damage) > 1 or damage[0][0] != bases[-1] or os.path.exists(f"{path}/{CLEAN_SHUTDOWN}")
    ):
        raise _damaged(path, damage)


def _damaged(path: str, damage: list[tuple[int, int, int]]) -> StorageError:
    segment, position, _ = damage[0]
    return _refusal(
        path,
        f"its metadata log is damaged at position {position} of segment {segment}, and what follows would be "
        "lost",
        _REPAIR,
    )


_PUT = "put it back from a copy"

_AWAY = "move one of the two away"

_ONE_NODE = "name the directories of one node in log.dirs, and no other"

_COPY = "let Apache Kafka serve it, and copy its topics into a new directory"

_REPAIR = (
    f"restore {METADATA_TOPIC}-0 from a copy, or remove it: topics are then taken in from their directories, "
    "without their settings"
)
