"""`Recorder`: the events of an application and of its broker, numbered in the order in which they happen."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.testing.chaos.events import (
    CommitRefused,
    Committed,
    Ends,
    Event,
    LogRecord,
    Moved,
    Outcome,
    Polled,
    Sent,
    TransactionEnded,
    Worked,
)
from penstock.testing.chaos.findings import RecordPlace

EVENTS_MAX = 1_000_000
"""The maximum number of events in a recorder. Each polled record counts as one event."""


class Recorder:
    """Numbers and stores the events of one history.

    Thread-safe. `client` is a number that the caller chooses for each producer or consumer.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.size = 0
        """The number of events so far; each polled record counts as one."""
        self.end_of: Callable[[TopicPartition], int | None] = lambda tp: None
        """A function that returns the current end offset of a partition, or None if it is not available."""
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def sent(
        self,
        topic: str,
        partition: int,
        value: Any,
        key: Any = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        delivery: Callable[[], tuple[Outcome, int, str]] | None = None,
        client: int = 0,
        transaction: int = 0,
    ) -> None:
        """Record a send. `delivery` is called during the check, and returns outcome, offset and reason."""
        made = {} if delivery is None else {"delivery": delivery}
        self._add(
            lambda number: Sent(
                number, client, topic, partition, key, value, tuple(headers), transaction=transaction, **made
            )
        )

    def polled(self, records: Iterable[Any], client: int = 0) -> None:
        """Record the records that a consumer returned: with topic, partition, offset, key and value."""
        rows = tuple(
            LogRecord(each.topic, each.partition, each.offset, each.key, each.value) for each in records
        )
        if not rows:
            return
        places = {TopicPartition(row.topic, row.partition) for row in rows}
        ends = {tp: end for tp in places if (end := self.end_of(tp)) is not None}
        self._add(lambda number: Polled(number, client, rows, ends), len(rows))

    def moved(self, partitions: Iterable[TopicPartition | tuple[str, int]], client: int = 0) -> None:
        """Record that a consumer's positions were moved by a seek, an assignment or a rebalance."""
        moved = frozenset(TopicPartition(*each) for each in partitions)
        if moved:
            self._add(lambda number: Moved(number, client, moved))

    def commit_refused(self, code: int, client: int = 0) -> None:
        """Record that a group refused a consumer's commit, since the group had rebalanced without it."""
        self._add(lambda number: CommitRefused(number, client, code))

    def committed(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        *,
        ends: Ends | None = None,
        in_transaction: bool = False,
    ) -> None:
        """Record that a broker stored a group's offsets; `ends` has the end offsets then, or is None."""
        self._add(lambda number: Committed(number, group, dict(offsets), ends, in_transaction))

    def transaction_ended(self, client: int, transaction: int, *, is_committed: bool) -> None:
        """Record the end of a client's transaction; `transaction` counts the client's transactions from 1."""
        self._add(lambda number: TransactionEnded(number, client, transaction, is_committed))

    def work(self, record: Any) -> None:
        """Record that the work on `record` is done.

        `record` has the attributes topic, partition and offset.
        """
        place = RecordPlace(record.topic, record.partition, record.offset)
        self._add(lambda number: Worked(number, place))

    def _add(self, make: Callable[[int], Event], size: int = 1) -> None:
        with self._lock:
            self.size += size
            if self.size > EVENTS_MAX:
                raise ConfigError(f"{EVENTS_MAX:,} events are kept: check the history, and begin another")
            self.events.append(make(next(self._numbers)))
