"""The sans-I/O core of a share group member (KIP-932): the broker assigns partitions.

A member joins with epoch 0 under an id that it has made, which is also the key of its share sessions.
Responses to its heartbeats have its epoch, and its assignment if that has changed. The member fetches from
new partitions at once, without any confirmation or revocation: several members may have one partition, and a
member keeps its acquired records until it acknowledges them, or their locks expire.

The driver, `penstock.client.group.member`, is the same as that of other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from penstock.client.group.consumer_membership import FIRST_INTERVAL_MS, GONE_CODES, INTERVAL_MIN_MS
from penstock.client.group.in_flight import InFlight
from penstock.client.group.requests import (
    COORDINATOR_CODES,
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Call,
    FindGroupCoordinator,
    MemberSettings,
    NameTopics,
    Outgoing,
)
from penstock.client.group.state_machine import Phase
from penstock.client.group.timeouts import NEVER, Attempts, PollInterval, Timeouts
from penstock.client.share.errors import explain_heartbeat
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
from penstock.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from penstock.protocol.messages.share_group_heartbeat_response import Assignment, ShareGroupHeartbeatResponse


class ShareMembership:
    """The state machine of one member of a share group. Times are milliseconds of a monotonic clock."""

    def __init__(
        self,
        settings: MemberSettings,
        member_id: str,
        backoff_ms: Callable[[int], float] = lambda tries: min(1_000.0, 100.0 * 2**tries),
    ) -> None:
        self.settings = settings
        self.phase = Phase.OUT
        self.member_id = member_id
        self.epoch = JOIN_EPOCH
        self.coordinator: int | None = None
        self.timeouts = Timeouts(settings)
        self.error: PenstockError | None = None
        """The error that stops the member. The application's next poll raises it."""
        self.name_of: Callable[[int | None], object] = lambda node: f"node {node}"
        """A function that returns the name of a node for error messages."""
        self.assignment: dict[TopicPartition, bytes] = {}
        """The partitions from which the member fetches, with their topic ids."""
        self.changes = 0
        """The number of times that the assignment has changed."""
        self._topics: tuple[str, ...] = ()
        self._sent_topics: tuple[str, ...] | None = None
        """The subscription that the coordinator has; None if the next heartbeat must include it."""
        self._by_id: dict[bytes, tuple[int, ...]] = {}
        self._names: dict[bytes, str] = {}
        self._in_flight = InFlight()
        self._attempts = Attempts(backoff_ms)
        self._naming = Attempts(backoff_ms)
        self._poll = PollInterval(settings.max_poll_interval_ms)
        self._is_sent = False
        """True if a request to join was sent, so that the coordinator may have the member."""
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
    def topics(self) -> tuple[str, ...]:
        """The names of the subscribed topics."""
        return self._topics

    @property
    def group_topics(self) -> set[str]:
        """The topics whose metadata the driver must keep fresh: those that this member is subscribed to."""
        return set(self._topics)

    # -- what the application does

    def subscribe(self, topics: Iterable[str], now: float) -> None:
        """Set the topics to subscribe to. Joining begins with the first poll."""
        self._topics = tuple(sorted(set(topics)))
        if self.phase is Phase.OUT:
            self.phase = Phase.UNJOINED
            self.error = None
            self._poll.awaits_poll = True
        elif self.phase in (Phase.JOINING, Phase.STABLE) and self._topics != self._sent_topics:
            self._heartbeat_at = now
        self.advance(now)

    def polled(self, now: float) -> None:
        """Record that the application asks for records, or processes some: the poll interval starts again."""
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
        """Leave the group. Acquired records stay locked until they are acknowledged or their locks expire."""
        if self.phase is not Phase.OUT:
            self._go()
            self._set_assignment(None)
            self.phase = Phase.OUT

    def take_error(self) -> PenstockError | None:
        """Return the error that the next poll must raise, or None, and clear that error.

        The poll after that tries again.
        """
        error, self.error = self.error, None
        return error

    # -- results that the driver passes in

    def counted(self, counts: Mapping[str, int], now: float) -> None:
        """Send requests that are due; ignore fresh metadata, because the broker assigns the partitions."""
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
            self._names.update(outcome)
            self._name_assignment()
        elif isinstance(call, ShareGroupHeartbeatRequest) and isinstance(
            outcome, ShareGroupHeartbeatResponse
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
        if self.phase is Phase.OUT:
            return NEVER
        times = [self._poll.deadline]
        if self._must_find or self._may_join:
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
        if now >= self._poll.deadline:
            # Leave, so that other members get the partitions of an application that does not poll.
            self._poll.awaits_poll = True
            self._go()
            self._lose()
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
            self._in_flight.send(NameTopics(self._nameless), None, self.settings.request_timeout_ms)

    @property
    def _must_find(self) -> bool:
        return (
            self.coordinator is None
            and not self._poll.awaits_poll
            and not self._in_flight.has(FindGroupCoordinator)
        )

    @property
    def _may_join(self) -> bool:
        return (
            self.phase is Phase.UNJOINED
            and self.coordinator is not None
            and not self._poll.awaits_poll
            and self.error is None
        )

    @property
    def _may_beat(self) -> bool:
        is_under_way = self._in_flight.has(ShareGroupHeartbeatRequest)
        return self.phase is Phase.STABLE and self.coordinator is not None and not is_under_way

    @property
    def _nameless(self) -> tuple[bytes, ...]:
        return tuple(sorted(topic_id for topic_id in self._by_id if topic_id not in self._names))

    @property
    def _must_name(self) -> bool:
        return self.phase is Phase.STABLE and bool(self._nameless) and not self._in_flight.has(NameTopics)

    # -- answers

    def _accepted(
        self, call: ShareGroupHeartbeatRequest, answer: ShareGroupHeartbeatResponse, now: float
    ) -> None:
        if answer.member_epoch <= JOIN_EPOCH:
            where = f"broker {self.name_of(self.coordinator)}"
            what = f"{where} gave member {self.member_id!r} the epoch {answer.member_epoch}"
            self._fail(ProtocolViolationError(f"group {self.settings.group_id!r}: {what}"))
            return
        self._attempts.refusals = 0
        if call.member_epoch != JOIN_EPOCH:
            # Not after a join: a member that is let in and thrown out in turn must become slower.
            self._attempts.tries = 0
        self.epoch = answer.member_epoch
        self.phase = Phase.STABLE
        if answer.heartbeat_interval_ms > 0:
            self._interval_ms = max(INTERVAL_MIN_MS, answer.heartbeat_interval_ms)
        if self._sent_topics == self._topics:
            self._heartbeat_at = min(self._heartbeat_at, now + self._interval_ms)
        if answer.assignment is not None:
            self._naming.tries = 0
            self._naming.not_before = now
            self._set_assignment(answer.assignment)

    def _set_assignment(self, assignment: Assignment | None) -> None:
        topics = assignment.topic_partitions if assignment is not None else []
        self._by_id = {bytes(each.topic_id): tuple(each.partitions) for each in topics}
        self._names = {each: name for each, name in self._names.items() if each in self._by_id}
        self._name_assignment()

    def _name_assignment(self) -> None:
        """Set the assignment to the assigned partitions whose topic names are known."""
        found = {
            TopicPartition(self._names[topic_id], number): topic_id
            for topic_id, numbers in self._by_id.items()
            if topic_id in self._names
            for number in numbers
        }
        if found != self.assignment:
            self.assignment = found
            self.changes += 1

    def _refused(
        self, call: ShareGroupHeartbeatRequest, answer: ShareGroupHeartbeatResponse, now: float
    ) -> None:
        """Act on a heartbeat response with an error."""
        code, node = answer.error_code, self.coordinator
        self._sent_topics = None
        is_join = call.member_epoch == JOIN_EPOCH
        if self.phase is Phase.JOINING:
            self.phase = Phase.UNJOINED
        if code in GONE_CODES:
            self._lose()
            self._attempts.wait(now)
        elif code in COORDINATOR_CODES:
            self.coordinator = None
            self._heartbeat_at = now
            self._attempts.wait(now)
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED and not is_join:
            # It stays a member: its other topics may be read, and a right may come.
            self.error = explain_heartbeat(code, self.settings.group_id, answer.error_message)
            self._attempts.wait(now)
        elif error_for(code, "").retriable:
            self._heartbeat_at = now
            self._attempts.wait(now)
        else:
            self._fail(explain_heartbeat(code, self.settings.group_id, answer.error_message))
        if is_join and self.error is None and self._attempts.refused(now) >= self.timeouts.rebalance_ms:
            times, self._attempts.refusals = self._attempts.refusals, 0
            refusal = error_for(code, f"ShareGroupHeartbeat, answered {times} times by {self.name_of(node)}")
            patience_s = self.timeouts.rebalance_ms / 1000
            what = f"group {self.settings.group_id!r}: not able to join within {patience_s:g} s"
            self._fail(RequestTimeoutError(f"{what}; the last obstacle: {refusal}"))

    def _failed(self, call: Call, error: PenstockError, now: float) -> None:
        """Act on a request without a response, or with an error that does not concern this member."""
        if isinstance(call, NameTopics):
            return
        if isinstance(call, ShareGroupHeartbeatRequest):
            self.coordinator = None
            self._sent_topics = None
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

    def _lose(self) -> None:
        """Drop the assignment and join again, because the coordinator has removed the member."""
        self.epoch = JOIN_EPOCH
        self._sent_topics = None
        self._in_flight.forget(ShareGroupHeartbeatRequest, NameTopics)
        self._set_assignment(None)
        self.phase = Phase.UNJOINED

    def _fail(self, error: PenstockError) -> None:
        """Stop with `error`, which the application's poll raises; the poll after that tries again."""
        self.error = error
        self._poll.awaits_poll = True
        self._lose()

    # -- requests to the coordinator

    def _beat(self, now: float) -> None:
        self._heartbeat_at = now + self._interval_ms
        is_full = self._sent_topics is None or self.epoch == JOIN_EPOCH
        is_new = is_full or self._sent_topics != self._topics
        self._sent_topics = self._topics
        self._is_sent = True
        request = ShareGroupHeartbeatRequest(
            group_id=self.settings.group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rack_id=self.settings.client_rack if is_full else None,
            subscribed_topic_names=list(self._topics) if is_new else None,
        )
        self._in_flight.send(request, self.coordinator, self.settings.request_timeout_ms)

    def _go(self) -> None:
        """Send the heartbeat that leaves the group, unless the coordinator cannot have this member."""
        self._in_flight.forget(ShareGroupHeartbeatRequest, NameTopics)
        if self._is_sent and self.coordinator is not None:
            request = ShareGroupHeartbeatRequest(
                group_id=self.settings.group_id, member_id=self.member_id, member_epoch=LEAVE_EPOCH
            )
            self._in_flight.send(request, self.coordinator, self.settings.request_timeout_ms)
        self._is_sent = False
        self.epoch = JOIN_EPOCH
        self._sent_topics = None
