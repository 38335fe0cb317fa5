"""Records the times at which a broker stores the committed offsets of a group, in the order of a history.

The recording happens after faults are applied: a commit whose answer is lost is recorded, and a commit that a
fault refuses is not. Offsets of a transaction are recorded when the transaction is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.broker.requests.routes import when_answered
from penstock.errors import ConfigError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.api import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.testing.chaos.reading import end_offsets
from penstock.testing.report import nodes_of

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster
    from penstock.broker.context import Context
    from penstock.broker.requests.routes import Answer, VersionedRoute
    from penstock.testing.chaos.recorder import Recorder

PENDING_MAX = 10_000
"""The greatest number of producers with offsets in open transactions; beyond it, the oldest are dropped."""

Offsets = dict[TopicPartition, int]


def observe(served: KafkaBroker | KafkaCluster, recorder: Recorder) -> Callable[[], None]:
    """Record each offset commit of a broker or cluster in `recorder`; return a function that stops this.

    Raises:
        ConfigError: `served` is neither a `KafkaBroker` nor a `KafkaCluster`.
    """
    if not hasattr(served, "observe"):
        raise ConfigError(f"{type(served).__name__} cannot be attached: give a KafkaBroker or a KafkaCluster")
    return served.observe(Effects(served, recorder).intercept)


class Effects:
    """Records offset commits when one broker, or any node of a cluster, stores them."""

    def __init__(self, served: KafkaBroker | KafkaCluster, recorder: Recorder) -> None:
        self._served = served
        self._recorder = recorder
        self._pending: dict[int, tuple[int, dict[str, Offsets]]] = {}
        """A dict from producer id to its open transaction: the producer's epoch, and the offsets by group."""

    def intercept(self, route: VersionedRoute) -> VersionedRoute:
        """Wrap the handler of an API so that commits are recorded; return other APIs' routes unchanged."""
        note = {
            ApiKey.OFFSET_COMMIT: self._committed,
            ApiKey.TXN_OFFSET_COMMIT: self._pends,
            ApiKey.END_TXN: self._ended,
        }.get(ApiKey(route.key))
        if note is None:
            return route
        handle = route.handle

        def handle_and_note(request: Any, context: Context[Any]) -> Answer:
            def noted(response: Any) -> Any:
                note(request, response, context)
                return response

            return when_answered(handle(request, context), noted)

        return route._replace(handle=handle_and_note)

    def _committed(self, request: Any, response: Any, context: Context[Any]) -> None:
        offsets = _accepted(request, response, context)
        if offsets:
            self._record(request.group_id, offsets, in_transaction=False)

    def _pends(self, request: Any, response: Any, context: Context[Any]) -> None:
        offsets = _accepted(request, response, context)
        epoch, groups = self._pending.pop(request.producer_id, (request.producer_epoch, {}))
        if epoch != request.producer_epoch:
            groups = {}  # those of a transaction that was aborted by its timeout, or fenced
        groups.setdefault(request.group_id, {}).update(offsets)
        self._pending[request.producer_id] = request.producer_epoch, groups
        if len(self._pending) > PENDING_MAX:
            del self._pending[next(iter(self._pending))]

    def _ended(self, request: Any, response: Any, context: Context[Any]) -> None:
        if response.error_code != ErrorCode.NONE:
            return
        epoch, groups = self._pending.pop(request.producer_id, (-1, {}))
        if request.committed and epoch == request.producer_epoch:
            for group, offsets in groups.items():
                self._record(group, offsets, in_transaction=True)

    def _record(self, group: str, offsets: Offsets, *, in_transaction: bool) -> None:
        try:
            ends = end_offsets(nodes_of(self._served))
        except PenstockError:  # a node that is being stopped
            return
        self._recorder.committed(group, offsets, ends=ends, in_transaction=in_transaction)


def _accepted(request: Any, response: Any, context: Context[Any]) -> Offsets:
    """Return a dict from partition to offset, for the offsets of a commit that the broker accepted."""
    found: Offsets = {}
    for asked, answered in zip(request.topics, response.topics, strict=True):
        name = asked.name
        if not name:
            topic = context.node.cluster.topics_by_id.get(asked.topic_id)
            name = "" if topic is None else topic.name
        for partition, outcome in zip(asked.partitions, answered.partitions, strict=True):
            if outcome.error_code == ErrorCode.NONE:
                found[TopicPartition(name, partition.partition_index)] = partition.committed_offset
    return found
