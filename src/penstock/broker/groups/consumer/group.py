"""One consumer group: the changes that a heartbeat, a leave or a timer causes (KIP-848).

`ConsumerGroup` returns these changes as a `Draft`. The group changes only when `accept` is called with the
draft, after the draft has been stored. Errors are raised as `KafkaError`. The order of checks, the error
codes and the records follow Apache Kafka 4.3, so that a client cannot distinguish Penstock from Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from penstock.broker.coordination import draft as drafts
from penstock.broker.groups.consumer.assignors import Subscriber, assign
from penstock.broker.groups.consumer.reconciliation import reconcile
from penstock.broker.groups.consumer.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NO_TIME,
    STATIC_LEAVE_EPOCH,
    ConsumerSubscription,
    Current,
    GroupState,
    MemberState,
    Partition,
    Resolved,
    SetCurrent,
    SetEpoch,
    SetRegex,
    SetSubscription,
    SetTarget,
    SetTargetEpoch,
    State,
)
from penstock.broker.groups.metadata_view import TopicsView, counts_of, hash_of, ids_of
from penstock.broker.groups.offsets import OffsetExpiration
from penstock.broker.groups.settings import (
    ASSIGNOR_NAMES,
    REGEX_REFRESH_MIN_S,
    ConsumerGroupSettings,
)
from penstock.errors import KafkaError
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode, error_for

Draft: TypeAlias = drafts.Draft[GroupState]
"""A consumer group as one request or timer would change it, before the change is stored."""

Matcher = Callable[[str], bool]
"""A function that returns True if a regular expression matches the whole of a topic name."""


class Classic(NamedTuple):
    """The fields of a `Heartbeat` that only classic members have: session timeout and assignors."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    has_id: bool = True
    """True if the JoinGroup contained the member id; False if the broker has just made the id."""


class Heartbeat(NamedTuple):
    """The fields of a ConsumerGroupHeartbeat. A field that is None has not changed.

    A JoinGroup of the classic protocol is converted to a `Heartbeat` whose `classic` is set.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: frozenset[Partition] | None = None
    client_id: str = ""
    client_host: str = ""
    classic: Classic | None = None

    @property
    def is_full(self) -> bool:
        """Return True if the heartbeat has all fields of a join; the response has the whole assignment."""
        has_topics = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat; `assignment` is None if the member's assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assignment: Mapping[Partition, int] | None = None


class ConsumerGroup:
    """A consumer group. `stored` is its state according to the records in `__consumer_offsets`."""

    def __init__(self, group_id: str, compile_regex: Callable[[str], Matcher]) -> None:
        """Make an empty group; `compile_regex` makes a matching function, or raises ValueError."""
        self.id = group_id
        self.stored = GroupState()
        self.refreshed_at = float("-inf")
        """The time at which regular expressions were last matched, in seconds of the monotonic clock."""
        self.matched_version = -1
        """The metadata version with which regular expressions were last matched."""
        self._compile = compile_regex
        self._hashed: tuple[int, frozenset[str]] | None = None
        """The metadata version and subscribed topics at the last check of the stored topic hash."""

    def __repr__(self) -> str:
        members = f"{len(self.stored.subscriptions)} members"
        return printable(f"<ConsumerGroup {self.id} {self.state}, epoch {self.stored.epoch}, {members}>")

    def accept(self, draft: Draft) -> None:
        """Apply the changes of a draft, after they have been stored."""
        self.stored = draft.state

    # --- heartbeats --------------------------------------------------------------------------------------

    def heartbeat(
        self,
        beat: Heartbeat,
        settings: ConsumerGroupSettings,
        view: TopicsView,
        now_ms: int,
        draft: Draft | None = None,
        *,
        bump: bool = False,
        assigns: bool = True,
    ) -> tuple[Draft, HeartbeatResult]:
        """Handle a heartbeat of a new or existing member; return the changes, and the response.

        `now_ms` is wall-clock time in milliseconds, stored with the target assignment. `draft` has changes
        that were made earlier for this request, to which the heartbeat adds its own. If `bump` is True, the
        group epoch is always raised. If `assigns` is False, the target assignment is not recomputed.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED (81), UNKNOWN_MEMBER_ID (25), FENCED_MEMBER_EPOCH (110),
                FENCED_INSTANCE_ID (82), UNRELEASED_INSTANCE_ID (111) or INVALID_REGULAR_EXPRESSION (128).
        """
        draft = drafts.Draft(self.stored) if draft is None else draft
        self._check_room(beat.member_id, draft.state, settings)
        if beat.instance_id is None:
            self._check_dynamic(beat, draft.state)
        else:
            self._check_static(beat, draft)
        before = draft.state.current(beat.member_id)
        is_new = beat.member_id not in draft.state.subscriptions
        preferred = self._preferred_before(beat, draft.state, settings)
        has_changed = self._subscribe(beat, draft)
        has_turned = preferred is not None and preferred != assignor_of(draft.state, settings)
        self._refresh_epoch(draft, view, bump=bump or has_changed or has_turned)
        if assigns:
            self._refresh_target(draft, settings, view, now_ms)
        self._reconcile(beat, draft, view, has_changed=has_changed, is_new=is_new)
        after = draft.state.current(beat.member_id)
        tells = beat.epoch == JOIN_EPOCH or beat.is_full or after.assigned != before.assigned
        return draft, HeartbeatResult(
            beat.member_id,
            after.epoch,
            settings.heartbeat_interval_ms,
            after.assigned if tells else None,
        )

    def _check_room(self, member_id: str, state: GroupState, settings: ConsumerGroupSettings) -> None:
        """Check that the group contains the member already, or is below its maximum size.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED (81).
        """
        if member_id not in state.subscriptions and len(state.subscriptions) >= settings.max_size:
            raise error_for(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {self.id} has reached its maximum capacity of {settings.max_size} members",
            )

    def _check_dynamic(self, beat: Heartbeat, state: GroupState) -> None:
        if beat.classic is not None:
            if beat.owned and beat.member_id not in state.subscriptions:
                # Its session has ended, and others may have what it says that it owns: it has to give it up
                # first. Apache Kafka lets it in, and both read for a while.
                raise unknown_member(self.id, beat.member_id)
            return
        if beat.member_id in state.subscriptions:
            self._check_epoch(beat, state.current(beat.member_id))
        elif beat.epoch != JOIN_EPOCH:
            raise unknown_member(self.id, beat.member_id)

    def _check_epoch(self, beat: Heartbeat, current: Current) -> None:
        """Check the epoch that a member sends.

        Epoch 0 is always valid: a fenced member rejoins with it (KAFKA-19233). A member that has not received
        the response with its new epoch sends its previous epoch, which is valid if the member owns only
        partitions that are assigned to it.
        """
        if beat.epoch in (JOIN_EPOCH, current.epoch):
            return
        is_previous = beat.epoch < current.epoch and beat.epoch == current.previous_epoch
        if is_previous and beat.owned is not None and beat.owned <= current.assigned.keys():
            return
        raise error_for(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {beat.member_id} of group {self.id} has epoch {current.epoch}, not {beat.epoch}; "
            "it must abandon all its partitions and join again",
        )

    def _check_static(self, beat: Heartbeat, draft: Draft) -> None:
        """Check a static member; if it returns with a new member id, transfer the state of the old id to it.

        A classic member that sends a member id must be the one to which the instance id belongs. A classic
        member without a member id replaces the member to which the instance id belongs.
        """
        assert beat.instance_id is not None
        state, classic = draft.state, beat.classic
        holder = state.instances.get(beat.instance_id)
        if beat.epoch != JOIN_EPOCH or (classic is not None and classic.has_id):
            check_instance(self.id, state, beat.member_id, beat.instance_id)
            if classic is None:
                self._check_epoch(beat, state.current(beat.member_id))
            return
        if holder is None:
            return
        current, subscription = state.current(holder), state.subscriptions[holder]
        has_left = current.epoch == STATIC_LEAVE_EPOCH
        if holder == beat.member_id:
            if has_left:
                draft.make(SetCurrent(holder, current._replace(epoch=JOIN_EPOCH)))
            return
        if not has_left and not subscription.is_classic and classic is None:
            raise error_for(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"the instance id {beat.instance_id} is held by member {holder} of group {self.id}, "
                "whose session has not ended",
            )
        target = state.target(holder)
        draft.make(
            SetCurrent(holder, None),
            SetTarget(holder, None),
            SetSubscription(holder, None),
            SetSubscription(beat.member_id, subscription),
            SetTarget(beat.member_id, target),
            SetCurrent(beat.member_id, current._replace(epoch=JOIN_EPOCH, previous_epoch=current.epoch)),
        )

    # --- the steps of a heartbeat ------------------------------------------------------------------------

    def _preferred_before(
        self, beat: Heartbeat, state: GroupState, settings: ConsumerGroupSettings
    ) -> str | None:
        """Return the group's assignor before a heartbeat that changes the member's assignor, otherwise None.

        Also returns None if the rules of Kafka before 4.4 apply.
        """
        if beat.assignor is None or beat.classic is not None or not settings.epochs_as_of_4_4:
            return None
        older = state.subscriptions.get(beat.member_id)
        is_same = older is not None and older.assignor == beat.assignor
        return None if is_same else assignor_of(state, settings)

    def _subscribe(self, beat: Heartbeat, draft: Draft) -> bool:
        """Update the subscription of a member; return True if the group needs a new assignment."""
        state = draft.state
        older = state.subscriptions.get(beat.member_id)
        base = older or ConsumerSubscription()
        newer = ConsumerSubscription(
            beat.instance_id if beat.instance_id is not None else base.instance_id,
            beat.rack_id if beat.rack_id is not None else base.rack_id,
            beat.client_id,
            beat.client_host,
            tuple(sorted(set(beat.topics))) if beat.topics is not None else base.topics,
            beat.regex if beat.regex is not None else base.regex,
            beat.rebalance_timeout_ms if beat.rebalance_timeout_ms != -1 else base.rebalance_timeout_ms,
            beat.assignor if beat.assignor is not None else base.assignor,
            None if beat.classic is None else beat.classic.session_timeout_ms,
            () if beat.classic is None else beat.classic.protocols,
        )
        has_other_regex = newer.regex != base.regex
        if has_other_regex and newer.regex and not state.has_regex(newer.regex):
            self._check_regex(newer.regex)
        if newer != older:
            draft.make(SetSubscription(beat.member_id, newer))
        if has_other_regex:
            self._forget_regex(base.regex, draft)
        takes_effect = has_other_regex and (not newer.regex or newer.regex in draft.state.regexes)
        return newer.topics != base.topics or takes_effect

    def _check_regex(self, regex: str) -> None:
        try:
            self._compile(regex)
        except ValueError as error:
            raise error_for(
                ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex {regex!r}: {error}"
            ) from None

    @staticmethod
    def _forget_regex(regex: str, draft: Draft) -> None:
        """Remove a regular expression and the topics that it matches, if no member uses it any more."""
        if regex in draft.state.regexes and not draft.state.has_regex(regex):
            draft.make(SetRegex(regex, None))

    def _refresh_epoch(self, draft: Draft, view: TopicsView, *, bump: bool) -> None:
        """Raise the group epoch if a subscription or the topics have changed."""
        topics = draft.state.subscribed_topics()
        if not bump and self._hashed is not None and self._hashed == (view.version, topics):
            return
        found = hash_of(topics, view.topics)
        if bump or found != draft.state.metadata_hash:
            draft.make(SetEpoch((draft.state.epoch + 1, found)))
        elif not draft.changes:
            self._hashed = view.version, topics  # what is stored has been compared: not again

    def _refresh_target(
        self, draft: Draft, settings: ConsumerGroupSettings, view: TopicsView, now_ms: int
    ) -> None:
        """Compute the target assignment if it is older than the group epoch and its interval has passed."""
        state = draft.state
        if not _is_due(state, settings, now_ms):
            return
        topics = {
            member_id: ids_of(state.topics_of(each), view.topics)
            for member_id, each in state.subscriptions.items()
        }
        members = {
            member_id: Subscriber(topics[member_id], state.target(member_id), each.instance_id)
            for member_id, each in state.subscriptions.items()
        }
        counts = counts_of(state.subscribed_topics(), view.topics)
        found = assign(assignor_of(state, settings), members, counts)
        changed = [
            SetTarget(member_id, partitions)
            for member_id, partitions in found.items()
            if state.targets.get(member_id) != partitions
        ]
        draft.make(*changed, SetTargetEpoch((state.epoch, now_ms)))

    def _reconcile(
        self, beat: Heartbeat, draft: Draft, view: TopicsView, *, has_changed: bool, is_new: bool
    ) -> None:
        state, member_id = draft.state, beat.member_id
        current = state.current(member_id)
        if current.state is MemberState.UNKNOWN:
            if beat.owned is None or beat.owned:
                raise error_for(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    f"member {member_id} of group {self.id} is in a state that a newer broker has stored",
                )
            current = current._replace(state=MemberState.UNRELEASED)
        found = reconcile(
            member_id,
            current,
            state.target(member_id),
            state.target_epoch,
            ids_of(state.topics_of(state.subscriptions[member_id]), view.topics),
            state.owners,
            beat.owned,
            has_shrunk=has_changed,
        )
        if is_new or found != state.current(member_id):
            draft.make(SetCurrent(member_id, found))

    # --- leaving -----------------------------------------------------------------------------------------

    def leave(
        self,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        settings: ConsumerGroupSettings,
        view: TopicsView,
    ) -> Draft:
        """Handle a leaving member; return the changes.

        Epoch -1 removes the member. With epoch -2, a static member keeps its assignment until it returns or
        its session expires.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25) or FENCED_INSTANCE_ID (82).
        """
        if instance_id is not None:
            check_instance(self.id, self.stored, member_id, instance_id)
        elif member_id not in self.stored.subscriptions:
            raise unknown_member(self.id, member_id)
        if epoch == LEAVE_EPOCH:
            return self.remove([member_id], settings, view)
        draft = drafts.Draft(self.stored)
        current = self.stored.current(member_id)
        draft.make(
            SetCurrent(
                member_id,
                current._replace(
                    epoch=STATIC_LEAVE_EPOCH,
                    previous_epoch=current.epoch,
                    state=MemberState.STABLE,
                    assigned=dict.fromkeys(current.assigned, 0),
                    revoking={},
                ),
            )
        )
        return draft

    def remove(self, member_ids: Iterable[str], settings: ConsumerGroupSettings, view: TopicsView) -> Draft:
        """Return the changes that remove members."""
        draft = drafts.Draft(self.stored)
        regexes = []
        for member_id in member_ids:
            regexes.append(draft.state.subscriptions[member_id].regex)
            draft.make(
                SetCurrent(member_id, None), SetTarget(member_id, None), SetSubscription(member_id, None)
            )
        for regex in regexes:
            self._forget_regex(regex, draft)
        topics = draft.state.subscribed_topics()
        draft.make(SetEpoch((draft.state.epoch + 1, hash_of(topics, view.topics))))
        if settings.epochs_as_of_4_4 and not draft.state.subscriptions:
            draft.make(SetTargetEpoch((draft.state.epoch, NO_TIME)))
        return draft

    def waits_for_join(self, settings: ConsumerGroupSettings, view: TopicsView, now_ms: int) -> bool:
        """Return True if a classic member has to rejoin so that the target assignment is recomputed.

        Heartbeats of the consumer protocol recompute it as well, so a rejoin is needed only if all members
        are classic.
        """
        state = self.stored
        if not all(each.is_classic for each in state.subscriptions.values()):
            return False
        topics = state.subscribed_topics()
        if self._hashed != (view.version, topics):
            if hash_of(topics, view.topics) != state.metadata_hash:
                return True
            self._hashed = view.version, topics
        return _is_due(state, settings, now_ms)

    def turns_classic(self, settings: ConsumerGroupSettings, left: Iterable[str], size: int) -> bool:
        """Return True if the group becomes a classic group once only the `size` members `left` remain.

        This requires that all these members use the classic protocol, and that
        `group.consumer.migration.policy` and `group.max.size` allow it.
        """
        if size == 0 or size > settings.classic_max_size or not settings.migration.allows_downgrade:
            return False
        return all(self.stored.subscriptions[member_id].is_classic for member_id in left)

    # --- regular expressions -----------------------------------------------------------------------------

    def needs_refresh(self, settings: ConsumerGroupSettings, view: TopicsView, now: float) -> bool:
        """Return True if regular expressions should be matched with the topics now.

        `now` is in seconds of the monotonic clock. A new expression is matched at once. Other expressions are
        matched when metadata have changed or the refresh interval has passed, at most every 10 seconds.
        """
        if self.stored.unresolved():
            return True
        if not self.stored.regexes or now - self.refreshed_at < REGEX_REFRESH_MIN_S:
            return False
        return (
            self.matched_version < view.version
            or now - self.refreshed_at >= settings.regex_refresh_interval_ms / 1000
        )

    def refresh(self, may_see: Callable[[str], bool], view: TopicsView, now: float, now_ms: int) -> Draft:
        """Match every regular expression of the members with the names of the topics that `may_see` allows.

        `may_see` returns True if the client may describe a topic. Returns the changes. A regular expression
        that takes too long to match matches no topics.
        """
        draft = drafts.Draft(self.stored)
        self.refreshed_at, self.matched_version = now, view.version
        names = [name for name in view.topics if may_see(name)]
        has_changed = False
        for regex in sorted({each.regex for each in self.stored.subscriptions.values() if each.regex}):
            topics = self._matching(regex, names)
            older = self.stored.regexes.get(regex)
            if older is None or older.topics != topics:
                draft.make(SetRegex(regex, Resolved(topics, view.version, now_ms)))
                has_changed = has_changed or bool(topics) or older is not None
        if has_changed:
            found = hash_of(draft.state.subscribed_topics(), view.topics)
            draft.make(SetEpoch((draft.state.epoch + 1, found)))
        return draft

    def _matching(self, regex: str, names: Iterable[str]) -> tuple[str, ...]:
        try:
            matches = self._compile(regex)
            return tuple(sorted(name for name in names if matches(name)))
        except ValueError:
            return ()

    # --- offsets -----------------------------------------------------------------------------------------

    def check_commit(
        self,
        member_id: str,
        epoch: int,
        partitions: Iterable[Partition],
        *,
        has_epochs: bool = True,
    ) -> None:
        """Check the member of an OffsetCommit. As in Apache Kafka, the instance id is not checked.

        An older epoch is valid for partitions that were assigned to the member at that epoch or before, and
        that it still has. Members of the classic protocol send their generation, which is their epoch.
        `has_epochs` is False for API versions without member epochs.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113) or, for a classic member,
                ILLEGAL_GENERATION (22), or UNSUPPORTED_VERSION (35) if a member of the consumer protocol
                sends no epoch.
        """
        if epoch < 0 and not self.stored.subscriptions:
            return
        current = self._member_of_offsets(member_id)
        if not has_epochs and not self.stored.subscriptions[member_id].is_classic:
            raise error_for(
                ErrorCode.UNSUPPORTED_VERSION,
                f"a member of consumer group {self.id} commits by version 9 or later",
            )
        if epoch == current.epoch:
            return
        if epoch < current.epoch:
            held = {**current.assigned, **current.revoking}
            if all(held.get(partition, epoch + 1) <= epoch for partition in partitions):
                return
        raise self._stale(member_id, epoch, current)

    def check_fetch(self, member_id: str, epoch: int) -> None:
        """Check the member of an OffsetFetch.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113) or, for a classic member,
                ILLEGAL_GENERATION (22).
        """
        current = self._member_of_offsets(member_id)
        if epoch != current.epoch:
            raise self._stale(member_id, epoch, current)

    def _member_of_offsets(self, member_id: str) -> Current:
        if member_id not in self.stored.subscriptions:
            raise unknown_member(self.id, member_id)
        return self.stored.current(member_id)

    def _stale(self, member_id: str, epoch: int, current: Current) -> KafkaError:
        is_classic = self.stored.subscriptions[member_id].is_classic
        return error_for(
            ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH,
            f"member {member_id} of group {self.id} has epoch {current.epoch}, not {epoch}",
        )

    # --- properties --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the group."""
        return self.stored.state

    @property
    def can_be_deleted(self) -> bool:
        """Return True if the group has no members."""
        return not self.stored.subscriptions

    def offset_expiration(self) -> OffsetExpiration:
        """Return the expiration rule for offsets: only those of topics without subscribers expire."""
        return OffsetExpiration(subscribed_topics=self.stored.subscribed_topics())


def _is_due(state: GroupState, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    """Return True if a new target assignment must be computed now.

    This is the case if the target assignment is older than the group epoch, and the minimum interval between
    assignments has passed.
    """
    if state.epoch <= state.target_epoch:
        return False
    since_ms = now_ms - state.target_time_ms
    return state.target_time_ms == NO_TIME or not 0 <= since_ms < settings.assignment_interval_ms


def check_instance(group_id: str, state: GroupState, member_id: str, instance_id: str) -> None:
    """Check that an instance id belongs to a member.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID (25) or FENCED_INSTANCE_ID (82).
    """
    holder = state.instances.get(instance_id)
    if holder is None:
        raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no instance id {instance_id}")
    if holder != member_id:
        raise error_for(
            ErrorCode.FENCED_INSTANCE_ID,
            f"the instance id {instance_id} of group {group_id} is that of member {holder}",
        )


def assignor_of(state: GroupState, settings: ConsumerGroupSettings) -> str:
    """Return the server assignor that most members name, or the first configured one if none is named."""
    votes = Counter(each.assignor for each in state.subscriptions.values() if each.assignor in ASSIGNOR_NAMES)
    return str(votes.most_common(1)[0][0]) if votes else settings.assignors[0]


def unknown_member(group_id: str, member_id: str) -> KafkaError:
    """Return the error UNKNOWN_MEMBER_ID for a member id that a group does not have."""
    return error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id} has no member {member_id}")
