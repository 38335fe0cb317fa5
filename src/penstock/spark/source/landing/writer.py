"""The Spark sink that lands files: tasks report their files, the driver commits them as one batch."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.landing.layout import TableLayout
from penstock.landing.manifest import LandedFile, Manifest
from penstock.landing.table import LandingTable, Register
from penstock.model import OffsetRange
from penstock.spark.option_values import count
from penstock.spark.runtime.releases import DataSourceStreamArrowWriter
from penstock.spark.runtime.telling import lake_line, landed_line, tell
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.landing.options import LandingOptions, landing_options, split_options
from penstock.spark.source.landing.rows import FILES_SCHEMA, NOT_LANDED, TaskEntries
from penstock.spark.source.reader import settle

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.contract import Written
    from penstock.spark.source.landing.lake_tables import LakeTarget

BESIDE = ("checkpointlocation", "queryname", "outputmode", "txnappid", "txnversion")
"""Options, in lower case, that the landing sink accepts although their names lack the prefix ``landing``."""


@dataclass
class Landed(WriterCommitMessage):
    """The commit message of one task to the driver: the files and offset ranges in the task's rows."""

    entries: TaskEntries


def sink_options(
    given: Mapping[str, str], schema: StructType
) -> tuple[LandingOptions, tuple[str, int] | None]:
    """Return (options of landing, job of a batch query that may be run again, or None) of a sink.

    A job is its `txnAppId` and `txnVersion`.

    Raises:
        ConfigError: an option is wrong, or the rows do not come from a landing source.
    """
    ours, others = split_options(given)
    options = landing_options(ours)
    for key in others:
        # What is set for the source as well does no harm: `land` gives both ends the same options.
        if key.lower() in ("topic", "exactlyonce"):
            raise ConfigError(f"{key} and landing contradict each other: rows go to a topic or into files")
    if schema.simpleString() != FILES_SCHEMA.simpleString():
        raise ConfigError(f"{NOT_LANDED}: these have the columns {', '.join(schema.fieldNames())}")
    lowered = {key.lower(): value for key, value in others.items()}
    job = {name: lowered[name.lower()] for name in ("txnAppId", "txnVersion") if name.lower() in lowered}
    version = count(job, "txnVersion", least=0)
    if ("txnAppId" in job) != (version is not None):
        raise ConfigError("txnAppId and txnVersion belong together: whose rows these are, and which batch")
    return options, None if version is None else (job["txnAppId"], version)


class LandingBatchWriter(DataSourceArrowWriter):
    """The sink of a batch query that lands files: commits the files that the tasks report."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options, job = sink_options(given, schema)
        if self._options.lake is not None and job is not None:
            raise ConfigError(
                "txnAppId and txnVersion are for directories: a table of the lake has the offsets of what it "
                "has, and a batch query lands what is behind them"
            )
        self._writer, self._batch = job or (uuid.uuid4().hex, 0)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        return pass_on(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with plain_errors():
            entries = joined(messages)
            if self._options.lake is not None:
                written = commit_in_lake(self._options.lake, self._writer, entries)
                tell(lake_line(self._options.path, written))
                return
            landed = commit(self._options, self._writer, self._batch, entries)
        tell(landed_line(self._options.path, landed))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.lake is not None:
            return  # a commit may be on its way to the store: what it does not name is an orphan
        with plain_errors():
            LandingTable(self._options.path).discard(joined(messages).files)


class LandingStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query that lands files: commits the files of every micro-batch."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options, job = sink_options(given, schema)
        if job is not None:
            raise ConfigError("a stream has its checkpoint: txnAppId and txnVersion are for batch queries")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Landed:
        return pass_on(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        with plain_errors():
            entries = joined(messages)
            if entries.layout is None:
                return
            if entries.writer is None:
                raise ConfigError(f"{NOT_LANDED}: these come from a source without a query")
            if self._options.lake is not None:
                commit_in_lake(self._options.lake, f"{entries.writer} {batch_id}", entries)
                return
            commit(self._options, entries.writer, batch_id, entries)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        if self._options.lake is not None:
            return
        with plain_errors():
            LandingTable(self._options.path).discard(joined(messages).files)


def pass_on(batches: Iterator[pa.RecordBatch]) -> Landed:
    """Return a task's message to the driver: the files and ranges in the task's rows. Raises ConfigError."""
    with plain_errors():
        entries = TaskEntries(None, None)
        for batch in batches:
            for text in batch.column(3).to_pylist():
                entries = entries.with_entry(text if text is not None else "null")
    settle()
    return Landed(entries)


def joined(messages: Sequence[WriterCommitMessage | None]) -> TaskEntries:
    """Combine the `TaskEntries` of all tasks of a job. Raises ConfigError if several queries wrote them."""
    found = [
        each.entries for each in messages if isinstance(each, Landed) and each.entries.layout is not None
    ]
    if not found:
        return TaskEntries(None, None)
    files: list[LandedFile] = []
    ranges: list[OffsetRange] = []
    topic_ids: dict[str, str] = {}
    handed: list[str] = []
    for each in found:
        if (each.writer, each.layout) != (found[0].writer, found[0].layout):
            raise ConfigError(f"{NOT_LANDED}: the rows come from more than one source")
        files += each.files
        ranges += each.ranges
        topic_ids |= each.topic_ids
        handed += each.handed
    return TaskEntries(
        found[0].writer, found[0].layout, tuple(files), tuple(ranges), topic_ids, tuple(handed)
    )


def commit_in_lake(target: LakeTarget, job: str, entries: TaskEntries) -> Written | None:
    """Commit the files of a job to a lake table; return None if the table already has the job's offsets.

    Raises:
        ConfigError: the table does not fit the offsets and topics that were read.
        OtherWriterError, StorageError: the errors of `penstock.lake.contract.LakeTable.commit`.
    """
    if entries.layout is None:
        return None
    from penstock.spark.source.landing import lake_tables

    return lake_tables.commit(target, job, entries.ranges, entries.topic_ids, entries.handed)


def commit(options: LandingOptions, writer: str, batch: int, entries: TaskEntries) -> Manifest | None:
    """Commit the files of a job as one batch of the table. Raises ConfigError and StorageError."""
    if entries.layout is None:
        return None
    table = LandingTable(options.path)
    register = register_of(options, entries.layout)
    return table.commit(
        writer, batch, entries.layout, entries.files, entries.ranges, register, entries.topic_ids
    )


def register_of(options: LandingOptions, layout: TableLayout) -> Register | None:
    """Return the object that adds files to a Delta or Iceberg table; None for plain files.

    Raises:
        MissingDependencyError: the library of the format is not installed.
    """
    root = Path(options.path)
    if options.format == "delta":
        from penstock.landing.delta import DeltaRegister

        return DeltaRegister(root, layout)
    if options.format == "iceberg":
        from penstock.landing.iceberg import IcebergRegister

        properties = {name: value.reveal() for name, value in options.catalog_properties.items()}
        return IcebergRegister(root, layout, options.table or "", options.catalog, properties)
    return None
