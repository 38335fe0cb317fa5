"""Names of APIs and messages, for completion and for suggestions."""

from __future__ import annotations


def known_names() -> list[str]:
    """Return the names of all APIs and messages."""
    from penstock.protocol.api import API_TABLE
    from penstock.protocol.message_index import HOMES

    return [*(api.name for api in API_TABLE.values()), *HOMES]
