"""The settings of the broker for classic groups."""

from __future__ import annotations

from typing import NamedTuple


class ClassicGroupSettings(NamedTuple):
    """The values of ``group.*``, with Apache Kafka's defaults except for the initial rebalance delay."""

    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
