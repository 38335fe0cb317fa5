"""Patterns of transactional ids match as Python's `re` does, and never take long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.requests.patterns import PATTERN_CHARACTERS_MAX, PatternError, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("t1", "t1", True),
        ("t", "t1", False),
        ("", "", True),
        (".*", "anything", True),
        ("a|bc", "bc", True),
        ("(a|b)+c?", "abab", True),
        ("a{2,3}", "aaaa", False),
        ("a{2,}", "aaaa", True),
        ("[a-c]+", "abcabc", True),
        ("[^a-c]+", "xyz", True),
        (r"\d{2}-\w+", "42-id", True),
        ("(?i:AbC)", "aBc", True),
        ("^a$", "a", True),
        ("a^b", "ab", False),
        ("a.c", "a\nc", False),
        ("a*?b", "aab", True),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert compile_pattern(pattern)(text) is matches
    assert bool(re.fullmatch(pattern, text)) is matches


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "a{9", "(a)\\1", "(?=a)a", "\\bword", "x" * (PATTERN_CHARACTERS_MAX + 1), "(a{99}){99}"],
)
def test_patterns_that_cannot_be_used(pattern: str) -> None:
    if pattern == "a{9":
        assert compile_pattern(pattern)("a{9")
        return
    with pytest.raises(PatternError):
        compile_pattern(pattern)


def test_what_keeps_others_busy_for_hours_takes_no_time() -> None:
    started = time.thread_time()
    assert not compile_pattern("(a+)+b")("a" * 2000)
    assert time.thread_time() - started < 5


letters = st.sampled_from(["a", "b", ".", "[ab]", "(a|b)", "(ab)?", "a*", "b+", "(a*b)*", "a{1,2}"])


@given(st.lists(letters, max_size=6).map("".join), st.text("abc", max_size=8))
def test_the_same_texts_match_as_with_re(pattern: str, text: str) -> None:
    assert compile_pattern(pattern)(text) == bool(re.fullmatch(pattern, text))


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    try:
        matches = compile_pattern(pattern)
    except PatternError:
        return
    matches("some-id")
