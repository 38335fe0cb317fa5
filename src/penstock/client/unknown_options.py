"""The error for an option that clients do not have, with the nearest name or other advice."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.common.habits.table import advice
from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError


def unknown_option(name: str, known: Iterable[str], prefix: str = "") -> ConfigError:
    """Return the error for an option that is not among `known`, which are dotted names.

    `prefix` precedes the names of options in error messages, such as ``kafka.`` in Spark.
    """
    said = advice("options", name.replace(".", "_").lower())
    if said is not None:
        return ConfigError(f"unknown option {prefix + name!r}: {said}")
    spelt = [prefix + each if "." in prefix + name else each.replace(".", "_") for each in known]
    return ConfigError(
        f"unknown option {prefix + name!r}{did_you_mean(prefix + name, spelt, 3, quoted=True)}"
    )
