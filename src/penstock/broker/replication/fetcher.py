"""The follower's half of replication: requests to one leader, and the handling of responses. Without I/O.

A follower fetches as a consumer does, with its id and broker epoch in the request (KIP-903). Each partition
carries the epoch of its last record, so that the leader can say where the logs diverge (KIP-595's
`diverging_epoch`, in Fetch since version 12): the follower truncates there, and fetches again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState

if TYPE_CHECKING:
    from penstock.broker.config.values import BrokerConfig
    from penstock.broker.replication.local_replica import LocalReplica
    from penstock.broker.replication.throttles import ReplicationThrottle
    from penstock.protocol.messages.fetch_response import FetchResponse, PartitionData

logger = logger_named("penstock.broker")

RESTART_S = 0.01
"""The seconds after which the request in flight is replaced by a new one, if it lacks replicas that were
added later.
"""

REST_AFTER_S = 1.0
"""The seconds without a new record after which a replica moves from the fetcher `LeaderFetchers.active` to
`resting`."""

PATIENCE_S = 1.5
"""The timeout of a response in seconds, beyond the time that the leader may delay it. Kafka waits 30 s
(`replica.socket.timeout.ms`), and a lost connection ends the wait; a message within a process may be lost
without an error."""


class ReplicaFetchSettings(NamedTuple):
    """The limits of a follower's Fetch requests, from the settings `replica.fetch.*` of its broker."""

    wait_max_ms: int = 500
    """The longest time in milliseconds that a leader delays a Fetch with less than `min_bytes` of records."""
    min_bytes: int = 1
    max_bytes: int = 1 << 20
    """The maximum size in bytes of one partition in a response. A larger batch is sent if it is the first
    in the response."""
    response_max_bytes: int = 10 << 20
    """The maximum size in bytes of all partitions in a response. A larger batch is sent if it is the first
    in the response.
    """
    backoff_s: float = 0.1
    """The seconds for which a partition is not fetched after an error. New metadata of the partition end
    the pause."""

    @classmethod
    def of(cls, config: BrokerConfig) -> ReplicaFetchSettings:
        """Return the fetch limits that a broker's settings contain."""
        return cls(
            config.integer("replica.fetch.wait.max.ms"),
            config.integer("replica.fetch.min.bytes"),
            config.integer("replica.fetch.max.bytes"),
            config.integer("replica.fetch.response.max.bytes"),
            config.integer("replica.fetch.backoff.ms") / 1000,
        )


class _Asked(NamedTuple):
    replica: LocalReplica
    leader_epoch: int
    offset: int


class ReplicaFetcher:
    """Fetches partitions for one node from one leader node, with one request in flight at a time."""

    def __init__(
        self,
        node_id: int,
        leader: int,
        settings: ReplicaFetchSettings,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """Prepare to fetch from `leader`. `throttle` limits the bytes for replicas that are not in sync."""
        self._node_id = node_id
        self._throttle = throttle
        self.leader = leader
        self._settings = settings
        self._patience_s = settings.wait_max_ms / 1000 + PATIENCE_S
        self.not_before: dict[LocalReplica, float] = {}
        """A dict from replica to the time in seconds before which it is not fetched again."""
        self._asked: dict[tuple[bytes, int], _Asked] = {}
        self._asked_at: float | None = None
        self._is_outdated = False
        self.ticket = 0
        """The number of the last request. Responses to earlier requests are ignored."""

    def add(self, replica: LocalReplica) -> None:
        """Begin to fetch a replica's records from the leader, or restart after a change of its metadata."""
        self.not_before[replica] = 0.0

    def remove(self, replica: LocalReplica) -> None:
        """Stop fetching a replica's records. Does nothing if they are not fetched."""
        self.not_before.pop(replica, None)

    def restart(self) -> None:
        """Send the next request soon, because the request in flight lacks replicas that were added.

        The leader may delay the response to the request in flight by `wait_max_ms`. When the next request has
        been sent, that response is ignored.
        """
        self._is_outdated = True

    def is_busy(self, now_s: float) -> bool:
        """Return True while a request is in flight that is not counted as lost."""
        return self._asked_at is not None and now_s < self._asked_at + self._waits_s

    @property
    def _waits_s(self) -> float:
        return RESTART_S if self._is_outdated else self._patience_s

    def request(self, broker_epoch: int, now_s: float) -> FetchRequest | None:
        """Return the next Fetch request, or None if there is nothing to fetch.

        An earlier request without a response counts as lost.
        """
        topics: dict[bytes, FetchTopic] = {}
        self._asked = {}
        self._is_outdated = False
        for replica, not_before in self.not_before.items():
            if not_before > now_s:
                continue
            partition = replica.partition
            if self._throttle is not None and self._throttle.holds_back(partition, self._node_id, now_s):
                self.not_before[replica] = now_s + self._settings.backoff_s
                continue
            try:
                offset, epoch = replica.fetch_position
                start_offset = partition.log_start_offset
            except PenstockError as error:
                replica.troubled(error)
                self.not_before[replica] = now_s + self._settings.backoff_s
                continue
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = FetchTopic(
                    topic=partition.topic, topic_id=partition.topic_id
                )
            topic.partitions.append(
                FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=partition.leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=epoch,
                    log_start_offset=start_offset,
                    partition_max_bytes=self._settings.max_bytes,
                )
            )
            asked = _Asked(replica, partition.leader_epoch, offset)
            self._asked[partition.topic_id, partition.index] = asked
        if not topics:
            self._asked_at = None
            return None
        self.ticket += 1
        self._asked_at = now_s
        return FetchRequest(
            replica_id=self._node_id,
            replica_state=ReplicaState(replica_id=self._node_id, replica_epoch=broker_epoch),
            max_wait_ms=self._settings.wait_max_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.response_max_bytes,
            topics=list(topics.values()),
        )

    def failed(self, now_s: float) -> None:
        """Count the request in flight as lost; pause its replicas, because no response will come."""
        self._asked_at = None
        for asked in self._asked.values():
            self._leave_alone(asked.replica, now_s)

    def answered(
        self, response: FetchResponse, now_s: float, now_ms: int, moved: Callable[[LocalReplica], None]
    ) -> list[LocalReplica]:
        """Handle the response to the current request; return the replicas whose logs have changed.

        `moved` is called with each replica whose high watermark has changed.
        """
        self._asked_at = None
        changed: list[LocalReplica] = []
        for topic in response.responses:
            for answer in topic.partitions:
                asked = self._asked.get((topic.topic_id, answer.partition_index))
                if asked is None or asked.replica not in self.not_before:
                    continue
                replica, partition = asked.replica, asked.replica.partition
                if partition.leader_epoch != asked.leader_epoch or partition.leader != self.leader:
                    continue
                try:
                    if self._take(asked, answer, now_s, now_ms):
                        moved(replica)
                    has_changed = replica.fetch_position[0] != asked.offset
                    if has_changed:
                        changed.append(replica)
                    if answer.error_code and not has_changed:
                        self._leave_alone(replica, now_s)
                    else:
                        replica.well()
                except PenstockError as error:
                    replica.troubled(error)
                    self._leave_alone(replica, now_s)
        return changed

    def _take(self, asked: _Asked, answer: PartitionData, now_s: float, now_ms: int) -> bool:
        replica = asked.replica
        if replica.fetch_position[0] != asked.offset:
            return False
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start_offset > asked.offset:
            replica.partition.begin_at(answer.log_start_offset)
            anew = replica.partition, answer.log_start_offset, asked.offset
            logger.info("%s begins anew at %d, as its leader has deleted what comes at %d", *anew)
            return False
        if answer.error_code:
            return False
        diverging = answer.diverging_epoch
        if diverging.end_offset >= 0:
            end = replica.truncate(diverging.epoch, diverging.end_offset)
            cut = replica.partition, asked.offset, end
            logger.info("%s was cut from %d to %d, as its leader has it", *cut)
            return False
        records = answer.records
        data = (
            b"" if records is None else bytes(records) if not isinstance(records, list) else _joined(records)
        )
        if self._throttle is not None:
            self._throttle.took(replica.partition, len(data), now_s)
        return replica.replicate(data, answer.high_watermark, answer.log_start_offset, now_ms)

    def _leave_alone(self, replica: LocalReplica, now_s: float) -> None:
        if replica in self.not_before:
            self.not_before[replica] = now_s + self._settings.backoff_s

    def next_turn(self) -> float | None:
        """Return the monotonic time (s) to send a request or count the response as lost; None for never."""
        if self._asked_at is not None:
            return self._asked_at + self._waits_s
        return min(self.not_before.values(), default=None)


class LeaderFetchers:
    """Fetches a node's replicas from one leader: one fetcher for replicas with traffic, one for others.

    A request contains all partitions of its fetcher, and the leader processes each. With a single fetcher,
    every new record would make the leader process all partitions that the node follows. If requests of both
    fetchers contain a partition for a moment, only the response to its present fetcher is used.
    """

    def __init__(
        self,
        node_id: int,
        leader: int,
        settings: ReplicaFetchSettings,
        throttle: ReplicationThrottle | None = None,
    ) -> None:
        """Prepare to fetch from `leader`. `throttle` limits the bytes for replicas that are not in sync."""
        self.active = ReplicaFetcher(node_id, leader, settings, throttle)
        """The fetcher of the replicas that are new or whose logs have changed recently."""
        self.resting = ReplicaFetcher(node_id, leader, settings, throttle)
        """The fetcher of the replicas whose logs have not changed for `REST_AFTER_S`."""
        self._changed_s: dict[LocalReplica, float] = {}
        """A dict from each replica of `active` to the monotonic time in seconds at which it was added or
        its log changed last.
        """

    def add(self, replica: LocalReplica, now_s: float) -> None:
        """Begin to fetch a replica's records, or restart after a change of its metadata."""
        self.resting.remove(replica)
        self._activate(replica, now_s)

    def remove(self, replica: LocalReplica) -> None:
        """Stop fetching a replica's records. Does nothing if they are not fetched."""
        self.active.remove(replica)
        self.resting.remove(replica)
        self._changed_s.pop(replica, None)

    def arrange(self, changed: Iterable[LocalReplica], now_s: float) -> None:
        """Move the replicas in `changed` to `active`, and replicas without new records to `resting`."""
        for replica in changed:
            if replica in self._changed_s:
                self._changed_s[replica] = now_s
            else:
                self.resting.remove(replica)
                self._activate(replica, now_s)
        if not self.resting.is_busy(now_s):  # the next request of `resting` names them
            for replica, changed_s in list(self._changed_s.items()):
                if now_s - changed_s > REST_AFTER_S:
                    del self._changed_s[replica]
                    self.active.remove(replica)
                    self.resting.add(replica)

    def _activate(self, replica: LocalReplica, now_s: float) -> None:
        self._changed_s[replica] = now_s
        self.active.add(replica)
        self.active.restart()


def _joined(pieces: Iterable[object]) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)  # type: ignore[call-overload]
