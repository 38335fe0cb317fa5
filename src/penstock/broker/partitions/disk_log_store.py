"""`DiskStore`: logs in a data directory with Kafka's layout. `penstock.log` reads and writes the files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS, METADATA_TOPIC, METADATA_TOPIC_ID
from penstock.broker.partitions.log_store import LOGIN_SECRET_BYTES, UnflushedLog, log_config
from penstock.broker.partitions.openings import Openings
from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, StorageError
from penstock.log.contract import LogConfig
from penstock.log.directory.files import read_text, storage, write_text
from penstock.log.directory.identity_files import format_file
from penstock.log.disk.data_directory import DataDirectory
from penstock.log.segments.closed import may_be_due, size_of
from penstock.log.segments.recovery import segments_in
from penstock.model import TopicPartition
from penstock.protocol.uuid import ZERO_UUID, uuid_from_text, uuid_to_text

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig, TopicConfig
    from penstock.broker.partitions.metadata_base import MetadataFiles
    from penstock.clock import Clock
    from penstock.log.contract import Log
    from penstock.log.disk.log_directories import LogDirectories

logger = logger_named("penstock.broker")

_FOREIGN = re.compile(r"quorum-state|(?!0{20})\d{20}-\d{10}\.checkpoint")
"""A pattern for the names of files of Apache Kafka beside the metadata log: `quorum-state` and
snapshots. If there are any, the start of the broker reads them.
"""

LOGIN_SECRET = "penstock.login.secret"
"""The name of the file with the secret from which the SCRAM salts of nonexistent users are derived."""

_UNNAMED = ZERO_UUID
"""The zero UUID: stands for a directory without id. Kafka before 3.7 did not assign directory ids
(KIP-858).
"""


class DiskStore:
    """Stores logs in one or several data directories, which this process locks.

    `penstock.broker.metadata.stores` checks first that this broker can use the contents.

    Raises:
        StorageError: the directory cannot be used, or another broker uses it.
        ConfigError: the directory belongs to another node.
    """

    def __init__(
        self,
        path: str,
        config: BrokerConfig,
        clock: Clock,
        others: Sequence[str] = (),
        *,
        names_voters: bool = True,
    ) -> None:
        """Open the data directories: `path`, which also has the metadata log, and `others`.

        If `names_voters` is True, a new directory gets a first snapshot that lists the voters of the metadata
        quorum.
        """
        self._clock = clock
        self._names_voters = names_voters
        self._directory: DataDirectory | LogDirectories
        self._several: LogDirectories | None = None
        if others:
            from penstock.log.disk.log_directories import LogDirectories

            self._directory = self._several = LogDirectories((path, *others), node_id=config.node_id)
        else:
            self._directory = DataDirectory(path, node_id=config.node_id)
        meta = self._directory.meta
        self.node_id = meta.node_id if meta.node_id >= 0 else config.node_id
        if config.names_node and config.node_id != self.node_id:
            self._directory.abandon()
            raise ConfigError(f"node.id is {config.node_id}, but {path} belongs to node {self.node_id}")
        self.cluster_id = meta.cluster_id
        self.directory_id = uuid_from_text(meta.directory_id) if meta.directory_id else _UNNAMED
        self.was_clean = self._directory.was_clean
        self.holds_transactions = False
        self.metadata_directory: str | None = self._directory.all[0].path
        self.format_file = format_file(self._directory.all[0].path)
        self.metadata_files: MetadataFiles | None = None
        self._on_disk = set(self._directory.partitions)
        # A snapshot is written after this many bytes, and only whole segments below it can be deleted.
        between = config.integer("metadata.log.max.record.bytes.between.snapshots")
        self._metadata_config = LogConfig(segment_bytes=between)
        self._openings = Openings(clock, config.integer("penstock.log.open.ms.max"))

    def uptime_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def describe(self) -> str:
        return self._directory.path

    def partitions(self) -> Iterator[tuple[str, int]]:
        return iter([partition for partition in sorted(self._on_disk) if partition.topic != METADATA_TOPIC])

    def directories(self) -> Sequence[str]:
        return [self._path(TopicPartition(topic, index)) for topic, index in self.partitions()]

    def log_dirs(self) -> Sequence[str]:
        return [each.path for each in self._directory.all]

    def log_dir_of(self, topic: str, partition: int) -> str:
        return self._directory.home_of(TopicPartition(topic, partition)).path

    def directory_id_of(self, topic: str, partition: int) -> bytes:
        if self._several is None:
            return self.directory_id
        found = self._several.home_of(TopicPartition(topic, partition)).meta.directory_id
        return uuid_from_text(found) if found else _UNNAMED

    def assign(self, topic: str, partition: int, directory_id: bytes) -> None:
        if self._several is not None:
            self._several.assign(TopicPartition(topic, partition), uuid_to_text(directory_id))

    def _path(self, partition: TopicPartition) -> str:
        return f"{self._directory.home_of(partition).path}/{partition}"

    def topic_id(self, topic: str, partition: int) -> bytes | None:
        try:
            return self._directory.topic_id(TopicPartition(topic, partition))
        except StorageError as error:
            # A file that cannot be read must not keep the rest from starting: opening the log raises.
            logger.warning("%s", error)
            return None

    def metadata_log(self) -> Log:
        partition = TopicPartition(METADATA_TOPIC, 0)
        now_ms = self._clock.now_ms()
        path = f"{self._directory.all[0].path}/{partition}"
        if partition not in self._on_disk:
            log = self._directory.create_log(
                partition, METADATA_TOPIC_ID, self._metadata_config, now_ms=now_ms
            )
            self._note_voters(path, now_ms)
            return log
        with storage("read", path):
            names = os.listdir(path)
        files = None
        if any(map(_FOREIGN.fullmatch, names)):
            from penstock.broker.partitions.metadata_base import MetadataFiles

            files = MetadataFiles(path, self.node_id)
            if not segments_in(names):
                files.begin_log()
        log = self._directory.open_log(partition, self._metadata_config, now_ms=now_ms)
        if files is None and not log.end_offset:
            # An earlier start was interrupted after it had created the empty log.
            self._note_voters(path, now_ms)
        if files is not None:
            files.find_snapshot(log.start_offset, log.end_offset)
            self.metadata_files = files
        return log

    def _note_voters(self, path: str, now_ms: int) -> None:
        if self._names_voters and self.directory_id != _UNNAMED:
            from penstock.log.directory.metadata_snapshots import write_first_voters

            write_first_voters(path, self.node_id, self.directory_id, now_ms)

    @property
    def broker_epoch(self) -> int:
        return self._directory.broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, epoch: int) -> None:
        self._directory.broker_epoch = epoch

    def open_log(self, topic: str, partition: int, topic_id: bytes, config: TopicConfig) -> Log:
        if topic in INTERNAL_TOPICS:
            return self._open_log(topic, partition, topic_id, config)
        with self._openings:
            return self._open_log(topic, partition, topic_id, config)

    def _open_log(self, topic: str, partition: int, topic_id: bytes, config: TopicConfig) -> Log:
        tp = TopicPartition(topic, partition)
        now_ms = self._clock.now_ms()
        if tp not in self._on_disk:
            log = self._directory.create_log(tp, topic_id, log_config(config), now_ms=now_ms)
            self._on_disk.add(tp)
            return log
        found = self._directory.topic_id(tp)
        if found not in (None, topic_id):
            raise StorageError(f"{self._path(tp)} holds another topic of that name; move the directory away")
        log = self._directory.open_log(tp, log_config(config), now_ms=now_ms)
        if found is None:
            self._directory.note_topic_id(tp, topic_id)
        return log

    def has_log(self, topic: str, partition: int, topic_id: bytes) -> bool:
        return TopicPartition(topic, partition) in self._on_disk

    def size_of(self, topic: str, partition: int, topic_id: bytes) -> int:
        if not self.has_log(topic, partition, topic_id):
            return 0
        return size_of(self._path(TopicPartition(topic, partition)))

    def may_shrink(
        self, topic: str, partition: int, topic_id: bytes, config: TopicConfig, now_ms: int
    ) -> bool:
        if not self.has_log(topic, partition, topic_id):
            return False
        path = self._path(TopicPartition(topic, partition))
        return may_be_due(path, config.integer("retention.ms"), config.integer("retention.bytes"), now_ms)

    def producer_snapshots(self, topic: str, partition: int) -> ProducerSnapshots | None:
        log = self._directory.logs.get(TopicPartition(topic, partition))
        return ProducerSnapshots(log.directory) if log is not None else None

    def delete_log(self, topic: str, partition: int, topic_id: bytes) -> None:
        tp = TopicPartition(topic, partition)
        if tp in self._on_disk:
            self._on_disk.discard(tp)
            self._directory.delete_log(tp)

    def login_secret(self) -> bytes:
        path = f"{self._directory.all[0].path}/{LOGIN_SECRET}"
        text = read_text(path) or ""
        if len(text) != 2 * LOGIN_SECRET_BYTES:
            text = os.urandom(LOGIN_SECRET_BYTES).hex()
            write_text(path, text, sync=True)
        return text.encode()

    def side_directory(self, name: str) -> str:
        return f"{self._directory.all[0].path}/{name}"

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        return self._directory.problems(known)

    def missing(self) -> list[StorageError]:
        return self._directory.missing()

    def begin_checkpoint(self) -> Sequence[UnflushedLog]:
        return [
            UnflushedLog(log, pending)
            for log in self._directory.logs.values()
            if (pending := log.pending_flush(sealed_only=True)).up_to_offset > log.recovery_point
        ]

    def end_checkpoint(self, flushes: Sequence[UnflushedLog]) -> None:
        for flush in flushes:
            flush.log.flushed(flush.pending)
        self._directory.write_checkpoints()

    def close(self) -> None:
        self._directory.close()

    def abandon(self) -> None:
        self._directory.abandon()
