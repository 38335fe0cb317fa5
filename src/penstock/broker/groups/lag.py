"""The lag of groups: the number of records from each committed offset to its partition's high watermark.

Apache Kafka leaves this metric to external exporters. Here the coordinator of a group reports it, since it
has the offsets; the high watermark of a partition is known if the broker leads or follows the partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import KafkaError, StorageError

if TYPE_CHECKING:
    from penstock.broker.groups.service import GroupService
    from penstock.broker.metadata.replica_manager import Topic

ROWS_MAX = 5_000
"""The most committed offsets, of all groups together, for which one `Lags` computes the lag."""

LOGS_OPENED_MAX = 20
"""The most closed logs that one `Lags` opens to read their end. Partitions beyond this limit have no lag."""


class GroupLag(NamedTuple):
    """A group's committed offset in one partition, and the lag: None if the high watermark is unknown."""

    group: str
    topic: str
    partition: int
    offset: int
    lag: int | None


class Lags:
    """The lags of the groups that a broker coordinates, limited to `ROWS_MAX` rows."""

    def __init__(self, topics: Mapping[str, Topic], service: GroupService) -> None:
        service.open_all()
        self._topics = topics
        self._opened = 0
        self.left_out = 0
        """The number of committed offsets beyond `ROWS_MAX`, which `rows` does not contain."""
        self.rows = list(self._look(service))

    def _look(self, service: GroupService) -> Iterator[GroupLag]:
        count = 0
        for group in service.offsets.groups():
            offsets = service.offsets.of_group(group)
            taken = max(0, ROWS_MAX - count)
            self.left_out += max(0, len(offsets) - taken)
            count += min(len(offsets), taken)
            for (topic, partition), committed in list(offsets.items())[:taken]:
                end = self._end(topic, partition)
                lag = None if end is None else max(0, end - committed.offset)
                yield GroupLag(group, topic, partition, committed.offset, lag)

    def _end(self, name: str, index: int) -> int | None:
        topic = self._topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return None
        partition = topic.partitions[index]
        if not partition.is_open:
            if not partition.leads or self._opened >= LOGS_OPENED_MAX:
                return None
            self._opened += 1
        try:
            return partition.high_watermark
        except (KafkaError, StorageError):
            return None
