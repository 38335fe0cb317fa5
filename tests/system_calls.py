"""Where tests find the calls that reach the system, to watch them or let them fail."""

from __future__ import annotations

import os
from types import ModuleType

from penstock.common import operating_system


def owner_of(name: str) -> ModuleType:
    """The module through which the product makes a call: its own where not every system has the call."""
    return operating_system if hasattr(operating_system, name) else os
