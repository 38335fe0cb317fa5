"""The settings of the broker (server.properties): Kafka's names, types and defaults (4.x), and others.

A key without effect is accepted, because files written for Apache Kafka carry it; its description has the
reason why it means nothing to a single process. `inert_keys` has Kafka's other settings, which have no use
here at all.
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
    """Return the broker keys that only set defaults of topic keys, such as log.retention.bytes."""
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
            f"Least time between two assignments of a {kind} group.",
        ),
        (
            "heartbeat.interval",
            1,
            "5000",
            "5000",
            "15000",
            f"How often members of {kind} groups send heartbeats.",
        ),
        (
            "session.timeout",
            1,
            "45000",
            "45000",
            "60000",
            f"After how long without a heartbeat a member leaves a {kind} group.",
        ),
    )
    most = f"Most members of a {kind} group."
    keys = [broker_key(f"group.{kind}.max.size", INT, str(size), most, at_least=1, at_most=largest)]
    for name, lowest, default, least, longest, doc in rows:
        what = f"{name.replace('.', ' ')} that a {of} may have."
        for limit, text, told in (
            ("", default, doc),
            ("max.", longest, f"Longest {what}"),
            ("min.", least, f"Shortest {what}"),
        ):
            keys.append(broker_key(f"group.{kind}.{limit}{name}.ms", INT, text, told, at_least=lowest))
    return tuple(keys)


_GROUP_KEYS = (
    *_timed_keys("consumer", "group", INT_MAX),
    broker_key(
        "group.consumer.assignors",
        LIST,
        f"{_UNIFORM},{_RANGE}",
        "Assignors that members may name. The first is that of groups whose members name none.",
        choices=(_UNIFORM, _RANGE, f"{_ASSIGNORS}UniformAssignor", f"{_ASSIGNORS}RangeAssignor"),
    ),
    broker_key(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "How groups with members change between the classic and the consumer protocol.",
        choices=("disabled", "downgrade", "upgrade", "bidirectional"),
    )._replace(is_any_case=True),
    broker_key(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        "600000",
        "How often the regular expressions of a group are matched with the topics, if no metadata change.",
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
        "Protocols of groups that are offered. Share groups depend on the feature share.version alone.",
        choices=("consumer", "classic", "share", "streams"),
    ),
    broker_key(
        "group.streams.acceptable.recovery.lag",
        LONG,
        "10000",
        "How many offsets a member of a streams group may lack to count as caught up with a task.",
        at_least=0,
    )._replace(is_hidden=True),
    broker_key(
        "group.streams.assignors",
        LIST,
        "sticky",
        "The assignor of streams groups; there is one.",
        choices=("sticky",),
    ),
    broker_key(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        "3000",
        "How long a streams group without members waits for more before tasks are assigned.",
        at_least=0,
    ),
    broker_key(
        "group.streams.max.standby.replicas",
        INT,
        "2",
        "Most standby tasks for each task that a streams group may have.",
        at_least=0,
    ),
    broker_key(
        "group.streams.num.standby.replicas",
        INT,
        "0",
        "Standby tasks for each task of a streams group that has state.",
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
        "How often members of streams groups report how far they have restored the state of their tasks.",
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
        "The assignor of share groups; there is one.",
        choices=("simple", f"{_ASSIGNORS}SimpleAssignor"),
    ),
    broker_key(
        "group.share.initialize.retry.interval.ms",
        INT,
        "30000",
        "When the states of new share partitions are asked for again without an answer.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        "300000",
        "After how long a share partition without changes gets a snapshot.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        "500",
        "How many changes of a share partition are stored before a snapshot of all of it.",
        at_least=0,
        at_most=500,
    ),
    broker_key(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        "2",
        "In-sync replicas that __share_group_state is made to need, no more than it has.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.num.partitions",
        INT,
        "50",
        "Partitions of __share_group_state.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        "300000",
        "How often what is not needed of __share_group_state is deleted.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        "3",
        "Replicas of __share_group_state, no more than there are brokers.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        "104857600",
        "Segment size of __share_group_state.",
        at_least=1,
    ),
    broker_key(
        "share.coordinator.write.timeout.ms",
        INT,
        "5000",
        "How long an answer of the share coordinator waits for its replicas.",
        at_least=1,
    ),
)
"""The settings of share groups (KIP-932) that their coordinators use."""

_LOCKED_KEYS = (
    broker_key(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        "false",
        "Whether the dead letter topic of a share group is created when its first record is written.",
    ),
    broker_key(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        "With what the names of dead letter topics of share groups begin; empty allows all names.",
    ),
    broker_key(
        "group.share.delivery.count.limit",
        INT,
        "5",
        "How often a record is delivered to a share group at most; then it is archived.",
        at_least=2,
        at_most=10,
    ),
    broker_key(
        "group.share.max.delivery.count.limit",
        INT,
        "10",
        "Largest limit of deliveries that a share group may have.",
        at_least=5,
        at_most=25,
    ),
    broker_key(
        "group.share.max.partition.max.record.locks",
        INT,
        "4000",
        "Most records in flight that a share group may have set for each partition.",
        at_least=2000,
        at_most=10_000,
    ),
    broker_key(
        "group.share.max.record.lock.duration.ms",
        INT,
        "60000",
        "Longest lock of records that a share group may have.",
        at_least=30_000,
        at_most=3_600_000,
    ),
    broker_key(
        "group.share.max.share.sessions",
        INT,
        "2000",
        "Most share sessions of a broker: members of share groups that fetch from it.",
        at_least=1,
    ),
    broker_key(
        "group.share.min.delivery.count.limit",
        INT,
        "2",
        "Smallest limit of deliveries that a share group may have.",
        at_least=2,
        at_most=5,
    ),
    broker_key(
        "group.share.min.partition.max.record.locks",
        INT,
        "100",
        "Least records in flight that a share group may have set for each partition.",
        at_least=100,
        at_most=2000,
    ),
    broker_key(
        "group.share.min.record.lock.duration.ms",
        INT,
        "15000",
        "Shortest lock of records that a share group may have.",
        at_least=1000,
        at_most=30_000,
    ),
    broker_key(
        "group.share.partition.max.record.locks",
        INT,
        "2000",
        "Most records of a partition that a share group has in flight.",
        at_least=100,
        at_most=10_000,
    ),
    broker_key(
        "group.share.record.lock.duration.ms",
        INT,
        "30000",
        "How long a member of a share group may keep a record that it does not acknowledge.",
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
    broker_key("host.name", STRING, None, "Address to listen on, before listeners came. Needs port."),
    broker_key("port", INT, None, "Port to listen on, before listeners came.", at_least=0),
    *PENSTOCK_KEYS,
    broker_key(
        "advertised.listeners", LIST, None, "Addresses for clients, where they differ from listeners."
    ),
    broker_key(
        "auto.create.topics.enable", BOOLEAN, "true", "Whether asking for an unknown topic creates it."
    ),
    broker_key(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        "true",
        "In a cluster: whether leaders go back to the preferred replicas by themselves.",
    ),
    broker_key("broker.id", INT, None, "Older name of node.id.", at_least=-1),
    broker_key(
        "broker.heartbeat.interval.ms",
        INT,
        "2000",
        "In a cluster: how often a broker sends a heartbeat to the controller.",
        at_least=1,
    ),
    broker_key("broker.rack", STRING, None, "Rack in Metadata responses, and for the placement of replicas."),
    broker_key(
        "broker.session.timeout.ms",
        INT,
        "9000",
        "In a cluster: after how long without a heartbeat a broker is fenced.",
        at_least=1,
    ),
    broker_key(
        "connections.max.idle.ms", LONG, "600000", "Connections without a request for this long are closed."
    ),
    _idle("controller.listener.names", LIST, None, _NO_QUORUM),
    _idle("controller.quorum.bootstrap.servers", LIST, "", _NO_QUORUM),
    _idle("controller.quorum.voters", LIST, "", _NO_QUORUM),
    _idle("create.topic.policy.class.name", CLASS, None, "there are no policies."),
    broker_key(
        "default.replication.factor", INT, "1", "Replication factor of topics that name none.", at_least=1
    ),
    broker_key("delete.topic.enable", BOOLEAN, "true", "Whether topics can be deleted."),
    broker_key("fetch.max.bytes", INT, "57671680", "Most bytes one Fetch answer carries.", at_least=1024),
    *_GROUP_KEYS,
    *_LOCKED_KEYS,
    *_SHARE_KEYS,
    *_STREAMS_KEYS,
    broker_key(
        "group.initial.rebalance.delay.ms",
        INT,
        "0",
        "Wait for more members when a group forms. Apache Kafka's default is 3000.",
    ),
    broker_key("group.max.session.timeout.ms", INT, "1800000", "Longest session timeout of a member."),
    broker_key("group.max.size", INT, str(INT_MAX), "Most members of a group.", at_least=1),
    broker_key("group.min.session.timeout.ms", INT, "6000", "Shortest session timeout of a member."),
    _idle("inter.broker.listener.name", STRING, None, _NO_QUORUM),
    broker_key(
        "leader.imbalance.check.interval.seconds",
        LONG,
        "300",
        "In a cluster: how often leaders go back to the preferred replicas.",
        at_least=1,
    ),
    broker_key(
        "listener.security.protocol.map", STRING, "PLAINTEXT:PLAINTEXT", "Security of each listener by name."
    ),
    broker_key(
        "listeners", LIST, "PLAINTEXT://127.0.0.1:9092", "Address to listen on: PLAINTEXT://HOST:PORT."
    ),
    broker_key("log.cleaner.enable", BOOLEAN, "true", "Whether compacted topics are compacted."),
    broker_key(
        "log.cleaner.backoff.ms",
        LONG,
        "15000",
        "How often compacted topics are looked at for something to compact.",
        at_least=0,
    ),
    broker_key(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        "134217728",
        "Memory for the keys of one compaction, 24 bytes each; what is beyond waits for the next.",
        at_least=1,
    ),
    _idle("log.cleaner.threads", INT, "1", _NO_THREADS, at_least=0),
    broker_key("log.dir", LIST, None, "Data directory; empty keeps everything in memory."),
    broker_key("log.dirs", LIST, None, "Data directories; the first is for the metadata, if none has them."),
    broker_key(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "How often recovery points are saved.",
        at_least=0,
    ),
    broker_key(
        "log.flush.scheduler.interval.ms", LONG, str(LONG_MAX), "How often logs are checked for a due flush."
    ),
    broker_key(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        "60000",
        "How often start offsets are saved.",
        at_least=0,
    ),
    broker_key(
        "log.retention.check.interval.ms", LONG, "300000", "How often retention is applied.", at_least=1
    ),
    broker_key(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        "20971520",
        "So many bytes of metadata behind a snapshot have another one written.",
        at_least=1,
    ),
    broker_key(
        "metadata.max.retention.bytes",
        LONG,
        "104857600",
        "Size of the metadata log with its snapshots above which old ones go; the newest snapshot stays.",
    ),
    broker_key(
        "metadata.max.retention.ms",
        LONG,
        "604800000",
        "Age of a snapshot of the metadata above which it goes with the log below the next one; -1 never.",
    ),
    broker_key(
        "max.connection.creation.rate",
        INT,
        str(INT_MAX),
        "Connections that are taken in per second; further ones wait.",
        at_least=0,
    ),
    broker_key(
        "max.connections",
        INT,
        str(INT_MAX),
        "Most connections at a time; further ones are closed.",
        at_least=0,
    ),
    broker_key(
        "max.connections.per.ip",
        INT,
        str(INT_MAX),
        "Most connections at a time from one address.",
        at_least=0,
    ),
    broker_key(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits for some addresses: HOST:NUMBER,HOST:NUMBER.",
    ),
    broker_key(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        "Most fetch sessions that are kept; further ones replace idle ones, or are declined.",
        at_least=0,
    ),
    broker_key(
        "max.request.partition.size.limit",
        INT,
        "2000",
        "Most partitions in one answer to DescribeTopicPartitions.",
        at_least=1,
    ),
    _idle("metadata.log.dir", STRING, None, "metadata lives in the data directory."),
    broker_key("node.id", INT, "1", "Number of this broker.", at_least=0),
    _idle("num.io.threads", INT, "8", _NO_THREADS, at_least=1),
    _idle("num.network.threads", INT, "3", _NO_THREADS, at_least=1),
    broker_key("num.partitions", INT, "1", "Partitions of topics that name no number.", at_least=1),
    _idle("num.recovery.threads.per.data.dir", INT, "2", _NO_THREADS, at_least=1),
    _idle("num.replica.fetchers", INT, "1", _NO_REPLICAS, at_least=1),
    broker_key(
        "offset.metadata.max.bytes", INT, "4096", "Longest note that comes with an offset.", at_least=0
    ),
    broker_key(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        "How often expired offsets and groups are removed.",
        at_least=1,
    ),
    broker_key(
        "offsets.retention.minutes", INT, "10080", "Age at which offsets of empty groups expire.", at_least=1
    ),
    broker_key("offsets.topic.num.partitions", INT, "50", "Partitions of __consumer_offsets.", at_least=1),
    broker_key(
        "offsets.topic.replication.factor",
        SHORT,
        "3",
        "Replicas of __consumer_offsets, no more than there are brokers.",
        at_least=1,
    ),
    broker_key(
        "offsets.topic.segment.bytes", INT, "104857600", "Segment size of __consumer_offsets.", at_least=1
    ),
    _idle("process.roles", LIST, "broker,controller", _NO_QUORUM, choices=("broker", "controller")),
    broker_key(
        "producer.id.expiration.ms",
        INT,
        str(DAY_MS),
        "Idle time after which a producer's sequences go.",
        at_least=1,
    ),
    broker_key(
        "queued.max.request.bytes",
        LONG,
        "134217728",
        "Most memory for requests that are still arriving; the slowest sender is disconnected. -1 no limit.",
    ),
    broker_key(
        "controller.quota.window.num",
        INT,
        "11",
        "In how many windows the partitions are counted that clients with a quota create and delete.",
        at_least=1,
    ),
    broker_key(
        "controller.quota.window.size.seconds", INT, "1", "How long each of these windows is.", at_least=1
    ),
    broker_key(
        "quota.window.num", INT, "11", "In how many windows the use of quotas is measured.", at_least=1
    ),
    broker_key("quota.window.size.seconds", INT, "1", "How long each of these windows is.", at_least=1),
    _idle("queued.max.requests", INT, "500", "a connection has one request in progress.", at_least=1),
    broker_key(
        "replica.fetch.backoff.ms",
        INT,
        "100",
        "In a cluster: how long a follower leaves a partition alone after an error. Kafka's default is 1000.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.max.bytes",
        INT,
        "1048576",
        "In a cluster: most bytes of one partition that a follower asks for at once.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.min.bytes",
        INT,
        "1",
        "In a cluster: for how many bytes the leader keeps a follower's fetch waiting.",
        at_least=1,
    ),
    broker_key(
        "replica.fetch.response.max.bytes",
        INT,
        "10485760",
        "In a cluster: most bytes of all partitions that a follower asks for at once.",
        at_least=0,
    ),
    broker_key(
        "replica.fetch.wait.max.ms",
        INT,
        "500",
        "In a cluster: how long the leader keeps a follower's fetch waiting.",
        at_least=1,
    ),
    broker_key(
        "replica.lag.time.max.ms",
        LONG,
        "30000",
        "In a cluster: after how long a follower that has not all records leaves the in-sync replicas.",
    ),
    broker_key(
        "replica.selector.class",
        STRING,
        None,
        "In a cluster: RackAwareReplicaSelector sends consumers to replicas in their rack.",
    ),
    broker_key(
        "socket.listen.backlog.size", INT, "50", "Connections that may wait to be accepted.", at_least=1
    ),
    broker_key(
        "socket.receive.buffer.bytes",
        INT,
        "-1",
        "Receive buffer of sockets; -1 leaves it to the system.",
        at_least=-1,
    ),
    broker_key("socket.request.max.bytes", INT, "104857600", "Largest request accepted.", at_least=1),
    broker_key(
        "socket.send.buffer.bytes",
        INT,
        "-1",
        "Send buffer of sockets; -1 leaves it to the system.",
        at_least=-1,
    ),
    broker_key(
        "telemetry.max.bytes", INT, "1048576", "Most bytes of metrics in one push of a client.", at_least=1
    ),
    broker_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        "10000",
        "How often transactions are looked for whose time is up.",
        at_least=1,
    ),
    broker_key(
        "transaction.max.timeout.ms", INT, "900000", "Longest transaction a producer may ask for.", at_least=1
    ),
    broker_key(
        "transaction.state.log.min.isr",
        INT,
        "2",
        "In-sync replicas that __transaction_state is made to need, no more than it has.",
        at_least=1,
    ),
    broker_key(
        "transaction.state.log.num.partitions", INT, "50", "Partitions of __transaction_state.", at_least=1
    ),
    broker_key(
        "transaction.state.log.replication.factor",
        SHORT,
        "3",
        "Replicas of __transaction_state, no more than there are brokers.",
        at_least=1,
    ),
    broker_key(
        "transaction.state.log.segment.bytes",
        INT,
        "104857600",
        "Segment size of __transaction_state.",
        at_least=1,
    ),
    broker_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        "How often transactional ids are looked for that were not used for too long.",
        at_least=1,
    ),
    broker_key(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        "false",
        "Whether producers may ask for transactions that never time out.",
    ),
    broker_key(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        "How long an unused transactional id is kept.",
        at_least=1,
    ),
    broker_key(
        "unclean.leader.election.interval.ms",
        LONG,
        "300000",
        "In a cluster: how often partitions without a leader are looked at that any replica may lead.",
        at_least=1,
    )._replace(is_hidden=True),
    broker_key(
        "unstable.api.versions.enable",
        BOOLEAN,
        "false",
        "Whether versions are offered that may still change.",
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
