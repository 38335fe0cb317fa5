"""One streams group: the changes that a heartbeat, a leave or a timer causes (KIP-1071).

`StreamsGroup` returns these changes as a draft. The group changes only when `accept` is called with the
draft, after the draft has been stored. Errors are raised as `KafkaError`. The order of checks, the error
codes and the records follow Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from penstock.broker.coordination import draft as drafts
from penstock.broker.groups.metadata_view import TopicsView, hash_of
from penstock.broker.groups.offsets import OffsetExpiration
from penstock.broker.groups.settings import STANDBY_CONFIG, TAGS_CONFIG, StreamsGroupSettings
from penstock.broker.groups.streams.assignor import Worker, assign
from penstock.broker.groups.streams.configuring import Configured, Problem, Status, check_topology, configure
from penstock.broker.groups.streams.endpoints import EndpointPartitions, endpoint_partitions
from penstock.broker.groups.streams.reconciliation import reconcile
from penstock.broker.groups.streams.state import (
    JOIN_EPOCH,
    NO_EPOCH,
    NO_TIME,
    STATIC_LEAVE_EPOCH,
    Change,
    Current,
    Member,
    MemberState,
    Offsets,
    SetCurrent,
    SetEpoch,
    SetMember,
    SetOffsets,
    SetTarget,
    SetTargetEpoch,
    SetTopology,
    State,
    StreamsState,
)
from penstock.broker.groups.streams.tasks import NO_TASKS, Task, Tasks
from penstock.broker.groups.streams.topology import InternalTopic, Topology
from penstock.errors import KafkaError
from penstock.printable import printable
from penstock.protocol.error_codes import ErrorCode, error_for

Draft: TypeAlias = drafts.Draft[StreamsState]
"""A copy of a streams group's state, changed by one request or timer and not stored yet."""

SOON_MS = 20
"""The delay, in ms, after an assignment delay until the heartbeat that gets the new assignment."""


class StreamsHeartbeat(NamedTuple):
    """The fields of a StreamsGroupHeartbeat. A field that is None has not changed."""

    member_id: str
    epoch: int
    topology: Topology | None = None
    owned: Tasks | None = None
    process_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    endpoint: tuple[str, int] | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    endpoint_epoch: int = 0
    """The epoch of the endpoint information that the member received last."""
    shuts_down: bool = False
    """True if the member requests the shutdown of the application, which is all members of the group."""
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    reached: Mapping[Task, int] | None = None
    """The changelog offsets up to which the member has restored the state of its tasks."""
    ends: Mapping[Task, int] | None = None
    """The end offsets of the changelogs of the member's tasks."""


class StreamsAnswer(NamedTuple):
    """The response to a heartbeat; `tasks` and `endpoints` are None if the member has the current ones."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    statuses: tuple[Problem, ...] = ()
    tasks: Tasks | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    to_make: tuple[InternalTopic, ...] = ()
    """The internal topics that do not exist yet, and have to be created."""
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1


class StreamsGroup:
    """A streams group. `stored` is its state according to the stored records.

    As in Apache Kafka, some state is not stored and is lost with the coordinator: `shut_down_by`, the member
    that has requested the shutdown of the application, and the epoch of the endpoint information.
    """

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.stored = StreamsState()
        self.shut_down_by: str | None = None
        self.endpoint_epoch = 0
        self._configured: tuple[int, Topology, Configured] | None = None
        """The last result of `configured`, with the metadata version and the topology that it depends on."""
        self._hashed: tuple[int, int] | None = None
        """A cached result: the metadata version, and the hash of the topology's topics in this version."""

    def __repr__(self) -> str:
        members = f"{len(self.stored.members)} members"
        return printable(f"<StreamsGroup {self.id} {self.state}, epoch {self.stored.epoch}, {members}>")

    def accept(self, draft: Draft) -> None:
        """Apply the changes of a draft, after they have been stored."""
        if draft.state.topology is not self.stored.topology:
            self._hashed = None
        self.stored = draft.state
        if not self.stored.members:
            self.shut_down_by = None

    def drop_remains(self) -> None:
        """Drop assignments of removed members, which compaction may have left in the log."""
        state = self.stored
        for member_id in state.currents.keys() - state.members.keys():
            state.apply(SetCurrent(member_id, None))
        for member_id in state.targets.keys() - state.members.keys():
            state.apply(SetTarget(member_id, None))

    # --- heartbeats --------------------------------------------------------------------------------------

    def heartbeat(
        self,
        beat: StreamsHeartbeat,
        settings: StreamsGroupSettings,
        view: TopicsView,
        now_ms: int,
        delay_left_ms: int | None = None,
    ) -> tuple[Draft, StreamsAnswer]:
        """Handle a heartbeat of a new or existing member; return the changes, and the response.

        `now_ms` is wall-clock time in milliseconds, stored with the target assignment. `delay_left_ms` is the
        time for which a new group still waits for members, or None if it does not wait.

        Raises:
            KafkaError: GROUP_MAX_SIZE_REACHED (81), UNKNOWN_MEMBER_ID (25), FENCED_MEMBER_EPOCH (110),
                FENCED_INSTANCE_ID (82), UNRELEASED_INSTANCE_ID (111), INVALID_REQUEST (42) or
                STREAMS_INVALID_TOPOLOGY (130).
        """
        draft: Draft = drafts.Draft(self.stored)
        self._check_size(beat, settings)
        if beat.instance_id is not None:
            self._check_static(beat, draft)
        elif beat.epoch != JOIN_EPOCH:
            self._check_epoch(beat)
        before, older = draft.state.current(beat.member_id), draft.state.members.get(beat.member_id)
        has_changed = self._update_member(beat, draft)
        topology, statuses = self._update_topology(beat, draft)
        configured = self.configured(topology, view)
        _check_owned(beat.owned, configured)
        if beat.reached is not None or beat.ends is not None:
            known = draft.state.offsets.get(beat.member_id, Offsets())
            reached = known.reached if beat.reached is None else beat.reached
            ends = known.ends if beat.ends is None else beat.ends
            draft.make(SetOffsets(beat.member_id, Offsets(reached, ends)))
        self._refresh_epoch(draft, configured, settings, view, bump=has_changed)
        wait_ms = delay_left_ms
        if delay_left_ms is not None:
            detail = "Assignment delayed due to the configured initial rebalance delay."
        else:
            wait_ms = self._refresh_target(draft, configured, settings, now_ms)
            detail = "Assignment delayed due to the configured assignment interval."
        if wait_ms is not None:
            statuses.append(Problem(Status.ASSIGNMENT_DELAYED, detail))
        self._reconcile(beat, draft, is_delayed=delay_left_ms is not None)
        after = draft.state.current(beat.member_id)
        has_moved = not after.has_same_tasks(before)
        # A member with other tasks may have lost an answer, and would wait for them forever. While an
        # assignment is due it waits for that one: Apache Kafka gives tasks with what has changed alone.
        has_others = beat.owned is not None and beat.owned != after.assigned
        tells = beat.epoch == JOIN_EPOCH or has_moved or (has_others and wait_ms is None)
        endpoint, member = None if older is None else older.endpoint, draft.state.members[beat.member_id]
        has_other_endpoints = member.endpoint != endpoint or (has_moved and endpoint is not None)
        endpoint_epoch = self.endpoint_epoch + has_other_endpoints
        if configured.problem is not None:
            statuses.append(configured.problem)
        shut_down_by = self.shut_down_by or (beat.member_id if beat.shuts_down else None)
        if shut_down_by is not None:
            statuses.append(_shut_down(shut_down_by))
        missing = [tag for tag in settings.tags if tag not in dict(member.tags)]
        if missing:
            statuses.append(_missing_tags(missing))
        is_told = endpoint_epoch == beat.endpoint_epoch
        answer = StreamsAnswer(
            beat.member_id,
            after.epoch,
            _next_beat_ms(settings, configured, wait_ms),
            tuple(statuses),
            after.assigned if tells else None,
            0 if self.stored.topology is None else endpoint_epoch,  # 0: the group is only just made
            None if is_told else endpoint_partitions(draft.state, counts_of(topology.topics(), view)),
            configured.missing,
            settings.task_offset_interval_ms,
            settings.acceptable_recovery_lag,
        )
        return draft, answer

    def _check_size(self, beat: StreamsHeartbeat, settings: StreamsGroupSettings) -> None:
        """Check that a joining member is in the group already, or that the group has room for it."""
        members, instances = self.stored.members, self.stored.instances
        is_known = beat.member_id in members or beat.instance_id in instances
        if beat.epoch == JOIN_EPOCH and not is_known and len(members) >= settings.max_size:
            raise error_for(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {settings.max_size} members.",
            )

    def _check_static(self, beat: StreamsHeartbeat, draft: Draft) -> None:
        """Check a static member; one that returns takes over the state of the member that has left."""
        assert beat.instance_id is not None
        if beat.epoch != JOIN_EPOCH:
            self._check_instance(beat.member_id, beat.instance_id)
            self._check_epoch(beat)
            return
        holder = draft.state.instances.get(beat.instance_id)
        if holder is None:
            return
        current, member = draft.state.current(holder), draft.state.members[holder]
        if current.epoch != STATIC_LEAVE_EPOCH:
            if holder == beat.member_id:
                return  # it has not got the response to its join
            raise error_for(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {beat.member_id} with instance id {beat.instance_id} cannot join the group "
                f"because the instance id is owned by {holder} member.",
            )
        target = draft.state.target(holder)
        draft.make(
            *_removed(holder),
            SetMember(beat.member_id, member),
            SetTarget(beat.member_id, target),
            SetCurrent(beat.member_id, current._replace(epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)),
        )

    def _check_instance(self, member_id: str, instance_id: str) -> None:
        """Check that a member holds an instance id.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25) or FENCED_INSTANCE_ID (82).
        """
        holder = self.stored.instances.get(instance_id)
        if holder is None:
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if holder != member_id:
            raise error_for(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {holder}.",
            )

    def _check_epoch(self, beat: StreamsHeartbeat) -> None:
        """Check the epoch that a member sends.

        A member that has not received the response with its new epoch sends its previous epoch, which is
        valid if the member owns only tasks that are assigned to it.
        """
        if beat.member_id not in self.stored.members:
            raise self._unknown_member(beat.member_id)
        current = self.stored.current(beat.member_id)
        if beat.epoch == current.epoch:
            return
        is_previous = beat.epoch < current.epoch and beat.epoch == current.previous_epoch
        if is_previous and beat.owned is not None and beat.owned <= current.assigned:
            return
        raise error_for(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The streams group member has a {'smaller' if beat.epoch < current.epoch else 'greater'} member "
            f"epoch ({beat.epoch}) than the one known by the group coordinator ({current.epoch}). "
            "The member must abandon all its partitions and rejoin.",
        )

    def _update_member(self, beat: StreamsHeartbeat, draft: Draft) -> bool:
        """Update the fields of a member; return True if the group needs a new assignment.

        A static member that returns needs none, unless something has changed that an assignor may use.
        """
        older = draft.state.members.get(beat.member_id)
        base = older or Member()
        is_kept = beat.endpoint is None and beat.epoch != JOIN_EPOCH
        newer = Member(
            beat.instance_id if beat.instance_id is not None else base.instance_id,
            beat.rack_id if beat.rack_id is not None else base.rack_id,
            beat.client_id,
            beat.client_host,
            beat.rebalance_timeout_ms if beat.rebalance_timeout_ms != -1 else base.rebalance_timeout_ms,
            beat.topology.epoch if beat.topology is not None else base.topology_epoch,
            beat.process_id if beat.process_id is not None else base.process_id,
            base.endpoint if is_kept else beat.endpoint,
            beat.tags if beat.tags is not None else base.tags,
        )
        if newer == older:
            return False
        draft.make(SetMember(beat.member_id, newer))
        return beat.instance_id is None or newer.for_assignor() != base.for_assignor()

    def _update_topology(self, beat: StreamsHeartbeat, draft: Draft) -> tuple[Topology, list[Problem]]:
        """Store the topology of a new group; return its topology, and status entries for the response."""
        stored = draft.state.topology
        if stored is None:
            if beat.topology is None:
                raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, f"group {self.id} has no topology")
            check_topology(beat.topology)
            draft.make(SetTopology(beat.topology))
            return beat.topology, []
        if beat.topology is not None:
            check_topology(beat.topology)
            if beat.topology.epoch >= stored.epoch and not beat.topology.is_same(stored):
                raise error_for(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        epoch = draft.state.members[beat.member_id].topology_epoch
        if epoch >= stored.epoch:
            return stored, []
        detail = f"The member's topology epoch {epoch} is behind the group's topology epoch {stored.epoch}."
        return stored, [Problem(Status.STALE_TOPOLOGY, detail)]

    def configured(self, topology: Topology, view: TopicsView) -> Configured:
        """Return a topology checked against the existing topics, cached for each version of the metadata.

        Raises:
            KafkaError: STREAMS_INVALID_TOPOLOGY (130).
        """
        known = self._configured
        if known is None or known[0] != view.version or known[1] is not topology:
            known = view.version, topology, configure(topology, counts_of(topology.topics(), view))
            if topology is self.stored.topology or self.stored.topology is None:
                self._configured = known
        return known[2]

    def _refresh_epoch(
        self,
        draft: Draft,
        configured: Configured,
        settings: StreamsGroupSettings,
        view: TopicsView,
        *,
        bump: bool,
    ) -> None:
        """Raise the group epoch if a member, the topics or the number of standby tasks have changed."""
        group, topology = draft.state.group, draft.state.topology
        assert topology is not None
        if self._hashed is None or self._hashed[0] != view.version or topology is not self.stored.topology:
            found = view.version, hash_of(topology.topics(), view.topics)
            if topology is self.stored.topology:
                self._hashed = found
        else:
            found = self._hashed
        configs: tuple[tuple[str, str], ...] = ((STANDBY_CONFIG, str(settings.num_standby_replicas)),)
        if settings.tags:
            configs += ((TAGS_CONFIG, ",".join(settings.tags)),)
        validated = topology.epoch if configured.is_ready else NO_EPOCH
        wanted = group._replace(metadata_hash=found[1], validated_topology=validated, configs=configs)
        if bump or wanted != group:
            draft.make(SetEpoch(wanted._replace(epoch=group.epoch + 1)))

    def _refresh_target(
        self, draft: Draft, configured: Configured, settings: StreamsGroupSettings, now_ms: int
    ) -> int | None:
        """Compute the target assignment if it is older than the group epoch and its interval has passed.

        Returns the milliseconds until the interval has passed, or None if no assignment has to wait for it.
        """
        state = draft.state
        if state.epoch <= state.target_epoch:
            return None
        since_ms = now_ms - state.target_time_ms
        if state.target_time_ms != NO_TIME and 0 <= since_ms < settings.assignment_interval_ms:
            return settings.assignment_interval_ms - since_ms
        self._assign(draft, configured, now_ms)
        return None

    def _assign(self, draft: Draft, configured: Configured, now_ms: int) -> None:
        state = draft.state
        assert state.topology is not None
        found = dict.fromkeys(state.members, NO_TASKS)
        if configured.is_ready and configured.tasks is not None:
            members = {
                member_id: Worker(
                    member.process_id,
                    state.current(member_id).assigned,
                    state.offsets.get(member_id, Offsets()).reached,
                )
                for member_id, member in state.members.items()
            }
            stateful = {each.id for each in state.topology.subtopologies if each.changelogs}
            standbys = int(dict(state.group.configs).get(STANDBY_CONFIG, 0))
            found = assign(members, configured.tasks, stateful, standbys)
        changed = [
            SetTarget(member_id, tasks)
            for member_id, tasks in found.items()
            if state.targets.get(member_id) != tasks
        ]
        draft.make(*changed, SetTargetEpoch((state.epoch, now_ms)))

    def _reconcile(self, beat: StreamsHeartbeat, draft: Draft, *, is_delayed: bool) -> None:
        state, member_id = draft.state, beat.member_id
        current = state.current(member_id)
        if current.state is MemberState.UNKNOWN:
            if beat.owned is None or beat.owned:
                raise error_for(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            current = current._replace(state=MemberState.UNRELEASED)
        found = reconcile(
            current,
            NO_TASKS if is_delayed else state.target(member_id),
            state.target_epoch,
            beat.owned,
            lambda task, as_active: state.is_held_elsewhere(task, member_id, as_active=as_active),
        )
        if found != state.current(member_id):
            draft.make(SetCurrent(member_id, found))

    def assign_delayed(self, settings: StreamsGroupSettings, view: TopicsView, now_ms: int) -> Draft | None:
        """Return the changes that assign tasks after the initial delay, or None without members."""
        topology = self.stored.topology
        if not self.stored.members or topology is None:
            return None
        draft: Draft = drafts.Draft(self.stored)
        configured = self.configured(topology, view)
        self._refresh_epoch(draft, configured, settings, view, bump=False)
        if draft.state.epoch > draft.state.target_epoch:
            self._assign(draft, configured, now_ms)
        return draft

    # --- leaving -----------------------------------------------------------------------------------------

    def leave(self, beat: StreamsHeartbeat, settings: StreamsGroupSettings) -> Draft:
        """Handle a leaving member; return the changes.

        Epoch -1 removes the member. With epoch -2, a static member keeps its tasks, and may return.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25) or FENCED_INSTANCE_ID (82).
        """
        if beat.instance_id is not None:
            self._check_instance(beat.member_id, beat.instance_id)
        elif beat.member_id not in self.stored.members:
            raise self._unknown_member(beat.member_id)
        if beat.epoch != STATIC_LEAVE_EPOCH:
            return self.remove(beat.member_id, settings)
        draft: Draft = drafts.Draft(self.stored)
        current = self.stored.current(beat.member_id)
        left = current._replace(
            epoch=STATIC_LEAVE_EPOCH,
            state=MemberState.STABLE,
            revoking=NO_TASKS,
            epochs=dict.fromkeys(current.assigned.active, 0),
        )
        draft.make(SetCurrent(beat.member_id, left))
        return draft

    def remove(self, member_id: str, settings: StreamsGroupSettings) -> Draft:
        """Return the changes that remove the given member, independently of its epoch."""
        draft: Draft = drafts.Draft(self.stored)
        epoch = draft.state.epoch + 1
        draft.make(*_removed(member_id), SetEpoch(draft.state.group._replace(epoch=epoch)))
        if settings.ends_targets and not draft.state.members:
            draft.make(SetTargetEpoch((epoch, NO_TIME)))
        return draft

    def _unknown_member(self, member_id: str) -> KafkaError:
        return error_for(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}."
        )

    # --- offsets -----------------------------------------------------------------------------------------

    def check_commit(
        self, member_id: str, epoch: int, partitions: Iterable[tuple[str, int]], *, has_epochs: bool = True
    ) -> None:
        """Check the member of an OffsetCommit. `partitions` are pairs of a topic's name and a partition.

        An older epoch is valid for partitions of active tasks that the member has had since that epoch.
        `has_epochs` is False for API versions without member epochs.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113), or UNSUPPORTED_VERSION (35) if the
            request has no member epoch.
        """
        if epoch < 0 and not self.stored.members:
            return
        current = self._member_of_offsets(member_id)
        if not has_epochs:
            raise error_for(
                ErrorCode.UNSUPPORTED_VERSION,
                f"a member of streams group {self.id} commits by version 9 or later",
            )
        if epoch == current.epoch:
            return
        topology = self.stored.topology
        if epoch < current.epoch and topology is not None:
            readers = topology.readers()
            tasks = ((readers.get(name, ""), index) for name, index in partitions)
            if all(current.epochs.get(task, epoch + 1) <= epoch for task in tasks):
                return
        raise self._stale(member_id, epoch, current)

    def check_fetch(self, member_id: str, epoch: int) -> None:
        """Check the member of an OffsetFetch.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID (25) or STALE_MEMBER_EPOCH (113).
        """
        current = self._member_of_offsets(member_id)
        if epoch != current.epoch:
            raise self._stale(member_id, epoch, current)

    def _member_of_offsets(self, member_id: str) -> Current:
        if member_id not in self.stored.members:
            raise self._unknown_member(member_id)
        return self.stored.current(member_id)

    def _stale(self, member_id: str, epoch: int, current: Current) -> KafkaError:
        return error_for(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"member {member_id} of group {self.id} has epoch {current.epoch}, not {epoch}",
        )

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics that the members read; an empty set if there are no members."""
        if not self.stored.members or self.stored.topology is None:
            return frozenset()
        return frozenset(self.stored.topology.readers())

    # --- properties --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the group."""
        return self.stored.state

    @property
    def can_be_deleted(self) -> bool:
        """Return True if the group has no members."""
        return not self.stored.members

    def offset_expiration(self) -> OffsetExpiration:
        """Return the expiration rule for offsets: only those of topics that no member reads expire."""
        return OffsetExpiration(subscribed_topics=self.subscribed_topics())


def counts_of(names: Iterable[str], view: TopicsView) -> dict[str, int]:
    """Return a dict from name to partition count for the topics that exist."""
    return {name: len(view.topics[name].partitions) for name in names if name in view.topics}


def _check_owned(owned: Tasks | None, configured: Configured) -> None:
    """Check that the tasks that a member reports are tasks of the topology.

    Raises:
        KafkaError: INVALID_REQUEST (42).
    """
    if owned is None or not configured.is_ready or configured.tasks is None:
        return
    for subtopology, index in owned.every:
        count = configured.tasks.get(subtopology)
        if count is None:
            raise error_for(
                ErrorCode.INVALID_REQUEST, f"Subtopology {subtopology} does not exist in the topology."
            )
        if not 0 <= index < count:
            raise error_for(
                ErrorCode.INVALID_REQUEST,
                f"Task {index} for subtopology {subtopology} is invalid. "
                f"Number of tasks for this subtopology: {count}",
            )


def _removed(member_id: str) -> tuple[Change, ...]:
    """Return the changes that remove a member."""
    return SetCurrent(member_id, None), SetTarget(member_id, None), SetMember(member_id, None)


def _missing_tags(tags: Iterable[str]) -> Problem:
    return Problem(
        Status.MISSING_CLIENT_TAGS,
        f"Missing required client tags for rack-aware standby assignment: [{', '.join(tags)}]. "
        "Configure them via 'client.tag.<tagKey>' in your Streams config.",
    )


def _shut_down(member_id: str) -> Problem:
    return Problem(
        Status.SHUTDOWN_APPLICATION,
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for the "
        "entire application.",
    )


def _next_beat_ms(settings: StreamsGroupSettings, configured: Configured, wait_ms: int | None) -> int:
    """Return the milliseconds until a member's next heartbeat: few while a new assignment is expected.

    With Apache Kafka, a new member waits a whole heartbeat interval for its first tasks. If topics are
    invalid, the member waits the whole interval, since clients give up after two heartbeats with that status.
    """
    is_making = configured.problem is None or configured.problem.status is Status.MISSING_INTERNAL_TOPICS
    if wait_ms is None or not is_making:
        return settings.heartbeat_interval_ms
    return min(settings.heartbeat_interval_ms, wait_ms + SOON_MS)
