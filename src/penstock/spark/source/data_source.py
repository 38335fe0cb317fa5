"""The data source `penstock`: Spark finds it by its name, and passes options and schema to it.

    spark.readStream.format("penstock").option("kafka.bootstrap.servers", ...).option("subscribe", ...)

Spark finds the source on the driver and on every executor that has this package, through the module
`pyspark_penstock`, which imports this module when Spark creates the source. Objects here are pickled by
reference to their classes, and are cheap to import: numpy is not loaded for planning, and modules for
transactions and landing are imported only if an option needs them.
"""

# ruff: noqa: N802 - the names of methods are Spark's

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamWriter
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.runtime.daemon import leave_planner_quietly, settle_planner
from penstock.spark.runtime.releases import HAS_READ_LIMITS, HAS_STREAM_ARROW_WRITERS
from penstock.spark.runtime.worker_errors import plain_errors
from penstock.spark.source.landing.options import lands
from penstock.spark.source.options import schema_options, value_options, write_options
from penstock.spark.source.reader import BatchReader, RowWork, TaskWork, value_columns
from penstock.spark.source.schema import schema_for
from penstock.spark.source.stream_reader import StreamPlanner, StreamReader, UnlimitedStreamReader
from penstock.spark.source.writer import BatchWriter, SinkColumns, StreamWriter

leave_planner_quietly()
settle_planner()


class PenstockDataSource(DataSource):
    """Kafka topics as tables and streams, with the option names of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format, "penstock", because Spark reserves `kafka`."""
        return "penstock"

    def schema(self) -> StructType:
        with plain_errors():
            if lands(self.options):
                from penstock.spark.source.landing.rows import FILES_SCHEMA

                return FILES_SCHEMA
            include_headers, cloudevents = schema_options(self.options)
            values = value_columns(value_options(self.options))
            return schema_for(include_headers, cloudevents, values)

    def reader(self, schema: StructType) -> BatchReader:
        with plain_errors():
            return BatchReader(self._work(schema, streaming=False))

    def streamReader(self, schema: StructType) -> StreamPlanner:
        # No checks here: Spark hides what this method raises behind an error of its own.
        kind = StreamReader if HAS_READ_LIMITS else UnlimitedStreamReader
        return kind(self._work(schema, streaming=True))

    def _work(self, schema: StructType, *, streaming: bool) -> TaskWork:
        if not lands(self.options):
            return RowWork(self.options, schema, streaming=streaming)
        from penstock.spark.source.landing.reader import LandingWork

        return LandingWork(self.options, schema, streaming=streaming)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        with plain_errors():
            if lands(self.options):
                if overwrite:
                    raise ConfigError("landed files are not overwritten; use mode('append')")
                from penstock.spark.source.landing.writer import LandingBatchWriter

                return LandingBatchWriter(self.options, schema)
            if overwrite:
                raise ConfigError("records of a topic cannot be overwritten; use mode('append')")
            options = write_options(self.options)
            columns = SinkColumns(schema, options)
            if not options.exactly_once:
                return BatchWriter(options, columns)
            from penstock.spark.source.exactly_once_writer import ExactlyOnceBatchWriter

            return ExactlyOnceBatchWriter(options, columns)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        with plain_errors():
            writer = self._stream_writer(schema)
        if HAS_STREAM_ARROW_WRITERS:
            return writer
        from penstock.spark.source.row_writer import RowStreamWriter

        return RowStreamWriter(writer, schema)

    def _stream_writer(self, schema: StructType) -> DataSourceStreamWriter:
        if lands(self.options):
            from penstock.spark.source.landing.writer import LandingStreamWriter

            return LandingStreamWriter(self.options, schema)
        options = write_options(self.options)
        if options.job is not None:
            raise ConfigError("a stream has its checkpoint: txnAppId and txnVersion are for batch queries")
        columns = SinkColumns(schema, options)
        if not options.exactly_once:
            return StreamWriter(options, columns)
        from penstock.spark.source.exactly_once_writer import ExactlyOnceStreamWriter

        return ExactlyOnceStreamWriter(options, columns)
