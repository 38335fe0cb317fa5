"""The sans-I/O core of a KIP-848 consumer group member, whose partitions the broker assigns.

A member joins with epoch 0 under an id that it has made. Responses to its heartbeats have its epoch, and its
assignment if that has changed. Partitions that are not in the new assignment are revoked first, at the
application's next poll. Then the application gets the new partitions, and the next heartbeat lists all that
it has. Only then does the coordinator assign the revoked partitions to other members.

The driver, `penstock.client.group.member`, is the same as that of the classic protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.client.group.errors import explain_heartbeat
from penstock.client.group.in_flight import InFlight
from penstock.client.group.ownership import NOTHING, AssignmentTarget, Ownership
from penstock.client.group.requests import (
    COORDINATOR_CODES,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    AssignmentChange,
    Call,
    ChangeKind,
    FindGroupCoordinator,
    Heartbeats,
    MemberSettings,
    NameTopics,
    Outgoing,
    WantedTopics,
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
from penstock.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

FIRST_INTERVAL_MS = 5_000.0
"""The heartbeat interval in milliseconds if the broker gives none: Apache Kafka's default."""

INTERVAL_MIN_MS = 10.0
"""The minimum heartbeat interval in milliseconds, even if a broker requests a smaller one."""

RELEASE_PATIENCE_MS = 60_000.0
"""The time in milliseconds that a static member waits for the end of the session of another member with its
instance id. It is the default of ``group.consumer.max.session.timeout.ms``.
"""

GONE_CODES = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH))
"""Error codes after which the member loses its partitions and joins again: the coordinator does not have the
member, or not its epoch."""


class ConsumerMembership:
    """The state machine of one group member (KIP-848). Times are milliseconds of a monotonic clock.

    `make_id` returns member ids.
    """

    def __init__(
        self,
        settings: MemberSettings,
        make_id: Callable[[], str],
        backoff_ms: Callable[[int], float] = lambda tries: min(1_000.0, 100.0 * 2**tries),
    ) -> None:
        self.settings = settings
        self.phase = Phase.OUT
        self.member_id = make_id()
        self.generation = JOIN_EPOCH
        """The member epoch (KIP-848), under which commits are sent."""
        self.coordinator: int | None = None
        self.timeouts = Timeouts(settings)
        self.error: PenstockError | None = None
        """The error that stops the member. The application's next poll raises it."""
        self.rejoin_reason = ""
        self.lost_by = ErrorCode.UNKNOWN_MEMBER_ID
        """The error code that commits raise after the member has lost its membership."""
        self.name_of: Callable[[int | None], object] = lambda node: f"node {node}"
        """A function that returns the name of a node for error messages."""
        self._make_id = make_id
        self._subscription = WantedTopics()
        self._heartbeats = Heartbeats(settings)
        self._target = AssignmentTarget()
        self._in_flight = InFlight()
        self._attempts = Attempts(backoff_ms)
        self._naming = Attempts(backoff_ms)
        """The attempts to look up the names of topics, and the pauses between them."""
        self._ownership = Ownership()
        self._poll = PollInterval(settings.max_poll_interval_ms)
        self._is_leaving = False
        self._is_sent = False
        """True if a request to join was sent, so that the coordinator may have the member."""
        self._is_first_assignment = True
        """True if the application has not been notified of any assignment since the member joined."""
        self._lists_owned = False
        """True if the next heartbeat lists the application's partitions, because these have changed."""
        self._awaits_receipt = False
        """True if a list of the application's partitions was sent, and no heartbeat was answered since."""
        self._interval_ms = FIRST_INTERVAL_MS
        self._heartbeat_at = NEVER

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
        """Return the partitions that the application has had continuously since the given member epoch."""
        return self._ownership.kept_since(generation)

    @property
    def is_member(self) -> bool:
        """True if the coordinator's last answer has confirmed the member under its epoch."""
        return self.generation > JOIN_EPOCH

    @property
    def reads_as_member(self) -> bool:
        """Always True: committed offsets are read under the member's id and epoch."""
        return True

    @property
    def awaits_generation(self) -> bool:
        """True if a heartbeat is in flight, whose response may have a newer epoch."""
        return self._in_flight.has(ConsumerGroupHeartbeatRequest)

    @property
    def topics(self) -> tuple[str, ...]:
        """The subscribed topic names.

        A regular expression is not among them: the coordinator evaluates it.
        """
        return self._subscription.names

    @property
    def group_topics(self) -> set[str]:
        """The topics whose metadata must be fresh: this member's only, as the broker assigns partitions."""
        return set(self._subscription.names)

    # -- what the application does

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Set the topics to subscribe to: names, and patterns for the broker, which begin with ``^``.

        Joining begins with the first poll.
        """
        if self.phase in (Phase.OUT, Phase.FENCED):
            self.phase = Phase.UNJOINED
            self.error = None
            self._is_leaving = False
            self._poll.awaits_poll = True
        self._subscription = WantedTopics.of(topics)
        if self.phase in (Phase.JOINING, Phase.STABLE) and not self._heartbeats.has_sent(self._subscription):
            self._heartbeat_at = now
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
        self._ownership.withdraw_grant()
        self.advance(now)

    def next_change(self) -> AssignmentChange | None:
        """Return the next change to notify the application of, or None; repeat it until `confirm`.

        New partitions are held back while a heartbeat that lists the member's partitions awaits its response.
        This list lacks the new partitions: if the assignment shrinks meanwhile, the coordinator would assign
        them to other members at once.
        """
        change = self._ownership.next_change(self._to_revoke())
        if (
            self._awaits_receipt
            and change is not None
            and change.kind is ChangeKind.ASSIGNED
            and change.partitions
        ):
            return None
        return change

    def confirm(self, change: AssignmentChange, now: float) -> None:
        """Record that the application has been notified of `change`, and that its callback has returned."""
        self._ownership.confirm(change, self.generation)
        self._target.note_owned(self.owned)
        if self._target.is_known and not self._is_leaving and not self._ownership.is_lost:
            # As in Java, something revoked is followed by something assigned, be it nothing.
            self._grant(always=change.kind is ChangeKind.REVOKED)
            if self._ownership.granted is None:
                self._lists_owned = True
                self._heartbeat_at = now
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
        return self.owned - self._ownership.granted if self._ownership.granted is not None else NOTHING

    # -- results that the driver passes in

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Send requests that are due; ignore fresh metadata, because the broker assigns the partitions."""
        self.advance(now)

    def refused(self, code: int, generation: int, now: float) -> None:
        """Act on an error about the member in a response to OffsetCommit or OffsetFetch.

        `generation` is the member epoch that the request had.
        """
        if generation == self.generation and self.phase is Phase.STABLE:
            if code == ErrorCode.STALE_MEMBER_EPOCH:
                # An answer was lost, or is on its way: the next heartbeat has the present epoch.
                self._heartbeats.reset()
                self._heartbeat_at = now
            elif code in GONE_CODES or code == ErrorCode.FENCED_INSTANCE_ID:
                self._judge(code, None, now)
        self.advance(now)

    def answered(self, ticket: int, outcome: object, now: float) -> None:
        """Act on a request's response, or on its error if it has failed. Ignore late and repeated ones."""
        call = self._in_flight.take(ticket)
        if call is None or self.phase is Phase.OUT:
            return
        if isinstance(outcome, PenstockError):
            self._failed(call, outcome, now)
        elif isinstance(call, FindGroupCoordinator) and isinstance(outcome, int):
            self.coordinator = outcome
        elif isinstance(call, NameTopics) and isinstance(outcome, Mapping):
            self._named(outcome, now)
        elif isinstance(call, ConsumerGroupHeartbeatRequest) and isinstance(
            outcome, ConsumerGroupHeartbeatResponse
        ):
            if outcome.error_code:
                self._refused(call, outcome, now)
            else:
                self._accepted(call, outcome, now)
        else:
            self._failed(call, DecodeError(f"{outcome!r} does not answer {call!r}"), now)
        self.advance(now)

    # -- time

    @property
    def wake_at(self) -> float:
        """The latest time (ms) at which the driver must call `advance`; `NEVER` if no call is needed."""
        if self.phase in (Phase.OUT, Phase.FENCED):
            return NEVER
        times = [self._poll.deadline if not self._is_leaving else NEVER]
        if self._must_find:
            times.append(self._attempts.not_before)
        if self._may_join:
            times.append(self._attempts.not_before)
        if self._may_beat:
            times.append(max(self._heartbeat_at, self._attempts.not_before))
        if self._must_name:
            times.append(self._naming.not_before)
        return min(times)

    def advance(self, now: float) -> None:
        """Put the requests that are due at the time `now` into the outbox."""
        if self.phase is Phase.OUT:
            return
        if self._is_leaving and not self.owned:
            self._go()
            self.phase = Phase.OUT
            return
        if self.phase is Phase.FENCED:
            return
        if now >= self._poll.deadline and not self._is_leaving:
            self._stop_for_slow_application()
        if now >= self._attempts.not_before:
            if self._must_find:
                self._in_flight.send(FindGroupCoordinator(), None, self.settings.request_timeout_ms)
            if self._may_join:
                self.phase = Phase.JOINING
                self._beat(now)
            elif self._may_beat and now >= self._heartbeat_at:
                self._beat(now)
        if self._must_name and now >= self._naming.not_before:
            self._naming.wait(now)
            self._in_flight.send(NameTopics(self._target.nameless), None, self.settings.request_timeout_ms)

    def _stop_for_slow_application(self) -> None:
        """Leave the group after ``max.poll.interval.ms``, so that other members get the partitions."""
        self._poll.awaits_poll = True
        self._go()
        self._lose("max.poll.interval.ms passed without a poll")

    @property
    def _must_find(self) -> bool:
        return (
            self.coordinator is None
            and not self._poll.awaits_poll
            and not self._in_flight.has(FindGroupCoordinator)
        )

    @property
    def _may_join(self) -> bool:
        """True if the member can join now: the application has no partitions of an earlier membership."""
        return (
            self.phase is Phase.UNJOINED
            and self.coordinator is not None
            and not self._poll.awaits_poll
            and not self._is_leaving
            and self.error is None
            and not self.owned
        )

    @property
    def _may_beat(self) -> bool:
        return self.phase is Phase.STABLE and self.coordinator is not None and not self.awaits_generation

    @property
    def _must_name(self) -> bool:
        return (
            self.phase is Phase.STABLE and bool(self._target.nameless) and not self._in_flight.has(NameTopics)
        )

    # -- answers

    def _accepted(
        self, call: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        """Take the member epoch and the assignment of a heartbeat response without an error."""
        if answer.member_epoch <= JOIN_EPOCH:
            where = f"broker {self.name_of(self.coordinator)}"
            what = f"{where} gave member {self.member_id!r} the epoch {answer.member_epoch}"
            self._fail(ProtocolViolationError(f"group {self.settings.group_id!r}: {what}"))
            return
        self._attempts.refusals = 0
        self._awaits_receipt = False
        if call.member_epoch != JOIN_EPOCH:
            # Not after a join: a member that is let in and thrown out in turn must become slower.
            self._attempts.tries = 0
        self.member_id = answer.member_id or self.member_id
        self.generation = answer.member_epoch
        self.rejoin_reason = ""
        if answer.heartbeat_interval_ms > 0:
            self._interval_ms = max(INTERVAL_MIN_MS, answer.heartbeat_interval_ms)
        self.phase = Phase.STABLE
        self._heartbeat_at = min(self._heartbeat_at, now + self._interval_ms)
        if self._is_leaving or (answer.assignment is None and self._target.is_known):
            return
        self._target.set(answer.assignment)
        self._naming.tries = 0
        self._naming.not_before = now
        if self._target.nameless:
            # An empty callback for what has no name yet would be noise.
            self._ownership.withdraw_grant()
        else:
            self._grant()

    def _named(self, names: Mapping[bytes, str], now: float) -> None:
        """Store the names of topic ids. Names that are still missing are requested again later."""
        self._target.learn(names)
        if self._target.is_known and not self._is_leaving:
            self._grant()

    def _grant(self, *, always: bool = False) -> None:
        """Grant the assigned partitions to the application, as far as `AssignmentTarget.partitions` allows.

        Nothing is granted if the application has exactly these partitions, unless `always`.
        """
        partitions = self._target.partitions
        if always or self._is_first_assignment or partitions != self.owned:
            self._ownership.grant(partitions)
        else:
            self._ownership.withdraw_grant()
        self._is_first_assignment = False

    def _refused(
        self, call: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse, now: float
    ) -> None:
        """Act on a heartbeat response with an error."""
        code, node = answer.error_code, self.coordinator
        self._heartbeats.reset()
        is_join = call.member_epoch == JOIN_EPOCH
        if self.phase is Phase.JOINING:
            self.phase = Phase.UNJOINED
        if is_join and code in GONE_CODES:
            # Brokers before 2026 keep a fenced member out for good (KAFKA-19233).
            self.member_id = self._make_id()
        self._judge(code, answer.error_message, now, is_join=is_join)
        if is_join and self.error is None and self.phase is Phase.UNJOINED:
            self._note_refusal(code, node, now)

    def _judge(self, code: int, detail: str | None, now: float, *, is_join: bool = False) -> None:
        """Act on the coordinator's error code: lose the membership, find the coordinator, wait, or fail."""
        if code in GONE_CODES or (code == ErrorCode.GROUP_ID_NOT_FOUND and not is_join):
            self._lose(f"the coordinator does not have the member any more ({error_for(code, '').name})")
            self._attempts.wait(now)
        elif code in COORDINATOR_CODES:
            self.coordinator = None
            self._heartbeat_at = now
            self._attempts.wait(now)
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._is_sent = False
            self._lose("another member uses the same group.instance.id")
            self.phase = Phase.FENCED
            self.lost_by = ErrorCode.FENCED_INSTANCE_ID
            self.error = explain_heartbeat(code, self.settings)
        elif code == ErrorCode.UNRELEASED_INSTANCE_ID and is_join:
            self._attempts.wait(now)
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and not is_join:
            # It stays a member: its other topics may be read, and a right may come.
            self.error = explain_heartbeat(code, self.settings, detail)
            self._attempts.wait(now)
        elif error_for(code, "").retriable:
            self._heartbeat_at = now
            self._attempts.wait(now)
        else:
            self._fail(explain_heartbeat(code, self.settings, detail))

    def _note_refusal(self, code: int, node: int | None, now: float) -> None:
        """Fail if the coordinator has refused to let the member join for too long."""
        refused_ms = self._attempts.refused(now)
        is_unreleased = code == ErrorCode.UNRELEASED_INSTANCE_ID
        patience_ms = RELEASE_PATIENCE_MS if is_unreleased else self.timeouts.rebalance_ms
        if refused_ms < patience_ms:
            return
        times, self._attempts.refusals = self._attempts.refusals, 0
        if is_unreleased:
            self._fail(explain_heartbeat(code, self.settings))
            return
        refusal = error_for(code, f"ConsumerGroupHeartbeat, answered {times} times by {self.name_of(node)}")
        what = f"group {self.settings.group_id!r}: not able to join within {patience_ms / 1000:g} s"
        self._fail(RequestTimeoutError(f"{what}; the last obstacle: {refusal}"))

    def _failed(self, call: Call, error: PenstockError, now: float) -> None:
        """Act on a request without a response, or with an error that does not concern this member."""
        if isinstance(call, NameTopics):
            self._named({}, now)
            return
        if isinstance(call, ConsumerGroupHeartbeatRequest):
            if call.member_epoch <= LEAVE_EPOCH:
                return
            self.coordinator = None
            self._heartbeats.reset()
            self._heartbeat_at = now
            if self.phase is Phase.JOINING:
                self.phase = Phase.UNJOINED
        is_passing = isinstance(error, (NetworkError, RequestTimeoutError)) or (
            isinstance(error, KafkaError) and (error.retriable or error.code in COORDINATOR_CODES)
        )
        if is_passing:
            self._attempts.wait(now)
        else:
            self._fail(error)

    def _lose(self, reason: str) -> None:
        """Mark all partitions as lost: other members may have them, so that commits would be refused."""
        self.rejoin_reason = reason
        self.generation = JOIN_EPOCH
        self.lost_by = ErrorCode.UNKNOWN_MEMBER_ID
        self._ownership.lose()
        self._target.clear()
        self._heartbeats.reset()
        self._lists_owned = False
        self._is_first_assignment = True
        self._in_flight.forget(ConsumerGroupHeartbeatRequest, NameTopics)
        self.phase = Phase.UNJOINED

    def _fail(self, error: PenstockError) -> None:
        """Stop with `error`, which the application's poll raises; the poll after that tries again."""
        self.error = error
        self._poll.awaits_poll = True
        self._lose("an error")

    # -- requests to the coordinator

    def _beat(self, now: float) -> None:
        self._heartbeat_at = now + self._interval_ms
        request = self._heartbeats.compose(
            self.member_id,
            self.generation,
            self._subscription,
            self._target.owned_by_id(self.owned),
            lists_owned=self._lists_owned,
        )
        self._lists_owned = False
        self._is_sent = True
        self._awaits_receipt = self._awaits_receipt or request.topic_partitions is not None
        self._in_flight.send(request, self.coordinator, self.settings.request_timeout_ms)

    def _go(self) -> None:
        """Send the heartbeat that leaves the group, unless the coordinator cannot have this member."""
        self._in_flight.forget(ConsumerGroupHeartbeatRequest, NameTopics)
        if self._is_sent and self.coordinator is not None:
            request = self._heartbeats.farewell(self.member_id)
            self._in_flight.send(request, self.coordinator, self.settings.request_timeout_ms)
        self._is_sent = False
        self.generation = JOIN_EPOCH
        self._heartbeats.reset()
