"""Copies many topics to tables with one process, or with the processes of a group; each has one consumer.

Workers of a group write into the same tables under the same writer names. A commit changes the stored offsets
of only those partitions that its worker has read. The tables decide which commit is valid; the group only
prevents workers from reading the same records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.lake.contract import LakeTable, OtherWriterError, Written
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shared_reading import SharedReader
from penstock.model import TopicPartition

POLL_S = 0.5
"""The longest time in seconds that one poll for records takes."""

PENDING_BYTES_MAX = 1 << 30
"""The size in bytes of uncommitted rows, over all tables, at which the table with the most of them is
committed at once.
"""


class TopicTables(NamedTuple):
    """The tables of one topic: the table of rows, and a function that opens its dead-letter table."""

    rows: LakeTable
    dead: Callable[[], LakeTable] | None


class Fleet:
    """Writes several topics to tables, each topic to a table of its own, with one consumer.

    Raises:
        ConfigError: a setting is wrong, or the positions in a table do not fit its topic.
        StorageError: a table cannot be read.
        KafkaError: a topic does not exist.
        NetworkError, RequestTimeoutError: no broker answers.
    """

    def __init__(
        self,
        settings: LandSettings,
        topics: Sequence[str],
        open_tables: Callable[[str], TopicTables],
        *,
        group: str | None = None,
    ) -> None:
        if not topics:
            raise ConfigError("no topic fits: there is nothing to land")
        self._settings = replace(settings, shares=group is not None)
        self._open_tables = open_tables
        self._landers: dict[str, Lander] = {}
        self._group = group
        self._reader = SharedReader(
            topics,
            settings.bootstrap_servers,
            settings.config,
            isolation=settings.isolation,
            start=settings.start,
            takes_losses=settings.takes_losses,
            group=group,
        )
        self._committed: Callable[[Lander], None] = lambda lander: None

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop rows that are not committed, leave the group, and close the connections."""
        for lander in self._landers.values():
            lander.close()
        self._reader.close()

    @property
    def landers(self) -> dict[str, Lander]:
        """A dict from topic to `Lander`, for the topics of which this process reads partitions."""
        return dict(self._landers)

    @property
    def written(self) -> Written:
        """The totals of all commits so far, over all tables."""
        total = Written()
        for lander in self._landers.values():
            total.add(lander.written)
        return total

    @property
    def records(self) -> int:
        """The number of records read so far."""
        return sum(lander.records for lander in self._landers.values())

    def run(
        self,
        *,
        follow: bool,
        stopped: Callable[[], bool] = lambda: False,
        committed: Callable[[Lander], None] = lambda lander: None,
    ) -> Written:
        """Copy records to the topics' ends, or with `follow` until `stopped` returns True; return totals.

        `committed` is called after each commit. In a group, partitions that another worker has taken over
        meanwhile are read again from the positions in its table.

        Raises:
            ConfigError: a topic was deleted and created anew, or `follow` is False in a group.
            OtherWriterError: without a group, another process has committed to a table under this name.
            StorageError: a store refuses.
            KafkaError: a broker refuses, or records were removed before they were read.
        """
        if self._group is not None and not follow:
            raise ConfigError("workers of a group follow their topics: which of them is the last at the end?")
        self._committed = committed
        self._reader.share(self._taken, self._left, self._lost)
        while not stopped():
            records = self._reader.poll(1000 * self._wait_s())
            if records is not None and records.num_rows:
                lander = self._landers[records.column("topic")[0].as_py()]
                self._guarded(lander, lambda lander=lander, records=records: lander.take(records))  # type: ignore[misc]
            self._commit_due()
            if records is None and not follow and all(view.is_at_end for view in self._reader.views.values()):
                break
        self._commit(self._landers.values())
        return self.written

    def _wait_s(self) -> float:
        dues = [lander.due for lander in self._landers.values() if lander.due is not None]
        return max(0.0, min(POLL_S, min(dues, default=float("inf")) - time.monotonic()))

    def _commit_due(self) -> None:
        now = time.monotonic()
        self._commit([each for each in self._landers.values() if each.is_due(now)])
        pending = {topic: each.table.pending_bytes for topic, each in self._landers.items()}
        while sum(pending.values()) >= PENDING_BYTES_MAX:
            topic = max(pending, key=lambda each: pending[each])
            del pending[topic]
            self._commit([self._landers[topic]])

    def _commit(self, landers: Iterable[Lander]) -> None:
        for lander in landers:
            self._guarded(lander, lambda lander=lander: lander.commit(self._committed))  # type: ignore[misc]

    def _guarded(self, lander: Lander, work: Callable[[], None]) -> None:
        """Call `work` for a lander; restart it if another worker of the group has committed first."""
        try:
            work()
        except OtherWriterError:
            if self._group is None:
                raise
            lander.restart()

    # -- the group

    def _taken(self, tps: Sequence[TopicPartition]) -> None:
        topics = sorted({tp.topic for tp in tps})
        for tp in tps:
            self._reader.views[tp.topic].owned.add(tp.partition)
        for topic in topics:
            lander = self._landers.get(topic)
            if lander is not None:
                self._commit([lander])
                lander.restart()
                continue
            tables = self._open_tables(topic)
            self._landers[topic] = Lander(
                replace(self._settings, topic=topic), tables.rows, tables.dead, self._reader.views[topic]
            )

    def _left(self, tps: Sequence[TopicPartition]) -> None:
        self._commit(
            self._landers[topic] for topic in sorted({tp.topic for tp in tps}) if topic in self._landers
        )
        self._lost(tps)

    def _lost(self, tps: Sequence[TopicPartition]) -> None:
        for tp in tps:
            self._reader.views[tp.topic].owned.discard(tp.partition)
        for topic in sorted({tp.topic for tp in tps}):
            if topic in self._landers:
                self._landers[topic].restart()
