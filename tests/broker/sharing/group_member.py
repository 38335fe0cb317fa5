"""A share group member for tests, which fetches from a node without sockets and acknowledges records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.bench_node import NOW_MS, batch_of, make_node, make_topic, produce
from broker.sharing.memory_persister import MemoryPersister
from penstock.broker.context import Context
from penstock.broker.handlers import ROUTES
from penstock.broker.node import Node
from penstock.broker.requests.purgatory import Wait
from penstock.broker.session import Session
from penstock.clock import ManualClock
from penstock.protocol.api import ApiKey
from penstock.protocol.messages import share_acknowledge_request as acknowledging
from penstock.protocol.messages import share_fetch_request as fetching

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

EARLIEST = {"share.auto.offset.reset": "earliest"}


class Bench:
    """A test node with one topic; its share groups start at the first record of the log."""

    def __init__(self, partitions: int = 1, group: dict[str, str] | None = None, **settings: object) -> None:
        self.clock = ManualClock(NOW_MS)
        self.node: Node = make_node(clock=self.clock, **settings)
        self.topic = make_topic(self.node, partitions=partitions)
        self.persister = MemoryPersister()
        self.own_persister = self.node.share_persister
        """The node's own share coordinator, which `persister` replaces in most tests."""
        self.node.share_persister = self.persister
        self.configure(**{**EARLIEST, **(group or {})})

    def configure(self, name: str = "g", **texts: str) -> None:
        self.node.cluster.resource_configs[32, name] = texts  # type: ignore[index]

    def fill(self, *batches: int, partition: int = 0, **fields: Any) -> None:
        """Produce one batch for each number, with this number of records."""
        for size in batches:
            produce(self.node, batch_of(*[b"value"] * size, **fields), partition=partition)

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.run_due()

    def run_due(self) -> None:
        while due := self.node.purgatory.take_due(self.clock.monotonic()):
            for resume in due:
                resume()


class Member:
    """A share group member with a connection of its own.

    `epoch` is the share session epoch of its next request.
    """

    def __init__(self, bench: Bench, name: str = "m", group: str = "g") -> None:
        self.bench = bench
        self.name, self.group = name, group
        self.session = Session(1, "127.0.0.1", ("127.0.0.1", 9092))
        self.epoch = 0
        self.answer: Any = None
        """The latest response; None while a request waits for its response."""

    def send(self, request: Any, version: int = 2) -> Any:
        """Send a request; return the response, or None if the request waits.

        A later response is stored in `answer`.
        """
        context: Context[Any] = Context(self.bench.node, self.session)
        context.version = version
        context.now_ms = self.bench.clock.now_ms()
        context.arrived = context.now = self.bench.clock.monotonic()
        self.answer = None
        self._take(ROUTES[request.API_KEY].handle(request, context), context)
        self.bench.run_due()
        return self.answer

    def _take(self, outcome: Any, context: Context[Any]) -> None:
        if not isinstance(outcome, Wait):
            self.answer = outcome
            return

        def resume() -> None:
            context.now = self.bench.clock.monotonic()
            assert outcome.answer is not None
            self._take(outcome.answer(), context)

        self.bench.node.purgatory.park(outcome, resume)

    def fetch(
        self,
        acks: Sequence[tuple[int, int, Sequence[int]]] = (),
        epoch: int | None = None,
        partitions: Sequence[int] = (),
        version: int = 2,
        **fields: Any,
    ) -> Any:
        """Send ShareFetch for the topic's partitions; return the response, or None if it waits.

        `acks` are acknowledgements for partition 0: first offset, last offset and types.
        """
        epoch = self.epoch if epoch is None else epoch
        names = list(partitions) or ([0] if epoch == 0 or acks else [])
        asked = [fetching.FetchPartition(partition_index=index) for index in names]
        for each in asked:
            if each.partition_index == 0:
                each.acknowledgement_batches = [
                    fetching.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=list(types)
                    )
                    for first, last, types in acks
                ]
        topic_id = fields.pop("topic_id", self.bench.topic.id)
        defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 500, "batch_size": 500}
        request = fetching.ShareFetchRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=[fetching.FetchTopic(topic_id=topic_id, partitions=asked)] if asked else [],
            **{**defaults, **fields},
        )
        answer = self.send(request, version)
        self.epoch = epoch + 1 if epoch >= 0 else 0
        return answer

    def acknowledge(
        self,
        *acks: tuple[int, int, Sequence[int]],
        epoch: int | None = None,
        renews: bool = False,
        partition: int = 0,
        topic_id: bytes | None = None,
    ) -> Any:
        """Send ShareAcknowledge for one partition; return the response."""
        epoch = self.epoch if epoch is None else epoch
        batches = [
            acknowledging.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=list(types)
            )
            for first, last, types in acks
        ]
        topic = acknowledging.AcknowledgeTopic(
            topic_id=topic_id or self.bench.topic.id,
            partitions=[
                acknowledging.AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches)
            ],
        )
        answer = self.send(
            acknowledging.ShareAcknowledgeRequest(
                group_id=self.group,
                member_id=self.name,
                share_session_epoch=epoch,
                is_renew_ack=renews,
                topics=[topic] if acks else [],
            )
        )
        self.epoch = epoch + 1 if epoch >= 0 else 0
        return answer


def ranges(answer: Any, partition: int = 0) -> list[tuple[int, int, int]]:
    """Return the acquired ranges of a partition: first offset, last offset and delivery count."""
    assert answer is not None, "the request waits"
    assert answer.error_code == 0, answer.error_message
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for part in topic.partitions
        if part.partition_index == partition
        for each in part.acquired_records
    ]


def codes(answer: Any) -> list[tuple[int, int]]:
    """Return two error codes for each partition: of the fetch, and of the acknowledgements."""
    assert answer is not None, "the request waits"
    return [
        (part.error_code, getattr(part, "acknowledge_error_code", 0))
        for topic in answer.responses
        for part in topic.partitions
    ]


def ack_code(answer: Any) -> int:
    """Return the error code of the only partition in a ShareAcknowledge response."""
    assert answer is not None, "the request waits"
    assert answer.error_code == 0, answer.error_message
    return int(answer.responses[0].partitions[0].error_code)


KEYS = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)
