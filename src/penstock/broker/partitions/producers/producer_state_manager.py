"""`ProducerStateManager`: reads the producer states of one open log on first use, and saves them.

The states come from a snapshot and the batches after it. Apache Kafka's class of this name has the same
purpose. `producer_state` has the states and the rules for batches, `producer_snapshots` reads and writes the
files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from penstock.broker.partitions.producers.aborted_index import AbortedIndex
from penstock.broker.partitions.producers.producer_state import Producers
from penstock.broker.partitions.producers.transactions import Transactions

if TYPE_CHECKING:
    from penstock.broker.partitions.producers.producer_snapshots import ProducerSnapshots
    from penstock.broker.partitions.producers.transactions import AbortedTransaction, Verification
    from penstock.log.contract import Log
    from penstock.records.format.batch_header import BatchHeader

BATCHES_PER_SNAPSHOT = 10_000
"""The number of appended batches after which a snapshot is written. A start reads the batches after the
older of two snapshots, at some 10 µs for each batch."""


VERIFICATION_MS = 600_000
"""The time in ms after which a `Verification` expires if the coordinator has not answered."""

ABORTED_TOLD_AT_ONCE = 100
"""The maximum number of aborted transactions that a Fetch response gets without a selection. If there
are more, the broker searches the log for the end of the returned data, to select only those that
overlap the data.
"""


class ProducerStateManager:
    """The producers and transactions of one log: reads both from snapshots and the log, and saves them."""

    __slots__ = (
        "_base_offset",
        "_batches_behind_base",
        "_log",
        "_new",
        "_reads_all",
        "_snapshots",
        "_transactions",
        "aborted",
        "batches_since_snapshot",
        "loaded",
        "open",
        "uptime_ms",
    )

    def __init__(
        self,
        log: Log,
        snapshots: ProducerSnapshots | None,
        new: Callable[[], Producers],
        uptime_ms: int,
        *,
        reads_all: bool = False,
    ) -> None:
        """Prepare to read the states. `new` returns an empty `Producers`.

        `uptime_ms` is the present time of the monotonic clock. `reads_all` ignores snapshots, and reads the
        whole log instead. Without `snapshots`, the states exist only while the log is open.

        Raises:
            StorageError: snapshots of batches that are not in the log cannot be removed.
        """
        self._log = log
        self._snapshots = snapshots
        self._new = new
        self.uptime_ms = uptime_ms
        """The monotonic time in ms of the last call of `maintain`, or of the opening of the log. Idle
        times of producers are measured with it.
        """
        self.batches_since_snapshot = 0
        """The number of batches appended since the last snapshot. Callers that append must increase it."""
        # The offset at which the next start begins to read about producers, and the batches from there on.
        self._base_offset = self._batches_behind_base = 0
        if snapshots is not None:
            snapshots.discard_after(log.end_offset)
        # An empty log has no producers: kept up from here on, they need never be read from it.
        self.loaded: Producers | None = new() if log.end_offset == 0 else None
        """The producer states in memory; None before the first access to the property `producers`."""
        self._transactions: Transactions | None = None
        self.aborted = AbortedIndex(None if snapshots is None else snapshots.directory)
        """The aborted transactions of the log; read together with the producers."""
        self._reads_all = reads_all
        self.open: Mapping[int, int] = {}
        """The first offset of each open transaction, ascending; empty until the producers have been read."""
        if self.loaded is not None:
            self._transactions = Transactions(self.loaded)
            self.open = self._transactions.open

    def __len__(self) -> int:
        """Return the number of producers in memory."""
        return 0 if self.loaded is None else len(self.loaded)

    @property
    def producers(self) -> Producers:
        """The producer states, which the first access reads from snapshots and the log.

        Every producer in the log then counts as active now, because batches have no arrival times. A producer
        that is kept too long does no harm.

        Raises:
            StorageError: the log cannot be read.
        """
        if self.loaded is None:
            self.loaded = self._read()
            assert self.loaded is not None
        return self.loaded

    @property
    def transactions(self) -> Transactions:
        """The transactions of the log, which the first access reads from snapshots and the log.

        Raises:
            StorageError: the log cannot be read.
        """
        if self._transactions is None or self.loaded is None:
            _ = self.producers
        assert self._transactions is not None
        return self._transactions

    def aborted_in(self, offset: int, size: int, stable_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that may have records in the `size` log bytes from `offset` on.

        The transactions are ordered by the offsets of their markers.

        Raises:
            StorageError: the log cannot be read.
        """
        found = self.aborted.overlapping(offset, stable_offset) if len(self.aborted) else []
        if len(found) <= ABORTED_TOLD_AT_ONCE:
            return found
        end_offset = offset
        for entry in self._log.entries(offset):
            end_offset = entry.last_offset + 1
            size -= entry.size
            if size <= 0:
                break
        return self.aborted.overlapping(offset, end_offset)

    def segment_bases(self) -> list[int]:
        """Return the first offset of every segment of the log."""
        return [segment.base_offset for segment in self._log.segments]

    def compacted(self, spent_markers: Collection[int]) -> None:
        """Update the index of aborted transactions after compaction has merged segments.

        Transactions whose markers are at the offsets `spent_markers` are removed, since the log no longer has
        their batches.

        Raises:
            StorageError: the index cannot be written.
        """
        if len(self.aborted):
            self.aborted.drop(spent_markers)
            self.aborted.rewrite(self.segment_bases())

    def check_append(self, header: BatchHeader, verification: Verification | None) -> None:
        """Check that the transaction state of a batch's producer allows the batch to be appended.

        Raises:
            KafkaError: INVALID_TXN_STATE (48), INVALID_PRODUCER_EPOCH (47), OUT_OF_ORDER_SEQUENCE_NUMBER
                (45).
            StorageError: the log cannot be read.
        """
        self.transactions.check_append(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.is_transactional,
            verification,
        )

    def replicated(self, header: BatchHeader) -> None:
        """Update the producer's state with a batch that this follower has copied from the leader.

        Raises:
            StorageError: the log cannot be read.
        """
        self.batches_since_snapshot += 1
        if header.producer_id < 0 or self.loaded is None:
            return  # producers that have not been read yet are read with this batch
        from penstock.broker.partitions.producers.producer_recovery import read_batch

        aborted = read_batch(self._log, header, self.loaded, self.transactions, self.uptime_ms)
        if aborted is not None:
            self.aborted.add(aborted, self.segment_bases())

    def truncated(self) -> None:
        """Read the producer states from snapshots and log again, because the log was truncated.

        Raises:
            StorageError: snapshots past the new end of the log cannot be removed.
        """
        if self._snapshots is not None:
            self._snapshots.discard_after(self._log.end_offset)
        self._read_again()

    def begun_anew(self) -> None:
        """Drop all producers, because the log was emptied and now begins at a later offset.

        Raises:
            StorageError: snapshots of the removed batches cannot be removed.
        """
        if self._snapshots is not None:
            self._snapshots.discard_after(-1)
        self._read_again()

    def _read_again(self) -> None:
        self.loaded = self._transactions = None
        self._base_offset = self._batches_behind_base = self.batches_since_snapshot = 0
        # Read at once, since the last stable offset depends on open transactions.
        _ = self.producers

    def maintain(self, uptime_ms: int) -> None:
        """Drop idle producers, and write a snapshot if many batches were appended since the last snapshot.

        Raises:
            StorageError: the snapshot cannot be written.
        """
        self.uptime_ms = uptime_ms
        if self.loaded is not None:
            self.loaded.expire(uptime_ms)
        if self._transactions is not None:
            self._transactions.expire_verifications(uptime_ms - VERIFICATION_MS)
        self.aborted.forget_before(self._log.start_offset)
        if self.batches_since_snapshot >= BATCHES_PER_SNAPSHOT and self._snapshots is not None:
            self._save(self._snapshots, self._log.end_offset, self.producers)

    def forget_idlest(self, most: int) -> None:
        """Drop the idlest producers, as if they had expired, until at most `most` are left in memory."""
        if self.loaded is not None:
            self.loaded.forget_idlest(most)

    def _save(self, snapshots: ProducerSnapshots, offset: int, producers: Producers) -> None:
        """Write a snapshot of the producers. The next start reads the log from the previous snapshot on.

        Raises:
            StorageError: the snapshot cannot be written.
        """
        self.aborted.sync(self.segment_bases())
        snapshots.save(offset, producers)
        self._batches_behind_base, self.batches_since_snapshot = self.batches_since_snapshot, 0
        self._base_offset = max((each for each in snapshots.offsets() if each < offset), default=0)

    def note(self) -> None:
        """Write a snapshot of the producer states, if necessary, for a clean shutdown of the broker.

        The older snapshot is kept as well, unless too many batches follow it. A start reads the log from
        there on to restore the last five batches of each producer, of which a snapshot has only one.

        Raises:
            StorageError: the log cannot be read, or the snapshot cannot be written.
        """
        log, snapshots = self._log, self._snapshots
        if snapshots is None:
            return
        there = snapshots.offsets()
        # A reader walks on behind any snapshot; without one, Kafka takes it that there are no producers.
        is_needed = not there if self.loaded is None else log.end_offset not in there
        if not is_needed or log.end_offset == 0:
            return
        producers = self.loaded or self._read(2 * BATCHES_PER_SNAPSHOT)
        if producers is None:
            return
        if self._batches_behind_base + self.batches_since_snapshot > 2 * BATCHES_PER_SNAPSHOT:
            self._save(snapshots, log.end_offset, producers)
        else:
            snapshots.save(log.end_offset, producers, self._base_offset)

    def _read(self, batches_max: int | None = None) -> Producers | None:
        """Read the producer states from snapshot and log; return None if that takes `batches_max` batches.

        Raises:
            StorageError: the log cannot be read.
        """
        from penstock.broker.partitions.producers.producer_recovery import read_producers

        producers = self._new()
        log = self._log
        known_to = log.start_offset
        if self._snapshots is not None and not self._reads_all:
            known_to = self._snapshots.load(producers, known_to, self.uptime_ms)
        found = read_producers(log, producers, known_to, self.uptime_ms, batches_max)
        if found is None:
            return None
        self.aborted.load()
        self.aborted.forget_before(log.start_offset)
        self.aborted.replace_from(known_to, found.aborted, self.segment_bases())
        self._transactions = found.transactions
        self.open = found.transactions.open
        self._base_offset, self._batches_behind_base = known_to, found.batches
        return producers
