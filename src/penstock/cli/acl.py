"""``penstock acl``: list, add and remove access control entries."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

import click

from penstock.cli.listing import json_option, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import put
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.security.acls import Acl


@click.group("acl")
def command() -> None:
    """List, add and remove access control entries.

    A rule has the form: allow USER OPERATION[,OPERATION] TYPE:NAME [from HOST]. A name that ends in * is a
    prefix.

    \b
    Examples:
      penstock acl list
      penstock acl add allow ann read,describe topic:orders
      penstock acl add deny '*' write 'topic:pay*' from 10.0.0.1
      penstock acl remove allow ann read topic:orders
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option("--topic", help="Only entries that apply to this topic.")
@click.option("--group", help="Only entries that apply to this group.")
@click.option("--principal", help="Only entries of this principal, such as User:ann.")
@json_option()
def list_entries(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str | None,
    group: str | None,
    principal: str | None,
    as_json: bool,
) -> None:
    """List access control entries as rules, one per line."""
    from penstock.client import Admin
    from penstock.security.acls import EVERY_ACL, PatternType, ResourceType

    if topic is not None and group is not None:
        raise ConfigError("--topic and --group exclude each other")
    wanted = EVERY_ACL._replace(principal=principal)
    for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.GROUP, group)):
        if name is not None:
            wanted = wanted._replace(resource_type=kind, resource_name=name, pattern_type=PatternType.MATCH)
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        _put_acls(admin.list_acls(wanted), as_json)


@command.command("add")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="RULE...", nargs=-1, required=True)
@json_option()
def add_entries(bootstrap: str, properties: tuple[str, ...], words: tuple[str, ...], as_json: bool) -> None:
    """Add the access control entries of a rule."""
    from penstock.client import Admin
    from penstock.security.acls import parse_rule, rule_of, warning_of

    acls = parse_rule(" ".join(words))
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.create_acls(acls)
    if as_json:
        _put_acls(acls, as_json)
        return
    for acl in acls:
        warning = warning_of(acl)
        put(rule_of(acl) + (f"  # {warning}" if warning else ""))


@command.command("remove")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="RULE...", nargs=-1, required=True)
@json_option()
def remove_entries(
    bootstrap: str, properties: tuple[str, ...], words: tuple[str, ...], as_json: bool
) -> None:
    """Remove the entries of a rule, and print those that were removed."""
    from penstock.client import Admin
    from penstock.security.acls import AclFilter, parse_rule

    filters = [AclFilter(*acl) for acl in parse_rule(" ".join(words))]
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        removed = admin.delete_acls(filters)
    _put_acls(removed, as_json)
    if not (removed or as_json):
        put("no such entry is there; penstock acl list shows those that are")


def _put_acls(acls: Iterable[Acl], as_json: bool) -> None:
    """Print access control entries as rules, or with ``--json`` as rows with the fields `NOUNS["acl"]`."""
    from penstock.security.acls import Operation, PatternType, Permission, ResourceType, rule_of

    if not as_json:
        for acl in acls:
            put(rule_of(acl))
        return
    rows = [
        {
            "permission": _word(Permission, acl.permission),
            "principal": acl.principal,
            "host": acl.host,
            "operation": _word(Operation, acl.operation),
            "resource_type": _word(ResourceType, acl.resource_type),
            "resource": acl.resource_name,
            "pattern_type": _word(PatternType, acl.pattern_type),
            "rule": rule_of(acl),
        }
        for acl in acls
    ]
    put_rows("acl", rows, as_json)


def _word(kind: type[IntEnum], code: int) -> str:
    """Return the lower-case name of a member of an ACL enum, or the code as text if it is unknown."""
    return kind(code).name.lower() if code in kind.__members__.values() else str(code)
