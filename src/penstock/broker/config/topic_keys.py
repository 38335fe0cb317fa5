"""The settings of topics: Kafka's names, types and defaults (4.x), and their effects in Penstock.

Each key names the broker keys that determine its default. A key without effect is accepted, because topics of
Apache Kafka may have it; its description gives the reason.
"""

from __future__ import annotations

from typing import Any

from penstock.broker.config.definition import (
    BOOLEAN,
    DAY_MS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    ConfigKey,
    idle,
    table,
)


def _topic(
    name: str,
    type_: int,
    default: str | None,
    doc: str,
    *synonyms: str | tuple[str, int],
    choices: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
    never: float | None = None,
) -> ConfigKey:
    pairs = tuple(s if isinstance(s, tuple) else (s, 1) for s in synonyms)
    return ConfigKey(name, type_, default, doc, choices, at_least, pairs, at_most, never)


def _idle_topic(*column: Any, **more: Any) -> ConfigKey:
    return idle(_topic(*column, **more))


_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

_THROTTLED = ConfigKey(
    "",
    LIST,
    "",
    "In a cluster: replicas to which replication throttles apply: PARTITION:BROKER pairs, or * for all.",
    item_pattern="[0-9]+:[0-9]+",
)

TOPIC_KEYS = table(
    _topic(
        "cleanup.policy",
        LIST,
        "delete",
        "Treatment of outdated data: delete, compact or both.",
        "log.cleanup.policy",
        choices=("delete", "compact"),
    ),
    _topic(
        "compression.gzip.level",
        INT,
        "-1",
        "Compression level if the broker itself compresses with gzip.",
        "compression.gzip.level",
        at_least=-1,
        at_most=9,
        never=0,
    ),
    _topic(
        "compression.lz4.level",
        INT,
        "9",
        "Compression level if the broker itself compresses with lz4.",
        "compression.lz4.level",
        at_least=1,
        at_most=17,
    ),
    _topic(
        "compression.type",
        STRING,
        "producer",
        "Codec with which records are stored; `producer` leaves batches as they were sent.",
        "compression.type",
        choices=_CODECS,
    ),
    _topic(
        "compression.zstd.level",
        INT,
        "3",
        "Compression level if the broker itself compresses with zstd.",
        "compression.zstd.level",
        at_least=-131072,
        at_most=22,
    ),
    _topic(
        "delete.retention.ms",
        LONG,
        str(DAY_MS),
        "Time for which tombstones stay in a compacted topic.",
        "log.cleaner.delete.retention.ms",
        at_least=0,
    ),
    _topic(
        "errors.deadletterqueue.group.enable",
        BOOLEAN,
        "false",
        "Whether share groups may use the topic as their dead letter topic (KIP-1191).",
    ),
    _topic(
        "file.delete.delay.ms",
        LONG,
        "60000",
        "Time between the removal of a segment from the log and the deletion of its files.",
        "log.segment.delete.delay.ms",
        at_least=0,
    ),
    _topic(
        "flush.messages",
        LONG,
        str(LONG_MAX),
        "Number of records after which the log is flushed to disk; 1 means after every batch.",
        "log.flush.interval.messages",
        at_least=1,
    ),
    _topic(
        "flush.ms",
        LONG,
        str(LONG_MAX),
        "Milliseconds after which the log is flushed to disk.",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        at_least=0,
    ),
    _THROTTLED._replace(name="follower.replication.throttled.replicas"),
    _topic(
        "index.interval.bytes",
        INT,
        "4096",
        "Bytes of log between two entries of the offset index.",
        "log.index.interval.bytes",
        at_least=0,
    ),
    ConfigKey(
        "internal.segment.bytes",
        INT,
        None,
        "Size at which a new segment begins, before segment.bytes. For tests: Apache Kafka does not list it.",
        is_hidden=True,
    ),
    _THROTTLED._replace(name="leader.replication.throttled.replicas"),
    _idle_topic(
        "local.retention.bytes",
        LONG,
        "-2",
        "there is no tiered storage.",
        "log.local.retention.bytes",
        at_least=-2,
    ),
    _idle_topic(
        "local.retention.ms",
        LONG,
        "-2",
        "there is no tiered storage.",
        "log.local.retention.ms",
        at_least=-2,
    ),
    _topic(
        "max.compaction.lag.ms",
        LONG,
        str(LONG_MAX),
        "Maximum time until a record becomes eligible for compaction.",
        "log.cleaner.max.compaction.lag.ms",
        at_least=1,
    ),
    _idle_topic(
        "max.decompressed.message.bytes",
        INT,
        "2147483639",
        "penstock.unpack.max.bytes limits how much the broker unpacks.",
        "max.decompressed.message.bytes",
        at_least=1,
        at_most=2147483639,
    ),
    _topic(
        "max.message.bytes",
        INT,
        "1048588",
        "Maximum size of a record batch as it is sent (compressed), in bytes.",
        "message.max.bytes",
        at_least=0,
    ),
    _topic(
        "message.downconversion.enable",
        BOOLEAN,
        "true",
        "Convert records for consumers older than 0.11.",
        "log.message.downconversion.enable",
    ),
    _idle_topic(
        "message.format.version",
        STRING,
        "3.0-IV1",
        "every release that still has this name ignores it, or --as-version sets it.",
        "log.message.format.version",
    ),
    _topic(
        "message.timestamp.after.max.ms",
        LONG,
        "3600000",
        "Maximum difference, in ms, by which a create time may be later than the broker's clock.",
        "log.message.timestamp.after.max.ms",
        at_least=0,
    ),
    _topic(
        "message.timestamp.before.max.ms",
        LONG,
        str(LONG_MAX),
        "Maximum difference, in ms, by which a create time may be earlier than the broker's clock.",
        "log.message.timestamp.before.max.ms",
        at_least=0,
    ),
    _idle_topic(
        "message.timestamp.difference.max.ms",
        LONG,
        str(LONG_MAX),
        "what came before the two limits for times ahead and behind.",
        "log.message.timestamp.difference.max.ms",
        at_least=0,
    ),
    _topic(
        "message.timestamp.type",
        STRING,
        "CreateTime",
        "Time in records: CreateTime (of the producer) or LogAppendTime (of the broker).",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _topic(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        "0.5",
        "Fraction of uncompacted bytes in a log at which a compaction starts.",
        "log.cleaner.min.cleanable.ratio",
        at_least=0,
        at_most=1,
    ),
    _topic(
        "min.compaction.lag.ms",
        LONG,
        "0",
        "Minimum time until a record becomes eligible for compaction.",
        "log.cleaner.min.compaction.lag.ms",
        at_least=0,
    ),
    _topic(
        "min.insync.replicas",
        INT,
        "1",
        "Minimum number of in-sync replicas for writes with acks=all.",
        "min.insync.replicas",
        at_least=1,
    ),
    ConfigKey(
        "penstock.keep.offsets",
        BOOLEAN,
        "false",
        "Batches keep the offsets that a copy gives them, and those below the end of the log are refused. "
        "Apache Kafka does not have it.",
        is_hidden=True,
    ),
    _topic("preallocate", BOOLEAN, "false", "Create segment files at their full size.", "log.preallocate"),
    _idle_topic(
        "remote.copy.lag.bytes",
        LONG,
        "-1",
        "there is no tiered storage.",
        "log.remote.copy.lag.bytes",
        at_least=-1,
    ),
    _idle_topic(
        "remote.copy.lag.ms",
        LONG,
        "0",
        "there is no tiered storage.",
        "log.remote.copy.lag.ms",
        at_least=-1,
    ),
    _idle_topic("remote.log.copy.disable", BOOLEAN, "false", "there is no tiered storage."),
    _idle_topic("remote.log.delete.on.disable", BOOLEAN, "false", "there is no tiered storage."),
    _idle_topic("remote.storage.enable", BOOLEAN, "false", "there is no tiered storage."),
    _topic(
        "retention.bytes",
        LONG,
        "-1",
        "Maximum bytes of a partition; beyond it, old segments are deleted. -1 means no limit.",
        "log.retention.bytes",
    ),
    _topic(
        "retention.ms",
        LONG,
        "604800000",
        "Age at which segments are deleted; -1 means never.",
        "log.retention.ms",
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
        at_least=-1,
    ),
    _topic(
        "segment.bytes",
        INT,
        "1073741824",
        "Size in bytes at which a new segment begins.",
        "log.segment.bytes",
        at_least=14,
    ),
    _topic(
        "segment.index.bytes",
        INT,
        "10485760",
        "Maximum size of an index file, in bytes.",
        "log.index.size.max.bytes",
        at_least=4,
    ),
    _topic(
        "segment.jitter.ms",
        LONG,
        "0",
        "Maximum random time subtracted from segment.ms, so that partitions do not roll all at once.",
        "log.roll.jitter.ms",
        ("log.roll.jitter.hours", 3_600_000),
        at_least=0,
    ),
    _topic(
        "segment.ms",
        LONG,
        "604800000",
        "Age of a segment at which a new one begins.",
        "log.roll.ms",
        ("log.roll.hours", 3_600_000),
        at_least=1,
    ),
    _topic(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        "Allow a replica that is not in sync to lead if no other can; records may be lost.",
        "unclean.leader.election.enable",
    ),
)

RETIRED_KEYS = frozenset(
    ("message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms")
)
"""Topic settings that only older releases have. A broker accepts them only if it behaves like such a
release.
"""
