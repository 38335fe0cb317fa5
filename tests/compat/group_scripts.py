"""Request scripts about consumer groups. Tests run each against two brokers and compare the answers."""

from __future__ import annotations

import struct
from typing import Any

from compat.scripts import UNKNOWN_ID, ZERO, script
from compat.transcript import WAITS_MAX, Talk

SUBSCRIPTION = struct.pack(">hih1si", 0, 1, 1, b"t", -1)
ASSIGNMENT = struct.pack(">hii", 0, 0, -1)
"""A valid empty assignment.

Apache Kafka does not answer a SyncGroup whose assignment it cannot parse.
"""

MEMBER_ID_REQUIRED = 79
GROUP_ERRORS_WHILE_STARTING = (14, 15, 16)


def coordinated(t: Talk, name: str) -> str:
    """Wait until the coordinator of a group is ready; return the group's full name."""
    group = t.name(name)
    for _ in range(WAITS_MAX):
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
    if isinstance(answer, dict) and answer["error_code"] == MEMBER_ID_REQUIRED:
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


# --- several members ----------------------------------------------------------------------------------------


def said(number: int) -> bytes:
    """Return the subscription metadata of member `number`, which is different for each member."""
    return struct.pack(">hih2si", 0, 1, 2, b"t%d" % number, -1)


class Crowd:
    """Members of one group, each with its own connection, so that several requests can be pending at once."""

    def __init__(self, t: Talk, group: str, version: int, rebalance_ms: int = 20_000) -> None:
        self.t, self.group, self.version = t, group, version
        self.first_connection = 10 + 10 * len(t.sockets)
        self.timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": rebalance_ms}
        self.ids: dict[int, str] = {}
        self.generation = -1
        self.waiting: list[int] = []

    def fitted(self, api: str, lag: int = 0) -> int:
        return min(max(0, self.version - lag), self.t.latest(api))

    def join(self, who: int, names: tuple[str, ...] = ("range", "other"), change: int = 0) -> None:
        """Send a JoinGroup request; `hear` receives its response."""
        on, member = self.first_connection + who, self.ids.get(who, "")
        tree = {
            "group_id": self.group,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": said(who + change)} for name in names],
            **self.timeouts,
        }
        if not member and self.version >= 4:
            answer = self.t.ask("JoinGroup", self.version, tree, on=on)
            tree["member_id"] = self.ids[who] = answer["member_id"]
            if answer["error_code"] != MEMBER_ID_REQUIRED:
                return
        self.t.send("JoinGroup", self.version, tree, on=on)
        self.waiting.append(who)

    def sync(self, who: int, *given: int) -> None:
        """Send a SyncGroup request, with assignments for the members in `given` if any."""
        parts = [{"member_id": self.ids.get(one, "?"), "assignment": ASSIGNMENT} for one in given]
        tree = {"group_id": self.group, "generation_id": self.generation, "member_id": self.ids.get(who, "?")}
        named = {"protocol_type": "consumer", "protocol_name": None, "assignments": parts}
        self.t.send(
            "SyncGroup", self.fitted("SyncGroup", 2), {**tree, **named}, on=self.first_connection + who
        )
        self.waiting.append(who)

    def hear(self, patience_s: float = 0.5) -> None:
        """Receive the responses that arrive, and record which members still wait for theirs."""
        self.waiting.sort()
        for who in list(self.waiting):
            on = self.first_connection + who
            if not self.t.has_answer(on, patience_s):
                self.t.note("waits", who)
                continue
            self.waiting.remove(who)
            answer = self.t.receive(on=on)
            if isinstance(answer, dict) and not answer["error_code"] and "generation_id" in answer:
                self.ids[who], self.generation = answer["member_id"], answer["generation_id"]

    def beat(self, who: int) -> None:
        tree = {"group_id": self.group, "generation_id": self.generation, "member_id": self.ids.get(who, "?")}
        self.t.ask("Heartbeat", self.fitted("Heartbeat", 2), tree)

    def commit(self, topic: str, generation: int, member: str) -> None:
        place = {"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}
        tree = {
            "group_id": self.group,
            "member_id": member,
            "topics": [{"name": topic, "partitions": [place]}],
        }
        self.t.ask("OffsetCommit", 7, {**tree, "generation_id_or_member_epoch": generation})

    def leave(self, *whom: int) -> None:
        members = [{"member_id": self.ids.get(one, "nobody")} for one in whom]
        tree = {"group_id": self.group, "member_id": members[0]["member_id"], "members": members}
        self.t.ask("LeaveGroup", self.fitted("LeaveGroup", 3), tree)

    def look(self) -> None:
        self.t.ask("DescribeGroups", self.fitted("DescribeGroups", 2), {"groups": [self.group]})

    def settle(self, *members: int) -> None:
        """Complete a rebalance with these members, the first of which is the leader."""
        for who in members:
            self.join(who)
        self.hear()
        for who in members[1:]:
            self.sync(who)
        self.sync(members[0], *members)
        self.hear()


@script
def two_members(t: Talk) -> None:
    topic = t.create_topic("shared")
    for version in t.versions("JoinGroup"):
        crowd = Crowd(t, coordinated(t, f"two{version}"), version)
        crowd.settle(1)
        crowd.join(2)
        crowd.hear()
        crowd.look()
        crowd.beat(1)
        crowd.commit(topic, crowd.generation, crowd.ids[1])
        crowd.commit(topic, -1, "")
        crowd.join(1)
        crowd.hear()
        crowd.look()
        crowd.beat(1)
        crowd.commit(topic, crowd.generation, crowd.ids[1])
        crowd.sync(2)
        crowd.hear()
        crowd.sync(1, 1, 2)
        crowd.hear()
        crowd.look()
        for generation in (crowd.generation, crowd.generation - 1, -1):
            crowd.commit(topic, generation, crowd.ids[2])
        places = [{"name": t.name("t1"), "partitions": [{"partition_index": 0}]}]
        t.ask("OffsetDelete", 0, {"group_id": crowd.group, "topics": places})
        t.ask("DeleteGroups", t.latest("DeleteGroups"), {"groups_names": [crowd.group]})
        crowd.join(2)  # nothing new: the same answer again
        crowd.hear()
        crowd.join(2, change=5)  # something new
        crowd.hear()
        crowd.beat(1)
        crowd.leave(1)
        crowd.hear()
        crowd.sync(2, 2)
        crowd.hear()
        crowd.leave(2, 1)
        crowd.look()


@script
def changing_assignors(t: Talk) -> None:
    """Run a rolling upgrade of the assignor, and members that have no assignor in common."""
    old, both, new = ("old",), ("new", "old"), ("new",)
    for version in t.some_versions("JoinGroup"):
        crowd = Crowd(t, coordinated(t, f"upgrade{version}"), version)
        crowd.settle(1)
        for first, second in ((old, old), (both, old), (both, both), (new, both), (new, new)):
            crowd.join(1, first)
            crowd.hear()
            crowd.join(2, second)
            crowd.hear()
            crowd.join(1, first)
            crowd.hear()
            crowd.look()
            crowd.sync(2)
            crowd.sync(1, 1, 2)
            crowd.hear()
            crowd.look()
        crowd.join(3, old)
        crowd.hear()


@script
def missing_members(t: Talk) -> None:
    """Let members miss a rebalance, so that the coordinator removes them.

    In JoinGroup version 0 the coordinator waits for the session timeout instead of the rebalance timeout.
    """
    for version in t.some_versions("JoinGroup"):
        crowd = Crowd(t, coordinated(t, f"missing{version}"), version, rebalance_ms=1_000)
        crowd.timeouts["session_timeout_ms"] = 6_000
        crowd.settle(1)
        crowd.join(2)
        crowd.hear(0.2)
        crowd.hear(9)
        crowd.beat(1)
        crowd.beat(2)
        crowd.look()
        # The one that leads does not assign: it goes as well.
        crowd.join(3)
        crowd.hear(0.2)
        crowd.join(2)
        crowd.hear()
        crowd.sync(3)
        crowd.hear(9)
        crowd.look()


@script
def a_crowd_at_random(t: Talk) -> None:
    """Let two members send group requests in random order."""
    topic = t.create_topic("shared")
    for round_number in range(3):
        crowd = Crowd(
            t, coordinated(t, f"crowd{round_number}"), t.random.choice(list(t.versions("JoinGroup")))
        )
        for _ in range(30):
            free = [who for who in (1, 2) if who not in crowd.waiting]
            if not free:
                break
            who, roll = t.random.choice(free), t.random.random()
            if roll < 0.3:
                crowd.join(who, change=t.random.choice((0, 0, 5)))
            elif roll < 0.6 and who in crowd.ids:
                crowd.sync(who, *crowd.ids)
            elif roll < 0.7:
                crowd.beat(who)
            elif roll < 0.8:
                crowd.commit(topic, crowd.generation, crowd.ids.get(who, ""))
            elif roll < 0.87:
                crowd.leave(who)
                if t.random.random() < 0.5:
                    crowd.ids.pop(who, None)
            else:
                crowd.look()
            crowd.hear(0.3)
        for number in (1, 2):
            crowd.leave(number)
        crowd.hear(0.3)
