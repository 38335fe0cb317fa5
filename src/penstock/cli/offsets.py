"""``penstock offsets``: shows offsets of partitions: the first, the next, or those at a time."""

from __future__ import annotations

import click

from penstock.cli import completion
from penstock.cli.group_reset import parse_topics
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.partitions import numbered
from penstock.cli.times import TIME_HELP, parse_time
from penstock.model import EARLIEST, LATEST

ENDS = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}


@click.command("offsets")
@bootstrap_option()
@property_option()
@click.argument("topics", metavar="TOPIC[:P,P]...", nargs=-1, required=True, shell_complete=completion.topics)
@click.option(
    "--at",
    "when",
    metavar="WHEN",
    default="latest",
    show_default=True,
    help=f"earliest, latest, or the first record at or after a time: {TIME_HELP}.",
)
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    help="With read_committed, latest is where the first open transaction begins.",
)
@json_option()
def command(
    bootstrap: str,
    properties: tuple[str, ...],
    topics: tuple[str, ...],
    when: str,
    isolation: str,
    as_json: bool,
) -> None:
    """Show offsets: the first, the next, or those at a time.

    \b
    Examples:
      penstock offsets delays
      penstock offsets delays --at '1h ago'
      penstock offsets delays:0,1 --at 2026-01-31T12:00:00Z --json
    """
    question = ENDS[when] if when in ENDS else parse_time(when, "--at")
    wanted = parse_topics(topics)
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        tps = numbered(admin, wanted)
        found = admin.list_offsets(dict.fromkeys(tps, question), isolation=isolation)
    rows = []
    for tp in tps:
        at = found[tp]
        timestamp = None if at is None or at.timestamp < 0 else at.timestamp
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "offset": None if at is None else at.offset,
                "timestamp_ms": timestamp,
            }
        )
    put_rows("offset", rows, as_json)
