"""The settings of the broker for share groups (KIP-932)."""

from __future__ import annotations

from typing import NamedTuple

SIMPLE = "simple"

ASSIGNOR_NAMES = (SIMPLE, "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
"""The names of `simple`, the only assignor, that are valid in `group.share.assignors`."""


class ShareGroupSettings(NamedTuple):
    """The values of ``group.share.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    """The time after which an unanswered initialization of share partitions is requested again."""
