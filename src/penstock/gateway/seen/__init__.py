"""Records of a gateway about its clients: a metrics page, an access log, and captures of chosen clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.gateway.seen.taps import Seen as Seen

_HOMES = {"Seen": "taps"}

__all__ = ["Seen"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
