"""``penstock broker`` as click sees it: help and error messages for the table in `penstock.cli.broker`."""

from __future__ import annotations

import click

from penstock.cli.broker import PORTS, Settings, run
from penstock.cli.options import pairs


@click.command("broker")
@click.option(
    "-d", "--data-dir", metavar="DIR", help="Keep the log here, in Kafka's own layout. Without it: in memory."
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on, 127.0.0.1 by default.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on, 9092 by default; 0 takes a free one and says which.",
)
@click.option(
    "-o",
    "--config",
    "--override",
    metavar="NAME=VALUE",
    multiple=True,
    help="A broker setting under Kafka's name, as in server.properties. May be repeated.",
)
@click.option(
    "--as-version",
    metavar="RELEASE",
    help="Behave as this release of Apache Kafka: 0.8.2, 0.9, 0.10.2, 0.11, 1.1, 2.8, 3.9, 4.0 ...",
)
@click.option(
    "--config-file",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A server.properties as Apache Kafka has it; other options go before it.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics for Prometheus on this port of 127.0.0.1.",
)
@click.option(
    "--listen-0.7",
    "listen_07",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Speak Kafka 0.7 on this port as well, with topics of its own.",
)
def command(
    data_dir: str | None,
    host: str | None,
    port: int | None,
    config: tuple[str, ...],
    as_version: str | None,
    config_file: str | None,
    metrics_port: int | None,
    listen_07: int | None,
) -> int:
    """Run a Kafka broker until Ctrl-C or SIGTERM.

    It speaks Kafka's protocol to any Kafka client and prints one line when it is ready,
    with the address it listens on.

    \b
    Examples:
      penstock broker                              in memory, on 127.0.0.1:9092
      penstock broker --data-dir data --port 0     on disk, on any free port
      penstock broker --as-version 0.10.2          what a program of 2017 would meet
      penstock broker -o num.partitions=6 -o auto.create.topics.enable=false
    """
    settings = dict(pairs(config, "--config"))
    for name, port_of in ((PORTS["metrics_port"], metrics_port), (PORTS["listen_07"], listen_07)):
        if port_of is not None:
            settings[name] = str(port_of)
    return run(Settings(data_dir, host, port, settings, as_version, config_file))
