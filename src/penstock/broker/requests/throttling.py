"""Where quotas meet requests: what a request has used is charged, and its answer says how long to rest.

The answer leaves at once and with everything that was asked for; the connection rests afterwards (KIP-219).
Handlers are wrapped only while somebody has a quota, so that others pay nothing. Records are counted by their
bytes as they are sent, time is that of the broker's thread in the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.quotas import CLIENT_CHARACTERS_MAX, FETCHED, PRODUCED, TIME, Entity, Quotas
from penstock.protocol.api import ApiKey

if TYPE_CHECKING:
    from penstock.broker.requests.dispatch import Context, Handler


class Throttle:
    """Wraps handlers of a broker that has quotas. `monotonic` is its clock, in seconds."""

    def __init__(self, limits: Mapping[Entity, Mapping[str, float]], monotonic: Callable[[], float]) -> None:
        self.quotas = Quotas(limits)
        self._monotonic = monotonic

    def wrap(self, key: ApiKey, handle: Handler) -> Handler:
        """A handler that does the same, and has whoever uses more than it may rest."""

        def handle_and_charge(request: Any, context: Context) -> Any:
            client_id = (context.client_id or "")[:CLIENT_CHARACTERS_MAX]
            delay_s = 0.0
            if key == ApiKey.PRODUCE:
                size = _produced(request)
                delay_s = self.quotas.charge(PRODUCED, client_id, size, self._monotonic())
            elif key == ApiKey.FETCH:
                self._bound(request, client_id)
            return self._run(key, lambda: handle(request, context), context, client_id, delay_s)

        return handle_and_charge

    def _run(
        self, key: ApiKey, give: Callable[[], Any], context: Context, client_id: str, delay_s: float
    ) -> Any:
        """Have an answer given, and charge the time that it took; an answer that comes later, then."""
        began = self._monotonic()
        response = give()
        now = self._monotonic()
        delay_s = max(delay_s, self.quotas.charge(TIME, client_id, (now - began) * 100, now))
        if type(response) is Wait:
            later = response.answer
            if later is not None:
                response.answer = lambda: self._run(key, later, context, client_id, delay_s)
            return response
        if key == ApiKey.FETCH:
            delay_s = max(delay_s, self.quotas.charge(FETCHED, client_id, _fetched(response), now))
        throttle_ms = round(delay_s * 1000)
        if throttle_ms:
            context.throttle_ms = throttle_ms
            if hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
        return response

    def _bound(self, request: Any, client_id: str) -> None:
        """Have a Fetch ask for no more than its client may have at once."""
        burst = self.quotas.burst(FETCHED, client_id)
        if burst is not None:
            request.max_bytes = int(min(request.max_bytes, burst))
            request.min_bytes = min(request.min_bytes, request.max_bytes)


def _produced(request: Any) -> int:
    return sum(
        len(partition.records or b"") for topic in request.topic_data for partition in topic.partition_data
    )


def _fetched(response: Any) -> int:
    return sum(_size(partition.records) for topic in response.responses for partition in topic.partitions)


def _size(records: Any) -> int:
    """Bytes of records, in one piece or in several."""
    return sum(map(len, records)) if isinstance(records, (list, tuple)) else len(records or b"")
