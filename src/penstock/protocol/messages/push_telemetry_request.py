"""PushTelemetryRequest (key 72), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class PushTelemetryRequest(Message):
    """PushTelemetryRequest (key 72), version 0, flexible from version 0 on."""

    __slots__ = ("client_instance_id", "subscription_id", "terminating", "compression_type", "metrics")

    NAME = "PushTelemetryRequest"
    API_KEY = 72
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        client_instance_id: bytes = bytes(16),
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics
        self.unknown_tags = unknown_tags
