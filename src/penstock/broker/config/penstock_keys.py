"""The broker settings that Apache Kafka does not have: names that begin with ``penstock.``."""

from __future__ import annotations

from penstock.broker.config.definition import BOOLEAN, INT, LONG, STRING, broker_key

CHANGES_MAX = "penstock.request.changes.max"
"""The name of the setting that limits the topics, resources with settings, or quota entities that one
request may change.
"""

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
"""The names of the settings of Kafka 0.7, which `penstock.v07.settings` reads.

Few brokers import that module, so this list repeats the names; a test compares both lists.
"""

PENSTOCK_KEYS = (
    *(broker_key(f"penstock.0.7.{name}", STRING, None, f"Kafka 0.7's own {name}.") for name in _NAMES_07),
    broker_key(
        "penstock.0.7.host",
        STRING,
        None,
        "Address of the Kafka 0.7 listener; by default, that of the main listener.",
    ),
    broker_key(
        "penstock.0.7.port",
        INT,
        None,
        "Port of the Kafka 0.7 listener; 0 takes a free port. If not set, there is no such listener.",
        at_least=0,
        at_most=65535,
    ),
    broker_key(
        "penstock.brokers",
        INT,
        "1",
        "Number of brokers that the process runs, with ids from `node.id` on. For tests.",
        at_least=1,
        at_most=100,
    ),
    broker_key(
        "penstock.client.metrics",
        BOOLEAN,
        "false",
        "Accept metrics that clients push (KIP-714) according to subscriptions; store the newest values.",
    ),
    broker_key(
        "penstock.kept.state.bytes.max",
        LONG,
        "67108864",
        "Maximum memory for clients' state: fetch sessions, groups, offsets, and unread responses.",
        at_least=1 << 20,
    ),
    broker_key(
        "penstock.authentication.timeout.ms",
        LONG,
        "30000",
        "Time after which a connection that has not completed TLS and SASL is closed.",
        at_least=1,
    ),
    broker_key(
        "penstock.unauthenticated.connections.max",
        INT,
        "1000",
        "Maximum number of unauthenticated connections; for a further one, the oldest is closed.",
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
        "Maximum number of idempotent producers in all partitions; beyond it, idle ones are dropped.",
        at_least=1,
    ),
    broker_key(
        "penstock.log.open.ms.max",
        INT,
        "500",
        "Milliseconds per second for which requests may open logs; after that, they get a retriable error.",
        at_least=1,
    ),
    broker_key(
        CHANGES_MAX,
        INT,
        "1000",
        "Maximum number of topics, configured resources or quota entities that one request may change.",
        at_least=1,
    ),
    broker_key(
        "penstock.request.entries.max",
        INT,
        "12000",
        "Maximum number of entries, such as topics, in one request; beyond it, the connection is closed.",
        at_least=1000,
    ),
    broker_key(
        "penstock.response.bytes.max",
        INT,
        "16777216",
        "Maximum size of a response without records, in bytes; beyond it, the connection is closed.",
        at_least=65536,
    ),
    broker_key(
        "penstock.unpack.max.bytes",
        LONG,
        str(32 << 20),  # 32 times max.message.bytes: allocated at once, it delays others by some 50 ms
        "Maximum bytes that the broker decompresses for one request, if it must read the records.",
        at_least=1,
    ),
    broker_key(
        "penstock.unpack.max.records",
        LONG,
        "250000",  # a plain batch of max.message.bytes has room for 150,000
        "Maximum number of records that the broker reads for one request, if it must read the records.",
        at_least=1,
    ),
    broker_key(
        "penstock.metrics.host",
        STRING,
        "127.0.0.1",
        "Address at which the broker serves /metrics and /health.",
    ),
    broker_key(
        "penstock.metrics.port",
        INT,
        None,
        "Port of /metrics and /health; 0 takes a free port. If it is not set, there are no metrics.",
        at_least=0,
    ),
)
"""All settings of this module: limits, /metrics, and the listener for Kafka 0.7."""
