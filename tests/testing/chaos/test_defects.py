"""Tests that chaos finds and names each defect of the sample application within 200 runs.

Correct variants pass all runs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.testing.chaos import ChaosError, explore
from testing.chaos.billing import (
    DEFECTS,
    RIGHT,
    RIGHT_IN_NEWER_GROUPS,
    Billing,
    NeverAborts,
    bills_orders,
    bills_orders_in_a_cluster,
)

RIGHT_RUNS = 30
"""The number of chaos runs for each correct variant.

It is enough to find defects: with three seeds, the last of them was found in run 28.
"""
SOAKED_RUNS = 10_000
SOAKED_PATIENCE_S = 600.0
"""The time limit without a commit in soak tests, in seconds.

They run at low priority, and may get no CPU for a minute.
"""


@pytest.fixture(autouse=True)
def close_what_is_left() -> Iterator[None]:
    yield
    for producer in NeverAborts.left:
        producer.close(0)
    NeverAborts.left.clear()


@pytest.mark.parametrize("application", DEFECTS, ids=lambda each: each.__name__)
def test_a_defect_is_found_and_named(application: type[Billing]) -> None:
    with pytest.raises(ChaosError) as raised:
        explore(
            bills_orders(application), seed=2, runs=200, faults=application.faults, **application.promises
        )
    failure = raised.value.failure
    assert failure is not None
    assert failure.name == application.finds, str(raised.value)
    assert len(failure.shortest.faults) <= 1, "one fault is enough for each of these"
    assert f"found: {application.finds}: " in str(raised.value)


def test_there_are_ten_defects_at_least() -> None:
    assert len(DEFECTS) >= 10
    assert len({application.finds for application in DEFECTS}) >= 8


@pytest.mark.parametrize("application", RIGHT, ids=lambda each: each.__name__)
def test_a_right_application_passes(application: type[Billing]) -> None:
    assert explore(bills_orders(application), seed=4, runs=RIGHT_RUNS, **application.promises) == RIGHT_RUNS


@pytest.mark.parametrize("application", RIGHT_IN_NEWER_GROUPS, ids=lambda each: each.__name__)
def test_a_right_application_passes_in_a_newer_group(application: type[Billing]) -> None:
    test, settings = bills_orders(application), application.settings
    assert explore(test, seed=1, runs=20, settings=settings, **application.promises) == 20


@pytest.mark.parametrize("application", RIGHT, ids=lambda each: each.__name__)
def test_a_right_application_passes_in_a_cluster(application: type[Billing]) -> None:
    test = bills_orders_in_a_cluster(application)
    assert explore(test, seed=1, runs=6, **application.promises) == 6


@pytest.mark.soak
@pytest.mark.parametrize("application", RIGHT, ids=lambda each: each.__name__)
def test_a_right_application_passes_many_runs_in_a_cluster(application: type[Billing]) -> None:
    test = bills_orders_in_a_cluster(application)
    faults = ["leaders_move", "coordinators_move", "rebalances", "clocks", "lost_answers", "restarts"]
    runs = 1000
    assert explore(test, seed=5, runs=runs, faults=faults, **application.promises) == runs


@pytest.mark.soak
@pytest.mark.parametrize("application", RIGHT, ids=lambda each: each.__name__)
def test_a_right_application_passes_ten_thousand_runs(
    application: type[Billing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "patience_s", SOAKED_PATIENCE_S)
    runs = explore(bills_orders(application), seed=5, runs=SOAKED_RUNS, **application.promises)
    assert runs == SOAKED_RUNS


def test_exactly_once_holds_while_the_broker_is_killed_and_refuses() -> None:
    exact = RIGHT[1]
    faults = ["restarts", "refusals", "rebalances", "lost_answers"]
    assert explore(bills_orders(exact), seed=6, runs=40, faults=faults, **exact.promises) == 40
