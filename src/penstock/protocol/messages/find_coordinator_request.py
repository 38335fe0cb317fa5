"""FindCoordinatorRequest (key 10), versions 0 to 6, flexible from version 3 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class FindCoordinatorRequest(Message):
    """FindCoordinatorRequest (key 10), versions 0 to 6, flexible from version 3 on."""

    __slots__ = ("key", "key_type", "coordinator_keys")

    NAME = "FindCoordinatorRequest"
    API_KEY = 10
    VERSIONS = (0, 6)

    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is None else coordinator_keys
        self.unknown_tags = unknown_tags
