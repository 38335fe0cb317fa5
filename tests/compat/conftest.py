"""What tests with other people's software share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from compat.peers import stop_shared


@pytest.fixture(scope="session", autouse=True)
def _shared_brokers_end() -> Iterator[None]:
    """The real broker that tests share ends with the session."""
    yield
    stop_shared()


@pytest.fixture(scope="module", autouse=True)
def _leavings_stay_in_the_module() -> Iterator[None]:
    """What other people's clients leave is collected under their tests' filters, not in later tests."""
    yield
    gc.collect()
