"""The error text for a name that an object or a module does not have.

This module imports no exceptions, because `penstock.errors` itself uses it: the caller makes the exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.common.habits.table import advice
from penstock.common.suggestions import did_you_mean


def described(place: str, name: str, owner: str, known: Sequence[str]) -> str:
    """Return the error text for the attribute `name`, which `owner` lacks; `known` are the attributes it has.

    `place` is the section of the table of habits that may have advice.
    """
    said = advice(place, name)
    if said is None:
        hint = did_you_mean(name, [each for each in known if not each.startswith("_")])
    else:
        hint = f": {said}"
    return f"{owner} has no attribute {name!r}{hint}"
