"""``penstock demo``: runs a whole pipeline, from broker through Spark to table, on real data."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from functools import cache
from pathlib import Path

import click

from penstock.cli.interrupts import before_the_end
from penstock.errors import MissingDependencyError


@click.command("demo", short_help="Replay a year of flights through a broker and Spark.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("penstock-demo"),
    show_default=True,
    help="Directory for table, accounts, picture and log.",
)
@click.option(
    "-b",
    "--bootstrap-server",
    metavar="HOST:PORT",
    help="Use this Kafka instead of a broker of the demo's own.",
)
@click.option(
    "--master", default="local[*]", show_default=True, help="Where Spark runs, as in spark://HOST:PORT."
)
@click.option(
    "--limit", type=click.IntRange(1, 365), default=365, metavar="DAYS", help="Only the first days of 2013."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port of the demo's broker; 0 takes a free one."
)
@click.option(
    "--topic-prefix", default="", metavar="TEXT", help="Put this in front of the names of the topics."
)
@click.option("--keep-running", is_flag=True, help="Leave the demo's broker running at the end.")
def command(
    output: Path,
    bootstrap_server: str | None,
    master: str,
    limit: int,
    port: int,
    topic_prefix: str,
    keep_running: bool,
) -> None:
    """Replay a year of flights and weather through a broker and Spark, and check the result.

    336,776 departures from New York's airports and 26,115 weather observations of 2013 become
    CloudEvents in two topics, 200 malformed records among them. Spark computes the mean delay of every
    airport, airline and hour, with the weather there, and writes it to a Parquet table and a topic; records
    that are not valid events go to a topic of their own. A run that is interrupted at any moment resumes
    when the same command is started again.

    \b
    Examples:
      penstock demo                                 about two minutes on two cores
      penstock demo --limit 14 --output two-weeks
      penstock demo --bootstrap-server kafka:9092 --master spark://spark:7077
    """
    try:
        from penstock.demo.output import Intent
        from penstock.demo.run import DemoOptions, run_demo
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("penstock"):
            raise
        raise MissingDependencyError(f"the demo needs {error.name}: pip install 'penstock[demo]'") from None
    before_the_end(end_interrupted)
    try:
        run_demo(
            DemoOptions(output, Intent(limit, bootstrap_server, topic_prefix), master, port, keep_running)
        )
    except KeyboardInterrupt:
        end_interrupted()
        raise


@cache  # once: the command's own end and the one by force may both come to it
def end_interrupted() -> None:
    """End the demo's processes, and print that the same command resumes the run."""
    end_children()
    # Not through `sys.stdout`, which the bars have replaced, nor stderr, which may be Spark's at this moment.
    with contextlib.suppress(OSError):
        os.write(1, b"\ninterrupted: the same command again goes on where this run stopped\n")


def end_children() -> None:
    """Send SIGTERM to the demo's broker and Java processes, without waiting for them.

    Java processes need the signal, because one that is just starting does not notice the end of its parent.
    """
    with contextlib.suppress(OSError):  # no such program
        found = subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False)
        for number in found.stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGTERM)
