"""RequestHeader, versions 0 to 2, flexible from version 2 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class RequestHeader(Message):
    """RequestHeader, versions 0 to 2, flexible from version 2 on."""

    __slots__ = ("request_api_key", "request_api_version", "correlation_id", "client_id")

    NAME = "RequestHeader"
    API_KEY = None
    VERSIONS = (0, 2)

    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tags = unknown_tags
