"""Fixtures for the tests of landing in table formats: a broker, and an object store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lake.s3_server import Store, s3_server
from penstock import Broker


@pytest.fixture
def servers() -> Iterator[str]:
    """Yield the address of a broker without topics."""
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def store() -> Iterator[Store]:
    """Yield an empty object store with an S3 interface."""
    with s3_server() as found:
        yield found
