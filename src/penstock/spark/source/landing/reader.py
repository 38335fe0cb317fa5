"""The source for landing: a task writes its decoded records as Parquet files, and returns their names."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from penstock.common.extras import missing
from penstock.errors import ConfigError
from penstock.landing.layout import TableLayout
from penstock.landing.table import LandingTable
from penstock.spark.runtime.releases import arrow_schema_of
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.landing.options import (
    LandingOptions,
    landing_options,
    layout_of,
    record_schema,
    split_options,
)
from penstock.spark.source.landing.rows import FILES_SCHEMA, batch_of, file_row, handed_row, ranges_row
from penstock.spark.source.options import ReadOptions, read_options, schema_options
from penstock.spark.source.reader import RangePartition, fetch, settle, value_columns
from penstock.spark.source.schema import Projection

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.model import OffsetRange
    from penstock.spark.source.landing.lake_tables import LakeTarget
    from penstock.spark.value_columns import ValueColumns

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True)
class LandingPlan:
    """The options and columns that a task needs to land the records that it decodes."""

    options: ReadOptions
    landing: LandingOptions
    projection: Projection
    layout: TableLayout

    @property
    def topic(self) -> str:
        """The one topic that is landed into a lake table. Raises ConfigError if there are several."""
        found = self.options.selection.single_topic
        if found is None:
            raise ConfigError(
                f"{self.landing.path} takes one topic, not {self.options.selection}: its positions are of "
                "one. Land each topic by a query of its own"
            )
        return found

    def check(self) -> None:
        """Check on the driver that the rows fit the table, if it exists, and that its library is installed.

        A table of the lake is created if it is missing.

        Raises:
            ConfigError: the table has other columns or partitions.
            MissingDependencyError: the library is not installed.
            StorageError: the table cannot be written.
        """
        if self.landing.lake is not None:
            from penstock.spark.source.landing.lake_tables import prepare

            prepare(self.landing.lake, self.topic, arrow_schema_of(self.projection.schema))
            return
        library = {"delta": "deltalake", "iceberg": "pyiceberg"}.get(self.layout.format)
        if library is not None:
            try:
                importlib.import_module(library)
            except ImportError as error:
                raise missing(error, f"landing.format = {self.layout.format}") from None
        LandingTable(self.landing.path).require(self.layout)


def plan_of(given: Mapping[str, str], schema: StructType, *, streaming: bool) -> LandingPlan:
    """Return the `LandingPlan` for the options of a query. Raises ConfigError."""
    if schema.simpleString() != FILES_SCHEMA.simpleString():
        raise ConfigError(
            "a source with the option landing gives the names of files: name columns of records with the "
            "option landing.columns instead of schema(...)"
        )
    ours, others = split_options(given)
    landing = landing_options(ours)
    include_headers, cloudevents = schema_options(others)
    options = read_options(others, streaming=streaming)
    if options.where is not None:
        raise ConfigError("where and landing contradict each other: a table has all records of its offsets")
    values = _value_columns(options, landing)
    records = record_schema(landing, include_headers, cloudevents, values)
    layout = layout_of(landing, records, {} if values is None else values.versions)
    plan = LandingPlan(options, landing, Projection(records, cloudevents, values), layout)
    if landing.lake is not None:
        _ = plan.topic
    return plan


def _value_columns(options: ReadOptions, landing: LandingOptions) -> ValueColumns | None:
    """Return the columns of decoded keys and values, in the schema versions of an existing table."""
    if options.values is None:
        return None
    for each in options.values.fields:
        if each.new_version == "fail":
            raise ConfigError(
                f"{each.field}.newVersion = fail and landing contradict each other: a table keeps its columns"
            )
    there = None if landing.lake is not None else LandingTable(landing.path).layout()
    return value_columns(options.values, dict(there.versions) if there is not None else {})


class LandingWork:
    """The `TaskWork` of a landing query: its tasks write files, and return rows with the files' names."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self._given = dict(given)
        self._schema = schema
        self._streaming = streaming
        self._job = uuid.uuid4().hex
        self._is_checked = False

    @cached_property
    def _plan(self) -> LandingPlan:
        return plan_of(self._given, self._schema, streaming=self._streaming)

    @property
    def options(self) -> ReadOptions:
        return self._plan.options

    @property
    def projection(self) -> Projection:
        return self._plan.projection

    def check(self) -> None:
        if self._is_checked and self._plan.landing.lake is not None:
            return  # a planner of streams lives on: a catalog need not be asked before each micro-batch
        self._plan.check()
        self._is_checked = True

    def unread(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        lake = self._plan.landing.lake
        if lake is None:
            return ranges
        from penstock.spark.source.landing.lake_tables import unread

        return unread(lake, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return land(self._plan, partition, self._job)


def land(plan: LandingPlan, partition: InputPartition, job: str) -> Iterator[pa.RecordBatch]:
    """Write the Parquet files of one task; yield a row for each file, and one for the offset ranges read.

    Raises:
        StorageError: the disk is full, the directory is not writable, or another operation fails.
        PenstockError: the errors of `read_range`.
    """
    if not isinstance(partition, RangePartition):
        return  # Spark makes up an empty partition where there are none
    from penstock.landing.files import FileSettings, TaskFiles

    query, batch, task = _place()
    if plan.landing.lake is not None:
        with plain_errors():
            yield from _land_in_lake(plan, plan.landing.lake, partition, query)
        return
    table = LandingTable(plan.landing.path)
    settings = FileSettings(
        plan.landing.compression,
        plan.landing.file_bytes,
        plan.landing.partitions_max,
        all_statistics=plan.layout.format == "iceberg",
    )
    with plain_errors():
        files = TaskFiles(
            table.root,
            table.staging(query or job, batch),
            plan.layout,
            f"{batch:020d}-{task:05d}",
            settings,
        )
        try:
            for records in fetch(plan.options, plan.projection.fetched, partition):
                for rows in plan.projection.batches(records):
                    for file in files.add(rows):
                        yield batch_of([file_row(query, plan.layout, file)])
            rest = [file_row(query, plan.layout, file) for file in files.finish()]
            yield batch_of([*rest, ranges_row(query, plan.layout, partition.spans, partition.topic_ids)])
        finally:
            files.abandon()
            settle()


def _land_in_lake(
    plan: LandingPlan, lake: LakeTarget, partition: RangePartition, query: str | None
) -> Iterator[pa.RecordBatch]:
    """Write the files of one task into a lake table; yield a row per file, and one for its offset ranges."""
    table = lake.open(plan.topic)
    try:
        table.join(arrow_schema_of(plan.projection.schema))
        for records in fetch(plan.options, plan.projection.fetched, partition):
            for rows in plan.projection.batches(records):
                table.write(rows)
        made = [handed_row(query, plan.layout, each) for each in table.hand_over()]
        yield batch_of([*made, ranges_row(query, plan.layout, partition.spans, partition.topic_ids)])
    finally:
        table.abandon()
        settle()


def _place() -> tuple[str | None, int, int]:
    """Return (query id, micro-batch id, partition) of the task; (None, 0, partition) in a batch query."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return None, 0, 0
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        return None, 0, context.partitionId()
    return query, int(batch), context.partitionId()
