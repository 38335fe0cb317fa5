"""Searches for a run that fails, and for the shortest list of faults with which the run still fails.

The search itself runs nothing: the caller gives a function that carries out a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from penstock.errors import ConfigError
from penstock.testing.chaos.findings import HistoryError
from penstock.testing.chaos.plan import Plan, checked_kinds, draw, parsed

RUNS = 200
"""The default number of runs of a chaos test."""

TRIES = 2
"""The number of runs with each shorter list of faults: more than one, as failures may depend on timing."""


class RunResult(NamedTuple):
    """The result of one run: the test's error (None if it passed), and the faults that happened."""

    error: BaseException | None
    happened: tuple[int, ...] = ()


@dataclass
class SearchOptions:
    """The options of a search: seed, number of runs and kinds of faults, or one run, named by `replay`."""

    seed: int = 0
    runs: int = RUNS
    faults: Sequence[str] | None = None
    replay: str | None = None
    kinds: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("seed", "runs"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"{name}={value!r}: {name} is a whole number")
        if self.runs < 1:
            raise ConfigError(f"runs={self.runs}: at least one run is needed")
        self.kinds = checked_kinds(self.faults)

    def plans(self) -> list[Plan]:
        """Return the plans of all runs, in order."""
        if self.replay is not None:
            return [parsed(self.replay, self.kinds)]
        return [draw(self.seed, run, self.kinds) for run in range(self.runs)]


@dataclass
class Failure:
    """A failed run, and the shortest list of its faults that still makes it fail."""

    plan: Plan
    """The plan of the failed run, with all faults that were drawn."""
    shortest: Plan
    """The plan with the fewest faults with which the run still fails in the same way."""
    error: BaseException
    """The error of the run with the plan `shortest`."""

    @property
    def name(self) -> str:
        """The name of the failure: the class of its gravest finding, or the type of the error."""
        return name_of(self.error)

    def describe(self, replay: Callable[[str], str]) -> str:
        """Return lines that describe the failure and its faults.

        `replay` returns the code that repeats a run.
        """
        plan, faults = self.plan, self.shortest.faults
        lines = [f"run {plan.run} of seed {plan.seed} fails: {self.name}"]
        if not faults:
            lines.append("without any fault")
        else:
            lines.append(f"by {len(faults)} of its {len(plan.drawn)} faults:")
            numbered = zip(self.shortest.numbers, faults, strict=True)
            lines += [f"  {number}. {fault}" for number, fault in numbered]
        if isinstance(self.error, HistoryError):
            lines += [f"found: {line}" for line in str(self.error).splitlines()]
        else:
            text = str(self.error).strip()
            lines.append(f"raised: {type(self.error).__name__}{': ' if text else ''}{text}")
        return "\n".join([*lines, f"replay: {replay(str(self.shortest))}"])


def name_of(error: BaseException) -> str:
    """Return the name of a failure: the class of its gravest finding, or the type of the error."""
    return error.findings[0].name if isinstance(error, HistoryError) else type(error).__name__


def search(carry_out: Callable[[Plan], RunResult], plans: Sequence[Plan]) -> Failure | None:
    """Carry out plans until one fails, and shorten that plan; return the failure, or None if all pass."""
    for plan in plans:
        attempt = carry_out(plan)
        if attempt.error is not None:
            return _shortest(carry_out, plan, attempt, attempt.error)
    return None


def _shortest(
    carry_out: Callable[[Plan], RunResult], plan: Plan, attempt: RunResult, error: BaseException
) -> Failure:
    """Repeat a failed run with subsets of its faults, small ones first, until the same failure appears."""
    wanted = name_of(error)
    happened = [number for number in plan.numbers if number in attempt.happened]
    # All that happened is tried, too, where others were planned that did not happen.
    for size in range(len(happened) + (len(happened) < len(plan.numbers))):
        for numbers in combinations(happened, size):
            shorter = plan.only(numbers)
            for _ in range(TRIES):
                found = carry_out(shorter).error
                if found is not None and name_of(found) == wanted:
                    return Failure(plan, shorter, found)
    return Failure(plan, plan, error)
