"""What still breaks a law of ``test_house.py``. These lists only shrink: what is mended has to leave them."""

from __future__ import annotations

IN_IMPORT_CIRCLES: frozenset[str] = frozenset()
ROOMS_IN_CIRCLES: frozenset[str] = frozenset()
LONGER_THAN_500_LINES: frozenset[str] = frozenset(
    {
        "client/fetch/consumer.py",
        "client/group/membership.py",
    }
)
TELLS_OF_PEOPLE: frozenset[str] = frozenset(
    {
        "broker/config/values.py",
        "client/fetch/consumer.py",
        "client/group/membership.py",
        "client/produce/producer.py",
        "client/produce/sender.py",
    }
)
NAMED_BUT_MISSING: frozenset[str] = frozenset()
