"""Repeats a test, each run with its own broker, plan and history: `explore`, and the decorator `chaos`."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import ConfigError
from penstock.testing.chaos.arming import Armed
from penstock.testing.chaos.history import History
from penstock.testing.chaos.search import RUNS, Failure, RunResult, SearchOptions, search

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster
    from penstock.testing.chaos.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])

PROMISES = ("at_least_once", "exactly_once", "ordered", "writes_once")
"""The names of the guarantees that `History.check` checks, which are also arguments of `chaos` and
`explore`.
"""

CLUSTER_SETTINGS: Mapping[str, Any] = {"replica_fetch_wait_max_ms": 10}
"""The default settings of a run's cluster. Followers fetch a new topic at once instead of after 500 ms, which
would be most of a run."""

OPTIONS = ("seed", "runs", "faults", "replay")


class ChaosError(AssertionError):
    """Raised if a run has failed.

    The message has the run, its faults, the findings, and how to replay the run."""

    def __init__(self, text: str, failure: Failure | None = None) -> None:
        super().__init__(text)
        self.failure = failure
        """The run, and the shortest list of faults with which it fails."""


class ChaosRun:
    """One run of a chaos test: its plan, its history, and the faults injected into its brokers.

    Tests receive it as the fixture `kafka_chaos`.
    """

    def __init__(self, plan: Plan, history: History | None = None) -> None:
        self.plan = plan
        self.history = History() if history is None else history
        self._armed: list[Armed] = []

    def __repr__(self) -> str:
        return f"<ChaosRun {self.plan}>"

    def attach(self, broker: KafkaBroker | KafkaCluster) -> None:
        """Put the plan's faults into a broker or cluster, and record its committed offsets in the history.

        The brokers of fixtures are attached automatically when the test begins.
        """
        self.history.attach(broker)
        self._armed.append(Armed(broker, self.plan))

    @property
    def happened(self) -> tuple[int, ...]:
        """Return the numbers of the plan's faults that have happened, counted from 1."""
        return tuple(sorted({number for each in self._armed for number in each.happened}))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend all faults for the duration of a ``with`` block, such as the preparation of a test."""
        for each in self._armed:
            each.pause()
        try:
            yield
        finally:
            for each in self._armed:
                each.resume()

    def disarm(self) -> None:
        """Remove all faults, and wait for the moves of leaders and restarts that have begun."""
        for each in self._armed:
            each.disarm()

    def check(self, promises: Mapping[str, bool]) -> None:
        """Check the guarantees in the history, if the history has a flow or events.

        Raises:
            HistoryError: the history breaks a guarantee, as for `History.check`.
        """
        __tracebackhide__ = True
        if self.history.flows or self.history.events:
            self.history.check(**promises)


def split_options(given: Mapping[str, Any]) -> tuple[SearchOptions, dict[str, bool]]:
    """Split the arguments of `chaos` into options of the search and guarantees of the application.

    Raises:
        ConfigError: an argument is unknown, or has the wrong type.
    """
    unknown = given.keys() - {*OPTIONS, *PROMISES}
    if unknown:
        known = ", ".join((*OPTIONS, *PROMISES))
        raise ConfigError(f"chaos has no argument {sorted(unknown)[0]!r}; known: {known}")
    promises = {name: given[name] for name in PROMISES if name in given}
    for name, value in promises.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name}={value!r}: {name} is True or False")
    return SearchOptions(**{name: given[name] for name in OPTIONS if name in given}), promises


def explore(
    test: Callable[..., object],
    *,
    seed: int = 0,
    runs: int = RUNS,
    faults: Sequence[str] | None = None,
    replay: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **promises: bool,
) -> int:
    """Run a test many times, with other faults each time; return the number of runs.

    The names of the parameters of `test` select its arguments: `kafka_broker` (a `KafkaBroker` of the run's
    own, with `settings`), `kafka_topic` (the name of a topic on that broker), `kafka_cluster`,
    `kafka_history`, `kafka_chaos`. A coroutine function gets an event loop of its own in each run. `faults`
    are kinds out of `FAULTS`; `promises` are the arguments of `History.check` after each run. `replay`
    selects a single run: ``7:113``, or ``7:113/1,3`` with only some of its faults.

    Raises:
        ChaosError: a run failed; the cause is the error of the test, or a `HistoryError`.
        ConfigError: an argument or a parameter of the test is unknown.
    """
    given = {"seed": seed, "runs": runs, "faults": faults, "replay": replay, **promises}
    return _explore(test, given, settings or {}, 'explore(test, ..., replay="{}")'.format)


def _explore(
    test: Callable[..., object],
    given: Mapping[str, Any],
    settings: Mapping[str, Any],
    replay: Callable[[str], str],
) -> int:
    """Run a test many times for `explore`; `replay` returns Python code that repeats a run, for messages."""
    options, promised = split_options(given)
    names = [name for name in inspect.signature(test).parameters if name in _MADE]
    missing = [name for name in inspect.signature(test).parameters if name not in _MADE]
    if missing or not names:
        said = f"has a parameter {missing[0]!r}" if missing else "has no parameter"
        raise ConfigError(f"{getattr(test, '__name__', test)} {said}; a run gives {', '.join(_MADE)}")

    def carry_out(plan: Plan) -> RunResult:
        run = ChaosRun(plan)
        try:
            with ExitStack() as stack:
                _run(run, test, names, settings, promised, stack)
        except Exception as error:
            return RunResult(error, run.happened)
        return RunResult(None, run.happened)

    plans = options.plans()
    failure = search(carry_out, plans)
    if failure is not None:
        raise ChaosError(failure.describe(replay), failure) from failure.error
    return len(plans)


AGAIN = '@chaos(..., replay="{}")'.format

_MADE = ("kafka_broker", "kafka_topic", "kafka_cluster", "kafka_history", "kafka_chaos")


def _run(
    run: ChaosRun,
    test: Callable[..., object],
    names: Sequence[str],
    settings: Mapping[str, Any],
    promises: Mapping[str, bool],
    stack: ExitStack,
) -> None:
    made: dict[str, Any] = {"kafka_history": run.history, "kafka_chaos": run}
    if "kafka_broker" in names or "kafka_topic" in names:
        from penstock.broker.broker import KafkaBroker

        broker = made["kafka_broker"] = stack.enter_context(KafkaBroker(**settings))
        if "kafka_topic" in names:
            made["kafka_topic"] = broker.create_topic()
    if "kafka_cluster" in names:
        from penstock.broker.cluster import KafkaCluster

        made["kafka_cluster"] = stack.enter_context(KafkaCluster(**{**CLUSTER_SETTINGS, **settings}))
    brokers = [made[name] for name in ("kafka_broker", "kafka_cluster") if name in made]
    with under_chaos(run, brokers, promises):
        outcome = test(**{name: made[name] for name in names})
        if inspect.iscoroutine(outcome):
            asyncio.run(outcome)


@contextmanager
def under_chaos(
    run: ChaosRun, brokers: Sequence[KafkaBroker | KafkaCluster], promises: Mapping[str, bool]
) -> Iterator[None]:
    """Attach brokers to a run, execute the block under its faults, and check the history at the block's end.

    Raises:
        HistoryError: the history breaks a guarantee, as for `History.check`. An exception of the block has
            precedence.
    """
    __tracebackhide__ = True
    try:
        for broker in brokers:
            run.attach(broker)
        try:
            with run.history.watching():
                yield
        finally:
            run.disarm()
        run.check(promises)
    finally:
        run.history.detach()


def chaos(
    *,
    seed: int = 0,
    runs: int = RUNS,
    faults: Sequence[str] | None = None,
    replay: str | None = None,
    **promises: bool,
) -> Callable[[F], F]:
    """Run a test many times, with other faults each time; report the faults that make a run fail.

    With pytest, the decorator equals ``@pytest.mark.chaos(...)``: each run gets new fixtures. If ``unittest``
    or other code calls the test without arguments, the arguments are made as in `explore`.

    `faults` are kinds out of `penstock.testing.chaos.FAULTS`; `promises` are the arguments of `History.check`
    after each run, such as ``exactly_once=True``. `replay` selects a single run, such as ``7:113``.

    Raises:
        ConfigError: an argument is unknown, or has the wrong type.
    """
    given = {"seed": seed, "runs": runs, "faults": faults, "replay": replay, **promises}
    split_options(given)

    def decorate(test: F) -> F:
        parameters = list(inspect.signature(test).parameters)

        def is_whole(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
            return all(name in kwargs for name in parameters[len(args) :])

        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            if is_whole(args, kwargs):
                return test(*args, **kwargs)
            _explore(functools.partial(test, *args, **kwargs), given, {}, AGAIN)
            return None

        @functools.wraps(test)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            if is_whole(args, kwargs):
                return await test(*args, **kwargs)
            # Each run has an event loop of its own, which cannot run inside of another.
            await asyncio.to_thread(_explore, functools.partial(test, *args, **kwargs), given, {}, AGAIN)
            return None

        marked: Any = run_async if inspect.iscoroutinefunction(test) else run
        marked.runs_by_itself = True
        marked.pytestmark = [*getattr(test, "pytestmark", ()), *_mark(given)]
        return marked  # type: ignore[no-any-return]

    return decorate


def _mark(given: dict[str, Any]) -> list[Any]:
    """Return the pytest marker that repeats the test, in a list; the list is empty without pytest."""
    try:
        import pytest
    except ImportError:
        return []
    return [pytest.mark.chaos(**{name: value for name, value in given.items() if value is not None}).mark]
