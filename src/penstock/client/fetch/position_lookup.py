"""Offsets by time, first and last offsets, and the positions that a consumer starts at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.client.arguments import by_partition, time_ms, topic_name, topic_partitions
from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ConsumerConfig
from penstock.client.fetch.offsets import fetch_known_offsets, fetch_offsets
from penstock.client.group.commits import CommitCalls
from penstock.clock import Clock
from penstock.model import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from datetime import datetime

NO_POSITION = -4
"""No position: the application must set one, because of ``auto.offset.reset=none``."""

COMMITTED = -5
"""Stands for what the group has committed."""

BY_AGE = -6
"""Stands for the first record that is not older than the duration of ``auto.offset.reset``."""


class OffsetCalls(CommitCalls):
    """A part of `AsyncConsumer`."""

    config: ConsumerConfig
    _client: AsyncClient
    _clock: Clock

    async def partitions_for_topic(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions.

        Raises:
            KafkaError: the topic does not exist, or may not be seen.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        name = topic_name(topic)
        known = await self._client.retrying(
            f"getting to know topic {name!r}", lambda: self._client.topic(name)
        )
        return set(known.partitions)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        return await fetch_known_offsets(
            self._client, topic_partitions(partitions, "beginning_offsets()"), EARLIEST
        )

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that the next record of each partition will get.

        With ``isolation.level=read_committed``, where the first open transaction begins.

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        isolation = self.config.isolation_level
        return await fetch_known_offsets(
            self._client, topic_partitions(partitions, "end_offsets()"), LATEST, isolation=isolation
        )

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int | datetime]
    ) -> dict[TopicPartition, int | None]:
        """The first offset whose record is not older than the given time, or None.

        Times are milliseconds since 1970, or datetimes (without a zone: local time).

        Raises:
            KafkaError: a partition does not exist, or may not be read.
            NetworkError, RequestTimeoutError: the cluster cannot be reached, or not in time.
        """
        questions = by_partition(times, "offsets_for_times()")
        for tp, time in questions.items():
            questions[tp] = time_ms(time, f"the time for {tp}")
        found = await fetch_offsets(self._client, questions)
        return {tp: None if at is None else at.offset for tp, at in found.items()}

    @property
    def _reset_marker(self) -> int:
        reset = self.config.auto_offset_reset
        if self.config.reset_age_ms is not None:
            return BY_AGE
        return {"earliest": EARLIEST, "latest": LATEST}.get(reset, NO_POSITION)

    async def _look_up(self, marker: int, unknown: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """What stands behind a marker: offsets, or other markers."""
        if marker == LATEST:
            return await self.end_offsets(unknown)
        if marker == EARLIEST:
            return await self.beginning_offsets(unknown)
        if marker == BY_AGE:
            begin_ms = self._clock.now_ms() - (self.config.reset_age_ms or 0)
            young = await self.offsets_for_times(dict.fromkeys(unknown, begin_ms))
            return {tp: LATEST if offset is None else offset for tp, offset in young.items()}
        stored = await self.committed(unknown)
        return {tp: self._reset_marker if at is None else at.offset for tp, at in stored.items()}
