"""`Compactor`: compacts partitions in a thread, one at a time, the one with the most to gain first.

The thread reads and writes files; the broker's own thread, which calls `step` once a second, chooses
partitions and applies results. Requests are served meanwhile. Schedules use the monotonic clock; the time of
day is only compared with the timestamps of records.

A compaction that fails, for any reason, leaves its log as it was. The partition is then marked as failed
and tried again after `RETRY_S`, then after twice that, and so on; other partitions are not held up.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.compaction.compactor import Compaction, CompactionPolicy, Dirt, Kept, find_dirt, plan
from penstock.log.compaction.transactions import Aborted

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig, TopicConfig
    from penstock.broker.partitions.log_store import LogStore
    from penstock.broker.partitions.partition import Partition
    from penstock.clock import Clock
    from penstock.common.failures import Failures
    from penstock.log.contract import Log

logger = logger_named("penstock.broker")

BYTES_PER_KEY = 24
"""The size in bytes of a key in Apache Kafka's offset map. The number of keys in a compaction is
`log.cleaner.dedupe.buffer.size` divided by it."""

RETRY_S = 600.0
"""The seconds until a failed compaction is tried again. The pause is long because each attempt may read
the whole log. A full disk or a lack of memory may be over by then.
"""

RETRY_S_MAX = 4 * 3600.0
"""The longest time in seconds until a failed compaction is tried again: the time doubles with each
failure."""


class Compactor:
    """Runs the compactions of one broker, one after another, each in a thread."""

    def __init__(self, config: BrokerConfig, store: LogStore, clock: Clock, failures: Failures) -> None:
        self._config = config
        self._store = store
        self._monotonic = clock.monotonic
        self._failures = failures
        self._due_s = self._monotonic() + self._backoff_s
        self._partition: Partition | None = None
        self._work: Compaction | None = None
        self._thread: threading.Thread | None = None
        self._failure: StorageError | None = None
        self._failed: dict[Partition, tuple[float, float]] = {}
        """A dict from each partition whose last compaction failed to the monotonic time of the next
        attempt and the present retry interval, both in seconds."""

    @property
    def _backoff_s(self) -> float:
        return self._config.integer("log.cleaner.backoff.ms") / 1000

    def step(self, partitions: Iterable[Partition], now_ms: int) -> list[StorageError]:
        """Apply the result of a compaction that has ended, or begin the next one; return errors of both."""
        if self._thread is not None:
            if self._thread.is_alive():
                return []
            return self._finish()
        now = self._monotonic()
        if now < self._due_s:
            return []
        self._due_s = now + self._backoff_s
        if self._config.boolean("log.cleaner.enable"):
            return self._begin(list(partitions), now_ms)
        return []

    @property
    def is_busy(self) -> bool:
        """True while a compaction is running, or its result has not been applied yet."""
        return self._thread is not None

    @property
    def failed(self) -> list[Partition]:
        """The partitions whose last compaction failed."""
        return list(self._failed)

    def wait(self) -> list[StorageError]:
        """Wait for the running compaction and apply its result; return the errors."""
        if self._thread is None:
            return []
        self._thread.join()
        return self._finish()

    def _begin(self, partitions: list[Partition], now_ms: int) -> list[StorageError]:
        now = self._monotonic()
        self._failed = {each: self._failed[each] for each in partitions if each in self._failed}
        problems: list[StorageError] = []
        dirtiest: Partition | None = None
        most = (False, 0.0)
        for partition in partitions:
            if self._failed.get(partition, (now, 0.0))[0] > now:
                continue
            try:
                dirt = self._dirt_of(partition, now_ms)
            except Exception as error:
                problems.append(self._gave_up(partition, error))
                continue
            if dirt is not None and (dirt.is_overdue, dirt.ratio) > most:
                dirtiest, most = partition, (dirt.is_overdue, dirt.ratio)
        if dirtiest is not None:
            try:
                self._start(dirtiest, now_ms)
            except Exception as error:
                problems.append(self._gave_up(dirtiest, error))
        return problems

    def _dirt_of(self, partition: Partition, now_ms: int) -> Dirt | None:
        """Return the log's uncompacted part if it is large or old enough to be compacted now, else None."""
        log = partition.open_log
        if not partition.config.compacted or log is None:
            return None
        policy = policy_of(partition.config)
        dirt = find_dirt(log, policy, now_ms, _stable_offset(partition, log))
        return dirt if dirt is not None and (dirt.ratio > policy.min_dirty_ratio or dirt.is_overdue) else None

    def _start(self, partition: Partition, now_ms: int) -> None:
        log = partition.open_log
        assert log is not None
        work = plan(
            log,
            policy_of(partition.config),
            now_ms,
            kept=_kept(partition, log),
            keys_max=self._config.integer("log.cleaner.dedupe.buffer.size") // BYTES_PER_KEY,
        )
        if work is None:
            return
        thread = threading.Thread(
            target=self._run, args=(work, partition), name=f"penstock-compactor-{partition}", daemon=True
        )
        thread.start()
        self._partition, self._work, self._thread = partition, work, thread

    def _run(self, work: Compaction, partition: Partition) -> None:
        """Run a compaction in the thread. Then `work.is_complete` is True if it succeeded."""
        try:
            work.run()
        except StorageError as error:
            self._failure = error
        except BaseException as error:
            self._failure = _unexpected(partition, error)
            self._failures.caught("compactor", f"compaction of {partition}")

    def _finish(self) -> list[StorageError]:
        work, partition = self._work, self._partition
        self._work = self._thread = self._partition = None
        failure, self._failure = self._failure, None
        assert work is not None
        assert partition is not None
        is_complete = work.is_complete
        try:
            if is_complete and work.finish():
                partition.states.compacted(work.spent_markers)
                self._store.end_checkpoint(())
                logger.info("compacted %r: %d bytes to %d", work.log, work.bytes_before, work.bytes_after)
                self._failed.pop(partition, None)
                self._due_s = self._monotonic()  # this partition or others may have more to compact
            elif not is_complete and not work.log.is_closed:
                raise failure or StorageError(f"the compaction of {partition} ended early")
        except Exception as error:
            return [self._gave_up(partition, error)]
        return []

    def _gave_up(self, partition: Partition, error: Exception) -> StorageError:
        """Record that compaction has failed with `error`, and when to retry; return the error to report."""
        if not isinstance(error, StorageError):
            self._failures.caught("compactor", f"compaction of {partition}")
            error = _unexpected(partition, error)
        last_s = self._failed.get(partition, (0.0, 0.0))[1]
        wait_s = min(last_s * 2, RETRY_S_MAX) if last_s else RETRY_S
        self._failed[partition] = self._monotonic() + wait_s, wait_s
        logger.warning("%s stays uncompacted; it is tried again in %.0f s", partition, wait_s)
        return error


def _unexpected(partition: Partition, error: BaseException) -> StorageError:
    reason = "memory ran out" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
    return StorageError(f"{partition} was not compacted: {reason}")


def _stable_offset(partition: Partition, log: Log) -> int:
    """Return the first offset of the oldest open transaction, or the log end: compaction stops there."""
    return next(iter(partition.states.open.values()), log.end_offset)


def _kept(partition: Partition, log: Log) -> Kept:
    """Return what compaction must keep: producers' last batches, aborted and open transactions.

    Raises:
        StorageError: the log cannot be read.
    """
    producers = partition.producers()
    return Kept(
        producers.last_offsets(),
        producers.marker_epochs(),
        [Aborted(*entry[:3]) for entry in partition.states.aborted],
        _stable_offset(partition, log),
    )


def policy_of(config: TopicConfig) -> CompactionPolicy:
    """Return the compaction settings of a topic."""
    ratio = config["min.cleanable.dirty.ratio"]
    return CompactionPolicy(
        min_lag_ms=config.integer("min.compaction.lag.ms"),
        max_lag_ms=config.integer("max.compaction.lag.ms"),
        delete_retention_ms=config.integer("delete.retention.ms"),
        min_dirty_ratio=float(ratio) if isinstance(ratio, (int, float)) else 0.5,
    )
