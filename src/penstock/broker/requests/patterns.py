"""Regular expressions from clients, with limits on the time of parsing and matching.

Clients use such patterns to filter transactional ids in ListTransactions, and client instances in metrics
subscriptions. Apache Kafka matches with RE2/J, which never backtracks; Python's `re` does, and a pattern of a
few characters can keep it busy for hours. So a pattern becomes an automaton with a limited number of states,
counted before any of them is made. The matcher follows all states that the automaton may be in at once, and
caches each set of states with the sets that follow it. Sets that are not cached cost work, and each pattern
may cause a limited amount of work.
"""

from __future__ import annotations

from penstock.broker.requests.pattern_syntax import (
    Anchor,
    At,
    Choice,
    Node,
    One,
    PatternError,
    Repeat,
    Test,
    is_word,
    parse,
)

PATTERN_CHARACTERS_MAX = 1000
"""The maximum length of a pattern in characters. The names that a pattern can match are far shorter."""

STATES_MAX = 2000
"""The maximum number of a pattern's states, with repetitions expanded: each character may visit all
states."""

WORK_MAX = 250_000
"""The maximum number of states that a pattern may visit in total, in about 0.1 s. Cached sets of states do
not count."""

USUAL_CHARACTERS_MAX = 255
"""The length in characters above which the length of a text counts as work, too: one state for each
`CHARACTERS_A_STATE` characters."""

CHARACTERS_A_STATE = 4

KEPT_MAX = 100_000
"""The maximum number of states in all cached sets of a pattern, which take some megabytes."""

__all__ = ["Pattern", "PatternError", "PatternWorkError", "compile_pattern"]


class PatternWorkError(PatternError):
    """Matching a pattern takes too long."""


def compile_pattern(pattern: str, work_max: int = WORK_MAX) -> Pattern:
    """Compile a pattern; return a function that returns True for a text that matches as a whole.

    `pattern_syntax` describes the syntax.

    Raises:
        PatternError: the pattern cannot be used.
    """
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise PatternError(f"a pattern of more than {PATTERN_CHARACTERS_MAX} characters")
    return Pattern(parse(pattern, STATES_MAX), work_max)


_EDGE, _WORD, _NEWLINE, _OTHER = range(4)
"""The classes of neighbouring characters that anchors such as ``^`` distinguish. `_EDGE` is the start or
the end of the text."""


def _kind_of(character: str) -> int:
    if character == "\n":
        return _NEWLINE
    return _WORD if is_word(character) else _OTHER


def _holds(at: At, before: int, behind: int) -> bool:
    if at is At.TEXT_BEGIN:
        return before == _EDGE
    if at is At.TEXT_END:
        return behind == _EDGE
    if at is At.LINE_BEGIN:
        return before in (_EDGE, _NEWLINE)
    if at is At.LINE_END:
        return behind in (_EDGE, _NEWLINE)
    return ((before == _WORD) != (behind == _WORD)) == (at is At.WORD_EDGE)


class _Met:
    """A cached set of the automaton's states, with the set that follows it for each character."""

    __slots__ = ("accepts", "before", "following", "states")

    def __init__(self, states: frozenset[int], before: int) -> None:
        self.states = states
        self.before = before
        self.following: dict[str, _Met] = {}
        self.accepts: bool | None = None
        """True if a text that ends in these states matches; None until this has been computed."""


class Pattern:
    """A compiled pattern. Call it with a text to match."""

    def __init__(self, tree: Node, work_max: int) -> None:
        self._tests: list[Test | None] = []
        self._steps: list[list[tuple[At | None, int]]] = []
        self._sees_kinds = False
        start = self._state()
        self._final = self._build(tree, start)
        self._met: dict[tuple[frozenset[int], int], _Met] = {}
        self._kept = 0
        self._first = _Met(frozenset((start,)), _EDGE)
        self._work_max = work_max
        self._work = 0

    def __call__(self, text: str) -> bool:
        """Return True if the pattern matches the whole of `text`.

        Raises:
            PatternWorkError: the pattern has visited as many states as it may.
        """
        if len(text) > USUAL_CHARACTERS_MAX:
            self._count(len(text) // CHARACTERS_A_STATE)
        met = self._first
        for character in text:
            following = met.following.get(character)
            if following is None:
                following = self._follow(met, character)
            met = following
            if not met.states:
                return False
        if met.accepts is None:
            met.accepts = self._final in self._reached(met, _EDGE)
        return met.accepts

    def renew(self) -> None:
        """Reset the count of visited states to 0, so that the pattern may match further texts."""
        self._work = 0

    def _count(self, work: int) -> None:
        self._work += work
        if self._work > self._work_max:
            raise PatternWorkError("a pattern that takes too long to match")

    # --- matching --------------------------------------------------------------------------------------

    def _follow(self, met: _Met, character: str) -> _Met:
        kind = _kind_of(character) if self._sees_kinds else _OTHER
        tests = self._tests
        states = frozenset(
            state + 1
            for state in self._reached(met, kind)
            if (test := tests[state]) is not None and test(character)
        )
        found = self._met.get((states, kind))
        if found is None:
            self._kept += len(states) + 1
            if self._kept > KEPT_MAX:
                self._met.clear()
                self._first = _Met(self._first.states, _EDGE)
                self._kept = len(states) + 1
            found = self._met[states, kind] = _Met(states, kind)
        met.following[character] = found
        self._kept += 1
        return found

    def _reached(self, met: _Met, behind: int) -> set[int]:
        """Return the states reachable without reading a character if the next one is of class `behind`."""
        reached = set(met.states)
        waiting = list(reached)
        while waiting:
            for at, target in self._steps[waiting.pop()]:
                if target not in reached and (at is None or _holds(at, met.before, behind)):
                    reached.add(target)
                    waiting.append(target)
        self._count(len(reached) + 1)
        return reached

    # --- building --------------------------------------------------------------------------------------

    def _state(self) -> int:
        self._tests.append(None)
        self._steps.append([])
        return len(self._tests) - 1

    def _step(self, begin: int, end: int, at: At | None = None) -> None:
        self._steps[begin].append((at, end))

    def _build(self, node: Node, begin: int) -> int:
        """Add states that match `node` from `begin`, the newest state; return the state after the match."""
        if isinstance(node, One):
            # `begin` is the last that was made: the state behind the test has the next number.
            self._tests[begin] = node.test
            return self._state()
        if isinstance(node, Anchor):
            self._sees_kinds = True
            end = self._state()
            self._step(begin, end, node.at)
            return end
        if isinstance(node, Choice):
            ends = [self._build(branch, self._from(begin)) for branch in node.branches]
            end = self._state()
            for each in ends:
                self._step(each, end)
            return end
        if isinstance(node, Repeat):
            return self._build_repeat(node, begin)
        for part in node.parts:
            begin = self._build(part, begin)
        return begin

    def _from(self, begin: int) -> int:
        fresh = self._state()
        self._step(begin, fresh)
        return fresh

    def _build_repeat(self, node: Repeat, begin: int) -> int:
        for _ in range(node.least):
            begin = self._build(node.part, begin)
        if node.most is None:
            loop = self._from(begin)
            self._step(self._build(node.part, self._from(loop)), loop)
            return self._from(loop)
        skipping = [begin]
        for _ in range(node.most - node.least):
            begin = self._build(node.part, self._from(begin))
            skipping.append(begin)
        end = self._state()
        for each in skipping:
            self._step(each, end)
        return end
