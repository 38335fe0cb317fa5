"""``penstock broker`` for click, made from the table of options in `penstock.broker.command_line`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from penstock.broker.command_line import OPTIONS, Option, run, settings_of
from penstock.cli.options import pairs


def _click_option(option: Option) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    types: dict[str, click.ParamType[Any]] = {
        "text": click.STRING,
        "setting": click.STRING,
        "port": click.IntRange(0, 65535),
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


@click.command("broker")
@_options
def command(config: tuple[str, ...], **values: str | int | None) -> int:
    """Run a Kafka broker until Ctrl-C or SIGTERM.

    It serves Kafka's protocol to any Kafka client and prints one line when it is ready,
    with the address it listens on.

    \b
    Examples:
      penstock broker                              in memory, on 127.0.0.1:9092
      penstock broker --data-dir data --port 0     on disk, on any free port
      penstock broker --as-version 0.10.2          what a program of 2017 would meet
      penstock broker -o num.partitions=6 -o auto.create.topics.enable=false
    """
    given = {name: str(value) for name, value in values.items() if value is not None}
    return run(settings_of(given, pairs(config, "--config")))
