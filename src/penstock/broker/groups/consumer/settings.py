"""The settings of the broker for consumer groups (KIP-848)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

UNIFORM, RANGE = "uniform", "range"

ASSIGNOR_NAMES = {
    UNIFORM: UNIFORM,
    RANGE: RANGE,
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UNIFORM,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RANGE,
}
"""The broker's assignors, by the names that are valid in `group.consumer.assignors`."""

REGEX_REFRESH_MIN_S = 10.0
"""The least time, in seconds, between two matchings of a group's regular expressions, unless one is new."""


class MigrationPolicy(StrEnum):
    """The values of `group.consumer.migration.policy`: the allowed changes of a group's protocol."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        """Return True if a consumer that joins a classic group converts it to a consumer group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        """Return True if a consumer group with only classic members becomes a classic group."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class ConsumerGroupSettings(NamedTuple):
    """The values of ``group.consumer.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = (UNIFORM, RANGE)
    """The assignors that members may choose. The first one is used for groups whose members choose none."""
    regex_refresh_interval_ms: int = 600_000
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    classic_max_size: int = 2**31 - 1
    """`group.max.size`: the most members of a classic group."""
