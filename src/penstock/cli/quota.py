"""``penstock quota``: limits of users, client ids and addresses."""

from __future__ import annotations

import math
from collections.abc import Iterable

import click

from penstock.cli.doing import done, listed, quiet_option
from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, pairs, property_option
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

DEFAULT = "<default>"
"""The name of the default entity, as in Kafka's tools. Its quotas apply to entities without own quotas."""

QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
"""The names of Kafka's quotas, from which one is suggested for a misspelt name."""

KINDS = {"user": "user", "client-id": "client_id", "ip": "ip"}
"""A dict from an entity type in Kafka's protocol, such as ``client-id``, to the output field for the entity's
name.
"""


@click.group("quota")
def command() -> None:
    """List and set quotas of users, client ids and addresses.

    \b
    Examples:
      penstock quota list
      penstock quota set --user ann producer_byte_rate=1000000
      penstock quota set --user ann --client-id loader consumer_byte_rate=5000000
      penstock quota set --user '<default>' request_percentage=50
      penstock quota set --user ann producer_byte_rate=
    """


@command.command("list")
@bootstrap_option()
@property_option()
@json_option()
def list_quotas(bootstrap: str, properties: tuple[str, ...], as_json: bool) -> None:
    """List all quotas that are set."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        found = admin.list_quotas()
    rows = []
    for entity, quotas in found.items():
        names = {kind: DEFAULT if name is None else name for kind, name in entity}
        about = {column: names.get(kind) for kind, column in KINDS.items()}
        rows += [{**about, "quota": quota, "value": value} for quota, value in sorted(quotas.items())]
    put_rows("quota", rows, as_json)


@command.command("set")
@bootstrap_option()
@property_option()
@click.option("--user", help="Of this user; '<default>' for all that have none of their own.")
@click.option("--client-id", help="Of this client id, or '<default>'; with --user, of that user's.")
@click.option("--ip", help="Of this address, or '<default>'.")
@click.argument("quotas", metavar="NAME=VALUE...", nargs=-1, required=True)
@quiet_option()
def set_quotas(
    bootstrap: str,
    properties: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    quotas: tuple[str, ...],
) -> None:
    """Set quotas; an empty VALUE removes one.

    Names are producer_byte_rate and consumer_byte_rate (bytes a second), and request_percentage.
    """
    given = {"user": user, "client-id": client_id, "ip": ip}
    entity = {kind: None if name == DEFAULT else name for kind, name in given.items() if name is not None}
    if not entity or (ip is not None and len(entity) > 1):
        raise ConfigError("say whose quotas: --user, --client-id, both of them, or --ip alone")
    wanted = parse_quotas(quotas)
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.set_quotas(entity, wanted)
    whose = ", ".join(f"{kind} {DEFAULT if name is None else name}" for kind, name in entity.items())
    done(f"{whose}: changed {listed(list(wanted))}")


def parse_quotas(words: Iterable[str]) -> dict[str, float | None]:
    """Parse words NAME=VALUE into a dict from quota name to value; None as a value removes the quota.

    Raises:
        ConfigError: there is no such quota, or a value is not a number.
    """
    wanted: dict[str, float | None] = {}
    for name in (given := pairs(words, "NAME=VALUE")):
        if name not in QUOTAS:
            hint = did_you_mean(name, QUOTAS) or f"; there are {', '.join(QUOTAS)}"
            raise ConfigError(f"there is no quota {name}{hint}")
    for name, text in given.items():
        try:
            wanted[name] = float(text) if text else None
        except ValueError:
            raise ConfigError(f"quota {name}: {text!r} is no number") from None
        if not math.isfinite(wanted[name] or 0.0):
            raise ConfigError(f"quota {name}: {text!r} is no number that counts bytes or per cent")
    return wanted
