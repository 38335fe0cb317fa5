"""What a producer looks up of a topic for every record."""

from __future__ import annotations

from penstock.client.cluster.metadata import TopicInfo
from penstock.client.produce.partitioner import StickyChoice
from penstock.model import TopicPartition


class TopicState:
    """The partitions of a topic as the producer needs them on every record."""

    __slots__ = ("available", "count", "info", "sticky", "tp")

    def __init__(self, info: TopicInfo, sticky: StickyChoice) -> None:
        self.info = info
        self.count = len(info.partitions)
        self.tp = [TopicPartition(info.name, partition) for partition in range(self.count)]
        led = [number for number, p in sorted(info.partitions.items()) if p.leader >= 0]
        self.available = led or list(range(self.count))
        self.sticky = sticky
