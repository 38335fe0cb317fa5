"""The headers of records: their type, and the value for a record whose format has no headers."""

from __future__ import annotations

Header = tuple[str, bytes | None]
"""One record header: name and value. Names may repeat; a value may be null."""


class Headerless(tuple[Header, ...]):
    """The headers of a record of magic 0 or 1 (before Kafka 0.11), which has none: an empty tuple."""

    __slots__ = ()


HEADERLESS = Headerless()
