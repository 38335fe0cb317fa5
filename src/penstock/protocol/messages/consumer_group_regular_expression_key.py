"""ConsumerGroupRegularExpressionKey (key 16), version 0. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class ConsumerGroupRegularExpressionKey(Message):
    """ConsumerGroupRegularExpressionKey (key 16), version 0."""

    __slots__ = ("group_id", "regular_expression")

    NAME = "ConsumerGroupRegularExpressionKey"
    API_KEY = 16
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
        self.unknown_tags = unknown_tags
