"""A partition with replicas: led here, followed here, or elsewhere.

Adds to `Partition` what replication changes: who may append and read, when records are committed, and what a
follower does with what its leader gives it. A partition whose only replica is here costs what it costs in a
broker by itself, and one comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.broker.partitions.partition import NO_LEADER, Partition
from penstock.broker.replication.followers import Followers
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.walk import fetch_from, walk_whole
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.format.batch_header import read_header

if TYPE_CHECKING:
    from typing import Any

    from penstock.broker.config.values import TopicConfig
    from penstock.broker.metadata.image import PartitionImage
    from penstock.broker.partitions.log_store import LogStore
    from penstock.errors import KafkaError, PenstockError
    from penstock.log.contract import Log, Slice

logger = logger_named("penstock.broker")

ALL_REPLICAS = -1


class Host(Protocol):
    """What a partition needs of its node."""

    node_id: int
    lag_s: float
    """`replica.lag.time.max.ms` in seconds."""

    def monotonic(self) -> float:
        """Seconds of the node's monotonic clock."""

    def is_eligible(self, replica: int) -> bool:
        """Whether a replica may be in the ISR, by the metadata of this node."""

    def committed(self, partition: ReplicatedPartition) -> None:
        """The high watermark has moved, or the partition is led elsewhere."""

    def begun(self, partition: ReplicatedPartition) -> None:
        """Let the followers of a partition have its new start, which is higher, at once."""

    def written(self, partition: ReplicatedPartition) -> None:
        """Records have been appended that the followers do not have."""

    def saved_high_watermark(self, partition: ReplicatedPartition) -> int:
        """The high watermark that was noted before this start; 0 if none was."""


class ReplicatedPartition(Partition):
    """One partition of a cluster, as one of its nodes has it."""

    __slots__ = ("_gap_to", "_host", "_trouble", "epoch", "followers", "led_before", "losses")

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        config: TopicConfig,
        store: LogStore,
        opened: dict[Any, None],
        host: Host,
    ) -> None:
        super().__init__(topic, topic_id, index, config, store, opened)
        self._host = host
        self._gap_to = 0
        """The offset from which to fetch where the leader has dropped what comes next here."""
        self.epoch = -1
        """The partition epoch: one more with every change of the metadata."""
        self.followers: Followers | None = None
        """The followers as their leader sees them; None where another node leads."""
        self.led_before = -1
        """The leader epoch in which an earlier life of this node led: this one must be elected anew, since
        what that one had proposed may yet be written."""
        self.losses = 0
        """How often this node has lost the leadership: what it had appended before may be gone."""
        self._trouble = ""

    # --- who it is ---------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """Whether this node leads the partition, by the metadata that it has."""
        return self.leader == self._host.node_id

    @property
    def is_kept_here(self) -> bool:
        """Whether this node keeps a replica, by the metadata that it has."""
        return self._host.node_id in self.replicas

    def troubled(self, error: PenstockError) -> None:
        """Log why this replica cannot do its part now: a cause once, however often it is tried again."""
        # Other errors pass: many logs are being opened, and the store says so itself.
        if isinstance(error, StorageError) and self._trouble != str(error):
            self._trouble = str(error)
            logger.error("%s cannot be followed: %s", self, error)

    def well(self) -> None:
        """The replica does its part: trouble is logged again."""
        self._trouble = ""

    def follow(self, image: PartitionImage) -> None:
        """Take the leader and the replicas of the metadata, and begin or stop leading.

        Raises:
            StorageError: the log cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        before, led = self.leader_epoch, self.followers is not None
        self.leader, self.leader_epoch = image.leader, image.leader_epoch
        if self.leads and self.leader_epoch <= self.led_before:
            self.leader = NO_LEADER
        self.replicas, self.in_sync = image.replicas.assigned, image.replicas.in_sync
        self.epoch = image.epoch
        if not self.leads:
            if self.leader_epoch != before and self.stores_older:
                self._forget_uncommitted()
            self.followers = None
            if led:
                self.losses += 1
                self._host.committed(self)
            return
        now_s = self._host.monotonic()
        if self.followers is None or self.leader_epoch != before:
            self._lead(now_s)
        else:
            self.followers.changed(self.in_sync)
            self.followers.assign(self.replicas, now_s)
        self._raise_high_watermark()

    def _forget_uncommitted(self) -> None:
        """Cut what is not known to be committed: formats before magic 2 have no epochs to compare by, and
        Apache Kafka did the same before KIP-101.
        """
        if len(self.replicas) > 1 and self._store.has_log(self.topic, self.index, self.topic_id):
            _ = self.log  # a log that is opened takes the high watermark that was noted
            self.cut(self._high_watermark)

    def _lead(self, now_s: float) -> None:
        """Begin an epoch as the leader: it begins where the log ends now."""
        end_offset = 0
        if self._log is not None or self._store.has_log(self.topic, self.index, self.topic_id):
            log = self.log
            end_offset = log.end_offset
            log.leader_epochs.assign(self.leader_epoch, end_offset)
        self.followers = Followers(self._host.node_id, self.replicas, self.in_sync, end_offset, now_s)

    def check_is_kept(self) -> None:
        """Raises KafkaError: NOT_LEADER_OR_FOLLOWER (6)."""
        if not self.is_kept_here:
            raise self._not_leader()

    def check_leads(self) -> None:
        """Raises KafkaError: NOT_LEADER_OR_FOLLOWER (6)."""
        if self.leader != self._host.node_id:
            raise self._not_leader()

    def check_leader_epoch(self, leader_epoch: int, *, any_replica: bool = False) -> None:
        """Compare the leader epoch of a request with the partition's, then ask whether it can be served here.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH (74), UNKNOWN_LEADER_EPOCH (75), NOT_LEADER_OR_FOLLOWER (6).
        """
        host = self._host
        if self.leader == host.node_id:
            super().check_leader_epoch(leader_epoch)
            return
        if not self.is_kept_here:
            raise self._not_leader()
        super().check_leader_epoch(leader_epoch)
        if not any_replica:
            raise self._not_leader()

    def _not_leader(self) -> KafkaError:
        here = self._host.node_id
        return error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self!r} is led by {self.leader}, not by {here}")

    # --- the leader --------------------------------------------------------------------------------------

    @property
    def minimum_in_sync(self) -> int:
        """How many replicas have to be in sync: never more than there are."""
        return min(self.config.min_insync_replicas, len(self.replicas))

    def check_appends(self, acks: int) -> None:
        """Raise where this node must not append.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6); NOT_ENOUGH_REPLICAS (19), acks=all with fewer replicas in
                sync than `min.insync.replicas`.
        """
        if self.leader != self._host.node_id:
            raise self._not_leader()
        if acks == ALL_REPLICAS and len(self.in_sync) < self.minimum_in_sync:
            raise error_for(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.in_sync)} replicas of {self!r} are in sync, {self.minimum_in_sync} have to be",
            )

    def _advance(self, log: Log) -> None:
        followers = self.followers
        if followers is None:
            self._place_watermarks(log, min(self._high_watermark, log.end_offset))
        elif len(self.replicas) == 1:
            super()._advance(log)
        else:
            self._raise_high_watermark()
            if self._high_watermark < log.end_offset:
                self._host.written(self)

    def _open(self) -> Log:
        log = super()._open()
        saved = min(self._host.saved_high_watermark(self), log.end_offset)
        if len(self.replicas) > 1 and self._high_watermark < saved:
            self._place_watermarks(log, max(saved, log.start_offset))
        return log

    def _raise_high_watermark(self) -> None:
        """Move the high watermark to what the in-sync replicas have; wake what waits for it."""
        followers, log = self.followers, self._log
        if followers is None or log is None:
            return
        host = self._host
        reached = followers.high_watermark(
            self._high_watermark,
            log.end_offset,
            self.minimum_in_sync,
            host.lag_s,
            host.monotonic(),
            host.is_eligible,
        )
        moved = reached != self._high_watermark
        self._place_watermarks(log, max(reached, log.start_offset))
        if moved:
            host.committed(self)

    def _place_watermarks(self, log: Log, high_watermark: int) -> None:
        self._high_watermark = self._last_stable_offset = high_watermark
        if self._producers is not None and self._producers.open:
            first = next(iter(self._producers.open.values()))
            self._last_stable_offset = min(max(first, log.start_offset), high_watermark)

    def look_at_followers(self) -> None:
        """Recompute the high watermark, since what followers have or may do has changed."""
        self._raise_high_watermark()

    @property
    def is_settled(self) -> bool:
        """Whether the leader's high watermark has reached the start of its epoch: what is *latest* is
        known.
        """
        return self.followers is None or self._high_watermark >= self.followers.epoch_start

    def read_for_follower(self, offset: int, max_bytes: int, *, at_least_one: bool) -> Slice:
        """Return batches from `offset` to the end of the log, committed or not.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (1).
            StorageError: the log cannot be read.
        """
        log = self.reader
        if not log.start_offset <= offset <= log.end_offset:
            raise self.out_of_range(offset)
        return log.read(offset, max_bytes, up_to_offset=log.end_offset, at_least_one=at_least_one)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the last leader epoch up to `epoch`; (-1, -1) for a later one.

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self.reader
        entries = log.leader_epochs.entries
        if epoch == self.leader_epoch and self.leads:
            return epoch, log.end_offset
        if (
            self.leads
            and 0 <= epoch < self.leader_epoch
            and not entries
            and log.end_offset == log.start_offset
        ):
            # The log is empty, and was not there when the epoch began: of earlier ones it has nothing.
            return epoch, log.end_offset
        if epoch < 0 or not entries or epoch > log.leader_epochs.latest:
            return -1, -1
        return log.leader_epochs.end_of(epoch, log.end_offset) or (epoch, entries[0][1])

    # --- the follower ------------------------------------------------------------------------------------

    @property
    def fetch_position(self) -> tuple[int, int]:
        """The offset to fetch from, and the epoch of the record before it; -1 where there is none.

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self.reader
        if self._gap_to > log.end_offset:
            return self._gap_to, -1
        return log.end_offset, log.leader_epochs.latest

    def replicate(self, records: bytes, high_watermark: int, start_offset: int, now_ms: int) -> bool:
        """Append what the leader has given, and follow its high watermark and log start.

        Return whether a watermark that readers see has moved.

        Raises:
            StorageError: the log cannot be written, or the batches do not follow it.
        """
        before = self._high_watermark
        if not records and self._log is None and not high_watermark:
            return False
        log = self.log
        for entry in walk_whole(fetch_from(records), 0, len(records)):
            if entry.base_offset < log.end_offset:
                continue
            start = entry.position
            log.append(
                memoryview(records)[start : start + entry.size],
                # A compressed message set of formats before magic 2 has the offset of its last message.
                first_offset=entry.base_offset if entry.magic >= 2 else log.end_offset,
                last_offset=entry.last_offset,
                max_timestamp=entry.max_timestamp,
                now_ms=now_ms,
            )
            if self._producers is not None and entry.magic >= 2:
                self._producers.replicated(read_header(records, start))
        start_offset = min(start_offset, log.end_offset)
        if start_offset > log.start_offset:
            log.delete_before(start_offset)
        self._place_watermarks(log, max(min(high_watermark, log.end_offset), log.start_offset))
        return self._high_watermark != before

    def truncate(self, epoch: int, end_offset: int) -> int:
        """Cut what the leader does not have: in it `epoch` ended at `end_offset`. Return the new log end.

        Raises:
            StorageError: the log cannot be cut.
        """
        log = self.log
        entries = log.leader_epochs.entries
        own = log.leader_epochs.end_of(epoch, log.end_offset)
        if own is None:
            target = min(end_offset, entries[0][1] if entries else end_offset)
        else:
            target = min(end_offset, own[1])
        self.cut(target)
        return log.end_offset

    def delete_records(self, offset: int) -> int:
        """Let the partition begin with `offset`; see `Partition`. Followers do the same with the answer to
        their fetch, which is given at once.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6) besides.
            StorageError: the disk refuses.
        """
        self.check_leads()
        start_offset = super().delete_records(offset)
        self._host.begun(self)
        return start_offset

    @property
    def low_watermark(self) -> int:
        """The smallest offset with which a live replica begins, as their leader sees them."""
        if self.followers is None:
            return self.log_start_offset
        return self.followers.low_watermark(self.log_start_offset, self._host.is_eligible)

    def begin_at(self, offset: int) -> None:
        """Drop everything: the leader's log begins with `offset`, behind the end of this one.

        Raises:
            StorageError: the disk refuses.
        """
        log = self.log
        log.delete_before(log.end_offset)
        self._gap_to = offset

    def cut(self, offset: int) -> None:
        """Remove every batch that reaches `offset`, and what is known of producers and epochs from there on.

        Raises:
            StorageError: the log cannot be cut.
        """
        log = self.log
        log.truncate_to(offset)
        # An epoch in which nothing was written begins where the log ends.
        log.leader_epochs.truncate_end(log.end_offset)
        if self._producers is not None:
            self._producers.truncated()
        self._place_watermarks(log, max(min(self._high_watermark, log.end_offset), log.start_offset))
