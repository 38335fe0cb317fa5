"""`ConfigKey`: the definition of one setting: name, type, default, bounds, and a flag for no effect."""

from __future__ import annotations

from typing import NamedTuple

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
"""The types of settings, with the numbers that DescribeConfigs uses for them (KIP-569)."""

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
DAY_MS = 86_400_000


class ConfigKey(NamedTuple):
    """The definition of one setting. `default` is text, or None if there is no default.

    `choices`, `at_least` and `at_most` limit the value; `never` is an invalid value within the limits.

    `synonyms` are the broker keys that determine the default, highest priority first, each with the factor
    that converts its unit to that of this key.
    """

    name: str
    type: int
    default: str | None
    doc: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    synonyms: tuple[tuple[str, int], ...] = ()
    at_most: float | None = None
    never: float | None = None
    item_pattern: str = ""
    """The regular expression that each item of a list must match, unless the list is ``*``."""

    has_effect: bool = True
    """False for a setting that is checked, stored and listed, but has no effect on the broker."""

    is_any_case: bool = False
    """True if values match `choices`, which are in lower case, case-insensitively."""

    is_hidden: bool = False
    """True if DescribeConfigs lists the setting only if it is set, as Kafka does with internal settings."""


def idle(key: ConfigKey) -> ConfigKey:
    """Return a copy of `key` marked as without effect; the reason must be in the key's description."""
    return key._replace(doc=f"No effect: {key.doc}", has_effect=False)


def table(*keys: ConfigKey) -> dict[str, ConfigKey]:
    """Return a dict from name to key for the given keys."""
    return {key.name: key for key in keys}


def broker_key(
    name: str,
    type_: int,
    default: str | None,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> ConfigKey:
    """Return the definition of a broker setting."""
    return ConfigKey(name, type_, default, doc, choices, at_least, at_most=at_most)
