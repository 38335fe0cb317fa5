"""`LocalReplica`: the replica of a partition on one cluster node, as leader, follower or neither.

Each `Partition` of a cluster node has one. On the leader it advances the high watermark; on a follower it
appends the leader's records. If a partition has a single replica, the high watermark is the log end offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.partitions.partition import NO_LEADER
from penstock.broker.replication.followers import Followers
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.walk import fetch_from, walk_whole
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.partitions.partition import Partition
    from penstock.errors import PenstockError
    from penstock.log.contract import Log, Slice

logger = logger_named("penstock.broker")


class ReplicaHost(Protocol):
    """The interface of a node that its `LocalReplica` objects use."""

    node_id: int
    lag_s: float
    """`replica.lag.time.max.ms` in seconds."""
    losses: int
    """The number of times that this node has lost the leadership of a partition."""

    def monotonic(self) -> float:
        """Return the node's monotonic clock in seconds."""

    def is_eligible(self, replica: int) -> bool:
        """Return True if a replica may be in the ISR, according to the metadata of this node."""

    def committed(self, replica: LocalReplica) -> None:
        """Wake waiting requests, because a high watermark has advanced or a leader has changed."""

    def begun(self, partition: Partition) -> None:
        """Answer the waiting fetches of a partition's followers at once, with the raised log start offset."""

    def written(self, partition: Partition) -> None:
        """Record that a partition has newly appended records, which are not replicated yet."""

    def saved_high_watermark(self, partition: Partition) -> int:
        """Return the partition's high watermark saved before this start of the node, or 0."""


def replica_of(partition: Partition) -> LocalReplica:
    """Return the `LocalReplica` of a partition on a cluster node."""
    replica = partition.replication
    assert isinstance(replica, LocalReplica)
    return replica


class LocalReplica:
    """The replica of one partition on one node of a cluster, as leader, follower or neither."""

    __slots__ = (
        "_host",
        "_trouble",
        "epoch",
        "followers",
        "led_before",
        "lost_at",
        "partition",
    )

    def __init__(self, partition: Partition, host: ReplicaHost) -> None:
        self.partition = partition
        self._host = host
        self.epoch = -1
        """The partition epoch, which increases with every change of the partition's metadata."""
        self.followers: Followers | None = None
        """The progress of the followers; None if this node does not lead the partition."""
        self.led_before = -1
        """The leader epoch in which this node led before it was restarted; -1 if it did not lead. The node
        leads only in a later epoch, because the controller may still write ISR proposals from before the
        restart."""
        self.lost_at = 0
        """The value of the host's `losses` just after this node last lost the leadership of the partition;
        0 if it never did. Records that were uncommitted then may be lost."""
        self._trouble = ""

    # --- who it is ---------------------------------------------------------------------------------------

    def troubled(self, error: PenstockError) -> None:
        """Log a storage error that stops this replica, unless the last logged error has the same text."""
        # Other errors pass: many logs are being opened, and the store says so itself.
        if isinstance(error, StorageError) and self._trouble != str(error):
            self._trouble = str(error)
            logger.error("%s cannot be followed: %s", self.partition, error)

    def well(self) -> None:
        """Record that the replica works again, so that `troubled` logs the next error in any case."""
        self._trouble = ""

    def follow(self, image: PartitionImage) -> None:
        """Apply the leader and replicas in the metadata; begin or stop leading.

        Raises:
            StorageError: the log cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        partition = self.partition
        before, led = partition.leader_epoch, self.followers is not None
        partition.leader, partition.leader_epoch = image.leader, image.leader_epoch
        if partition.leads and partition.leader_epoch <= self.led_before:
            partition.leader = NO_LEADER
        partition.replicas, partition.in_sync = image.replicas.assigned, image.replicas.in_sync
        self.epoch = image.epoch
        if not partition.leads:
            if partition.leader_epoch != before and partition.stores_older:
                self._forget_uncommitted()
            self.followers = None
            if led:
                self._host.losses += 1
                self.lost_at = self._host.losses
                self._host.committed(self)
            return
        now_s = self._host.monotonic()
        if self.followers is None or partition.leader_epoch != before:
            self._lead(now_s)
        else:
            self.followers.changed(partition.in_sync)
            self.followers.assign(partition.replicas, now_s)
        self.look_at_followers()

    def _forget_uncommitted(self) -> None:
        """Truncate the log to the high watermark, since formats before magic 2 have no leader epochs.

        Apache Kafka did this before KIP-101.
        """
        partition = self.partition
        if len(partition.replicas) > 1 and partition.has_log:
            partition.cut(partition.high_watermark)  # opening the log sets the saved high watermark

    def _lead(self, now_s: float) -> None:
        """Begin a leader epoch at the present end of the log."""
        partition, end_offset = self.partition, 0
        if partition.has_log:
            log = partition.log
            end_offset = log.end_offset
            log.leader_epochs.assign(partition.leader_epoch, end_offset)
        self.followers = Followers(
            self._host.node_id, partition.replicas, partition.in_sync, end_offset, now_s
        )

    # --- the leader --------------------------------------------------------------------------------------

    @property
    def minimum_in_sync(self) -> int:
        """The effective `min.insync.replicas`: at most the number of replicas."""
        return min(self.partition.config.min_insync_replicas, len(self.partition.replicas))

    def check_acks(self, acks: int) -> None:
        """Raise an error if acks=all needs more in-sync replicas than there are.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS (19), fewer than `min.insync.replicas`.
        """
        in_sync = len(self.partition.in_sync)
        if acks == ALL_REPLICAS and in_sync < self.minimum_in_sync:
            raise error_for(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{in_sync} replicas of {self.partition!r} are in sync, {self.minimum_in_sync} have to be",
            )

    def advance(self, log: Log) -> None:
        """Set the high watermark after an append, or after the log was truncated."""
        partition = self.partition
        if self.followers is None:
            partition.place_watermarks(log, min(partition.high_watermark, log.end_offset))
        elif len(partition.replicas) == 1:
            partition.place_watermarks(log, log.end_offset)
        else:
            self.look_at_followers()
            if partition.high_watermark < log.end_offset:
                self._host.written(partition)

    def opened(self, log: Log) -> None:
        """Set the high watermark of a log that was just opened, at least to the saved one."""
        self.advance(log)
        partition = self.partition
        saved = min(self._host.saved_high_watermark(partition), log.end_offset)
        if len(partition.replicas) > 1 and partition.high_watermark < saved:
            partition.place_watermarks(log, max(saved, log.start_offset))

    def look_at_followers(self) -> None:
        """Raise the high watermark to what all in-sync replicas have; wake requests that wait for it."""
        partition = self.partition
        followers, log = self.followers, partition.open_log
        if followers is None or log is None:
            return
        host, before = self._host, partition.high_watermark
        reached = followers.high_watermark(
            before,
            log.end_offset,
            self.minimum_in_sync,
            host.lag_s,
            host.monotonic(),
            host.is_eligible,
        )
        partition.place_watermarks(log, max(reached, log.start_offset))
        if reached != before:
            host.committed(self)

    def begun(self) -> None:
        """Answer the waiting fetches of followers at once, so that they raise their log start offset, too."""
        self._host.begun(self.partition)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the live replicas, according to their last fetches."""
        start_offset = self.partition.log_start_offset
        if self.followers is None:
            return start_offset
        return self.followers.low_watermark(start_offset, self._host.is_eligible)

    @property
    def is_settled(self) -> bool:
        """Return True if the high watermark has reached the start of the leader's epoch.

        Before that the latest committed offset is uncertain.
        """
        return self.followers is None or self.partition.high_watermark >= self.followers.epoch_start

    def read_for_follower(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Slice:
        """Return batches from `offset` to the end of the log, committed or not.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (1).
            StorageError: the log cannot be read.
        """
        log = self.partition.reader
        if not log.start_offset <= offset <= log.end_offset:
            raise self.partition.out_of_range(offset)
        return log.read(offset, max_bytes, up_to_offset=log.end_offset, at_least_one=at_least_one)

    # --- the follower ------------------------------------------------------------------------------------

    @property
    def fetch_position(self) -> tuple[int, int]:
        """Return the offset to fetch from, and the leader epoch of the record before it (-1: none).

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self.partition.reader
        return log.end_offset, log.leader_epochs.latest

    def replicate(self, records: bytes, high_watermark: int, start_offset: int, now_ms: int) -> bool:
        """Append batches from the leader, and adopt the leader's high watermark and log start offset.

        Returns True if the high watermark has changed.

        Raises:
            StorageError: the log cannot be written, or the batches do not continue it.
        """
        partition = self.partition
        if not records and partition.open_log is None and not high_watermark:
            return False
        before = partition.high_watermark if partition.is_open else 0
        log = partition.log
        for entry in walk_whole(fetch_from(records), 0, len(records)):
            if entry.last_offset < log.end_offset:
                continue
            if entry.base_offset < log.end_offset:
                # The leader's log begins amid this batch, after DeleteRecords. What is here of these offsets
                # makes room for the whole batch; below, this log begins amid it as well.
                start_offset = max(start_offset, log.start_offset)
                partition.cut(entry.base_offset)
                if log.end_offset < entry.base_offset > start_offset:
                    break  # what is between them is not deleted: the next answer has it
            start = entry.position
            log.append(
                memoryview(records)[start : start + entry.size],
                # A compressed message set of formats before magic 2 has the offset of its last message.
                first_offset=entry.base_offset if entry.magic >= 2 else log.end_offset,
                last_offset=entry.last_offset,
                max_timestamp=entry.max_timestamp,
                now_ms=now_ms,
            )
            if entry.magic >= 2:
                partition.states.replicated(read_header(records, start))
        start_offset = min(start_offset, log.end_offset)
        if start_offset > log.start_offset:
            log.delete_before(start_offset)
        partition.place_watermarks(log, max(min(high_watermark, log.end_offset), log.start_offset))
        return partition.high_watermark != before

    def truncate(self, epoch: int, end_offset: int) -> int:
        """Remove the records that the leader does not have; return the new log end offset.

        `epoch` and `end_offset` are the diverging epoch in the leader's Fetch response.

        Raises:
            StorageError: the log cannot be truncated.
        """
        log = self.partition.log
        entries = log.leader_epochs.entries
        own = log.leader_epochs.end_of(epoch, log.end_offset)
        if own is None:
            target = min(end_offset, entries[0][1] if entries else end_offset)
        else:
            target = min(end_offset, own[1])
        self.partition.cut(target)
        return log.end_offset
