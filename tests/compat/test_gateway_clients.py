"""Tests of third-party clients at a broker, run again through a gateway to three brokers."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from compat import test_broker_clients, test_programs
from compat.places import ONE, THREE, made
from penstock.gateway import Gateway

pytestmark = [*test_broker_clients.pytestmark, pytest.mark.soak, pytest.mark.timeout(900)]

OWN_BROKER = ("test_kill_9_under_an_idempotent_producer_loses_and_repeats_nothing",)
"""Tests that are left out because they start a broker of their own."""

for module in (test_broker_clients, test_programs):
    globals().update(
        {
            name: law
            for name, law in vars(module).items()
            if name.startswith("test_") and name not in OWN_BROKER
        }
    )


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Provide the address of a gateway, for the test programs in other languages."""
    with (
        made(THREE, None, test_programs.SETTINGS) as cluster,
        Gateway(to=cluster.bootstrap_servers) as gateway,
    ):
        yield gateway.bootstrap_servers


@pytest.fixture
def broker() -> Iterator[SimpleNamespace]:
    """Provide a gateway's address, with a new broker behind it, to each test that expects a broker."""
    with made(ONE, None, num_partitions=2) as broker, Gateway(to=broker.bootstrap_servers) as gateway:
        yield SimpleNamespace(bootstrap_servers=gateway.bootstrap_servers)
