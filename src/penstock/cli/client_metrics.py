"""``penstock metrics``: metrics that clients push to brokers (KIP-714), and subscriptions to them."""

from __future__ import annotations

import http.client
import json
import re

import click

from penstock.cli.doing import done, quiet_option
from penstock.cli.listing import NOUNS, json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.errors import ConfigError, NetworkError

_PAGE = "/client-metrics"
_PATIENCE_S = 5.0
_PAGE_BYTES_MAX = 32 << 20
"""The most bytes to read of a broker's metrics page: twice the size that such a page can have."""

_FIELDS = {field.name for field in NOUNS["client metric"]}
_COLUMNS = ("client_id", "name", "labels", "kind", "value")


@click.group("metrics")
def command() -> None:
    """Show metrics that clients push (KIP-714); set subscriptions.

    \b
    Examples:
      penstock broker --property penstock.client.metrics=true --metrics-port 9192
      penstock metrics subscribe all --metric '*' --interval-ms 10000
      penstock metrics list 127.0.0.1:9192
    """


@command.command("list")
@click.argument("address", metavar="HOST:PORT")
@click.option("--client-id", help="Only of this client.")
@click.option("--name", default="", help="Only metrics whose names begin so.")
@json_option()
def list_metrics(address: str, client_id: str | None, name: str, as_json: bool) -> None:
    """Print the newest value of every metric. HOST:PORT is where a broker of Penstock serves /metrics."""
    rows = [
        row
        for row in _fetch(address)
        if str(row["name"]).startswith(name) and client_id in (None, row["client_id"])
    ]
    put_rows("client metric", rows, as_json, _COLUMNS)


@command.command("subscribe")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="NAME")
@click.option("--metric", "metrics", multiple=True, required=True, help="Names that begin so; * for all.")
@click.option("--interval-ms", type=click.IntRange(100, 3_600_000), default=300_000, help="How often.")
@click.option("--match", multiple=True, help="Only clients with attribute=expression.")
@quiet_option()
def subscribe(
    bootstrap: str,
    properties: tuple[str, ...],
    name: str,
    metrics: tuple[str, ...],
    interval_ms: int,
    match: tuple[str, ...],
) -> None:
    """Ask clients to push metrics. NAME is the name of the new or existing subscription.

    Attributes to match, such as client_id=app-.*, are client_id, client_instance_id, client_software_name,
    client_software_version, client_source_address and client_source_port.
    """
    from penstock.client import Admin

    texts = {"metrics": ",".join(metrics), "interval.ms": str(interval_ms)}
    if match:
        texts["match"] = ",".join(match)
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.alter_config(client_metrics=name, set=texts, delete=() if match else ("match",))
    done(f"subscription {name} asks clients for metrics every {interval_ms / 1000:,g} s")


@command.command("unsubscribe")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="NAME")
@quiet_option()
def unsubscribe(bootstrap: str, properties: tuple[str, ...], name: str) -> None:
    """Remove the subscription NAME; clients stop pushing."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.alter_config(client_metrics=name, delete=("metrics", "interval.ms", "match"))
    done(f"subscription {name} is removed")


def _fetch(address: str) -> list[dict[str, object]]:
    """Return the client metrics on the metrics page of a broker.

    Raises:
        ConfigError: `address` is malformed, or is the address of another kind of server.
        NetworkError: the broker cannot be reached.
    """
    if not re.fullmatch(r"(\[[0-9a-fA-F:.%]+\]|[^\s:/\[\]]+):\d{1,5}", address):
        raise ConfigError(f"{address!r} is no HOST:PORT, such as 127.0.0.1:9192")
    host, _, port = address.rpartition(":")
    try:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=_PATIENCE_S)
        try:
            connection.request("GET", _PAGE)
            answer = connection.getresponse()
            text = answer.read(_PAGE_BYTES_MAX)
        finally:
            connection.close()
    except (OSError, OverflowError) as error:
        raise NetworkError(f"no metrics come from {address}: {error}") from None
    except http.client.HTTPException:
        raise ConfigError(f"{address} is no port for metrics; --metrics-port of the broker says it") from None
    if answer.status != http.client.OK:
        raise ConfigError(
            f"{address} has no {_PAGE}: start the broker with --property penstock.client.metrics=true"
        )
    try:
        rows: list[dict[str, object]] = json.loads(text)
        if isinstance(rows, list) and all(row.keys() >= _FIELDS for row in rows):
            return rows
    except (ValueError, AttributeError, TypeError, RecursionError):
        pass
    raise ConfigError(f"{address}{_PAGE} is not what a broker of Penstock answers")
