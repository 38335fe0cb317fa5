"""A simulation of the client's KIP-848 group members and the broker's coordinator, from one seed.

`MembersWorld(seed).run()` raises AssertionError, with the seed, if an invariant is broken. Requests and
answers are lost or delayed; applications stall, close, crash and come back; topics grow, are deleted and are
created anew; metadata are outdated; the coordinator restarts and writes to its disk fail. The invariants are
those of `broker.groups.consumer_simulation`, applied to what the members' applications own.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.groups.consumer_simulation import GROUP, HEARTBEAT_S, REBALANCE_MS, ConsumerWorld
from penstock.broker.groups.consumer.group import Heartbeat, HeartbeatResult
from penstock.broker.groups.consumer.state import Partition
from penstock.broker.groups.metadata_view import by_topic
from penstock.client.group.consumer_membership import ConsumerMembership
from penstock.client.group.requests import (
    AssignmentChange,
    ChangeKind,
    FindGroupCoordinator,
    MemberSettings,
    NameTopics,
    Outgoing,
)
from penstock.client.group.state_machine import Phase
from penstock.errors import KafkaError, NetworkError, RequestTimeoutError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

NODE = 1


class Arriving(NamedTuple):
    """A response or error that will reach a member at a later time."""

    at: float
    ticket: int
    outcome: object


class OurMember:
    """The client's real group member with a simulated application.

    It has the attributes of the simulation's own clients, so that the same checks apply.
    """

    def __init__(self, world: MembersWorld, name: str, instance: str | None) -> None:
        self.world = world
        self.instance = instance
        self.is_alive = True
        self.is_leaving = False
        self.stalled_until = 0.0
        self.names = 0
        settings = MemberSettings(
            GROUP, instance, max_poll_interval_ms=REBALANCE_MS, request_timeout_ms=8_000
        )
        self.membership = ConsumerMembership(
            settings, lambda: self._make_id(name), lambda tries: min(1000.0, 100.0 * 2**tries)
        )
        self.wire: list[Outgoing] = []
        self.arriving: list[Arriving] = []
        self.change: AssignmentChange | None = None
        """The assignment change whose callback is running; None if no callback runs."""
        self.told: list[AssignmentChange] = []
        self.held: set[tuple[str, int]] = set()
        """The partitions that callbacks have assigned and not revoked."""
        self.topics: tuple[str, ...] = ()
        self.regex: str | None = None
        self.choose()

    def _make_id(self, name: str) -> str:
        self.names += 1
        return f"{name}.{self.names}"

    @property
    def id(self) -> str:
        return self.membership.member_id

    @property
    def epoch(self) -> int:
        return self.membership.generation

    @property
    def owned(self) -> frozenset[Partition]:
        membership = self.membership
        return frozenset(membership._target.owned_by_id(membership.owned)) if self.is_alive else frozenset()

    def choose(self) -> None:
        """Change the subscription to random topics and a random regular expression."""
        dice = self.world.dice
        self.topics = tuple(sorted(dice.sample(["a", "b", "c"], dice.randrange(1, 4))))
        self.regex = dice.choice([None, None, "^[ab]", "^.*", "^x.*"])
        wanted = [*self.topics, *([self.regex] if self.regex else [])]
        self.membership.subscribe(wanted, self.world.ms)

    def close(self) -> None:
        """Begin to leave the group: owned partitions are revoked first."""
        self.is_leaving = True
        self.membership.leave(self.world.ms)

    def crash(self) -> None:
        self.is_alive = False
        self.wire.clear()
        self.arriving.clear()

    def poll(self) -> None:
        """Let the application poll and run callbacks for changes.

        A callback may last until a later poll.
        """
        world, membership = self.world, self.membership
        if world.now < self.stalled_until:
            return
        membership.polled(world.ms)
        error = membership.take_error()
        if error is not None and not self.is_leaving:
            if isinstance(error, KafkaError) and error.code == ErrorCode.FENCED_INSTANCE_ID:
                self.crash()
                return
            # The disk, or a crashed member's session, may have kept it out for longer than it waits.
            is_passing = isinstance(error, KafkaError) and error.code == ErrorCode.UNRELEASED_INSTANCE_ID
            assert is_passing or isinstance(error, RequestTimeoutError), error
        while True:
            change = self.change or membership.next_change()
            if change is None:
                return
            self.change = change
            if change.kind is ChangeKind.REVOKED and world.is_rough and world.dice.random() < 0.3:
                return
            self.change = None
            self._note(change)
            membership.confirm(change, world.ms)

    def _note(self, change: AssignmentChange) -> None:
        """Check that callbacks revoke only assigned partitions, and assign none twice."""
        self.told.append(change)
        partitions = set(change.partitions)
        if change.kind is ChangeKind.ASSIGNED:
            assert not self.held & partitions, "assigned twice"
            self.held |= partitions
        else:
            assert partitions <= self.held, "taken without having been given"
            self.held -= partitions

    def work(self) -> None:
        """Deliver due responses, advance the member, and send its requests."""
        world, membership = self.world, self.membership
        due = [each for each in self.arriving if each.at <= world.now]
        self.arriving = [each for each in self.arriving if each.at > world.now]
        for each in due:
            membership.answered(each.ticket, each.outcome, world.ms)
        membership.advance(world.ms)
        self.wire += membership.take_requests()
        while self.wire:
            self.deliver(self.wire.pop(0))
        if self.is_leaving and membership.phase is Phase.OUT:
            assert not self.held
            self.is_alive = False

    def deliver(self, outgoing: Outgoing) -> None:
        """Carry a request to the coordinator; it may be lost, and its answer lost or delayed."""
        world = self.world
        dice, is_rough = world.dice, world.is_rough
        chance = dice.random() if is_rough else 1.0
        if chance < 0.05:
            self._arrive(outgoing, RequestTimeoutError("lost"), outgoing.timeout_ms / 1000)
            return
        outcome = self._ask(outgoing)
        if chance < 0.1:
            self._arrive(outgoing, NetworkError("the answer is lost"), dice.choice([0.0, 2.0, 8.0]))
        else:
            self._arrive(outgoing, outcome, dice.choice([0.0, 0.0, 0.1, 3.0]) if is_rough else 0.0)

    def _arrive(self, outgoing: Outgoing, outcome: object, delay_s: float) -> None:
        self.arriving.append(Arriving(self.world.now + delay_s, outgoing.ticket, outcome))

    def _ask(self, outgoing: Outgoing) -> object:
        call, world = outgoing.call, self.world
        if isinstance(call, FindGroupCoordinator):
            if world.is_rough and world.dice.random() < 0.2:
                return error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator")
            return NODE
        if isinstance(call, NameTopics):
            known = {topic.id: name for name, topic in world.view.topics.items()}
            is_behind = world.is_rough and world.dice.random() < 0.3
            return {each: known[each] for each in call.topic_ids if each in known and not is_behind}
        assert isinstance(call, ConsumerGroupHeartbeatRequest)
        return response_of(world.ask(heartbeat_of(call)))


def heartbeat_of(call: ConsumerGroupHeartbeatRequest) -> Heartbeat:
    """Return the coordinator's input for a heartbeat request, as the broker's handler converts it."""
    owned = call.topic_partitions
    return Heartbeat(
        call.member_id,
        call.member_epoch,
        call.instance_id,
        call.rack_id,
        call.rebalance_timeout_ms,
        None if call.subscribed_topic_names is None else tuple(call.subscribed_topic_names),
        call.subscribed_topic_regex,
        call.server_assignor,
        None if owned is None else frozenset((each.topic_id, n) for each in owned for n in each.partitions),
    )


def response_of(answer: HeartbeatResult | int) -> ConsumerGroupHeartbeatResponse:
    """Return the response for a coordinator's result or error code, as the broker's handler converts it."""
    if not isinstance(answer, HeartbeatResult):
        return ConsumerGroupHeartbeatResponse(error_code=answer)
    topics = None
    if answer.assignment is not None:
        topics = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=indexes)
                for topic, indexes in by_topic(answer.assignment).items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=topics,
    )


class MembersWorld(ConsumerWorld):
    """One simulated run of a consumer group of the client's real members, from a seed."""

    members: list[OurMember]

    def __init__(self, seed: int) -> None:
        self.is_rough = True
        super().__init__(seed)
        self.members = self.clients = []  # type: ignore[assignment]

    @property
    def ms(self) -> float:
        return self.now * 1000

    def happen(self) -> None:
        event = self.dice.choices(
            [lambda: None, self.arrive, self.depart, self.change_subscription, self.change_topics,
             self.restart, self.turn_disk, self.bounce, self.stall],
            [60, 6, 3, 2, 2, 2, 2, 2, 2],
        )[0]  # fmt: skip
        event()
        self.turn()

    def turn(self) -> None:
        """Let every application poll, and every member exchange messages."""
        for member in list(self.members):
            if member.is_alive:
                if not self.is_rough or self.dice.random() < 0.7:
                    member.poll()
                member.work()
        self.settle()

    def arrive(self) -> None:
        living = self.members_alive()
        if len(living) < 5:
            self.count += 1
            instance = f"i-{self.dice.randrange(3)}" if self.dice.random() < 0.3 else None
            if instance is None or all(each.instance != instance for each in living):
                self.members.append(OurMember(self, f"m-{self.count}", instance))

    def members_alive(self) -> list[OurMember]:
        return [member for member in self.members if member.is_alive]

    def depart(self) -> None:
        """Let an application close its consumer, or crash."""
        living = [member for member in self.members_alive() if not member.is_leaving]
        if living:
            member = self.dice.choice(living)
            if self.dice.random() < 0.6:
                member.close()
            else:
                member.crash()

    def bounce(self) -> None:
        """Let a static member close its consumer, and start its application again."""
        static = [each for each in self.members_alive() if each.instance is not None and not each.is_leaving]
        if static:
            member = self.dice.choice(static)
            member.close()
            member.change = None
            while member.is_alive:
                self.now += 0.5
                member.stalled_until = 0.0
                member.poll()
                member.work()
                self.settle()
            self.count += 1
            self.members.append(OurMember(self, f"m-{self.count}", member.instance))

    def stall(self) -> None:
        """Let an application stop polling for 5 or 40 seconds."""
        if self.members_alive():
            self.dice.choice(self.members_alive()).stalled_until = self.now + self.dice.choice([5, 40])

    def change_subscription(self) -> None:
        living = [member for member in self.members_alive() if not member.is_leaving]
        if living:
            self.dice.choice(living).choose()

    def calm_down(self) -> None:
        """Let all sessions and rebalances end, without faults; check that each partition has an owner."""
        self.disk_refuses = False
        self.is_rough = False
        for member in self.members:
            member.stalled_until = 0.0
        for _ in range(120):
            self.now += HEARTBEAT_S / 3
            self.turn()
        group, living = self.group(), self.members_alive()
        if group is None:
            assert not living
            return
        assert set(group.stored.subscriptions) == {member.id for member in living}
        assert group.state == ("Stable" if living else "Empty"), group.state
        wanted = {
            (topic.id, index)
            for member in living
            for name, topic in self.view.topics.items()
            if name in member.topics or (member.regex and self._fits(member.regex, name))
            for index in range(len(topic.partitions))
        }
        owned = [partition for member in living for partition in member.owned]
        assert len(owned) == len(set(owned)), "a partition has two owners"
        assert set(owned) == wanted
        for member in living:
            assert member.held == set(member.membership.owned)
            assert member.membership.phase is Phase.STABLE

    @staticmethod
    def _fits(regex: str, name: str) -> bool:
        from broker.groups.consumer_simulation import compile_regex

        return compile_regex(regex)(name)
