"""``penstock topic``: list, create, delete and describe topics."""

from __future__ import annotations

import click

from penstock.cli.cluster import UNKNOWN_TOPIC, unknown_topic
from penstock.cli.options import bootstrap_option, pairs, property_option
from penstock.errors import KafkaError

TOPIC_ALREADY_EXISTS = 36


@click.group("topic")
def command() -> None:
    """List, create, delete and describe topics.

    \b
    Examples:
      penstock topic list
      penstock topic create delays --partitions 6 --config retention.ms=-1
      penstock topic describe delays
      penstock topic delete delays
    """


@command.command("list")
@bootstrap_option()
@property_option()
@click.option("--internal", is_flag=True, help="Topics of the cluster itself, too.")
def list_topics(bootstrap: str, properties: tuple[str, ...], internal: bool) -> None:
    """Names of the topics, one per line."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=pairs(properties, "-X")) as admin:
        names = sorted(admin.list_topics())
    for name in names:
        if internal or not name.startswith("__"):
            print(name)


@command.command("create")
@bootstrap_option()
@property_option()
@click.argument("name", metavar="TOPIC")
@click.option(
    "--partitions", type=click.IntRange(1), default=1, show_default=True, help="Number of partitions."
)
@click.option(
    "--replication-factor", type=click.IntRange(1), help="Number of copies; without it the broker decides."
)
@click.option("--config", metavar="NAME=VALUE", multiple=True, help="A topic setting; may be repeated.")
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
def create_topic(
    bootstrap: str,
    properties: tuple[str, ...],
    name: str,
    partitions: int,
    replication_factor: int | None,
    config: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create TOPIC."""
    settings = pairs(config, "--config")
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=pairs(properties, "-X")) as admin:
        try:
            admin.create_topic(name, partitions, replication_factor or -1, settings)
        except KafkaError as error:
            if not (if_not_exists and error.code == TOPIC_ALREADY_EXISTS):
                raise


@command.command("delete")
@bootstrap_option()
@property_option()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
def delete_topics(bootstrap: str, properties: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Delete topics and everything in them."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=pairs(properties, "-X")) as admin:
        for name in names:
            try:
                admin.delete_topics([name])
            except KafkaError as error:
                raise unknown_topic(name, bootstrap) if error.code == UNKNOWN_TOPIC else error from None
