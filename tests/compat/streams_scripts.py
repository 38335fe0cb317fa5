"""Scripts of requests about streams groups (KIP-1071), for comparing brokers: answers, and records."""

from __future__ import annotations

import time
from typing import Any

from compat.group_scripts import coordinated
from compat.scripts import script
from compat.share_scripts import ASSIGNMENT_INTERVAL_S, OFFSETS_PARTITIONS, stored
from compat.transcript import WAITS_MAX, Talk
from penstock.common.java_hash import partition_of

RECORDS = {
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}

Tasks = dict[str, list[int]]


def note_group(t: Talk, group: str) -> None:
    """Note the records of a group, by batch; one that says the same again is left out."""
    index = partition_of(group, OFFSETS_PARTITIONS)
    before: list[tuple[str, Any, Any]] = []
    for rows in stored(t, "__consumer_offsets", index, RECORDS, group):
        if rows != before:
            t.note("batch", {"records": rows})
        before = rows


def task_ids(tasks: Tasks) -> list[dict[str, Any]]:
    return [{"subtopology_id": each, "partitions": indexes} for each, indexes in tasks.items()]


def subtopology(name: str, *sources: str, **more: Any) -> dict[str, Any]:
    return {
        "subtopology_id": name,
        "source_topics": list(sources),
        "source_topic_regex": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "state_changelog_topics": [],
        "copartition_groups": [],
        **more,
    }


def internal(name: str, partitions: int = 0, **configs: str) -> dict[str, Any]:
    texts = [{"key": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": texts}


def word_count(t: Talk, topic: str, epoch: int = 0) -> dict[str, Any]:
    words, counts = t.name("words"), t.name("counts")
    return {
        "epoch": epoch,
        "subtopologies": [
            subtopology("0", topic, repartition_sink_topics=[words]),
            subtopology(
                "1",
                repartition_source_topics=[internal(words)],
                state_changelog_topics=[internal(counts, cleanup_policy="compact")],
            ),
        ],
    }


def beat(t: Talk, group: str, member: str, epoch: int, active: Tasks | None = None, **more: Any) -> Any:
    tree = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "endpoint_information_epoch": 0,
        "active_tasks": None if active is None else task_ids(active),
        "standby_tasks": None if active is None else [],
        "warmup_tasks": None if active is None else [],
    }
    return t.ask("StreamsGroupHeartbeat", 0, {**tree, **more})


def join(t: Talk, group: str, member: str, topology: Any, **more: Any) -> Any:
    fields = {"rebalance_timeout_ms": 30_000, "process_id": f"process-{member}", "topology": topology}
    return beat(t, group, member, 0, {}, **{**fields, **more})


def wait_for_topics(t: Talk, *names: str) -> None:
    """Wait until topics are there, which the broker makes."""
    for _ in range(WAITS_MAX):
        asked = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
        answer = t.ask_quietly("Metadata", 9, asked)
        if not any(each["error_code"] for each in answer["topics"]):
            return
        time.sleep(0.02)
    raise AssertionError(f"some of {names} are missing: {answer}")


@script
def streams_members(t: Talk) -> None:
    if not t.offers("StreamsGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t", 2)
    delay = [{"name": "streams.initial.rebalance.delay.ms", "value": "0"}]
    t.ask("AlterConfigs", 2, {"resources": [{"resource_type": 32, "resource_name": group, "configs": delay}]})
    describe = {"group_ids": [group, t.name("missing"), ""], "include_authorized_operations": True}
    join(t, group, "a", word_count(t, topic))
    wait_for_topics(t, t.name("words"), t.name("counts"))
    time.sleep(ASSIGNMENT_INTERVAL_S)
    joined = beat(t, group, "a", 2)
    everything = {"0": [0, 1], "1": [0, 1]}
    epoch = joined["member_epoch"]
    beat(t, group, "a", epoch, everything)
    t.ask("StreamsGroupDescribe", 0, describe)
    for wrong in (1, epoch + 1, -3, -2):
        beat(t, group, "a", wrong)
    for fields in (
        {"instance_id": "i"},
        {"task_offsets": []},
        {"task_end_offsets": []},
        {"standby_tasks": None},
        {"topology": word_count(t, topic)},
        {"member_id": ""},
        {"rack_id": ""},
        {"group_id": ""},
    ):
        beat(t, group, "a", epoch, everything, **fields)
    for tasks in ({"7": [0]}, {"0": [2]}):
        beat(t, group, "a", epoch, tasks)
    beat(t, group, "nobody", 3)
    beat(t, t.name("missing"), "a", 3)
    beat(t, t.name("missing"), "a", -1)
    commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    offsets = {"topics": [{"name": topic, "partitions": [commit]}]}
    for version, member, number in (
        (9, "a", epoch),
        (9, "a", epoch + 1),
        (8, "a", epoch),
        (9, "x", 2),
        (9, "", -1),
    ):
        who = {"group_id": group, "generation_id_or_member_epoch": number, "member_id": member}
        t.ask("OffsetCommit", version, {**who, **offsets})
    asked = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    for member_id, number in ((None, -1), ("a", epoch), ("a", epoch + 1), ("x", 1)):
        t.ask("OffsetFetch", 9, {"groups": [{**asked, "member_id": member_id, "member_epoch": number}]})
    deleted = {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    t.ask("OffsetDelete", 0, deleted)
    time.sleep(ASSIGNMENT_INTERVAL_S)
    second = join(
        t, group, "b", word_count(t, topic), rack_id="r", client_tags=[{"key": "zone", "value": "z"}]
    )
    # Which of equal members gets what is for each broker to decide: only how much is compared from here on.
    assert second["member_epoch"] == epoch + 1, second
    t.ask("ListGroups", 5, {"states_filter": ["reconciling"], "types_filter": ["Streams"]})
    for version in (5, 6):
        t.ask("DescribeGroups", version, {"groups": [group]})
    t.ask("DeleteGroups", 2, {"groups_names": [group]})
    beat(t, group, "b", -1)
    beat(t, group, "b", -1)
    beat(t, group, "a", -1, shutdown_application=True)
    note_group(t, group)
    t.ask("OffsetDelete", 0, deleted)
    t.ask("DeleteGroups", 2, {"groups_names": [group, t.name("missing")]})
    t.ask("StreamsGroupDescribe", 0, {"group_ids": [group]})


@script
def streams_topologies(t: Talk) -> None:
    """What has to wait, and what is refused."""
    if not t.offers("StreamsGroupHeartbeat"):
        return
    group, two, three = coordinated(t, "g"), t.create_topic("two", 2), t.create_topic("three", 3)
    later, describe = t.name("later"), {"group_ids": [group]}
    join(t, group, "a", {"epoch": 1, "subtopologies": [subtopology("0", later)]})
    t.ask("StreamsGroupDescribe", 0, describe)
    for epoch in (0, 1, 2):
        join(t, group, "b", {"epoch": epoch, "subtopologies": [subtopology("0", three)]})
    t.ask("StreamsGroupDescribe", 0, describe)
    together = [{"source_topics": [0, 1], "source_topic_regex": [], "repartition_source_topics": []}]
    topologies = (
        [subtopology("0", two, three, copartition_groups=together)],
        [subtopology("0", two, state_changelog_topics=[internal(t.name("c"), 3)])],
        [subtopology("0", two, state_changelog_topics=[internal(three)])],
        [subtopology("0", "__consumer_offsets")],
        [subtopology("0", "no topic")],
        [subtopology("0", two, source_topic_regex=["a.*"])],
        [subtopology("0", repartition_source_topics=[internal(t.name("r"))])],
        [subtopology("0")],
    )
    for number, subtopologies in enumerate(topologies):
        name = coordinated(t, f"g{number}")
        join(t, name, "a", {"epoch": 0, "subtopologies": subtopologies})
        t.ask("StreamsGroupDescribe", 0, {"group_ids": [name]})
    name = coordinated(t, "wrong")
    join(t, name, "a", None)
    join(t, name, "a", word_count(t, two), rebalance_timeout_ms=-1)
    join(t, name, "a", word_count(t, two), active_tasks=task_ids({"0": [0]}))


@script
def streams_groups_among_others(t: Talk) -> None:
    """A group has one type: what other types' requests get, and what streams groups' get of the others."""
    if not t.offers("StreamsGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t")
    plain = {"epoch": 0, "subtopologies": [subtopology("0", topic)]}
    join(t, group, "a", plain)
    protocols = [{"name": "range", "metadata": b""}]
    joining = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    consumer = {"member_epoch": 0, "rebalance_timeout_ms": 1000, "topic_partitions": []}
    member = {"group_id": group, "member_id": "c", "subscribed_topic_names": [topic]}
    t.ask("JoinGroup", 9, {"group_id": group, "member_id": "", "protocols": protocols, **joining})
    t.ask("ConsumerGroupHeartbeat", 1, {**member, **consumer})
    t.ask("ShareGroupHeartbeat", 1, {**member, "member_epoch": 0})
    t.ask("Heartbeat", 4, {"group_id": group, "member_id": "a", "generation_id": 2})
    t.ask("LeaveGroup", 5, {"group_id": group, "members": [{"member_id": "a"}]})
    for api in ("ConsumerGroupDescribe", "ShareGroupDescribe"):
        t.ask(api, 1, {"group_ids": [group]})
    other, simple = coordinated(t, "other"), coordinated(t, "simple")
    t.ask("ConsumerGroupHeartbeat", 1, {**member, **consumer, "group_id": other})
    commit = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    who = {"group_id": simple, "generation_id_or_member_epoch": -1, "member_id": ""}
    t.ask("OffsetCommit", 9, {**who, "topics": [{"name": topic, "partitions": [commit]}]})
    for name in (other, simple):
        join(t, name, "s", plain)
        t.ask("StreamsGroupDescribe", 0, {"group_ids": [name]})
    t.ask("ConsumerGroupHeartbeat", 1, {"group_id": other, "member_id": "c", "member_epoch": -1})
    join(t, other, "s", plain)
