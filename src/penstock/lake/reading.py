"""Reads a topic as Arrow batches from the offsets in a table; detects a recreated topic by its id."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.errors import (
    ConfigError,
    KafkaError,
    NetworkError,
    RequestTimeoutError,
    TopicRecreatedError,
)
from penstock.lake.contract import Positions
from penstock.model import COLUMN_NAMES, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_EVERY_S = 5.0
"""The interval in seconds between look-ups of end offsets and of new partitions."""

FETCH_OPTIONS = {"max.partition.fetch.bytes": 8 << 20, "fetch.max.bytes": 32 << 20}
"""Default fetch sizes in bytes for the consumer; the user's settings override them."""


class TopicReader:
    """Reads one topic with assigned partitions, without a consumer group.

    Records before a position may have been removed. That is an error, unless `takes_losses` is set: then
    reading continues at the first available record.
    """

    def __init__(
        self,
        topic: str,
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object],
        *,
        isolation: str = "read_committed",
        start: str = "earliest",
        takes_losses: bool = False,
    ) -> None:
        """Open the clients.

        Raises:
            ConfigError: a setting of the client is wrong.
            KafkaError: the topic does not exist.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        if start not in ("earliest", "latest"):
            raise ConfigError(f"the start is {start!r}: it is earliest or latest")
        self.topic = topic
        self._start = start
        self._takes_losses = takes_losses
        self._admin = Admin(bootstrap_servers, dict(config))
        own = {"isolation.level": isolation, "auto.offset.reset": "none", "enable.auto.commit": False}
        self._consumer = Consumer(bootstrap_servers, {**FETCH_OPTIONS, **config, **own})
        self._offsets: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        """The end offset of each partition at the last lookup."""
        self._looked_at = float("-inf")
        self.topic_id: str | None = None
        try:
            self.topic_id, self._partitions = self._described()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
        self._admin.close()

    def begin(self, positions: Positions | None) -> None:
        """Begin to read at the offsets that a table has stored; if None, at the setting `start`.

        Raises:
            ConfigError: the positions are of another topic, of one that was deleted and created anew, or lie
                outside of the topic.
        """
        if positions is not None:
            check_positions(positions, self.topic, self.topic_id)
        tps = [TopicPartition(self.topic, number) for number in self._partitions]
        first, last = self._consumer.beginning_offsets(tps), self._consumer.end_offsets(tps)
        bounds = TopicBounds(
            self.topic, {tp.partition: first[tp] for tp in tps}, {tp.partition: last[tp] for tp in tps}
        )
        self._offsets = bounds.begins(positions, self._start, takes_losses=self._takes_losses)
        self.ends = dict(bounds.last)
        self._consumer.assign(tps)
        for tp in tps:
            self._consumer.seek(tp, self._offsets[tp.partition])
        self._looked_at = time.monotonic()

    def poll(self, timeout_ms: float, columns: Sequence[str] = COLUMN_NAMES) -> pa.RecordBatch | None:
        """Return the next records of one partition, or None if none arrive within `timeout_ms`.

        Raises:
            ConfigError: the topic was deleted and created anew.
            KafkaError: records were removed before they were read, or the topic was deleted.
            CorruptRecordError: a batch is damaged.
        """
        try:
            batch = self._consumer.poll_arrow(timeout_ms, columns=columns)
        except TopicRecreatedError:
            self.look()  # says it as a landing has to
            raise
        if batch is not None and batch.num_rows:
            partition = batch.column("partition")[0].as_py()
            self._offsets[partition] = batch.column("offset")[-1].as_py() + 1
        if batch is None and time.monotonic() - self._looked_at >= LOOK_EVERY_S:
            self.look()
        return batch

    def look(self) -> None:
        """Look up the topic's end offsets again, and read partitions that were added.

        Raises:
            ConfigError: the topic was deleted and created anew.
        """
        self._looked_at = time.monotonic()
        try:
            topic_id, partitions = self._described()
            if topic_id != self.topic_id:
                raise recreated(self.topic, self.topic_id, topic_id)
            added = [number for number in partitions if number not in self._offsets]
            self._partitions = partitions
            tps = [TopicPartition(self.topic, number) for number in partitions]
            if added:
                first = self._consumer.beginning_offsets(
                    [TopicPartition(self.topic, number) for number in added]
                )
                self._consumer.assign(tps)
                for tp, offset in first.items():
                    self._offsets[tp.partition] = offset
                    self._consumer.seek(tp, offset)
            self.ends = {tp.partition: end for tp, end in self._consumer.end_offsets(tps).items()}
        except (NetworkError, RequestTimeoutError):
            pass  # asked again at the next look
        except KafkaError as error:
            if not error.retriable:
                raise

    def pause(self, partitions: Sequence[int]) -> None:
        """Stop fetching from some partitions. If partitions are added to the topic, all are fetched again."""
        self._consumer.pause([TopicPartition(self.topic, number) for number in partitions])

    def begins(self) -> dict[int, int]:
        """Return the offset of each partition at which reading begins; valid only before the first `poll`."""
        return self.offsets()

    def offsets(self) -> dict[int, int]:
        """Return the next offset to read of each partition, after the records that `poll` returned."""
        for number in self._offsets:
            # Behind the last record there may be markers of transactions, which are read as nothing.
            position = self._consumer.position(TopicPartition(self.topic, number))
            self._offsets[number] = max(self._offsets[number], position)
        return dict(self._offsets)

    @property
    def is_at_end(self) -> bool:
        """True if all partitions are read up to the end offsets of the last `look`."""
        offsets = self.offsets()
        return all(offsets.get(partition, 0) >= end for partition, end in self.ends.items())

    def _described(self) -> tuple[str | None, list[int]]:
        (found,) = self._admin.describe_topics([self.topic])
        return found.topic_id, sorted(one.partition for one in found.partitions)


@dataclass(frozen=True, slots=True)
class TopicBounds:
    """The first offset and the end offset of each partition of a topic."""

    topic: str
    first: Mapping[int, int]
    last: Mapping[int, int]

    def begins(self, positions: Positions | None, start: str, *, takes_losses: bool) -> dict[int, int]:
        """Return the offset of each partition at which to begin, from `positions` or else from `start`.

        Raises:
            ConfigError: a position lies outside of the topic.
        """
        known = {} if positions is None else positions.offsets
        # A partition that came after the first commit is read from its beginning.
        fresh = self.last if start == "latest" and positions is None else self.first
        found = {}
        for partition, first in self.first.items():
            offset, last = known.get(partition, fresh[partition]), self.last[partition]
            if not first <= offset <= last and not (offset < first and takes_losses):
                tp = TopicPartition(self.topic, partition)
                raise ConfigError(
                    f"the table is at offset {offset} of {tp}, which has offsets {first} to {last}: "
                    + (
                        "records were removed before they were read. Go on without them by --allow-loss"
                        if offset < first
                        else "the topic has lost its end. Land it under another --name, into another table"
                    )
                )
            found[partition] = max(offset, first)
        return found


def check_positions(positions: Positions, topic: str, topic_id: str | None) -> None:
    """Check that the positions in a table belong to this topic, by its name and id.

    Raises:
        ConfigError: the positions are of another topic, or of one that was deleted since.
    """
    if positions.topic != topic:
        raise ConfigError(
            f"the table has positions of topic {positions.topic!r} under this name, not of "
            f"{topic!r}: give the other topic another --name"
        )
    if None not in (positions.topic_id, topic_id) and positions.topic_id != topic_id:
        raise recreated(topic, positions.topic_id, topic_id)


def recreated(topic: str, known: str | None, found: str | None) -> ConfigError:
    """Return the error for a topic that was deleted and created anew, with its old and new id."""
    return ConfigError(
        f"topic {topic!r} was deleted and created anew: the table has records of the one with id "
        f"{known}, the present one is {found}. Land the present one under another --name: its records "
        "come behind those of the old one"
    )
