"""Write rows from Spark to topics exactly once: tasks write into transactions, the driver commits them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from penstock.errors import ConfigError
from penstock.spark.exactly_once.gate import gate_for
from penstock.spark.exactly_once.place import SinkPlace
from penstock.spark.runtime.releases import DataSourceStreamArrowWriter
from penstock.spark.runtime.telling import once_line, tell
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.options import WriteOptions
from penstock.spark.source.reader import settle
from penstock.spark.source.writer import SinkColumns, presume_written_before

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.exactly_once.attempt import AttemptResult
    from penstock.spark.exactly_once.gate import Gate

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"
"""The name of the local property of Spark's tasks with the id of a streaming query's run (the job group).

Each start of a query has a new run id; the query's own id is in its checkpoint, and does not change.
"""


@dataclass
class Prepared(WriterCommitMessage):
    """The commit message of one task to the driver: the attempt's result, the sink and the query's run."""

    place: SinkPlace
    run_id: str | None
    result: AttemptResult


class ExactlyOnceStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of every micro-batch to topics exactly once."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        with plain_errors():
            presume_written_before(self._options)
            place, run_id, batch = (
                place_of(self._options, _local(QUERY_ID)),
                _local(RUN_ID),
                int(_local(BATCH_ID)),
            )
        return write_task(place, run_id, batch, self._columns, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        from penstock.spark.exactly_once.keeper import commit_batch

        written = _prepared(messages)
        if written:
            with plain_errors():
                presume_written_before(self._options)
                commit_batch(
                    written[0].place,
                    written[0].run_id or "",
                    batch_id,
                    [each.result for each in written],
                    fails_on_loss=self._options.fail_on_data_loss,
                )

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        from penstock.spark.exactly_once.keeper import abort_batch

        written = _prepared(messages)
        if written:
            with plain_errors():
                abort_batch(written[0].place, batch_id, [each.result for each in written])


class ExactlyOnceBatchWriter(DataSourceArrowWriter):
    """Writes the rows of one job, all or none.

    With `WriteOptions.job`, repeated runs write them exactly once."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._run_id = uuid.uuid4().hex
        name, self._batch = options.job or (self._run_id, 0)
        self._place = place_of(options, name)
        self._is_repeatable = options.job is not None
        self._fails_on_loss = options.fail_on_data_loss
        self._columns = columns
        # Where topics are a column, their names are not known before the rows are.
        self._gate = gate_for(self._place, options.topic) if options.topic is not None else None

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Prepared:
        # A name that was made for this job has been met by no other run.
        run_id = self._run_id if self._is_repeatable else None
        return write_task(self._place, run_id, self._batch, self._columns, iterator, self._gate)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        from penstock.spark.exactly_once.keeper import commit_job

        written = [each.result for each in _prepared(messages)]
        with plain_errors():
            held = commit_job(
                self._place,
                self._batch,
                written,
                is_repeatable=self._is_repeatable,
                fails_on_loss=self._fails_on_loss,
                gate=self._gate,
            )
        if written and all(each.transaction is None or each.transaction in held for each in written):
            tell(
                once_line(
                    sum(each.rows for each in written), {name for each in written for name in each.ranges}
                )
            )
        elif written:
            tell("wrote nothing: an earlier run of this job has written its rows")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        from penstock.spark.exactly_once.keeper import abort_batch

        with plain_errors():
            abort_batch(
                self._place,
                self._batch,
                [each.result for each in _prepared(messages)],
                self._gate,
                is_repeatable=self._is_repeatable,
            )


def place_of(options: WriteOptions, identity: str) -> SinkPlace:
    """Return the `SinkPlace` of a query or job; its name combines transactionalIdPrefix and `identity`."""
    return SinkPlace(
        f"{options.transactional_id_prefix}-{identity}",
        options.bootstrap_servers,
        options.client,
        options.state_topic,
    )


def write_task(
    place: SinkPlace,
    run_id: str | None,
    batch: int,
    columns: SinkColumns,
    batches: Iterator[pa.RecordBatch],
    gate: Gate | None = None,
) -> Prepared:
    """Write the rows of one task into a transaction, and leave it open. Raises PenstockError."""
    from pyspark import TaskContext

    from penstock.spark.exactly_once.attempt import TaskAttempt, write_attempt

    context = TaskContext.get()
    assert context is not None  # Spark calls writers in tasks only
    attempt = TaskAttempt(run_id, batch, context.partitionId(), context.attemptNumber())
    try:
        with plain_errors():
            pieces = (piece for rows in batches for piece in columns.by_topic(rows))
            return Prepared(place, run_id, write_attempt(place, attempt, pieces, gate))
    finally:
        settle()


def _local(name: str) -> str:
    """Return a local property of the current Spark task.

    Raises:
        ConfigError: this Spark does not set the property.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    value = context.getLocalProperty(name) if context is not None else None
    if value is None:
        raise ConfigError(f"tasks of this Spark have no local property {name}, which exactlyOnce needs")
    return value


def _prepared(messages: Sequence[WriterCommitMessage | None]) -> list[Prepared]:
    return [each for each in messages if isinstance(each, Prepared)]
