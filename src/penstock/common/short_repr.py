"""Values in the text of errors: enough of them to be recognised, never a page."""

from __future__ import annotations

from reprlib import Repr

_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60
_SHOWN.maxlong = 40


def short_repr(value: object) -> str:
    """The repr of a value, long ones with the middle left out."""
    return _SHOWN.repr(value)
