"""Subscriptions to client metrics: the metrics that matching clients must push, and how often (KIP-714).

Subscriptions are stored as settings of resources of type 16, CLIENT_METRICS. A subscription applies to every
client that it matches.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.broker.requests.patterns import Pattern, PatternWorkError, compile_pattern

INTERVAL_MS = 300_000
"""The default of `interval.ms`. A client without a matching subscription asks for subscriptions again
at this interval.
"""

EVERY_METRIC = "*"

COMPARED_CHARACTERS_MAX = 255
"""The maximum number of characters of a client attribute. Longer ones match no pattern, since matching
would take too long.
"""

MATCHING_WORK_MAX = 20_000
"""The maximum number of matcher states that a pattern may visit for one client, about 10 ms. With more,
the pattern does not match.
"""

MATCHING_CPU_S = 0.02
"""The CPU seconds for matching one client with all subscriptions. Subscriptions not tried by then do
not apply to the client.
"""


class MetricsSubscription(NamedTuple):
    """A subscription to client metrics. `matches` is a dict from client attribute to required pattern."""

    metrics: frozenset[str]
    interval_ms: int
    matches: Mapping[str, Pattern]


class RequestedMetrics(NamedTuple):
    """The metrics that one client must push according to all subscriptions that match it.

    `metrics` are prefixes of metric names.
    """

    metrics: tuple[str, ...]
    interval_ms: int

    def subscription_id(self, client_instance_id: bytes) -> int:
        """Return a client's subscription id, a signed 32-bit number that changes if the metrics change."""
        text = f"{','.join(self.metrics)};{self.interval_ms}"
        mixed = zlib.crc32(text.encode()) ^ zlib.crc32(client_instance_id)
        return mixed - (1 << 32) if mixed >> 31 else mixed


def subscription_of(settings: Mapping[str, str]) -> MetricsSubscription:
    """Return the subscription that a resource's settings describe.

    Raises:
        PatternError: `match` has an expression that this broker does not support. Settings that Apache Kafka
            has written may have Java expressions.
    """
    matches: dict[str, Pattern] = {}
    for item in _items(settings.get("match", "")):
        name, _, pattern = item.partition("=")
        matches[name.strip()] = compile_pattern(pattern.strip(), MATCHING_WORK_MAX)
    interval_ms = int(settings.get("interval.ms", INTERVAL_MS))
    return MetricsSubscription(frozenset(_items(settings.get("metrics", ""))), interval_ms, matches)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def asked_of(
    client: Mapping[str, str | None], subscriptions: Iterable[MetricsSubscription], cpu_s: Callable[[], float]
) -> RequestedMetrics:
    """Return the metrics that the subscriptions request from a client with these attributes.

    `cpu_s` returns the CPU seconds that this thread has used: matching stops after `MATCHING_CPU_S`.
    """
    metrics: set[str] = set()
    interval_ms = INTERVAL_MS
    end_s = cpu_s() + MATCHING_CPU_S
    for subscription in subscriptions:
        if subscription.matches and cpu_s() > end_s:
            break
        if all(_is_match(matches, client.get(name)) for name, matches in subscription.matches.items()):
            metrics |= subscription.metrics
            interval_ms = min(interval_ms, subscription.interval_ms)
    if EVERY_METRIC in metrics:
        metrics = {EVERY_METRIC}
    return RequestedMetrics(tuple(sorted(metrics)), interval_ms)


def _is_match(pattern: Pattern, value: str | None) -> bool:
    if value is None or len(value) > COMPARED_CHARACTERS_MAX:
        return False
    pattern.renew()
    try:
        return pattern(value)
    except PatternWorkError:
        return False
