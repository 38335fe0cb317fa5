"""One share group: the changes that a heartbeat, a leave or a timer causes (KIP-932).

`ShareGroup` returns these changes as a draft. The group changes only when `accept` is called with the draft,
after the draft has been stored. Errors are raised as `KafkaError`. The order of checks, the error codes and
the records follow Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from penstock.broker.coordination import draft as drafts
from penstock.broker.groups.metadata_view import Partition, TopicsView, hash_of, ids_of
from penstock.broker.groups.offsets import OffsetExpiration
from penstock.broker.groups.settings import ShareGroupSettings
from penstock.broker.groups.share.assignor import Subscriber, assign
from penstock.broker.groups.share.state import (
    JOIN_EPOCH,
    NO_TIME,
    Current,
    Member,
    SetCurrent,
    SetEpoch,
    SetInitialization,
    SetMember,
    SetTarget,
    SetTargetEpoch,
    ShareInitialization,
    ShareState,
    State,
    TopicPartitions,
    Topics,
    without,
)
from penstock.errors import KafkaError
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode, error_for

Draft: TypeAlias = drafts.Draft[ShareState]
"""A copy of a share group's state, changed by one request or timer and not stored yet."""


SOON_MS = 20
"""The delay, in ms, after the assignment interval until the heartbeat that gets the new assignment."""


class ShareHeartbeat(NamedTuple):
    """The fields of a ShareGroupHeartbeat. A field that is None has not changed."""

    member_id: str
    epoch: int
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    client_id: str = ""
    client_host: str = ""


class ShareAnswer(NamedTuple):
    """The response to a heartbeat; `assignment` is None if the member's assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assignment: frozenset[Partition] | None = None


NO_START = -1
"""The start offset, -1, of a request that leaves the choice to the group's `share.auto.offset.reset`."""


class InitializeStates(NamedTuple):
    """Share partitions whose states are to be initialized, with a state epoch, and their start offsets."""

    state_epoch: int
    topics: Topics
    starts: Mapping[Partition, int]


class ShareGroup:
    """A share group. `stored` is its state according to the records in `__consumer_offsets`."""

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.stored = ShareState()
        self.asked_ms: dict[bytes, int] = {}
        """A dict from topic id to the time, in wall-clock ms, of this node's last request to initialize
        partitions of the topic.
        """
        self._hashed: tuple[int, frozenset[str]] | None = None
        """The metadata version and subscribed topics at the last check of the stored topic hash."""

    def __repr__(self) -> str:
        members = f"{len(self.stored.members)} members"
        return printable(f"<ShareGroup {self.id} {self.state}, epoch {self.stored.epoch}, {members}>")

    def accept(self, draft: Draft) -> None:
        """Apply the changes of a draft, after they have been stored."""
        self.stored = draft.state

    # --- heartbeats --------------------------------------------------------------------------------------

    def heartbeat(
        self, beat: ShareHeartbeat, settings: ShareGroupSettings, view: TopicsView, now_ms: int
    ) -> tuple[Draft, ShareAnswer, InitializeStates | None]:
        """Handle a heartbeat of a new or existing member.

        Returns the changes, the response, and the share partitions to initialize. `now_ms` is wall-clock time
        in milliseconds, stored with the target assignment.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED (81), UNKNOWN_MEMBER_ID (25) or FENCED_MEMBER_EPOCH (110).
        """
        draft: Draft = drafts.Draft(self.stored)
        self._check(beat, settings)
        before = draft.state.current(beat.member_id)
        has_changed = self._subscribe(beat, draft)
        self._refresh_epoch(draft, view, bump=has_changed or self._has_unassigned(view))
        self._refresh_target(draft, settings, view, now_ms)
        self._reconcile(beat.member_id, draft, view)
        after = draft.state.current(beat.member_id)
        initialize = self._initialize(draft, settings, view, now_ms)
        tells = beat.epoch == JOIN_EPOCH or beat.topics is not None or after.assigned != before.assigned
        answer = ShareAnswer(
            beat.member_id,
            after.epoch,
            _next_beat_ms(draft.state, settings),
            after.assigned if tells else None,
        )
        return draft, answer, initialize

    def _check(self, beat: ShareHeartbeat, settings: ShareGroupSettings) -> None:
        members = self.stored.members
        if beat.member_id not in members:
            if len(members) >= settings.max_size:
                raise error_for(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The share group has reached its maximum capacity of {settings.max_size} members.",
                )
            if beat.epoch != JOIN_EPOCH:
                raise self._unknown_member(beat.member_id)
            return
        current = self.stored.current(beat.member_id)
        if beat.epoch not in (JOIN_EPOCH, current.epoch) and not (
            beat.epoch < current.epoch and beat.epoch == current.previous_epoch
        ):
            raise error_for(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {beat.member_id} of share group {self.id} has epoch {current.epoch}, not "
                f"{beat.epoch}; it must abandon all its partitions and join again",
            )

    def _subscribe(self, beat: ShareHeartbeat, draft: Draft) -> bool:
        """Update the subscription of a member; return True if the group needs a new assignment."""
        older = draft.state.members.get(beat.member_id)
        base = older or Member()
        newer = Member(
            beat.rack_id if beat.rack_id is not None else base.rack_id,
            beat.client_id,
            beat.client_host,
            tuple(sorted(set(beat.topics))) if beat.topics is not None else base.topics,
        )
        if newer != older:
            draft.make(SetMember(beat.member_id, newer))
        return newer.topics != base.topics

    def _has_unassigned(self, view: TopicsView) -> bool:
        """Return True if share partitions have been initialized since the last assignment.

        This method returns False if a new assignment is due anyway, since the group epoch has been raised
        already.
        """
        state = self.stored
        if not state.members or state.epoch > state.target_epoch:
            return False
        wanted = set(_partitions(self._assignable(state, view)))
        return wanted != set().union(*state.targets.values())

    @staticmethod
    def _assignable(state: ShareState, view: TopicsView) -> dict[bytes, frozenset[int]]:
        """Return the initialized partitions of topics that exist and are subscribed to."""
        ids = ids_of(state.subscribed_topics(), view.topics)
        return {topic_id: each.partitions for topic_id, each in state.initialized.items() if topic_id in ids}

    def _refresh_epoch(self, draft: Draft, view: TopicsView, *, bump: bool) -> None:
        """Raise the group epoch if a subscription or the topics have changed, or share partitions are new."""
        topics = draft.state.subscribed_topics()
        if not bump and self._hashed is not None and self._hashed == (view.version, topics):
            return
        found = hash_of(topics, view.topics)
        if bump or found != draft.state.metadata_hash:
            draft.make(SetEpoch((draft.state.epoch + 1, found)))
        elif not draft.changes:
            self._hashed = view.version, topics  # what is stored has been compared: not again

    def _refresh_target(
        self, draft: Draft, settings: ShareGroupSettings, view: TopicsView, now_ms: int
    ) -> None:
        """Compute the target assignment if it is older than the group epoch and its interval has passed."""
        state = draft.state
        if state.epoch <= state.target_epoch:
            return
        since_ms = now_ms - state.target_time_ms
        if state.target_time_ms != NO_TIME and 0 <= since_ms < settings.assignment_interval_ms:
            return
        members = {
            member_id: Subscriber(ids_of(each.topics, view.topics), state.target(member_id))
            for member_id, each in state.members.items()
        }
        found = assign(members, self._assignable(state, view))
        changed = [
            SetTarget(member_id, partitions)
            for member_id, partitions in found.items()
            if state.targets.get(member_id) != partitions
        ]
        draft.make(*changed, SetTargetEpoch((state.epoch, now_ms)))

    @staticmethod
    def _reconcile(member_id: str, draft: Draft, view: TopicsView) -> None:
        """Give a member its whole target assignment at once, since partitions may have several members.

        If the member already has its target, only partitions of topics that it no longer subscribes to are
        removed.
        """
        state = draft.state
        current = state.current(member_id)
        if current.epoch != state.target_epoch:
            found = Current(state.target_epoch, current.epoch, state.target(member_id))
        else:
            ids = ids_of(state.members[member_id].topics, view.topics)
            kept = frozenset(each for each in current.assigned if each[0] in ids)
            found = current._replace(assigned=kept)
        if found != current or member_id not in state.currents:
            draft.make(SetCurrent(member_id, found))

    def _initialize(
        self, draft: Draft, settings: ShareGroupSettings, view: TopicsView, now_ms: int
    ) -> InitializeStates | None:
        """Mark the partitions of subscribed topics that have no state yet as initializing, and return them.

        If the share coordinator has not answered within `initialize_retry_interval_ms`, partitions are
        returned again.
        """
        state = draft.state
        noted = state.initialization or ShareInitialization()
        wanted: dict[bytes, TopicPartitions] = {}
        for name in sorted(state.subscribed_topics()):
            topic = view.topics.get(name)
            if topic is None:
                continue
            asked_ms = self.asked_ms.get(topic.id)
            is_fresh = asked_ms is not None and 0 <= now_ms - asked_ms < settings.initialize_retry_interval_ms
            everything = {topic.id: TopicPartitions(name, frozenset(range(len(topic.partitions))))}
            left = without(everything, noted.initialized)
            if is_fresh:
                left = without(left, noted.initializing)
            wanted |= left
        if not wanted:
            return None
        draft.make(SetInitialization(noted.begin(wanted)))
        starts = {
            (topic_id, index): _start_of(topic_id, index, noted) if settings.knows_topics else NO_START
            for topic_id, each in wanted.items()
            for index in sorted(each.partitions)
        }
        return InitializeStates(state.epoch, wanted, starts)

    # --- leaving -----------------------------------------------------------------------------------------

    def leave(self, member_id: str, settings: ShareGroupSettings, view: TopicsView) -> Draft:
        """Return the changes that remove a leaving member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25).
        """
        if member_id not in self.stored.members:
            raise self._unknown_member(member_id)
        return self.remove(member_id, settings, view)

    def remove(self, member_id: str, settings: ShareGroupSettings, view: TopicsView) -> Draft:
        """Return the changes that remove the given member, independently of its epoch."""
        draft: Draft = drafts.Draft(self.stored)
        draft.make(SetCurrent(member_id, None), SetTarget(member_id, None), SetMember(member_id, None))
        found = hash_of(draft.state.subscribed_topics(), view.topics)
        draft.make(SetEpoch((draft.state.epoch + 1, found)))
        if settings.knows_topics and not draft.state.members:
            draft.make(SetTargetEpoch((draft.state.epoch, NO_TIME)))
        return draft

    def _unknown_member(self, member_id: str) -> KafkaError:
        return error_for(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}."
        )

    # --- share partitions --------------------------------------------------------------------------------

    def note(self, change: ShareInitialization) -> Draft:
        """Return a draft that stores which share partitions are initialized, being initialized or deleted."""
        draft: Draft = drafts.Draft(self.stored)
        draft.make(SetInitialization(change))
        return draft

    @property
    def initialization(self) -> ShareInitialization:
        """The group's share partitions that are initialized, being initialized or being deleted."""
        return self.stored.initialization or ShareInitialization()

    # --- properties --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the group."""
        return self.stored.state

    @property
    def can_be_deleted(self) -> bool:
        """Return True if the group has no members."""
        return not self.stored.members

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return None, since a share group has no committed offsets that could expire."""
        return None


def _start_of(topic_id: bytes, index: int, noted: ShareInitialization) -> int:
    """Return the start offset of a new share partition: 0 if it was added to a topic of the group.

    Otherwise a group that begins at the latest offsets would lose the first records of the partition. If only
    an earlier initialization of this partition is repeated, the choice stays `NO_START`.
    """
    begun = noted.initializing.get(topic_id)
    is_added = topic_id in noted.initialized or (begun is not None and index not in begun.partitions)
    return 0 if is_added else NO_START


def _next_beat_ms(state: ShareState, settings: ShareGroupSettings) -> int:
    """Return the milliseconds until a member's next heartbeat: few while a new assignment is expected.

    With Apache Kafka, a new member waits a whole heartbeat interval for its first partitions.
    """
    noted = state.initialization
    is_coming = state.epoch > state.target_epoch or (noted is not None and bool(noted.initializing))
    if not is_coming:
        return settings.heartbeat_interval_ms
    return min(settings.heartbeat_interval_ms, settings.assignment_interval_ms + SOON_MS)


def _partitions(topics: dict[bytes, frozenset[int]]) -> list[Partition]:
    return [(topic_id, index) for topic_id, partitions in topics.items() for index in partitions]
