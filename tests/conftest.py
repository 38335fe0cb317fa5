"""One Penstock broker in memory for the tests of clients and tables; topics are each test's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from penstock import Admin, Broker

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    """Where a broker listens."""
    with Broker(log_retention_ms=-1) as broker:  # records of these tests are old
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as admin:
        yield admin


@pytest.fixture(scope="session")
def new_topic(admin: Admin) -> Callable[..., str]:
    """Creates a topic with a name of its own."""
    numbers = itertools.count()

    def create(partitions: int = 1, **config: str) -> str:
        name = f"topic-{next(numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topic(name, partitions, config=settings)
        return name

    return create
