"""What tests with other people's software share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.peers import stop_shared


@pytest.fixture(scope="session", autouse=True)
def _shared_brokers_end() -> Iterator[None]:
    """The real broker that tests share ends with the session."""
    yield
    stop_shared()
