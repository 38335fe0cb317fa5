"""A pytest fixture: a broker that accepts only the API versions of Kafka 4.3."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.wire_client import WireClient
from gateway.old_client import OldClient
from penstock import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(as_version="4.3") as broker:
        yield broker


@pytest.fixture
def new(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.port) as client:
        yield client


@pytest.fixture
def old(new: WireClient) -> OldClient:
    return OldClient(new)
