"""The settings of the broker for consumer groups (KIP-848), and how they bound each other."""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.config.definition import INT, INT_MAX, LIST, broker_key
from penstock.errors import ConfigError

_UNIFORM, _RANGE = "uniform", "range"
_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."

GROUP_KEYS = (
    broker_key(
        "group.consumer.assignment.interval.ms",
        INT,
        "1000",
        "Least time between two assignments of a consumer group.",
        at_least=0,
    ),
    broker_key(
        "group.consumer.assignors",
        LIST,
        f"{_UNIFORM},{_RANGE}",
        "Assignors that members may name. The first is that of groups whose members name none.",
        choices=(_UNIFORM, _RANGE, f"{_ASSIGNORS}UniformAssignor", f"{_ASSIGNORS}RangeAssignor"),
    ),
    broker_key(
        "group.consumer.heartbeat.interval.ms",
        INT,
        "5000",
        "How often members of consumer groups send heartbeats.",
        at_least=1,
    ),
    broker_key(
        "group.consumer.max.assignment.interval.ms",
        INT,
        "15000",
        "Longest assignment interval that a group may have.",
        at_least=0,
    ),
    broker_key(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        "15000",
        "Longest heartbeat interval that a group may have.",
        at_least=1,
    ),
    broker_key(
        "group.consumer.max.session.timeout.ms",
        INT,
        "60000",
        "Longest session timeout that a group may have.",
        at_least=1,
    ),
    broker_key("group.consumer.max.size", INT, str(INT_MAX), "Most members of a consumer group.", at_least=1),
    broker_key(
        "group.consumer.min.assignment.interval.ms",
        INT,
        "0",
        "Shortest assignment interval that a group may have.",
        at_least=0,
    ),
    broker_key(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        "5000",
        "Shortest heartbeat interval that a group may have.",
        at_least=1,
    ),
    broker_key(
        "group.consumer.min.session.timeout.ms",
        INT,
        "45000",
        "Shortest session timeout that a group may have.",
        at_least=1,
    ),
    broker_key(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        "600000",
        "How often the regular expressions of a group are matched with the topics, if no metadata change.",
        at_least=10_000,
    )._replace(is_hidden=True),
    broker_key(
        "group.consumer.session.timeout.ms",
        INT,
        "45000",
        "After how long without a heartbeat a member leaves a consumer group.",
        at_least=1,
    ),
)

_BOUNDED = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")


def check_group_keys(integer: Callable[[str], int]) -> None:
    """Check that the settings of consumer groups fit together. `integer` returns the value of one.

    Raises:
        ConfigError: one is outside of its bounds, or heartbeats are not more frequent than sessions end.
    """
    for name in _BOUNDED:
        value = integer(f"group.consumer.{name}")
        least, most = integer(f"group.consumer.min.{name}"), integer(f"group.consumer.max.{name}")
        if not least <= value <= most:
            raise ConfigError(
                f"group.consumer.{name} is {value}, which is not between group.consumer.min.{name} ({least}) "
                f"and group.consumer.max.{name} ({most})"
            )
    heartbeat = integer("group.consumer.heartbeat.interval.ms")
    if heartbeat >= integer("group.consumer.session.timeout.ms"):
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms is {heartbeat}, which has to be less than "
            "group.consumer.session.timeout.ms"
        )
