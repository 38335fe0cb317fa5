"""``penstock gateway``: lets clients of any release use a cluster, through ports of this machine."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from penstock.cli import waiting
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import client_settings, property_option, settings_in_force
from penstock.cli.outcome import counted, is_terminal, put
from penstock.cli.settings import BOOTSTRAP, meaning
from penstock.cli.times import DURATION_HELP, parse_duration
from penstock.cli.top import draw, screen, table
from penstock.common.logs import logger_named
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.gateway import Gateway
    from penstock.gateway.counters import ClientCount

logger = logger_named("penstock.gateway")

LOGGED = ("requests", "connections")

LEAST_MS = 100


@click.command("gateway", short_help="Serve a cluster to old clients, at ports of this machine.")
@click.option("--to", metavar="HOST:PORT,...", help="The cluster.  [default: as configured]")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=9092,
    show_default=True,
    help="Where clients connect first; 0 is any free port.",
)
@click.option(
    "--ports",
    metavar="FIRST-LAST",
    help="The ports of brokers, one each.  [default: the 100 behind --port; free ones with --port 0]",
)
@click.option(
    "--advertised-host",
    metavar="HOST",
    help="The host that clients are to connect to; {id} in it is a broker's.  [default: as they have]",
)
@click.option(
    "--one-port",
    is_flag=True,
    help="Serve all brokers at --port, by names of TLS (SNI): with {id} in --advertised-host.",
)
@click.option(
    "--accounts",
    metavar="FILE",
    help="Users of clients, and the account of each in the cluster.  [default: the gateway's for all]",
)
@click.option(
    "--tls-cert", metavar="FILE", help="The certificate for TLS of clients, as PEM.  [default: no TLS]"
)
@click.option("--tls-key", metavar="FILE", help="Its private key.  [default: in the same file]")
@click.option("--v07-port", type=click.IntRange(0, 65535), help="Where clients of Kafka 0.7 connect.")
@click.option(
    "--v07-zookeeper",
    metavar="HOST:PORT[/CHROOT]",
    help="The ZooKeeper in which clients of 0.7 find the gateway.  [default: none]",
)
@click.option(
    "--v07-broker-id",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The broker of 0.7 that the gateway is in ZooKeeper.",
)
@click.option(
    "--v07-slot-bytes",
    type=click.IntRange(4096, 524288),
    default=4096,
    show_default=True,
    help="The least bytes that a record takes for readers of 0.7.",
)
@click.option(
    "--v07-messages",
    type=click.Choice(["wrapped", "plain"]),
    default="wrapped",
    show_default=True,
    help="Messages for readers of 0.7: padded inside gzip, or with spaces behind the values.",
)
@click.option("--watch", is_flag=True, help="Print which clients send what, again and again.")
@click.option(
    "-d",
    "--every",
    default="10s",
    show_default=True,
    metavar="DURATION",
    help=f"How often, with --watch: {DURATION_HELP}; seconds without unit.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus at /metrics of this port; 0 is any free one.",
)
@click.option(
    "--access-log",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write lines of JSON to the end of this file.",
)
@click.option(
    "--access-log-of",
    type=click.Choice(LOGGED),
    default="requests",
    show_default=True,
    help="What a line of the access log is for.",
)
@click.option(
    "--explain",
    multiple=True,
    metavar="ADDRESS",
    help="Print the conversations of the client at this address, decoded, as lines of JSON.",
)
@click.option(
    "--capture",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the conversations of clients to this file as a capture (pcap), without logins.",
)
@click.option(
    "--capture-of",
    multiple=True,
    metavar="ADDRESS",
    help="Capture those of the client at this address alone.  [default: all]",
)
@json_option()
@property_option()
def command(
    to: str | None,
    host: str,
    port: int,
    ports: str | None,
    advertised_host: str | None,
    one_port: bool,
    accounts: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    v07_port: int | None,
    v07_zookeeper: str | None,
    v07_broker_id: int,
    v07_slot_bytes: int,
    v07_messages: Literal["wrapped", "plain"],
    watch: bool,
    every: str,
    metrics_port: int | None,
    access_log: Path | None,
    access_log_of: Literal["requests", "connections"],
    explain: tuple[str, ...],
    capture: Path | None,
    capture_of: tuple[str, ...],
    as_json: bool,
    properties: tuple[str, ...],
) -> None:
    """Serve a cluster until Ctrl-C or SIGTERM; clients connect as to the cluster.

    Each broker has a port of its own, and the first port stands for all of them. Requests in versions that
    the brokers support are passed on unchanged. Nothing is stored. Other machines reach the gateway only
    with --host, and without a login: they may do what the gateway may do in the cluster. With --accounts
    clients log in at the gateway, and each uses an account of its own in the cluster.

    \b
    Examples:
      penstock gateway --to kafka-1:9093,kafka-2:9093
      penstock gateway --profile prod --host 0.0.0.0 --advertised-host gw.example
      penstock gateway --to kafka:9093 --port 19092 --ports 19093-19099 --watch
      penstock gateway --to kafka:9093 --metrics-port 9100 --access-log log.jsonl
      penstock gateway --to kafka:9093 --capture talk.pcap --capture-of 10.0.0.7
      penstock gateway --profile prod --accounts accounts.toml
      penstock gateway --to kafka:9093 --tls-cert gw.pem --one-port \\
          --advertised-host 'b{id}.kafka.example'
      penstock gateway --to kafka:9093 --v07-port 9097 --v07-zookeeper zk:2181
    """
    every_ms = parse_duration(every, "--every", 1000)
    if every_ms < LEAST_MS:
        raise ConfigError(f"--every {every}: at least {LEAST_MS} ms")
    if as_json and not watch:
        raise ConfigError("--json says how --watch prints: give both")
    if explain and watch:
        raise ConfigError("--watch and --explain both print: give one of them")
    config = client_settings(properties)
    from penstock.broker.process import log_to_stderr
    from penstock.gateway import Gateway, Seen

    waiting.be_quiet()
    log_to_stderr()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    serving = Gateway(
        to or _configured(),
        host=host,
        port=port,
        ports=None if ports is None else port_range(ports),
        advertised_host=advertised_host,
        one_port=one_port,
        config=config,
        seen=Seen(
            metrics_port=metrics_port,
            access_log=access_log,
            access_log_of=access_log_of,
            explain=explain,
            explain_to=_put_line,
            capture=capture,
            capture_of=capture_of,
        ),
        accounts=accounts,
        tls_cert=tls_cert,
        tls_key=tls_key,
        v07_port=v07_port,
        v07_zookeeper=v07_zookeeper,
        v07_broker_id=v07_broker_id,
        v07_slot_bytes=v07_slot_bytes,
        v07_messages=v07_messages,
    )
    is_live = watch and is_terminal() and not as_json
    with serving as gateway, screen(is_live):
        if gateway.metrics_port is not None:
            logger.info("metrics at http://%s:%s/metrics", host, gateway.metrics_port)
        if not (as_json or is_live or explain):
            put(f"gateway at {gateway.bootstrap_servers}, cluster at {serving.config.described}")
            if gateway.v07_port is not None:
                put(f"Kafka 0.7 at {host}:{gateway.v07_port}")
            sys.stdout.flush()
        while not stopped.wait(every_ms / 1000 if watch else None):
            _put(gateway, is_live=is_live, as_json=as_json)
        if watch:
            _put(gateway, is_live=is_live, as_json=as_json)


def _put_line(line: str) -> None:
    put(line)
    sys.stdout.flush()


def _put(gateway: Gateway, *, is_live: bool, as_json: bool) -> None:
    if is_live:
        draw(picture(gateway.clients(), gateway.bootstrap_servers), is_live=True)
        return
    put_rows("gateway client", [row._asdict() for row in gateway.clients()], as_json)
    if not as_json:
        put()
    sys.stdout.flush()


HEAD = ("software", "address", "api", "version", "requests", "bytes in", "bytes out", "translated")


def picture(rows: Sequence[ClientCount], where: str) -> list[str]:
    """Return the lines of the table that ``--watch`` shows: the clients, with their requests and bytes."""
    shown = [
        {
            "software": f"{row.software} {row.software_version}".strip() or row.client_id or "-",
            "address": row.address or "-",
            "api": row.api,
            "version": str(row.version),
            "requests": row.requests,
            "bytes in": row.request_bytes,
            "bytes out": row.response_bytes,
            "translated": "-" if row.is_spoken else "yes",
        }
        for row in rows
    ]
    requests = sum(row.requests for row in rows)
    head = f"gateway at {where}: {counted(requests, 'request')}"
    return [head, "", *table(shown, HEAD, ("software", "address", "api", "translated"))]


def _configured() -> str:
    """Return the bootstrap servers from the settings file, the profile or the environment."""
    found = settings_in_force()
    named = [setting.value for name, setting in found.items() if meaning(name) == meaning(BOOTSTRAP)]
    if not named:
        raise ConfigError("say where the cluster is: --to HOST:PORT, or --profile NAME")
    return named[0]


def port_range(text: str) -> range:
    """Parse a range of ports, ``9093-9192``, or one port.

    Raises:
        ConfigError: the text is not a range of ports from 1 to 65535.
    """
    first, dash, last = text.partition("-")
    numbers = [each.strip() for each in ((first, last) if dash else (first, first))]
    if not all(each.isascii() and each.isdecimal() and 0 < int(each[:6]) < 65536 for each in numbers):
        raise ConfigError(f"--ports {text}: FIRST-LAST is needed, such as 9093-9192")
    low, high = map(int, numbers)
    if low > high:
        raise ConfigError(f"--ports {text}: the first port is above the last")
    return range(low, high + 1)
