"""Share groups (KIP-932) of a broker: connects their coordinator to the store, settings and share state.

This module does the I/O for the coordinator: it stores the changes that a request or timer results in, and
then applies them. The share coordinator keeps the states of share partitions. It may be on another node: this
module sends requests to the share coordinator and gets the responses later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from penstock.broker.groups.planned import GroupHost, GroupSettingsOf, LateRecords, PlannedGroups
from penstock.broker.groups.records import ShareGroupKey
from penstock.broker.groups.settings import ShareGroupSettings
from penstock.broker.groups.share.coordinator import (
    SHARE,
    ShareGroupCoordinator,
    SharePlan,
)
from penstock.broker.groups.share.group import ShareGroup
from penstock.broker.groups.share.state import ShareInitialization, TopicPartitions, Topics
from penstock.broker.groups.tables import not_found, not_of_type
from penstock.errors import KafkaError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.coordination.timers import Timers
    from penstock.broker.groups.metadata_view import TopicsView
    from penstock.broker.groups.share.group import InitializeStates, ShareAnswer, ShareHeartbeat
    from penstock.broker.groups.store import GroupStore


class Result(NamedTuple):
    """The result of a request for one partition or topic: an error code or NONE, and a message."""

    code: int = ErrorCode.NONE
    message: str | None = None


Results: TypeAlias = dict[tuple[bytes, int], Result]
"""A dict from (topic id, partition index) to the result for that share partition."""


class ShareGroupService:
    """The share groups of one broker. `is_other` returns True for the group id of another type's group."""

    def __init__(
        self, host: GroupHost, view: TopicsView, timers: Timers, is_other: Callable[[str], bool]
    ) -> None:
        self._host = host
        self._view = view
        self._is_other = is_other
        self.coordinator = ShareGroupCoordinator(self.settings_of, view, timers)
        self._settings = GroupSettingsOf(host, SHARE, self._make_settings)
        self.planned = PlannedGroups(host, self.coordinator, LateRecords(ShareGroupKey, _records), SHARE)

    @property
    def groups(self) -> dict[str, ShareGroup]:
        """Return a dict from group id to share group, with the groups that have been read from the log."""
        return self.coordinator.groups

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """Return a group's settings: its own configs within the broker's limits, else the broker's."""
        return self._settings.of(group_id)

    def _make_settings(self, own: Mapping[str, str]) -> ShareGroupSettings:
        config = self._host.config
        return ShareGroupSettings(
            *self._settings.intervals(own),
            config.integer("group.share.max.size"),
            config.integer("group.share.initialize.retry.interval.ms"),
            config.behaves_since(4, 4),
        )

    # --- heartbeats --------------------------------------------------------------------------------------

    def heartbeat(self, store: GroupStore, group_id: str, beat: ShareHeartbeat, now: float) -> ShareAnswer:
        """Handle ShareGroupHeartbeat: store and apply its changes, and return the response.

        Raises:
            KafkaError: the error to respond with.
        """
        is_other = self._is_other(group_id)
        plan = self.coordinator.heartbeat(group_id, beat, self._host.clock.now_ms(), makes_group=not is_other)
        self.planned.check_memory(plan)
        self._carry_out(store, plan, now)
        if plan.initialize is not None:
            self._initialize_soon(store, plan.group, plan.initialize, now)
        assert plan.answer is not None
        return plan.answer

    def work_off(self, store: GroupStore, now: float) -> None:
        """Store and apply the changes of the timers that have fired."""
        self.planned.work_off(store, now, lambda plan: self._carry_out(store, plan, now))

    def _carry_out(self, store: GroupStore, plan: SharePlan, now: float) -> None:
        """Store the changes of a plan, then apply them.

        Raises:
            KafkaError: NOT_COORDINATOR (16) or UNKNOWN_SERVER_ERROR (-1), the changes could not be stored.
        """
        self.planned.store(store, plan)
        self.coordinator.accept(plan, now, self._host.clock.now_ms())

    def _note(self, store: GroupStore, group: ShareGroup, change: ShareInitialization) -> None:
        """Store the share partitions of a group that are initialized, being initialized or being deleted."""
        self._carry_out(store, self.coordinator.note(group, change), self._host.clock.monotonic())

    def _is_here(self, group: ShareGroup) -> bool:
        """Return True if this node still coordinates the group, which may have moved meanwhile."""
        return self.groups.get(group.id) is group

    # --- states of share partitions ----------------------------------------------------------------------

    def _initialize_soon(
        self, store: GroupStore, group: ShareGroup, asked: InitializeStates, now: float
    ) -> None:
        """Schedule the initialization of share partitions, so that no response waits for it."""

        def begin(timer: Any, at: float, at_ms: int) -> None:
            if self._is_here(group):
                self._send_initialize(
                    group.id,
                    asked.state_epoch,
                    asked.starts,
                    lambda results: self._initialized(store, group, results),
                )

        timers = self.coordinator.timers
        timers.set(timers.new(begin), now)

    def _initialized(self, store: GroupStore, group: ShareGroup, results: Results) -> None:
        """Store the outcome of an initialization: the share partitions for which it succeeded and failed."""
        if not self._is_here(group):
            return
        noted = group.initialization
        made, failed = (
            _chosen(noted.initializing, (key for key, each in results.items() if bool(each.code) is is_bad))
            for is_bad in (False, True)
        )
        try:
            self._note(store, group, noted.finish(made).give_up(failed))
        except KafkaError:
            return  # the states are there: the initialization is asked for again after a while
        for topic_id in failed:
            group.asked_ms.pop(topic_id, None)

    def _send_initialize(
        self,
        group_id: str,
        state_epoch: int,
        starts: Mapping[tuple[bytes, int], int],
        done: Callable[[Results], None],
    ) -> None:
        from penstock.protocol.messages import initialize_share_group_state_request as messages

        topics = {topic_id: messages.InitializeStateData(topic_id=topic_id) for topic_id, _ in starts}
        for (topic_id, index), start_offset in starts.items():
            topics[topic_id].partitions.append(
                messages.PartitionData(partition=index, state_epoch=state_epoch, start_offset=start_offset)
            )
        request = messages.InitializeShareGroupStateRequest(group_id=group_id, topics=[*topics.values()])
        self.ask(request, lambda answer: done(_results(answer)))

    def _send_delete(
        self, group_id: str, partitions: Iterable[tuple[bytes, int]], done: Callable[[Results], None]
    ) -> None:
        from penstock.protocol.messages import delete_share_group_state_request as messages

        topics: dict[bytes, messages.DeleteStateData] = {}
        for topic_id, index in partitions:
            topic = topics.setdefault(topic_id, messages.DeleteStateData(topic_id=topic_id))
            topic.partitions.append(messages.PartitionData(partition=index))
        request = messages.DeleteShareGroupStateRequest(group_id=group_id, topics=[*topics.values()])
        self.ask(request, lambda answer: done(_results(answer)))

    def ask(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the share coordinator; `done` is called once with the response, now or later."""
        self._host.send_share_state(request, done)

    # --- offsets -----------------------------------------------------------------------------------------

    def find_empty(self, group_id: str, *, makes_group: bool = False) -> ShareGroup:
        """Return the group `group_id`, which must have no members, so that its offsets can be changed.

        If `makes_group` is True and no group has this id, a new group is returned.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND (69), also for a group of another type, or NON_EMPTY_GROUP (68).
        """
        group = self.groups.get(group_id)
        if group is None:
            is_other = self._is_other(group_id)
            if makes_group and not is_other:
                return ShareGroup(group_id)
            message = not_of_type(group_id, "share") if is_other else not_found(group_id)
            raise error_for(ErrorCode.GROUP_ID_NOT_FOUND, message)
        if not group.can_be_deleted:
            raise error_for(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
        return group

    def alter_offsets(
        self,
        store: GroupStore,
        group: ShareGroup,
        starts: Mapping[tuple[bytes, int], int],
        done: Callable[[Results], None],
    ) -> None:
        """Handle AlterShareGroupOffsets: reset the states of share partitions to these start offsets.

        The partitions must exist. `done` is called once, now or later, with the result for each partition.

        Raises:
            KafkaError: the change could not be stored.
        """
        topics: dict[bytes, TopicPartitions] = {}
        for topic_id, index in starts:
            before = topics.get(topic_id) or TopicPartitions(
                self._host.cluster.topics_by_id[topic_id].name, frozenset()
            )
            topics[topic_id] = before._replace(partitions=before.partitions | {index})
        self._note(store, group, group.initialization.begin(topics))

        def altered(results: Results) -> None:
            self._initialized(store, group, results)
            done(results)

        self._send_initialize(group.id, group.stored.epoch, starts, altered)

    def delete_offsets(
        self,
        store: GroupStore,
        group: ShareGroup,
        names: Mapping[bytes, str],
        done: Callable[[Mapping[bytes, Result]], None],
    ) -> None:
        """Handle DeleteShareGroupOffsets: delete the states of topics; `names` has the topics' names by id.

        `done` is called once, now or later, with the result for each topic.

        Raises:
            KafkaError: the change could not be stored.
        """
        noted = group.initialization
        partitions = self._states_of(noted, names)
        self._note(store, group, noted.delete(names))

        def deleted(results: Results) -> None:
            of_topics = _by_topic(names, results)
            if self._is_here(group):
                gone = [topic_id for topic_id, each in of_topics.items() if not each.code]
                left = group.initialization
                kept = {topic_id: name for topic_id, name in left.deleting.items() if topic_id not in gone}
                try:
                    self._note(store, group, left._replace(deleting=kept))
                except KafkaError as error:
                    of_topics = dict.fromkeys(names, Result(error.code, error.detail))
            done(of_topics)

        self._send_delete(group.id, partitions, deleted)

    def _states_of(self, noted: ShareInitialization, topic_ids: Iterable[bytes]) -> list[tuple[bytes, int]]:
        """Return the share partitions of these topics that may have a state, according to `noted`."""
        found = []
        for topic_id in topic_ids:
            parts: set[int] = set()
            for topics in (noted.initialized, noted.initializing):
                if topic_id in topics:
                    parts |= topics[topic_id].partitions
            topic = self._host.cluster.topics_by_id.get(topic_id)
            if topic_id in noted.deleting and topic is not None:
                parts.update(range(len(topic.partitions)))
            found += [(topic_id, index) for index in sorted(parts)]
        return found

    # --- the end of groups -------------------------------------------------------------------------------

    def delete(
        self, store: GroupStore, group: ShareGroup, now_ms: int, done: Callable[[Result], None]
    ) -> None:
        """Handle DeleteGroups: delete the states of an empty group's share partitions, then the group.

        `done` is called once, now or later, with the result.
        """
        try:
            partitions = self._begin_delete(store, group)
        except KafkaError as error:
            done(Result(error.code, error.detail))
            return
        if partitions:
            self._send_delete(
                group.id, partitions, lambda results: done(self._end(store, group, now_ms, results))
            )
        else:
            done(self._end(store, group, now_ms, {}))

    def _begin_delete(self, store: GroupStore, group: ShareGroup) -> list[tuple[bytes, int]]:
        """Store that the states of a group are being deleted; return its share partitions that may have one.

        Raises:
            KafkaError: NON_EMPTY_GROUP (68), or the change could not be stored.
        """
        if not group.can_be_deleted:
            raise error_for(ErrorCode.NON_EMPTY_GROUP, f"Group {group.id} is in {group.state} state.")
        noted = group.stored.initialization
        partitions: list[tuple[bytes, int]] = []
        if noted is not None:
            topics = self._host.cluster.topics_by_id
            names = {topic_id: topics[topic_id].name for topic_id in noted.topic_ids if topic_id in topics}
            partitions = self._states_of(noted, names)
            self._note(store, group, ShareInitialization(deleting=names))
        return partitions

    def _end(self, store: GroupStore, group: ShareGroup, now_ms: int, results: Results) -> Result:
        """Write the tombstones of a group whose share states are deleted; return the deletion's result."""
        for each in results.values():
            if each.code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                return each
        if not self._is_here(group):
            return Result(ErrorCode.NOT_COORDINATOR, f"another broker coordinates group {group.id} by now")
        if not group.can_be_deleted:
            return Result(ErrorCode.NON_EMPTY_GROUP, f"Group {group.id} is in {group.state} state.")
        try:
            store.store(group.id, self.planned.tombstones(group), now_ms)
        except KafkaError as error:
            return Result(error.code, error.detail)
        self.coordinator.forget(group.id)
        return Result()

    def forget_topics(self, store: GroupStore) -> None:
        """Remove deleted topics from the initialized share partitions of all groups.

        Raises:
            KafkaError: the change could not be stored.
        """
        topics = self._host.cluster.topics_by_id
        for group in list(self.groups.values()):
            gone = [each for each in group.initialization.topic_ids if each not in topics]
            if gone:
                self._note(store, group, group.initialization.forget(gone))


def _records() -> Any:
    from penstock.broker.groups.share import records

    return records


def _chosen(topics: Topics, wanted: Iterable[tuple[bytes, int]]) -> dict[bytes, TopicPartitions]:
    """Return a dict from topic id to the partitions that are both in `topics` and in `wanted`."""
    found: dict[bytes, TopicPartitions] = {}
    for topic_id, index in wanted:
        each = topics.get(topic_id)
        if each is not None and index in each.partitions:
            before = found.get(topic_id)
            partitions = {index} if before is None else before.partitions | {index}
            found[topic_id] = TopicPartitions(each.name, frozenset(partitions))
    return found


def _results(answer: Any) -> Results:
    """Return the result for each share partition in a response of the share coordinator."""
    return {
        (topic.topic_id, each.partition): Result(each.error_code, each.error_message)
        for topic in answer.results
        for each in topic.partitions
    }


def _by_topic(topic_ids: Iterable[bytes], results: Results) -> dict[bytes, Result]:
    """Return a dict from topic id to the first error of the topic's share partitions, or to success."""
    found = dict.fromkeys(topic_ids, Result())
    for (topic_id, _), each in results.items():
        if each.code and not found[topic_id].code:
            found[topic_id] = each
    return found
