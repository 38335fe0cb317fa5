"""Pushes of a client's metrics to a broker that asks for them (KIP-714). Imported only in that case.

The client asks a broker which metrics to push, how often and in which form; then it pushes them. It uses one
broker at a time, over a connection that is open anyway. An error ends the pushes, and has no other effect.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.client.standard_metrics import standard_metrics
from penstock.common.logs import logger_named
from penstock.errors import EncodeError, PenstockError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from penstock.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest
from penstock.protocol.uuid import ZERO_UUID, uuid_to_text
from penstock.telemetry.otlp import write_metrics

if TYPE_CHECKING:
    from penstock.client.cluster.connection_pool import Peer
    from penstock.client.cluster.metadata import ClusterMetadata
    from penstock.client.config import ClientConfig
    from penstock.client.statistics import Statistics

INTERVAL_S = 300.0
"""The interval in seconds between pushes if no broker gives an interval, or no broker can be asked."""

STEP_S = 1.0
"""The minimum pause in seconds after an error that calls for a new subscription at once, in case a broker
answers with this error every time."""

LAST_PUSH_S = 1.0
"""The maximum time in seconds by which the last push delays the close of a client, as in librdkafka."""

_CODECS = range(1, 5)
_AT_ONCE = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
_LATER = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)

log = logger_named("penstock.client")


class Connected(Protocol):
    """The interface of a client that the metrics push uses."""

    @property
    def config(self) -> ClientConfig: ...

    @property
    def cluster(self) -> ClusterMetadata: ...

    @property
    def request_timeout_s(self) -> float: ...

    def live_peer(self, node_id: int) -> Peer | None:
        """Return the open connection to a node, or None."""


class MetricsPush:
    """Pushes the metrics of one client.

    `snapshot` returns the client's statistics, `dice` a random number from 0 to 1.
    """

    def __init__(
        self,
        client: Connected,
        snapshot: Callable[[], Statistics],
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._snapshot = snapshot
        self._dice = dice
        self._id = ZERO_UUID
        self._known = asyncio.Event()
        self._asked: GetTelemetrySubscriptionsResponse | None = None
        """The subscription (KIP-714) to push for; None if it must be fetched first, or again."""
        self._pushed: Statistics | None = None
        """The statistics of the last push, or None before the first."""
        self._was_delta = False
        self._sending = asyncio.Lock()
        self._has_ended = False
        self._task = asyncio.create_task(self._run())

    async def client_instance_id(self, timeout_s: float) -> str:
        """Return the id that a broker has given this client.

        Raises:
            RequestTimeoutError: no broker has given one within `timeout_s` seconds.
        """
        try:
            if not self._known.is_set():
                await asyncio.wait_for(self._known.wait(), timeout_s)
        except TimeoutError:
            raise RequestTimeoutError(
                f"no broker has given this client an id within {timeout_s:g} s"
            ) from None
        return uuid_to_text(self._id)

    async def close(self, timeout_s: float | None) -> None:
        """Push for the last time, within `timeout_s` seconds, but at most `LAST_PUSH_S` seconds."""
        end_s = LAST_PUSH_S if timeout_s is None else min(timeout_s, LAST_PUSH_S)
        try:
            async with asyncio.timeout(end_s), self._sending:
                self._task.cancel()
                peer = self._peer()
                if not self._has_ended and self._asked is not None and peer is not None:
                    await self._push(peer, self._asked, is_last=True)
        except (TimeoutError, PenstockError) as error:
            log.debug("the last push of metrics was lost: %s", error)
        except Exception:
            log.exception("the last push of metrics has failed")
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while not self._has_ended:
                async with self._sending:
                    wait_s = await self._step()
                await asyncio.sleep(wait_s)
        except Exception:
            self._has_ended = True
            log.exception("pushing metrics has failed, and ends; the client goes on without")

    async def _step(self) -> float:
        """Request a subscription, or push metrics; return the seconds until the next call of this method."""
        peer = self._peer()
        if peer is None:
            return self._interval_s()
        try:
            if self._asked is None:
                return await self._ask(peer)
            return self._after(await self._push(peer, self._asked, is_last=False))
        except PenstockError as error:
            log.debug("metrics were not pushed to broker %s: %s", peer.connection.address, error)
            wait_s = self._interval_s()
            self._asked = None
            return wait_s

    async def _ask(self, peer: Peer) -> float:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=self._id)
        answer: GetTelemetrySubscriptionsResponse = await peer.request(
            request, self._client.request_timeout_s
        )
        if answer.error_code:
            return self._after(answer.error_code)
        if answer.client_instance_id != ZERO_UUID:
            self._id = bytes(answer.client_instance_id)
            self._known.set()
        if not answer.requested_metrics:
            return _seconds(answer.push_interval_ms)
        if self._was_delta != answer.delta_temporality:
            self._pushed = None
        self._was_delta = answer.delta_temporality
        self._asked = answer
        # Clients that have started together do not push together: as in Java's client.
        return self._interval_s() * (0.5 + self._dice())

    async def _push(self, peer: Peer, asked: GetTelemetrySubscriptionsResponse, *, is_last: bool) -> int:
        """Push the metrics since the last push; return the error code of the response."""
        stats = self._snapshot()
        node_ids = {str(node.address): key for key, node in self._client.cluster.nodes.items()}
        points = standard_metrics(
            stats, self._pushed, node_ids, asked.requested_metrics, is_delta=asked.delta_temporality
        )
        codec, metrics = _compressed(write_metrics(points, self._attributes(stats)), asked)
        if len(metrics) > asked.telemetry_max_bytes:
            log.debug("metrics of %d bytes are not pushed: the broker takes less", len(metrics))
            return ErrorCode.NONE
        request = PushTelemetryRequest(
            client_instance_id=self._id,
            subscription_id=asked.subscription_id,
            terminating=is_last,
            compression_type=codec,
            metrics=metrics,
        )
        answer = await peer.request(request, self._client.request_timeout_s)
        if not answer.error_code:
            self._pushed = stats
        return int(answer.error_code)

    def _after(self, code: int) -> float:
        """Return the seconds to wait after a response with this error code, as in Java's client.

        After an error for which retries are useless, the client pushes no more.
        """
        wait_s = self._interval_s()
        if not code:
            return wait_s
        self._asked = None
        if code in _AT_ONCE:
            return STEP_S
        if code not in _LATER:
            self._has_ended = True
            log.info("no more metrics are pushed: %s", error_for(code, "a broker has refused them"))
        return wait_s

    def _interval_s(self) -> float:
        return INTERVAL_S if self._asked is None else _seconds(self._asked.push_interval_ms)

    def _peer(self) -> Peer | None:
        """Return an open connection to a broker that accepts metrics, or None."""
        for node_id in self._client.cluster.nodes:
            peer = self._client.live_peer(node_id)
            if peer is not None and takes_metrics(peer):
                return peer
        return None

    def _attributes(self, stats: Statistics) -> dict[str, str]:
        """Return the labels of the client that KIP-714 defines."""
        config = self._client.config
        named: Mapping[str, object] = {
            "client_rack": getattr(config, "client_rack", None),
            "group_id": getattr(config, "group_id", None),
            "group_instance_id": getattr(config, "group_instance_id", None),
            "group_member_id": stats.cgrp.member_id if stats.cgrp is not None else None,
            "transactional_id": getattr(config, "transactional_id", None),
        }
        return {name: str(value) for name, value in named.items() if value}


def takes_metrics(peer: Peer) -> bool:
    """Return True if the broker of this connection offers GetTelemetrySubscriptions."""
    return GetTelemetrySubscriptionsRequest.API_KEY in peer.versions.ranges


def _seconds(interval_ms: int) -> float:
    return interval_ms / 1000 if interval_ms > 0 else INTERVAL_S


def _compressed(data: bytes, asked: GetTelemetrySubscriptionsResponse) -> tuple[int, bytes]:
    """Return the id of the first codec that broker and client support, and the data compressed with it.

    Without such a codec, the id is 0, and the data are not compressed.
    """
    from penstock.records.compression.codecs import compress

    for codec in asked.accepted_compression_types:
        if codec in _CODECS:
            try:
                return codec, compress(codec, data)
            except (EncodeError, ImportError):
                continue
    return 0, data
