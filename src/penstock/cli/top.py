"""``penstock top``: shows rates, lag and sizes, live on a terminal, as lines elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Container, Iterator, Mapping, Sequence

import click

from penstock.cli import completion, waiting
from penstock.cli.interrupts import before_the_end
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import counted, is_terminal, put, readable
from penstock.cli.samples import ClusterSample, group_rows, take, topic_rows
from penstock.cli.times import DURATION_HELP, parse_duration
from penstock.clock import SystemClock
from penstock.errors import ConfigError

LEAST_MS = 100
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""Terminal codes: switch to the alternate screen and hide the cursor; switch back and show it."""


@click.command("top", short_help="Rates, lag and sizes, live.")
@bootstrap_option()
@property_option()
@click.option(
    "-d",
    "--every",
    default="2s",
    show_default=True,
    metavar="DURATION",
    help=f"How often to look: {DURATION_HELP}; seconds without unit.",
)
@click.option("-n", "--count", type=click.IntRange(1), help="End after so many looks.")
@click.option(
    "-t", "--topic", "topics", multiple=True, shell_complete=completion.topics, help="Only this topic."
)
@click.option(
    "-G", "--group", "groups", multiple=True, shell_complete=completion.groups, help="Only this group."
)
@click.option("--internal", is_flag=True, help="Topics of the cluster itself, too.")
@json_option()
def command(
    bootstrap: str,
    properties: tuple[str, ...],
    every: str,
    count: int | None,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    internal: bool,
    as_json: bool,
) -> None:
    """Show how fast topics grow, how far groups are behind, and how large topics are. Ctrl-C ends.

    On a terminal, a live view is updated; elsewhere, and with -J, lines are printed for each sample.

    \b
    Examples:
      penstock top
      penstock top -d 10s -t orders -G billing
      penstock top -n 2 --json
    """
    every_ms = parse_duration(every, "--every", 1000)
    if every_ms < LEAST_MS:
        raise ConfigError(f"--every {every}: at least {LEAST_MS} ms")
    from penstock.client import Admin

    clock = SystemClock()
    is_live = is_terminal() and not as_json
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        before: ClusterSample | None = None
        with screen(is_live):
            looks = 0
            while True:
                now = take(
                    admin,
                    clock.monotonic(),
                    clock.now_ms(),
                    topics=topics,
                    groups=groups,
                    internal=internal,
                )
                waiting.step_aside()
                _show(now, before, bootstrap, is_live=is_live, as_json=as_json)
                before, looks = now, looks + 1
                if looks == count:
                    return
                waiting.pause(every_ms / 1000, admin.describe_cluster)


@contextlib.contextmanager
def screen(is_live: bool) -> Iterator[None]:
    """Switch the terminal to its alternate screen while the block runs, if `is_live`."""
    if not is_live:
        yield
        return

    def leave() -> None:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()

    before_the_end(leave)
    sys.stdout.write(ENTER)
    try:
        yield
    finally:
        leave()


def _show(
    now: ClusterSample, before: ClusterSample | None, where: str, *, is_live: bool, as_json: bool
) -> None:
    if as_json:
        put_rows("topic rate", topic_rows(now, before), as_json)
        put_rows("group rate", group_rows(now, before), as_json)
        sys.stdout.flush()
        return
    draw(picture(now, before, where), is_live=is_live)


def draw(lines: list[str], *, is_live: bool) -> None:
    """Replace the lines on the terminal with `lines`, cut to its size; without a live view, print all."""
    columns, rows = shutil.get_terminal_size((80, 10_000 if not is_live else 24))
    if not is_live:
        for line in lines:
            put(line)
        put()
        sys.stdout.flush()
        return
    shown = [line[:columns] for line in lines]
    if len(shown) > rows - 1:
        shown = [*shown[: rows - 2], f"... {len(shown) - rows + 2} more lines"[:columns]]
    sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in shown) + "\x1b[J")
    sys.stdout.flush()


def picture(now: ClusterSample, before: ClusterSample | None, where: str) -> list[str]:
    """Return the lines that show one sample: a head, a table of topics, and a table of groups."""
    at = time.strftime("%H:%M:%S", time.gmtime(now.time_ms / 1000))
    topics, groups = topic_rows(now, before), group_rows(now, before)
    total = sum(float(str(row["records_per_s"] or 0)) for row in topics)
    head = f"{readable(where)} at {at} UTC: {counted(len(topics), 'topic')}, {counted(len(groups), 'group')}"
    if before is not None:
        head += f", {_amount(total)} records/s"
    lines = [head, ""]
    lines += table(topics, ("topic", "partitions", "records", "records/s", "bytes", "bytes/s"))
    if groups:
        lines += ["", *table(groups, ("group", "state", "partitions", "lag", "records/s"))]
    return lines


def table(
    rows: Sequence[Mapping[str, object]],
    head: Sequence[str],
    texts: Container[str] = ("topic", "group", "state"),
) -> list[str]:
    """Return the lines of a table; the columns in `texts` are aligned left, others right."""
    cells = [[_cell(name, row[name.replace("/s", "_per_s")]) for name in head] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if name in texts else cell.rjust(width)
            for name, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in [head, *cells]
    ]


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, (int, float)):
        return readable(str(value))
    return _amount(value, 1024) if name.startswith("bytes") else _amount(value)


def _amount(value: float, unit: int = 1000) -> str:
    """Return a number in at most six characters, as in 999, 12.3k, 4.0M; with unit 1024, as in 12.3Ki."""
    if abs(value) < (10_000 if unit == 1000 else unit):
        return f"{value:.0f}"
    for letter in "kMGTP":
        value /= unit
        if abs(value) < unit or letter == "P":
            break
    return f"{value:.1f}{letter}" if unit == 1000 else f"{value:.1f}{letter.upper()}i"
