"""A test broker without sockets for groups with classic members and KIP-848 members together."""

from __future__ import annotations

from typing import Any

from broker.bench_node import NOW_MS, make_node, make_topic
from broker.groups.bench_group import Asked, Bench
from broker.groups.consumer_bench import ConsumerBench
from broker.groups.requests import heartbeat_request, join_request, leave_request, sync_request
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.client.assignors.member_metadata import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from penstock.clock import ManualClock
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode as E


def tops(*indexes: int) -> list[TopicPartition]:
    """Return `TopicPartition` objects of topic ``t`` with these partition numbers."""
    return [TopicPartition("t", index) for index in indexes]


class MixedBench(Bench):
    """A test broker with a topic ``t`` of 4 partitions, for groups of members of both protocols.

    Its own methods send classic requests; its attribute `new` has the methods for KIP-848 members.
    """

    def __init__(
        self, store: LogStore | None = None, clock: ManualClock | None = None, **settings: object
    ) -> None:
        self.clock = clock or ManualClock(NOW_MS)
        self.store = store or MemoryStore(1, self.clock)
        self.settings = settings
        self.node = make_node(self.store, self.clock, **settings)
        if "t" not in self.node.cluster.topics:
            make_topic(self.node, "t", partitions=4)
        self.new = ConsumerBench.__new__(ConsumerBench)
        self.new.clock, self.new.store, self.new.node = self.clock, self.store, self.node
        self.new.settings = settings

    def again(self) -> MixedBench:
        return MixedBench(self.store, self.clock, **self.settings)

    def classic_group(self, *names: str, **fields: Any) -> list[ClassicMember]:
        """Form a stable classic group whose members own equal blocks of ``t``; the first one leads."""
        members = [ClassicMember(self, name, **fields) for name in names]
        for number, newest in enumerate(members):
            present = members[: number + 1]
            for member in [newest, *present[:-1]]:
                member.asked = member.send_join()
            self.wait(10)
            for member in present:
                member.joined()
        share = 4 // len(members)
        given = {
            each.id: encode_assignment(tops(*range(number * share, (number + 1) * share)))
            for number, each in enumerate(members)
        }
        for member in members:
            answer = self.sync(member.id, member.epoch, given if member is members[0] else None).response
            member.take(answer.assignment)
        return members


class ClassicMember:
    """A classic consumer of the test broker, with its member id, epoch and owned partitions.

    A cooperative member keeps its partitions while it rejoins.
    """

    def __init__(
        self, bench: MixedBench, name: str, instance: str | None = None, *, is_cooperative: bool = True
    ) -> None:
        self.bench = bench
        self.name = name
        self.instance = instance
        self.is_cooperative = is_cooperative
        self.id = ""
        self.epoch = -1
        self.owned: list[int] = []
        self.topics: tuple[str, ...] = ("t",)
        self.protocols: tuple[str, ...] = ("range",)
        self.asked = Asked()

    def send_join(self, version: int = 3, **fields: Any) -> Asked:
        owned = self.owned if self.is_cooperative else []
        metadata = encode_subscription(Subscription(self.topics, tuple(tops(*owned))))
        protocols = dict.fromkeys(self.protocols, metadata)
        request = join_request(self.id, protocols=protocols, instance=self.instance, **fields)
        return self.bench.ask(request, version, self.name)

    def joined(self) -> None:
        assert self.asked.code == 0, self.asked.response
        self.id, self.epoch = self.asked.response.member_id, self.asked.response.generation_id

    def join(self, version: int = 3) -> int:
        """Join a group of type consumer, which answers at once; return the error code."""
        self.asked = self.send_join(version)
        response = self.asked.response
        assert response is not None, "a consumer group does not wait for others"
        if response.error_code in (0, E.MEMBER_ID_REQUIRED):
            self.id, self.epoch = response.member_id, response.generation_id
        if response.error_code == 0:
            assert (response.protocol_type, response.protocol_name) == ("consumer", self.protocols[0])
            assert (response.leader, response.members) == ("", [])
        return int(response.error_code)

    def take(self, assignment: bytes) -> None:
        self.owned = sorted(place.partition for place in decode_assignment(assignment))

    def sync(self) -> int:
        """Send SyncGroup, adopt the assignment, and return the error code."""
        fields = {"protocol_type": "consumer", "protocol_name": self.protocols[0]}
        request = sync_request(self.id, self.epoch, group_instance_id=self.instance, **fields)
        response = self.bench.ask(request, 5).response
        if not response.error_code:
            self.take(response.assignment)
        return int(response.error_code)

    def beat(self) -> int:
        request = heartbeat_request(self.id, self.epoch, group_instance_id=self.instance)
        return self.bench.ask(request).code

    def rejoin(self) -> int:
        """Send JoinGroup, then SyncGroup if that succeeds; return the error code."""
        return self.join() or self.sync()

    def leave(self) -> int:
        response = self.bench.ask(leave_request(self.id)).response
        return int(response.members[0].error_code)
