"""Java's properties files: comments, continued lines, ``=``, ``:`` or blanks after the name, escapes.

Source: the documentation of `java.util.Properties.load`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One entry of a properties file. `line` is the number of its first line, from 1."""

    line: int
    name: str
    value: str


def parse_properties(text: str, origin: str = "properties") -> list[Property]:
    """Return the entries of a properties file, in order, each with the number of its first line.

    `origin` names the file in errors.

    Raises:
        ConfigError: an escape is incomplete.
    """
    found = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        line = line.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while _is_continued(line):
            _, more = next(lines, (0, ""))
            line = line[:-1] + more.lstrip(" \t\f")
        match = re.match(r"((?:\\.|[^\\\s=:])*)[ \t\f]*[=:]?[ \t\f]*", line)
        assert match is not None
        name, value = match[1], line[match.end() :]
        location = f"{origin}:{number}"
        value = _unescaped(value.rstrip(" \t\f\r"), location)
        found.append(Property(number, _unescaped(name, location), value))
    return found


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, location: str) -> str:
    def one(match: re.Match[str]) -> str:
        escape = match[1]
        if escape.startswith("u"):
            if len(escape) != 5:
                raise ConfigError(f"{location}: \\u needs four hexadecimal digits")
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{0,4}|.)", one, text, flags=re.DOTALL)
