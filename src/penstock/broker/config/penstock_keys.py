"""The broker settings that Apache Kafka does not have: names that begin with ``penstock.``."""

from __future__ import annotations

from penstock.broker.config.definition import BOOLEAN, INT, LONG, STRING, broker_key

CHANGES_MAX = "penstock.request.changes.max"
"""The setting that limits how many topics, resources with settings or quota entities one request changes."""

_NAMES_07 = (
    "brokerid",
    "hostname",
    "log.cleanup.interval.mins",
    "log.default.flush.interval.ms",
    "log.default.flush.scheduler.interval.ms",
    "log.file.size",
    "log.flush.interval",
    "log.retention.hours",
    "log.retention.size",
    "log.roll.hours",
    "max.message.size",
    "max.socket.request.bytes",
    "max.topic.name.length",
    "num.partitions",
    "topic.flush.intervals.ms",
    "topic.log.file.size",
    "topic.log.retention.hours",
    "topic.log.retention.size",
    "topic.log.roll.hours",
    "topic.partition.count.map",
    "zk.connect",
    "zk.digest",
    "zk.sessiontimeout.ms",
    "zk.connectiontimeout.ms",
)
"""The settings of Kafka 0.7. `penstock.v07.settings` reads them. Few brokers import that module, so the names
are repeated here; a test compares the two lists."""

PENSTOCK_KEYS = (
    *(broker_key(f"penstock.0.7.{name}", STRING, None, f"Kafka 0.7's own {name}.") for name in _NAMES_07),
    broker_key("penstock.0.7.host", STRING, None, "Address of the Kafka 0.7 listener; that of the other."),
    broker_key(
        "penstock.0.7.port",
        INT,
        None,
        "Port of the Kafka 0.7 listener; 0 takes a free one. Without it there is none.",
        at_least=0,
        at_most=65535,
    ),
    broker_key(
        "penstock.brokers",
        INT,
        "1",
        "How many brokers a process runs, numbered from `node.id`. For tests.",
        at_least=1,
        at_most=100,
    ),
    broker_key(
        "penstock.client.metrics",
        BOOLEAN,
        "false",
        "Takes metrics that clients push (KIP-714), where subscriptions ask for them; the newest are kept.",
    ),
    broker_key(
        "penstock.kept.state.bytes.max",
        LONG,
        "67108864",
        "Memory for what is kept for clients: fetch sessions, groups, offsets, answers that are not read.",
        at_least=1 << 20,
    ),
    broker_key(
        "penstock.authentication.timeout.ms",
        LONG,
        "30000",
        "How long a connection may take for TLS and SASL until it is closed.",
        at_least=1,
    ),
    broker_key(
        "penstock.unauthenticated.connections.max",
        INT,
        "1000",
        "Connections that may be authenticating themselves at a time; the oldest is closed for another.",
        at_least=1,
    ),
    broker_key(
        "penstock.metadata.version",
        STRING,
        None,
        "The release of Apache Kafka that a new data directory is for, such as 3.9; any 4.x by default.",
    ),
    broker_key(
        "penstock.producers.max",
        INT,
        "100000",
        "Most idempotent producers kept, in all partitions; beyond it the idle ones are dropped.",
        at_least=1,
    ),
    broker_key(
        "penstock.log.open.ms.max",
        INT,
        "500",
        "Milliseconds of each second in which requests may open logs; further ones get a retriable error.",
        at_least=1,
    ),
    broker_key(
        CHANGES_MAX,
        INT,
        "1000",
        "Most topics, resources with settings or entities with quotas that one request may change.",
        at_least=1,
    ),
    broker_key(
        "penstock.request.entries.max",
        INT,
        "12000",
        "Most topics, partitions and other entries in one request; one with more closes its connection.",
        at_least=1000,
    ),
    broker_key(
        "penstock.response.bytes.max",
        INT,
        "16777216",
        "Largest answer that carries no records. One that would be larger closes its connection.",
        at_least=65536,
    ),
    broker_key(
        "penstock.unpack.max.bytes",
        LONG,
        str(32 << 20),  # 32 times max.message.bytes: allocated at once, it delays others by some 50 ms
        "What one request may have decompressed, where the broker must look into records.",
        at_least=1,
    ),
    broker_key(
        "penstock.unpack.max.records",
        LONG,
        "250000",  # a plain batch of max.message.bytes has room for 150,000
        "How many records one request may have looked at, where the broker must look into records.",
        at_least=1,
    ),
    broker_key("penstock.metrics.host", STRING, "127.0.0.1", "Where /metrics and /health are served."),
    broker_key(
        "penstock.metrics.port",
        INT,
        None,
        "Port of /metrics and /health; 0 takes a free one. Without it nothing is counted.",
        at_least=0,
    ),
)
"""All settings of this module: limits, /metrics, and the listener for Kafka 0.7."""
