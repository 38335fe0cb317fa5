"""Which compacted topic is compacted next: the dirtiest, one at a time, in a thread of its own.

The thread reads and writes files; everything about partitions is decided in the broker's own thread, which
calls `step` once a second. Requests are served meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log.compaction import Compaction, CompactionPolicy, find_dirt, plan
from penstock.log.segmented import SegmentedLog

if TYPE_CHECKING:
    from penstock.broker.config import BrokerConfig, TopicConfig
    from penstock.broker.partition import Partition
    from penstock.broker.storage import LogStore

logger = logging.getLogger("penstock.broker")

BYTES_PER_KEY = 24
"""What Apache Kafka reckons a key of its map takes; `log.cleaner.dedupe.buffer.size` is divided by it."""


class Compactor:
    """The compactions of one broker."""

    def __init__(self, config: BrokerConfig, store: LogStore, now_ms: int) -> None:
        self._config = config
        self._store = store
        self._due_ms = now_ms + config.integer("log.cleaner.backoff.ms")
        self._work: Compaction | None = None
        self._thread: threading.Thread | None = None
        self._failure: StorageError | None = None
        self._gave_up: dict[Partition, int] = {}
        """Partitions that could not be compacted, with their end then: tried again once they have grown."""

    def step(self, partitions: Iterable[Partition], now_ms: int) -> list[StorageError]:
        """Finish what is done, begin what is due; return what went wrong."""
        if self._thread is not None:
            if self._thread.is_alive():
                return []
            return self._finish()
        if now_ms < self._due_ms:
            return []
        self._due_ms = now_ms + self._config.integer("log.cleaner.backoff.ms")
        if self._config.boolean("log.cleaner.enable"):
            return self._begin(partitions, now_ms)
        return []

    @property
    def is_busy(self) -> bool:
        """Whether a compaction is under way, or waits to be put in place."""
        return self._thread is not None

    def wait(self) -> list[StorageError]:
        """Wait for the compaction under way, and put its result in place; return what went wrong."""
        if self._thread is None:
            return []
        self._thread.join()
        return self._finish()

    def _begin(self, partitions: Iterable[Partition], now_ms: int) -> list[StorageError]:
        failures: list[StorageError] = []
        dirtiest: Partition | None = None
        most = (False, 0.0)
        for partition in partitions:
            log = partition.open_log
            if not partition.config.compacted or not isinstance(log, SegmentedLog):
                continue
            if self._gave_up.get(partition, -1) == log.end_offset:
                continue
            policy = policy_of(partition.config)
            try:
                dirt = find_dirt(log, policy, now_ms)
            except StorageError as error:
                failures.append(error)
                continue
            if dirt is None or not (dirt.ratio > policy.min_dirty_ratio or dirt.is_overdue):
                continue
            if (dirt.is_overdue, dirt.ratio) > most:
                dirtiest, most = partition, (dirt.is_overdue, dirt.ratio)
        if dirtiest is not None:
            try:
                self._start(dirtiest, now_ms)
            except StorageError as error:
                failures.append(error)
        return failures

    def _start(self, partition: Partition, now_ms: int) -> None:
        log = partition.open_log
        assert isinstance(log, SegmentedLog)
        self._gave_up.pop(partition, None)
        work = plan(
            log,
            policy_of(partition.config),
            now_ms,
            last_of_producers=partition.last_offsets_of_producers(now_ms),
            keys_max=self._config.integer("log.cleaner.dedupe.buffer.size") // BYTES_PER_KEY,
        )
        if work is None:
            return
        self._work = work

        def run() -> None:
            try:
                work.run()
            except StorageError as error:
                self._failure = error
                self._gave_up[partition] = log.end_offset

        self._thread = threading.Thread(target=run, name=f"penstock-compactor-{partition}", daemon=True)
        self._thread.start()

    def _finish(self) -> list[StorageError]:
        work, self._work, self._thread = self._work, None, None
        failure, self._failure = self._failure, None
        assert work is not None
        if failure is not None:
            return [failure]
        try:
            if work.finish():
                self._store.end_checkpoint(())
                logger.info("compacted %r: %d bytes to %d", work.log, work.bytes_before, work.bytes_after)
                # There may be more of it, or of others.
                self._due_ms = 0
        except StorageError as error:
            return [error]
        return []


def policy_of(config: TopicConfig) -> CompactionPolicy:
    """The settings of a topic that its compaction obeys."""
    ratio = config["min.cleanable.dirty.ratio"]
    return CompactionPolicy(
        min_lag_ms=config.integer("min.compaction.lag.ms"),
        max_lag_ms=config.integer("max.compaction.lag.ms"),
        delete_retention_ms=config.integer("delete.retention.ms"),
        min_dirty_ratio=float(ratio) if isinstance(ratio, (int, float)) else 0.5,
    )
