"""DescribeDelegationTokenRequest (key 41), versions 0 to 3, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, Struct, UnknownTags


class DescribeDelegationTokenRequest(Message):
    """DescribeDelegationTokenRequest (key 41), versions 0 to 3, flexible from version 2 on."""

    __slots__ = ("owners",)

    NAME = "DescribeDelegationTokenRequest"
    API_KEY = 41
    VERSIONS = (0, 3)

    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenOwner] | tuple[()] | None = (),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.owners: list[DescribeDelegationTokenOwner] | None = [] if isinstance(owners, tuple) else owners
        self.unknown_tags = unknown_tags


class DescribeDelegationTokenOwner(Struct):
    """An element of `owners` in DescribeDelegationTokenRequest, versions 0 to 3."""

    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.unknown_tags = unknown_tags
