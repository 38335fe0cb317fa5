"""Request scripts about groups with both classic and KIP-848 members, for comparing two brokers."""

from __future__ import annotations

import struct
from typing import Any

from compat.group_scripts import coordinated
from compat.scripts import script
from compat.transcript import WAITS_MAX, Talk

MEMBER_ID_REQUIRED = 79
UNSUPPORTED_VERSION = 35


def subscription(topic: str, *owned: int) -> bytes:
    """Return a classic consumer's subscription (version 1) to one topic, with the partitions that it owns."""
    name = topic.encode()
    head = struct.pack(f">hih{len(name)}si", 1, 1, len(name), name, -1)
    if not owned:
        return head + struct.pack(">i", 0)
    return head + struct.pack(f">ih{len(name)}si{len(owned)}i", 1, len(name), name, len(owned), *owned)


def assignment(topic: str, *partitions: int, user_data: bytes | None = None) -> bytes:
    """Return the bytes of a classic consumer's assignment, version 1."""
    name = topic.encode()
    count = len(partitions)
    data = struct.pack(f">hih{len(name)}si{count}i", 1, 1, len(name), name, count, *partitions)
    return data + (
        struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    )


class Mixed:
    """A group, with a topic of four partitions, that gets requests from members of both protocols."""

    def __init__(self, t: Talk, name: str) -> None:
        self.t = t
        self.topic = t.create_topic(name, 4)
        self.topic_id = t.topic_id(self.topic)
        self.group = coordinated(t, name)

    def join(self, member: str = "", *owned: int, version: int = 5, **more: Any) -> Any:
        """Send a JoinGroup request; if the response only assigns a member id, join again with it."""
        tree = {
            "group_id": self.group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 20_000,
            "member_id": member,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscription(self.topic, *owned)}],
            **more,
        }
        answer = self.t.ask("JoinGroup", version, tree)
        if isinstance(answer, dict) and answer["error_code"] == MEMBER_ID_REQUIRED:
            return self.join(answer["member_id"], *owned, version=version, **more)
        return answer

    def sync(self, member: str, generation: int, *given: int, **more: Any) -> None:
        parts = [{"member_id": member, "assignment": assignment(self.topic, *given)}] if given else []
        tree = {
            "group_id": self.group,
            "generation_id": generation,
            "member_id": member,
            "assignments": parts,
        }
        self.t.ask("SyncGroup", 5, {**tree, "protocol_type": "consumer", "protocol_name": "range", **more})

    def beat(self, member: str, generation: int, **more: Any) -> None:
        tree = {"group_id": self.group, "generation_id": generation, "member_id": member, **more}
        self.t.ask("Heartbeat", 4, tree)

    def leave(self, *members: tuple[str, str | None]) -> None:
        identities = [{"member_id": one, "group_instance_id": instance} for one, instance in members]
        self.t.ask("LeaveGroup", 5, {"group_id": self.group, "members": identities})

    def consumer(self, member: str, epoch: int, owned: tuple[int, ...] | None = None, **more: Any) -> Any:
        """Send a ConsumerGroupHeartbeat; with epoch 0 it includes all fields that joining requires."""
        tree = {"group_id": self.group, "member_id": member, "member_epoch": epoch, **more}
        if epoch == 0:
            new = {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": [self.topic]}
            # The order in which the other assignor, "uniform", deals is nobody's business.
            tree = {**tree, **new, "server_assignor": "range", "topic_partitions": [], **more}
        elif owned is not None:
            places = [{"topic_id": self.topic_id, "partitions": list(owned)}] if owned else []
            tree["topic_partitions"] = places
        return self.t.ask("ConsumerGroupHeartbeat", 1, tree)

    def commit(self, member: str, generation: int, version: int = 9, partition: int = 0, **more: Any) -> None:
        place = {"partition_index": partition, "committed_offset": 3, "committed_metadata": ""}
        tree = {
            "group_id": self.group,
            "generation_id_or_member_epoch": generation,
            "member_id": member,
            "topics": [{"name": self.topic, "partitions": [place]}],
            **more,
        }
        self.t.ask("OffsetCommit", version, tree)

    def look(self) -> None:
        """Describe the group, as an administrator would, with the requests of both protocols."""
        self.t.ask("ConsumerGroupDescribe", 1, {"group_ids": [self.group]})
        for version in (5, 6):
            self.t.ask("DescribeGroups", version, {"groups": [self.group]})

    def classic_member(self) -> str:
        """Add the only member of a classic group, and assign it all four partitions; return its member id."""
        joined = self.join()
        member = str(joined["member_id"]) if isinstance(joined, dict) else ""
        self.sync(member, 1, 0, 1, 2, 3)
        return member


@script
def a_live_group_changes_its_protocol(t: Talk) -> None:
    """Let a KIP-848 consumer join a classic group, share its partitions, and leave.

    After the consumer left, the group is classic again.
    """
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    mixed = Mixed(t, "turning")
    member = mixed.classic_member()
    mixed.consumer("new", 5)
    mixed.consumer("new", 0)
    mixed.look()
    mixed.beat(member, 1)
    mixed.sync(member, 1)
    mixed.commit(member, 1)
    mixed.join(member, 0, 1, 2, 3)
    mixed.look()
    mixed.sync(member, 1)
    mixed.beat(member, 1)
    mixed.consumer("new", 2)
    mixed.join(member, 0, 1)
    mixed.sync(member, 2)
    mixed.beat(member, 2)
    mixed.consumer("new", 2)
    mixed.look()
    for generation in (1, 2, 3):
        mixed.commit(member, generation)
        mixed.commit(member, generation, 5)
        mixed.commit("new", generation, 9, 2)
    mixed.commit("new", 2, 8)
    mixed.commit("", -1)
    mixed.beat(member, 3)
    mixed.beat("new", 2)
    mixed.sync("new", 2)
    mixed.sync(member, 2, protocol_name="other")
    mixed.sync(member, 2, protocol_type="other")
    mixed.beat(member, 2, group_instance_id="i")
    mixed.consumer("new", -1)
    mixed.look()
    mixed.beat(member, 2)
    mixed.join(member, 0, 1)
    mixed.sync(member, 3, 0, 1, 2, 3)
    mixed.look()
    mixed.consumer("new", 0)
    mixed.leave((member, None), ("new", None), ("nobody", None))
    mixed.look()


@script
def who_may_join_a_consumer_group(t: Talk) -> None:
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    mixed = Mixed(t, "joining")
    mixed.consumer("first", 0)
    mixed.join(protocol_type="connect")
    mixed.join(protocols=[])
    mixed.join(session_timeout_ms=1)
    mixed.join(version=3)
    own = mixed.join("of-its-own")
    mixed.join("of-its-own", protocols=[{"name": "other", "metadata": subscription(mixed.topic)}])
    mixed.join("x", group_instance_id="i")
    static = mixed.join("", group_instance_id="i")
    again = mixed.join("", group_instance_id="i")
    for answer in (own, static, again):
        if isinstance(answer, dict):
            mixed.sync(answer["member_id"], answer["generation_id"])
    mixed.look()
    mixed.leave(("", "i"), ("", "j"), ("of-its-own", "i"), ("of-its-own", None))
    mixed.look()
    mixed.consumer("of-its-own", 1)
    mixed.leave(("first", None))
    mixed.look()


@script
def static_members_change_their_protocol(t: Talk) -> None:
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    mixed = Mixed(t, "static")
    mixed.consumer("one", 0, instance_id="i")
    mixed.join("two", group_instance_id="i")
    joined = mixed.join("", group_instance_id="i")
    mixed.look()
    if isinstance(joined, dict):
        member = joined["member_id"]
        mixed.sync(member, joined["generation_id"], group_instance_id="i")
        mixed.beat(member, joined["generation_id"], group_instance_id="i")
        mixed.consumer("one", 2, instance_id="i")
        mixed.consumer("three", 0, instance_id="i")
        mixed.beat(member, 2, group_instance_id="i")
    mixed.look()
    mixed.consumer("three", -2, instance_id="i")
    mixed.consumer("three", 0, instance_id="i")
    mixed.consumer("other", 0)
    mixed.join("", group_instance_id="i")
    mixed.look()


@script
def groups_that_stay_classic(t: Talk) -> None:
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    for name, given, more in (
        ("own", assignment("t", 0, user_data=b"x"), {}),
        ("torn", b"\0\1\0", {}),
        ("none", b"", {}),
        ("connect", b"", {"protocol_type": "connect"}),
    ):
        mixed = Mixed(t, name)
        joined = mixed.join(**more)
        if isinstance(joined, dict):
            parts = [{"member_id": joined["member_id"], "assignment": given}]
            mixed.sync(joined["member_id"], 1, assignments=parts, **more)
            mixed.consumer("new", 0)
            mixed.beat(joined["member_id"], 1)
        mixed.look()


@script
def members_that_wait_are_told(t: Talk) -> None:
    """Let a KIP-848 consumer join during a classic rebalance; record the answers to waiting members."""
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    mixed = Mixed(t, "waiting")
    member = mixed.classic_member()
    tree = {
        "group_id": mixed.group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 20_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription(mixed.topic)}],
    }
    t.send("JoinGroup", 3, tree, on=1)
    for _ in range(WAITS_MAX):  # the other connection is not served before this one for being written first
        [found] = t.ask_quietly("DescribeGroups", 0, {"groups": [mixed.group]})["groups"]
        if found["group_state"] == "PreparingRebalance":
            break
        t.settle()
    mixed.beat(member, 1)
    mixed.consumer("new", 0)
    told = t.receive(on=1)
    mixed.join(member, 0, 1, 2, 3)
    mixed.beat(member, 1)
    if isinstance(told, dict):
        mixed.join(told["member_id"])


@script
def a_group_in_which_the_broker_assigns(t: Talk) -> None:
    """Test KIP-848's joins, partition handovers, epochs and errors, with an assignment interval of 0 ms."""
    if not t.offers("ConsumerGroupHeartbeat"):
        return
    mixed = Mixed(t, "assigning")
    entry = {"name": "consumer.assignment.interval.ms", "config_operation": 0, "value": "0"}
    resource = {"resource_type": 32, "resource_name": mixed.group, "configs": [entry]}
    t.ask("IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False})
    refused = mixed.consumer("nobody", 1)
    if not isinstance(refused, dict) or refused["error_code"] == UNSUPPORTED_VERSION:
        return  # a release that has the request, and does not offer such groups
    mixed.consumer("nobody", -1)
    mixed.consumer("a", 0)
    mixed.consumer("a", 2)
    mixed.consumer("b", 0)
    mixed.look()
    mixed.consumer("a", 2)
    mixed.consumer("a", 2)
    mixed.consumer("a", 2, (0, 1, 2, 3))
    mixed.consumer("a", 2, (0, 1))
    mixed.consumer("a", 2)
    mixed.consumer("a", 2, (0, 3))
    mixed.consumer("a", 2, (0, 1))
    mixed.consumer("b", 3)
    mixed.consumer("b", 3, (2, 3))
    mixed.consumer("b", 2)
    mixed.consumer("a", 9)
    mixed.consumer("c", 3)
    mixed.consumer("a", 0)
    mixed.look()
    for changed in (
        {"topic_partitions": None},
        {"topic_partitions": [{"topic_id": mixed.topic_id, "partitions": [0]}]},
        {"subscribed_topic_names": None},
        {"rebalance_timeout_ms": -1},
        {"instance_id": " "},
        {"rack_id": ""},
        {"member_id": ""},
        {"server_assignor": "foo"},
        {"subscribed_topic_regex": "["},
    ):
        mixed.consumer("x", 0, **changed)
    mixed.consumer("x", -3)
    mixed.consumer("x", -2)
    mixed.consumer("s", 0, instance_id="i")
    mixed.consumer("s2", 0, instance_id="i")
    mixed.consumer("s2", 1, instance_id="i")
    mixed.consumer("s2", 1, instance_id="j")
    mixed.consumer("s", -2, instance_id="i")
    mixed.look()
    mixed.consumer("s2", 0, instance_id="i")
    mixed.consumer("s2", -1, instance_id="i")
    for epoch in (1, 2, 3, 99, -1):
        mixed.commit("a", epoch)
    mixed.commit("a", 3, 8)
    mixed.commit("a", 3, group_instance_id="of nobody")
    mixed.commit("nobody", 3)
    mixed.commit("", -1)
    for member, epoch in ((None, -1), ("a", 99), ("nobody", 1), ("", -1)):
        places = [{"name": mixed.topic, "partition_indexes": [0, 1]}]
        asked = {"group_id": mixed.group, "member_id": member, "member_epoch": epoch, "topics": places}
        t.ask("OffsetFetch", 9, {"groups": [asked], "require_stable": False})
    places = [{"name": mixed.topic, "partitions": [{"partition_index": 0}]}]
    t.ask("OffsetDelete", 0, {"group_id": mixed.group, "topics": places})
    t.ask("DeleteGroups", 2, {"groups_names": [mixed.group, t.name("missing")]})
    mixed.consumer("b", -1)
    mixed.consumer("b", -1)
    mixed.consumer("a", -1)
    mixed.look()
    mixed.commit("", -1)
    t.ask("DeleteGroups", 2, {"groups_names": [mixed.group]})
    mixed.look()
