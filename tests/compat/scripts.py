"""Request scripts for comparing brokers, with valid, unusual and invalid requests.

Each script takes a `Talk` (see `transcript`), and sends the same requests whatever the answers are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from compat.transcript import WAITS_MAX, Talk
from penstock.records.batch import encode_batch
from penstock.records.compression.codecs import CompressionCodec
from penstock.records.format.batch_header import refresh_crc
from penstock.records.legacy import encode_message_set

LOADING = (14, 15, 16)
"""Error codes COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR."""

Script = Callable[[Talk], None]
SCRIPTS: dict[str, Script] = {}

T = 1_600_000_000_000
TIMEOUT = {"timeout_ms": 5000}
ZERO = bytes(16)
UNKNOWN_ID = b"\7" * 16
BAD_NAMES = ("", ".", "..", "a/b", "ö", "x" * 250, "a b")
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def script(function: Script) -> Script:
    SCRIPTS[function.__name__] = function
    return function


def rows(*values: bytes | None, time: int = T) -> list[Any]:
    return [(b"k%d" % n, value, [("h", b"x")], time + n) for n, value in enumerate(values)]


# --- what exists --------------------------------------------------------------------------------------------


@script
def metadata(t: Talk) -> None:
    name = t.create_topic("known", 2)
    missing = t.name("missing")
    known_id = t.topic_id(name)
    for version in t.versions("Metadata"):

        def ask(*topics: dict[str, Any], version: int = version, **more: Any) -> None:
            tree = {"topics": list(topics), "allow_auto_topic_creation": False, **more}
            t.ask("Metadata", version, tree)

        ask({"name": name})
        ask(
            {"name": name},
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
        if version >= 4:
            ask({"name": missing}, {"name": name})
            ask({"name": missing}, {"name": missing})
        for bad in BAD_NAMES:
            ask({"name": bad})
        if version:
            ask()
        if version >= 10:
            ask({"name": name, "topic_id": known_id})
            ask({"name": None, "topic_id": known_id})
            ask({"name": None, "topic_id": UNKNOWN_ID})
            ask({"name": None, "topic_id": ZERO})
            ask({"name": None, "topic_id": known_id}, {"name": None, "topic_id": UNKNOWN_ID})
            ask({"name": name, "topic_id": ZERO}, {"name": None, "topic_id": known_id})
    t.ask("Metadata", t.latest("Metadata"), {"topics": None})


@script
def cluster(t: Talk) -> None:
    t.each("ApiVersions", *({"client_software_name": n, "client_software_version": v} for n, v in SOFTWARE))
    for version in t.versions("DescribeCluster"):
        for endpoint_type in (1, 2, 3, 0, -1):
            for asked in (True, False):
                tree = {"include_cluster_authorized_operations": asked, "endpoint_type": endpoint_type}
                t.ask("DescribeCluster", version, tree)
                if version < 1:
                    break
    name = t.create_topic("described", 3)
    other = t.create_topic("other")
    for names, limit, cursor in (
        ([name], 2000, None),
        ([other, name], 2, None),
        ([name, other], 2000, {"topic_name": name, "partition_index": 1}),
        ([name, other], 2000, {"topic_name": name, "partition_index": 9}),
        ([name], 2000, {"topic_name": "zzz", "partition_index": 0}),
        ([name], 0, None),
        ([name], -1, None),
        ([t.name("missing")], 2000, None),
        (["a/b", name, name], 2000, None),
        ([""], 2000, None),
        ([name], 2000, {"topic_name": name, "partition_index": -1}),
    ):
        tree = {"topics": [{"name": n} for n in names], "response_partition_limit": limit, "cursor": cursor}
        t.each("DescribeTopicPartitions", tree)
    t.each("DescribeLogDirs", {"topics": [{"topic": name, "partitions": [0, 1]}]})
    t.each("DescribeLogDirs", {"topics": [{"topic": t.name("missing"), "partitions": [0]}]}, {"topics": []})
    t.each("ListConfigResources", {"resource_types": [2]}, {"resource_types": [4]}, {"resource_types": [99]})
    t.each("DescribeQuorum", {"topics": [{"topic_name": name, "partitions": [{"partition_index": 0}]}]})
    t.each("DescribeQuorum", {"topics": []})
    t.each(
        "ListTransactions",
        {"state_filters": [], "producer_id_filters": []},
        {"state_filters": ["Ongoing", "Nonsense"], "producer_id_filters": [7]},
        {"state_filters": [], "producer_id_filters": [], "transactional_id_pattern": "("},
    )


SOFTWARE = (("differ", "1.0"), ("", "1.0"), ("differ", ""), ("-differ", "1"), ("a b", "1"), ("a.b-c", "1_0"))


# --- topics -------------------------------------------------------------------------------------------------


@script
def create_topics(t: Talk) -> None:
    existing = t.create_topic("existing")
    t.create_topic("a.b")
    number = 0
    for version in t.some_versions("CreateTopics"):

        def ask(*topics: dict[str, Any], version: int = version, **more: Any) -> None:
            full = [{"num_partitions": 1, "replication_factor": 1, **topic} for topic in topics]
            t.ask("CreateTopics", version, {"topics": full, **TIMEOUT, **more})
            t.settle()

        def fresh() -> str:
            nonlocal number
            number += 1
            return t.name(f"fresh{number}")

        ask()
        ask({"name": fresh(), "num_partitions": 3})
        ask({"name": fresh()}, {"name": fresh()}, {"name": existing})
        twice = fresh()
        ask({"name": twice}, {"name": twice})
        ask({"name": fresh()}, validate_only=True)
        ask({"name": existing}, validate_only=True)
        ask({"name": t.name("a_b")})
        ask({"name": fresh(), "num_partitions": -1, "replication_factor": -1})
        for partitions in (0, -2, 10_001):
            ask({"name": fresh(), "num_partitions": partitions})
        for factor in (0, -2, 2, 32767):
            ask({"name": fresh(), "replication_factor": factor})
        for bad in BAD_NAMES:
            ask({"name": bad})
        for assignments in ASSIGNMENTS:
            placed = [{"partition_index": index, "broker_ids": ids} for index, ids in assignments]
            ask({"name": fresh(), "num_partitions": -1, "replication_factor": -1, "assignments": placed})
        ask({"name": fresh(), "assignments": [{"partition_index": 0, "broker_ids": [1]}]})
        for key, value in CONFIGS:
            ask({"name": fresh(), "configs": [{"name": key, "value": value}]})
        ask({"name": fresh(), "configs": [{"name": "retention.ms", "value": v} for v in ("1", "2")]})


ASSIGNMENTS: tuple[tuple[tuple[int, list[int]], ...], ...] = (
    ((0, [1]),),
    ((0, [1]), (1, [1])),
    ((1, [1]),),
    ((0, [1]), (0, [1])),
    ((0, [1, 1]),),
    ((0, [2]),),
    ((0, []),),
    ((-1, [1]),),
)

CONFIGS: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "60000"),
    ("retention.ms", "-1"),
    ("retention.ms", "-2"),
    ("retention.ms", "x"),
    ("retention.ms", ""),
    ("retention.ms", None),
    ("retention.ms", " 5 "),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "nonsense"),
    ("cleanup.policy", ""),
    ("compression.type", "zstd"),
    ("compression.type", "ZSTD"),
    ("compression.type", "uncompressed"),
    ("compression.type", "brotli"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "Never"),
    ("min.insync.replicas", "0"),
    ("min.insync.replicas", "2"),
    ("segment.bytes", "1048576"),
    ("segment.bytes", "1"),
    ("segment.bytes", "99999999999"),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "0"),
    ("min.cleanable.dirty.ratio", "0.3"),
    ("min.cleanable.dirty.ratio", "2"),
    ("preallocate", "true"),
    ("preallocate", "yes"),
    ("unclean.leader.election.enable", "TRUE"),
    ("flush.messages", "0"),
    ("flush.ms", "-1"),
    ("index.interval.bytes", "-1"),
    ("segment.index.bytes", "3"),
    ("delete.retention.ms", "-1"),
    ("min.compaction.lag.ms", "5"),
    ("max.compaction.lag.ms", "0"),
    ("message.timestamp.before.max.ms", "-1"),
    ("file.delete.delay.ms", "0"),
    ("compression.gzip.level", "9"),
    ("compression.gzip.level", "10"),
    ("compression.gzip.level", "0"),
    ("compression.zstd.level", "22"),
    ("compression.zstd.level", "23"),
    ("compression.lz4.level", "18"),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "x"),
    ("follower.replication.throttled.replicas", "0:1"),
    ("remote.storage.enable", "false"),
    ("message.format.version", "0.11.0"),
    ("message.downconversion.enable", "false"),
    ("no.such.setting", "1"),
    ("", "1"),
)


@script
def delete_topics(t: Talk) -> None:
    for version in t.some_versions("DeleteTopics"):
        names = [t.create_topic(f"d{version}-{n}") for n in range(5)]
        ids = [t.topic_id(name) for name in names]

        def ask(*topics: dict[str, Any], version: int = version) -> None:
            by_name = [topic["name"] for topic in topics]
            tree: dict[str, Any] = {"topics": [{"topic_id": ZERO, **topic} for topic in topics], **TIMEOUT}
            if version < 6:
                if None in by_name:
                    return
                tree["topic_names"] = by_name
            t.ask("DeleteTopics", version, tree)
            t.settle()

        ask()
        ask({"name": names[0]})
        ask({"name": names[0]})
        ask({"name": names[1]}, {"name": names[1]})
        ask({"name": t.name("missing")}, {"name": names[2]})
        for bad in BAD_NAMES:
            ask({"name": bad})
        ask({"name": None, "topic_id": ids[3]})
        ask({"name": None, "topic_id": UNKNOWN_ID})
        ask({"name": None, "topic_id": ZERO})
        if version >= 6:
            ask({"name": names[4], "topic_id": ids[4]})
            ask({"name": names[4]}, {"name": None, "topic_id": ids[4]})
            ask({"name": None, "topic_id": ids[4]}, {"name": None, "topic_id": ids[4]})
    t.settle()
    t.ask("Metadata", t.latest("Metadata"), {"topics": None})


@script
def create_partitions(t: Talk) -> None:
    for version in t.some_versions("CreatePartitions"):
        name = t.create_topic(f"p{version}", 2)

        def ask(*topics: dict[str, Any], version: int = version, **more: Any) -> None:
            full = [{"assignments": None, **topic} for topic in topics]
            t.ask("CreatePartitions", version, {"topics": full, **TIMEOUT, "validate_only": False, **more})
            t.settle()

        ask()
        for count in (3, 3, 2, 0, -1, 4):
            ask({"name": name, "count": count})
        ask({"name": name, "count": 5}, validate_only=True)
        ask({"name": name, "count": 5}, {"name": name, "count": 6})
        ask({"name": t.name("missing"), "count": 5})
        ask({"name": "a/b", "count": 5})
        ask({"name": "", "count": 5})
        for brokers in ([[1]], [[1], [1]], [[2]], [[]], [[1, 1]], [[1, 2]], []):
            ask({"name": name, "count": 5, "assignments": [{"broker_ids": ids} for ids in brokers]})
        t.ask("Metadata", 9, {"topics": [{"name": name}], "allow_auto_topic_creation": False})


@script
def configs(t: Talk) -> None:
    name = t.create_topic("configured", retention_ms="5000", cleanup_policy="compact")
    asked = [
        (TOPIC, name, None),
        (TOPIC, name, ["retention.ms", "no.such.setting", "cleanup.policy", "segment.bytes"]),
        (TOPIC, name, []),
        (TOPIC, t.name("missing"), None),
        (TOPIC, "a/b", None),
        (TOPIC, "", None),
        (
            BROKER,
            "1",
            ["num.partitions", "log.retention.ms", "node.id", "no.such.setting", "log.cleaner.threads"],
        ),
        (BROKER, "", ["num.partitions"]),
        (BROKER, "2", None),
        (BROKER, "x", None),
        (BROKER_LOGGER, "9", None),
        (99, "x", None),
        (0, "x", None),
    ]
    for version in t.versions("DescribeConfigs"):
        for kind, resource, keys in asked:
            entry = {"resource_type": kind, "resource_name": resource, "configuration_keys": keys}
            for more in (False, True):
                tree = {"resources": [entry], "include_synonyms": more}
                t.ask("DescribeConfigs", version, tree)
    changes: list[list[tuple[str, int, str | None]]] = [
        [("retention.ms", SET, "7000")],
        [("retention.ms", DELETE, None)],
        [("retention.ms", DELETE, "5")],
        [("retention.ms", APPEND, "5")],
        [("cleanup.policy", APPEND, "delete")],
        [("cleanup.policy", APPEND, "delete")],
        [("cleanup.policy", SUBTRACT, "delete,compact")],
        [("cleanup.policy", SUBTRACT, "compact")],
        [("retention.ms", 9, "5")],
        [("retention.ms", SET, None)],
        [("retention.ms", SET, "5"), ("retention.ms", SET, "6")],
        [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")],
        [("no.such.setting", SET, "5")],
        [("no.such.setting", DELETE, None)],
        [],
        *([(key, SET, value)] for key, value in CONFIGS),
    ]
    for version in t.some_versions("IncrementalAlterConfigs"):

        def alter(kind: int, resource: str, change: list[Any], only: bool = False, v: int = version) -> None:
            entries = [{"name": n, "config_operation": o, "value": x} for n, o, x in change]
            entry = {"resource_type": kind, "resource_name": resource, "configs": entries}
            t.ask("IncrementalAlterConfigs", v, {"resources": [entry], "validate_only": only})
            t.settle()

        changed = t.create_topic(f"changed{version}")
        for change in changes:
            alter(TOPIC, changed, change)
        alter(TOPIC, changed, [("retention.ms", SET, "9")], only=True)
        whole = {"resource_type": TOPIC, "resource_name": changed, "configuration_keys": None}
        t.ask(
            "DescribeConfigs", t.latest("DescribeConfigs"), {"resources": [whole], "include_synonyms": True}
        )
        for kind, resource in (
            (TOPIC, t.name("missing")),
            (TOPIC, "a/b"),
            (TOPIC, ""),
            (99, "x"),
            (BROKER, "x"),
        ):
            alter(kind, resource, [("retention.ms", SET, "5")])
        alter(BROKER, "1", [("log.retention.ms", SET, "x")])
        alter(BROKER, "1", [("no.such.setting", SET, "x")])
        alter(BROKER, "1", [("node.id", SET, "7")])
        alter(BROKER, "2", [("log.cleaner.threads", SET, "1")])
    for version in t.versions("AlterConfigs"):
        changed = t.create_topic(f"altered{version}")
        for change in changes[:1] + changes[9:15]:
            entries = [{"name": n, "value": x} for n, _, x in change]
            entry = {"resource_type": TOPIC, "resource_name": changed, "configs": entries}
            t.ask("AlterConfigs", version, {"resources": [entry], "validate_only": False})
            t.settle()
        missing = {"resource_type": TOPIC, "resource_name": t.name("missing"), "configs": []}
        t.ask("AlterConfigs", version, {"resources": [missing], "validate_only": False})
        whole = {"resource_type": TOPIC, "resource_name": changed, "configuration_keys": None}
        t.ask("DescribeConfigs", t.latest("DescribeConfigs"), {"resources": [whole]})


@script
def placement(t: Talk) -> None:
    """Send requests about elections and replica reassignments to a cluster of one broker."""
    name = t.create_topic("placed", 2)
    missing = t.name("missing")
    for kind in (0, 1, 2, -1):
        for topics in ([(name, [0, 1, 9])], [(missing, [0])], []):
            listed = topics and [{"topic": topic, "partitions": places} for topic, places in topics]
            t.each("ElectLeaders", {"election_type": kind, "topic_partitions": listed, **TIMEOUT})
    for topic in (name, missing):
        for replicas in ([1], [2], [1, 2], [], None, [1, 1]):
            partition = {"partition_index": 0, "replicas": replicas}
            moves = {"topics": [{"name": topic, "partitions": [partition]}], **TIMEOUT}
            t.each("AlterPartitionReassignments", {**moves, "allow_replication_factor_change": True})
    for listed in (None, [], [{"name": name, "partition_indexes": [0, 9]}]):
        t.each("ListPartitionReassignments", {"topics": listed, **TIMEOUT})


# --- records ------------------------------------------------------------------------------------------------


def produce(t: Talk, version: int, name: str, records: bytes | None, **more: Any) -> None:
    index = more.pop("partition", 0)
    topic_id = more.pop("topic_id", None) or (t.topic_id(name) if version >= 13 else ZERO)
    data = {"name": name, "topic_id": topic_id, "partition_data": [{"index": index, "records": records}]}
    t.ask("Produce", version, {"acks": -1, "timeout_ms": 3000, "topic_data": [data], **more})


def fetch(t: Talk, version: int, name: str, offset: int, **more: Any) -> None:
    place: dict[str, Any] = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    place |= {key: more.pop(key) for key in list(more) if key in {*place, "current_leader_epoch"}}
    topic_id = t.topic_id(name) if version >= 13 else ZERO
    topics = [{"topic": name, "topic_id": more.pop("topic_id", topic_id), "partitions": [place]}]
    tree = {"replica_id": -1, "max_wait_ms": 10, "min_bytes": 1, "max_bytes": 1 << 25, "topics": topics}
    t.ask("Fetch", version, {"session_epoch": -1, **tree, **more})


def changed(batch: bytes, position: int, value: bytes, *, crc: bool = True) -> bytes:
    """Return a batch with some bytes replaced and, unless `crc` is false, its CRC recomputed."""
    data = bytearray(batch)
    data[position : position + len(value)] = value
    if crc:
        refresh_crc(data, 0, len(data))
    return bytes(data)


def odd_batches() -> list[bytes | None]:
    good = encode_batch(rows(b"a", b"b"))
    return [
        None,
        b"",
        b"x",
        bytes(200),
        good[:-1],
        good[:30],
        good + b"rest",
        good + good,
        changed(good, 17, b"\1\2\3\4", crc=False),
        changed(good, 8, struct.pack(">i", len(good))),  # batch length
        changed(good, 16, b"\3", crc=False),  # magic
        changed(good, 16, b"\xff", crc=False),
        changed(good, 0, struct.pack(">q", 77)),  # base offset
        changed(good, 12, struct.pack(">i", 5)),  # leader epoch
        changed(good, 21, struct.pack(">h", 5)),  # codec 5
        changed(good, 21, struct.pack(">h", 7)),
        changed(good, 21, struct.pack(">h", 1)),  # gzip, says the header
        changed(good, 21, struct.pack(">h", 8)),  # log append time
        changed(good, 21, struct.pack(">h", 0x10)),  # transactional
        changed(good, 21, struct.pack(">h", 0x20)),  # control
        changed(good, 21, struct.pack(">h", 0x40)),  # delete horizon
        changed(good, 21, struct.pack(">h", 0x4000)),  # unused
        changed(good, 23, struct.pack(">i", 5)),  # last offset delta
        changed(good, 23, struct.pack(">i", -1)),
        changed(good, 57, struct.pack(">i", 1)),  # record count
        changed(good, 57, struct.pack(">i", 0)),
        changed(good, 57, struct.pack(">i", -1)),
        changed(good, 57, struct.pack(">i", 1000)),
        changed(good, 35, struct.pack(">q", -1)),  # greatest time
        changed(good, 43, struct.pack(">qhi", 12345, 0, -1)),  # producer id without sequence
        changed(good, 43, struct.pack(">qhi", 987654, 0, 0)),
        changed(good, 43, struct.pack(">qhi", 987655, 3, 7)),
        changed(good, 43, struct.pack(">qhi", -1, 3, 7)),
        changed(good, 43, struct.pack(">qhi", 987656, -1, 0)),
        encode_batch(rows(b"a"), codec=CompressionCodec.ZSTD),
        encode_batch(rows(b"a" * 2000), codec=CompressionCodec.LZ4),
        encode_batch(rows(b"now" * 10, time=-1)),
        encode_batch(rows(b"future", time=T * 20)),
        encode_batch(rows(None)),
        encode_batch([(None, b"no key", [], T)]),
        encode_batch(rows(b"large" * 300_000)),
        encode_batch(rows(b"a", b"b", b"c"), offset_deltas=[0, 2, 5]),
        encode_message_set([(b"k", b"zero", -1)], 0),
        encode_message_set([(b"k", b"one", T), (b"l", b"two", T)], 1),
        encode_message_set([(b"k", b"one", T)] * 3, 1, codec=CompressionCodec.GZIP),
    ]


@script
def produce_odd(t: Talk) -> None:
    for version in t.some_versions("Produce"):
        batches = odd_batches()
        each = t.create_topic(f"each{version}", len(batches))
        for index, records in enumerate(batches):
            if records is None and version != t.latest("Produce"):
                continue  # Kafka never answers, which takes long to find out
            produce(t, version, each, records, partition=index)
            fetch(t, t.latest("Fetch"), each, 0, partition=index)
        name = t.create_topic(f"odd{version}")
        for acks in (0, 1, 2, -2):
            produce(t, version, name, encode_batch(rows(b"acks")), acks=acks) if acks else None
        produce(t, version, name, encode_batch(rows(b"x")), partition=1)
        produce(t, version, name, encode_batch(rows(b"x")), partition=-1)
        produce(t, version, name, encode_batch(rows(b"x")), transactional_id=t.name("tx"))
        produce(t, version, name, encode_batch(rows(b"x")), transactional_id="")
        produce(t, version, name, encode_batch(rows(b"x")), topic_id=UNKNOWN_ID if version >= 13 else None)
        for bad in BAD_NAMES:
            produce(t, version, bad, encode_batch(rows(b"x")))
        t.ask("Produce", version, {"acks": -1, "timeout_ms": 3000, "topic_data": []})
        fetch(t, t.latest("Fetch"), name, 0)


@script
def produce_to_special_topics(t: Talk) -> None:
    good = encode_batch(rows(b"a", b"b"))
    for label, settings in {
        "compacted": {"cleanup_policy": "compact"},
        "append": {"message_timestamp_type": "LogAppendTime"},
        "small": {"max_message_bytes": "300"},
        "segment": {"segment_bytes": "1048576"},
        "zstd": {"compression_type": "zstd"},
        "plain": {"compression_type": "uncompressed"},
        "past": {"message_timestamp_before_max_ms": "1000"},
        "future": {"message_timestamp_after_max_ms": "1000"},
    }.items():
        name = t.create_topic(label, **settings)
        version = t.latest("Produce")
        for records in (
            good,
            encode_batch([(None, b"no key", [], T), (b"k", b"key", [], T)]),
            encode_batch([(None, b"no key", [], T)], codec=CompressionCodec.GZIP),
            encode_batch(rows(b"x" * 400)),
            encode_batch(rows(b"x" * 4000), codec=CompressionCodec.GZIP),
            encode_batch(rows(b"x" * 2_000_000), codec=CompressionCodec.GZIP),
            encode_batch(rows(b"x", time=T * 20)),
            encode_batch(rows(b"x", time=-1)),
        ):
            for acks in (-1, 1):
                produce(t, version, name, records, acks=acks)
        for time in (-1, -2, T):
            asked = {"partition_index": 0, "timestamp": time, "current_leader_epoch": -1}
            tree = {"replica_id": -1, "topics": [{"name": name, "partitions": [asked]}]}
            t.ask("ListOffsets", t.latest("ListOffsets"), tree)
        fetch(t, 11, name, 0)
        fetch(t, 9, name, 0)


@script
def idempotent_producers(t: Talk) -> None:
    for _ in range(50):  # Kafka fetches a block of ids first
        first = {"transactional_id": None, "transaction_timeout_ms": 1000}
        if t.ask_quietly("InitProducerId", 2, first)["error_code"] == 0:
            break
        t.settle()
    for tree in (
        {"transactional_id": None, "transaction_timeout_ms": 1000},
        {"transactional_id": None, "transaction_timeout_ms": -1},
        {"transactional_id": None, "transaction_timeout_ms": 0, "producer_id": 5, "producer_epoch": 1},
        {"transactional_id": None, "transaction_timeout_ms": 0, "producer_id": 5, "producer_epoch": -1},
        {"transactional_id": "", "transaction_timeout_ms": 1000},
    ):
        t.each("InitProducerId", {"producer_id": -1, "producer_epoch": -1, **tree})
    name = t.create_topic("idempotent")
    version = t.latest("Produce")
    producer = 5_000_000 + t.random.randrange(1_000_000)

    def send(epoch: int, sequence: int, count: int, of: int = producer, to: str = name) -> None:
        values = [b"v%d" % n for n in range(count)]
        numbers = {"producer_id": of, "producer_epoch": epoch, "base_sequence": sequence}
        produce(t, version, to, encode_batch(rows(*values), **numbers))

    for epoch, sequence, count in (
        (0, 0, 2), (0, 0, 2), (0, 2, 1), (0, 2, 2), (0, 3, 1), (0, 5, 1), (0, 1, 1), (0, 4, 1), (0, 5, 1),
        (0, 6, 1), (0, 7, 1), (0, 8, 1), (0, 0, 2), (0, 8, 1), (0, 4, 1), (1, 5, 1), (1, 0, 1), (0, 9, 1),
        (1, 1, 1), (1, 0, 1), (2, 0, 3), (2, 3, 1), (-1, 4, 1), (32767, 0, 1), (32767, 1, 1), (5, 0, 1),
    ):  # fmt: skip
        send(epoch, sequence, count)
    for sequence in (2147483646, 0, 1, 2147483647):
        send(0, sequence, 1, of=producer + 1)
    send(0, 3, 1, of=producer + 2)
    for _ in range(60):
        send(0, t.random.randrange(12), t.random.randrange(1, 4), of=producer + 3 + t.random.randrange(2))
    asked = [
        {"name": name, "partition_indexes": [0, 9]},
        {"name": t.name("missing"), "partition_indexes": [0]},
    ]
    t.each("DescribeProducers", {"topics": asked}, {"topics": [{"name": "a/b", "partition_indexes": [0]}]})
    fetch(t, t.latest("Fetch"), name, 0)


@script
def fetch_odd(t: Talk) -> None:
    name = t.create_topic("read", segment_bytes="1048576")
    for n, codec in enumerate(list(CompressionCodec) * 3):
        batch = encode_batch(rows(b"v" * (10 * n), b"w" * 300, time=T + 1000 * n), codec=codec)
        produce(t, t.latest("Produce"), name, batch)
    for version in t.some_versions("Fetch"):
        for offset in (0, 1, 3, 29, 30, 31, -1, 1 << 40):
            fetch(t, version, name, offset)
        for limit in (0, 1, 100, 500, 900, 5000):
            fetch(t, version, name, 4, partition_max_bytes=limit)
            fetch(t, version, name, 4, max_bytes=limit)
        fetch(t, version, name, 4, partition_max_bytes=-1)
        fetch(t, version, name, 0, partition=1)
        fetch(t, version, name, 0, partition=-1)
        fetch(t, version, t.name("missing"), 0)
        fetch(t, version, "a/b", 0)
        fetch(t, version, name, 30, min_bytes=0)
        fetch(t, version, name, 30, min_bytes=-1)
        fetch(t, version, name, 30, max_wait_ms=-1)
        fetch(t, version, name, 0, isolation_level=1)
        fetch(t, version, name, 0, isolation_level=7)
        fetch(t, version, name, 0, topics=[])
        for epoch in (0, 1, 5, -1, -2):
            fetch(t, version, name, 0, current_leader_epoch=epoch)
        if version >= 13:
            fetch(t, version, name, 0, topic_id=UNKNOWN_ID)
            fetch(t, version, name, 0, topic_id=ZERO)
        if version >= 12:
            fetch(t, version, name, 0, last_fetched_epoch=0)
        if version >= 7:
            fetch(t, version, name, 0, session_id=12345, session_epoch=1)
            fetch(t, version, name, 0, session_id=0, session_epoch=5)
            fetch(t, version, name, 0, session_id=5, session_epoch=0)
            fetch(t, version, name, 0, session_id=5, session_epoch=-1)


@script
def offsets(t: Talk) -> None:
    name = t.create_topic("times", 2)
    for n, codec in enumerate((CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.NONE)):
        values = [b"v%d" % m for m in range(4)]
        produce(t, t.latest("Produce"), name, encode_batch(rows(*values, time=T + 100 * n), codec=codec))
    produce(t, t.latest("Produce"), name, encode_batch(rows(b"earlier", time=T - 50)))
    times = (
        -1,
        -2,
        -3,
        -4,
        -5,
        -6,
        -7,
        -100,
        0,
        T - 51,
        T,
        T + 1,
        T + 50,
        T + 101,
        T + 203,
        T + 204,
        1 << 50,
    )
    for version in t.versions("ListOffsets"):

        def ask(topic: str, index: int, time: int, epoch: int = -1, v: int = version, **more: Any) -> None:
            asked = {"partition_index": index, "timestamp": time, "current_leader_epoch": epoch}
            asked["max_num_offsets"] = more.pop("max_num_offsets", 1)
            topics = more.pop("topics", [{"name": topic, "partitions": [asked]}])
            t.ask("ListOffsets", v, {"replica_id": -1, "topics": topics, "timeout_ms": 1000, **more})

        for time in times:
            ask(name, 0, time)
            ask(name, 1, time)
        for epoch in (0, 1, -2):
            ask(name, 0, -1, epoch)
        ask(name, 7, -1)
        ask(name, -1, -1)
        ask(t.name("missing"), 0, -1)
        ask("a/b", 0, -1)
        ask(name, 0, -1, topics=[])
        ask(name, 0, -1, isolation_level=1)
        ask(name, 0, -1, replica_id=-2)
        ask(name, 0, -1, replica_id=1)
        twice = [{"partition_index": 0, "timestamp": at, "current_leader_epoch": -1} for at in (-1, -2)]
        ask(name, 0, 0, topics=[{"name": name, "partitions": twice}])
    for epoch in (0, 1, -1):
        for current in (-1, 0, 3):
            for index in (0, 5):
                place = {"partition": index, "current_leader_epoch": current, "leader_epoch": epoch}
                for topic in (name, t.name("missing")):
                    tree = {"replica_id": -2, "topics": [{"topic": topic, "partitions": [place]}]}
                    t.each("OffsetForLeaderEpoch", tree)
    for version in t.versions("DeleteRecords"):
        for topic, index, offset in (
            (name, 0, version * 2 + 1), (name, 0, 0), (name, 0, 99), (name, 0, -2), (name, 5, 0),
            (name, 1, 0), (name, 1, -1), (t.name("missing"), 0, 0), ("a/b", 0, 0),
        ):  # fmt: skip
            places = [{"partition_index": index, "offset": offset}]
            t.ask("DeleteRecords", version, {"topics": [{"name": topic, "partitions": places}], **TIMEOUT})
        for time in (-1, -2, -3, -4, T):
            place = {"partition_index": 0, "timestamp": time, "current_leader_epoch": -1}
            asked = {"replica_id": -1, "topics": [{"name": name, "partitions": [place]}]}
            t.ask("ListOffsets", t.latest("ListOffsets"), asked)
        fetch(t, t.latest("Fetch"), name, 0)
        fetch(t, t.latest("Fetch"), name, version * 2 + 1)


# --- what there is not --------------------------------------------------------------------------------------


@script
def without_security(t: Talk) -> None:
    name = t.create_topic("moved")
    match = {"operation": 1, "permission_type": 1, "pattern_type_filter": 3}
    rule = {"resource_type": TOPIC, "resource_name": "a", "resource_pattern_type": 3, "principal": "User:a"}
    rule |= {"host": "*", "operation": 3, "permission_type": 3}
    t.each("SaslHandshake", {"mechanism": "PLAIN"}, {"mechanism": ""})
    t.each("SaslAuthenticate", {"auth_bytes": b"x"})
    t.each("DescribeAcls", {"resource_type_filter": 1, "resource_name_filter": None, **match})
    t.each("CreateAcls", {"creations": [rule, rule]}, {"creations": []})
    t.each("DeleteAcls", {"filters": [{"resource_type_filter": 2, **match}]}, {"filters": []})
    for kind in ("user", "client-id", "ip", "nonsense"):
        components = [{"entity_type": kind, "match_type": 2, "match": None}]
        t.each("DescribeClientQuotas", {"components": components, "strict": True})
    t.each("DescribeClientQuotas", {"components": [], "strict": False})
    for users in (None, [], ["a", "b"], ["a", "a"]):
        t.each("DescribeUserScramCredentials", {"users": users and [{"name": user} for user in users]})
    t.each("DescribeDelegationToken", {"owners": None}, {"owners": []})
    t.each("CreateDelegationToken", {"renewers": [], "max_lifetime_ms": -1})
    t.each("RenewDelegationToken", {"hmac": b"x", "renew_period_ms": 5})
    t.each("ExpireDelegationToken", {"hmac": b"x", "expiry_time_period_ms": 5})
    for version in t.versions("FindCoordinator"):
        asked = {"key": "tx", "key_type": 1, "coordinator_keys": ["tx", "ty"]}
        for _ in range(WAITS_MAX):  # Kafka makes the topic for transactions first
            found = t.ask_quietly("FindCoordinator", max(version, 1), asked)
            if all(each["error_code"] == 0 for each in found.get("coordinators", [found])):
                break
            t.settle()
        if version:
            t.ask("FindCoordinator", version, asked)
    for _ in range(WAITS_MAX):  # and then reads it
        found = t.ask_quietly("DescribeTransactions", 0, {"transactional_ids": ["tx", ""]})
        if all(each["error_code"] not in LOADING for each in found["transaction_states"]):
            break
        t.settle()
    t.each("DescribeTransactions", {"transactional_ids": ["tx", ""]}, {"transactional_ids": []})
    moved = [{"name": name, "partitions": [0, 9]}, {"name": t.name("missing"), "partitions": [0]}]
    t.each("AlterReplicaLogDirs", {"dirs": [{"path": "/nope", "topics": moved}]}, {"dirs": []})


# --- frames -------------------------------------------------------------------------------------------------


@script
def frames(t: Talk) -> None:
    head = struct.pack(">hhih", 3, 1, 7, 1) + b"c"
    good = head + struct.pack(">i", 0)
    t.raw("good", good)
    t.raw("trailing bytes", good + b"xyz")
    t.raw("truncated body", head + b"\0\0")
    t.raw("no body", head)
    t.raw("array of -2", head + struct.pack(">i", -2))
    t.raw("array larger than the frame", head + struct.pack(">i", 1 << 20))
    t.raw("client id null", struct.pack(">hhih", 3, 1, 7, -1) + struct.pack(">i", 0))
    t.raw("client id of -2", struct.pack(">hhih", 3, 1, 7, -2) + struct.pack(">i", 0))
    t.raw("client id too long", struct.pack(">hhih", 3, 1, 7, 500) + struct.pack(">i", 0))
    t.raw("client id no UTF-8", struct.pack(">hhih", 3, 1, 7, 2) + b"\xff\xfe" + struct.pack(">i", 0))
    t.raw("unknown API", struct.pack(">hhih", 1000, 0, 7, 1) + b"c")
    t.raw("negative API", struct.pack(">hhih", -1, 0, 7, 1) + b"c")
    t.raw("version too high", struct.pack(">hhih", 3, 99, 7, 1) + b"c" + struct.pack(">i", 0))
    t.raw("negative version", struct.pack(">hhih", 3, -1, 7, 1) + b"c" + struct.pack(">i", 0))
    t.raw("ApiVersions too high", struct.pack(">hhih", 18, 99, 7, 1) + b"c\0")
    t.raw("ApiVersions negative", struct.pack(">hhih", 18, -1, 7, 1) + b"c\0")
    t.raw("three bytes", b"\0\3\0")
    t.raw("empty", b"")
    t.raw("negative size", b"", size=-1)
    t.raw("too large", b"", size=(1 << 31) - 1)
    t.raw("over the limit", b"", size=104857601)
    t.raw("HTTP", b"GET / HTTP/1.1\r\n\r\n"[4:], size=0x47455420)
    t.raw("topic name no UTF-8", head + struct.pack(">ih", 1, 2) + b"\xff\xfe")
    t.raw("topic name null", head + struct.pack(">ih", 1, -1))
    t.raw("cluster API at a broker", struct.pack(">hhih", 52, 0, 7, 1) + b"c" + bytes(20))
