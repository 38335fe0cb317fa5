"""``penstock perf``: measures how fast records are written to and read from a cluster, with percentiles."""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import click

from penstock.cli import completion, waiting
from penstock.cli.doing import is_quiet, quiet_option
from penstock.cli.listing import json_option, put_json
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import note, put
from penstock.cli.partitions import partitions_of
from penstock.cli.produce import CODECS
from penstock.cli.times import DURATION_HELP, parse_duration
from penstock.errors import ConfigError, KafkaError, PenstockError

if TYPE_CHECKING:
    from penstock.client import Delivery

TOPIC = "penstock-perf"
REPORT_EVERY_S = 1.0
POLL_MS = 200
VALUES = 64
"""The number of different values that are sent in turn: creating one per record would distort the result."""


@click.group("perf", short_help="Measure how fast records go in and out.")
def command() -> None:
    """Measure how fast records are written and read through this client.

    \b
    Examples:
      penstock perf produce -n 500000 --size 1000
      penstock perf produce --rate 1000 --for 30s      latency at a load
      penstock perf produce -n 500000 --keep           for the next line
      penstock perf consume -n 500000
      penstock perf consume --new --for 30s            age of records that arrive
    """


_topic = click.option(
    "-t", "--topic", default=TOPIC, show_default=True, shell_complete=completion.topics, help="The topic."
)
_count = click.option("-n", "--count", type=click.IntRange(1), help="End after so many records.")
_for = click.option("--for", "duration", metavar="DURATION", help=f"End after so long: {DURATION_HELP}.")


@command.command("produce", short_help="Send records; measure rate and acknowledgements.")
@bootstrap_option()
@property_option()
@_topic
@_count
@_for
@click.option(
    "--size",
    type=click.IntRange(0, 1 << 30),
    default=100,
    show_default=True,
    help="Bytes of each value; random, so that they do not compress.",
)
@click.option("--rate", type=click.IntRange(1), help="Records a second at most; as many as go without it.")
@click.option(
    "-z", "--compression", "codec", type=click.Choice(CODECS), default="none", help="Compression codec."
)
@click.option("--keep", is_flag=True, help="Keep the topic that was created for this, for perf consume.")
@quiet_option()
@json_option()
def perf_produce(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str,
    count: int | None,
    duration: str | None,
    size: int,
    rate: int | None,
    codec: str,
    keep: bool,
    as_json: bool,
) -> None:
    """Send records, and measure the time from each call to its acknowledgement.

    Without -n and --for: 100,000 records. The topic penstock-perf is created if it does not exist, and then
    removed at the end, unless --keep is given; an existing topic stays.
    """
    duration_s = _duration_s(duration)
    if count is None and duration_s is None:
        count = 100_000
    config = {"compression.type": codec, **client_settings(properties)}
    waiting.idle(f"looking for topic {topic}")
    with _existing(topic, bootstrap, properties, keep):
        _produce(bootstrap, topic, count, duration_s, size, rate, config, as_json)


def _produce(
    bootstrap: str,
    topic: str,
    count: int | None,
    duration_s: float | None,
    size: int,
    rate: int | None,
    config: Mapping[str, str],
    as_json: bool,
) -> None:
    from penstock.client import Producer

    values = [os.urandom(size) for _ in range(VALUES)]
    meter = Meter("produce", as_json)
    failures: list[PenstockError] = []

    def noting(begin: float) -> Callable[[Delivery], None]:
        def note(delivery: Delivery) -> None:
            error = delivery.exception()
            if error is None:
                meter.add(1, size, [(time.monotonic() - begin) * 1000])
            else:
                failures.append(error)

        return note

    with Producer(bootstrap_servers=bootstrap, config=config) as producer:
        producer.send(topic, b"").result()  # connections and codecs are there before the clock starts
        meter.start()
        begin = meter.began_s
        sent = 0
        while not failures and (count is None or sent < count):
            now = time.monotonic()
            if duration_s is not None and now - begin >= duration_s:
                break
            if rate is not None and (early_s := begin + sent / rate - now) > 0:
                time.sleep(min(early_s, 0.1))
                meter.report_if_due()
                continue
            producer.send(topic, values[sent % VALUES]).add_done_callback(noting(time.monotonic()))
            sent += 1
            if not sent & 255:
                meter.report_if_due()
        producer.flush()
    if failures:
        raise failures[0]
    meter.finish()


@command.command("consume", short_help="Read records; measure the rate, or their age.")
@bootstrap_option()
@property_option()
@_topic
@_count
@_for
@click.option("--new", "only_new", is_flag=True, help="Only what comes from now on, and its age.")
@json_option()
def perf_consume(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str,
    count: int | None,
    duration: str | None,
    only_new: bool,
    as_json: bool,
) -> None:
    """Read records from the beginning to the end, and measure the rate.

    With --new, also the age of records when they arrive: the time since their timestamps, by the clocks of
    both machines.
    """
    duration_s = _duration_s(duration)
    if only_new and count is None and duration_s is None:
        raise ConfigError("--new has no end of its own: add -n or --for")
    config = client_settings(properties)
    from penstock.client import Consumer
    from penstock.protocol.error_codes import ErrorCode

    waiting.idle(f"looking for topic {topic}")
    try:
        tps = partitions_of(bootstrap, topic, (), config)
    except KafkaError as error:
        if topic == TOPIC and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ConfigError(f"{error}; penstock perf produce --keep makes and fills it") from None
        raise
    meter = Meter("consume", as_json)
    with Consumer(bootstrap_servers=bootstrap, config=config) as consumer:
        ends = consumer.end_offsets(tps)
        consumer.assign(tps)
        if only_new:
            consumer.seek_to_end()
        else:
            consumer.seek_to_beginning()
        waiting.idle(f"waiting for messages of {topic}; Ctrl-C ends")
        meter.start()
        left = -1 if count is None else count
        while left != 0:
            if duration_s is not None and time.monotonic() - meter.began_s >= duration_s:
                break
            records = consumer.poll(timeout_ms=POLL_MS, max_records=10_000 if left < 0 else min(left, 10_000))
            now_ms = time.time() * 1000
            size = sum(len(one.key or b"") + len(one.value or b"") for one in records)
            meter.add(len(records), size, [now_ms - one.timestamp for one in records] if only_new else ())
            meter.report_if_due()
            left -= len(records)
            if not only_new and not records and all(consumer.position(tp) >= ends[tp] for tp in tps):
                break
    meter.finish()


class Meter:
    """Counts records and bytes, collects latencies in ms, and prints results every second and at the end."""

    def __init__(self, what: str, as_json: bool) -> None:
        self._what, self._as_json = what, as_json
        self._lock = Lock()
        self._all_ms = array("f")
        self._since = (0, 0, 0)
        self._records = self._bytes = 0
        self.began_s = self._reported_s = self._ended_s = 0.0

    def start(self) -> None:
        """Start measuring now."""
        self.began_s = self._reported_s = self._ended_s = time.monotonic()

    def add(self, records: int, size: int, latencies_ms: Sequence[float]) -> None:
        """Count records that were just received or acknowledged."""
        if records:
            with self._lock:
                self._records += records
                self._bytes += size
                self._all_ms.extend(latencies_ms)
                self._ended_s = time.monotonic()

    def report_if_due(self) -> None:
        """Print the results since the last report, if that was at least a second ago."""
        now = time.monotonic()
        if now - self._reported_s < REPORT_EVERY_S:
            return
        with self._lock:
            records, size, kept = self._since
            latencies = self._all_ms[kept:]
            row = self._row(
                self._records - records, self._bytes - size, now - self._reported_s, latencies, is_total=False
            )
            self._since = (self._records, self._bytes, len(self._all_ms))
        self._reported_s = now
        self._put(row)

    def finish(self) -> None:
        """Print the results of the whole measurement, up to the last record."""
        took_s = max(self._ended_s - self.began_s, 1e-6)
        self._put(self._row(self._records, self._bytes, took_s, self._all_ms, is_total=True))

    def _row(
        self, records: int, size: int, seconds: float, latencies: Sequence[float], *, is_total: bool
    ) -> dict[str, object]:
        ordered = sorted(latencies)
        return {
            "what": self._what,
            "records": records,
            "bytes": size,
            "seconds": round(seconds, 3),
            "records_per_s": round(records / seconds, 1),
            "bytes_per_s": round(size / seconds, 1),
            "p50_ms": percentile(ordered, 50),
            "p95_ms": percentile(ordered, 95),
            "p99_ms": percentile(ordered, 99),
            "max_ms": percentile(ordered, 100),
            "is_total": is_total,
        }

    def _put(self, row: dict[str, object]) -> None:
        waiting.step_aside()
        if self._as_json:
            put_json(row)
            sys.stdout.flush()
            return
        mib = float(str(row["bytes_per_s"])) / (1 << 20)
        line = f"{row['records']:,} records, {row['records_per_s']:,.0f} records/s, {mib:,.2f} MiB/s"
        if row["p50_ms"] is not None:
            kind = "acknowledged after" if self._what == "produce" else "age"
            line += f", {kind} p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms, p99 {row['p99_ms']} ms"
            line += f", longest {row['max_ms']} ms"
        text = f"altogether in {row['seconds']} s: {line}" if row["is_total"] else line
        put(text)
        sys.stdout.flush()


def percentile(ordered: Sequence[float], per_cent: int) -> float | None:
    """Return a percentile of sorted values: the smallest value that `per_cent` per cent do not exceed.

    It is None if there are no values.
    """
    if not ordered:
        return None
    return round(ordered[max(0, -(-len(ordered) * per_cent // 100) - 1)], 3)


def _duration_s(word: str | None) -> float | None:
    return None if word is None else parse_duration(word, "--for", 1000) / 1000


@contextmanager
def _existing(topic: str, bootstrap: str, properties: tuple[str, ...], keep: bool) -> Iterator[None]:
    """Create the topic penstock-perf if it is missing, and remove it after the block unless `keep` is set.

    Other topics must exist, and stay. An interrupt ends the block as well.
    """
    if topic != TOPIC:
        yield
        return
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        is_new = topic not in admin.list_topics()
        if is_new:
            admin.create_topic(topic)
        try:
            yield
        finally:
            if is_new and not keep:
                admin.delete_topics([topic])
            state = "removed" if is_new and not keep else "kept"
            advice = "" if state == "removed" else f"; penstock topic delete {topic} removes it"
            if not is_quiet():
                note(f"% topic {topic} is {state}{advice}")
