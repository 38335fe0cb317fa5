"""``penstock logdir``: the data directories of brokers, and the sizes of the partitions in them."""

from __future__ import annotations

import click

from penstock.cli import completion
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.errors import ConfigError


@click.group("logdir")
def command() -> None:
    """List data directories of brokers, and sizes of partitions.

    \b
    Examples:
      penstock logdir list
      penstock logdir sizes
      penstock logdir sizes delays --json
    """


_node = click.option("--node", "broker", type=click.IntRange(0, 2**31 - 1), help="Only of this broker.")


@command.command("list")
@bootstrap_option()
@property_option()
@_node
@json_option()
def list_directories(bootstrap: str, properties: tuple[str, ...], broker: int | None, as_json: bool) -> None:
    """List directories, the bytes in use, and the free space."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        found = admin.describe_log_dirs(broker)
    rows = [
        {
            "broker": one.broker,
            "path": one.path,
            "partitions": len(one.partitions),
            "bytes": sum(one.partitions.values()),
            "total_bytes": one.total_bytes if one.total_bytes >= 0 else None,
            "usable_bytes": one.usable_bytes if one.usable_bytes >= 0 else None,
        }
        for one in found
    ]
    put_rows("logdir", rows, as_json)


@command.command("sizes")
@bootstrap_option()
@property_option()
@_node
@click.argument("topics", metavar="[TOPIC]...", nargs=-1, shell_complete=completion.topics)
@json_option()
def sizes(
    bootstrap: str, properties: tuple[str, ...], broker: int | None, topics: tuple[str, ...], as_json: bool
) -> None:
    """List sizes of partitions of all or some topics, largest first."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        found = admin.describe_log_dirs(broker)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "broker": one.broker,
            "path": one.path,
            "bytes": size,
        }
        for one in found
        for tp, size in one.partitions.items()
        if not topics or tp.topic in topics
    ]
    missing = [name for name in topics if all(row["topic"] != name for row in rows)]
    if missing:
        raise ConfigError(f"no broker has a partition of topic {missing[0]!r}")
    rows.sort(key=lambda row: (-int(str(row["bytes"])), str(row["topic"]), int(str(row["partition"]))))
    put_rows("partition size", rows, as_json)
