"""Reading topics from Spark: planning on the driver, fetching and decoding on the executors.

Planning asks the brokers for offsets and cuts the work into ranges (`planning`, `brokers`). Executors
fetch ranges and yield Arrow batches of exactly the columns asked for (`schema`); a range reads the same
records however often a task is repeated, which is what Spark's guarantees rest on.
"""

# ruff: noqa: N802 - the names of methods are Spark's

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.model import EARLIEST, LATEST, OffsetRange
from penstock.printable import printable
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.brokers import Brokers
from penstock.spark.source.options import RateLimits, ReadOptions, read_options
from penstock.spark.source.planning import (
    Offsets,
    OffsetsJson,
    backlog_rows,
    batch_ranges,
    discontinuities,
    limit_rows,
    offsets_from_json,
    offsets_to_json,
    pack_ranges,
    refuse_losses,
    resolve,
    select_partitions,
    split_ranges,
    stream_ranges,
)
from penstock.spark.source.schema import Projection

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.source.brokers07 import Brokers07

UNLIMITED_ROWS = 2**62
"""An upper limit that is never reached, for queries that only have a lower one."""


PACKED_ROWS_MAX = 1_000
"""Ranges this small share a task, unless the user says how many tasks there shall be."""


class RangePartition(InputPartition):
    """The work of one task: a range of one partition, or several small ones."""

    def __init__(self, spans: tuple[OffsetRange, ...]) -> None:
        super().__init__(spans)
        self.spans = spans

    def __repr__(self) -> str:
        return printable(
            " ".join(f"{span.topic}-{span.partition}[{span.start}:{span.end}]" for span in self.spans)
        )


class BatchReader(DataSourceReader):
    """Reads what lies between two bounds, once."""

    def __init__(self, options: ReadOptions, projection: Projection) -> None:
        self._options = options
        self._projection = projection

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with plain_errors(), closing(open_brokers(options)) as brokers:
            selected = select_partitions(options.selection, brokers.partition_counts(options.selection))
            ranges = batch_ranges(
                resolve(options.start, selected, brokers.lookup),
                resolve(options.end, selected, brokers.lookup),
                brokers.lookup,
                fail_on_data_loss=options.fail_on_data_loss,
            )
            return _tasks(options, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._projection, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic in micro-batches. One object lives on the driver as long as its query."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        self._schema = schema
        self._pacing = Pacing()
        self._brokers: Brokers | Brokers07 | None = None
        self._initial: OffsetsJson | None = None
        self._latest: Offsets | None = None
        self._target: Offsets | None = None
        """Where a query with trigger AvailableNow ends."""

    def __getstate__(self) -> dict[str, Any]:
        # Executors get a copy of this object for `read` alone.
        return {**self.__dict__, "_brokers": None}

    @cached_property
    def _options(self) -> ReadOptions:
        return read_options(self._given, streaming=True)

    @cached_property
    def _projection(self) -> Projection:
        return Projection(self._schema, self._options.cloudevents)

    def initialOffset(self) -> OffsetsJson:
        """Where the query starts that has no checkpoint yet. Asked more than once: the answer stays."""
        with plain_errors():
            if self._initial is None:
                brokers, selection = self._connected(), self._options.selection
                selected = select_partitions(selection, brokers.partition_counts(selection))
                self._initial = offsets_to_json(resolve(self._options.start, selected, brokers.lookup))
            return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        with plain_errors():
            limits = self._options.limits
            # Asked for first of all, also by a query whose columns are wrong.
            _ = self._projection
        if limits.max_rows is None and limits.min_rows is None:
            return ReadAllAvailable()
        return ReadMaxRows(limits.max_rows or UNLIMITED_ROWS)

    def prepareForTriggerAvailableNow(self) -> None:
        with plain_errors():
            self._target = self._latest_now()

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:
        """Where the next micro-batch ends; `start` itself where there is nothing to do now."""
        with plain_errors():
            begin = offsets_from_json(start)
            latest = self._target if self._target is not None else self._latest_now()
            self._latest = latest
            losses = discontinuities(begin, latest)
            refuse_losses(losses, fail_on_data_loss=self._options.fail_on_data_loss)
            if isinstance(limit, ReadAllAvailable):
                return offsets_to_json(latest)
            new = dict.fromkeys(set(latest) - set(begin), EARLIEST)
            if new:
                begin.update(_known(self._connected().lookup(new)))
            if self._target is None and self._pacing.waits_for_more(
                self._options.limits, backlog_rows(begin, latest), time.monotonic()
            ):
                return start
            if isinstance(limit, ReadMaxRows):
                return offsets_to_json(limit_rows(begin, latest, limit.max_rows))
            return offsets_to_json(latest)

    def reportLatestOffset(self) -> OffsetsJson:
        """For the progress report: what the topics held when the last micro-batch was planned."""
        if self._latest is None:
            # The first batch after a restart comes from the checkpoint: nothing has been planned yet.
            with plain_errors():
                self._latest = self._latest_now()
        return offsets_to_json(self._latest)

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> list[InputPartition]:
        with plain_errors():
            until = offsets_from_json(end)
            brokers = self._connected()
            counts = brokers.partition_counts(self._options.selection)
            existing = [tp for tp in until if tp.partition < counts.get(tp.topic, 0)]
            earliest = brokers.lookup(dict.fromkeys(existing, EARLIEST))
            ranges = stream_ranges(
                offsets_from_json(start),
                until,
                _known(earliest),
                fail_on_data_loss=self._options.fail_on_data_loss,
            )
            return _tasks(self._options, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            options, projection = self._options, self._projection
        return read_range(options, projection, partition)

    def commit(self, end: OffsetsJson) -> None:
        """Nothing to do: the checkpoint of the query holds the offsets, and the brokers keep the records."""

    def stop(self) -> None:
        if self._brokers is not None:
            self._brokers.close()
            self._brokers = None

    def _connected(self) -> Brokers | Brokers07:
        if self._brokers is None:
            self._brokers = open_brokers(self._options)
        return self._brokers

    def _latest_now(self) -> Offsets:
        """The end of every partition that is selected and exists; a missing topic shows in the offsets."""
        brokers, selection = self._connected(), self._options.selection
        counts = brokers.partition_counts(selection)
        existing = select_partitions(selection.among(counts), counts)
        return _known(brokers.lookup(dict.fromkeys(existing, LATEST)))


class Pacing:
    """Holds micro-batches back until they are worth it: minOffsetsPerTrigger and maxTriggerDelay.

    Spark hands only one limit to a Python source, so the second one is kept here.
    """

    def __init__(self) -> None:
        self._last_batch_at: float | None = None

    def waits_for_more(self, limits: RateLimits, backlog: int, now: float) -> bool:
        """Whether to wait, at the monotonic time `now` in seconds. The first batch never waits."""
        if limits.min_rows is None:
            return False
        delay = limits.max_trigger_delay_ms / 1000
        is_due = self._last_batch_at is None or now - self._last_batch_at >= delay
        if not is_due and backlog < limits.min_rows:
            return True
        self._last_batch_at = now
        return False


def open_brokers(options: ReadOptions) -> Brokers | Brokers07:
    """Whom planning asks.

    Raises:
        ConfigError: an option of the client makes no sense.
    """
    if options.protocol == "0.7":
        from penstock.spark.source.brokers07 import Brokers07

        return Brokers07(options.bootstrap_servers)
    return Brokers(options.bootstrap_servers, options.client)


def read_range(
    options: ReadOptions, projection: Projection, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The Arrow batches of one task, in offset order.

    Raises:
        DataLossError: the log start moved past the range since it was planned.
        PenstockError: the brokers cannot be reached, the records are damaged, or the like.
    """
    if not isinstance(partition, RangePartition):
        return  # Spark makes up an empty partition where there are none
    if options.protocol == "0.7":
        from penstock.spark.source.brokers07 import fetch07 as fetch
    else:
        from penstock.spark.source.fetching import fetch

    try:
        with plain_errors():
            for batch in fetch(options, projection.fetched, partition.spans):
                yield from projection.batches(batch)
    finally:
        settle()


_is_settled = False


def settle() -> None:
    """Once per worker: keep the imported libraries out of the garbage collector's sight.

    Spark collects garbage after every task of a reused worker. With numba and pyarrow loaded that costs
    some 60 ms of CPU each time, as much as a small micro-batch; frozen objects cost nothing.
    """
    global _is_settled
    if not _is_settled:
        _is_settled = True
        gc.collect()
        gc.freeze()


def _tasks(options: ReadOptions, ranges: list[OffsetRange]) -> list[InputPartition]:
    pieces = split_ranges(
        ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition
    )
    limit = min(PACKED_ROWS_MAX, options.max_records_per_partition or PACKED_ROWS_MAX)
    rows_max = limit if options.min_partitions is None else 0
    return [RangePartition(task) for task in pack_ranges(pieces, rows_max)]


def _known(answers: Mapping[Any, int | None]) -> Offsets:
    return {tp: offset for tp, offset in answers.items() if offset is not None}
