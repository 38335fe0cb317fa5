"""Runs of a test, each with a broker, a plan and a history of its own: `explore`, and `chaos` to decorate."""

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
from penstock.testing.chaos.search import RUNS, Attempt, Failure, Options, search

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster
    from penstock.testing.chaos.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])

PROMISES = ("at_least_once", "exactly_once", "ordered", "writes_once")
"""What `History.check` can be asked for; the check of a run has the same."""

CLUSTER_SETTINGS: Mapping[str, Any] = {"replica_fetch_wait_max_ms": 10}
"""Unless the test sets it: followers take up a new topic at once, where 500 ms would be most of a run."""

OPTIONS = ("seed", "runs", "faults", "replay")


class ChaosError(AssertionError):
    """A run has failed. The text says which, by which faults, what was found, and how to replay it."""

    def __init__(self, text: str, failure: Failure | None = None) -> None:
        super().__init__(text)
        self.failure = failure
        """The run, and the shortest list of faults with which it fails."""


class ChaosRun:
    """One run: the plan, the history, and the faults in force. Tests get it as `kafka_chaos`."""

    def __init__(self, plan: Plan, history: History | None = None) -> None:
        self.plan = plan
        self.history = History() if history is None else history
        self._armed: list[Armed] = []

    def __repr__(self) -> str:
        return f"<ChaosRun {self.plan}>"

    def attach(self, broker: KafkaBroker | KafkaCluster) -> None:
        """Put the faults of the plan into a broker or cluster, and have the history record it.

        The brokers of fixtures are attached when the test begins.
        """
        self.history.attach(broker)
        self._armed.append(Armed(broker, self.plan))

    @property
    def happened(self) -> tuple[int, ...]:
        """The numbers of the faults of the plan that have happened, counted from 1."""
        return tuple(sorted({number for each in self._armed for number in each.happened}))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let nothing go wrong for the length of a block, such as the preparation of a test."""
        for each in self._armed:
            each.pause()
        try:
            yield
        finally:
            for each in self._armed:
                each.resume()

    def disarm(self) -> None:
        """Take all faults out, and wait for the lever that is being moved."""
        for each in self._armed:
            each.disarm()

    def check(self, promises: Mapping[str, bool]) -> None:
        """Check the history, where there is one: a flow, or events.

        Raises:
            HistoryError: as `History.check`.
        """
        __tracebackhide__ = True
        if self.history.flows or self.history.events:
            self.history.check(**promises)


def split_options(given: Mapping[str, Any]) -> tuple[Options, dict[str, bool]]:
    """Return what is searched, and what the application promises, out of the arguments of `chaos`.

    Raises:
        ConfigError: an argument is unknown, or of another kind.
    """
    unknown = given.keys() - {*OPTIONS, *PROMISES}
    if unknown:
        known = ", ".join((*OPTIONS, *PROMISES))
        raise ConfigError(f"chaos has no argument {sorted(unknown)[0]!r}; known: {known}")
    promises = {name: given[name] for name in PROMISES if name in given}
    for name, value in promises.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{name}={value!r}: {name} is True or False")
    return Options(**{name: given[name] for name in OPTIONS if name in given}), promises


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
    """Run a test many times, with other faults each time; return how many runs there were.

    `test` gets what its parameters are named after: `kafka_broker` (a `KafkaBroker` of the run's own, with
    `settings`), `kafka_topic` (the name of a topic on it), `kafka_cluster`, `kafka_history`, `kafka_chaos`.
    It may be a coroutine function: each run has an event loop of its own.
    `faults` are kinds out of `FAULTS`, `promises` what `History.check` is asked for after each run. `replay`
    runs one run only: ``7:113``, or ``7:113/1,3`` with some of its faults.

    Raises:
        ChaosError: a run has failed; its cause is what the test has raised, or a `HistoryError`.
        ConfigError: an argument is unknown, or a parameter of the test is.
    """
    given = {"seed": seed, "runs": runs, "faults": faults, "replay": replay, **promises}
    return _explore(test, given, settings or {}, 'explore(test, ..., replay="{}")'.format)


def _explore(
    test: Callable[..., object],
    given: Mapping[str, Any],
    settings: Mapping[str, Any],
    replay: Callable[[str], str],
) -> int:
    """Do what `explore` does; `replay` returns what to type to have a run again."""
    options, promised = split_options(given)
    names = [name for name in inspect.signature(test).parameters if name in _MADE]
    missing = [name for name in inspect.signature(test).parameters if name not in _MADE]
    if missing or not names:
        said = f"has a parameter {missing[0]!r}" if missing else "has no parameter"
        raise ConfigError(f"{getattr(test, '__name__', test)} {said}; a run gives {', '.join(_MADE)}")

    def carry_out(plan: Plan) -> Attempt:
        run = ChaosRun(plan)
        try:
            with ExitStack() as stack:
                _run(run, test, names, settings, promised, stack)
        except Exception as error:
            return Attempt(error, run.happened)
        return Attempt(None, run.happened)

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
    """Attach brokers to a run, have the block fail by its faults, and check the history at its end.

    Raises:
        HistoryError: as `History.check`. What the block raises comes first.
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
    """Run a test many times, with other faults each time; say of a run that fails which faults it takes.

    With pytest the same as ``@pytest.mark.chaos(...)``: fixtures are made anew for each run. A test that is
    called without its arguments, by ``unittest`` or by hand, gets them as `explore` gives them.

    `faults` are kinds out of `penstock.testing.chaos.FAULTS`; `promises` what `History.check` is asked for
    after each run: ``exactly_once=True`` and the like. `replay` runs one run only, such as ``7:113``.

    Raises:
        ConfigError: an argument is unknown, or of another kind.
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
    """Return the marker by which pytest runs the test many times; nothing where pytest is not installed."""
    try:
        import pytest
    except ImportError:
        return []
    return [pytest.mark.chaos(**{name: value for name, value in given.items() if value is not None}).mark]
