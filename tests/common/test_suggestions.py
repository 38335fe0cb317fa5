"""Tests of the suggestions for unknown words."""

from __future__ import annotations

from penstock.common.suggestions import WORD_CHARACTERS_MAX, did_you_mean, nearest

NAMES = ["group.id", "group.instance.id", "client.id"]


def test_the_nearest_word_is_suggested_and_far_ones_are_not() -> None:
    assert did_you_mean("grup.id", NAMES) == "; did you mean group.id?"
    assert did_you_mean("grop.i", NAMES, 3, quoted=True) == "; did you mean 'group.id'?"
    assert did_you_mean("ab", ["abc", "abd", "xyz"], 3, quoted=True) == "; did you mean 'abd' or 'abc'?"
    assert did_you_mean("zzzz", NAMES) == ""


def test_a_long_word_costs_no_more_than_a_short_one() -> None:
    word = "x" * WORD_CHARACTERS_MAX
    assert nearest(word + "y" * 1_000_000, [word]) == [word]
