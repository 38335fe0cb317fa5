"""GetTelemetrySubscriptions (71): the metrics that a client must push, interval and codecs (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.client_metrics.connection import keep_with_connection, origin_of
from penstock.broker.context import Context
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from penstock.records.compression.codecs import CompressionCodec

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

COMPRESSIONS = [
    int(codec)
    for codec in (CompressionCodec.ZSTD, CompressionCodec.LZ4, CompressionCodec.GZIP, CompressionCodec.SNAPPY)
]
"""The codecs accepted for pushed metrics, in Apache Kafka's order, the preferred one first."""


def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: Context[ServingNode]
) -> GetTelemetrySubscriptionsResponse:
    """Return the metrics that the client must push; a client without a client instance id gets one."""
    service = context.node.client_metrics
    if service is None:
        return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    code, client_instance_id, instance = service.subscribe(
        bytes(request.client_instance_id), origin_of(context), context.now
    )
    keep_with_connection(context, service, client_instance_id)
    if code:
        return GetTelemetrySubscriptionsResponse(error_code=code)
    context.begin_claims()
    context.claim(sum(4 + len(name) for name in instance.asked.metrics))
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client_instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=COMPRESSIONS,
        push_interval_ms=instance.asked.interval_ms,
        telemetry_max_bytes=service.bytes_max,
        delta_temporality=True,
        requested_metrics=list(instance.asked.metrics),
    )
