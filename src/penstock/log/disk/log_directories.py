"""Several data directories of one broker, from `log.dirs`; each partition is in one of them (KIP-112).

The directories belong to one node of one cluster. Each has an id (KIP-858), which the metadata records of its
partitions contain. The metadata log is in one of them, the first by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log.disk.data_directory import DataDirectory

if TYPE_CHECKING:
    from penstock.log.contract import LogConfig
    from penstock.log.directory.identity_files import MetaProperties
    from penstock.log.disk.disk_log import DiskLog
    from penstock.model import TopicPartition


class LogDirectories:
    """Several data directories, used like one `DataDirectory`: the same methods, applied to all of them."""

    def __init__(self, paths: Sequence[str], *, node_id: int = 1) -> None:
        """Open the directories, creating missing ones; the first is for the metadata log.

        Raises:
            StorageError: a directory is in use, unreadable, unwritable, of another cluster or node, or has a
            partition that another directory has.
        """
        self.all: list[DataDirectory] = []
        try:
            for path in paths:
                cluster_id = self.all[0].meta.cluster_id if self.all else None
                self.all.append(DataDirectory(path, node_id=node_id, cluster_id=cluster_id))
                if self.all[-1].meta.node_id != self.all[0].meta.node_id:
                    raise StorageError(
                        f"{path} belongs to node {self.all[-1].meta.node_id}, and {self.all[0].path} to node "
                        f"{self.all[0].meta.node_id}; name the directories of one node in log.dirs"
                    )
            self._home: dict[TopicPartition, DataDirectory] = {}
            for directory in self.all:
                for partition in directory.partitions:
                    if partition in self._home:
                        raise StorageError(
                            f"{partition} is in {self._home[partition].path} and in {directory.path}; "
                            "move one of the two away"
                        )
                    self._home[partition] = directory
        except BaseException:
            self.abandon()
            raise
        self._wanted: dict[TopicPartition, DataDirectory] = {}
        self._counts = {each.path: len(each.partitions) for each in self.all}
        """A dict from the path of a directory to the number of partitions in it or assigned to it."""
        self._by_id = {each.meta.directory_id: each for each in self.all if each.meta.directory_id}

    @property
    def path(self) -> str:
        """The paths of the directories, separated by commas."""
        return ",".join(each.path for each in self.all)

    @property
    def meta(self) -> MetaProperties:
        """The node and cluster of the directories; the directory id is that of the first directory."""
        return self.all[0].meta

    @property
    def was_clean(self) -> bool:
        """True if the last process closed the logs in all directories."""
        return all(each.was_clean for each in self.all)

    @property
    def logs(self) -> Mapping[TopicPartition, DiskLog]:
        """A dict from partition to its log, for all open logs in all directories."""
        return {partition: log for each in self.all for partition, log in each.logs.items()}

    @property
    def broker_epoch(self) -> int:
        """The epoch of the broker's last registration, written to the clean-shutdown files."""
        return self.all[0].broker_epoch

    @broker_epoch.setter
    def broker_epoch(self, epoch: int) -> None:
        for each in self.all:
            each.broker_epoch = epoch

    # --- which partition lies where ----------------------------------------------------------------------

    def home_of(self, partition: TopicPartition) -> DataDirectory:
        """Return the directory of a partition; a new partition goes to the directory with the fewest."""
        found = self._home.get(partition) or self._wanted.get(partition)
        if found is None:
            found = min(self.all, key=lambda each: self._counts[each.path])
            self._want(partition, found)
        return found

    def _want(self, partition: TopicPartition, directory: DataDirectory) -> None:
        before = self._wanted.get(partition)
        if before is not None:
            self._counts[before.path] -= 1
        self._counts[directory.path] += 1
        self._wanted[partition] = directory

    def assign(self, partition: TopicPartition, directory_id: str) -> None:
        """Assign a partition without a directory to the directory with this id; ignore an unknown id."""
        directory = self._by_id.get(directory_id)
        if directory is not None and partition not in self._home:
            self._want(partition, directory)

    # --- the methods of a data directory -----------------------------------------------------------------

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._home)

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        return self.home_of(partition).topic_id(partition)

    def note_topic_id(self, partition: TopicPartition, topic_id: bytes) -> None:
        self.home_of(partition).note_topic_id(partition, topic_id)

    def open_log(self, partition: TopicPartition, config: LogConfig | None = None, *, now_ms: int) -> DiskLog:
        return self.home_of(partition).open_log(partition, config, now_ms=now_ms)

    def create_log(
        self,
        partition: TopicPartition,
        topic_id: bytes | None = None,
        config: LogConfig | None = None,
        *,
        now_ms: int,
    ) -> DiskLog:
        home = self.home_of(partition)
        log = home.create_log(partition, topic_id, config, now_ms=now_ms)
        self._home[partition] = home
        self._wanted.pop(partition, None)
        return log

    def delete_log(self, partition: TopicPartition) -> None:
        home = self._home[partition]
        home.delete_log(partition)
        del self._home[partition]
        self._counts[home.path] -= 1

    def problems(self, known: Callable[[TopicPartition], bool]) -> Iterator[str]:
        for each in self.all:
            yield from each.problems(known)

    def missing(self) -> list[StorageError]:
        return [failure for each in self.all for failure in each.missing()]

    def write_checkpoints(self) -> None:
        for each in self.all:
            each.write_checkpoints()

    def close(self) -> None:
        """Close all directories; then raise the first error, if there was one."""
        failure: StorageError | None = None
        for each in self.all:
            try:
                each.close()
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        for each in self.all:
            each.abandon()
