"""What the demo shows while it runs, and at the end: bars on a terminal, plain lines anywhere else."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.demo.output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.spark.pipeline import Progress as BatchProgress

PLAIN_STEP = 0.25
"""Where there is no bar to move, a line appears each time another such part is done."""

WORDS = {
    "flights.replayed": "departures replayed",
    "flights.malformed": "malformed records among them",
    "flights.decoded": "departures decoded",
    "weather.replayed": "observations replayed",
    "weather.malformed": "malformed observations",
    "weather.decoded": "observations decoded",
    "dead_lettered": "dead letters",
    "delays.rows": "cells of airport, airline and hour",
    "delays.scheduled": "departures in them",
    "delays.departed": "of which left",
}


class Screen:
    """Standard output, seen as lines and bars."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def replay(self, topic: str, total: int, already: int) -> Iterator[Callable[[int], None]]:
        """A bar for the records of one topic; the block calls what it gets with the number written since."""
        if self._console.is_terminal:
            with Progress(
                TextColumn("replaying {task.description:<8}"),
                BarColumn(bar_width=40),
                TextColumn("{task.completed:,.0f} of {task.total:,.0f} records"),
                TimeElapsedColumn(),
                console=self._console,
            ) as bar:
                task = bar.add_task(topic, total=total, completed=already)
                yield lambda count: bar.advance(task, count)
            return
        done, shown = already, already / total if total else 1.0

        def advance(count: int) -> None:
            nonlocal done, shown
            done += count
            if done == total or done / total >= shown + PLAIN_STEP:
                shown = done / total
                self.say(f"replaying {topic}: {done:,} of {total:,} records")

        yield advance

    @contextmanager
    def stream(self, totals: Mapping[str, int]) -> Iterator[Callable[[str, BatchProgress], None]]:
        """Bars for running queries, `totals` being the rows each has to read."""
        if not self._console.is_terminal:
            yield lambda name, batch: self.say(
                f"{name}, batch {batch.batch_id}: {batch.rows:,} rows, "
                f"{batch.rows_per_second:,.0f} rows/s, lag {batch.lag or 0:,}"
            )
            return
        with Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=40),
            TextColumn(
                "{task.completed:,.0f} of {task.total:,.0f} rows, {task.fields[rate]:,.0f}/s, "
                "lag {task.fields[lag]:,}"
            ),
            TimeElapsedColumn(),
            console=self._console,
        ) as bars:
            tasks: dict[str, TaskID] = {
                name: bars.add_task(name, total=total, rate=0.0, lag=total) for name, total in totals.items()
            }

            def show(name: str, batch: BatchProgress) -> None:
                if batch.rows:
                    lag = batch.lag or 0
                    bars.update(
                        tasks[name], completed=totals[name] - lag, rate=batch.rows_per_second, lag=lag
                    )

            yield show

    def accounts(self, accounts: Mapping[str, int]) -> None:
        """The accounts, one figure a line."""
        table = Table(title="The accounts", title_justify="left", show_header=False, box=None, padding=(0, 2))
        table.add_column(justify="right")
        table.add_column()
        for name, count in accounts.items():
            table.add_row(f"{count:,}", WORDS[name])
        self._console.print(table)

    def worst(self, cells: pa.Table) -> None:
        """The worst cells, one a line."""
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
                row["origin"],
                row["carrier"],
                f"{row['hour']:%Y-%m-%d %H:%M}",
                *(_number(row[name]) for name in ("scheduled", "departed", "mean_dep_delay")),
                *(_number(row[name]) for name in ("temp", "wind_speed", "precip", "visib")),
            )
        self._console.print(table)

    def hints(self, output: Output, topics: Mapping[str, str], address: str, start: str | None) -> None:
        """Commands to try. `start` is the one that brings the broker back, None where it still runs."""
        directory = shlex.quote(str(output.directory))
        self.say("\nOn disk:")
        self.say(f"  {directory}/delays         the table, Parquet")
        self.say(f"  {directory}/year.png       the year as a picture")
        self.say(f"  {directory}/accounts.json  the accounts")
        self.say(
            "\nThe topics are in the broker's log; bring it back with:"
            if start
            else "\nThe broker still runs:"
        )
        if start:
            self.say(f"  {start}")
            self.say("and then, in another terminal:")
        self.say(f"  penstock topic list -b {address}")
        self.say(f"  penstock consume -b {address} -t {topics['delays']} -o -3 -e -f '%k  %s\\n'")
        self.say(f"  penstock consume -b {address} -t {topics['dead-letters']} -e -c 3 -J")


def _number(value: Any) -> str:
    return "" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")
