"""Runs one pytest test many times, with new fixtures for each run, and reports a single result."""

from __future__ import annotations

import shlex
import unittest
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from penstock.broker.broker import KafkaBroker
from penstock.broker.cluster import KafkaCluster
from penstock.testing import ended
from penstock.testing.chaos.history import History
from penstock.testing.chaos.plan import Plan
from penstock.testing.chaos.runs import ChaosRun, split_options, under_chaos
from penstock.testing.chaos.search import Failure, RunResult, search

RUN = pytest.StashKey[ChaosRun]()
"""The pytest stash key of an item's current `ChaosRun`."""
ERROR = pytest.StashKey[BaseException | None]()
"""The pytest stash key of the error that a test has raised in the current run; the value is None without an
error.
"""
PROMISES = pytest.StashKey[Mapping[str, bool]]()


class _Skipped(Exception):
    """Raised if a test skips itself or is expected to fail, to end the search for a failing run."""


def run_item(item: pytest.Item, nextitem: pytest.Item | None, mark: pytest.Mark, replay: str | None) -> None:
    """Run a pytest item once for each plan, and log the reports of the run that determines the result."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runs = Runs(item)
    failure: Failure | None = None
    problem: Exception | None = None
    try:
        if is_of_unittest(item):
            raise pytest.UsageError("a method of unittest needs @chaos of penstock.testing.chaos")
        if mark.args:
            raise pytest.UsageError(f"chaos{mark.args!r}: arguments have names, such as seed=7")
        given = dict(mark.kwargs)
        if replay is not None:
            given["replay"] = replay
        options, item.stash[PROMISES] = split_options(given)
        failure = search(runs.carry_out, options.plans())
    except _Skipped:
        pass
    except (ValueError, pytest.UsageError) as error:
        problem = error
    reports = runs.reports
    if problem is not None or not reports:
        reports = [_refused(item, problem)]
    if failure is not None:
        reports = runs.failed[id(failure.error)]
        said = failure.describe(lambda run: f"pytest {shlex.quote(item.nodeid)} --chaos-replay={run}")
        failed = next((each for each in reports if each.failed), reports[-1])
        failed.sections.insert(0, ("chaos", said))
    # The last teardown of all: what is shared with other tests goes if none of them comes.
    session: Any = item.session
    last = pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(nextitem), when="teardown")
    if last.excinfo is not None:
        reports = [*reports[:-1], item.ihook.pytest_runtest_makereport(item=item, call=last)]
    for report in reports:
        report.user_properties.append(("chaos_runs", runs.count))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def is_of_unittest(item: pytest.Item) -> bool:
    """Return True if an item belongs to `unittest`, so that its function gets no fixtures as arguments."""
    kind = getattr(item, "cls", None)
    return isinstance(kind, type) and issubclass(kind, unittest.TestCase)


def runs_by_itself(item: pytest.Item) -> bool:
    """Return True for a `unittest` method decorated with `chaos`: the decorator itself repeats the test."""
    return is_of_unittest(item) and getattr(getattr(item, "obj", None), "runs_by_itself", False)


def _refused(item: pytest.Item, problem: Exception | None) -> pytest.TestReport:
    text = f"{item.nodeid}: {problem}"
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "setup")


class Runs:
    """Executes the chaos runs of one pytest item, each with new fixtures."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self.count = 0
        """The number of runs executed so far."""
        self.reports: list[pytest.TestReport] = []
        """The pytest reports of the last run, for setup, call and teardown."""
        self.failed: dict[int, list[pytest.TestReport]] = {}
        """A dict from the `id()` of a run's error to the reports of that run."""

    def carry_out(self, plan: Plan) -> RunResult:
        """Run the item once with the faults of `plan` and new fixtures; return the run's result.

        Raises:
            _Skipped: the test has skipped itself.
        """
        item: Any = self._item
        ended.reports.clear()
        run = item.stash[RUN] = ChaosRun(plan)
        item.stash[ERROR] = None
        if self.count:
            item._initrequest()
        self.count += 1
        # Teardown up to what the item shares with its neighbours, which the next run has again.
        reports = runtestprotocol(item, log=False, nextitem=item.parent)
        self.reports = reports
        if any(report.skipped for report in reports):
            raise _Skipped
        error = item.stash[ERROR]
        if error is not None:
            self.failed[id(error)] = reports
        return RunResult(error, run.happened)


@contextmanager
def called(item: pytest.Item) -> Iterator[None]:
    """Inject a run's faults into the brokers in a test's fixtures; check the history after the test function.

    Raises:
        HistoryError: the history breaks a guarantee, as for `History.check`.
    """
    __tracebackhide__ = True
    run = item.stash[RUN]
    arguments: Mapping[str, object] = getattr(item, "funcargs", {})
    brokers = [each for each in arguments.values() if isinstance(each, (KafkaBroker, KafkaCluster))]
    for each in arguments.values():
        if isinstance(each, History):
            run.history = each
    with under_chaos(run, list({id(each): each for each in brokers}.values()), item.stash[PROMISES]):
        yield
