"""The log of a partition: opened on first use, read up to its watermarks, and looked after.

The high watermark, the last stable offset and the states of producers belong to the log and live while it
is open. Opening it late lets a broker with thousands of partitions start as fast as one with none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.partitions.internal_topics import WITHOUT_TRANSACTIONS
from penstock.broker.partitions.log_store import log_config
from penstock.broker.partitions.partition_state import PartitionState
from penstock.broker.partitions.producers.producer_state import Producers
from penstock.broker.partitions.producers.producer_state_manager import ProducerStateManager
from penstock.errors import KafkaError
from penstock.log.memory import MemoryLog
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.config.values import TopicConfig
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.producers.transactions import AbortedTransaction
    from penstock.log.contract import Log, Slice

NO_TIME = -1

_NOTHING = MemoryLog(now_ms=NO_TIME)
"""What is read of a partition to which nothing was ever written."""


class PartitionLog(PartitionState):
    """One partition with its log. `partition.Partition` checks what may be appended to it."""

    __slots__ = (
        "_high_watermark",
        "_last_stable_offset",
        "_log",
        "_opened",
        "_producers",
        "_store",
        "config",
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
        """A partition without a leader. `opened` holds the partitions of the broker whose logs are open."""
        super().__init__(topic, topic_id, index)
        self._high_watermark = self._last_stable_offset = 0
        self.config = config
        self._store = store
        self._opened = opened
        self._log: Log | None = None
        self._producers: ProducerStateManager | None = None
        """The producers of the log; None while it is not open."""

    @property
    def log(self) -> Log:
        """The partition's log, to be written to: opened if it was not, or begun.

        Raises:
            StorageError: it cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        log = self._log
        if log is None:
            log = self._log = self._open()
            self._opened[self] = None
        return log

    @property
    def reader(self) -> Log:
        """The partition's log, to be read: an empty one where nothing was ever written.

        Raises:
            StorageError: it cannot be opened.
            KafkaError: NOT_LEADER_OR_FOLLOWER (6), too many logs are opened at once.
        """
        return self._log if self._log is not None else self._open_to_read()

    def _open_to_read(self) -> Log:
        return self.log if self._store.has_log(self.topic, self.index, self.topic_id) else _NOTHING

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
        self._advance(log)
        return log

    def _no_producers(self) -> Producers:
        return Producers(self.config.broker.integer("producer.id.expiration.ms"))

    @property
    def open_log(self) -> Log | None:
        """The log if it is open; one that was not used since the start needs no upkeep."""
        return self._log

    @property
    def is_open(self) -> bool:
        """Whether the log has been used since the start."""
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
        """Move the high watermark and the last stable offset, after an append of the broker's own."""
        self.states.batches_since_snapshot += self._store.holds_transactions
        self._advance(self.log)

    def _advance(self, log: Log) -> None:
        self._high_watermark = self._last_stable_offset = log.end_offset
        if self._producers is not None and self._producers.open:
            first = next(iter(self._producers.open.values()))
            self._last_stable_offset = min(max(first, log.start_offset), log.end_offset)

    @property
    def states(self) -> ProducerStateManager:
        """The producers of the log, which is opened for that. Raises as `log`."""
        _ = self.log
        assert self._producers is not None
        return self._producers

    def aborted_transactions(self, offset: int, size: int) -> list[AbortedTransaction]:
        """The aborted transactions that may have data in `size` bytes from `offset` on, ordered by markers.

        Raises as `log`.
        """
        if self._producers is None:
            return []
        return self._producers.aborted_in(offset, size, self._last_stable_offset)

    @property
    def log_start_offset(self) -> int:
        return self.reader.start_offset

    @property
    def low_watermark(self) -> int:
        """The offset below which no replica has a record; with one replica, the start of its log."""
        return self.log_start_offset

    @property
    def size_bytes(self) -> int:
        """Return the size of the log in bytes, without opening it.

        Raises:
            StorageError: its files cannot be looked at.
        """
        if self._log is not None:
            return self._log.size_bytes
        return self._store.size_of(self.topic, self.index, self.topic_id)

    def configure(self, config: TopicConfig) -> None:
        """Obey other settings from now on."""
        self.config = config
        if self._log is not None:
            self._log.configure(log_config(config))

    def close(self) -> None:
        """Let go of the log. The next use would open it again."""
        log, self._log, self._producers = self._log, None, None
        self._opened.pop(self, None)
        if log is not None:
            log.close()

    def leave_flushing(self) -> None:
        """Append without flushing from now on: the caller flushes, where `needs_flush`.

        Raises:
            StorageError: the log cannot be opened.
        """
        self.log.leave_flushing()

    @property
    def needs_flush(self) -> bool:
        """Whether the last records may be acknowledged only once the log has been flushed."""
        log = self._log
        return log is not None and log.flush_is_due

    def maintain(self, now_ms: int, uptime_ms: int) -> bool:
        """Do what is due: flush the log, drop idle producers, save snapshots of the others.

        `uptime_ms` is the monotonic clock: with the time of day, a clock put forward would make idle
        producers of all, and then take their repetitions for news.

        Return whether the caller has to flush the log.

        Raises:
            StorageError: the disk refuses.
        """
        log = self._log
        if log is None or self._producers is None:
            return False
        flush = log.flush_if_due(now_ms) and not log.flushes_itself
        self._producers.maintain(uptime_ms)
        return flush

    @property
    def producer_count(self) -> int:
        """How many producers are in memory."""
        return 0 if self._producers is None else len(self._producers)

    def forget_idlest_producers(self, most: int) -> None:
        """Keep `most` producers in memory; the others are as if their time had expired."""
        if self._producers is not None:
            self._producers.forget_idlest(most)

    def note_producers(self) -> None:
        """Save what is known of the producers, because the broker stops in order.

        Raises:
            StorageError: the log cannot be read, or the snapshot not be written.
        """
        if self._producers is not None:
            self._producers.note()

    def may_shrink(self, now_ms: int) -> bool:
        """Whether retention may have something to drop from the log, which is not open: a look at its files.

        Raises:
            StorageError: they cannot be looked at.
        """
        return self._store.may_shrink(self.topic, self.index, self.topic_id, self.config, now_ms)

    def enforce_retention(self, now_ms: int) -> None:
        """Delete the segments that retention by age or size no longer keeps.

        Raises:
            StorageError: the disk refuses.
        """
        if self.config.deletes_old:
            log = self.log
            keep_from = log.retention_offset(now_ms, self._high_watermark)
            is_news = keep_from > log.start_offset
            log.delete_before(keep_from)  # or goes on with what an earlier call could not remove
            if is_news:
                self._advance(log)

    def delete_records(self, offset: int) -> int:
        """Let the partition begin with `offset`, -1 for its high watermark; return its new start offset.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (1), or POLICY_VIOLATION (44) where nothing is ever deleted.
            StorageError: the disk refuses.
        """
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
        return log.start_offset

    def producers(self) -> Producers:
        """The state of the log's producers; read from the log on first use after a start.

        Raises:
            StorageError: the log cannot be opened or read.
        """
        if self._log is None:
            self._open_to_read()
        return self._no_producers() if self._producers is None else self._producers.producers

    def out_of_range(self, offset: int) -> KafkaError:
        """The error for an offset that the log does not have: OFFSET_OUT_OF_RANGE (1)."""
        log = self.reader
        return error_for(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {offset} of {self!r}, which has {log.start_offset} to {log.end_offset}",
        )

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the last leader epoch up to `epoch`; (-1, -1) for a later one.

        An epoch before the first that is known ended where that began.

        Raises:
            StorageError: the log cannot be opened.
        """
        log = self.reader
        if epoch == self.leader_epoch:
            return epoch, log.end_offset
        epochs = log.leader_epochs
        if not 0 <= epoch < epochs.latest:
            return -1, -1
        # Before the first epoch that is known there is no other end than its beginning.
        return epochs.end_of(epoch, log.end_offset) or (epoch, epochs.entries[0][1])

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool, committed_only: bool = False) -> Slice:
        """Return replicated batches from `offset` on: whole ones, the first maybe beginning below it.

        With `committed_only` none that lies behind the last stable offset.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE (1).
            StorageError: the log cannot be read.
        """
        log = self.reader
        if not log.start_offset <= offset <= log.end_offset:
            raise self.out_of_range(offset)
        end_offset = self._last_stable_offset if committed_only else self._high_watermark
        return log.read(offset, max_bytes, up_to_offset=end_offset, at_least_one=at_least_one)
