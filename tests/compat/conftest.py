"""What tests with other people's software share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.peers import stop_shared

HERE = Path(__file__).parent
MARKS = {"compat", "slow", "soak"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse tests without a mark: `make test` does not collect this folder, `make compat` asks for marks."""
    bare = [
        item.nodeid
        for item in items
        if HERE in item.path.parents and not MARKS & {mark.name for mark in item.iter_markers()}
    ]
    if bare:
        raise pytest.UsageError(f"tests/compat has tests without a mark: {bare}")


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
