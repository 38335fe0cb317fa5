"""Eight clients, Penstock's included, use a Penstock cluster whose brokers are killed and restarted.

No acknowledged record is lost or duplicated, and each group reads and commits everything. All clients run
at the same time on one cluster, through one sequence of kills. `make soak` runs them for longer, and also
in two groups, one after the other, on three nodes of Apache Kafka and of Penstock. The same conditions
must hold there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from compat.cluster_accounts import COMMANDS, Account, Nodes, accounts_of
from compat.kafka_cluster import KafkaCluster as ApacheCluster
from penstock.testing import KafkaCluster

SHIFTS = (("penstock", "librdkafka", "kafka-python", "aiokafka"), ("java", "sarama", "franz", "kafkajs"))
"""Groups of clients that run at the same time, where the cluster uses most of the machine's CPU."""


class Ours:
    """A Penstock cluster with the interface that `accounts_of` requires."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.servers = cluster.bootstrap_servers
        self.nodes: Sequence[int] = cluster.node_ids
        self.kill = cluster.kill
        self.start = cluster.start


def check(accounts: dict[str, Account]) -> None:
    """Print every client's account; fail if one shows a lost, duplicated, unread or uncommitted record."""
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


@contextlib.contextmanager
def our_nodes(directory: Path) -> Iterator[Nodes]:
    with KafkaCluster(3, directory, offsets_topic_num_partitions=3) as cluster:
        yield Ours(cluster)


@contextlib.contextmanager
def apache_nodes(directory: Path) -> Iterator[Nodes]:
    with ApacheCluster("4.3.0", directory, heap_mb=384) as cluster:
        yield cluster


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize("nodes", [our_nodes, apache_nodes])
def test_every_client_in_shifts_on_both_clusters(
    nodes: Callable[[Path], contextlib.AbstractContextManager[Nodes]], seed: int, tmp_path: Path
) -> None:
    """Penstock and Apache Kafka get the same test; only half of the clients run at a time.

    Three Apache Kafka nodes and all eight clients at once would overload a machine of two processors.
    """
    accounts: dict[str, Account] = {}
    with nodes(tmp_path / "nodes") as cluster:
        for number, names in enumerate(SHIFTS):
            place = tmp_path / f"shift{number}"
            place.mkdir()
            accounts |= accounts_of(
                cluster,
                names,
                place,
                seed=10 * seed + number,
                kills=4,
                down_s=(1.0, 8.0),
                up_s=(0.5, 3.0),
            )
    assert list(accounts) == list(COMMANDS)
    check(accounts)
