"""The settings of older releases of Apache Kafka: their names and their defaults."""

from __future__ import annotations

from penstock.protocol.releases import release

Numbers = tuple[int, ...]

_TOPIC_SETTINGS: tuple[tuple[str, Numbers, Numbers], ...] = (
    ("message.downconversion.enable", (2, 0), (4, 0)),
    ("message.format.version", (0, 10), (4, 0)),
    ("message.timestamp.difference.max.ms", (0, 10), (4, 0)),
    ("max.compaction.lag.ms", (2, 3), ()),
    ("local.retention.bytes", (3, 0), ()),
    ("local.retention.ms", (3, 0), ()),
    ("remote.storage.enable", (3, 0), ()),
    ("message.timestamp.after.max.ms", (3, 6), ()),
    ("message.timestamp.before.max.ms", (3, 6), ()),
    ("compression.gzip.level", (3, 8), ()),
    ("compression.lz4.level", (3, 8), ()),
    ("compression.zstd.level", (3, 8), ()),
    ("remote.log.copy.disable", (3, 9), ()),
    ("remote.log.delete.on.disable", (3, 9), ()),
    ("internal.segment.bytes", (4, 1), ()),
    ("errors.deadletterqueue.group.enable", (4, 4), ()),
    ("max.decompressed.message.bytes", (4, 4), ()),
    ("remote.copy.lag.bytes", (4, 4), ()),
    ("remote.copy.lag.ms", (4, 4), ()),
)
"""Topic settings that some releases lack: (name, first release that has it, first later release without
it, or an empty tuple).
"""

_BROKER_SETTINGS_SINCE_4 = frozenset(
    (
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        *(f"group.consumer.{limit}assignment.interval.ms" for limit in ("", "min.", "max.")),
        "group.consumer.migration.policy",
        *(
            f"group.share.{limit}.{name}"
            for limit in ("min", "max")
            for name in ("delivery.count.limit", "partition.max.record.locks")
        ),
        *(f"group.share.{limit}assignment.interval.ms" for limit in ("", "min.", "max.")),
        *(
            f"group.streams.{limit}{name}.ms"
            for limit in ("", "min.", "max.")
            for name in ("assignment.interval", "heartbeat.interval", "session.timeout")
        ),
        "group.share.assignors",
        "group.share.max.share.sessions",
        "group.streams.initial.rebalance.delay.ms",
        "group.streams.max.size",
        "group.streams.max.standby.replicas",
        "group.streams.num.standby.replicas",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.segment.bytes",
        "share.coordinator.write.timeout.ms",
    )
)
"""Broker settings that have an effect in Penstock, but that releases before 4.0 do not have."""

_BROKER_SETTINGS_SINCE_4_4 = frozenset(
    (
        "group.streams.acceptable.recovery.lag",
        "group.streams.assignors",
        "group.streams.min.task.offset.interval.ms",
        "group.streams.rack.aware.assignment.tags",
        "group.streams.task.offset.interval.ms",
    )
)
"""Broker settings that have an effect in Penstock, but that releases before 4.4 do not have."""

_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."

_DEFAULTS: tuple[tuple[Numbers, str, str], ...] = (
    ((0, 9), "message.max.bytes", "1000000"),
    ((2, 0), "message.max.bytes", "1000012"),
    ((0, 10, 1), "group.max.session.timeout.ms", "30000"),
    ((2, 0), "group.max.session.timeout.ms", "300000"),
    ((0, 11), "group.initial.rebalance.delay.ms", "0"),
    ((4, 0), "log.message.timestamp.after.max.ms", str(2**63 - 1)),
    ((4, 0), "group.consumer.assignors", f"{_ASSIGNORS}UniformAssignor,{_ASSIGNORS}RangeAssignor"),
    ((4, 0), "group.coordinator.rebalance.protocols", "classic"),
    ((4, 0), "group.share.partition.max.record.locks", "200"),
    ((4, 0), "num.recovery.threads.per.data.dir", "1"),
    ((2, 0), "offsets.retention.minutes", "1440"),
)
"""Rows of (release, name, default in all earlier releases). The first matching row for a name applies."""


class ReleaseSettings:
    """The settings of one release. `version` is its name, such as ``0.10.2``.

    Raises:
        ConfigError: the release does not exist.
    """

    def __init__(self, version: str) -> None:
        found = release(version)
        self.name = found.name
        self.numbers = numbers = found.numbers
        self.stored_magic = 0 if numbers < (0, 10) else 1 if numbers < (0, 11) else 2
        """The magic byte with which brokers of this release store record batches."""
        self.unknown = frozenset(
            name for name, since, until in _TOPIC_SETTINGS if numbers < since or (until and numbers >= until)
        )
        """The names of the topic settings that the release does not have."""
        self.unknown_to_brokers = _BROKER_SETTINGS_SINCE_4 if numbers < (4, 0) else frozenset()
        self.unknown_to_brokers |= _BROKER_SETTINGS_SINCE_4_4 if numbers < (4, 4) else frozenset()
        """Settings of brokers that the release does not have."""
        self.defaults: dict[str, str] = {}
        """A dict from setting to the release's default, where it differs from the newest release's default.
        """
        for before, name, text in _DEFAULTS:
            if numbers < before:
                self.defaults.setdefault(name, text)
