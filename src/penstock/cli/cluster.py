"""``penstock cluster``: describes a cluster, and controls the brokers of a test cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli.cluster_levers import add_levers
from penstock.cli.listing import json_option, put_json, put_rows
from penstock.cli.options import bootstrap_option, client_settings, property_option
from penstock.cli.outcome import counted, put

if TYPE_CHECKING:
    from penstock.client.cluster.metadata import BrokerNode


@click.group("cluster")
def command() -> None:
    """Describe a cluster, or control the brokers of a test cluster.

    Commands that change brokers, links, leaders and clocks control a cluster of
    penstock broker --brokers N on this machine, for tests. -b names its first broker.

    \b
    Examples:
      penstock cluster describe --json
      penstock cluster nodes
      penstock cluster kill 2 --fence
      penstock cluster move-leader orders 0 --to 3
      penstock cluster cut 1 --from clients
      penstock cluster advance 1h
    """


add_levers(command)


@command.command("describe", short_help="The cluster's id and brokers; whether all is well.")
@bootstrap_option()
@property_option()
@json_option()
def describe(bootstrap: str, properties: tuple[str, ...], as_json: bool) -> None:
    """Print the cluster's id, its brokers, and whether all partitions are available and in sync."""
    from penstock.client import Admin

    with Admin(bootstrap_servers=bootstrap, config=client_settings(properties)) as admin:
        cluster = admin.describe_cluster()
        names = admin.list_topics()
        topics = admin.describe_topics(names) if names else []
    partitions = [partition for topic in topics for partition in topic.partitions]
    row = {
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller,
        "brokers": len(cluster.nodes),
        "topics": len(topics),
        "partitions": len(partitions),
        "leaderless": sum(one.leader < 0 for one in partitions),
        "under_replicated": sum(len(one.in_sync_replicas) < len(one.replicas) for one in partitions),
    }
    if as_json:
        put_json(row)
        return
    put(f"cluster {cluster.cluster_id or 'without an id'}")
    put(f"{counted(len(topics), 'topic')} with {counted(len(partitions), 'partition')}")
    without = counted(sum(one.leader < 0 for one in partitions), "partition")
    put(f"{without} without a leader, {row['under_replicated']} not fully in sync")
    rows = [broker_row(node, cluster.controller) for node in cluster.nodes]
    put_rows("broker", rows, as_json=False)


def broker_row(node: BrokerNode, controller: int) -> dict[str, object]:
    """Return a broker as a JSON row with the fields `NOUNS["broker"]`."""
    return {
        "broker": node.node_id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "is_controller": node.node_id == controller,
    }
