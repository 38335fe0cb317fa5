"""Batches that are encoded before they are given to a producer, and the delivery of many such batches.

Tables are sent as encoded batches, and so are topics that are copied unchanged. This module needs neither
numpy nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from penstock.client.cluster.metadata import NO_TOPIC_ID
from penstock.client.produce.delivery import DeliveryOutcome, settled_within
from penstock.errors import RequestTimeoutError
from penstock.printable import printable


class EncodedBatch(NamedTuple):
    """One encoded batch of magic 2, into which a producer writes its id before it sends the batch."""

    partition: int
    data: memoryview
    record_count: int


class WriteSummary(NamedTuple):
    """The result of a write: `offsets` has each partition's first offset, and the offset after its last."""

    topic: str
    rows: int
    bytes: int
    batches: int
    offsets: Mapping[int, tuple[int, int]]


class TableDelivery:
    """The delivery of a table. Await it in asyncio; in other threads, `result()` waits for it."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.rows = 0
        self._bytes = 0
        self._outcomes: list[DeliveryOutcome] = []
        self.topic_id = NO_TOPIC_ID
        """The topic's id when the first batch was accepted; zero if the brokers have no topic ids."""

    def __repr__(self) -> str:
        state = "all settled" if self.done() else "under way"
        return printable(f"<TableDelivery of {self.rows} rows to {self.topic}, {state}>")

    def add(self, outcome: DeliveryOutcome, batch: EncodedBatch, topic_id: bytes) -> None:
        """Add one more batch and its outcome. Producers call this method."""
        if not self._outcomes:
            self.topic_id = topic_id
        self._outcomes.append(outcome)
        self.rows += batch.record_count
        self._bytes += len(batch.data)

    def places(self) -> list[tuple[int, int, int]]:
        """Return the partition, base offset and record count of each batch, in the order of sending.

        Call this method when all batches are acknowledged. The base offset is -1 if the broker did not report
        it. A batch that was split has one entry for each part; a batch that failed has none.
        """
        return [
            (leaf.partition, leaf.base_offset, leaf.count)
            for outcome in self._outcomes
            for leaf in outcome.leaves()
            if leaf.error is None
        ]

    def done(self) -> bool:
        """Return True if every row has been acknowledged, or has failed permanently."""
        return all(leaf.is_settled for outcome in self._outcomes for leaf in outcome.leaves())

    def result(self, timeout: float | None = None) -> WriteSummary:
        """Wait up to `timeout` seconds, and return how many rows were written, and their offsets.

        Raises:
            RequestTimeoutError: the outcome is not known yet; the delivery continues.
            PenstockError: some of the rows could not be delivered.
        """
        self._watch()
        if not settled_within(self._outcomes, timeout):
            raise RequestTimeoutError(
                f"the rows for topic {self.topic!r} were not acknowledged within {timeout:g} s"
                " (their delivery goes on)"
            )
        return self._summary()

    def __await__(self) -> Generator[Any, None, WriteSummary]:
        return self._wait().__await__()

    async def _wait(self) -> WriteSummary:
        self._watch()
        for outcome in self._outcomes:
            await outcome.wait()
        return self._summary()

    def _watch(self) -> None:
        for outcome in self._outcomes:
            for leaf in outcome.leaves():
                leaf.is_watched = True

    def _summary(self) -> WriteSummary:
        offsets: dict[int, tuple[int, int]] = {}
        leaves = [leaf for outcome in self._outcomes for leaf in outcome.leaves()]
        for leaf in leaves:
            if leaf.error is not None:
                raise leaf.error
            if leaf.base_offset >= 0:
                begin, end = leaf.base_offset, leaf.base_offset + leaf.count
                low, high = offsets.get(leaf.partition, (begin, end))
                offsets[leaf.partition] = (min(low, begin), max(high, end))
        return WriteSummary(self.topic, self.rows, self._bytes, len(leaves), dict(sorted(offsets.items())))
