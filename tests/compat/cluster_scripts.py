"""Compare the answers of two clusters of three brokers while leaders die, move and come back.

Each script causes the same events in both clusters. After each event it sends the same requests to every
live broker, in every version that both clusters offer. A script has topics of its own. The brokers are 1,
2 and 3, in racks r1, r2 and r3, and all of them run when a script begins and ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from compat.transcript import Talk, Tree
from penstock.records.batch import encode_batch
from penstock.testing import KafkaCluster

BROKERS = (1, 2, 3)
PATIENCE_S = 180.0

CHECKPOINT_S = 6.0
"""Seconds to wait until a broker has checkpointed its high watermarks, which it does every 5 s."""

NO_ID = bytes(16)
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
UNORDERED = {"isr_nodes", "offline_replicas", "adding_replicas", "removing_replicas"}
"""Response fields with lists of broker ids whose order has no meaning."""


class ClusterTalk(Talk):
    """A recorder of requests to the brokers of a cluster: `on` is the id of the broker that is asked."""

    def __init__(
        self,
        ports: Sequence[int],
        kill: Callable[[int], object],
        start: Callable[[int], object],
        ranges: dict[str, tuple[int, int]],
        prefix: str,
    ) -> None:
        super().__init__(f"127.0.0.1:{ports[0]}", ranges, 1, settle_s=0, prefix=prefix)
        self.marks: dict[str, int] = {}
        """Values that a script saw and that depend on which of two concurrent events came first."""
        self._ports = dict(zip(BROKERS, ports, strict=True))
        self._kill = kill
        self._start = start
        self.living = set(BROKERS)
        self.topics: dict[str, tuple[str, bytes]] = {}
        """A dict from a topic's short name in the script to its full name and topic id."""

    def _write(self, data: bytes, on: int) -> None:
        self.port = self._ports[abs(on)]
        super()._write(data, on)

    def quietly(self, api: str, tree: Tree, *, on: int, version: int | None = None) -> Tree:
        """Send a request without recording it, in the latest version unless one is given."""
        noted = len(self.exchanges)
        try:
            return self.ask(api, self.latest(api) if version is None else version, tree, on=-on)
        finally:
            del self.exchanges[noted:]

    def plain(self, value: Tree, field: str = "") -> Tree:
        if field == "controller_id" and isinstance(value, int) and value >= 0:
            return "any broker"
        if field in UNORDERED and isinstance(value, list):
            return sorted(value)
        return super().plain(value, field)

    # --- events ------------------------------------------------------------------------------------------

    def make(self, name: str, *assigned: Sequence[int], **configs: object) -> None:
        """Create a topic with these replicas for each partition, and wait until all brokers list it."""
        full = self.name(name)
        places = [{"partition_index": n, "broker_ids": list(each)} for n, each in enumerate(assigned)]
        settings = [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()]
        topic = {"name": full, "num_partitions": -1, "replication_factor": -1}
        topic |= {"assignments": places, "configs": settings}
        answer = self.quietly("CreateTopics", {"topics": [topic], "timeout_ms": 10_000}, on=1, version=5)
        assert answer["topics"][0]["error_code"] == 0, answer
        self.topics[name] = full, NO_ID
        for index, each in enumerate(assigned):
            self.wait(name, leader=each[0], in_sync=each, index=index)
        self.topics[name] = full, self.topic_id(full)

    def kill(self, broker: int) -> None:
        """Kill a broker, and wait until the other brokers' metadata no longer list it."""
        self._kill(broker)
        self.living.discard(broker)
        for on in [each for each in self.sockets if abs(each) == broker]:
            self.sockets.pop(on).close()
            self._due.pop(on, None)
        if len(self.living) > 1:  # with fewer, three nodes of Kafka have no controller
            self._until(lambda: self._brokers() == [sorted(self.living)] * len(self.living), f"no {broker}")

    def start(self, broker: int) -> None:
        """Start a broker again, and wait until every live broker's metadata lists it."""
        self._start(broker)
        self.living.add(broker)
        self._until(lambda: self._brokers() == [sorted(self.living)] * len(self.living), f"{broker}")

    def _brokers(self) -> list[list[int]]:
        found = []
        for each in self.living:
            answer = self.quietly("Metadata", {"topics": []}, on=each)
            if isinstance(answer, str):
                return []
            found.append(sorted(broker["node_id"] for broker in answer["brokers"]))
        return found

    def wait(self, name: str, *, leader: int, in_sync: Sequence[int], index: int = 0) -> None:
        """Wait until every live broker reports this leader and this ISR for a partition."""
        wanted = leader, sorted(in_sync)

        def is_so() -> bool:
            return all(self._state(name, index, each) == wanted for each in self.living)

        self._until(is_so, f"{name}-{index} led by {leader}, in sync {in_sync}")

    def _state(self, name: str, index: int, broker: int) -> tuple[int, list[int]]:
        asked = {"topics": [{"name": self.topics[name][0], "topic_id": NO_ID}]}
        answer = self.quietly("Metadata", asked, on=broker)
        if isinstance(answer, str):
            return -2, []
        [topic] = answer["topics"]
        for part in topic["partitions"]:
            if part["partition_index"] == index:
                return part["leader_id"], sorted(part["isr_nodes"])
        return -2, []

    def epoch(self, name: str, broker: int) -> int:
        """Return the leader epoch of partition 0 as a broker has it."""
        asked = {"topics": [{"name": self.topics[name][0], "topic_id": NO_ID}]}
        answer = self.quietly("Metadata", asked, on=broker)
        return int(answer["topics"][0]["partitions"][0]["leader_epoch"])

    def wait_for_watermark(self, name: str, offset: int) -> None:
        """Wait until every replica of partition 0 that lives has this high watermark."""

        def is_so() -> bool:
            return all(self._watermark(name, each) in (offset, None) for each in self.living)

        self._until(is_so, f"{name} readable up to {offset}")

    def _watermark(self, name: str, broker: int) -> int | None:
        answer = self.quietly("Fetch", self.fetch_tree(name, 0), on=broker, version=12)
        if isinstance(answer, str):
            return -1
        [part] = answer["responses"][0]["partitions"]
        return None if part["error_code"] else part["high_watermark"]

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(0.05)

    # --- requests ----------------------------------------------------------------------------------------

    def everywhere(self, api: str, *trees: Tree, versions: Sequence[int] | None = None) -> None:
        """Send requests to every live broker, in every version or in the given versions that are offered."""
        offered = list(self.versions(api))
        for version in offered if versions is None else [each for each in versions if each in offered]:
            for tree in trees:
                for broker in sorted(self.living):
                    self.ask(api, version, tree, on=broker)

    def produce_tree(self, name: str, acks: int = -1, timeout_ms: int = 3_000) -> Tree:
        full, topic_id = self.topics[name]
        data = {"index": 0, "records": encode_batch([(None, b"v", (), 1_600_000_000_000)])}
        topic = {"name": full, "topic_id": topic_id, "partition_data": [data]}
        return {"transactional_id": None, "acks": acks, "timeout_ms": timeout_ms, "topic_data": [topic]}

    def fetch_tree(self, name: str, offset: int, *, epoch: int = -1, last: int = -1, rack: str = "") -> Tree:
        full, topic_id = self.topics[name]
        place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        place |= {"current_leader_epoch": epoch, "last_fetched_epoch": last, "log_start_offset": -1}
        topic = {"topic": full, "topic_id": topic_id, "partitions": [place]}
        return {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "session_epoch": -1,
            "rack_id": rack,
            "topics": [topic],
        }

    def offsets_tree(self, name: str, timestamp: int, *, epoch: int = -1, replica: int = -1) -> Tree:
        place = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": epoch}
        topic = {"name": self.topics[name][0], "partitions": [place | {"max_num_offsets": 1}]}
        return {"replica_id": replica, "isolation_level": 0, "topics": [topic]}

    def epoch_tree(self, name: str, epoch: int, *, current: int = -1, replica: int = -1) -> Tree:
        place = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": current}
        return {"replica_id": replica, "topics": [{"topic": self.topics[name][0], "partitions": [place]}]}

    def look(self, *names: str) -> None:
        """Ask every live broker for the metadata of some topics, and for the description of the cluster."""
        by_name = [{"name": self.topics[each][0], "topic_id": NO_ID} for each in names]
        by_id = [{"name": None, "topic_id": self.topics[each][1]} for each in names]
        self.everywhere("Metadata", {"topics": by_name, "allow_auto_topic_creation": False})
        self.everywhere("Metadata", {"topics": by_id}, versions=(12, 13))
        self.everywhere("DescribeCluster", {"endpoint_type": 1})
        cursor = {"response_partition_limit": 100, "cursor": None}
        self.everywhere(
            "DescribeTopicPartitions", {"topics": [{"name": t["name"]} for t in by_name]} | cursor
        )
        moving = [{"name": t["name"], "partition_indexes": [0]} for t in by_name]
        self.everywhere("ListPartitionReassignments", {"timeout_ms": 5_000, "topics": moving})

    def read(self, name: str, *offsets: int, epoch: int = -1) -> None:
        """Send Fetch and ListOffsets requests for a topic to every live broker."""
        self.everywhere("Fetch", *(self.fetch_tree(name, each, epoch=epoch) for each in offsets))
        times = LATEST, EARLIEST, MAX_TIMESTAMP, 1_600_000_000_000, 1_700_000_000_000
        self.everywhere("ListOffsets", *(self.offsets_tree(name, each, epoch=epoch) for each in times))

    def elect(self, name: str, kind: int, broker: int, *, again: bool = False) -> None:
        """Request a leader election in the latest version, or in every version if `again` is true."""
        asked = {"election_type": kind, "timeout_ms": 5_000}
        asked["topic_partitions"] = [{"topic": self.topics[name][0], "partitions": [0]}]
        if again:
            for version in self.versions("ElectLeaders"):
                self.ask("ElectLeaders", version, asked, on=broker)
        else:
            self.ask("ElectLeaders", self.latest("ElectLeaders"), asked, on=broker)

    def reassign(self, name: str, replicas: Sequence[int] | None, broker: int) -> None:
        """Request other replicas for partition 0, or cancel its reassignment if `replicas` is None."""
        place = {"partition_index": 0, "replicas": None if replicas is None else list(replicas)}
        topic = {"name": self.topics[name][0], "partitions": [place]}
        version = self.latest("AlterPartitionReassignments")
        asked = {"timeout_ms": 5_000, "allow_replication_factor_change": True, "topics": [topic]}
        self.ask("AlterPartitionReassignments", version, asked, on=broker)


CLUSTER_SCRIPTS: dict[str, Callable[[ClusterTalk], None]] = {}


def script(function: Callable[[ClusterTalk], None]) -> Callable[[ClusterTalk], None]:
    CLUSTER_SCRIPTS[function.__name__] = function
    return function


@script
def who_serves_what(talk: ClusterTalk) -> None:
    """Send requests to the leader, to followers, and to a broker without a replica.

    The requests vary the leader epoch and the client's rack.
    """
    talk.make("t", [1, 2, 3], min_insync_replicas=2)
    talk.make("u", [2, 1], min_insync_replicas=1)
    talk.look("t", "u")
    count = 0
    for name, leader in (("t", 1), ("u", 2)):
        count = 0
        for version in talk.versions("Produce"):
            for broker in BROKERS:
                talk.ask("Produce", version, talk.produce_tree(name), on=broker)
                count += broker == leader
        talk.wait_for_watermark(name, count)
        talk.read(name, 0, count - 1, count, count + 1)
        for epoch in (0, 1):
            talk.read(name, 0, epoch=epoch)
        for replica in (-1, -2):
            trees = [talk.offsets_tree(name, each, replica=replica) for each in (LATEST, EARLIEST)]
            talk.everywhere("ListOffsets", *trees)
            epochs = [
                talk.epoch_tree(name, each, current=current, replica=replica)
                for each in (-1, 0, 1)
                for current in (-1, 0, 1)
            ]
            talk.everywhere("OffsetForLeaderEpoch", *epochs)
        for last in (0, 1):
            talk.everywhere("Fetch", talk.fetch_tree(name, 1, last=last))
        for rack in ("r1", "r2", "r3", "r9"):
            talk.everywhere("Fetch", talk.fetch_tree(name, 0, rack=rack))
            talk.everywhere("Fetch", talk.fetch_tree(name, count, rack=rack), versions=(11, 16))
    talk.everywhere("Produce", talk.produce_tree("u", acks=2), versions=(9,))


@script
def what_is_refused(talk: ClusterTalk) -> None:
    """Request topics, reassignments and elections that are invalid, such as more replicas than brokers."""
    for number, (factor, assigned) in enumerate(
        [
            (4, []),
            (0, []),
            (-1, [[1, 1]]),
            (-1, [[1, 9]]),
            (-1, [[1, 2], [1]]),
            (-1, [[]]),
        ]
    ):
        places = [{"partition_index": n, "broker_ids": each} for n, each in enumerate(assigned)]
        topic = {"name": talk.name(f"n{number}"), "num_partitions": -1 if assigned else 1}
        topic |= {"replication_factor": factor, "assignments": places, "configs": []}
        for version in talk.versions("CreateTopics"):
            tree = {"topics": [topic], "timeout_ms": 5_000, "validate_only": True}
            talk.ask("CreateTopics", version, tree, on=1 + number % 3)
    talk.make("t", [1, 2])
    talk.topics["none"] = talk.name("none"), bytes(15) + b"\x09"
    for name in ("t", "none"):
        for kind in (0, 1):
            talk.elect(name, kind, 2, again=True)
        for replicas in ([1, 1], [1, 9], [], None, [1, 2]):
            talk.reassign(name, replicas, 3)
    talk.everywhere("Fetch", talk.fetch_tree("none", 0))
    talk.everywhere("Produce", talk.produce_tree("none"))
    talk.read("none", 0)
    talk.everywhere("OffsetForLeaderEpoch", talk.epoch_tree("none", 0))
    talk.look("none")


@script
def a_leader_dies_and_comes_back(talk: ClusterTalk) -> None:
    """Kill a leader, let it be fenced, start it again, and elect it again.

    Requests meanwhile carry leader epochs that are too old or too new.
    """
    talk.make("t", [1, 2, 3], min_insync_replicas=2)
    talk.make("m", [1, 2], min_insync_replicas=2)
    for name in ("t", "m"):
        talk.ask("Produce", 9, talk.produce_tree(name), on=1)
        talk.wait_for_watermark(name, 1)
    talk.kill(1)
    talk.wait("t", leader=2, in_sync=[2, 3])
    talk.wait("m", leader=2, in_sync=[2])
    talk.look("t", "m")
    for name in ("t", "m"):
        for broker in (3, 2):
            for version in (9, 10, talk.latest("Produce")):
                talk.ask("Produce", version, talk.produce_tree(name), on=broker)
    talk.ask("Produce", 9, talk.produce_tree("m", acks=1), on=2)
    talk.wait_for_watermark("t", 4)
    for epoch in (-1, 0, 1, 2):
        talk.read("t", 1, epoch=epoch)
    talk.read("m", 1, 2)
    for epoch in (0, 1, 2):
        talk.everywhere("OffsetForLeaderEpoch", talk.epoch_tree("t", epoch))
    talk.elect("t", 0, 3)
    talk.start(1)
    talk.wait("t", leader=2, in_sync=[1, 2, 3])
    talk.wait("m", leader=2, in_sync=[1, 2])
    talk.wait_for_watermark("m", 2)
    talk.look("t", "m")
    talk.read("t", 4)
    talk.read("m", 2)
    for _ in range(2):
        talk.elect("t", 0, 3, again=True)
    talk.wait("t", leader=1, in_sync=[1, 2, 3])
    talk.look("t")
    for version in talk.versions("Produce"):
        talk.ask("Produce", version, talk.produce_tree("t"), on=2)
    for epoch in (1, 2, 3):
        talk.read("t", 4, epoch=epoch)
    talk.wait_for_watermark("t", 4)


@script
def an_unclean_election(talk: ClusterTalk) -> None:
    """Kill the only in-sync replica while the other replica of the partition lacks records.

    The unclean election is first refused, then requested, and for one topic allowed by its configuration.
    """
    talk.make("u", [1, 2], min_insync_replicas=1)
    talk.make("x", [1, 2], min_insync_replicas=1, unclean_leader_election_enable="true")
    for name in ("u", "x"):
        talk.ask("Produce", 9, talk.produce_tree(name), on=1)
        talk.wait_for_watermark(name, 1)
    time.sleep(CHECKPOINT_S)
    talk.kill(2)
    for name in ("u", "x"):
        talk.wait(name, leader=1, in_sync=[1])
        for _ in range(3):
            talk.ask("Produce", 9, talk.produce_tree(name), on=1)
    talk.kill(1)
    talk.start(2)
    talk.wait("x", leader=2, in_sync=[2])
    talk._until(lambda: talk._state("u", 0, 2)[0] == -1, "u without a leader")
    # Three nodes of Kafka have no controller while two are away. The next one has 2 among the living before
    # 1 is fenced, or after that: then there was no leader in between, which is an epoch of its own.
    talk.marks["epoch"] = talk.epoch("x", 2)
    talk.look("u", "x")
    for name in ("u", "x"):
        talk.ask("Produce", 9, talk.produce_tree(name), on=2)
        talk.ask("Produce", 10, talk.produce_tree(name), on=3)
        talk.read(name, 0, 1, 4)
    talk.elect("u", 0, 3)
    talk.elect("u", 1, 3)
    talk.wait("u", leader=2, in_sync=[2])
    talk.elect("u", 1, 3)
    talk.look("u", "x")
    for name, records in (("u", 2), ("x", 1)):
        for _ in range(records):
            talk.ask("Produce", 9, talk.produce_tree(name), on=2)
    for name in ("u", "x"):
        talk.read(name, 0, 3, 4)
        talk.everywhere("Fetch", *(talk.fetch_tree(name, 4, last=last) for last in (0, 1, 2)))
        trees = [talk.epoch_tree(name, epoch) for epoch in range(5)]
        talk.everywhere("OffsetForLeaderEpoch", *trees)
    talk.start(1)
    for name in ("u", "x"):
        talk.wait(name, leader=2, in_sync=[1, 2])
        talk.wait_for_watermark(name, 3)
        talk.read(name, 0, 2, 3)
    talk.look("u", "x")


@script
def replicas_move(talk: ClusterTalk) -> None:
    """Reassign a partition to a broker that is down; list, cancel and complete the reassignment."""
    talk.make("m", [1, 3], min_insync_replicas=1)
    talk.ask("Produce", 9, talk.produce_tree("m"), on=1)
    talk.wait_for_watermark("m", 1)
    talk.kill(2)
    talk.reassign("m", [3, 2], 1)
    talk.wait("m", leader=1, in_sync=[1, 3])
    talk._until(lambda: len(talk_replicas(talk, "m")) == 3, "all replicas")
    talk.look("m")
    talk.everywhere("ListPartitionReassignments", {"timeout_ms": 5_000, "topics": None})
    talk.reassign("m", None, 3)
    talk.reassign("m", None, 1)
    talk._until(lambda: len(talk_replicas(talk, "m")) == 2, "the replicas of before")
    talk.look("m")
    talk.read("m", 0)
    talk.reassign("m", [3, 2], 1)
    talk.start(2)
    talk.wait("m", leader=3, in_sync=[2, 3])
    talk.look("m")
    talk.wait_for_watermark("m", 1)
    talk.read("m", 0, 1)
    for epoch in (0, 1, 2):
        talk.read("m", 0, epoch=epoch)
    for broker in BROKERS:
        talk.ask("Produce", talk.latest("Produce"), talk.produce_tree("m"), on=broker)


def talk_replicas(talk: ClusterTalk, name: str) -> Sequence[int]:
    """Return the replicas of partition 0 that all live brokers report.

    Returns an empty list while the brokers report lists of different lengths.
    """
    found: list[list[int]] = []
    for broker in talk.living:
        asked = {"topics": [{"name": talk.topics[name][0], "topic_id": NO_ID}]}
        answer: Any = talk.quietly("Metadata", asked, on=broker)
        found.append(answer["topics"][0]["partitions"][0]["replica_nodes"])
    return found[0] if all(len(each) == len(found[0]) for each in found) else []


@script
def a_coordinator_moves(talk: ClusterTalk) -> None:
    """Send group requests to the coordinator and to other brokers, while the coordinator dies and moves."""
    group = talk.name("g")
    topic = "__consumer_offsets"
    talk.topics["offsets"] = topic, NO_ID
    talk.make("t", [1, 2, 3])

    def coordinator() -> int:
        asked = {"key": group, "key_type": 0, "coordinator_keys": [group]}
        for broker in talk.living:
            answer = talk.quietly("FindCoordinator", asked, on=broker)
            [found] = answer["coordinators"]
            if found["error_code"]:
                return -1
        return int(found["node_id"])

    talk._until(lambda: coordinator() > 0, "a coordinator")
    offset = {"partition_index": 0, "committed_offset": 7, "committed_metadata": "m"}
    commit = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    commit["topics"] = [{"name": talk.topics["t"][0], "partitions": [offset]}]
    fetch = {
        "group_id": group,
        "topics": [{"name": talk.topics["t"][0], "partition_indexes": [0]}],
        "groups": [{"group_id": group, "topics": [{"name": talk.topics["t"][0], "partition_indexes": [0]}]}],
    }
    beat = {"group_id": group, "generation_id": 1, "member_id": "stranger"}
    leave = {"group_id": group, "member_id": "stranger", "members": [{"member_id": "stranger"}]}

    def ask_all(home: int) -> None:
        """Send the group requests to the coordinator first, then to each other broker in turn."""
        others = [each for each in sorted(talk.living) if each != home]
        for place, broker in (("home", home), *(("other", each) for each in others)):
            talk.note("asked", place)
            for api, tree, least in (
                ("OffsetCommit", commit, 2),
                ("OffsetFetch", fetch, 1),
                ("Heartbeat", beat, 0),
                ("LeaveGroup", leave, 0),
                ("DescribeGroups", {"groups": [group]}, 0),
            ):
                for version in talk.versions(api):
                    if version >= least and not (api in ("OffsetCommit", "OffsetFetch") and version >= 10):
                        talk.ask(api, version, tree, on=broker)

    home = coordinator()
    talk._until(lambda: not isinstance(commit_error(talk, commit, home), str), "it answers")
    talk._until(lambda: commit_error(talk, commit, home) == 0, "it has read its partition")
    ask_all(home)
    talk.kill(home)
    talk._until(lambda: coordinator() not in (home, -1), "another coordinator")
    away, home = home, coordinator()
    talk._until(lambda: commit_error(talk, commit, home) == 0, "it has read its partition")
    ask_all(home)
    talk.start(away)
    talk._until(lambda: coordinator() > 0, "a coordinator")
    ask_all(coordinator())


def commit_error(talk: ClusterTalk, commit: Tree, broker: int) -> int | str:
    """Return the error code with which a broker answers an OffsetCommit, or the text of a failed request."""
    answer = talk.quietly("OffsetCommit", commit, on=broker, version=8)
    return answer if isinstance(answer, str) else answer["topics"][0]["partitions"][0]["error_code"]


def ports_of(cluster: KafkaCluster) -> list[int]:
    """Return the ports of the brokers of a Penstock cluster, in the order of their ids."""
    return [int(cluster.address(each).rpartition(":")[2]) for each in cluster.node_ids]
