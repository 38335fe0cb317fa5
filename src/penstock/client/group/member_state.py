"""The state of a member of a group, and the requests that it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from penstock.client.assignors.base import Assignor, Previous
from penstock.client.assignors.member_metadata import (
    NO_GENERATION,
    Subscription,
    encode_subscription,
)
from penstock.client.group.attempts import Attempts
from penstock.client.group.in_flight import InFlight
from penstock.client.group.leadership import Leadership
from penstock.client.group.ownership import Ownership
from penstock.client.group.requests import (
    Call,
    CountPartitions,
    MemberSettings,
    Outgoing,
    heartbeat_request,
    is_first_join,
    join_request,
    leave_request,
    sync_request,
)
from penstock.client.group.timeouts import NEVER, PollInterval, Timeouts
from penstock.errors import (
    PenstockError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse


class Phase(Enum):
    """The member's state at the coordinator, as of its last answer."""

    OUT = "not in the group, and not asked to be"
    UNJOINED = "about to join"
    JOINING = "JoinGroup is under way"
    ASSIGNING = "the leader counts partitions"
    SYNCING = "SyncGroup is under way"
    STABLE = "a member with an assignment"
    FENCED = "another member has taken the instance id"


class MemberState:
    """The state of one member. `membership.Membership` decides when it sends which request."""

    def __init__(
        self,
        settings: MemberSettings,
        assignors: Sequence[Assignor],
        backoff_ms: Callable[[int], float] = lambda tries: min(1_000.0, 100.0 * 2**tries),
    ) -> None:
        self.settings = settings
        self.phase = Phase.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        self.coordinator: int | None = None
        self.timeouts = Timeouts(settings)
        self.topics: tuple[str, ...] = ()
        self.is_leader = False
        self.error: PenstockError | None = None
        """Why the member cannot go on by itself. The application's next poll takes it."""
        self.rejoin_reason = ""
        self.lost_by = ErrorCode.UNKNOWN_MEMBER_ID
        """The error of commits while this is no member: what the coordinator has said."""
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._in_flight = InFlight()
        self._attempts = Attempts(backoff_ms)
        self._ownership = Ownership()
        self._leadership = Leadership()
        self._poll = PollInterval(settings.max_poll_interval_ms)
        self._previous = Previous()
        self._is_leaving = False
        self._rejoin = False
        self._assignor: Assignor | None = None
        self._heartbeat_at = NEVER
        self.name_of: Callable[[int | None], object] = lambda node: f"node {node}"
        """How messages name a node."""

    @property
    def outbox(self) -> list[Outgoing]:
        """The requests to be sent. The driver takes them with `take_requests`."""
        return self._in_flight.outbox

    def take_requests(self) -> list[Outgoing]:
        """Return the requests to be sent, and keep none."""
        requests, self._in_flight.outbox = self._in_flight.outbox, []
        return requests

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the application has, as of the last change it was notified of."""
        return self._ownership.owned

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """Return the partitions that the application has had without a break since a generation."""
        return self._ownership.kept_since(generation)

    @property
    def is_member(self) -> bool:
        """Whether the coordinator has the member under its generation, as of its last answer."""
        return self.generation >= 0

    @property
    def group_topics(self) -> set[str]:
        """The topics whose partitions matter: all members' for the leader, otherwise one's own."""
        topics = set(self.topics)
        if self.is_leader:
            topics |= self._leadership.topics
        return topics

    def _send(self, call: Call, timeout_ms: float, *, to_coordinator: bool = True) -> None:
        self._in_flight.send(call, self.coordinator if to_coordinator else None, timeout_ms)

    def _join(self) -> None:
        self._ownership.withdraw_grant()
        self._rejoin = False
        self.phase = Phase.JOINING
        self._in_flight.forget(HeartbeatRequest, CountPartitions)
        protocols = {name: self._subscription(assignor) for name, assignor in self._assignors.items()}
        request = join_request(
            self.settings, self.member_id, self.timeouts.session_ms, protocols, self.rejoin_reason
        )
        self._send(request, self.timeouts.rebalance_ms)

    def _subscription(self, assignor: Assignor) -> bytes:
        return encode_subscription(
            Subscription(
                self.topics,
                tuple(self.owned),
                assignor.user_data(self.topics, self._previous),
                self.generation,
                self.settings.client_rack,
            )
        )

    def _beat(self, now: float) -> None:
        self._heartbeat_at = now + self.settings.heartbeat_interval_ms
        request = heartbeat_request(self.settings, self.member_id, self.generation)
        self._send(request, self.timeouts.heartbeat_ms)

    def _go(self, reason: str, now: float) -> None:
        """Send LeaveGroup, unless the member is static: its assignment is kept until its session ends."""
        self._in_flight.keep(is_first_join)
        if self.member_id and self.settings.group_instance_id is None and self.coordinator is not None:
            self._say_farewell(self.member_id, reason)
        self.member_id = ""
        self.generation = NO_GENERATION
        self.is_leader = False
        self._rejoin = False

    def _say_farewell(self, member_id: str, reason: str) -> None:
        request = leave_request(self.settings, member_id, reason)
        self._send(request, self.settings.request_timeout_ms)

    def _turn_down(self, answer: JoinGroupResponse) -> None:
        """The coordinator has made an id for a member that has left meanwhile, and would wait for it."""
        if answer.member_id and self.settings.group_instance_id is None:
            self._say_farewell(answer.member_id, "left before it had joined")

    def _sync(self, assignments: Mapping[str, Sequence[TopicPartition]]) -> None:
        self.phase = Phase.SYNCING
        assert self._assignor is not None
        name = self._assignor.name
        request = sync_request(self.settings, self.member_id, self.generation, name, assignments)
        self._send(request, self.timeouts.rebalance_ms)
