"""Producer state on disk, in Kafka's `.snapshot` files, so that a start does not read the whole log.

A snapshot at offset N has the state of a partition's producers when its log ended at N: the epoch and the
last batch of each producer. The two newest snapshots are kept. A start loads the older one and then reads the
batches after it from the log, which restores the last five batches of each producer. A clean shutdown writes
one more snapshot, so that Apache Kafka finds the producers, too, if it takes over the directory.

A snapshot only saves time. A snapshot that is damaged, or past the end of the log, is ignored.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.broker.partitions.producers.producer_state import ProducerState, SeenBatch, first_sequence
from penstock.common.logs import logger_named
from penstock.errors import DecodeError
from penstock.log.directory.files import remove_file, storage, write_whole
from penstock.protocol.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from penstock.records.format.crc import crc32c

if TYPE_CHECKING:
    from penstock.broker.partitions.producers.producer_state import Producers

logger = logger_named("penstock.broker")

SUFFIX = ".snapshot"
KEPT = 2

_VERSION = 1
_HEAD = struct.Struct(">hI")

NO_BATCH = SeenBatch(-1, -1, -1, -1, -1)
"""The last batch of a producer in a snapshot, if a marker has raised its epoch and no batch has followed."""


class ProducerSnapshots:
    """Reads and writes the producer snapshot files in the directory of one partition."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    @property
    def directory(self) -> str:
        """The directory of the partition."""
        return self._directory

    def offsets(self) -> list[int]:
        """Return the offsets of the snapshot files, in ascending order.

        Raises:
            StorageError: the directory cannot be read.
        """
        with storage("read", self._directory):
            names = os.listdir(self._directory)
        digits = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return sorted(int(text) for text in digits if len(text) == 20 and text.isdecimal())

    def discard_after(self, end_offset: int) -> None:
        """Remove the snapshots after `end_offset`, to which the log was truncated.

        Raises:
            StorageError: a snapshot cannot be removed.
        """
        for offset in self.offsets():
            if offset > end_offset:
                remove_file(self._path(offset))

    def save(self, offset: int, producers: Producers, base: int | None = None) -> None:
        """Write a snapshot of `producers` at `offset`, the end of the log.

        One older snapshot is kept: the newest, or the one at offset `base` if given.

        Raises:
            StorageError: the snapshot cannot be written.
        """
        # Not forced to disk: its checksum detects damage by a power cut, and it only saves reading.
        write_whole(self._path(offset), encode(producers), sync=False)
        there = self.offsets()
        kept = there[-KEPT:] if base is None else (base, offset)
        for older in there:
            if older not in kept:
                remove_file(self._path(older))

    def load(self, producers: Producers, start_offset: int, now_ms: int) -> int:
        """Fill `producers` from a snapshot; return the offset from which the log must still be read.

        Raises:
            StorageError: the directory cannot be read.
        """
        usable = [offset for offset in self.offsets() if offset >= start_offset]
        for offset in reversed(usable[:-1]):
            states = self._read(offset, now_ms)
            if states is not None:
                producers.restore(states)
                return offset
        return start_offset

    def producer_ids(self, offset: int) -> Iterable[int] | None:
        """Return the producer ids in the snapshot at `offset`, or None if the snapshot cannot be read."""
        return self._read(offset, 0)

    def _read(self, offset: int, now_ms: int) -> dict[int, ProducerState] | None:
        """Return the producer states in a snapshot; log a warning and return None if it cannot be read."""
        path = self._path(offset)
        try:
            with open(path, "rb") as file:
                return decode(file.read(), now_ms)
        except (OSError, DecodeError) as error:
            logger.warning("passing over %s: %s", path, error)
            return None

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SUFFIX}"


def encode(producers: Producers) -> bytes:
    """Return the contents of a snapshot file with the states of `producers`."""
    entries = []
    for producer_id, state in producers.items():
        last = state.batches[-1] if state.batches else NO_BATCH
        entries.append(
            ProducerEntry(
                producer_id=producer_id,
                epoch=state.epoch,
                last_sequence=last.last_sequence,
                last_offset=last.last_offset,
                offset_delta=last.last_offset - last.first_offset,
                timestamp=max(last.timestamp, state.timestamp),
                coordinator_epoch=state.coordinator_epoch,
                current_txn_first_offset=state.first_offset,
            )
        )
    body = ProducerSnapshot(producer_entries=entries).encode(_VERSION)[4:]
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode(data: bytes, now_ms: int) -> dict[int, ProducerState]:
    """Parse a snapshot file; return the producer states. Every producer counts as active at `now_ms`.

    Raises:
        DecodeError: another version, a wrong checksum, or data that are no snapshot.
    """
    states = {}
    for entry in _entries(data):
        count = entry.offset_delta + 1
        batch = SeenBatch(
            first_sequence(entry.last_sequence, count),
            entry.last_sequence,
            entry.last_offset - entry.offset_delta,
            entry.last_offset,
            entry.timestamp,
        )
        state = states[entry.producer_id] = ProducerState(entry.epoch, now_ms)
        state.coordinator_epoch = entry.coordinator_epoch
        state.first_offset = entry.current_txn_first_offset
        state.timestamp = entry.timestamp
        if entry.last_sequence >= 0:
            state.batches.append(batch)
    return states


def _entries(data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEAD.size:
        raise DecodeError(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise DecodeError(f"producer snapshot of version {version}, only {_VERSION} is known")
    if crc32c(data[_HEAD.size :]) != crc:
        raise DecodeError("producer snapshot with a wrong checksum")
    return ProducerSnapshot.decode(data[2:], _VERSION).producer_entries
