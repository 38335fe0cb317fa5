"""The reader of a stream, from which Spark requests the start and end of micro-batches on the driver.

Each query has one `StreamReader`, which plans, in a separate process on the driver's machine. Executors get
copies of it that only read.
"""

# ruff: noqa: N802 - the names of methods are Spark's

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.model import EARLIEST, LATEST, TopicPartition
from penstock.spark.runtime.releases import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.brokers import MetadataConnection, Outage, Patience
from penstock.spark.source.options import RateLimits, ReadOptions
from penstock.spark.source.planning import (
    BEGINS_HERE,
    Offsets,
    OffsetsJson,
    StreamOffsets,
    backlog_rows,
    discontinuities,
    known_offsets,
    limit_rows,
    recreated_topics,
    refuse_losses,
    resolve,
    select_partitions,
    stream_ranges,
)
from penstock.spark.source.reader import TaskWork, open_brokers, tasks

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.source.brokers import GroupCommits
    from penstock.spark.source.brokers07 import Brokers07

T = TypeVar("T")

log = logger_named("penstock.spark")

LOST_START = (
    "the first micro-batch of this query was planned and not finished, and where it began is not in the log: "
    "let the source that planned it finish it, or say startingOffsets with the offsets that "
    "'penstock spark checkpoint' shows for the checkpoint of the query"
)

UNLIMITED_ROWS = 2**62
"""The row limit of queries without an upper limit: so large that it is never reached."""

RETRY_AFTER_S = 1.0
"""The pause in seconds between two attempts during an outage; the duration of an attempt is added."""


class StreamPlanner(DataSourceStreamReader):
    """The base of stream readers for all Spark releases: everything except the limits of micro-batches."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._pacing = Pacing()
        self._brokers: MetadataConnection | Brokers07 | None = None
        self._outage: Outage | None = None
        self._commits: GroupCommits | None = None
        self._initial: OffsetsJson | None = None
        self._latest: StreamOffsets | None = None
        self._has_planned = False
        """True if this object has planned a micro-batch; micro-batches planned before a restart do not count.
        """
        self._done: Offsets | None = None
        """The offsets up to which micro-batches are complete; None while they are not certain."""
        self._told: set[str] = set()
        """Messages about recreated topics that were already logged, so that each is logged once."""
        self._is_proven = False
        """True if a micro-batch has been completed, which shows that executors can reach the brokers."""

    def __getstate__(self) -> dict[str, Any]:
        # Executors get a copy of this object for `read` alone. It has the schemas, so that all tasks of a
        # query read into the same columns; what fails here is said where a task or the planner needs them.
        with suppress(PenstockError):
            if self._options.values is not None:
                _ = self._work.projection
        return {**self.__dict__, "_brokers": None, "_outage": None, "_commits": None}

    @property
    def _options(self) -> ReadOptions:
        return self._work.options

    def initialOffset(self) -> OffsetsJson:
        """Return the offsets where a query without a checkpoint starts. Every call returns equal offsets."""
        with plain_errors():
            if self._initial is None:
                brokers, selection = self._connected(), self._options.selection
                counts = brokers.partition_counts(selection)
                # Before the offsets: a topic that is created anew meanwhile is seen to be another one then.
                topic_ids = brokers.topic_ids(counts)
                offsets = resolve(
                    self._options.start, select_partitions(selection, counts), self._lookup_start
                )
                self._initial = StreamOffsets(offsets, topic_ids).to_json()
                self._reached()
            return self._initial

    def _lookup_start(self, questions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int | None]:
        answers: dict[TopicPartition, int | None] = dict(self._connected().lookup(questions))
        # Some releases and triggers ask where a micro-batch ends before they ask where it starts: not later.
        for tp, question in questions.items():
            if question == LATEST and self._first_end is not None and tp in self._first_end.offsets:
                answers[tp] = self._first_end.offsets[tp]
        return answers

    @property
    def _first_end(self) -> StreamOffsets | None:
        """The end offsets of the first micro-batch, if Spark requests these before the start; else None."""
        return self._latest

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> list[InputPartition]:
        with plain_errors():
            self._work.check()
            if BEGINS_HERE in end:
                return []
            if start == self._initial and self._options.start.moves and not self._has_planned:
                refuse_losses([LOST_START], fail_on_data_loss=self._options.fail_on_data_loss)
            begin, until = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
            return self._patiently(lambda: self._partitions(begin, until))

    def _partitions(self, start: StreamOffsets, end: StreamOffsets) -> list[InputPartition]:
        if start == end:
            return []
        options, brokers = self._options, self._connected()
        counts = brokers.partition_counts(options.selection)
        # What was planned of a topic that is another one by now is nowhere to be read.
        gone = self._recreated(end.topic_ids, brokers.topic_ids(counts))
        start = start.without([*gone, *self._recreated(start.topic_ids, end.topic_ids)])
        end = end.without(gone)
        existing = [tp for tp in end.offsets if tp.partition < counts.get(tp.topic, 0)]
        earliest = brokers.lookup(dict.fromkeys(existing, EARLIEST))
        ranges = stream_ranges(
            start.offsets, end.offsets, known_offsets(earliest), fail_on_data_loss=options.fail_on_data_loss
        )
        patience = Patience(options.max_broker_outage_ms / 1000, self._is_proven)
        return tasks(options, ranges, patience, end.topic_ids)

    def _recreated(self, earlier: Mapping[str, bytes], later: Mapping[str, bytes]) -> Collection[str]:
        """Return the topics that were deleted and created again, so that unread records are lost.

        Raises:
            DataLossError: there are such topics, and failOnDataLoss is on. If it is off, each one is logged
                once.
        """
        found = recreated_topics(earlier, later)
        refuse_losses(list(found.values()), fail_on_data_loss=self._options.fail_on_data_loss)
        for said in found.values():
            if said not in self._told:
                self._told.add(said)
                log.warning("%s; the new one is read from its beginning", said)
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            return self._work.read(partition)

    def commit(self, end: OffsetsJson) -> None:
        """Record that Spark has completed a micro-batch; commit its end offsets if a group is configured."""
        with plain_errors():
            self._is_through(StreamOffsets.from_json(end).offsets)

    def stop(self) -> None:
        if self._brokers is not None:
            self._brokers.close()
            self._brokers = None

    def _is_through(self, offsets: Offsets, *, is_last: bool = False) -> None:
        """Store that all records before `offsets` are processed; commit these if a group is configured."""
        if offsets == self._done:
            return
        if self._done is not None and not self._is_proven:
            self._is_proven = True
            _prepare_for_more()
        self._done = offsets
        group_id, brokers = self._options.commit_group, self._connected()
        if group_id is not None and isinstance(brokers, MetadataConnection):
            if self._commits is None:
                self._commits = brokers.group_commits(group_id)
            self._commits.submit(offsets, wait=is_last)

    def _continued(self, begin: StreamOffsets, latest: StreamOffsets) -> Offsets:
        """Return the offsets in `begin` from which reading up to `latest` continues; skip recreated topics.

        Raises:
            DataLossError: a topic was deleted, created anew, or its offsets decreased, and failOnDataLoss is
                on.
        """
        begin = begin.without(self._recreated(begin.topic_ids, latest.topic_ids))
        refuse_losses(
            discontinuities(begin.offsets, latest.offsets), fail_on_data_loss=self._options.fail_on_data_loss
        )
        return begin.offsets

    def _end_of_batch(
        self, begin: StreamOffsets, latest: StreamOffsets, rows_max: int | None
    ) -> StreamOffsets | None:
        """Return the end offsets of the micro-batch that begins at `begin`, or None to wait for records."""
        known = self._continued(begin, latest)
        new = dict.fromkeys(set(latest.offsets) - set(known), EARLIEST)
        if new:
            known = {**known, **known_offsets(self._connected().lookup(new))}
        backlog = backlog_rows(known, latest.offsets)
        if self._pacing.waits_for_more(self._options.limits, backlog, time.monotonic()):
            return None
        if rows_max is None:
            return latest
        return StreamOffsets(limit_rows(known, latest.offsets, rows_max), latest.topic_ids)

    def _connected(self) -> MetadataConnection | Brokers07:
        if self._brokers is None:
            self._brokers = open_brokers(self._options)
        return self._brokers

    def _latest_now(self) -> StreamOffsets:
        """Return the end offset of every selected partition, without topics that do not exist."""
        brokers, selection = self._connected(), self._options.selection
        counts = brokers.partition_counts(selection)
        topic_ids = brokers.topic_ids(counts)  # before the offsets, as in `initialOffset`
        existing = select_partitions(selection.among(counts), counts)
        latest = known_offsets(brokers.lookup(dict.fromkeys(existing, LATEST)))
        self._reached()
        return StreamOffsets(latest, topic_ids)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Call the function `ask`, which sends a request, until brokers answer; return the result.

        The first failure is raised if brokers have never answered before.
        """
        while True:
            try:
                answer = ask()
            except PenstockError as error:
                if not self._endures(error):
                    raise
                time.sleep(RETRY_AFTER_S)
            else:
                self._reached()
                return answer

    def _endures(self, error: PenstockError) -> bool:
        return self._outage is not None and self._outage.is_endured(error, time.monotonic())

    def _reached(self) -> None:
        if self._outage is None:
            options = self._options
            self._outage = Outage(options.bootstrap_servers, options.max_broker_outage_ms / 1000)
        self._outage.is_over(time.monotonic())


def _prepare_for_more() -> None:
    """Start a fork server, so that the next streams of this session start sooner."""
    from penstock.spark.runtime.fork_server import start_server

    start_server()


class StreamReader(StreamPlanner, SupportsTriggerAvailableNow):
    """Reads topics in micro-batches. One object lives on the driver as long as its query."""

    _target: StreamOffsets | None = None
    """The end offsets of a query with trigger AvailableNow; None for other triggers."""

    def getDefaultReadLimit(self) -> ReadLimit:
        with plain_errors():
            limits = self._options.limits
            # Asked for first of all, also by a query whose columns are wrong.
            _ = self._work.projection
        if limits.max_rows is None and limits.min_rows is None:
            return ReadAllAvailable()
        return ReadMaxRows(limits.max_rows or UNLIMITED_ROWS)

    def prepareForTriggerAvailableNow(self) -> None:
        with plain_errors():
            self._target = self._latest_now()
            self._pacing = Pacing(is_on=False)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        """Return the end offsets of the next micro-batch; return `start` if there is nothing to read now."""
        with plain_errors():
            begin = StreamOffsets.from_json(start)
            is_first = start == self._initial and not self._has_planned
            self._has_planned = True
            if is_first and self._options.start.moves:
                # The log keeps ends alone. After an empty micro-batch it has where the query began.
                return {**start, BEGINS_HERE: {}}
            self._is_through(begin.offsets, is_last=self._target is not None)
            try:
                latest = (self._target if self._target is not None else self._latest_now()).knowing(begin)
                self._latest = latest
                if isinstance(limit, ReadAllAvailable):
                    self._continued(begin, latest)
                    return start if latest == begin else latest.to_json()
                end = self._end_of_batch(
                    begin, latest, limit.max_rows if isinstance(limit, ReadMaxRows) else None
                )
            except PenstockError as error:
                # A query that ends when it has read what is there has to say that it could not.
                if self._target is not None or not self._endures(error):
                    raise
                time.sleep(RETRY_AFTER_S)
                return start
            return start if end is None or end == begin else end.to_json()

    @property
    def _first_end(self) -> StreamOffsets | None:
        return self._target

    def reportLatestOffset(self) -> OffsetsJson:
        """Return the topics' end offsets when the last micro-batch was planned, for the progress report."""
        if self._latest is None:
            # The first batch after a restart comes from the checkpoint: nothing has been planned yet.
            with plain_errors():
                self._latest = self._patiently(self._latest_now)
        return self._latest.to_json()


class UnlimitedStreamReader(StreamPlanner):
    """Reads topics under Spark 4.0 and 4.1, which pass a Python source neither a start nor a limit.

    The reader takes its position from the ranges that Spark makes it plan; after a restart Spark first plans
    an empty range. Without a position, a micro-batch takes all records that the topics have: that is the
    first micro-batch of a new query, and the only one of a query with trigger AvailableNow.
    """

    _position: StreamOffsets | None = None

    def initialOffset(self) -> OffsetsJson:
        with plain_errors():
            _ = self._work.projection
        return super().initialOffset()

    def latestOffset(self) -> OffsetsJson:  # type: ignore[override]
        """Return the offsets at which the next micro-batch ends."""
        with plain_errors():
            _ = self._work.projection
            position = self._position
            self._has_planned = True
            if position is None:
                self._latest = self._latest_now()
                begins: OffsetsJson = {BEGINS_HERE: {}} if self._options.start.everywhere == LATEST else {}
                return {**self._latest.to_json(), **begins}
            self._is_through(position.offsets)
            try:
                self._latest = self._latest_now().knowing(position)
                end = self._end_of_batch(position, self._latest, self._options.limits.max_rows)
            except PenstockError as error:
                if not self._endures(error):
                    raise
                time.sleep(RETRY_AFTER_S)
                end = None
            return (position if end is None else end).to_json()

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> list[InputPartition]:
        found = super().partitions(start, end)
        self._position = StreamOffsets.from_json(end)
        return found


class Pacing:
    """Delays micro-batches until they are large enough, for minOffsetsPerTrigger and maxTriggerDelay.

    Spark passes a Python source only one limit, so this class applies these options.
    """

    def __init__(self, *, is_on: bool = True) -> None:
        self._is_on = is_on
        self._last_batch_at: float | None = None

    def waits_for_more(self, limits: RateLimits, backlog: int, now: float) -> bool:
        """Return True to wait for more records, at the monotonic time `now`; the first batch never waits."""
        if limits.min_rows is None or not self._is_on:
            return False
        delay = limits.max_trigger_delay_ms / 1000
        is_due = self._last_batch_at is None or now - self._last_batch_at >= delay
        if not is_due and backlog < limits.min_rows:
            return True
        self._last_batch_at = now
        return False
