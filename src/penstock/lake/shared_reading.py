"""Reads several topics with one consumer, alone or as a member of a group; each topic has a view of its own.

A group only decides which worker reads which partitions. The tables have the positions to begin at, and a
commit of a worker that has lost its partitions meanwhile is refused, or comes before those of the next owner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from penstock.client.blocking.admin import Admin
from penstock.client.blocking.consumer import Consumer
from penstock.errors import KafkaError, NetworkError, RequestTimeoutError, TopicRecreatedError
from penstock.lake.contract import Positions
from penstock.lake.reading import FETCH_OPTIONS, LOOK_EVERY_S, TopicBounds, check_positions, recreated
from penstock.model import COLUMN_NAMES, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


class SharedTopic:
    """One of the topics that a `SharedReader` reads, with the methods that a lander calls."""

    def __init__(self, reader: SharedReader, topic: str, topic_id: str | None, partitions: list[int]) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.owned: set[int] = set()
        """The partitions that this process reads."""
        self.ends: dict[int, int] = {}
        """The end offsets of the owned partitions at the last lookup."""
        self._reader = reader
        self._begins: dict[int, int] = {}
        self._offsets: dict[int, int] = {}

    def begin(self, positions: Positions | None) -> None:
        """Begin to read the owned partitions at the offsets in a table. Raises as `TopicReader.begin`."""
        if positions is not None:
            check_positions(positions, self.topic, self.topic_id)
        # A group gives partitions that were added since as well.
        self.partitions = list(range(max([*self.partitions, *self.owned], default=-1) + 1))
        first, last = self._reader.bounds(self.topic, self.partitions)
        if positions is None and self._begins:
            # Nothing was committed: the end is a newer one by now, and partitions may have been added.
            self._begins = {p: max(at, self._begins.get(p, at)) for p, at in first.items()}
        else:
            bounds = TopicBounds(self.topic, first, last)
            start, takes_losses = self._reader.start, self._reader.takes_losses
            self._begins = bounds.begins(positions, start, takes_losses=takes_losses)
        self._offsets = {partition: self._begins[partition] for partition in self.owned}
        self.ends = {partition: last[partition] for partition in self.owned}
        self._reader.seek(self.topic, self._offsets)

    def begins(self) -> dict[int, int]:
        """Return a dict from partition, also those of other workers, to the offset where reading began."""
        return dict(self._begins)

    def offsets(self) -> dict[int, int]:
        """Return the next offset to read of each owned partition."""
        for number in self._offsets:
            position = self._reader.position(TopicPartition(self.topic, number))
            self._offsets[number] = max(self._offsets[number], position)
        return dict(self._offsets)

    def passed(self, partition: int, offset: int) -> None:
        """Record that a partition was read up to, not including, `offset`."""
        self._offsets[partition] = offset

    @property
    def is_at_end(self) -> bool:
        """True if all owned partitions are read up to the end offsets of the last `look`."""
        offsets = self.offsets()
        return all(offsets.get(partition, 0) >= end for partition, end in self.ends.items())

    def close(self) -> None:
        """Do nothing, because all topics share the consumer, which `SharedReader` closes."""


class SharedReader:
    """Reads topics with one consumer: all their partitions, or with `group` those that the group assigns."""

    def __init__(
        self,
        topics: Sequence[str],
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object],
        *,
        isolation: str = "read_committed",
        start: str = "earliest",
        takes_losses: bool = False,
        group: str | None = None,
    ) -> None:
        """Open the clients.

        Raises:
            ConfigError: a setting of the client is wrong.
            KafkaError: a topic does not exist.
            NetworkError, RequestTimeoutError: no broker answers.
        """
        self.start, self.takes_losses = start, takes_losses
        self._group = group
        self._admin = Admin(bootstrap_servers, dict(config))
        own: dict[str, object] = {
            "isolation.level": isolation,
            "auto.offset.reset": "none",
            "enable.auto.commit": False,
        }
        if group is not None:
            own["group.id"] = group
        self._consumer = Consumer(bootstrap_servers, {**FETCH_OPTIONS, **config, **own})
        self._looked_at = time.monotonic()
        self._taken: Callable[[Sequence[TopicPartition]], None] = lambda tps: None
        self.views: dict[str, SharedTopic] = {}
        try:
            for found in self._admin.describe_topics(list(topics)):
                partitions = sorted(one.partition for one in found.partitions)
                self.views[found.name] = SharedTopic(self, found.name, found.topic_id, partitions)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SharedReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the group, and close the connections."""
        self._consumer.close()
        self._admin.close()

    def share(
        self,
        taken: Callable[[Sequence[TopicPartition]], None],
        left: Callable[[Sequence[TopicPartition]], None],
        lost: Callable[[Sequence[TopicPartition]], None],
    ) -> None:
        """Begin to read all partitions of the topics, or in a group those that the group assigns.

        `taken` is called with partitions that are read from now on (within `poll` if there is a group),
        `left` before the group revokes partitions, and `lost` with partitions that other workers may read
        already.
        """
        self._taken = taken
        if self._group is not None:
            self._consumer.subscribe(list(self.views), on_assigned=taken, on_revoked=left, on_lost=lost)
            return
        self._take([TopicPartition(view.topic, p) for view in self.views.values() for p in view.partitions])

    def _take(self, added: Sequence[TopicPartition]) -> None:
        every = [TopicPartition(view.topic, p) for view in self.views.values() for p in view.partitions]
        self._consumer.assign(every)
        self._taken(added)

    def bounds(self, topic: str, partitions: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
        """Return the first and the end offsets of partitions. Raises KafkaError and NetworkError."""
        tps = [TopicPartition(topic, number) for number in partitions]
        first, last = self._consumer.beginning_offsets(tps), self._consumer.end_offsets(tps)
        return {tp.partition: first[tp] for tp in tps}, {tp.partition: last[tp] for tp in tps}

    def seek(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Continue to read each of the given partitions at the given offset."""
        for partition, offset in offsets.items():
            self._consumer.seek(TopicPartition(topic, partition), offset)

    def position(self, tp: TopicPartition) -> int:
        """Return the offset of the next record that the consumer returns for a partition."""
        return self._consumer.position(tp)

    def poll(self, timeout_ms: float) -> pa.RecordBatch | None:
        """Return the next records of one partition, or None if none arrive in time. Raises as `look`."""
        try:
            batch = self._consumer.poll_arrow(timeout_ms, columns=COLUMN_NAMES)
        except TopicRecreatedError:
            self.look()  # says it as a landing has to
            raise
        if batch is None:
            if time.monotonic() - self._looked_at >= LOOK_EVERY_S:
                self.look()
        elif batch.num_rows:
            view = self.views[batch.column("topic")[0].as_py()]
            view.passed(batch.column("partition")[0].as_py(), batch.column("offset")[-1].as_py() + 1)
        return batch

    def look(self) -> None:
        """Look up the end offsets of the topics again; without a group, also read added partitions.

        Raises:
            ConfigError: a topic was deleted and created anew.
            KafkaError: a topic was deleted.
        """
        self._looked_at = time.monotonic()
        added = []
        try:
            for found in self._admin.describe_topics(list(self.views)):
                view = self.views[found.name]
                if found.topic_id != view.topic_id:
                    raise recreated(found.name, view.topic_id, found.topic_id)
                if self._group is None:
                    numbers = sorted(one.partition for one in found.partitions)
                    added += [TopicPartition(view.topic, p) for p in numbers if p not in view.owned]
                    view.partitions = numbers
            owned = [TopicPartition(view.topic, p) for view in self.views.values() for p in view.owned]
            for tp, end in self._consumer.end_offsets(owned).items():
                self.views[tp.topic].ends[tp.partition] = end
        except (NetworkError, RequestTimeoutError):
            pass  # asked again at the next look
        except KafkaError as error:
            if not error.retriable:
                raise
        if added:
            self._take(added)
