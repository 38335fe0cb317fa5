"""``penstock follow``: shows the progress of a Spark query, live on a terminal, as lines elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli import waiting
from penstock.cli.options import client_settings, property_option
from penstock.cli.outcome import put
from penstock.cli.times import parse_duration
from penstock.errors import ConfigError, PenstockError
from penstock.model import LATEST, TopicPartition
from penstock.printable import printable
from penstock.protocol.uuid import uuid_from_text

if TYPE_CHECKING:
    from penstock.client import Admin
    from penstock.spark.monitoring.view import QueryView

ROWS_SHOWN_MAX = 20
"""The most partitions in the table on a terminal: those that are furthest behind."""


@click.command("follow")
@click.option(
    "-b",
    "--bootstrap-server",
    "--broker",
    "bootstrap",
    metavar="HOST:PORT",
    help="Where the cluster is, to ask it how far the query is behind now.",
)
@property_option()
@click.option(
    "--reports",
    "directory",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where a listener QueryReports of the session writes. Default: where it writes by default.",
)
@click.option("--once", is_flag=True, help="Show where the query stands now, and end.")
@click.option(
    "--every",
    "interval",
    metavar="TIME",
    default="1s",
    show_default=True,
    help="How often to look, as in 5s.",
)
@click.argument("query", metavar="QUERY")
def command(
    bootstrap: str | None,
    properties: tuple[str, ...],
    directory: Path | None,
    once: bool,
    interval: str,
    query: str,
) -> int:
    """Watch a streaming query of Spark.

    QUERY is its checkpoint, its name or its id. A checkpoint alone shows the query's offsets. With -b, the
    lag behind the brokers' ends is shown, too. A session with the listener penstock.spark.QueryReports adds
    names, rates and errors.

    \b
    Examples:
      penstock follow orders-state -b localhost:9092
      penstock follow "penstock[orders] on localhost:9092"
      penstock follow orders-state --once
    """
    from penstock.spark.monitoring.view import QueryWatch

    every_s = parse_duration(interval, "--every") / 1000
    if every_s <= 0:
        raise ConfigError("--every takes a time longer than nothing, such as 1s")
    with ExitStack() as stack:
        admin: Admin | None = None
        if bootstrap is not None:
            from penstock.client import Admin as BlockingAdmin

            settings = client_settings(properties)
            admin = stack.enter_context(BlockingAdmin(bootstrap_servers=bootstrap, config=settings))
        asks = (None, None) if admin is None else (partial(ends_of, admin), partial(topic_ids_of, admin))
        watch = QueryWatch(query, directory, *asks)
        screen = LiveBlock() if sys.stdout.isatty() and not once else Lines()
        while True:
            view = watch.look()
            screen.show(view)
            if view.error is not None:
                raise PenstockError(view.error)
            if once or not view.is_active:
                return 0
            waiting.pause(every_s, None if admin is None else admin.describe_cluster)


def ends_of(admin: Admin, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
    """Return a dict from partition to its end offset, or None where the cluster returns no offset."""
    found = admin.list_offsets(dict.fromkeys(tps, LATEST))
    return {tp: None if at is None else at.offset for tp, at in found.items()}


def topic_ids_of(admin: Admin, topics: Iterable[str]) -> dict[str, bytes]:
    """Return a dict from topic names to topic ids, without topics that have no id."""
    found = admin.describe_topics(list(topics))
    return {each.name: uuid_from_text(each.topic_id) for each in found if each.topic_id is not None}


class Lines:
    """Prints the state of a Spark query to a pipe or file: one line after each change."""

    def __init__(self) -> None:
        self._shown: tuple[object, ...] | None = None
        self._said: set[str] = set()

    def show(self, view: QueryView) -> None:
        state = view.batch_id, view.planned_id, view.lag, view.is_active
        for said in view.recreated:
            if said not in self._said:
                self._said.add(said)
                put(said)
        if state != self._shown:
            self._shown = state
            put(f"{moment(view.done_at)}  {summary(view)}  {view.name}")
            sys.stdout.flush()


class LiveBlock:
    """Prints the state of a Spark query on a terminal, as a block of lines that replaces the last one."""

    def __init__(self) -> None:
        self._height = 0

    def show(self, view: QueryView) -> None:
        columns, lines = terminal_size()
        said = [view.name, f"{moment(view.done_at)}  {summary(view)}", *view.recreated]
        block = [*said, *table(view, max(lines - len(said) - 3, 1))]
        text = "".join(f"{printable(line)[: columns - 1]}\n" for line in block)
        up = f"\x1b[{self._height}A" if self._height else ""
        waiting.step_aside()
        sys.stdout.write(f"{up}\r\x1b[J{text}")
        sys.stdout.flush()
        self._height = len(block)


def summary(view: QueryView) -> str:
    """Return one line with the batch, the rate and the lag of a query; missing values are left out."""
    words = ["no micro-batch is through yet" if view.batch_id is None else f"batch {view.batch_id}"]
    if view.planned_id is not None and view.planned_id != view.batch_id:
        words.append(f"batch {view.planned_id} runs")
    if view.rows_per_second is not None:
        words.append(f"{view.rows_per_second:.1f} rows/s")
    if view.lag is not None:
        words.append(f"{view.lag} behind")
    if not view.is_active:
        words.append("ended")
    return ", ".join(words)


def table(view: QueryView, rows_max: int) -> list[str]:
    """Return a line for each partition that is furthest behind: its offset, its end offset and its lag."""
    behind = {tp: end - view.offsets[tp] for tp, end in view.ends.items() if tp in view.offsets}
    chosen = sorted(view.offsets, key=lambda tp: (-behind.get(tp, 0), tp))[: min(ROWS_SHOWN_MAX, rows_max)]
    lines = []
    for tp in chosen:
        end = view.ends.get(tp)
        more = "" if end is None else f" of {end}, {max(behind[tp], 0)} behind"
        lines.append(f"  {tp}  {view.offsets[tp]}{more}")
    if len(view.offsets) > len(chosen):
        lines.append(f"  and {len(view.offsets) - len(chosen)} partitions more")
    return lines


def moment(seconds: float | None) -> str:
    """Return a time in seconds since 1970 as ISO 8601 text, or a dash for None."""
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def terminal_size() -> tuple[int, int]:
    """Return the columns and lines of the terminal at stdout, or 80 and 24 if unknown."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return 80, 24
    return size.columns or 80, size.lines or 24
