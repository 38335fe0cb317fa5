"""Runs the demo from beginning to end; each step checks what an earlier run has already done."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc

from penstock.demo import accounts as books
from penstock.demo.dataset import read_departures, read_observations
from penstock.demo.embedded import HOST, EmbeddedBroker, leftover
from penstock.demo.output import Intent, Output, read_json, refuse_other_intent, write_json
from penstock.demo.picture import draw_year
from penstock.demo.pipeline import Pipeline, PipelineJob
from penstock.demo.plan import flights_plan, structured_departures, weather_plan
from penstock.demo.replay import TOPICS, DemoTopics
from penstock.demo.screen import Screen, program, shown
from penstock.spark.runtime.java import find_java
from penstock.spark.runtime.session import session
from penstock.spark.sinks.tables import ParquetTable

DEFAULT_PORT = 9092

SPARK_CONFIG = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""Settings for a JVM that runs only a minute: less JIT compilation and the serial garbage collector save a
quarter of its CPU time.
"""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command-line options of ``penstock demo``."""

    output: Path
    intent: Intent
    master: str
    port: int
    keep_running: bool


def run_demo(options: DemoOptions, screen: Screen | None = None) -> None:
    """Run the demo, resume it, or show its result again.

    Raises:
        PenstockError: a step failed; a repeated call resumes.
    """
    screen = screen or Screen()
    output = Output(options.output.absolute())
    with output.in_use():
        before = output.intent()
        if before is not None:
            refuse_other_intent(output, before, options.intent)
        if before is not None and output.accounts.exists():
            screen.say(f"This demo is finished; delete {shown(output.directory)} to run it again.\n")
            _show(options, output, screen)
            return
        find_java()
        if before is not None:
            screen.say("an earlier run did not come to its end: going on where it stopped")
        _run(options, output, screen, is_new=before is None)


def _run(options: DemoOptions, output: Output, screen: Screen, *, is_new: bool) -> None:
    """Replay the data, run the pipeline, and write accounts and picture."""
    names = {short: options.intent.topic(short) for short in TOPICS}
    departures = read_departures(options.intent.days)
    observations = read_observations(options.intent.days)
    flights, weather = flights_plan("flights", departures), weather_plan("weather", observations)
    with _cluster(options, output, screen) as (bootstrap_server, broker):
        topics = DemoTopics(bootstrap_server, names)
        if is_new and broker is None:
            topics.refuse_filled()
        output.remember(options.intent)
        topics.create()
        for plan in (weather, flights):
            with screen.replay(plan.topic, len(plan)) as bar:
                topics.write(plan, bar)
        _stream(
            options,
            output,
            screen,
            topics,
            len(flights),
            len(weather),
            pc.max(departures["time_hour"]).as_py(),
        )
        replayed = books.Replayed(
            departures=departures.num_rows,
            structured=structured_departures(departures.num_rows),
            departed=departures.num_rows - departures["dep_delay"].null_count,
            malformed=len(flights.planted),
            observations=observations.num_rows,
        )
        written = books.WrittenCounts(topics.count("dead-letters"), topics.count("delays"))
        cells = ParquetTable(output.delays).read()
        accounts = books.draw_up(replayed, books.sum_of_batches(output.triage), written, cells)
        draw_year(cells, output.picture)
        # Last: these say that the demo is finished.
        write_json(output.accounts, accounts)
        if broker is not None:
            broker.stays = options.keep_running
        _show(options, output, screen, broker)


@contextmanager
def stderr_in(path: Path) -> Iterator[None]:
    """Redirect the stderr of processes started in the block to a file.

    Java and Spark's Python workers write warnings that are of no use to the user.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _stream(
    options: DemoOptions,
    output: Output,
    screen: Screen,
    topics: DemoTopics,
    flights: int,
    weather: int,
    end: datetime,
) -> None:
    """Run the pipeline on Spark for all replayed events."""
    screen.say(f"starting Spark on {options.master}; its words go to {shown(output.spark_log)}")
    with stderr_in(output.spark_log):
        spark = session("penstock demo", options.master, config=SPARK_CONFIG)
    job = PipelineJob(output, topics.bootstrap_server, topics.names, flights, weather, end)
    try:
        with screen.stream({"delays": flights, "triage": flights + weather}) as show:
            Pipeline(spark, job, show).run(topics.write_mark)
    finally:
        spark.stop()


@contextmanager
def _cluster(
    options: DemoOptions, output: Output, screen: Screen
) -> Iterator[tuple[str, EmbeddedBroker | None]]:
    """Yield the address of the cluster to use, and the demo's own broker or None."""
    if options.intent.bootstrap_server is not None:
        screen.say(f"using the Kafka at {options.intent.bootstrap_server}")
        yield options.intent.bootstrap_server, None
        return
    output.remember(options.intent)
    with EmbeddedBroker.start(output, options.port) as broker:
        directory = shown(output.broker_directory)
        screen.say(f"broker: process {broker.pid} on {broker.bootstrap_server}, data in {directory}")
        yield broker.bootstrap_server, broker


def _show(options: DemoOptions, output: Output, screen: Screen, broker: EmbeddedBroker | None = None) -> None:
    """Print the counts, the airports, airlines and hours with the longest delays, and suggested commands."""
    screen.accounts(read_json(output.accounts))
    screen.worst(books.worst(ParquetTable(output.delays).read()))
    screen.files(output)
    address, advice = _whereabouts(options, output, broker)
    screen.commands(address, {short: options.intent.topic(short) for short in TOPICS}, advice)


def _whereabouts(options: DemoOptions, output: Output, broker: EmbeddedBroker | None) -> tuple[str, str]:
    """Return the address of the cluster that has the topics, and advice on how to reach it."""
    if options.intent.bootstrap_server is not None:
        return options.intent.bootstrap_server, f"The topics are on {options.intent.bootstrap_server}:"
    running = leftover(output) if broker is None or broker.stays else None
    if running is not None:
        return f"{HOST}:{running.port}", f"The broker still runs (stop it with: kill {running.pid}):"
    port = options.port or DEFAULT_PORT
    start = f"{program()} broker --data-dir {shlex.quote(shown(output.broker_directory))} --port {port}"
    return (
        f"{HOST}:{port}",
        f"The topics are on disk. Start a broker on them in another terminal, then look:\n  {start}",
    )
