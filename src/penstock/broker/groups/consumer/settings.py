"""The broker's settings that consumer groups (KIP-848) depend on."""

from __future__ import annotations

from typing import NamedTuple

UNIFORM, RANGE = "uniform", "range"

ASSIGNOR_NAMES = {
    UNIFORM: UNIFORM,
    RANGE: RANGE,
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UNIFORM,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RANGE,
}
"""The assignors that the broker has, by each name that `group.consumer.assignors` may give them."""

REGEX_REFRESH_MIN_S = 10.0
"""A group resolves its regular expressions at most once in so many seconds, unless one is new."""


class ConsumerGroupSettings(NamedTuple):
    """The values of ``group.consumer.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The assignors that members may name; the first is that of groups whose members name none."""
    regex_refresh_interval_ms: int = 600_000
