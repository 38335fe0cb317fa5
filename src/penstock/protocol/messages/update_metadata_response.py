"""UpdateMetadataResponse (key 6), versions 0 to 8, flexible from version 6 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class UpdateMetadataResponse(Message):
    """UpdateMetadataResponse (key 6), versions 0 to 8, flexible from version 6 on."""

    __slots__ = ("error_code",)

    NAME = "UpdateMetadataResponse"
    API_KEY = 6
    VERSIONS = (0, 8)

    def __init__(
        self,
        *,
        error_code: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.error_code = error_code
        self.unknown_tags = unknown_tags
