"""EnvelopeRequest (key 58), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class EnvelopeRequest(Message):
    """EnvelopeRequest (key 58), version 0, flexible from version 0 on."""

    __slots__ = ("request_data", "request_principal", "client_host_address")

    NAME = "EnvelopeRequest"
    API_KEY = 58
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.request_data = request_data
        self.request_principal = request_principal
        self.client_host_address = client_host_address
        self.unknown_tags = unknown_tags
