"""Maps Kerberos principals to user names with the rules in `sasl.kerberos.principal.to.local.rules`.

A principal is ``user@REALM`` or ``service/host@REALM``. The first rule that applies gives the name, as in
Apache Kafka's KerberosShortNamer: ``DEFAULT`` is for the broker's own realm,
``RULE:[n:format](match)s/from/to/g/L`` for principals of n parts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.errors import ConfigError

_PRINCIPAL = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"DEFAULT|RULE:\[(\d+):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?([LU])?", re.DOTALL
)
_PARAMETER = re.compile(r"\$(\d+)")
RULES_MAX = 1000


class NameRule(NamedTuple):
    """One rule that maps principals of `parts` components to user names. `parts` is 0 for DEFAULT."""

    parts: int = 0
    format: str = ""
    match: re.Pattern[str] | None = None
    source: re.Pattern[str] | None = None
    replacement: str = ""
    repeats: bool = False
    case: str = ""

    def apply(self, components: list[str], own_realm: str) -> str | None:
        """Return the user name for a principal's components, or None if the rule does not apply.

        The components are realm, user or service, and host.

        Raises:
            ValueError: the resulting name still contains ``/`` or ``@``.
        """
        if not self.parts:
            return components[1] if components[0] == own_realm else None
        if len(components) - 1 != self.parts:
            return None
        name = _PARAMETER.sub(
            lambda found: components[int(found[1])] if int(found[1]) < len(components) else "", self.format
        )
        if self.match is not None and not self.match.fullmatch(name):
            return None
        if self.source is not None:
            name = self.source.sub(lambda _: self.replacement, name, count=0 if self.repeats else 1)
        if "/" in name or "@" in name:
            raise ValueError(f"the name {name[:200]!r} has a / or @ after its rule")
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)


def parse_name_rules(text: str) -> list[NameRule]:
    """Return the rules in `text`, where they are separated by commas.

    Raises:
        ConfigError: a rule is malformed.
    """
    rules: list[NameRule] = []
    rest = text.strip()
    while rest:
        found = _RULE.match(rest)
        if found is None or len(rules) >= RULES_MAX:
            raise ConfigError(
                f"sasl.kerberos.principal.to.local.rules: cannot read {rest[:100]!r}; write DEFAULT or "
                "RULE:[n:format](match)s/from/to/g/L, with commas between rules"
            )
        rest = rest[found.end() :].lstrip()
        if rest and not rest.startswith(","):
            raise ConfigError(
                f"sasl.kerberos.principal.to.local.rules: {rest[:100]!r} follows a rule; a comma should"
            )
        rest = rest[1:].lstrip()
        rules.append(_rule(found))
    return rules


def _rule(found: re.Match[str]) -> NameRule:
    parts, shape, match, source, replacement, repeats, case = found.groups()
    if parts is None:
        return NameRule()
    try:
        fits = None if match is None else re.compile(match)
        wanted = None if source is None else re.compile(source)
    except re.error as error:
        raise ConfigError(
            f"sasl.kerberos.principal.to.local.rules: {found[0]!r} has a malformed pattern: {error}"
        ) from None
    return NameRule(int(parts), shape, fits, wanted, replacement or "", bool(repeats), case or "")


def short_name(principal: str, rules: list[NameRule], own_realm: str) -> str:
    """Return the user name for a principal; a text without realm and host is a user name already.

    Raises:
        ValueError: the text is malformed, or no rule applies to it.
    """
    found = _PRINCIPAL.fullmatch(principal)
    if found is None:
        if "@" in principal or "/" in principal or not principal:
            raise ValueError(f"{principal[:200]!r} is no principal")
        return principal
    user, host, realm = found.groups()
    components = [realm, user] if host is None else [realm, user, host]
    for rule in rules:
        name = rule.apply(components, own_realm)
        if name is not None:
            return name
    raise ValueError(f"no rule applies to {principal[:200]!r} (sasl.kerberos.principal.to.local.rules)")
