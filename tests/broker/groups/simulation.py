"""A simulation of a classic group coordinator and its members, with one clock, driven by one seed.

Messages are lost, delayed and repeated; members are killed, stall, leave and arrive; the coordinator restarts
from what it has stored; writes to its disk fail.

The coordinator is the broker's, the members are the client's; neither needs a socket. `World(seed).run()`
raises AssertionError, with the seed, if an invariant is broken.

At any time: in one generation a partition is assigned to one member only. After a quiet period: every living
member is in the group, every partition is assigned once, and no request is left waiting.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from penstock.broker.groups.classic.coordinator import ClassicCoordinator
from penstock.broker.groups.classic.member import Caller
from penstock.broker.groups.classic.records import snapshot
from penstock.broker.groups.service import fail_response
from penstock.broker.groups.settings import ClassicGroupSettings
from penstock.client.assignors import assignor_named
from penstock.client.assignors.member_metadata import decode_assignment
from penstock.client.group.membership import Membership, Phase
from penstock.client.group.requests import CountPartitions, FindGroupCoordinator, MemberSettings, Outgoing
from penstock.errors import RequestTimeoutError
from penstock.model import TopicPartition
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.sync_group_request import SyncGroupRequest

GROUP = "g"
TOPICS = {"a": 5, "b": 3}
SESSION_MS, REBALANCE_MS, REQUEST_MS = 10_000, 20_000, 8_000
QUIET_MS = 200_000
"""The length of the quiet period in milliseconds: all timeouts can expire in it, one after another."""

ASSIGNORS = (
    ("range",),
    ("roundrobin",),
    ("sticky",),
    ("cooperative-sticky",),
    ("range", "roundrobin"),
    ("roundrobin", "range"),
)


class Application:
    """A simulated process with a consumer: its group membership, and a loop that polls."""

    def __init__(self, world: World, name: str, assignors: tuple[str, ...], instance: str | None) -> None:
        self.world = world
        self.name = name
        self.instance = instance
        self.assignors = assignors
        self.version = world.dice("members").choice((5, 7, 9) if instance else (0, 1, 3, 4, 5, 9))
        settings = MemberSettings(
            GROUP,
            group_instance_id=instance,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=3_000,
            max_poll_interval_ms=REBALANCE_MS,
            request_timeout_ms=REQUEST_MS,
        )
        self.membership = Membership(settings, [assignor_named(one) for one in assignors])
        self.lives = True
        self.stalled_until = 0.0
        self._timer_at = float("inf")
        # A static member that comes back with other wishes is not asked for them (nor is it at Kafka).
        wishes = (["a", "b"],) if instance else (["a", "b"], ["a", "b"], ["a"])
        self.membership.subscribe(world.dice("members").choice(wishes), world.now_ms)
        world.after(world.dice("polls").uniform(0, 500), self.poll)

    def poll(self) -> None:
        if not self.lives:
            return
        if self.world.now_ms >= self.stalled_until:
            self.membership.polled(self.world.now_ms)
            self.act()
            self.membership.take_error()
            if self.membership.phase is Phase.FENCED:
                self.world.start_again(self)
                return
        self.pump()
        self.world.after(self.world.dice("polls").uniform(100, 800), self.poll)

    def act(self) -> None:
        """Confirm all reported assignment changes, as an application does after its callbacks."""
        for _ in range(10):
            change = self.membership.next_change()
            if change is None:
                return
            self.membership.confirm(change, self.world.now_ms)

    def pump(self) -> None:
        waiting = self.membership.take_requests()
        for outgoing in waiting:
            self.world.send(self, outgoing)
        wake_at = self.membership.wake_at
        if wake_at < self._timer_at or self._timer_at <= self.world.now_ms:
            self._timer_at = wake_at
            if wake_at < float("inf"):
                self.world.at(wake_at, self._wake)

    def _wake(self) -> None:
        if self.lives:
            self._timer_at = float("inf")
            self.membership.advance(self.world.now_ms)
            self.pump()

    def answered(self, outgoing: Outgoing, outcome: object) -> None:
        if not self.lives:
            return
        if isinstance(outcome, RequestTimeoutError) and outgoing.node is not None:
            self.membership.coordinator_lost(outgoing.node, self.world.now_ms)
        self.membership.answered(outgoing.ticket, outcome, self.world.now_ms)
        self.pump()

    def leave(self) -> None:
        self.membership.leave(self.world.now_ms)
        self.act()
        self.pump()
        self.lives = False


class World:
    """One simulated run of a classic group; the seed decides the order of all events."""

    def __init__(self, seed: int, chaos_ms: float = 90_000, *, one_stream: bool = False) -> None:
        """Prepare a run. With `one_stream` all random numbers come from one generator.

        `FAILED_ONCE` has seeds that failed with one generator; they need it to be replayed.
        """
        self.seed = seed
        self.random = Random(seed)
        self._streams: dict[str, Random] | None = None if one_stream else {}
        self.now_ms = 0.0
        self.is_quiet = False
        self.chaos_ms = chaos_ms
        self.stored: dict[str, GroupMetadataValue] = {}
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.applications: list[Application] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._names = count(1)
        self._ids = count(1)
        self._waiting: dict[Any, Callable[[Any], None]] = {}
        self._tickets = count()
        self._alarm_at = float("inf")
        self.assignors = self.dice("assignors").choice(ASSIGNORS)
        self.mixes = len(self.assignors) > 1
        self.loss = self.dice("loss").choice((0.0, 0.02, 0.1, 0.25))
        self.repeat = self.dice("repeat").choice((0.0, 0.05, 0.2))
        self.slowness_ms = self.dice("slowness_ms").choice((5, 200, 4_000))
        self.refusal = self.dice("refusal").choice((0.0, 0.0, 0.1))
        self.delay_ms = self.dice("delay_ms").choice((0, 0, 3_000))
        self.start_coordinator()

    def dice(self, kind: str) -> Random:
        """Return the random generator for one kind of event.

        Each kind has its own, so that a change to the draws of one kind leaves the other kinds of a seed as
        they were.
        """
        if self._streams is None:
            return self.random
        if kind not in self._streams:
            self._streams[kind] = Random(f"{self.seed} {kind}")
        return self._streams[kind]

    # --- time --------------------------------------------------------------------------------------------

    def at(self, when_ms: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(when_ms, self.now_ms), next(self._order), what))

    def after(self, delay_ms: float, what: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, what)

    def run(self) -> World:
        """Run the period with faults, then the quiet period, and check the final state."""
        for _ in range(self.dice("arrivals").randint(1, 5)):
            self.arrive()
        self.after(self.dice("trouble").uniform(0, 5_000), self.trouble)
        self._run_until(self.chaos_ms)
        self.is_quiet = True
        self._run_until(self.chaos_ms + QUIET_MS)
        self.check_settled()
        return self

    def _run_until(self, end_ms: float) -> None:
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, what = heapq.heappop(self._events)
            what()
        self.now_ms = end_ms

    # --- trouble -----------------------------------------------------------------------------------------

    def trouble(self) -> None:
        if self.is_quiet:
            return
        living = [one for one in self.applications if one.lives]
        chance = self.dice("trouble").random()
        if chance < 0.3 or not living:
            if len(living) < 7:
                self.arrive()
        elif chance < 0.45:
            self.dice("victims").choice(living).lives = False
        elif chance < 0.6:
            self.dice("victims").choice(living).leave()
        elif chance < 0.75:
            self.dice("victims").choice(living).stalled_until = self.now_ms + self.dice("victims").uniform(
                1_000, 40_000
            )
        elif chance < 0.9:
            one = self.dice("victims").choice(living)
            if one.instance is None:
                one.membership.subscribe(self.dice("victims").choice((["a"], ["a", "b"], ["b"])), self.now_ms)
                one.pump()
        else:
            self.start_coordinator()
        self.after(self.dice("trouble").expovariate(1 / 6_000), self.trouble)

    def arrive(self) -> None:
        """Start a member. One with an instance id replaces the process that had this instance id."""
        instance = self.dice("arrivals").choice((None, None, None, "i1", "i2"))
        if "cooperative-sticky" in self.assignors:
            # A static member that is replaced between the two rebalances of a cooperative one takes the
            # need for the second with it: Kafka's protocol has no way to know. (Seeds 2934, 5235.)
            instance = None
        if instance is not None:
            for one in self.applications:
                if one.instance == instance:
                    one.lives = False
        assignors = self.assignors
        if self.mixes and self.dice("arrivals").random() < 0.5:
            assignors = (assignors[1], assignors[0])
        self.applications.append(Application(self, f"p{next(self._names)}", assignors, instance))

    def start_again(self, fenced: Application) -> None:
        """Start a static member anew whose JoinGroup arrived twice: the repeated request has fenced it."""
        fenced.lives = False
        if not any(one.lives and one.instance == fenced.instance for one in self.applications):
            self.applications.append(Application(self, fenced.name, fenced.assignors, fenced.instance))

    # --- the coordinator ---------------------------------------------------------------------------------

    def start_coordinator(self) -> None:
        """Start or restart the coordinator: it has the stored groups, and no waiting requests."""
        self._waiting.clear()
        settings = ClassicGroupSettings(initial_rebalance_delay_ms=self.delay_ms)
        self.coordinator = ClassicCoordinator(settings, lambda name: f"{name}-{next(self._ids)}")
        for group_id, value in self.stored.items():
            self.coordinator.restore(group_id, value, self.now_ms / 1000)
        self._alarm_at = float("inf")
        self.settle()

    def settle(self) -> None:
        """Do what the broker's service does: store changes, then send answers, then set the next timer."""
        now = self.now_ms / 1000
        self.coordinator.advance(now)
        while True:
            saves, replies = self.coordinator.outbox.take()
            if not saves and not replies:
                break
            failed = []
            for group in dict.fromkeys(saves):
                if not self.is_quiet and self.dice("refusals").random() < self.refusal:
                    failed.append(group)
                else:
                    self.stored[group.id] = snapshot(group, int(self.now_ms))
            for ticket, response in replies:
                if failed:
                    fail_response(response)
                give = self._waiting.pop(ticket, None)
                if give is not None:
                    give(response)
            for group in failed:
                group.was_not_stored(now)
        deadline = self.coordinator.next_deadline()
        if deadline is not None and deadline * 1000 + 1 < self._alarm_at:
            # A millisecond later, so that rounding does not make it too early.
            self._alarm_at = deadline * 1000 + 1
            self.at(self._alarm_at, self._alarm)

    def _alarm(self) -> None:
        if self._alarm_at <= self.now_ms:
            self._alarm_at = float("inf")
        self.settle()

    def receive(self, application: Application, call: Any, give: Callable[[Any], None]) -> None:
        """Let the coordinator handle a request that has arrived."""
        now = self.now_ms / 1000
        self.coordinator.advance(now)
        if isinstance(call, JoinGroupRequest):
            ticket = next(self._tickets)
            self._waiting[ticket] = give
            request = JoinGroupRequest(**{name: getattr(call, name) for name in call.__slots__})
            if application.version < 1:
                request.rebalance_timeout_ms = request.session_timeout_ms
            caller = Caller(application.name, "/sim", application.version)
            self.coordinator.join(request, caller, ticket, now)
        elif isinstance(call, SyncGroupRequest):
            ticket = next(self._tickets)
            self._waiting[ticket] = lambda response: self._give_sync(call, response, give)
            self.coordinator.sync(call, ticket, now)
        elif isinstance(call, HeartbeatRequest):
            give(HeartbeatResponse(error_code=self.coordinator.heartbeat(call, now)))
        else:
            assert isinstance(call, LeaveGroupRequest)
            give(self.coordinator.leave(call, call.members, now))
        self.settle()

    def _give_sync(self, call: SyncGroupRequest, response: Any, give: Callable[[Any], None]) -> None:
        """Check that each assigned partition has one owner in its generation; deliver the response."""
        if not response.error_code:
            who = call.group_instance_id or call.member_id
            for place in decode_assignment(response.assignment):
                owner = self.owners.setdefault((call.generation_id, place), who)
                assert owner == who, f"seed {self.seed}: {place} of {owner} and {who}"
        give(response)

    # --- the network -------------------------------------------------------------------------------------

    def send(self, application: Application, outgoing: Outgoing) -> None:
        """Carry a request to the coordinator and its response back; each may be lost or repeated."""
        call = outgoing.call
        self.after(
            outgoing.timeout_ms, lambda: application.answered(outgoing, RequestTimeoutError("no answer"))
        )
        if isinstance(call, FindGroupCoordinator):
            self._carry(lambda: application.answered(outgoing, 1))
        elif isinstance(call, CountPartitions):
            counts = {topic: TOPICS[topic] for topic in call.topics if topic in TOPICS}
            self._carry(lambda: application.answered(outgoing, counts))
        else:

            def give(response: Any) -> None:
                self._carry(lambda: application.answered(outgoing, response))

            self._carry(lambda: self.receive(application, call, give))

    def _carry(self, what: Callable[[], None]) -> None:
        if self.is_quiet:
            self.after(self.dice("quiet").uniform(1, 5), what)
            return
        if self.dice("losses").random() >= self.loss:
            self.after(self.dice("delays").uniform(1, self.slowness_ms), what)
        if self.dice("repeats").random() < self.repeat:
            self.after(self.dice("repeat delays").uniform(1, 4 * self.slowness_ms), what)

    # --- the end -----------------------------------------------------------------------------------------

    def check_settled(self) -> None:
        living = [one for one in self.applications if one.lives]
        where = f"seed {self.seed}"
        group = self.coordinator.groups.get(GROUP)
        if not living:
            assert group is None or not group.members, f"{where}: {group} has members that are dead"
            return
        assert group is not None, f"{where}: the group is gone"
        assert group.state == "Stable", f"{where}: {group}"
        assert not self._waiting, f"{where}: somebody waits"
        assert not group.pending, f"{where}: ids that nobody uses"
        ids = {one.membership.member_id for one in living}
        assert set(group.members) == ids, f"{where}: members {set(group.members)}, living {ids}"
        owned: list[TopicPartition] = []
        for one in living:
            membership = one.membership
            assert membership.phase is Phase.STABLE, f"{where}: {one.name} is {membership.phase}"
            assert membership.generation == group.generation, f"{where}: {one.name} is behind"
            assert membership.next_change() is None, f"{where}: {one.name} has something to do"
            owned.extend(membership.owned)
        topics = {topic for one in living for topic in one.membership.topics}
        everything = {TopicPartition(topic, index) for topic in topics for index in range(TOPICS[topic])}
        assert len(owned) == len(set(owned)), f"{where}: owned twice"
        assert set(owned) == everything, f"{where}: {sorted(everything - set(owned))} are nobody's"
