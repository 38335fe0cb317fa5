"""Maintains the metadata log at run time: writes snapshots, and removes what they replace (KIP-630).

Without snapshots, the log would contain every change in the history of the cluster, and every start would
read all changes. Once the log has grown by `metadata.log.max.record.bytes.between.snapshots`, a thread reads
the files and writes a snapshot. Older snapshots are removed according to `metadata.max.retention.bytes` and
`.ms`, together with the log segments below the oldest remaining snapshot. The rules are those of Apache Kafka
(`KafkaMetadataLog`), which can start on the remaining files.

Nothing is deleted before a snapshot that replaces it is on disk and has been read back. The log's
segments are deleted before the older snapshots, the oldest first: a crash at any point leaves the newest
snapshot and the whole log after it.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from penstock.broker.metadata.directory_levels import write_snapshot_of
from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.common.logs import logger_named
from penstock.common.threads import pause
from penstock.errors import StorageError
from penstock.log.directory.files import remove_file, storage
from penstock.log.directory.metadata_snapshots import (
    SnapshotFile,
    last_timestamp_ms,
    snapshots_in,
    unfinished_in,
)

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.metadata_log import MetadataLog
    from penstock.common.failures import Failures

logger = logger_named("penstock.broker")

CLEANING_INTERVAL_S = 60
"""The seconds between checks for old snapshots to remove, as in Apache Kafka."""

RETRY_S = 600
"""The seconds until writing a snapshot is tried again after a failure. Each attempt reads the whole log."""

VALUES_PER_PAUSE = 50
"""The number of records that the thread processes, in some milliseconds, before it lets the event loop
run."""


class _StoppedError(Exception):
    """Raised in the snapshot thread if the broker stops while a snapshot is being written."""


class MetadataUpkeep:
    """Writes snapshots of one metadata log, and removes old ones. Times are in monotonic seconds."""

    def __init__(
        self, log: MetadataLog, data_directory: str, config: BrokerConfig, failures: Failures
    ) -> None:
        """Prepare to maintain the metadata log, which this process uses, in `data_directory`."""
        self._log = log
        self._data_directory = data_directory
        self._directory = f"{data_directory}/{METADATA_TOPIC}-0"
        self._failures = failures
        self._bytes_between = config.integer("metadata.log.max.record.bytes.between.snapshots")
        self._bytes_max = config.integer("metadata.max.retention.bytes")
        self._age_ms_max = config.integer("metadata.max.retention.ms")
        self._newest: SnapshotFile | None = log.snapshot_file
        """The newest snapshot that is complete."""
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._written: SnapshotFile | None = None
        self._bytes_written_at = 0
        self._next_try = self._next_cleaning = 0.0

    def step(self, now: float, now_ms: int, *, in_thread: bool) -> None:
        """Do the work that is due at `now`; a thread writes snapshots if `in_thread` is True.

        Raises:
            StorageError: old files cannot be read or removed.
        """
        if self._thread is not None:
            if self._thread.is_alive():
                return
            self._thread = None
            self._take_written()
        # Cleaning comes first: a log that always grows fast enough for the next snapshot must be cut, too.
        if now >= self._next_cleaning:
            self._next_cleaning = now + CLEANING_INTERVAL_S
            self._clean(now_ms)
        if self._log.bytes_behind > self._bytes_between and now >= self._next_try:
            self._next_try = now + RETRY_S
            self._bytes_written_at = self._log.bytes_behind
            # Records appended from here on may reach the disk later than the snapshot.
            arguments = now_ms, self._log.end_offset
            if in_thread:
                self._thread = threading.Thread(
                    target=self._write, args=arguments, name="penstock-metadata", daemon=True
                )
                self._thread.start()
            else:
                self._write(*arguments)
                self._take_written()

    def stop(self) -> None:
        """End the snapshot thread, if it runs. An incomplete snapshot is dropped."""
        self._is_over = True
        if self._thread is not None:
            self._thread.join()

    # --- snapshots ---------------------------------------------------------------------------------------

    def _write(self, now_ms: int, end_offset: int) -> None:
        with self._failures.barrier("housekeeping", "a snapshot of the metadata log"):
            try:
                self._written = write_snapshot_of(
                    self._data_directory, now_ms, end_offset=end_offset, between=self._breathe
                )
            except StorageError as error:
                logger.warning("there is no new snapshot of the metadata log: %s", error)
            except _StoppedError:
                return

    def _breathe(self, count: int) -> None:
        """Pause after every `VALUES_PER_PAUSE` records for other threads; `count` is the record's number.

        Raises:
            _StoppedError: the broker stops.
        """
        if self._is_over:
            raise _StoppedError
        if not count % VALUES_PER_PAUSE and self._thread is not None:
            pause()

    def _take_written(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            self._newest = written
            self._log.bytes_behind -= self._bytes_written_at
            self._next_try = self._next_cleaning = 0.0

    # --- cleaning ----------------------------------------------------------------------------------------

    def _clean(self, now_ms: int) -> None:
        newest = self._newest
        if newest is None:
            return
        for name in unfinished_in(self._directory):
            remove_file(f"{self._directory}/{name}")
        known = [each for each in reversed(snapshots_in(self._directory)) if each <= newest]
        with storage("look at", self._directory):
            sizes = {each: os.path.getsize(each.path) for each in known}
        size = self._log.size_bytes + sum(sizes.values())
        kept = 0
        while kept < len(known) - 1 and (size > self._bytes_max or self._is_old(known[kept], now_ms)):
            size -= sizes[known[kept]] + self._log.bytes_below(known[kept + 1].end_offset)
            kept += 1
        if kept:
            self._log.drop_before(known[kept].end_offset)
            for each in known[:kept]:
                remove_file(each.path)
            logger.info(
                "%s begins at offset %d now: %d older snapshots have gone",
                self._directory,
                known[kept].end_offset,
                kept,
            )

    def _is_old(self, snapshot: SnapshotFile, now_ms: int) -> bool:
        written_ms = last_timestamp_ms(snapshot)
        return 0 <= self._age_ms_max < now_ms - written_ms if written_ms is not None else False
