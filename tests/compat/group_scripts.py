"""Scripts of requests about consumer groups, for comparing brokers."""

from __future__ import annotations

import struct
from typing import Any

from compat.scripts import UNKNOWN_ID, ZERO, script
from compat.transcript import Talk

SUBSCRIPTION = struct.pack(">hih1si", 0, 1, 1, b"t", -1)
ASSIGNMENT = struct.pack(">hii", 0, 0, -1)
"""Kafka reads what a consumer subscribes to, and does not answer where it cannot."""

GROUP_ERRORS_WHILE_STARTING = (14, 15, 16)


def coordinated(t: Talk, name: str) -> str:
    """A group name whose coordinator is ready."""
    group = t.name(name)
    for _ in range(200):
        asked = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}
        t.ask_quietly("FindCoordinator", 1, {"key": group, "key_type": 0})
        if t.ask_quietly("OffsetFetch", 5, asked)["error_code"] not in GROUP_ERRORS_WHILE_STARTING:
            break
        t.settle()
    return group


def join(t: Talk, version: int, group: str, member: str = "", **more: Any) -> Any:
    protocols = [{"name": name, "metadata": SUBSCRIPTION} for name in ("range", "other")]
    tree = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 2000,
        "member_id": member,
    }
    answer = t.ask(
        "JoinGroup", version, {**tree, "protocol_type": "consumer", "protocols": protocols, **more}
    )
    if isinstance(answer, dict) and answer["error_code"] == 79:
        return join(t, version, group, answer["member_id"], **more)
    return answer


def sync(t: Talk, version: int, group: str, member: str, generation: int, **more: Any) -> None:
    parts = [{"member_id": member, "assignment": ASSIGNMENT}]
    tree = {"group_id": group, "generation_id": generation, "member_id": member, "assignments": parts}
    named = {"protocol_type": "consumer", "protocol_name": "range"}
    t.ask("SyncGroup", version, {**tree, **named, **more})


@script
def coordinators(t: Talk) -> None:
    coordinated(t, "warm")
    for version in t.versions("FindCoordinator"):
        for key in (t.name("g"), "", "x" * 300):
            for kind in (0, 9, -1):
                tree = {"key": key, "key_type": kind, "coordinator_keys": [key, t.name("h")]}
                t.ask("FindCoordinator", version, tree)
        t.ask("FindCoordinator", version, {"key": "g", "key_type": 0, "coordinator_keys": []})


@script
def group_life(t: Talk) -> None:
    for version in t.versions("JoinGroup"):
        group = coordinated(t, f"life{version}")
        latest = {api: t.latest(api) for api in ("SyncGroup", "Heartbeat", "LeaveGroup", "DescribeGroups")}
        joined = join(t, version, group)
        member, generation = joined["member_id"], joined["generation_id"]
        sync_version = min(version, latest["SyncGroup"])
        beat_version = min(version, latest["Heartbeat"])
        beat = {"group_id": group, "generation_id": generation, "member_id": member}
        t.ask("Heartbeat", beat_version, beat)
        sync(t, sync_version, group, member, generation + 1)
        sync(t, sync_version, group, "nobody", generation)
        sync(t, sync_version, group, member, generation, protocol_name="other")
        sync(t, sync_version, group, member, generation)
        sync(t, sync_version, group, member, generation)
        for change in (
            {},
            {"generation_id": 99},
            {"generation_id": -1},
            {"member_id": "x"},
            {"group_id": ""},
        ):
            t.ask("Heartbeat", beat_version, {**beat, **change})
        t.ask("DescribeGroups", latest["DescribeGroups"], {"groups": [group]})
        rejoined = join(t, version, group, member)
        sync(t, sync_version, group, member, rejoined["generation_id"])
        wrong = [{"name": "alien", "metadata": b""}]
        join(t, version, group, protocol_type="connect")
        join(t, version, group, protocols=wrong)
        join(t, version, group, "nobody")
        for change in (
            {"session_timeout_ms": 1},
            {"session_timeout_ms": 1 << 30},
            {"protocols": []},
            {"protocol_type": ""},
        ):
            join(t, version, t.name(f"other{version}"), **change)
        join(t, version, "")
        leave_version = min(version, latest["LeaveGroup"])
        for who in ("nobody", member, member):
            members = [{"member_id": who, "group_instance_id": None, "reason": None}]
            t.ask("LeaveGroup", leave_version, {"group_id": group, "member_id": who, "members": members})
        t.ask("DescribeGroups", latest["DescribeGroups"], {"groups": [group, t.name("missing"), ""]})


@script
def static_members(t: Talk) -> None:
    for version in (version for version in t.versions("JoinGroup") if version >= 5):
        group = coordinated(t, f"static{version}")
        joined = join(t, version, group, group_instance_id="one")
        member, generation = joined["member_id"], joined["generation_id"]
        sync(t, min(version, 5), group, member, generation, group_instance_id="one")
        again = join(t, version, group, group_instance_id="one")
        beat = {
            "group_id": group,
            "generation_id": generation,
            "member_id": member,
            "group_instance_id": "one",
        }
        t.ask("Heartbeat", 4, beat)
        t.ask(
            "Heartbeat", 4, {**beat, "member_id": again["member_id"], "generation_id": again["generation_id"]}
        )
        t.ask("Heartbeat", 4, {**beat, "group_instance_id": "two"})
        join(t, version, group, member, group_instance_id="one")
        members = [
            {"member_id": "", "group_instance_id": "one"},
            {"member_id": "", "group_instance_id": "two"},
        ]
        t.ask("LeaveGroup", t.latest("LeaveGroup"), {"group_id": group, "members": members})
        t.ask("DescribeGroups", t.latest("DescribeGroups"), {"groups": [group]})


@script
def committed_offsets(t: Talk) -> None:
    name = t.create_topic("committed", 2)
    for version in t.versions("OffsetCommit"):
        group = coordinated(t, f"commits{version}")
        topic_id = t.topic_id(name) if version >= 10 else ZERO

        def commit(
            offset: int,
            metadata: str | None = "m",
            *,
            v: int = version,
            group: str = group,
            topic_id: bytes = topic_id,
            **more: Any,
        ) -> None:
            place = {"partition_index": more.pop("index", 0), "committed_offset": offset}
            place |= {"committed_metadata": metadata, "committed_leader_epoch": more.pop("epoch", -1)}
            topic = {
                "name": more.pop("topic", name),
                "topic_id": more.pop("id", topic_id),
                "partitions": [place],
            }
            tree = {
                "group_id": group,
                "generation_id_or_member_epoch": -1,
                "member_id": "",
                "topics": [topic],
            }
            t.ask("OffsetCommit", v, {**tree, **more})

        commit(5)
        commit(7, None)
        commit(-1)
        commit(8, "x" * 5000)
        commit(9, index=7)
        commit(9, topic=t.name("missing"), id=UNKNOWN_ID if version >= 10 else ZERO)
        commit(9, generation_id_or_member_epoch=3, member_id="nobody")
        commit(9, generation_id_or_member_epoch=3, member_id="")
        commit(9, group_id="")
        commit(11, epoch=0)
        commit(0, topics=[])
        for fetch_version in t.versions("OffsetFetch"):
            for topics in ([(name, [0, 1, 7]), (t.name("missing"), [0])], [], None):
                if (topics is None and fetch_version < 2) or (fetch_version >= 10 and topics):
                    continue
                listed = topics and [{"name": n, "topic_id": ZERO, "partition_indexes": p} for n, p in topics]
                asked = {"group_id": group, "topics": listed, "member_id": None, "member_epoch": -1}
                groups = [asked, {**asked, "group_id": t.name("missing")}]
                t.ask("OffsetFetch", fetch_version, {**asked, "groups": groups})
        for topics in ([{"name": name, "partitions": [{"partition_index": n} for n in (0, 7)]}], []):
            t.ask("OffsetDelete", 0, {"group_id": group, "topics": topics})
            t.ask("OffsetDelete", 0, {"group_id": t.name("missing"), "topics": topics})
        t.each("DeleteGroups", {"groups_names": [group, t.name("missing"), ""]})
    for version in t.versions("ListGroups"):
        tree = {"states_filter": ["Nonsense"], "types_filter": []}
        t.ask("ListGroups", version, tree if version >= 4 else {})
