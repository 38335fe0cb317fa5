"""`MetadataPublisher`: applies the controller's metadata records to one node of a cluster.

The node's partitions lead or follow according to these records. Requests to this node do not change its
metadata directly: the records are written to the metadata log first, and then applied in the order of the
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.broker.metadata.cluster import ClusterState
from penstock.broker.partitions.partition import NO_LEADER
from penstock.broker.replication.local_replica import LocalReplica, ReplicaHost, replica_of
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, PenstockError, StorageError
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.metadata.planning import Authority
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")


class MetadataPublisher:
    """Applies metadata records to a node until it stops, and creates the `LocalReplica` of each partition."""

    follows = False
    """True once partitions act on their metadata. It is False while the node applies the records from
    before its start: only the last state of a partition counts, and the node must not resume a leadership
    that has ended."""

    def __init__(
        self,
        config: BrokerConfig,
        store: LogStore,
        now_ms: int,
        host: ReplicaHost,
        authority: Authority,
        records: Sequence[Message],
    ) -> None:
        """Build the node's metadata from `records`: all metadata records at the start of the node.

        Raises:
            StorageError: a log cannot be opened.
        """
        self._store = store
        self._host = host
        self.behind: dict[Partition, None] = {}
        """Partitions to which their latest metadata are not applied, because their logs could not be opened
        yet."""
        self.changed: dict[Partition, None] = {}
        """Partitions whose metadata have changed, until `ClusterMember` has followed or stopped following
        them."""
        self.removed: list[Topic] = []
        """Deleted topics, until `ClusterMember` has processed the deletion."""
        self.have_quotas_changed = False
        """True if client quotas have changed, until `ClusterMember` has processed the change."""
        self.cluster = ClusterState(config, store, now_ms, authority, self)
        """The state of the cluster in this node's metadata."""
        self.publish(records)
        topics = self.cluster.topics
        removed_ids: set[bytes] = set()
        for name, index in list(store.partitions()):
            topic, topic_id = topics.get(name), store.topic_id(name, index)
            is_known = topic is not None and topic.id == topic_id and index < len(topic.partitions)
            if not is_known and topic_id is not None:
                removed_ids.add(topic_id)  # deleted while the node was away
        self.cluster.replicas.reconcile(removed_ids)
        self._begin_to_follow()

    def publish(self, records: Sequence[Message]) -> None:
        """Apply metadata records. Storage errors are logged, and `follow_again` repeats what failed.

        Raises:
            StorageError: the metadata contradict themselves.
        """
        cluster = self.cluster
        for record in records:
            if isinstance(record, RemoveTopicRecord):
                topic = cluster.topics_by_id.get(record.topic_id)
                cluster.replicas.apply(record)
                if topic is not None:
                    try:
                        cluster.replicas.delete(topic)
                    except StorageError as error:
                        logger.error(
                            "topic %s is deleted from the disk at the next start: %s", topic.name, error
                        )
                    self.removed.append(topic)
                    self.changed.update(dict.fromkeys(topic.partitions))
                continue
            cluster.replicas.apply(record)
            if isinstance(record, ClientQuotaRecord):
                self.have_quotas_changed = True
            elif isinstance(record, (PartitionRecord, PartitionChangeRecord)):
                found = cluster.topics_by_id.get(record.topic_id)
                if found is not None and record.partition_id < len(found.partitions):
                    self.changed[found.partitions[record.partition_id]] = None

    # --- as `Replicating` of the cluster -----------------------------------------------------------------

    def added(self, partition: Partition) -> None:
        """Create the `LocalReplica` of a new partition."""
        partition.replication = LocalReplica(partition, self._host)

    def follow(self, partition: Partition, image: PartitionImage) -> None:
        """Apply a partition's metadata to its `LocalReplica`. An error is logged; `follow_again` retries."""
        if self.follows:
            try:
                self._follow_now(partition, image)
            except PenstockError as error:
                replica_of(partition).troubled(error)
                self.behind[partition] = None

    def _follow_now(self, partition: Partition, image: PartitionImage) -> None:
        before, replica = partition.leader_epoch, replica_of(partition)
        try:
            replica.follow(image)
        except PenstockError:
            # The replica neither leads nor follows until a try succeeds: each begins from the same state.
            partition.leader, partition.leader_epoch = NO_LEADER, before
            raise
        if not partition.is_kept_here and partition.has_log:
            partition.close()
            self._store.delete_log(partition.topic, partition.index, partition.topic_id)
        if partition in self.behind:
            del self.behind[partition]
            replica.well()

    def follow_again(self) -> None:
        """Try again to apply metadata to the partitions in `behind`.

        Partitions where this succeeds are added to `changed`.
        """
        for partition in list(self.behind):
            topic = self.cluster.image.topics_by_id.get(partition.topic_id)
            if topic is None:
                del self.behind[partition]
                continue
            try:
                self._follow_now(partition, topic.partitions[partition.index])
            except KafkaError:
                break  # enough logs were opened in this second
            except StorageError as error:
                replica_of(partition).troubled(error)
            else:
                self.changed[partition] = None

    def _begin_to_follow(self) -> None:
        """Apply the present metadata to all partitions, and from now on each change at once."""
        self.follows = True
        for topic in self.cluster.topics.values():
            images = self.cluster.image.topics[topic.name].partitions
            for partition, image in zip(topic.partitions, images, strict=True):
                if image.leader == self._host.node_id:
                    replica_of(partition).led_before = image.leader_epoch
                self.follow(partition, image)
