"""What still breaks a law of ``test_house.py``. These lists only shrink: what is mended has to leave them."""

from __future__ import annotations

IN_IMPORT_CIRCLES: frozenset[str] = frozenset()
ROOMS_IN_CIRCLES: frozenset[str] = frozenset()
LONGER_THAN_800_LINES: frozenset[str] = frozenset()
TELLS_OF_PEOPLE: frozenset[str] = frozenset()
NAMED_BUT_MISSING: frozenset[str] = frozenset()
CUT_BY_INHERITANCE: frozenset[str] = frozenset()
