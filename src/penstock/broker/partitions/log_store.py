"""Where a broker keeps its logs: in memory, or in one data directory laid out as Kafka does.

A `LogStore` opens and deletes the logs of partitions and holds what identifies the broker's data. It
works on names and numbers of partitions, independent of topics and their settings.
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
"""The broker epoch where no controller of Apache Kafka has registered this node."""


class UnflushedLog(NamedTuple):
    """A log that is to be flushed up to some offset: `pending.sync` may run in another thread."""

    log: Log
    pending: PendingFlush


class LogStore(Protocol):
    """The logs of a broker: what the cluster needs of them. Failures of the disk are `StorageError`."""

    node_id: int
    cluster_id: str
    directory_id: bytes
    was_clean: bool
    """Whether the last broker on these logs has closed them."""
    broker_epoch: int
    """The epoch of this node's last registration, for the mark of a clean shutdown; `NOT_REGISTERED`."""
    metadata_directory: str | None
    """The data directory that has the cluster's own log; None where nothing is on disk."""
    metadata_files: MetadataFiles | None
    """What stands beside the cluster's own log, once that is open; None where there is nothing."""
    holds_transactions: bool
    """Whether partitions may have transactions: a topic for the state of transactions exists."""

    def uptime_ms(self) -> int:
        """Return the monotonic clock: what schedules go by, and how long a producer is idle."""

    def describe(self) -> str:
        """Return the kind of storage, in words, for the line printed when the broker is ready."""

    def partitions(self) -> Iterator[tuple[str, int]]:
        """Topic and number of every partition that is there, but for the cluster's own log."""

    def directories(self) -> Sequence[str]:
        """Return the directories of the partitions that were there at the start, but for the cluster's own
        log.
        """

    def log_dirs(self) -> Sequence[str]:
        """Return the directories in which partitions lie; one name where they lie in memory."""

    def log_dir_of(self, topic: str, partition: int) -> str:
        """In which of `log_dirs` a partition lies, or will lie once it is written to."""

    def directory_id_of(self, topic: str, partition: int) -> bytes:
        """Return the id of the directory in which a partition lies, or will lie."""

    def assign(self, topic: str, partition: int, directory_id: bytes) -> None:
        """Note in which directory a partition is to lie once it is written to, unless it is there already."""

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        """Return the id that a partition which is there notes; None if it has none."""

    def metadata_log(self) -> Log:
        """Return the log of the cluster's own records."""

    def open_log(self, topic: str, partition: int, topic_id: bytes, config: TopicConfig) -> Log:
        """Open a partition's log, or begin one."""

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        """Return whether a partition's log has been begun, by us or an earlier broker."""

    def size_of(self, topic: str, partition: int, topic_id: bytes) -> int:
        """Return the bytes of a log that need not be open; 0 where none has been begun."""

    def may_shrink(
        self, topic: str, partition: int, topic_id: bytes, config: TopicConfig, now_ms: int
    ) -> bool:
        """Return whether retention may find something to drop in a log that is not open."""

    def producer_snapshots(self, topic: str, partition: int) -> ProducerSnapshots | None:
        """Return where the producers of an open partition are noted; None where nothing outlives the log."""

    def delete_log(self, topic: str, partition: int, topic_id: bytes) -> None:
        """Delete a partition's data, if there are any. The log is closed."""

    def login_secret(self) -> bytes:
        """Return a random secret that stays with the data, and that no client learns; made when first asked
        for.
        """

    def side_directory(self, name: str) -> str:
        """Return a directory for data that are no partitions. They live as long as the partitions do."""

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        """Return what was missing at the start, in words, and empty strings in between. For any thread.

        `known` returns whether a partition is in the metadata.
        """

    def missing(self) -> list[StorageError]:
        """Return what was removed or moved since it was opened; nothing is written there any more."""

    def begin_checkpoint(self) -> Sequence[UnflushedLog]:
        """Return what has to be forced to disk before a checkpoint can be written."""

    def end_checkpoint(self, flushes: Sequence[UnflushedLog]) -> None:
        """Note what a start after a crash need not look at again."""

    def close(self) -> None:
        """Force everything to disk, mark the shutdown as clean, release the directory."""

    def abandon(self) -> None:
        """Let go of everything as a killed process would: nothing is forced to disk or marked."""


class MemoryStore:
    """Logs that live as long as this object."""

    was_clean = True

    holds_transactions = False

    def __init__(self, node_id: int, clock: Clock) -> None:
        self.node_id = node_id
        self.cluster_id = uuid_to_text(random_uuid())
        self.directory_id = random_uuid()
        self.broker_epoch = NOT_REGISTERED
        self.metadata_directory: str | None = None
        self.metadata_files: MetadataFiles | None = None
        self._clock = clock
        self._metadata = MemoryLog(now_ms=clock.now_ms())
        self._logs: dict[tuple[bytes, int], MemoryLog] = {}
        self._scratch: str | None = None
        self._login_secret = b""

    def uptime_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def describe(self) -> str:
        return "memory"

    def partitions(self) -> Iterator[tuple[str, int]]:
        """Those of an earlier broker are in its metadata log, which is here as well."""
        return iter(())

    def directories(self) -> Sequence[str]:
        """None: the logs and the metadata that counts producer ids live and die together."""
        return ()

    def log_dirs(self) -> Sequence[str]:
        return (self.describe(),)

    def log_dir_of(self, topic: str, partition: int) -> str:
        return self.describe()

    def directory_id_of(self, topic: str, partition: int) -> bytes:
        return self.directory_id

    def assign(self, topic: str, partition: int, directory_id: bytes) -> None:
        """There is one place only."""

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
        """Return a temporary one, which goes when the store goes."""
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
        """Nothing outlives this process."""

    def close(self) -> None:
        """The logs stay: another broker may be started on this store."""

    def abandon(self) -> None:
        """The logs stay, as the disk of a machine outlives the process."""


def log_config(config: TopicConfig) -> LogConfig:
    """Return the settings of a topic that concern its log."""
    segment_ms = config.integer("segment.ms")
    if config.compacted:
        # What is never closed is never compacted.
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
