"""Snapshots of the metadata log: the files `OFFSET-EPOCH.checkpoint` beside it (KIP-630, KIP-853).

A snapshot has the state of the metadata below its offset. The file has batches with their own offsets: a
control batch with a SnapshotHeader and, for a quorum whose voters may change, KRaftVersion and KRaftVoters;
batches of metadata records; a control batch with a SnapshotFooter. `kafka-storage format` writes
`0…0-0….checkpoint`: it lists the first voters of a quorum, and since Apache Kafka 4.4 it has the records
for the first start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import DecodeError, StorageError
from penstock.log.directory.files import remove_file, storage, write_whole
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import read_header, split_batches

logger = logger_named("penstock.log")

SUFFIX = ".checkpoint"

HEADER, FOOTER, KRAFT_VERSION, VOTERS = 3, 4, 5, 6
"""Types of control records in a snapshot. Type 2, LeaderChange, occurs in the log only."""

_NO_TAGS = b"\0"
"""The encoded end of a struct of a flexible version that has no tagged fields."""

_ONE = b"\2"
"""The encoded length of a compact array with one element: lengths are encoded plus one."""

RECORDS_PER_BATCH = 1000
"""The number of records per batch. A batch of this many is far smaller than the 8 MiB that Kafka's
controllers allow.
"""

CONTROLLER_LISTENER, CONTROLLER_PORT = "CONTROLLER", 9093
"""The name and port of a controller's listener in Kafka's example configurations."""

SUFFIX_PART = ".part"
"""The suffix of a new snapshot file until it has been read back for a check. Apache Kafka removes such
files at a start."""

_UNFINISHED = re.compile(r"\d{20}-\d{10}\.checkpoint(\.part|\.tmp|\.part\.tmp)")

_HEADER_BYTES_MAX = 64 << 10
"""The number of bytes to read in order to get a snapshot's first batch, which is far shorter."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotFile(NamedTuple):
    """A snapshot file with the state below `end_offset`; `epoch` is the raft epoch of the last record."""

    end_offset: int
    epoch: int
    path: str


class QuorumVoters(NamedTuple):
    """The voters of a quorum as encoded control records; None for voters that are static configuration."""

    kraft_version: bytes | None = None
    voters: bytes | None = None

    def after(self, kind: int, value: bytes) -> QuorumVoters:
        """Return the voters that result from applying a control record of type `kind`."""
        if kind == KRAFT_VERSION:
            return self._replace(kraft_version=value)
        if kind == VOTERS:
            return self._replace(voters=value)
        return self

    def voter_ids(self) -> set[int] | None:
        """Return the node ids of the voters, or None if no record names them.

        Raises:
            DecodeError: the record is damaged.
        """
        if self.voters is None:
            return None
        from penstock.protocol.messages.voters_record import VotersRecord

        return {voter.voter_id for voter in VotersRecord.decode(self.voters, 0).voters}


class SnapshotContents(NamedTuple):
    """The contents of a snapshot: encoded metadata records, and the voters of the quorum."""

    file: SnapshotFile
    values: Sequence[bytes]
    quorum: QuorumVoters

    @property
    def end_offset(self) -> int:
        """The offset after the last record that the snapshot covers, from which the log continues."""
        return self.file.end_offset

    @property
    def epoch(self) -> int:
        """The raft epoch of the last record that the snapshot covers."""
        return self.file.epoch


def snapshots_in(directory: str) -> list[SnapshotFile]:
    """Return the snapshots in a metadata log's directory, newest first, except the one at offset 0.

    The checkpoint at offset 0 has only the first voters.

    Raises:
        StorageError: the directory cannot be read.
    """
    with storage("read", directory):
        names = os.listdir(directory)
    found = [
        SnapshotFile(int(match[1]), int(match[2]), f"{directory}/{match[0]}")
        for name in names
        if (match := _NAME.fullmatch(name)) and int(match[1]) > 0
    ]
    return sorted(found, reverse=True)


def unfinished_in(directory: str) -> list[str]:
    """Return the names of unfinished snapshot files that a crash has left in the directory.

    Raises:
        StorageError: the directory cannot be read.
    """
    with storage("read", directory):
        names = os.listdir(directory)
    return [name for name in names if _UNFINISHED.fullmatch(name)]


def last_timestamp_ms(file: SnapshotFile) -> int | None:
    """Return the time of the last record that a snapshot covers, from its header.

    Returns None if the header cannot be read.

    Raises:
        StorageError: the file system fails.
    """
    with storage("read", file.path), open(file.path, "rb") as opened:
        data = opened.read(_HEADER_BYTES_MAX)
    try:
        start, end, _ = next(split_batches(data))
        row = next(iter(decode_batch(data, start, end, file.path, 0)))
        value = row.value or b""
    except (DecodeError, StopIteration):
        return None
    return int.from_bytes(value[2:10], "big") if len(value) >= 10 else None


def newest_whole(
    directory: str, start_offset: int = 0, end_offset: int | None = None
) -> SnapshotContents | None:
    """Return the newest complete snapshot from which a log can continue, or None if there is none.

    The end offset of such a snapshot is between `start_offset` and `end_offset` of the log, both included. If
    `end_offset` is None, there is no upper limit.

    Raises:
        StorageError: the file system fails.
    """
    for file in snapshots_in(directory):
        if file.end_offset < start_offset or (end_offset is not None and file.end_offset > end_offset):
            continue
        try:
            return read_snapshot(file)
        except StorageError as error:
            if error.errno is not None:
                raise
            logger.warning("%s; it is passed over", error)
    return None


def first_voters(directory: str) -> QuorumVoters:
    """Return the first voters of a quorum from the checkpoint at offset 0, or an empty `QuorumVoters`.

    Raises:
        StorageError: the file cannot be read, or is not complete.
    """
    path = f"{directory}/{0:020d}-{0:010d}{SUFFIX}"
    return read_snapshot(SnapshotFile(0, 0, path)).quorum if os.path.exists(path) else QuorumVoters()


def read_snapshot(file: SnapshotFile) -> SnapshotContents:
    """Read and check a whole snapshot file; return its contents.

    Raises:
        StorageError: the file cannot be read, or is not complete.
    """
    with storage("read", file.path), open(file.path, "rb") as opened:
        data = opened.read()
    values: list[bytes] = []
    quorum = QuorumVoters()
    kinds: list[int] = []
    try:
        for start, end, _ in split_batches(data):
            is_control = read_header(data, start).is_control
            for row in decode_batch(data, start, end, file.path, 0):
                if is_control:
                    kinds.append(control_kind(row.key))
                    quorum = quorum.after(kinds[-1], row.value or b"")
                else:
                    values.append(row.value or b"")
    except DecodeError as error:
        raise StorageError(f"{file.path} is damaged: {error}") from error
    if not kinds or kinds[0] != HEADER or kinds[-1] != FOOTER:
        raise StorageError(f"{file.path} is no whole snapshot: it has no header, or no footer")
    return SnapshotContents(file, values, quorum)


def control_kind(key: bytes | None) -> int:
    """Return the type of a control record.

    Raises:
        DecodeError: the key is too short.
    """
    if key is None or len(key) < 4:
        raise DecodeError("a control record whose key is too short")
    return int.from_bytes(key[2:4], "big")


def write_snapshot(
    directory: str,
    end_offset: int,
    epoch: int,
    values: Iterable[bytes],
    *,
    quorum: QuorumVoters,
    last_timestamp_ms: int,
    now_ms: int,
    read_back: bool = False,
) -> SnapshotFile:
    """Write a snapshot file of the state below `end_offset`; `values` are encoded metadata records.

    With `read_back`, the file gets its final name only after it has been read back from disk and has the same
    `values`.

    Raises:
        StorageError: the file cannot be written, or has other contents when it is read back. An older file
            of the same name is then unchanged.
    """
    path = f"{directory}/{end_offset:020d}-{epoch:010d}{SUFFIX}"
    controls = [(HEADER, bytes(2) + last_timestamp_ms.to_bytes(8, "big") + _NO_TAGS)]
    if quorum.kraft_version is not None:
        controls.append((KRAFT_VERSION, quorum.kraft_version))
    if quorum.voters is not None:
        controls.append((VOTERS, quorum.voters))
    if not read_back:
        write_whole(path, b"".join(_batches(controls, values, epoch, now_ms)), sync=True)
        return SnapshotFile(end_offset, epoch, path)
    part = SnapshotFile(end_offset, epoch, path + SUFFIX_PART)
    expected = list(values)
    try:
        write_whole(part.path, b"".join(_batches(controls, expected, epoch, now_ms)), sync=True)
        if read_snapshot(part).values != expected:
            raise StorageError(f"{part.path} does not hold what was written to it; check the disk")
        with storage("rename", part.path):
            os.replace(part.path, path)
    except BaseException:
        remove_file(part.path)
        raise
    return SnapshotFile(end_offset, epoch, path)


def _batches(
    controls: list[tuple[int, bytes]], values: Iterable[bytes], epoch: int, now_ms: int
) -> Iterator[bytes]:
    offset = len(controls)
    yield _control(0, controls, epoch, now_ms)
    rows: list[tuple[None, bytes, tuple[()], int]] = []
    for value in values:
        rows.append((None, value, (), now_ms))
        if len(rows) == RECORDS_PER_BATCH:
            yield encode_batch(rows, base_offset=offset, partition_leader_epoch=epoch)
            offset, rows = offset + len(rows), []
    if rows:
        yield encode_batch(rows, base_offset=offset, partition_leader_epoch=epoch)
        offset += len(rows)
    yield _control(offset, [(FOOTER, bytes(2) + _NO_TAGS)], epoch, now_ms)


def _control(offset: int, records: list[tuple[int, bytes]], epoch: int, now_ms: int) -> bytes:
    rows = [(bytes(2) + kind.to_bytes(2, "big"), value, (), now_ms) for kind, value in records]
    return encode_batch(rows, base_offset=offset, is_control=True, partition_leader_epoch=epoch)


def write_first_voters(directory: str, node_id: int, directory_id: bytes, now_ms: int) -> None:
    """Write the checkpoint with this node as the only voter of the quorum (KIP-853), if there is none.

    `kafka-storage format` writes one, too, which must stay: in Apache Kafka 4.4 the first users are in it.
    Apache Kafka starts from this checkpoint if it has no static voters. The voter's address is that of
    Kafka's example configurations: a quorum of one sends no requests, and Apache Kafka writes the real
    address once it leads or joins another quorum.

    Raises:
        StorageError: the file cannot be written.
    """
    if os.path.exists(f"{directory}/{0:020d}-{0:010d}{SUFFIX}"):
        return
    # Written by hand, as is all that a start of a new directory writes: compiling codecs would take 40 ms.
    name, host = CONTROLLER_LISTENER.encode(), b"localhost"
    endpoint = bytes((len(name) + 1,)) + name + bytes((len(host) + 1,)) + host
    endpoint += CONTROLLER_PORT.to_bytes(2, "big") + _NO_TAGS
    voter = node_id.to_bytes(4, "big") + directory_id + _ONE + endpoint
    voter += b"\0\0\0\1" + _NO_TAGS + _NO_TAGS  # versions 0 to 1 of the feature
    quorum = QuorumVoters(b"\0\0\0\1" + _NO_TAGS, bytes(2) + _ONE + voter + _NO_TAGS)
    write_snapshot(directory, 0, 0, (), quorum=quorum, last_timestamp_ms=0, now_ms=now_ms)
