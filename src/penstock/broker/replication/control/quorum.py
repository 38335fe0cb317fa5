"""`Quorum`: the metadata log of a cluster. It writes the controller's records and sends them to the nodes.

In Apache Kafka, this is a quorum of controllers. Here the quorum is one object in the process of the nodes,
and never fails. Nodes reach it over the transport, so that tests can cut a node off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from penstock.broker.metadata.brokers import REGISTRATIONS
from penstock.broker.metadata.cluster_view import MetadataObserver
from penstock.broker.metadata.image import (
    FIRST_FEATURES,
    ClusterImage,
    metadata_level,
)
from penstock.broker.metadata.metadata_log import MetadataLog
from penstock.broker.replication.control.controller import Controller
from penstock.broker.replication.control.periodic_elections import UNCLEAN_S, PeriodicElections
from penstock.broker.replication.transport.messages import (
    CONTROLLER,
    Feed,
    HeartbeatAnswer,
    MetadataBatch,
    NodeHeartbeat,
    NodeRegistration,
    Proposal,
    Registered,
)
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord

if TYPE_CHECKING:
    from penstock.broker.replication.control.placement import Shuffling
    from penstock.broker.replication.transport.links import Transport
    from penstock.broker.requests.quotas import MutationTokens
    from penstock.clock import Clock
    from penstock.log.contract import Log
    from penstock.protocol.message import Message

logger = logger_named("penstock.broker")

CONTROLLER_ID = 0
"""The id of the controller in DescribeQuorum responses: broker ids begin with 1."""

BATCHES_KEPT = 10_000
"""The number of metadata batches in memory for nodes that lag behind; a node that lags further must
restart.
"""


class StaleDecisionError(StorageError):
    """A metadata change was based on metadata that are not the newest, so it is not written."""


class Quorum:
    """The metadata log's only voter. It fences nodes after `session_s` seconds without a heartbeat."""

    def __init__(
        self,
        log: Log,
        cluster_id: str,
        transport: Transport,
        clock: Clock,
        session_s: float,
        random: Shuffling,
        unclean_default: Callable[[], bool] = lambda: False,
        rebalance_s: float | None = None,
        minimum_default: Callable[[], int] = lambda: 1,
        unclean_s: float = UNCLEAN_S,
        features: Mapping[str, int] = FIRST_FEATURES,
    ) -> None:
        """Read the metadata in `log`. An empty log gets the feature levels in `features` first.

        Every `rebalance_s` seconds leadership returns to preferred replicas, and every `unclean_s` seconds
        unclean elections are held where they are allowed. `unclean_default` and `minimum_default` return the
        values of `unclean.leader.election.enable` and `min.insync.replicas` with which brokers were started.

        Raises:
            StorageError: the log cannot be read or written.
        """
        self.cluster_id = cluster_id
        self.image = ClusterImage()
        self.brokers = self.image.brokers
        self.controller = Controller(self.image, session_s, random, unclean_default, minimum_default)
        self._elections = PeriodicElections(self.controller, clock.monotonic(), rebalance_s, unclean_s)
        self.producer_ids_end = 0
        self.mutation_tokens: MutationTokens = {}
        """The token buckets of the controller mutation quotas: the number of partitions that each client
        may still create or delete.
        """
        self._transport = transport
        self._clock = clock
        self._log = MetadataLog(log)
        self._batches: deque[MetadataBatch] = deque(maxlen=BATCHES_KEPT)
        self._next_batch = 0
        self._broker_epoch = 0
        self._nodes: dict[int, None] = {}
        self._observers: dict[int, MetadataObserver] = {}
        self.directory_id = bytes(16)
        """The id of the data directory that has the metadata log."""
        self.watchers: list[Callable[[Sequence[Message]], None]] = []
        """Functions to call with metadata records, after the quorum has applied these records."""
        is_new = True
        for record in self._log.replay():
            is_new = False
            self.image.apply(record)
        self.brokers.by_id.clear()  # registrations end with the process, and nodes register again
        if is_new:
            levels = features.items()
            records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels]
            self._write(records, clock.now_ms())
        self._log.level = metadata_level(self.image.features)
        self._forget_leaders(clock.now_ms())

    def _forget_leaders(self, now_ms: int) -> None:
        """Clear all leaders, because no node is alive yet: the first nodes that register begin new epochs."""
        records: list[Message] = [
            PartitionChangeRecord(
                partition_id=each.index,
                topic_id=each.topic_id,
                leader=-1,
                last_known_elr=[each.leader] if self.controller.eligibility.is_on else None,
            )
            for topic in self.image.topics.values()
            for each in topic.partitions
            if each.leader >= 0
        ]
        if records:
            self._write(records, now_ms)

    # --- writing -----------------------------------------------------------------------------------------

    def commit(
        self,
        records: Sequence[Message],
        now_ms: int,
        beside: int | None = None,
        decided_at: int | None = None,
    ) -> None:
        """Write and apply records, and send them to all nodes except `beside`, which applies them itself.

        `decided_at` is the number of the first batch that the node had not applied when it made these
        records; None if the controller made them. If another batch has been written since, the records are
        refused.

        Raises:
            StaleDecisionError: other metadata have been written since; nothing has changed.
            StorageError: the records could not be written, or do not fit the image; nothing has changed.
        """
        if not records:
            return
        if decided_at is not None and decided_at != self._next_batch:
            raise StaleDecisionError(
                f"the metadata have changed meanwhile: decided against {decided_at} batches, there are"
                f" {self._next_batch}; ask again"
            )
        batch = self._write(records, now_ms)
        for node in list(self._nodes):
            if node != beside:
                self._transport.send(CONTROLLER, node, Feed(batch), _ignore)
        for watcher in self.watchers:
            watcher(records)

    def _write(self, records: Sequence[Message], now_ms: int) -> MetadataBatch:
        records = [*records, *self.controller.eligibility.consequences(records)]
        kept = [each for each in records if each.API_KEY not in REGISTRATIONS]
        if kept:
            self.image.check(kept)
            self._log.append(kept, now_ms)
        for record in records:
            self.image.apply(record)
        self._log.level = metadata_level(self.image.features)
        batch = MetadataBatch(self._next_batch, tuple(records))
        self._next_batch += 1
        self._batches.append(batch)
        return batch

    def _commit(self, records: Sequence[Message]) -> None:
        self.commit(records, self._clock.now_ms())

    @property
    def end_offset(self) -> int:
        """The offset after the last record of the metadata log."""
        return self._log.end_offset

    @property
    def level(self) -> int:
        """The level of `metadata.version` in which records are written."""
        return self._log.level

    @property
    def epoch(self) -> int:
        """The epoch in which this quorum leads the metadata log."""
        return self._log.epoch

    # --- nodes -------------------------------------------------------------------------------------------

    def everything(self) -> tuple[list[Message], int]:
        """Return records of all present metadata, for a starting node, and the number of the next batch.

        Raises:
            StorageError: the log cannot be read.
        """
        records = [each for each in self._log.replay() if each.API_KEY not in REGISTRATIONS]
        records += [each.record(self.level) for each in self.brokers.by_id.values()]
        return records, self._next_batch

    def receive(self, source: int, asked: Any, answer: Callable[[Any], None]) -> None:
        """Handle a message from a node.

        Raises:
            StorageError: the records that result from the message could not be written.
        """
        if isinstance(asked, NodeHeartbeat):
            answer(self._heartbeat(asked))
        elif isinstance(asked, Proposal):
            decision, records = self.controller.propose(asked)
            self._commit(records)
            answer(decision)
        elif isinstance(asked, NodeRegistration):
            answer(self._register(asked))

    def _register(self, registration: NodeRegistration) -> Registered:
        epoch = self._broker_epoch = max(self._broker_epoch + 1, self._log.end_offset)
        self._nodes[registration.node] = None
        for records in self.controller.register(registration, epoch):
            self._commit(records)
        return Registered(self.brokers.by_id[registration.node].epoch)

    def _heartbeat(self, beat: NodeHeartbeat) -> HeartbeatAnswer:
        is_known, records = self.controller.heartbeat(beat, self._clock.monotonic())
        self._commit(records)
        missing = self.since(beat.next_batch) if is_known else []
        if is_known:
            self._observe(beat.node, missing)
        may_stop = beat.wants_stop and not missing and not self.controller.leads_anything(beat.node)
        return HeartbeatAnswer(is_known, may_stop, missing)

    def _observe(self, node: int, missing: Sequence[MetadataBatch]) -> None:
        lacks = sum(each.API_KEY not in REGISTRATIONS for batch in missing for each in batch.records)
        now_ms, before = self._clock.now_ms(), self._observers.get(node)
        caught_up_ms = now_ms if not lacks else -1 if before is None else before.caught_up_ms
        self._observers[node] = MetadataObserver(node, self.end_offset - lacks, now_ms, caught_up_ms)

    def observers(self) -> list[MetadataObserver]:
        """Return the live nodes, as readers of the metadata log, in order of their ids."""
        return [self._observers[each.id] for each in self.brokers.living() if each.id in self._observers]

    def since(self, number: int) -> list[MetadataBatch]:
        """Return the metadata batches from number `number` on."""
        if number >= self._next_batch:
            return []
        first = self._batches[0].number
        return list(islice(self._batches, max(0, number - first), None))

    def gone(self, node: int) -> None:
        """Fence a node at once, after its clean shutdown.

        Raises:
            StorageError: the fencing could not be written.
        """
        self._nodes.pop(node, None)
        self._commit(self.controller.fence(node))

    def excuse(self, seconds: float) -> None:
        """Extend the sessions of all nodes by `seconds`: for that time no heartbeat could arrive."""
        self.controller.excuse(seconds, self._clock.monotonic())

    def expire(self) -> None:
        """Fence the nodes whose sessions have expired, and hold the elections that are due.

        Raises:
            StorageError: the records could not be written.
        """
        now_s = self._clock.monotonic()
        while records := self.controller.expire(now_s):
            self._commit(records)
        self._commit(self._elections.take_due(now_s))


def _ignore(answer: object) -> None:
    """Ignore a node's answer to sent metadata: its next heartbeat requests metadata that were lost."""
