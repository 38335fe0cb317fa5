"""Measure the CPU for landing a topic of JSON in an Iceberg table.

The contestants are `penstock land`, Kafka Connect with Iceberg's own sink, and a Spark stream with the Kafka
connector. All write zstd to the same store.

CPU is that of the landing process from its start to its end. Connect is killed once its table has every
record. Maven fetches the jars. At the end the small files of a table are compacted, and their sizes printed.

    python benchmarks/landing.py [--quick] [--rounds N]

With PENSTOCK_BENCH_STORE=seaweedfs the tables are in SeaweedFS, an S3 store, instead of on a local disk. This
needs Go, which builds the store once in some minutes. The CPU of the store is not counted; catalogs and
Spark's checkpoint stay on the local disk.

PENSTOCK_BENCH_CONNECT=no leaves Connect out. PENSTOCK_BENCH_SPARK is the path of a Python with PySpark 4.1,
for which Iceberg has a jar; without the variable, Spark is left out. PENSTOCK_BENCH_TOPICS is the number of
small topics that one process lands (0 leaves them out), PENSTOCK_BENCH_ROWS the number of records.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from broker_process import running_broker
from harness import Contestant, Outcome, arguments, measure, print_table, report
from landing_stores import STORES, Store
from penstock import Admin, write_topic
from penstock.errors import PenstockError
from spark_landing import json_rows

HERE = Path(__file__).parent
PARTITIONS = 4
COMMIT_MS = 5_000
"""The sink's commit interval in ms.

A run ends with the first commit after which the table has every record.
"""

SINK_S_MAX = 600
"""Seconds that the sink may take until its table has every record."""

FILE_MIB = 4
"""The target file size in MiB when small files are compacted."""


def main() -> None:
    options = arguments("a topic of JSON into a table of Iceberg", rounds=3)
    rows = 200_000 if options.quick else int(os.environ.get("PENSTOCK_BENCH_ROWS", 1_000_000))
    topics = int(os.environ.get("PENSTOCK_BENCH_TOPICS", 1000))
    chosen = os.environ.get("PENSTOCK_BENCH_STORE", "disk")
    if chosen not in STORES:
        raise SystemExit(f"landing: PENSTOCK_BENCH_STORE is {chosen!r}; it is one of {', '.join(STORES)}")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory,
        running_broker() as brokers,
        STORES[chosen](Path(directory)) as store,
    ):
        with Admin(bootstrap_servers=brokers) as admin:
            admin.create_topic("json", partitions=PARTITIONS)
            admin.create_topic("control-iceberg", partitions=1)
            for number in range(topics):
                admin.create_topic(f"many-{number}", partitions=1)
        write_topic(
            (json_rows(start, min(50_000, rows - start)) for start in range(0, rows, 50_000)), "json", brokers
        )
        place = Path(directory)
        contestants = [Contestant("penstock land", partial(landed, brokers, place, rows, store))]
        if os.environ.get("PENSTOCK_BENCH_CONNECT") != "no":
            classpath = classpath_of("iceberg_sink", place)
            contestants.append(
                Contestant("Connect, Iceberg's sink", partial(sunk, brokers, place, rows, store, classpath))
            )
        if python := os.environ.get("PENSTOCK_BENCH_SPARK"):
            jars = classpath_of("spark_iceberg", place).replace(":", ",")
            contestants.append(
                Contestant(
                    "Spark, JVM connector", partial(streamed, brokers, place, rows, store, python, jars)
                )
            )
        measure(contestants, options.rounds, warm_up=False)
        report(f"JSON to Iceberg, {store.title}, {rows:,} records", contestants)
        show_ratios(contestants, rows)
        show_sizes(brokers, place, rows, store)
        if topics:
            for number in range(topics):
                write_topic(json_rows(number, rows // topics), f"many-{number}", brokers)
            many = [
                Contestant(
                    f"penstock land, {topics:,} topics", partial(many_landed, brokers, place, rows, store)
                )
            ]
            measure(many, options.rounds, warm_up=False)
            report(f"JSON to {topics:,} tables of Parquet, {store.title}, {rows:,} records in all", many)


def landed(brokers: str, place: Path, rows: int, store: Store) -> Outcome:
    options = dict(store.new_catalog().python)
    done = cpu_of(["--to", "iceberg://c/bench.json", *landing_words(brokers, options), "json"], place)
    check(count_of("c", options) == rows)
    return Outcome(units=rows, cpu_seconds=done)


def many_landed(brokers: str, place: Path, rows: int, store: Store) -> Outcome:
    words = [
        "--to",
        f"{store.new_place()}/{{topic}}",
        *landing_words(brokers, store.objects),
        "many-*",
        "--json",
    ]
    done = cpu_of(words, place)
    last = {}
    for line in (place / "log").read_text().splitlines():
        if line.startswith("{"):
            row = json.loads(line)
            last[row["topic"]] = row["rows"]
    check(sum(last.values()) == rows // len(last) * len(last))
    return Outcome(units=rows, cpu_seconds=done)


def landing_words(brokers: str, options: Mapping[str, str]) -> list[str]:
    return [
        "-b",
        brokers,
        "--format",
        "json",
        *(f"--store={name}={value}" for name, value in options.items()),
    ]


def show_sizes(brokers: str, place: Path, rows: int, store: Store) -> None:
    """Land with frequent commits, compact the files, and print their sizes before and after."""
    options = dict(store.new_catalog().python)
    words = ["--to", "iceberg://c/bench.json", *landing_words(brokers, options), "json"]
    size = ["--file-size", str(FILE_MIB), "--small-size", str(FILE_MIB)]
    cpu_of([*words, "--every", "50ms"], place)
    before = file_sizes("c", options)
    used = cpu_of([*words, "--tidy", *size, "--keep", "0s"], place)
    after = file_sizes("c", options)
    check(count_of("c", options) == rows)
    print_table(
        f"files of a table of Iceberg, {store.title}, those below {FILE_MIB} MiB put together into such",
        ("", "files", "smallest KiB", "median KiB", "largest KiB", "all MB", "CPU s"),
        [
            ("as landed, a commit every 50 ms", *shown(before), ""),
            (f"penstock land --tidy --file-size {FILE_MIB}", *shown(after), f"{used:.1f}"),
        ],
    )


def shown(sizes: list[int]) -> tuple[str, ...]:
    kib = [f"{size / 1024:,.0f}" for size in (min(sizes), statistics.median(sizes), max(sizes))]
    return (f"{len(sizes):,}", *kib, f"{sum(sizes) / 1e6:.1f}")


def file_sizes(name: str, options: dict[str, str]) -> list[int]:
    from pyiceberg.catalog import load_catalog

    tasks = load_catalog(name, **options).load_table("bench.json").scan().plan_files()
    return [task.file.file_size_in_bytes for task in tasks]


def show_ratios(contestants: list[Contestant], rows: int) -> None:
    """Print the CPU of `penstock land` as a fraction of each other contestant's, and its rate."""
    own = contestants[0].median_cpu_seconds
    shares = [
        (each.name, f"{each.median_cpu_seconds:.1f}", f"{own / each.median_cpu_seconds:.2f}")
        for each in contestants
    ]
    title = f"CPU of one landing; `penstock land` takes {rows / own:,.0f} records a second of CPU"
    print_table(title, ("", "CPU s", "share that penstock land takes"), shares)


def sunk(brokers: str, place: Path, rows: int, store: Store, classpath: str) -> Outcome:
    catalog = store.new_catalog()
    target = place / "connect"
    target.mkdir(exist_ok=True)
    (target / "offsets").unlink(missing_ok=True)
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
        **{f"iceberg.catalog.{name}": value for name, value in catalog.java.items()},
        "iceberg.control.commit.interval-ms": COMMIT_MS,
    }
    files = []
    for name, settings in (("worker", worker), ("sink", sink)):
        files.append(target / f"{name}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [
        *("java", "-Xmx1G", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"),
        *("-cp", classpath),
        *("org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)),
    ]
    options = dict(catalog.python)
    done = cpu_of_program(command, target, until=lambda: count_of("c", options) >= rows)
    check(count_of("c", options) == rows)
    return Outcome(units=rows, cpu_seconds=done)


def streamed(brokers: str, place: Path, rows: int, store: Store, python: str, jars: str) -> Outcome:
    catalog = json.dumps(dict(store.new_catalog().java))
    dropped = ("PYTHONPATH", "SPARK_", "PYSPARK_")
    with tempfile.TemporaryDirectory(dir=place) as checkpoint:
        done = subprocess.run(
            [python, str(HERE / "spark_iceberg" / "stream.py"), brokers, checkpoint, jars, catalog],
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


def cpu_of(words: list[str], place: Path) -> float:
    """Return the CPU seconds of `penstock land` with these arguments."""
    return cpu_of_program([sys.executable, "-m", "penstock", "land", *words], place)


def cpu_of_program(command: list[str], place: Path, until: Callable[[], bool] | None = None) -> float:
    """Return the CPU seconds of a program.

    If `until` is given, the program is killed as soon as that function returns True.
    """
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place)
        last = time.monotonic() + SINK_S_MAX
        while until is not None and not until():
            if process.poll() is not None or time.monotonic() > last:
                break
            time.sleep(0.5)
        if until is not None:
            process.kill()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode if until is None else not until():
        raise SystemExit((place / "log").read_text()[-3000:])
    return used.ru_utime + used.ru_stime


def count_of(name: str, options: dict[str, str]) -> int:
    """Return the number of rows in a table's newest snapshot; 0 if there is no table."""
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
    """Return the class path of a directory's pom.xml, whose jars Maven fetches."""
    pom, target = HERE / name / "pom.xml", place / "classpath"
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
    subprocess.run(["mvn", "-q", "-B", "-f", str(pom), goal, f"-Dmdep.outputFile={target}"], check=True)
    return target.read_text()


if __name__ == "__main__":
    try:
        main()
    except PenstockError as error:
        raise SystemExit(f"landing: {error}") from None
