"""The demo's pipeline: two queries of Spark Structured Streaming, which run on any Kafka.

*delays* decodes departures, counts and averages them per airport, airline and hour, joins the weather,
and writes every finished hour to a Parquet table and a topic. *triage* reads the same records and copies
invalid events to a topic of their own, with the reason.

Partitions are read in parallel, and the event times of one may be a few days ahead of another's; the delay of
the watermark is longer than that. When all departures have been read, a marker is written to a topic that
*delays* reads as well, to finish the last hours of the year. The marker is an event with a later time: it
advances the watermark and is not counted.

Every step can be repeated. A micro-batch that runs again after a crash has the same input, and replaces its
former output: files have fixed names, and records are written in transactions, once for each batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.cloudevents import encode_events
from penstock.common.atomic_files import make_directory
from penstock.demo.events import delay_events
from penstock.demo.output import Output, write_json
from penstock.demo.replay import PRODUCER_CONFIG
from penstock.errors import PenstockError
from penstock.spark.sinks.progress import Progress, progress_of, reason
from penstock.spark.sinks.tables import ParquetTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WATERMARK_DAYS = 14
"""The watermark's delay in days. When equal fractions of the partitions of `flights` have been read, their
event times differ by at most 5.7 days, so that no event is dropped as late.
"""

MICRO_BATCHES = 7
MICRO_BATCH_ROWS_MIN = 4_000
"""The least number of rows in a micro-batch: each one takes Spark a second, however small it is."""

PARTITIONS_MAX = 10

POLL_SECONDS = 0.2

DEPARTURE_FIELDS = "carrier string, origin string, dep_delay int"
WEATHER_FIELDS = "origin string, temp double, wind_speed double, precip double, visib double"
WEATHER_COLUMNS = ("temp", "wind_speed", "precip", "visib")
NOT_JSON = "_not_json"

ORIGIN_HEADERS = ("penstock_topic", "penstock_partition", "penstock_offset")
ADDED_HEADERS = (*ORIGIN_HEADERS, "penstock_reason")
"""The headers that a dead letter has in addition to those of the original record."""

Show = Callable[[str, Progress], None]


@dataclass(frozen=True, slots=True)
class PipelineJob:
    """The input and output of the pipeline.

    `topics` maps short names of topics to full names. `flights` and `weather` are the numbers of records in
    these two topics, `end` is the event time of the last departure.
    """

    output: Output
    bootstrap_server: str
    topics: Mapping[str, str]
    flights: int
    weather: int
    end: datetime

    @property
    def mark_time(self) -> datetime:
        """Return the event time of the marker, with which the watermark passes the last departure's hour."""
        return self.end + timedelta(days=WATERMARK_DAYS, hours=2)


class LateEventsError(PenstockError):
    """Raised if events came later than the watermark allows, so that Spark dropped them."""


class Pipeline:
    """Runs the queries *delays* and *triage* in one Spark session."""

    def __init__(self, spark: SparkSession, job: PipelineJob, show: Show) -> None:
        self._spark = spark
        self._job = job
        self._show = show
        self._table = ParquetTable(job.output.delays)
        make_directory(job.output.triage)

    def run(self, write_mark: Callable[[datetime], None]) -> None:
        """Run both queries until table, topics and counts cover all replayed events.

        `write_mark` writes the marker to its topic, unless it is there already.

        Raises:
            PenstockError: a query failed; the message is one line.
        """
        triage = self._start_triage()
        delays = self._start_delays()
        self._follow({"delays": delays, "triage": triage})
        write_mark(self._job.mark_time)
        self._follow({"delays": self._start_delays()})

    # --- delays ------------------------------------------------------------------------------------------

    def _start_delays(self) -> StreamingQuery:
        from pyspark.sql import functions as f

        departures = self._events(self._job.flights, "time timestamp, data string, error string", "flights")
        parsed = departures.withColumn("row", _parsed(DEPARTURE_FIELDS)).where(
            f.isnull(_reason("carrier", "origin"))
        )
        good = parsed.select("time", "row.carrier", "row.origin", "row.dep_delay")
        marks = self._events(1, "time timestamp", "replay-marks")
        cells = (
            good.unionByName(marks, allowMissingColumns=True)
            .withWatermark("time", f"{WATERMARK_DAYS} days")
            # By time, because a condition on any other column would be moved in front of the watermark,
            # and the mark would never reach it.
            .where(f.col("time") < f.lit(self._job.mark_time))
            .groupBy("origin", "carrier", f.window("time", "1 hour").alias("window"))
            .agg(
                f.count("*").alias("scheduled"),
                f.count("dep_delay").alias("departed"),
                f.avg("dep_delay").alias("mean_dep_delay"),
            )
            .withColumn("hour", f.col("window.start"))
            .join(f.broadcast(self._weather), ["origin", "hour"], "left")
            .select("origin", "carrier", "hour", "scheduled", "departed", "mean_dep_delay", *WEATHER_COLUMNS)
        )
        return self._start("delays", cells, self._commit_cells)

    @cached_property
    def _weather(self) -> DataFrame:
        """Return all weather observations as a static DataFrame, since the replay has written them before."""
        from pyspark.sql import functions as f

        observations = self._source(
            self._spark.read, "time timestamp, data string, error string", "weather"
        ).load()
        weather: DataFrame = (
            observations.withColumn("row", _parsed(WEATHER_FIELDS))
            .where(f.isnull(_reason("origin")))
            .select("row.origin", f.col("time").alias("hour"), *(f"row.{name}" for name in WEATHER_COLUMNS))
            .cache()
        )
        return weather

    def _commit_cells(self, frame: DataFrame, batch_id: int) -> None:
        order = [(name, "ascending") for name in ("hour", "origin", "carrier")]
        cells = frame.toArrow().sort_by(order)
        self._table.commit(batch_id, cells)
        self._write_once("delays", "delays", batch_id, delay_records(cells))

    # --- triage ------------------------------------------------------------------------------------------

    def _start_triage(self) -> StreamingQuery:
        from pyspark.sql import functions as f

        columns = (
            "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
            "headers array<struct<key: string, value: binary>>, time timestamp, data string, error string"
        )
        fields = "carrier string, origin string, dep_delay int, temp double"
        rows = self._job.flights + self._job.weather
        records = self._events(rows, columns, "flights", "weather").withColumn("row", _parsed(fields))
        flights = f.col("topic") == self._job.topics["flights"]
        judged = records.withColumn(
            "reason", f.when(flights, _reason("carrier", "origin")).otherwise(_reason("origin"))
        )
        return self._start("triage", judged.drop("row", "data", "time", "error"), self._commit_triage)

    def _commit_triage(self, frame: DataFrame, batch_id: int) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        counts = Observation()
        measures = [
            f.count_if((f.col("topic") == self._job.topics[topic]) & condition).alias(f"{topic}.{name}")
            for topic in ("flights", "weather")
            for name, condition in (
                ("decoded", f.isnull("reason")),
                ("malformed", f.isnotnull("reason")),
            )
        ]
        departures = (f.col("topic") == self._job.topics["flights"]) & f.isnull("reason")
        measures.append(f.count_if(departures & _is_structured()).alias("flights.structured"))
        dead: pa.Table = frame.observe(counts, *measures).where(f.isnotnull("reason")).toArrow()
        self._write_once("triage", "dead-letters", batch_id, dead_letters(dead))
        write_json(self._job.output.triage / f"{batch_id:012d}.json", counts.get)

    # --- what both need ----------------------------------------------------------------------------------

    def _source(self, reader: Any, schema: str, *topics: str) -> Any:
        return (
            reader.format("penstock")
            .schema(schema)
            .option("kafka.bootstrap.servers", self._job.bootstrap_server)
            .option("subscribe", ",".join(self._job.topics[topic] for topic in topics))
            .option("startingOffsets", "earliest")
            .option("cloudevents", "columns")
            .option("cloudevents.raw", "all")
        )

    def _events(self, rows: int, schema: str, *topics: str) -> DataFrame:
        """Return a streaming DataFrame that reads the `rows` events of `topics` in a few micro-batches."""
        # What rounding takes from each partition must not add up to one more part.
        part = max(MICRO_BATCH_ROWS_MIN, -(-rows // MICRO_BATCHES) + PARTITIONS_MAX)
        source = self._source(self._spark.readStream, schema, *topics)
        frame: DataFrame = source.option("maxOffsetsPerTrigger", str(part)).load()
        return frame

    def _start(self, name: str, frame: DataFrame, commit: Callable[[DataFrame, int], None]) -> StreamingQuery:
        return (
            frame.writeStream.queryName(name)
            .foreachBatch(commit)
            .option("checkpointLocation", str(self._job.output.checkpoints / name))
            .trigger(availableNow=True)
            .start()
        )

    def _write_once(self, query: str, topic: str, batch_id: int, records: pa.Table) -> None:
        """Append the records of a micro-batch to a topic, unless an earlier attempt has appended them."""
        if not records.num_rows:
            return
        name = self._job.topics[topic]
        # The id of the query is in its checkpoint: a directory that starts over is another application.
        metadata = self._job.output.checkpoints / query / "metadata"
        identity = json.loads(metadata.read_text(encoding="utf-8"))["id"]
        writer = (
            self._spark.createDataFrame(records)
            .write.format("penstock")
            .option("kafka.bootstrap.servers", self._job.bootstrap_server)
            .option("topic", name)
            .option("exactlyOnce", True)
            .option("txnAppId", identity)
            .option("txnVersion", batch_id)
        )
        for setting, value in PRODUCER_CONFIG.items():
            writer = writer.option(f"kafka.{setting}", value)
        writer.mode("append").save()

    def _follow(self, queries: Mapping[str, StreamingQuery]) -> None:
        """Show the progress of `queries` until all have ended; if one fails, stop the others."""
        shown = dict.fromkeys(queries, -1)
        try:
            running = set(queries)
            while running:
                time.sleep(POLL_SECONDS)
                for name in sorted(running):
                    query = queries[name]
                    # In this order: what a query reports before it ends must not be missed.
                    ended = not query.isActive
                    for report in query.recentProgress:
                        if report["batchId"] > shown[name]:
                            shown[name] = report["batchId"]
                            refuse_late_events(name, report)
                            self._show(name, progress_of(report))
                    if ended:
                        running.discard(name)
                        error = query.exception()
                        if error is not None:
                            raise PenstockError(f"query {name}: {reason(error)}") from error
        finally:
            for query in queries.values():
                query.stop()


def refuse_late_events(name: str, report: Mapping[str, Any]) -> None:
    """Raise LateEventsError if a micro-batch dropped events because they were later than the watermark."""
    late = sum(operator["numRowsDroppedByWatermark"] for operator in report["stateOperators"])
    if late:
        raise LateEventsError(
            f"query {name} left out {late:,} events as late: partitions are read more than "
            f"{WATERMARK_DAYS} days apart; delete the output directory and start again"
        )


def delay_records(cells: pa.Table) -> pa.Table:
    """Return the rows of the table of delays as records: CloudEvents in binary content mode."""
    import pyarrow as pa

    return pa.Table.from_batches([encode_events(delay_events(cells), mode="binary")])


def dead_letters(records: pa.Table) -> pa.Table:
    """Return records unchanged, with headers for their origin and the reason why they are invalid."""
    import pyarrow as pa

    origins = zip(
        *(records[name].to_pylist() for name in ("topic", "partition", "offset", "reason")), strict=True
    )
    headers = [
        [
            *(before or []),
            *(
                {"key": name, "value": str(text).encode()}
                for name, text in zip(ADDED_HEADERS, origin, strict=True)
            ),
        ]
        for before, origin in zip(records["headers"].to_pylist(), origins, strict=True)
    ]
    columns = {
        "key": records["key"],
        "value": records["value"],
        "headers": pa.chunked_array([pa.array(headers, records["headers"].type)]),
        "timestamp": records["timestamp"],
    }
    return pa.table(columns)


def _parsed(fields: str) -> Column:
    """Return the events' JSON data as a struct, whose field NOT_JSON is null if the data are valid JSON."""
    from pyspark.sql import functions as f

    options = {"columnNameOfCorruptRecord": NOT_JSON}
    return f.from_json("data", f"{fields}, {NOT_JSON} string", options)


def _is_structured() -> Column:
    """Return a column that is true for records in structured content mode, by their content type alone."""
    from pyspark.sql import functions as f

    return f.exists(
        f.col("headers"),
        lambda header: (
            (header["key"] == "content-type")
            & header["value"].cast("string").startswith("application/cloudevents")
        ),
    )


def _reason(*needed: str) -> Column:
    """Return a column with the reason why a record is invalid for its topic, or null if it is valid.

    `needed` are the fields that the event's data must have. The columns error, time, data and row are read.
    """
    from pyspark.sql import functions as f

    row = f.col("row")
    why = f.when(f.isnotnull("error"), f.col("error"))
    why = why.when(f.isnull("data"), "the event has no data")
    why = why.when(
        f.isnull("row") | f.isnotnull(row[NOT_JSON]), "the data are not JSON of the expected shape"
    )
    for name in needed:
        why = why.when(f.isnull(row[name]), f"the data have no {name}")
    return why.when(f.isnull("time"), "the event has no time")
