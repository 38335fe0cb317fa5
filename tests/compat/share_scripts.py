"""Request scripts about share groups (KIP-932), for comparing two brokers' answers and stored records."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

from compat.group_scripts import coordinated
from compat.scripts import script
from compat.transcript import WAITS_MAX, Talk
from penstock.common.java_hash import hash_order, partition_of
from penstock.protocol import messages
from penstock.protocol.inspect.json_form import to_json
from penstock.records.batch import decode_batch, encode_batch
from penstock.records.format.batch_header import split_batches

OFFSETS_RECORDS = {
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
}
STATE_RECORDS = {0: "ShareSnapshot", 1: "ShareUpdate"}

ASSIGNMENT_INTERVAL_S = 1.1
OFFSETS_PARTITIONS, STATE_PARTITIONS = 5, 50

SINCE_4_4 = 5
"""The version of ApiVersions that began with Apache Kafka 4.4."""

MASKED = {
    "metadataHash", "assignmentTimestamp", "createTimestamp", "writeTimestamp", "topicId", "clientId",
}  # fmt: skip
"""Record fields that differ between brokers even for equal state: hashes, times and topic ids."""


def plain(form: Any) -> Any:
    """Return the JSON form of a record without the fields that always differ between brokers."""
    if isinstance(form, dict):
        return {key: plain(value) for key, value in form.items() if key not in MASKED}
    return [plain(each) for each in form] if isinstance(form, list) else form


def stored(
    t: Talk, topic: str, index: int, names: dict[int, str], group: str
) -> Iterator[list[tuple[str, Any, Any]]]:
    """Yield a group's records in one partition of an internal topic, batch by batch.

    Each record is a tuple of its type's name, its key and its value.
    """
    asked = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
    tree = {
        "replica_id": -1,
        "max_wait_ms": 0,
        "max_bytes": 1 << 24,
        "topics": [{"topic": topic, "partitions": [asked]}],
    }
    data = t.fetched("Fetch", 11, tree)
    for start, end, _ in split_batches(data):
        rows = []
        for row in decode_batch(data, start, end, topic, index):
            assert row.key is not None
            name = names.get(int.from_bytes(row.key[:2], "big"))
            if name is None:
                continue
            key_class, value_class = getattr(messages, f"{name}Key"), getattr(messages, f"{name}Value")
            key = key_class.decode(row.key[2:], 0)
            if key.group_id == group:
                value = None if row.value is None else to_json(value_class.decode(row.value[2:], 0), 0)
                rows.append((name, plain(to_json(key, 0)), plain(value)))
        if rows:
            yield rows


def note_group(t: Talk, group: str) -> None:
    """Record the stored records of a group, batch by batch, so that the batches are compared as well.

    A batch equal to the one before is left out, since Apache Kafka stores some that change nothing.
    """
    index = partition_of(group, OFFSETS_PARTITIONS)
    before: list[tuple[str, Any, Any]] = []
    for rows in stored(t, "__consumer_offsets", index, OFFSETS_RECORDS, group):
        if rows != before:
            t.note("batch", {"records": rows})
        before = rows


def share_key(group: str, topic_id: bytes, index: int) -> str:
    return f"{group}:{base64.urlsafe_b64encode(topic_id).decode().rstrip('=')}:{index}"


def note_states(t: Talk, group: str, topic_id: bytes, partitions: int) -> None:
    """Record the stored records of each share partition.

    They are recorded one by one, since a batch may hold records of several share partitions.
    """
    for number in range(partitions):
        index = partition_of(share_key(group, topic_id, number), STATE_PARTITIONS)
        rows = [
            row
            for batch in stored(t, "__share_group_state", index, STATE_RECORDS, group)
            for row in batch
            if row[1]["partition"] == number
        ]
        t.note("states", {"records": rows})


def beat(t: Talk, group: str, member: str, epoch: int, topics: list[str] | None = None, **more: Any) -> Any:
    tree = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "subscribed_topic_names": topics,
        "rack_id": None,
    }
    return t.ask("ShareGroupHeartbeat", 1, {**tree, **more})


def wait_for_states(t: Talk, group: str, topic: str, partitions: int) -> None:
    """Wait until the share partitions of a topic are initialized."""
    for _ in range(WAITS_MAX):
        asked = {"groups": [{"group_id": group, "topics": None}]}
        answer = t.ask_quietly("DescribeShareGroupOffsets", 0, asked)
        found = {each["topic_name"]: len(each["partitions"]) for each in answer["groups"][0]["topics"]}
        if found.get(topic) == partitions:
            return
        time.sleep(0.02)
    raise AssertionError(f"the partitions of {topic} are not initialized: {answer}")


def first_taken_away(topic_id: bytes) -> int:
    """Return which of two partitions Apache Kafka revokes first from a member that has both.

    It revokes the first element of a HashSet, whose hash codes come from the topic id and the partition.
    """
    both = int.from_bytes(topic_id[:8], "big") ^ int.from_bytes(topic_id[8:], "big")
    uuid_hash = both >> 32 ^ both & 0xFFFFFFFF
    return hash_order((0, 1), lambda partition: 31 * uuid_hash + partition)[0]


def create_topic_that_keeps_0(t: Talk, name: str) -> str:
    """Create a topic of two partitions, of which brokers revoke partition 1 first from a member.

    In Apache Kafka the random topic id decides the order; Penstock always revokes the last partition
    first.
    """
    for _ in range(WAITS_MAX):
        topic = t.create_topic(name, 2)
        if first_taken_away(t.topic_id(topic)) == 1:
            return topic
        t.ask_quietly("DeleteTopics", 1, {"topic_names": [topic], "timeout_ms": 10_000})
    raise AssertionError("no id of a topic had a hash code that takes partition 1 away first")


@script
def share_members(t: Talk) -> None:
    if not t.offers("ShareGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), create_topic_that_keeps_0(t, "t")
    topic_id = t.topic_id(topic)
    describe = {"group_ids": [group, t.name("missing"), ""], "include_authorized_operations": True}
    beat(t, group, "a", 0, [topic])
    wait_for_states(t, group, topic, 2)
    time.sleep(ASSIGNMENT_INTERVAL_S)
    beat(t, group, "a", 2)
    beat(t, group, "a", 3)
    t.ask("ShareGroupDescribe", 1, describe)
    for epoch in (1, 2, 4, -2):
        beat(t, group, "a", epoch)
    beat(t, group, "a", 0, [topic])
    for wrong in ({"topics": []}, {"topics": None}, {"member": ""}, {"member": "x" * 37}, {"member": " "}):
        fields: dict[str, Any] = {"member": "a", "topics": [topic], **wrong}
        beat(t, group, fields["member"], 0, fields["topics"])
    beat(t, "", "a", 0, [topic])
    beat(t, " ", "a", 0, [topic])
    beat(t, group, "a", 0, [topic], rack_id=" ")
    beat(t, group, "b", 0, [topic], rack_id="r")
    time.sleep(ASSIGNMENT_INTERVAL_S)
    joined = beat(t, group, "b", 3)
    beat(t, group, "a", 3)
    beat(t, group, "b", joined["member_epoch"], [])
    time.sleep(ASSIGNMENT_INTERVAL_S)
    t.ask("ShareGroupDescribe", 1, describe)
    beat(t, group, "nobody", 3)
    beat(t, t.name("missing"), "a", 3)
    beat(t, t.name("missing"), "a", -1)
    t.ask("ListGroups", 5, {"states_filter": ["stable"], "types_filter": ["SHARE"]})
    for version in (5, 6):
        t.ask("DescribeGroups", version, {"groups": [group]})
    t.ask("DeleteGroups", 2, {"groups_names": [group]})
    beat(t, group, "a", -1)
    beat(t, group, "a", -1)
    beat(t, group, "b", -1)
    note_group(t, group)
    note_states(t, group, topic_id, 2)
    t.ask("DeleteGroups", 2, {"groups_names": [group, t.name("missing")]})
    note_group(t, group)
    note_states(t, group, topic_id, 2)


@script
def share_groups_among_others(t: Talk) -> None:
    """Send share group requests to groups of other types, and other types' requests to a share group."""
    if not t.offers("ShareGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t")
    beat(t, group, "a", 0, [topic])
    wait_for_states(t, group, topic, 1)
    commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    offsets = {"topics": [{"name": topic, "partitions": [commit]}]}
    for name in (group, t.name("simple")):
        for member, epoch in (("", -1), ("a", 5)):
            who = {"group_id": name, "generation_id_or_member_epoch": epoch, "member_id": member}
            t.ask("OffsetCommit", 9, {**who, **offsets})
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    t.ask("OffsetFetch", 9, {"groups": [{**asked, "member_id": None, "member_epoch": -1}]})
    deleted = [{"name": topic, "partitions": [{"partition_index": 0}]}]
    t.ask("OffsetDelete", 0, {"group_id": group, "topics": deleted})
    protocols = [{"name": "range", "metadata": b""}]
    joining = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    consumer = {"member_epoch": 0, "rebalance_timeout_ms": 1000, "topic_partitions": []}
    for _ in range(2):
        t.ask("JoinGroup", 9, {"group_id": group, "member_id": "", "protocols": protocols, **joining})
        member = {"group_id": group, "member_id": "c", "subscribed_topic_names": [topic]}
        t.ask("ConsumerGroupHeartbeat", 1, {**member, **consumer})
        beat(t, group, "a", -1)
    t.ask("Heartbeat", 4, {"group_id": group, "member_id": "a", "generation_id": 2})
    t.ask("LeaveGroup", 5, {"group_id": group, "members": [{"member_id": "a"}]})
    t.ask("ConsumerGroupDescribe", 1, {"group_ids": [group]})
    other = coordinated(t, "other")
    member = {"group_id": other, "member_id": "c", "subscribed_topic_names": [topic]}
    t.ask("ConsumerGroupHeartbeat", 1, {**member, **consumer})
    starts = [{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 0}]}]
    for name in (other, t.name("simple"), ""):
        beat(t, name, "s", 0, [topic])
        t.ask("ShareGroupDescribe", 1, {"group_ids": [name]})
        t.ask("AlterShareGroupOffsets", 0, {"group_id": name, "topics": starts})
        t.ask("DeleteShareGroupOffsets", 0, {"group_id": name, "topics": [{"topic_name": topic}]})
        t.ask("DescribeShareGroupOffsets", 1, {"groups": [{"group_id": name, "topics": None}]})
    t.ask("ConsumerGroupHeartbeat", 1, {"group_id": other, "member_id": "c", "member_epoch": -1})
    beat(t, other, "s", 0, [topic])


@script
def share_offsets(t: Talk) -> None:
    if not t.offers("AlterShareGroupOffsets"):
        return
    group, topic, missing = coordinated(t, "g"), t.create_topic("t", 3), t.name("no-topic")
    topic_id = t.topic_id(topic)

    def alter(name: str, *starts: tuple[str, int, int]) -> None:
        topics = [
            {"topic_name": each, "partitions": [{"partition_index": index, "start_offset": start}]}
            for each, index, start in starts
        ]
        t.ask("AlterShareGroupOffsets", 0, {"group_id": name, "topics": topics})

    def describe(*names: str, topics: list[Any] | None = None) -> None:
        for version in t.versions("DescribeShareGroupOffsets"):
            asked = [{"group_id": name, "topics": topics} for name in names]
            t.ask("DescribeShareGroupOffsets", version, {"groups": asked})

    alter(group, (topic, 1, 2))
    describe(group, t.name("nobody"), "")
    describe(
        group, topics=[{"topic_name": topic, "partitions": [1]}, {"topic_name": missing, "partitions": [0]}]
    )
    note_group(t, group)
    beat(t, group, "a", 0, [topic])
    wait_for_states(t, group, topic, 3)
    alter(group, (topic, 0, 5))
    delete = {"group_id": group, "topics": [{"topic_name": topic}, {"topic_name": missing}]}
    t.ask("DeleteShareGroupOffsets", 0, delete)
    beat(t, group, "a", -1)
    alter(group, (topic, 0, 0), (missing, 0, 0))
    describe(group)
    alter(t.name("other"), (missing, 1, 1))
    describe(t.name("other"))
    note_group(t, group)
    note_states(t, group, topic_id, 3)
    for _ in range(2):
        t.ask("DeleteShareGroupOffsets", 0, delete)
    t.ask("DeleteShareGroupOffsets", 0, {**delete, "group_id": t.name("nobody")})
    describe(group)
    note_group(t, group)
    note_states(t, group, topic_id, 3)
    t.ask("DeleteGroups", 2, {"groups_names": [group]})
    note_group(t, group)
    # Apache Kafka stores that no partition of the topic is about to be initialized; here nothing is stored.
    alter(group, (topic, 7, 0))


@script
def share_states(t: Talk) -> None:
    """Send the requests that brokers send to the share coordinator."""
    if not t.offers("WriteShareGroupState"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t", 2)
    topic_id = t.topic_id(topic)
    key = share_key(group, topic_id, 0)
    coded = base64.urlsafe_b64encode(b"T" * 16).decode().rstrip("=")
    bad = [group, "a:b:c", f"a:{coded}:x", f":{coded}:0", f"a:{coded}:0:1"]
    good = [key, f"a:b:{coded}:0", f"a:{coded}==:0", f"a:{coded}:-1"]
    for _ in range(WAITS_MAX):
        answer = t.ask_quietly("FindCoordinator", 6, {"key_type": 2, "coordinator_keys": good})
        if not any(each["error_code"] for each in answer["coordinators"]):
            break
        t.settle()
    for version in (5, 6):
        for named in (bad, []):
            t.ask("FindCoordinator", version, {"key_type": 2, "coordinator_keys": named})
    t.note("coordinators", [each["error_code"] for each in answer["coordinators"]])

    def ask(api: str, index: int, version: int | None = None, **more: Any) -> Any:
        name, of = more.pop("group", group), more.pop("topic", topic_id)
        tree = {
            "group_id": name,
            "topics": [{"topic_id": of, "partitions": [{"partition": index, **more}]}],
        }
        return t.ask(api, t.latest(api) if version is None else version, tree)

    def batches(*rows: tuple[int, int, int, int]) -> list[dict[str, int]]:
        names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def write(index: int, state_epoch: int, leader_epoch: int, start: int, *rows: Any, **more: Any) -> None:
        fields = {"state_epoch": state_epoch, "leader_epoch": leader_epoch, "start_offset": start}
        ask("WriteShareGroupState", index, state_batches=batches(*rows), **fields, **more)

    for _ in range(WAITS_MAX):  # a coordinator may still load
        result = t.ask_quietly(
            "ReadShareGroupState",
            0,
            {
                "group_id": group,
                "topics": [{"topic_id": topic_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
            },
        )
        if result["results"][0]["partitions"][0]["error_code"] == 42:
            break
        t.settle()
    ask("InitializeShareGroupState", 0, state_epoch=2, start_offset=-1)
    for version in t.versions("ReadShareGroupStateSummary"):
        ask("ReadShareGroupStateSummary", 0, version, leader_epoch=0)
    for index in (0, 5, -1):
        ask("ReadShareGroupState", index, leader_epoch=3)
        ask("ReadShareGroupState", index, leader_epoch=2)
    ask("ReadShareGroupState", 0, leader_epoch=0, group=t.name("nobody"))
    ask("ReadShareGroupState", 0, leader_epoch=0, topic=b"x" * 16)
    ask("ReadShareGroupState", 0, leader_epoch=0, topic=bytes(16))
    ask("ReadShareGroupState", 0, leader_epoch=0, group="")
    write(0, 2, 2, 0)
    write(0, 1, 3, 0)
    write(0, 9, 4, 0, (10, 20, 0, 1), (5, 9, 2, 1), delivery_complete_count=2)
    write(0, 9, 4, -1, (12, 13, 2, 1))
    write(0, -1, 4, 3, (2, 4, 0, 2), (3, 9, 0, 1), (3, 9, 2, 1))
    ask("ReadShareGroupState", 0, leader_epoch=4)
    # From here on the start only grows: Apache Kafka before 4.4 takes an earlier one.
    write(0, 2, 4, 9, (9, 11, 0, 2), version=0)
    write(0, 2, -1, 9, (9, 11, 0, 2))
    if t.latest("ApiVersions") >= SINCE_4_4:
        write(0, 2, 4, 9, (14, 15, 2, 1), delivery_complete_count=2)
        write(0, 2, 4, 9, (16, 16, 2, 1), delivery_complete_count=1)
        write(0, 2, 4, 4, (4, 8, 2, 1), (17, 17, 4, 1), delivery_complete_count=7)
        write(0, 2, 4, -1, (18, 18, 4, 1), delivery_complete_count=9)
        ask("ReadShareGroupStateSummary", 0, leader_epoch=4)
        ask("InitializeShareGroupState", 0, state_epoch=-1, start_offset=0)
        ask("ReadShareGroupState", 0, leader_epoch=-1)
    write(0, -1, 5, 10, (9, 12, 0, 1), (10, 10, 2, 2))
    ask("ReadShareGroupState", 0, leader_epoch=6)
    ask("ReadShareGroupStateSummary", 0, leader_epoch=6)
    write(1, 0, 0, 0, group=t.name("nobody"))
    write(7, 0, 0, 0)
    for state_epoch, start in ((1, 4), (2, 4), (11, -1)):
        ask("InitializeShareGroupState", 0, state_epoch=state_epoch, start_offset=start)
        ask("ReadShareGroupStateSummary", 0, leader_epoch=0)
    ask("ReadShareGroupState", 0, leader_epoch=1)
    ask("InitializeShareGroupState", 7, state_epoch=11, start_offset=-1)
    ask("InitializeShareGroupState", 0, state_epoch=11, start_offset=-1, topic=b"y" * 16)
    for index in (0, 0, 8, -1):
        ask("DeleteShareGroupState", index)
    ask("DeleteShareGroupState", 0, topic=b"y" * 16)
    for index in (0, 4):
        ask("ReadShareGroupStateSummary", index, leader_epoch=0)
    write(0, 0, 0, 0)
    for topics in ([], [{"topic_id": topic_id, "partitions": []}]):
        t.ask("ReadShareGroupState", 0, {"group_id": group, "topics": topics})
    note_states(t, group, topic_id, 2)
    configs = ["cleanup.policy", "retention.ms", "segment.bytes", "compression.type", "min.insync.replicas"]
    resource = {"resource_type": 2, "resource_name": "__share_group_state", "configuration_keys": configs}
    t.ask("DescribeConfigs", 4, {"resources": [resource]})


FETCHES_MAX = 200
"""The number of fetches, each of up to 100 ms, that a member sends to wait for a record."""

DEAD_MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
ACCEPT, RELEASE, REJECT = 1, 2, 3


class DeadGroup:
    """A share group with a dead letter topic, and its member, which reads a topic of two partitions."""

    def __init__(self, t: Talk, name: str, **settings: str) -> None:
        self.t = t
        self.group, self.topic = coordinated(t, f"{name}-g"), t.create_topic(f"{name}-t", 2)
        self.topic_id = t.topic_id(self.topic)
        self.configure(share_auto_offset_reset="earliest", share_delivery_count_limit="2", **settings)
        self.session = 0
        beat(t, self.group, DEAD_MEMBER, 0, [self.topic])
        wait_for_states(t, self.group, self.topic, 2)

    def configure(self, **settings: str) -> None:
        """Set group configurations."""
        alter(self.t, 32, self.group, **settings)

    def produce(self, records: bytes, partition: int = 1) -> None:
        data = {"index": partition, "records": records}
        tree = {
            "acks": -1,
            "timeout_ms": 10_000,
            "topic_data": [{"name": self.topic, "partition_data": [data]}],
        }
        answer = self.t.ask_quietly("Produce", 9, tree)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer

    def fetch(self, offset: int) -> None:
        """Fetch until the record at an offset of partition 1 is acquired."""
        for _ in range(FETCHES_MAX):
            topics = [{"topic_id": self.topic_id, "partitions": [{"partition_index": 1}]}]
            answer = self.t.ask_quietly("ShareFetch", 1, self._request(topics if not self.session else []))
            for topic in answer["responses"]:
                for each in topic["partitions"]:
                    if any(r["first_offset"] <= offset <= r["last_offset"] for r in each["acquired_records"]):
                        return
        raise AssertionError(f"offset {offset} did not come: {answer}")

    def _request(self, topics: list[Any]) -> dict[str, Any]:
        limits = {
            "max_wait_ms": 100,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
        }
        who = {"group_id": self.group, "member_id": DEAD_MEMBER, "share_session_epoch": self.session}
        self.session += 1
        return {**who, **limits, "topics": topics, "forgotten_topics_data": []}

    def acknowledge(self, first: int, last: int, *types: int) -> None:
        acked = {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
        partition = {"partition_index": 1, "acknowledgement_batches": [acked]}
        topics = [{"topic_id": self.topic_id, "partitions": [partition]}]
        who = {"group_id": self.group, "member_id": DEAD_MEMBER, "share_session_epoch": self.session}
        self.session += 1
        self.t.ask("ShareAcknowledge", 1, {**who, "topics": topics})

    def wait_for_lag(self, lag: int) -> None:
        """Wait until partition 1 has this lag, and record the lag.

        The start offset is not recorded, since Apache Kafka stores it only with the next change.
        """
        topic = {"topic_name": self.topic, "partitions": [1]}
        asked = {"groups": [{"group_id": self.group, "topics": [topic]}]}
        for _ in range(WAITS_MAX):
            answer = self.t.ask_quietly("DescribeShareGroupOffsets", 1, asked)
            found = answer["groups"][0]["topics"][0]["partitions"][0]["lag"]
            if found == lag:
                break
            time.sleep(0.02)
        self.t.note("left", {"lag": found})


def alter(t: Talk, kind: int, name: str, **settings: str) -> None:
    """Set configurations of a resource without recording the answer; an empty value deletes one."""
    configs = [
        {"name": key.replace("_", "."), "config_operation": 0 if value else 1, "value": value or None}
        for key, value in settings.items()
    ]
    entry = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = t.ask_quietly("IncrementalAlterConfigs", 1, {"resources": [entry], "validate_only": False})
    assert answer["responses"][0]["error_code"] == 0, answer
    time.sleep(0.3)  # Kafka's brokers have settings at second hand


def note_letters(t: Talk, topic: str, partition: int, count: int) -> None:
    """Wait until a partition has `count` dead letters, and record their keys, values and headers."""
    rows: list[Any] = []
    for _ in range(WAITS_MAX):
        asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 24}
        topics = [{"topic": topic, "partitions": [asked]}]
        tree = {"replica_id": -1, "max_wait_ms": 0, "max_bytes": 1 << 24, "topics": topics}
        data = t.fetched("Fetch", 11, tree)
        rows = [
            (row.key, row.value, [(name, bytes(value or b"")) for name, value in row.headers])
            for start, end, _ in split_batches(data)
            for row in decode_batch(data, start, end, topic, partition)
        ]
        if len(rows) >= count:
            break
        time.sleep(0.02)
    rows.sort(key=lambda row: int(dict(row[2])["__dlq.errors.offset"]))
    t.note("letters", {"records": rows})


@script
def share_dead_letters(t: Talk) -> None:
    """Reject records or deliver them too often.

    The dead letter topic is missing, created automatically, valid, or unsuitable.
    """
    if not t.offers("ShareFetch") or t.latest("ApiVersions") < SINCE_4_4:
        return
    name = f"dlq.{t.name('a')}"
    dead = {"errors_deadletterqueue_topic_name": name}
    group = DeadGroup(t, "one", **dead)
    group.produce(encode_batch([(b"k", b"v%d" % n, [("h", b"x")], 7) for n in range(3)], codec=0))
    group.fetch(0)
    group.acknowledge(0, 0, REJECT)  # there is no topic, and it is not made
    group.wait_for_lag(2)
    group.acknowledge(1, 2, REJECT)
    group.wait_for_lag(0)
    topic = {"name": name, "topic_id": bytes(16)}
    t.ask("Metadata", 12, {"topics": [topic], "allow_auto_topic_creation": False})

    alter(t, 4, "", errors_deadletterqueue_auto_create_topics_enable="true")
    group.produce(encode_batch([(b"k", b"v%d" % n, [("h", b"x")], 7) for n in range(3, 7)], codec=0))
    group.fetch(3)
    group.acknowledge(3, 6, ACCEPT, REJECT, 0, REJECT)
    group.wait_for_lag(0)
    note_letters(t, name, 0, 2)
    alter(t, 4, "", errors_deadletterqueue_auto_create_topics_enable="")
    configs = ["errors.deadletterqueue.group.enable", "message.timestamp.type", "cleanup.policy"]
    resource = {"resource_type": 2, "resource_name": name, "configuration_keys": configs}
    t.ask("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True})

    group.configure(errors_deadletterqueue_copy_record_enable="true")
    group.produce(encode_batch([(b"k", b"w7", [("h", b"x")], 7), (None, None, [], 7)], codec=0))
    for _ in range(2):
        group.fetch(7)
        group.acknowledge(7, 8, RELEASE)
    group.wait_for_lag(0)
    group.produce(encode_batch([(b"k", b"w%d" % n, [], 7) for n in (9, 10)], codec=1))
    group.fetch(9)
    group.acknowledge(9, 10, REJECT, REJECT)
    group.wait_for_lag(0)
    note_letters(t, name, 0, 6)

    alter(t, 2, name, errors_deadletterqueue_group_enable="false")
    group.produce(encode_batch([(b"k", b"v", [], 7)]))
    group.fetch(11)
    group.acknowledge(11, 11, REJECT)
    group.wait_for_lag(0)
    group.configure(errors_deadletterqueue_topic_name=group.topic)  # its name has another prefix
    alter(t, 2, group.topic, errors_deadletterqueue_group_enable="true")
    group.produce(encode_batch([(b"k", b"v", [], 7)]))
    group.fetch(12)
    group.acknowledge(12, 12, REJECT)
    group.wait_for_lag(0)
    note_letters(t, name, 0, 6)
