"""The part of a consumer that moves about in the partitions that it has: seeks, pauses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.client.arguments import topic_partition, topic_partitions, whole
from penstock.client.fetch.fetched_records import FetchedRecords
from penstock.client.fetch.position_lookup import COMMITTED
from penstock.errors import ConfigError
from penstock.model import EARLIEST, LATEST, K, TopicPartition, V

if TYPE_CHECKING:
    from penstock.client.config import ConsumerConfig
    from penstock.clock import Clock


class AssignedPartitions(FetchedRecords[K, V]):
    """A part of `AsyncConsumer`."""

    def __init__(self, config: ConsumerConfig, clock: Clock) -> None:
        super().__init__(config, clock)
        self._paused: set[TopicPartition] = set()

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read."""
        return list(self._positions)

    def subscription(self) -> set[str]:
        """The topics that are subscribed to; of a pattern, those that fit as far as they are known."""
        return set() if self._group is None else self._group.subscription()

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on at an offset, or at `EARLIEST` or `LATEST`.

        Raises:
            ConfigError: the partition is not assigned, or the offset is negative.
        """
        tp = self._assigned(partition)
        offset = whole(offset, "the offset")
        if offset < 0 and offset not in (EARLIEST, LATEST):
            raise ConfigError(f"offset {offset}: offsets begin at 0")
        with self._position_lock:
            self._forget([tp])
            self._positions[tp] = offset
        self._before.pop(tp, None)
        if self._group is not None:
            self._group.sought(tp)

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on at the first record of some partitions, of all by default."""
        for tp in partitions or self.assignment():
            self.seek(tp, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on behind the last record of some partitions, of all by default."""
        for tp in partitions or self.assignment():
            self.seek(tp, LATEST)

    def seek_to_committed(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go back to what the group has committed, for some partitions, for all by default.

        What an aborted transaction has read comes again. Where nothing is committed, ``auto.offset.reset``
        decides.

        Raises:
            ConfigError: a partition is not assigned, or there is no ``group.id``.
        """
        group = self._group_of("seek_to_committed()")
        for tp in [self._assigned(partition) for partition in partitions] or self.assignment():
            with self._position_lock:
                self._forget([tp])
                self._positions[tp] = COMMITTED
            self._before.pop(tp, None)
            group.sought(tp)

    def pause(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Hand out no records of some partitions until `resume`."""
        self._set_paused(topic_partitions(partitions, "pause()"), True)

    def resume(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Go on with paused partitions, where they were."""
        self._set_paused(topic_partitions(partitions, "resume()"), False)

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return set(self._paused)

    def _set_paused(self, partitions: Iterable[TopicPartition], is_paused: bool) -> None:
        for tp in partitions:
            self._assigned(tp)
            if not is_paused:
                self._paused.discard(tp)
                continue
            with self._position_lock:
                # What has been fetched is dropped and fetched again later: a paused partition must
                # not fill the buffer.
                self._forget([tp])
                self._paused.add(tp)

    def _assigned(self, partition: TopicPartition | tuple[str, int]) -> TopicPartition:
        tp = topic_partition(partition)
        if tp not in self._positions:
            raise ConfigError(f"partition {tp} is not assigned")
        return tp
