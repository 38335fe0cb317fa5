"""``penstock acl``: list, add and remove access control entries."""

from __future__ import annotations

import click

from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import put
from penstock.errors import ConfigError


@click.group("acl")
def command() -> None:
    """List, add and remove access control entries.

    A rule says: allow USER OPERATION[,OPERATION] TYPE:NAME [from HOST]. A name that ends in * is a prefix.

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
def list_entries(
    bootstrap: str,
    properties: tuple[str, ...],
    topic: str | None,
    group: str | None,
    principal: str | None,
) -> None:
    """Entries as rules, one per line."""
    from penstock.client import Admin
    from penstock.security.acls import EVERY_ACL, PatternType, ResourceType, rule_of

    if topic is not None and group is not None:
        raise ConfigError("--topic and --group exclude each other")
    wanted = EVERY_ACL._replace(principal=principal)
    for kind, name in ((ResourceType.TOPIC, topic), (ResourceType.GROUP, group)):
        if name is not None:
            wanted = wanted._replace(resource_type=kind, resource_name=name, pattern_type=PatternType.MATCH)
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        for acl in admin.list_acls(wanted):
            put(rule_of(acl))


@command.command("add")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="RULE...", nargs=-1, required=True)
def add_entries(bootstrap: str, properties: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Add the entries of a rule."""
    from penstock.client import Admin
    from penstock.security.acls import parse_rule, rule_of, warning_of

    acls = parse_rule(" ".join(words))
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        admin.create_acls(acls)
    for acl in acls:
        warning = warning_of(acl)
        put(rule_of(acl) + (f"  # {warning}" if warning else ""))


@command.command("remove")
@bootstrap_option()
@property_option()
@click.argument("words", metavar="RULE...", nargs=-1, required=True)
def remove_entries(bootstrap: str, properties: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Remove the entries of a rule; those that were there are shown."""
    from penstock.client import Admin
    from penstock.security.acls import AclFilter, parse_rule, rule_of

    filters = [AclFilter(*acl) for acl in parse_rule(" ".join(words))]
    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        for acl in admin.delete_acls(filters):
            put(rule_of(acl))
