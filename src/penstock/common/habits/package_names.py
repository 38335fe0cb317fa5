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
    """Raise the error for a `name` that a package lacks, with advice from the section `place` of the table.

    `unknown_name` is `penstock.errors.UnknownNameError`. It is an argument because `penstock.errors` imports
    this module.

    Raises:
        UnknownNameError: the name was used as an attribute.
        ImportError: the name was used in ``from package import name``, where Python drops the text of an
            AttributeError.
    """
    text = described(place, name, f"module {package!r}", known)
    if _is_importing(sys._getframe(2)):
        text = text.replace(f"module {package!r} has no attribute", "cannot import name", 1)
        raise ImportError(f"{text} (from {package!r})", name=package) from None
    raise unknown_name(text, name=name)


def _is_importing(frame: FrameType) -> bool:
    """Return True if the frame is executing a ``from module import name``."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]
