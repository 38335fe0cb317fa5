"""The group of a consumer: its membership, committed offsets, and the callbacks for rebalances.

Everything but `subscribe` runs on the client's event loop. The consumer calls `next_notice` if
`needs_attention` is set when its application asks for records. Partitions are taken away only then, and only
then are earlier records known to be processed, so that their offsets may be committed.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from penstock.client.arguments import by_partition, topics_or_pattern
from penstock.client.assignors import Assignor, assignor_named
from penstock.client.group.consumer_membership import ConsumerMembership
from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.errors import explain_commit
from penstock.client.group.member import MembershipDriver
from penstock.client.group.membership import Membership
from penstock.client.group.offsets import (
    Committable,
    GroupMetadata,
    GroupOffsets,
    MemberIdentity,
    OffsetAndMetadata,
)
from penstock.client.group.protocol_choice import ProtocolChoice
from penstock.client.group.requests import AssignmentChange, ChangeKind, MemberSettings
from penstock.client.group.state_machine import Phase, StateMachine
from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.config import ConsumerConfig
    from penstock.client.statistics import GroupStatistics

Callback = Callable[[list[TopicPartition]], object]
"""A function of the application that gets a list of partitions that were assigned, revoked or lost."""

LAST_COMMIT_MS = 5_000.0
"""The time in milliseconds that a revocation, or closing, waits for the automatic commit."""

ANSWER_CHECK_S = 0.01
"""The interval in seconds between checks for the response to a JoinGroup or a KIP-848 heartbeat."""

log = logger_named("penstock.client.group")

SHOWN_MAX = 10
"""The maximum number of partitions listed in one log message."""


class Notice(NamedTuple):
    """A change of partitions, and the application's callback for it, or None."""

    change: AssignmentChange
    callback: Callback | None


class Callbacks(NamedTuple):
    """The application's callbacks. Without `on_lost`, `on_revoked` is called for lost partitions."""

    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None


class Holder(Protocol):
    """The interface of a consumer that its group session uses."""

    needs_attention: bool

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Read more partitions, beginning at the group's committed offsets."""

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions that the group has taken away."""

    def consumed(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each partition whose position is known."""

    def progress(self) -> object:
        """Return a value that changes whenever the application takes records."""

    def wake_up(self) -> None:
        """Wake a call that waits for records, so that it checks `needs_attention`."""


class GroupSession:
    """The membership of one consumer in its group, with commits and callbacks."""

    def __init__(self, client: AsyncClient, config: ConsumerConfig, holder: Holder) -> None:
        assert config.group_id is not None
        self.is_subscribed = False
        self._client = client
        self._config = config
        self._holder = holder
        self._coordinator = CoordinatorFinder(client, config.group_id)
        self._offsets = GroupOffsets(client, self._coordinator)
        self._offsets.on_refused = self._refused
        self._offsets.join_answered = self._join_answered
        self._names: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._is_pattern_text = False
        """True if the pattern was given as text, which a broker can evaluate (KIP-848)."""
        self._choice = ProtocolChoice(client, config.group_protocol)
        self._callbacks = Callbacks()
        self._is_changed = False
        self._is_leaving = False
        self._member: MembershipDriver[StateMachine] | None = None
        self._commits_by_itself = config.enable_auto_commit
        self._is_commit_due = False
        self._commit_timer: asyncio.TimerHandle | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._known: dict[TopicPartition, int] = {}
        """The committed offsets of the member's partitions that this consumer has committed or read."""
        self._sought: dict[TopicPartition, object] = {}
        """The partitions whose position the application has set since the last commit began. The value is a
        new object for each seek, so that a commit can detect a later seek."""
        self._progress: object = None
        self._rebalances = 0
        self._rebalanced_at = 0.0
        """The time at which partitions were last assigned, revoked or lost (monotonic time)."""

    # -- subscribing, from any thread

    def subscribe(self, topics: str | re.Pattern[str] | Iterable[str], callbacks: Callbacks) -> None:
        """Subscribe to these topics; the next poll joins the group.

        Raises:
            ConfigError: no topic, or an invalid pattern.
        """
        self._names, self._pattern = topics_or_pattern(topics)
        self._is_pattern_text = not isinstance(topics, re.Pattern)
        self._callbacks = callbacks
        self._is_changed = self.is_subscribed = self._holder.needs_attention = True

    # -- changes to notify the application of

    async def next_notice(self) -> Notice | None:
        """Return the next change for which the application has a callback, or None.

        Changes without a callback are applied at once. An automatic commit begins if it is due.

        Raises:
            KafkaError: the coordinator refuses the member.
            UnsupportedVersionError: the broker is too old.
            NetworkError: no broker has been reached so far.
        """
        self._arm_commit_timer()
        if self._is_changed:
            await self._apply_subscription()
        self._commit_if_due()
        member = self._member
        while member is not None:
            membership = member.membership
            membership.polled(member.now)
            if membership.is_member:
                self._choice.joined()
            error = membership.take_error()
            if error is not None and not self._is_leaving:
                if not membership.next_change() and self._choice.switches_after(error):
                    member = await self._switch_protocol(member, error)
                    continue
                raise error
            change = membership.next_change()
            if change is None:
                member.pump()
                break
            callback = await self._prepare(member, change)
            if callback is not None:
                return Notice(change, callback)
            await self.confirm(Notice(change, None))
        self._notice_change()
        return None

    async def _switch_protocol(
        self, member: MembershipDriver[StateMachine], error: PenstockError
    ) -> MembershipDriver[StateMachine] | None:
        """Join the group with the other protocol after a refusal; return the new member's driver, or None."""
        name = "consumer (KIP-848)" if self._choice.speaks_consumer else "classic"
        log.info("group %s: trying the %s protocol, after: %s", self._config.group_id, name, error)
        self._member = None
        await member.close()
        await self._apply_subscription()
        return self._member

    async def confirm(self, notice: Notice) -> None:
        """Record that the application has been notified of a change, and apply it to the consumer."""
        assert self._member is not None
        change, member = notice.change, self._member
        if change.kind is ChangeKind.REVOKED:
            if self._commits:
                # Once given up, what is under way would be refused.
                await asyncio.wait(self._commits, timeout=LAST_COMMIT_MS / 1000)
            self._release(change.partitions)
        if change.kind is not ChangeKind.ASSIGNED:
            member.membership.confirm(change, member.now)
        member.pump()

    async def _prepare(
        self, member: MembershipDriver[StateMachine], change: AssignmentChange
    ) -> Callback | None:
        """Prepare a change of partitions; return the application's callback for it, or None without one.

        Before a revocation, offsets are committed. After an assignment, the consumer begins to read.
        """
        callbacks = self._callbacks
        self._rebalances += 1
        self._rebalanced_at = time.monotonic()
        if change.kind is not ChangeKind.LOST:
            log.info(
                "group %s: %s %s", self._config.group_id, change.kind.name.lower(), _listed(change.partitions)
            )
        if change.kind is ChangeKind.REVOKED:
            if self._commits_by_itself:
                await self._commit_at_last(self._holder.consumed())
            return callbacks.on_revoked
        if change.kind is ChangeKind.LOST:
            log.warning(
                "group %s: partitions lost: %s", self._config.group_id, member.membership.rejoin_reason
            )
            self._release(change.partitions)
            return callbacks.on_lost or callbacks.on_revoked
        # From here on a rebalance must revoke these partitions, even if the callback raises.
        member.membership.confirm(change, member.now)
        self._forget(change.partitions)
        self._holder.hold(change.partitions)
        return callbacks.on_assigned

    def _release(self, partitions: Iterable[TopicPartition]) -> None:
        self._forget(partitions)
        self._holder.release(partitions)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._known.pop(tp, None)
            self._sought.pop(tp, None)

    async def _apply_subscription(self) -> None:
        await self._client.bootstrap()
        await self._choice.decide()
        self._is_changed = False
        names = list(self._names)
        if self._pattern is not None and self._broker_matches:
            names = [self._pattern.pattern]
        elif self._pattern is not None:
            try:
                await self._client.refresh(all_topics=True)
            except BaseException:  # a poll that is cancelled, too
                self._is_changed = True
                raise
            names = self._matching() or []
        if self._member is None:
            self._member = self._new_member()
        self._member.membership.subscribe(names, self._member.now)

    def _new_member(self) -> MembershipDriver[StateMachine]:
        config = self._config
        assert config.group_id is not None
        settings = MemberSettings(
            config.group_id,
            config.group_instance_id,
            config.session_timeout_ms,
            config.heartbeat_interval_ms,
            config.max_poll_interval_ms,
            config.request_timeout_ms,
            config.client_rack,
            config.group_remote_assignor,
            may_lower_session_timeout=config.has_default_session_timeout,
        )
        client = self._client
        membership: StateMachine

        def backoff_ms(tries: int) -> float:
            return client.backoff.seconds(tries, client.dice) * 1000

        if self._choice.speaks_consumer:
            membership = ConsumerMembership(settings, lambda: str(uuid.uuid4()), backoff_ms)
        else:
            assignors = [
                one if isinstance(one, Assignor) else assignor_named(one) for one in config.assignors
            ]
            membership = Membership(settings, assignors, backoff_ms)
        return MembershipDriver(
            client,
            self._coordinator,
            membership,
            on_change=self._notice_change,
            is_alive=self._is_alive,
            topics_wanted=lambda: None if self._broker_matches else self._matching(),
        )

    @property
    def _broker_matches(self) -> bool:
        """True if the broker evaluates the pattern.

        A compiled pattern is evaluated here, since it may use features of Python that a broker does not have.
        """
        return self._is_pattern_text and self._choice.speaks_consumer

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern, the matching topics in the client's metadata."""
        fitting = self._matching()
        return (set(self._names) if fitting is None else set(fitting)) if self.is_subscribed else set()

    def _matching(self) -> list[str] | None:
        """Return the topics that match the pattern, or None if the subscription has no pattern."""
        if self._pattern is None:
            return None
        topics = self._client.cluster.topics.values()
        return [
            t.name for t in topics if t.partitions and not t.is_internal and self._pattern.fullmatch(t.name)
        ]

    def _is_alive(self) -> bool:
        before, self._progress = self._progress, self._holder.progress()
        return before != self._progress

    def _notice_change(self) -> None:
        must_act = self._member is not None and self._member.membership.must_act
        self._holder.needs_attention = must_act or self._is_commit_due or self._is_changed
        if self._holder.needs_attention:
            self._holder.wake_up()

    def poll_begins(self) -> None:
        """Record that the application waits for records: ``max.poll.interval.ms`` does not run meanwhile."""
        if self._member is not None:
            self._member.membership.poll_begins(self._member.now)
            self._member.pump()

    def poll_ends(self) -> None:
        if self._member is not None:
            self._member.membership.poll_ends(self._member.now)
            self._member.pump()

    @property
    def member_id(self) -> str:
        """The member's id in the group, or an empty string before it has one."""
        return self._member.membership.member_id if self._member is not None else ""

    def statistics(self, assignment_size: int) -> GroupStatistics:
        """Return the group's part of a statistics snapshot, for a member with `assignment_size` partitions.

        Any thread may call this method.
        """
        from penstock.client.statistics import GroupStatistics

        member = self._member
        phase = member.membership.phase if member is not None else Phase.OUT
        age_s = time.monotonic() - self._rebalanced_at if self._rebalances else 0.0
        return GroupStatistics(
            group_id=self._coordinator.group_id,
            member_id=self.member_id,
            state="up" if phase is Phase.STABLE else phase.name.lower(),
            assignment_size=assignment_size,
            rebalance_cnt=self._rebalances,
            rebalance_age=int(age_s * 1000),
        )

    def known_offsets(self) -> dict[TopicPartition, int]:
        """Return the committed offsets that this client has written or read. Any thread may call this."""
        return self._known.copy()

    # -- offsets

    async def commit(self, offsets: Committable | None = None, timeout_ms: float | None = None) -> None:
        """Commit `offsets`, or the consumer's positions by default. Raises as `GroupOffsets.commit`."""
        wanted = self._holder.consumed() if offsets is None else by_partition(offsets, "commit()")
        sought = {tp: self._sought.get(tp) for tp in wanted}
        await self._offsets.commit(wanted, lambda before: self._identify(before, set(sought)), timeout_ms)
        for tp, at in wanted.items():
            self._known[tp] = at.offset if isinstance(at, OffsetAndMetadata) else at
            if self._sought.get(tp) is sought[tp]:
                self._sought.pop(tp, None)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets. Raises as `GroupOffsets.fetch`."""
        # What a transaction has not decided yet would be read, and produced, a second time (KIP-447).
        found = await self._offsets.fetch(
            partitions, require_stable=True, timeout_ms=timeout_ms, identify=self._identify_reader
        )
        for tp, at in found.items():
            if at is not None:
                self._known.setdefault(tp, at.offset)
        return found

    def metadata(self) -> GroupMetadata:
        """Return the member's current id and generation. Raises as `AsyncConsumer.group_metadata`."""
        identity = self._identify(None, set())
        return GroupMetadata(
            self._coordinator.group_id, identity.generation, identity.member_id, identity.instance_id
        )

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to read of each partition whose position is known."""
        return self._holder.consumed()

    def sought(self, tp: TopicPartition) -> None:
        """Record that the application has set a position: a later commit may then move backwards."""
        self._sought[tp] = object()

    def _identify(self, before: MemberIdentity | None, partitions: set[TopicPartition]) -> MemberIdentity:
        """Return the member identity for a commit of `partitions`; raise KafkaError if it must not commit.

        If there was a rebalance since the identity `before`, the member must have kept all these partitions.
        """
        if not self.is_subscribed:
            return MemberIdentity()
        membership = self._member.membership if self._member is not None else None
        if membership is None or not membership.is_member:
            code = membership.lost_by if membership is not None else ErrorCode.UNKNOWN_MEMBER_ID
            raise explain_commit(code, self._coordinator.group_id)
        identity = MemberIdentity(membership.generation, membership.member_id, self._config.group_instance_id)
        if before is not None and before != identity:
            is_same_member = before.member_id == identity.member_id
            if not is_same_member or not partitions <= membership.kept_since(before.generation):
                raise explain_commit(ErrorCode.ILLEGAL_GENERATION, self._coordinator.group_id)
        return identity

    def _identify_reader(self) -> MemberIdentity:
        """Return the member identity for reading committed offsets with KIP-848, else an empty identity."""
        membership = self._member.membership if self._member is not None else None
        if membership is None or not membership.reads_as_member or not membership.is_member:
            return MemberIdentity()
        return MemberIdentity(membership.generation, membership.member_id)

    def _refused(self, code: int, generation: int) -> None:
        if self._member is not None:
            self._member.membership.refused(code, generation, self._member.now)
            self._member.pump()

    async def _join_answered(self) -> None:
        while self._member is not None and self._member.membership.awaits_generation:
            await asyncio.sleep(ANSWER_CHECK_S)

    # -- automatic commits

    def _arm_commit_timer(self) -> None:
        if self._commits_by_itself and self._commit_timer is None:
            loop = asyncio.get_running_loop()
            interval_s = self._config.auto_commit_interval_ms / 1000
            self._commit_timer = loop.call_later(interval_s, self._commit_is_due)

    def _commit_is_due(self) -> None:
        self._commit_timer = None
        self._is_commit_due = True
        self._notice_change()

    def _commit_if_due(self) -> None:
        """Begin an automatic commit, if it is due, of the records that earlier polls have returned."""
        if not self._is_commit_due:
            return
        self._is_commit_due = False
        self._arm_commit_timer()
        moved = self._moved(self._holder.consumed())
        if moved and not self._commits:
            self.begin_commit(moved, _complain)

    def begin_commit(
        self, offsets: Committable | None, when_done: Callable[[Committable, PenstockError | None], object]
    ) -> None:
        """Begin to commit in the background, after commits that have begun; call `when_done` at the end."""
        wanted = self._holder.consumed() if offsets is None else by_partition(offsets, "commit_async()")
        task = asyncio.get_running_loop().create_task(self.commit(wanted))
        self._commits.add(task)

        def finish(done: asyncio.Task[None]) -> None:
            self._commits.discard(done)
            if not done.cancelled():
                error = done.exception()
                if error is not None and not isinstance(error, PenstockError):
                    raise error
                when_done(wanted, error)

        task.add_done_callback(finish)

    def _moved(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return those of the given offsets that differ from the group's committed offsets."""
        return {tp: at for tp, at in offsets.items() if self._known.get(tp) != at}

    async def _commit_at_last(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets before a revocation; give up after a short time, with a warning."""
        moved = self._moved(offsets)
        try:
            if moved:
                await self.commit(moved, min(LAST_COMMIT_MS, self._config.default_api_timeout_ms))
        except PenstockError as error:
            _complain(moved, error)

    # -- the end

    async def begin_leaving(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit `offsets` if commits are automatic, and begin to leave the group.

        After that, `next_notice` returns the callbacks.
        """
        if self._commit_timer is not None:
            self._commit_timer.cancel()
            self._commit_timer = None
        self._is_commit_due = self._is_changed = False
        if self._commits:
            await asyncio.wait(self._commits, timeout=LAST_COMMIT_MS / 1000)
        is_known = self._member is not None and self._member.membership.is_member
        if self._commits_by_itself and (is_known or not self.is_subscribed):
            # Never back behind what has been committed, but where the application has gone there.
            ahead = {
                tp: at for tp, at in offsets.items() if tp in self._sought or at > self._known.get(tp, -1)
            }
            await self._commit_at_last(ahead)
        self._is_leaving = True
        if self._member is not None:
            self._commits_by_itself = False
            self._member.membership.leave(self._member.now)
            self._member.pump()

    async def end_leaving(self) -> None:
        """Wait a short time for the response to the LeaveGroup request."""
        member, self._member = self._member, None
        self.is_subscribed = self._is_leaving = False
        self._commits_by_itself = self._config.enable_auto_commit
        if member is not None:
            await member.close()

    async def close(self) -> None:
        """Cancel commits and timers, and stop the member's driver."""
        if self._commit_timer is not None:
            self._commit_timer.cancel()
        for task in list(self._commits):
            task.cancel()
        await asyncio.gather(*self._commits, return_exceptions=True)
        await self.end_leaving()


def _complain(offsets: Committable, error: PenstockError | None) -> None:
    if error is not None:
        log.warning("automatic commit: %s", error)


def _listed(partitions: Sequence[TopicPartition]) -> str:
    """Return the partitions as text for the log: the first few, and how many more."""
    shown = ", ".join(map(str, sorted(partitions)[:SHOWN_MAX]))
    more = len(partitions) - SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown or "nothing"
