"""The output of the demo: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.demo.output import Output
from penstock.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.sinks.progress import Progress as BatchProgress

PLAIN_STEP = 0.25
"""The fraction of all records after which a further progress line is printed, if output is not a terminal."""

PREPARING = "encoding the first events"
FIRST_BATCH = "Spark plans its first batch, which takes the longest"
NOTHING_LEFT = "read by an earlier run"
"""The text beside the progress bar of a query whose input was all read by an earlier run."""

WORDS = {
    "flights.replayed": "departures replayed",
    "flights.malformed": "malformed records mixed in",
    "flights.decoded": "departures decoded",
    "flights.structured": "of them in structured mode",
    "weather.replayed": "observations replayed",
    "weather.malformed": "malformed observations",
    "weather.decoded": "observations decoded",
    "dead_lettered": "dead letters",
    "delays.rows": "cells of airport, airline and hour",
    "delays.scheduled": "departures in them",
    "delays.departed": "of which left",
}


class Screen:
    """Prints lines and progress bars to standard output."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def say(self, text: str) -> None:
        """Print one line."""
        self._console.print(printable(text, "\n"), markup=False, soft_wrap=True)

    @contextmanager
    def replay(self, topic: str, total: int) -> Iterator[_Bar | _Lines]:
        """Show the progress of the replay of one topic."""
        if not self._console.is_terminal:
            yield _Lines(self, topic, total)
            return
        with Progress(
            TextColumn("replaying {task.description:<8}"),
            BarColumn(bar_width=40),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=self._console,
        ) as progress:
            # Without a total the bar moves to and fro: the first records take longest.
            name = escape(printable(topic))
            yield _Bar(progress, progress.add_task(name, total=None, said=PREPARING), total)

    @contextmanager
    def stream(self, totals: Mapping[str, int]) -> Iterator[Callable[[str, BatchProgress], None]]:
        """Show the progress of running queries; `totals` has the number of rows that each has to read."""
        if not self._console.is_terminal:
            yield lambda name, batch: self.say(
                f"{name}, batch {batch.batch_id}: {batch.rows:,} rows, "
                f"{batch.rows_per_second:,.0f} rows/s, lag {batch.lag or 0:,}"
            )
            return
        with Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=40),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=self._console,
        ) as bars:
            tasks: dict[str, TaskID] = {
                name: bars.add_task(escape(printable(name)), total=None, said=FIRST_BATCH) for name in totals
            }

            def show(name: str, batch: BatchProgress) -> None:
                if batch.rows > 1:  # one row is the mark, whose rate says nothing
                    total, lag = totals[name], batch.lag or 0
                    said = f"{total - lag:,} of {total:,} rows, {batch.rows_per_second:,.0f}/s, lag {lag:,}"
                    bars.update(tasks[name], total=total, completed=total - lag, said=said)

            yield show
            for name, total in totals.items():
                if bars.tasks[tasks[name]].total is None:  # an earlier run had read everything
                    bars.update(tasks[name], total=total, completed=total, said=NOTHING_LEFT)

    def accounts(self, accounts: Mapping[str, int]) -> None:
        """Print the counts of the run, one per line."""
        table = Table(title="The accounts", title_justify="left", show_header=False, box=None, padding=(0, 2))
        table.add_column(justify="right")
        table.add_column()
        for name, count in accounts.items():
            table.add_row(f"{count:,}", WORDS[name])
        self.say("")
        self._console.print(table)

    def worst(self, cells: pa.Table) -> None:
        """Print the cells (airport, airline and hour) with the longest delays, one per line."""
        table = Table(
            title=f"The {cells.num_rows} worst hours",
            caption="delay in minutes, °F, wind in mph, rain in inches, sight in miles",
            caption_justify="left",
            title_justify="left",
            box=None,
            padding=(0, 2, 0, 0),
            pad_edge=False,
        )
        for name in ("from", "with", "hour (UTC)"):
            table.add_column(name, no_wrap=True)
        for name in ("flights", "left", "delay", "°F", "wind", "rain", "sight"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in cells.to_pylist():
            table.add_row(
                escape(printable(row["origin"])),
                escape(printable(row["carrier"])),
                f"{row['hour']:%Y-%m-%d %H:%M}",
                *(_number(row[name]) for name in ("scheduled", "departed", "mean_dep_delay")),
                *(_number(row[name]) for name in ("temp", "wind_speed", "precip", "visib")),
            )
        self.say("")
        self._console.print(table)

    def files(self, output: Output) -> None:
        """Print the files in the demo's directory."""
        self.say(f"\nIn {shown(output.directory)}:")
        self.say("  delays/        the table, in Parquet")
        self.say("  year.png       the year as a picture")
        self.say("  accounts.json  the accounts")

    def commands(self, address: str, topics: Mapping[str, str], advice: str) -> None:
        """Print `advice`, then example commands for the demo's topics."""
        penstock = program()
        consume = f"{penstock} consume -b {address} --isolation read_committed"
        self.say(f"\n{advice}")
        self.say(f"  {penstock} topic list -b {address}")
        self.say(f"  {consume} -t {topics['delays']} -o -3 -e -f '%k  %s\\n'")
        self.say(f"  {consume} -t {topics['dead-letters']} -e -c 3 -J")


class _Bar:
    """A progress bar of the replay of one topic, on a terminal."""

    def __init__(self, progress: Progress, task: TaskID, total: int) -> None:
        self._progress = progress
        self._task = task
        self._total = total
        self._done = 0

    def start_at(self, count: int) -> None:
        self._done = count
        if count:
            self._show()

    def advance(self, count: int) -> None:
        self._done += count
        self._show()

    def _show(self) -> None:
        said = f"{self._done:,} of {self._total:,} records"
        self._progress.update(self._task, total=self._total, completed=self._done, said=said)


class _Lines:
    """Prints progress as plain lines: one whenever a further fraction PLAIN_STEP of the records is done."""

    def __init__(self, screen: Screen, topic: str, total: int) -> None:
        self._screen = screen
        self._topic = topic
        self._total = total
        self._done = 0
        self._shown = 0.0

    def start_at(self, count: int) -> None:
        self._done = count
        self._show()

    def advance(self, count: int) -> None:
        self._done += count
        if self._done == self._total or self._done / self._total >= self._shown + PLAIN_STEP:
            self._show()

    def _show(self) -> None:
        self._shown = self._done / self._total
        self._screen.say(f"replaying {self._topic}: {self._done:,} of {self._total:,} records")


def program() -> str:
    """Return the command that starts this program: its name if it is on the PATH, or else its path."""
    called = Path(sys.argv[0])
    found = shutil.which("penstock")
    if called.name != "penstock" or (found is not None and Path(found).samefile(called)):
        return "penstock"
    return shown(called.absolute())


def shown(path: Path) -> str:
    """Return a path as the user would type it: relative to the current directory if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")
