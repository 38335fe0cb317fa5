"""The partitions of a state topic that a coordinator has loaded, each with its leader epoch.

A partition is read once, from its beginning. It stays loaded as long as this node leads it in the same epoch,
or in the next one: every change of the leader begins a new epoch, so that no other node has led it in
between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.broker.coordination.losses import Losses
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, StorageError
from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.coordination.state_topic import StateTopic

logger = logger_named("penstock.broker")

T = TypeVar("T")


class LoadedPartitions(Generic[T]):
    """The state of the partitions of a state topic that have been read into memory.

    `read` is called with a partition's index, replays the partition, and returns its state; it adds the
    records that it cannot read to the `Losses`. In the broker's log, `what` names the state, and `so_that`
    the consequence of unreadable records. If `is_of_one_epoch` is True, a partition's state is dropped with
    every new leader epoch.
    """

    def __init__(
        self,
        topic: StateTopic,
        read: Callable[[int, Losses], T],
        what: str,
        so_that: str = "",
        *,
        is_of_one_epoch: bool = False,
    ) -> None:
        self._topic = topic
        self._read = read
        self._what = what
        self._so_that = so_that
        self._epochs_kept = 0 if is_of_one_epoch else 1
        self._loaded: dict[int, tuple[int, T]] = {}
        """A dict from partition index to the leader epoch and the state of the loaded partition."""
        self._unreadable: dict[int, str] = {}
        """A dict from the index of each unreadable partition to the error that was logged, so that the
        same error is not logged again.
        """

    def __contains__(self, index: int) -> bool:
        return index in self._loaded

    def __iter__(self) -> Iterator[tuple[int, T]]:
        """Iterate over the loaded partitions that this node leads, as pairs of partition index and state."""
        for index, (_, state) in list(self._loaded.items()):
            if self._topic.partitions[index].leads:
                yield index, state

    @property
    def states(self) -> list[T]:
        """The states of all loaded partitions."""
        return [state for _, state in self._loaded.values()]

    def open(self, index: int) -> T:
        """Return the state of a partition. The first call loads it.

        Raises:
            KafkaError: NOT_COORDINATOR (16), another node leads the partition, or the partition cannot be
            read.
        """
        partition = self._topic.led(index)
        found = self._loaded.get(index)
        if found is not None:
            return found[1]
        losses = Losses()
        try:
            state = self._read(index, losses)
        except (KafkaError, StorageError) as error:
            if self._unreadable.get(index) != str(error):
                logger.error("the %s in %s-%d cannot be read: %s", self._what, self._topic.name, index, error)
            self._unreadable[index] = str(error)
            raise error_for(ErrorCode.NOT_COORDINATOR, str(error)) from None
        if losses.count:
            logger.error(
                "%s-%d is damaged; passed over%s: %s", self._topic.name, index, self._so_that, losses
            )
        self._loaded[index] = partition.leader_epoch, state
        self._unreadable.pop(index, None)
        return state

    def follow(self, partition: Any) -> bool:
        """Drop the state of a partition if a change of its leader or leader epoch requires that.

        Returns True if the state was dropped.
        """
        found = self._loaded.get(partition.index)
        if found is None:
            return False
        epoch, state = found
        if partition.leads and 0 <= partition.leader_epoch - epoch <= self._epochs_kept:
            self._loaded[partition.index] = partition.leader_epoch, state
            return False
        self.drop(partition.index)
        return True

    def drop(self, index: int) -> None:
        """Drop the state of a partition."""
        self._loaded.pop(index, None)
        self._unreadable.pop(index, None)

    def clear(self) -> None:
        """Drop the states of all partitions, because the topic was deleted."""
        self._loaded.clear()
        self._unreadable.clear()
