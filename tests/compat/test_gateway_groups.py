"""Tests of transactions and of groups of every protocol, run again through a gateway.

Behind the gateway are three Penstock brokers. The clients are librdkafka, Java's, aiokafka, kafka-python and
Penstock's. They use transactions, classic groups, KIP-848 groups and share groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from compat import (
    test_consumer_groups,
    test_consumer_members,
    test_groups_broker,
    test_share_consumers,
    test_transactions_clients,
)
from compat.places import THREE, made
from penstock.client import Admin
from penstock.gateway import Gateway

pytestmark = [*test_groups_broker.pytestmark, pytest.mark.soak, pytest.mark.timeout(900)]

SETTINGS = {**test_share_consumers.SETTINGS, **test_consumer_groups.SETTINGS}

OWN_BROKER = (
    "test_a_broker_killed_at_any_time_loses_no_transaction",
    "test_members_go_on_after_the_broker_restarts",
    "test_members_stay_members_while_the_broker_is_killed_and_comes_back",
    # These close and start the broker that they are given.
    "test_what_is_committed_is_read_by_all",
    "test_alone_it_reads_commits_and_goes_on_where_it_was",
)
"""Tests that are left out because they start or kill a broker of their own."""

for module in (
    test_consumer_groups,
    test_consumer_members,
    test_groups_broker,
    test_share_consumers,
    test_transactions_clients,
):
    globals().update(
        {
            name: law
            for name, law in vars(module).items()
            if name.startswith("test_") and name not in OWN_BROKER
        }
    )


@pytest.fixture
def servers() -> Iterator[str]:
    """Provide a gateway's address, with a new cluster behind it, to each test of KIP-848 or share groups."""
    with (
        made(THREE, config=SETTINGS, num_partitions=1) as cluster,
        Gateway(to=cluster.bootstrap_servers) as gateway,
    ):
        yield gateway.bootstrap_servers


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as found:
        yield found


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """Provide a gateway's address, with a new cluster, to each test of classic groups or transactions."""
    partitions = test_groups_broker.PARTITIONS if "groups_broker" in request.function.__module__ else 1
    with (
        made(THREE, None, num_partitions=partitions) as cluster,
        Gateway(to=cluster.bootstrap_servers) as gateway,
    ):
        yield SimpleNamespace(bootstrap_servers=gateway.bootstrap_servers)
        test_groups_broker.Consumer.end_all()
