"""Tests of the published results of Apache Kafka's own tests: results, reasons, allow list and page agree."""

from __future__ import annotations

from compat.verdicts import page as verdicts
from compat.verdicts.judging import Verdict, release

RESULTS = verdicts.results()
REASONS = verdicts.reasons()


def test_the_page_is_what_the_results_say() -> None:
    page = verdicts.page(RESULTS, REASONS, release(), verdicts.classes())
    assert verdicts.PAGE.read_text(encoding="utf-8") == page


def test_the_page_names_what_was_never_run() -> None:
    found = {("a.OneTest", "t"): verdicts.Result("a.OneTest", "t", passed=1)}
    assert verdicts.never_run(found, ["a.OneTest", "a.TwoTest"]) == ["a.TwoTest"]
    page = verdicts.page(found, {}, "4.3.1", ["a.OneTest", "a.TwoTest"])
    assert "\n1 classes were never run as a whole, " in page
    assert "never run" not in verdicts.page(found, {}, "4.3.1", ["a.OneTest"])


def test_every_class_with_a_result_can_be_run() -> None:
    assert {name for name, _ in RESULTS} <= set(verdicts.classes())


def test_everything_that_does_not_pass_has_a_reason() -> None:
    bad = [each for each in RESULTS.values() if each.verdict != "passes"]
    assert [each.name for each in bad if not verdicts.reason_of(each, REASONS)] == []


def test_no_reason_is_left_of_what_passes() -> None:
    bad = [each for each in RESULTS.values() if each.verdict != "passes"]
    named = {each.name for each in bad} | {each.test_class.rpartition(".")[2] for each in bad}
    assert sorted(set(REASONS) - named) == []


def test_what_is_on_the_allow_list_passes_and_the_other_way_round() -> None:
    assert verdicts.passing() == {each.name for each in RESULTS.values() if each.verdict == "passes"}


def test_ci_runs_the_quickest_third() -> None:
    ms = {each.name: each.ms for each in RESULTS.values()}
    quick = verdicts.quick_third()
    left = verdicts.passing() - set(quick)
    assert len(quick) == len(set(quick)) == len(verdicts.passing()) // 3 > 600
    assert max(ms[each] for each in quick) <= min(ms[each] for each in left)


def test_four_hundred_runs_pass() -> None:
    assert sum(each.passed for each in RESULTS.values()) >= 400


def test_a_run_that_fails_counts_more_than_one_that_passes() -> None:
    runs = [("PASS", ""), ("FAIL", "it broke"), ("SKIP", "TLS")]
    (found,) = verdicts.counted(Verdict(each, "a.b.Test", "t", 5, said) for each, said in runs).values()
    assert (found.name, found.verdict, found.said) == ("Test.t", "fails", "it broke")
    assert (found.passed, found.failed, found.skipped, found.ms) == (1, 1, 1, 15)
    assert verdicts.reason_of(found, {}) is None
    assert verdicts.reason_of(found, {"Test.t": "why"}) == verdicts.reason_of(found, {"Test": "why"}) == "why"
    skipped = verdicts.Result("a.b.Test", "t", skipped=1, said="TLS")
    assert verdicts.reason_of(skipped, {}) == "the test asks for TLS"
