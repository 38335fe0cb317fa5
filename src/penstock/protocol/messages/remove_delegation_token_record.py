"""RemoveDelegationTokenRecord (key 26), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RemoveDelegationTokenRecord(Message):
    """RemoveDelegationTokenRecord (key 26), version 0, flexible from version 0 on."""

    __slots__ = ("token_id",)

    NAME = "RemoveDelegationTokenRecord"
    API_KEY = 26
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        token_id: str = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.token_id = token_id
        self.unknown_tags = unknown_tags
