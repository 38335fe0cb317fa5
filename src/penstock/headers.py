"""Headers of records: what each is, and those of a record whose format has none."""

from __future__ import annotations

Header = tuple[str, bytes | None]
"""One record header: name and value. Names may repeat; a value may be null."""


class Headerless(tuple[Header, ...]):
    """The headers of a record whose format has none: of magic 0 or 1, before Kafka 0.11. An empty tuple."""

    __slots__ = ()


HEADERLESS = Headerless()
