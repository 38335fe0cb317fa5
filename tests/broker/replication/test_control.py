"""Tests of the controller's decisions: elections, replica placement, reassignments and proposed ISRs."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from for_each import for_each
from penstock.broker.metadata.image import ClusterImage, Replicas
from penstock.broker.replication.control.controller import Controller
from penstock.broker.replication.control.elections import ElectionKind, elect
from penstock.broker.replication.control.periodic_elections import UNCLEAN_S, PeriodicElections
from penstock.broker.replication.control.placement import Candidate, place
from penstock.broker.replication.control.reassignments import MovedReplicas, begin, cancel, complete
from penstock.broker.replication.transport.messages import (
    IsrChange,
    NodeHeartbeat,
    NodeRegistration,
    Proposal,
)
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.message import Message
from penstock.protocol.messages.config_record import ConfigRecord
from penstock.protocol.messages.partition_record import PartitionRecord
from penstock.protocol.messages.topic_record import TopicRecord

TOPIC_ID = bytes(15) + b"\x07"


def alive(*brokers: int) -> object:
    return lambda broker: broker in brokers


@pytest.mark.parametrize(
    ("assigned", "in_sync", "leader", "living", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], 1, (1, 2, 3), 1),
        ([1, 2, 3], [3, 2], 1, (2, 3), 2),
        ([1, 2, 3], [3], 1, (2, 3), 3),
        ([1, 2, 3], [1], 1, (2, 3), -1),
        ([1, 2, 3], [1, 2, 3], 3, (1, 2, 3), 3),
        ([2, 3], [1, 2], 1, (1, 2, 3), 2),
    ],
)
def test_the_leader_is_the_first_replica_that_is_in_sync_and_alive(
    assigned: list[int], in_sync: list[int], leader: int, living: tuple[int, ...], expected: int
) -> None:
    found = elect(assigned, in_sync, leader, alive(*living))  # type: ignore[arg-type]
    assert (found.leader, found.in_sync) == (expected, tuple(in_sync))


def test_an_unclean_election_leaves_the_one_that_leads_in_sync() -> None:
    found = elect([1, 2, 3], [1], -1, alive(2, 3), unclean=True)  # type: ignore[arg-type]
    assert found == (2, (2,), True)
    assert elect([1, 2, 3], [1], -1, alive(2, 3), ElectionKind.UNCLEAN).leader == 2  # type: ignore[arg-type]


@for_each(range(20))
def test_placement_spreads_replicas_over_racks_and_leaders_over_brokers(seed: int) -> None:
    brokers = [Candidate(number, f"r{number % 3}") for number in range(1, 7)]
    placed = place(brokers, 12, 3, Random(seed))
    racks = {each.id: each.rack for each in brokers}
    for replicas in placed:
        assert len(set(replicas)) == 3
        assert len({racks[each] for each in replicas}) == 3
    assert len(place([Candidate(1, None)], 5, 1, Random(seed))) == 5


@for_each(range(20))
def test_without_racks_every_broker_leads_once_in_each_round(seed: int) -> None:
    placed = place([Candidate(number, None) for number in (1, 2, 3, 4)], 8, 2, Random(seed))
    assert set(Counter(replicas[0] for replicas in placed[:4]).values()) == {1}
    assert set(Counter(replicas[0] for replicas in placed[4:]).values()) == {1}


@for_each(range(20))
def test_a_fenced_broker_is_used_where_it_must_be_and_never_first(seed: int) -> None:
    brokers = [Candidate(1, "a"), Candidate(2, "b", True), Candidate(3, "c")]
    for replicas in place(brokers, 6, 3, Random(seed)):
        assert sorted(replicas) == [1, 2, 3]
        assert replicas[0] != 2


def test_placement_says_what_is_missing() -> None:
    with pytest.raises(ValueError, match="only 1 broker"):
        place([Candidate(1, None)], 1, 2, Random(0))
    with pytest.raises(ValueError, match="fenced"):
        place([Candidate(1, None, True)], 1, 1, Random(0))


def test_a_reassignment_goes_by_way_of_all_replicas() -> None:
    begun = begin(Replicas((1, 3), (1, 3)), [3, 2])
    assert begun == MovedReplicas((3, 2, 1), (2,), (1,))
    moving = Replicas(begun.assigned, (1, 3), begun.adding, begun.removing)
    assert complete(moving, (1, 3)) is None
    assert complete(moving, (1, 3, 2)) == MovedReplicas((3, 2))
    assert cancel(moving) == MovedReplicas((3, 1))
    assert complete(Replicas((1, 3), (1, 3)), (1, 3)) is None


class World:
    """A controller with three brokers, and one partition with a replica on each of them."""

    def __init__(self, **overrides: str) -> None:
        self.image = ClusterImage()
        self.brokers = self.image.brokers
        self.controller = Controller(self.image, 9.0, Random(1))
        for node in (1, 2, 3):
            self.register(node, 10 + node)
        self.write(
            [
                TopicRecord(name="t", topic_id=TOPIC_ID),
                PartitionRecord(
                    topic_id=TOPIC_ID,
                    partition_id=0,
                    replicas=[1, 2, 3],
                    isr=[1, 2, 3],
                    leader=1,
                    leader_epoch=0,
                    partition_epoch=0,
                ),
            ]
        )
        for name, text in overrides.items():
            self.write(
                [ConfigRecord(resource_type=2, resource_name="t", name=name.replace("_", "."), value=text)]
            )

    def write(self, records: list[Message]) -> None:
        for record in records:
            self.image.apply(record)

    def register(self, node: int, epoch: int, now_s: float = 0.0) -> None:
        registration = NodeRegistration(node, epoch, None, {"PLAINTEXT": ("127.0.0.1", node)})
        for records in self.controller.register(registration, epoch):
            self.write(records)
        is_known, records = self.controller.heartbeat(NodeHeartbeat(node, epoch, 0), now_s)
        assert is_known
        self.write(records)

    @property
    def state(self) -> tuple[int, int, tuple[int, ...], int]:
        """The partition's leader, leader epoch, ISR and partition epoch."""
        found = self.image.topics["t"].partitions[0]
        return found.leader, found.leader_epoch, found.replicas.in_sync, found.epoch

    def propose(self, *in_sync: int, **changed: int) -> int:
        found = self.image.topics["t"].partitions[0]
        given = {
            "node": found.leader,
            "broker_epoch": self.brokers.by_id[changed.get("node", found.leader)].epoch,
            "leader_epoch": found.leader_epoch,
            "partition_epoch": found.epoch,
            **changed,
        }
        members = tuple((each, self.brokers.by_id[each].epoch) for each in in_sync)
        node, broker_epoch = given.pop("node"), given.pop("broker_epoch")
        change = IsrChange(TOPIC_ID, 0, in_sync=members, **given)
        decision, records = self.controller.propose(Proposal(node, broker_epoch, (change,)))
        self.write(records)
        return decision.error or decision.errors[0]


def test_a_broker_that_is_fenced_leaves_the_isr_and_leads_no_more() -> None:
    world = World()
    world.write(world.controller.fence(1))
    assert world.state == (2, 1, (2, 3), 1)
    world.write(world.controller.fence(3))
    assert world.state == (2, 1, (2,), 2)
    world.write(world.controller.fence(2))
    assert world.state == (-1, 2, (2,), 3)
    world.register(3, 33)
    assert world.state == (-1, 2, (2,), 3)
    world.register(2, 32)
    assert world.state == (2, 3, (2,), 4)


def test_where_it_is_allowed_any_replica_leads_and_alone_is_in_sync() -> None:
    world = World(unclean_leader_election_enable="true")
    world.write(world.controller.fence(2))
    world.write(world.controller.fence(3))
    world.write(world.controller.fence(1))
    assert world.state[0] == -1
    world.register(3, 33)
    assert world.state[:3] == (3, 2, (3,))


def test_sessions_end_one_after_the_other() -> None:
    world = World()
    world.controller.heard(1, 5.0)
    assert world.controller.next_expiry() == 9.0
    while records := world.controller.expire(9.5):
        world.write(records)
    assert world.state == (1, 0, (1,), 2)
    assert not world.controller.expire(14.0)
    world.write(world.controller.expire(14.1))
    assert world.state[0] == -1


def test_time_in_which_no_heartbeat_could_arrive_does_not_count() -> None:
    world = World()
    world.controller.heard(1, 5.0)
    world.controller.excuse(3.0, 9.5)
    assert world.controller.next_expiry() == 12.0
    world.controller.excuse(100.0, 9.5)
    assert world.controller.next_expiry() == 18.5
    world.controller.excuse(-1.0, 10.0)
    assert world.controller.next_expiry() == 18.5


def test_a_broker_that_stops_gives_up_what_it_leads_and_is_still_named() -> None:
    world = World()
    is_known, records = world.controller.heartbeat(NodeHeartbeat(1, 11, 0, True), 1.0)
    world.write(records)
    assert is_known
    assert world.state == (2, 1, (2, 3), 1)
    assert not world.controller.leads_anything(1)
    assert [each.id for each in world.brokers.living()] == [1, 2, 3]
    assert world.propose(2, 3, 1) == ErrorCode.INELIGIBLE_REPLICA


def test_another_life_of_a_broker_ends_the_one_before() -> None:
    world = World()
    world.register(1, 99)
    assert world.state[:3] == (2, 1, (2, 3))
    is_known, _ = world.controller.heartbeat(NodeHeartbeat(1, 11, 0), 1.0)
    assert not is_known


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"node": 2}, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"broker_epoch": 5}, ErrorCode.STALE_BROKER_EPOCH),
        ({}, ErrorCode.NONE),
    ],
)
def test_a_proposed_isr_is_judged_in_kafkas_order(changed: dict[str, int], error: ErrorCode) -> None:
    world = World()
    assert world.propose(1, 2, **changed) == error
    assert world.state == ((1, 0, (1, 2, 3), 0) if error else (1, 0, (1, 2), 1))


def test_an_isr_without_the_leader_or_with_a_stranger_is_refused() -> None:
    world = World()
    assert world.propose(2, 3) == ErrorCode.INVALID_REQUEST
    world.register(4, 44)
    assert world.propose(1, 2, 4) == ErrorCode.INVALID_REQUEST


def test_a_reassignment_is_complete_with_the_isr_that_has_what_was_added() -> None:
    world = World()
    world.register(4, 44)
    world.write(world.controller.reassign("t", 0, [4, 2, 3], same_size=True))
    assert world.image.topics["t"].partitions[0].replicas[:4] == ((4, 2, 3, 1), (1, 2, 3), (4,), (1,))
    assert [topic for topic, _ in world.controller.moving(None)] == ["t"]
    assert world.propose(1, 2, 3, 4) == 0
    assert world.image.topics["t"].partitions[0].replicas[:4] == ((4, 2, 3), (2, 3, 4), (), ())
    assert world.state[:2] == (4, 1)
    with pytest.raises(KafkaError) as caught:
        world.controller.reassign("t", 0, None, same_size=False)
    assert caught.value.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize(
    ("target", "code"),
    [([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT), ([], 39), ([1, 9], 39), ([1, 2], 38)],
)
def test_a_target_that_cannot_be_is_refused(target: list[int], code: int) -> None:
    with pytest.raises(KafkaError) as caught:
        World().controller.reassign("t", 0, target, same_size=True)
    assert caught.value.code == code


def test_elections_that_are_asked_for() -> None:
    world = World()

    def refusal(kind: ElectionKind) -> int:
        with pytest.raises(KafkaError) as caught:
            world.controller.elect("t", 0, kind)
        return caught.value.code

    assert refusal(ElectionKind.PREFERRED) == refusal(ElectionKind.UNCLEAN) == ErrorCode.ELECTION_NOT_NEEDED
    world.write(world.controller.lead("t", 0, 2))
    assert world.state[:2] == (2, 1)
    world.write(world.controller.elect("t", 0, ElectionKind.PREFERRED))
    assert world.state[:2] == (1, 2)
    world.write(world.controller.fence(2))
    world.write(world.controller.fence(3))
    world.write(world.controller.fence(1))
    assert refusal(ElectionKind.UNCLEAN) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    world.register(2, 52)
    assert refusal(ElectionKind.PREFERRED) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    world.write(world.controller.elect("t", 0, ElectionKind.UNCLEAN))
    assert world.state[::2] == (2, (2,))


def test_leaders_go_back_to_the_preferred_replicas_when_it_is_time() -> None:
    world = World()
    elections = PeriodicElections(world.controller, 0.0, 300.0)
    world.write(world.controller.lead("t", 0, 3))
    assert not elections.take_due(299.9)
    world.write(elections.take_due(300.0))
    assert world.state[:2] == (1, 2)
    assert not elections.take_due(600.0)
    world.write(world.controller.fence(1))
    assert not elections.take_due(900.0)
    assert world.state[0] == 2
    world.register(1, 41)
    assert not elections.take_due(1200.0)
    assert world.propose(1, 2, 3) == 0
    assert not elections.take_due(1499.9)
    world.write(elections.take_due(1500.0))
    assert world.state[0] == 1


def test_leaders_stay_where_they_are_if_they_are_told_to() -> None:
    world = World()
    world.write(world.controller.lead("t", 0, 3))
    assert not PeriodicElections(world.controller, 0.0, None).take_due(1e9)


def test_elections_beyond_the_most_of_one_turn_follow_with_the_next() -> None:
    world = World()
    partitions = 1_005
    records: list[Message] = [
        PartitionRecord(
            topic_id=TOPIC_ID,
            partition_id=number,
            replicas=[2, 1],
            isr=[2, 1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
        )
        for number in range(1, partitions)
    ]
    world.write(records)
    elections = PeriodicElections(world.controller, 0.0, 300.0)
    first = elections.take_due(300.0)
    assert len(first) == 1_000
    world.write(first)
    second = elections.take_due(300.1)
    assert len(second) == 4
    world.write(second)
    assert not elections.take_due(300.2)


def test_a_partition_that_any_replica_may_lead_gets_a_leader_when_it_is_time() -> None:
    world = World()
    for node in (2, 3, 1):
        world.write(world.controller.fence(node))
    world.register(3, 33)
    elections = PeriodicElections(world.controller, 0.0, 300.0)
    assert not elections.take_due(UNCLEAN_S)
    assert world.state[0] == -1
    unclean = ConfigRecord(
        resource_type=2, resource_name="t", name="unclean.leader.election.enable", value="true"
    )
    world.write([unclean])
    world.write(elections.take_due(2 * UNCLEAN_S))
    assert world.state[::2] == (3, (3,))
