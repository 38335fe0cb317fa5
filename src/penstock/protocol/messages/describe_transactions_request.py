"""DescribeTransactionsRequest (key 65), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class DescribeTransactionsRequest(Message):
    """DescribeTransactionsRequest (key 65), version 0, flexible from version 0 on."""

    __slots__ = ("transactional_ids",)

    NAME = "DescribeTransactionsRequest"
    API_KEY = 65
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        transactional_ids: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is None else transactional_ids
        self.unknown_tags = unknown_tags
