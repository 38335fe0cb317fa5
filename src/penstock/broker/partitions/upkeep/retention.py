"""Retention: the deletion of expired records, from open logs and from logs not used since the start.

Every pass enforces retention on all open logs. The files of closed logs are checked, some logs in each
second, and a closed log is opened only if something must be deleted. So a broker with many idle partitions is
not held up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.errors import KafkaError, StorageError

if TYPE_CHECKING:
    from penstock.broker.partitions.partition import Partition
    from penstock.common.failures import Failures

LOOKED_AT_PER_STEP = 500
"""The maximum number of closed logs whose files one call of `step` checks, at some 30 µs each."""

OPENED_PER_STEP = 25
"""The maximum number of closed logs that one call of `step` opens to delete records, at some
milliseconds each.
"""


class KeptPartitions(Protocol):
    """The interface from which `Retention` gets the broker's partitions."""

    @property
    def opened(self) -> Iterable[Partition]:
        """The partitions whose logs are open."""

    def partitions(self) -> Iterable[Partition]:
        """Return all partitions of the broker, with open and closed logs."""


class Retention:
    """Enforces the retention of all partitions of one broker, at intervals of the monotonic clock."""

    def __init__(self, kept: KeptPartitions, failures: Failures, due_at: float, interval_s: float) -> None:
        self._kept = kept
        self._failures = failures
        self._due_at = due_at
        self._interval_s = interval_s
        self._closed: list[Partition] = []

    def step(self, now: float, now_ms: int) -> list[StorageError]:
        """Enforce the retention that is due at `now`, in all logs despite errors; return the errors."""
        errors: list[StorageError] = []
        if now >= self._due_at:
            self._due_at = now + self._interval_s
            for partition in list(self._kept.opened):
                self._enforce(partition, now_ms, errors)
            self._closed = [
                partition
                for partition in self._kept.partitions()
                if not partition.is_open and partition.config.deletes_old
            ]
            self._closed.reverse()
        self._step_closed(now_ms, errors)
        return errors

    def _step_closed(self, now_ms: int, errors: list[StorageError]) -> None:
        opened = 0
        for _ in range(min(LOOKED_AT_PER_STEP, len(self._closed))):
            partition = self._closed.pop()
            try:
                if partition.is_open or not partition.may_shrink(now_ms):
                    continue
            except StorageError as error:
                errors.append(error)
                continue
            self._enforce(partition, now_ms, errors)
            opened += 1
            if opened == OPENED_PER_STEP:
                return

    def _enforce(self, partition: Partition, now_ms: int, errors: list[StorageError]) -> None:
        try:
            partition.enforce_retention(now_ms)
        except StorageError as error:
            errors.append(error)
        except KafkaError:
            return  # too many logs are opened just now; the next time is early enough
        except Exception:
            # A barrier: one log that fails does not stop the rest.
            self._failures.caught("housekeeping", f"retention of {partition}")
