"""GetTelemetrySubscriptionsRequest (key 71), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class GetTelemetrySubscriptionsRequest(Message):
    """GetTelemetrySubscriptionsRequest (key 71), version 0, flexible from version 0 on."""

    __slots__ = ("client_instance_id",)

    NAME = "GetTelemetrySubscriptionsRequest"
    API_KEY = 71
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        client_instance_id: bytes = bytes(16),
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.unknown_tags = unknown_tags
