"""GetTelemetrySubscriptionsResponse (key 71), version 0, flexible from version 0 on. Generated from the definition: do not edit."""

from __future__ import annotations

from penstock.protocol.message import Message, UnknownTags


class GetTelemetrySubscriptionsResponse(Message):
    """GetTelemetrySubscriptionsResponse (key 71), version 0, flexible from version 0 on."""

    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )

    NAME = "GetTelemetrySubscriptionsResponse"
    API_KEY = 71
    VERSIONS = (0, 0)

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = bytes(16),
        subscription_id: int = 0,
        accepted_compression_types: list[int] | None = None,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] | None = None,
        unknown_tags: UnknownTags = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = (
            [] if accepted_compression_types is None else accepted_compression_types
        )
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is None else requested_metrics
        self.unknown_tags = unknown_tags
