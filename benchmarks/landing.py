"""What it costs to land a topic of JSON in a table of Iceberg on a local disk: `penstock land`, and beside it
Kafka Connect with Iceberg's own sink, and a stream of Spark with the Kafka connector. All write zstd.

CPU is that of the process that lands, from its start to its end. Connect is ended once its table has every
record. Maven fetches the jars.

    python benchmarks/landing.py [--quick] [--rounds N]

PENSTOCK_BENCH_CONNECT=no leaves Connect out. PENSTOCK_BENCH_SPARK is a Python with PySpark 4.1, for which
Iceberg has a jar; without it Spark is left out. PENSTOCK_BENCH_ROWS is the number of records.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from broker_process import running_broker
from harness import Contestant, Outcome, arguments, measure, report
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from spark_landing import json_rows

HERE = Path(__file__).parent
PARTITIONS = 4
TOPICS = 1000
COMMIT_MS = 5_000
"""How often the sink commits: it ends with the first commit that has everything."""


def main() -> None:
    options = arguments("a topic of JSON into a table of Iceberg", rounds=3)
    rows = 200_000 if options.quick else int(os.environ.get("PENSTOCK_BENCH_ROWS", 1_000_000))
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory, running_broker() as brokers:
        with Admin(bootstrap_servers=brokers) as admin:
            admin.create_topic("json", partitions=PARTITIONS)
            admin.create_topic("control-iceberg", partitions=1)
            for number in range(TOPICS):
                admin.create_topic(f"many-{number}", partitions=1)
        write_topic(
            (json_rows(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)), "json", brokers
        )
        for number in range(TOPICS):
            write_topic(json_rows(number, rows // TOPICS), f"many-{number}", brokers)
        place = Path(directory)
        contestants = [Contestant("penstock land", partial(landed, brokers, place, rows))]
        if os.environ.get("PENSTOCK_BENCH_CONNECT") != "no":
            classpath = classpath_of("iceberg_sink", place)
            contestants.append(
                Contestant("Connect, Iceberg's sink", partial(sunk, brokers, place, rows, classpath))
            )
        if python := os.environ.get("PENSTOCK_BENCH_SPARK"):
            jars = classpath_of("spark_iceberg", place).replace(":", ",")
            contestants.append(
                Contestant("Spark, JVM connector", partial(streamed, brokers, place, rows, python, jars))
            )
        measure(contestants, options.rounds, warm_up=False)
        report(f"JSON to Iceberg, local disk, {rows:,} records", contestants)
        many = [Contestant(f"penstock land, {TOPICS:,} topics", partial(many_landed, brokers, place, rows))]
        measure(many, options.rounds, warm_up=False)
        report(f"JSON to {TOPICS:,} directories of Parquet, {rows:,} records in all", many)


def catalog_of(place: Path) -> dict[str, str]:
    """A new catalog of pyiceberg in a directory."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return {"type": "sql", "uri": f"sqlite:///{place}/catalog.db", "warehouse": f"file://{place}/warehouse"}


def landed(brokers: str, place: Path, rows: int) -> Outcome:
    options = catalog_of(place / "penstock")
    stored = [f"--store={name}={value}" for name, value in options.items()]
    words = ["land", "json", "--to", "iceberg://c/bench.json", "-b", brokers, "--format", "json", *stored]
    done = cpu_of([sys.executable, "-m", "penstock", *words], place)
    check(count_of("c", options) == rows)
    return Outcome(units=rows, cpu_seconds=done)


def many_landed(brokers: str, place: Path, rows: int) -> Outcome:
    shutil.rmtree(place / "many", ignore_errors=True)
    words = ["land", "many-*", "--to", f"{place}/many/{{topic}}", "-b", brokers, "--format", "json"]
    done = cpu_of([sys.executable, "-m", "penstock", *words], place)
    check(len(list((place / "many").glob("*/*.parquet"))) >= TOPICS)
    return Outcome(units=rows, cpu_seconds=done)


def sunk(brokers: str, place: Path, rows: int, classpath: str) -> Outcome:
    target = place / "connect"
    options = catalog_of(target)
    worker = {
        "bootstrap.servers": brokers,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": target / "offsets",
        "plugin.discovery": "service_load",
        "listeners": "http://127.0.0.1:0",
        "consumer.auto.offset.reset": "earliest",
        "consumer.max.poll.records": 5000,
    }
    sink = {
        "name": f"sink-{time.monotonic_ns()}",
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": 1,
        "topics": "json",
        "iceberg.tables": "bench.json",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.auto-create-props.write.parquet.compression-codec": "zstd",
        "iceberg.catalog": "c",
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": f"jdbc:sqlite:{target}/catalog.db",
        "iceberg.catalog.jdbc.schema-version": "V0",
        "iceberg.catalog.warehouse": target / "warehouse",
        "iceberg.control.commit.interval-ms": COMMIT_MS,
    }
    files = []
    for name, settings in (("worker", worker), ("sink", sink)):
        files.append(target / f"{name}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [
        *("java", "-Xmx1G", "-XX:+UseSerialGC", "-cp", classpath),
        *("org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)),
    ]
    done = cpu_of(command, target, until=lambda: count_of("c", options) >= rows)
    check(count_of("c", options) == rows)
    return Outcome(units=rows, cpu_seconds=done)


def streamed(brokers: str, place: Path, rows: int, python: str, jars: str) -> Outcome:
    target = place / "spark"
    shutil.rmtree(target, ignore_errors=True)
    dropped = ("PYTHONPATH", "SPARK_", "PYSPARK_")
    done = subprocess.run(
        [python, str(HERE / "spark_iceberg" / "stream.py"), brokers, str(target), jars],
        env={name: value for name, value in os.environ.items() if not name.startswith(dropped)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ACCOUNTS ")]
    if not lines:
        raise SystemExit(done.stderr[-3000:])
    _, count, used = lines[0].split()
    check(int(count) == rows)
    return Outcome(units=rows, cpu_seconds=float(used))


def cpu_of(command: list[str], place: Path, until: Callable[[], bool] | None = None) -> float:
    """CPU seconds of a program, which is ended where `until` says that it is done."""
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place)
        while until is not None and not until():
            if process.poll() is not None:
                break
            time.sleep(0.5)
        if until is not None:
            process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if until is None and process.returncode:
        raise SystemExit((place / "log").read_text()[-3000:])
    return used.ru_utime + used.ru_stime


def count_of(name: str, options: dict[str, str]) -> int:
    """How many rows a table has by its newest snapshot."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    try:
        found: Any = load_catalog(name, **options).load_table("bench.json").current_snapshot()
    except NoSuchTableError:
        return 0
    return 0 if found is None else int(found.summary.additional_properties.get("total-records", 0))


def check(holds: bool) -> None:
    if not holds:
        raise SystemExit("landing: a table does not have every record once")


def classpath_of(name: str, place: Path) -> str:
    """The jars that a directory's pom.xml names, fetched by Maven."""
    pom, target = HERE / name / "pom.xml", place / "classpath"
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), goal, f"-Dmdep.outputFile={target}"], check=True)
    return target.read_text()


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"landing: {error}") from None
