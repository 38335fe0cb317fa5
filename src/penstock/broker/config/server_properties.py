"""`server.properties`: Java's format, and what a file written for Apache Kafka means here.

A name that nobody knows is told with the nearest one that is known. A name of Kafka's that has no effect
in a single process is told as well. What would leave the broker less protected than the file says is
refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.broker.config.keys import BROKER_KEYS
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

_SECURITY = ("ssl.", "sasl.", "authorizer.", "security.", "super.users", "allow.everyone.if.no.acl.found")
"""Beginnings of names that ask for protection which is not there."""

_RETIRED = (
    "controller.", "kafka.metrics", "log.initial", "quota.", "replica.", "server.max", "zookeeper.",
)  # fmt: skip
"""Beginnings of names that only releases before 3.9 had. They mean nothing here."""


class Property(NamedTuple):
    """One line of the file."""

    line: int
    name: str
    value: str


FILE_CHARACTERS_MAX = 1 << 20
"""A hundred times the longest file of settings there is; what is larger, or has no end, is another file."""


class Reading(NamedTuple):
    """What a file says: the settings that count, and lines to tell about the others."""

    settings: dict[str, str]
    remarks: list[str]


def read_properties(path: str) -> Reading:
    """Read a file of settings.

    Raises:
        ConfigError: it cannot be read, a line is malformed, or it asks for TLS, SASL or authorization.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(FILE_CHARACTERS_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(text) > FILE_CHARACTERS_MAX:
        raise ConfigError(
            f"{path} has more than {FILE_CHARACTERS_MAX} characters: that is no server.properties"
        )
    settings: dict[str, str] = {}
    remarks = []
    idle: list[str] = []
    for line, name, value in parse_properties(text, path):
        where = f"{path}:{line}: "
        key = BROKER_KEYS.get(name)
        if key is not None:
            settings[name] = value
            if not key.has_effect:
                idle.append(name)
        elif name.startswith(_SECURITY):
            raise ConfigError(f"{where}{name} asks for protection that this broker does not have; remove it")
        elif _is_kafkas(name):
            idle.append(name)
        else:
            remarks.append(f"{where}unknown setting {name}, passed over{did_you_mean(name, BROKER_KEYS)}")
    if idle:
        remarks.append(f"{path}: without effect in a single process: {', '.join(dict.fromkeys(idle))}")
    return Reading(settings, remarks)


def _is_kafkas(name: str) -> bool:
    """Whether a name that has no key here is one of Apache Kafka's, of any release."""
    from penstock.broker.config.inert_keys import settings_of_release  # reads a file, few starts need it

    return name.startswith(_RETIRED) or any(name in settings_of_release(release) for release in ("3", "4"))


def parse_properties(text: str, origin: str = "properties") -> list[Property]:
    """Read Java's format: comments, continued lines, ``=``, ``:`` or blanks between name and value, escapes.

    Raises:
        ConfigError: an escape is cut short.
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
        where = f"{origin}:{number}"
        found.append(Property(number, _unescaped(name, where), _unescaped(value.rstrip(" \t\f\r"), where)))
    return found


def _is_continued(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str, where: str) -> str:
    def one(match: re.Match[str]) -> str:
        escape = match[1]
        if escape.startswith("u"):
            if len(escape) != 5:
                raise ConfigError(f"{where}: \\u needs four hexadecimal digits")
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{0,4}|.)", one, text, flags=re.DOTALL)
