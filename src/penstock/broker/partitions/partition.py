"""`Partition`: the log of one partition, its leader, the checks of appends, and the limits of reads.

`Partition` checks requests, and its log stores the batches. It does not depend on connections or other
partitions. The log is opened on first use, so that a broker with thousands of partitions starts as fast as
one with none. The high watermark, the last stable offset and the states of producers belong to the log and
exist while the log is open. The leader, its epoch and the replicas come from the cluster's metadata. In a
cluster of several brokers a partition has a `Replication`, which decides when records are committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from penstock.broker.partitions.internal_topics import WITHOUT_TRANSACTIONS
from penstock.broker.partitions.log_store import log_config
from penstock.broker.partitions.producers.producer_state import Producers
from penstock.broker.partitions.producers.producer_state_manager import ProducerStateManager
from penstock.broker.partitions.producers.transactional_appends import join_batch
from penstock.broker.partitions.stored_form import OlderForm, admit, in_older_format
from penstock.broker.partitions.validation import admit_batch, bring_in_line, no_segment_holds
from penstock.errors import KafkaError
from penstock.log.memory import MemoryLog
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.since import PRODUCE_MAGIC_2_SINCE
from penstock.records.format.batch_header import (
    LENGTH_EXTRA_BYTES,
    TRANSACTIONAL_BIT,
    set_max_timestamp_log_append,
    stamp_header,
)

if TYPE_CHECKING:
    from penstock.broker.config.values import TopicConfig
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.producers.transactional_appends import JoinsTransaction
    from penstock.broker.partitions.producers.transactions import AbortedTransaction
    from penstock.log.contract import Log, Slice
    from penstock.records.compression.codecs import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader

NO_LEADER = -1
NO_TIME = -1

_NOTHING = MemoryLog(now_ms=NO_TIME)
"""The shared empty log that reads use for partitions to which nothing was ever written."""


KEPT_OFFSET_MAX = 2**62
"""The highest base offset that a copied batch may bring along (`penstock.keep.offsets`). The limit
leaves offsets for later batches.
"""


Appended: TypeAlias = "tuple[int, int, int]"
"""The result of an append: base offset, log-append time (-1 with CreateTime), and log start offset.

It is a plain tuple, because to create an instance of a class takes four times as long.
"""


class Replication(Protocol):
    """The interface of a partition's replication: sets the high watermark, notifies waiting requests."""

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the live replicas, according to their last fetches."""

    def check_acks(self, acks: int) -> None:
        """Check that enough replicas are in sync for `acks`.

        Raises:
            KafkaError: NOT_ENOUGH_REPLICAS (19).
        """

    def opened(self, log: Log) -> None:
        """Set the partition's high watermark, because its log has just been opened."""

    def advance(self, log: Log) -> None:
        """Recompute the high watermark after records were appended or the log was truncated."""

    def begun(self) -> None:
        """Notify waiting follower fetches that the leader's log start offset has been raised."""


class Partition:
    """One partition of one topic on one broker. Waiting fetches have the object as their purgatory key."""

    __slots__ = (
        "_high_watermark",
        "_last_stable_offset",
        "_log",
        "_opened",
        "_producers",
        "_store",
        "config",
        "in_sync",
        "index",
        "leader",
        "leader_epoch",
        "replicas",
        "replication",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        config: TopicConfig,
        store: LogStore,
        opened: dict[Any, None],
    ) -> None:
        """Make a partition without a leader. `opened` holds the broker's partitions whose logs are open."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.leader = NO_LEADER
        """The id of the node that leads the partition, or `NO_LEADER`."""
        self.leader_epoch = -1
        self.replicas: tuple[int, ...] = ()
        """The ids of the nodes to which the partition is assigned."""
        self.in_sync: tuple[int, ...] = ()
        """The in-sync replicas (ISR): the ids of the nodes that have all committed records."""
        self.replication: Replication | None = None
        """The partition's replication in a cluster of several brokers; None if this broker is the whole
        cluster."""
        self.config = config
        self._high_watermark = self._last_stable_offset = 0
        self._store = store
        self._opened = opened
        self._log: Log | None = None
        self._producers: ProducerStateManager | None = None
        """The producer states of the log; None while the log is closed."""

    def __repr__(self) -> str:
        return printable(f"<Partition {self.topic}-{self.index}>")

    def become(
        self, leader: int, leader_epoch: int, replicas: tuple[int, ...], in_sync: tuple[int, ...]
    ) -> None:
        """Adopt leader, leader epoch and replicas from the cluster's metadata. The epoch never decreases."""
        self.leader = leader
        self.leader_epoch = max(self.leader_epoch, leader_epoch)
        self.replicas = replicas
        self.in_sync = in_sync

    @property
    def leads(self) -> bool:
        """True if this node leads the partition, according to the node's metadata."""
        return self.leader == self._store.node_id

    @property
    def is_kept_here(self) -> bool:
        """True if this node has a replica of the partition, according to the node's metadata."""
        return self.leads or self._store.node_id in self.replicas

    def check_is_kept(self) -> None:
        """Check that this node has a replica.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6).
        """
        if not self.is_kept_here:
            raise self._not_leader()

    def check_leads(self) -> None:
        """Check that this node leads the partition.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6).
        """
        if self.leader != self._store.node_id:
            raise self._not_leader()

    def check_leader_epoch(self, leader_epoch: int, *, any_replica: bool = False) -> None:
        """Check the leader epoch in a request, and that this node may serve requests for the partition.

        An epoch of -1 is not compared. `any_replica` means that a follower may serve the request, too.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH (74), UNKNOWN_LEADER_EPOCH (75), NOT_LEADER_OR_FOLLOWER (6).
        """
        leads = self.leader == self._store.node_id
        if not leads:
            self.check_is_kept()
        if leader_epoch != -1 and leader_epoch != self.leader_epoch:
            older = leader_epoch < self.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise error_for(code, f"the client has epoch {leader_epoch}, the broker {self.leader_epoch}")
        if not leads and not any_replica:
            raise self._not_leader()

    def _not_leader(self) -> KafkaError:
        here = self._store.node_id
        return error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self!r} is led by {self.leader}, not by {here}")

    # --- the log -----------------------------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """The partition's log for writing. The first access opens the log, or creates it if necessary.

        Raises:
            StorageError: the log cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        log = self._log
        if log is None:
            log = self._open()
        return log

    @property
    def reader(self) -> Log:
        """The partition's log for reading; an empty log if no record was ever written to the partition.

        Raises:
            StorageError: the log cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        return self._log if self._log is not None else self._open_to_read()

    @property
    def has_log(self) -> bool:
        """True if the partition has a log, open or closed; the first write creates the log."""
        return self._log is not None or self._store.has_log(self.topic, self.index, self.topic_id)

    def _open_to_read(self) -> Log:
        return self.log if self.has_log else _NOTHING

    def _open(self) -> Log:
        log = self._store.open_log(self.topic, self.index, self.topic_id, self.config)
        # A log taken over from another broker may have seen later epochs than our records.
        self.leader_epoch = max(self.leader_epoch, log.leader_epochs.latest)
        snapshots = self._store.producer_snapshots(self.topic, self.index)
        # A crash may have come between a compaction and the index of aborted transactions that goes with it.
        transactional = self._store.holds_transactions and self.topic not in WITHOUT_TRANSACTIONS
        reads_all = transactional and self.config.compacted and not self._store.was_clean
        self._producers = ProducerStateManager(
            log, snapshots, self._no_producers, self._store.uptime_ms(), reads_all=reads_all
        )
        if transactional:
            _ = self._producers.transactions
        self._log = log
        self._opened[self] = None
        if self.replication is None:
            self.place_watermarks(log, log.end_offset)
        else:
            self.replication.opened(log)
        return log

    def _no_producers(self) -> Producers:
        return Producers(self.config.broker.integer("producer.id.expiration.ms"))

    @property
    def open_log(self) -> Log | None:
        """The log if it is open, else None. Maintenance skips logs that are not open."""
        return self._log

    @property
    def is_open(self) -> bool:
        """True if the log is open, because it has been used since the start."""
        return self._log is not None

    @property
    def high_watermark(self) -> int:
        """The offset below which every in-sync replica has all records: consumers read up to it.

        Raises:
            StorageError: the log cannot be opened.
        """
        if self._log is None:
            self._open_to_read()
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction has ended: `read_committed` consumers read up to it.

        Raises:
            StorageError: the log cannot be opened.
        """
        if self._log is None:
            self._open_to_read()
        return self._last_stable_offset

    def advance(self) -> None:
        """Advance high watermark and last stable offset after an append of offset commits or a marker."""
        self.states.batches_since_snapshot += self._store.holds_transactions
        self._advance(self.log)

    def _advance(self, log: Log) -> None:
        if self.replication is None:
            self.place_watermarks(log, log.end_offset)
        else:
            self.replication.advance(log)

    def place_watermarks(self, log: Log, high_watermark: int) -> None:
        """Set the high watermark; derive the last stable offset from it and from the open transactions."""
        self._high_watermark = self._last_stable_offset = high_watermark
        if self._producers is not None and self._producers.open:
            first = next(iter(self._producers.open.values()))
            self._last_stable_offset = min(max(first, log.start_offset), high_watermark)

    def cut(self, offset: int) -> None:
        """Truncate the log, its producer states and its leader epochs to `offset`.

        A batch that contains `offset` is removed as a whole.

        Raises:
            StorageError: the log cannot be truncated.
        """
        log = self.log
        log.truncate_to(offset)
        # An epoch in which nothing was written begins where the log ends.
        log.leader_epochs.truncate_end(log.end_offset)
        self.states.truncated()
        self.place_watermarks(log, max(min(self._high_watermark, log.end_offset), log.start_offset))

    def begin_at(self, offset: int) -> None:
        """Remove all batches, producer states and leader epochs; the next record gets `offset`.

        Raises:
            StorageError: a file cannot be written or deleted.
        """
        log = self.log
        log.begin_at(offset)
        self.states.begun_anew()
        self.place_watermarks(log, offset)

    @property
    def states(self) -> ProducerStateManager:
        """The producer states of the log, which is opened if necessary. Raises the same errors as `log`."""
        _ = self.log
        assert self._producers is not None
        return self._producers

    def aborted_transactions(self, offset: int, size: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in the `size` log bytes from `offset` on.

        The transactions are ordered by the offsets of their markers. Raises the same errors as `log`.
        """
        if self._producers is None:
            return []
        return self._producers.aborted_in(offset, size, self._last_stable_offset)

    @property
    def log_start_offset(self) -> int:
        return self.reader.start_offset

    @property
    def bounds(self) -> tuple[int, int, int]:
        """Return high watermark, last stable offset and log start offset, as a Fetch response needs them.

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self._log
        if log is None:
            log = self._open_to_read()
        return self._high_watermark, self._last_stable_offset, log.start_offset

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the live replicas: below it, no live replica has records."""
        return self.log_start_offset if self.replication is None else self.replication.low_watermark

    @property
    def size_bytes(self) -> int:
        """Return the size of the log in bytes, without opening the log.

        Raises:
            StorageError: the files of the log cannot be read.
        """
        if self._log is not None:
            return self._log.size_bytes
        return self._store.size_of(self.topic, self.index, self.topic_id)

    def configure(self, config: TopicConfig) -> None:
        """Apply new settings of the topic to the partition and, if it is open, to the log."""
        self.config = config
        if self._log is not None:
            self._log.configure(log_config(config))

    def close(self) -> None:
        """Close the log. The next use opens it again."""
        log, self._log, self._producers = self._log, None, None
        self._opened.pop(self, None)
        if log is not None:
            log.close()

    def leave_flushing(self) -> None:
        """Stop flushing on appends: from now on, the caller must flush the log when `needs_flush` is True.

        Raises:
            StorageError: the log cannot be opened.
        """
        self.log.leave_flushing()

    @property
    def needs_flush(self) -> bool:
        """True if the log must be flushed before the newest records are acknowledged."""
        log = self._log
        return log is not None and log.flush_is_due

    def maintain(self, now_ms: int, uptime_ms: int) -> bool:
        """Run the maintenance that is due: flush the log, drop idle producers, save producer snapshots.

        `uptime_ms` is the monotonic clock: if the time of day were used and put forward, all producers would
        expire, and their repeated batches would count as new.

        Returns True if a flush is due that the caller has to do.

        Raises:
            StorageError: a file cannot be written.
        """
        log = self._log
        if log is None or self._producers is None:
            return False
        flush = log.flush_if_due(now_ms) and not log.flushes_itself
        self._producers.maintain(uptime_ms)
        return flush

    @property
    def producer_count(self) -> int:
        """The number of producers whose state is in memory."""
        return 0 if self._producers is None else len(self._producers)

    def forget_idlest_producers(self, most: int) -> None:
        """Drop the idlest producers, as if they had expired, until at most `most` are left in memory."""
        if self._producers is not None:
            self._producers.forget_idlest(most)

    def note_producers(self) -> None:
        """Write a snapshot of the producer states, if necessary, for a clean shutdown of the broker.

        Raises:
            StorageError: the log cannot be read, or the snapshot cannot be written.
        """
        if self._producers is not None:
            self._producers.note()

    def may_shrink(self, now_ms: int) -> bool:
        """Return True if retention may have something to delete, judging by the files of a closed log.

        Raises:
            StorageError: the files cannot be read.
        """
        return self._store.may_shrink(self.topic, self.index, self.topic_id, self.config, now_ms)

    def enforce_retention(self, now_ms: int) -> None:
        """Delete the segments that exceed the retention time or the retention size.

        Raises:
            StorageError: a file cannot be deleted.
        """
        if self.config.deletes_old:
            log = self.log
            keep_from = log.retention_offset(now_ms, self._high_watermark)
            is_news = keep_from > log.start_offset
            log.delete_before(keep_from)  # or removes files that an earlier call could not remove
            if is_news:
                self._advance(log)

    def delete_records(self, offset: int) -> int:
        """Raise the log start offset to `offset`, -1 for the high watermark; return the new start offset.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), OFFSET_OUT_OF_RANGE (1), or POLICY_VIOLATION (44) if the
                topic is only compacted.
            StorageError: a file cannot be deleted.
        """
        self.check_leads()
        if self.config.compacted and not self.config.deletes_old:
            raise error_for(
                ErrorCode.POLICY_VIOLATION, f"records of {self!r} are not deleted by its cleanup.policy"
            )
        log, high_watermark = self.reader, self.high_watermark
        wanted = high_watermark if offset == -1 else offset
        if not 0 <= wanted <= high_watermark:
            raise error_for(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} of {self!r}, which ends at {high_watermark}"
            )
        log.delete_before(wanted)
        if self._log is not None:
            self._advance(log)
        if self.replication is not None:
            self.replication.begun()
        return log.start_offset

    def producers(self) -> Producers:
        """Return the log's producer states. The first use after a start reads them from the log.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        if self._log is None:
            self._open_to_read()
        return self._no_producers() if self._producers is None else self._producers.producers

    def out_of_range(self, offset: int) -> KafkaError:
        """Return the error for an offset that the log does not have: OFFSET_OUT_OF_RANGE (1)."""
        log = self.reader
        return error_for(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {self!r}, which has {log.start_offset} to {log.end_offset}",
        )

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the newest leader epoch up to `epoch`, and its end offset; (-1, -1) if `epoch` is too new.

        An epoch before the first recorded epoch ends where the first recorded epoch begins.

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self.reader
        entries = log.leader_epochs.entries
        is_empty = not entries and log.end_offset == log.start_offset
        # An empty log that did not exist when the epoch began has no records of earlier epochs.
        if self.leads and (epoch == self.leader_epoch or (is_empty and 0 <= epoch < self.leader_epoch)):
            return epoch, log.end_offset
        # The only replica may have begun epochs in which nothing was written.
        latest = self.leader_epoch if self.leads and len(self.replicas) == 1 else log.leader_epochs.latest
        if epoch < 0 or not entries or epoch > latest:
            return -1, -1
        return log.leader_epochs.end_of(epoch, log.end_offset) or (epoch, entries[0][1])

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed_only: bool = False) -> Slice:
        """Return whole batches below the high watermark, from the batch that contains `offset` on.

        With `committed_only`, batches after the last stable offset are left out.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (1).
            StorageError: the log cannot be read.
        """
        log = self._log
        if log is None:
            log = self._open_to_read()
        if not log.start_offset <= offset <= log.end_offset:
            raise self.out_of_range(offset)
        end_offset = self._last_stable_offset if committed_only else self._high_watermark
        return log.read(offset, max_bytes, up_to_offset=end_offset, at_least_one=at_least_one)

    # --- appending ---------------------------------------------------------------------------------------

    def append(
        self,
        records: memoryview | None,
        produce_version: int,
        now_ms: int,
        budget: UnpackBudget | None = None,
        joining: JoinsTransaction | None = None,
        *,
        acks: int = 1,
    ) -> Appended:
        """Append the records of a Produce request for this partition.

        `acks` is the field of the request. It has an effect only if the partition has several replicas.

        `joining` adds the partition to the transaction of transactional batches; without `joining`,
        transactional batches are refused.

        The header in `records` is patched in place, and the buffer is not kept. `budget` limits decompression
        and checks of records.

        Raises:
            KafkaError: the records are refused, for a reason of `validation` or `producer_state`.
            StorageError: the records could not be written; nothing has changed.
            UnpackLimitError: the records are too much for `budget`; nothing has changed.
        """
        if self.leader != self._store.node_id or self.replication is not None:
            self.check_appends(acks)
        config = self.config
        if produce_version >= PRODUCE_MAGIC_2_SINCE or records is None:
            batch, header = admit_batch(records, produce_version, config, now_ms, budget)
            if config.inspects_records:
                batch = bring_in_line(batch, header, config, budget)
            return self._append_batch(batch, header, now_ms, budget, joining=joining)
        admitted = self.admit(records, produce_version, now_ms, budget)
        return self.append_admitted(admitted, now_ms, budget=budget, acks=acks)

    def check_appends(self, acks: int) -> None:
        """Check that this node leads the partition, and that enough replicas are in sync for `acks`.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER (6); NOT_ENOUGH_REPLICAS (19), acks=all with fewer replicas in
                sync than `min.insync.replicas`.
        """
        if self.leader != self._store.node_id:
            raise self._not_leader()
        if self.replication is not None:
            self.replication.check_acks(acks)

    def admit(
        self,
        records: memoryview | None,
        produce_version: int,
        now_ms: int,
        budget: UnpackBudget | None,
    ) -> tuple[memoryview, BatchHeader] | None:
        """Validate the records of a Produce request; return the batch to append and its header.

        This is the slow part of `append`. It depends on the topic's settings alone, so that any thread may
        call it. Returns None if there is nothing to append.

        Raises:
            KafkaError: the records are refused, for a reason of `validation`.
            UnpackLimitError: the records are too much for `budget`.
        """
        return admit(records, produce_version, self.config, now_ms, budget)

    def append_admitted(
        self,
        admitted: tuple[memoryview, BatchHeader] | None,
        now_ms: int,
        older: OlderForm | None = None,
        budget: UnpackBudget | None = None,
        joining: JoinsTransaction | None = None,
        *,
        acks: int = 1,
    ) -> Appended:
        """Append the batch that `admit` has returned. Raises the same errors as `append`.

        `older` is the result of `prepare_older` for this batch, if the broker stores an older format.
        """
        self.check_appends(acks)  # the leader or the ISR may have changed since the records came
        if admitted is None:
            return -1, NO_TIME, self.log.start_offset
        return self._append_batch(*admitted, now_ms, budget, older, joining)

    def prepare_older(
        self, admitted: tuple[memoryview, BatchHeader], first_offset: int, now_ms: int, budget: UnpackBudget
    ) -> OlderForm:
        """Convert a batch that begins at `first_offset` to the older format that the broker stores.

        Any thread may call this method. Raises the same errors as `append`.
        """
        batch, _ = admitted
        self._stamp(batch, first_offset, now_ms)
        return OlderForm(first_offset, self._stored(batch, budget))

    @property
    def stores_older(self) -> bool:
        """True if the log stores messages of magic 0 or 1, so that appended batches are converted."""
        return self.config.stored_magic < 2 and not self.topic.startswith("__")

    def _append_batch(
        self,
        batch: memoryview,
        header: BatchHeader,
        now_ms: int,
        budget: UnpackBudget | None,
        older: OlderForm | None = None,
        joining: JoinsTransaction | None = None,
    ) -> Appended:
        config = self.config
        if len(batch) > config.segment_bytes:
            raise no_segment_holds(len(batch), config)
        log = self._log
        if log is None:
            log = self._open()
        states = self._producers
        assert states is not None
        if header.producer_id >= 0:
            in_transaction = header.attributes & TRANSACTIONAL_BIT
            verification = join_batch(self, header, joining) if in_transaction else None
            producers = states.producers if states.loaded is None else states.loaded
            repeated = producers.judge(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.record_count,
                states.uptime_ms,
            )
            if repeated is not None:
                # Kafka answers the greatest time of the stored batch, and -1 as the log's start.
                return repeated.first_offset, repeated.timestamp, log.start_offset
            if in_transaction or states.open:
                states.check_append(header, verification)
        first_offset = self._kept_offset(header, log.end_offset) if config.keeps_offsets else log.end_offset
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = now_ms if config.log_append_time else header.max_timestamp
        # Inlined `_stamp`, for speed.
        stamp_header(batch, 0, first_offset, len(batch) - LENGTH_EXTRA_BYTES, self.leader_epoch)
        if config.log_append_time:
            set_max_timestamp_log_append(batch, 0, len(batch), now_ms)
        stored: bytes | memoryview = batch
        if config.stored_magic != 2:
            if older is not None and older.first_offset == first_offset:
                stored = older.data
            else:
                stored = self._stored(batch, budget)
        log.append(
            stored,
            first_offset=first_offset,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
        )
        states.batches_since_snapshot += 1
        if header.producer_id >= 0:
            producers.record_batch(header, first_offset, max_timestamp, states.uptime_ms)
            if in_transaction:
                states.transactions.record_data(header.producer_id, first_offset)
        if self.replication is None and not states.open:
            self._high_watermark = self._last_stable_offset = last_offset + 1
        else:
            self._advance(log)
        time_ms = now_ms if config.log_append_time else NO_TIME
        return first_offset, time_ms, log.start_offset

    def _kept_offset(self, header: BatchHeader, end_offset: int) -> int:
        """Return the base offset of a batch that a mirroring tool copies together with its offsets.

        A tool that sends several batches at a time writes the gap into the field for the leader epoch, which
        producers leave at -1. The gap is the number of offsets between the end of the batch before and this
        batch. So no batch is appended after a batch that was refused.

        Raises:
            KafkaError: INVALID_RECORD (87), the offset lies below the end of the log or above
            `KEPT_OFFSET_MAX`, or does not match the gap.
        """
        first_offset, gap = header.base_offset, header.partition_leader_epoch
        if not end_offset <= first_offset <= KEPT_OFFSET_MAX or 0 <= gap != first_offset - end_offset:
            raise error_for(
                ErrorCode.INVALID_RECORD,
                f"{self!r} keeps the offsets of a copy (penstock.keep.offsets), and ends at offset "
                f"{end_offset}: a batch cannot begin at {first_offset}",
            )
        return first_offset

    def _stored(self, batch: memoryview, budget: UnpackBudget | None) -> bytes | memoryview:
        """Return the batch in the format that the log stores: in internal topics always magic 2."""
        return in_older_format(batch, self.config.stored_magic, budget) if self.stores_older else batch

    def _stamp(self, batch: memoryview, first_offset: int, now_ms: int) -> None:
        """Write base offset, leader epoch and, with LogAppendTime, the append time into a batch header."""
        stamp_header(batch, 0, first_offset, len(batch) - LENGTH_EXTRA_BYTES, self.leader_epoch)
        if self.config.log_append_time:
            set_max_timestamp_log_append(batch, 0, len(batch), now_ms)
