"""Tests of chaos plans: their dependence on a seed, their text, and the search for the fewest faults."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from penstock.broker.faults.faults import code_of, key_of
from penstock.errors import ConfigError
from penstock.protocol.error_codes import ErrorCode
from penstock.testing.chaos import FAULTS, Finding, HistoryError, findings
from penstock.testing.chaos.plan import DEFAULT_FAULTS, KINDS, Plan, PlannedFault, checked_kinds, draw, parsed
from penstock.testing.chaos.search import Failure, RunResult, SearchOptions, search


def test_a_seed_draws_the_same_plan_on_every_machine() -> None:
    plan = draw(7, 113, DEFAULT_FAULTS)
    assert plan == draw(7, 113, DEFAULT_FAULTS)
    assert [tuple(fault) for fault in plan.drawn] == PINNED
    assert draw(7, 114, DEFAULT_FAULTS) != plan
    assert draw(8, 113, DEFAULT_FAULTS).drawn != plan.drawn


PINNED = [("delays", "EndTxn", 13, 1, "20"), ("lost_answers", "TxnOffsetCommit", 13, 1, "")]


def test_run_0_has_no_faults() -> None:
    assert draw(7, 0, FAULTS).faults == ()


def test_what_is_drawn_can_happen() -> None:
    seen: Counter[str] = Counter()
    for run in range(1, 3000):
        plan = draw(1, run, FAULTS)
        assert 1 <= len(plan.drawn) <= 4
        for fault in plan.drawn:
            seen[fault.kind] += 1
            key_of(fault.api)
            if fault.kind in ("errors", "refusals"):
                code_of(fault.detail)
            assert fault.times >= 1
            assert fault.skip >= 0
            assert fault.api in str(fault)
            assert fault.kind in str(fault)
    assert set(seen) == set(FAULTS)


def test_errors_are_tried_again_and_refusals_are_not() -> None:
    dice = random.Random(1)
    for _ in range(200):
        assert ErrorCode[KINDS["errors"].draw("errors", dice).detail].retriable
        assert not ErrorCode[KINDS["refusals"].draw("refusals", dice).detail].retriable


def test_sentences() -> None:
    assert (
        str(PlannedFault("lost_answers", "Produce", 3))
        == "the answer to Produce 4 is lost after its effect (lost_answers)"
    )
    assert str(PlannedFault("slow_disks", "Produce", 0, 2, "5")) == (
        "the disk takes 5 ms for Produce 1 to 2 (slow_disks)"
    )
    assert "3600 s ahead" in str(PlannedFault("clocks", "Fetch", 0, 1, "3600000"))


def test_texts_of_plans() -> None:
    run = next(run for run in range(1, 100) if len(draw(7, run, FAULTS).drawn) == 3)
    plan = draw(7, run, FAULTS)
    assert str(plan) == f"7:{run}"
    for chosen in (plan, plan.only([1, 3]), plan.only([])):
        assert parsed(str(chosen), FAULTS) == chosen
    assert plan.only([1, 3]).faults == (plan.drawn[0], plan.drawn[2])
    assert str(plan.only([])) == f"7:{run}/none"
    with pytest.raises(ConfigError, match="names no run: SEED:RUN"):
        parsed("7", FAULTS)
    with pytest.raises(ConfigError, match="has 3 faults, and no fault 4"):
        parsed(f"7:{run}/4", FAULTS)
    assert parsed("-1:5", FAULTS) == draw(-1, 5, FAULTS)


def test_kinds() -> None:
    assert checked_kinds(None) == DEFAULT_FAULTS
    assert set(FAULTS) - set(DEFAULT_FAULTS) == {"refusals", "restarts", "silence"}
    with pytest.raises(ConfigError, match="did you mean lost_answers"):
        checked_kinds(["lost_answer"])
    with pytest.raises(ConfigError, match="faults is a list of names"):
        checked_kinds("errors")
    with pytest.raises(ConfigError, match="faults is empty"):
        checked_kinds([])


@pytest.mark.parametrize("wrong", [{"seed": "7"}, {"runs": 0}, {"runs": True}, {"faults": ["none"]}])
def test_options_that_cannot_be_meant(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        SearchOptions(**wrong)  # type: ignore[arg-type]


# --- the search ------------------------------------------------------------------------------------------

FOUR = tuple(PlannedFault("lost_answers", "Produce", number) for number in range(4))


def carried_out(fails: set[frozenset[int]], happened: tuple[int, ...] = (1, 2, 3, 4)) -> Failure | None:
    """Search for the fewest faults of a plan of four; return the failure found.

    A run fails if it has all faults of one of the sets in `fails`.
    """
    asked.clear()

    def carry_out(plan: Plan) -> RunResult:
        asked.append(plan.numbers)
        wrong = any(each <= set(plan.numbers) for each in fails)
        return RunResult(RuntimeError("lost") if wrong else None, happened)

    return search(carry_out, [Plan(7, 1, FOUR)])


asked: list[tuple[int, ...]] = []


def test_nothing_fails() -> None:
    assert carried_out(set()) is None
    assert asked == [(1, 2, 3, 4)]


@pytest.mark.parametrize("fails", [{2}, {1, 4}, {2, 3, 4}, {1, 2, 3, 4}, set()])
def test_the_shortest_list_is_found(fails: set[int]) -> None:
    failure = carried_out({frozenset(fails)})
    assert failure is not None
    assert set(failure.shortest.numbers) == fails
    assert failure.plan.numbers == (1, 2, 3, 4)


def test_the_shorter_of_two_reasons_is_found() -> None:
    failure = carried_out({frozenset({1, 2, 3}), frozenset({4})})
    assert failure is not None
    assert failure.shortest.numbers == (4,)


def test_faults_that_did_not_happen_are_not_tried() -> None:
    failure = carried_out({frozenset({3})}, happened=(2, 3))
    assert failure is not None
    assert failure.shortest.numbers == (3,)
    assert not any({1, 4} & set(numbers) for numbers in asked[1:])


def test_another_failure_is_not_the_same() -> None:
    def carry_out(plan: Plan) -> RunResult:
        if len(plan.numbers) == 4:
            return RunResult(HistoryError([findings.LostWork("lost")]), (1, 2, 3, 4))
        return RunResult(HistoryError([findings.DoubledWork("twice")]), plan.numbers)

    failure = search(carry_out, [Plan(7, 1, FOUR)])
    assert failure is not None
    assert failure.name == "LostWork"
    assert failure.shortest.numbers == (1, 2, 3, 4)


def test_what_is_said_of_a_failure() -> None:
    found: list[Finding] = [findings.LostWork("no work was done on orders-0@4")]
    failure = Failure(Plan(7, 113, FOUR), Plan(7, 113, FOUR).only([2]), HistoryError(found))
    assert failure.describe("again {}".format).splitlines() == [
        "run 113 of seed 7 fails: LostWork",
        "by 1 of its 4 faults:",
        "  2. the answer to Produce 2 is lost after its effect (lost_answers)",
        "found: LostWork: no work was done on orders-0@4",
        "replay: again 7:113/2",
    ]
    failure = Failure(Plan(7, 0, ()), Plan(7, 0, ()).only([]), ValueError("no"))
    assert "without any fault" in failure.describe(str)
    assert "raised: ValueError: no" in failure.describe(str)
