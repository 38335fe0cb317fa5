"""A test broker without sockets for classic groups: requests may wait, and the test moves the clock."""

from __future__ import annotations

from typing import Any

from broker.bench_node import NOW_MS, context_of, make_node, make_topic
from broker.groups.requests import (
    commit_request,
    fetch_groups_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)
from penstock.broker.handlers import ROUTES
from penstock.broker.partitions.log_store import LogStore, MemoryStore
from penstock.broker.requests.purgatory import Wait
from penstock.clock import ManualClock
from penstock.protocol.api import API_TABLE
from penstock.protocol.message import Message


class Asked:
    """A request that a test has sent, with its response once there is one."""

    def __init__(self) -> None:
        self.response: Any = None

    @property
    def waits(self) -> bool:
        return self.response is None

    @property
    def code(self) -> int:
        return int(self.response.error_code)


class Bench:
    """A test broker for requests about classic groups.

    `store` and `clock` outlive it, so that another `Bench` can start on them after a restart.
    """

    def __init__(
        self, store: LogStore | None = None, clock: ManualClock | None = None, **settings: object
    ) -> None:
        self.clock = clock or ManualClock(NOW_MS)
        self.store = store or MemoryStore(1, self.clock)
        self.settings = settings
        self.node = make_node(self.store, self.clock, **settings)
        if "t" not in self.node.cluster.topics:
            make_topic(self.node, "t", partitions=3)

    def again(self) -> Bench:
        """Return a broker restarted on the same store and clock; what was not stored is lost."""
        return Bench(self.store, self.clock, **self.settings)

    def ask(self, request: Message, version: int | None = None, client: str = "bench") -> Asked:
        """Send a request in a version, by default the newest; then complete waiting requests."""
        assert request.API_KEY is not None
        if version is None:
            version = API_TABLE[request.API_KEY].versions[1]
        context = context_of(self.node, version)
        context.session.client_id, context.session.client_address = client, "10.0.0.1"
        asked = Asked()
        outcome = ROUTES[request.API_KEY].handle(request, context)
        if isinstance(outcome, Wait):
            give = outcome.answer
            assert give is not None

            def resume() -> None:
                asked.response = give()

            self.node.purgatory.park(outcome, resume)
        else:
            asked.response = outcome
        self.run()
        return asked

    def run(self) -> None:
        while due := self.node.purgatory.take_due(self.clock.monotonic()):
            for resume in due:
                resume()

    def wait(self, ms: int) -> None:
        """Move the clock in steps from deadline to deadline, as an event loop would."""
        end = self.clock.now_ms() + ms
        while self.clock.now_ms() < end:
            deadline = self.node.purgatory.next_deadline()
            step = end - self.clock.now_ms()
            if deadline is not None and deadline != float("inf"):
                due_ms = int((deadline - self.clock.monotonic()) * 1000) + 1
                step = max(1, min(step, due_ms))
            self.clock.advance(step)
            self.run()

    # --- what members do ---------------------------------------------------------------------------------

    def join(self, member_id: str = "", version: int = 3, **fields: Any) -> Asked:
        """Send a JoinGroup request, by default in version 3.

        Below version 4 a member without an id joins at once.
        """
        return self.ask(join_request(member_id, **fields), version)

    def sync(
        self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> Asked:
        """Send a SyncGroup request: version 5 if the fields name the protocol, which it requires, else 4."""
        version = 5 if fields.keys() & {"protocol_type", "protocol_name"} else 4
        return self.ask(sync_request(member_id, generation, assignments, **fields), version)

    def heartbeat(self, member_id: str, generation: int, **fields: Any) -> int:
        return self.ask(heartbeat_request(member_id, generation, **fields)).code

    def leave(self, *members: str | tuple[str, str]) -> list[int]:
        response = self.ask(leave_request(*members)).response
        return [member.error_code for member in response.members]

    def commit(
        self, offset: int, member_id: str = "", generation: int = -1, index: int = 0, **fields: Any
    ) -> int:
        """Commit an offset of a partition of topic ``t``; return the partition's error code."""
        request = commit_request({("t", index): offset}, member_id, generation, **fields)
        response = self.ask(request, 9).response
        return int(response.topics[0].partitions[0].error_code)

    def committed(self, topic: str = "t", index: int = 0, group: str = "g") -> int:
        response = self.ask(fetch_groups_request(group, topics={topic: [index]}), 9).response
        return int(response.groups[0].topics[0].partitions[0].committed_offset)

    def state(self, group: str = "g") -> str:
        found = self.node.groups.open(group)
        return found.state.value if found is not None else "?"

    # --- groups that are already somewhere ----------------------------------------------------------------

    def pair(self) -> tuple[str, str]:
        """Bring two members into a Stable group in generation 2; return the ids of leader and follower."""
        first = self.join().response
        second = self.join()
        first_again = self.join(first.member_id)
        assert first_again.response.generation_id == second.response.generation_id == 2
        leader, follower = first_again.response.member_id, second.response.member_id
        waits = self.sync(follower, 2)
        self.sync(leader, 2, {leader: b"L", follower: b"F"})
        assert waits.response.assignment == b"F"
        return leader, follower
