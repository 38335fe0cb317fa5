"""Compare Spark's JVM Kafka connector with Penstock's data source in one session, and print the results.

    python spark_connector_query.py DIRECTORY JARS SERVERS SEED STEPS [PART...]

The program reads topics with both sources under the same options. It also stops or kills queries of one
source and continues them with the other. With STEPS above 0 it runs all parts and that many random steps;
with 0, a short run of less than a minute; with PARTs, those parts. SERVERS is a running Kafka, or ``-`` for a
Penstock broker.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock import Admin, Broker, Producer, write_topic
from penstock.errors import ConfigError, PenstockError
from penstock.model import TopicPartition
from penstock.spark import session
from penstock.spark.handover import copy_for_kafka, read_checkpoint
from penstock.spark.source.brokers import client_config
from penstock.spark.source.options import read_options, write_options

KAFKA, OURS = "kafka", "penstock"
QUICK = {
    "fetchOffset.numRetries": "1",
    "fetchOffset.retryIntervalMs": "10",
    "kafkaConsumer.pollTimeoutMs": "1500",
}
"""Connector options with short time limits, for cases in which a request cannot succeed."""

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

BATCH: dict[str, dict[str, str]] = {
    "everything": {"subscribe": "plain,times"},
    "offsets": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":5,"1":-2,"2":30}}',
        "endingOffsets": '{"plain":{"0":10,"1":-1,"2":31}}',
    },
    "an end before the start": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":10,"1":-2,"2":30}}',
        "endingOffsets": '{"plain":{"0":5,"1":-1,"2":31}}',
    },
    "a start behind the end": {
        "subscribe": "plain",
        "startingOffsets": '{"plain":{"0":500,"1":-2,"2":3}}',
        "failOnDataLoss": "false",
    },
    "an end that is not there yet": {
        "subscribe": "plain",
        "endingOffsets": '{"plain":{"0":500,"1":-1,"2":3}}',
    },
    "an end that is not there yet, loss borne": {
        "subscribe": "plain",
        "endingOffsets": '{"plain":{"0":500,"1":-1,"2":3}}',
        "failOnDataLoss": "false",
    },
    "a partition left out": {"subscribe": "plain", "startingOffsets": '{"plain":{"0":5,"1":-2}}'},
    "a partition too many": {"subscribe": "plain", "startingOffsets": '{"plain":{"0":5,"1":1,"2":1,"3":1}}'},
    "a time": {"subscribe": "times", "startingTimestamp": "1010", "endingTimestamp": "1015"},
    "a time after the end": {"subscribe": "times", "startingTimestamp": "1015", "endingTimestamp": "1010"},
    "a time too late": {"subscribe": "times", "startingTimestamp": "1019"},
    "a time too late, from the latest": {
        "subscribe": "times",
        "startingTimestamp": "1019",
        "startingOffsetsByTimestampStrategy": "latest",
    },
    "times": {
        "subscribe": "times",
        "startingOffsetsByTimestamp": '{"times":{"0":1004,"1":1010}}',
        "endingOffsetsByTimestamp": '{"times":{"0":1014,"1":9999}}',
        "startingOffsets": "latest",
    },
    "records that are gone": {"subscribe": "cut", "startingOffsets": '{"cut":{"0":3}}'},
    "records that are gone, loss borne": {
        "subscribe": "cut",
        "startingOffsets": '{"cut":{"0":3}}',
        "failOnDataLoss": "false",
    },
    "gaps of compaction": {"subscribe": "compacted", "startingOffsets": '{"compacted":{"0":1}}'},
    "transactions": {"subscribe": "transactions"},
    "committed transactions": {"subscribe": "transactions", "kafka.isolation.level": "read_committed"},
    "pieces": {"subscribe": "plain", "minPartitions": "7", "maxRecordsPerPartition": "9"},
    "headers": {"subscribe": "headers", "includeHeaders": "true"},
    "an empty topic": {"subscribe": "empty"},
    "an unknown topic": {"subscribe": "nowhere"},
    "a pattern": {"subscribePattern": "pl.*|em.*|times"},
    "a pattern of nothing": {"subscribePattern": "nowhere-.*"},
    "assigned": {"assign": '{"plain":[0,2]}'},
}
STREAM: dict[str, dict[str, str]] = {
    "rates": {"subscribe": "skewed", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "40"},
    "rates, least and most": {
        "subscribe": "skewed",
        "startingOffsets": "earliest",
        "minOffsetsPerTrigger": "20",
        "maxOffsetsPerTrigger": "60",
    },
    "mixed offsets": {"subscribe": "skewed", "startingOffsets": '{"skewed":{"0":50,"1":-1,"2":-2}}'},
    "a start behind the end": {"subscribe": "skewed", "startingOffsets": '{"skewed":{"0":500,"1":1,"2":0}}'},
    "a time too late": {"subscribe": "times", "startingTimestamp": "1019"},
    "committed transactions": {
        "subscribe": "transactions",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "7",
        "kafka.isolation.level": "read_committed",
    },
    "gaps of compaction": {
        "subscribe": "compacted",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "50",
    },
    "records that are gone": {"subscribe": "cut", "startingOffsets": '{"cut":{"0":3}}'},
    "an end": {"subscribe": "plain", "endingOffsets": "latest"},
}


SHORT = {
    "offsets",
    "an end before the start",
    "an end that is not there yet, loss borne",
    "a time too late, from the latest",
    "times",
    "records that are gone",
    "records that are gone, loss borne",
    "gaps of compaction",
    "committed transactions",
    "pieces",
    "headers",
    "an unknown topic",
    "rates",
}
"""The names of the test cases, among `BATCH` and `STREAM`, that a short run includes."""


def kind(error: Exception) -> str:
    """Return the kind of failure of an error of either source: unknown topic, data loss, or refused."""
    text = str(error)
    if "nknown topic" in text or "UnknownTopicOrPartition" in text:
        return "unknown topic"
    if "DataLossError" in text or "may have been lost" in text:
        return "data loss"
    return "refused"


class Bench:
    """A Spark session with the address of a Kafka cluster, and a count of the numbers written per topic."""

    def __init__(self, spark: Any, servers: str, directory: Path) -> None:
        self.spark = spark
        self.servers = servers
        self.directory = directory
        self.admin = Admin(bootstrap_servers=servers)
        self.written: dict[str, int] = {}

    def topic(self, name: str, partitions: int = 1, **config: str) -> str:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topic(name, partitions=partitions, config=settings)
        return name

    def write(self, topic: str, count: int, partitions: int = 1) -> None:
        """Write the topic's next `count` numbers, distributed over the partitions in turn."""
        first = self.written.get(topic, 0)
        numbers = range(first, first + count)
        self.written[topic] = first + count
        texts = pa.array([b"%d" % n for n in numbers], pa.binary())
        places = pa.array([n % partitions for n in numbers], pa.int32())
        table = pa.table({"key": texts, "value": texts, "partition": places})
        write_topic(table, topic, bootstrap_servers=self.servers)

    def reader(self, form: str, streaming: bool, options: dict[str, str]) -> Any:
        reader = self.spark.readStream if streaming else self.spark.read
        given = {"kafka.bootstrap.servers": self.servers, **QUICK, **options}
        return reader.format(form).options(**given)

    def rows(self, form: str, options: dict[str, str]) -> object:
        try:
            found = self.reader(form, False, options).load().collect()
        except Exception as error:
            return kind(error)
        return sorted((tuple(row) for row in found), key=lambda row: row[2:5])

    def batches(self, form: str, options: dict[str, str]) -> object:
        """Return (topic, partition, offset) rows of each non-empty micro-batch, or the kind of failure."""
        found = []

        def write(frame: Any, _: int) -> None:
            rows = sorted(tuple(row) for row in frame.select("topic", "partition", "offset").collect())
            if rows:
                found.append(rows)

        checkpoint = self.directory / "differential" / f"{form}-{time.monotonic_ns()}"
        try:
            self.run(self.reader(form, True, options).load(), write, checkpoint)
        except Exception as error:
            return kind(error)
        return found

    def run(
        self, frame: Any, write: Callable[[Any, int], None], checkpoint: Path, mode: str = "append"
    ) -> None:
        query = (
            frame.writeStream.foreachBatch(write)
            .outputMode(mode)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def fill(bench: Bench) -> None:
    """Create topics of every kind that a reader may treat differently, such as empty or compacted ones."""
    bench.topic("plain", 3)
    bench.write("plain", 100, 3)
    bench.topic("empty", 2)
    bench.topic("times", 2, retention_ms="-1")  # its records are old
    stamps = pa.array([1000 + n for n in range(20)], pa.timestamp("ms"))
    values = pa.array([b"%d" % n for n in range(20)], pa.binary())
    places = pa.array([n % 2 for n in range(20)], pa.int32())
    times = pa.table({"value": values, "partition": places, "timestamp": stamps})
    bench.topic("skewed", 3)
    skewed = pa.table(
        {
            "value": pa.array([b"%d" % n for n in range(111)], pa.binary()),
            "partition": pa.array([0] * 100 + [1] * 10 + [2], pa.int32()),
        }
    )
    write_topic(times, "times", bench.servers)
    write_topic(skewed, "skewed", bench.servers)
    bench.topic("cut")
    bench.write("cut", 20)
    bench.admin.delete_records({TopicPartition("cut", 0): 8})
    bench.topic("headers")
    headers: list[Any] = [
        [],
        [{"key": "a", "value": b"1"}, {"key": "a", "value": None}],
        None,
        [{"key": "", "value": b""}],
    ]
    odd = {
        "key": pa.array([None, b"k", b"", b"\xff"], pa.binary()),
        "value": pa.array([b"v", None, b"", b"\x00"], pa.binary()),
        "headers": pa.array(headers, HEADERS),
    }
    write_topic(pa.table(odd), "headers", bench.servers)
    bench.topic("transactions")
    with Producer(bench.servers, transactional_id="differential") as producer:
        for number in range(6):
            with contextlib.suppress(RuntimeError), producer.transaction():
                for n in range(3):
                    producer.send("transactions", b"%d-%d" % (number, n))
                if number % 2:
                    raise RuntimeError("aborted")
    compacted(bench)


def compacted(bench: Bench) -> None:
    """Create a topic with gaps in its offsets: write five keys repeatedly, and wait for compaction."""
    bench.topic("compacted", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    for number in range(6):
        keys = pa.array([b"%d" % (n % 5) for n in range(40)], pa.binary())
        write_topic(pa.table({"key": keys, "value": keys}), "compacted", bench.servers)
        time.sleep(0.15 if number < 5 else 0)
    deadline = time.monotonic() + 300
    while len(offsets_of(bench)) > 120:
        if time.monotonic() > deadline:
            raise AssertionError("the topic is not compacted")
        time.sleep(0.2)
    # What has become of it stays.
    bench.admin.alter_config("compacted", set={"cleanup.policy": "delete", "retention.ms": "-1"})


def offsets_of(bench: Bench) -> list[int]:
    from penstock import read_topic

    offsets: list[int] = read_topic("compacted", bench.servers, columns=["offset"])["offset"].to_pylist()
    return offsets


def differential(bench: Bench, is_short: bool) -> dict[str, object]:
    """Run each test case with Penstock's Spark source and with Spark's own Kafka connector.

    Returns the connector's number of rows or micro-batches per case, and both results where they differ.
    """
    outcomes: dict[str, object] = {}
    differences = {}
    for what, cases, read in (("batch", BATCH, bench.rows), ("stream", STREAM, bench.batches)):
        for name, options in cases.items():
            if is_short and name not in SHORT:
                continue
            theirs, ours = read(KAFKA, options), read(OURS, options)
            outcomes[f"{what}: {name}"] = len(theirs) if isinstance(theirs, list) else theirs
            if theirs != ours:
                differences[f"{what}: {name}"] = [str(theirs)[:600], str(ours)[:600]]
    return {"outcomes": outcomes, "differences": differences}


BEFORE_IT_ASKED = 'the return value of "scala.Option.get()" is null'


class Query:
    """A streaming query whose source changes between runs.

    It stores what each micro-batch wrote under the batch's number, so that a repeated batch replaces its
    first run.
    """

    def __init__(self, bench: Bench, name: str, frame: Callable[[Callable[..., Any]], Any]) -> None:
        self.bench = bench
        self.checkpoint = bench.directory / "handover" / name
        self.frame = frame
        self.batches: dict[int, list[str]] = {}

    def run(self, form: str, *, dies_at: int | None = None, **options: str) -> None:
        """Read all available records.

        With `dies_at` the query fails after that many complete micro-batches, having written half of the
        next one.
        """
        left = [dies_at]

        def load(**chosen: str) -> Any:
            return self.bench.reader(form, True, {**chosen, **options}).load()

        def write(frame: Any, number: int) -> None:
            rows = [row.value for row in frame.selectExpr("cast(value as string) as value").collect()]
            self.batches[number] = rows
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    self.batches[number] = rows[: len(rows) // 2]
                    raise RuntimeError("killed here")

        try:
            self.bench.run(self.frame(load), write, self.checkpoint)
        except Exception as error:
            if dies_at is None or "killed here" not in str(error):
                raise

    def values(self) -> list[int]:
        return sorted(int(value) for rows in self.batches.values() for value in rows)


def moves(bench: Bench) -> dict[str, object]:
    """Switch a query with two sources between the connector and Penstock, killing it on the way.

    Partitions and topics are added meanwhile.
    """
    bench.topic("orders-a", 2)
    bench.topic("single")

    def both(load: Callable[..., Any]) -> Any:
        many = load(subscribePattern="orders-.*", startingOffsets="earliest", maxOffsetsPerTrigger="7")
        one = load(assign='{"single":[0]}', startingOffsets="earliest")
        columns = "value", "topic", "partition", "offset"
        return many.select(*columns).unionByName(one.select(*columns))

    query = Query(bench, "both", both)
    wanted: list[int] = []

    def write(topic: str, count: int, partitions: int = 1) -> None:
        first = bench.written.get(topic, 0)
        bench.write(topic, count, partitions)
        wanted.extend(range(first, first + count))

    write("orders-a", 30, 2)
    write("single", 5)
    query.run(KAFKA, dies_at=1)
    bench.admin.create_partitions("orders-a", 3)
    write("orders-a", 30, 3)
    query.run(OURS, dies_at=2)
    bench.topic("orders-b")
    write("orders-b", 10)
    query.run(KAFKA, dies_at=2)
    write("single", 5)
    query.run(OURS)
    write("orders-b", 10)
    query.run(KAFKA)
    return {"exact": query.values() == sorted(wanted), "rows": [len(query.values()), len(wanted)]}


def state(bench: Bench) -> dict[str, object]:
    """Check that a query's counts by key, kept in the state store, continue when the source changes."""
    bench.topic("counted", 2)
    checkpoint = bench.directory / "handover" / "state"
    found: dict[str, int] = {}

    def write(frame: Any, _: int) -> None:
        found.update({row.ends: row["count"] for row in frame.collect()})

    for form in (KAFKA, OURS, KAFKA):
        bench.write("counted", 10, 2)
        reader = bench.reader(form, True, {"subscribe": "counted", "startingOffsets": "earliest"}).load()
        counts = (
            reader.withWatermark("timestamp", "1 hour")
            .groupBy(reader.value.substr(-1, 1).cast("string").alias("ends"))
            .count()
        )
        bench.run(counts, write, checkpoint, "complete")
    return {"exact": found == {str(digit): 3 for digit in range(10)}}


def firsts(bench: Bench, is_short: bool) -> dict[str, object]:
    """Test queries from the latest offsets that are killed in the first micro-batch, then change source."""
    accounts: dict[str, object] = {}
    pairs = [(OURS, KAFKA), (KAFKA, OURS), (OURS, OURS), (KAFKA, KAFKA)]
    for begun, ended in pairs[:2] if is_short else pairs:
        topic = bench.topic(f"first-{begun}-{ended}", 2)
        bench.write(topic, 10, 2)
        query = Query(bench, topic, lambda load, topic=topic: load(subscribe=topic))  # type: ignore[misc]
        query.run(begun, dies_at=0)
        query.batches.clear()
        bench.write(topic, 10, 2)
        options: dict[str, str] = {}
        if (begun, ended) == (KAFKA, OURS):
            with contextlib.suppress(Exception):
                query.run(ended)
                accounts["guessed"] = True
            begin = next(source.begin for source in read_checkpoint(query.checkpoint).sources)
            assert begin is not None
            offsets = {str(tp.partition): offset for tp, offset in begin.items()}
            options = {"startingOffsets": json.dumps({topic: offsets})}
        if (begun, ended) == (OURS, KAFKA):
            copy = query.checkpoint.with_name("copy")
            copy_for_kafka(query.checkpoint, copy)
            query.checkpoint = copy
        # Before Spark 4.2 a run with AvailableNow ends with the micro-batch that it repeats.
        for _ in range(2):
            try:
                query.run(ended, **options)
            except Exception as error:
                # The connector of 4.1 counts what is left before it has asked what there is.
                if ended != KAFKA or BEFORE_IT_ASKED not in str(error):
                    raise
                accounts.setdefault("failed once", []).append(begun)  # type: ignore[attr-defined]
        accounts[f"{begun}-{ended}"] = query.values() == [*range(10, 20)]
    return accounts


def logs(bench: Bench) -> dict[str, object]:
    """Hand over a query with a named source, whose offset log has Spark's format version 2."""
    settings = {
        "spark.sql.streaming.offsetLog.formatVersion": "2",
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    }
    bench.topic("named", 2)
    checkpoint = bench.directory / "handover" / "named"
    found: list[int] = []

    def write(frame: Any, _: int) -> None:
        found.extend(int(row.value) for row in frame.select("value").collect())

    try:
        for name, value in settings.items():
            bench.spark.conf.set(name, value)
        for form in (KAFKA, OURS, KAFKA):
            bench.write("named", 10, 2)
            options = {"subscribe": "named", "startingOffsets": "earliest"}
            bench.run(bench.reader(form, True, options).name("in").load(), write, checkpoint)
        name = read_checkpoint(checkpoint).sources[0].name
    finally:
        for setting in settings:
            bench.spark.conf.unset(setting)
    return {"exact": sorted(found) == [*range(30)], "name": name}


def losses(bench: Bench) -> dict[str, object]:
    """Test the loss of records during a handover from one source to the other, in either direction."""
    accounts: dict[str, object] = {}
    for first, second in ((KAFKA, OURS), (OURS, KAFKA)):
        topic = bench.topic(f"lost-{first}", 1)
        bench.write(topic, 10)
        query = Query(
            bench,
            topic,
            lambda load, topic=topic: load(subscribe=topic, startingOffsets="earliest"),  # type: ignore[misc]
        )
        query.run(first)
        bench.write(topic, 10)
        bench.admin.delete_records({TopicPartition(topic, 0): 15})
        outcome = "rows"
        try:
            query.run(second)
        except Exception as error:
            outcome = kind(error)
        query.run(second, failOnDataLoss="false")
        accounts[f"{first}-{second}"] = [outcome, query.values() == [*range(10), *range(15, 20)]]
    return accounts


def wander(bench: Bench, chance: random.Random, steps: int) -> dict[str, object]:
    """Write, add partitions, kill the query and change its source at random; expect every number once."""
    partitions = 2
    bench.topic("wander", partitions)
    query = Query(
        bench,
        "wander",
        lambda load: load(subscribe="wander", startingOffsets="earliest", maxOffsetsPerTrigger="13"),
    )
    for _ in range(steps):
        if chance.random() < 0.8:
            bench.write("wander", chance.randint(1, 60), partitions)
        if partitions < 12 and chance.random() < 0.1:
            partitions += 1
            bench.admin.create_partitions("wander", partitions)
        form = chance.choice([KAFKA, OURS])
        query.run(form, dies_at=chance.choice([None, 0, 1, 2, 3]))
    query.run(OURS)
    query.run(KAFKA)
    return {"exact": query.values() == [*range(bench.written.get("wander", 0))], "rows": len(query.values())}


def java_settings(spark: Any) -> list[str]:
    """Return the Java client settings that the source neither accepts nor rejects with advice.

    Settings that the source knows but ignores count as accepted.
    """
    clients = spark._jvm.org.apache.kafka.clients
    odd = []
    for names, options, check in (
        (
            clients.consumer.ConsumerConfig.configNames(),
            {"subscribe": "t"},
            lambda given: client_config("h:1", read_options(given, streaming=True).client),
        ),
        (clients.producer.ProducerConfig.configNames(), {"topic": "t"}, write_options),
    ):
        for name in names:
            if name == "bootstrap.servers":
                continue
            try:
                check({"kafka.bootstrap.servers": "h:1", **options, f"kafka.{name}": "1"})
            except ConfigError as error:
                if re.search("unknown", str(error)):
                    odd.append(name)
            except PenstockError:
                continue
    return sorted(odd)


def connector_options(spark: Any) -> list[str]:
    """Return the option names that the connector's class defines, in lower case."""
    java = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    owner = loader.loadClass("org.apache.spark.sql.kafka010.KafkaSourceProvider$")
    provider = owner.getField("MODULE$").get(None)
    found = []
    for field in owner.getDeclaredFields():
        name = field.getName().split("$$")[-1]
        if re.fullmatch(
            r"ASSIGN|SUBSCRIBE\w*|MAX_OFFSET\w+|MIN_OFFSET\w+|MAX_TRIGGER\w+|FETCH_\w+|CONSUMER_\w+|INCLUDE_\w+"
            r"|GROUP_ID_PREFIX|\w+_KEY",
            name,
        ):
            field.setAccessible(True)
            found.append(str(field.get(provider)).lower())
    return sorted(found)


@contextlib.contextmanager
def kafka(servers: str) -> Iterator[str]:
    if servers != "-":
        yield servers
        return
    with Broker(log_retention_ms=-1, log_cleaner_backoff_ms=100) as broker:
        yield broker.bootstrap_servers


def main(directory: Path, jars: str, servers: str, seed: int, steps: int, parts: list[str]) -> None:
    accounts: dict[str, object] = {}
    shutil.rmtree(directory / "handover", ignore_errors=True)
    config = {"spark.jars": jars, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = session("connector", "local[2]", config=config)
    try:
        with kafka(servers) as at:
            bench = Bench(spark, at, directory)
            accounts["version"] = spark.version
            calls: dict[str, Callable[[], object]] = {
                "settings": lambda: java_settings(spark),
                "options": lambda: connector_options(spark),
                "fill": lambda: fill(bench),
                "differential": lambda: differential(bench, not steps),
                "moves": lambda: moves(bench),
                "state": lambda: state(bench),
                "firsts": lambda: firsts(bench, not steps),
            }
            if steps:
                calls |= {
                    "logs": lambda: logs(bench),
                    "losses": lambda: losses(bench),
                    "wander": lambda: wander(bench, random.Random(seed), steps),
                }
            for what, call in calls.items():
                if parts and what not in parts:
                    continue
                begin = time.monotonic()
                accounts[what] = call()
                print(f"{what}: {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
            bench.admin.close()
    finally:
        spark.stop()
    print("ACCOUNTS", json.dumps(accounts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), sys.argv[6:])
