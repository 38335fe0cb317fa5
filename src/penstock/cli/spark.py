"""``penstock spark``: shows the checkpoints of streaming queries, and writes settings for Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.outcome import put

if TYPE_CHECKING:
    from penstock.spark.handover import Checkpoint


@click.group("spark")
def command() -> None:
    """Show checkpoints of streaming queries, and Spark settings.

    \b
    Examples:
      penstock spark checkpoint /data/orders/checkpoint
      penstock spark checkpoint old --for-kafka new
      penstock spark settings > spark-defaults.conf
    """


@command.command("checkpoint")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--for-kafka",
    "copy",
    metavar="COPY",
    type=click.Path(path_type=Path),
    help="Write a copy from which Spark's Kafka connector finishes a first micro-batch.",
)
@click.option("-J", "--json", "as_json", is_flag=True, help="One line of JSON.")
def checkpoint(directory: Path, copy: Path | None, as_json: bool) -> None:
    """Show a query's checkpoint, and how another source resumes it."""
    # Modules of the source that need no Spark: a checkpoint is looked at on any machine.
    from penstock.spark.handover import copy_for_kafka, read_checkpoint

    found = copy_for_kafka(directory, copy) if copy is not None else read_checkpoint(directory)
    if as_json:
        put(json.dumps(_document(found)))
        return
    put(f"query {found.query_id or 'without an id'} in {found.path}")
    put(f"planned   {_number(found.planned)}")
    put(f"through   {_number(found.committed)}")
    for source in found.sources:
        put(f"source {source.name}")
        if source.end is None and source.begin is None:
            put("  of another kind, or without data")
        for topic, text in _by_topic(found, source.name):
            put(f"  {topic}: {text}")
    for line in found.advice():
        put(line)


@command.command("settings")
@click.option("--master", default="", metavar="MASTER", help="The master they are for, as in local[4].")
@click.option("-J", "--json", "as_json", is_flag=True, help="One line of JSON.")
def settings(master: str, as_json: bool) -> None:
    """Write Spark settings that make data sources in Python faster.

    They do not change the results of a query. The text is a file of properties, for Spark's
    conf/spark-defaults.conf and for spark-submit --properties-file. In a program,
    penstock.spark.configure(builder) sets the same.
    """
    from penstock.spark.runtime.session import faster_settings

    found = faster_settings(master, {})
    if as_json:
        put(json.dumps(found))
        return
    put("# What makes sources in Python faster and changes no answer of a query: penstock spark settings.")
    put("# What each setting gives: docs/reference/spark-options.md, The session.")
    width = max(map(len, found)) + 2
    for name, value in found.items():
        put(f"{name:{width}}{value}")


def _number(batch: int | None) -> str:
    return "nothing" if batch is None else f"micro-batch {batch}"


def _by_topic(found: Checkpoint, name: str) -> list[tuple[str, str]]:
    from penstock.spark.handover import partitions_by_topic

    source = next(source for source in found.sources if source.name == name)
    offsets = source.end if source.end is not None else source.begin or {}
    what = "ends" if source.end is not None else "begins"
    counts = partitions_by_topic(offsets)
    return [
        (
            topic,
            f"{count} partition{'s' if count > 1 else ''}, {what} at "
            + ", ".join(f"{tp.partition}:{offsets[tp]}" for tp in sorted(offsets) if tp.topic == topic),
        )
        for topic, count in counts.items()
    ]


def _document(found: Checkpoint) -> dict[str, object]:
    from penstock.spark.source.planning import offsets_to_json

    return {
        "query": found.query_id,
        "planned": found.planned,
        "through": found.committed,
        "sources": [
            {
                "name": source.name,
                "end": None if source.end is None else offsets_to_json(source.end),
                "begin": None if source.begin is None else offsets_to_json(source.begin),
            }
            for source in found.sources
        ],
        "advice": found.advice(),
    }
