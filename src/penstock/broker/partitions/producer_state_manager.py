"""The producer state of one open log: read from snapshots and batches when it is first needed, and saved.

Apache Kafka's class of that name does the same. What a producer's state is and how batches are judged by it
is `producer_state`; the files are `producer_snapshots`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.partitions.producer_state import Producers, SeenBatch

if TYPE_CHECKING:
    from penstock.broker.partitions.producer_snapshots import ProducerSnapshots
    from penstock.log.contract import Log

BATCHES_PER_SNAPSHOT = 10_000
"""How many batches a start may have to look at for each of the two snapshots, some 10 µs apiece."""


class ProducerStateManager:
    """The producers of one log, and the snapshots of them."""

    __slots__ = (
        "_base_offset",
        "_batches_behind_base",
        "_log",
        "_new",
        "_producers",
        "_snapshots",
        "batches_since_snapshot",
        "uptime_ms",
    )

    def __init__(
        self,
        log: Log,
        snapshots: ProducerSnapshots | None,
        new: Callable[[], Producers],
        uptime_ms: int,
    ) -> None:
        """`new` makes an empty table of producers. `uptime_ms` is the monotonic clock.

        Without `snapshots`, nothing outlives the log.

        Raises:
            StorageError: snapshots of batches that are not in the log cannot be removed.
        """
        self._log = log
        self._snapshots = snapshots
        self._new = new
        self.uptime_ms = uptime_ms
        """The monotonic clock at the last housekeeping, or when the log was opened: for idle producers."""
        self.batches_since_snapshot = 0
        """Batches appended since the last snapshot; each append counts one."""
        # The offset at which the next start begins to read about producers, and the batches from there on.
        self._base_offset = self._batches_behind_base = 0
        if snapshots is not None:
            snapshots.discard_after(log.end_offset)
        # An empty log has no producers: kept up from here on, they need never be read from it.
        self._producers: Producers | None = new() if log.end_offset == 0 else None

    def __len__(self) -> int:
        """How many producers are in memory."""
        return 0 if self._producers is None else len(self._producers)

    @property
    def producers(self) -> Producers:
        """The producers; read from snapshots and log on first use after a start.

        Every producer in the log counts as seen now: batches tell the times of their records, not of
        their arrival, and a producer remembered too long does no harm.

        Raises:
            StorageError: the log cannot be read.
        """
        producers = self._producers
        if producers is None:
            producers = self._read()
            assert producers is not None
            self._producers = producers
        return producers

    def maintain(self, uptime_ms: int) -> None:
        """Forget idle producers, and save the others where many batches lie behind the last snapshot.

        Raises:
            StorageError: the snapshot cannot be written.
        """
        self.uptime_ms = uptime_ms
        if self._producers is not None:
            self._producers.expire(uptime_ms)
        if self.batches_since_snapshot >= BATCHES_PER_SNAPSHOT and self._snapshots is not None:
            self._save(self._snapshots, self._log.end_offset, self.producers)

    def forget_idlest(self, most: int) -> None:
        """Keep `most` producers in memory; the others are as if their time had expired."""
        if self._producers is not None:
            self._producers.forget_idlest(most)

    def _save(self, snapshots: ProducerSnapshots, offset: int, producers: Producers) -> None:
        """Write a snapshot; the one before it is where the next start begins to read.

        Raises:
            StorageError: it cannot be written.
        """
        self._batches_behind_base, self.batches_since_snapshot = self.batches_since_snapshot, 0
        snapshots.save(offset, producers)
        self._base_offset = max((each for each in snapshots.offsets() if each < offset), default=0)

    def note(self) -> None:
        """Write down what is known of the producers, because the broker stops in order.

        The snapshot that a start begins with stays as long as not too much lies behind it: a snapshot
        knows the last batch of each producer only, and the walk from there finds the last five.

        Raises:
            StorageError: the log cannot be read, or the snapshot not be written.
        """
        log, snapshots = self._log, self._snapshots
        if snapshots is None:
            return
        there = snapshots.offsets()
        # A reader walks on behind any snapshot; without one, Kafka takes it that there are no producers.
        is_needed = not there if self._producers is None else log.end_offset not in there
        if not is_needed or log.end_offset == 0:
            return
        producers = self._producers or self._read(2 * BATCHES_PER_SNAPSHOT)
        if producers is None:
            return
        if self._batches_behind_base + self.batches_since_snapshot > 2 * BATCHES_PER_SNAPSHOT:
            self._save(snapshots, log.end_offset, producers)
        else:
            snapshots.save(log.end_offset, producers, self._base_offset)

    def _read(self, batches_max: int | None = None) -> Producers | None:
        """What snapshots and the log say about producers; None if more batches had to be looked at.

        Raises:
            StorageError: the log cannot be read.
        """
        producers = self._new()
        log = self._log
        known_to = log.start_offset
        if self._snapshots is not None:
            known_to = self._snapshots.load(producers, known_to, self.uptime_ms)
        looked_at = 0
        for header in log.iter_batch_headers(known_to):
            looked_at += 1
            if looked_at == batches_max:
                return None
            if header.producer_id >= 0 and not header.is_control:
                seen = SeenBatch(
                    header.base_sequence,
                    header.last_sequence,
                    header.base_offset,
                    header.last_offset,
                    header.max_timestamp,
                )
                producers.record(header.producer_id, header.producer_epoch, seen, self.uptime_ms)
        self._base_offset, self._batches_behind_base = known_to, looked_at
        return producers
