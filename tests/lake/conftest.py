"""What tests of the lake share: a broker, and a store of objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lake.s3_server import Store, s3_server
from penstock import Broker


@pytest.fixture
def servers() -> Iterator[str]:
    """The address of a broker without topics."""
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def store() -> Iterator[Store]:
    """A store of objects that is empty."""
    with s3_server() as found:
        yield found
