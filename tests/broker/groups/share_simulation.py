"""A simulation, driven by one seed, of the group and share coordinators and the members of a share group.

Members die, leave, come back and subscribe to other topics; answers of the share coordinator are lost; topics
grow and are deleted; the broker restarts; writes to disks fail; partition leaders write the delivery states
of records.

`ShareWorld(seed).run()` raises AssertionError, with the seed, if an invariant is broken. At any time: a
member has only partitions whose state is initialized; epochs only grow; the state of a record never goes
back; a write that was answered without an error is never lost. After a quiet period: every subscribed
partition has a member, and every member has a partition.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from broker.bench_node import ask, make_topic
from broker.groups.share_bench import ShareBench
from penstock.broker.groups.share_state.batches import StateBatch
from penstock.broker.groups.share_state.coordinator import WrittenShareState
from penstock.broker.groups.share_state.keys import ShareKey
from penstock.errors import StorageError
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

STEPS = 250
GROUP = "g"
NAMES = ("t", "u", "v")
RETRY_S = 31.0
"""The time in seconds after which the simulated group repeats a request without an answer."""

NOT_STORED = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)


class Member:
    """A simulated member of a share group: its epoch, and the partitions of its last response."""

    def __init__(self, name: str, topics: list[str]) -> None:
        self.name = name
        self.topics = topics
        self.epoch = 0
        self.tells = True
        """True if the next heartbeat lists the subscribed topics."""
        self.assigned: set[tuple[bytes, int]] = set()


class Leader:
    """The leader of one share partition, with a model of the stored state that checks compare with."""

    def __init__(self) -> None:
        self.epoch = 0
        self.state_epoch = 0
        self.start = 0
        self.ranks: dict[int, tuple[int, int]] = {}


class ShareWorld:
    """One simulated run of a share group, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.bench = ShareBench(share_coordinator_snapshot_update_records_per_snapshot=5)
        self.members: dict[str, Member] = {}
        self.leaders: dict[ShareKey, Leader] = {}
        self.group_epoch = 0
        self.count = 0
        self.loses_answers = False
        self.refuses: set[str] = set()
        self.arm()

    # --- the broker --------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Install the injected faults in the broker; called after each start of the broker."""
        node = self.bench.node
        send = node.send_share_state

        def lossy(request: Any, done: Callable[[Any], None]) -> None:
            send(request, (lambda answer: None) if self.loses_answers else done)

        node.send_share_state = lossy  # type: ignore[method-assign]
        for name, topic in (("groups", node.groups.topic), ("states", node.share_states.topic)):
            self._arm_topic(name, topic)

    def _arm_topic(self, name: str, topic: Any) -> None:
        append = topic.append

        def maybe(*what: Any) -> Any:
            if name in self.refuses:
                raise StorageError("the disk refuses")
            return append(*what)

        topic.append = maybe

    def restart(self) -> None:
        self.bench = self.bench.restarted()
        self.arm()

    def partitions(self) -> dict[str, set[tuple[bytes, int]]]:
        """Return the existing partitions of each topic, as pairs of topic id and partition number."""
        return {
            name: {(topic.id, index) for index in range(len(topic.partitions))}
            for name, topic in self.bench.node.cluster.topics.items()
            if name in NAMES
        }

    # --- steps -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the simulation; raise AssertionError, with the seed, if an invariant is broken."""
        steps: list[tuple[int, Callable[[], object]]] = [
            (12, self.join),
            (60, self.beat_one),
            (5, self.leave),
            (4, self.die),
            (4, self.resubscribe),
            (25, lambda: self.bench.wait(self.dice.choice([0.2, 0.6, 1.2, 5.0, 20.0]))),
            (4, self.change_topics),
            (4, self.restart),
            (4, self.change_faults),
            (30, self.lead),
            (4, self.administer),
            (3, lambda: self.bench.node.share_states.maintain(self.bench.clock.now_ms())),
        ]
        actions = [step for weight, step in steps for _ in range(weight)]
        try:
            for _ in range(STEPS):
                self.dice.choice(actions)()
                self.check()
            self.quieten()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}: {error}") from error

    def join(self) -> None:
        if len(self.members) < 6:
            self.count += 1
            topics = self.dice.sample(NAMES, self.dice.randrange(1, 4))
            name = f"m{self.count}"
            self.members[name] = Member(name, topics)
            self.beat(self.members[name])

    def one(self) -> Member | None:
        return self.dice.choice(list(self.members.values())) if self.members else None

    def beat_one(self) -> None:
        member = self.one()
        if member is not None:
            self.beat(member)

    def beat(self, member: Member) -> None:
        answer = self.bench.beat(
            member.name, member.epoch, *(member.topics if member.tells else ()), group=GROUP
        )
        if answer.error_code in (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND):
            member.epoch, member.tells, member.assigned = 0, True, set()
            return
        if answer.error_code in NOT_STORED:
            return
        assert answer.error_code == 0, answer.error_message
        if self.dice.random() < 0.1:
            return  # the answer is lost
        assert answer.member_epoch >= member.epoch, f"{member.name} goes back from epoch {member.epoch}"
        member.epoch, member.tells = answer.member_epoch, False
        if answer.assignment is not None:
            member.assigned = {
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            }

    def leave(self) -> None:
        member = self.one()
        if member is not None:
            answer = self.bench.beat(member.name, -1, group=GROUP)
            if answer.error_code not in NOT_STORED:
                del self.members[member.name]

    def die(self) -> None:
        member = self.one()
        if member is not None:
            del self.members[member.name]

    def resubscribe(self) -> None:
        member = self.one()
        if member is not None:
            member.topics, member.tells = self.dice.sample(NAMES, self.dice.randrange(1, 4)), True

    def change_topics(self) -> None:
        name = self.dice.choice(NAMES)
        cluster, node = self.bench.node.cluster, self.bench.node
        topic = cluster.topics.get(name)
        if topic is None:
            make_topic(node, name, partitions=self.dice.randrange(1, 4))
        elif self.dice.random() < 0.5:
            more = CreatePartitionsTopic(name=name, count=len(topic.partitions) + 1, assignments=None)
            ask(node, CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
        else:
            cluster.delete_topics([topic], self.bench.clock.now_ms())
            node.forget_topics([name], self.bench.clock.now_ms())
            self.leaders = {key: each for key, each in self.leaders.items() if key.topic_id != topic.id}

    def change_faults(self) -> None:
        self.loses_answers = self.dice.random() < 0.3
        self.refuses = {name for name in ("groups", "states") if self.dice.random() < 0.2}

    def administer(self) -> None:
        """Alter or delete the group's offsets, or delete the group.

        The coordinator refuses these requests while the group has members.
        """
        what = self.dice.randrange(3)
        names = [name for name in self.partitions() if self.dice.random() < 0.7]
        if what == 0 and names:
            self.bench.alter({(name, 0): self.dice.randrange(10) for name in names}, GROUP)
        elif what == 1 and names:
            self.bench.drop(*names, group=GROUP)
        elif what == 2:
            self.bench.delete_group(GROUP)
            if GROUP not in self.bench.node.groups.share.groups:
                self.group_epoch = 0
                for member in self.members.values():
                    member.epoch, member.tells, member.assigned = 0, True, set()
        if not self.bench.describe(GROUP).members:
            self.leaders.clear()  # states may have begun anew

    def lead(self) -> None:
        """Write a new state for an assigned share partition, as the leader of the partition does."""
        member = self.one()
        existing = set().union(*self.partitions().values())
        assigned = sorted(member.assigned & existing) if member is not None else []
        if not assigned:
            return
        key = ShareKey(GROUP, *self.dice.choice(assigned))
        service = self.bench.node.share_states
        leader = self.leaders.get(key)
        if leader is None or self.dice.random() < 0.1:
            self.take_over(key)
            return
        first = leader.start + self.dice.randrange(10)
        ranks = [
            (self.dice.randrange(1, 4), self.dice.choice([0, 2, 4])) for _ in range(self.dice.randrange(1, 4))
        ]
        batches = tuple(
            StateBatch(first + 2 * number, first + 2 * number + 1, state, deliveries)
            for number, (deliveries, state) in enumerate(ranks)
        )
        start = leader.start + self.dice.randrange(3)
        outcome = service.write(key, WrittenShareState(leader.state_epoch, leader.epoch, start, -1, batches))
        if outcome.code in NOT_STORED:
            return
        if outcome.code in (E.FENCED_STATE_EPOCH, E.INVALID_REQUEST):
            del self.leaders[key]
            return
        assert outcome.code == 0, outcome.message
        leader.start = start
        for batch in batches:
            for offset in range(batch.first_offset, batch.last_offset + 1):
                rank = batch.deliveries, batch.state
                leader.ranks[offset] = max(leader.ranks.get(offset, rank), rank)
        leader.ranks = {offset: rank for offset, rank in leader.ranks.items() if offset >= start}

    def take_over(self, key: ShareKey) -> None:
        """Read the state as a new leader with a higher leader epoch; the previous leader is then fenced."""
        service = self.bench.node.share_states
        before = self.leaders.get(key)
        leader = Leader()
        leader.epoch = (before.epoch if before else self.dice.randrange(3)) + 1
        outcome = service.read(key, leader.epoch)
        if outcome.code:
            assert outcome.code in (*NOT_STORED, E.FENCED_LEADER_EPOCH, E.INVALID_REQUEST), outcome
            return
        state = outcome.state
        assert state is not None
        leader.state_epoch, leader.start = state.state_epoch, max(state.start_offset, 0)
        leader.ranks = ranks_of(state.batches)
        if before is not None and before.state_epoch == state.state_epoch:
            assert (leader.start, leader.ranks) == (before.start, before.ranks), f"{key} has lost something"
            stale = service.write(key, WrittenShareState(before.state_epoch, before.epoch, -1, -1, ()))
            assert stale.code in (E.FENCED_LEADER_EPOCH, *NOT_STORED), "an old leader is not fenced"
        self.leaders[key] = leader

    # --- laws --------------------------------------------------------------------------------------------

    def check(self) -> None:
        group = self.bench.node.groups.share.groups.get(GROUP)
        if group is None:
            return
        assert group.stored.epoch >= self.group_epoch, "the group epoch goes back"
        self.group_epoch = group.stored.epoch
        assert group.stored.target_epoch <= group.stored.epoch
        existing = set().union(*self.partitions().values())
        for member_id, current in group.stored.currents.items():
            assert member_id in group.stored.members
            assert current.epoch <= group.stored.epoch
            for topic_id, index in current.assigned & existing:
                outcome = self.bench.node.share_states.summary(ShareKey(GROUP, topic_id, index))
                has_state = outcome.state is not None and outcome.state.created_ms > 0
                assert has_state, f"{member_id} has a partition without a state"

    def quieten(self) -> None:
        """Let all members send heartbeats, without faults, until no assignment changes any more."""
        self.loses_answers, self.refuses = False, set()
        for name in NAMES:
            if name not in self.bench.node.cluster.topics:
                make_topic(self.bench.node, name)
        if not self.members:
            self.join()
        self.bench.wait(46)  # who died leaves
        for _ in range(4):
            for member in self.members.values():
                self.beat(member)
            self.bench.wait(RETRY_S)
        for _ in range(4):
            for member in self.members.values():
                self.beat(member)
                self.beat(member)
            self.bench.wait(1.5)
        described = self.bench.describe(GROUP)
        assert {each.member_id for each in described.members} == set(self.members)
        assert described.group_epoch == described.assignment_epoch
        assigned = {
            each.member_id: {
                (topic.topic_id, index)
                for topic in each.assignment.topic_partitions
                for index in topic.partitions
            }
            for each in described.members
        }
        partitions = self.partitions()
        wanted = set().union(*(partitions[name] for each in self.members.values() for name in each.topics))
        assert set().union(*assigned.values()) == wanted
        assert all(assigned.values()), "a member has nothing"
        for key in list(self.leaders):
            self.take_over(key)


def ranks_of(batches: tuple[StateBatch, ...]) -> dict[int, tuple[int, int]]:
    """Return a dict from the offset of each record to its delivery count and state."""
    return {
        offset: (batch.deliveries, batch.state)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
