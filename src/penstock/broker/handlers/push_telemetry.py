"""PushTelemetry (72): takes metrics that a client pushes (KIP-714)."""

from __future__ import annotations

from logging import WARNING
from typing import TYPE_CHECKING

from penstock.broker.client_metrics.connection import keep_with_connection, origin_of
from penstock.broker.context import Context
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.side_thread import answer_later
from penstock.common.protobuf import ProtobufError, TooManyFieldsError
from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.messages.push_telemetry_response import PushTelemetryResponse
from penstock.records.compression.codecs import decompress
from penstock.telemetry.otlp import Pushed, read_metrics

if TYPE_CHECKING:
    from penstock.broker.handlers.serving_node import ServingNode

INLINE_BYTES = 4096
"""The maximum size in bytes, as sent, of metrics that the event loop decodes, in some milliseconds. A thread
decodes larger ones."""


class _Reading:
    """One push of metrics to decode. After `read`, it has the metrics, or an error code and the reason."""

    def __init__(self, codec: int, data: bytes, bytes_max: int) -> None:
        self._codec = codec
        self._data = data
        self._bytes_max = bytes_max
        self.pushed: Pushed | None = None
        self.code = ErrorCode.NONE
        self.reason = ""

    def read(self) -> None:
        """Decompress and decode the metrics. Any thread may call this method."""
        from penstock.common.threads import pause

        try:
            data = bytes(decompress(self._codec, self._data, self._bytes_max))
            self.pushed = read_metrics(data, between=pause if len(data) > INLINE_BYTES else None)
        except (UnpackLimitError, TooManyFieldsError) as error:
            self.code, self.reason = ErrorCode.TELEMETRY_TOO_LARGE, str(error)
        except (CorruptRecordError, ProtobufError) as error:
            self.code, self.reason = ErrorCode.INVALID_RECORD, str(error)


def push_telemetry(
    request: PushTelemetryRequest, context: Context[ServingNode]
) -> PushTelemetryResponse | Wait:
    """Store the pushed values of a client's metrics as their newest values."""
    service = context.node.client_metrics
    if service is None:
        return PushTelemetryResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    client_instance_id = bytes(request.client_instance_id)
    origin = origin_of(context)
    code = service.admit(
        client_instance_id,
        origin,
        context.now,
        subscription_id=request.subscription_id,
        is_terminating=request.terminating,
        codec=request.compression_type,
        size=len(request.metrics),
    )
    keep_with_connection(context, service, client_instance_id)
    if code:
        return PushTelemetryResponse(error_code=code)
    now_ms = context.now_ms
    is_terminating = request.terminating
    reading = _Reading(request.compression_type, bytes(request.metrics), service.bytes_max)

    def answer() -> PushTelemetryResponse:
        if reading.pushed is not None:
            service.take(client_instance_id, origin, reading.pushed, now_ms, is_terminating=is_terminating)
        else:
            service.refuse(client_instance_id, reading.code)
            context.node.limited_log.write(
                WARNING,
                "metrics of clients",
                "metrics of client %r at %s are not taken: %s",
                origin.client_id,
                origin.address,
                reading.reason,
            )
        return PushTelemetryResponse(error_code=reading.code)

    size = len(request.metrics)
    thread = context.node.side_thread() if size > INLINE_BYTES else None
    if thread is None:
        reading.read()
        return answer()
    if not thread.has_room(size):
        return PushTelemetryResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    waiting: Wait = answer_later(context, reading.read, size, answer)
    return waiting
