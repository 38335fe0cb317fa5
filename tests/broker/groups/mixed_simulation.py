"""A simulation, from one seed, of a group whose members change between the classic protocol and KIP-848.

Members of both protocols join, leave, die, stall and lose answers; the coordinator restarts, writes to its
disk fail, topics grow.

`MixedWorld(seed).run()` raises AssertionError, with the seed, if an invariant is broken. At any time: no
partition has two owners, neither in the coordinator's state nor among the members that it lists; epochs and
generations only grow. After a quiet period: every member is in the group, and every partition is assigned to
one member.

The simulation calls the broker's request handlers. Leaders of classic groups assign with the client's
assignors.
"""

from __future__ import annotations

from random import Random
from typing import Any

from broker.groups.bench_group import Asked
from broker.groups.mixed_bench import MixedBench
from broker.groups.requests import heartbeat_request, join_request, leave_request, sync_request
from penstock.broker.groups.classic.states import State
from penstock.client.assignors import assignor_named
from penstock.client.assignors.member_metadata import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.errors import StorageError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode as E
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

STEPS = 220
SETTINGS = {
    "group_consumer_min_session_timeout_ms": 1_000,
    "group_consumer_session_timeout_ms": 20_000,
    "group_consumer_heartbeat_interval_ms": 5_000,
}
RETRIED = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.UNRELEASED_INSTANCE_ID)


class Member:
    """The common part of classic and KIP-848 members: name, instance id and owned partitions."""

    is_classic = False

    def __init__(self, world: MixedWorld, name: str, instance: str | None) -> None:
        self.world = world
        self.name = name
        self.id = name
        self.instance = instance
        self.epoch = 0
        self.owned: frozenset[int] = frozenset()
        self.is_alive = True

    def die(self) -> None:
        self.is_alive = False
        self.owned = frozenset()


class NewMember(Member):
    """A simulated member of the KIP-848 protocol."""

    def __init__(self, world: MixedWorld, name: str, instance: str | None) -> None:
        super().__init__(world, name, instance)
        self.is_full = True
        self.tells = False

    def step(self, is_lost: bool = False) -> None:
        fields: dict[str, Any] = {}
        if self.epoch == 0:
            self.owned = frozenset()
        if self.epoch == 0 or self.is_full:
            fields = {"rebalance_timeout_ms": 15_000, "subscribed_topic_names": ["t"]}
        if self.epoch == 0 or self.is_full or self.tells:
            fields["owned"] = sorted(self.owned)
        new = self.world.bench.new
        answer = new.beat(self.id, self.epoch, instance_id=self.instance, **fields)
        self.world.bench.run()
        if is_lost:
            self.is_full = True
            return
        code = answer.error_code
        if not code:
            self.is_full, self.tells, self.epoch = False, False, answer.member_epoch
            assigned = new.assigned(answer)
            if assigned is not None and frozenset(assigned.get("t", ())) != self.owned:
                self.owned, self.tells = frozenset(assigned.get("t", ())), True
        elif code in (E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND):
            self.epoch, self.owned, self.is_full = 0, frozenset(), True
        elif code == E.FENCED_INSTANCE_ID:
            self.die()
        else:
            assert code in RETRIED, answer
            self.is_full = True

    def leave(self, epoch: int = -1) -> None:
        self.die()
        self.world.bench.new.beat(self.id, epoch, instance_id=self.instance)
        self.world.bench.run()


class OldMember(Member):
    """A simulated classic member. In one run all classic members are eager, or all are cooperative."""

    is_classic = True

    def __init__(self, world: MixedWorld, name: str, instance: str | None) -> None:
        super().__init__(world, name, instance)
        self.id = ""
        self.epoch = -1
        self.joined: Asked | None = None
        self.synced: Asked | None = None
        self.must_join = True

    def step(self, is_lost: bool = False) -> None:
        if is_lost and (self.joined or self.synced):
            self.joined = self.synced = None  # the connection breaks
            self.must_join = True
        elif self.joined is not None:
            if not self.joined.waits:
                self._take_join(self.joined.response)
        elif self.synced is not None:
            if not self.synced.waits:
                self._take_sync(self.synced.response)
        elif self.must_join:
            self._join()
        else:
            request = heartbeat_request(self.id, self.epoch, group_instance_id=self.instance)
            code = self.world.bench.ask(request).code
            if not is_lost and not self._is_refused(code):
                self.must_join = code == E.REBALANCE_IN_PROGRESS

    def _join(self) -> None:
        if not self.world.is_cooperative:
            self.owned = frozenset()
        owned = tuple(TopicPartition("t", index) for index in sorted(self.owned))
        metadata = encode_subscription(Subscription(("t",), owned, generation=self.epoch))
        request = join_request(
            self.id,
            protocols={self.world.strategy: metadata},
            instance=self.instance,
            session_timeout_ms=12_000,
            rebalance_timeout_ms=15_000,
        )
        self.joined = self.world.bench.ask(request, 5, self.name)

    def _take_join(self, response: Any) -> None:
        self.joined = None
        code = response.error_code
        if code == E.MEMBER_ID_REQUIRED:
            self.id = response.member_id
        elif not code:
            self.id, self.epoch, self.must_join = response.member_id, response.generation_id, False
            self._sync(response)
        elif not self._is_refused(code):
            assert code == E.REBALANCE_IN_PROGRESS, response

    def _sync(self, joined: Any) -> None:
        given = {}
        if joined.leader == self.id and joined.members:
            members = {
                each.member_id: decode_subscription(each.metadata, each.group_instance_id)
                for each in joined.members
            }
            counts = {"t": self.world.count}
            found = assignor_named(self.world.strategy).assign(counts, members)
            given = {member: encode_assignment(places) for member, places in found.items()}
        named = {"protocol_type": "consumer", "protocol_name": self.world.strategy}
        request = sync_request(self.id, self.epoch, given, group_instance_id=self.instance, **named)
        self.synced = self.world.bench.ask(request, 5, self.name)

    def _take_sync(self, response: Any) -> None:
        self.synced = None
        if not response.error_code:
            before = self.owned
            self.owned = frozenset(place.partition for place in decode_assignment(response.assignment))
            # A cooperative member that has given something up has the others told by joining again.
            self.must_join = self.world.is_cooperative and not before <= self.owned
        elif not self._is_refused(response.error_code):
            assert response.error_code == E.REBALANCE_IN_PROGRESS, response
            self.must_join = True

    def _is_refused(self, code: int) -> bool:
        """React to an error code: end, reset the membership, or join again.

        Returns True if the code was an error.
        """
        if code == E.FENCED_INSTANCE_ID:
            self.die()
        elif code in (E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION):
            self.owned, self.must_join, self.epoch = frozenset(), True, -1
            if code == E.UNKNOWN_MEMBER_ID:
                self.id = ""
        elif code in RETRIED:
            self.must_join = True
        else:
            return False
        return True

    def leave(self) -> None:
        self.die()
        self.world.bench.ask(leave_request(self.id), 3)


class MixedWorld:
    """One simulated run of a group with members of both protocols, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = Random(seed)
        self.is_cooperative = self.dice.random() < 0.6
        self.strategy = "cooperative-sticky" if self.is_cooperative else "range"
        self.bench = MixedBench(**SETTINGS)
        self.disk_refuses = self.has_refused = False
        self.present: set[str] = set()
        self.members: list[Member] = []
        self.number = 0
        self.count = 4
        self.highest = 0
        self.kinds_seen: list[str] = []

    def run(self) -> None:
        """Run the simulation to its end.

        Raises:
            AssertionError: an invariant is broken. The message names the seed.
        """
        try:
            for _ in range(STEPS):
                self.bench.wait(self.dice.choice([50, 300, 1000, 2500]))
                self.happen()
                self.check()
            self.calm_down()
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}: {error}") from error

    def living(self) -> list[Any]:
        return [member for member in self.members if member.is_alive]

    def happen(self) -> None:
        event = self.dice.choices(
            [self.step, self.arrive, self.depart, self.roll, self.restart, self.turn_disk, self.grow],
            [80, 5, 4, 4, 2, 2, 1],
        )[0]
        event()

    def step(self) -> None:
        if self.living():
            self.dice.choice(self.living()).step(self.dice.random() < 0.1)

    def arrive(self, kind: type[Member] | None = None, instance: str | None = None) -> None:
        if len(self.living()) >= 5:
            return
        self.number += 1
        if instance is None and self.dice.random() < 0.25:
            instance = f"i-{self.dice.randrange(2)}"
            if any(each.instance == instance for each in self.living()):
                return
        kind = kind or self.dice.choice([NewMember, OldMember])
        self.members.append(kind(self, f"m-{self.number}", instance))

    def depart(self) -> None:
        """Let a member leave the group, or die without a leave request."""
        if self.living():
            member = self.dice.choice(self.living())
            if self.dice.random() < 0.6:
                member.leave()
            else:
                member.die()

    def roll(self) -> None:
        """Restart a member with the other group protocol; a static member does not leave the group for it."""
        if not self.living():
            return
        member = self.dice.choice(self.living())
        if member.instance is None:
            member.leave()
        elif member.is_classic:
            member.die()
        else:
            member.leave(-2)
        self.arrive(NewMember if member.is_classic else OldMember, member.instance)

    def restart(self) -> None:
        """Start another coordinator from the stored state; waiting requests get no answer."""
        self.bench = self.bench.again()
        self.turn_disk(refuses=False)
        if self.has_refused:
            self.highest = 0  # a generation that could not be stored has not been
        self.has_refused = False
        for member in self.living():
            if member.is_classic and (member.joined or member.synced):
                member.joined = member.synced = None
                member.must_join = True

    def turn_disk(self, *, refuses: bool | None = None) -> None:
        topic = self.bench.node.groups.store.topic
        if refuses is None:
            refuses = not self.disk_refuses and self.dice.random() < 0.5
        self.disk_refuses = refuses
        self.has_refused = self.has_refused or refuses
        if refuses:
            topic.append = _refuse  # type: ignore[method-assign]
        else:
            vars(topic).pop("append", None)

    def grow(self) -> None:
        """Add one partition to the topic, unless it has 7 partitions."""
        if self.count < 7:
            self.count += 1
            grown = CreatePartitionsTopic(name="t", count=self.count, assignments=None)
            self.bench.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=1000))

    def calm_down(self) -> None:
        """Let all sessions and rebalances end, without faults; then check that the group is stable."""
        self.turn_disk(refuses=False)
        for _ in range(60):
            self.bench.wait(3000)
            for _ in range(4):
                for member in self.living():
                    member.step()
                self.bench.wait(10)
                self.check()
        living = self.living()
        groups = self.bench.node.groups
        group = groups.consumer.groups.get("g") or groups.coordinator.groups.get("g")
        if not living:
            assert group is None or group.can_be_deleted, group
            return
        assert group is not None
        assert str(group.state) == "Stable", (group, groups.consumer.groups)
        if all(each.is_classic for each in living) and "g" in groups.coordinator.groups:
            # Its leader does not look at topics here; what was there when it assigned is shared.
            owned = sorted(place for each in living for place in each.owned)
            assert owned == list(range(len(owned)))
            assert len(owned) >= 4
        else:
            assert sorted(place for each in living for place in each.owned) == list(range(self.count))

    # --- laws --------------------------------------------------------------------------------------------

    def check(self) -> None:
        groups = self.bench.node.groups
        consumer, classic = groups.consumer.groups.get("g"), groups.coordinator.groups.get("g")
        assert consumer is None or classic is None, "a group of both kinds"
        if consumer is not None:
            self._check_consumer(consumer.stored)
            self._grows(consumer.stored.epoch, set(consumer.stored.subscriptions))
            self.kinds_seen.append("consumer")
        elif classic is not None:
            self._grows(classic.generation, set(classic.members))
            self._check_classic(classic)
            self.kinds_seen.append("classic")

    def _grows(self, epoch: int, present: set[str]) -> None:
        if self.present.isdisjoint(present):
            self.highest = 0  # an empty group may begin anew, with the other protocol
        self.present = present
        assert epoch >= self.highest, f"the epoch went back from {self.highest} to {epoch}"
        self.highest = epoch

    def _check_consumer(self, stored: Any) -> None:
        owners: dict[Any, str] = {}
        for member_id, current in stored.currents.items():
            for partition in (*current.assigned, *current.revoking):
                assert owners.setdefault(partition, member_id) == member_id, "two owners at the coordinator"
        assert owners == stored.owners
        counted = []
        for member in self.living():
            current = stored.currents.get(member.id)
            if current is None or current.epoch <= 0 or member.epoch <= 0:
                continue  # it is out, and may not have heard of it
            known = {index for _, index in (*current.assigned, *current.revoking)}
            assert member.owned <= known, f"{member.id} owns {member.owned}, and was assigned {known}"
            counted.append(member)
        self._no_two_own(counted)

    def _check_classic(self, group: Any) -> None:
        if group.state is State.STABLE:
            self._no_two_own(
                [
                    each
                    for each in self.living()
                    if each.id in group.members and each.epoch == group.generation
                ]
            )

    def _no_two_own(self, members: list[Any]) -> None:
        holders: dict[int, str] = {}
        for member in members:
            for index in member.owned:
                assert holders.setdefault(index, member.name) == member.name, f"two members own {index}"


def _refuse(*what: Any) -> None:
    raise StorageError("the disk refuses")
