"""The configuration names the broker knows: Kafka's, with type, default and what each one does here.

Two tables: `BROKER_KEYS` (server.properties) and `TOPIC_KEYS` (per topic). A topic key names the
broker key that gives its default. A key without effect is accepted, because files written for Apache Kafka
carry it; its description says why it means nothing to a single process.

Names, types and defaults follow Apache Kafka 4.x.
"""

from __future__ import annotations

from typing import Any, NamedTuple

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
"""Types as DescribeConfigs numbers them (KIP-569)."""

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1
_DAY_MS = 86_400_000


class ConfigKey(NamedTuple):
    """One name. `default` is text, None where nothing is set.

    `choices`, `at_least` and `at_most` bound the value; `never` is one inside the bounds that is wrong.

    `synonyms` are the broker keys that give the default, strongest first, each with the factor that
    turns its unit into ours.
    """

    name: str
    type: int
    default: str | None
    doc: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    synonyms: tuple[tuple[str, int], ...] = ()
    at_most: float | None = None
    never: float | None = None
    item_pattern: str = ""
    """What each item of a list must match, unless the list is a star."""

    has_effect: bool = True
    """False for a setting that is checked, kept and listed, and changes nothing."""


def idle(key: ConfigKey) -> ConfigKey:
    """Return a key without effect. `key` has the reason for a description."""
    return key._replace(doc=f"No effect: {key.doc}", has_effect=False)


def _table(*keys: ConfigKey) -> dict[str, ConfigKey]:
    return {key.name: key for key in keys}


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

_THROTTLED = idle(ConfigKey("", LIST, "", "there is one replica.", item_pattern="[0-9]+:[0-9]+"))

TOPIC_KEYS = _table(
    _topic(
        "cleanup.policy",
        LIST,
        "delete",
        "What happens to old data: delete, compact or both.",
        "log.cleanup.policy",
        choices=("delete", "compact"),
    ),
    _topic(
        "compression.gzip.level",
        INT,
        "-1",
        "Level used when the broker itself compresses with gzip.",
        "compression.gzip.level",
        at_least=-1,
        at_most=9,
        never=0,
    ),
    _topic(
        "compression.lz4.level",
        INT,
        "9",
        "Level used when the broker itself compresses with lz4.",
        "compression.lz4.level",
        at_least=1,
        at_most=17,
    ),
    _topic(
        "compression.type",
        STRING,
        "producer",
        "Codec the topic is stored in; producer keeps what was sent.",
        "compression.type",
        choices=_CODECS,
    ),
    _topic(
        "compression.zstd.level",
        INT,
        "3",
        "Level used when the broker itself compresses with zstd.",
        "compression.zstd.level",
        at_least=-131072,
        at_most=22,
    ),
    _topic(
        "delete.retention.ms",
        LONG,
        str(_DAY_MS),
        "How long tombstones stay in a compacted topic.",
        "log.cleaner.delete.retention.ms",
        at_least=0,
    ),
    _topic(
        "file.delete.delay.ms",
        LONG,
        "60000",
        "Time between taking a segment out and deleting its files.",
        "log.segment.delete.delay.ms",
        at_least=0,
    ),
    _topic(
        "flush.messages",
        LONG,
        str(LONG_MAX),
        "Records after which the log is forced to disk; 1 is every batch.",
        "log.flush.interval.messages",
        at_least=1,
    ),
    _topic(
        "flush.ms",
        LONG,
        str(LONG_MAX),
        "Milliseconds after which the log is forced to disk.",
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
        "Longest time a record stays out of reach of compaction.",
        "log.cleaner.max.compaction.lag.ms",
        at_least=1,
    ),
    _topic(
        "max.message.bytes",
        INT,
        "1048588",
        "Largest record batch accepted, as it arrives.",
        "message.max.bytes",
        at_least=0,
    ),
    _topic(
        "message.downconversion.enable",
        BOOLEAN,
        "true",
        "Whether fetchers older than 0.11 get converted records.",
        "log.message.downconversion.enable",
    ),
    _idle_topic(
        "message.format.version",
        STRING,
        "3.0-IV1",
        "every release that still knows this name ignores it, or --as-version says it.",
        "log.message.format.version",
    ),
    _topic(
        "message.timestamp.after.max.ms",
        LONG,
        "3600000",
        "How far ahead of the broker a create time may be.",
        "log.message.timestamp.after.max.ms",
        at_least=0,
    ),
    _topic(
        "message.timestamp.before.max.ms",
        LONG,
        str(LONG_MAX),
        "How far behind the broker a create time may be.",
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
        "Whose clock stamps records: producer or broker.",
        "log.message.timestamp.type",
        choices=("CreateTime", "LogAppendTime"),
    ),
    _topic(
        "min.cleanable.dirty.ratio",
        DOUBLE,
        "0.5",
        "Share of uncompacted bytes that starts a compaction.",
        "log.cleaner.min.cleanable.ratio",
        at_least=0,
        at_most=1,
    ),
    _topic(
        "min.compaction.lag.ms",
        LONG,
        "0",
        "Shortest time a record stays out of reach of compaction.",
        "log.cleaner.min.compaction.lag.ms",
        at_least=0,
    ),
    _topic(
        "min.insync.replicas",
        INT,
        "1",
        "Replicas that must have a record before acks=all is answered.",
        "min.insync.replicas",
        at_least=1,
    ),
    _topic(
        "preallocate", BOOLEAN, "false", "Whether segment files are created at full size.", "log.preallocate"
    ),
    _idle_topic("remote.log.copy.disable", BOOLEAN, "false", "there is no tiered storage."),
    _idle_topic("remote.log.delete.on.disable", BOOLEAN, "false", "there is no tiered storage."),
    _idle_topic("remote.storage.enable", BOOLEAN, "false", "there is no tiered storage."),
    _topic(
        "retention.bytes",
        LONG,
        "-1",
        "Bytes a partition may hold before old segments go; -1 no limit.",
        "log.retention.bytes",
    ),
    _topic(
        "retention.ms",
        LONG,
        "604800000",
        "Age at which segments go; -1 never.",
        "log.retention.ms",
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
        at_least=-1,
    ),
    _topic(
        "segment.bytes",
        INT,
        "1073741824",
        "Size at which a new segment begins.",
        "log.segment.bytes",
        at_least=14,
    ),
    _topic(
        "segment.index.bytes",
        INT,
        "10485760",
        "Largest size of an index file.",
        "log.index.size.max.bytes",
        at_least=4,
    ),
    _topic(
        "segment.jitter.ms",
        LONG,
        "0",
        "Random share taken off segment.ms so that partitions do not roll at once.",
        "log.roll.jitter.ms",
        ("log.roll.jitter.hours", 3_600_000),
        at_least=0,
    ),
    _topic(
        "segment.ms",
        LONG,
        "604800000",
        "Age at which a new segment begins.",
        "log.roll.ms",
        ("log.roll.hours", 3_600_000),
        at_least=1,
    ),
    _idle_topic(
        "unclean.leader.election.enable",
        BOOLEAN,
        "false",
        "there is one replica.",
        "unclean.leader.election.enable",
    ),
)


def _broker(
    name: str,
    type_: int,
    default: str | None,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    at_least: float | None = None,
    at_most: float | None = None,
) -> ConfigKey:
    return ConfigKey(name, type_, default, doc, choices, at_least, at_most=at_most)


def _idle(*column: Any, **more: Any) -> ConfigKey:
    return idle(_broker(*column, **more))


def _topic_defaults() -> list[ConfigKey]:
    """The broker keys that only give topic keys their defaults, e.g. log.retention.bytes."""
    keys = {}
    for key in TOPIC_KEYS.values():
        for name, factor in key.synonyms:
            # Only the weakest synonym carries the default: a stronger one that is unset must not hide it.
            weakest = name == key.synonyms[-1][0]
            default = key.default if weakest else None
            if default is not None and factor > 1:
                default = str(int(default) // factor)
            doc = f"Default of the topic setting {key.name}. {key.doc}"
            type_ = INT if factor > 1 else key.type  # hours and minutes are 32 bits wide
            keys[name] = ConfigKey(
                name, type_, default, doc, key.choices, key.at_least, has_effect=key.has_effect
            )
    return list(keys.values())


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
)
"""What `penstock.v07.settings` knows, repeated here since few brokers import it."""

_NO_QUORUM = "one process is broker and controller."
_NO_THREADS = "one event loop does all the work."
_NO_REPLICAS = "there is one replica."

BROKER_KEYS = _table(
    *_topic_defaults(),
    _broker("advertised.host.name", STRING, None, "Host told to clients, before advertised.listeners came."),
    _broker(
        "advertised.port", INT, None, "Port told to clients, before advertised.listeners came.", at_least=0
    ),
    _broker("host.name", STRING, None, "Address to listen on, before listeners came. Needs port."),
    _broker("port", INT, None, "Port to listen on, before listeners came.", at_least=0),
    *(_broker(f"penstock.0.7.{name}", STRING, None, f"Kafka 0.7's own {name}.") for name in _NAMES_07),
    _broker("penstock.0.7.host", STRING, None, "Address of the Kafka 0.7 listener; that of the other."),
    _broker(
        "penstock.0.7.port",
        INT,
        None,
        "Port of the Kafka 0.7 listener; 0 takes a free one. Without it there is none.",
        at_least=0,
        at_most=65535,
    ),
    _broker(
        "penstock.kept.state.bytes.max",
        LONG,
        "67108864",
        "Memory for what is kept for clients: fetch sessions, groups, offsets, answers that are not read.",
        at_least=1 << 20,
    ),
    _broker(
        "penstock.producers.max",
        INT,
        "100000",
        "Most idempotent producers remembered, in all partitions; beyond it the idle ones are forgotten.",
        at_least=1,
    ),
    _broker(
        "penstock.log.open.ms.max",
        INT,
        "400",
        "Milliseconds of each second in which requests may have logs opened; further ones are told to retry.",
        at_least=1,
    ),
    _broker(
        "penstock.request.changes.max",
        INT,
        "1000",
        "Most topics, resources with settings or entities with quotas that one request may change.",
        at_least=1,
    ),
    _broker(
        "penstock.request.entries.max",
        INT,
        "12000",
        "Most topics, partitions and other entries in one request; one with more closes its connection.",
        at_least=1000,
    ),
    _broker(
        "penstock.response.bytes.max",
        INT,
        "16777216",
        "Largest answer that carries no records. One that would be larger closes its connection.",
        at_least=65536,
    ),
    _broker(
        "penstock.unpack.max.bytes",
        LONG,
        str(32 << 20),  # 32 times max.message.bytes: allocated at once, it delays others by some 50 ms
        "What one request may have decompressed, where the broker must look into records.",
        at_least=1,
    ),
    _broker(
        "penstock.unpack.max.records",
        LONG,
        "250000",  # a plain batch of max.message.bytes has room for 150,000
        "How many records one request may have looked at, where the broker must look into records.",
        at_least=1,
    ),
    _broker("penstock.metrics.host", STRING, "127.0.0.1", "Where /metrics is served for Prometheus."),
    _broker(
        "penstock.metrics.port",
        INT,
        None,
        "Port of /metrics; 0 takes a free one. Without it nothing is counted.",
        at_least=0,
    ),
    _broker(
        "advertised.listeners", LIST, None, "Addresses told to clients, where they differ from listeners."
    ),
    _broker("auto.create.topics.enable", BOOLEAN, "true", "Whether asking for an unknown topic creates it."),
    _idle("auto.leader.rebalance.enable", BOOLEAN, "true", _NO_REPLICAS),
    _broker("broker.id", INT, None, "Older name of node.id.", at_least=-1),
    _broker("broker.rack", STRING, None, "Rack told to clients."),
    _broker(
        "connections.max.idle.ms", LONG, "600000", "Connections without a request for this long are closed."
    ),
    _idle("controller.listener.names", LIST, None, _NO_QUORUM),
    _idle("controller.quorum.bootstrap.servers", LIST, "", _NO_QUORUM),
    _idle("controller.quorum.voters", LIST, "", _NO_QUORUM),
    _idle("create.topic.policy.class.name", CLASS, None, "there are no policies."),
    _broker(
        "default.replication.factor", INT, "1", "Replication factor of topics that name none.", at_least=1
    ),
    _broker("delete.topic.enable", BOOLEAN, "true", "Whether topics can be deleted."),
    _broker("fetch.max.bytes", INT, "57671680", "Most bytes one Fetch answer carries.", at_least=1024),
    _broker(
        "group.initial.rebalance.delay.ms",
        INT,
        "0",
        "Wait for more members when a group forms. Apache Kafka's default is 3000.",
        at_least=0,
    ),
    _broker(
        "group.max.session.timeout.ms", INT, "1800000", "Longest session timeout of a member.", at_least=1
    ),
    _broker("group.max.size", INT, str(INT_MAX), "Most members of a group.", at_least=1),
    _broker("group.min.session.timeout.ms", INT, "6000", "Shortest session timeout of a member.", at_least=1),
    _idle("inter.broker.listener.name", STRING, None, _NO_QUORUM),
    _broker(
        "listener.security.protocol.map", STRING, "PLAINTEXT:PLAINTEXT", "Security of each listener by name."
    ),
    _broker("listeners", LIST, "PLAINTEXT://127.0.0.1:9092", "Address to listen on: PLAINTEXT://HOST:PORT."),
    _broker("log.cleaner.enable", BOOLEAN, "true", "Whether compacted topics are compacted."),
    _broker(
        "log.cleaner.backoff.ms",
        LONG,
        "15000",
        "How often compacted topics are looked at for something to compact.",
        at_least=0,
    ),
    _broker(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        "134217728",
        "Memory for the keys of one compaction, 24 bytes each; what is beyond waits for the next.",
        at_least=1,
    ),
    _idle("log.cleaner.threads", INT, "1", _NO_THREADS, at_least=0),
    _broker("log.dir", LIST, None, "Data directory; empty keeps everything in memory."),
    _broker("log.dirs", LIST, None, "Data directory; one only."),
    _broker(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "How often recovery points are saved.",
        at_least=0,
    ),
    _broker(
        "log.flush.scheduler.interval.ms", LONG, str(LONG_MAX), "How often logs are checked for a due flush."
    ),
    _broker(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "How often start offsets are saved.",
        at_least=0,
    ),
    _broker("log.retention.check.interval.ms", LONG, "300000", "How often retention is applied.", at_least=1),
    _broker(
        "max.connections",
        INT,
        str(INT_MAX),
        "Most connections at a time; further ones are closed.",
        at_least=0,
    ),
    _broker(
        "max.connections.per.ip",
        INT,
        str(INT_MAX),
        "Most connections at a time from one address.",
        at_least=0,
    ),
    _broker(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        "Most fetch sessions that are kept; further ones replace idle ones, or are declined.",
        at_least=0,
    ),
    _broker(
        "max.request.partition.size.limit",
        INT,
        "2000",
        "Most partitions in one answer to DescribeTopicPartitions.",
        at_least=1,
    ),
    _idle("metadata.log.dir", STRING, None, "metadata lives in the data directory."),
    _broker("node.id", INT, "1", "Number of this broker.", at_least=0),
    _idle("num.io.threads", INT, "8", _NO_THREADS, at_least=1),
    _idle("num.network.threads", INT, "3", _NO_THREADS, at_least=1),
    _broker("num.partitions", INT, "1", "Partitions of topics that name no number.", at_least=1),
    _idle("num.recovery.threads.per.data.dir", INT, "2", _NO_THREADS, at_least=1),
    _idle("num.replica.fetchers", INT, "1", _NO_REPLICAS),
    _broker("offset.metadata.max.bytes", INT, "4096", "Longest note that comes with an offset.", at_least=0),
    _broker(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        "How often offsets and groups that nobody needs any more are looked for.",
        at_least=1,
    ),
    _broker(
        "offsets.retention.minutes", INT, "10080", "Age at which offsets of empty groups go.", at_least=1
    ),
    _broker("offsets.topic.num.partitions", INT, "50", "Partitions of __consumer_offsets.", at_least=1),
    _idle("offsets.topic.replication.factor", SHORT, "3", _NO_REPLICAS, at_least=1),
    _broker(
        "offsets.topic.segment.bytes", INT, "104857600", "Segment size of __consumer_offsets.", at_least=1
    ),
    _idle("process.roles", LIST, "broker,controller", _NO_QUORUM, choices=("broker", "controller")),
    _broker(
        "producer.id.expiration.ms",
        INT,
        str(_DAY_MS),
        "Idle time after which a producer's sequences go.",
        at_least=1,
    ),
    _broker(
        "queued.max.request.bytes",
        LONG,
        "134217728",
        "Most memory for requests that are still arriving; the slowest sender is disconnected. -1 no limit.",
    ),
    _idle("queued.max.requests", INT, "500", "a connection has one request at work.", at_least=1),
    _idle("replica.lag.time.max.ms", LONG, "30000", _NO_REPLICAS),
    _idle("share.coordinator.state.topic.min.isr", SHORT, "2", _NO_REPLICAS, at_least=1),
    _idle("share.coordinator.state.topic.replication.factor", SHORT, "3", _NO_REPLICAS, at_least=1),
    _broker("socket.listen.backlog.size", INT, "50", "Connections that may wait to be accepted.", at_least=1),
    _broker(
        "socket.receive.buffer.bytes",
        INT,
        "-1",
        "Receive buffer of sockets; -1 leaves it to the system.",
        at_least=-1,
    ),
    _broker("socket.request.max.bytes", INT, "104857600", "Largest request accepted.", at_least=1),
    _broker(
        "socket.send.buffer.bytes",
        INT,
        "-1",
        "Send buffer of sockets; -1 leaves it to the system.",
        at_least=-1,
    ),
    _broker(
        "transaction.max.timeout.ms", INT, "900000", "Longest transaction a producer may ask for.", at_least=1
    ),
    _idle("transaction.state.log.min.isr", INT, "2", _NO_REPLICAS, at_least=1),
    _broker(
        "transaction.state.log.num.partitions", INT, "50", "Partitions of __transaction_state.", at_least=1
    ),
    _idle("transaction.state.log.replication.factor", SHORT, "3", _NO_REPLICAS, at_least=1),
    _broker(
        "unstable.api.versions.enable",
        BOOLEAN,
        "false",
        "Whether versions are offered that may still change.",
    ),
)

RETIRED_KEYS = frozenset(("message.format.version", "message.timestamp.difference.max.ms"))
"""Settings of topics that only old releases have: unknown unless the broker behaves as one."""

DYNAMIC_KEYS = frozenset(
    key.synonyms[0][0]
    for name, key in TOPIC_KEYS.items()
    if key.synonyms and name != "message.format.version"
) | {
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.threads",
    "max.connections",
    "max.connections.per.ip",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "producer.id.expiration.ms",
}
"""Broker settings that clients may change while it runs, for one broker or for all."""
