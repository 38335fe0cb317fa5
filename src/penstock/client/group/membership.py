"""The sans-I/O core of a classic group member: decides which requests to send to the coordinator.

The driver takes requests from `outbox`, passes every outcome to `answered` once, calls `advance` at
`wake_at`, and calls `next_change` for changes to notify the application of. Clocks, sockets and random
numbers belong to the driver (`penstock.client.group.member`, and the simulation in the tests).

Two halves of the state change independently. The coordinator's half (`phase`) changes while the application
works; the application's half is `ownership.Ownership`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.client.assignors.base import Assignor, Previous
from penstock.client.assignors.member_metadata import (
    NO_GENERATION,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from penstock.client.group.errors import explain
from penstock.client.group.in_flight import InFlight
from penstock.client.group.leadership import Leadership
from penstock.client.group.ownership import NOTHING, Ownership
from penstock.client.group.requests import (
    COORDINATOR_CODES,
    AssignmentChange,
    Call,
    CountPartitions,
    FindGroupCoordinator,
    MemberSettings,
    Outgoing,
    heartbeat_request,
    is_first_join,
    join_request,
    leave_request,
    sync_request,
)
from penstock.client.group.state_machine import Phase
from penstock.client.group.timeouts import NEVER, Attempts, PollInterval, Timeouts
from penstock.errors import (
    DecodeError,
    KafkaError,
    NetworkError,
    PenstockError,
    ProtocolViolationError,
    RequestTimeoutError,
)
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse
from penstock.protocol.messages.join_group_request import JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse
from penstock.protocol.messages.sync_group_request import SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse


class Membership:
    """The state machine of one group member, for the classic protocol.

    Times are milliseconds of a monotonic clock.
    """

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
        """The error that stops the member. The application's next poll raises it."""
        self.rejoin_reason = ""
        self.lost_by = ErrorCode.UNKNOWN_MEMBER_ID
        """The error code that commits raise after the member has lost its membership."""
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
        """A function that returns the name of a node for error messages."""

    @property
    def outbox(self) -> list[Outgoing]:
        """Requests to be sent, which the driver takes with `take_requests`."""
        return self._in_flight.outbox

    def take_requests(self) -> list[Outgoing]:
        """Return the requests to be sent, and empty the outbox."""
        requests, self._in_flight.outbox = self._in_flight.outbox, []
        return requests

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the application has, after the last change that it was notified of."""
        return self._ownership.owned

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """Return the partitions that the application has had continuously since the given generation."""
        return self._ownership.kept_since(generation)

    @property
    def is_member(self) -> bool:
        """True if the coordinator's last answer has confirmed the member under its generation."""
        return self.generation >= 0

    @property
    def reads_as_member(self) -> bool:
        """Always False: the classic protocol reads committed offsets without naming a member."""
        return False

    @property
    def awaits_generation(self) -> bool:
        """True if a JoinGroup request is in flight, whose response has a newer generation."""
        return self.phase is Phase.JOINING

    @property
    def group_topics(self) -> set[str]:
        """The topics whose metadata must be fresh: this member's, and for the leader those of all members."""
        topics = set(self.topics)
        if self.is_leader:
            topics |= self._leadership.topics
        return topics

    # -- what the application does

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Set the topics to subscribe to. Joining begins with the first poll."""
        wanted = tuple(sorted(set(topics)))
        if self.phase in (Phase.OUT, Phase.FENCED):
            self.phase = Phase.UNJOINED
            self.error = None
            self._is_leaving = False
            self._poll.awaits_poll = True
        elif wanted != self.topics:
            self._ask_rejoin("the subscription has changed")
        self.topics = wanted
        self.advance(now)

    def polled(self, now: float) -> None:
        """Record that the application has asked for records: ``max.poll.interval.ms`` starts again."""
        self._poll.polled(now)
        self.advance(now)

    def poll_begins(self, now: float) -> None:
        """Record that the application waits for records: ``max.poll.interval.ms`` does not run meanwhile."""
        self._poll.poll_begins(now)
        self.advance(now)

    def poll_ends(self, now: float) -> None:
        """Record that a poll has returned, with or without records: ``max.poll.interval.ms`` starts again."""
        self._poll.poll_ends(now)

    def leave(self, now: float) -> None:
        """Begin to leave the group: `next_change` returns what to revoke; after that the member leaves."""
        if self.phase is Phase.OUT:
            return
        self._is_leaving = True
        self._ownership.granted = None
        self.advance(now)

    def next_change(self) -> AssignmentChange | None:
        """Return the next change to notify the application of, or None; repeat it until `confirm`."""
        return self._ownership.next_change(self._to_revoke())

    def confirm(self, change: AssignmentChange, now: float) -> None:
        """Record that the application has been notified of `change`, and that its callback has returned."""
        if self._ownership.confirm(change, self.generation):
            self._ask_rejoin("what was revoked can be handed on")
        self.advance(now)

    @property
    def must_act(self) -> bool:
        """True if there is a change to notify the application of, or an error to raise."""
        return self.error is not None or self.next_change() is not None

    def take_error(self) -> PenstockError | None:
        """Return the error that the next poll must raise, or None, and clear that error.

        The member tries again at the poll after that, except after a fencing, whose error stays.
        """
        error = self.error
        if self.phase is not Phase.FENCED:
            self.error = None
        return error

    def _to_revoke(self) -> frozenset[TopicPartition]:
        """Return the partitions that must be revoked before the application gets any new partitions."""
        if self._ownership.is_lost or not self.owned:
            return NOTHING
        if self._is_leaving:
            return self.owned
        if self._ownership.granted is not None:
            return self.owned - self._ownership.granted
        if self._rejoin or self.phase is Phase.UNJOINED:
            if not self._is_cooperative:
                return self.owned
            return frozenset(tp for tp in self.owned if tp.topic not in self.topics)
        return NOTHING

    # -- results that the driver passes in

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Act on fresh metadata: a leader asks for a rebalance if the number of partitions has changed."""
        if self.phase is Phase.STABLE and self.is_leader and self._leadership.update_counts(counts):
            self._ask_rejoin("the partitions of a topic have changed")
        self.advance(now)

    def refused(self, code: int, generation: int, now: float) -> None:
        """Act on an error about the member in a response to OffsetCommit.

        `generation` is the generation that the request had.
        """
        if generation == self.generation and self.phase is Phase.STABLE:
            self._judge(code, now)
            self.advance(now)

    def coordinator_lost(self, node: int, now: float) -> None:
        """Drop the coordinator if it is still `node`, which has failed or no longer coordinates the group."""
        if self.coordinator == node:
            self.coordinator = None
        self.advance(now)

    def answered(self, ticket: int, outcome: object, now: float) -> None:
        """Act on a request's response, or on its error if it has failed. Ignore late and repeated ones."""
        call = self._in_flight.take(ticket)
        if call is None:
            return
        if self.phase is Phase.OUT and isinstance(outcome, JoinGroupResponse):
            self._turn_down(outcome)
        elif isinstance(outcome, PenstockError):
            self._failed(call, outcome, now)
        elif isinstance(outcome, JoinGroupResponse):
            self._joined(outcome, now)
        elif isinstance(outcome, SyncGroupResponse):
            self._synced(outcome, now)
        elif isinstance(outcome, HeartbeatResponse):
            self._heard(outcome, now)
        elif isinstance(call, FindGroupCoordinator) and isinstance(outcome, int):
            self.coordinator = outcome
            self._attempts.tries = 0
        elif isinstance(call, CountPartitions) and isinstance(outcome, Mapping):
            self._assign(outcome, now)
        elif not isinstance(outcome, LeaveGroupResponse):
            self._failed(call, DecodeError(f"{outcome!r} does not answer {call!r}"), now)
        self.advance(now)

    # -- time

    @property
    def wake_at(self) -> float:
        """The latest time (ms) at which the driver must call `advance`; `NEVER` if no call is needed."""
        times = [NEVER]
        if self.phase in (Phase.OUT, Phase.FENCED) or self._is_leaving:
            return NEVER
        if self._must_find and not self._poll.awaits_poll:
            times.append(self._attempts.not_before)
        if self._may_join and self.coordinator is not None:
            times.append(self._attempts.not_before)
        if self._beats:
            times.append(self._heartbeat_at)
        times.append(self._poll.deadline)
        return min(times)

    def advance(self, now: float) -> None:
        """Put the requests that are due at the time `now` into the outbox."""
        if self._is_leaving and self.phase is not Phase.OUT:
            if not self.owned and not self._ownership.is_lost:
                self._go("the consumer is closed or unsubscribed", now)
                self.phase = Phase.OUT
            return
        if self.phase in (Phase.OUT, Phase.FENCED):
            return
        if now >= self._poll.deadline:
            self._stop_for_slow_application(now)
        if self._must_find and not self._poll.awaits_poll and now >= self._attempts.not_before:
            self._send(FindGroupCoordinator(), self.settings.request_timeout_ms, to_coordinator=False)
        if self._may_join and self.coordinator is not None and now >= self._attempts.not_before:
            self._join()
        if self._beats and now >= self._heartbeat_at:
            self._beat(now)

    def _stop_for_slow_application(self, now: float) -> None:
        """Leave the group after ``max.poll.interval.ms``, so that other members get the partitions."""
        self._poll.awaits_poll = True
        self._go("max.poll.interval.ms has passed since the last poll", now)
        self._lose("max.poll.interval.ms passed without a poll", keeps_id=False)

    @property
    def _must_find(self) -> bool:
        return self.coordinator is None and not self._in_flight.has(FindGroupCoordinator)

    @property
    def _may_join(self) -> bool:
        """True if a JoinGroup is due, and the application's partitions allow it."""
        is_due = self.phase is Phase.UNJOINED or (self.phase is Phase.STABLE and self._rejoin)
        if not is_due or self._poll.awaits_poll or self.error is not None:
            return False
        if self._ownership.is_lost or self._to_revoke():
            return False
        # A member that keeps partitions over a rebalance must send what it has. One that does not can
        # drop an assignment that the application has not been notified of yet.
        return self._ownership.granted is None or not self._is_cooperative

    @property
    def _beats(self) -> bool:
        return (
            self.phase in (Phase.STABLE, Phase.ASSIGNING)
            and self.coordinator is not None
            and not self._in_flight.has(HeartbeatRequest)
        )

    # -- answers

    def _joined(self, answer: JoinGroupResponse, now: float) -> None:
        if self.phase is not Phase.JOINING:
            return
        if answer.error_code:
            self.phase = Phase.UNJOINED
            node = self.coordinator
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            else:
                self._judge(answer.error_code, now)
            self._note_refusal("JoinGroup", answer.error_code, node, now)
            return
        if answer.generation_id < 0 or not answer.member_id:
            member = f"member {answer.member_id!r} of generation {answer.generation_id}"
            what = f"broker {self.name_of(self.coordinator)} made this consumer {member}"
            self._fail(ProtocolViolationError(f"group {self.settings.group_id!r}: {what}"))
            return
        self.member_id = answer.member_id
        self.generation = answer.generation_id
        self._heartbeat_at = now + self.settings.heartbeat_interval_ms
        self._attempts.tries = 0
        self._assignor = self._assignors.get(answer.protocol_name or "")
        if self._assignor is None:
            self._fail(DecodeError(f"the coordinator chose assignor {answer.protocol_name!r}, not on offer"))
            return
        self.is_leader = answer.leader == answer.member_id
        if not self.is_leader:
            self._sync({})
            return
        try:
            self._leadership.members = {
                member.member_id: decode_subscription(bytes(member.metadata), member.group_instance_id)
                for member in answer.members
            }
        except DecodeError as error:
            self._fail(error)
            return
        if answer.skip_assignment:
            self._leadership.counts = None
            self._sync({})
            return
        self.phase = Phase.ASSIGNING
        call = CountPartitions(tuple(sorted(self.group_topics)))
        self._send(call, self.settings.request_timeout_ms, to_coordinator=False)

    def _assign(self, counts: Mapping[str, int], now: float) -> None:
        if self.phase is not Phase.ASSIGNING:
            return
        assert self._assignor is not None
        try:
            assignments = self._leadership.assign(self._assignor, counts)
        except Exception as error:  # code of the application: the group must not wait for its outcome
            self._go(f"assignor {self._assignor.name} failed", now)
            self._fail(PenstockError(f"assignor {self._assignor.name!r} failed: {error!r}"))
            return
        self._sync(assignments)

    def _synced(self, answer: SyncGroupResponse, now: float) -> None:
        if self.phase is not Phase.SYNCING:
            return
        if answer.error_code:
            self.phase = Phase.UNJOINED
            node = self.coordinator
            self._judge(answer.error_code, now)
            self._note_refusal("SyncGroup", answer.error_code, node, now)
            return
        self._attempts.refusals = 0
        try:
            partitions = decode_assignment(bytes(answer.assignment))
        except DecodeError as error:
            self._fail(error)
            return
        self.phase = Phase.STABLE
        self._heartbeat_at = now + self.settings.heartbeat_interval_ms
        self._ownership.grant(partitions)
        self._previous = Previous(tuple(partitions), self.generation)
        self.rejoin_reason = ""

    def _heard(self, answer: HeartbeatResponse, now: float) -> None:
        if self.phase not in (Phase.STABLE, Phase.ASSIGNING):
            return
        if answer.error_code:
            self._judge(answer.error_code, now)

    def _failed(self, call: Call, error: PenstockError, now: float) -> None:
        """Act on a request without a response, or with an error that does not concern this member."""
        if isinstance(call, LeaveGroupRequest) or self.phase is Phase.OUT:
            return
        is_passing = isinstance(error, (NetworkError, RequestTimeoutError)) or (
            isinstance(error, KafkaError) and (error.retriable or error.code in COORDINATOR_CODES)
        )
        if isinstance(call, JoinGroupRequest | SyncGroupRequest | CountPartitions):
            if self.phase not in (Phase.JOINING, Phase.SYNCING, Phase.ASSIGNING):
                return
            self.phase = Phase.UNJOINED
        if isinstance(call, JoinGroupRequest | SyncGroupRequest | HeartbeatRequest):
            self.coordinator = None
        if is_passing:
            self._attempts.wait(now)
        else:
            self._fail(error)

    def _judge(self, code: int, now: float) -> None:
        """Act on an error code of the coordinator: join again, find the coordinator, wait, or fail."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._lose("the coordinator does not have the member any more", keeps_id=False)
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self._lose("the group has gone on without the member", keeps_id=True)
            self.lost_by = ErrorCode.ILLEGAL_GENERATION
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._ask_rejoin(self.rejoin_reason or "the group is rebalancing")
        elif code in COORDINATOR_CODES:
            self.coordinator = None
            self._attempts.wait(now)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._lose("another member uses the same group.instance.id", keeps_id=False)
            self.phase = Phase.FENCED
            self.error = explain(code, self.settings)
        elif code == ErrorCode.INVALID_SESSION_TIMEOUT and self.timeouts.lower_session():
            return
        elif error_for(code, "").retriable:
            self._attempts.wait(now)
        else:
            self._fail(explain(code, self.settings))

    def _note_refusal(self, api: str, code: int, node: int | None, now: float) -> None:
        """Delay the next attempt to join, and fail if the coordinator has refused for too long.

        The first refusal is followed by another attempt at once: a rebalance may have begun meanwhile, or the
        coordinator has assigned a member id.
        """
        if self.error is not None or self.phase is not Phase.UNJOINED:
            return
        refused_ms = self._attempts.refused(now)
        if self._attempts.refusals > 1 or code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._attempts.wait(now)
        if refused_ms >= self.timeouts.rebalance_ms:
            broker, patience_s = self.name_of(node), self.timeouts.rebalance_ms / 1000
            refusal = error_for(code, f"{api}, answered {self._attempts.refusals} times by broker {broker}")
            what = f"group {self.settings.group_id!r}: not able to join within {patience_s:g} s"
            self._attempts.refusals = 0
            self._fail(RequestTimeoutError(f"{what}; the last obstacle: {refusal}"))

    def _ask_rejoin(self, reason: str) -> None:
        """Record that the member must join again, as soon as the application's partitions allow it."""
        self.rejoin_reason = reason
        if self.phase is Phase.ASSIGNING:
            self._in_flight.forget(CountPartitions, HeartbeatRequest)
            self.phase = Phase.UNJOINED
        self._rejoin = True

    def _lose(self, reason: str, *, keeps_id: bool) -> None:
        """Mark all partitions as lost: other members may have them, so that commits would be refused."""
        self.rejoin_reason = reason
        if not keeps_id:
            self.member_id = ""
        self.generation = NO_GENERATION
        self.is_leader = False
        self._ownership.lose()
        self._rejoin = False
        self._in_flight.forget(HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, CountPartitions)
        self.phase = Phase.UNJOINED
        self.lost_by = ErrorCode.UNKNOWN_MEMBER_ID

    def _fail(self, error: PenstockError) -> None:
        """Stop with `error`, which the application's poll raises; the poll after that tries again."""
        self.error = error
        self._poll.awaits_poll = True
        self._lose("an error", keeps_id=True)

    # -- requests to the coordinator

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
        """Send LeaveGroup, unless the member is static: it keeps its partitions until its session ends."""
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
        """Leave the group with a member id that the coordinator has assigned after the member had left.

        Otherwise the coordinator would wait for a JoinGroup with that id.
        """
        is_waited_for = bool(answer.member_id) and self.settings.group_instance_id is None
        if is_waited_for and self.coordinator is not None:
            self._say_farewell(answer.member_id, "left before it had joined")

    def _sync(self, assignments: Mapping[str, Sequence[TopicPartition]]) -> None:
        if self.coordinator is None:  # lost while partitions were counted: the next one has to be joined
            self.phase = Phase.UNJOINED
            return
        self.phase = Phase.SYNCING
        assert self._assignor is not None
        name = self._assignor.name
        request = sync_request(self.settings, self.member_id, self.generation, name, assignments)
        self._send(request, self.timeouts.rebalance_ms)
