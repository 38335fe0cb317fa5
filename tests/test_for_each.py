"""Tests of the decorator `for_each`: all failing cases are listed, and none prevents the others."""

from __future__ import annotations

import inspect

import pytest

from for_each import SHOWN, for_each


def test_every_case_runs_and_all_failures_are_listed() -> None:
    seen = []

    @for_each([1, 2, 3, 4])
    def law(number: int) -> None:
        seen.append(number)
        assert number % 2, "even"

    with pytest.raises(pytest.fail.Exception) as failed:
        law()
    assert seen == [1, 2, 3, 4]
    assert [line.split(":")[0] for line in str(failed.value).splitlines() if "Error" in line] == ["2", "4"]
    assert str(failed.value).startswith("2 of 4:")


def test_a_law_that_holds_passes_and_keeps_its_fixtures() -> None:
    @for_each([("a", 1), ("b", 2)])
    def law(letter: str, number: int, offset: int) -> None:
        assert ord(letter) == offset + number

    assert list(inspect.signature(law).parameters) == ["offset"]
    law(offset=ord("a") - 1)


def test_failures_beyond_what_is_shown_are_counted() -> None:
    @for_each(range(SHOWN + 5))
    def law(number: int) -> None:
        pytest.fail("never")

    with pytest.raises(pytest.fail.Exception, match=r"and 5 more"):
        law()


def test_a_law_without_a_case_is_refused() -> None:
    with pytest.raises(AssertionError, match="cannot fail"):
        for_each([])
