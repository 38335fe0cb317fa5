"""Fixtures and hooks for the tests that use other people's software."""

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
    """Refuse tests without one of the marks by which `make compat` selects tests.

    `make test` does not collect this folder, so an unmarked test would never run.
    """
    bare = [
        item.nodeid
        for item in items
        if HERE in item.path.parents and not MARKS & {mark.name for mark in item.iter_markers()}
    ]
    if bare:
        raise pytest.UsageError(f"tests/compat has tests without a mark: {bare}")


@pytest.fixture(scope="session", autouse=True)
def _shared_brokers_end() -> Iterator[None]:
    """End the Apache Kafka broker that tests share when the test session ends."""
    yield
    stop_shared()


@pytest.fixture(scope="module", autouse=True)
def _leavings_stay_in_the_module() -> Iterator[None]:
    """Collect garbage after each module, so that the module's warning filters cover its clients."""
    yield
    gc.collect()
