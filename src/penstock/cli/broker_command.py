"""The click command ``penstock broker``, made from the table of options in `penstock.broker.command_line`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from penstock.broker.command_line import OPTIONS, Option, run, settings_of
from penstock.cli.cluster import broker_row
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, pairs, property_option


def _click_option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if option.kind == "flag":
        return click.option(*option.spellings, option.name, is_flag=True, default=None, help=option.help)
    types: dict[str, click.ParamType[Any]] = {
        "text": click.STRING,
        "setting": click.STRING,
        "port": click.IntRange(0, 65535),
        "number": click.IntRange(1),
        "file": click.Path(exists=True, dir_okay=False),
    }
    return click.option(
        *option.spellings,
        option.name,
        metavar=option.metavar,
        type=types[option.kind],
        multiple=option.kind == "setting",
        help=option.help,
    )


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = _click_option(option)(command)
    return command


@click.group(
    "broker",
    short_help="Run a Kafka broker; list those of a cluster.",
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
)
@_options
@click.pass_context
def command(
    context: click.Context, /, config: tuple[str, ...], **values: str | int | bool | None
) -> int | None:
    """Run a Kafka broker until Ctrl-C or SIGTERM, or list a cluster's brokers.

    It serves Kafka's protocol to any Kafka client and prints one line when it is ready,
    with the address it listens on.

    \b
    Examples:
      penstock broker                            in memory, on 127.0.0.1:9092
      penstock broker --data-dir data --port 0   on disk, on any free port
      penstock broker --as-version 0.10.2        behave like Kafka 0.10.2
      penstock broker -o num.partitions=6 -o auto.create.topics.enable=false
      penstock broker --for-tests                for a test in any language
      penstock broker list -b kafka:9092         the brokers of a cluster
    """
    if context.invoked_subcommand is not None:
        if config or any(value is not None for value in values.values()):
            raise click.UsageError(f"options of a broker to run do not go with {context.invoked_subcommand}")
        return None
    given = {name: str(value) for name, value in values.items() if value is not None}
    return run(settings_of(given, pairs(config, "--config")))


@command.command("list")
@bootstrap_option()
@property_option()
@json_option()
def list_brokers(bootstrap: str, properties: tuple[str, ...], as_json: bool) -> None:
    """List the brokers of a cluster."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        cluster = admin.describe_cluster()
    put_rows("broker", [broker_row(node, cluster.controller) for node in cluster.nodes], as_json)
