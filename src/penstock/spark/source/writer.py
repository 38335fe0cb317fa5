"""Write rows from Spark to topics at least once, with one producer per task.

As with Spark's Kafka sink, a task that is repeated writes its records again. A task that is not repeated
writes each record once. `exactly_once_writer` writes exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.client.config import ProducerConfig
from penstock.errors import ConfigError, EncodeError
from penstock.spark.runtime.releases import DataSourceStreamArrowWriter
from penstock.spark.runtime.telling import rows_line, tell
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.brokers import presume_login
from penstock.spark.source.options import WriteOptions
from penstock.spark.source.reader import settle
from penstock.spark.source.schema import HEADERS_TYPE

if TYPE_CHECKING:
    import pyarrow as pa

SINK_COLUMNS: Mapping[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
    "headers": (HEADERS_TYPE,),
}
"""The columns that the sink writes, and their types. Other columns are left out, as in Spark's Kafka sink."""


class SinkColumns:
    """Extracts the records from rows: key, value, headers, partition and topic. Checks columns in advance."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        self.topic = options.topic
        self.indices: dict[str, int] = {}
        self._written = {each.field: each for each in options.values}
        for index, field in enumerate(schema.fields):
            name = field.name.lower()
            kinds = SINK_COLUMNS.get(name)
            if kinds is None:
                continue
            wanted = [kind.simpleString() for kind in kinds]
            if name in self._written:
                self._check_type(name, field)
            elif field.dataType.simpleString() not in wanted:
                raise ConfigError(
                    f"column {name!r} is {field.dataType.simpleString()}; "
                    f"the sink takes {' or '.join(wanted)}"
                    + (f", or other types with {name}.format" if name in ("key", "value") else "")
                )
            self.indices[name] = index
        if "value" not in self.indices:
            raise ConfigError(f"no column 'value' among {', '.join(schema.fieldNames()) or 'no columns'}")
        if self.topic is None and "topic" not in self.indices:
            raise ConfigError("say where to write: the option 'topic' or a column 'topic'")
        for name in self._written:
            if name not in self.indices:
                raise ConfigError(f"{name}.format is given, and the rows have no column {name!r}")

    def _check_type(self, name: str, field: StructField) -> None:
        from penstock.spark.runtime.releases import arrow_schema_of
        from penstock.spark.value_encoding import check_type

        check_type(self._written[name], arrow_schema_of(StructType([field])).field(0).type)

    def by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (topic, records) of a batch; the records of each topic stay in order.

        Raises:
            EncodeError: a row has no topic, or does not fit its schema.
            RegistryError, NetworkError: the registry refuses the schema, or does not answer.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = {
            n: batch.column(i) if n in self._written else _as_records(n, batch.column(i))
            for n, i in self.indices.items()
            if n != "topic"
        }
        records = pa.RecordBatch.from_pydict(columns)
        if self.topic is not None:
            yield self.topic, self._encoded(records, self.topic)
            return
        topics = batch.column(self.indices["topic"])
        if topics.null_count:
            raise EncodeError("a row has null in its column 'topic'")
        names = pc.unique(topics).to_pylist()
        for name in names:
            rows = records if len(names) == 1 else records.filter(pc.equal(topics, name))
            yield name, self._encoded(rows, name)

    def _encoded(self, records: pa.RecordBatch, topic: str) -> pa.RecordBatch:
        """Return the records with keys and values encoded with schemas, where the options require this."""
        if not self._written:
            return records
        from penstock.spark.value_encoding import encoded

        for name, field in self._written.items():
            place = records.schema.get_field_index(name)
            records = records.set_column(place, name, encoded(field, records.column(place), topic))
        return records


def _as_records(name: str, column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if name in ("key", "value") and not pa.types.is_binary(column.type):
        return column.view(pa.binary()) if pa.types.is_string(column.type) else column.cast(pa.binary())
    return column


@dataclass
class TaskMessage(WriterCommitMessage):
    """The message of one task to the driver: the number of records that it wrote to each topic."""

    records: dict[str, int]


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of one batch query to topics."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        return write_rows(self._options, self._columns, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Print the number of rows written; the records were in their topics when `write` returned."""
        tell(rows_line(each.records for each in messages if isinstance(each, TaskMessage)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: records that were written stay, as in Spark's Kafka sink."""


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of every micro-batch to topics."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        presume_written_before(self._options)
        return write_rows(self._options, self._columns, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Do nothing: the records were in their topics when `write` returned."""

    def abort(self, messages: Sequence[WriterCommitMessage | None], batch_id: int) -> None:
        """Do nothing: records that were written stay, and a batch that is repeated writes them again."""


def presume_written_before(options: WriteOptions) -> None:
    """Make a stream's client retry a refused login, because an earlier process of the query has logged in."""
    if "security.protocol" in options.client:
        presume_login(producer_config(options))


def producer_config(options: WriteOptions) -> ProducerConfig:
    """Return the checked client options of a writer.

    Raises:
        ConfigError: an option is unknown, malformed, or belongs to a consumer.
    """
    where = {"bootstrap_servers": options.bootstrap_servers}
    return ProducerConfig.parse(options.client, where, prefix="kafka.")


def write_rows(options: WriteOptions, columns: SinkColumns, batches: Iterator[pa.RecordBatch]) -> TaskMessage:
    """Write the rows of one task, and wait until the brokers have acknowledged all of them.

    Raises:
        PenstockError: a record was refused, or no broker acknowledged it in time.
    """
    from penstock.client import Producer
    from penstock.client.produce.columns import TableDelivery

    deliveries: dict[str, TableDelivery] = {}
    with plain_errors():
        producer_config(options)  # so that errors name options as they were written
    try:
        with plain_errors(), Producer(options.bootstrap_servers, options.client) as producer:
            for batch in batches:
                for topic, records in columns.by_topic(batch):
                    delivery = deliveries.setdefault(topic, TableDelivery(topic))
                    producer.send_arrow(topic, records, delivery=delivery)
            producer.flush()
            written = {topic: delivery.result().rows for topic, delivery in deliveries.items()}
    finally:
        settle()
    return TaskMessage(written)
