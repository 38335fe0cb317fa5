"""The decision of a sink: a stored list of the transactions that hold the rows of a batch. No I/O.

A task writes into a transaction of its own and leaves it open. The batch is decided when the list of these
transactions is stored: from then on they must be committed; before that, they are aborted. The
record is JSON, so that it can be read without this package.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from penstock.errors import ConfigError, DecodeError

NO_BATCH = -1

RECORD_VERSION = 1

Ranges = Mapping[str, Mapping[int, tuple[int, int]]]
"""A dict from topic to a dict from partition to (first offset, offset after the last one)."""

TopicIds = frozenset[tuple[str, bytes]]
"""Pairs of (topic, topic id), from before the first row was written. Brokers before Kafka 2.8 have no ids."""


class TaskTransaction(NamedTuple):
    """The transactional id, producer id and epoch of a task's transaction, as its coordinator needs them."""

    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The list of the transactions that hold the rows of batch `batch` of a sink.

    `ranges` has the first and last offsets of their rows; records of other producers may lie between.
    `topic_ids` are the ids of the topics that have the rows: a topic created later under the same name does
    not have them.
    """

    batch: int
    transactions: tuple[TaskTransaction, ...]
    ranges: Ranges = field(default_factory=dict)
    rows: int = 0
    topic_ids: TopicIds = frozenset()

    def without(self, topics: Collection[str]) -> Decision:
        """Return this decision without the offset ranges of some topics, so that their logs are not read."""
        return replace(self, ranges={name: each for name, each in self.ranges.items() if name not in topics})

    def to_bytes(self) -> bytes:
        """Return the value of the record that stores this decision."""
        document = {
            "version": RECORD_VERSION,
            "batch": self.batch,
            "rows": self.rows,
            "transactions": [list(transaction) for transaction in self.transactions],
            "ranges": {
                topic: {str(partition): list(offsets) for partition, offsets in sorted(partitions.items())}
                for topic, partitions in sorted(self.ranges.items())
            },
            "topic_ids": [[topic, topic_id.hex()] for topic, topic_id in sorted(self.topic_ids)],
        }
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Decision:
        """Return the decision that the value of a Kafka record contains.

        Raises:
            DecodeError: the value is not a decision, or has a later version.
        """
        try:
            document = json.loads(value)
            version = document["version"]
            if version == RECORD_VERSION:
                return cls(
                    batch=int(document["batch"]),
                    transactions=tuple(
                        TaskTransaction(str(name), int(producer_id), int(epoch))
                        for name, producer_id, epoch in document["transactions"]
                    ),
                    ranges={
                        str(topic): {int(p): (int(first), int(end)) for p, (first, end) in each.items()}
                        for topic, each in document["ranges"].items()
                    },
                    rows=int(document["rows"]),
                    # Absent from what earlier releases have stored.
                    topic_ids=frozenset(
                        (str(name), bytes.fromhex(each)) for name, each in document.get("topic_ids", ())
                    ),
                )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DecodeError(f"a record of the sinks' topic does not hold a decision: {error!r}") from None
        raise DecodeError(
            f"a decision of version {version!r} in the sinks' topic; this release reads {RECORD_VERSION}"
        )


@dataclass(frozen=True, slots=True)
class SinkState:
    """The stored state of a sink: its last decision, and the last batch whose rows are all committed."""

    decision: Decision | None = None
    finished: int = NO_BATCH

    @property
    def last_batch(self) -> int:
        """The highest batch for which a decision was stored, or `NO_BATCH` if there is none."""
        return max(self.decision.batch if self.decision else NO_BATCH, self.finished)

    def with_decision(self, decision: Decision) -> SinkState:
        return replace(self, decision=decision)

    def with_finished(self, batch: int) -> SinkState:
        return replace(self, finished=max(self.finished, batch))


class Course(Enum):
    """The possible treatments of a batch that Spark passes to the sink, such as committing or dropping it."""

    DECIDE = "store its transactions, then commit them"
    ROLL_FORWARD = "abort them, and commit those that were decided before"
    DROP = "abort them: the batch is in its topics already"


def course_of(state: SinkState, batch: int) -> Course:
    """Return the sink's treatment of the transactions of `batch`, according to the sink's stored state.

    Raises:
        ConfigError: a later batch was written: the checkpoint is older than the sink, or another query
            continues from the same checkpoint.
    """
    last = state.last_batch
    if batch > last:
        return Course.DECIDE
    if batch < last:
        raise ConfigError(
            f"batch {batch} is to be written, but the sink holds batch {last} of this query already: the "
            "checkpoint is older than the topics, or another driver goes on from the same checkpoint. Stop "
            "the other one, or start with a new checkpoint from the offsets where batch "
            f"{last} ended"
        )
    return Course.DROP if state.finished >= batch else Course.ROLL_FORWARD


def merged(ranges: Iterable[Ranges]) -> dict[str, dict[int, tuple[int, int]]]:
    """Return, for each partition, the smallest range that spans all of its ranges."""
    span: dict[str, dict[int, tuple[int, int]]] = {}
    for each in ranges:
        for topic, partitions in each.items():
            known = span.setdefault(topic, {})
            for partition, (first, end) in partitions.items():
                low, high = known.get(partition, (first, end))
                known[partition] = (min(low, first), max(high, end))
    return span
