"""Patterns that clients send: regular expressions that match in time linear in the length of a text.

Transactional ids are listed by them, and clients chosen that push metrics. Apache Kafka matches with RE2/J,
which never goes back; Python's `re` does, and a pattern of a few characters can keep it busy for hours.
Python's parser reads the pattern, and the states that it may be in are followed side by side. References to
groups and looks around are refused, as RE2 does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from re import _constants, _parser  # type: ignore[attr-defined]  # isort: skip

PATTERN_CHARACTERS_MAX = 1000
"""The names that a pattern could match are far shorter."""

STATES_MAX = 2000
"""How many states a pattern may have, repetitions written out: each character may visit all of them."""

Test = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern is no regular expression, or one that is not supported."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that returns whether all of a text matches.

    Raises:
        PatternError: the pattern cannot be used.
    """
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise PatternError(f"a pattern of more than {PATTERN_CHARACTERS_MAX} characters")
    try:
        parsed = _parser.parse(pattern)
        automaton = _Automaton()
        automaton.final = automaton.sequence(parsed, automaton.start, parsed.state.flags)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise PatternError(str(error)) from None
    return automaton.matches


class _Automaton:
    """States with tests for the next character, and with steps that take none."""

    def __init__(self) -> None:
        self._tests: list[list[tuple[Test, int]]] = []
        self._steps: list[list[tuple[str, int]]] = []
        self.start = self._state()
        self.final = self.start

    def matches(self, text: str) -> bool:
        """Whether all of `text` matches."""
        active = self._reached([self.start], at_start=True, at_end=not text)
        for position, character in enumerate(text):
            following = {target for state in active for test, target in self._tests[state] if test(character)}
            active = self._reached(following, at_start=False, at_end=position + 1 == len(text))
            if not active:
                return False
        return self.final in active

    def _reached(self, states: Iterable[int], *, at_start: bool, at_end: bool) -> set[int]:
        reached = set(states)
        waiting = list(reached)
        while waiting:
            for condition, target in self._steps[waiting.pop()]:
                holds = not condition or (at_start if condition == "start" else at_end)
                if holds and target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached

    # --- building ----------------------------------------------------------------------------------------

    def _state(self) -> int:
        if len(self._tests) >= STATES_MAX:
            raise PatternError(f"a pattern with more than {STATES_MAX} states")
        self._tests.append([])
        self._steps.append([])
        return len(self._tests) - 1

    def _test(self, test: Test, begin: int) -> int:
        end = self._state()
        self._tests[begin].append((test, end))
        return end

    def _step(self, begin: int, end: int, condition: str = "") -> None:
        self._steps[begin].append((condition, end))

    def sequence(self, items: Any, begin: int, flags: int) -> int:
        """Build what matches `items` one after the other; return the state behind."""
        for kind, argument in items:
            begin = self._item(kind, argument, begin, flags)
        return begin

    def _item(self, kind: Any, argument: Any, begin: int, flags: int) -> int:
        name = str(kind)
        if name in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            return self._test(_test_of(name, argument, flags), begin)
        if name == "BRANCH":
            end = self._state()
            for branch in argument[1]:
                self._step(self.sequence(branch, begin, flags), end)
            return end
        if name == "SUBPATTERN":
            _, added, removed, items = argument
            return self.sequence(items, begin, (flags | added) & ~removed)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(begin, flags, *argument)
        if name == "AT":
            condition = "start" if str(argument).startswith("AT_BEGINNING") else "end"
            if "BOUNDARY" in str(argument):
                raise PatternError("a pattern with word boundaries")
            end = self._state()
            self._step(begin, end, condition)
            return end
        raise PatternError(f"a pattern with {name.lower()}")

    def _repeat(self, begin: int, flags: int, least: int, most: Any, items: Any) -> int:
        for _ in range(least):
            begin = self.sequence(items, begin, flags)
        if most == _constants.MAXREPEAT:
            loop = self._state()
            self._step(begin, loop)
            self._step(self.sequence(items, loop, flags), loop)
            return loop
        end = self._state()
        self._step(begin, end)
        for _ in range(most - least):
            begin = self.sequence(items, begin, flags)
            self._step(begin, end)
        return end


def _test_of(name: str, argument: Any, flags: int) -> Test:
    """Whether one element of a pattern matches a character, by Python's own matching of one character."""
    if name == "LITERAL":
        source = re.escape(chr(argument))
    elif name == "NOT_LITERAL":
        source = f"[^{re.escape(chr(argument))}]"
    elif name == "ANY":
        source = "."
    else:
        source = _set_source(argument)
    one = re.compile(source, flags & (re.IGNORECASE | re.DOTALL | re.ASCII))
    return lambda character: one.fullmatch(character) is not None


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _set_source(items: Any) -> str:
    parts = []
    negated = ""
    for kind, argument in items:
        name = str(kind)
        if name == "NEGATE":
            negated = "^"
        elif name == "LITERAL":
            parts.append(re.escape(chr(argument)))
        elif name == "RANGE":
            parts.append(f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}")
        else:
            parts.append(_CATEGORIES[str(argument)])
    return f"[{negated}{''.join(parts)}]"
