r"""Parses regular expressions in RE2's syntax, which Apache Kafka's brokers accept, to a tree.

Literals, ``.``, classes (``[a-z]``, ``[^a]``, ``[[:alpha:]]``, ``\d``, ``\pL``, ``\p{Lu}``), groups
(plain, ``(?:)``, ``(?P<name>)``, ``(?<name>)``, with the flags i, m, s and U), ``|``, repetitions up to
1,000, greedy or not, anchors (``^ $ \A \z \b \B``), and ``\Q...\E``. Scripts (``\p{Greek}``) are not
supported. As in RE2 there are no backreferences and no lookaround: both need a matcher that backtracks.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

NESTING_MAX = 100
"""The greatest nesting depth of groups. RE2 allows 1,000."""

REPETITIONS_MAX = 1000
"""The maximum number in a repetition such as ``x{1000}``, as in RE2."""

Test = Callable[[str], bool]


class PatternError(ValueError):
    """A pattern is not a regular expression, or uses unsupported syntax."""


class At(Enum):
    """A zero-width condition on a position between two characters, such as a word boundary."""

    TEXT_BEGIN = "\\A"
    TEXT_END = "\\z"
    LINE_BEGIN = "(?m)^"
    LINE_END = "(?m)$"
    WORD_EDGE = "\\b"
    NO_WORD_EDGE = "\\B"


class One(NamedTuple):
    """A node that matches one character for which its test function returns True."""

    test: Test
    size: int = 1


class Anchor(NamedTuple):
    """A node that matches the empty text at positions where a condition holds, such as a line's start."""

    at: At
    size: int = 1


class Sequence(NamedTuple):
    """A node that matches its parts one after another. `size` is its number of states in the automaton."""

    parts: list[Node]
    size: int


class Choice(NamedTuple):
    """A node that matches one of several alternatives."""

    branches: list[Node]
    size: int


class Repeat(NamedTuple):
    """A node that matches another node `least` to `most` times; `most` None means without limit."""

    part: Node
    least: int
    most: int | None
    size: int


Node = One | Anchor | Sequence | Choice | Repeat

EMPTY = Sequence([], 0)


def parse(text: str, states_max: int) -> Node:
    """Parse a pattern; return the root node of its syntax tree.

    Raises:
        PatternError: the pattern is malformed, uses an unsupported construct, or needs an automaton of more
            than `states_max` states.
    """
    parser = _Parser(text, states_max)
    node = parser.choice(_Flags(), 0)
    if parser.position < len(text):
        raise PatternError("a ) without its (")
    return node


class _Flags(NamedTuple):
    folds: bool = False
    lines: bool = False
    dot_is_all: bool = False


_SPACE = "\t\n\f\r "
_ESCAPED = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_AT = {"A": At.TEXT_BEGIN, "z": At.TEXT_END, "b": At.WORD_EDGE, "B": At.NO_WORD_EDGE}
_POSIX: dict[str, Test] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": str.isascii,
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": lambda c: "0" <= c <= "9",
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": lambda c: is_word(c),
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}
_SHORT: dict[str, Test] = {"d": _POSIX["digit"], "s": lambda c: c in _SPACE, "w": _POSIX["word"]}


def is_word(character: str) -> bool:
    """Return True if `character` is a word character: an ASCII letter or digit, or ``_``."""
    return character.isascii() and (character.isalnum() or character == "_")


class _Parser:
    """Parses a pattern from left to right. A method for a construct starts at its first character."""

    def __init__(self, text: str, states_max: int) -> None:
        self.text = text
        self.position = 0
        self._states_max = states_max

    def choice(self, flags: _Flags, depth: int) -> Node:
        """Parse alternatives, up to a closing parenthesis or the end of the pattern."""
        if depth > NESTING_MAX:
            raise PatternError(f"groups that lie more than {NESTING_MAX} deep in each other")
        branches: list[Node] = []
        parts: list[Node] = []
        while self.position < len(self.text) and not self._is_next(")"):
            if self._take("|"):
                branches.append(self._sequence(parts))
                parts = []
            elif self._take("\\Q"):
                parts += self._quoted(flags)
            elif self._take("(?P<") or self._take("(?<"):
                self._skip_name()
                parts.append(self._repeated(self._group(flags, depth)))
            elif self._take("(?"):
                flags, inner = self._flags(flags)
                if inner is not None:
                    parts.append(self._repeated(self._group(inner, depth)))
            elif self._take("("):
                parts.append(self._repeated(self._group(flags, depth)))
            else:
                parts.append(self._repeated(self._single(flags)))
        branches.append(self._sequence(parts))
        if len(branches) == 1:
            return branches[0]
        return Choice(branches, self._fits(sum(each.size + 1 for each in branches) + 1))

    # --- what there is ---------------------------------------------------------------------------------

    def _fits(self, size: int) -> int:
        if size > self._states_max:
            raise PatternError(f"a pattern that becomes more than {self._states_max} states")
        return size

    def _sequence(self, parts: list[Node]) -> Node:
        return parts[0] if len(parts) == 1 else Sequence(parts, self._fits(sum(each.size for each in parts)))

    def _group(self, flags: _Flags, depth: int) -> Node:
        node = self.choice(flags, depth + 1)
        if not self._take(")"):
            raise PatternError("a ( without its )")
        return node

    def _skip_name(self) -> None:
        end = self.text.find(">", self.position)
        name = self.text[self.position : end]
        if end < 0 or not name or not all(map(is_word, name)):
            raise PatternError("a group whose name is none")
        self.position = end + 1

    def _flags(self, flags: _Flags) -> tuple[_Flags, _Flags | None]:
        """Parse the flags after ``(?``; return the flags that apply from now on, and the group's flags.

        The group's flags are None if no group begins, as in ``(?i)``.
        """
        found, value, any_read = flags, True, False
        while True:
            letter = self._next("a group that does not end")
            if letter == "i":
                found = found._replace(folds=value)
            elif letter == "m":
                found = found._replace(lines=value)
            elif letter == "s":
                found = found._replace(dot_is_all=value)
            elif letter == "-" and value:
                value, any_read = False, False
                continue
            elif letter == ":" and (value or any_read):
                return flags, found
            elif letter == ")" and any_read:
                return found, None
            elif letter != "U":  # greedy or not: the same texts match
                raise PatternError(f"a group that begins with (?{letter}: RE2 has none")
            any_read = True

    def _repeated(self, node: Node) -> Node:
        """Parse the repetition after a node, if there is one; return the repeated node, or the same node."""
        bounds = self._bounds()
        if bounds is None:
            return node
        least, most = bounds
        self._take("?")
        if self.position < len(self.text) and (
            self.text[self.position] in "*+?" or self._bounds() is not None
        ):
            raise PatternError("a repetition of a repetition")
        if not node.size:
            return EMPTY  # as often as it is wanted
        end_size = node.size + 3 if most is None else (most - least) * (node.size + 1) + 1
        size = least * node.size + end_size
        return Repeat(node, least, most, self._fits(size))

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        end = self.text.find("}", self.position)
        if not self._is_next("{") or end < 0:
            return None
        first, comma, second = self.text[self.position + 1 : end].partition(",")
        if not _is_number(first) or not (second == "" or _is_number(second)) or len(first + second) > 10:
            return None  # as in RE2, a brace that begins no repetition is a literal
        least = int(first)
        most = int(second) if second else None if comma else least
        if least > REPETITIONS_MAX or (most is not None and not least <= most <= REPETITIONS_MAX):
            raise PatternError(f"a repetition {self.text[self.position : end + 1]}")
        self.position = end + 1
        return least, most

    def _quoted(self, flags: _Flags) -> list[Node]:
        end = self.text.find("\\E", self.position)
        text = self.text[self.position : end if end >= 0 else None]
        self.position = len(self.text) if end < 0 else end + 2
        nodes: list[Node] = [_literal(character, flags) for character in text]
        if nodes:
            nodes[-1] = self._repeated(nodes[-1])
        return nodes

    def _single(self, flags: _Flags) -> Node:
        character = self._next("")
        if character == ".":
            return One((lambda c: True) if flags.dot_is_all else (lambda c: c != "\n"))
        if character == "^":
            return Anchor(At.LINE_BEGIN if flags.lines else At.TEXT_BEGIN)
        if character == "$":
            return Anchor(At.LINE_END if flags.lines else At.TEXT_END)
        if character == "[":
            return One(self._class(flags))
        if character in "*+?":
            raise PatternError(f"a {character} behind nothing")
        if character != "\\":
            return _literal(character, flags)
        letter = self._next("a \\ at the end")
        if letter in _AT:
            return Anchor(_AT[letter])
        test = self._named_class(letter)
        return One(test) if test is not None else _literal(self._escaped(letter), flags)

    def _class(self, flags: _Flags) -> Test:
        """Parse a character class after its ``[``, up to the closing bracket."""
        negated = self._take("^")
        tests: list[Test] = []
        singles: set[str] = set()
        ranges: list[tuple[str, str]] = []
        is_first = True
        while is_first or not self._is_next("]"):
            is_first = False
            if self._take("[:"):
                tests.append(self._posix())
                continue
            first, test = self._member()
            if test is not None:
                tests.append(test)
            elif self._is_next("-") and not self.text.startswith("-]", self.position):
                self.position += 1
                last, test = self._member()
                if test is not None or last < first:
                    raise PatternError("a range in a class that is none")
                ranges.append((first, last))
            else:
                singles.add(first)
        self.position += 1

        def is_in(c: str) -> bool:
            return (
                c in singles
                or any(first <= c <= last for first, last in ranges)
                or any(test(c) for test in tests)
            )

        found = _folded(is_in) if flags.folds else is_in
        return (lambda c: not found(c)) if negated else found

    def _posix(self) -> Test:
        end = self.text.find(":]", self.position)
        name = self.text[self.position : end]
        negated = name.startswith("^")
        test = _POSIX.get(name.removeprefix("^"))
        if end < 0 or test is None:
            raise PatternError(f"a class [:{name[:20]}:]")
        self.position = end + 2
        return _negated(test) if negated else test

    def _member(self) -> tuple[str, Test | None]:
        character = self._next("a class that does not end")
        if character != "\\":
            return character, None
        letter = self._next("a class that does not end")
        test = self._named_class(letter)
        return ("", test) if test is not None else (self._escaped(letter), None)

    def _named_class(self, letter: str) -> Test | None:
        r"""Return the class that ``\`` and a letter stand for, such as ``\d``, or None if there is none."""
        if letter in "pP":
            test = self._category()
        elif letter.lower() in _SHORT:
            test = _SHORT[letter.lower()]
        else:
            return None
        return _negated(test) if letter.isupper() else test

    def _category(self) -> Test:
        name = self._next("a \\p without a name")
        if name == "{":
            end = self.text.find("}", self.position)
            name = self.text[self.position : end] if end >= 0 else ""
            self.position = end + 1
        negated = name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return (lambda c: False) if negated else (lambda c: True)
        if name not in _CATEGORIES:
            raise PatternError(f"a class \\p{{{name[:20]}}}: general categories are known, scripts are not")
        from unicodedata import category  # few patterns have any

        test: Test = lambda c: category(c).startswith(name)  # noqa: E731
        return _negated(test) if negated else test

    def _escaped(self, letter: str) -> str:
        r"""Return the one character that an escape stands for: ``\`` with a letter or sign."""
        if letter in _ESCAPED:
            return _ESCAPED[letter]
        if letter == "x":
            return self._hexadecimal()
        if "0" <= letter <= "7":
            rest = self.text[self.position : self.position + 2]
            digits = letter + rest[: next((n for n, c in enumerate(rest) if c not in "01234567"), len(rest))]
            if letter != "0" and len(digits) == 1:
                raise PatternError(f"a reference to a group, \\{letter}: RE2 has none")
            self.position += len(digits) - 1
            return chr(int(digits, 8))
        if letter.isascii() and letter.isalnum():
            raise PatternError(f"an escape \\{letter}")
        return letter

    def _hexadecimal(self) -> str:
        if self._take("{"):
            end = self.text.find("}", self.position)
            digits = self.text[self.position : end] if end >= 0 else ""
            self.position = end + 1
        else:
            digits = self.text[self.position : self.position + 2]
            self.position += 2
            if len(digits) < 2:
                digits = ""
        try:
            return chr(int(digits, 16)) if digits.isalnum() and len(digits) <= 8 else chr(-1)
        except (ValueError, OverflowError):
            raise PatternError("an escape \\x that names no character") from None

    # --- characters ------------------------------------------------------------------------------------

    def _is_next(self, text: str) -> bool:
        return self.text.startswith(text, self.position)

    def _take(self, text: str) -> bool:
        if self.text.startswith(text, self.position):
            self.position += len(text)
            return True
        return False

    def _next(self, reason: str) -> str:
        if self.position >= len(self.text):
            raise PatternError(reason)
        self.position += 1
        return self.text[self.position - 1]


_CATEGORY_NAMES = (
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
)
_CATEGORIES = frozenset(_CATEGORY_NAMES.split())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _literal(character: str, flags: _Flags) -> One:
    if flags.folds:
        return One(_folded(character.__eq__))
    return One(character.__eq__)


def _negated(test: Test) -> Test:
    return lambda c: not test(c)


def _folded(test: Test) -> Test:
    """Return a character test that accepts what `test` accepts in upper or lower case."""
    return lambda c: test(c) or test(c.lower()) or test(c.upper())
