"""The error for a name that a package does not have, also for ``from package import name``."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

from penstock.common.habits.unknown_names import described


def refuse_name(
    package: str,
    name: str,
    known: Sequence[str],
    unknown_name: Callable[..., Exception],
    *,
    place: str = "penstock",
) -> NoReturn:
    """Raise the error for a `name` that a package does not have. `place` is where the table has advice.

    `unknown_name` is `penstock.errors.UnknownNameError`, which is given because that module calls this one.

    Raises:
        UnknownNameError: it was asked for as an attribute.
        ImportError: by ``from package import name``, where Python would drop the text of the other.
    """
    text = described(place, name, f"module {package!r}", known)
    if _is_importing(sys._getframe(2)):
        text = text.replace(f"module {package!r} has no attribute", "cannot import name", 1)
        raise ImportError(f"{text} (from {package!r})", name=package) from None
    raise unknown_name(text, name=name)


def _is_importing(frame: FrameType) -> bool:
    """Return whether what this frame does is to import a name from a module."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
