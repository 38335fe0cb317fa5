"""Other people's clients, and ours, on a cluster of ours whose brokers are killed and restarted: nothing that
was acknowledged is lost, nothing is there twice, and each group reads everything and commits it.

All run side by side on one cluster, through one sequence of kills. With `make soak` for longer, and on three
nodes of Apache Kafka by the same driver: the accounts have to come out even there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compat.cluster_accounts import COMMANDS, Account, accounts_of
from compat.kafka_cluster import KafkaCluster as ApacheCluster
from penstock.testing import KafkaCluster


class Ours:
    """Our cluster, as the driver takes it."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.servers = cluster.bootstrap_servers
        self.nodes: Sequence[int] = cluster.node_ids
        self.kill = cluster.kill
        self.start = cluster.start


def check(accounts: dict[str, Account]) -> None:
    """Print every account; fail if one of them is not even."""
    for name, account in accounts.items():
        print(f"{name}: {account}")
    assert {name: str(account) for name, account in accounts.items() if not account.is_good} == {}


@pytest.mark.compat
@pytest.mark.timeout(600)
def test_every_client_while_brokers_are_killed(tmp_path: Path) -> None:
    with KafkaCluster(3, offsets_topic_num_partitions=3) as cluster:
        check(
            accounts_of(
                Ours(cluster),
                list(COMMANDS),
                tmp_path,
                seed=1,
                kills=3,
                down_s=(1.2, 1.6),  # longer than the session of a second
                up_s=(0.3, 0.6),
            )
        )


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(2, 7))
def test_every_client_on_our_cluster_for_minutes(seed: int, tmp_path: Path) -> None:
    data_dir = tmp_path / "data" if seed % 2 else None
    with KafkaCluster(3, data_dir, offsets_topic_num_partitions=3) as cluster:
        check(
            accounts_of(
                Ours(cluster),
                list(COMMANDS),
                tmp_path,
                seed=seed,
                kills=12,
                down_s=(0.2, 4.0),
                up_s=(0.0, 2.0),
            )
        )


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3])
def test_every_client_on_three_nodes_of_apache_kafka(seed: int, tmp_path: Path) -> None:
    with ApacheCluster("4.3.0", tmp_path / "kafka") as cluster:
        check(
            accounts_of(
                cluster, list(COMMANDS), tmp_path, seed=seed, kills=6, down_s=(1.0, 8.0), up_s=(0.5, 3.0)
            )
        )
