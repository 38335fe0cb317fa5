"""Request scripts about streams groups (KIP-1071), for comparing two brokers' answers and records."""

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
    """Record the stored records of a group, batch by batch; leave out a batch that repeats the last one."""
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
    version = more.pop("version", t.latest("StreamsGroupHeartbeat"))
    tree = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "endpoint_information_epoch": 0,
        "active_tasks": None if active is None else task_ids(active),
        "standby_tasks": None if active is None else [],
        "warmup_tasks": None if active is None else [],
    }
    return t.ask("StreamsGroupHeartbeat", version, {**tree, **more})


def describe(t: Talk, *groups: str) -> None:
    for version in t.versions("StreamsGroupDescribe"):
        for more in ({}, {"include_topology_description": True})[: 1 + version]:
            t.ask("StreamsGroupDescribe", version, {"group_ids": list(groups), **more})


def configure(t: Talk, group: str, **settings: str) -> None:
    """Set group configurations whose names begin with ``streams.``."""
    texts = [{"name": f"streams.{name.replace('_', '.')}", "value": text} for name, text in settings.items()]
    t.ask("AlterConfigs", 2, {"resources": [{"resource_type": 32, "resource_name": group, "configs": texts}]})
    t.settle()


def join(t: Talk, group: str, member: str, topology: Any, **more: Any) -> Any:
    fields = {"rebalance_timeout_ms": 30_000, "process_id": f"process-{member}", "topology": topology}
    return beat(t, group, member, 0, {}, **{**fields, **more})


def wait_for_topics(t: Talk, *names: str) -> None:
    """Wait until the internal topics exist, which the broker creates for a streams group."""
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
    """Send topologies that the group cannot run yet (missing topics), and topologies that are invalid."""
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
    """Send streams requests to groups of other types, and other types' requests to a streams group."""
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


def counts(t: Talk, topic: str) -> dict[str, Any]:
    """Return a topology of one subtopology with a state store, as a heartbeat has it."""
    return {
        "epoch": 0,
        "subtopologies": [subtopology("0", topic, state_changelog_topics=[internal(t.name("c"))])],
    }


@script
def streams_static_members(t: Talk) -> None:
    if not t.offers("StreamsGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t", 2)
    configure(t, group, initial_rebalance_delay_ms="0")
    endpoint = {"user_endpoint": {"host": "h", "port": 1}}
    who: dict[str, Any] = {"process_id": "p", "instance_id": "i", **endpoint}
    if join(t, group, "a", counts(t, topic), **who)["error_code"]:
        return  # no static members before 4.4
    wait_for_topics(t, t.name("c"))
    time.sleep(ASSIGNMENT_INTERVAL_S)
    joined = beat(t, group, "a", 2, instance_id="i")
    everything, epoch = {"0": [0, 1]}, joined["member_epoch"]
    beat(t, group, "a", epoch, everything, instance_id="i")
    for instance, number in (*(("j", number) for number in (epoch, -1, -2)), ("", epoch), ("i", epoch + 1)):
        beat(t, group, "a", number, instance_id=instance)
    beat(t, group, "a", -2, instance_id="i")
    describe(t, group)
    beat(t, group, "a", epoch, everything, instance_id="i")
    # What comes back with a new id has the tasks; what comes back changed has them until the next assignment.
    join(t, group, "c", counts(t, topic), **who)
    describe(t, group)
    beat(t, group, "c", epoch, everything, instance_id="i")
    beat(t, group, "c", -2, instance_id="i")
    join(t, group, "c", counts(t, topic), **who)
    beat(t, group, "c", -2, instance_id="i")
    time.sleep(ASSIGNMENT_INTERVAL_S)
    join(t, group, "d", counts(t, topic), **{**who, "process_id": "q"})
    beat(t, group, "d", epoch + 1, everything, instance_id="i", client_tags=[{"key": "zone", "value": "z"}])
    beat(t, group, "d", epoch + 1, everything, user_endpoint={"host": "h", "port": 2})
    time.sleep(ASSIGNMENT_INTERVAL_S)
    describe(t, group)
    join(t, group, "d", counts(t, topic), process_id="q")
    # Apache Kafka gives a member's tasks up for one rebalance where another one uses its instance id.
    join(t, group, "b", counts(t, topic), **who)
    for number in (epoch, -1, -2):
        beat(t, group, "b", number, instance_id="i")
    beat(t, group, "d", -1, instance_id="i")
    describe(t, group)
    note_group(t, group)


@script
def streams_offsets_and_tags(t: Talk) -> None:
    if not t.offers("StreamsGroupHeartbeat") or not t.latest("StreamsGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t", 2)
    settings = {"initial_rebalance_delay_ms": "0", "task_offset_interval_ms": "20000"}
    configure(t, group, **settings)
    epoch = join(t, group, "a", counts(t, topic))["member_epoch"]
    wait_for_topics(t, t.name("c"))
    time.sleep(ASSIGNMENT_INTERVAL_S)
    offsets = [
        {"subtopology_id": name, "partition": index, "offset": 7} for name, index in (("1", 1), ("0", 3))
    ]
    beat(t, group, "a", epoch, task_offsets=offsets)
    describe(t, group)
    beat(t, group, "a", epoch + 1, task_end_offsets=offsets[1:])
    for fields in ("task_offsets", "task_end_offsets"):
        beat(t, group, "a", epoch + 1, **{fields: [*offsets, *offsets]})
    describe(t, group)
    beat(t, group, "a", epoch + 1, task_offsets=[])
    describe(t, group)
    beat(t, group, "a", -1)
    describe(t, group)
    tagged = coordinated(t, "tagged")
    configure(t, tagged, **settings, rack_aware_assignment_tags="zone, rack", assignor_name="sticky")
    tags = [{"key": name, "value": "x"} for name in ("zone", "rack", "room")]
    for version in t.versions("StreamsGroupHeartbeat"):
        join(t, tagged, "a", counts(t, topic), client_tags=tags[2:], version=version)
        join(t, tagged, "a", counts(t, topic), client_tags=tags[1:], version=version)
        join(t, tagged, "a", counts(t, topic), client_tags=tags, version=version)
    describe(t, tagged)
    note_group(t, tagged)


@script
def streams_changes_of_roles(t: Talk) -> None:
    """Move tasks between active and standby, where a member keeps the state from the former role."""
    if not t.offers("StreamsGroupHeartbeat") or not t.latest("StreamsGroupHeartbeat"):
        return
    group, topic = coordinated(t, "g"), t.create_topic("t", 2)
    configure(t, group, initial_rebalance_delay_ms="0", num_standby_replicas="1")
    join(t, group, "a", counts(t, topic))
    wait_for_topics(t, t.name("c"))
    time.sleep(ASSIGNMENT_INTERVAL_S)
    epoch = beat(t, group, "a", 2)["member_epoch"]
    beat(t, group, "a", epoch, {"0": [0, 1]})
    join(t, group, "b", counts(t, topic))
    time.sleep(ASSIGNMENT_INTERVAL_S)
    beat(t, group, "b", epoch + 1, {})
    beat(t, group, "a", epoch, {"0": [0, 1]})
    describe(t, group)
    beat(t, group, "a", epoch, {"0": [0]}, standby_tasks=task_ids({"0": [1]}))
    beat(t, group, "b", epoch + 1, {}, standby_tasks=task_ids({"0": [0]}))
    describe(t, group)
    # b has 1 and 0 in standby. Where a goes, b gets 0 as well, at once.
    beat(t, group, "a", -1)
    time.sleep(ASSIGNMENT_INTERVAL_S)
    beat(t, group, "b", epoch + 1, {"0": [1]}, standby_tasks=task_ids({"0": [0]}))
    describe(t, group)
    beat(t, group, "b", -1)
    note_group(t, group)
