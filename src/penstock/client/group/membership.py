"""A member of a consumer group, thought through: what to ask the coordinator, and what to tell whom.

Pure. Whoever drives it takes requests from `outbox`, hands every outcome to `answered` once, calls
`advance` when `wake_at` has come, and asks `next_change` for what the application must be told. Clocks,
sockets and dice are the driver's (`penstock.client.group.member`, and the simulation in the tests).

Two halves of the state move at their own pace. The coordinator's half (`phase`) goes on while the
application works. The application's half (`owned`) changes only when the application asks for records: it
must not lose a partition in the middle of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from penstock.client.assignors.base import Assignor, Previous
from penstock.client.assignors.member_metadata import (
    NO_GENERATION,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_subscription,
)
from penstock.client.group.errors import explain
from penstock.client.group.requests import (
    Call,
    Change,
    CountPartitions,
    FindCoordinator,
    Kind,
    MemberSettings,
    Outgoing,
    heartbeat_request,
    is_first_join,
    join_request,
    leave_request,
    sync_request,
)
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

JOIN_SLACK_MS = 5_000
"""How much longer than the rebalance may take a JoinGroup is waited for."""

FALLBACK_SESSION_TIMEOUT_MS = 30_000
"""The most that brokers before 0.10.1 allow by default."""

NEVER = float("inf")
NOTHING: frozenset[TopicPartition] = frozenset()

COORDINATOR_CODES = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR))


class Phase(Enum):
    """How the coordinator sees the member, as far as the member knows."""

    OUT = "not in the group, and not asked to be"
    UNJOINED = "about to join"
    JOINING = "JoinGroup is under way"
    ASSIGNING = "the leader counts partitions"
    SYNCING = "SyncGroup is under way"
    STABLE = "a member with an assignment"
    FENCED = "another member has taken the instance id"


class Membership:
    """One member. Times are milliseconds of any clock that goes forward."""

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
        self.has_rebalance_timeout = True
        """Whether the coordinator is told how long members may take to rejoin (JoinGroup 1 and later)."""
        self.topics: tuple[str, ...] = ()
        self.owned = NOTHING
        """What the application has been told that it has."""
        self.is_leader = False
        self.error: PenstockError | None = None
        """Why the member cannot go on by itself. The application's next poll takes it."""
        self.rejoin_reason = ""
        self.outbox: list[Outgoing] = []
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._backoff_ms = backoff_ms
        self._session_timeout_ms = settings.session_timeout_ms
        self._granted: frozenset[TopicPartition] | None = None
        """An assignment that the application has not been told yet."""
        self._since: dict[TopicPartition, int] = {}
        """The generation in which each of `owned` came."""
        self._has_revoked = False
        """Whether partitions were given up on the way to `_granted`, so that another rebalance is due."""
        self._previous = Previous()
        self._is_lost = False
        self._is_leaving = False
        self._awaits_poll = True
        self._is_polling = False
        self._polled_at = 0.0
        self._rejoin = False
        self._members: Mapping[str, Subscription] = {}
        self._assignor: Assignor | None = None
        self._counts: Mapping[str, int] | None = {}
        """The partitions that the present assignment shares; None where a leader has not counted them."""
        self._tickets = 0
        self._under_way: dict[int, Call] = {}
        self._not_before = 0.0
        self._heartbeat_at = NEVER
        self._tries = 0
        self._refusals = 0
        """How many times in a row the coordinator has answered, and not let the member in."""
        self._refused_since = 0.0
        self.name_of: Callable[[int | None], object] = lambda node: f"node {node}"
        """How messages name a node."""

    # -- what the application does

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Want these topics from now on. Joining begins with the first poll."""
        wanted = tuple(sorted(set(topics)))
        if self.phase in (Phase.OUT, Phase.FENCED):
            self.phase = Phase.UNJOINED
            self.error = None
            self._is_leaving = False
            self._awaits_poll = True
        elif wanted != self.topics:
            self._ask_rejoin("the subscription has changed")
        self.topics = wanted
        self.advance(now)

    def polled(self, now: float) -> None:
        """The application asks for records: it is alive."""
        self._polled_at = now
        self._awaits_poll = False
        self.advance(now)

    def poll_begins(self, now: float) -> None:
        """The application waits for records, and is alive as long as it does."""
        self._is_polling = True
        self.polled(now)

    def poll_ends(self, now: float) -> None:
        self._is_polling = False
        self._polled_at = now

    def leave(self, now: float) -> None:
        """Give everything up, then go. `next_change` tells what the application must give up before."""
        if self.phase is Phase.OUT:
            return
        self._is_leaving = True
        self._granted = None
        self.advance(now)

    def next_change(self) -> Change | None:
        """What the application must be told next; the same until `told`."""
        if self._is_lost:
            return Change(Kind.LOST, tuple(sorted(self.owned)))
        if to_revoke := self._to_revoke():
            return Change(Kind.REVOKED, tuple(sorted(to_revoke)))
        if self._granted is not None:
            return Change(Kind.ASSIGNED, tuple(sorted(self._granted - self.owned)))
        return None

    def told(self, change: Change, now: float) -> None:
        """The application knows `change` and has acted on it."""
        partitions = frozenset(change.partitions)
        if change.kind is Kind.LOST:
            self._is_lost = False
            self.owned = NOTHING
            self._since = {}
        elif change.kind is Kind.REVOKED:
            self._has_revoked |= self._granted is not None
            self.owned -= partitions
            self._since = {tp: since for tp, since in self._since.items() if tp in self.owned}
            self._is_lost = self._is_lost and bool(self.owned)
        elif self._granted is not None and not self._is_lost:
            self._since = {tp: self._since.get(tp, self.generation) for tp in self._granted}
            self.owned = self._granted
            self._granted = None
            if self._has_revoked:
                self._has_revoked = False
                self._ask_rejoin("what was revoked can be handed on")
        self.advance(now)

    @property
    def must_act(self) -> bool:
        """Whether the application has to do something: `next_change`, or take the error."""
        return self.error is not None or self._is_lost or self._granted is not None or bool(self._to_revoke())

    def take_error(self) -> PenstockError | None:
        """The error, which the application then knows. After most the member tries again at the next poll."""
        error = self.error
        if self.phase is not Phase.FENCED:
            self.error = None
        return error

    def kept_since(self, generation: int) -> frozenset[TopicPartition]:
        """What the application has had without a break since a generation."""
        return frozenset(w for w in self.owned if self._since.get(w, generation + 1) <= generation)

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows the member under its generation, as far as it knows itself."""
        return self.generation >= 0

    def _to_revoke(self) -> frozenset[TopicPartition]:
        """What must be given up before anything else can happen."""
        if self._is_lost or not self.owned:
            return NOTHING
        if self._is_leaving:
            return self.owned
        if self._granted is not None:
            return self.owned - self._granted
        if self._rejoin or self.phase is Phase.UNJOINED:
            if not self._is_cooperative:
                return self.owned
            return frozenset(tp for tp in self.owned if tp.topic not in self.topics)
        return NOTHING

    # -- what the driver learns

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Fresh metadata. A leader calls for a rebalance when partitions have come or gone."""
        if self.phase is Phase.STABLE and self.is_leader:
            topics = {topic for member in self._members.values() for topic in member.topics}
            if self._counts is None:
                self._counts = dict(counts)
            elif any(counts.get(topic, 0) != self._counts.get(topic, 0) for topic in topics):
                self._ask_rejoin("the partitions of a topic have changed")
        self.advance(now)

    @property
    def group_topics(self) -> set[str]:
        """The topics whose partitions matter: all members' for the leader, otherwise one's own."""
        topics = set(self.topics)
        if self.is_leader:
            topics.update(topic for member in self._members.values() for topic in member.topics)
        return topics

    def refused(self, code: int, generation: int, now: float) -> None:
        """A commit sent with `generation` came back with an error that says something about the member."""
        if generation == self.generation and self.phase is Phase.STABLE:
            self._judge(code, now)
            self.advance(now)

    def coordinator_lost(self, node: int, now: float) -> None:
        """The coordinator cannot be reached, or is it no longer."""
        if self.coordinator == node:
            self.coordinator = None
        self.advance(now)

    def answered(self, ticket: int, outcome: object, now: float) -> None:
        """The answer to a request, or the error that came instead. Late and repeated ones do not matter."""
        call = self._under_way.pop(ticket, None)
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
        elif isinstance(call, FindCoordinator) and isinstance(outcome, int):
            self.coordinator = outcome
            self._tries = 0
        elif isinstance(call, CountPartitions) and isinstance(outcome, Mapping):
            self._assign(outcome, now)
        elif not isinstance(outcome, LeaveGroupResponse):
            self._failed(call, DecodeError(f"{outcome!r} does not answer {call!r}"), now)
        self.advance(now)

    # -- time

    @property
    def wake_at(self) -> float:
        """When `advance` has something to do, if nothing else happens before."""
        times = [NEVER]
        if self.phase in (Phase.OUT, Phase.FENCED) or self._is_leaving:
            return NEVER
        if self._must_find and not self._awaits_poll:
            times.append(self._not_before)
        if self._may_join and self.coordinator is not None:
            times.append(self._not_before)
        if self._beats:
            times.append(self._heartbeat_at)
        if not self._awaits_poll and not self._is_polling:
            times.append(self._polled_at + self.settings.max_poll_interval_ms)
        return min(times)

    def advance(self, now: float) -> None:
        """Do whatever can be done now."""
        if self._is_leaving and self.phase is not Phase.OUT:
            if not self.owned and not self._is_lost:
                self._go("the consumer is closed or unsubscribed", now)
                self.phase = Phase.OUT
            return
        if self.phase in (Phase.OUT, Phase.FENCED):
            return
        if not self._awaits_poll and not self._is_polling and self._is_overdue(now):
            self._stop_for_slow_application(now)
        if self._must_find and not self._awaits_poll and now >= self._not_before:
            self._send(FindCoordinator(), self.settings.request_timeout_ms, to_coordinator=False)
        if self._may_join and self.coordinator is not None and now >= self._not_before:
            self._join()
        if self._beats and now >= self._heartbeat_at:
            self._beat(now)

    def _is_overdue(self, now: float) -> bool:
        return now >= self._polled_at + self.settings.max_poll_interval_ms

    def _stop_for_slow_application(self, now: float) -> None:
        """Somebody else should have the partitions, when the application does not come for records."""
        self._awaits_poll = True
        self._go("max.poll.interval.ms has passed since the last poll", now)
        self._lose("max.poll.interval.ms passed without a poll", keeps_id=False)

    @property
    def _must_find(self) -> bool:
        return self.coordinator is None and not any(
            isinstance(call, FindCoordinator) for call in self._under_way.values()
        )

    @property
    def _may_join(self) -> bool:
        """Whether nothing of the application's stands in the way of a JoinGroup that is due."""
        is_due = self.phase is Phase.UNJOINED or (self.phase is Phase.STABLE and self._rejoin)
        if not is_due or self._awaits_poll or self.error is not None:
            return False
        if self._is_lost or self._to_revoke():
            return False
        # A member that keeps partitions over a rebalance must know what it has. One that does not can
        # forget an assignment that nobody has seen yet.
        return self._granted is None or not self._is_cooperative

    @property
    def _beats(self) -> bool:
        return (
            self.phase in (Phase.STABLE, Phase.ASSIGNING)
            and self.coordinator is not None
            and not any(isinstance(call, HeartbeatRequest) for call in self._under_way.values())
        )

    # -- requests

    def _send(self, call: Call, timeout_ms: float, *, to_coordinator: bool = True) -> None:
        self._tickets += 1
        self._under_way[self._tickets] = call
        node = self.coordinator if to_coordinator else None
        self.outbox.append(Outgoing(self._tickets, call, node, timeout_ms))

    def _forget_requests(self, *kinds: type) -> None:
        """Take no more notice of answers to such requests."""
        self._under_way = {t: call for t, call in self._under_way.items() if not isinstance(call, kinds)}

    def _join(self) -> None:
        self._granted = None
        self._has_revoked = False
        self._rejoin = False
        self.phase = Phase.JOINING
        self._forget_requests(HeartbeatRequest, CountPartitions)
        protocols = {name: self._subscription(assignor) for name, assignor in self._assignors.items()}
        request = join_request(
            self.settings, self.member_id, self._session_timeout_ms, protocols, self.rejoin_reason
        )
        self._send(request, self._rebalance_patience_ms)

    @property
    def _rebalance_patience_ms(self) -> float:
        """How long the others may keep an answer waiting. In version 0 the session timeout is for all."""
        settings = self.settings
        rebalance_timeout_ms = (
            settings.max_poll_interval_ms
            if self.has_rebalance_timeout
            else max(self._session_timeout_ms, FALLBACK_SESSION_TIMEOUT_MS)
        )
        return max(settings.request_timeout_ms, rebalance_timeout_ms + JOIN_SLACK_MS)

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
        self._send(request, min(self.settings.request_timeout_ms, self._session_timeout_ms))

    def _go(self, reason: str, now: float) -> None:
        """Tell the coordinator, unless the member is static: its place is kept until its session ends."""
        self._under_way = {t: call for t, call in self._under_way.items() if is_first_join(call)}
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
        self._send(request, self._rebalance_patience_ms)

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
        self._tries = 0
        self._assignor = self._assignors.get(answer.protocol_name or "")
        if self._assignor is None:
            self._fail(DecodeError(f"the coordinator chose assignor {answer.protocol_name!r}, not on offer"))
            return
        self.is_leader = answer.leader == answer.member_id
        if not self.is_leader:
            self._sync({})
            return
        try:
            self._members = {
                member.member_id: decode_subscription(bytes(member.metadata), member.group_instance_id)
                for member in answer.members
            }
        except DecodeError as error:
            self._fail(error)
            return
        if answer.skip_assignment:
            self._counts = None
            self._sync({})
            return
        self.phase = Phase.ASSIGNING
        call = CountPartitions(tuple(sorted(self.group_topics)))
        self._send(call, self.settings.request_timeout_ms, to_coordinator=False)

    def _assign(self, counts: Mapping[str, int], now: float) -> None:
        if self.phase is not Phase.ASSIGNING:
            return
        assert self._assignor is not None
        self._counts = present = {topic: count for topic, count in counts.items() if count > 0}
        try:
            assignments = self._assignor.assign(present, self._members)
        except Exception as error:  # somebody else's code: the group must not wait for its outcome
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
        self._refusals = 0
        try:
            partitions = decode_assignment(bytes(answer.assignment))
        except DecodeError as error:
            self._fail(error)
            return
        self.phase = Phase.STABLE
        self._heartbeat_at = now + self.settings.heartbeat_interval_ms
        self._granted = frozenset(partitions)
        self._previous = Previous(tuple(partitions), self.generation)
        self.rejoin_reason = ""

    def _heard(self, answer: HeartbeatResponse, now: float) -> None:
        if self.phase not in (Phase.STABLE, Phase.ASSIGNING):
            return
        if answer.error_code:
            self._judge(answer.error_code, now)

    def _failed(self, call: Call, error: PenstockError, now: float) -> None:
        """No answer, or one that says nothing about the member."""
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
            self._wait(now)
        else:
            self._fail(error)

    def _judge(self, code: int, now: float) -> None:
        """Act on an error code of the coordinator (protocol facts, section 10)."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._lose("the coordinator does not know the member any more", keeps_id=False)
        elif code == ErrorCode.ILLEGAL_GENERATION:
            self._lose("the group has gone on without the member", keeps_id=True)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._ask_rejoin(self.rejoin_reason or "the group is rebalancing")
        elif code in COORDINATOR_CODES:
            self.coordinator = None
            self._wait(now)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._lose("another member uses the same group.instance.id", keeps_id=False)
            self.phase = Phase.FENCED
            self.error = explain(code, self.settings)
        elif code == ErrorCode.INVALID_SESSION_TIMEOUT and self._can_lower_session_timeout:
            self._session_timeout_ms = FALLBACK_SESSION_TIMEOUT_MS
        elif error_for(code, "").retriable:
            self._wait(now)
        else:
            self._fail(explain(code, self.settings))

    @property
    def _can_lower_session_timeout(self) -> bool:
        return (
            self.settings.may_lower_session_timeout and self._session_timeout_ms > FALLBACK_SESSION_TIMEOUT_MS
        )

    def _note_refusal(self, api: str, code: int, node: int | None, now: float) -> None:
        """Keep a distance between attempts, and give up when the coordinator has never let the member in.

        The first is repeated at once: a rebalance may have begun in between, or an id been given out.
        """
        if self.error is not None or self.phase is not Phase.UNJOINED:
            return
        if not self._refusals:
            self._refused_since = now
        self._refusals += 1
        if self._refusals > 1 or code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._wait(now)
        if now - self._refused_since >= self._rebalance_patience_ms:
            broker, patience_s = self.name_of(node), self._rebalance_patience_ms / 1000
            refusal = error_for(code, f"{api}, answered {self._refusals} times by broker {broker}")
            what = f"group {self.settings.group_id!r}: not able to join within {patience_s:g} s"
            self._refusals = 0
            self._fail(RequestTimeoutError(f"{what}; the last obstacle: {refusal}"))

    def _wait(self, now: float) -> None:
        self._not_before = now + self._backoff_ms(self._tries)
        self._tries += 1

    def _ask_rejoin(self, reason: str) -> None:
        """Join again as soon as the application's half allows it."""
        self.rejoin_reason = reason
        if self.phase is Phase.ASSIGNING:
            self._forget_requests(CountPartitions, HeartbeatRequest)
            self.phase = Phase.UNJOINED
        self._rejoin = True

    def _lose(self, reason: str, *, keeps_id: bool) -> None:
        """The partitions are somebody else's by now. Commits are refused, and nothing can be given up."""
        self.rejoin_reason = reason
        if not keeps_id:
            self.member_id = ""
        self.generation = NO_GENERATION
        self.is_leader = False
        self._granted = None
        self._has_revoked = False
        self._rejoin = False
        self._is_lost = bool(self.owned)
        self._forget_requests(HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, CountPartitions)
        self.phase = Phase.UNJOINED

    def _fail(self, error: PenstockError) -> None:
        """Leave it to the application: its poll raises the error, and the next one tries again."""
        self.error = error
        self._awaits_poll = True
        self._lose("an error", keeps_id=True)
