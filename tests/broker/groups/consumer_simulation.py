"""A simulation of a coordinator of consumer groups and its members, driven by one seed.

Messages are lost; members die, leave, come back and change their subscriptions; topics grow and are deleted;
the coordinator restarts; writes to its disk fail.

`ConsumerWorld(seed).run()` raises AssertionError, with the seed, if an invariant is broken. At any time: no
partition has two owners, neither in the coordinator's state nor among the members; a member owns only
partitions that the coordinator has recorded for it; epochs only grow. After a quiet period: the group is
stable, and every subscribed partition is assigned.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from penstock.broker.coordination.timers import Timers
from penstock.broker.groups.consumer import records
from penstock.broker.groups.consumer.coordinator import ConsumerCoordinator, ConsumerPlan
from penstock.broker.groups.consumer.group import ConsumerGroup, Heartbeat, HeartbeatResult
from penstock.broker.groups.consumer.records import records_of
from penstock.broker.groups.consumer.state import Change, Partition
from penstock.broker.groups.planned import LateRecords
from penstock.broker.groups.records import ConsumerGroupKey, StoredRecord, read_record
from penstock.broker.groups.settings import ConsumerGroupSettings
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode as E

GROUP = "g"
HEARTBEAT_S = 3.0
SETTINGS = ConsumerGroupSettings(session_timeout_ms=20_000, heartbeat_interval_ms=3_000)
REBALANCE_MS = 15_000
STEPS = 300
RECORDS = LateRecords(ConsumerGroupKey, lambda: records)


class Topic:
    """A topic in the simulated metadata, with an id and a number of partitions."""

    def __init__(self, topic_id: bytes, count: int) -> None:
        self.id = topic_id
        self.partitions: list[None] = [None] * count


class Topics:
    """The simulated cluster metadata that the coordinator reads: topics by name, and a version."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.version = 0


class Client:
    """A simulated consumer: the epoch and the partitions it has from its last answer.

    It has at most one request in flight.
    """

    def __init__(self, world: ConsumerWorld, name: str, instance: str | None) -> None:
        self.world = world
        self.id = name
        self.instance = instance
        self.epoch = 0
        self.owned: frozenset[Partition] = frozenset()
        self.target: frozenset[Partition] = frozenset()
        self.topics: tuple[str, ...] | None = None
        self.regex: str | None = None
        self.is_alive = True
        self.is_full = True
        """True if the next heartbeat has all fields: the member joins, or an answer was lost."""
        self.tells = False
        """True if the next heartbeat lists the owned partitions, because they have changed."""
        self.choose()

    def choose(self) -> None:
        """Change the subscription to random topics and a random regular expression."""
        dice = self.world.dice
        self.topics = tuple(sorted(dice.sample(["a", "b", "c"], dice.randrange(1, 4))))
        self.regex = dice.choice(["", "", "[ab]", ".*", "x.*"])
        self.is_full = True

    def request(self) -> Heartbeat:
        if self.epoch == 0:
            return self._beat(frozenset(), full=True)
        owned = self.owned if self.is_full or self.tells else None
        return self._beat(owned, full=self.is_full)

    def _beat(self, owned: frozenset[Partition] | None, *, full: bool) -> Heartbeat:
        return Heartbeat(
            self.id,
            self.epoch,
            self.instance,
            None,
            REBALANCE_MS if full else -1,
            self.topics if full else None,
            self.regex if full else None,
            None,
            owned,
        )

    def answered(self, answer: HeartbeatResult) -> None:
        """Adopt the epoch and assignment of a response.

        The next heartbeat lists a changed assignment.
        """
        self.is_full = False
        self.tells = False
        self.epoch = answer.epoch
        if answer.assignment is not None and frozenset(answer.assignment) != self.owned:
            self.owned = frozenset(answer.assignment)
            self.tells = True

    def fenced(self) -> None:
        """Drop all partitions, so that the next heartbeat joins the group again."""
        self.owned = frozenset()
        self.epoch = 0
        self.is_full = True


class ConsumerWorld:
    """One simulated run of a consumer group, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.now = 1000.0
        self.view = Topics()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.disk_refuses = False
        self.clients: list[Client] = []
        self.count = 0
        self.group_epoch = 0
        self.epochs: dict[str, int] = {}
        self.change_topics()
        self.restart()

    # --- the broker --------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Start a new coordinator from the stored log: the last record of each key counts."""
        self.timers = Timers()
        self.coordinator = ConsumerCoordinator(
            lambda group_id: SETTINGS, self.view, self.timers, compile_regex
        )
        stored: dict[Any, Change | None] = {}
        for key, value in self.log:
            read = read_record(key, value, [RECORDS])
            assert isinstance(read, StoredRecord)
            stored[read.key] = read.value
        self.coordinator.restore(stored, self.now)

    def store(self, plan: ConsumerPlan) -> bool:
        if plan.changes and self.disk_refuses:
            return False
        self.log += records_of(GROUP, plan.changes)
        return True

    def settle(self) -> None:
        self.timers.run(self.now)
        for timer, make_plan in self.coordinator.timers.take():
            plan = make_plan(self.now, self.now_ms)
            if plan is None:
                continue
            if self.store(plan):
                self.coordinator.accept(plan, self.now)
            else:
                self.coordinator.timers.fire_again(timer, self.now)
        self.check()

    @property
    def now_ms(self) -> int:
        return round(self.now * 1000)

    def ask(self, beat: Heartbeat) -> HeartbeatResult | int:
        """Let the coordinator handle a heartbeat; return the result or the error code."""
        self.settle()
        try:
            plan = self.coordinator.heartbeat(GROUP, beat, self.now_ms)
        except KafkaError as error:
            return error.code
        if not self.store(plan):
            return int(E.NOT_COORDINATOR)
        self.coordinator.accept(plan, self.now, lambda topic: True)
        self.check()
        self.settle()
        assert plan.answer is not None
        return plan.answer

    # --- what happens ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the simulation to its end.

        Raises:
            AssertionError: an invariant is broken. The message names the seed.
        """
        try:
            for _ in range(STEPS):
                self.now += self.dice.choice([0.05, 0.3, 1.0, 2.5])
                self.happen()
            self.calm_down()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}: {error}") from error

    def happen(self) -> None:
        event = self.dice.choices(
            [self.beat, self.arrive, self.depart, self.change_subscription, self.change_topics, self.restart,
             self.turn_disk, self.bounce],
            [60, 6, 4, 2, 2, 2, 2, 2],
        )[0]  # fmt: skip
        event()
        self.settle()

    def living(self) -> list[Client]:
        return [client for client in self.clients if client.is_alive]

    def arrive(self) -> None:
        if len(self.living()) < 6:
            self.count += 1
            instance = f"i-{self.dice.randrange(3)}" if self.dice.random() < 0.3 else None
            if instance is None or all(each.instance != instance for each in self.living()):
                self.clients.append(Client(self, f"m-{self.count}", instance))

    def depart(self) -> None:
        """Let a client leave the group, or die without a leave request."""
        if self.living():
            client = self.dice.choice(self.living())
            client.is_alive = False
            client.owned = frozenset()
            if self.dice.random() < 0.6:
                self.ask(Heartbeat(client.id, -1, client.instance))

    def bounce(self) -> None:
        """Let a static member leave temporarily, and return with a new member id."""
        static = [client for client in self.living() if client.instance is not None]
        if static:
            client = self.dice.choice(static)
            client.is_alive = False
            client.owned = frozenset()
            self.ask(Heartbeat(client.id, -2, client.instance))
            self.count += 1
            self.clients.append(Client(self, f"m-{self.count}", client.instance))

    def change_subscription(self) -> None:
        if self.living():
            self.dice.choice(self.living()).choose()

    def change_topics(self) -> None:
        topics = self.view.topics
        self.view.version += 1
        name = self.dice.choice(["a", "b", "c", "x", "xy"])
        if name not in topics:
            topics[name] = Topic(self.dice.randbytes(16), self.dice.randrange(1, 6))
        elif self.dice.random() < 0.3:
            del topics[name]
        else:
            topics[name].partitions.append(None)

    def turn_disk(self) -> None:
        self.disk_refuses = not self.disk_refuses and self.dice.random() < 0.5

    def beat(self) -> None:
        """Let a random client send its next heartbeat; the request or the response may be lost."""
        if not self.living():
            return
        client = self.dice.choice(self.living())
        chance = self.dice.random()
        if chance < 0.1:
            client.is_full = True  # the request is lost, which the client cannot know
            return
        outcome = self.ask(client.request())
        if chance < 0.2:
            client.is_full = True  # the answer is lost
            return
        self.take(client, outcome)

    def take(self, client: Client, outcome: HeartbeatResult | int) -> None:
        if isinstance(outcome, HeartbeatResult):
            client.answered(outcome)
        elif outcome in (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND):
            client.fenced()
        elif outcome == E.FENCED_INSTANCE_ID:
            client.is_alive = False
            client.owned = frozenset()
        else:
            assert outcome in (E.NOT_COORDINATOR, E.UNRELEASED_INSTANCE_ID), outcome
            client.is_full = True
        self.check()

    def calm_down(self) -> None:
        """Let all sessions and rebalances end, without faults; then check that the group is stable."""
        self.disk_refuses = False
        for _ in range(40):
            self.now += HEARTBEAT_S
            self.settle()
            for client in self.living():
                self.take(client, self.ask(client.request()))
        group = self.group()
        if group is None:
            assert not self.living()
            return
        assert set(group.stored.subscriptions) == {client.id for client in self.living()}
        assert group.state == ("Stable" if self.living() else "Empty"), group
        wanted: set[Partition] = set()
        for client in self.living():
            for name, topic in self.view.topics.items():
                if name in (client.topics or ()) or (client.regex and re.fullmatch(client.regex, name)):
                    wanted |= {(topic.id, index) for index in range(len(topic.partitions))}
        owned = [partition for client in self.living() for partition in client.owned]
        assert set(owned) == wanted
        assert len(owned) == len(wanted)

    # --- laws --------------------------------------------------------------------------------------------

    def group(self) -> ConsumerGroup | None:
        return self.coordinator.groups.get(GROUP)

    def check(self) -> None:
        group = self.group()
        if group is None:
            return
        stored = group.stored
        assert stored.epoch >= self.group_epoch, "the epoch of the group went back"
        self.group_epoch = stored.epoch
        assert stored.targeted == sum(map(len, stored.targets.values()))
        assert stored.regex_members == sum(bool(each.regex) for each in stored.subscriptions.values())
        owners: dict[Partition, str] = {}
        for member_id, current in stored.currents.items():
            for partition in (*current.assigned, *current.revoking):
                assert owners.setdefault(partition, member_id) == member_id, "two owners at the coordinator"
            if current.epoch > 0:
                assert current.epoch >= self.epochs.get(member_id, 0), "the epoch of a member went back"
                assert current.epoch <= stored.epoch
                self.epochs[member_id] = current.epoch
        assert owners == stored.owners
        holders: dict[Partition, str] = {}
        for client in self.living():
            current = stored.currents.get(client.id)
            if client.epoch <= 0 or current is None:
                continue  # fenced, which it may not know yet
            known = {**current.assigned, **current.revoking}
            assert client.owned <= known.keys(), f"{client.id} owns what it was not assigned"
            for partition in client.owned:
                assert holders.setdefault(partition, client.id) == client.id, "two members own a partition"


def compile_regex(text: str) -> Callable[[str], bool]:
    pattern = re.compile(text)
    return lambda name: pattern.fullmatch(name) is not None
