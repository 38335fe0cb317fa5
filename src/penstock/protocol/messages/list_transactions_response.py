"""ListTransactionsResponse (key 66), versions 0 to 2, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class ListTransactionsResponse(Message):
    """ListTransactionsResponse (key 66), versions 0 to 2, flexible from version 0 on."""

    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")

    NAME = "ListTransactionsResponse"
    API_KEY = 66
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is None else unknown_state_filters
        self.transaction_states = [] if transaction_states is None else transaction_states
        self.unknown_tags = unknown_tags


class TransactionState(Struct):
    """An element of `transaction_states` in ListTransactionsResponse, versions 0 to 2."""

    __slots__ = ("transactional_id", "producer_id", "transaction_state")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state
        self.unknown_tags = unknown_tags
