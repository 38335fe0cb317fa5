"""A snapshot of a producer's counters, and of the records in its buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.client.cluster.client_statistics import client_statistics
from penstock.client.statistics import PartitionStatistics, Statistics

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.produce.accumulator import Accumulator
    from penstock.model import TopicPartition


def producer_statistics(client: AsyncClient, accumulator: Accumulator, buffer_memory: int) -> Statistics:
    """Return a snapshot of a producer's counters and buffers. Any thread may call this function."""
    written = accumulator.written.copy()
    waiting = accumulator.waiting()
    partitions: dict[TopicPartition, PartitionStatistics] = {}
    for tp in {**written, **waiting}:
        counters, (records, size) = written.get(tp), waiting.get(tp, (0, 0))
        partitions[tp] = PartitionStatistics(
            txmsgs=counters.records if counters else 0,
            txbytes=counters.bytes if counters else 0,
            msgq_cnt=records,
            msgq_bytes=size,
        )
    return client_statistics(
        client,
        "producer",
        msg_cnt=sum(partition.msgq_cnt for partition in partitions.values()),
        msg_size=sum(partition.msgq_bytes for partition in partitions.values()),
        msg_size_max=buffer_memory,
        txmsgs=sum(partition.txmsgs for partition in partitions.values()),
        txmsg_bytes=sum(partition.txbytes for partition in partitions.values()),
        partitions=partitions,
    )
