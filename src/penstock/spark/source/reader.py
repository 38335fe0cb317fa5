"""Read topics from Spark: plan on the driver, fetch and decode on the executors.

Planning requests offsets from the brokers and divides the work into ranges (`planning`, `brokers`). Executors
fetch ranges and yield Arrow batches of exactly the requested columns (`schema`). A repeated task reads the
same records again, as Spark requires.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from pyspark.sql.datasource import DataSourceReader, InputPartition

from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.common.operating_system import after_fork_in_child
from penstock.errors import KafkaError
from penstock.model import OffsetRange
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.brokers import (
    NOT_THERE,
    MetadataConnection,
    Patience,
    client_config,
    presume_login,
)
from penstock.spark.source.options import ReadOptions, read_options
from penstock.spark.source.planning import (
    DATA_LOSS_ADVICE,
    DataLossError,
    batch_ranges,
    narrowed_ranges,
    pack_ranges,
    resolve,
    select_partitions,
    split_ranges,
)
from penstock.spark.source.schema import BATCH_BYTES, EVENT_BATCH_BYTES, Projection

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from penstock.spark.source.brokers07 import Brokers07
    from penstock.spark.source.where.condition import Where
    from penstock.spark.value_columns import ValueColumns
    from penstock.spark.value_options import ValueOptions

PACKED_ROWS_MAX = 1_000
"""The most records in small ranges that share one task, unless minPartitions is set."""

FETCH_BYTES = 8 << 20
"""The default size of a fetch. A task reads one partition at a time, so that each fetch is a round trip and a
change of threads: with 8 MiB instead of 4, records of 1 KB take a worker a seventh less CPU, and smaller
ones no more than before.
"""

_clients: dict[tuple[object, ...], tuple[AsyncClient, ConsumerConfig]] = {}
after_fork_in_child(_clients.clear)


class RangePartition(InputPartition):
    """The input of one Spark task: an offset range of one Kafka partition, or several small ranges."""

    def __init__(
        self,
        spans: tuple[OffsetRange, ...],
        patience: Patience | None = None,
        topic_ids: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        super().__init__(spans)
        self.spans = spans
        self.patience = patience
        topics = {span.topic for span in spans}
        self.topic_ids = {topic: each for topic, each in topic_ids.items() if topic in topics}
        """A dict from topic to topic id for the topics in `spans`, without topics that have no id."""

    def __repr__(self) -> str:
        return printable(
            " ".join(f"{span.topic}-{span.partition}[{span.start}:{span.end}]" for span in self.spans)
        )


class TaskWork(Protocol):
    """The interface for the work of a query's tasks, which read the ranges that the reader has planned.

    Every method raises ConfigError if the options of the query are invalid.
    """

    @property
    def options(self) -> ReadOptions:
        """The checked options of the query."""

    @property
    def projection(self) -> Projection:
        """The conversion of fetched records to the columns of the query."""

    def check(self) -> None:
        """Check on the driver that the tasks will be able to run.

        Raises:
            MissingDependencyError: a task needs a library that is not installed.
        """

    def unread(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        """Return the parts of the ranges of a batch query that must still be read. Raises StorageError."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task as Arrow batches."""


class RowWork:
    """The `TaskWork` of a query that returns records as rows, rather than landing them as files."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self._given = dict(given)
        self._schema = schema
        self._streaming = streaming

    @cached_property
    def options(self) -> ReadOptions:
        return read_options(self._given, streaming=self._streaming)

    @cached_property
    def projection(self) -> Projection:
        return projection_of(self._schema, self.options)

    def check(self) -> None:
        """Do nothing: rows need no library or table."""

    def unread(self, ranges: list[OffsetRange]) -> list[OffsetRange]:
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self.options, self.projection, partition)


class BatchReader(DataSourceReader):
    """Plans and reads a batch query: the records between two bounds."""

    def __init__(self, work: TaskWork) -> None:
        _ = work.projection
        self._work = work

    def partitions(self) -> list[InputPartition]:
        with plain_errors():
            options = self._work.options
            self._work.check()
        with plain_errors(), closing(open_brokers(options)) as brokers:
            counts = brokers.partition_counts(options.selection)
            # Before the offsets: a topic that is created anew meanwhile is seen to be another one then.
            topic_ids = brokers.topic_ids(counts)
            selected = select_partitions(options.selection, counts)
            ranges = batch_ranges(
                resolve(options.start, selected, brokers.lookup),
                resolve(options.end, selected, brokers.lookup),
                brokers.lookup,
                fail_on_data_loss=options.fail_on_data_loss,
            )
            if options.where is not None:
                return _narrowed(options, options.where, ranges, brokers, topic_ids)
            return tasks(options, self._work.unread(ranges), topic_ids=topic_ids)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._work.read(partition)


def _narrowed(
    options: ReadOptions,
    where: Where,
    ranges: list[OffsetRange],
    brokers: MetadataConnection | Brokers07,
    topic_ids: Mapping[str, bytes],
) -> list[InputPartition]:
    """Return tasks for only those offset ranges in which `where` may be true for a record.

    If no range remains and a time in the condition is read in UTC, one task without records checks the
    session's time zone.
    """
    lookup = None if options.protocol == "0.7" else brokers.lookup
    found = tasks(options, narrowed_ranges(ranges, where.wanted, lookup), topic_ids=topic_ids)
    if not found and ranges and where.reads_utc:
        return [RangePartition(())]
    return found


def value_columns(
    options: ValueOptions | None, versions: Mapping[str, int] = MappingProxyType({})
) -> ValueColumns | None:
    """Return the `ValueColumns` for decoded keys and values, or None if both stay bytes.

    `versions` are the schema versions from which an existing DataFrame or table was made.

    Raises:
        ConfigError, DecodeError: the schema does not exist, or is invalid.
        RegistryError, NetworkError: the request to the registry fails.
    """
    if options is None:
        return None
    from penstock.spark.value_columns import ValueColumns

    return ValueColumns(options, versions)


def projection_of(schema: StructType, options: ReadOptions) -> Projection:
    """Return the conversion of fetched batches to the columns of a schema.

    Raises:
        ConfigError: the options do not provide one of the columns.
        PenstockError: the errors of `value_columns`.
    """
    if options.values is None:
        return Projection(schema, options.cloudevents, where=options.where)
    from penstock.spark.value_columns import versions_in

    return Projection(schema, None, value_columns(options.values, versions_in(schema)), options.where)


def open_brokers(options: ReadOptions) -> MetadataConnection | Brokers07:
    """Return a connection for planning, in the protocol of the options; its first request connects.

    Raises:
        ConfigError: an option of the client is invalid.
    """
    if options.protocol == "0.7":
        from penstock.spark.source.brokers07 import Brokers07

        return Brokers07(options.bootstrap_servers)
    return MetadataConnection(options.bootstrap_servers, options.client)


def read_range(
    options: ReadOptions, projection: Projection, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """Yield the Arrow batches of one task, in offset order.

    Raises:
        DataLossError: the log start moved past the range since it was planned.
        PenstockError: the brokers cannot be reached, the records are damaged, or another failure.
    """
    if not isinstance(partition, RangePartition):
        return  # Spark makes up an empty partition where there are none
    try:
        with plain_errors():
            if options.where is not None:
                options.where.check_zone(_session_zone())
            if not partition.spans:
                return
            for batch in fetch(options, projection.fetched, partition):
                yield from projection.batches(batch)
    finally:
        settle()


def fetch(
    options: ReadOptions, columns: Sequence[str], partition: RangePartition
) -> Iterator[pa.RecordBatch]:
    """Yield the records of one task, each range in offset order, as batches with `columns`.

    The connection outlives the task, because Spark reuses its Python workers: the next task, or the next
    micro-batch, finds it open and the metadata cached.

    Raises:
        DataLossError: records of a range are no longer in the log, and failOnDataLoss is on.
        PenstockError: the brokers cannot be reached, the records are damaged, or another failure.
    """
    if options.protocol == "0.7":
        from penstock.spark.source.brokers07 import fetch07

        yield from fetch07(options, columns, partition.spans)
        return
    from penstock.client.fetch.ranges import scan_ranges  # planning does without

    client, config = _client(options)
    patience = partition.patience
    if patience and patience.is_proven:
        presume_login(config)
    batches = scan_ranges(
        client,
        partition.spans,
        columns,
        isolation=config.isolation_level,
        batch_bytes=EVENT_BATCH_BYTES if options.cloudevents or options.values else BATCH_BYTES,
        fetch_bytes=config.fetch_max_bytes if "fetch.max.bytes" in options.client else FETCH_BYTES,
        fail_on_data_loss=options.fail_on_data_loss,
        check_crcs=config.check_crcs,
        unpack=config.unpack_limits,
        patience_s=patience.outage_s if patience else None,
        start_patience_s=patience.outage_s if patience and patience.is_proven else 0.0,
        topic_ids=partition.topic_ids,
    )
    try:
        for _, batch in batches:
            yield batch
    except KafkaError as error:
        if error.code in (ErrorCode.OFFSET_OUT_OF_RANGE, *NOT_THERE):
            raise DataLossError(f"{error}; {DATA_LOSS_ADVICE}") from None
        raise


def _client(options: ReadOptions) -> tuple[AsyncClient, ConsumerConfig]:
    key = (options.bootstrap_servers, *sorted(options.client.items()))
    found = _clients.get(key)
    if found is None:
        config = client_config(options.bootstrap_servers, options.client)
        found = _clients[key] = AsyncClient(config), config
    return found


def _session_zone() -> str | None:
    """Return the time zone of the Spark session of this task, or None if it is not set."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("spark.sql.session.timeZone")


_is_settled = False


def settle() -> None:
    """Exclude imported objects from garbage collection (`gc.freeze`), once per worker.

    Spark collects garbage after every task of a reused worker. With pyarrow and numpy loaded that costs
    tens of milliseconds of CPU each time, as much as a small micro-batch; frozen objects cost nothing.
    """
    global _is_settled
    if not _is_settled:
        _is_settled = True
        gc.collect()
        gc.freeze()


def tasks(
    options: ReadOptions,
    ranges: list[OffsetRange],
    patience: Patience | None = None,
    topic_ids: Mapping[str, bytes] = MappingProxyType({}),
) -> list[InputPartition]:
    """Return the inputs of tasks: `ranges`, divided according to the options, and combined if small."""
    pieces = split_ranges(
        ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition
    )
    limit = min(PACKED_ROWS_MAX, options.max_records_per_partition or PACKED_ROWS_MAX)
    rows_max = limit if options.min_partitions is None else 0
    return [RangePartition(task, patience, topic_ids) for task in pack_ranges(pieces, rows_max)]
