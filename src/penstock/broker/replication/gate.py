"""`ReplicationGate`: the interceptor that serves followers, and delays responses until replication.

It is the interceptor nearest to the handlers; a broker without a cluster does not have it. Handlers append
and read as without replication; the gate delays the response until the in-sync replicas have the written
records.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from penstock.broker.handlers.fetch import FOLLOWERS_SERVE_SINCE
from penstock.broker.partitions.internal_topics import OFFSETS_TOPIC
from penstock.broker.replication.commitment import Commitment
from penstock.broker.replication.coordinated import COORDINATED
from penstock.broker.replication.entrants import (
    enter,
    entrants_of_offsets,
    entrants_of_records,
    refused_offsets,
    refused_records,
)
from penstock.broker.replication.local_replica import replica_of
from penstock.broker.replication.replica_fetch import follower_of, serve
from penstock.broker.requests.purgatory import Wait
from penstock.common.java_hash import partition_of
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import ERROR_CODES
from penstock.protocol.field_values import ALL_REPLICAS
from penstock.protocol.messages import (
    fetch_response,
    produce_response,
    share_acknowledge_response,
    share_fetch_response,
)
from penstock.protocol.since import (
    FETCH_ENDPOINTS_SINCE,
    FETCH_TOPIC_IDS_SINCE,
    PRODUCE_ENDPOINTS_SINCE,
    PRODUCE_TOPIC_IDS_SINCE,
)

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.partitions.partition import Partition
    from penstock.broker.replication.coordinated import Parts
    from penstock.broker.replication.member import ClusterMember
    from penstock.broker.requests.routes import Handler, VersionedRoute

CONSUMER_REPLICA = -1
"""The replica id in requests of clients, as opposed to followers."""

OFFSET_NOT_AVAILABLE_SINCE = 5

LATEST, MAX_TIMESTAMP = -1, -3

STATE_PATIENCE_S = 5.0
"""The seconds that a coordinator's response waits for replication (`offsets.commit.timeout.ms`)."""

STEP_S = 0.005
"""The seconds between checks while an offset request of version 0 waits for a coordinator on another node."""

RACK_AWARE = ("RackAwareReplicaSelector", "org.apache.kafka.common.replica.RackAwareReplicaSelector")
"""The accepted values of `replica.selector.class` (KIP-392), two names of one selector."""


class ReplicationGate:
    """The replication interceptor of one node.

    If `selects_by_rack` is True, the gate redirects consumers to replicas in their rack.
    """

    def __init__(self, member: ClusterMember, *, selects_by_rack: bool) -> None:
        self._member = member
        self._selects_by_rack = selects_by_rack

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Wrap the handler of an API that depends on replicas."""
        wrap, parts = _WRAPPED.get(route.key), COORDINATED.get(route.key)
        if wrap is not None:
            return route._replace(handle=wrap(self, route.handle))
        if parts is None:
            return route
        stored = self.coordinate(route.handle, parts)
        if route.key in _ONCE_IN_ZOOKEEPER:
            stored = self.at_any_broker(route.handle, stored)
        return route._replace(handle=stored)

    # --- Produce -----------------------------------------------------------------------------------------

    def produce(self, inner: Handler) -> Handler:
        """Return a handler that, with acks=all, answers once the in-sync replicas have the records."""

        def handle(request: Any, context: Context[Any]) -> Any:
            acks, profile = request.acks, context.node.profile
            if profile is not None and profile.counts_acks and not 0 <= acks <= 1:
                # 0.8 takes numbers below 0 as all; above 1 a `CountedRecords` waits for as many replicas.
                acks = max(acks, ALL_REPLICAS)
                request = copy.copy(request)
                request.acks = min(acks, 1)
                return append(request, context, acks)
            if request.transactional_id is not None and acks:
                entrants = entrants_of_records(request, context.version, self._topic)
                if entrants:
                    return enter(
                        entrants,
                        request,
                        context,
                        lambda: append(request, context, acks),
                        lambda: refused_records(request, context.version),
                    )
            return append(request, context, acks)

        def append(request: Any, context: Context[Any], acks: int) -> Any:
            outcome = inner(request, context)
            return _then(outcome, lambda response: self._produced(response, request, context, acks))

        return handle

    def _produced(self, response: Any, request: Any, context: Context[Any], acks: int) -> Any:
        if response is None:
            return None
        if acks == ALL_REPLICAS or acks > 1:
            waiting = [each for each in self._written(response, context.version, acks) if not each.is_done]
            if waiting:
                deadline = context.arrived + request.timeout_ms / 1000
                return _Replicating(waiting, deadline, context, lambda: self._hint(response, context)).check()
        return self._hint(response, context)

    def _written(self, response: Any, version: int, acks: int) -> Iterable[WrittenRecords]:
        for topic in response.responses:
            found = self._topic(topic.name, topic.topic_id, version >= PRODUCE_TOPIC_IDS_SINCE)
            if found is None:
                continue
            for answer in topic.partition_responses:
                if not answer.error_code and answer.index < len(found.partitions):
                    partition = found.partitions[answer.index]
                    is_counted = acks != ALL_REPLICAS
                    yield (
                        CountedRecords(partition, answer, acks)
                        if is_counted
                        else WrittenRecords(partition, answer)
                    )

    def _topic(self, name: str | None, topic_id: bytes, by_id: bool) -> Any:
        cluster = self._member.cluster
        return cluster.topics_by_id.get(topic_id) if by_id else cluster.topics.get(name or "")

    def _hint(self, response: Any, context: Context[Any]) -> Any:
        """Add the leaders of partitions to a Produce response, where other nodes lead them (KIP-951)."""
        if context.version >= PRODUCE_ENDPOINTS_SINCE:
            leaders: dict[int, None] = {}
            for topic in response.responses:
                for answer in topic.partition_responses:
                    if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                        by_id = context.version >= PRODUCE_TOPIC_IDS_SINCE
                        found = self._topic(topic.name, topic.topic_id, by_id)
                        if found is not None and answer.index < len(found.partitions):
                            partition = found.partitions[answer.index]
                            answer.current_leader = produce_response.LeaderIdAndEpoch(
                                leader_id=partition.leader, leader_epoch=partition.leader_epoch
                            )
                            leaders[partition.leader] = None
            response.node_endpoints = self._endpoints(leaders, context, produce_response.NodeEndpoint)
        return response

    def _endpoints(self, leaders: Iterable[int], context: Context[Any], made: Any) -> list[Any]:
        listener = context.session.listener_name
        found = []
        for leader in leaders:
            broker = self._member.brokers.by_id.get(leader)
            if broker is not None and not broker.fenced and listener in broker.endpoints:
                host, port = broker.endpoints[listener]
                found.append(made(node_id=leader, host=host, port=port, rack=broker.rack))
        return found

    # --- Fetch -------------------------------------------------------------------------------------------

    def fetch(self, inner: Handler) -> Handler:
        """Return a handler that serves followers, and consumers at the leader or a preferred read replica."""

        def handle(request: Any, context: Context[Any]) -> Any:
            if follower_of(request)[0] >= 0:
                return serve(request, context.version, self._member)
            if self._selects_by_rack and request.rack_id and self._prefers_other(request, context):
                request.max_wait_ms = 0
            return _then(inner(request, context), lambda response: self._fetched(response, request, context))

        return handle

    def _prefers_other(self, request: Any, context: Context[Any]) -> bool:
        for topic in request.topics:
            found = self._topic(topic.topic, topic.topic_id, context.version >= FETCH_TOPIC_IDS_SINCE)
            for asked in topic.partitions if found is not None else ():
                if asked.partition < len(found.partitions):
                    preferred = self._preferred(
                        found.partitions[asked.partition], request.rack_id, asked.fetch_offset
                    )
                    if preferred >= 0:
                        return True
        return False

    def _preferred(self, partition: Partition, rack: str, offset: int) -> int:
        """Return the replica in a client's rack from which the client should read, or -1 for the leader."""
        followers, brokers = replica_of(partition).followers, self._member.brokers.by_id
        here = brokers.get(self._member.node_id)
        if followers is None or not rack or here is None or here.rack == rack:
            return -1
        best: tuple[int, float, int] | None = None
        for replica, follower in followers.items():
            broker = brokers.get(replica)
            if (
                broker is not None
                and broker.is_acceptable
                and broker.rack == rack
                and replica in followers.in_sync
                and 0 <= follower.start_offset <= offset <= follower.end_offset
            ):
                rank = follower.end_offset, follower.caught_up_s, replica
                best = rank if best is None or rank > best else best
        return -1 if best is None else best[2]

    def _fetched(self, response: Any, request: Any, context: Context[Any]) -> Any:
        leaders: dict[int, None] = {}
        by_id = context.version >= FETCH_TOPIC_IDS_SINCE
        looks_at_racks = self._selects_by_rack and context.version >= FOLLOWERS_SERVE_SINCE
        offsets = {
            (topic.topic, topic.topic_id, asked.partition): asked.fetch_offset
            for topic in (request.topics if looks_at_racks and request.rack_id else ())
            for asked in topic.partitions
        }
        for topic in response.responses:
            found = self._topic(topic.topic, topic.topic_id, by_id)
            for answer in topic.partitions if found is not None else ():
                if answer.partition_index >= len(found.partitions):
                    continue
                partition = found.partitions[answer.partition_index]
                offset = offsets.get((topic.topic, topic.topic_id, answer.partition_index))
                if not answer.error_code and offset is not None:
                    preferred = self._preferred(partition, request.rack_id, offset)
                    if preferred >= 0:
                        answer.preferred_read_replica, answer.records = preferred, b""
                elif answer.error_code in _HINTED and context.version >= FETCH_ENDPOINTS_SINCE:
                    answer.current_leader = fetch_response.LeaderIdAndEpoch(
                        leader_id=partition.leader, leader_epoch=partition.leader_epoch
                    )
                    leaders[partition.leader] = None
        if leaders:
            response.node_endpoints = self._endpoints(leaders, context, fetch_response.NodeEndpoint)
        return response

    # --- share groups ------------------------------------------------------------------------------------

    def share(self, inner: Handler) -> Handler:
        """Return a handler that adds the current leader to a response if another node leads (KIP-932)."""

        def handle(request: Any, context: Context[Any]) -> Any:
            return _then(inner(request, context), lambda response: self._shared(response, context))

        return handle

    def _shared(self, response: Any, context: Context[Any]) -> Any:
        is_fetch = isinstance(response, share_fetch_response.ShareFetchResponse)
        made = share_fetch_response if is_fetch else share_acknowledge_response
        leaders: dict[int, None] = {}
        for topic in response.responses:
            found = self._topic(None, topic.topic_id, by_id=True)
            for answer in topic.partitions if found is not None else ():
                is_hinted = answer.error_code in _HINTED or (
                    is_fetch and answer.acknowledge_error_code in _HINTED
                )
                if is_hinted and answer.partition_index < len(found.partitions):
                    partition = found.partitions[answer.partition_index]
                    answer.current_leader = made.LeaderIdAndEpoch(
                        leader_id=partition.leader, leader_epoch=partition.leader_epoch
                    )
                    leaders[partition.leader] = None
        if leaders:
            response.node_endpoints = self._endpoints(leaders, context, made.NodeEndpoint)
        return response

    # --- offsets -----------------------------------------------------------------------------------------

    def list_offsets(self, inner: Handler) -> Handler:
        """Return a handler that reports the latest offset only if it is certain.

        It is uncertain until the high watermark has reached the start of the leader's epoch. Before that, the
        response has an error.
        """

        def handle(request: Any, context: Context[Any]) -> Any:
            return _then(inner(request, context), lambda response: self._listed(response, request, context))

        return handle

    def _listed(self, response: Any, request: Any, context: Context[Any]) -> Any:
        times = {
            (topic.name, asked.partition_index): asked.timestamp
            for topic in request.topics
            for asked in topic.partitions
        }
        for topic in response.topics:
            found = self._member.cluster.topics.get(topic.name)
            if found is None:
                continue
            for answer in topic.partitions:
                if answer.error_code or answer.partition_index >= len(found.partitions):
                    continue
                time = times.get((topic.name, answer.partition_index), 0)
                is_open = time in (LATEST, MAX_TIMESTAMP) or (time >= 0 and answer.offset < 0)
                replica = replica_of(found.partitions[answer.partition_index])
                if is_open and request.replica_id == CONSUMER_REPLICA and not replica.is_settled:
                    is_new = context.version >= OFFSET_NOT_AVAILABLE_SINCE
                    code = ErrorCode.OFFSET_NOT_AVAILABLE if is_new else ErrorCode.LEADER_NOT_AVAILABLE
                    answer.error_code, answer.offset, answer.timestamp = code, -1, -1
        return response

    # --- coordinators ------------------------------------------------------------------------------------

    def commit_in_transaction(self, inner: Handler) -> Handler:
        """Return a TxnOffsetCommit handler that first adds the offsets' partition to the transaction."""
        stored = self.coordinate(inner, COORDINATED[ApiKey.TXN_OFFSET_COMMIT])

        def handle(request: Any, context: Context[Any]) -> Any:
            entrants = entrants_of_offsets(request, context.version, self._member.cluster.topics)
            if not entrants:
                return stored(request, context)
            return enter(
                entrants,
                request,
                context,
                lambda: stored(request, context),
                lambda: refused_offsets(request, context.version),
            )

        return handle

    def coordinate(self, inner: Handler, parts: Parts) -> Handler:
        """Return a handler that answers once the state that the coordinator stored is replicated."""

        def handle(request: Any, context: Context[Any]) -> Any:
            losses = self._member.losses
            outcome = inner(request, context)
            return _then(outcome, lambda response: self._stored(request, response, context, parts, losses))

        return handle

    def at_any_broker(self, inner: Handler, stored: Handler) -> Handler:
        """Return a handler with which every broker serves version 0 of OffsetCommit and OffsetFetch.

        A client of Kafka 0.8.0 or 0.8.1 cannot look up a coordinator: it kept its offsets in ZooKeeper, and
        any broker could reach them. `inner` handles the request on the coordinator's node; `stored` handles
        it on this node, and waits until the outcome is replicated.
        """

        def handle(request: Any, context: Context[Any]) -> Any:
            if context.version:
                return stored(request, context)
            return _AtCoordinator(inner, stored, request, context).check()

        return handle

    def _stored(self, request: Any, response: Any, context: Context[Any], parts: Parts, losses: int) -> Any:
        """Return the response, or a `Wait` until the coordinator state it depends on is replicated.

        `losses` is the value of the member's `losses` before the request was handled: if this node has lost a
        leadership since, stored state may be lost, and the part of the response that depends on that state
        gets an error.
        """
        member = self._member
        unreplicated, has_lost = member.unreplicated, member.losses != losses
        if response is None or not (unreplicated or has_lost):
            return response
        waiting = []
        topics = member.cluster.topics
        for name, key, part in parts(request, response):
            topic = topics.get(name)
            partition = topic.partitions[partition_of(key, len(topic.partitions))] if topic else None
            if partition is None:
                continue
            if has_lost and replica_of(partition).lost_at > losses:
                set_errors(part, ErrorCode.NOT_COORDINATOR)
            elif partition in unreplicated:
                waiting.append(_State(partition, part))
        waiting = [each for each in waiting if not each.is_done]
        if not waiting:
            return response
        return _Replicating(waiting, context.now + STATE_PATIENCE_S, context, lambda: response).check()


_ONCE_IN_ZOOKEEPER = (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH)

_COMES_LATER = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

_HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class WrittenRecords:
    """Records of one partition that must be replicated before their response is sent."""

    __slots__ = ("_answer", "_commitment", "partition")

    def __init__(self, partition: Partition, answer: Any) -> None:
        """Record the log end of a partition, and the part of the response for it.

        Raises:
            StorageError: the log cannot be opened.
        """
        self.partition = partition
        self._commitment = Commitment(partition)
        self._answer = answer

    @property
    def is_done(self) -> bool:
        """Return True if the wait is over; after a failure the response then has an error."""
        partition = self.partition
        if self._commitment.is_lost:
            self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        if not self._commitment.is_committed:
            return False
        if len(partition.in_sync) < replica_of(partition).minimum_in_sync:
            self.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True

    @property
    def keys(self) -> list[object]:
        """Return the purgatory keys whose notification ends or continues this wait."""
        return [(self.partition, "committed")]

    def fail(self, code: ErrorCode) -> None:
        """Set an error in the partition's response."""
        self._answer.error_code = code
        if code != ErrorCode.REQUEST_TIMED_OUT:
            self._answer.base_offset = -1

    def time_is_up(self) -> None:
        """Set the timeout error in the partition's part of the response."""
        self.fail(ErrorCode.REQUEST_TIMED_OUT)


class CountedRecords(WrittenRecords):
    """Records that a number of in-sync replicas must have before the response: Kafka 0.8's acks above 1.

    The wait ends when all in-sync replicas have the records, even if they are fewer. This follows the
    documentation of the protocol; Kafka 0.8 itself let such a request time out.
    """

    __slots__ = ("_acks",)

    def __init__(self, partition: Partition, answer: Any, acks: int) -> None:
        super().__init__(partition, answer)
        self._acks = acks

    @property
    def keys(self) -> list[object]:
        """Return the purgatory keys of this wait: for a follower's fetch, and for a change of the leader."""
        return [(self.partition, "committed"), (self.partition, "fetched")]

    @property
    def is_done(self) -> bool:
        """Return True if enough replicas have the records, or the leadership is lost."""
        if self._commitment.is_lost:
            self.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        followers = replica_of(self.partition).followers
        assert followers is not None  # it leads
        have = 1 + sum(
            replica in followers.in_sync and follower.end_offset >= self._commitment.end_offset
            for replica, follower in followers.items()
        )
        return have >= min(self._acks, len(followers.in_sync))


class _State(WrittenRecords):
    """A coordinator's records that must be replicated before the part of a response about them is valid."""

    __slots__ = ()

    def fail(self, code: ErrorCode) -> None:
        if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            code = ErrorCode.NOT_COORDINATOR
        elif code is not ErrorCode.NOT_COORDINATOR:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        set_errors(self._answer, code)


class _Replicating:
    """A response that waits until the high watermarks of some partitions reach the written records."""

    def __init__(
        self, waiting: list[Any], deadline: float, context: Context[Any], answer: Callable[[], Any]
    ) -> None:
        self._waiting = waiting
        self._deadline = deadline
        self._context = context
        self._answer = answer

    def check(self) -> Any:
        """Return the response if the wait is over or has timed out, otherwise a `Wait`."""
        self._waiting = [each for each in self._waiting if not each.is_done]
        if not self._waiting:
            return self._answer()
        if self._context.now >= self._deadline:
            for each in self._waiting:
                each.time_is_up()
            return self._answer()
        keys = [key for each in self._waiting for key in each.keys]
        return Wait(keys, self._deadline, 1, self.check)


class _AtCoordinator:
    """A request for offsets that is handled at the coordinator of its group, on this or another node."""

    def __init__(self, inner: Handler, stored: Handler, request: Any, context: Context[Any]) -> None:
        self._inner = inner
        self._stored = stored
        self._request = request
        self._context = context
        self._deadline = context.now + STATE_PATIENCE_S
        self._state: _State | None = None
        self._response: Any = None

    def check(self) -> Any:
        """Return the response, or a `Wait` until a coordinator exists and has replicated the offsets."""
        if self._state is None:
            outcome = self._handle()
            if type(outcome) is Wait:
                return outcome
            self._response = outcome
        is_late = self._context.now >= self._deadline
        if self._state is not None:
            if is_late and not self._state.is_done:
                self._state.time_is_up()
            if is_late or self._state.is_done:
                return self._response
        elif is_late or not _comes_later(self._response):
            return self._response
        return Wait((), self._context.node.clock.monotonic() + STEP_S, 1, self.check)

    def _handle(self) -> Any:
        node = self._context.node
        topic = node.cluster.topics.get(OFFSETS_TOPIC)
        index = partition_of(self._request.group_id, len(topic.partitions)) if topic is not None else 0
        there = None if topic is None else node.membership.reach(topic.partitions[index].leader)
        if there is None or there is node:
            return self._stored(self._request, self._context)
        response = self._inner(self._request, self._context.at(there))
        if not _comes_later(response):
            self._state = _State(there.cluster.topic(OFFSETS_TOPIC).partition(index), response)
        return response


def _comes_later(response: Any) -> bool:
    """Return True if a response about offsets has the error of a coordinator that is not ready yet."""
    return any(part.error_code in _COMES_LATER for topic in response.topics for part in topic.partitions)


def set_errors(answer: Any, code: int) -> None:
    """Set all error codes in a response, including nested ones, to `code`."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if name in ERROR_CODES:
            setattr(answer, name, code)
        elif isinstance(value, list):
            for part in value:
                if hasattr(part, "__slots__"):
                    set_errors(part, code)


def _then(outcome: Any, then: Callable[[Any], Any]) -> Any:
    """Call `then` with a response, now or when it is available; return its result, or a `Wait`."""
    if type(outcome) is Wait:
        later = outcome.answer
        assert later is not None
        outcome.answer = lambda: _then(later(), then)
        return outcome
    return then(outcome)


_WRAPPED: dict[int, Callable[[ReplicationGate, Handler], Handler]] = {
    ApiKey.PRODUCE: ReplicationGate.produce,
    ApiKey.FETCH: ReplicationGate.fetch,
    ApiKey.LIST_OFFSETS: ReplicationGate.list_offsets,
    ApiKey.SHARE_FETCH: ReplicationGate.share,
    ApiKey.SHARE_ACKNOWLEDGE: ReplicationGate.share,
    ApiKey.TXN_OFFSET_COMMIT: ReplicationGate.commit_in_transaction,
}
