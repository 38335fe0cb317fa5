"""The error for a name that a package does not have, also for ``from package import name``."""

from __future__ import annotations

import dis
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from penstock.common.habits.refusals import unknown_name


def refuse_name(package: str, name: str, known: Sequence[str], *, place: str = "penstock") -> NoReturn:
    """Raise the error for a `name` that a package does not have. `place` is where the table has advice.

    Raises:
        UnknownNameError: it was asked for as an attribute.
        ImportError: by ``from package import name``, where Python would drop the text of the other.
    """
    error = unknown_name(place, name, f"module {package!r}", known)
    if _is_importing(sys._getframe(2)):
        text = str(error).replace(f"module {package!r} has no attribute", "cannot import name", 1)
        raise ImportError(f"{text} (from {package!r})", name=package) from None
    raise error


def _is_importing(frame: FrameType) -> bool:
    """Return whether what this frame does is to import a name from a module."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
