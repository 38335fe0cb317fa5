"""The settings of the broker (server.properties): Kafka's names, types and defaults (4.x), and others.

A key without effect is accepted, because files for Apache Kafka contain it; its description says why it has
no effect in Penstock. `inert_keys` has Kafka's other settings, which have no use here at all.
"""

from __future__ import annotations

from typing import Any

from penstock.broker.config.definition import (
    BOOLEAN,
    CLASS,
    DAY_MS,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    SHORT,
    STRING,
    ConfigKey,
    broker_key,
    idle,
    table,
)
from penstock.broker.config.penstock_keys import PENSTOCK_KEYS
from penstock.broker.config.topic_keys import TOPIC_KEYS

_NO_QUORUM = "one process is broker and controller."
_NO_THREADS = "one event loop does all the work."
_NO_REPLICAS = "there is one replica."


def _idle(*column: Any, **more: Any) -> ConfigKey:
    return idle(broker_key(*column, **more))


def _topic_defaults() -> list[ConfigKey]:
    """Return the broker settings that only set defaults of topic settings, such as log.retention.bytes."""
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
            keys[name] = key._replace(name=name, type=type_, default=default, doc=doc, synonyms=())
    return list(keys.values())


_UNIFORM, _RANGE = "uniform", "range"
_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor."


def _timed_keys(kind: str, of: str, size: int, largest: int | None = None) -> tuple[ConfigKey, ...]:
    """Return the size, interval and timeout settings of groups of a `kind`: consumer, share or streams.

    `size` is the default of the group's maximum size, `largest` the upper bound of that setting. `of` is the
    phrase for the group in descriptions, such as ``streams group``.
    """
    rows = (
        (
            "assignment.interval",
            0,
            "1000",
            "0",
            "15000",
            f"Minimum time between two new assignments of a {kind} group.",
        ),
        (
            "heartbeat.interval",
            1,
            "5000",
            "5000",
            "15000",
            f"Interval at which members of {kind} groups send heartbeats.",
        ),
        (
            "session.timeout",
            1,
            "45000",
            "45000",
            "60000",
            f"Time without a heartbeat after which a member is removed from a {kind} group.",
        ),
    )
    most = f"Maximum number of members of a {kind} group."
    keys = [broker_key(f"group.{kind}.max.size", INT, str(size), most, at_least=1, at_most=largest)]
    for name, lowest, default, least, longest, doc in rows:
        what = f"{name.replace('.', ' ')} that a {of} may have."
        for limit, text, told in (
            ("", default, doc),
            ("max.", longest, f"Maximum {what}"),
            ("min.", least, f"Minimum {what}"),
        ):
            keys.append(broker_key(f"group.{kind}.{limit}{name}.ms", INT, text, told, at_least=lowest))
    return tuple(keys)


_GROUP_KEYS = (
    *_timed_keys("consumer", "group", INT_MAX),
    broker_key(
        "group.consumer.assignors",
        LIST,
        f"{_UNIFORM},{_RANGE}",
        "Assignors that members may choose. The first one is used if no member chooses one.",
        choices=(_UNIFORM, _RANGE, f"{_ASSIGNORS}UniformAssignor", f"{_ASSIGNORS}RangeAssignor"),
    ),
    broker_key(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Allowed conversions of groups with members between the classic and the consumer protocol.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    )._replace(is_any_case=True),
    broker_key(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        "600000",
        "Interval at which a group's regular expressions are matched with topics if metadata do not change.",
        at_least=10_000,
    )._replace(is_hidden=True),
)
"""The settings of consumer groups (KIP-848)."""

_STREAMS_KEYS = (
    *_timed_keys("streams", "streams group", INT_MAX),
    broker_key(
        "group.coordinator.rebalance.protocols",
        LIST,
        "classic,consumer,streams",
        "Group protocols that the broker offers. Share groups depend only on the feature share.version.",
        choices=("consumer", "classic", "share", "streams"),
    ),
    broker_key(
        "group.streams.acceptable.recovery.lag",
        LONG,
        "10000",
        "Maximum lag, in offsets, at which a streams group's member counts as caught up.",
        at_least=0,
    )._replace(is_hidden=True),
    broker_key(
        "group.streams.assignors",
        LIST,
        "sticky",
        "Assignor of streams groups; `sticky` is the only one.",
        choices=("sticky",),
    ),
    broker_key(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        "3000",
        "Time for which a streams group that was empty waits for more members before it assigns tasks.",
        at_least=0,
    ),
    broker_key(
        "group.streams.max.standby.replicas",
        INT,
        "2",
        "Maximum number of standby tasks for each stateful task that a streams group may set.",
        at_least=0,
    ),
    broker_key(
        "group.streams.num.standby.replicas",
        INT,
        "0",
        "Number of standby tasks for each stateful task of a streams group.",
        at_least=0,
    ),
    broker_key(
        "group.streams.min.task.offset.interval.ms",
        INT,
        "15000",
        "Shortest interval between reports of task offsets that a streams group may have.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "group.streams.rack.aware.assignment.tags",
        LIST,
        "",
        "Keys of the client tags that the members of streams groups must have.",
    ),
    broker_key(
        "group.streams.task.offset.interval.ms",
        INT,
        "60000",
        "Interval at which members of streams groups report the restored offsets of their tasks.",
        at_least=1,
    )._replace(is_hidden=True),
)
"""The settings of streams groups (KIP-1071)."""

_SHARE_KEYS = (
    *_timed_keys("share", "share group", 200, 1000),
    broker_key(
        "group.share.assignors",
        LIST,
        "simple",
        "Assignor of share groups; `simple` is the only one.",
        choices=("simple", f"{_ASSIGNORS}SimpleAssignor"),
    ),
    broker_key(
        "group.share.initialize.retry.interval.ms",
        INT,
        "30000",
        "Time after which an unanswered request to initialize share partitions is sent again.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        "300000",
        "Time after which the broker writes a new snapshot of a share partition without changes.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        "500",
        "Maximum number of update records of a share partition between two snapshots of its state.",
        at_least=0,
        at_most=500,
    ),
    broker_key(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        "2",
        "min.insync.replicas of a new __share_group_state, limited to its replication factor.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.num.partitions",
        INT,
        "50",
        "Number of partitions of a new __share_group_state.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        "300000",
        "Interval at which records that are no longer needed are deleted from __share_group_state.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        "3",
        "Replication factor of a new __share_group_state, limited to the number of brokers.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        "104857600",
        "Segment size of a new __share_group_state, in bytes.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.write.timeout.ms",
        INT,
        "5000",
        "Maximum time for which a response of the share coordinator waits for in-sync replicas.",
        at_least=1,
    ),
)
"""The settings of share groups (KIP-932) that their coordinators use."""

_LOCKED_KEYS = (
    broker_key(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        "false",
        "Create the dead letter topic of a share group when its first record is written.",
    ),
    broker_key(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        "Prefix that names of dead letter topics of share groups must have; empty allows all.",
    ),
    broker_key(
        "group.share.delivery.count.limit",
        INT,
        "5",
        "Maximum number of deliveries of a record to a share group; after that, it is archived.",
        at_least=2,
        at_most=10,
    ),
    broker_key(
        "group.share.max.delivery.count.limit",
        INT,
        "10",
        "Maximum delivery count limit that a share group may set.",
        at_least=5,
        at_most=25,
    ),
    broker_key(
        "group.share.max.partition.max.record.locks",
        INT,
        "4000",
        "Maximum limit of acquired records per partition that a share group may set.",
        at_least=2000,
        at_most=10_000,
    ),
    broker_key(
        "group.share.max.record.lock.duration.ms",
        INT,
        "60000",
        "Maximum duration of record locks that a share group may set.",
        at_least=30_000,
        at_most=3_600_000,
    ),
    broker_key(
        "group.share.max.share.sessions",
        INT,
        "2000",
        "Maximum number of share sessions of a broker; each fetching member of a share group has one.",
        at_least=1,
    ),
    broker_key(
        "group.share.min.delivery.count.limit",
        INT,
        "2",
        "Minimum delivery count limit that a share group may set.",
        at_least=2,
        at_most=5,
    ),
    broker_key(
        "group.share.min.partition.max.record.locks",
        INT,
        "100",
        "Minimum limit of acquired records per partition that a share group may set.",
        at_least=100,
        at_most=2000,
    ),
    broker_key(
        "group.share.min.record.lock.duration.ms",
        INT,
        "15000",
        "Minimum duration of record locks that a share group may set.",
        at_least=1000,
        at_most=30_000,
    ),
    broker_key(
        "group.share.partition.max.record.locks",
        INT,
        "2000",
        "Maximum number of records of a partition that a share group may have acquired at a time.",
        at_least=100,
        at_most=10_000,
    ),
    broker_key(
        "group.share.record.lock.duration.ms",
        INT,
        "30000",
        "Time after which a record that a share group's member has not acknowledged is released.",
        at_least=1000,
        at_most=3_600_000,
    ),
)
"""The settings of share groups (KIP-932) that the leaders of partitions use."""

BROKER_KEYS = table(
    *_topic_defaults(),
    broker_key("advertised.host.name", STRING, None, "Host for clients; replaced by advertised.listeners."),
    broker_key(
        "advertised.port", INT, None, "Port for clients; replaced by advertised.listeners.", at_least=0
    ),
    broker_key("host.name", STRING, None, "Address to listen on; replaced by listeners. Needs port."),
    broker_key("port", INT, None, "Port to listen on in releases before the setting listeners.", at_least=0),
    *PENSTOCK_KEYS,
    broker_key(
        "advertised.listeners", LIST, None, "Addresses for clients, where they differ from listeners."
    ),
    broker_key(
        "auto.create.topics.enable", BOOLEAN, "true", "Create an unknown topic when a client asks for it."
    ),
    broker_key(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        "true",
        "In a cluster: return leadership to the preferred replicas automatically.",
    ),
    broker_key("broker.id", INT, None, "Older name of node.id.", at_least=-1),
    broker_key(
        "broker.heartbeat.interval.ms",
        INT,
        "2000",
        "In a cluster: interval at which a broker sends heartbeats to the controller.",
        at_least=1,
    ),
    broker_key("broker.rack", STRING, None, "Rack in Metadata responses, and for the placement of replicas."),
    broker_key(
        "broker.session.timeout.ms",
        INT,
        "9000",
        "In a cluster: time without a heartbeat after which a broker is fenced.",
        at_least=1,
    ),
    broker_key(
        "connections.max.idle.ms", LONG, "600000", "Time after which a connection without requests is closed."
    ),
    _idle("controller.listener.names", LIST, None, _NO_QUORUM),
    _idle("controller.quorum.bootstrap.servers", LIST, "", _NO_QUORUM),
    _idle("controller.quorum.voters", LIST, "", _NO_QUORUM),
    _idle("create.topic.policy.class.name", CLASS, None, "there are no policies."),
    broker_key(
        "default.replication.factor", INT, "1", "Replication factor of new topics without one.", at_least=1
    ),
    broker_key("delete.topic.enable", BOOLEAN, "true", "Allow clients to delete topics."),
    broker_key("fetch.max.bytes", INT, "57671680", "Maximum bytes of a Fetch response.", at_least=1024),
    *_GROUP_KEYS,
    *_LOCKED_KEYS,
    *_SHARE_KEYS,
    *_STREAMS_KEYS,
    broker_key(
        "group.initial.rebalance.delay.ms",
        INT,
        "0",
        "Time for which a new group waits for more members. Apache Kafka's default is 3000.",
    ),
    broker_key("group.max.session.timeout.ms", INT, "1800000", "Maximum session timeout in classic groups."),
    broker_key("group.max.size", INT, str(INT_MAX), "Maximum members of a classic group.", at_least=1),
    broker_key("group.min.session.timeout.ms", INT, "6000", "Minimum session timeout in classic groups."),
    _idle("inter.broker.listener.name", STRING, None, _NO_QUORUM),
    broker_key(
        "leader.imbalance.check.interval.seconds",
        LONG,
        "300",
        "In a cluster: interval at which leadership is returned to the preferred replicas.",
        at_least=1,
    ),
    broker_key(
        "listener.security.protocol.map", STRING, "PLAINTEXT:PLAINTEXT", "Security protocol of each listener."
    ),
    broker_key(
        "listeners", LIST, "PLAINTEXT://127.0.0.1:9092", "Addresses to listen on: PLAINTEXT://HOST:PORT."
    ),
    broker_key(
        "log.cleaner.enable", BOOLEAN, "true", "Compact topics whose cleanup.policy contains compact."
    ),
    broker_key(
        "log.cleaner.backoff.ms",
        LONG,
        "15000",
        "Interval at which the broker checks for topics to compact.",
        at_least=0,
    ),
    broker_key(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        "134217728",
        "Bytes for the keys of one compaction, 24 each; records with further keys wait for the next.",
        at_least=1,
    ),
    _idle("log.cleaner.threads", INT, "1", _NO_THREADS, at_least=0),
    broker_key("log.dir", LIST, None, "Data directory; if empty, the broker keeps everything in memory."),
    broker_key("log.dirs", LIST, None, "Data directories; the first gets the metadata log if none has it."),
    broker_key(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "Interval at which the recovery points of logs are written to disk.",
        at_least=0,
    ),
    broker_key(
        "log.flush.scheduler.interval.ms",
        LONG,
        str(LONG_MAX),
        "Interval at which the broker checks if logs must be flushed.",
    ),
    broker_key(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "Interval at which the start offsets of logs are written to disk.",
        at_least=0,
    ),
    broker_key(
        "log.retention.check.interval.ms", LONG, "300000", "Interval between retention checks.", at_least=1
    ),
    broker_key(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        "20971520",
        "Bytes of metadata records after a snapshot that cause a new snapshot.",
        at_least=1,
    ),
    broker_key(
        "metadata.max.retention.bytes",
        LONG,
        "104857600",
        "Maximum size of the metadata log with its snapshots; old snapshots are deleted, never the newest.",
    ),
    broker_key(
        "metadata.max.retention.ms",
        LONG,
        "604800000",
        "Age at which a metadata snapshot, and the log below the next one, is deleted; -1 means never.",
    ),
    broker_key(
        "max.connection.creation.rate",
        INT,
        str(INT_MAX),
        "Maximum number of connections that are accepted per second; further ones wait.",
        at_least=0,
    ),
    broker_key(
        "max.connections",
        INT,
        str(INT_MAX),
        "Maximum number of open connections; further ones are closed.",
        at_least=0,
    ),
    broker_key(
        "max.connections.per.ip",
        INT,
        str(INT_MAX),
        "Maximum number of open connections from one address.",
        at_least=0,
    ),
    broker_key(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Exceptions from max.connections.per.ip: HOST:NUMBER,HOST:NUMBER.",
    ),
    broker_key(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        "Maximum number of fetch sessions; further ones replace idle sessions, or are refused.",
        at_least=0,
    ),
    broker_key(
        "max.request.partition.size.limit",
        INT,
        "2000",
        "Maximum number of partitions in one response to DescribeTopicPartitions.",
        at_least=1,
    ),
    _idle("metadata.log.dir", STRING, None, "metadata lives in the data directory."),
    broker_key("node.id", INT, "1", "Id of this broker, unique in the cluster.", at_least=0),
    _idle("num.io.threads", INT, "8", _NO_THREADS, at_least=1),
    _idle("num.network.threads", INT, "3", _NO_THREADS, at_least=1),
    broker_key("num.partitions", INT, "1", "Partition count of new topics without one.", at_least=1),
    _idle("num.recovery.threads.per.data.dir", INT, "2", _NO_THREADS, at_least=1),
    _idle("num.replica.fetchers", INT, "1", _NO_REPLICAS, at_least=1),
    broker_key("offset.metadata.max.bytes", INT, "4096", "Maximum bytes of a commit's metadata.", at_least=0),
    broker_key(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        "Interval at which expired offsets and groups are removed.",
        at_least=1,
    ),
    broker_key(
        "offsets.retention.minutes", INT, "10080", "Time until offsets of an empty group expire.", at_least=1
    ),
    broker_key("offsets.topic.num.partitions", INT, "50", "Partitions of __consumer_offsets.", at_least=1),
    broker_key(
        "offsets.topic.replication.factor",
        SHORT,
        "3",
        "Replication factor of a new __consumer_offsets, limited to the number of brokers.",
        at_least=1,
    ),
    broker_key(
        "offsets.topic.segment.bytes", INT, "104857600", "Segment bytes of __consumer_offsets.", at_least=1
    ),
    _idle("process.roles", LIST, "broker,controller", _NO_QUORUM, choices=("broker", "controller")),
    broker_key(
        "producer.id.expiration.ms",
        INT,
        str(DAY_MS),
        "Time after which the sequence numbers of an idle producer are removed.",
        at_least=1,
    ),
    broker_key(
        "queued.max.request.bytes",
        LONG,
        "134217728",
        "Maximum bytes of incomplete requests; the slowest sender is disconnected. -1 means no limit.",
    ),
    broker_key(
        "controller.quota.window.num",
        INT,
        "11",
        "Number of windows over which controller mutation quotas are measured.",
        at_least=1,
    ),
    broker_key(
        "controller.quota.window.size.seconds",
        INT,
        "1",
        "Length of one window of quota measurement, in seconds.",
        at_least=1,
    ),
    broker_key(
        "quota.window.num", INT, "11", "Number of windows over which client quotas are measured.", at_least=1
    ),
    broker_key(
        "quota.window.size.seconds",
        INT,
        "1",
        "Length of one window of quota measurement, in seconds.",
        at_least=1,
    ),
    _idle("queued.max.requests", INT, "500", "a connection has one request in progress.", at_least=1),
    broker_key(
        "replica.fetch.backoff.ms",
        INT,
        "100",
        "In a cluster: time until a follower fetches a partition again after an error. Kafka's is 1000.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.max.bytes",
        INT,
        "1048576",
        "In a cluster: maximum bytes of one partition in one fetch of a follower.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.min.bytes",
        INT,
        "1",
        "In a cluster: minimum bytes for which a follower's fetch waits at the leader.",
        at_least=1,
    ),
    broker_key(
        "replica.fetch.response.max.bytes",
        INT,
        "10485760",
        "In a cluster: maximum bytes of all partitions in one fetch of a follower.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.wait.max.ms",
        INT,
        "500",
        "In a cluster: maximum time for which the leader makes a follower's fetch wait.",
        at_least=1,
    ),
    broker_key(
        "replica.lag.time.max.ms",
        LONG,
        "30000",
        "In a cluster: time after which a follower that lags behind is removed from the ISR.",
    ),
    broker_key(
        "replica.selector.class",
        STRING,
        None,
        "In a cluster: RackAwareReplicaSelector sends consumers to replicas in their rack.",
    ),
    broker_key(
        "socket.listen.backlog.size", INT, "50", "Maximum connections that wait for acceptance.", at_least=1
    ),
    broker_key(
        "socket.receive.buffer.bytes",
        INT,
        "-1",
        "Size of the receive buffer of sockets, in bytes; -1 means the system's default.",
        at_least=-1,
    ),
    broker_key("socket.request.max.bytes", INT, "104857600", "Maximum bytes of a request.", at_least=1),
    broker_key(
        "socket.send.buffer.bytes",
        INT,
        "-1",
        "Size of the send buffer of sockets, in bytes; -1 means the system's default.",
        at_least=-1,
    ),
    broker_key(
        "telemetry.max.bytes", INT, "1048576", "Maximum bytes of metrics in one push of a client.", at_least=1
    ),
    broker_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        "10000",
        "Interval at which transactions that exceed their timeout are aborted.",
        at_least=1,
    ),
    broker_key(
        "transaction.max.timeout.ms", INT, "900000", "Maximum transaction timeout of a producer.", at_least=1
    ),
    broker_key(
        "transaction.state.log.min.isr",
        INT,
        "2",
        "min.insync.replicas of a new __transaction_state, limited to its replication factor.",
        at_least=1,
    ),
    broker_key(
        "transaction.state.log.num.partitions", INT, "50", "Partitions of __transaction_state.", at_least=1
    ),
    broker_key(
        "transaction.state.log.replication.factor",
        SHORT,
        "3",
        "Replication factor of a new __transaction_state, limited to the number of brokers.",
        at_least=1,
    ),
    broker_key(
        "transaction.state.log.segment.bytes",
        INT,
        "104857600",
        "Segment size of a new __transaction_state, in bytes.",
        at_least=1,
    ),
    broker_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        "Interval at which expired transactional ids are removed.",
        at_least=1,
    ),
    broker_key(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        "false",
        "Allow producers to use transactions without timeout (two-phase commit).",
    ),
    broker_key(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        "Time after which an unused transactional id expires.",
        at_least=1,
    ),
    broker_key(
        "unclean.leader.election.interval.ms",
        LONG,
        "300000",
        "In a cluster: interval of unclean elections for partitions without a leader that allow them.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "unstable.api.versions.enable",
        BOOLEAN,
        "false",
        "Offer API versions that are unstable in Apache Kafka and may still change.",
    ),
)

DYNAMIC_KEYS = frozenset(
    key.synonyms[0][0]
    for name, key in TOPIC_KEYS.items()
    if key.synonyms and name != "message.format.version"
) | {
    "errors.deadletterqueue.auto.create.topics.enable",
    "errors.deadletterqueue.topic.name.prefix",
    "group.consumer.assignment.interval.ms",
    "group.share.assignment.interval.ms",
    "group.streams.assignment.interval.ms",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.threads",
    "max.connection.creation.rate",
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "producer.id.expiration.ms",
}
"""Broker settings that clients may change while the broker runs, for one broker or for all."""

LISTENER_KEYS = frozenset(("max.connection.creation.rate", "max.connections", "num.network.threads"))
"""Dynamic settings that may also be set for one listener, with the prefix ``listener.name.NAME.``."""

THREAD_KEYS = frozenset(
    (
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    )
)
"""Thread counts. As in Kafka, a change while the broker runs may at most halve or double the count."""
