"""Tests of regular expressions from clients: they match as in RE2, and their cost is limited."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.bench_node import ask, make_node
from for_each import for_each
from penstock.broker.requests.pattern_syntax import NESTING_MAX
from penstock.broker.requests.patterns import (
    PATTERN_CHARACTERS_MAX,
    STATES_MAX,
    WORK_MAX,
    Pattern,
    PatternError,
    PatternWorkError,
    compile_pattern,
)
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.list_transactions_request import ListTransactionsRequest


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("t1", "t1", True),
        ("t", "t1", False),
        ("", "", True),
        ("", "a", False),
        (".*", "anything", True),
        ("a|bc", "bc", True),
        ("a|", "", True),
        ("(a|b)+c?", "abab", True),
        ("a{2,3}", "aaaa", False),
        ("a{2,}", "aaaa", True),
        ("a{2,}", "a", False),
        ("a{0}", "", True),
        ("a{,3}", "a{,3}", True),
        ("a{9", "a{9", True),
        ("a{1000}", "a" * 1000, True),
        ("[a-c]+", "abcabc", True),
        ("[^a-c]+", "xyz", True),
        ("[]a]+", "]a", True),
        ("[a-]+", "a-", True),
        (r"[\d_]+", "4_2", True),
        (r"\d{2}-\w+", "42-id", True),
        (r"\(?x", "x", True),
        (r"\(?x", "(x", True),
        ("(?i:AbC)", "aBc", True),
        ("(?i)a(?-i)B", "AB", True),
        ("(?i)a(?-i)B", "Ab", False),
        ("(?i)[^a]", "A", False),
        ("(?s).", "\n", True),
        ("(?m)a$\n^b", "a\nb", True),
        ("a$\n^b", "a\nb", False),
        ("^a$", "a", True),
        ("a^b", "ab", False),
        ("a.c", "a\nc", False),
        ("a*?b", "aab", True),
        (r"\bword\b", "word", True),
        (r"wo\brd", "word", False),
        (r"wo\Brd", "word", True),
        (r"\Aa\z", "a", True),
        (r"\x41\x{1F600}\n\101", "A\U0001f600\nA", True),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert compile_pattern(pattern)(text) is matches


@for_each(
    [
        ("(?P<name>a)", "a", True),
        ("(?<name>a)+", "aa", True),
        (r"\Qa.b*\E+", "a.b**", True),
        (r"\Qa.", "a.", True),
        ("[[:alpha:][:digit:]]+", "a1", True),
        ("[[:^alpha:]]", "a", False),
        (r"\pL\p{Lu}\P{L}", "aÄ1", True),
        (r"\p{^L}", "a", False),
        (r"\d", "٣", False),
        (r"\w", "ä", False),
        ("(?U)a+", "aa", True),
    ]
)
def test_what_re2_has_beside_python(pattern: str, text: str, matches: bool) -> None:
    assert compile_pattern(pattern)(text) is matches


NO_PATTERNS = (
    r"( ) a) [ [a [z-a] * a** a{2}{3} a\ (?P<>a) (?P<a (?Q) (?i (?) a{1001} a{3,2} (a)\1 (?=a)a (?!a) (?<=a) "
    r"(?<!a) (?>a) \p{Greek} \pQ [[:odd:]] \y \x4 \x{110000} \x{-1}"
)


@for_each(
    [
        *NO_PATTERNS.split(),
        "x" * (PATTERN_CHARACTERS_MAX + 1),
    ]
)
def test_patterns_that_cannot_be_used(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


GREAT = [
    "(a{99}){99}",
    "((?:a){5000}){5000}",
    "(((a{100}){100}){100}){100}",
    "(a*){1000}b{1000}",
    "(a|b|c){1000}",
    "(" * (NESTING_MAX + 2) + ")" * (NESTING_MAX + 2),
]


@pytest.mark.parametrize("pattern", GREAT)
def test_what_would_become_too_many_states_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:){30000000}",
        "(?:){0,30000000}",
        "((?:){5000}){5000}",
        "((?:){1000}){1000}",
        "((){9,}){1000}",
        "(?:)*" * 99,
    ],
)
def test_nothing_repeated_is_nothing_or_refused(pattern: str) -> None:
    """These patterns repeat an empty group. They match the empty text at no cost, or are refused.

    When repetitions were expanded, each took seconds and gigabytes.
    """
    try:
        found = compile_pattern(pattern)
    except PatternError:
        return
    assert states_of(found) == 1
    assert found("")


def states_of(pattern: Pattern) -> int:
    return len(pattern._tests)


PIECES = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    "(a|b)",
    "(ab)?",
    "a*",
    "b+",
    "(a*b)*",
    "a{1,2}",
    "(|a)",
    "^",
    "$",
    "\\b",
]
PIECES += ["(a|b{2,3}){0,2}", "(?:a|)", "a??", "(?i:A)"]


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), st.text("ab c\n", max_size=8))
@example("a$", "a\n")
def test_the_same_texts_match_as_with_re(pattern: str, text: str) -> None:
    """Results equal those of Python's `re`, except for `$`.

    In Python `$` also matches before a final newline.
    """
    expected = re.fullmatch(pattern.replace("$", r"\Z"), text)
    assert compile_pattern(pattern)(text) == bool(expected)


@given(
    st.lists(st.sampled_from([*PIECES, "(", ")", "{3}", "{0,9}", "{7,}", "|", "*"]), max_size=12).map("".join)
)
def test_no_pattern_becomes_more_states_than_its_size_says(pattern: str) -> None:
    try:
        found = compile_pattern(pattern)
    except PatternError:
        return
    assert states_of(found) <= STATES_MAX + 1


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    try:
        matches = compile_pattern(pattern)
    except PatternError:
        return
    matches("some-id")


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)b", "a?" * 200 + "a" * 200 + "b"]
)
def test_what_keeps_others_busy_for_hours_is_little_work(pattern: str) -> None:
    found = compile_pattern(pattern)
    try:
        assert not found("a" * 2000)
    except PatternWorkError:
        assert len(pattern) > 100
    assert found._work <= WORK_MAX + STATES_MAX + 1


def test_sets_that_were_met_are_no_work() -> None:
    found = compile_pattern("(app|web)-[0-9]+-.*")
    assert found("app-17-x")
    before = found._work
    for number in range(1000):
        found(f"app-{number}-x")
    assert found._work - before < 200


def test_work_ends_and_can_be_renewed() -> None:
    """Each text needs new sets of states, until the work limit raises PatternWorkError.

    `renew` allows more work.
    """
    found = compile_pattern("(a|b)*a(a|b){300}", work_max=20_000)
    texts = [
        format(number * 2654435761 % (1 << 200), "b").translate({48: "a", 49: "b"}) for number in range(99)
    ]
    with pytest.raises(PatternWorkError):
        list(map(found, texts))
    with pytest.raises(PatternWorkError):
        found(texts[-1] + "ba" * 99)
    found.renew()
    assert not found("c")


def test_long_texts_are_work() -> None:
    found = compile_pattern(".*")
    with pytest.raises(PatternWorkError):
        list(map(found, ["x" * 30_000] * WORK_MAX))


@pytest.mark.parametrize("pattern", ["(?:){30000000}", "((?:){5000}){5000}", "(a{99}){99}", "(?=a)"])
def test_a_request_with_such_a_pattern_is_refused(pattern: str) -> None:
    found = ask(make_node(), ListTransactionsRequest(transactional_id_pattern=pattern), 2)
    assert found.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
