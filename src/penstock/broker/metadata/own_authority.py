"""The metadata authority of a single broker: the broker itself checks changes, and writes the metadata log.

Committed records are written to the log, and then applied to the state. The same code applies them at runtime
and at a restart, so that a restart restores the same state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.image import FIRST_FEATURES, METADATA_FEATURE, metadata_level
from penstock.broker.metadata.metadata_log import (
    DIRECTORIES_SINCE,
    ELIGIBLE_REPLICAS_SINCE,
    MetadataLog,
)
from penstock.broker.metadata.planning import partition_record
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord
from penstock.protocol.messages.topic_record import TopicRecord
from penstock.protocol.uuid import random_uuid

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.image import ClusterImage
    from penstock.broker.metadata.replica_manager import ReplicaManager
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.requests.quotas import MutationTokens
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")


class OwnAuthority:
    """The `Authority` of a single broker: writes its metadata log. It also implements `Placing`."""

    size = 1

    def __init__(self, image: ClusterImage, replicas: ReplicaManager, store: LogStore) -> None:
        self._image = image
        self._replicas = replicas
        self._store = store
        self.log = MetadataLog(store.metadata_log(), store.metadata_files)
        self.cluster_id = store.cluster_id
        self.log_on_disk = None if store.metadata_directory is None else self.log
        self.mutation_tokens: MutationTokens = {}
        self.placing = self

    def begin(self, config: BrokerConfig, now_ms: int) -> None:
        """Replay or create the metadata log, lead all partitions, and reconcile stored data with the log.

        `config` has the settings at the start of the broker.

        Raises:
            StorageError: the log cannot be read, or cannot be written although it has to be.
        """
        is_new = True
        removed_ids: set[bytes] = set()
        for record in self.log.replay():
            is_new = False
            self._replicas.apply(record)
            if isinstance(record, RemoveTopicRecord):
                removed_ids.add(record.topic_id)
        if is_new:
            # A change is acknowledged after it was committed, which flushes these records, too. A start that
            # finds them gone after a power cut begins anew.
            self.commit(self._first_records(config), now_ms, flushes=False)
        self._note_level()
        self._store.broker_epoch = self._image.brokers.epoch_of(self._store.node_id)
        if not is_new:
            self._lead_all(now_ms)
        self._take_in_unknown(removed_ids, now_ms)

    def _first_records(self, config: BrokerConfig) -> list[Message]:
        """Return the first records of a new metadata log: those of `kafka-storage format`, if it has run.

        Raises:
            ConfigError: the setting that chooses the level names no release.
            StorageError: the file that the formatting has left cannot be read.
        """
        directory = self._store.metadata_directory
        if directory is not None and self._store.format_file is not None:
            from penstock.broker.metadata.takeover import bootstrap_records  # few directories are formatted

            found = bootstrap_records(directory)
            if any(isinstance(each, FeatureLevelRecord) and each.name == METADATA_FEATURE for each in found):
                return found
        levels = first_features_of(config).items()
        return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]

    def _lead_all(self, now_ms: int) -> None:
        """Begin a new leader epoch of every partition, so that consumers detect a truncated log.

        This happens at each start, as in Apache Kafka. Partitions in a directory of Apache Kafka may have no
        leader, and would otherwise keep their epoch. Clients would wait forever for a later epoch than the
        one they have received (KIP-320).
        """
        here, has_elr = self._store.node_id, self.log.level >= ELIGIBLE_REPLICAS_SINCE
        records = [
            PartitionChangeRecord(
                partition_id=partition.index,
                topic_id=partition.topic_id,
                leader=here,
                isr=[here],
                eligible_leader_replicas=[] if has_elr else None,
                last_known_elr=[] if has_elr else None,
            )
            for topic in self._image.topics.values()
            for partition in topic.partitions
        ]
        if not records:
            return
        leads_all = all(
            each.leader == here for topic in self._image.topics.values() for each in topic.partitions
        )
        try:
            self.commit(records, now_ms)
        except StorageError as error:
            if not leads_all:
                raise
            logger.warning("partitions stay in the leader epochs of the last start: %s", error)

    def _take_in_unknown(self, removed_ids: set[bytes], now_ms: int) -> None:
        """Write metadata records for topics without such records, whose data another broker has written.

        If the metadata log has a snapshot, the data may belong to a topic whose deletion is no longer in the
        log. In this case, they are left unchanged.
        """
        records: list[Message] = []
        for name, found_id, partitions in self._replicas.reconcile(removed_ids):
            if self.log.has_snapshot:
                logger.warning("leaving topic %s in %s alone: it was deleted", name, self._store.describe())
                continue
            topic_id = found_id or random_uuid()
            logger.warning("taking in topic %s, whose data were found in %s", name, self._store.describe())
            records.append(TopicRecord(name=name, topic_id=topic_id))
            for index, replicas in enumerate(self.place(partitions, 1)):
                records.append(partition_record(self, name, topic_id, index, replicas))
        if records:
            self.commit(records, now_ms)

    # --- the log -----------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """The offset after the last metadata record."""
        return self.log.end_offset

    @property
    def epoch(self) -> int:
        """The epoch in which this node leads the quorum of the metadata log."""
        return self.log.epoch

    def catch_up(self) -> None:
        """Do nothing: a single broker always has all metadata."""

    def commit(self, records: Sequence[Message], now_ms: int, *, flushes: bool = True) -> None:
        """Write records, apply them, and delete the data of topics that they remove.

        If `flushes` is False, a power failure may lose the records.

        Raises:
            StorageError: the records could not be written, or do not fit the image; nothing has changed. It
            is also raised, after the change, if data cannot be deleted.
        """
        self._image.check(records)
        self.log.append(records, now_ms, flushes=flushes)
        removed = [
            self._replicas.topics_by_id[record.topic_id]
            for record in records
            if isinstance(record, RemoveTopicRecord)
        ]
        for record in records:
            self._replicas.apply(record)
        self._note_level()
        for topic in removed:
            self._replicas.delete(topic)

    def _note_level(self) -> None:
        self.log.level = metadata_level(self._image.features)

    # --- placing -----------------------------------------------------------------------------------------

    def place(self, partitions: int, factor: int) -> list[tuple[int, ...]]:
        """Return the broker ids for the replicas of new partitions: only this broker.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR (38), if more than one replica is requested.
        """
        if factor > 1:
            raise error_for(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): The target replication factor of"
                f" {factor} cannot be reached because only 1 broker(s) are registered.",
            )
        return [(self._store.node_id,)] * partitions

    def check_assignment(self, replicas: Sequence[int]) -> None:
        """Check that replicas are assigned to this broker only.

        Raises:
            KafkaError: INVALID_REPLICA_ASSIGNMENT (39), if the assignment contains another broker.
        """
        here = self._store.node_id
        if list(replicas) != [here]:
            raise error_for(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"brokers {list(replicas)}; there is only broker {here}",
            )

    def in_sync_of(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """Return the ISR of a new partition: only this broker."""
        return tuple(replicas)

    def directories_of(self, name: str, index: int, replicas: Sequence[int]) -> list[bytes] | None:
        """Return the directory id of a new partition's replica; None if the level has no directory ids."""
        if self.log.level < DIRECTORIES_SINCE:
            return None
        return [self._store.directory_id_of(name, index)]


def first_features_of(config: BrokerConfig) -> Mapping[str, int]:
    """Return the feature levels of a new cluster, according to the settings.

    Raises:
        ConfigError: the setting that chooses them names no release.
    """
    wanted = config.text("penstock.metadata.version")
    if wanted is None and config.release is None:
        return FIRST_FEATURES
    from penstock.broker.metadata.levels import first_features  # few clusters begin as another release's

    return first_features(wanted, None if config.release is None else config.release.numbers)
