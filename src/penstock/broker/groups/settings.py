"""Settings of groups: for each group type a class with the values that apply to one group."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

# --- the classic protocol --------------------------------------------------------------------------------


class ClassicGroupSettings(NamedTuple):
    """The values of ``group.*``, with Apache Kafka's defaults except for the initial rebalance delay."""

    initial_rebalance_delay_ms: int = 0
    max_size: int = 2**31 - 1
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000


# --- consumer groups (KIP-848) ---------------------------------------------------------------------------

UNIFORM, RANGE = "uniform", "range"

ASSIGNOR_NAMES = {
    UNIFORM: UNIFORM,
    RANGE: RANGE,
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": UNIFORM,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": RANGE,
}
"""A dict from each name that is valid in `group.consumer.assignors` to the broker's name of the assignor."""

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
    epochs_as_of_4_4: bool = True
    """True for the rules of Apache Kafka 4.4: a heartbeat that changes the group's assignor raises the group
    epoch, and the target assignment of a group without members has the group epoch. False for older
    releases."""


# --- share groups (KIP-932) ------------------------------------------------------------------------------

SIMPLE = "simple"

SHARE_ASSIGNOR_NAMES = (SIMPLE, "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
"""The values that `group.share.assignors` may have: two names of the only assignor, `simple`."""


class ShareGroupSettings(NamedTuple):
    """The values of ``group.share.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    """The time, in ms, after which an unanswered initialization of share partitions is requested again."""
    knows_topics: bool = True
    """True since Apache Kafka 4.4: a partition that is added to a topic of the group begins at offset 0, and
    the departure of the last member is stored as an empty target assignment."""


# --- streams groups (KIP-1071) ---------------------------------------------------------------------------

STICKY = "sticky"
"""The name of the only task assignor of streams groups."""

OFFSETS_SINCE = (4, 4)
"""The first Apache Kafka release whose streams groups have static members and report their tasks' offsets."""

STANDBY_CONFIG = "num.standby.replicas"
"""The key, in the stored settings of a streams group, of the number of standby tasks."""

TAGS_CONFIG = "rack.aware.assignment.tags"
"""The key, in the stored settings of a streams group, of the client tags that members must have."""


class StreamsGroupSettings(NamedTuple):
    """The values of ``group.streams.*`` for one group, with Apache Kafka's defaults."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    initial_rebalance_delay_ms: int = 3_000
    """The time, in ms, for which a group that was empty waits for more members before it assigns tasks."""
    num_standby_replicas: int = 0
    max_size: int = 2**31 - 1
    tags: tuple[str, ...] = ()
    """The keys of the client tags that members must have. The assignor ignores them."""
    task_offset_interval_ms: int = 60_000
    """The interval, in ms, at which members report the offsets up to which their tasks' state is restored."""
    acceptable_recovery_lag: int = 10_000
    ends_targets: bool = True
    """True if the target assignment is removed when the last member leaves, as since Apache Kafka 4.4."""
