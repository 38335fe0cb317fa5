"""`ssl.principal.mapping.rules`: rules that map a client certificate's subject to a principal name.

Rules are separated by commas and tried in order. The result of ``DEFAULT`` is the unchanged subject.
``RULE:pattern/replacement/`` applies to subjects that match the whole pattern; groups of the match replace
``$1`` etc. With ``L`` or ``U`` at the rule's end, the result is in lower or upper case. If no rule matches,
the certificate has no principal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.errors import ConfigError

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")

_REFERENCE = re.compile(r"\$(\d+)|\\(.)", re.DOTALL)


class PrincipalRule(NamedTuple):
    """One rule of `ssl.principal.mapping.rules`; `pattern` is None for DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        """Return the name of the principal, or None if the rule does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(lambda match: _filled(self.replacement, match), name)
        return {"L": result.lower(), "U": result.upper()}.get(self.case, result)


def _filled(replacement: str, match: re.Match[str]) -> str:
    """Return a rule's replacement text with the groups of the match inserted for ``$1`` etc.

    As in Java, ``$12`` is group 1 followed by a 2 if there is no group 12.
    """

    def value(reference: re.Match[str]) -> str:
        if reference[2] is not None:
            return reference[2]
        digits, groups = reference[1], match.re.groups
        size = next((size for size in range(len(digits), 0, -1) if 0 <= int(digits[:size]) <= groups), 0)
        if not size:
            return reference[0]
        return (match[int(digits[:size])] or "") + digits[size:]

    return _REFERENCE.sub(value, replacement)


def parse_principal_rules(text: str) -> list[PrincipalRule]:
    """Parse `ssl.principal.mapping.rules`. If it is empty, no certificate has a principal.

    Raises:
        ConfigError: a rule is malformed.
    """
    rules = []
    position = 0
    while position < len(text) and text[position:].strip():
        match = _RULE.match(text, position)
        if match is None:
            raise ConfigError(
                f"ssl.principal.mapping.rules: {text[position:]!r} is not understood;"
                " write DEFAULT or RULE:pattern/replacement/, with L or U behind it, and commas between"
            )
        position = match.end()
        if match[1]:
            rules.append(PrincipalRule(None, "", ""))
            continue
        try:
            pattern = re.compile(_python_pattern(match[2].replace("\\/", "/")))
        except re.error as error:
            raise ConfigError(f"ssl.principal.mapping.rules: pattern {match[2]!r}: {error}") from None
        if pattern.groups == 0 and re.search(r"(?<!\\)\$[1-9]", match[3]):
            raise ConfigError(
                f"ssl.principal.mapping.rules: pattern {match[2]!r} has no group for {match[3]!r}"
            )
        rules.append(PrincipalRule(pattern, match[3].replace("\\/", "/"), match[4]))
    return rules


def _python_pattern(pattern: str) -> str:
    """Convert a Java regular expression to Python's syntax, which differs for named groups."""
    return re.sub(r"\(\?<([A-Za-z]\w*)>", r"(?P<\1>", pattern)


def principal_name(rules: list[PrincipalRule], subject: str) -> str | None:
    """Return the principal name that the first matching rule yields, or None if none matches."""
    for rule in rules:
        name = rule.apply(subject)
        if name is not None:
            return name
    return None
