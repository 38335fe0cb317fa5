"""UnregisterControllerRequest (key 94), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class UnregisterControllerRequest(Message):
    """UnregisterControllerRequest (key 94), version 0, flexible from version 0 on."""

    __slots__ = ("controller_id",)

    NAME = "UnregisterControllerRequest"
    API_KEY = 94
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        controller_id: int = 0,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.controller_id = controller_id
        self.unknown_tags = unknown_tags
