"""`ClusterMember`: a node's membership in a cluster: it registers, sends heartbeats, follows and leads.

`ClusterMember` connects partitions, fetchers and followers with the node's purgatory and clock, and with the
transport. Only messages and purgatory timers drive it, so that it runs in simulations too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from penstock.broker.metadata.brokers import REGISTRATIONS, BrokerStates
from penstock.broker.partitions.internal_topics import INTERNAL_TOPICS
from penstock.broker.replication.fetcher import LeaderFetchers, ReplicaFetchSettings
from penstock.broker.replication.local_replica import replica_of
from penstock.broker.replication.proposals import IsrProposals
from penstock.broker.replication.replica_fetch import serve
from penstock.broker.replication.throttles import ReplicationThrottle
from penstock.broker.replication.transport.messages import (
    CONTROLLER,
    Feed,
    HeartbeatAnswer,
    MetadataBatch,
    NodeHeartbeat,
    NodeRegistration,
    Registered,
)
from penstock.broker.requests.purgatory import Wait
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.messages.fetch_request import FetchRequest
from penstock.protocol.since import FETCH_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.metadata.cluster import ClusterState
    from penstock.broker.metadata.replica_manager import Topic
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.replication.fetcher import ReplicaFetcher
    from penstock.broker.replication.local_replica import LocalReplica
    from penstock.broker.replication.metadata_publisher import MetadataPublisher
    from penstock.broker.replication.proposals import Spreading
    from penstock.broker.replication.transport.links import Answered, Transport
    from penstock.broker.requests.purgatory import DelayedOperation, Purgatory
    from penstock.clock import Clock
    from penstock.common.failures import Failures
    from penstock.protocol.messages.fetch_request import FetchTopic

logger = logger_named("penstock.broker")

IN_MEMORY_VERSION = 18
"""The version of Fetch between nodes of one process: it has topic ids and `replica_state` (KIP-903)."""

WAKES_ALL = 1 << 40
"""A size in bytes above the `min_bytes` of any Fetch: passed to `Purgatory.notify`, it ends all waits for
a partition.
"""

BEHIND_S = 1.0
"""The seconds until metadata are applied again to partitions where that failed (storage errors)."""

RETRY_S = 0.2
"""The seconds after which a registration without a response is sent again."""


class MemberParts(Protocol):
    """The interface of a node that its `ClusterMember` uses."""

    purgatory: Purgatory
    failures: Failures
    clock: Clock


class Moves(Protocol):
    """The callbacks by which a node's coordinators and quotas react to changed metadata."""

    def moved(self, partitions: Sequence[Partition]) -> None:
        """React to partitions of internal topics whose leader or leader epoch has changed."""

    def deleted(self, topics: Sequence[Topic]) -> None:
        """React to deleted topics."""

    def quotas_changed(self) -> None:
        """React to changed client quotas."""


class ClusterMember:
    """The membership of one node in its cluster, from a start of the node until it stops.

    `lag_s` is `replica.lag.time.max.ms` in seconds, `heartbeat_s` the interval of heartbeats. `saved` has
    high watermarks from before the start, by topic and number of the partition. `fetching` has the limits of
    fetch requests, and `random` draws the pauses between ISR proposals. `was_clean` is True if the previous
    shutdown of the node was clean.
    """

    def __init__(
        self,
        node_id: int,
        transport: Transport,
        clock: Clock,
        *,
        lag_s: float,
        heartbeat_s: float,
        incarnation: int,
        random: Spreading,
        rack: str | None = None,
        saved: dict[tuple[str, int], int] | None = None,
        fetching: ReplicaFetchSettings | None = None,
        was_clean: bool = True,
    ) -> None:
        self.node_id = node_id
        self.rack = rack
        self.lag_s = lag_s
        self.brokers = BrokerStates()
        self.broker_epoch = -1
        self.cluster: ClusterState
        self._publisher: MetadataPublisher
        self.throttle: ReplicationThrottle
        self._own_throttle: ReplicationThrottle
        self.moves: Moves | None = None
        self.frozen = False
        """True if a test has stopped this node from fetching from leaders."""
        self.unreplicated: dict[Partition, int] = {}
        """A dict from each internal partition that this node leads, if it has uncommitted records, to its
        log end offset.
        """
        self.losses = 0
        self.may_stop = False
        self.wants_stop = False
        self.ended = False
        self.saved = {} if saved is None else saved
        self._transport = transport
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._fetching = fetching or ReplicaFetchSettings()
        self._incarnation = incarnation
        self._was_clean = was_clean
        self._endpoints: dict[str, tuple[str, int]] = {}
        self._node: MemberParts
        self._has_begun = False
        self.next_batch = 0
        """The number of the first metadata batch that this node has not applied yet."""
        self._fetchers: dict[int, LeaderFetchers] = {}
        self._followed: dict[LocalReplica, int] = {}
        self._turns: dict[ReplicaFetcher, DelayedOperation] = {}
        self._proposals = IsrProposals(node_id, random)
        self._next_proposal: DelayedOperation | None = None
        self._next_try: DelayedOperation | None = None

    def begin(self, publisher: MetadataPublisher, node: MemberParts, next_batch: int) -> None:
        """Attach `node` and `publisher`, which has applied all records, and begin to follow leaders."""
        self._publisher, self._node, self.next_batch = publisher, node, next_batch
        self.cluster = cluster = publisher.cluster
        self.throttle = ReplicationThrottle("leader", self.node_id, cluster.config)
        self._own_throttle = ReplicationThrottle("follower", self.node_id, cluster.config)
        self._has_begun = True
        self.brokers = cluster.image.brokers
        self._refresh(brokers_changed=True)

    def join(self, endpoints: dict[str, tuple[str, int]]) -> None:
        """Register with the controller. `endpoints` maps listener names to advertised host and port."""
        self._endpoints = endpoints
        self._register()
        self._alarm(self._heartbeat_s, self._beat)
        self._alarm(self.lag_s / 2, self._look_for_lag)

    def end(self) -> None:
        """Ignore all messages and timers from now on, because the node has stopped or crashed."""
        self.ended = True

    @property
    def is_alive(self) -> bool:
        """True if this node's metadata list it as registered with its current epoch, and not fenced."""
        state = self.brokers.by_id.get(self.node_id)
        return state is not None and state.epoch == self.broker_epoch and not state.fenced

    # --- as the host of partitions -----------------------------------------------------------------------

    def monotonic(self) -> float:
        """Return the node's monotonic clock in seconds."""
        return self._clock.monotonic()

    def is_eligible(self, replica: int) -> bool:
        """Return True if a replica may be in the ISR, according to the metadata of this node."""
        return self.brokers.is_acceptable(replica)

    def committed(self, replica: LocalReplica) -> None:
        """Check waiting requests again after the high watermark or leader of their partition has changed."""
        partition = replica.partition
        log = partition.open_log
        if not partition.leads or log is None or partition.high_watermark >= log.end_offset:
            self.unreplicated.pop(partition, None)
        if not self._has_begun:
            return
        purgatory = self._node.purgatory
        purgatory.notify((partition, "committed"))
        purgatory.notify(partition, WAKES_ALL)

    def begun(self, partition: Partition) -> None:
        """Answer the fetches that wait for a partition, because the partition's log start was raised."""
        self._node.purgatory.notify(partition, WAKES_ALL)

    def written(self, partition: Partition) -> None:
        """Record that a partition of an internal topic has records that are not yet replicated."""
        if partition.topic in INTERNAL_TOPICS:
            self.unreplicated[partition] = partition.log.end_offset

    def saved_high_watermark(self, partition: Partition) -> int:
        """Return the partition's high watermark saved before this start of the node, or 0."""
        return self.saved.get((partition.topic, partition.index), 0)

    def save_high_watermarks(self) -> None:
        """Save the high watermarks of open partitions for the next start."""
        for partition in self.cluster.opened:
            self.saved[partition.topic, partition.index] = partition.high_watermark

    # --- alarms ------------------------------------------------------------------------------------------

    def _alarm(self, seconds: float, then: Callable[[], None]) -> DelayedOperation:
        def run() -> None:
            if not self.ended:
                then()

        return self._node.purgatory.park(Wait((), self.monotonic() + seconds), run)

    # --- the controller ----------------------------------------------------------------------------------

    def _register(self) -> None:
        asked = NodeRegistration(self.node_id, self._incarnation, self.rack, self._endpoints, self._was_clean)

        def answered(answer: Registered | None) -> None:
            if self.ended or self.broker_epoch >= 0:
                return
            if answer is not None:
                self.broker_epoch = answer.broker_epoch
                self._was_clean = True
                self.beat()

        self._transport.send(self.node_id, CONTROLLER, asked, answered)

        def again() -> None:
            if self.broker_epoch < 0:
                self._register()

        self._alarm(RETRY_S, again)

    def _beat(self) -> None:
        self._alarm(self._heartbeat_s, self._beat)
        self.beat()

    def beat(self) -> None:
        """Send a heartbeat to the controller. The response has the metadata batches that this node lacks."""
        if self.broker_epoch < 0:
            return
        asked = NodeHeartbeat(self.node_id, self.broker_epoch, self.next_batch, self.wants_stop)
        self._transport.send(self.node_id, CONTROLLER, asked, self._beaten)

    def _beaten(self, answer: HeartbeatAnswer | None) -> None:
        if answer is None or self.ended:
            return
        if not answer.is_known and self.broker_epoch >= 0:
            self.broker_epoch = -1
            self._register()
        self.take(answer.batches)
        self.may_stop = self.may_stop or answer.may_stop

    def take(self, batches: Sequence[MetadataBatch]) -> None:
        """Apply metadata batches, each once and in order. A batch that comes too early is ignored.

        The next heartbeat requests ignored batches again.

        Raises:
            StorageError: the metadata contradict themselves.
        """
        if self.ended:
            return
        took = brokers_changed = False
        for batch in batches:
            if batch.number == self.next_batch:
                self.next_batch += 1
                took = True
                if any(record.API_KEY in REGISTRATIONS for record in batch.records):
                    brokers_changed = True
                self._publisher.publish(batch.records)
        if took:
            self._refresh(brokers_changed=brokers_changed)

    def _refresh(self, *, brokers_changed: bool) -> None:
        """Fetch from new leaders, and notify coordinators and quotas, after the metadata have changed."""
        publisher = self._publisher
        changed, publisher.changed = publisher.changed, {}
        removed, publisher.removed = publisher.removed, []
        quotas_changed, publisher.have_quotas_changed = publisher.have_quotas_changed, False
        moved = []
        for partition in changed:
            replica = replica_of(partition)
            self._follow(replica)
            self._proposals.settled(replica)
            if partition.topic in INTERNAL_TOPICS:
                moved.append(partition)
            if not partition.leads:
                self.committed(replica)
        for opened in self.cluster.opened if brokers_changed else ():
            # The high watermark depends on which replicas may be in sync.
            if opened.leads:
                replica_of(opened).look_at_followers()
        for topic in removed:
            for gone in topic.partitions:
                self.saved.pop((gone.topic, gone.index), None)
                self._node.purgatory.notify(gone, WAKES_ALL)
        if self.moves is not None:
            if moved:
                self.moves.moved(moved)
            if removed:
                self.moves.deleted(removed)
            if quotas_changed:
                self.moves.quotas_changed()
        self._fetch_all()
        if publisher.behind and (self._next_try is None or not self._next_try.is_waiting):
            self._next_try = self._alarm(BEHIND_S, self._follow_again)

    def _follow_again(self) -> None:
        """Try again to apply metadata to the partitions where that failed."""
        self._publisher.follow_again()
        self._refresh(brokers_changed=False)

    # --- following ---------------------------------------------------------------------------------------

    def _follow(self, replica: LocalReplica) -> None:
        before, partition = self._followed.pop(replica, None), replica.partition
        if before is not None:
            self._fetchers[before].remove(replica)
        is_there = self.cluster.topics_by_id.get(partition.topic_id) is not None
        if not is_there or not partition.is_kept_here or partition.leads or partition.leader < 0:
            return
        leader = partition.leader
        fetchers = self._fetchers.get(leader)
        if fetchers is None:
            fetchers = self._fetchers[leader] = LeaderFetchers(
                self.node_id, leader, self._fetching, self._own_throttle
            )
        fetchers.add(replica, self.monotonic())
        self._followed[replica] = leader

    def _fetch_all(self) -> None:
        """Send the next Fetches to all leaders, unless requests are in flight."""
        for fetchers in list(self._fetchers.values()):
            self._fetch(fetchers.active)
            self._fetch(fetchers.resting)

    def _fetch(self, fetcher: ReplicaFetcher) -> None:
        """Send the next Fetch of a fetcher, unless a request is in flight."""
        now_s = self.monotonic()
        if self.ended or self.frozen:
            return
        if fetcher.is_busy(now_s):
            self._set_turn(fetcher)
            return
        request = fetcher.request(self.broker_epoch, now_s) if self.broker_epoch >= 0 else None
        if request is not None:
            ticket = fetcher.ticket

            def answered(answer: Any) -> None:
                if not self.ended and fetcher.ticket == ticket:
                    self._fetched(fetcher, answer)

            self._transport.send(self.node_id, fetcher.leader, request, answered)
        self._set_turn(fetcher)

    def _set_turn(self, fetcher: ReplicaFetcher) -> None:
        """Set the timer for a fetcher's next request, or for the time when the response counts as lost."""
        when = fetcher.next_turn()
        alarm = self._turns.get(fetcher)
        if when is None or (alarm is not None and alarm.is_waiting and alarm.deadline <= when):
            return
        if alarm is not None:
            self._node.purgatory.cancel(alarm)
        seconds = max(when - self.monotonic(), 0.001)
        self._turns[fetcher] = self._alarm(seconds, lambda: self._fetch(fetcher))

    def _fetched(self, fetcher: ReplicaFetcher, answer: Any) -> None:
        now_s = self.monotonic()
        if answer is None or self.frozen:
            fetcher.failed(now_s)
            self._set_turn(fetcher)
            return
        changed = fetcher.answered(answer, now_s, self._clock.now_ms(), self.committed)
        fetchers = self._fetchers[fetcher.leader]
        fetchers.arrange(changed, now_s)
        self._fetch(fetchers.active)
        self._fetch(fetchers.resting)

    def freeze(self, frozen: bool) -> None:
        """Stop fetching from leaders, or continue: for tests."""
        self.frozen = frozen
        if not frozen:
            self._fetch_all()

    # --- leading -----------------------------------------------------------------------------------------

    def topic_of(self, asked: FetchTopic, version: int) -> Topic:
        """Return the topic that a follower's request names. Raises the errors of `ClusterState.topic`."""
        if version >= FETCH_TOPIC_IDS_SINCE:
            return self.cluster.topic_by_id(asked.topic_id)
        return self.cluster.topic(asked.topic)

    def fetched(self, local: LocalReplica, replica: int) -> None:
        """Record a follower's fetch, advance the high watermark, and propose the follower for the ISR."""
        local.look_at_followers()
        self._node.purgatory.notify((local.partition, "fetched"))
        followers = local.followers
        if followers is None or replica in followers.in_sync:
            return
        follower = followers.get(replica)
        broker = self.brokers.by_id.get(replica)
        if (
            follower is not None
            and broker is not None
            and broker.is_acceptable
            and follower.broker_epoch in (-1, broker.epoch)
            and followers.may_join(replica, local.partition.high_watermark, local.partition.log_start_offset)
        ):
            followers.joining = replica
            self._propose(local, (*followers.in_sync, replica))

    def _propose(self, replica: LocalReplica, in_sync: Sequence[int]) -> None:
        if replica.followers is not None and not self.ended:
            self._proposals.add(replica, in_sync)
            self._send_proposals()

    def _send_proposals(self) -> None:
        """Send the pending ISR proposals, unless one is in flight or a pause after a failure lasts."""
        now_s = self.monotonic()
        proposal = self._proposals.request(self.broker_epoch, now_s) if self.broker_epoch >= 0 else None
        if proposal is not None:
            number = proposal.number

            def answered(answer: Any) -> None:
                if self.ended:
                    return
                if self._proposals.answered(number, answer, self.monotonic()):
                    self.beat()  # accepted changes, and the reasons of refusals, come as metadata
                self._send_proposals()

            self._transport.send(self.node_id, CONTROLLER, proposal, answered)
        when, alarm = self._proposals.next_turn(), self._next_proposal
        if alarm is not None:
            if when is not None and alarm.is_waiting and alarm.deadline <= when:
                return
            self._node.purgatory.cancel(alarm)
        if when is not None:
            self._next_proposal = self._alarm(max(when - now_s, 0.001), self._send_proposals)

    def _look_for_lag(self) -> None:
        """Propose ISRs without the followers that have lagged for too long, and set the next timer."""
        self._alarm(self.lag_s / 2, self._look_for_lag)
        now_s = self.monotonic()
        for partition in list(self.cluster.opened):
            replica = replica_of(partition)
            followers = replica.followers
            if followers is None:
                continue
            if partition.high_watermark < partition.log.end_offset:
                replica.look_at_followers()
            if followers.pending:
                continue
            lagging = followers.lagging(partition.log.end_offset, self.lag_s, now_s)
            if lagging:
                rest = [each for each in followers.in_sync if each not in lagging]
                logger.info("followers %s of %s lag behind", lagging, partition)
                self._propose(replica, rest)

    # --- messages ----------------------------------------------------------------------------------------

    def receive(self, source: int, asked: Any, answer: Answered) -> None:
        """Handle a message from another node or from the controller."""
        if self.ended:
            answer(None)
        elif isinstance(asked, Feed):
            try:
                self.take([asked.batch])
            except StorageError as error:
                logger.error("%s", error)
        elif isinstance(asked, FetchRequest):
            self._answer(serve(asked, IN_MEMORY_VERSION, self), answer)
        else:
            answer(None)

    def _answer(self, outcome: Any, answer: Answered) -> None:
        if not isinstance(outcome, Wait):
            answer(outcome)
            return
        later = outcome.answer
        assert later is not None

        def resume() -> None:
            if self.ended:
                answer(None)
            else:
                self._answer(later(), answer)

        self._node.purgatory.park(outcome, resume)
