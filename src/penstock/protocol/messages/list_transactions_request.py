"""ListTransactionsRequest (key 66), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ListTransactionsRequest(Message):
    """ListTransactionsRequest (key 66), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")

    NAME = "ListTransactionsRequest"
    API_KEY = 66
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.state_filters = [] if state_filters is None else state_filters
        self.producer_id_filters = [] if producer_id_filters is None else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self.unknown_tags = unknown_tags
