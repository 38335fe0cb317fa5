"""The error for an option that clients do not have: the nearest one, or what to type instead of it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.common.habits.table import advice
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError


def unknown_option(name: str, known: Iterable[str], prefix: str = "") -> ConfigError:
    """Return the error for an option that is none of the `known` ones, which are dotted.

    `prefix` is what names are written with elsewhere, as in Spark.
    """
    said = advice("options", name.replace(".", "_").lower())
    if said is not None:
        return ConfigError(f"unknown option {prefix + name!r}: {said}")
    spelt = [prefix + each if "." in prefix + name else each.replace(".", "_") for each in known]
    return ConfigError(
        f"unknown option {prefix + name!r}{did_you_mean(prefix + name, spelt, 3, quoted=True)}"
    )
