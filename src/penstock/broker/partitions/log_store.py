"""`LogStore`: interface of a broker's log storage, in memory or in data directories with Kafka's layout.

A `LogStore` opens and deletes the logs of partitions, and has the ids of node, cluster and directories. It
identifies a partition by topic name and number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.log.contract import LogConfig
from penstock.log.memory import MemoryLog
from penstock.protocol.uuid import random_uuid, uuid_to_text

if TYPE_CHECKING:
    from penstock.broker.config.values import TopicConfig
    from penstock.broker.partitions.metadata_base import MetadataFiles
    from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
    from penstock.clock import Clock
    from penstock.errors import StorageError
    from penstock.log.contract import Log, PendingFlush
    from penstock.model import TopicPartition


LOGIN_SECRET_BYTES = 32

NOT_REGISTERED = -1
"""The broker epoch of a node that no controller of Apache Kafka has registered."""


class UnflushedLog(NamedTuple):
    """A log that must be flushed before a checkpoint. `pending.sync` flushes it; any thread may call that."""

    log: Log
    pending: PendingFlush


class LogStore(Protocol):
    """The interface of a store of a broker's logs. Methods raise `StorageError` if the disk fails."""

    node_id: int
    cluster_id: str
    directory_id: bytes
    was_clean: bool
    """True if the last broker that used these logs was shut down cleanly."""
    broker_epoch: int
    """The broker epoch of this node's last registration, which the clean-shutdown file contains, or
    `NOT_REGISTERED`.
    """
    metadata_directory: str | None
    """The data directory that has the metadata log; None if the store is in memory."""
    format_file: str | None
    """The path of the file that `kafka-storage format` has written for the first start, or None."""
    metadata_files: MetadataFiles | None
    """The snapshot and the quorum state beside the metadata log; None before this log is opened, or
    without such files."""
    holds_transactions: bool
    """True if partitions may have transactions, because the topic `__transaction_state` exists."""

    def uptime_ms(self) -> int:
        """Return the monotonic time in ms, for schedules and for measuring the idle time of producers."""

    def now_ms(self) -> int:
        """Return the time of day in ms since 1970, used as the creation time of new logs."""

    def describe(self) -> str:
        """Return a description of the storage, for the line that is printed when the broker is ready."""

    def partitions(self) -> Iterator[tuple[str, int]]:
        """Yield the topic and number of every stored partition, without the metadata log."""

    def directories(self) -> Sequence[str]:
        """Return the partition directories found at the broker's start, except that of the metadata log."""

    def log_dirs(self) -> Sequence[str]:
        """Return the directories that hold partitions; a store in memory returns one placeholder."""

    def log_dir_of(self, topic: str, partition: int) -> str:
        """Return the data directory with a partition; for an unstored one, the directory chosen for it."""

    def directory_id_of(self, topic: str, partition: int) -> bytes:
        """Return the id of the data directory with a partition, or of the one chosen for its first write."""

    def assign(self, topic: str, partition: int, directory_id: bytes) -> None:
        """Choose the data directory for a partition that is not stored yet."""

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return the topic id in the metadata file of a stored partition, or None if it has none."""

    def metadata_log(self) -> Log:
        """Return the log with the cluster's metadata records."""

    def open_log(self, topic: str, partition: int, topic_id: bytes, config: TopicConfig) -> Log:
        """Open a partition's log; create the log if it does not exist."""

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Return True if a partition's log exists, from this process or an earlier one."""

    def size_of(self, topic: str, partition: int, topic_id: bytes) -> int:
        """Return the size in bytes of an open or closed log; 0 if the log does not exist."""

    def may_shrink(
        self, topic: str, partition: int, topic_id: bytes, config: TopicConfig, now_ms: int
    ) -> bool:
        """Return True if retention may have records to delete in a log that is not open."""

    def producer_snapshots(self, topic: str, partition: int) -> ProducerSnapshots | None:
        """Return the producer snapshots of an open partition, or None if the log is in memory."""

    def delete_log(self, topic: str, partition: int, topic_id: bytes) -> None:
        """Delete the data of a partition, if the partition has any. Its log must be closed."""

    def login_secret(self) -> bytes:
        """Return a random secret that is stored with the data. No client ever gets it."""

    def side_directory(self, name: str) -> str:
        """Return the directory `name` for data other than partitions' logs, with the lifetime of the logs."""

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        """Yield a description of each file missing at the start, and "" after each step that finds none.

        Any thread may use the iterator. `known` returns True if a partition is in the metadata.
        """

    def missing(self) -> list[StorageError]:
        """Return an error for each log whose files were removed or moved since the log was opened.

        These logs accept no more writes.
        """

    def begin_checkpoint(self) -> Sequence[UnflushedLog]:
        """Return the logs to be forced to disk before the checkpoint of recovery points can be written."""

    def end_checkpoint(self, flushes: Sequence[UnflushedLog]) -> None:
        """Write the recovery points of the logs: recovery after a crash skips the records below them."""

    def close(self) -> None:
        """Force all logs to disk, write the clean-shutdown file, and unlock the data directories."""

    def abandon(self) -> None:
        """Close files and unlock directories as if the process were killed, without a clean shutdown."""


class MemoryStore:
    """A `LogStore` in memory, whose logs exist as long as this object."""

    was_clean = True

    holds_transactions = False

    def __init__(self, node_id: int, clock: Clock) -> None:
        self.node_id = node_id
        self.cluster_id = uuid_to_text(random_uuid())
        self.directory_id = random_uuid()
        self.broker_epoch = NOT_REGISTERED
        self.metadata_directory: str | None = None
        self.format_file: str | None = None
        self.metadata_files: MetadataFiles | None = None
        self._clock = clock
        self._metadata = MemoryLog(now_ms=clock.now_ms())
        self._logs: dict[tuple[bytes, int], MemoryLog] = {}
        self._scratch: str | None = None
        self._login_secret = b""

    def uptime_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def describe(self) -> str:
        return "memory"

    def partitions(self) -> Iterator[tuple[str, int]]:
        """Yield nothing: the metadata log, which this store keeps in memory too, lists the partitions."""
        return iter(())

    def directories(self) -> Sequence[str]:
        """Return no directories, since logs in memory need no search for producer ids at a start."""
        return ()

    def log_dirs(self) -> Sequence[str]:
        return (self.describe(),)

    def log_dir_of(self, topic: str, partition: int) -> str:
        return self.describe()

    def directory_id_of(self, topic: str, partition: int) -> bytes:
        return self.directory_id

    def assign(self, topic: str, partition: int, directory_id: bytes) -> None:
        """Do nothing, because the store has only one directory."""

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        return None

    def metadata_log(self) -> Log:
        return self._metadata

    def open_log(self, topic: str, partition: int, topic_id: bytes, config: TopicConfig) -> Log:
        key = (topic_id, partition)
        log = self._logs.get(key)
        if log is None:
            log = self._logs[key] = MemoryLog(log_config(config), now_ms=self._clock.now_ms())
        return log

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        return (topic_id, partition) in self._logs

    def size_of(self, topic: str, partition: int, topic_id: bytes) -> int:
        log = self._logs.get((topic_id, partition))
        return 0 if log is None else log.size_bytes

    def may_shrink(
        self, topic: str, partition: int, topic_id: bytes, config: TopicConfig, now_ms: int
    ) -> bool:
        return (topic_id, partition) in self._logs

    def producer_snapshots(self, topic: str, partition: int) -> ProducerSnapshots | None:
        return None

    def delete_log(self, topic: str, partition: int, topic_id: bytes) -> None:
        self._logs.pop((topic_id, partition), None)

    def login_secret(self) -> bytes:
        if not self._login_secret:
            self._login_secret = os.urandom(LOGIN_SECRET_BYTES)
        return self._login_secret

    def side_directory(self, name: str) -> str:
        """Return a temporary directory, which is deleted with the store."""
        if self._scratch is None:
            import shutil  # few brokers in memory write files
            import tempfile
            import weakref

            self._scratch = tempfile.mkdtemp(prefix="penstock-")
            weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return f"{self._scratch}/{name}"

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        return iter(())

    def missing(self) -> list[StorageError]:
        return []

    def begin_checkpoint(self) -> Sequence[UnflushedLog]:
        return ()

    def end_checkpoint(self, flushes: Sequence[UnflushedLog]) -> None:
        """Do nothing: the logs do not outlive this process."""

    def close(self) -> None:
        """Keep the logs in memory, so that another broker can be started on this store."""

    def abandon(self) -> None:
        """Keep the logs in memory, as a disk keeps them when a process is killed."""


def log_config(config: TopicConfig) -> LogConfig:
    """Return the subset of a topic's settings that its logs use, such as segment size and retention."""
    segment_ms = config.integer("segment.ms")
    if config.compacted:
        # A segment that is never closed is never compacted.
        segment_ms = min(segment_ms, config.integer("max.compaction.lag.ms"))
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=segment_ms,
        segment_jitter_ms=config.integer("segment.jitter.ms"),
        segment_index_bytes=config.integer("segment.index.bytes"),
        index_interval_bytes=config.integer("index.interval.bytes"),
        retention_ms=config.integer("retention.ms"),
        retention_bytes=config.integer("retention.bytes"),
        flush_messages=config.integer("flush.messages"),
        flush_ms=config.integer("flush.ms"),
        compacted=config.compacted,
    )
