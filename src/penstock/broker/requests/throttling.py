"""Quotas applied to requests: an interceptor that charges a request's use and throttles its client.

The response is sent at once, complete, with the throttle time in ms; the connection is then muted for this
time (KIP-219). The interceptor is in the chain only while a quota is set. Records are charged by their
encoded bytes; request time is the time of the broker's thread in the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.broker.quota_entities import Entity
from penstock.broker.requests.purgatory import Wait
from penstock.broker.requests.quotas import (
    CLIENT_CHARACTERS_MAX,
    FETCHED,
    PRODUCED,
    TIME,
    Mutations,
    MutationTokens,
    Quotas,
    Windows,
)
from penstock.protocol.api import ApiKey
from penstock.protocol.since import (
    CREATE_PARTITIONS_QUOTA_ERROR_SINCE,
    CREATE_TOPICS_QUOTA_ERROR_SINCE,
    DELETE_TOPICS_QUOTA_ERROR_SINCE,
)

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.requests.routes import Answer, VersionedRoute

STRICT_SINCE = {
    ApiKey.CREATE_TOPICS: CREATE_TOPICS_QUOTA_ERROR_SINCE,
    ApiKey.DELETE_TOPICS: DELETE_TOPICS_QUOTA_ERROR_SINCE,
    ApiKey.CREATE_PARTITIONS: CREATE_PARTITIONS_QUOTA_ERROR_SINCE,
}
"""A dict from API key to the first version with error 89 (KIP-599). Requests over quota in older versions
are carried out, and throttled."""

FETCHING = (ApiKey.FETCH, ApiKey.SHARE_FETCH)
"""The APIs whose responses have records, which count towards `consumer_byte_rate`."""

MUTATING = {*STRICT_SINCE, ApiKey.METADATA}
"""The APIs that create and delete partitions. Partitions that Metadata creates are counted, never refused."""


class ClientThrottle:
    """Charges clients against `limits` and throttles them. `monotonic` is the clock, in seconds.

    `mutation_tokens` has the token buckets of quotas on created and deleted partitions; `mutation_windows`
    gives their size.
    """

    def __init__(
        self,
        limits: Mapping[Entity, Mapping[str, float]],
        monotonic: Callable[[], float],
        windows: Windows = Windows(),  # noqa: B008  a tuple does not change
        mutation_tokens: MutationTokens | None = None,
        mutation_windows: Windows = Windows(),  # noqa: B008
    ) -> None:
        self.quotas = Quotas(limits, windows)
        tokens = {} if mutation_tokens is None else mutation_tokens
        self._mutations = Mutations(self.quotas, tokens, mutation_windows)
        self._monotonic = monotonic

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Wrap a route so that it charges clients for their use, and throttles clients over quota."""
        key, handle = route.key, route.handle

        def handle_and_charge(request: Any, context: Context[Any]) -> Answer:
            client_id = (context.session.client_id or "")[:CLIENT_CHARACTERS_MAX]
            delay_s = 0.0
            if key == ApiKey.PRODUCE:
                size = _produced(request)
                delay_s = self.quotas.charge(PRODUCED, client_id, size, self._monotonic(), _user(context))
            elif key in FETCHING:
                self._bound(request, client_id, _user(context))
            elif key in MUTATING:
                context.mutations = self._mutations.charge(
                    client_id,
                    self._monotonic(),
                    _user(context),
                    is_strict=key in STRICT_SINCE and context.version >= STRICT_SINCE[ApiKey(key)],
                )
            return self._run(key, lambda: handle(request, context), context, client_id, delay_s)

        return route._replace(handle=handle_and_charge)

    def _run(
        self, key: int, give: Callable[[], Answer], context: Context[Any], client_id: str, delay_s: float
    ) -> Answer:
        """Answer a request and charge the handler's time, without the time that the request waited."""
        user = _user(context)
        began = self._monotonic()
        try:
            response = give()
        finally:
            charge, context.mutations = context.mutations, None
        if charge is not None and key in STRICT_SINCE:
            delay_s = max(delay_s, charge.delay_s)
        now = self._monotonic()
        delay_s = max(delay_s, self.quotas.charge(TIME, client_id, (now - began) * 100, now, user))
        if type(response) is Wait:
            later = response.answer
            if later is not None:
                response.answer = lambda: self._run(key, later, context, client_id, delay_s)
            return response
        if key in FETCHING:
            delay_s = max(delay_s, self.quotas.charge(FETCHED, client_id, _fetched(response), now, user))
        throttle_ms = round(delay_s * 1000)
        if throttle_ms:
            context.throttle_ms = throttle_ms
            if response is not None and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
        return response

    def _bound(self, request: Any, client_id: str, user: str) -> None:
        """Limit the bytes of a Fetch request to what its client may use at once."""
        burst = self.quotas.burst(FETCHED, client_id, user)
        if burst is not None:
            request.max_bytes = int(min(request.max_bytes, burst))
            request.min_bytes = min(request.min_bytes, request.max_bytes)


def _user(context: Context[Any]) -> str:
    """Return the name of the client's principal, truncated to `CLIENT_CHARACTERS_MAX`."""
    return context.session.principal.name[:CLIENT_CHARACTERS_MAX]


def _produced(request: Any) -> int:
    return sum(
        len(partition.records or b"") for topic in request.topic_data for partition in topic.partition_data
    )


def _fetched(response: Any) -> int:
    return sum(_size(partition.records) for topic in response.responses for partition in topic.partitions)


def _size(records: Any) -> int:
    """Return the number of bytes of records, which may be in one piece or in several."""
    return sum(map(len, records)) if isinstance(records, (list, tuple)) else len(records or b"")
