"""A snapshot of a consumer's counters, and of its position in each partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.client.cluster.client_statistics import client_statistics
from penstock.client.counters import PartitionCounters
from penstock.client.statistics import GroupStatistics, PartitionStatistics, Statistics

if TYPE_CHECKING:
    from penstock.client.cluster.client import AsyncClient
    from penstock.client.config import ConsumerConfig
    from penstock.client.fetch.cursors import Cursor
    from penstock.model import TopicPartition


def partition_statistics(
    position: int,
    counters: PartitionCounters,
    cursor: Cursor | None,
    committed: int,
    *,
    is_committed_only: bool,
) -> PartitionStatistics:
    """Return the statistics of one assigned partition. A negative `position` is not known yet."""
    more: dict[str, Any] = {}
    if cursor is not None:
        end = cursor.last_stable_offset if is_committed_only else cursor.high_watermark
        more = {
            "next_offset": cursor.offset,
            "hi_offset": cursor.high_watermark,
            "ls_offset": cursor.last_stable_offset,
            "lo_offset": cursor.log_start_offset,
            "consumer_lag": max(0, end - position) if end >= 0 <= position else -1,
        }
    return PartitionStatistics(
        rxmsgs=counters.records,
        rxbytes=counters.bytes,
        app_offset=max(position, -1),
        committed_offset=committed,
        **more,
    )


def consumer_statistics(
    client: AsyncClient,
    config: ConsumerConfig,
    positions: Mapping[TopicPartition, int],
    cursors: Mapping[TopicPartition, Cursor],
    counted: Mapping[TopicPartition, PartitionCounters],
    total: PartitionCounters,
    committed: Mapping[TopicPartition, int],
    cgrp: GroupStatistics | None,
    fetchq_size: int,
) -> Statistics:
    """Return a snapshot of a consumer's counters and positions. Any thread may call this function."""
    partitions = {
        tp: partition_statistics(
            position,
            counted.get(tp, PartitionCounters()),
            cursors.get(tp),
            committed.get(tp, -1),
            is_committed_only=config.isolation_level == "read_committed",
        )
        for tp, position in positions.items()
    }
    return client_statistics(
        client,
        "consumer",
        msg_size_max=config.queued_max_messages_kbytes << 10,
        fetchq_size=fetchq_size,
        rxmsgs=total.records,
        rxmsg_bytes=total.bytes,
        partitions=partitions,
        cgrp=cgrp,
    )
