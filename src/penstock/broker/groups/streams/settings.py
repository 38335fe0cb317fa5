"""The settings of the broker for streams groups (KIP-1071)."""

from __future__ import annotations

from typing import NamedTuple

STICKY = "sticky"
"""The only task assignor."""

STANDBY_CONFIG = "num.standby.replicas"
"""The name under which the number of standby tasks is stored with the group."""


class StreamsGroupSettings(NamedTuple):
    """The values of ``group.streams.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    """The time for which a group that was empty waits for more members before the first assignment."""
    num_standby_replicas: int = 0
    max_size: int = 2**31 - 1
