"""The text of the error for a name that an object or a module does not have.

This module imports no exceptions, because `penstock.errors` itself uses it: the caller makes the exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.common.habits.table import advice
from penstock.common.suggestions import did_you_mean


def described(place: str, name: str, owner: str, known: Sequence[str]) -> str:
    """Return the error text for an attribute that `owner` does not have; `known` are those that it has.

    `place` is the section of the table that has advice.
    """
    said = advice(place, name)
    if said is None:
        hint = did_you_mean(name, [each for each in known if not each.startswith("_")])
    else:
        hint = f": {said}"
    return f"{owner} has no attribute {name!r}{hint}"
