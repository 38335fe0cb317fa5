"""Combines a query's checkpoint, its last report and the brokers' offsets, as far as they are available."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.spark.monitoring.checkpoint import is_checkpoint, standing_of, topic_offsets
from penstock.spark.monitoring.names import FORMAT, shortened
from penstock.spark.monitoring.reports import Report, find_report, reports_directory
from penstock.spark.source.planning import Offsets, StreamOffsets, backlog_rows, recreated_topics

Ends = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int | None]]
"""A function that requests the end offsets of some partitions from brokers, and returns the offsets."""

TopicIds = Callable[[Iterable[str]], Mapping[str, bytes]]
"""A function that requests topic ids from brokers, and returns a dict from topic to id, without topics that
have no id."""

STALE_AFTER_S = 10.0
"""Seconds by which a report may be older than the last micro-batch. An older report is of an earlier run, and
ignored."""


@dataclass(frozen=True, slots=True)
class QueryView:
    """The state of a query; unknown fields are None or empty.

    `lag` is the number of offsets not yet read, `done_at` the completion time of the last micro-batch
    (seconds since 1970), `error` the reason why the query ended. `recreated` has a sentence for each topic
    that was deleted and created again since that micro-batch: all records of the new topic count as not yet
    read.
    """

    name: str
    is_active: bool = True
    batch_id: int | None = None
    planned_id: int | None = None
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    rows_per_second: float | None = None
    lag: int | None = None
    done_at: float | None = None
    error: str | None = None
    recreated: tuple[str, ...] = ()


class QueryWatch:
    """Returns the current state of one query on each call of `look`.

    `query` is the directory of its checkpoint, or its name or id in the directory `reports`. The functions
    `ends` and `topic_ids` send requests to the brokers.
    """

    def __init__(
        self,
        query: str,
        reports: Path | None = None,
        ends: Ends | None = None,
        topic_ids: TopicIds | None = None,
    ) -> None:
        self._query = query
        self._reports = reports_directory() if reports is None else reports
        self._ends = ends
        self._topic_ids = topic_ids
        self._checkpoint = Path(query) if is_checkpoint(Path(query)) else None
        self._before: tuple[int, int, float] | None = None
        """The number, position and time of the newest micro-batch at an earlier call of `look`, to compute
        the rate."""
        self._rate: float | None = None

    def look(self) -> QueryView:
        """Return the current state of the query.

        Raises:
            ConfigError: there is neither a checkpoint nor a report of the query.
            StorageError: a file of its checkpoint or its report cannot be read.
            PenstockError: the brokers do not answer.
        """
        if self._checkpoint is not None:
            return self._by_checkpoint(self._checkpoint)
        report = find_report(self._reports, self._query)
        if report is None:
            raise ConfigError(
                f"{self._query!r} is no checkpoint of a query, and no query with this name or id has a "
                f"report in {self._reports}: give its checkpointLocation, or add the listener "
                "penstock.spark.QueryReports to its session"
            )
        batch_id = report.progress.batch_id if report.progress else None
        return self._view(report, batch_id, None, topic_offsets(report.offsets), None)

    def _by_checkpoint(self, checkpoint: Path) -> QueryView:
        standing = standing_of(checkpoint)
        report = find_report(self._reports, standing.query_id)
        if report is not None and (standing.done_at or 0.0) > report.written_at + STALE_AFTER_S:
            report = None
        if standing.batch_id is not None and standing.done_at is not None:
            batch = standing.batch_id, standing.position, standing.done_at
            before = self._before
            if before is not None and before[0] < batch[0] and batch[2] > before[2]:
                self._rate = max(0, batch[1] - before[1]) / (batch[2] - before[2])
            if before is None or before[0] != batch[0]:
                self._before = batch
        at = StreamOffsets(dict(standing.offsets), standing.topic_ids)
        return self._view(report, standing.batch_id, standing.planned_id, at, standing.done_at)

    def _view(
        self,
        report: Report | None,
        batch_id: int | None,
        planned_id: int | None,
        at: StreamOffsets,
        done_at: float | None,
    ) -> QueryView:
        offsets = at.offsets
        recreated: dict[str, str] = {}
        progress = report.progress if report else None
        ends: Offsets = {}
        lag = progress.lag if progress else None
        if self._ends is not None and offsets:
            found = self._ends(offsets)
            ends = {tp: end for tp, end in found.items() if end is not None}
            if self._topic_ids is not None:
                recreated = recreated_topics(
                    at.topic_ids, self._topic_ids(sorted({tp.topic for tp in offsets}))
                )
            offsets = {tp: 0 if tp.topic in recreated else offset for tp, offset in offsets.items()}
            lag = backlog_rows(offsets, ends)
        topics = shortened(sorted({tp.topic for tp in offsets}))
        name = f"{FORMAT}[{topics}]" if topics else self._query
        return QueryView(
            name=(report.name if report and report.name else name),
            is_active=report.is_active if report else True,
            batch_id=batch_id,
            planned_id=planned_id,
            offsets=offsets,
            ends=ends,
            rows_per_second=progress.rows_per_second if progress else self._rate,
            lag=lag,
            done_at=done_at,
            error=report.error if report else None,
            recreated=tuple(recreated.values()),
        )
