"""DescribeClientQuotasRequest (key 48), versions 0 to 1, flexible from version 1 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeClientQuotasRequest(Message):
    """DescribeClientQuotasRequest (key 48), versions 0 to 1, flexible from version 1 on."""

    __slots__ = ("components", "strict")

    NAME = "DescribeClientQuotasRequest"
    API_KEY = 48
    VERSIONS = (0, 1)

    def __init__(
        self,
        *,
        components: list[ComponentData] | None = None,
        strict: bool = False,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.components = [] if components is None else components
        self.strict = strict
        self.unknown_tags = unknown_tags


class ComponentData(Struct):
    """An element of `components` in DescribeClientQuotasRequest, versions 0 to 1."""

    __slots__ = ("entity_type", "match_type", "match")

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match
        self.unknown_tags = unknown_tags
